//! SQLite, which runs in the load process: its rows, its workloads, its conflicts.

use std::process::Command;
use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_driver::database::create_file;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_load::order::{Answer, Order};
use dbduel_record::event::Event;
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{Digest, FillWatch, Place, clear, digest, fill};
use dbduel_workloads::{Moment, WORKLOADS, Workload, find, parameters};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::harness::skip_always;
use super::lab::{Lab, assert_verified, check_refused, follows_the_plan, published, signal};
use super::small_disk::SmallDisk;
use crate::suite::on_server::database::Database;
use crate::suite::on_server::server::{MARIADB, Server};
use crate::support::{Load, open_order, slice_order};

struct File {
    _folder: TempDir,
    address: Address,
    credentials: Credentials,
}

impl File {
    fn create(settings: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let address = Address::File {
            path: folder.path().join("data.sqlite").into(),
            settings: Box::new(settings.collect()),
        };
        create_file(&address).unwrap();
        File {
            _folder: folder,
            address,
            credentials: Credentials::default(),
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            dialect: Dialect::Sqlite,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: "main",
            connections: 3,
            deadline: Duration::from_secs(60),
        }
    }
}

fn resolved(workload: &dyn Workload, given: &[(&str, Value)]) -> Parameters {
    let known = |name: &str| workload.parameters().iter().any(|spec| spec.name == name);
    let given = given.iter().filter(|(name, _)| known(name));
    let given = given.map(|(name, value)| ((*name).to_owned(), value.clone()));
    parameters::resolve(workload, &given.collect()).unwrap()
}

/// Equal seeds, equal rows, whatever the product: SQLite has no decimals, no dates and no unsigned numbers.
#[test(on = &[MARIADB])]
fn the_rows_are_those_of_mariadb(server: &Server) {
    let file = File::create(&[("journal_mode", "wal")]);
    let database = Database::create(server, "as_sqlite");
    for (name, given) in [
        (
            "oltp-read-write",
            [("tables", 2.into()), ("table_size", 12_345.into())],
        ),
        (
            "order-entry",
            [("warehouses", 1.into()), ("scale", 0.1.into())],
        ),
    ] {
        let workload = find(name).unwrap();
        let parameters = resolved(workload, &given);
        let filled = |place: &Place<'_>| -> Digest {
            let watch = FillWatch::default();
            fill(workload, &parameters, place, 5, &watch).unwrap();
            let found = digest(workload, &parameters, place, &watch).unwrap();
            clear(workload, &parameters, place, &FillWatch::default()).unwrap();
            found
        };
        let found = filled(&file.place());
        assert!(found.rows > 20_000, "{name}");
        assert_eq!(filled(&database.place(3)), found, "{name}");
    }
}

/// With two clients at once, in both kinds of journal.
#[test]
fn every_workload_that_speaks_sqlite_runs_on_its_own_data_without_an_error() {
    let mut names = Vec::new();
    let mut load = Load::start(2);
    for workload in WORKLOADS
        .iter()
        .filter(|workload| workload.speaks(Dialect::Sqlite))
    {
        for (journal, protocol, auto_inc) in [("wal", "prepared", true), ("delete", "text", false)]
        {
            let file = File::create(&[("journal_mode", journal), ("synchronous", "off")]);
            let given = [
                ("tables", 2.into()),
                ("table_size", 2_000.into()),
                ("protocol", protocol.into()),
                ("auto_inc", auto_inc.into()),
                ("secondary", (!auto_inc).into()),
                ("warehouses", 1.into()),
                ("scale", 0.02.into()),
            ];
            let parameters = resolved(*workload, &given);
            let watch = FillWatch::default();
            fill(*workload, &parameters, &file.place(), 1, &watch).unwrap();
            let mut order = open_order(&file.address, workload.name(), 2);
            order.dialect = Dialect::Sqlite;
            order.workload.parameters.clone_from(&parameters);
            load.order(&Order::Open(order));
            let opened = load.answer();
            let Answer::Opened { session, .. } = opened else {
                panic!("{}: {opened:?}", workload.name());
            };
            assert_eq!(session.variables["journal_mode"], journal);
            let slice = load.slice_until_ok(&slice_order(2, 0.2), 20);
            let done: u64 = slice.classes.iter().map(|class| class.counts.ok).sum();
            assert!(done > 0, "{} {journal}", workload.name());
            assert_eq!(slice.errors, [], "{} {journal}", workload.name());
            load.order(&Order::Close {
                contender: "only".to_owned(),
            });
            load.answer();
            let options = ConnectOptions {
                dialect: Dialect::Sqlite,
                ..ConnectOptions::default()
            };
            let mut connection =
                Connection::connect(&file.address, &file.credentials, &options).unwrap();
            let after = workload.verify(&parameters, &mut connection, Moment::AfterLoad);
            assert!(after.unwrap().holds(), "{} {journal}", workload.name());
        }
        names.push(workload.name());
    }
    assert_eq!(names.len(), 13, "{names:?}");
}

/// A statement holds up its thread, so two clients on one would wait for each other.
#[test]
fn more_clients_than_threads_are_refused() {
    let file = File::create(&[]);
    let mut load = Load::start(1);
    let mut order = open_order(&file.address, "oltp-point-select", 2);
    order.dialect = Dialect::Sqlite;
    load.order(&Order::Open(order));
    let Answer::Refused { why } = load.answer() else {
        panic!("two clients on one thread");
    };
    assert!(why.contains("2 clients need as many load threads"), "{why}");
}

/// A rollback journal against a write-ahead log, which syncs a fraction as often.
const JOURNALS: &str = r#"
budget = "12 s"
seed = 7
about = ["journal_mode"]
[contenders.rollback-journal]
server = "sqlite"
settings = { journal_mode = "delete", synchronous = "full" }
[contenders.write-ahead-log]
like = "rollback-journal"
settings = { journal_mode = "wal" }
[workload]
name = "oltp-update-non-index"
table_size = 2_000
[load]
clients = 2
[schedule]
slice = "100 ms"
guard = "10 ms"
warm_up = "300 ms"
"#;

#[test(lab)]
fn a_contest_of_sqlite_needs_no_server_and_counts_processor_time_once() {
    let lab = Lab::new(JOURNALS);
    let output = lab.run();
    let said = String::from_utf8_lossy(&output.stderr);
    // A busy machine may leave it undecided.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let record = lab.record();
    assert!(follows_the_plan(&record, &record.plan));
    assert!(
        record
            .slices
            .iter()
            .all(|row| row.ok > 0 && row.failed == 0)
    );
    let digests = record.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady { digest, .. } => Some(digest),
        _ => None,
    });
    let digests: Vec<_> = digests.collect();
    assert_eq!((digests.len(), digests[0]), (2, digests[1]));
    let has = |source: &str, metric: &str| {
        let mut rows = record.readings.iter();
        rows.any(|row| row.source == source && row.metric == metric)
    };
    assert!(has("load", "cpu_user_s") && !has("server", "cpu_user_s"));
    assert!(has("server", "connections_count"));
    let one = &record.contenders[1];
    assert!(one.size.unwrap().after_files.unwrap().data.bytes > 100_000);
    assert_eq!(one.variables_before["journal_mode"], "wal");
    let report = published(&lab.record_dir());
    let findings = report["findings"].to_string();
    assert!(findings.contains("contest.in-process"), "{findings}");
    assert_verified(&lab.record_dir());
}

/// The processes that a process has started and that are still there.
fn children(pid: u32) -> Vec<i32> {
    let output = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &pid.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[test(lab)]
fn a_killed_dbduel_and_a_killed_load_process_cost_a_slice_each() {
    let lab = Lab::new(JOURNALS);
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 2);
    let loads = children(run.id());
    assert_eq!(loads.len(), 2, "a load process for each");
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(loads[0]), Signal::SIGKILL);
    let lost = || {
        let events = lab.record().events;
        let mut events = events.iter();
        events.any(|event| matches!(event.what, Event::SliceLost { .. }))
    };
    lab.wait_until(&mut run, "a lost slice", lost);
    signal(&run, Signal::SIGKILL);
    run.wait().unwrap();
    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert!(lab.record().slices.iter().all(|row| row.failed == 0));
    assert_verified(&lab.record_dir());
}

/// The file is where dbduel keeps its data; the record is elsewhere.
#[test(lab)]
fn a_full_disk_below_the_file_ends_the_contest_and_with_room_it_goes_on() {
    let disk = match SmallDisk::mount(2 << 20) {
        Ok(disk) => disk,
        Err(why) => return skip_always(&why),
    };
    // Updates find the room again that their journal left.
    let experiment = JOURNALS.replace("oltp-update-non-index", "oltp-insert");
    let lab = Lab::new(&format!("{experiment}[limits]\nfree_disk = \"1 MiB\"\n"));
    let started = |words: &[&std::ffi::OsStr]| {
        let mut command = disk.command(env!("CARGO_BIN_EXE_dbduel"));
        command.arg("--home").arg(disk.inside()).arg("run");
        command.args(words).current_dir(lab.path());
        command
    };
    let (file, results) = (lab.experiment(), lab.results());
    let words = [file.as_ref(), "--results".as_ref(), results.as_ref()];
    let mut run = lab.spawn_command(started(&words));
    lab.wait_for_slices(&mut run, 3);
    disk.fill();
    let code = lab.exit_code(&mut run, Duration::from_secs(60));
    assert_eq!(code, Some(1), "{}", lab.said());
    let said = lab.said();
    assert!(
        said.contains("MiB left") && said.contains("make room, then resume"),
        "{said}"
    );
    let before = lab.record();

    disk.empty();
    let output = started(&[lab.record_dir().as_ref()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Void where more transactions failed on the full disk than a verdict allows.
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{said}");
    let after = lab.record();
    assert!(after.finished_slices().count() > before.finished_slices().count());
    assert_eq!(after.slices[..before.slices.len()], before.slices);
    assert_verified(&lab.record_dir());
}

#[test]
fn a_setting_that_sqlite_does_not_have_is_refused_at_its_place() {
    check_refused(JOURNALS, "\"wal\"", "\"wall\"", "10:29", "it takes delete");
    check_refused(
        JOURNALS,
        "synchronous =",
        "sync =",
        "7:39",
        "`sync` is not a SQLite setting that can be set here (did you mean `synchronous`?)",
    );
}
