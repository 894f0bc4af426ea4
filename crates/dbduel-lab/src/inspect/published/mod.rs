//! A published directory of results: files that show servers, found by what is in them, and the records
//! of this program.
//!
//! A run is a folder whose files show a server. Which server it is say its variables, a file with a version, or the
//! names of the folders that it is in. Runs are compared where the rest of their path is the same:
//! `mysql-8.4.8/8-threads` with `mariadb-11.8.2/8-threads`, `tpcc/mysql` with `tpcc/mariadb`. Where no name calls a
//! product, folders side by side are compared. `before` and `after` say when, `run2` how often.

mod contests;
mod names;
mod runs;
mod server_files;

use std::path::Path;

use anyhow::{Result, bail};
use dbduel_audit::ServerEvidence;
use dbduel_audit::finding::at_most;
use dbduel_record::{Record, store};

use super::includes::Includes;
use super::{CaseOf, Gathered, Subject};
use contests::distinct;
use runs::Reading;

/// Names that an error lists.
const NAMES_LISTED: usize = 3;

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Published {
    /// The contests, in the order of their folders.
    pub contests: Vec<Gathered>,
    /// What shows a server or a contest and could not be used, and why; one line for each reason.
    pub left_out: Vec<String>,
    /// Files that are no readable text, and why: charts and archives mostly.
    pub refused: Vec<String>,
}

/// Everything in a directory that can be audited. A record is a contest. Option files include from the directory and from
/// `root`.
///
/// # Errors
/// When the directory cannot be read.
pub fn read(directory: &Path, root: Option<&Path>, case_of: CaseOf) -> Result<Published> {
    let reading = Reading::of(directory)?;
    let mut left_out = reading.left_out;
    let mut contests = Vec::new();
    for path in reading.records {
        let title = path.display().to_string();
        match Record::open(&path) {
            Ok(record) => contests.push(Gathered::of_record(&record, title, case_of)),
            Err(error) => left_out.add(&title, error.to_string()),
        }
    }
    let includes = Includes::from(std::iter::once(directory).chain(root));
    contests.extend(contests::of(
        directory,
        &includes,
        reading.runs,
        &mut left_out,
    ));
    Ok(Published {
        contests,
        left_out: left_out.lines(),
        refused: reading.refused,
    })
}

/// The contender whose files a directory holds, in one run or in several with the same settings.
///
/// # Errors
/// When no file in it shows a server, several do, or which one it is remains unknown.
pub fn contender(directory: &Path, subject: &Subject) -> Result<ServerEvidence> {
    if directory.join(store::PLAN).is_file() {
        bail!(
            "it is a record and holds a contest of its own; audit it by itself, or name the folder of one contender in it"
        );
    }
    let reading = Reading::of(directory)?;
    let said = (subject.product, subject.version);
    let includes = Includes::from(std::iter::once(directory).chain(subject.root.as_deref()));
    let runs = reading.runs.into_iter();
    let found: Result<Vec<ServerEvidence>> = runs
        .map(|run| {
            let files = run.files;
            files.evidence(&subject.name, said, subject.machine, &includes)
        })
        .collect();
    let mut found = distinct(found?);
    match found.len() {
        0 => bail!(
            "it has neither SHOW GLOBAL VARIABLES nor an option file{}",
            besides(&reading.refused)
        ),
        1 => Ok(found.remove(0).evidence),
        _ => {
            let sources = found.into_iter().map(|one| one.evidence.source);
            bail!(
                "it holds several servers, or one with several settings ({}); name the folder of one of them",
                at_most(NAMES_LISTED, sources.collect::<Vec<_>>().into_iter()).join("; ")
            )
        }
    }
}

/// What to add to an error when files were refused: one of them may be the one that is missing.
#[must_use]
pub fn besides(refused: &[String]) -> String {
    match refused.len() {
        0 => String::new(),
        _ => format!(
            "; could not be read: {}",
            at_most(NAMES_LISTED, refused.iter().cloned()).join("; ")
        ),
    }
}

#[cfg(test)]
mod tests;
