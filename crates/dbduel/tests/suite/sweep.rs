//! Sweeps over factors beside the contenders, on real servers.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use dbduel_record::event::SliceId;
use dbduel_record::rows::ALL_CLASSES;
use dbduel_record::sweep::{SWEEP, SweepPlan, cell_dir};
use dbduel_record::{Event, Record};
use nix::sys::signal::Signal;

use super::lab::{
    self, Lab, assert_verified, count, plan_of, published, servers_left, short_experiment, signal,
    verify, with_budget,
};
use super::prepare::forget_snapshots;

/// Two sizes of the table, both held against the same two contenders. They are equal and the horizon is
/// narrow, so that a cell stays undecided, but for the five in a hundred that the confidence allows.
fn swept() -> String {
    let text = short_experiment(
        ["mariadb-10.11", "mariadb-10.11"],
        "[sweep]\ntable_size = [500, 1_000]\n",
    );
    with_budget(&text, "13 s")
        .replace("table_size = 2_000\n", "")
        .replace("\"25 %\"", "\"0.1 %\"")
}

/// The records of all cells.
fn records(dir: &Path, plan: &SweepPlan) -> Vec<Record> {
    let cells = plan.cells.iter().map(|cell| cell_dir(dir, cell));
    cells.map(|dir| Record::open(&dir).unwrap()).collect()
}

/// How often a cell was given more time.
fn extensions(record: &Record) -> usize {
    count(record, |event| matches!(event, Event::Extended { .. }))
}

/// The cell that has more extensions than `before`, and a slice since.
fn is_going_on(records: &[Record], before: &[Record]) -> Option<usize> {
    let is_it = |(now, before): (&Record, &Record)| {
        extensions(now) > extensions(before) && now.slices.len() > before.slices.len()
    };
    records.iter().zip(before).position(is_it)
}

/// Every block of the record was begun once, every slice counts once, and the plan holds what was added.
#[track_caller]
fn check_counted_once(record: &Record) {
    let started = record.events.iter().filter_map(|event| match event.what {
        Event::SliceStarted { slice, .. } => Some(slice),
        _ => None,
    });
    let started: Vec<SliceId> = started.collect();
    let once: BTreeSet<SliceId> = started.iter().copied().collect();
    assert_eq!(once.len(), started.len());
    let totals = record.slices.iter().filter(|row| row.class == ALL_CLASSES);
    let rows: Vec<(u32, u32)> = totals.map(|row| (row.block, row.position)).collect();
    let once: BTreeSet<(u32, u32)> = rows.iter().copied().collect();
    assert_eq!(once.len(), rows.len());
    let ids = record.plan.blocks.iter().map(|block| block.id);
    assert!(ids.eq(0..record.plan.blocks.len() as u32));
    let lost = record.complaints.iter();
    let lost = lost.filter(|complaint| complaint.why.contains("does not fit"));
    assert_eq!(lost.count(), 0, "{:?}", record.complaints);
}

#[test(lab, needs = &["mariadb-10.11"])]
fn every_cell_is_a_record_with_data_of_its_own_and_an_interrupted_sweep_goes_on() {
    let lab = Lab::new(&swept());
    let mut run = lab.spawn();
    lab.wait_until(&mut run, "second cell", || {
        lab.said().contains("cell 2 of 2")
    });
    signal(&run, Signal::SIGINT);
    assert_eq!(run.wait().unwrap().code(), Some(130), "{}", lab.said());
    let dir = lab.record_dir();
    let plan = SweepPlan::read(&dir).unwrap();
    let journal = |cell: usize| cell_dir(&dir, &plan.cells[cell]).join("events.jsonl");
    let first = std::fs::read(journal(0)).unwrap();

    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    // Decided or not is the machine's business.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    // What is over is left alone, but for an extension when the second cell leaves much of its time.
    assert!(std::fs::read(journal(0)).unwrap().starts_with(&first));
    for cell in &plan.cells {
        let record = Record::open(&cell_dir(&dir, cell)).unwrap();
        let size = record.plan.workload.parameters.get("table_size").unwrap();
        assert_eq!(*size, plan.factors[0].levels[cell.levels[0]].value);
        assert!(!record.slices.is_empty());
        let rows: Vec<Option<u64>> = record
            .events
            .iter()
            .filter_map(|event| match event.what {
                Event::DatasetReady { rows, .. } => Some(Some(rows)),
                _ => None,
            })
            .collect();
        let wanted = size.as_u64().map(|size| 2 * size);
        assert!(
            !rows.is_empty() && rows.iter().all(|rows| *rows == wanted),
            "{rows:?}"
        );
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("2 of 2 cells finished"), "{shown}");
    assert!(dir.join("report.html").is_file());

    assert_eq!(published(&dir)["cells"][0]["state"], "over");

    // Time that cells left, which is here time that was added: enough for one of them to go on.
    let before = records(&dir, &plan);
    let mut longer = plan.clone();
    longer.budget_s += 10.0;
    std::fs::write(dir.join(SWEEP), serde_json::to_vec(&longer).unwrap()).unwrap();
    let mut run = lab.spawn_resumed();
    let mut extended = None;
    lab.wait_until(&mut run, "cell that was extended", || {
        extended = is_going_on(&records(&dir, &plan), &before);
        extended.is_some()
    });
    let extended = extended.unwrap();
    signal(&run, Signal::SIGKILL);
    assert_eq!(run.wait().unwrap().signal(), Some(9));
    let killed = &records(&dir, &plan)[extended];

    // It resumes the extension that it has, and gets no second one for the same time.
    let output = lab.resume();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert_eq!(servers_left(), []);
    let after = records(&dir, &plan);
    after.iter().for_each(check_counted_once);
    let since = &after[extended].events[killed.events.len()..];
    let next = since.iter().find(|event| {
        matches!(
            event.what,
            Event::Started { .. } | Event::Extended { .. } | Event::Ended { .. }
        )
    });
    let next = next.map(|event| &event.what);
    assert!(matches!(next, Some(Event::Started { .. })), "{next:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("finished, extended"), "{shown}");
    let document = published(&dir);
    for (cell, record) in after.iter().enumerate() {
        let told = document["cells"][cell]["extension"]["count"].as_u64();
        assert_eq!(told.unwrap_or(0), extensions(record) as u64, "{document}");
    }
    // A change of one cell is a change of the sweep.
    assert_verified(&dir);
    let edited = cell_dir(&dir, &plan.cells[1]).join("ticks.csv");
    let ticks = std::fs::read_to_string(&edited).unwrap();
    std::fs::write(&edited, ticks.replacen('1', "2", 1)).unwrap();
    let (code, said) = verify(&dir);
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn a_plan_of_a_sweep_has_the_plan_of_every_cell_and_starts_nothing() {
    let text = swept().replace("[500, 1_000]", "[500, 1_000]\nserver_cores = [[0], [0]]");
    let lab = Lab::new(&text);
    let refused = plan_of(&lab.experiment());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("a level of `server_cores` is listed twice"),
        "{said}"
    );
    let lab = Lab::new(&swept());
    let output = plan_of(&lab.experiment());
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["sweep"]["factors"][0]["name"], "table_size");
    assert_eq!(plan["cells"].as_array().unwrap().len(), 2);
    assert_ne!(plan["cells"][0]["seed"], plan["cells"][1]["seed"]);
    assert!(!lab.has_results());
}

#[test]
fn mistakes_in_a_sweep_are_said_with_line_column_and_what_to_do() {
    let sweep = swept();
    let check = |old: &str, new: &str, place: &str, part: &str| {
        lab::check_refused(&sweep, old, new, place, part);
    };
    let line = "table_size = [500, 1_000]";
    check(
        line,
        "tabel_size = [500, 1_000]",
        "20:1",
        "did you mean `table_size`?",
    );
    check(
        line,
        "table_size = [500, -1]",
        "20:1",
        "(with table_size = -1)",
    );
    check(line, "table_size = [500]", "20:14", "at least two levels");
    check(line, "table_size = 500", "20:14", "found the number 500");
    check(
        line,
        "tables = [1, 3]",
        "20:1",
        "is set in [workload] and swept",
    );
    check(line, "clients = [1, 3]", "20:1", "list them in [load]");
    check(
        line,
        "server_cores = [0, 1]",
        "20:17",
        "a number of processors",
    );
    check(
        line,
        "server_cores = [[4000], [0]]",
        "20:17",
        "there is no processor 4000",
    );
    check(
        line,
        "server_io = [\"20\", \"unlimited\"]",
        "20:14",
        "`20 MiB/s`",
    );
    check("\"13 s\"", "\"8 s\"", "1:10", "the budget of 4 s");
    let lists: Vec<String> = (0..64).map(|n| format!("settings.x{n} = [1, 2]")).collect();
    check(
        line,
        &lists.join("\n"),
        "20:10",
        "make countless combinations",
    );
}

/// Two sizes of the buffer pool of all contenders, and a setting of one of them. The contenders are equal within the horizon.
fn swept_settings() -> String {
    let text = short_experiment(
        ["mariadb-10.11", "mariadb-10.11"],
        "[sweep]\nsettings.innodb_buffer_pool_size = [\"24M\", \"40M\"]\n",
    );
    with_budget(&text, "13 s")
        .replace("innodb_buffer_pool_size = \"32M\", ", "")
        .replace("\"25 %\"", "\"45 %\"")
}

#[test(lab, needs = &["mariadb-10.11"])]
fn swept_settings_are_those_of_the_servers_of_each_cell_which_share_one_load() {
    const ROWS: u64 = 2_003;
    forget_snapshots(ROWS);
    let lab = Lab::new(&swept_settings().replace("2_000", &ROWS.to_string()));
    let mut run = lab.spawn();
    // The first cell is over then, and the servers of the second one have started.
    lab.wait_until(&mut run, "second cell", || {
        let said = lab.said();
        let (_, second) = said.split_once("cell 2 of 2").unwrap_or_default();
        second.contains("warming up")
    });
    lab.interrupt(&mut run);
    let dir = lab.record_dir();
    let plan = SweepPlan::read(&dir).unwrap();
    let mut loaded = 0;
    for (record, cell) in records(&dir, &plan).iter().zip(&plan.cells) {
        let wanted = ["25165824", "41943040"][cell.levels[0]];
        for files in &record.contenders {
            let effective = files.variables_before.get("innodb_buffer_pool_size");
            assert_eq!(effective.map(String::as_str), Some(wanted));
        }
        loaded += count(record, |event| {
            matches!(
                event,
                Event::DatasetReady {
                    restored: false,
                    ..
                }
            )
        });
    }
    assert_eq!(loaded, 1);
    let factor = &published(&dir)["factors"][0];
    assert_eq!(factor["kind"], "setting");
    assert_eq!(factor["levels"][1]["label"], "40M");
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_server_refuses_a_swept_setting_before_the_first_cell_begins() {
    lab::check_refused(
        &swept_settings(),
        "\"40M\"",
        "\"40Q\"",
        "21:10",
        "innodb_buffer_pool_size",
    );
}

#[test]
fn mistakes_in_swept_settings_are_said_with_line_and_column() {
    let sweep = swept_settings();
    let line = "settings.innodb_buffer_pool_size = [\"24M\", \"40M\"]";
    let check = |new: &str, place: &str, part: &str| {
        lab::check_refused(&sweep, line, new, place, part);
    };
    let of = |contender: &str, rest: &str| format!("contenders.{contender}.{rest}");
    check(
        "settings.port = [1, 2]",
        "21:18",
        "`port` in [sweep]: it cannot be set",
    );
    check("settings.back_log = [7, \"7\"]", "21:25", "is listed twice");
    check(
        "settings.innodb-flush-log-at-trx-commit = [0, 1]",
        "21:10",
        "contender `first` sets its own value",
    );
    check(
        &of("second", "settings.innodb_flush_log_at_trx_commit = [0, 1]"),
        "21:28",
        "contender `second` sets its own value",
    );
    check(
        &of("secnod", "settings.back_log = [50, 60]"),
        "21:12",
        "did you mean `second`?",
    );
    check(&of("first", "tables = 2"), "21:18", "unknown key `tables`");
    check(
        &format!(
            "settings.back_log = [50, 60]\n{}",
            of("first", "settings.back-log = [70, 80]")
        ),
        "22:27",
        "`back_log` and `back-log of first` are both swept",
    );
}
