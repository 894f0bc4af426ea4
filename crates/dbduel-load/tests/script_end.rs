//! Clients of scripts whose server is gone when the time of their run is over: they are given up, and hold up nobody.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use dbduel_load::address::Address;
use dbduel_load::lua::{Host, Script, Settings};
use dbduel_load::run::{IgnoredErrors, Stretch};
use dbduel_load::stand_in::Role;
use support::script::{Printed, Size, alone, load_of, ready, run};
use support::stand_in;

/// A script whose connections go to these addresses in turns.
fn settings(text: &str, addresses: Vec<Address>) -> Settings {
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    let mut settings = alone(script, "run", &Printed::default());
    settings.servers.addresses = addresses;
    settings
}

/// One client, until the time is over.
fn one_for(time: Duration) -> Size {
    let mut size = load_of(0);
    size.clients = 1;
    size.limits.events = None;
    size.limits.time = Some(time);
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
    let (_directory, server) = stand_in(Role::Null);
    let first = "function thread_init() con = sysbench.sql.driver():connect() end\n";
    let attempts = [
        "function event() sysbench.sql.driver():connect() end",
        "function event() con:reconnect() end",
    ];
    for attempt in attempts {
        let addresses = vec![server.address(), socket(&path)];
        let mut host = Host::load(settings(&format!("{first}{attempt}"), addresses)).unwrap();
        let done = run(&mut host, one_for(Duration::from_millis(300))).unwrap();
        assert_eq!(done.stretch.counts.events, 0, "{attempt}");
    }
}

/// Begins a run, takes the server away once events have been counted, and waits for the end.
fn run_without_server(text: &str) -> Stretch {
    let (_directory, server) = stand_in(Role::Null);
    let mut settings = settings(text, vec![server.address()]);
    settings.ignored_errors = IgnoredErrors::Codes(vec![2006, 2013]);
    let mut host = Host::load(settings).unwrap();
    let load = ready(&mut host, one_for(Duration::from_secs(2))).unwrap();
    load.begin();
    let began = Instant::now();
    while load.look().counts.events == 0 && began.elapsed() < support::PROMPT {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(server);
    load.finish().unwrap().stretch
}

#[test]
fn a_script_that_never_stops_connecting_is_given_up() {
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() while not pcall(con.reconnect, con) do os.execute('sleep 0.01') end end";
    run_without_server(text);
}

#[test]
fn a_lost_connection_whose_error_is_ignored_is_not_made_again_after_the_end() {
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                function event() con:query('SELECT 1') end";
    assert_eq!(run_without_server(text).counts.errors, 1);
}
