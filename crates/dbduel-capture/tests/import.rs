//! Logs imported into captures, and captures read again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use dbduel_capture::entry::{Entry, Lack, Sink};
use dbduel_capture::import::{ImportError, ImportOptions, ImportStage, import};
use dbduel_capture::logs::recognise::{HEAD_BYTES, recognise};
use dbduel_capture::logs::{LogFormat, LogOptions, LogProduct};
use dbduel_capture::show::{class_detail, left_out_classes, overview};
use dbduel_capture::store::read::{SentAs, Transaction, TransactionBegin, TransactionEnd};
use dbduel_capture::store::{Capture, StoreError};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

/// `log_line_prefix` of the samples of stderr logs.
fn prefix(name: &str) -> Option<&'static [u8]> {
    match name {
        _ if name.ends_with("stderr.log") => Some(b"%m [%p] %c %l %v %x %u@%d %a %h %e "),
        _ if name.contains("-mode-") => Some(b"%c:%l %x "),
        _ => None,
    }
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(samples()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// What a user says about a sample.
fn options(name: &str, logs: Vec<PathBuf>, target: PathBuf) -> ImportOptions {
    ImportOptions {
        logs,
        target,
        prefix: prefix(name).map(<[u8]>::to_vec),
        ..ImportOptions::default()
    }
}

struct Imported {
    dir: TempDir,
    capture: Capture,
}

impl Imported {
    fn of(options: impl FnOnce(PathBuf) -> ImportOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.cap");
        import(&options(target.clone()), &mut |_| Ok(())).unwrap();
        let capture = Capture::open(&target).unwrap();
        Imported { dir, capture }
    }

    fn sample(name: &str) -> Self {
        Self::of(|target| options(name, vec![samples().join(name)], target))
    }

    fn text(log: &str) -> Self {
        let source = tempfile::tempdir().unwrap();
        let path = source.path().join("log");
        fs::write(&path, log).unwrap();
        Self::of(|target| options("log", vec![path], target))
    }

    fn statement(&self, text: &str) -> usize {
        let found = (0..self.capture.statements())
            .find(|index| self.capture.text(*index) == Some(text.as_bytes()));
        found.unwrap_or_else(|| panic!("no `{text}`"))
    }

    fn transaction(&self, text: &str) -> Option<Transaction> {
        let statement = self.capture.statement(self.statement(text)).unwrap();
        let place = statement.transaction?;
        Some(self.capture.transaction(place).unwrap())
    }

    /// Begin, end and number of statements.
    fn extent(&self, text: &str) -> Option<(TransactionBegin, TransactionEnd, u32)> {
        let transaction = self.transaction(text)?;
        Some((transaction.begin, transaction.end, transaction.count))
    }
}

/// The order is a permutation by session in the order of the log, starts do not decrease within a session, transactions are within
/// their sessions, and statements name theirs.
fn check_consistency(name: &str, capture: &Capture) {
    let mut seen = vec![false; capture.statements()];
    let mut transactions = 0;
    for (number, session) in capture.sessions() {
        let statements: Vec<usize> = capture.ordered(session.first, session.count).collect();
        assert_eq!(statements.len(), session.count as usize, "{name}");
        assert!(statements.is_sorted(), "{name}");
        let mut last = i64::MIN;
        for index in statements {
            assert!(!seen[index], "{name}");
            seen[index] = true;
            let statement = capture.statement(index).unwrap();
            assert_eq!(statement.session, number, "{name}");
            if let Some(start) = statement.start {
                assert!(start >= last.max(0), "{name}");
                last = start;
            }
        }
        assert!(session.settings_prefix <= session.count, "{name}");
        transactions += session.transactions;
        let mut next = session.first;
        for place in session.first_transaction..session.first_transaction + session.transactions {
            let transaction = capture.transaction(place).unwrap();
            assert_eq!(transaction.session, number, "{name}");
            assert!(transaction.first >= next && transaction.count > 0, "{name}");
            next = transaction.first + transaction.count;
            for index in capture.ordered(transaction.first, transaction.count) {
                let statement = capture.statement(index).unwrap();
                assert_eq!(statement.transaction, Some(place), "{name}");
            }
        }
        assert!(next <= session.first + session.count, "{name}");
    }
    assert!(seen.into_iter().all(|seen| seen), "{name}");
    assert_eq!(
        u64::from(transactions),
        capture.manifest().counts.transactions,
        "{name}"
    );
    let statements: u64 = capture.classes().iter().map(|class| class.statements).sum();
    assert_eq!(statements, capture.statements() as u64, "{name}");
}

#[test]
fn every_sample_becomes_a_consistent_capture() {
    for name in names() {
        let imported = Imported::sample(&name);
        let capture = &imported.capture;
        check_consistency(&name, capture);
        capture.verify(&mut || Ok(())).unwrap();
        let mut reasons = capture.manifest().refusals.iter();
        let calls = reasons.find(|refusal| refusal.what.starts_with("calls the function"));
        assert_eq!(calls, None, "{name}: harmless functions are known");
        let overview = overview(capture, 5);
        assert!(overview.classes.len() <= 5);
        let share: f64 = overview.groups.iter().map(|group| group.share).sum();
        assert!((share - 1.0).abs() < 1e-9, "{name}: {share}");
        let entries = fs::read_dir(imported.dir.path()).unwrap();
        assert_eq!(entries.count(), 1, "{name}: files beside the capture");
    }
}

/// Counted by hand in the samples: statements, sessions, whole and ended ones, transactions, explicit ones.
#[test]
fn samples_have_the_counts_of_their_texts() {
    for (name, expected) in [
        ("general-mariadb-10.11.log", [36, 3, 3, 1, 22, 2]),
        ("slow-use-mysql-8.0.log", [12, 5, 0, 2, 11, 0]),
    ] {
        let imported = Imported::sample(name);
        let counts = &imported.capture.manifest().counts;
        let found = [
            counts.statements,
            counts.sessions,
            counts.whole_sessions,
            counts.ended_sessions,
            counts.transactions,
            counts.explicit_transactions,
        ];
        assert_eq!(found, expected, "{name}");
    }
}

/// A general log with one session that is open before it and one that begins in it.
const GENERAL: &str = "\
/usr/sbin/mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:
Tcp port: 0  Unix socket: SOCKET
Time                 Id Command    Argument
2026-11-28T00:00:01.000000Z\t    7 Query\tUPDATE t SET a = 1
2026-11-28T00:00:01.500000Z\t    7 Query\tCOMMIT
2026-11-28T00:00:02.000000Z\t    8 Connect\tapp@localhost on shop using Socket
2026-11-28T00:00:02.000100Z\t    8 Query\tSET NAMES utf8mb4
2026-11-28T00:00:02.000200Z\t    8 Query\tSELECT 1
2026-11-28T00:00:02.000300Z\t    8 Query\tBEGIN
2026-11-28T00:00:02.000400Z\t    8 Query\tINSERT INTO t VALUES (1)
2026-11-28T00:00:02.000500Z\t    8 Query\tROLLBACK
2026-11-28T00:00:02.000600Z\t    8 Query\tSET autocommit=0
2026-11-28T00:00:02.000700Z\t    8 Query\tINSERT INTO t VALUES (2)
2026-11-28T00:00:02.000800Z\t    8 Query\tCREATE TABLE u (a INT)
2026-11-28T00:00:02.000900Z\t    8 Query\tINSERT INTO t VALUES (3)
2026-11-28T00:00:02.001000Z\t    8 Query\tCOMMIT AND CHAIN
2026-11-28T00:00:02.001100Z\t    8 Query\tSELECT 2
2026-11-28T00:00:02.001200Z\t    8 Init DB\tother
2026-11-28T00:00:02.001300Z\t    8 Query\tUSE `my``shop`
2026-11-28T00:00:02.001400Z\t    8 Query\tSET GLOBAL max_connections = 5
2026-11-28T00:00:02.001500Z\t    8 Quit\t
";

#[test]
fn transactions_settings_and_default_databases_are_followed() {
    let imported = Imported::text(GENERAL);
    let capture = &imported.capture;
    check_consistency("general", capture);
    let manifest = capture.manifest();
    assert_eq!(manifest.log.product, LogProduct::Mysql);
    assert_eq!(manifest.counts.sessions, 2);
    assert_eq!(manifest.counts.whole_sessions, 1);
    assert_eq!(manifest.counts.ended_sessions, 1);
    use TransactionBegin::{Autocommit, BeforeLog, Explicit, Implied};
    use TransactionEnd::{Commit, ImplicitCommit, Rollback, SessionEnd};
    for (text, expected) in [
        ("UPDATE t SET a = 1", Some((BeforeLog, Commit, 2))),
        ("SET NAMES utf8mb4", None),
        ("SELECT 1", Some((Autocommit, Commit, 1))),
        ("BEGIN", Some((Explicit, Rollback, 3))),
        ("INSERT INTO t VALUES (1)", Some((Explicit, Rollback, 3))),
        ("SET autocommit=0", None),
        (
            "INSERT INTO t VALUES (2)",
            Some((Implied, ImplicitCommit, 1)),
        ),
        ("CREATE TABLE u (a INT)", Some((Autocommit, Commit, 1))),
        ("COMMIT AND CHAIN", Some((Implied, Commit, 2))),
        ("SELECT 2", Some((Explicit, SessionEnd, 4))),
    ] {
        assert_eq!(imported.extent(text), expected, "{text}");
    }
    let counts = &manifest.counts;
    assert_eq!(
        (
            counts.transactions,
            counts.explicit_transactions,
            counts.torn_transactions
        ),
        (7, 5, 1)
    );
    let (_, session) = capture
        .sessions()
        .find(|(_, session)| session.is_whole)
        .unwrap();
    assert_eq!(session.settings_prefix, 1);
    assert_eq!(
        (session.begin, session.end),
        (Some(1_000_000_000), Some(1_001_500_000))
    );
    let schema = |text: &str| {
        let statement = capture.statement(imported.statement(text)).unwrap();
        statement
            .schema
            .map(|place| manifest.schemas[place as usize].as_str())
    };
    assert_eq!(schema("UPDATE t SET a = 1"), None);
    assert_eq!(schema("SELECT 1"), Some("shop"));
    assert_eq!(schema("USE `my``shop`"), Some("other"));
    assert_eq!(schema("SET GLOBAL max_connections = 5"), Some("my`shop"));
    let request = capture.statement(imported.statement("other")).unwrap();
    assert_eq!(request.sent_as, SentAs::InitDb);
}

#[test]
fn autocommit_of_open_sessions_is_what_they_show() {
    use TransactionBegin::{Autocommit, BeforeLog, Explicit, Implied};
    use TransactionEnd::{Commit, ImplicitCommit, LogEnd};
    // What an open session sends, and the transactions that it makes.
    type Extent = (TransactionBegin, TransactionEnd, u32);
    let cases: [(&[&str], &[Extent]); 7] = [
        // No sign: each statement commits by itself.
        (&["SELECT 1", "SELECT 2"], &[(Autocommit, Commit, 1); 2]),
        (
            &["SELECT 1", "BEGIN", "SELECT 2", "COMMIT", "SELECT 3"],
            &[
                (Autocommit, Commit, 1),
                (Explicit, Commit, 3),
                (Autocommit, Commit, 1),
            ],
        ),
        // One end may be that of a BEGIN before the log.
        (
            &["SELECT 1", "COMMIT", "SELECT 2"],
            &[(BeforeLog, Commit, 2), (Autocommit, Commit, 1)],
        ),
        // A second one is not.
        (
            &["SELECT 1", "COMMIT", "SELECT 2", "COMMIT", "SELECT 3"],
            &[
                (BeforeLog, Commit, 2),
                (Implied, Commit, 2),
                (Implied, LogEnd, 1),
            ],
        ),
        (
            &[
                "SELECT 1", "BEGIN", "SELECT 2", "COMMIT", "SELECT 3", "ROLLBACK", "SELECT 4",
            ],
            &[
                (BeforeLog, ImplicitCommit, 1),
                (Explicit, Commit, 3),
                (Implied, TransactionEnd::Rollback, 2),
                (Implied, LogEnd, 1),
            ],
        ),
        // As a pool does when it takes a connection back, and when it gives one out.
        (
            &["SELECT 1", "SELECT 2", "SET autocommit=1", "SELECT 3"],
            &[(BeforeLog, ImplicitCommit, 3), (Autocommit, Commit, 1)],
        ),
        (
            &["SELECT 1", "SET autocommit=0", "SELECT 2", "COMMIT"],
            &[(Autocommit, Commit, 1), (Implied, Commit, 2)],
        ),
    ];
    for (texts, expected) in cases {
        let entries = texts.iter().enumerate().map(|(second, text)| {
            format!("2026-11-28T00:00:{second:02}.000000Z\t    7 Query\t{text}\n")
        });
        let imported = Imported::text(&entries.collect::<String>());
        let capture = &imported.capture;
        check_consistency("open session", capture);
        let count = capture.manifest().counts.transactions as u32;
        let found: Vec<_> = (0..count)
            .map(|place| capture.transaction(place).unwrap())
            .map(|transaction| (transaction.begin, transaction.end, transaction.count))
            .collect();
        assert_eq!(found, expected, "{texts:?}");
    }
}

/// MySQL 5.6 has the second in which a statement ends: `SELECT SLEEP(1.1)` seems to begin before the transactions that precede it.
#[test]
fn a_session_keeps_the_order_of_its_log() {
    use TransactionBegin::{Autocommit, Explicit};
    use TransactionEnd::{Commit, Rollback};
    let imported = Imported::sample("slow-mysql-5.6.log");
    for (text, expected) in [
        ("SELECT COUNT(*) FROM item", (Explicit, Commit, 3)),
        (
            "UPDATE item SET price = price + 1 WHERE id = 1",
            (Explicit, Rollback, 3),
        ),
        ("SELECT SLEEP(1.1)", (Autocommit, Commit, 1)),
    ] {
        assert_eq!(imported.extent(text), Some(expected), "{text}");
    }
    let capture = &imported.capture;
    let (before, sleep) = (
        imported.statement("SELECT 2"),
        imported.statement("SELECT SLEEP(1.1)"),
    );
    assert_eq!(capture.start(sleep), capture.start(before));
    let session = capture.statement(sleep).unwrap().session;
    let last = capture.session(session).unwrap().last.unwrap();
    let end = capture.start(sleep).unwrap() + 1_100_202_000;
    assert!(last >= end, "{last} {end}");
    assert!(capture.manifest().span.length_ns >= end as u64);
}

#[test]
fn a_commit_that_fails_ends_the_transaction_in_postgresql() {
    use TransactionBegin::Explicit;
    use TransactionEnd::{Aborted, Commit, Rollback};
    let lines = [
        "LOG:  statement: BEGIN",
        "LOG:  statement: INSERT INTO t VALUES (1)",
        "LOG:  statement: COMMIT",
        "ERROR:  could not serialize access due to read/write dependencies among transactions",
        "STATEMENT:  COMMIT",
        "LOG:  statement: BEGIN",
        "LOG:  statement: INSERT INTO t VALUES (2)",
        "LOG:  statement: INSERT INTO t VALUES (x); COMMIT",
        "ERROR:  column \"x\" does not exist",
        "STATEMENT:  INSERT INTO t VALUES (x); COMMIT",
        "LOG:  statement: ROLLBACK",
        "LOG:  statement: BEGIN",
        "LOG:  statement: INSERT INTO t VALUES (3)",
        "LOG:  statement: COMMIT; BEGIN",
        "LOG:  statement: INSERT INTO t VALUES (4)",
        "LOG:  statement: ROLLBACK; BEGIN",
        "LOG:  statement: INSERT INTO t VALUES (5)",
        "LOG:  statement: COMMIT",
    ];
    let log: String = lines
        .iter()
        .map(|line| format!("2026-11-28 00:00:01.000 UTC [7] {line}\n"))
        .collect();
    let imported = Imported::text(&log);
    check_consistency("postgresql", &imported.capture);
    for (text, expected) in [
        ("INSERT INTO t VALUES (1)", (Explicit, Aborted, 3)),
        ("INSERT INTO t VALUES (2)", (Explicit, Rollback, 4)),
        ("INSERT INTO t VALUES (3)", (Explicit, Commit, 3)),
        ("INSERT INTO t VALUES (4)", (Explicit, Rollback, 2)),
        ("INSERT INTO t VALUES (5)", (Explicit, Commit, 2)),
    ] {
        assert_eq!(imported.extent(text), Some(expected), "{text}");
    }
    assert_eq!(imported.capture.manifest().counts.transactions, 5);
}

#[test]
fn sessions_are_open_from_the_start_only_where_the_log_has_begins() {
    let open = |more: &str| {
        let log = format!(
            "2026-11-28T00:00:00.000000Z\t    7 Query\tSELECT 1\n{more}\
             2026-11-28T00:00:09.000000Z\t    8 Query\tSELECT 2\n\
             2026-11-28T00:00:09.500000Z\t    8 Quit\t\n\
             2026-11-28T00:00:10.000000Z\t    7 Query\tSELECT 3\n\
             2026-11-28T00:00:10.000000Z\t    7 Quit\t\n"
        );
        let imported = Imported::text(&log);
        let parts = overview(&imported.capture, 0).concurrency;
        [parts[0].open_sessions, parts[9].open_sessions]
    };
    assert_eq!(open(""), [1.0, 1.5]);
    let whole = "2026-11-28T00:00:05.000000Z\t    9 Connect\tapp@localhost on shop using Socket\n\
                 2026-11-28T00:00:05.000000Z\t    9 Query\tSELECT 4\n\
                 2026-11-28T00:00:05.000000Z\t    9 Quit\t\n";
    assert_eq!(open(whole), [2.0, 1.5]);
}

#[test]
fn what_is_not_replayed_is_counted_with_its_reason() {
    let imported = Imported::text(GENERAL);
    let capture = &imported.capture;
    let classes = left_out_classes(capture);
    let global = classes
        .iter()
        .find(|class| class.class.text.contains("global"));
    assert_eq!(global.unwrap().class.refused, 1);
    let refused: u64 = classes.iter().map(|class| class.class.refused).sum();
    assert_eq!(refused, capture.manifest().counts.refused);
    let overview = overview(capture, 100);
    let left_out: u64 = overview
        .left_out
        .iter()
        .map(|refusal| refusal.statements)
        .sum();
    assert_eq!(left_out, refused);
    assert!(!overview.is_by_time);
    assert!(capture.manifest().lacks.contains(&Lack::Durations));
    // The two inserts of one row are one class, whose examples have their lines.
    let id = &overview.classes[0].class.id;
    let detail = class_detail(capture, id).unwrap();
    assert_eq!(detail.share.class.statements, 3);
    assert!(detail.examples[0].position.ends_with(":10"), "{detail:?}");
    assert!(class_detail(capture, "").is_err());
    assert!(class_detail(capture, "zz").is_err());
}

#[test]
fn pieces_and_compressed_pieces_are_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = GENERAL.split_at(GENERAL.find("2026-11-28T00:00:02.0005").unwrap());
    let compressed = dir.path().join("log.1.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(first.as_bytes()).unwrap();
    fs::write(&compressed, encoder.finish().unwrap()).unwrap();
    let plain = dir.path().join("log");
    fs::write(&plain, second).unwrap();
    let pieces = Imported::of(|target| options("log", vec![compressed.clone(), plain], target));
    let whole = Imported::text(GENERAL);
    let (pieces, whole) = (&pieces.capture, &whole.capture);
    assert_eq!(pieces.statements(), whole.statements());
    for index in 0..whole.statements() {
        assert_eq!(pieces.statement(index), whole.statement(index));
    }
    assert_eq!(pieces.manifest().counts, whole.manifest().counts);
    let position = pieces.manifest().position(12);
    assert_eq!(position, format!("{}:2", dir.path().join("log").display()));
}

#[test]
fn an_import_that_fails_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.cap");
    let log = samples().join("general-mysql-8.0.log");
    let options = options("log", vec![log], target.clone());
    for stopped in [true, false] {
        let mut observe = |stage| match stage {
            ImportStage::Reading { .. } if stopped => Err(io::Error::other("stopped")),
            ImportStage::Reading { .. } => Ok(()),
            ImportStage::Ordering => Err(io::Error::other("stopped")),
        };
        let error = import(&options, &mut observe).unwrap_err();
        assert!(error.to_string().contains("stopped"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    // Not even an empty directory is replaced.
    fs::create_dir(&target).unwrap();
    let error = import(&options, &mut |_| Ok(())).unwrap_err();
    assert!(error.is_of_input() && error.to_string().contains("exists already"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(matches!(
        Capture::open(&target),
        Err(StoreError::NoCapture(_))
    ));
    assert!(Capture::open(&dir.path().join("none")).is_err());
}

#[test]
fn a_log_without_statements_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let header: String = GENERAL
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&path, header).unwrap();
    let options = options("log", vec![path], dir.path().join("a.cap"));
    let error = import(&options, &mut |_| Ok(())).unwrap_err();
    assert!(
        matches!(error, ImportError::NoStatements { lines: 3, .. }),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// All that can be asked of a capture.
fn read_all(capture: &Capture) {
    check_access(capture);
    let _ = overview(capture, 1000);
    let _ = left_out_classes(capture);
    for class in capture.classes().iter().take(3) {
        let _ = class_detail(capture, &class.id);
    }
}

fn check_access(capture: &Capture) {
    for index in 0..capture.statements() {
        let _ = capture.statement(index);
        let _ = capture.parameters(index).count();
    }
    for (_, session) in capture.sessions() {
        let _ = capture.ordered(session.first, session.count).count();
        let transactions = session.first_transaction..=u32::MAX;
        for place in transactions.take(session.transactions.min(100) as usize) {
            let _ = capture.transaction(place);
        }
    }
}

/// What a reader says about a log: statements, and parts that it does not understand.
#[derive(Debug, Default)]
struct Census {
    statements: u64,
    /// First line and number of lines.
    unreadable: Vec<(u64, u64)>,
    statement_lines: Vec<u64>,
}

impl Sink for Census {
    fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        if let Entry::Statement(statement) = entry {
            self.statements += 1;
            self.statement_lines.push(statement.line);
        }
        Ok(())
    }

    fn unreadable(&mut self, line: u64, lines: u64, _why: &str) {
        self.unreadable.push((line, lines));
    }

    fn lacks(&mut self, _lack: Lack) {}
}

/// Numbers that follow from a seed (Steele and others, "Fast Splittable Pseudorandom Number Generators").
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % limit.max(1)
    }
}

/// A log with some bytes changed, parts removed, repeated and taken from another log, and perhaps its end cut off.
fn mutated(seed: u64, logs: &[Vec<u8>], which: usize) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut log = logs[which].clone();
    for _ in 0..=numbers.below(8) {
        let at = numbers.below(log.len());
        let end = (at + 1 + numbers.below(200)).min(log.len());
        match numbers.below(6) {
            0 => log[at] = numbers.below(256) as u8,
            1 => log[at] = b"\n\t\"'\\;#`, 0"[numbers.below(11)],
            2 => drop(log.drain(at..end)),
            3 => {
                let part = log[at..end].to_vec();
                log.splice(at..at, part);
            }
            4 => {
                let other = &logs[numbers.below(logs.len())];
                let from = numbers.below(other.len());
                let to = (from + numbers.below(2000)).min(other.len());
                log.splice(at..at, other[from..to].iter().copied());
            }
            _ => log.truncate(log.len() - numbers.below(log.len() / 4)),
        }
        if log.is_empty() {
            log.push(b'x');
        }
    }
    log
}

/// No damage of a log panics; each part that is not understood is counted with lines of the log that are in no other part and are
/// the beginning of no statement; and the capture has the counts of the reader.
#[test]
fn damaged_logs_keep_their_counts() {
    const MUTATIONS: u64 = 2_000;
    /// Captures are synced to the disk, so that few are written.
    const WRITTEN_EVERY: u64 = 40;
    let names = names();
    let logs = names
        .iter()
        .map(|name| fs::read(samples().join(name)).unwrap());
    let logs: Vec<Vec<u8>> = logs.collect();
    let (mut read, mut damaged, mut written) = (0, 0, 0);
    for seed in 0..MUTATIONS {
        let which = seed as usize % names.len();
        let (name, log) = (&names[which], mutated(seed, &logs, which));
        let head = &log[..log.len().min(HEAD_BYTES)];
        let Ok(recognised) = recognise(head, None, prefix(name).is_some()) else {
            continue;
        };
        let options_of_log = LogOptions {
            line_prefix: prefix(name).map(<[u8]>::to_vec),
            ..LogOptions::default()
        };
        let mut census = Census::default();
        let result = recognised
            .format
            .read(&mut log.as_slice(), &options_of_log, &mut census);
        let lines = log.split_inclusive(|byte| *byte == b'\n').count() as u64;
        let mut parts = census.unreadable.clone();
        parts.sort_unstable();
        let sum: u64 = parts.iter().map(|(_, count)| count).sum();
        assert!(
            sum <= lines,
            "{name}, seed {seed}: {parts:?} of {lines} lines"
        );
        // In a stderr log lines of other programs may stand between those of a message.
        let is_contiguous = recognised.format != LogFormat::PostgresqlStderr;
        let length = |count: u64| if is_contiguous { count } else { 1 };
        let mut next = 1;
        for (line, count) in &parts {
            assert!(
                *line >= next && *count > 0,
                "{name}, seed {seed}: {parts:?}"
            );
            next = line + length(*count);
        }
        assert!(
            next <= lines + 1,
            "{name}, seed {seed}: {parts:?} of {lines} lines"
        );
        for line in &census.statement_lines {
            let is_in =
                |(first, count): &(u64, u64)| (*first..first + length(*count)).contains(line);
            assert!(
                !parts.iter().any(is_in),
                "{name}, seed {seed}: line {line}, {parts:?}"
            );
        }
        damaged += u64::from(!parts.is_empty());
        read += 1;
        if !seed.is_multiple_of(WRITTEN_EVERY) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, &log).unwrap();
        let target = dir.path().join("a.cap");
        let imported = import(&options(name, vec![path], target.clone()), &mut |_| Ok(()));
        assert_eq!(
            imported.is_ok(),
            result.is_ok() && census.statements > 0,
            "{name}, seed {seed}"
        );
        if let Ok(manifest) = imported {
            assert_eq!(
                manifest.counts.statements, census.statements,
                "{name}, seed {seed}"
            );
            assert_eq!(
                manifest.unreadable.parts,
                parts.len() as u64,
                "{name}, seed {seed}"
            );
            assert_eq!(manifest.unreadable.lines, sum, "{name}, seed {seed}");
            let capture = Capture::open(&target).unwrap();
            check_consistency(name, &capture);
            read_all(&capture);
            written += 1;
        }
    }
    // Most mutations leave a log that is one, and many a part that is none.
    assert!(
        read > 1_500 && damaged > 500 && written > 20,
        "{read} {damaged} {written}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_of_a_capture_panics(
        sample in prop::sample::select(vec!["slow-mysql-8.0.log", "pg15.csv"]),
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let imported = Imported::sample(sample);
        let dir = imported.dir.path().join("a.cap");
        let files = &imported.capture.manifest().files;
        let mut names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        names.push("capture.json");
        let path = dir.join(names[file.index(names.len())]);
        let before = fs::read(&path).unwrap();
        prop_assume!(!before.is_empty());
        let mut bytes = before.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Not in place: the capture that is open has the file mapped.
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        if let Ok(capture) = Capture::open(&dir) {
            read_all(&capture);
            let is_stored = !path.ends_with("capture.json") && bytes != before;
            prop_assert!(!is_stored || capture.verify(&mut || Ok(())).is_err());
        }
    }
}
