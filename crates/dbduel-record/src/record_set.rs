//! A record set: a directory with a plan of its own and a record for each of its contests, as a sweep or a bisection.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::bisect::BISECT;
use crate::foreign::{self, DOCUMENT_BYTES_MAX};
use crate::plan::FormatVersion;
use crate::store::RecordError;
use crate::sweep::SWEEP;

/// The command that resumes a contest, as one types it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeCommand {
    verb: &'static str,
    dir: PathBuf,
}

impl ResumeCommand {
    /// The command for the contest with this record: of a cell or a step that of its set, which continues with the other ones.
    #[must_use]
    pub fn of(record: &Path) -> Self {
        if let Some(dir) = bisection_of(record) {
            return Self {
                verb: "bisect",
                dir,
            };
        }
        let dir = set_of(record, SWEEP).unwrap_or_else(|| record.to_owned());
        Self { verb: "run", dir }
    }

    /// The command with its directory described, for texts that are kept: `dbduel run` on this directory.
    #[must_use]
    pub fn without_path(&self, record: &Path) -> String {
        let verb = self.verb;
        match self.dir == record {
            true => format!("`dbduel {verb}` on this directory"),
            false => format!(
                "`dbduel {verb}` on the directory above `{}`",
                match verb {
                    "bisect" => crate::bisect::STEPS,
                    _ => crate::sweep::CELLS,
                }
            ),
        }
    }
}

impl fmt::Display for ResumeCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dbduel {} {}", self.verb, self.dir.display())
    }
}

/// The bisection of which `record` is a step.
#[must_use]
pub fn bisection_of(record: &Path) -> Option<PathBuf> {
    set_of(record, BISECT)
}

/// The set with a plan of this name to which `record` belongs.
fn set_of(record: &Path, plan_file: &str) -> Option<PathBuf> {
    let dir = match record.ancestors().nth(2) {
        None => std::path::absolute(record)
            .ok()?
            .ancestors()
            .nth(2)?
            .to_owned(),
        Some(here) if here.as_os_str().is_empty() => PathBuf::from("."),
        Some(dir) => dir.to_owned(),
    };
    dir.join(plan_file).is_file().then_some(dir)
}

/// The plan of a record set, in a file of its directory.
pub(crate) trait SetPlan: DeserializeOwned {
    /// Name of the file.
    const FILE: &'static str;

    /// Checks what every user of the plan relies on.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self) -> Result<(), String>;
}

/// The plan of the record set in `dir`.
///
/// # Errors
/// When it cannot be read or parsed, has another format, or fails its check.
pub(crate) fn read_plan<P: SetPlan>(dir: &Path) -> Result<P, RecordError> {
    let path = dir.join(P::FILE);
    let text = foreign::read_text_below(dir, P::FILE, DOCUMENT_BYTES_MAX).map_err(|source| {
        RecordError::File {
            action: "read",
            path: path.clone(),
            source,
        }
    })?;
    let malformed = |why: String| RecordError::Malformed {
        path: path.clone(),
        why,
    };
    let value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let plan: P = of_this_format(value, dir, malformed)?;
    plan.check().map_err(malformed)?;
    Ok(plan)
}

/// A plan from its document, once that is known to have the fields of this version.
///
/// # Errors
/// When it has no format or another one, or other fields.
pub(crate) fn of_this_format<P: DeserializeOwned>(
    document: serde_json::Value,
    dir: &Path,
    malformed: impl Fn(String) -> RecordError,
) -> Result<P, RecordError> {
    let format = document
        .get("format")
        .cloned()
        .ok_or_else(|| malformed("it has no `format`".to_owned()))?;
    let found: FormatVersion =
        serde_json::from_value(format).map_err(|error| malformed(error.to_string()))?;
    if !found.is_readable() {
        return Err(RecordError::OtherFormat {
            path: dir.to_owned(),
            found,
        });
    }
    serde_json::from_value(document).map_err(|error| malformed(error.to_string()))
}

/// Checks that every contest has its own directory directly below that of the contests. Such a directory may be cleared, so
/// it must be no other. `noun` is the name of such a contest in messages.
///
/// # Errors
/// The first name that is not fit.
pub(crate) fn check_names<'n>(
    noun: &str,
    names: impl Iterator<Item = &'n String>,
) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names {
        if !is_own_name(name) {
            return Err(format!(
                "the name of {noun} {name:?} is not a plain file name"
            ));
        }
        if !known.insert(name) {
            return Err(format!("two {noun}s have the name {name:?}"));
        }
    }
    Ok(())
}

/// True for the name of a directory that is not hidden and, joined to another, is directly below it.
fn is_own_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    // Trailing and doubled separators are not part of a component.
    let is_one = matches!(components.next(), Some(Component::Normal(only)) if only == name);
    is_one && components.next().is_none() && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contest_of_a_set_is_resumed_with_its_set() {
        let folder = tempfile::tempdir().unwrap();
        let commands = |record: &Path| {
            let command = ResumeCommand::of(record);
            (command.to_string(), command.without_path(record))
        };
        for (plan_file, verb, contests) in [(BISECT, "bisect", "steps"), (SWEEP, "run", "cells")] {
            let set = folder.path().join(plan_file.replace('.', "-"));
            let record = set.join(contests).join("01");
            std::fs::create_dir_all(&record).unwrap();
            let alone = format!("dbduel run {}", record.display());
            assert_eq!(
                commands(&record),
                (alone, "`dbduel run` on this directory".to_owned())
            );
            std::fs::write(set.join(plan_file), "").unwrap();
            let together = format!("dbduel {verb} {}", set.display());
            let kept = format!("`dbduel {verb}` on the directory above `{contests}`");
            assert_eq!(commands(&record), (together, kept));
        }
    }
}
