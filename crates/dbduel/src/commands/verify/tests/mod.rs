//! Records that were edited, in every file and way that a reader might fear, and records that were not.

mod crashes;

use std::path::PathBuf;

use dbduel_record::event::{ContinuityRound, EndReason, Event};
use dbduel_record::store::PLAN;
use dbduel_record::sweep::cell_dir;
use dbduel_testkit::synthetic::continuity::stretch;
use dbduel_testkit::synthetic::{Scenario, write_bisection, write_sweep};

use super::*;
use crate::commands::run;

/// A sealed record with its reports beside it.
fn sealed() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let scenario = Scenario {
        blocks: 2,
        ..Scenario::duel()
    };
    scenario.write(dir);
    // What the lab keeps of the author's question; the judge does not read it.
    fs::write(dir.join("experiment.toml"), "question = \"?\"\n").unwrap();
    let writer = RecordWriter::open(dir, 1).unwrap();
    writer.seal(1, env!("CARGO_PKG_VERSION")).unwrap();
    drop(writer);
    let (summary, findings) = judge::summarise(&Record::open(dir).unwrap());
    let options = report::Options {
        width: 100,
        colour: false,
    };
    for format in report::FORMATS {
        let rendered = format.render(&summary, &findings, &options);
        if let Some(name) = format.file_name {
            fs::write(dir.join(name), rendered.text).unwrap();
            for file in rendered.files {
                fs::write(dir.join(file.name), file.text).unwrap();
            }
        }
    }
    directory
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[track_caller]
fn check_named(dir: &Path, file: &str, what: &str) {
    let found = examine(dir, 100).unwrap_or_else(|error| panic!("{file}: {error:#}"));
    assert_eq!(found.verdict, Wholeness::Changed, "{file}");
    let named = |trouble: &&Trouble| trouble.file == file && trouble.what.contains(what);
    assert!(
        found.changed.iter().any(|trouble| named(&trouble)),
        "{file}: {:#?}",
        found.changed
    );
}

#[test]
fn a_byte_edited_in_any_file_is_found_and_so_is_a_missing_file() {
    let directory = sealed();
    let dir = directory.path();
    assert_eq!(examine(dir, 100).unwrap().verdict, Wholeness::Whole);
    let all = files(dir);
    assert!(all.len() > 15, "{all:#?}");
    for path in all {
        let name = path.strip_prefix(dir).unwrap().to_str().unwrap();
        let whole = fs::read(&path).unwrap();
        let mut edited = whole.clone();
        edited[whole.len() / 2] ^= 1;
        fs::write(&path, &edited).unwrap();
        if name == manifest::MANIFEST {
            assert_eq!(examine(dir, 100).unwrap().verdict, Wholeness::Changed);
        } else {
            check_named(dir, name, "");
        }
        fs::remove_file(&path).unwrap();
        if name == manifest::MANIFEST {
            // The reports cite its digest.
            assert_eq!(examine(dir, 100).unwrap().verdict, Wholeness::Changed);
        } else if name.starts_with("report") {
            // A report may be deleted; it follows from the record.
            assert_eq!(
                examine(dir, 100).unwrap().verdict,
                Wholeness::Whole,
                "{name}"
            );
        } else {
            check_named(dir, name, "is missing");
        }
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(examine(dir, 100).unwrap().verdict, Wholeness::Whole);
}

#[test]
fn an_additional_file_is_found() {
    let directory = sealed();
    let dir = directory.path();
    for name in ["notes.txt", "contenders/extra.tsv"] {
        fs::write(dir.join(name), "x").unwrap();
        check_named(dir, name, "was added");
        fs::remove_file(dir.join(name)).unwrap();
    }
    fs::write(dir.join("report.pdf"), "x").unwrap();
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open);
    assert!(found.open[0].contains("`report.pdf`"), "{:?}", found.open);
}

#[test]
fn a_record_that_is_being_written_is_refused_and_two_may_look_at_once() {
    let directory = sealed();
    let dir = directory.path();
    let writer = RecordWriter::open(dir, 1).unwrap();
    let error = examine(dir, 100).unwrap_err().to_string();
    assert!(error.contains(dir.to_str().unwrap()), "{error}");
    drop(writer);
    let verdict = || examine(dir, 100).map(|found| found.verdict);
    std::thread::scope(|scope| {
        let both = [scope.spawn(verdict), scope.spawn(verdict)];
        for one in both {
            assert_eq!(one.join().unwrap().unwrap(), Wholeness::Whole);
        }
    });
}

#[test]
fn reports_of_another_judge_are_not_called_edited() {
    let directory = sealed();
    let path = directory.path().join("report.json");
    let text = fs::read_to_string(&path).unwrap();
    let named = |judge: &str| format!("\"judged_by\": \"{judge}\"");
    let this = named(judge::IDENTITY);
    assert!(text.contains(&this));
    // Another version, one from before judges had a digest, and another build of this version.
    let version = env!("CARGO_PKG_VERSION");
    for other in ["0.0.1", version, &format!("{version}+00000000")] {
        fs::write(&path, text.replace(&this, &named(other))).unwrap();
        let found = examine(directory.path(), 100).unwrap();
        assert_eq!(found.verdict, Wholeness::Open, "{other}");
        let expected = format!("dbduel {other},");
        assert!(found.open[0].contains(&expected), "{:?}", found.open);
    }
    // Without the report for programs the others say who derived them.
    fs::remove_file(&path).unwrap();
    assert_eq!(
        examine(directory.path(), 100).unwrap().verdict,
        Wholeness::Whole
    );
    for path in files(directory.path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("report") {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace(judge::IDENTITY, "0.1.0+00000000")).unwrap();
        }
    }
    let found = examine(directory.path(), 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open, "{:?}", found.changed);
    let is_about_the_page = |why: &String| why.contains("`report.html` is not what");
    assert!(found.open.iter().any(is_about_the_page), "{:?}", found.open);
}

#[test]
fn what_is_no_record_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    assert!(examine(directory.path(), 100).is_err());
    assert!(examine(Path::new("/nowhere"), 100).is_err());
}

#[track_caller]
fn check(stored: &Value, expected: &Value, places: &[&str]) {
    let mut found = Vec::new();
    differences("", stored, expected, &mut found);
    assert_eq!(found, places);
}

#[test]
fn a_changed_figure_is_named_by_its_path() {
    let json =
        |ratio: f64| serde_json::json!({"summary": {"duels": [{"ratio": ratio, "level": 0}]}});
    check(&json(1.0), &json(1.0), &[]);
    check(
        &json(1.5),
        &json(1.25),
        &["summary.duels[0].ratio is `1.5` and the record gives `1.25`"],
    );
    check(
        &serde_json::json!({"a": [1]}),
        &serde_json::json!({"a": [1, 2]}),
        &["a is `[1]` and the record gives `[1,2]`"],
    );
}

#[test]
fn a_changed_line_is_named_by_its_number() {
    assert_eq!(
        first_line("a\nb\n", "a\nc\n"),
        "does not follow from the record: line 2 is `b` and the record gives `c`"
    );
}

#[test]
fn long_values_are_shown_where_they_differ() {
    let long = |end: &str| format!("{}{end}", "x".repeat(100));
    let said = first_line(&long("1 of many"), &long("2 of many"));
    let before = "x".repeat(CHARACTERS_BEFORE);
    assert_eq!(
        said,
        format!(
            "does not follow from the record: line 1 is `…{before}1 of many` and the record gives \
             `…{before}2 of many`"
        )
    );
    check(
        &serde_json::json!(long("1")),
        &serde_json::json!(long("2")),
        &[&format!(
            " is `…{before}1\"` and the record gives `…{before}2\"`"
        )],
    );
    // Blanks that are trimmed elsewhere, and characters that no terminal shows.
    for (stored, expected, part) in [
        ("a ", "a", "line 1 is `a ` and the record gives `a`"),
        (
            "a\tb",
            "a b",
            "line 1 is `a\\tb` and the record gives `a b`",
        ),
        ("a", "a\n", "its lines end otherwise"),
    ] {
        let said = first_line(stored, expected);
        assert!(said.ends_with(part), "{said}");
    }
}

#[test]
fn what_a_killed_process_left_half_written_is_named_and_changes_nothing() {
    let directory = sealed();
    let dir = directory.path();
    fs::write(dir.join(".report.html.4711.part"), "<htm").unwrap();
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Whole, "{:#?}", found.changed);
    assert_eq!(found.half_written, [".report.html.4711.part"]);
    let text = as_text(&found);
    assert!(text.contains("a killed dbduel was writing"), "{text}");
    // Looking at it changed nothing.
    assert!(dir.join(".report.html.4711.part").is_file());
}

/// A run begins on a sealed record.
fn resumed(dir: &Path, at_ms: u64) -> RecordWriter {
    let mut writer = RecordWriter::open(dir, at_ms).unwrap();
    let started = Event::Started {
        pid: 1,
        dbduel: "0".to_owned(),
        epoch: 1,
    };
    writer.event(at_ms, started).unwrap();
    writer
}

fn tear(dir: &Path, file: &str, half: &str) {
    let path = dir.join(file);
    let whole = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, whole + half).unwrap();
}

#[test]
fn what_a_crash_leaves_is_not_called_a_change_and_is_gone_when_the_record_was_resumed() {
    let directory = sealed();
    let dir = directory.path();
    // The first event of a run is torn.
    tear(dir, "events.jsonl", "{\"at_ms\":18");
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open, "{:#?}", found.changed);
    assert_eq!(found.torn, ["events.jsonl"]);
    drop(resumed(dir, 1 << 41));
    tear(dir, "slices.csv", "9,0,0,old,4,\"a");
    tear(dir, "errors.csv", "9,0,old,1062,1,\"Duplicate\n");
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open, "{:#?}", found.changed);
    assert_eq!(found.torn, ["slices.csv", "errors.csv"]);
    assert!(as_text(&found).contains("`errors.csv` ends with"));
    let mut writer = resumed(dir, (1 << 41) + 1);
    let reason = EndReason::Decided;
    writer
        .event((1 << 41) + 2, Event::Ended { reason })
        .unwrap();
    // Killed before the manifest got its line, and the reports are those of the first run.
    drop(writer);
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open, "{:#?}", found.changed);
    run::seal_ended(dir).unwrap();
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.verdict, Wholeness::Open, "{:#?}", found.changed);
    let are_older = |why: &String| why.contains("`report.html` was derived before the last run");
    assert!(found.open.iter().any(are_older), "{:?}", found.open);
    record_reports::write(dir, None).unwrap();
    let found = examine(dir, 100).unwrap();
    assert_eq!(
        (found.verdict, found.torn.len()),
        (Wholeness::Whole, 0),
        "{:#?} {:#?}",
        found.changed,
        found.open
    );
}

#[test]
fn a_verdict_that_long_turns_contradict_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    Scenario::duel().write(dir);
    let quiet = examine(dir, 100).unwrap();
    assert_eq!(quiet.contradictions, Vec::<String>::new());

    let record = Record::open(dir).unwrap();
    let mut writer = RecordWriter::open(dir, 1).unwrap();
    for scatter in [0.99, 1.01, 0.98, 1.02, 0.99, 1.01] {
        let contenders = record.plan.contenders.iter().zip([1.0, 1.5]);
        let unswitched = contenders.map(|(contender, longer)| {
            let own = record
                .slices
                .iter()
                .filter(|row| row.contender == contender.name && row.class == ALL_CLASSES);
            let (work, seconds) = own.fold((0, 0.0), |(work, seconds), row| {
                (work + row.ok, seconds + row.measured_s)
            });
            let per_s = longer * scatter * work as f64 / seconds;
            stretch(&contender.name, per_s, 8.0)
        });
        let round = ContinuityRound {
            level: 0,
            turn_s: 15.0,
            in_turns: Vec::new(),
            unswitched: unswitched.collect(),
            seconds: 20.0,
        };
        writer.event(1, Event::ContinuityRound(round)).unwrap();
    }
    drop(writer);
    let found = examine(dir, 100).unwrap();
    assert_eq!(found.contradictions.len(), 1, "{found:?}");
    let text = as_text(&found);
    assert!(
        text.contains("verdict  The answer depends on the switching"),
        "{text}"
    );
}

#[test]
fn whatever_is_put_in_the_place_of_a_file_is_a_change() {
    let directory = sealed();
    let dir = directory.path();
    let elsewhere = tempfile::tempdir().unwrap();
    for path in files(dir) {
        let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
        let kept = elsewhere.path().join("kept");
        fs::rename(&path, &kept).unwrap();
        fs::create_dir(&path).unwrap();
        check_named(dir, &name, "");
        fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink(&kept, &path).unwrap();
        check_named(dir, &name, "");
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
    assert_eq!(examine(dir, 100).unwrap().verdict, Wholeness::Whole);
    // Without a manifest, too.
    fs::remove_file(dir.join(manifest::MANIFEST)).unwrap();
    fs::write(dir.join(PLAN), "{").unwrap();
    check_named(dir, PLAN, "cannot be understood");
}

#[test]
fn cells_of_a_sweep_that_hold_nothing_yet_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let plan = write_sweep(dir, &[1_000, 2_000], &[1.0, 1.5]);
    let names = |dir: &Path| -> Vec<String> {
        let parts = SetPlan::at(dir).unwrap().unwrap().begun(dir).unwrap();
        let cells = examine_parts(parts).unwrap().into_iter();
        cells.map(|one| one.cell).collect()
    };
    assert_eq!(names(dir).len(), 2);
    // What a kill leaves of a cell: its place without a plan.
    let last = cell_dir(dir, &plan.cells[1]);
    fs::remove_dir_all(&last).unwrap();
    fs::create_dir(&last).unwrap();
    assert_eq!(names(dir), [plan.cells[0].name.clone()]);
}

#[test]
fn the_steps_of_a_bisection_are_verified_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    write_bisection(dir);
    let parts = SetPlan::at(dir).unwrap().unwrap().begun(dir).unwrap();
    let steps = examine_parts(parts).unwrap().into_iter();
    // The third was skipped and has no record.
    let names: Vec<String> = steps.map(|one| one.cell).collect();
    assert_eq!(names, ["01", "02", "04", "05"]);
}
