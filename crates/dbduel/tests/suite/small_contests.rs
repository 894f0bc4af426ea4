//! Real contests of seconds, which every commit runs: each product is started, frozen, killed, resumed and stopped.
//!
//! They assert exit codes, invariants and bytes. A run that must be interrupted has a budget that no machine uses up
//! before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbduel_record::Record;
use dbduel_record::event::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::finished;
use super::harness::skip;
use super::lab::{
    Lab, SQLITE_DUEL, assert_verified, follows_the_plan, home, program, servers_left, verify,
};
use super::reserved::listening;

/// Two equal contenders, on which no test and no search for turns can end early.
fn endless(contender: &str, workload: &str) -> String {
    format!(
        "budget = \"30 min\"\nhorizon = \"0.1 %\"\nseed = 7\n[contenders.first]\n{contender}\n\
         [contenders.second]\nlike = \"first\"\n[workload]\nname = \"{workload}\"\ntable_size = 500\n\
         [load]\nclients = 2\n[schedule]\nslice = \"100 ms\"\nguard = \"10 ms\"\nwarm_up = \"200 ms\"\n"
    )
}

const MARIADB: &str = "server = \"mariadb-10.11\"\nsettings = { innodb_buffer_pool_size = \"32M\", \
    innodb_log_file_size = \"8M\", innodb_flush_log_at_trx_commit = 2 }";
const MYSQL: &str = "server = \"mysql-9.7\"\nsettings = { innodb_buffer_pool_size = \"32M\", \
    innodb_redo_log_capacity = \"8M\" }";
const POSTGRESQL: &str = "server = \"postgresql-16\"\nsettings = { shared_buffers = \"16MB\" }";

/// Kills the run after some slices, lets `disturb` do more, resumes the record, and interrupts that run after more slices. All
/// that holds of a resumed record is checked; what the second run said is returned.
fn killed_and_resumed(lab: &Lab, disturb: impl FnOnce()) -> String {
    lab.run_killed_after_slices(6);
    let before = lab.record();
    disturb();
    let mut run = lab.spawn_resumed();
    lab.wait_for_slices(&mut run, before.finished_slices().count() + 6);
    lab.interrupt(&mut run);
    let after = lab.record();
    assert_eq!(after.complaints, []);
    assert_eq!(after.slices[..before.slices.len()], before.slices);
    assert_eq!(after.events[..before.events.len()], before.events);
    assert!(follows_the_plan(&after, &after.plan));
    assert_begun_once(&after);
    assert_eq!(digests(&after).len(), 1, "all hold the same data");
    assert_verified(&lab.record_dir());
    lab.said()
}

fn assert_begun_once(record: &Record) {
    let mut begun = BTreeSet::new();
    for event in &record.events {
        if let Event::SliceStarted { slice, .. } = &event.what {
            let is_new = begun.insert((slice.block, slice.position));
            assert!(is_new, "{slice} was begun twice");
        }
    }
}

fn digests(record: &Record) -> BTreeSet<&String> {
    let digests = record.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady { digest, .. } => Some(digest),
        _ => None,
    });
    digests.collect()
}

#[test(needs = &["mariadb-10.11"])]
fn mariadb_is_killed_with_the_lab_resumed_and_its_record_can_be_trusted() {
    let lab = Lab::new(&endless(MARIADB, "oltp-read-write"));
    let said = killed_and_resumed(&lab, || {
        assert_eq!(servers_left().len(), 2, "both servers are orphans now");
    });
    let ended = said.matches("left behind by an earlier run").count();
    assert_eq!(ended, 2, "{said}");

    let dir = lab.record_dir();
    for format in ["terminal", "html", "markdown", "json"] {
        let render = || {
            let mut command = program();
            command
                .arg("report")
                .arg(&dir)
                .args(["--format", format])
                .output()
                .unwrap()
        };
        let first = render().stdout;
        assert!(!first.is_empty() && first == render().stdout, "{format}");
    }
    // One digit of one measured value.
    let table = dir.join("slices.csv");
    let rows = fs::read_to_string(&table).unwrap();
    let at = rows.rfind(|letter: char| letter.is_ascii_digit()).unwrap();
    let other = if &rows[at..=at] == "1" { "2" } else { "1" };
    fs::write(&table, format!("{}{other}{}", &rows[..at], &rows[at + 1..])).unwrap();
    let (code, said) = verify(&dir);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("slices.csv"), "{said}");
}

#[test(needs = &["mysql-9.7"])]
fn mysql_listens_on_no_port_and_its_record_is_whole() {
    let lab = Lab::new(&endless(MYSQL, "oltp-read-write"));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 4);
    let servers = servers_left();
    assert_eq!(servers.len(), 2);
    for (pid, _) in servers {
        assert_eq!(listening(pid), Vec::<String>::new());
    }
    lab.interrupt(&mut run);
    let record = lab.record();
    assert_eq!(digests(&record).len(), 1, "both hold the same data");
    assert!(follows_the_plan(&record, &record.plan));
    assert!(record.slices.iter().all(|row| row.failed == 0));
    assert_verified(&lab.record_dir());
}

#[test(needs = &["postgresql-16"])]
fn postgresql_leaves_no_frozen_session_behind() {
    let lab = Lab::new(&endless(POSTGRESQL, "oltp-update-non-index"));
    killed_and_resumed(&lab, || {
        let servers = servers_left();
        let mut first = servers
            .iter()
            .filter(|(_, line)| line.contains("--config-file"));
        // Sessions of a frozen server stay behind its killed first process.
        kill(Pid::from_raw(first.next().unwrap().0), Signal::SIGKILL).unwrap();
        assert_eq!(first.count(), 1, "both servers were orphans");
    });
}

#[test(contest)]
fn sqlite_is_killed_and_resumed() {
    killed_and_resumed(&Lab::new(&endless_sqlite()), || {});
}

fn endless_sqlite() -> String {
    endless(
        "server = \"sqlite\"\nsettings = { synchronous = \"off\" }",
        "oltp-update-non-index",
    )
    .replace("clients = 2", "clients = 1")
}

/// The database file of a contender of the run.
fn database_file(lab: &Lab, contender: &str) -> PathBuf {
    let runs = fs::read_dir(home().join("sandboxes")).unwrap();
    let mut runs = runs.map(|run| run.unwrap().path());
    let is_own = |run: &PathBuf| {
        let record = fs::read_to_string(run.join("record")).unwrap_or_default();
        Path::new(&record).starts_with(lab.path())
    };
    let run = runs.find(is_own).expect("the run has a folder");
    run.join(contender).join("data/dbduel.sqlite")
}

#[test(contest)]
fn sqlite_whose_file_is_gone_is_resumed_on_its_snapshot_with_a_doubt() {
    let lab = Lab::new(&endless_sqlite());
    killed_and_resumed(&lab, || {
        let first = lab.record().plan.contenders[0].name.clone();
        let file = database_file(&lab, &format!("0-{first}"));
        fs::remove_file(file).unwrap();
    });
    let replaced = lab
        .record()
        .events
        .into_iter()
        .filter_map(|event| match event.what {
            Event::Noticed { notice } if notice.rule == "data.replaced" => Some(notice.claim),
            _ => None,
        });
    let replaced: Vec<String> = replaced.collect();
    assert_eq!(replaced.len(), 1, "{replaced:?}");
}

#[test(contest)]
fn a_contest_comes_to_its_end() {
    let lab = finished::contest(SQLITE_DUEL);
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert!(follows_the_plan(&record, &record.plan));
    assert_begun_once(&record);
    for row in &record.slices {
        let ended = row.ok + row.failed + row.skipped + row.unfinished;
        assert_eq!(row.due, ended, "{row:?}");
    }
    assert_verified(&lab.record_dir());
}

#[test(contest)]
fn the_page_of_a_contest_opens_in_a_browser() {
    let lab = finished::contest(SQLITE_DUEL);
    let profile = tempfile::tempdir().unwrap();
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!(
            "file://{}",
            lab.record_dir().join("report.html").display()
        ))
        .output();
    let Ok(output) = browser else {
        return skip("the program `chromium` is missing");
    };
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.contains("write-ahead-log") && page.contains("<svg"));
    let said = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("CONSOLE") || line.contains("Uncaught"))
        .collect();
    assert_eq!(errors, Vec::<&str>::new());
}

/// The report of a program that drives sysbench's built-in test on a real server.
#[test(needs = &["mariadb-10.11"])]
fn the_sysbench_front_counts_what_it_did() {
    let server = super::bare_server::BareServer::start("mariadb-10.11");
    let socket = format!("--mysql-socket={}", server.socket().display());
    let run = |command: &str| {
        let mut sysbench = program();
        sysbench.args(["sysbench", "oltp_read_write", &socket, "--mysql-user=root"]);
        let options = "--table-size=500 --tables=2 --threads=1 --time=0 --events=50";
        let output = sysbench.args(options.split(' ')).arg(command).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text
    };
    run("prepare");
    assert_eq!(server.query("SELECT COUNT(*) FROM sbtest.sbtest2"), "500");
    let text = run("run");
    let words: Vec<&str> = text.split_whitespace().collect();
    for figure in ["read: 700", "write: 200", "other: 100", "events: 50"] {
        let (label, number) = figure.split_once(' ').unwrap();
        let at = words.iter().position(|word| *word == label);
        let behind = at.and_then(|at| words.get(at + 1));
        assert_eq!(behind, Some(&number), "{figure}: {text}");
    }
    run("cleanup");
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest'";
    assert_eq!(server.query(tables), "0");
}
