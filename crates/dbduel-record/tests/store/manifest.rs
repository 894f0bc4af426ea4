//! Records and their manifests: allowed changes, and detected ones.

use std::fs;
use std::path::Path;

use dbduel_record::event::{EndReason, Event, SliceId};
use dbduel_record::manifest::{self, MANIFEST};
use dbduel_record::store::{
    EVENTS, HOST, STATUS_AFTER, STATUS_BEFORE, SliceResult, stint_dir, stints,
};
use dbduel_record::{Record, RecordWriter};

/// A record of one run, sealed.
fn sealed(dir: &Path) -> RecordWriter {
    let plan = super::plan();
    let mut writer = RecordWriter::create(dir, b"question", &plan, &Default::default(), 1).unwrap();
    writer.event(1, started(0)).unwrap();
    writer
        .contender_file("old", STATUS_BEFORE, b"Uptime\t1\n")
        .unwrap();
    measure(&mut writer, 0);
    writer
        .contender_file("old", STATUS_AFTER, b"Uptime\t9\n")
        .unwrap();
    end(&mut writer);
    writer
}

fn started(epoch: u32) -> Event {
    Event::Started {
        pid: 1,
        dbduel: "0".to_owned(),
        epoch,
    }
}

fn measure(writer: &mut RecordWriter, position: u32) {
    let slice = SliceId { block: 0, position };
    let contender = "old".to_owned();
    writer
        .event(
            2,
            Event::SliceStarted {
                slice,
                contender,
                quantum: None,
            },
        )
        .unwrap();
    writer.slice(3, slice, &SliceResult::default()).unwrap();
}

fn end(writer: &mut RecordWriter) {
    let reason = EndReason::Interrupted;
    writer.event(4, Event::Ended { reason }).unwrap();
    writer.seal(5, "0").unwrap();
}

#[track_caller]
fn check(dir: &Path, expected: &[(&str, &str)]) {
    let found = manifest::check(dir).unwrap();
    let differences: Vec<(&str, &str)> = found
        .differences
        .iter()
        .map(|difference| (difference.file.as_str(), difference.what.as_str()))
        .collect();
    assert_eq!(differences.len(), expected.len(), "{differences:#?}");
    for ((file, what), (wanted_file, wanted)) in differences.iter().zip(expected) {
        assert_eq!(file, wanted_file);
        assert!(what.contains(wanted), "{file} {what}");
    }
}

#[test]
fn a_record_is_whole_after_a_run_and_after_it_was_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut writer = sealed(dir);
    check(dir, &[]);
    // Reports are derived and not part of it.
    writer.replace(Path::new("report.json"), b"{}").unwrap();
    writer.event(6, started(1)).unwrap();
    writer
        .contender_file("old", "stint-1/status.before.tsv", b"Uptime\t1\n")
        .unwrap();
    writer
        .contender_file("old", "variables.after.tsv", b"x\t1\n")
        .unwrap();
    let open = manifest::check(dir).unwrap();
    assert!(open.is_open && open.differences.is_empty(), "{open:?}");
    measure(&mut writer, 1);
    end(&mut writer);
    check(dir, &[]);
    let found = manifest::check(dir).unwrap();
    assert_eq!((found.seals.len(), found.is_open), (2, false));
    assert_eq!(
        found.digest.unwrap(),
        manifest::digest(&fs::read(dir.join(MANIFEST)).unwrap())
    );
}

#[test]
fn an_edited_file_is_named_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    drop(sealed(dir));
    let after = dir.join("contenders/old/status.after.tsv");
    fs::write(&after, "Uptime\t8\n").unwrap();
    check(
        dir,
        &[(
            "contenders/old/status.after.tsv",
            "right length but different content",
        )],
    );
    fs::write(&after, "Uptime\t88\n").unwrap();
    check(
        dir,
        &[(
            "contenders/old/status.after.tsv",
            "has 10 bytes, the manifest says 9",
        )],
    );
    fs::remove_file(&after).unwrap();
    check(dir, &[("contenders/old/status.after.tsv", "is missing")]);
    std::os::unix::fs::symlink("/dev/zero", &after).unwrap();
    check(
        dir,
        &[("contenders/old/status.after.tsv", "is not a plain file")],
    );
    fs::remove_file(&after).unwrap();
    fs::write(&after, "Uptime\t9\n").unwrap();
    fs::write(dir.join("contenders/old/session.tsv"), "autocommit\tON\n").unwrap();
    check(dir, &[("contenders/old/session.tsv", "was added")]);
}

#[test]
fn a_run_that_went_on_must_not_have_changed_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    drop(sealed(dir));
    let journal = fs::read_to_string(dir.join(EVENTS)).unwrap();
    fs::write(
        dir.join(EVENTS),
        journal.replacen("\"at_ms\":2", "\"at_ms\":1", 1),
    )
    .unwrap();
    fs::write(
        dir.join("plan.json"),
        fs::read_to_string(dir.join("plan.json")).unwrap() + " ",
    )
    .unwrap();
    let mut writer = RecordWriter::open(dir, 9).unwrap();
    writer.event(6, started(1)).unwrap();
    end(&mut writer);
    check(
        dir,
        &[
            (EVENTS, "was not only appended to"),
            ("plan.json", "no run may change it"),
        ],
    );
}

#[test]
fn the_machine_may_change_until_something_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let plan = super::plan();
    let mut writer = RecordWriter::create(dir, b"question", &plan, &Default::default(), 1).unwrap();
    writer.event(1, started(0)).unwrap();
    end(&mut writer);
    writer.event(6, started(1)).unwrap();
    writer.replace(Path::new(HOST), b"{\"cpus\": 2}").unwrap();
    measure(&mut writer, 0);
    end(&mut writer);
    check(dir, &[]);
    writer.event(7, started(2)).unwrap();
    writer.replace(Path::new(HOST), b"{\"cpus\": 4}").unwrap();
    end(&mut writer);
    check(dir, &[(HOST, "no run may change it")]);
}

#[test]
fn an_edited_manifest_is_found_by_its_own_lines() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut writer = sealed(dir);
    writer.event(6, started(1)).unwrap();
    end(&mut writer);
    let text = fs::read_to_string(dir.join(MANIFEST)).unwrap();
    let edited = text.replacen("\"dbduel\":\"0\"", "\"dbduel\":\"1\"", 1);
    fs::write(dir.join(MANIFEST), edited).unwrap();
    check(dir, &[(MANIFEST, "line 2 does not follow")]);
    fs::write(dir.join(MANIFEST), "nothing\n").unwrap();
    check(
        dir,
        &[(MANIFEST, "line 1 cannot be parsed"), (MANIFEST, "no line")],
    );
    fs::remove_file(dir.join(MANIFEST)).unwrap();
    assert_eq!(manifest::check(dir).unwrap(), manifest::Check::default());
}

#[test]
fn counters_are_kept_apart_by_stints_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let writer = sealed(dir);
    assert_eq!(stints(dir, "old"), 1);
    writer
        .contender_file("old", "stint-1/status.before.tsv", b"Uptime\t2\n")
        .unwrap();
    assert_eq!(stints(dir, "old"), 2);
    assert!(stint_dir(dir, "old", 1).ends_with("contenders/old/stint-1"));
    let files = &Record::open(dir).unwrap().contenders[0];
    assert_eq!(files.status_after["Uptime"], "9");
    assert_eq!(files.later_stints[0].status_before["Uptime"], "2");
    assert!(files.later_stints[0].status_after.is_empty());
}
