//! Checks that a server's count of changed rows covers the workload's tables and no others.
//!
//! MariaDB counts the writes of handlers, of any engine, and rows of internal temporary tables apart, in
//! `Handler_tmp_write`. Servers without that counter mix the two, so there InnoDB's own count is read. This leaves
//! out tables of other engines: it is zero, or too low. In older records, which have the mixed count, the number is
//! too high; InnoDB's counters at both ends of the run show it.

use std::collections::BTreeMap;

use dbduel_record::foreign::{DOCUMENT_BYTES_MAX, read};
use dbduel_record::store::contender_dir;

use crate::evidence::Evidence;

/// The metric that this is about.
pub const METRIC: &str = "rows_changed_count";

/// The counter of servers that count the rows of every engine.
const OF_EVERY_ENGINE: &str = "handler_tmp_write";

/// InnoDB's own counters of changed rows.
const OF_INNODB: [&str; 3] = [
    "innodb_rows_inserted",
    "innodb_rows_updated",
    "innodb_rows_deleted",
];

/// The reason why the count does not hold for the contender with this number; `None` when nothing in the record
/// contradicts it.
pub fn why_not_counted(evidence: &Evidence<'_>, contender: usize) -> Option<String> {
    let record = evidence.record;
    let files = record.contenders.get(contender)?;
    if status(&files.status_before, OF_EVERY_ENGINE).is_some() {
        return None;
    }
    let name = &record.plan.contenders.get(contender)?.name;
    let schema = read(
        &contender_dir(&record.dir, name).join("schema.sql"),
        DOCUMENT_BYTES_MAX,
    );
    if let Some(engine) = schema
        .ok()
        .and_then(|text| other_engine(&String::from_utf8_lossy(&text)))
    {
        return Some(format!(
            "`{name}` counts changed rows of InnoDB alone, but has tables of {engine}"
        ));
    }
    let total = |of: &BTreeMap<String, String>| -> Option<f64> {
        OF_INNODB.iter().map(|counter| status(of, counter)).sum()
    };
    let changed = total(&files.status_after)? - total(&files.status_before)?;
    let is_one_stint = files.later_stints.is_empty();
    (is_one_stint && counted(evidence, contender) > changed).then(|| {
        format!("the changed rows counted by `{name}` include rows of internal temporary tables")
    })
}

/// All that was counted in the slices.
fn counted(evidence: &Evidence<'_>, contender: usize) -> f64 {
    let levels = evidence.levels.iter();
    let rows = levels.flat_map(|level| level.slices_of(contender));
    rows.filter_map(|row| evidence.reading(row.slice(), "engine", METRIC))
        .sum()
}

fn status(of: &BTreeMap<String, String>, counter: &str) -> Option<f64> {
    let mut all = of.iter();
    let (_, value) = all.find(|(name, _)| name.eq_ignore_ascii_case(counter))?;
    value.parse().ok()
}

/// An engine other than InnoDB that a table is defined with.
fn other_engine(schema: &str) -> Option<String> {
    schema
        .split("ENGINE=")
        .skip(1)
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        })
        .find(|engine| !engine.eq_ignore_ascii_case("innodb"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_record::Record;
    use std::fs;

    use crate::summarise;
    use crate::summary::Figure;
    use dbduel_record::rows::{ALL_CLASSES, ReadingRow};
    use dbduel_testkit::synthetic::{Observation, Scenario};

    /// A record whose contenders count a changed row per transaction and have tables of these engines.
    fn record(dir: &std::path::Path, engines: [&str; 2], counter: &str) -> Record {
        let mut record = Scenario::duel()
            .observed(Observation::doublewrite())
            .record();
        record.dir = dir.to_owned();
        let counted = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
        let readings: Vec<ReadingRow> = counted
            .map(|row| ReadingRow {
                block: row.block,
                position: row.position,
                contender: row.contender.clone(),
                source: "engine".to_owned(),
                metric: METRIC.to_owned(),
                value: row.ok as f64,
            })
            .collect();
        record.readings.extend(readings);
        let names: Vec<String> = record
            .plan
            .contenders
            .iter()
            .map(|one| one.name.clone())
            .collect();
        for (index, (name, engine)) in names.iter().zip(engines).enumerate() {
            let place = contender_dir(dir, name);
            fs::create_dir_all(&place).unwrap();
            let table = format!(
                "CREATE TABLE `sbtest1` (`id` int) ENGINE={engine} DEFAULT CHARSET=latin1;\n"
            );
            fs::write(place.join("schema.sql"), table).unwrap();
            let status = &mut record.contenders[index].status_before;
            status.insert(counter.to_owned(), "0".to_owned());
        }
        record
    }

    #[track_caller]
    fn check(engines: [&str; 2], counter: &str, measured: [bool; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let (summary, _) = summarise(&record(dir.path(), engines, counter));
        let changed = summary.storage.iter().map(|one| one.rows_changed.is_some());
        assert_eq!(changed.collect::<Vec<_>>(), measured);
        let mut costs = summary.explanations[0].costs.iter();
        let cost = costs.find(|cost| cost.resource == "rows-changed").unwrap();
        let sides = [&cost.baseline, &cost.contender].map(|figure| figure.value().is_some());
        assert_eq!(sides, measured);
        if let Figure::NotMeasured { why } = &cost.contender {
            assert!(
                why.contains("InnoDB alone") && why.contains(engines[1]),
                "{why}"
            );
        }
    }

    #[test]
    fn a_count_beyond_that_of_innodb_holds_other_rows() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = record(dir.path(), ["InnoDB", "InnoDB"], "Innodb_rows_inserted");
        for files in &mut record.contenders {
            for counter in OF_INNODB {
                files
                    .status_before
                    .insert(counter.to_owned(), "7".to_owned());
                files
                    .status_after
                    .insert(counter.to_owned(), "9".to_owned());
            }
            files.status_before.remove("Innodb_rows_inserted");
        }
        let (summary, _) = summarise(&record);
        assert!(summary.storage.iter().all(|one| one.rows_changed.is_none()));
    }

    #[test]
    fn a_count_of_innodb_alone_is_none_for_tables_of_other_engines() {
        check(["InnoDB", "MyISAM"], "Innodb_rows_inserted", [true, false]);
        check(["InnoDB", "innodb"], "Innodb_rows_inserted", [true, true]);
        check(["InnoDB", "ROCKSDB"], "Handler_tmp_write", [true, true]);
    }
}
