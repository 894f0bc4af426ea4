//! `dbduel export`: what was measured and concluded, as tables that other programs open.
//!
//! ```text
//! verdicts.csv   one row per comparison      measures.csv   one row per figure of a contender
//! costs.csv      one row per resource        slices.csv     one row per slice, its readings as columns
//! report.json    everything concluded            report.schema.json   what its fields mean
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use dbduel_record::Record;
use dbduel_record::event::SliceId;
use dbduel_record::rows::ALL_CLASSES;

use crate::cli;
use crate::console;
use crate::exit::Exit;
use crate::judge::explain::Cost;
use crate::judge::summary::{Figure, Measures};
use crate::judge::{self, Summary};
use crate::report;

/// Writes the files.
///
/// # Errors
/// When there is no record, a file exists already, or one cannot be written.
pub fn export(arguments: &cli::Export) -> Result<Exit> {
    let record = Record::open(&arguments.record)?;
    let (summary, findings) = judge::summarise(&record);
    let json = report::format("json").context("this format is not built in")?;
    let options = report::Options {
        width: 80,
        colour: false,
    };
    let files = [
        ("verdicts.csv", table(&verdicts(&summary))?),
        ("measures.csv", table(&measures(&summary))?),
        ("costs.csv", table(&costs(&summary))?),
        ("slices.csv", table(&slices(&record))?),
        (
            "report.json",
            json.render(&summary, &findings, &options).text.into_bytes(),
        ),
        (
            "report.schema.json",
            report::json::schema_text().into_bytes(),
        ),
    ];
    let folder = &arguments.output;
    fs::create_dir_all(folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    for (name, _) in &files {
        if folder.join(name).exists() {
            bail!(
                "`{}` exists already; name another directory with `--output`",
                folder.join(name).display()
            );
        }
    }
    for (name, bytes) in &files {
        write(&folder.join(name), bytes)?;
    }
    Ok(Exit::Done)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("could not write `{}`", path.display()))?;
    console::print(&format!("{}\n", path.display()))?;
    Ok(())
}

type Row = Vec<String>;

fn table(rows: &[Row]) -> Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    for row in rows {
        table.write_record(row)?;
    }
    Ok(table.into_inner()?)
}

fn heads(names: &[&str]) -> Row {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Value, lower and upper end, confidence; empty where there is none.
fn cells(figure: &Figure) -> [String; 4] {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let interval = figure.interval();
    let confidence = match figure {
        Figure::Estimated { confidence, .. } => Some(*confidence),
        _ => None,
    };
    [
        text(figure.value()),
        text(interval.map(|(low, _)| low)),
        text(
            interval
                .map(|(_, high)| high)
                .filter(|high| high.is_finite()),
        ),
        text(confidence),
    ]
}

fn verdicts(summary: &Summary) -> Vec<Row> {
    let mut rows = vec![heads(&[
        "load",
        "clients",
        "contender",
        "baseline",
        "verdict",
        "ratio",
        "ratio_low",
        "ratio_high",
        "confidence",
        "blocks",
    ])];
    for duel in &summary.duels {
        for one in &duel.comparisons {
            let mut row = vec![
                duel.label.clone(),
                duel.load.clients.to_string(),
                one.contender.clone(),
                summary.baseline.clone(),
                one.verdict.word().to_owned(),
            ];
            row.extend(cells(&one.ratio));
            row.push(duel.blocks_complete.to_string());
            rows.push(row);
        }
    }
    rows
}

/// Takes one figure out of the measures.
type Pick = fn(&Measures) -> &Figure;

const FIGURES: [(&str, Pick); 9] = [
    ("throughput_per_s", |one| &one.throughput_per_s),
    ("latency_us_mean", |one| &one.latency_us_mean),
    ("latency_us_p50", |one| &one.latency_us_p50),
    ("latency_us_p95", |one| &one.latency_us_p95),
    ("latency_us_p99", |one| &one.latency_us_p99),
    ("latency_us_p999", |one| &one.latency_us_p999),
    ("latency_us_max", |one| &one.latency_us_max),
    ("server_cpu_us_per_transaction", |one| {
        &one.server_cpu_us_per_transaction
    }),
    ("client_cpu_us_per_transaction", |one| {
        &one.client_cpu_us_per_transaction
    }),
];

fn measures(summary: &Summary) -> Vec<Row> {
    let mut rows = vec![heads(&[
        "load",
        "clients",
        "contender",
        "figure",
        "value",
        "low",
        "high",
        "confidence",
    ])];
    for duel in &summary.duels {
        for one in &duel.contenders {
            for (name, pick) in FIGURES {
                let mut row = vec![
                    duel.label.clone(),
                    duel.load.clients.to_string(),
                    one.contender.clone(),
                    name.to_owned(),
                ];
                row.extend(cells(pick(one)));
                rows.push(row);
            }
        }
    }
    rows
}

fn costs(summary: &Summary) -> Vec<Row> {
    let mut rows = vec![heads(&[
        "load",
        "contender",
        "baseline",
        "resource",
        "name",
        "unit",
        "moved",
        "baseline_value",
        "baseline_low",
        "baseline_high",
        "baseline_confidence",
        "contender_value",
        "contender_low",
        "contender_high",
        "contender_confidence",
        "ratio",
        "ratio_low",
        "ratio_high",
        "ratio_confidence",
    ])];
    for explanation in &summary.explanations {
        let label = summary
            .duels
            .iter()
            .find(|duel| duel.level == explanation.level)
            .map_or("", |duel| duel.label.as_str());
        for cost in &explanation.costs {
            let mut row = vec![
                label.to_owned(),
                explanation.contender.clone(),
                summary.baseline.clone(),
                cost.resource.clone(),
                cost.name.clone(),
                word(&cost.unit),
                word(&cost.moved),
            ];
            let Cost {
                baseline,
                contender,
                ratio,
                ..
            } = cost;
            row.extend([baseline, contender, ratio].into_iter().flat_map(cells));
            rows.push(row);
        }
    }
    rows
}

/// The name that an enumeration has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn slices(record: &Record) -> Vec<Row> {
    let columns: BTreeSet<(&str, &str)> = record
        .readings
        .iter()
        .map(|row| (row.source.as_str(), row.metric.as_str()))
        .collect();
    let readings: BTreeMap<(SliceId, &str, &str), f64> = record
        .readings
        .iter()
        .map(|row| {
            let slice = SliceId {
                block: row.block,
                position: row.position,
            };
            ((slice, row.source.as_str(), row.metric.as_str()), row.value)
        })
        .collect();
    let mut first = heads(&[
        "block",
        "position",
        "epoch",
        "contender",
        "clients",
        "start_ms",
        "measured_s",
        "ok",
        "failed",
        "retries",
        "latency_us_sum",
        "latency_us_p50",
        "latency_us_p95",
        "latency_us_p99",
        "latency_us_max",
    ]);
    first.extend(
        columns
            .iter()
            .map(|(source, metric)| format!("{source}.{metric}")),
    );
    let mut rows = vec![first];
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        let slice = SliceId {
            block: row.block,
            position: row.position,
        };
        let mut cells = vec![
            row.block.to_string(),
            row.position.to_string(),
            row.epoch.to_string(),
            row.contender.clone(),
            row.clients.to_string(),
            row.start_ms.to_string(),
            row.measured_s.to_string(),
            row.ok.to_string(),
            row.failed.to_string(),
            row.retries.to_string(),
            row.latency_us_sum.to_string(),
            row.latency_us_p50.to_string(),
            row.latency_us_p95.to_string(),
            row.latency_us_p99.to_string(),
            row.latency_us_max.to_string(),
        ];
        cells.extend(columns.iter().map(|(source, metric)| {
            readings
                .get(&(slice, *source, *metric))
                .map_or_else(String::new, f64::to_string)
        }));
        rows.push(cells);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::synthetic::{Observation, Scenario};

    fn exported(scenario: &Scenario) -> (tempfile::TempDir, cli::Export) {
        let dir = tempfile::tempdir().unwrap();
        let arguments = cli::Export {
            record: dir.path().join("record"),
            output: dir.path().join("tables"),
        };
        scenario.write(&arguments.record);
        export(&arguments).unwrap();
        (dir, arguments)
    }

    fn read(path: &Path) -> Vec<csv::StringRecord> {
        let mut table = csv::Reader::from_path(path).unwrap();
        table.records().map(Result::unwrap).collect()
    }

    #[test]
    fn tables_hold_every_comparison_figure_resource_and_slice() {
        let scenario = Scenario {
            blocks: 6,
            ..Scenario::duel().observed(Observation::doublewrite())
        };
        let (_dir, arguments) = exported(&scenario);
        let at = |name: &str| arguments.output.join(name);
        assert_eq!(read(&at("verdicts.csv")).len(), 3);
        assert_eq!(read(&at("measures.csv")).len(), 3 * 2 * FIGURES.len());
        assert_eq!(read(&at("slices.csv")).len(), 6 * 3 * 4);
        let costs = read(&at("costs.csv"));
        let written: Vec<_> = costs
            .iter()
            .filter(|row| &row[3] == "server-written")
            .collect();
        assert_eq!(written.len(), 3);
        assert!(written.iter().all(|row| &row[6] == "less"), "{written:?}");
        let json = fs::read_to_string(at("report.json")).unwrap();
        assert!(json.contains("\"schema_version\": 1"));
        let schema = fs::read_to_string(at("report.schema.json")).unwrap();
        assert_eq!(schema, report::json::schema_text());
        assert!(export(&arguments).is_err(), "files are not overwritten");
    }

    #[test]
    fn names_with_commas_and_quotes_come_back_as_they_were() {
        let mut scenario = Scenario {
            blocks: 2,
            clients: vec![4],
            ..Scenario::duel()
        };
        "a, \"b\"\n<script>".clone_into(&mut scenario.sides[1].name);
        let (_dir, arguments) = exported(&scenario);
        let rows = read(&arguments.output.join("verdicts.csv"));
        assert_eq!(&rows[0][2], "a, \"b\"\n<script>");
    }
}
