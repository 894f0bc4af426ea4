//! Servers whose sessions begin otherwise than ours: statements of ours mean the same there.
//!
//! The hostile defaults are those that a server, an account or `init_connect` gives a session: statements that are not committed
//! by themselves, rows that are cut off, names in double quotes, connections that end with their transaction.

use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use dbduel_driver::address::Address;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, SessionStart};
use dbduel_record::event::Event;
use dbduel_workloads::{WORKLOADS, Workload};
use serde_json::Value;

use super::bare_server::BareServer;
use super::lab::{Lab, SHORT_SCHEDULE, assert_verified, program};
use super::on_postgresql::cluster;
use super::on_server::database::Database;
use super::on_server::server::{ALL, Server};

/// Options by which MySQL and MariaDB begin sessions in another way.
const OPTIONS: &[&str] = &[
    "--skip-networking",
    "--autocommit=0",
    "--completion-type=RELEASE",
    "--transaction-isolation=SERIALIZABLE",
    "--character-set-server=latin1",
    "--local-infile=1",
];

/// What can be set for all new sessions of a server that runs.
const GLOBALS: &[&str] = &[
    "sql_select_limit = 1",
    "sql_safe_updates = 1",
    "wait_timeout = 1",
];

/// The modes that change what statements mean, in the order in which MySQL and MariaDB know them.
const MODES: &str = "ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,\
    NO_UNSIGNED_SUBTRACTION,REAL_AS_FLOAT";

/// Of the accounts of tests.
const PASSWORD: &str = "secret";

/// Small tables, by the parameters that workloads have for their size.
const SMALL: &[(&str, &str)] = &[
    ("tables", "2"),
    ("table_size", "2000"),
    ("maxid1", "2001"),
    ("rows", "2001"),
    ("scale", "0.02"),
    ("warehouses", "1"),
];

/// `load` and `check` of every workload that has statements for the server, each from nothing.
fn check_all(dialect: Dialect, address: &str) -> usize {
    let speaks = |workload: &&&dyn Workload| workload.speaks(dialect);
    let workloads: Vec<_> = WORKLOADS.iter().filter(speaks).collect();
    for workload in &workloads {
        let name = workload.name();
        let known = |parameter: &str| {
            let mut specs = workload.parameters().into_iter();
            specs.any(|spec| spec.name == parameter)
        };
        let set: Vec<String> = SMALL
            .iter()
            .filter(|(parameter, _)| known(parameter))
            .map(|(parameter, value)| format!("{parameter}={value}"))
            .collect();
        let database = database();
        let run = |verb: &str, more: &[&str]| {
            let mut command = program();
            command
                .args([verb, "--server", address, "--workload", name])
                .args(["--database", &database])
                .args(more)
                .arg("--set")
                .args(&set);
            command.env("DBDUEL_PASSWORD", PASSWORD).output().unwrap()
        };
        let load = ["--prepare", "--duration", "1 s", "--warm-up", "0 s"];
        succeeded(name, &run("load", &load));
        succeeded(name, &run("check", &[]));
        let last = ["--cleanup", "--duration", "500 ms", "--warm-up", "0 s"];
        succeeded(name, &run("load", &last));
    }
    workloads.len()
}

/// A name that no other workload of a test has.
fn database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("hostile {}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[track_caller]
fn succeeded(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{what}: {said}\n{shown}");
}

/// A server whose sessions begin with all of these, and the address of an account for which `init_connect` is run.
fn hostile(name: &str, modes: &str, limit: &str) -> (BareServer, String) {
    let options: Vec<String> = OPTIONS.iter().map(|&option| option.to_owned()).collect();
    let server = BareServer::start_with(name, &options);
    server.query(&format!(
        "CREATE USER plain@localhost IDENTIFIED BY '{PASSWORD}'"
    ));
    for rights in ["ALL ON `hostile%`.*", "PROCESS ON *.*"] {
        server.query(&format!("GRANT {rights} TO plain@localhost"));
    }
    let globals = GLOBALS.iter().map(|&global| global.to_owned());
    let own = format!("SET NAMES latin1, SESSION sql_mode = ''{modes}'', SESSION autocommit = 0");
    for global in globals.chain([
        limit.to_owned(),
        format!("sql_mode = '{modes}'"),
        format!("init_connect = '{own}'"),
    ]) {
        server.query(&format!("SET GLOBAL {global}"));
    }
    let address = format!("unix://plain@{}", server.socket().display());
    (server, address)
}

#[test(lab, needs = &["mariadb-10.11"])]
fn every_workload_runs_on_a_mariadb_whose_sessions_begin_otherwise() {
    let modes = format!("ORACLE,EMPTY_STRING_IS_NULL,{MODES}");
    let (_server, address) = hostile("mariadb-10.11", &modes, "max_statement_time = 0.001");
    assert_eq!(check_all(Dialect::MySql, &address), 15);
}

#[test(lab, needs = &["mysql-9.7"])]
fn every_workload_runs_on_a_mysql_whose_sessions_begin_otherwise() {
    let (_server, address) = hostile("mysql-9.7", MODES, "max_execution_time = 1");
    assert_eq!(check_all(Dialect::MySql, &address), 15);
}

#[test(needs = &["mariadb-10.11"])]
fn sessions_of_a_capture_keep_the_modes_that_decide_what_its_statements_do() {
    let options = [
        "--skip-networking",
        "--sql-mode=ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES",
    ];
    let server = BareServer::start_with("mariadb-10.11", &options.map(str::to_owned));
    let answer = |session| {
        let options = ConnectOptions {
            session,
            ..ConnectOptions::default()
        };
        let address = Address::Unix {
            path: server.socket(),
        };
        let root = Credentials::new("root".to_owned(), String::new());
        let mut connection = Connection::connect(&address, &root, &options).unwrap();
        let answer = connection.query(r#"SELECT 'a' || "\"b""#).unwrap();
        answer.text(0, 0).unwrap()
    };
    assert_eq!(answer(SessionStart::Captured), "a\"b");
    assert_eq!(answer(SessionStart::Measured), "0");
}

/// What PostgreSQL gives the sessions of an account. The timeouts leave a client the time for its first statement.
const OF_ROLE: &[&str] = &[
    "standard_conforming_strings = off",
    "bytea_output = 'escape'",
    "datestyle = 'SQL, DMY'",
    "intervalstyle = 'sql_standard'",
    "timezone = 'Asia/Kathmandu'",
    "search_path = 'nowhere'",
    "default_transaction_read_only = on",
    "default_transaction_isolation = 'serializable'",
    "synchronous_commit = off",
    "statement_timeout = '200ms'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '200ms'",
];

#[test(lab)]
fn every_workload_runs_on_a_postgresql_whose_sessions_begin_otherwise() {
    let Some(cluster) = cluster::shared() else {
        return;
    };
    let mut connection = cluster.connect("postgres").unwrap();
    let created = format!("CREATE ROLE otherwise LOGIN CREATEDB PASSWORD '{PASSWORD}'");
    connection.execute(&created).unwrap();
    let is_new = connection
        .query("SELECT 1 FROM pg_settings WHERE name = 'idle_session_timeout'")
        .unwrap();
    let idle = (!is_new.rows.is_empty()).then_some("idle_session_timeout = '200ms'");
    for setting in OF_ROLE.iter().copied().chain(idle) {
        let sql = format!("ALTER ROLE otherwise SET {setting}");
        connection.execute(&sql).unwrap();
    }
    let (folder, port) = cluster.folder_and_port();
    let address = format!("postgresql://otherwise@{}:{port}", folder.display());
    assert_eq!(check_all(Dialect::PostgreSql, &address), 15);
}

/// A contest of servers that begin sessions with these settings. With one client, as serializable transactions are in each other's
/// way.
fn check_contest(server: &str, settings: &str, workload: &str) {
    let lab = Lab::new(&format!(
        "budget = \"8 s\"\nhorizon = \"25 %\"\nseed = 7\n\
         [contenders.first]\nserver = \"{server}\"\nsettings = {{ {settings} }}\n[contenders.second]\nlike = \"first\"\n\
         [workload]\n{workload}\n[load]\nclients = 1\n[schedule]\n{SHORT_SCHEDULE}"
    ));
    lab.run_to_the_end();
    assert_verified(&lab.record_dir());
    let record = lab.record();
    assert!(record.slices.iter().all(|row| row.failed == 0), "{server}");
    // What was asked for is what the record says that the server is set to.
    let missed = record.events.iter().find_map(|event| match &event.what {
        Event::Noticed { notice } if notice.rule == "server.setting-not-in-effect" => {
            Some(notice.claim.clone())
        }
        _ => None,
    });
    assert_eq!(missed, None);
}

/// Settings of contenders, with which the sessions of the lab begin as well.
const MARIADB: &str = "autocommit = 0, completion_type = 2, max_statement_time = 0.05, \
    sql_mode = \"ORACLE,NO_BACKSLASH_ESCAPES\", transaction_isolation = \"SERIALIZABLE\", innodb_buffer_pool_size = \"32M\"";

#[test(lab, needs = &["mariadb-10.11"])]
fn contests_run_on_a_mariadb_whose_sessions_begin_otherwise() {
    for workload in CONTESTS {
        check_contest("mariadb-10.11", MARIADB, workload);
    }
}

/// The same of PostgreSQL.
const POSTGRESQL: &str = "standard_conforming_strings = \"off\", bytea_output = \"escape\", DateStyle = \"SQL, DMY\", \
    default_transaction_read_only = \"on\", default_transaction_isolation = \"serializable\", statement_timeout = \"300ms\", \
    idle_in_transaction_session_timeout = \"300ms\", idle_session_timeout = \"300ms\", TimeZone = \"Asia/Kathmandu\"";

#[test(lab, needs = &["postgresql-16"])]
fn contests_run_on_a_postgresql_whose_sessions_begin_otherwise() {
    for workload in CONTESTS {
        check_contest("postgresql-16", POSTGRESQL, workload);
    }
}

/// With bytes, with amounts and dates, and plain.
const CONTESTS: [&str; 3] = [
    "name = \"linkbench\"\nmaxid1 = 2_001",
    "name = \"order-entry\"\nwarehouses = 1\nscale = 0.02",
    "name = \"oltp-read-write\"\ntables = 2\ntable_size = 2_000",
];

/// A load whose tables are another workload's ends with an error although transactions were committed.
#[test(on = ALL)]
fn a_load_with_refused_statements_is_no_success(server: &Server) {
    let database = Database::create(server, "refused");
    let address = database.address.to_string();
    let load = |more: &[&str]| {
        let mut command = program();
        command
            .args(["load", "--server", &address, "--database", &database.name])
            .args([
                "--workload",
                "oltp-insert",
                "--duration",
                "1 s",
                "--warm-up",
                "0 s",
            ])
            .args(["--set", "table_size=100"])
            .args(more);
        command.output().unwrap()
    };
    succeeded("prepared", &load(&["--prepare"]));
    let name = &database.name;
    database.run(&format!(
        "CREATE TRIGGER {name}.refusing BEFORE INSERT ON {name}.sbtest1 FOR EACH ROW \
         BEGIN IF RAND() < 0.3 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF; END"
    ));
    let output = load(&["--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1644") && said.contains("refused"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["total"]["ok"].as_u64() > Some(0), "{document}");
    assert_eq!(document["refused"][0]["code"], "1644", "{document}");
}
