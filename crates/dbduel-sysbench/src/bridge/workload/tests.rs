use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use dbduel_client::run::{Counts, IgnoredErrors, IntervalStats, Limits};
use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_driver::{Credentials, Dialect, Tls, TlsMode};
use dbduel_record::plan::Parameters;
use dbduel_wire::server::{Act, Answer, append_greeting};
use dbduel_wire::{Capabilities, Greeting, ServerError, Status};
use dbduel_workloads::{Workload, find, parameters};

use super::*;
use crate::bridge::bulk_insert::BulkInsert;

struct Bench {
    _folder: tempfile::TempDir,
    server: MockServer,
}

impl Bench {
    fn new(role: Role) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = MockServer::start(&folder.path().join("s.sock"), role).unwrap();
        Bench {
            _folder: folder,
            server,
        }
    }

    fn run_of(&self, workload: &'static dyn Workload, clients: u32) -> WorkloadRun {
        WorkloadRun {
            dialect: Dialect::MySql,
            workload,
            parameters: parameters::resolve(workload, &Parameters::new()).unwrap(),
            addresses: vec![self.server.address()],
            credentials: Credentials::new("anna".to_owned(), "s3cret".to_owned()),
            tls: Arc::new(Tls::new(TlsMode::Off)),
            database: "sbtest".to_owned(),
            clients,
            ignored: IgnoredErrors::Codes(vec![1213, 1020, 1205]),
            reconnect_every: 0,
            reconnecting: Duration::from_secs(20),
            statement_watch: None,
            seed: 1,
        }
    }
}

fn events(count: u64) -> Limits {
    Limits {
        events: Some(count),
        time: Some(Duration::from_secs(60)),
        per_second: None,
        warm_up: Duration::ZERO,
        seed: 1,
    }
}

/// Counts of the run, or the reason of its failure.
fn drive(run: WorkloadRun, limits: Limits) -> Result<(Counts, Vec<u64>), String> {
    drive_while(run, limits, || ())
}

/// As [`drive`]; `meanwhile` is done when the clients are connected, before they begin.
fn drive_while(
    run: WorkloadRun,
    limits: Limits,
    meanwhile: impl FnOnce(),
) -> Result<(Counts, Vec<u64>), String> {
    let (clients, threads) = (run.clients, 2);
    let gate = Arc::new(Gate::new(limits, clients));
    let metrics = Arc::new(RunMetrics::new(clients, threads));
    let loads = start(run, threads, &gate, &metrics).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    if gate.wait_until_ready(clients, deadline) {
        meanwhile();
        gate.open();
        loads.ring();
        let ended = gate.wait_until_finished(deadline);
        assert!(ended.is_some() || gate.has_failed(), "the run did not end");
    }
    if let Some(why) = gate.failure() {
        return Err(why);
    }
    let mut interval_stats = IntervalStats::default();
    metrics.take(&mut interval_stats);
    // An event that a lost connection has interrupted was begun once; at the end each client may have given one up.
    let given_up = gate.begun() - interval_stats.counts.events;
    assert!(
        given_up <= u64::from(clients),
        "{given_up} were begun and not done"
    );
    assert_eq!(gate.busy(), 0);
    let shares = metrics.shares().iter().map(|share| share.events).collect();
    Ok((interval_stats.counts, shares))
}

fn workload(name: &str) -> &'static dyn Workload {
    find(name).unwrap()
}

fn failing_once(code: u16, sqlstate: &[u8; 5]) -> Role {
    let act = |answer| Act {
        after: Duration::ZERO,
        answer,
    };
    let error = ServerError {
        code,
        sqlstate: *sqlstate,
        message: "told to".to_owned(),
    };
    let mut acts = vec![act(Answer::Error(error))];
    acts.extend(std::iter::repeat_n(act(Answer::Proper), 9));
    Role::Scripted(acts)
}

#[test]
fn the_number_of_events_is_exact_and_statements_are_counted_by_effect() {
    let bench = Bench::new(Role::Null);
    let mut have_all_a_share = false;
    // On a busy machine a thread may have done all before the other begins.
    for _ in 0..20 {
        let (counts, shares) =
            drive(bench.run_of(workload("oltp-read-only"), 5), events(1_000)).unwrap();
        assert_eq!(counts.events, 1_000);
        // The null server says of BEGIN and COMMIT that they changed a row.
        assert_eq!(
            (counts.reads, counts.writes, counts.others),
            (14_000, 2_000, 0)
        );
        assert_eq!(shares.iter().sum::<u64>(), 1_000);
        have_all_a_share = shares.iter().all(|events| *events > 0);
        if have_all_a_share {
            break;
        }
    }
    assert!(have_all_a_share);
}

#[test]
fn an_ignored_error_is_rolled_back_and_the_event_begun_again() {
    let bench = Bench::new(failing_once(1213, b"40001"));
    let (counts, _) = drive(bench.run_of(workload("oltp-point-select"), 1), events(40)).unwrap();
    assert_eq!((counts.events, counts.reads), (40, 40));
    assert!(counts.errors >= 4, "{counts:?}");
    let rollbacks = bench
        .server
        .heard()
        .iter()
        .filter(|sql| *sql == "ROLLBACK")
        .count();
    assert_eq!(rollbacks as u64, counts.errors);
    assert_eq!(counts.others, 0, "a rollback is no statement of the event");
}

#[test]
fn any_other_error_ends_the_run() {
    let bench = Bench::new(failing_once(1062, b"23000"));
    let run = bench.run_of(workload("oltp-point-select"), 3);
    let why = drive(run, events(40)).unwrap_err();
    assert!(
        why.contains("errno = 1062") && why.contains("23000"),
        "{why}"
    );
    assert!(!why.contains("s3cret"), "{why}");
    let all = WorkloadRun {
        ignored: IgnoredErrors::All,
        ..bench.run_of(workload("oltp-point-select"), 1)
    };
    assert!(drive(all, events(40)).unwrap().0.errors >= 4);
}

#[test]
fn a_lost_connection_ends_the_run_unless_it_is_ignored() {
    let close = Act {
        after: Duration::ZERO,
        answer: Answer::Close,
    };
    let proper = Act {
        after: Duration::ZERO,
        answer: Answer::Proper,
    };
    let acts = [vec![proper; 10], vec![close]].concat();
    let bench = Bench::new(Role::Scripted(acts));
    let run = bench.run_of(workload("oltp-point-select"), 1);
    let why = drive(run, events(40)).unwrap_err();
    assert!(why.contains("on socket"), "{why}");
    let listed = WorkloadRun {
        ignored: IgnoredErrors::Codes(vec![2013]),
        ..bench.run_of(workload("oltp-point-select"), 1)
    };
    let (counts, _) = drive(listed, events(40)).unwrap();
    assert_eq!(
        (counts.events, counts.reads, counts.reconnects),
        (40, 40, 3)
    );
}

/// A run that seeks lost connections for so many seconds, and its server, which goes away when the clients are connected,
/// with the folder of its socket.
fn deserted(reconnecting_s: u64) -> (WorkloadRun, tempfile::TempDir, MockServer) {
    let bench = Bench::new(Role::Null);
    let run = WorkloadRun {
        ignored: IgnoredErrors::Codes(vec![2013]),
        reconnecting: Duration::from_secs(reconnecting_s),
        ..bench.run_of(workload("oltp-point-select"), 2)
    };
    let Bench {
        _folder: folder,
        server,
    } = bench;
    (run, folder, server)
}

#[test]
fn a_server_that_accepts_and_says_nothing_does_not_hold_up_the_run() {
    let (run, folder, server) = deserted(2);
    let mut silent = None;
    let why = drive_while(run, events(40), || {
        drop(server);
        silent = Some(UnixListener::bind(folder.path().join("s.sock")).unwrap());
    });
    let why = why.unwrap_err();
    assert!(
        why.contains("on socket") && why.contains("no answer within 2 s"),
        "{why}"
    );
}

#[test]
fn a_connection_that_does_not_come_back_before_the_end_gives_its_event_up() {
    let (run, folder, server) = deserted(600);
    let limits = Limits {
        events: None,
        time: Some(Duration::from_millis(200)),
        ..events(0)
    };
    let (counts, _) = drive_while(run, limits, || drop(server)).unwrap();
    assert_eq!((counts.events, counts.reconnects), (0, 0));
    drop(folder);
}

/// The beginning of a session, with TLS on offer.
fn greet(stream: &mut UnixStream) {
    let mut greeting = Vec::new();
    append_greeting(
        &mut greeting,
        &Greeting {
            version_text: "8.4.0".to_owned(),
            connection_id: 1,
            capabilities: Capabilities(0x00FF_FFFF),
            collation: 255,
            status: Status::AUTOCOMMIT,
            auth_method: "mysql_native_password".to_owned(),
            challenge: b"abcdefghijklmnopqrst".to_vec(),
        },
    );
    let _ = stream.write_all(&greeting);
}

/// Offers TLS to a client and then goes away, as a server does that is being shut down.
fn leave_in_the_handshake(mut stream: UnixStream) {
    greet(&mut stream);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    // The request for TLS, and the beginning of the client's hello behind it.
    let _ = stream.read_exact(&mut [0; 36 + 5]);
}

#[test]
fn a_server_that_leaves_in_the_handshake_is_sought_like_one_that_left_before() {
    let (run, folder, server) = deserted(600);
    let run = WorkloadRun {
        tls: Arc::new(Tls::new(TlsMode::Preferred)),
        ..run
    };
    let limits = Limits {
        events: None,
        time: None,
        ..events(0)
    };
    let gate = Arc::new(Gate::new(limits, run.clients));
    let metrics = Arc::new(RunMetrics::new(run.clients, 2));
    let loads = start(run, 2, &gate, &metrics).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    assert!(gate.wait_until_ready(2, deadline));
    drop(server);
    let listener = UnixListener::bind(folder.path().join("s.sock")).unwrap();
    gate.open();
    loads.ring();
    listener.set_nonblocking(true).unwrap();
    // More often than there are clients: one has come again after it was left.
    let mut left = 0;
    while left < 3 && !gate.has_failed() && Instant::now() < deadline {
        match listener.accept() {
            Ok((client, _)) => {
                leave_in_the_handshake(client);
                left += 1;
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    drop(listener);
    gate.close();
    loads.ring();
    let ended = gate.wait_until_finished(deadline);
    assert_eq!(gate.failure(), None);
    assert_eq!(left, 3);
    assert!(ended.is_some(), "the run did not end");
    let mut interval_stats = IntervalStats::default();
    metrics.take(&mut interval_stats);
    assert_eq!(interval_stats.counts.reconnects, 0);
}

#[test]
fn a_server_that_accepts_and_says_nothing_does_not_hold_up_the_end() {
    for is_closed_by_hand in [false, true] {
        let (run, folder, server) = deserted(600);
        let limits = Limits {
            events: None,
            time: (!is_closed_by_hand).then_some(Duration::from_secs(1)),
            ..events(0)
        };
        let gate = Arc::new(Gate::new(limits, run.clients));
        let metrics = Arc::new(RunMetrics::new(run.clients, 2));
        let loads = start(run, 2, &gate, &metrics).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        assert!(gate.wait_until_ready(2, deadline));
        drop(server);
        let silent = UnixListener::bind(folder.path().join("s.sock")).unwrap();
        gate.open();
        loads.ring();
        // Both come again and wait for the greeting, unless the machine is so busy that the time is over before.
        silent.set_nonblocking(true).unwrap();
        let mut waiting = Vec::new();
        while waiting.len() < 2 && gate.running() > 0 && Instant::now() < deadline {
            match silent.accept() {
                Ok(client) => waiting.push(client),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        if is_closed_by_hand {
            gate.close();
            loads.ring();
        }
        let ended = gate.wait_until_finished(deadline);
        assert!(ended.is_some(), "the run did not end");
        assert_eq!(gate.failure(), None);
        drop(waiting);
    }
}

#[test]
fn a_client_connects_anew_after_so_many_events() {
    let bench = Bench::new(Role::Null);
    let run = WorkloadRun {
        reconnect_every: 5,
        ..bench.run_of(workload("oltp-point-select"), 1)
    };
    let (counts, _) = drive(run, events(100)).unwrap();
    assert_eq!((counts.events, counts.reconnects), (100, 20));
    assert_eq!(bench.server.connections(), 21);
}

#[test]
fn an_event_that_runs_at_the_end_of_the_time_is_finished_and_counted() {
    let slow = Act {
        after: Duration::from_millis(400),
        answer: Answer::Proper,
    };
    let bench = Bench::new(Role::Scripted(vec![slow]));
    let limits = Limits {
        events: None,
        time: Some(Duration::from_millis(200)),
        ..events(0)
    };
    // Each client begins one event, unless the machine is so busy that the time is over before.
    let mut counted = Vec::new();
    while counted.last() != Some(&3) && counted.len() < 50 {
        let run = bench.run_of(workload("oltp-point-select"), 3);
        let gate = Arc::new(Gate::new(limits, run.clients));
        let metrics = Arc::new(RunMetrics::new(run.clients, 2));
        let loads = start(run, 2, &gate, &metrics).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        assert!(gate.wait_until_ready(3, deadline));
        gate.open();
        loads.ring();
        assert!(gate.wait_until_finished(deadline).is_some());
        let mut interval_stats = IntervalStats::default();
        metrics.take(&mut interval_stats);
        assert_eq!(interval_stats.counts.events, gate.begun());
        counted.push(gate.begun());
    }
    assert_eq!(counted.last(), Some(&3), "{counted:?}");
}

#[test]
fn rows_that_were_kept_back_are_sent_at_the_end() {
    let bench = Bench::new(Role::Scripted(Vec::new()));
    let (counts, _) = drive(bench.run_of(&BulkInsert, 2), events(60_000)).unwrap();
    assert_eq!(counts.events, 60_000);
    let heard = bench.server.heard();
    assert!(heard.len() >= 2, "{}", heard.len());
    assert!(heard.iter().all(|sql| sql.len() <= 512 << 10));
    let rows: usize = heard.iter().map(|sql| sql.matches("),(").count() + 1).sum();
    assert_eq!(rows, 60_000);
    assert!(
        heard
            .iter()
            .any(|sql| sql.starts_with("INSERT INTO sbtest1 VALUES (1,1),(2,2)"))
    );
}

/// Refuses the login of a client with an error.
fn refuse_login(listener: &UnixListener, code: u16) {
    let (mut stream, _) = listener.accept().unwrap();
    greet(&mut stream);
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    let [low, middle, high, number] = header;
    let mut login = vec![0; u32::from_le_bytes([low, middle, high, 0]) as usize];
    stream.read_exact(&mut login).unwrap();
    let error = [&[0xff][..], &code.to_le_bytes()[..], &b"#28000no"[..]].concat();
    let header = [error.len() as u8, 0, 0, number + 1];
    stream
        .write_all(&[&header[..], &error[..]].concat())
        .unwrap();
}

#[test]
fn a_refused_login_without_tls_suggests_tls() {
    for (code, advice) in [
        (1045, "may also require TLS, see --mysql-ssl"),
        (3159, "give --mysql-ssl=on"),
    ] {
        let bench = Bench::new(Role::Null);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refusing.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let run = WorkloadRun {
            addresses: vec![Address::Unix { path }],
            ..bench.run_of(workload("oltp-point-select"), 1)
        };
        let server = std::thread::spawn(move || refuse_login(&listener, code));
        let why = drive(run, events(1)).unwrap_err();
        server.join().unwrap();
        assert!(
            why.contains(&code.to_string()) && why.ends_with(advice),
            "{why}"
        );
    }
}

#[test]
fn a_limit_of_prepared_statements_is_compared_with_the_number_needed() {
    let bench = Bench::new(Role::Null);
    let workload = workload("oltp-read-write");
    let tables = Parameters::from([("tables".to_owned(), 2_000.into())]);
    let run = WorkloadRun {
        parameters: parameters::resolve(workload, &tables).unwrap(),
        ..bench.run_of(workload, 2)
    };
    let why = drive(run, events(1)).unwrap_err();
    // BEGIN, COMMIT and nine statements on each table, of two clients.
    assert!(
        why.contains("1461") && why.contains("prepare up to 36004;"),
        "{why}"
    );
    assert!(
        why.contains("--db-ps-mode=disable") && !why.contains("loaded"),
        "{why}"
    );
}

#[test]
fn a_server_that_is_not_there_is_said_before_the_run_begins() {
    let bench = Bench::new(Role::Null);
    let nowhere = WorkloadRun {
        addresses: vec![Address::Unix {
            path: "/nonexistent/s.sock".into(),
        }],
        ..bench.run_of(workload("oltp-point-select"), 2)
    };
    let why = drive(nowhere, events(1)).unwrap_err();
    assert!(why.contains("on socket '/nonexistent/s.sock'"), "{why}");
}
