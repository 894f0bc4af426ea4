//! Names of files and folders: when a file was made, for which contender, and for which server.

use std::path::Path;

use dbduel_audit::{Product, Version};

/// When a file was made, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the run.
    Before,
    /// The name does not say.
    Unknown,
    /// After the run.
    After,
}

/// When a file was made: by its name, or by that of its folder.
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

/// The moment among the words of a name. Whole words only: `backend` contains `end`.
pub fn moment(name: &str) -> Moment {
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

/// True for a folder name that counts repetitions and names no server: `run2`, `3`.
pub fn is_repeat(name: &str) -> bool {
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
    REPEATS.contains(&bare.as_str())
}

/// Words in file names that describe the content and not the owner.
const COMMON_WORDS: &[&str] = &[
    "variables",
    "variable",
    "vars",
    "version",
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

/// Owner of a file whose name only describes its content.
pub const NO_OWNER: &str = "server";

/// Owner of a file among others in one folder: its name without the words that describe its content.
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
        NO_OWNER.to_owned()
    } else {
        owner
    }
}

/// A server named by a folder or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedServer {
    pub product: Product,
    /// The version, when it follows the product.
    pub version: Option<Version>,
    /// The part of the name that identifies the server: `mysql-8.4.8`.
    pub name: String,
    /// The rest of it: `8-threads` of `mysql-8.4.8_8-threads`; empty if none.
    pub rest: String,
}

/// Words that name a product.
const PRODUCTS: &[&str] = &["mariadb", "percona", "mysql", "postgres"];
/// Words that may stand between a product and its version.
const FILLERS: &[&str] = &["server", "community", "enterprise", "ce", "v", "version"];

/// A name that is a version, as of a folder below that of its product: `8.4.8` of `mysql/8.4.8`.
pub fn version_of(name: &str) -> Option<Version> {
    let numbers = name.strip_prefix('v').unwrap_or(name);
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let is_version = numbers.contains('.') && numbers.chars().all(is_part);
    is_version.then(|| Version::parse(numbers)).flatten()
}

/// The server that a name contains; `None` for none or several.
pub fn server_of(name: &str) -> Option<NamedServer> {
    let lower = name.to_ascii_lowercase();
    let mut found = PRODUCTS
        .iter()
        .filter_map(|word| Some((lower.find(word)?, *word)));
    let (start, word) = found.next()?;
    if found.next().is_some() || start + word.len() < lower.rfind(word)? {
        return None;
    }
    let is_separator = |c: char| matches!(c, '-' | '_' | '.' | ' ');
    let mut end = start + word.len();
    // The longer name of one product.
    if word == "postgres" && lower[end..].starts_with("ql") {
        end += 2;
    }
    let product = Product::named(word)?;
    let mut version = None;
    let mut rest = &lower[end..];
    loop {
        let bare = rest.trim_start_matches(is_separator);
        if bare.starts_with(|first: char| first.is_ascii_digit()) {
            let digits = bare
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(bare.len());
            let numbers = bare[..digits].trim_end_matches('.');
            version = product.parse_version(numbers);
            if version.is_some() {
                end = lower.len() - bare.len() + numbers.len();
            }
            break;
        }
        match FILLERS.iter().find_map(|filler| bare.strip_prefix(filler)) {
            Some(after) if !after.starts_with(|c: char| c.is_ascii_alphabetic()) => rest = after,
            _ => break,
        }
    }
    let sides = [&name[..start], &name[end..]];
    let sides = sides.map(|side| side.trim_matches(is_separator));
    let rest: Vec<&str> = sides.into_iter().filter(|side| !side.is_empty()).collect();
    Some(NamedServer {
        product,
        version,
        name: name[start..end].to_owned(),
        rest: rest.join("-"),
    })
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
    fn folders_of_repeats_are_no_servers() {
        for name in ["run1", "run-2", "3", "epoch_04"] {
            assert!(is_repeat(name), "{name}");
        }
        for name in ["mysql", "mariadb-10.1", "runner", "tpcc", "before"] {
            assert!(!is_repeat(name), "{name}");
        }
    }

    #[test]
    fn servers_are_told_by_product_and_version_in_a_name() {
        for (name, product, version, own, rest) in [
            (
                "mysql-8.4.8",
                Product::MySql,
                Some("8.4.8"),
                "mysql-8.4.8",
                "",
            ),
            (
                "mysql-8.4.8_tier2_8th",
                Product::MySql,
                Some("8.4.8"),
                "mysql-8.4.8",
                "tier2_8th",
            ),
            (
                "tier2-MariaDB_11.8.2",
                Product::MariaDb,
                Some("11.8.2"),
                "MariaDB_11.8.2",
                "tier2",
            ),
            (
                "percona-server-8.0.33",
                Product::Percona,
                Some("8.0.33"),
                "percona-server-8.0.33",
                "",
            ),
            ("mysql8.4", Product::MySql, Some("8.4"), "mysql8.4", ""),
            ("mariadb", Product::MariaDb, None, "mariadb", ""),
            (
                "postgresql-17.11",
                Product::PostgreSql,
                Some("17.11"),
                "postgresql-17.11",
                "",
            ),
            (
                "Postgres-17_wal",
                Product::PostgreSql,
                Some("17.0"),
                "Postgres-17",
                "wal",
            ),
            (
                "mysql_16threads",
                Product::MySql,
                None,
                "mysql",
                "16threads",
            ),
        ] {
            let found = server_of(name).unwrap();
            let expected = version.and_then(Version::parse);
            assert_eq!(
                (found.product, found.version),
                (product, expected),
                "{name}"
            );
            assert_eq!(
                (found.name.as_str(), found.rest.as_str()),
                (own, rest),
                "{name}"
            );
        }
        for name in [
            "mysql-vs-mariadb",
            "sysbench-1.0.20",
            "tier2",
            "mysql-5.7-to-mysql-8.0",
        ] {
            assert_eq!(server_of(name), None, "{name}");
        }
    }
}
