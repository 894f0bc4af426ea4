//! The scripts that sysbench installs, run here and by sysbench itself on the same server, where the environment names
//! one (see `support/database.rs`). A machine without sysbench, or a server that its client library cannot log in to,
//! is said on standard error.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dbduel_load::address::Address;
use dbduel_load::blocking::{ConnectOptions, Connection, TlsMode};
use dbduel_load::fill::{Digest, FillWatch, clear, digest, fill};
use dbduel_load::lua::{Host, IgnoredErrors, LoadSettings, Script, Servers, Settings};
use dbduel_load::order::{Answer, Order};
use dbduel_load::workloads::{self, parameters};
use dbduel_record::plan::Parameters;
use support::database::Database;
use support::script::{CLIENTS, Printed, alone, given, load_of, run, say};
use support::{Load, open_order, slice_order};

const INSTALLED: &str = "/usr/share/sysbench";
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

/// The installed scripts that can be run; none when sysbench is not installed.
fn stock_scripts() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(INSTALLED) else {
        say("SKIPPED: sysbench is not installed, so its scripts were not run");
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".lua")
                .map(str::to_owned)
        })
        .filter(|name| name != "oltp_common")
        .collect();
    names.sort();
    names
}

/// The server counts for everybody, so tests that look at its counters, and all others, take turns.
static TURNS: Mutex<()> = Mutex::new(());

/// A database of the test's own, and its turn.
fn database(purpose: &str) -> Option<(Database, MutexGuard<'static, ()>)> {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let database = Database::create(purpose);
    if database.is_none() {
        say(&format!(
            "SKIPPED `{purpose}`: DBDUEL_TEST_SOCKET names no server, so no script was run"
        ));
    }
    Some((database?, turn))
}

fn settings(database: &Database, script: Script, command: &str, printed: &Printed) -> Settings {
    Settings {
        servers: Servers {
            addresses: vec![database.address.clone()],
            credentials: database.credentials.clone(),
            database: database.name.clone(),
            tls: TlsMode::Off,
        },
        ..alone(script, command, printed)
    }
}

fn host(
    database: &Database,
    script: &Script,
    command: &str,
    options: &[(&str, &str)],
    printed: &Printed,
) -> Host {
    let mut host = Host::load(settings(database, script.clone(), command, printed)).unwrap();
    host.set_options(&given(options)).unwrap();
    host
}

fn connect(database: &Database) -> Connection {
    let options = ConnectOptions {
        database: Some(database.name.clone()),
        ..ConnectOptions::default()
    };
    Connection::connect(&database.address, &database.credentials, &options).unwrap()
}

fn number(connection: &mut Connection, sql: &str) -> i64 {
    let answer = connection.query(sql).unwrap();
    answer
        .text(0, 0)
        .and_then(|text| text.parse().ok())
        .unwrap_or(-1)
}

/// What the server counts.
fn status(database: &Database) -> BTreeMap<&'static str, i64> {
    let answer = connect(database)
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

/// Facts about the tables that do not depend on what was drawn.
fn contents(database: &Database) -> Vec<String> {
    let mut connection = connect(database);
    let tables = connection.query("SHOW TABLES").unwrap();
    let names: Vec<String> = (0..tables.rows.len())
        .map(|row| tables.text(row, 0).unwrap())
        .collect();
    let mut facts = Vec::new();
    for name in names {
        let columns = connection
            .query(&format!("SHOW COLUMNS FROM {name}"))
            .unwrap();
        let shape: Vec<String> = (0..columns.rows.len())
            .map(|row| {
                format!(
                    "{} {}",
                    columns.text(row, 0).unwrap(),
                    columns.text(row, 1).unwrap()
                )
            })
            .collect();
        let rows = number(&mut connection, &format!("SELECT COUNT(*) FROM {name}"));
        let ids = number(
            &mut connection,
            &format!("SELECT COALESCE(SUM(id), 0) FROM {name}"),
        );
        let texts = match shape.len() {
            4 => number(
                &mut connection,
                &format!("SELECT COALESCE(SUM(LENGTH(c) * 1000 + LENGTH(pad)), 0) FROM {name}"),
            ),
            _ => 0,
        };
        let indexes = number(
            &mut connection,
            &format!(
                "SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics \
                 WHERE table_schema = DATABASE() AND table_name = '{name}'"
            ),
        );
        facts.push(format!(
            "{name}({}): {rows} rows, ids {ids}, texts {texts}, {indexes} indexes",
            shape.join(", ")
        ));
    }
    facts
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
    let (counts, statements) = counted(database, || {
        run(&mut host_run, load_of(EVENTS)).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    let mut cleanup = host(database, &script, "cleanup", options, &printed);
    assert!(cleanup.run_command("cleanup", CLIENTS).unwrap());
    let printed = printed.lock().unwrap().clone();
    Passage {
        prepared,
        counts: (counts.reads, counts.writes, counts.other),
        events: counts.events,
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

#[test]
fn stock_scripts_do_here_what_they_do_in_sysbench() {
    let Some((database, _turn)) = database("stock") else {
        return;
    };
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
            say(&format!(
                "NOT COMPARED: {name}: sysbench cannot log in to this server; here: {:?}",
                ours.counts
            ));
            continue;
        };
        say(&format!(
            "{name}: {:?} here, {:?} in sysbench",
            ours.counts, theirs.counts
        ));
        assert_eq!(ours.prepared, theirs.prepared, "{name}");
        assert_eq!(ours.statements, theirs.statements, "{name}");
        assert_eq!(ours.left, theirs.left, "{name}");
        assert_eq!(letters(&ours.printed), letters(&theirs.printed), "{name}");
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

#[test]
fn the_api_keeps_its_promises() {
    let Some((database, _turn)) = database("api") else {
        return;
    };
    let printed = Printed::default();
    let script = Script::from_text("api.lua", include_bytes!("support/api.lua").to_vec());
    let mut host = host(&database, &script, "check", &[], &printed);
    let outcome = host.run_command("check", 1);
    let text = printed.lock().unwrap().clone();
    assert!(
        outcome.unwrap_or_else(|error| panic!("{error}\n{:?}\n{text}", error.trace())),
        "{text}"
    );
    assert!(text.contains("all is well"), "{text}");
    assert!(host.run_command("parallel", 3).unwrap());
}

#[test]
fn an_ignored_error_restarts_the_event_and_rolls_back() {
    let Some((database, _turn)) = database("restart") else {
        return;
    };
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect(); n = 0 end
        function event()
            n = n + 1
            con:query("BEGIN")
            con:query("INSERT INTO t VALUES (" .. sysbench.tid .. ", " .. n .. ")")
            if n == 1 then con:query("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'waited'") end
            con:query("COMMIT")
        end
        restarts = 0
        function sysbench.hooks.before_restart_event(err)
            assert(err.sql_errno == 1205 and err.sql_errmsg == 'waited' and err.connection == con)
            restarts = restarts + 1
        end
        function thread_done() assert(restarts == 1) end
    "#;
    let mut connection = connect(&database);
    connection
        .execute("CREATE TABLE t (client INT, n INT)")
        .unwrap();
    let printed = Printed::default();
    let script = Script::from_text("restart.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &printed);
    let counts = run(&mut host, load_of(20)).unwrap();
    assert_eq!(
        (counts.events, counts.errors, counts.reconnects),
        (20, 2, 0)
    );
    // The first attempts are not there: sysbench 1.0 would have committed them with the next BEGIN.
    assert_eq!(number(&mut connection, "SELECT COUNT(*) FROM t"), 20);
    assert_eq!(
        number(&mut connection, "SELECT COUNT(*) FROM t WHERE n = 1"),
        0
    );
}

#[test]
fn other_errors_end_the_run_with_place_and_query() {
    let Some((database, _turn)) = database("fatal") else {
        return;
    };
    let printed = Printed::default();
    let text = "function event()\n local con = sysbench.sql.driver():connect()\n con:query('SELECT * FROM nowhere')\nend";
    let script = Script::from_text("fatal.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &printed);
    let error = run(&mut host, load_of(5)).unwrap_err();
    assert!(
        error.to_string().contains("fatal.lua:3:") && error.to_string().contains("1146"),
        "{error}"
    );
    let printed = printed.lock().unwrap().clone();
    assert!(
        printed.contains("FATAL: mysql_drv_query() returned error 1146")
            && printed.contains("nowhere"),
        "{printed}"
    );
}

#[test]
fn a_killed_connection_is_made_again_when_its_error_is_ignored() {
    let Some((database, _turn)) = database("killed") else {
        return;
    };
    let text = r#"
        function thread_init() con = sysbench.sql.driver():connect(); prepare() ; n = 0 end
        function prepare() stmt = con:prepare("SELECT 1") end
        function event()
            n = n + 1
            if n == 3 then pcall(con.query, con, "KILL CONNECTION_ID()") end
            stmt:execute()
        end
        function sysbench.hooks.before_restart_event(err)
            assert(err.sql_errno == 2013 or err.sql_errno == 2006, err.sql_errno)
            prepare()
        end
    "#;
    let printed = Printed::default();
    let script = Script::from_text("killed.lua", text.as_bytes().to_vec());
    let mut settings = settings(&database, script, "run", &printed);
    settings.ignored_errors = IgnoredErrors::Codes(vec![2013, 2006, 1317, 1927]);
    let mut host = Host::load(settings).unwrap();
    host.set_options(&[]).unwrap();
    let counts = run(&mut host, load_of(20)).unwrap();
    assert_eq!(counts.events, 20);
    assert_eq!(counts.reconnects, 2, "{counts:?}");
}

#[test]
fn a_rate_is_kept_and_an_interval_is_a_difference() {
    let Some((database, _turn)) = database("rate") else {
        return;
    };
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('SELECT 1') end";
    let script = Script::from_text("rate.lua", text.as_bytes().to_vec());
    let mut host = host(&database, &script, "run", &[], &Printed::default());
    let settings = LoadSettings {
        time: Some(Duration::from_secs(2)),
        rate: Some(200.0),
        ..load_of(0)
    };
    let mut load = host.start(settings).unwrap();
    load.begin();
    assert!(!load.wait(Instant::now() + Duration::from_secs(1)));
    let half = load.counts();
    assert_eq!(half.running, CLIENTS);
    let whole = load.finish().unwrap();
    // A Poisson count of 400 has a standard deviation of 20.
    assert!((300..500).contains(&whole.events), "{}", whole.events);
    let rest = whole.since(&half);
    assert_eq!(rest.events + half.events, whole.events);
    assert_eq!(rest.latencies.len(), rest.events);
    assert_eq!(whole.reads, whole.events);
}

#[test]
fn a_script_is_a_workload_like_any_other() {
    let Some((database, _turn)) = database("workload") else {
        return;
    };
    if stock_scripts().is_empty() {
        return;
    }
    let workload = workloads::find("script").unwrap();
    let given = Parameters::from([
        ("script".to_owned(), "oltp_read_write".into()),
        ("threads".to_owned(), 3.into()),
        ("options.tables".to_owned(), 3.into()),
        ("options.table-size".to_owned(), 500.into()),
    ]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    assert_eq!(parameters["options.table_size"], 500);
    assert_eq!(parameters["options.point_selects"], 10);
    assert_eq!(
        parameters::resolve(workload, &parameters).unwrap(),
        parameters
    );

    let place = database.place(2);
    let filled = || -> Digest {
        fill(workload, &parameters, &place, 1, &FillWatch::default()).unwrap();
        digest(workload, &parameters, &place, &FillWatch::default()).unwrap()
    };
    let first = filled();
    assert_eq!(first.rows, 1500);
    let mut load = Load::start(1);
    let mut order = open_order(&database.address, "oltp-read-write", 3);
    workload.name().clone_into(&mut order.workload.name);
    order.user.clone_from(&database.credentials.user);
    order.password.clone_from(&database.credentials.password);
    order.database.clone_from(&database.name);
    order.workload.parameters.clone_from(&parameters);
    load.order(&Order::Open(order));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    for _ in 0..2 {
        let slice = load.slice(&slice_order(3, 0.5));
        let class = &slice.classes[0];
        assert!(class.ok > 0 && class.failed == 0, "{:?}", slice.errors);
        let each = class.statements as f64 / (class.ok + class.unfinished) as f64;
        assert!(
            (19.0..21.0).contains(&each) || class.retries > 0,
            "{each} statements per transaction"
        );
    }
    load.end();
    clear(workload, &parameters, &place).unwrap();
    assert!(contents(&database).is_empty());
    assert_eq!(filled(), first, "the same data every time");
}
