//! Somebody's directory of results: files that show servers, found by what is in them, and the records
//! of this program.
//!
//! Folders say what belongs together. A folder with folders that each show a server is a contest; a folder
//! whose folders are contests holds several, each judged by itself. `before`, `run2` and the like say
//! when, not of which server. Where all files lie together their names say whose they are.

mod names;
mod pile;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_record::{Record, store};

use super::dump::{self, Content};
use super::{Gathered, Origin, Subject};
use crate::judge::audit::{Case, Machine, ServerEvidence, Stage};
use names::{is_moment_or_repeat, owner_of};
use pile::Pile;

/// Folders nested deeper than this are not looked into.
const DEPTH_MAX: usize = 6;
/// Files beyond this many are not looked at.
const FILES_MAX: usize = 5000;
/// Files beyond so many bytes in all are not looked at.
const BYTES_MAX: u64 = 256 << 20;

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Published {
    /// The contests, in the order of their folders.
    pub contests: Vec<Gathered>,
    /// What shows a server or a contest and could not be used, and why.
    pub left_out: Vec<String>,
    /// Files that are no readable text, and why: charts and archives mostly.
    pub refused: Vec<String>,
}

/// Everything in a directory that can be audited. A record is a contest.
///
/// # Errors
/// When the directory cannot be read.
pub fn read(directory: &Path) -> Result<Published> {
    let mut reading = Reading::default();
    let root = reading.folder(directory, 0)?;
    let name = root.name.clone();
    if let Some(pile) = reading.gather(root, true)
        && pile.shows_a_server()
    {
        reading.found.left_out.push(format!(
            "only `{name}` was found, and an audit compares at least two"
        ));
    }
    Ok(reading.found)
}

/// The contender whose files a directory holds.
///
/// # Errors
/// When no file in it shows a server, several do, or which one it is remains unknown.
pub fn contender(directory: &Path, subject: &Subject) -> Result<ServerEvidence> {
    if directory.join(store::PLAN).is_file() {
        bail!(
            "it is a record and holds a contest of its own; audit it by itself, or name the folder of one contender in it"
        );
    }
    let mut reading = Reading::default();
    let root = reading.folder(directory, 0)?;
    let Some(pile) = reading.gather(root, false) else {
        let contests = reading
            .found
            .contests
            .iter()
            .flat_map(|contest| &contest.case.contenders);
        let names: Vec<String> = contests
            .map(|contender| format!("`{}`", contender.name))
            .collect();
        bail!(
            "it holds several servers ({}); name the folder of one of them",
            names.join(", ")
        );
    };
    if !pile.shows_a_server() {
        bail!(
            "it has neither SHOW GLOBAL VARIABLES nor an option file{}",
            besides(&reading.found.refused)
        );
    }
    let Subject {
        name,
        product,
        version,
        machine,
        ..
    } = subject;
    pile.evidence(name, *product, *version, *machine)
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

/// A folder with what is in it.
#[derive(Debug, Default)]
struct Folder {
    /// Its path.
    path: PathBuf,
    /// Its path below the directory that was named, or that directory's name.
    name: String,
    files: Vec<(PathBuf, Content)>,
    folders: Vec<Folder>,
    is_record: bool,
}

#[derive(Debug, Default)]
struct Reading {
    found: Published,
    files_read: usize,
    bytes_read: u64,
}

impl Reading {
    /// Reads a folder and what is below it, in the order of the names; symbolic links are not followed.
    fn folder(&mut self, path: &Path, depth: usize) -> Result<Folder> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let mut folder = Folder {
            path: path.to_owned(),
            name: name.unwrap_or_else(|| path.display().to_string()),
            is_record: path.join(store::PLAN).is_file(),
            ..Folder::default()
        };
        // A record is read as one, not as a heap of files.
        if folder.is_record {
            return Ok(folder);
        }
        let listed = || format!("could not list `{}`", path.display());
        let entries: std::io::Result<Vec<fs::DirEntry>> = fs::read_dir(path)
            .with_context(listed)?
            .take(FILES_MAX)
            .collect();
        let mut entries = entries.with_context(listed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().with_context(listed)?;
            if kind.is_dir() && depth < DEPTH_MAX {
                match self.folder(&entry.path(), depth + 1) {
                    Ok(below) => folder.folders.push(below),
                    Err(error) => self.found.refused.push(format!("{error:#}")),
                }
            } else if kind.is_file() {
                self.file(entry.path(), &mut folder);
            }
        }
        Ok(folder)
    }

    fn file(&mut self, path: PathBuf, folder: &mut Folder) {
        let bytes = path
            .metadata()
            .map_or(0, |facts| facts.len().min(super::text::FILE_BYTES_MAX));
        if self.files_read >= FILES_MAX || self.bytes_read + bytes > BYTES_MAX {
            let why = format!(
                "`{}` was not looked at: the directory has more than {FILES_MAX} files or {} MiB",
                path.display(),
                BYTES_MAX >> 20
            );
            self.found.refused.push(why);
            return;
        }
        self.files_read += 1;
        self.bytes_read += bytes;
        match dump::read(&path) {
            Ok(content) => folder.files.push((path, content)),
            Err(error) => self.found.refused.push(error.to_string()),
        }
    }

    /// Finds the contests of a folder. What is left is the pile of one server, or of none; `None` when
    /// the folder was one or several contests.
    fn gather(&mut self, folder: Folder, is_root: bool) -> Option<Pile> {
        if folder.is_record {
            self.record(&folder);
            return None;
        }
        let mut servers: Vec<(String, Pile)> = Vec::new();
        let mut besides = Pile::default();
        let mut has_contests = false;
        for below in folder.folders {
            let name = below.name.clone();
            match self.gather(below, false) {
                None => has_contests = true,
                Some(pile) if pile.shows_a_server() => servers.push((name, pile)),
                Some(pile) => besides.merge(pile),
            }
        }
        let (own, rest) = by_owner(folder.files);
        besides.merge(rest);
        let is_one = match (servers.len(), own.len()) {
            (0, 0..=1) | (1, 1) => true,
            (1, 0) => !has_contests,
            (_, 0..=1) => !is_root && servers.iter().all(|(name, _)| is_moment_or_repeat(name)),
            _ => false,
        };
        if is_one && !has_contests {
            let parts = servers.into_iter().chain(own).map(|(_, pile)| pile);
            parts.for_each(|pile| besides.merge(pile));
            return Some(besides);
        }
        servers.extend(own);
        self.contest(&folder.path, &folder.name, is_root, servers);
        None
    }

    fn record(&mut self, folder: &Folder) {
        match Record::open(&folder.path) {
            Ok(record) => {
                let title = folder.path.display().to_string();
                self.found
                    .contests
                    .push(Gathered::of_record(&record, title));
            }
            Err(error) => self.found.left_out.push(error.to_string()),
        }
    }

    /// Adds the contest between some servers. What cannot be used is left out and told.
    fn contest(&mut self, path: &Path, name: &str, is_root: bool, servers: Vec<(String, Pile)>) {
        let mut contenders = Vec::new();
        for (server, pile) in servers {
            match pile.evidence(&server, None, None, Machine::default()) {
                Ok(evidence) => contenders.push(evidence),
                Err(error) => self.found.left_out.push(format!("{error:#}")),
            }
        }
        match contenders.as_slice() {
            [] => {}
            [only] => {
                let place = if is_root {
                    String::new()
                } else {
                    format!(" in `{name}`")
                };
                let why = format!("`{}` has nothing{place} to be compared with", only.name);
                self.found.left_out.push(why);
            }
            _ => {
                let mut case = Case::of(contenders);
                case.stage = Stage::Results;
                self.found.contests.push(Gathered {
                    title: path.display().to_string(),
                    origin: Origin::Servers(vec![None; case.contenders.len()]),
                    case,
                });
            }
        }
    }
}

/// Files that lie together, by whose they are: servers by name, and what belongs to none of them.
fn by_owner(files: Vec<(PathBuf, Content)>) -> (Vec<(String, Pile)>, Pile) {
    let mut piles: BTreeMap<String, Pile> = BTreeMap::new();
    for (path, content) in files {
        piles.entry(owner_of(&path)).or_default().add(path, content);
    }
    let mut rest = Pile::default();
    let (servers, others): (Vec<_>, Vec<_>) = piles
        .into_iter()
        .partition(|(_, pile)| pile.shows_a_server());
    others.into_iter().for_each(|(_, pile)| rest.merge(pile));
    (servers, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Product;

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

    /// The contenders of the one contest of a directory.
    fn only_contest(directory: &Path) -> Vec<ServerEvidence> {
        let mut contests = read(directory).unwrap().contests;
        assert_eq!(contests.len(), 1);
        contests.remove(0).case.contenders
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
        let found = only_contest(directory.path());
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
        let found = only_contest(directory.path());
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
        let found = only_contest(directory.path());
        assert_eq!(found[0].variables["innodb_io_capacity"], "900");
        assert!(found[0].is_predicted);
        write(directory.path(), &[("unnamed/my.cnf", "[mysqld]\n")]);
        let left_out = read(directory.path()).unwrap().left_out;
        assert!(left_out[0].contains("--product-a"), "{left_out:?}");
    }

    fn names(contests: &[Gathered]) -> Vec<Vec<&str>> {
        contests
            .iter()
            .map(|contest| {
                let contenders = contest.case.contenders.iter();
                contenders
                    .map(|contender| contender.name.as_str())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn folders_of_contests_are_paired_within_each() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for workload in ["linkbench", "tpcc"] {
            for (server, version) in [("mariadb", "10.1.8-MariaDB"), ("mysql", "5.6.24")] {
                for moment in ["before", "after"] {
                    files.push((
                        format!("{workload}/{server}/{moment}/variables.txt"),
                        variables(version),
                    ));
                }
                files.push((
                    format!("{workload}/{server}/after/status.txt"),
                    status(9, 9),
                ));
            }
        }
        files.push(("alone/variables.txt".to_owned(), variables("8.0.33")));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, content)| (name.as_str(), content.as_str()))
            .collect();
        write(directory.path(), &files);
        let found = read(directory.path()).unwrap();
        assert_eq!(names(&found.contests), [["mariadb", "mysql"]; 2]);
        assert!(found.contests[1].title.ends_with("tpcc"));
        let first = &found.contests[0].case.contenders[0];
        assert!(!first.variables_after.is_empty() && !first.status_after.is_empty());
        assert_eq!(found.left_out, ["`alone` has nothing to be compared with"]);
    }

    #[test]
    fn files_of_two_servers_in_one_folder_are_no_contender() {
        let directory = tempfile::tempdir().unwrap();
        write(
            directory.path(),
            &[
                ("a/run1/variables.txt", &variables("5.6.24")),
                ("a/run2/variables.txt", &variables("8.0.33")),
                ("b/variables.txt", &variables("5.6.24")),
            ],
        );
        let found = read(directory.path()).unwrap();
        assert!(found.contests.is_empty());
        assert!(
            found.left_out[0].contains("5.6.24 and 8.0.33"),
            "{:?}",
            found.left_out
        );
    }
}
