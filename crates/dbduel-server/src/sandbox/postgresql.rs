//! A real PostgreSQL server in a sandbox: started, frozen with busy clients, killed, stopped, found again.
//!
//! It is the machine's own; where there was none when they were built, these tests count as ignored.

use std::fs;
use std::thread;
use std::time::Duration;

use dbduel_driver::{ConnectOptions, Connection, Dialect};
use dbduel_machine::clock;
use dbduel_record::plan::Limits;
use dbduel_test_attribute::needs_program;
use nix::sys::signal::Signal;

use super::super::name::ServerName;
use super::super::process::{ProcessIdentity, poll_until, signal_one, tree};
use super::super::progress::Silent;
use super::super::{Build, Home, RefusedSetting, Setting, install, orphans};
use super::{DATABASE, Owner, RunningServer, Sandbox};

const LIMITS: Limits = Limits {
    server_start_s: 60.0,
    server_stop_s: 30.0,
    statement_s: 10.0,
    dataset_s: 60.0,
    transaction_retries: 0,
    server_restarts: 0,
    free_disk_bytes_min: 0,
    prove: None,
};
const WAIT: Duration = Duration::from_secs(20);

/// A home with the machine's PostgreSQL. Fails where it cannot be used: it may be gone since the tests were built, and root
/// must be allowed to make a user namespace.
#[track_caller]
fn installed() -> (tempfile::TempDir, Home, Build) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().join("home"));
    let name = ServerName::parse("installed:postgres").unwrap();
    let build = install::install(&name, &home, &Silent);
    let usable = build.and_then(|build| super::user_namespace::check().map(|()| build));
    match usable {
        Ok(build) => (folder, home, build),
        Err(why) => panic!("this machine's PostgreSQL cannot be used: {why:#}"),
    }
}

fn sandbox(home: &Home, build: &Build, name: &str) -> Sandbox {
    let settings = vec![Setting::new("shared_buffers", Some("16MB"))];
    let sandbox = Sandbox::create(home, "run", name, build.clone(), settings).unwrap();
    sandbox.initialise(home, &Silent).unwrap();
    sandbox
}

/// A client with a connection of its own, as the load has them.
fn connect(server: &RunningServer) -> Connection {
    let options = ConnectOptions {
        dialect: Dialect::PostgreSql,
        database: Some(DATABASE.to_owned()),
        ..ConnectOptions::default()
    };
    Connection::connect(&server.address(), &server.credentials(), &options).unwrap()
}

/// Clock ticks that the processes of a server took.
fn ticks(pid: i32) -> u64 {
    let of = |process: &ProcessIdentity| -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
        let fields: Vec<&str> = stat.split_ascii_whitespace().collect();
        let from_end = |back: usize| fields[fields.len() - back].parse::<u64>().unwrap_or(0);
        // Fields 14 and 15 of 52; the name in field 2 may hold spaces.
        from_end(39) + from_end(38)
    };
    tree(pid).iter().map(of).sum()
}

const SLOW: &str = "SELECT count(*) FROM generate_series(1, 400000) a WHERE sqrt(a) > 7";

/// Lets the server work until the clock ticks that its processes took are enough.
#[track_caller]
fn work_until(server: &RunningServer, client: &mut Connection, is_enough: impl Fn(u64) -> bool) {
    let is_done = (0..1_000).any(|_| {
        client.query(SLOW).unwrap();
        is_enough(ticks(server.pid()))
    });
    assert!(is_done, "{} ticks", ticks(server.pid()));
}

fn start(sandbox: &mut Sandbox) -> RunningServer {
    sandbox.start(&LIMITS).unwrap()
}

#[test]
#[needs_program("postgres")]
fn frozen_with_busy_clients_it_uses_no_processor_and_loses_no_connection() {
    let (_folder, home, build) = installed();
    let mut sandbox = sandbox(&home, &build, "first");
    let mut server = start(&mut sandbox);
    let run = |mut client: Connection, sql: &'static str| {
        thread::spawn(move || {
            client.query(sql).unwrap();
            client
        })
    };
    let mut clients: Vec<_> = (0..12).map(|_| run(connect(&server), SLOW)).collect();
    // Sessions begin while the server is being frozen.
    let (address, credentials) = (server.address(), server.credentials());
    let joining = thread::spawn(move || {
        let options = ConnectOptions {
            dialect: Dialect::PostgreSql,
            database: Some(DATABASE.to_owned()),
            ..ConnectOptions::default()
        };
        let connect = |_| Connection::connect(&address, &credentials, &options).unwrap();
        (0..20).map(connect).collect::<Vec<_>>()
    });
    // The kernel counts processor time in ticks, so it takes some work until there is one.
    let mut busy = connect(&server);
    work_until(&server, &mut busy, |ticks| ticks > 0);
    server.freeze().unwrap();
    let before = (ticks(server.pid()), tree(server.pid()));
    assert!(before.0 > 0 && before.1.len() > 12, "{before:?}");
    clock::sleep(Duration::from_millis(600));
    assert_eq!((ticks(server.pid()), tree(server.pid())), before);
    server.thaw().unwrap();
    clients.extend(
        joining
            .join()
            .unwrap()
            .into_iter()
            .map(|client| run(client, "SELECT 1")),
    );
    // Kept: what a process used that has ended is counted elsewhere.
    let mut clients: Vec<Connection> = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .collect();
    for client in &mut clients {
        client.query("SELECT 1").unwrap();
    }
    work_until(&server, &mut busy, |ticks| ticks > before.0);
    server.freeze().unwrap();
    let stopped = server.stop(WAIT).unwrap();
    assert!(!stopped.killed && stopped.status.success(), "{stopped:?}");
    assert_eq!(orphans::servers_in(&sandbox.folder), []);
}

#[test]
#[needs_program("postgres")]
fn it_starts_again_after_the_kill_of_a_backend_and_of_the_first_process_even_when_frozen() {
    let (_folder, home, build) = installed();
    let mut sandbox = sandbox(&home, &build, "first");
    let mut server = start(&mut sandbox);
    // Held open, so that its process is there to be killed.
    let mut connection = connect(&server);
    connection.query("CREATE TABLE t AS SELECT 1").unwrap();
    // A crash of one process ends the server instead of resetting it behind our back.
    let backends = tree(server.pid());
    signal_one(*backends.last().unwrap(), Signal::SIGKILL).unwrap();
    let ended = poll_until(clock::now() + WAIT, Duration::from_millis(10), || {
        server.ended().unwrap()
    });
    assert!(ended.is_some_and(|status| !status.success()));
    drop(connection);
    drop(server);

    let mut server = start(&mut sandbox);
    let _idle = connect(&server);
    server.freeze().unwrap();
    let frozen = tree(server.pid());
    signal_one(server.identity(), Signal::SIGKILL).unwrap();
    let ended = poll_until(clock::now() + WAIT, Duration::from_millis(10), || {
        server.ended().unwrap()
    });
    assert!(ended.is_some());
    assert!(
        frozen[1..].iter().any(ProcessIdentity::is_alive),
        "frozen processes outlive the first"
    );
    drop(server);
    assert!(!frozen.iter().any(ProcessIdentity::is_alive));

    let mut server = start(&mut sandbox);
    let rows = connect(&server).query("SELECT * FROM t").unwrap();
    assert_eq!(rows.text(0, 0).as_deref(), Some("1"));
    server.freeze().unwrap();
    // What a killed lab leaves: a frozen server whose owner is dead.
    let mut owner = Owner::load(&sandbox.folder).unwrap();
    owner.dbduel.start_ticks = 1;
    owner.save(&*sandbox.files, &sandbox.folder).unwrap();
    let processes = tree(server.pid());
    let found = orphans::sweep(&home, WAIT);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].end, orphans::End::Terminated);
    assert!(!processes.iter().any(ProcessIdentity::is_alive));
}

#[test]
#[needs_program("postgres")]
fn settings_are_checked_before_anything_is_made() {
    let (_folder, home, build) = installed();
    let refused = |name: &str, value: &str| -> String {
        let settings = vec![Setting::new(name, Some(value))];
        let checked = Sandbox::create(&home, "run", "first", build.clone(), settings)
            .and_then(|sandbox| sandbox.check_settings());
        match checked {
            Ok(_) => String::new(),
            Err(error) => error
                .downcast::<RefusedSetting>()
                .map_or_else(|other| panic!("{other:#}"), |refused| refused.to_string()),
        }
    };
    assert_eq!(refused("shared_buffers", "64MB"), "");
    assert_eq!(refused("data_checksums", "on"), "");
    assert!(refused("shared_bufers", "64MB").contains("did you mean `shared_buffers`?"));
    assert!(refused("shared_buffers", "64QB").contains("invalid value for parameter"));
    assert!(refused("full_page_writes", "maybe").contains("requires a Boolean value"));
    assert!(refused("data_directory", "/tmp").contains("private place"));
}
