//! What a real duel leaves besides its throughput: readings, an explanation, tables, a live page.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use dbduel_record::Record;
use dbduel_record::event::Event;
use dbduel_record::rows::ALL_CLASSES;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::finished;
use super::harness::skip_always;
use super::lab::{Lab, program, published, signal};

/// A contest between two products. Each slice has a whole second, of which some readings are.
pub const TWO_PRODUCTS: &str = r#"
budget = "34 s"
horizon = "25 %"
seed = 7
[contenders.old]
server = "mysql-5.6.24"
settings = { innodb_buffer_pool_size = "32M", innodb_flush_log_at_trx_commit = 2, innodb_log_file_size = "8M", max_allowed_packet = 1_000_000 }
[contenders.new]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M", innodb_flush_log_at_trx_commit = 2, innodb_log_file_size = "8M", table_definition_cache = 10 }
[workload]
name = "oltp-point-select"
tables = 2
table_size = 2_000
[load]
clients = 4
[schedule]
slice = "1100 ms"
guard = "50 ms"
warm_up = "1 s"
"#;

#[test(lab, needs = &["mysql-5.6.24", "mariadb-10.11"])]
fn a_duel_is_observed_explained_exported_and_watched() {
    let lab = finished::contest(TWO_PRODUCTS);
    let record = lab.record();
    every_slice_has_its_readings(&record);
    waits_and_seconds_are_read_where_they_are_kept(&record);
    settings_that_were_not_taken_are_told(&record);
    the_explanation_adds_up(&lab);
    tables_are_exported(&lab, record.slices.len());
    the_page_is_shown_live(&lab);
}

fn every_slice_has_its_readings(record: &Record) {
    let mut slices: BTreeMap<(u32, u32), BTreeMap<String, f64>> = BTreeMap::new();
    for row in &record.readings {
        let readings = slices.entry((row.block, row.position)).or_default();
        let name = format!("{}.{}", row.source, row.metric);
        assert!(
            readings.insert(name, row.value).is_none(),
            "`{}.{}` stands twice in one slice",
            row.source,
            row.metric
        );
    }
    // A sampler that a busy machine gave no time to has no reading of that slice.
    let mut sums = BTreeMap::<(&str, String), f64>::new();
    for row in record.slices.iter().filter(|row| row.class == ALL_CLASSES) {
        for (name, value) in slices
            .remove(&(row.block, row.position))
            .into_iter()
            .flatten()
        {
            assert!(value >= 0.0, "{name} of {}: {value}", row.contender);
            *sums.entry((&row.contender, name)).or_default() += value;
        }
    }
    // Every product says these, each in its own way.
    for contender in ["old", "new"] {
        for name in [
            "server.cpu_user_s",
            "server.run_queue_s",
            "server.voluntary_switches_count",
            "server.device_write_bytes",
            "server.resident_bytes",
            "engine.buffer_pool_requests_count",
            "engine.redo_written_bytes",
            "engine.history_list_count",
            "engine.row_lock_wait_s",
            "load.cpu_user_s",
            "load.run_queue_s",
            "host.machine_busy_s",
            "host.page_cache_bytes",
        ] {
            let sum = sums.get(&(contender, name.to_owned()));
            assert!(sum.is_some(), "no `{name}` of `{contender}`");
        }
        for name in [
            "server.connections_count",
            "server.connections_on_cpu_s",
            "engine.questions_count",
            "observer.cpu_s",
        ] {
            let sum = sums.get(&(contender, name.to_owned()));
            assert!(sum.is_some_and(|sum| *sum > 0.0), "{name} of `{contender}`");
        }
    }
    assert!(!record.seconds.is_empty());
}

/// The performance schema is on in a MySQL 5.6 and off in a MariaDB unless asked for otherwise; only the latter
/// names the threads of its connections. Both say where their last checkpoint is, the old one in its text alone.
fn waits_and_seconds_are_read_where_they_are_kept(record: &Record) {
    let waiting = |contender: &str| {
        let readings = record.readings.iter();
        readings
            .filter(|row| row.source == "waits" && row.contender == contender)
            .count()
    };
    assert!(waiting("old") > 0, "no waits of MySQL 5.6");
    assert_eq!(waiting("new"), 0, "MariaDB has its performance schema off");
    for contender in ["old", "new"] {
        let contender_of: BTreeMap<(u32, u32), &str> = record
            .slices
            .iter()
            .map(|row| ((row.block, row.position), row.contender.as_str()))
            .collect();
        for metric in [
            "pages_flushed_count",
            "checkpoint_age_bytes",
            "checkpoint_advance_bytes",
        ] {
            let mut seconds = record.seconds.iter();
            let is_there = seconds.any(|row| {
                row.source == "engine"
                    && row.metric == metric
                    && contender_of.get(&(row.block, row.position)) == Some(&contender)
            });
            assert!(is_there, "no `{metric}` of `{contender}`");
        }
    }
    let warm_ups = record.events.iter().filter(|event| {
        matches!(&event.what, Event::WarmedUp { steps_per_s, .. } if !steps_per_s.is_empty())
    });
    assert_eq!(warm_ups.count(), 2);
}

/// A size that is rounded to a block is taken, one that is raised to the least is not.
fn settings_that_were_not_taken_are_told(record: &Record) {
    let noticed = record.events.iter().filter_map(|event| match &event.what {
        Event::Noticed { notice } => Some(notice),
        _ => None,
    });
    let told: Vec<&str> = noticed
        .filter(|notice| notice.rule == "server.setting-not-in-effect")
        .map(|notice| notice.claim.as_str())
        .collect();
    assert!(
        matches!(told.as_slice(), [one] if one.starts_with(
            "`new` ignored or changed requested settings: table_definition_cache = 10 became 400"
        )),
        "{told:?}"
    );
}

fn the_explanation_adds_up(lab: &Lab) {
    let json = published(&lab.record_dir());
    let explanation = &json["summary"]["explanations"][0];
    assert_eq!(explanation["contender"], "new");
    assert!(explanation["costs"].as_array().unwrap().len() > 10);
    assert!(!json["sentences"][0].as_array().unwrap().is_empty());
    let findings = json["findings"].as_array().unwrap().iter();
    let mut rules = findings.map(|finding| finding["rule"].as_str().unwrap());
    assert!(rules.any(|rule| rule == "observe.waits-one-sided"));
}

fn export(lab: &Lab, formats: &str) -> std::process::Output {
    program()
        .arg("export")
        .arg(lab.record_dir())
        .arg("--output")
        .arg(lab.path().join(formats))
        .args(["--format", formats])
        .output()
        .unwrap()
}

fn tables_are_exported(lab: &Lab, slices: usize) {
    let folder = lab.path().join("csv,sqlite");
    let output = export(lab, "csv,sqlite");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.join("slices.csv")).unwrap();
    assert_eq!(text.lines().count(), slices + 1);
    assert!(text.starts_with("block,position,"));
    let database = std::fs::read(folder.join("record.sqlite")).unwrap();
    assert!(database.starts_with(b"SQLite format 3"));
    let again = export(lab, "csv,sqlite");
    assert_eq!(again.status.code(), Some(1), "nothing is overwritten");
}

/// Prints the tables whose Parquet file and table of the database differ in names of columns or in values.
const COMPARE_PARQUET: &str = r#"
import pathlib, sqlite3, sys
import pyarrow.parquet
folder = pathlib.Path(sys.argv[1])
database = sqlite3.connect(folder / "record.sqlite")
files = sorted(folder.glob("*.parquet"))
for file in files:
    table = pyarrow.parquet.read_table(file)
    cursor = database.execute(f'SELECT * FROM "{file.stem}"')
    names = [column[0] for column in cursor.description]
    rows = [tuple(row[name] for name in table.column_names) for row in table.to_pylist()]
    if names != table.column_names or rows != cursor.fetchall():
        print(file.stem)
print(len(files), "files")
"#;

#[test(lab, needs = &["mysql-5.6.24", "mariadb-10.11"])]
fn another_program_reads_the_same_values_from_parquet() {
    let python = || std::process::Command::new("python3");
    let has_module = python().args(["-c", "import pyarrow"]).output();
    if !has_module.is_ok_and(|output| output.status.success()) {
        skip_always("python3 has no module pyarrow (pip install pyarrow)");
        return;
    }
    let lab = finished::contest(TWO_PRODUCTS);
    let exported = export(&lab, "parquet,sqlite");
    assert!(exported.status.success(), "{exported:?}");
    let compared = python()
        .args(["-c", COMPARE_PARQUET])
        .arg(lab.path().join("parquet,sqlite"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&compared.stdout);
    assert_eq!(said, "6 files\n", "{compared:?}");
}

#[test(lab, needs = &["mysql-5.6.24", "mariadb-10.11"])]
fn a_running_contest_shows_its_page_and_its_metrics() {
    let lab = Lab::new(TWO_PRODUCTS);
    let mut run = Run(lab
        .run_command()
        .args(["--live", "--metrics-addr", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap());
    let (mut metrics, mut page) = (None, None);
    let mut said = BufReader::new(run.0.stderr.take().unwrap());
    while metrics.is_none() || page.is_none() {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
        if let Some(address) = line.trim().strip_prefix("metrics: ") {
            metrics = Some(address.to_owned());
        }
        if let Some(address) = line.trim().strip_prefix("live report: ") {
            page = Some(address.to_owned());
        }
    }
    // What it says from now on must not fill the pipe.
    let rest = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let (metrics, page) = (metrics.unwrap(), page.unwrap());
    let html = get(&page);
    assert!(html.starts_with("HTTP/1.1 200"), "{html:.300}");
    let until = std::time::Instant::now() + Duration::from_secs(180);
    let text = loop {
        let text = get(&metrics);
        assert!(text.ends_with("# EOF\n"), "{text}");
        if text.contains("\ndbduel_slices_total{") {
            break text;
        }
        assert!(std::time::Instant::now() < until, "no slice yet: {text}");
        std::thread::sleep(Duration::from_millis(200));
    };
    for part in [
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "dbduel_phase{dbduel_phase=\"measuring\"} 1",
        "dbduel_server_cpu_user_seconds_total{contender=",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert_eq!(run.end().code(), Some(130));
    rest.join().unwrap().unwrap();
}

/// A run that is asked to end when the test does, however it does: its servers must not stay.
struct Run(Child);

impl Run {
    fn end(&mut self) -> ExitStatus {
        // It may have ended by itself.
        let _ = kill(
            Pid::from_raw(self.0.id().try_into().unwrap()),
            Signal::SIGINT,
        );
        self.0.wait().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.end();
        }
    }
}

/// The whole answer to a request for `address`.
fn get(address: &str) -> String {
    let (place, path) = address
        .trim_start_matches("http://")
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(place).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {place}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn the_page_is_shown_live(lab: &Lab) {
    let mut child = program()
        .arg("watch")
        .arg(lab.record_dir())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let page = get(address.trim());
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("<svg"),
        "{page:.300}"
    );
    signal(&child, Signal::SIGINT);
    assert!(child.wait().unwrap().success());
}
