//! What an audit reads out of a record, and what it must then say.

use dbduel_audit::disclosure::checklist;
use dbduel_audit::{Defaults, audit};
use dbduel_record::event::{Event, Severity, SliceId};
use dbduel_record::facts::{FileSize, FileSizes, Host, ServerHost};
use dbduel_record::plan::{Arrival, Contender, LoadLevel, Plan, Setting};
use dbduel_record::{Record, RecordWriter};
use dbduel_testkit::synthetic::Scenario;

use super::*;

/// A data directory of 300 MiB, of which 120 are data.
const FILES: FileSizes = FileSizes {
    data: mebibytes(120),
    redo: mebibytes(96),
    undo: mebibytes(32),
    temporary: mebibytes(12),
    logs: mebibytes(0),
    system: mebibytes(40),
};

const fn mebibytes(count: u64) -> FileSize {
    FileSize {
        bytes: count << 20,
        allocated_bytes: count << 20,
    }
}

fn plan() -> Plan {
    let contender = |name: &str, doublewrite: &str| Contender {
        name: name.to_owned(),
        server: "mariadb-10.11.5".to_owned(),
        settings: vec![Setting {
            name: "innodb-doublewrite".to_owned(),
            value: doublewrite.to_owned(),
        }],
        password_file: None,
        host: None,
        tables: Default::default(),
    };
    Plan {
        contenders: vec![contender("on", "1"), contender("off", "0")],
        levels: vec![LoadLevel {
            clients: 8,
            arrival: Arrival::Closed { think_ms: 0.0 },
            cell: None,
        }],
        about: Vec::new(),
        waivers: Default::default(),
        blocks: Vec::new(),
        ..Scenario::duel().plan()
    }
}

/// A record with what a server of each contender showed, measured or not.
fn record(directory: &std::path::Path, is_measured: bool) -> Record {
    let path = directory.join("record");
    let host = Host {
        cpus: Some(2),
        kernel: Some("6.1".to_owned()),
        ..Host::default()
    };
    let mut writer = RecordWriter::create(&path, b"question = 'x'\n", &plan(), &host, 0).unwrap();
    for (name, doublewrite) in [("on", "ON"), ("off", "OFF")] {
        let mut variables = Defaults::of("mariadb-10.11.5").unwrap().variables;
        variables.insert("innodb_doublewrite".to_owned(), doublewrite.to_owned());
        let dump: String = variables
            .iter()
            .map(|(name, value)| format!("{name}\t{}\n", value.replace('\\', "\\\\")))
            .collect();
        writer
            .contender_file(name, "variables.before.tsv", dump.as_bytes())
            .unwrap();
        writer
            .contender_file(
                name,
                "schema.sql",
                b"CREATE TABLE a (b int) ENGINE=InnoDB;\n",
            )
            .unwrap();
        let dataset = Event::DatasetReady {
            contender: name.to_owned(),
            restored: false,
            rows: 10,
            seconds: 1.0,
            digest: "d".to_owned(),
            bytes: 300 << 20,
            allocated_bytes: 300 << 20,
            files: is_measured.then_some(FILES),
            load: None,
        };
        writer.event(0, dataset).unwrap();
    }
    if is_measured {
        writer
            .event(
                0,
                Event::SliceFinished {
                    slice: SliceId {
                        block: 0,
                        position: 0,
                    },
                    lengths: Default::default(),
                },
            )
            .unwrap();
    }
    Record::open(&path).unwrap()
}

#[test]
fn a_record_is_audited_with_what_the_lab_kept() {
    let directory = tempfile::tempdir().unwrap();
    let case = case_of(&record(directory.path(), true), &[], &[]);
    assert_eq!((case.clients, case.stage), (Some(8), Stage::Results));
    assert_eq!(case.contenders[1].asked["innodb_doublewrite"], "0");
    assert_eq!(
        case.contenders[0].data_bytes,
        Some(120 << 20),
        "without redo and system files"
    );
    let audit = audit(&case);
    let found = audit
        .findings
        .iter()
        .find(|finding| finding.rule == "torn_page.protection")
        .unwrap();
    assert_eq!(
        found.severity,
        Severity::Doubt,
        "it is what the experiment is about"
    );
    let mut not_shown = audit
        .findings
        .iter()
        .filter(|finding| finding.rule == "R40");
    let both = not_shown.next().unwrap();
    assert_eq!(both.about.len(), 2, "each side lacks its counters");
    assert!(not_shown.next().is_none());
}

#[test]
fn machines_of_server_hosts_are_compared_from_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let mut record = record(directory.path(), true);
    let host = |name: &str, cpus| ServerHost {
        name: name.to_owned(),
        facts: Host {
            cpus: Some(cpus),
            ..Host::default()
        },
        ..ServerHost::default()
    };
    record.host = Host::of_server_hosts(vec![host("db1", 2), host("db2", 8)]);
    for (contender, name) in record.plan.contenders.iter_mut().zip(["db1", "db2"]) {
        contender.host = Some(name.to_owned());
    }
    let audit = audit(&case_of(&record, &[], &[]));
    let found = audit.findings.iter().find(|finding| finding.rule == "R51");
    let claim = &found.unwrap().claim;
    assert!(
        claim.contains("`on` runs on db1 and `off` on db2"),
        "{claim}"
    );
    assert!(claim.contains("processors: 2 × processor and 8"), "{claim}");
}

#[test]
fn a_record_before_its_first_slice_is_not_blamed_for_results_that_it_has_not() {
    let directory = tempfile::tempdir().unwrap();
    let case = case_of(&record(directory.path(), false), &[], &[]);
    assert_eq!(case.stage, Stage::Configuration);
    assert_eq!(
        case.contenders[0].data_bytes, None,
        "an older record says nothing about its data"
    );
    assert!(
        audit(&case)
            .findings
            .iter()
            .all(|finding| finding.rule != "R40")
    );
}

#[test]
fn the_checklist_says_what_a_record_holds_and_lacks() {
    let directory = tempfile::tempdir().unwrap();
    let items = checklist(&record(directory.path(), true));
    let is_present = |wanted: &str| {
        items
            .iter()
            .find(|item| item.item == wanted)
            .unwrap()
            .present
    };
    assert!(
        is_present("question of the experiment")
            && is_present("kernel")
            && is_present("definitions of the tables")
    );
    assert!(is_present("all effective variables before the run"));
    for missing in [
        "processor model",
        "all effective variables after the run",
        "counters of the server after the run (SHOW GLOBAL STATUS, pg_stat_*)",
        "repeats",
    ] {
        assert!(!is_present(missing), "{missing}");
    }
    let mut sections: Vec<&str> = items.iter().map(|item| item.section.as_str()).collect();
    sections.dedup();
    assert!(sections.len() >= 10, "{sections:?}");
}

/// Adds to the journal that the server came up, worked for a slice in `block`, and so on, and opens anew.
fn with_events(record: &Record, events: Vec<Event>) -> Record {
    let mut writer = RecordWriter::open(&record.dir, 1).unwrap();
    for event in events {
        writer.event(1, event).unwrap();
    }
    Record::open(&record.dir).unwrap()
}

fn ready(contender: &str) -> Event {
    Event::ServerReady {
        contender: contender.to_owned(),
        version: "10.11.5-MariaDB".to_owned(),
        start_s: Some(1.0),
    }
}

fn warmed_up(seconds: f64) -> Event {
    Event::WarmedUp {
        contender: "on".to_owned(),
        seconds,
        steady: true,
        steps_per_s: Vec::new(),
        level: None,
    }
}

fn crash() -> Vec<Event> {
    let slice = SliceId {
        block: 1,
        position: 0,
    };
    let contender = "on".to_owned();
    vec![
        ready("on"),
        warmed_up(100.0),
        Event::SliceStarted {
            slice,
            contender,
            quantum: None,
        },
        Event::ServerRecovered {
            contender: "on".to_owned(),
            seconds: 3.0,
        },
        warmed_up(20.0),
    ]
}

/// What is audited of a record whose server `on` crashed, with these files of counters.
fn after_a_crash(files: &[(&str, &str)]) -> Case {
    let directory = tempfile::tempdir().unwrap();
    let record = record(directory.path(), true);
    let writer = RecordWriter::open(&record.dir, 1).unwrap();
    for (file, text) in files {
        writer.contender_file("on", file, text.as_bytes()).unwrap();
    }
    drop(writer);
    case_of(&with_events(&record, crash()), &[], &[])
}

#[test]
fn counters_are_not_subtracted_across_a_crash() {
    let case = after_a_crash(&[
        ("status.before.tsv", "Uptime\t5\nCom_commit\t1000\n"),
        ("stint-1/status.before.tsv", "Uptime\t1\nCom_commit\t10\n"),
        ("stint-1/status.after.tsv", "Uptime\t31\nCom_commit\t610\n"),
    ]);
    let server = &case.contenders[0];
    assert_eq!(server.delta("com_commit"), Some(600.0));
    assert_eq!((server.stints_lost, server.active_s), (1, Some(20.0)));
    let told = audit(&case);
    let lost = told
        .findings
        .iter()
        .find(|finding| finding.rule == "R45")
        .unwrap();
    assert_eq!(
        (lost.severity, lost.about.as_slice()),
        (Severity::Note, &["on".to_owned()][..])
    );
}

#[test]
fn stints_that_ended_in_order_are_added_up() {
    let case = after_a_crash(&[
        ("status.before.tsv", "Uptime\t5\nCom_commit\t10\n"),
        ("status.after.tsv", "Uptime\t105\nCom_commit\t1010\n"),
        ("stint-1/status.before.tsv", "Uptime\t1\nCom_commit\t10\n"),
        ("stint-1/status.after.tsv", "Uptime\t31\nCom_commit\t610\n"),
    ]);
    let server = &case.contenders[0];
    assert_eq!(server.delta("com_commit"), Some(1600.0));
    assert_eq!((server.stints_lost, server.active_s), (0, Some(120.0)));
}

#[test]
fn a_record_without_stints_does_not_count_across_a_restart() {
    let case = after_a_crash(&[
        ("status.before.tsv", "Uptime\t5\nCom_commit\t10\n"),
        ("status.after.tsv", "Uptime\t105\nCom_commit\t1010\n"),
    ]);
    assert_eq!(case.contenders[0].delta("com_commit"), None);
    assert_eq!(case.contenders[0].after("com_commit"), Some(1010.0));
}
