//! Clients of scripts whose server is gone when the time of their run is over: they are given up, and hold up nobody.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use dbduel_client::run::{IgnoredErrors, IntervalStats};
use dbduel_driver::address::Address;
use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_lua::{Host, Script, Settings};
use dbduel_testkit::mock::mock;

use crate::support::{Printed, Size, alone, load_of, ready, run};

/// A script whose connections go to these addresses in turns.
fn settings(text: &str, addresses: Vec<Address>) -> Settings {
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    let mut settings = alone(script, "run", &Printed::default());
    settings.servers.addresses = addresses;
    settings
}

/// One client, until the time is over, or until it is told to end.
fn one_for(time: Option<Duration>) -> Size {
    let mut size = load_of(0);
    size.clients = 1;
    size.limits.events = None;
    size.limits.time = time;
    size
}

fn socket(path: &Path) -> Address {
    Address::Unix {
        path: path.to_owned(),
    }
}

#[test]
fn a_connection_that_is_never_answered_does_not_outlast_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mute.sock");
    let _mute = UnixListener::bind(&path).unwrap();
    let (_directory, server) = mock(Role::Null);
    let first = "function thread_init() con = sysbench.sql.driver():connect() end\n";
    let attempts = [
        "function event() sysbench.sql.driver():connect() end",
        "function event() con:reconnect() end",
    ];
    for attempt in attempts {
        let addresses = vec![server.address(), socket(&path)];
        let mut host = Host::load(settings(&format!("{first}{attempt}"), addresses)).unwrap();
        let done = run(&mut host, one_for(Some(Duration::from_millis(300)))).unwrap();
        assert_eq!(done.interval_stats.counts.events, 0, "{attempt}");
    }
}

/// Waits until somebody connects to this socket, and hangs up.
fn accept_one(path: &Path) {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    while listener.accept().is_err() {
        assert!(
            began.elapsed() < dbduel_testkit::mock::PROMPT,
            "no client connects"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Begins a run and takes the server away once events have been counted. When the client has noticed, the run is ended by
/// order. Returns what was counted since the first events.
fn run_without_server(text: &str) -> IntervalStats {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let server = MockServer::start(&path, Role::Null).unwrap();
    let mut settings = settings(text, vec![server.address()]);
    settings.ignored_errors = IgnoredErrors::Codes(vec![2006, 2013]);
    let mut host = Host::load(settings).unwrap();
    let load = ready(&mut host, one_for(None)).unwrap();
    load.begin();
    let began = Instant::now();
    while load.look().counts.events == 0 {
        assert!(
            began.elapsed() < dbduel_testkit::mock::PROMPT,
            "no event ends"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(server);
    accept_one(&path);
    load.close();
    load.finish().unwrap().interval_stats
}

#[test]
fn a_script_that_never_stops_connecting_is_given_up() {
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() while not pcall(con.reconnect, con) do os.execute('sleep 0.01') end end";
    run_without_server(text);
}

#[test]
fn a_lost_connection_whose_error_is_ignored_is_not_asked_for_long_after_the_end() {
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('SELECT 1') end";
    assert_eq!(run_without_server(text).counts.errors, 1);
}
