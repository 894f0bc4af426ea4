use std::collections::BTreeMap;
use std::sync::Arc;

use dbduel_client::random::Random;
use dbduel_record::captured::{MODE, TRACE};
use dbduel_testkit::captures::{CONNECT, Imported};

use super::tests::resolved;
use super::trace::SessionPart;
use super::trace_client::{NextPart, RunningQuantum};
use super::*;

/// A line of a general log: session, command, argument.
type Line<'a> = (u32, &'a str, &'a str);

/// Resolved parameters of a trace with a closed pace.
fn traced(imported: &Imported, per_slice: u32) -> Parameters {
    let mut parameters = resolved(imported, "transactions");
    parameters.insert(MODE.to_owned(), TRACE.into());
    parameters.insert(TRANSACTIONS_PER_SLICE.to_owned(), per_slice.into());
    parameters.insert(SPEED.to_owned(), 1.0.into());
    parameters
}

fn trace_of(imported: &Imported, per_slice: u32) -> Arc<Trace> {
    Trace::of(&traced(imported, per_slice)).unwrap()
}

/// Texts of the first statements of a part's transactions.
fn texts(trace: &Trace, part: &SessionPart) -> Vec<String> {
    let capture = trace.mix().capture();
    trace
        .mix()
        .transactions(&part.transactions)
        .iter()
        .map(|one| {
            let first = capture.ordered(one.first, 1).next().unwrap();
            String::from_utf8_lossy(capture.text(first).unwrap()).into_owned()
        })
        .collect()
}

/// Sessions 7 and 8 are open at once; 9 begins when both have ended.
const THREE: [Line<'_>; 17] = [
    (7, "Connect", CONNECT),
    (7, "Query", "SELECT 70 FROM t"),
    (8, "Connect", CONNECT),
    (8, "Query", "SELECT 80 FROM t"),
    (7, "Query", "SELECT 71 FROM t"),
    (7, "Query", "BEGIN"),
    (8, "Query", "SELECT 81 FROM t"),
    (7, "Query", "UPDATE t SET a = 2"),
    (7, "Query", "COMMIT"),
    (8, "Query", "SELECT 82 FROM t"),
    (7, "Quit", ""),
    (8, "Quit", ""),
    (9, "Connect", CONNECT),
    (9, "Query", "SELECT 90 FROM t"),
    (9, "Query", "SELECT 91 FROM t"),
    (9, "Query", "SELECT 92 FROM t"),
    (9, "Quit", ""),
];

#[test]
fn quanta_are_equal_and_keep_the_order_of_each_session() {
    let imported = Imported::general(&THREE);
    let trace = trace_of(&imported, 3);
    assert_eq!((trace.quanta(), trace.sessions_max()), (3, 2));
    let quanta: Vec<Vec<Vec<String>>> = (0..trace.quanta())
        .map(|quantum| {
            let parts = trace.parts(quantum).iter();
            parts.map(|part| texts(&trace, part)).collect()
        })
        .collect();
    let select = |numbers: &[u32]| -> Vec<String> {
        let numbers = numbers.iter();
        numbers
            .map(|number| format!("SELECT {number} FROM t"))
            .collect()
    };
    let begin = vec!["BEGIN".to_owned()];
    assert_eq!(
        quanta,
        [
            vec![select(&[70, 71]), select(&[80])],
            vec![begin, select(&[81, 82])],
            vec![select(&[90, 91, 92])]
        ]
    );
    assert!(trace.parts(3).is_empty());
    let shared = trace_of(&imported, 3);
    assert!(Arc::ptr_eq(&trace, &shared), "once per process");
}

#[test]
fn sessions_overlap_as_captured_and_later_ones_wait() {
    let imported = Imported::general(&THREE);
    // One quantum would hold all: the rest of the log makes two more.
    let mut lines = THREE.to_vec();
    let filler: Vec<String> = (0..18).map(|n| format!("SELECT {n} FROM u")).collect();
    lines.push((10, "Connect", CONNECT));
    lines.extend(filler.iter().map(|text| (10, "Query", text.as_str())));
    let all = Imported::general(&lines);
    let trace = trace_of(&all, 9);
    let parts = trace.parts(0);
    let mut running = RunningQuantum::default();
    running.begin(0, parts);
    assert_eq!(running.take(parts), NextPart::Begin(0));
    assert_eq!(running.take(parts), NextPart::Begin(1), "open at once");
    assert_eq!(running.take(parts), NextPart::Wait);
    running.end(1);
    running.begin(0, parts);
    assert_eq!(running.take(parts), NextPart::Wait, "begun only once");
    running.end(0);
    assert_eq!(running.take(parts), NextPart::Begin(2));
    assert_eq!(running.take(parts), NextPart::None);
    running.begin(1, trace.parts(1));
    assert_eq!(running.take(trace.parts(1)), NextPart::Begin(0));
    // A single client runs the sessions one after the other.
    let trace = trace_of(&imported, 3);
    let mut alone = RunningQuantum::default();
    alone.begin(0, trace.parts(0));
    for part in 0..2 {
        assert_eq!(alone.take(trace.parts(0)), NextPart::Begin(part));
        alone.end(part);
    }
    assert_eq!(alone.take(trace.parts(0)), NextPart::None);
}

/// A log of random sessions, some of them with times that go back.
fn random_log(random: &mut Random) -> String {
    let mut log = "mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n"
        .to_owned();
    let mut open: Vec<u32> = Vec::new();
    let mut next = 7;
    for line in 0..150 {
        let micros = 10 * line + random.below(25);
        let mut write = |session: u32, command: &str, argument: &str| {
            log +=
                &format!("2026-11-28T00:00:01.{micros:06}Z\t{session:5} {command}\t{argument}\n");
        };
        let chosen = random.below(8) as usize;
        match open.get(chosen) {
            None => {
                write(next, "Connect", CONNECT);
                open.push(next);
                next += 1;
            }
            Some(&session) if random.below(9) == 0 => {
                write(session, "Quit", "");
                open.remove(chosen);
            }
            Some(&session) => write(session, "Query", &format!("SELECT {line} FROM t")),
        }
    }
    log
}

#[test]
fn whatever_the_log_every_transaction_runs_once_in_its_quantum_and_no_client_waits_for_ever() {
    let mut random = Random::new(5);
    for _ in 0..40 {
        let imported = Imported::of(&random_log(&mut random), None);
        let trace = trace_of(&imported, 10);
        let clients = 1 + random.below(u64::from(trace.sessions_max())) as usize;
        let mut runs: BTreeMap<u32, u32> = BTreeMap::new();
        let mut sizes = Vec::new();
        let mut running = RunningQuantum::default();
        for quantum in 0..trace.quanta() {
            let parts = trace.parts(quantum);
            running.begin(quantum, parts);
            let mut held: Vec<Option<usize>> = vec![None; clients];
            let mut is_over = vec![false; clients];
            let mut idle = 0;
            while is_over.contains(&false) {
                let client = random.below(clients as u64) as usize;
                if let Some(part) = held[client].take() {
                    running.end(part);
                }
                match running.take(parts) {
                    NextPart::Begin(part) => {
                        for place in parts[part].transactions.clone() {
                            *runs.entry(place).or_default() += 1;
                        }
                        held[client] = Some(part);
                        idle = 0;
                    }
                    NextPart::Wait => idle += 1,
                    NextPart::None => is_over[client] = true,
                }
                assert!(idle < 1_000, "all clients wait");
            }
            let size: usize = parts.iter().map(|part| part.transactions.len()).sum();
            sizes.push(size);
        }
        let all = trace.mix().coverage().transactions as u32;
        assert!((0..all).all(|place| runs.get(&place) == Some(&1)));
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }
}

#[test]
fn transactions_are_due_at_their_captured_times() {
    let imported = Imported::general(&THREE);
    let trace = trace_of(&imported, 3);
    // Lines are a microsecond apart; the quantum's first transaction is in the second line of the log.
    let due = |quantum: u32| -> Vec<u64> {
        let parts = trace.parts(quantum).iter();
        let mut due: Vec<u64> = parts
            .flat_map(|part| part.transactions.clone())
            .map(|transaction| trace.since_begin_ns(quantum, transaction))
            .collect();
        due.sort_unstable();
        due
    };
    assert_eq!(due(0), [0, 2_000, 3_000]);
    assert_eq!(due(1), [0, 1_000, 4_000]);
    let mut open = traced(&imported, 3);
    open.insert(PACE.to_owned(), OPEN.into());
    open.insert(SPEED.to_owned(), 2.0.into());
    assert_eq!(longest_quantum_s(&open), Some(2e-6));
    assert!(
        order_claim(&open)
            .unwrap()
            .contains("at 2 × the captured rate")
    );
    let closed = traced(&imported, 3);
    assert_eq!(longest_quantum_s(&closed), None);
}

#[test]
fn a_trace_says_its_quanta_and_sessions() {
    let imported = Imported::general(&THREE);
    let parameters = traced(&imported, 3);
    assert_eq!(
        order_claim(&parameters).unwrap(),
        "The capture is run as a trace, in 3 quanta of 3 transactions each, with at most 2 sessions open at once; a session's next \
         transaction follows the previous one at once. At its end all contenders begin again with restored tables."
    );
    assert_eq!(
        (quanta(&parameters), sessions_max(&parameters)),
        (Some(3), Some(2))
    );
    let mix = resolved(&imported, "transactions");
    assert_eq!(quanta(&mix), None);
    assert_eq!(draws_per_pass(&parameters), None);
}

/// The parameter that is refused, and why.
#[track_caller]
fn check_refused(parameters: &Parameters, parameter: &str, part: &str) {
    let refused = check_trace(parameters).unwrap_err();
    assert_eq!(refused.parameter, parameter);
    assert!(refused.why.contains(part), "{}", refused.why);
}

#[test]
fn what_has_no_order_is_no_trace() {
    let imported = Imported::general(&THREE);
    check_refused(
        &traced(&imported, 4),
        TRANSACTIONS_PER_SLICE,
        "the trace has 9 transactions, and at least 3 slices must fit into it; set 3 at most",
    );
    let mut fast = traced(&imported, 3);
    fast.insert(SPEED.to_owned(), 2.0.into());
    check_refused(&fast, SPEED, "is for `pace = \"open\"`");
    let sample = "/usr/sbin/mysqld, Version: 8.0.33-25 (Percona Server (GPL)). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time                 Id Command    Argument\n\
         # Time: 2026-11-28T00:00:01.000000Z\n# User@Host: app[app] @ localhost []  Id:     7\n\
         # Schema: shop  Last_errno: 0  Killed: 0\n\
         # Query_time: 0.000100  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1  Rows_affected: 0  Bytes_sent: 5\n\
         # Log_slow_rate_type: query  Log_slow_rate_limit: 10\nSET timestamp=1795824001;\nSELECT 1 FROM t;\n";
    let sampled = Imported::of(sample, None);
    check_refused(&traced(&sampled, 1), CAPTURE, "the log is a sample");
    let coarse = "/usr/sbin/mysqld, Version: 10.11.19-MariaDB (MariaDB Server). started with:\nTcp port: 0  Unix socket: SOCKET\n\
         Time\t\t    Id Command\tArgument\n261128  0:00:01\t     7 Connect\tapp@localhost on shop using Socket\n\
         \t\t     7 Query\tSELECT 1 FROM t\n\t\t     7 Query\tSELECT 2 FROM t\n261128  0:00:02\t     7 Query\tSELECT 3 FROM t\n";
    let coarse = Imported::of(coarse, None);
    let mut open = traced(&coarse, 1);
    open.insert(PACE.to_owned(), OPEN.into());
    check_refused(&open, PACE, "the log has times to 1 s only");
    let trace = trace_of(&coarse, 1);
    let order: Vec<String> = (0..3)
        .flat_map(|quantum| texts(&trace, &trace.parts(quantum)[0]))
        .collect();
    assert_eq!(
        order,
        ["SELECT 1 FROM t", "SELECT 2 FROM t", "SELECT 3 FROM t"]
    );
}
