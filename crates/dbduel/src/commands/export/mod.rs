//! `dbduel export`: measurements and verdicts of a record as tables for other programs.
//!
//! ```text
//! verdicts   one row per comparison      measures   one row per figure of a contender
//! blocks     work and time per block     costs      one row per resource
//! slices     one row per slice, its readings as columns
//! ticks      pieces of slices            seconds    what samplers read second by second
//! of a suite:
//! suite      one row per cell, against the baseline and the contender before
//! groups     one row per group of workloads and two contenders
//! of captured statements:
//! statements        one row per class and contender
//! statement_slices  one row per class and slice
//!
//! csv        NAME.csv of all but ticks, seconds and statement_slices, which the record has as CSV already
//! sqlite     record.sqlite with all      parquet    NAME.parquet of all
//! always     report.json: everything concluded; report.schema.json: what its fields mean
//! ```

#[cfg(feature = "parquet")]
mod parquet;
mod sqlite;
mod statements;
mod suite;
mod table;
mod tables;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use dbduel_judge as judge;
use dbduel_record::Record;
use dbduel_report as report;
use dbduel_server::create_folder;

use super::bisect;
#[cfg(not(feature = "parquet"))]
use super::features::BuiltWithout;
use super::record_set::SetPlan;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel export`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a record, a sweep or a bisection.
    pub record: PathBuf,
    /// Directory for the files; created if missing. Existing files are not overwritten. Each begun cell of a sweep or step of a
    /// bisection gets a directory in it.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Formats, separated by commas.
    #[arg(
        long = "format",
        value_enum,
        value_delimiter = ',',
        default_value = "csv",
        value_name = "FORMAT"
    )]
    pub formats: Vec<ExportFormat>,
}

/// File format of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One text file per table.
    Csv,
    /// One database with all tables and the series within slices.
    Sqlite,
    /// One file per table and per series within slices.
    Parquet,
}

/// Tables that the record itself holds as CSV.
const KEPT_AS_CSV: [&str; 3] = ["ticks", "seconds", "statement_slices"];

/// Writes the files.
///
/// # Errors
/// When the record cannot be read, or a file exists already or cannot be written.
pub fn export(arguments: &Arguments) -> Result<Exit> {
    let dir = &arguments.record;
    let Some(set) = SetPlan::at(dir)? else {
        let files = files_of(dir, &arguments.formats, &arguments.output)?;
        write_all(&files)?;
        return Ok(Exit::Done);
    };
    let contests = set.begun(dir)?;
    let output = |name: &str| arguments.output.join(name);
    for (name, _) in &contests {
        refuse_existing(&output(name))?;
    }
    for (name, record) in &contests {
        files_of(record, &arguments.formats, &output(name))
            .and_then(|files| write_all(&files))
            .with_context(|| format!("cannot export the {} `{name}`", set.noun()))?;
    }
    if let SetPlan::Bisection(plan) = &set {
        let document = bisect::document(dir, plan)?;
        write_all(&[
            (output("report.json"), document.into_bytes()),
            (
                output("bisect.schema.json"),
                report::bisect::SCHEMA.as_bytes().to_vec(),
            ),
        ])?;
    }
    Ok(Exit::Done)
}

/// The exported files of a record, each with its place in `output`.
fn files_of(
    record: &Path,
    formats: &[ExportFormat],
    output: &Path,
) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let record = Record::open(record)?;
    let (summary, findings) = judge::summarise(&record);
    let json = report::format("json").context("this format is not built in")?;
    let options = report::Options {
        width: 80,
        colour: false,
    };
    let mut tables = vec![
        tables::verdicts(&summary),
        tables::blocks(&summary),
        tables::measures(&summary),
        tables::costs(&summary),
        tables::slices(&record),
        tables::ticks(&record),
        tables::seconds(&record),
    ];
    if let Some(suite) = &summary.suite {
        tables.push(suite::cells(&summary));
        tables.push(suite::groups(suite));
    }
    if !summary.statement_classes.is_empty() {
        tables.push(statements::classes(&summary));
        tables.push(statements::slices(&record));
    }
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let place = |name: &str| output.join(name);
    for format in formats {
        match format {
            ExportFormat::Csv => {
                let wanted = tables.iter().filter(|one| !KEPT_AS_CSV.contains(&one.name));
                for table in wanted {
                    files.push((place(&format!("{}.csv", table.name)), text::bytes(table)?));
                }
            }
            ExportFormat::Sqlite => {
                files.push((place("record.sqlite"), sqlite::bytes(&tables)?));
            }
            #[cfg(feature = "parquet")]
            ExportFormat::Parquet => {
                for table in &tables {
                    let name = format!("{}.parquet", table.name);
                    files.push((place(&name), parquet::bytes(table)?));
                }
            }
            #[cfg(not(feature = "parquet"))]
            ExportFormat::Parquet => {
                return Err(BuiltWithout::new("`--format parquet`", "parquet").into());
            }
        }
    }
    let text = json.render(&summary, &findings, &options).text;
    let schema = report::json::SCHEMA;
    files.push((place("report.json"), text.into_bytes()));
    files.push((place("report.schema.json"), schema.as_bytes().to_vec()));
    Ok(files)
}

/// Refuses a place that is taken, also by a link that leads nowhere.
fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => bail!(
            "`{}` exists already; name another directory with `--output`",
            path.display()
        ),
        Err(_) => Ok(()),
    }
}

/// Writes all of the files, or none when one of them exists already.
fn write_all(files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    for (path, _) in files {
        refuse_existing(path)?;
    }
    for (path, bytes) in files {
        if let Some(folder) = path.parent() {
            create_folder(folder)
                .with_context(|| format!("could not create `{}`", folder.display()))?;
        }
        fs::write(path, bytes).with_context(|| format!("could not write `{}`", path.display()))?;
        console::print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};

    use super::tables::FIGURES;
    use super::*;
    use dbduel_testkit::synthetic::captured::captured_record;
    use dbduel_testkit::synthetic::{Observation, Scenario, write_bisection, write_sweep};

    fn exported(scenario: &Scenario) -> (tempfile::TempDir, Arguments) {
        let dir = tempfile::tempdir().unwrap();
        let arguments = Arguments {
            record: dir.path().join("record"),
            output: dir.path().join("tables"),
            formats: vec![
                ExportFormat::Csv,
                ExportFormat::Sqlite,
                ExportFormat::Parquet,
            ],
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
        let version = judge::summary::SCHEMA_VERSION;
        assert!(json.contains(&format!("\"schema_version\": {version}")));
        let schema = fs::read_to_string(at("report.schema.json")).unwrap();
        assert_eq!(schema, report::json::SCHEMA);
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

    #[test]
    fn the_database_holds_what_the_text_files_hold() {
        let scenario = Scenario {
            blocks: 2,
            ..Scenario::duel().observed(Observation::doublewrite())
        };
        let (_dir, arguments) = exported(&scenario);
        let database = rusqlite::Connection::open(arguments.output.join("record.sqlite")).unwrap();
        for name in ["verdicts", "blocks", "measures", "costs", "slices"] {
            let rows = read(&arguments.output.join(format!("{name}.csv")));
            let count: i64 = database
                .query_row(&format!("SELECT count(*) FROM {name}"), [], |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(usize::try_from(count).unwrap(), rows.len(), "{name}");
        }
        let slowest = "SELECT contender FROM verdicts WHERE ratio > 1 ORDER BY ratio DESC LIMIT 1";
        let first: String = database.query_row(slowest, [], |row| row.get(0)).unwrap();
        assert_eq!(first, "no-doublewrite");
        let ticks: i64 = database
            .query_row("SELECT sum(ok) FROM ticks", [], |row| row.get(0))
            .unwrap();
        let slices: i64 = database
            .query_row("SELECT sum(ok) FROM slices", [], |row| row.get(0))
            .unwrap();
        assert_eq!(ticks, slices);
        for name in [
            "verdicts", "blocks", "measures", "costs", "slices", "ticks", "seconds",
        ] {
            let rows: i64 = database
                .query_row(&format!("SELECT count(*) FROM {name}"), [], |row| {
                    row.get(0)
                })
                .unwrap();
            let file = fs::File::open(arguments.output.join(format!("{name}.parquet"))).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            assert_eq!(reader.metadata().file_metadata().num_rows(), rows, "{name}");
        }
    }

    #[test]
    fn each_begun_cell_of_a_sweep_has_its_tables() {
        let dir = tempfile::tempdir().unwrap();
        let plan = write_sweep(dir.path(), &[1_000, 2_000], &[1.0, 1.5]);
        let arguments = Arguments {
            record: dir.path().to_owned(),
            output: dir.path().join("tables"),
            formats: vec![ExportFormat::Csv],
        };
        export(&arguments).unwrap();
        for cell in &plan.cells {
            let rows = read(&arguments.output.join(&cell.name).join("slices.csv"));
            assert!(!rows.is_empty(), "{}", cell.name);
        }
        assert!(export(&arguments).is_err(), "files are not overwritten");
    }

    #[test]
    fn classes_of_captured_statements_are_a_table() {
        let record = captured_record();
        let (summary, _) = judge::summarise(&record);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("statements.csv");
        fs::write(&path, text::bytes(&statements::classes(&summary)).unwrap()).unwrap();
        let mut table = csv::Reader::from_path(&path).unwrap();
        let heads = table.headers().unwrap().clone();
        let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
        let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
        // Five classes of two contenders.
        assert_eq!(rows.len(), 10);
        let slow = rows.iter().find(|row| {
            &row[at("class")] == "b2b2b2b2" && row[at("contender")] != summary.baseline
        });
        let slow = slow.unwrap();
        let figure = |name: &str| slow[at(name)].parse::<f64>().unwrap();
        assert!(
            figure("ratio_low") < 3.0 && 3.0 < figure("ratio_high"),
            "{slow:?}"
        );
        assert_eq!(&slow[at("change")], "higher");
        assert!(
            (figure("latency_us_mean") / 2_400.0 - 1.0).abs() < 0.02,
            "{slow:?}"
        );
        let baseline = rows.iter().find(|row| {
            &row[at("class")] == "d4d4d4d4" && row[at("contender")] == summary.baseline
        });
        let baseline = baseline.unwrap();
        assert_eq!(
            (&baseline[at("ratio")], &baseline[at("errors")]),
            ("", "1062:56")
        );
        let slices = statements::slices(&record);
        assert_eq!(slices.rows.len(), record.statements.len());
    }

    #[test]
    fn each_step_of_a_bisection_has_its_tables_beside_the_report_on_all() {
        let dir = tempfile::tempdir().unwrap();
        write_bisection(dir.path());
        let arguments = Arguments {
            record: dir.path().to_owned(),
            output: dir.path().join("tables"),
            formats: vec![ExportFormat::Csv],
        };
        export(&arguments).unwrap();
        // The third was skipped and has no record.
        for step in ["01", "02", "04", "05"] {
            let rows = read(&arguments.output.join(step).join("slices.csv"));
            assert!(!rows.is_empty(), "{step}");
        }
        assert!(!arguments.output.join("03").exists());
        let text = fs::read_to_string(arguments.output.join("report.json")).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["steps"].as_array().unwrap().len(), 5);
        assert!(arguments.output.join("bisect.schema.json").is_file());
    }

    #[test]
    fn the_ratio_of_a_verdict_follows_from_the_blocks() {
        let scenario = Scenario::duel();
        let (_dir, arguments) = exported(&scenario);
        let database = rusqlite::Connection::open(arguments.output.join("record.sqlite")).unwrap();
        let from_blocks = "SELECT count(*) FROM verdicts JOIN (SELECT load, contender, sum(transactions) / sum(seconds) \
                           / (sum(baseline_transactions) / sum(baseline_seconds)) AS total FROM blocks GROUP BY 1, 2) \
                           USING (load, contender) WHERE abs(total / ratio - 1) < 1e-9";
        let agree: i64 = database
            .query_row(from_blocks, [], |row| row.get(0))
            .unwrap();
        assert_eq!(usize::try_from(agree).unwrap(), scenario.clients.len());
    }

    #[test]
    fn a_file_that_is_there_stops_everything_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let arguments = Arguments {
            record: dir.path().join("record"),
            output: dir.path().join("tables"),
            formats: vec![ExportFormat::Csv, ExportFormat::Sqlite],
        };
        Scenario {
            blocks: 2,
            ..Scenario::duel()
        }
        .write(&arguments.record);
        fs::create_dir(&arguments.output).unwrap();
        fs::write(arguments.output.join("record.sqlite"), "mine").unwrap();
        let error = export(&arguments).unwrap_err().to_string();
        assert!(error.contains("record.sqlite"), "{error}");
        assert_eq!(fs::read_dir(&arguments.output).unwrap().count(), 1);
    }
}
