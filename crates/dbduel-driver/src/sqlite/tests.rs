use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::address::Address;
use crate::{ConnectOptions, Credentials, Dialect, ErrorClass, QueryError};

type Blocking = crate::Connection;

struct Database {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Database {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.sqlite");
        std::fs::write(&path, "").unwrap();
        Database {
            _directory: directory,
            path,
        }
    }

    fn open(&self, settings: &[(&str, &str)]) -> Result<Blocking, crate::ConnectError> {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let address = Address::File {
            path: self.path.as_path().into(),
            settings: Box::new(settings.collect()),
        };
        let options = ConnectOptions {
            dialect: Dialect::Sqlite,
            ..ConnectOptions::default()
        };
        Blocking::connect(&address, &Credentials::default(), &options)
    }
}

fn class(outcome: Result<Summary, QueryError>) -> Option<ErrorClass> {
    outcome.unwrap_err().class()
}

#[test]
fn values_come_back_as_text_and_bytes_that_are_text_are_text() {
    let database = Database::new();
    let mut connection = database.open(&[]).unwrap();
    connection
        .execute("CREATE TABLE t (a INTEGER, b TEXT, c BLOB, d REAL)")
        .unwrap();
    let statement = connection
        .prepare("INSERT INTO t VALUES (?, ?, ?, ?)")
        .unwrap();
    let rows = [
        [
            Value::Signed(-7),
            Value::Bytes(b"it's"),
            Value::Bytes(&[0xff, 0]),
            Value::Double(0.5),
        ],
        [
            Value::Unsigned(u64::MAX),
            Value::Text("x"),
            Value::Null,
            Value::Null,
        ],
    ];
    let summary = connection.execute_for_all(&statement, &[], rows).unwrap();
    assert_eq!(summary.affected_rows, 2);
    let answer = connection
        .query("SELECT *, typeof(b) FROM t ORDER BY a")
        .unwrap();
    assert_eq!(answer.columns, ["a", "b", "c", "d", "typeof(b)"]);
    let text = |row, column| answer.text(row, column);
    assert_eq!(text(0, 0).as_deref(), Some("-7"));
    assert_eq!(answer.rows[0][2].as_deref(), Some(&[0xff, 0][..]));
    assert_eq!(text(0, 3).as_deref(), Some("0.5"));
    assert_eq!(text(0, 4).as_deref(), Some("text"));
    assert_eq!(text(1, 2), None);
}

#[test]
fn what_a_statement_did_is_counted_as_on_servers() {
    let database = Database::new();
    let mut connection = database.open(&[]).unwrap();
    let created = connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    assert_eq!(created.unwrap().affected_rows, 0);
    let inserted = connection.execute("INSERT INTO t VALUES (1), (2)");
    assert_eq!(inserted.unwrap().affected_rows, 2);
    let begun = connection.execute("BEGIN IMMEDIATE");
    assert_eq!(begun.unwrap(), Summary::default());
    let selected = connection.execute("SELECT a FROM t").unwrap();
    assert_eq!((selected.rows, selected.result_sets), (2, 1));
    connection.execute("ROLLBACK").unwrap();
    // A client sends one after every error, whether a transaction is open or not.
    connection.execute("ROLLBACK").unwrap();
}

#[test]
fn errors_have_their_meaning_and_the_connection_stays_of_use() {
    let database = Database::new();
    let mut connection = database.open(&[]).unwrap();
    connection
        .execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        .unwrap();
    connection.execute("INSERT INTO t VALUES (1)").unwrap();
    let taken = connection.execute("INSERT INTO t VALUES (1)");
    assert_eq!(class(taken), Some(ErrorClass::DuplicateKey));
    let again = connection.execute("CREATE TABLE t (a)");
    assert_eq!(class(again), Some(ErrorClass::TableExists));
    let missing = connection.execute("SELECT * FROM nothing").unwrap_err();
    assert!(missing.to_string().contains("SQLITE_ERROR"), "{missing}");
    connection.execute("SELECT 1").unwrap();
}

#[test]
fn a_file_that_another_program_locks_says_what_to_do() {
    let database = Database::new();
    let mut connection = database.open(&[("busy_timeout", "1")]).unwrap();
    let other = rusqlite::Connection::open(&database.path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = connection.execute("CREATE TABLE t (a)").unwrap_err();
    assert_eq!(locked.class(), Some(ErrorClass::Conflict));
    assert!(locked.to_string().contains("another program"), "{locked}");
    other.execute_batch("COMMIT").unwrap();
    connection.execute("CREATE TABLE t (a)").unwrap();
}

#[test]
fn a_file_that_another_connection_writes_is_a_conflict_and_its_reader_must_not_write() {
    let database = Database::new();
    let settings = [("journal_mode", "wal"), ("busy_timeout", "1")];
    let mut one = database.open(&settings).unwrap();
    let mut other = database.open(&settings).unwrap();
    one.execute("CREATE TABLE t (a)").unwrap();
    one.execute("BEGIN IMMEDIATE").unwrap();
    one.execute("INSERT INTO t VALUES (1)").unwrap();
    // It waits in line, and its time is over before its turn comes.
    let late = other.execute("BEGIN IMMEDIATE").unwrap_err();
    assert_eq!(late.class(), Some(ErrorClass::Conflict));
    assert!(late.to_string().contains("`busy_timeout`"), "{late}");
    other.execute("BEGIN").unwrap();
    other.execute("SELECT * FROM t").unwrap();
    one.execute("COMMIT").unwrap();
    let outdated = other.execute("INSERT INTO t VALUES (2)").unwrap_err();
    assert!(
        outdated.to_string().contains("SQLITE_BUSY_SNAPSHOT"),
        "{outdated}"
    );
    other.execute("ROLLBACK").unwrap();
    other.execute("INSERT INTO t VALUES (2)").unwrap();
    // One that goes away in its transaction lets the next one through.
    one.execute("BEGIN IMMEDIATE").unwrap();
    drop(one);
    other.execute("INSERT INTO t VALUES (3)").unwrap();
}

#[test]
fn settings_are_read_back_and_shown_and_what_is_not_taken_is_refused() {
    let database = Database::new();
    let settings = [
        ("page_size", "8192"),
        ("journal_mode", "wal"),
        ("synchronous", "extra"),
        ("cache_size", "-4000"),
    ];
    let mut connection = database.open(&settings).unwrap();
    connection.execute("CREATE TABLE t (a)").unwrap();
    let shown = connection.query(crate::SQLITE_SHOW_SETTINGS).unwrap();
    let shown: BTreeMap<String, String> = (0..shown.rows.len())
        .map(|row| (shown.text(row, 0).unwrap(), shown.text(row, 1).unwrap()))
        .collect();
    for (name, value) in [
        ("page_size", "8192"),
        ("journal_mode", "wal"),
        ("synchronous", "3"),
        ("cache_size", "-4000"),
        ("busy_timeout", "5000"),
        ("sqlite_version", version()),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    // Contenders in one process would share their page caches.
    assert!(!shown["compile_options"].contains("MEMORY_MANAGEMENT"));
    let error = database.open(&[("page_size", "4096")]).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        why.contains("`8192`; it is fixed when the file is created"),
        "{why}"
    );
}

#[test]
fn what_is_no_database_is_refused() {
    let database = Database::new();
    std::fs::write(&database.path, "no database, but a text that is long enough for a header of one hundred bytes, which is read when a file is opened").unwrap();
    let error = database.open(&[("journal_mode", "wal")]).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("SQLITE_NOTADB"), "{why}");
    std::fs::remove_file(&database.path).unwrap();
    let error = database.open(&[]).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("there is no file"), "{why}");
}

#[test]
fn a_connection_whose_file_was_removed_is_unusable() {
    let database = Database::new();
    let mut connection = database.open(&[("journal_mode", "delete")]).unwrap();
    connection.execute("CREATE TABLE t (a)").unwrap();
    std::fs::remove_file(&database.path).unwrap();
    let error = connection.execute("INSERT INTO t VALUES (1)").unwrap_err();
    assert!(matches!(error, QueryError::Broken { .. }), "{error:?}");
}

/// Faults of the library that other versions have: the write-ahead log could be reset under a reader before 3.51.3.
#[test]
fn the_library_is_one_without_known_faults() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", version());
}

#[test]
fn a_statement_without_end_is_interrupted_at_its_deadline() {
    let database = Database::new();
    let address = Address::File {
        path: database.path.as_path().into(),
        settings: Box::default(),
    };
    let options = ConnectOptions {
        dialect: Dialect::Sqlite,
        statement_deadline: Duration::from_millis(200),
        ..ConnectOptions::default()
    };
    let mut connection = Blocking::connect(&address, &Credentials::default(), &options).unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let error = connection.query(endless).unwrap_err();
    let QueryError::Broken { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(
        source.to_string().contains("the deadline passed"),
        "{source}"
    );
}
