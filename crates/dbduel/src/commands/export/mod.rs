//! `dbduel export`: measurements and verdicts of a record as tables for other programs.
//!
//! ```text
//! verdicts   one row per comparison      measures   one row per figure of a contender
//! costs      one row per resource        slices     one row per slice, its readings as columns
//! ticks      pieces of slices            seconds    what samplers read second by second
//! of a suite:
//! suite      one row per cell, against the baseline and the contender before
//! groups     one row per group of workloads and two contenders
//!
//! csv        NAME.csv of all but ticks and seconds, which the record has as CSV already
//! sqlite     record.sqlite with all      parquet    NAME.parquet of all
//! always     report.json: everything concluded; report.schema.json: what its fields mean
//! ```

#[cfg(feature = "parquet")]
mod parquet;
mod sqlite;
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

#[cfg(not(feature = "parquet"))]
use super::features::BuiltWithout;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel export`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a record.
    pub record: PathBuf,
    /// Directory for the files; created if missing. Existing files are not overwritten.
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
const KEPT_AS_CSV: [&str; 2] = ["ticks", "seconds"];

/// Writes the files.
///
/// # Errors
/// When the record cannot be read, or a file exists already or cannot be written.
pub fn export(arguments: &Arguments) -> Result<Exit> {
    let record = Record::open(&arguments.record)?;
    let (summary, findings) = judge::summarise(&record);
    let json = report::format("json").context("this format is not built in")?;
    let options = report::Options {
        width: 80,
        colour: false,
    };
    let mut tables = vec![
        tables::verdicts(&summary),
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
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let place = |name: &str| arguments.output.join(name);
    for format in &arguments.formats {
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
    write_all(&arguments.output, &files)?;
    Ok(Exit::Done)
}

/// Writes all of the files, or none when one of them exists already.
fn write_all(folder: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    for (path, _) in files {
        if path.exists() {
            bail!(
                "`{}` exists already; name another directory with `--output`",
                path.display()
            );
        }
    }
    for (path, bytes) in files {
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
    use dbduel_testkit::synthetic::{Observation, Scenario};

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
        for name in ["verdicts", "measures", "costs", "slices"] {
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
            "verdicts", "measures", "costs", "slices", "ticks", "seconds",
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
