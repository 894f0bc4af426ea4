//! Walks a directory of results: runs, records, and unusable files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dbduel_record::store;

use super::names::{Moment, NO_OWNER, is_repeat, moment, owner_of, server_of, version_of};
use super::server_files::ServerFiles;
use crate::dump::{self, Content};
use crate::includes::Includes;
use crate::{postgresql, text};

/// Depth limit of folders.
const DEPTH_MAX: usize = 6;
/// Limit of files read.
const FILES_MAX: usize = 5000;
/// Limit of bytes read in all.
const BYTES_MAX: u64 = 256 << 20;

/// The files of a server from one run.
#[derive(Debug)]
pub struct Run {
    /// Names of the folders from the directory to it; where files of several servers lie together, also their owner.
    pub place: Vec<String>,
    /// Number of its folders down to the last one with siblings.
    pub depth: usize,
    pub files: ServerFiles,
}

/// Files of one server, or of none, with the names of the folders that lead to them from the given folder.
type Whole = (ServerFiles, Vec<String>);

/// Content of a folder with files of at most one server.
struct OfOne {
    whole: Whole,
    /// Folders of runs in it without a server of their own, each as names from the folder.
    results: Vec<Vec<String>>,
}

/// Unusable files, by reason.
#[derive(Debug, Default)]
pub struct LeftOut {
    reasons: Vec<(String, Vec<String>)>,
}

/// The files in a folder with their content, and its subfolders.
type Listing = (Vec<(PathBuf, Content)>, Vec<PathBuf>);

impl LeftOut {
    /// Adds a place and the reason for leaving it out.
    pub fn add(&mut self, place: &str, reason: String) {
        match self.reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, places)) => places.push(place.to_owned()),
            None => self.reasons.push((reason, vec![place.to_owned()])),
        }
    }

    /// One line per reason.
    #[must_use]
    pub fn lines(self) -> Vec<String> {
        let line = |(reason, places): (String, Vec<String>)| match places.as_slice() {
            [only] => format!("`{only}`: {reason}"),
            [first, others @ ..] => format!("`{first}` and {} more: {reason}", others.len()),
            [] => reason,
        };
        self.reasons.into_iter().map(line).collect()
    }
}

/// Content of a directory.
#[derive(Debug, Default)]
pub struct Reading {
    /// The runs, in the order of their folders.
    pub runs: Vec<Run>,
    /// Directories of records.
    pub records: Vec<PathBuf>,
    /// Unusable files.
    pub left_out: LeftOut,
    /// Unreadable files, and why.
    pub refused: Vec<String>,
    files_read: usize,
    bytes_read: u64,
}

impl Reading {
    /// Reads a directory recursively, in the order of the names; does not follow symbolic links.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn of(directory: &Path) -> Result<Self> {
        let mut reading = Reading::default();
        let of_one = reading.folder(directory, &[])?;
        if let Some((files, place)) = of_one
            .map(|one| one.whole)
            .filter(|(files, _)| files.shows_a_server())
        {
            reading.runs.push(Run {
                place,
                depth: 0,
                files,
            });
        }
        let hint = folder_hint(directory);
        for run in &mut reading.runs {
            run.files.hint(hint);
        }
        Ok(reading)
    }

    /// Reads a folder. Returns its files when they belong to at most one server; otherwise keeps them as runs.
    fn folder(&mut self, path: &Path, place: &[String]) -> Result<Option<OfOne>> {
        if path.join(store::PLAN).is_file() {
            self.records.push(path.to_owned());
            return Ok(None);
        }
        let known_runs = self.runs.len();
        let (files, mut folders) = without_included(path, self.list(path)?);
        // Below a data directory of PostgreSQL lie its tables.
        if path.join(postgresql::VERSION).is_file() {
            folders.clear();
        }
        let mut servers: Vec<(String, Whole)> = Vec::new();
        let (own, mut beside) = by_owner(files);
        let own = self.of_one_run(own);
        let mut has_runs = false;
        let mut results = Vec::new();
        for folder in folders.into_iter().filter(|_| place.len() < DEPTH_MAX) {
            let name = name_of(&folder);
            let below = [place, std::slice::from_ref(&name)].concat();
            match self.folder(&folder, &below) {
                Ok(None) => has_runs = true,
                Ok(Some(OfOne {
                    whole: (mut files, below),
                    results: within,
                })) => {
                    files.hint(folder_hint(&folder));
                    if files.shows_a_server() {
                        servers.push((name, (files, below)));
                    } else {
                        beside.merge(files);
                        results.extend(below_it(name, within));
                    }
                }
                Err(error) => self.refused.push(format!("{error:#}")),
            }
        }
        // Folders of moments show one server together, and so do files beside a single folder.
        let are_moments = servers
            .iter()
            .all(|(name, _)| moment(name) != Moment::Unknown);
        let is_one = match (servers.len(), own.len()) {
            (0 | 1, 0..=1) => true,
            (_, 0..=1) => are_moments,
            _ => false,
        };
        // One file for all of a server's runs, which lie in folders beside it.
        if let ([(_, only)], [], [_, _, ..]) =
            (own.as_slice(), servers.as_slice(), results.as_slice())
            && !has_runs
            && !place.is_empty()
        {
            self.runs.extend(results.into_iter().map(|run| Run {
                place: [place, run.as_slice()].concat(),
                depth: place.len(),
                files: only.clone(),
            }));
            self.complete(known_runs, &beside, path, place);
            return Ok(None);
        }
        if is_one && !has_runs {
            let below = match (servers.as_slice(), own.as_slice()) {
                ([(name, (_, below))], []) if moment(name) == Moment::Unknown => {
                    [std::slice::from_ref(name), below.as_slice()].concat()
                }
                _ => Vec::new(),
            };
            let mut whole = ServerFiles::default();
            let of_folders = servers.into_iter().map(|(_, (files, _))| files);
            let of_files = own.into_iter().map(|(_, files)| files);
            of_folders
                .chain(of_files)
                .for_each(|files| whole.merge(files));
            whole.merge(beside);
            return Ok(Some(OfOne {
                whole: (whole, below),
                results,
            }));
        }
        let are_repeats = !servers.is_empty() && servers.iter().all(|(name, _)| is_repeat(name));
        let (shared, own) = match own.as_slice() {
            // What lies beside the folders of repeats is of the same server; so is an option file beside folders of its runs.
            [(_, only)] if are_repeats || !servers.is_empty() && only.is_option_file() => {
                (Some(only.clone()), Vec::new())
            }
            _ => (None, own),
        };
        let own = own
            .into_iter()
            .map(|(name, files)| (name, (files, Vec::new())));
        for (name, (mut files, below)) in servers.into_iter().chain(own) {
            if let Some(shared) = &shared {
                files.merge_farther(shared.clone());
            }
            let depth = place.len() + 1;
            let place = [place, &[name], &below].concat();
            self.runs.push(Run {
                place,
                depth,
                files,
            });
        }
        self.complete(known_runs, &beside, path, place);
        Ok(None)
    }

    /// Joins variables that no name ties to a run with the option file beside them. Beside several option files they
    /// belong to one of those runs, and nothing says to which.
    fn of_one_run(&mut self, own: Vec<(String, ServerFiles)>) -> Vec<(String, ServerFiles)> {
        let is_unnamed =
            |(name, files): &(String, ServerFiles)| name == NO_OWNER && files.is_variables();
        let (mut unnamed, mut named): (Vec<_>, Vec<_>) = own.into_iter().partition(is_unnamed);
        let are_option_files = named.iter().all(|(_, files)| files.is_option_file());
        match (unnamed.as_slice(), named.as_mut_slice()) {
            ([_], [(_, only)]) if are_option_files => {
                let variables = unnamed.remove(0).1;
                only.merge(variables);
            }
            ([(_, variables)], [_, _, ..]) if are_option_files => {
                let why = "variables of one of several runs; move them to the folder of their run";
                for place in variables.places() {
                    self.left_out.add(&place, why.to_owned());
                }
                unnamed.clear();
            }
            _ => {}
        }
        unnamed.append(&mut named);
        unnamed
    }

    /// Adds the files beside the runs of a folder to these runs.
    fn complete(&mut self, known_runs: usize, beside: &ServerFiles, path: &Path, place: &[String]) {
        for run in &mut self.runs[known_runs..] {
            run.files.merge(beside.clone());
            if !place.is_empty() {
                run.files.hint(folder_hint(path));
            }
        }
    }

    /// The files and the subfolders of a folder, each in the order of their names.
    fn list(&mut self, path: &Path) -> Result<Listing> {
        let listed = || format!("could not list `{}`", path.display());
        let entries: std::io::Result<Vec<fs::DirEntry>> = fs::read_dir(path)
            .with_context(listed)?
            .take(FILES_MAX)
            .collect();
        let mut entries = entries.with_context(listed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for entry in entries {
            let kind = entry.file_type().with_context(listed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.extend(self.file(entry.path()));
            }
        }
        Ok((files, folders))
    }

    fn file(&mut self, path: PathBuf) -> Option<(PathBuf, Content)> {
        let bytes = path
            .metadata()
            .map_or(0, |facts| facts.len().min(text::FILE_BYTES_MAX));
        if self.files_read >= FILES_MAX || self.bytes_read + bytes > BYTES_MAX {
            self.refused.push(format!(
                "`{}` was not read: the directory has more than {FILES_MAX} files or {} MiB",
                path.display(),
                BYTES_MAX >> 20
            ));
            return None;
        }
        self.files_read += 1;
        self.bytes_read += bytes;
        match dump::read(&path) {
            // A page that shows options to its readers configures no server.
            Ok(Content::OptionFile) if path.extension().is_some_and(|ending| ending == "md") => {
                None
            }
            Ok(content) => Some((path, content)),
            Err(error) => {
                self.refused.push(error.to_string());
                None
            }
        }
    }
}

/// The folders of runs in a folder without a server, or the folder itself where its name has a number, as `run2` and
/// `8-threads`.
fn below_it(name: String, within: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if within.is_empty() {
        let is_numbered = name.contains(|letter: char| letter.is_ascii_digit());
        return is_numbered.then(|| vec![name]).into_iter().collect();
    }
    let led = within.into_iter();
    led.map(|rest| [std::slice::from_ref(&name), &rest].concat())
        .collect()
}

fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn folder_hint(folder: &Path) -> super::server_files::Hint {
    let name = name_of(folder);
    match server_of(&name) {
        Some(named) => (Some(named.product), named.version),
        None => (None, version_of(&name)),
    }
}

/// A listing without files that its option files include, which are no runs.
fn without_included(path: &Path, (files, folders): Listing) -> Listing {
    let includes = Includes::from([path]);
    let mut included: Vec<PathBuf> = Vec::new();
    for (file, content) in &files {
        if matches!(content, Content::OptionFile) {
            let targets = included_by(file).into_iter();
            let found = targets.filter_map(|target| includes.find(file, Path::new(&target)));
            included.extend(found.filter_map(|found| fs::canonicalize(found).ok()));
        }
    }
    let is_own = |path: &Path| fs::canonicalize(path).is_ok_and(|path| !included.contains(&path));
    (
        files.into_iter().filter(|(file, _)| is_own(file)).collect(),
        folders
            .into_iter()
            .filter(|folder| is_own(folder))
            .collect(),
    )
}

/// Paths in the include directives of an option file.
fn included_by(file: &Path) -> Vec<String> {
    let target = |line: &String| {
        let line = line.trim();
        let (word, target) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
        let is_directive = word.starts_with("!include") || word.starts_with("include");
        let target = target.trim_matches(|c: char| c.is_whitespace() || matches!(c, '=' | '\''));
        is_directive.then(|| target.to_owned())
    };
    let lines = text::lines(file).unwrap_or_default();
    lines.iter().filter_map(target).collect()
}

/// Groups the files of a folder by owner: named servers, and files without an owner.
fn by_owner(files: Vec<(PathBuf, Content)>) -> (Vec<(String, ServerFiles)>, ServerFiles) {
    let mut owners: BTreeMap<String, ServerFiles> = BTreeMap::new();
    for (path, content) in files {
        owners
            .entry(owner_of(&path))
            .or_default()
            .add(path, content);
    }
    let (servers, others): (Vec<_>, Vec<_>) = owners
        .into_iter()
        .partition(|(_, files)| files.shows_a_server());
    let mut rest = ServerFiles::default();
    others.into_iter().for_each(|(_, files)| rest.merge(files));
    let named = |(name, mut files): (String, ServerFiles)| {
        if let Some(server) = server_of(&name) {
            files.hint((Some(server.product), server.version));
        }
        (name, files)
    };
    (servers.into_iter().map(named).collect(), rest)
}
