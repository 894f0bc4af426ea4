//! A record survives what happens to it: torn lines, unfinished slices, other versions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "store/manifest.rs"]
mod manifest;

use std::fs;
use std::io::Write as _;

use dbduel_record::event::{EndReason, SliceId};
use dbduel_record::facts::{Build, Host};
use dbduel_record::latency::{Interval, Packed, new_histogram};
use dbduel_record::plan::{
    Arrival, Block, Contender, DecisionRule, Limits, LoadLevel, LoadProcess, Parameters, Schedule,
    TurnChoice, TurnReason, Workload,
};
use dbduel_record::rows::{ALL_CLASSES, ErrorRow, SecondRow, SliceRow, TickRow};
use dbduel_record::statement_classes::{StatementClass, StatementClasses, StatementRow};
use dbduel_record::store::{SliceResult, contender_dir, torn_ends};
use dbduel_record::{Event, FormatVersion, Plan, Record, RecordError, RecordWriter};

fn plan() -> Plan {
    Plan {
        format: FormatVersion::CURRENT,
        dbduel: "0.1.0".to_owned(),
        created: "2026-11-20T00:00:00Z".to_owned(),
        question: "Which?".to_owned(),
        seed: 7,
        dataset_seed: 1,
        contenders: ["old", "new, improved"]
            .map(|name| Contender {
                name: name.to_owned(),
                server: "installed".to_owned(),
                settings: Vec::new(),
                password_file: None,
                host: None,
                tables: Default::default(),
            })
            .into(),
        baseline: 0,
        workload: Workload {
            name: "oltp-point-select".to_owned(),
            parameters: Parameters::new(),
        },
        levels: vec![LoadLevel {
            clients: 4,
            arrival: Arrival::Closed { think_ms: 0.0 },
            cell: None,
        }],
        suite: None,
        design: None,
        variants: None,
        hosts: None,
        load: LoadProcess {
            busy_poll_us: 0,
            threads: 1,
            cores: Vec::new(),
            server_cores: Vec::new(),
            server_io: None,
        },
        schedule: Schedule {
            budget_s: 60.0,
            slice_s: 2.0,
            jitter: 0.3,
            guard_s: 0.5,
            drain_s: 10.0,
            tick_s: 0.2,
            warm_up_cap_s: 5.0,
            warm_up_hold_s: 3.0,
            epochs: None,
            pilot: None,
            mirrored: true,
        },
        decision: DecisionRule {
            confidence: 0.95,
            horizon: 0.02,
            blocks_min: 6,
            blocks_max: 8,
            reserve: 0.2,
            paths: 4999,
        },
        limits: Limits {
            server_start_s: 60.0,
            server_stop_s: 60.0,
            statement_s: 60.0,
            dataset_s: 60.0,
            transaction_retries: 10,
            server_restarts: 5,
            free_disk_bytes_min: 1 << 20,
            prove: None,
        },
        injection: None,
        objective: None,
        search: None,
        about: Vec::new(),
        waivers: Default::default(),
        blocks: vec![Block {
            id: 0,
            level: 0,
            round: 0,
            order: vec![1, 0, 0, 1],
            slice_s: 2.1,
            repeats: 1,
        }],
        turns: Default::default(),
    }
}

fn slice(position: u32) -> SliceResult {
    let mut histogram = new_histogram();
    histogram.saturating_record(1_000_000);
    SliceResult {
        classes: vec![SliceRow {
            block: 0,
            position,
            epoch: 0,
            contender: "new, improved".to_owned(),
            clients: 4,
            class: ALL_CLASSES.to_owned(),
            start_ms: 1_700_000_000_000,
            guard_s: 0.5,
            measured_s: 2.1,
            drained_s: Some(0.1),
            due: 1,
            ok: 1,
            failed: 0,
            skipped: 0,
            unfinished: 0,
            retries: 0,
            statements: 1,
            latency_us_sum: 1000.0,
            latency_us_p50: 1000.0,
            latency_us_p95: 1000.0,
            latency_us_p99: 1000.0,
            latency_us_p999: 1000.0,
            latency_us_max: 1000.0,
        }],
        ticks: vec![TickRow {
            block: 0,
            position,
            offset_s: 0.0,
            length_s: 0.2,
            ok: 1,
            failed: 0,
            latency_us_sum: 1000.0,
            latency_us_max: 1000.0,
        }],
        readings: Vec::new(),
        seconds: vec![SecondRow {
            block: 0,
            position,
            offset_s: 1.0,
            length_s: 1.0,
            source: "server".to_owned(),
            metric: "cpu_user_s".to_owned(),
            value: 0.25,
        }],
        errors: Vec::new(),
        statements: vec![StatementRow {
            block: 0,
            position,
            contender: "new, improved".to_owned(),
            statement: "3f9a01c2".to_owned(),
            ok: 2,
            errors: "1062:7 1213:1".to_owned(),
            latencies: "131071:1 400383:1".to_owned(),
            ..StatementRow::default()
        }],
        latencies: vec![Interval {
            block: 0,
            position,
            contender: "new, improved".to_owned(),
            clients: 4,
            class: ALL_CLASSES.to_owned(),
            start_s: 1_700_000_000.0,
            length_s: 2.1,
            histogram: Packed::of(&histogram),
        }],
    }
}

fn id(position: u32) -> SliceId {
    SliceId { block: 0, position }
}

fn append(path: &std::path::Path, text: &str) {
    fs::OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

#[test]
fn what_was_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(
        dir.path(),
        b"question = \"\"\n",
        &plan(),
        &Host::default(),
        5,
    )
    .unwrap();
    let classes = StatementClasses {
        classes: vec![StatementClass {
            id: "3f9a01c2".to_owned(),
            text: "select a from t".to_owned(),
            captured: 3,
            ..StatementClass::default()
        }],
    };
    writer.statement_classes(&classes).unwrap();
    writer.slice(10, id(0), &slice(0)).unwrap();
    let build = Build {
        product: "MariaDB".to_owned(),
        ..Build::default()
    };
    writer
        .contender_json("new, improved", "build.json", &build)
        .unwrap();
    writer
        .contender_file("new, improved", "variables.before.tsv", b"a\t1\\n2\nb\t\n")
        .unwrap();
    writer
        .event(
            20,
            Event::Ended {
                reason: EndReason::Decided,
            },
        )
        .unwrap();

    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.plan, plan());
    assert_eq!(record.complaints, []);
    assert_eq!(record.slices, slice(0).classes);
    assert_eq!(record.ticks, slice(0).ticks);
    assert_eq!(record.seconds, slice(0).seconds);
    assert_eq!(
        record.latencies[0].histogram,
        slice(0).latencies[0].histogram
    );
    assert_eq!(record.statements, slice(0).statements);
    assert_eq!(record.statement_classes, classes);
    assert_eq!(record.contenders[1].build.as_ref(), Some(&build));
    assert_eq!(record.contenders[1].variables_before["a"], "1\n2");
    assert_eq!(record.events.len(), 2);
}

#[test]
fn a_slice_that_the_journal_does_not_finish_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    writer.slice(10, id(0), &slice(0)).unwrap();
    writer.slice(11, id(1), &slice(1)).unwrap();
    // The journal loses its last line, as after a crash between the tables and the journal.
    let journal = dir.path().join("events.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let first_line = text.lines().next().unwrap();
    fs::write(&journal, format!("{first_line}\n")).unwrap();

    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.slices.len(), 1);
    assert_eq!(record.latencies.len(), 1);
    assert_eq!(record.complaints, []);
}

#[test]
fn torn_last_lines_are_ignored_and_removed_before_the_next_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    writer.slice(10, id(0), &slice(0)).unwrap();
    drop(writer);
    let halves = [
        ("events.jsonl", "{\"at_ms\":11,\"what\":{\"ev"),
        ("slices.csv", "0,1,0,new"),
        ("latency.hlog", "Tag=new/4/all/0.1,17"),
    ];
    for (file, half) in halves {
        append(&dir.path().join(file), half);
    }

    let record = Record::open(dir.path()).unwrap();
    assert_eq!(
        (
            record.events.len(),
            record.slices.len(),
            record.latencies.len()
        ),
        (1, 1, 1)
    );
    assert_eq!(record.complaints, []);
    let ends = || torn_ends(dir.path()).unwrap();
    let torn = halves.map(|(file, half)| (file, half.len() as u64));
    assert!(
        ends()
            .iter()
            .map(|end| (end.file, end.removed_bytes))
            .eq(torn)
    );

    let mut writer = RecordWriter::open(dir.path(), 9).unwrap();
    assert_eq!(ends(), []);
    writer.slice(12, id(1), &slice(1)).unwrap();
    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.complaints, []);
    assert_eq!((record.slices.len(), record.latencies.len()), (2, 2));
    let stated = record.events.iter().filter_map(|event| match &event.what {
        Event::TailRemoved {
            file,
            removed_bytes,
            ..
        } => Some((file.as_str(), *removed_bytes)),
        _ => None,
    });
    assert!(stated.eq(torn));
}

#[test]
fn a_torn_row_that_ends_within_a_quoted_line_break_is_removed_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    let failing = |position| SliceResult {
        errors: vec![ErrorRow {
            block: 0,
            position,
            contender: "old".to_owned(),
            code: "1062".to_owned(),
            count: 1,
            example: "Duplicate entry\nfor key".to_owned(),
        }],
        ..slice(position)
    };
    writer.slice(10, id(0), &failing(0)).unwrap();
    drop(writer);
    append(
        &dir.path().join("errors.csv"),
        "0,1,old,1062,1,\"Duplicate entry\n",
    );
    let mut writer = RecordWriter::open(dir.path(), 9).unwrap();
    writer.slice(12, id(1), &failing(1)).unwrap();
    let record = Record::open(dir.path()).unwrap();
    assert_eq!(record.complaints, []);
    assert_eq!(
        record.errors,
        [failing(0).errors, failing(1).errors].concat()
    );
}

#[test]
fn a_record_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    let again = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5);
    assert!(matches!(again, Err(RecordError::NotEmpty(_))));
}

#[test]
fn a_record_has_one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    assert!(matches!(
        RecordWriter::open(dir.path(), 9),
        Err(RecordError::InUse(_))
    ));
    drop(first);
    RecordWriter::open(dir.path(), 9).unwrap();
}

#[test]
fn a_record_that_is_held_by_many_has_no_writer() {
    let dir = tempfile::tempdir().unwrap();
    drop(RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap());
    let both = [0, 1].map(|_| RecordWriter::hold(dir.path()).unwrap());
    assert!(both.iter().all(|held| held.dir() == dir.path()));
    assert!(matches!(
        RecordWriter::open(dir.path(), 9),
        Err(RecordError::InUse(_))
    ));
    drop(both);
    let writer = RecordWriter::open(dir.path(), 9).unwrap();
    assert!(matches!(
        RecordWriter::hold(dir.path()),
        Err(RecordError::InUse(_))
    ));
    drop(writer);
}

#[test]
fn what_a_killed_writer_left_is_cleared_by_the_next_writer_and_by_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    drop(writer);
    let left = [
        dir.path().join(".report.html.4711.part"),
        contender_dir(dir.path(), "old").join(".size.json.4711.part"),
    ];
    for path in &left {
        fs::write(path, "hal").unwrap();
    }
    Record::open(dir.path()).unwrap();
    RecordWriter::is_free(dir.path()).unwrap();
    assert!(left.iter().all(|path| path.is_file()), "reading removes");
    RecordWriter::open(dir.path(), 9).unwrap();
    assert!(!left.iter().any(|path| path.exists()), "writing leaves");
}

#[test]
fn load_threads_of_a_plan_from_before_there_was_polling_sleep() {
    let mut old = serde_json::to_value(plan()).unwrap();
    let load = old["load"].as_object_mut().unwrap();
    assert!(load.remove("busy_poll_us").is_some());
    let read: Plan = serde_json::from_value(old).unwrap();
    assert_eq!(read, plan());
}

#[test]
fn another_format_is_refused_by_name_and_a_missing_plan_is_no_record() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        Record::open(dir.path()),
        Err(RecordError::NotARecord(_))
    ));

    for major in [2, 99] {
        let other = format!(r#"{{"format":{{"major":{major},"minor":0}}}}"#);
        fs::write(dir.path().join("plan.json"), other).unwrap();
        let error = Record::open(dir.path()).unwrap_err().to_string();
        let says = error.contains(&format!("{major}.0")) && error.contains("3.x");
        assert!(says, "{error}");
    }

    let mut broken = plan();
    broken.blocks[0].order[0] = 9;
    fs::write(
        dir.path().join("plan.json"),
        serde_json::to_vec(&broken).unwrap(),
    )
    .unwrap();
    let error = Record::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("contender 9"), "{error}");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    // A file that accepts no byte stands in for the disk.
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("slices.csv")).unwrap();
    let error = writer.slice(10, id(0), &slice(0)).unwrap_err().to_string();
    assert!(error.contains("slices.csv"), "{error}");
    fs::remove_file(dir.path().join("slices.csv")).unwrap();
    // The journal does not claim the slice.
    assert_eq!(
        Record::open(dir.path()).unwrap().finished_slices().count(),
        0
    );
}

#[test]
fn contenders_have_directories_whatever_their_names() {
    let dir = tempfile::tempdir().unwrap();
    RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    assert!(contender_dir(dir.path(), "new, improved").is_dir());
    assert!(contender_dir(dir.path(), "../../etc").starts_with(dir.path()));
}

#[test]
fn a_record_in_a_relative_directory_has_its_contenders_files_in_it() {
    // Below the working directory, as `results` is: dots would hide a path that is joined twice.
    let here = std::env::current_dir().unwrap();
    let folder = tempfile::tempdir_in(&here).unwrap();
    let dir = folder.path().strip_prefix(&here).unwrap().join("record");
    assert!(dir.is_relative());
    let writer = RecordWriter::create(&dir, b"", &plan(), &Host::default(), 1).unwrap();
    writer.contender_file("old", "facts.txt", b"yes").unwrap();
    let file = contender_dir(&folder.path().join("record"), "old").join("facts.txt");
    assert_eq!(fs::read(file).unwrap(), b"yes");
}

#[test]
fn turns_that_a_pilot_chose_are_part_of_the_plan_once_and_for_their_level() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = RecordWriter::create(dir.path(), b"", &plan(), &Host::default(), 5).unwrap();
    let choice = TurnChoice {
        turn_s: 0.25,
        guard_s: 0.03,
        tick_s: 0.1,
        blocks_max: 2,
        reason: TurnReason::Scatter,
        lengths: Vec::new(),
        seconds: 9.0,
        switch_s: 0.01,
        transient_s: 0.0,
        repeats_min: 1,
    };
    let block = |id: u32, round: u32, repeats: u32| Block {
        id,
        level: 0,
        round,
        order: vec![0, 1, 1, 0],
        slice_s: 0.25,
        repeats,
    };
    let chosen = |level: usize, blocks: Vec<Block>| Event::TurnsChosen {
        level,
        choice: choice.clone(),
        blocks,
    };
    writer
        .event(1, chosen(0, vec![block(1, 1, 1), block(2, 2, 3)]))
        .unwrap();
    // The same level again, and one that does not exist.
    writer.event(2, chosen(0, vec![block(3, 3, 1)])).unwrap();
    writer.event(3, chosen(7, Vec::new())).unwrap();
    let read = Record::open(dir.path()).unwrap();
    assert_eq!(read.plan.blocks.len(), 3);
    assert_eq!(read.plan.turns.len(), 1);
    assert_eq!((read.plan.guard_s(0), read.plan.tick_s(0)), (0.03, 0.1));
    // Of the two that count, one is in the plan and one was drawn; later ones are beyond the budget.
    assert_eq!(read.plan.information(0), 2.0);
    let turns: Vec<(u32, usize)> = read.plan.blocks[2].turns().collect();
    assert_eq!(turns.len(), 12);
    assert_eq!(turns[4], (1, 0));
    // Each of these turns has a guard, also where the contender ran just before.
    let guarded = |position: usize| read.plan.is_guarded(&read.plan.blocks[2], position);
    assert!((0..4).all(guarded));
    assert!(!plan().is_guarded(&plan().blocks[0], 2));
}
