//! What names of files and folders say: when a file was made, whose it is, which server it is of.

use std::path::Path;

use crate::judge::audit::{Product, Version};

/// When a file was made, as far as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the run.
    Before,
    /// Nothing in the name.
    Unknown,
    /// After the run.
    After,
}

/// When a file was made: as its name says, or that of its folder.
pub fn moment_of(path: &Path) -> Moment {
    let said = |path: Option<&Path>| {
        let name = path.and_then(Path::file_name);
        name.map_or(Moment::Unknown, |name| moment(&name.to_string_lossy()))
    };
    match said(Some(path)) {
        Moment::Unknown => said(path.parent()),
        known => known,
    }
}

/// The moment among the words of a name. Words, because `backend` is no end.
fn moment(name: &str) -> Moment {
    let lower = name.to_ascii_lowercase();
    let has = |wanted: &[&str]| {
        lower
            .split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| wanted.contains(&word))
    };
    if has(&["before", "start", "begin", "pre"]) {
        Moment::Before
    } else if has(&["after", "end", "final", "post"]) {
        Moment::After
    } else {
        Moment::Unknown
    }
}

/// True for the name of a folder that says when or how often, and not of which server: `before`, `run2`, `3`.
pub fn is_moment_or_repeat(name: &str) -> bool {
    const REPEATS: &[&str] = &[
        "",
        "epoch",
        "iteration",
        "r",
        "rep",
        "repeat",
        "round",
        "run",
    ];
    let bare = name.to_ascii_lowercase().replace(
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '.'),
        "",
    );
    REPEATS.contains(&bare.as_str()) || moment(name) != Moment::Unknown
}

/// Words in file names that say what is in a file and not whose it is.
const COMMON_WORDS: &[&str] = &[
    "variables",
    "variable",
    "vars",
    "status",
    "global",
    "show",
    "innodb",
    "engine",
    "before",
    "after",
    "start",
    "end",
    "my",
    "cnf",
    "ini",
    "conf",
    "config",
    "txt",
    "tsv",
    "csv",
    "log",
    "out",
    "err",
    "error",
    "schema",
    "sql",
    "create",
    "tables",
    "table",
];

/// Whose file it is, when all lie together: its name without the words that say what it is.
pub fn owner_of(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = name
        .rsplit_once('.')
        .map_or(name.as_str(), |(stem, _)| stem);
    let words = stem.split(['_', '-', ' ']).filter(|word| {
        !COMMON_WORDS.contains(&word.to_ascii_lowercase().as_str()) && !word.is_empty()
    });
    let owner = words.collect::<Vec<_>>().join("-");
    if owner.is_empty() {
        "server".to_owned()
    } else {
        owner
    }
}

/// Product and version, when a name such as `mariadb-10.1.8` says them.
pub fn server_of(name: &str) -> (Option<Product>, Option<Version>) {
    let lower = name.to_ascii_lowercase();
    let product = ["mariadb", "percona", "mysql"]
        .into_iter()
        .find(|word| lower.contains(word))
        .and_then(Product::named);
    let digits = lower
        .find(|c: char| c.is_ascii_digit())
        .map(|at| &lower[at..]);
    (product, digits.and_then(Version::parse))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_word_of_the_name_or_of_the_folder() {
        assert_eq!(moment_of(Path::new("x/status_after.txt")), Moment::After);
        assert_eq!(moment_of(Path::new("before/status.txt")), Moment::Before);
        assert_eq!(moment_of(Path::new("backend/status.txt")), Moment::Unknown);
        assert_eq!(moment_of(Path::new("status.before.tsv")), Moment::Before);
    }

    #[test]
    fn folders_of_moments_and_repeats_are_no_servers() {
        for name in ["before", "after-run", "run1", "run-2", "3", "epoch_04"] {
            assert!(is_moment_or_repeat(name), "{name}");
        }
        for name in ["mysql", "mariadb-10.1", "runner", "tpcc"] {
            assert!(!is_moment_or_repeat(name), "{name}");
        }
    }
}
