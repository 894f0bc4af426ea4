//! Where a durability log comes from: a record, or a file of its own.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use dbduel_record::Record;
use dbduel_record::commits::{CommitRange, CommitRow, from_csv};
use dbduel_record::foreign;
use dbduel_record::plan::Workload;
use dbduel_record::store::COMMITS;

/// A durability log of one server.
#[derive(Debug)]
pub struct Log {
    /// Commits that the server acknowledged.
    pub ranges: Vec<CommitRange>,
    /// Workload of the clients; only a record has it.
    pub workload: Option<Workload>,
}

impl Log {
    /// Reads a record's log of the contender, or a file.
    ///
    /// # Errors
    /// When there is no log, or none of that contender.
    pub fn read(path: &Path, contender: Option<&str>) -> Result<Self> {
        if path.is_dir() {
            return Self::of_record(&Record::open(path)?, contender);
        }
        let bytes = foreign::read(path, foreign::TABLE_BYTES_MAX)
            .with_context(|| format!("could not read the durability log `{}`", path.display()))?;
        let rows = from_csv(&bytes)
            .with_context(|| format!("`{}` is not a durability log", path.display()))?;
        let is_meant = |row: &&CommitRow| contender.is_none_or(|name| row.contender == name);
        Ok(Log {
            ranges: rows.iter().filter(is_meant).map(CommitRow::range).collect(),
            workload: None,
        })
    }

    fn of_record(record: &Record, contender: Option<&str>) -> Result<Self> {
        let names: Vec<&str> = record
            .plan
            .contenders
            .iter()
            .map(|contender| contender.name.as_str())
            .collect();
        let name = match (contender, names.as_slice()) {
            (Some(name), _) if names.contains(&name) => name,
            (Some(name), _) => bail!(
                "the record has no contender `{name}`; it has `{}`",
                names.join("`, `")
            ),
            (None, [only]) => only,
            (None, _) => bail!(
                "the record has several contenders; choose one with --contender: `{}`",
                names.join("`, `")
            ),
        };
        let ranges = record.commits_of(name);
        if ranges.is_empty() {
            bail!(
                "`{COMMITS}` of the record has no commits of `{name}`; does its workload log \
                 commits?"
            );
        }
        Ok(Log {
            ranges,
            workload: Some(record.plan.workload.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::commits::to_csv;
    use std::fs;

    #[test]
    fn a_file_is_read_for_one_contender_or_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commits.csv");
        let range = |first, last| CommitRange {
            series: "1/1".to_owned(),
            first,
            last,
        };
        let rows = [
            CommitRow::of(1, "a", range(1, 4)),
            CommitRow::of(2, "b", range(5, 9)),
        ];
        fs::write(&path, to_csv(&rows).unwrap()).unwrap();
        assert_eq!(Log::read(&path, None).unwrap().ranges.len(), 2);
        assert_eq!(Log::read(&path, Some("b")).unwrap().ranges, [range(5, 9)]);
        fs::write(&path, "what,ever\n1,2\n").unwrap();
        let error = format!("{:#}", Log::read(&path, None).unwrap_err());
        assert!(error.contains("is not a durability log"), "{error}");
        let absent = Log::read(&dir.path().join("absent"), None).unwrap_err();
        assert!(absent.to_string().contains("could not read"), "{absent}");
    }
}
