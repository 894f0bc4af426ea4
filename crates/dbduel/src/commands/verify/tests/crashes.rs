//! A fault at every single change of a record's files: whatever happens, the record is whole once it was resumed, and no
//! finished slice is another.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dbduel_record::commits::{CommitRange, CommitRow};
use dbduel_record::event::EndReason;
use dbduel_record::facts::Host;
use dbduel_record::files::FileSystem;
use dbduel_record::latency::{Interval, Packed, new_histogram};
use dbduel_record::rows::{ErrorRow, SliceRow, TickRow};
use dbduel_record::statement_classes::{StatementRow, join_counts};
use dbduel_record::store::{STATUS_AFTER, STATUS_BEFORE, SliceResult};
use dbduel_record::{Event, Plan};
use dbduel_testkit::faulty_files::{Fault, FaultyFiles};
use dbduel_testkit::synthetic::Scenario;

use super::*;

/// Slices of the first run, of the one that resumes it, and of the one after the fault.
const RUNS: [Range<u32>; 3] = [0..2, 2..3, 3..4];
/// The slice that is lost.
const LOST: u32 = 1;

fn plan() -> Plan {
    Scenario::duel().plan()
}

fn id(number: u32) -> SliceId {
    SliceId {
        block: 0,
        position: number,
    }
}

/// The rows of a slice, with a line break in one of them.
fn rows(number: u32) -> SliceResult {
    let SliceId { block, position } = id(number);
    let contender = "doublewrite".to_owned();
    let mut histogram = new_histogram();
    histogram.saturating_record(u64::from(number + 1) * 1_000_000);
    SliceResult {
        classes: vec![SliceRow {
            block,
            position,
            epoch: 0,
            contender: contender.clone(),
            clients: 4,
            class: ALL_CLASSES.to_owned(),
            start_ms: u64::from(number),
            guard_s: 0.5,
            measured_s: 2.0,
            drained_s: None,
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
        ticks: (0..3)
            .map(|tick| TickRow {
                block,
                position,
                offset_s: f64::from(tick),
                length_s: 1.0,
                ok: 1,
                failed: 0,
                latency_us_sum: 1000.0,
                latency_us_max: 1000.0,
            })
            .collect(),
        errors: vec![ErrorRow {
            block,
            position,
            contender: contender.clone(),
            code: "1062".to_owned(),
            count: 1,
            example: "Duplicate entry\nfor \"key\"".to_owned(),
        }],
        latencies: vec![Interval {
            block,
            position,
            contender: contender.clone(),
            clients: 4,
            class: ALL_CLASSES.to_owned(),
            start_s: f64::from(number),
            length_s: 2.0,
            histogram: Packed::of(&histogram),
        }],
        statements: vec![StatementRow {
            block,
            position,
            contender,
            statement: "3f9a01c2".to_owned(),
            ok: u64::from(number),
            latencies: join_counts([(131_071, u64::from(number))].into_iter()),
            ..StatementRow::default()
        }],
        ..SliceResult::default()
    }
}

fn commit(number: u32) -> CommitRow {
    let first = u64::from(number) * 1000;
    let range = CommitRange {
        series: "1/1".to_owned(),
        first,
        last: first + 99,
    };
    CommitRow::of(u64::from(number), "doublewrite", range)
}

/// Data that the writer reported as safe.
#[derive(Default)]
struct Safe {
    slices: Vec<SliceId>,
    commits: Vec<CommitRow>,
    is_sealed: bool,
}

/// A run on the record as a contest makes it. What fails ends it, and what then still can be written is.
fn run(
    open: impl FnOnce() -> Result<RecordWriter, RecordError>,
    number: usize,
    safe: &mut Safe,
) -> Result<(), RecordError> {
    let mut writer = open()?;
    let ended = measure(&mut writer, number, safe);
    let reason = match &ended {
        Ok(()) => EndReason::Interrupted,
        Err(_) => EndReason::Failed,
    };
    // As in a contest, the first error is the one that counts.
    let stated = writer.event(9, Event::Ended { reason });
    let sealed = writer.seal(9, "0").map(drop);
    ended.and(stated).and(sealed)?;
    safe.is_sealed = true;
    Ok(())
}

fn measure(writer: &mut RecordWriter, number: usize, safe: &mut Safe) -> Result<(), RecordError> {
    let contender = "doublewrite".to_owned();
    let at_ms = number as u64;
    writer.event(
        at_ms,
        Event::Started {
            pid: 1,
            dbduel: "0".to_owned(),
            epoch: number as u32,
        },
    )?;
    let stint = match number {
        0 => STATUS_BEFORE.to_owned(),
        later => format!("stint-{later}/{STATUS_BEFORE}"),
    };
    writer.contender_file(&contender, &stint, b"Uptime\t1\n")?;
    for slice in RUNS[number].clone() {
        let contender = contender.clone();
        writer.event(
            at_ms,
            Event::SliceStarted {
                slice: id(slice),
                contender,
                quantum: None,
            },
        )?;
        writer.commits(&[commit(slice)])?;
        safe.commits.push(commit(slice));
        if slice == LOST {
            let why = "the server closed the connection".to_owned();
            writer.event(
                at_ms,
                Event::SliceLost {
                    slice: id(slice),
                    why,
                    seconds: 1.0,
                },
            )?;
            continue;
        }
        writer.slice(at_ms, id(slice), &rows(slice))?;
        safe.slices.push(id(slice));
    }
    // Rewritten by every run.
    let uptime = format!("Uptime\t{number}\n");
    writer.contender_file(&contender, STATUS_AFTER, uptime.as_bytes())
}

/// Checks that the record has all safe data, and that its slices are those that were measured.
#[track_caller]
fn check_kept(dir: &Path, safe: &Safe, fault: &str) {
    let record = Record::open(dir).unwrap_or_else(|error| panic!("{fault}: {error:#}"));
    assert_eq!(record.complaints, [], "{fault}");
    let finished: BTreeSet<SliceId> = record.finished_slices().collect();
    let lost = safe.slices.iter().find(|slice| !finished.contains(slice));
    assert_eq!(lost, None, "{fault}");
    let mut expected = SliceResult::default();
    for slice in &finished {
        let rows = rows(slice.position);
        expected.classes.extend(rows.classes);
        expected.ticks.extend(rows.ticks);
        expected.errors.extend(rows.errors);
        expected.latencies.extend(rows.latencies);
        expected.statements.extend(rows.statements);
    }
    assert_eq!(record.slices, expected.classes, "{fault}");
    assert_eq!(record.ticks, expected.ticks, "{fault}");
    assert_eq!(record.errors, expected.errors, "{fault}");
    assert_eq!(record.latencies, expected.latencies, "{fault}");
    assert_eq!(record.statements, expected.statements, "{fault}");
    let missing = safe
        .commits
        .iter()
        .find(|row| !record.commits.contains(row));
    assert_eq!(missing, None, "{fault}");
}

/// The result of `dbduel verify`. A process that another test has just forked may hold the record's lock until it
/// executes its program.
#[track_caller]
fn verified(dir: &Path, fault: &str) -> Verification {
    for _ in 0..6000 {
        match examine(dir, 100) {
            Err(error) if matches!(error.downcast_ref(), Some(RecordError::InUse(_))) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            found => return found.unwrap_or_else(|error| panic!("{fault}: {error:#}")),
        }
    }
    panic!("{fault}: the record stays locked");
}

/// Two runs with a fault at one change of either, and a third one without. Returns whether the fault came.
fn simulate(fault: Fault, at: usize) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let dir = &folder.path().join("record");
    let named = format!("{fault:?} at change {at}");
    let faulty = Arc::new(FaultyFiles::new(fault, at));
    let files = || Arc::clone(&faulty) as Arc<dyn FileSystem>;
    let mut safe = Safe::default();
    let host = Host::default();
    let first = || RecordWriter::create_on(files(), dir, b"question", &plan(), &host, 0);
    let mut ended = run(first, 0, &mut safe);
    if ended.is_ok() {
        safe.is_sealed = false;
        ended = run(|| RecordWriter::open_on(files(), dir, 1), 1, &mut safe);
    }
    let is_hit = faulty.changes() > at;
    assert_eq!(is_hit && !safe.is_sealed, ended.is_err(), "{named}");
    if !dir.join("plan.json").is_file() {
        // A run that did not come so far has no record; the next one makes another.
        assert!(safe.slices.is_empty(), "{named}");
        assert!(
            Record::open(dir).is_err_and(|error| error.is_of_place()),
            "{named}"
        );
        return is_hit;
    }
    check_kept(dir, &safe, &named);
    let found = verified(dir, &named);
    assert_ne!(
        found.verdict,
        Wholeness::Changed,
        "{named}: {:#?}",
        found.changed
    );
    assert!(
        !safe.is_sealed || found.verdict == Wholeness::Whole,
        "{named}"
    );

    let whole = Arc::new(FaultyFiles::new(fault, usize::MAX));
    run(|| RecordWriter::open_on(whole, dir, 2), 2, &mut safe).unwrap();
    check_kept(dir, &safe, &named);
    let found = verified(dir, &named);
    assert_eq!(
        (found.verdict, found.torn.len()),
        (Wholeness::Whole, 0),
        "{named}: {:#?} {:#?}",
        found.changed,
        found.open
    );
    is_hit
}

#[test]
fn a_fault_at_any_change_costs_no_finished_slice_and_no_wholeness() {
    for fault in Fault::ALL {
        let hit = (0..).take_while(|&at| simulate(fault, at)).count();
        assert!(hit >= 100, "{fault:?} at {hit} changes");
    }
}

/// Writes the reports of a record with a fault at one change. Returns how many changes there were.
fn write_reports(dir: &Path, at_ms: u64, fault: Fault, at: usize) -> (usize, bool) {
    let faulty = Arc::new(FaultyFiles::new(fault, at));
    let files = Arc::clone(&faulty) as Arc<dyn FileSystem>;
    let writer = RecordWriter::open_on(files, dir, at_ms).unwrap();
    let written = record_reports::derive(&Record::open(dir).unwrap(), &writer, None);
    (faulty.changes(), written.is_ok())
}

#[test]
fn a_fault_while_reports_are_written_anew_is_not_taken_for_an_edit() {
    let directory = sealed();
    let dir = directory.path();
    let (changes, is_written) = write_reports(dir, 1, Fault::Error, usize::MAX);
    assert!(is_written && changes > 30, "{changes}");
    // The first report is being replaced, one in the middle is, and the last was not made durable.
    let faults = [
        (Fault::KillTorn, 2),
        (Fault::FullTorn, changes / 2),
        (Fault::PowerLoss, changes - 1),
    ];
    for (at_ms, (fault, at)) in (1 << 41..).zip(faults) {
        let named = format!("{fault:?} at change {at}");
        let mut writer = resumed(dir, at_ms);
        let reason = EndReason::Interrupted;
        writer.event(at_ms, Event::Ended { reason }).unwrap();
        writer.seal(at_ms, "0").unwrap();
        drop(writer);
        assert!(!write_reports(dir, at_ms, fault, at).1, "{named}");
        let found = verified(dir, &named);
        assert_eq!(
            found.verdict,
            Wholeness::Open,
            "{named}: {:#?}",
            found.changed
        );
        record_reports::write(dir, None).unwrap();
        let found = verified(dir, &named);
        assert_eq!(
            found.verdict,
            Wholeness::Whole,
            "{named}: {:#?}",
            found.open
        );
    }
}
