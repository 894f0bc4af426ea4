//! A published directory of results: files of servers, recognised by content, and records of this program.
//!
//! A run is a folder with files of a server. The server is identified by its variables, by a file with a version, or by
//! folder names. Runs are compared where the rest of their path is the same: `mysql-8.4.8/8-threads` with
//! `mariadb-11.8.2/8-threads`, `tpcc/mysql` with `tpcc/mariadb`. Where no name contains a product, sibling folders are
//! compared. `before` and `after` mark the time, `run2` a repetition.

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

/// Limit of names in an error.
const NAMES_LISTED: usize = 3;

/// Content of a directory.
#[derive(Debug, Default)]
pub struct Published {
    /// The contests, in the order of their folders.
    pub contests: Vec<Gathered>,
    /// Servers and contests that could not be used, and why; one line per reason.
    pub left_out: Vec<String>,
    /// Unreadable files, and why: mostly charts and archives.
    pub refused: Vec<String>,
}

/// Everything in a directory that can be audited. A record is a contest. Option files include from the directory and
/// from `root`.
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

/// The contender whose files a directory holds, from one run or from several with the same settings.
///
/// # Errors
/// When no file in it belongs to a server, several servers do, or the server is unknown.
pub fn contender(directory: &Path, subject: &Subject) -> Result<ServerEvidence> {
    if directory.join(store::PLAN).is_file() {
        bail!(
            "it is a record with a complete contest; audit it alone, or name the folder of one contender in it"
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
                "it holds several servers, or one with different settings ({}); name the folder of one of them",
                at_most(NAMES_LISTED, sources.collect::<Vec<_>>().into_iter()).join("; ")
            )
        }
    }
}

/// Suffix of an error when files were refused: the missing one may be among them.
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
