//! Somebody's directory of results: files that show a server, found by what is in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::dump::{self, Content};
use super::{Subject, option_file};
use crate::judge::audit::{Product, ServerEvidence, Texts, Version, variable_name};

/// Directories nested deeper than this are not looked into.
const DEPTH_MAX: usize = 6;
/// Files beyond this many are not looked at.
const FILES_MAX: usize = 5000;

/// What the files of one server show.
#[derive(Debug, Default)]
struct Pile {
    variables: Vec<(PathBuf, Texts)>,
    status: Vec<(PathBuf, Texts)>,
    engine_status: Vec<(PathBuf, String)>,
    schema: Option<String>,
    error_log: Option<String>,
    option_files: Vec<PathBuf>,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Published {
    /// The servers that its files show.
    pub contenders: Vec<ServerEvidence>,
    /// Files that are no readable text, and why: charts and archives mostly.
    pub refused: Vec<String>,
}

impl Pile {
    fn add(&mut self, path: PathBuf, content: Content) {
        match content {
            Content::Variables(texts) => self.variables.push((path, texts)),
            Content::Status(texts) => self.status.push((path, texts)),
            Content::EngineStatus(text) => self.engine_status.push((path, text)),
            Content::Schema(text) => self.schema = Some(text),
            Content::ErrorLog(text) => self.error_log = Some(text),
            Content::OptionFile => self.option_files.push(path),
            Content::Other => {}
        }
    }

    fn shows_a_server(&self) -> bool {
        !self.variables.is_empty() || !self.option_files.is_empty()
    }
}

/// The contenders of a directory, by name: one per subdirectory that shows a server, or, where all
/// files lie together, one per common part of their names.
///
/// # Errors
/// When the directory cannot be read, or a contender does not say which server it is.
pub fn read(directory: &Path) -> Result<Published> {
    let mut published = Published::default();
    let mut piles: BTreeMap<String, Pile> = BTreeMap::new();
    for path in files(directory)? {
        let content = match dump::read(&path) {
            Ok(content) => content,
            Err(error) => {
                published.refused.push(error.to_string());
                continue;
            }
        };
        let below = path.strip_prefix(directory).unwrap_or(&path);
        let owner = match below.components().next() {
            Some(first) if below.components().count() > 1 => {
                first.as_os_str().to_string_lossy().into_owned()
            }
            _ => owner_of(&path),
        };
        piles.entry(owner).or_default().add(path, content);
    }
    piles.retain(|_, pile| pile.shows_a_server());
    for (name, pile) in piles {
        published
            .contenders
            .push(evidence(&name, pile, None, None)?);
    }
    Ok(published)
}

/// The contender whose files a directory holds.
///
/// # Errors
/// When no file in it shows a server, or which one it is remains unknown.
pub fn contender(directory: &Path, subject: &Subject) -> Result<ServerEvidence> {
    let mut pile = Pile::default();
    let mut refused = Vec::new();
    for path in files(directory)? {
        match dump::read(&path) {
            Ok(content) => pile.add(path, content),
            Err(error) => refused.push(error.to_string()),
        }
    }
    if !pile.shows_a_server() {
        bail!(
            "`{}` has neither SHOW GLOBAL VARIABLES nor an option file{}",
            directory.display(),
            besides(&refused)
        );
    }
    evidence(&subject.name, pile, subject.product, subject.version)
}

/// Refused files that are named in an error.
const REFUSED_LISTED: usize = 3;

/// What to add to an error when files were refused: one of them may be the one that is missing.
#[must_use]
pub fn besides(refused: &[String]) -> String {
    let listed: Vec<&str> = refused
        .iter()
        .take(REFUSED_LISTED)
        .map(String::as_str)
        .collect();
    match refused.len() {
        0 => String::new(),
        count if count > REFUSED_LISTED => {
            format!(
                "; {count} files could not be read, among them {}",
                listed.join("; ")
            )
        }
        _ => format!("; could not be read: {}", listed.join("; ")),
    }
}

fn evidence(
    name: &str,
    mut pile: Pile,
    product: Option<Product>,
    version: Option<Version>,
) -> Result<ServerEvidence> {
    pile.variables.sort_by_key(|(path, _)| moment_of(path));
    pile.engine_status.sort_by_key(|(path, _)| moment_of(path));
    let (product, version) = match (product, version) {
        (Some(product), Some(version)) => (Some(product), Some(version)),
        _ => from_name(name),
    };
    let shown = pile.variables.first().and_then(|(path, texts)| {
        let mut evidence = ServerEvidence::of_variables(name, texts.clone())?;
        evidence.source = path.display().to_string();
        Some(evidence)
    });
    let mut evidence = match (shown, pile.option_files.first()) {
        (Some(mut evidence), option_file) => {
            let settings = option_file.and_then(|path| {
                option_file::read(path, Some(evidence.product), Some(evidence.version)).ok()
            });
            for setting in settings.into_iter().flat_map(|settings| settings.settings) {
                evidence
                    .asked
                    .insert(variable_name(&setting.name), setting.value);
            }
            evidence
        }
        (None, Some(path)) => {
            let settings = option_file::read(path, product, version)?;
            option_file::evidence(name, &settings, product, version)?
        }
        (None, None) => bail!("the variables of `{name}` have no `version`"),
    };
    if let [_, .., (_, last)] = pile.variables.as_slice() {
        evidence.variables_after.clone_from(last);
    }
    // The uptime says which of two looks at the counters came first.
    pile.status.sort_by_key(|(_, texts)| {
        texts
            .get("uptime")
            .and_then(|uptime| uptime.parse::<u64>().ok())
    });
    match pile.status.as_slice() {
        [] => {}
        [(path, only)] if moment_of(path) == Moment::Before => {
            evidence.status_before.clone_from(only);
        }
        [(_, only)] => evidence.status_after.clone_from(only),
        [(_, first), .., (_, last)] => {
            evidence.status_before.clone_from(first);
            evidence.status_after.clone_from(last);
        }
    }
    match pile.engine_status.as_slice() {
        [] => {}
        [(path, only)] if moment_of(path) == Moment::Before => {
            evidence.engine_status_before = Some(only.clone());
        }
        [(_, only)] => evidence.engine_status_after = Some(only.clone()),
        [(_, first), .., (_, last)] => {
            evidence.engine_status_before = Some(first.clone());
            evidence.engine_status_after = Some(last.clone());
        }
    }
    evidence.schema = pile.schema;
    evidence.error_log = pile.error_log;
    Ok(evidence)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Before,
    Unknown,
    After,
}

/// When a file was made, as its name says.
fn moment_of(path: &Path) -> Moment {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["before", "start", "begin", "pre"]) {
        Moment::Before
    } else if has(&["after", "end", "final", "post"]) {
        Moment::After
    } else {
        Moment::Unknown
    }
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
fn owner_of(path: &Path) -> String {
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
fn from_name(name: &str) -> (Option<Product>, Option<Version>) {
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

/// Regular files below a directory, in the order of their names; symbolic links are not followed.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(directory.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let mut entries: Vec<fs::DirEntry> = fs::read_dir(&folder)?
            .take(FILES_MAX)
            .collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && found.len() < FILES_MAX {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(version: &str) -> String {
        format!("version\t{version}\nmax_connections\t151\ninnodb_io_capacity\t200\n")
    }

    fn status(uptime: u32, commits: u32) -> String {
        format!("Uptime\t{uptime}\nQuestions\t9\nCom_commit\t{commits}\n")
    }

    fn write(directory: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn a_directory_per_server_is_recognised_by_content() {
        let directory = tempfile::tempdir().unwrap();
        write(
            directory.path(),
            &[
                ("one/a.txt", &variables("5.6.24")),
                ("one/x1", &status(500, 90)),
                ("one/x2", &status(100, 10)),
                ("one/chart.png", "\u{0}\u{1}"),
                ("two/run/b.txt", &variables("10.1.8-MariaDB")),
                ("two/my.cnf", "[mysqld]\ninnodb_io_capacity=200\n"),
                ("README.md", "# results\n"),
            ],
        );
        let found = read(directory.path()).unwrap().contenders;
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].name.as_str(), found[0].product),
            ("one", Product::MySql)
        );
        assert_eq!(
            found[0].delta("com_commit"),
            Some(80.0),
            "the uptime orders the two looks"
        );
        assert_eq!(
            (found[1].name.as_str(), found[1].product),
            ("two", Product::MariaDb)
        );
        assert_eq!(found[1].asked["innodb_io_capacity"], "200");
    }

    #[test]
    fn files_that_lie_together_are_told_apart_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        write(
            directory.path(),
            &[
                ("mariadb_variables.txt", &variables("10.1.8-MariaDB")),
                ("mariadb_status_after.txt", &status(9, 9)),
                ("mysql_variables.txt", &variables("5.6.24")),
                ("mysql_status_before.txt", &status(9, 9)),
            ],
        );
        let found = read(directory.path()).unwrap().contenders;
        let names: Vec<&str> = found
            .iter()
            .map(|contender| contender.name.as_str())
            .collect();
        assert_eq!(names, ["mariadb", "mysql"]);
        assert!(!found[0].status_after.is_empty() && found[0].status_before.is_empty());
        assert!(found[1].status_after.is_empty() && !found[1].status_before.is_empty());
    }

    #[test]
    fn option_files_alone_need_a_version_in_the_name_of_their_directory() {
        let directory = tempfile::tempdir().unwrap();
        write(
            directory.path(),
            &[
                (
                    "mariadb-10.1.8/my.cnf",
                    "[mysqld]\ninnodb_io_capacity=900\n",
                ),
                ("mysql-5.6/my.cnf", "[mysqld]\n"),
            ],
        );
        let found = read(directory.path()).unwrap().contenders;
        assert_eq!(found[0].variables["innodb_io_capacity"], "900");
        assert!(found[0].is_predicted);
        write(directory.path(), &[("unnamed/my.cnf", "[mysqld]\n")]);
        assert!(read(directory.path()).is_err());
    }
}
