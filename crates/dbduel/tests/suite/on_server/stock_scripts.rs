//! The scripts that sysbench installs, run here and by sysbench itself on the same server. On a machine without sysbench,
//! or with a server that its client library cannot log in to, the test counts as ignored.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use dbduel_driver::Connection;
use dbduel_driver::address::Address;
use dbduel_lua::Script;

use super::super::harness::skip;
use super::database::Database;
use super::script_server::{connect, contents, host, stock_scripts};
use super::server::{ALL, Server};
use crate::script_support::{CLIENTS, Printed, load_of, run, say};

const EVENTS: u64 = 100;
/// Statements that the server counts by kind.
const KINDS: [&str; 8] = [
    "select",
    "update",
    "insert",
    "delete",
    "begin",
    "commit",
    "create_table",
    "drop_table",
];

/// Connections to a database, counted without a statement of a kind that is compared.
fn clients(connection: &mut Connection, name: &str) -> usize {
    let list = connection.query("SHOW PROCESSLIST").unwrap();
    let rows = 0..list.rows.len();
    rows.filter(|&row| list.text(row, 3).as_deref() == Some(name))
        .count()
}

/// What the server counts, once it has taken leave of all clients: while it does, some versions count them twice.
fn status(database: &Database) -> BTreeMap<&'static str, i64> {
    let mut connection = connect(database);
    let deadline = Instant::now() + Duration::from_secs(10);
    while clients(&mut connection, &database.name) > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let answer = connection
        .query("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
        .unwrap();
    let of = |kind: &str| {
        let row = (0..answer.rows.len())
            .find(|&row| answer.text(row, 0).unwrap() == format!("Com_{kind}"));
        row.map_or(0, |row| answer.text(row, 1).unwrap().parse().unwrap())
    };
    KINDS.iter().map(|kind| (*kind, of(kind))).collect()
}

/// Runs `work`; what the server counted meanwhile.
fn counted<T>(database: &Database, work: impl FnOnce() -> T) -> (T, BTreeMap<&'static str, i64>) {
    let before = status(database);
    let result = work();
    let after = status(database);
    (
        result,
        KINDS
            .iter()
            .map(|kind| (*kind, after[kind] - before[kind]))
            .collect(),
    )
}

/// Runs sysbench; none when it cannot log in.
fn sysbench(
    database: &Database,
    script: &str,
    command: &str,
    options: &[(&str, &str)],
) -> Option<String> {
    let Address::Unix { path } = &database.address else {
        return None;
    };
    let mut process = Command::new("sysbench");
    process
        .arg(script)
        .arg(format!("--threads={CLIENTS}"))
        .arg(format!("--events={EVENTS}"))
        .arg("--time=60");
    process.arg(format!("--mysql-socket={}", path.display()));
    process.arg(format!("--mysql-user={}", database.credentials.user));
    process.arg(format!("--mysql-db={}", database.name));
    for (name, value) in options {
        process.arg(format!("--{name}={value}"));
    }
    let output = process.arg(command).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if text.contains("unable to connect") {
        return None;
    }
    assert!(
        output.status.success(),
        "sysbench {script} {command}: {text}"
    );
    Some(text)
}

/// A figure of sysbench's final report.
fn reported(text: &str, label: &str) -> u64 {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(label))
        .unwrap();
    line.split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap()
}

/// What all runs of one script brought.
struct Passage {
    prepared: Vec<String>,
    counts: (u64, u64, u64),
    events: u64,
    /// Conflicts after which an event was tried again.
    errors: u64,
    statements: BTreeMap<&'static str, i64>,
    left: Vec<String>,
    printed: String,
}

fn pass_here(database: &Database, name: &str, options: &[(&str, &str)]) -> Passage {
    let printed = Printed::default();
    let script = Script::find(name).unwrap();
    let mut prepare = host(database, &script, "prepare", options, &printed);
    assert!(
        prepare
            .run_command("prepare", CLIENTS)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    );
    let prepared = contents(database);
    let mut host_run = host(database, &script, "run", options, &printed);
    let (done, statements) = counted(database, || {
        run(&mut host_run, load_of(EVENTS)).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    let counts = done.interval_stats.counts;
    let mut cleanup = host(database, &script, "cleanup", options, &printed);
    assert!(cleanup.run_command("cleanup", CLIENTS).unwrap());
    let printed = printed.lock().unwrap().clone();
    Passage {
        prepared,
        counts: (counts.reads, counts.writes, counts.others),
        events: counts.events,
        errors: counts.errors,
        statements,
        left: contents(database),
        printed,
    }
}

fn pass_in_sysbench(database: &Database, name: &str, options: &[(&str, &str)]) -> Option<Passage> {
    let first = sysbench(database, name, "prepare", options)?;
    let prepared = contents(database);
    let (report, statements) = counted(database, || sysbench(database, name, "run", options));
    let report = report?;
    let last = sysbench(database, name, "cleanup", options)?;
    Some(Passage {
        prepared,
        counts: (
            reported(&report, "read:"),
            reported(&report, "write:"),
            reported(&report, "other:"),
        ),
        events: reported(&report, "transactions:"),
        errors: reported(&report, "ignored errors:"),
        statements,
        left: contents(database),
        printed: first + &last,
    })
}

/// Lines about tables as one sorted heap of letters: clients print at the same time, and sysbench's may do so in the
/// middle of each other's lines.
fn letters(printed: &str) -> String {
    let lines = printed.lines().filter(|line| line.contains("'sbtest"));
    let mut letters: Vec<char> = lines.flat_map(str::chars).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

#[test(on = ALL, lab)]
fn stock_scripts_do_here_what_they_do_in_sysbench(server: &Server) {
    let database = Database::create(server, "stock");
    for name in stock_scripts() {
        let tables = if name.starts_with("select_random") {
            "1"
        } else {
            "3"
        };
        let options: &[(&str, &str)] = match name.as_str() {
            "bulk_insert" => &[],
            _ => &[("tables", tables), ("table_size", "700")],
        };
        let ours = pass_here(&database, &name, options);
        assert_eq!(ours.events, EVENTS, "{name}");
        assert!(!ours.prepared.is_empty(), "{name} prepared nothing");
        assert!(ours.left.is_empty(), "{name} left {:?}", ours.left);
        let Some(theirs) = pass_in_sysbench(&database, &name, options) else {
            skip("sysbench cannot log in to this server, so nothing was compared with it");
            continue;
        };
        say(&format!(
            "{name}: {:?} here, {:?} in sysbench",
            ours.counts, theirs.counts
        ));
        assert_eq!(ours.prepared, theirs.prepared, "{name}");
        assert_eq!(ours.left, theirs.left, "{name}");
        assert_eq!(letters(&ours.printed), letters(&theirs.printed), "{name}");
        if ours.errors + theirs.errors > 0 {
            say(&format!(
                "{name}: statements NOT COMPARED, because {} events here and {} in sysbench met conflicts and were tried again",
                ours.errors, theirs.errors
            ));
            continue;
        }
        if name == "bulk_insert" {
            // A client sends its rows at its end, if it came to have an event.
            let inserts = ours.statements["insert"];
            assert!((1..=i64::from(CLIENTS)).contains(&inserts), "{inserts}");
            continue;
        }
        assert_eq!(ours.statements, theirs.statements, "{name}");
        let total = |(read, write, other)| read + write + other;
        assert_eq!(total(ours.counts), total(theirs.counts), "{name}");
        assert_eq!(ours.counts.0, theirs.counts.0, "{name}: reads");
        // Which statements change a row is up to chance: a delete may find its row gone.
        let apart = ours.counts.1.abs_diff(theirs.counts.1);
        let by_chance = if name == "oltp_delete" { 30 } else { 0 };
        assert!(
            apart <= by_chance,
            "{name}: {:?} and {:?}",
            ours.counts,
            theirs.counts
        );
    }
}
