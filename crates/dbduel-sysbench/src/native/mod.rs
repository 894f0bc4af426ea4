//! The SQL tests that sysbench ships as scripts, run natively: their names, options and commands.
//!
//! A script that is named by its path is run as a script, also when it is one of these.

mod tables;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_driver::{Tls, TlsMode};
use dbduel_lua::Script;
use dbduel_record::plan::Parameters;
use dbduel_workloads::Workload;
use dbduel_workloads::parameters::{self, ParameterError};

use crate::bridge::bulk_insert::{self, BulkInsert};
use crate::bridge::workload::WorkloadRun;
use serde_json::Value;

use super::parsed_options::{ParsedOptions, Written};
use super::server::Servers;
use super::table::{self, Spec};
use super::{Job, Stop, no_command, run as runs, test_help};

/// Time limit for restoring a lost connection, or for replacing one.
const RECONNECTING: Duration = Duration::from_secs(60);

/// A test.
#[derive(Debug)]
pub struct Native {
    /// Its name, with underscores.
    pub name: &'static str,
    /// The name of the workload; none for bulk_insert.
    workload: Option<&'static str>,
    /// Its options besides those of all tests.
    specs: &'static [Spec],
    /// Its names in version 0.5.
    old_names: &'static [&'static str],
}

const fn oltp(
    name: &'static str,
    workload: &'static str,
    old_names: &'static [&'static str],
) -> Native {
    Native {
        name,
        workload: Some(workload),
        specs: &[],
        old_names,
    }
}

/// The tests.
pub const NATIVES: &[Native] = &[
    oltp("oltp_read_only", "oltp-read-only", &[]),
    oltp(
        "oltp_read_write",
        "oltp-read-write",
        &["oltp", "parallel_prepare"],
    ),
    oltp("oltp_write_only", "oltp-write-only", &[]),
    oltp(
        "oltp_point_select",
        "oltp-point-select",
        &["oltp_simple", "select"],
    ),
    oltp("oltp_update_index", "oltp-update-index", &["update_index"]),
    oltp(
        "oltp_update_non_index",
        "oltp-update-non-index",
        &["update_non_index"],
    ),
    oltp("oltp_insert", "oltp-insert", &["insert"]),
    oltp("oltp_delete", "oltp-delete", &["delete"]),
    Native {
        name: "select_random_points",
        workload: Some("select-random-points"),
        specs: table::RANDOM_POINTS,
        old_names: &[],
    },
    Native {
        name: "select_random_ranges",
        workload: Some("select-random-ranges"),
        specs: table::RANDOM_RANGES,
        old_names: &[],
    },
    Native {
        name: "bulk_insert",
        workload: None,
        specs: &[],
        old_names: &[],
    },
];

impl Native {
    /// Its description, one sentence.
    pub fn about(&self) -> &'static str {
        self.as_workload().map_or_else(|_| "", Workload::about)
    }

    fn as_workload(&self) -> Result<&'static dyn Workload, Stop> {
        match self.workload {
            Some(name) => {
                dbduel_workloads::find(name).map_err(|error| Stop::Fatal(error.to_string()))
            }
            None => Ok(&BulkInsert),
        }
    }

    fn all_specs(&self) -> [&'static [Spec]; 2] {
        [table::OLTP, self.specs]
    }

    fn is_random_select(&self) -> bool {
        !self.specs.is_empty()
    }
}

/// The native test of that name. A path means the script there; where there is none, the native test with the script's
/// name, since existing commands name scripts where another machine had them.
pub fn find(test: &str) -> Option<&'static Native> {
    let named = |name: &str| NATIVES.iter().find(|native| native.name == name);
    if let Some(native) = named(test) {
        return Some(native);
    }
    if Path::new(test).exists() || (test.contains(['/', '.']) && Script::find(test).is_ok()) {
        return None;
    }
    let stem = Path::new(test).file_stem()?.to_str()?;
    named(stem).or_else(|| {
        NATIVES
            .iter()
            .find(|native| native.old_names.contains(&stem))
    })
}

/// Executes the command of the job; returns the exit code.
///
/// # Errors
/// Errors in the options, or a failed run.
pub fn run(native: &'static Native, job: &Job, rest: Vec<Written>) -> Result<u8, Stop> {
    let name = native.name;
    let Some(workload) = native.workload else {
        return bulk_insert(job);
    };
    let Some(command) = job.command.as_deref() else {
        return Err(Stop::Fatal(format!(
            "{name}: Command is required. Supported commands: prepare, prewarm, warmup, run, cleanup, help"
        )));
    };
    let specs = native.all_specs();
    if command == "help" {
        return Ok(test_help(name, &specs, job.general.voice));
    }
    let (rest, instead) = translate(rest, native.is_random_select());
    let given = ParsedOptions::read_all(&specs, rest, job.general.voice)?;
    let workload = instead
        .filter(|_| workload == "oltp-read-write")
        .unwrap_or(workload);
    let servers = Servers::with_driver(&job.given, job.general.voice)?;
    match command {
        "prepare" => tables::prepare(native, job, &given, &servers),
        "prewarm" | "warmup" => tables::warm_up(job, &given, &servers, command),
        "cleanup" => tables::cleanup(native, job, &given, &servers),
        "run" => {
            let workload =
                dbduel_workloads::find(workload).map_err(|error| Stop::Fatal(error.to_string()))?;
            let parameters = parameters_of(workload, job, &given, &servers)?;
            let reconnect_every = given.count("reconnect")?;
            drive(job, servers, workload, parameters, reconnect_every)
        }
        other => Err(no_command(name, other)),
    }
}

/// Options of version 0.5 under their current names, and the workload that they select instead of `oltp`.
fn translate(options: Vec<Written>, is_random: bool) -> (Vec<Written>, Option<&'static str>) {
    let mut workload = None;
    let is_on = |value: &Option<String>| !matches!(value.as_deref(), Some("off" | "false" | "0"));
    let mut translated = Vec::new();
    for mut option in options {
        let name = option.name.as_str();
        let new = match name {
            "oltp_read_only" | "oltp_write_only" => {
                if is_on(&option.value) {
                    let is_read = name == "oltp_read_only";
                    workload = Some(if is_read {
                        "oltp-read-only"
                    } else {
                        "oltp-write-only"
                    });
                }
                continue;
            }
            // MyISAM alone looked at it, and sets no such limit any more.
            "myisam_max_rows" => continue,
            "oltp_tables_count" => "tables".to_owned(),
            "mysql_table_engine" => "mysql_storage_engine".to_owned(),
            "mysql_table_options" => "create_table_options".to_owned(),
            "random_ranges_delta" if is_random => "delta".to_owned(),
            _ => match name.strip_prefix("oltp_") {
                Some(rest) => rest.to_owned(),
                None => name.to_owned(),
            },
        };
        option.name = new;
        translated.push(option);
    }
    (translated, workload)
}

/// The parameters of the workload, complete.
fn parameters_of(
    workload: &dyn Workload,
    job: &Job,
    given: &ParsedOptions,
    servers: &Servers,
) -> Result<Parameters, Stop> {
    let mut all: BTreeMap<&str, Value> = BTreeMap::new();
    for (option, parameter) in [
        ("tables", "tables"),
        ("table-size", "table_size"),
        ("range-size", "range_size"),
        ("point-selects", "point_selects"),
        ("simple-ranges", "simple_ranges"),
        ("sum-ranges", "sum_ranges"),
        ("order-ranges", "order_ranges"),
        ("distinct-ranges", "distinct_ranges"),
        ("index-updates", "index_updates"),
        ("non-index-updates", "non_index_updates"),
        ("delete-inserts", "delete_inserts"),
        ("random-points", "random_points"),
        ("number-of-ranges", "number_of_ranges"),
        ("delta", "delta"),
    ] {
        if given.values().contains_key(&option.replace('-', "_")) {
            all.insert(parameter, given.count(option)?.into());
        }
    }
    for name in [
        "range-selects",
        "skip-trx",
        "auto-inc",
        "secondary",
        "create-secondary",
    ] {
        all.insert(name, given.switch(name).into());
    }
    let general = &job.given;
    all.insert("engine", given.text("mysql-storage-engine").into());
    all.insert(
        "create_table_options",
        given.text("create-table-options").into(),
    );
    all.insert(
        "protocol",
        if servers.is_prepared {
            "prepared"
        } else {
            "text"
        }
        .into(),
    );
    all.insert("rand_type", general.text("rand-type").into());
    all.insert("rand_spec_iter", general.count("rand-spec-iter")?.into());
    all.insert("rand_spec_pct", general.count("rand-spec-pct")?.into());
    all.insert("rand_spec_res", general.count("rand-spec-res")?.into());
    all.insert("rand_pareto_h", general.number("rand-pareto-h").into());
    all.insert(
        "rand_zipfian_exp",
        general.number("rand-zipfian-exp").into(),
    );
    // Each test takes all options and looks at some of them.
    let known = workload.parameters();
    let wanted = all
        .into_iter()
        .map(|(name, value)| (name.replace('-', "_"), value))
        .filter(|(name, _)| known.iter().any(|spec| spec.name == name));
    let refuse = |error: ParameterError| Stop::Fatal(error.to_string());
    let resolved = parameters::resolve(workload, &wanted.collect()).map_err(refuse)?;
    parameters::check_dialect(workload, servers.dialect, &resolved).map_err(refuse)?;
    Ok(resolved)
}

/// The test with one table per client. It has no options of its own, and like its script it accepts any.
fn bulk_insert(job: &Job) -> Result<u8, Stop> {
    let name = "bulk_insert";
    let command = super::command(name, job)?;
    if !matches!(command, "prepare" | "run" | "cleanup") {
        return Err(no_command(name, command));
    }
    let servers = Servers::with_driver(&job.given, job.general.voice)?;
    let count = job.general.threads;
    match command {
        "prepare" => {
            let mut connection = servers.connect(0, &tables::options())?;
            for number in 1..=count {
                job.general
                    .voice
                    .notice(&format!("Creating table 'sbtest{number}'..."));
                connection
                    .execute(&bulk_insert::create_table(number))
                    .map_err(tables::fatal)?;
            }
            Ok(0)
        }
        "cleanup" => tables::drop_tables(job, &servers, u64::from(count)),
        _ => drive(job, servers, &BulkInsert, Parameters::new(), 0),
    }
}

fn drive(
    job: &Job,
    servers: Servers,
    workload: &'static dyn Workload,
    parameters: Parameters,
    reconnect_every: u64,
) -> Result<u8, Stop> {
    let Servers {
        dialect,
        addresses,
        credentials,
        database,
        tls,
        ignored,
        statement_watch,
        is_prepared: _,
        is_dry,
    } = servers;
    let mut run = WorkloadRun {
        dialect,
        workload,
        parameters,
        addresses,
        credentials,
        tls: Arc::new(Tls::new(tls)),
        database,
        clients: job.general.threads,
        ignored,
        reconnect_every,
        reconnecting: RECONNECTING,
        statement_watch,
        seed: job.general.seed,
    };
    // Stands in for the servers until the run is over.
    let mut mock = None;
    if is_dry {
        let path = std::env::temp_dir().join(format!("dbduel-dry-{}.sock", std::process::id()));
        let started = MockServer::start(&path, Role::Null).map_err(|error| {
            Stop::Fatal(format!(
                "cannot start the mock server of a dry run: {error}"
            ))
        })?;
        run.addresses = vec![mock.insert(started).address()];
        run.tls = Arc::new(Tls::new(TlsMode::Off));
    }
    let outcome = runs::workload(&job.general, run, is_dry);
    drop(mock);
    outcome
}

#[cfg(test)]
mod tests {
    use super::super::parsed_options::Words;
    use super::*;

    #[test]
    fn names_of_today_and_of_yesterday_are_found() {
        assert_eq!(
            find("oltp_read_write").map(|native| native.name),
            Some("oltp_read_write")
        );
        assert_eq!(
            find("/nonexistent/oltp.lua").map(|native| native.name),
            Some("oltp_read_write")
        );
        assert_eq!(
            find("/nonexistent/select.lua").map(|native| native.name),
            Some("oltp_point_select")
        );
        assert!(find("/nonexistent/tpcc.lua").is_none());
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("oltp.lua");
        std::fs::write(&own, "").unwrap();
        assert!(
            find(own.to_str().unwrap()).is_none(),
            "a script that is there is run"
        );
    }

    #[test]
    fn options_of_yesterday_are_translated() {
        let words = [
            "--oltp-tables-count=3",
            "--oltp_table_size=500",
            "--mysql-table-engine=myisam",
            "--oltp-read-only=on",
            "--skip-trx=on",
        ];
        let written = Words::sort(&words.map(str::to_owned)).unwrap().options;
        let (options, workload) = translate(written, false);
        let expected = [
            ("tables", "3"),
            ("table_size", "500"),
            ("mysql_storage_engine", "myisam"),
            ("skip_trx", "on"),
        ];
        let translated: Vec<(&str, &str)> = options
            .iter()
            .map(|option| (option.name.as_str(), option.value.as_deref().unwrap()))
            .collect();
        assert_eq!(translated, expected);
        assert_eq!(workload, Some("oltp-read-only"));
    }

    #[test]
    fn every_native_test_has_its_workload() {
        for native in NATIVES {
            assert!(native.as_workload().is_ok(), "{}", native.name);
            assert!(native.about().ends_with('.'), "{}", native.name);
        }
    }
}
