//! The blocking connection: logins, statements, loading, and a server that ends it.

use std::time::Duration;

use dbduel_driver::{ConnectOptions, Connection, Credentials, ErrorClass, QueryError};

use super::cluster::{options, shared};

#[test]
fn every_kind_of_password_lets_its_account_in_and_no_wrong_one() {
    let Some(cluster) = shared() else { return };
    let mut connection = cluster.connect("postgres").unwrap();
    for sql in [
        "DROP ROLE IF EXISTS trusting, hashed, clear",
        "CREATE ROLE trusting LOGIN",
        "CREATE ROLE clear LOGIN PASSWORD 'open'",
        "SET password_encryption = md5",
        "CREATE ROLE hashed LOGIN PASSWORD 'old'",
    ] {
        connection.execute(sql).unwrap();
    }
    for (user, password, method) in [
        ("trusting", "", "trust"),
        ("hashed", "old", "md5"),
        ("clear", "open", "password"),
        ("tester", "secret", "scram-sha-256"),
    ] {
        let credentials = Credentials::new(user, password);
        let opened = Connection::connect(&cluster.address(), &credentials, &options("postgres"));
        assert_eq!(opened.unwrap().authentication(), method);
        if method == "trust" {
            continue;
        }
        let wrong = Credentials::new(user, "certainly not this");
        let error = Connection::connect(&cluster.address(), &wrong, &options("postgres"));
        let error = error.unwrap_err();
        let refusal = error.refused().unwrap();
        assert_eq!(refusal.class, ErrorClass::AccessDenied, "{error:?}");
    }
}

#[test]
fn a_real_server_answers_statements() {
    let Some(cluster) = shared() else { return };
    let mut connection = cluster.connect("postgres").unwrap();
    let answer = connection
        .query("SELECT current_setting('server_version'), NULL, 'a''b', 1 + 1")
        .unwrap();
    assert_eq!(answer.text(0, 0).unwrap(), connection.server_version());
    assert_eq!(
        answer.rows[0][1..],
        [None, Some(b"a'b".to_vec()), Some(b"2".to_vec())]
    );
    assert_eq!((answer.columns.len(), answer.summary.rows), (4, 1));
    let error = connection.query("SELECT * FROM nothing").unwrap_err();
    assert!(error.to_string().contains("42P01"), "{error}");
    let long = connection.query("SELECT repeat('x', 20000000)").unwrap();
    assert_eq!(long.rows[0][0].as_ref().map(Vec::len), Some(20_000_000));
}

#[test]
fn rows_are_copied_and_a_copy_that_fails_leaves_none() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("copy");
    let mut connection = cluster.connect("copy").unwrap();
    connection
        .execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        .unwrap();
    let content: String = (0..50_000).map(|id| format!("{id}\tv{id}\n")).collect();
    let copy = "COPY t FROM STDIN";
    let copied = connection.load(copy, &mut content.as_bytes()).unwrap();
    assert_eq!(copied.affected_rows, 50_000);
    // The same keys again: the server refuses in the midst of the content.
    let again = connection.load(copy, &mut content.as_bytes()).unwrap_err();
    assert_eq!(again.class(), Some(ErrorClass::DuplicateKey), "{again}");
    let mut broken = Broken(b"60000\tx\n");
    let cut = connection.load(copy, &mut broken).unwrap_err();
    assert!(matches!(cut, QueryError::Content { .. }), "{cut}");
    let counted = connection.query("SELECT count(*) FROM t").unwrap();
    assert_eq!(counted.text(0, 0).unwrap(), "50000");
}

/// Content that cannot be read to its end.
struct Broken(&'static [u8]);

impl std::io::Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            return Err(std::io::Error::other("no more"));
        }
        std::io::Read::read(&mut self.0, buffer)
    }
}

#[test]
fn tls_is_used_when_it_is_asked_for() {
    let Some(cluster) = shared() else { return };
    // Over its unix socket PostgreSQL has none, and says so.
    for (tls, works) in [
        (dbduel_driver::TlsMode::Preferred, true),
        (dbduel_driver::TlsMode::Required, false),
    ] {
        let options = ConnectOptions {
            tls,
            ..options("postgres")
        };
        let opened = Connection::connect(&cluster.address(), &cluster.credentials(), &options);
        assert_eq!(opened.is_ok(), works, "{opened:?}");
    }
    let options = ConnectOptions {
        tls: dbduel_driver::TlsMode::Required,
        ..options("postgres")
    };
    let mut connection =
        Connection::connect(&cluster.tcp(), &cluster.credentials(), &options).unwrap();
    let seen = connection
        .query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .unwrap();
    assert_eq!(seen.text(0, 0).unwrap(), "t");
    assert!(connection.is_encrypted());
    let long = connection.query("SELECT repeat('x', 20000000)").unwrap();
    assert_eq!(long.rows[0][0].as_ref().map(Vec::len), Some(20_000_000));
}

#[test]
fn a_backend_that_is_ended_breaks_its_connection_only() {
    let Some(cluster) = shared() else { return };
    let mut first = cluster.connect("postgres").unwrap();
    let mut second = cluster.connect("postgres").unwrap();
    let id = first.id();
    let end = format!("SELECT pg_terminate_backend({id})");
    second.query(&end).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let error = first.query("SELECT 1").unwrap_err();
    assert!(matches!(error, QueryError::Broken { .. }), "{error:?}");
    assert!(first.query("SELECT 1").is_err());
    second.query("SELECT 1").unwrap();
}

#[test]
fn a_commit_of_a_failed_transaction_is_an_error() {
    let Some(cluster) = shared() else { return };
    let mut connection = cluster.connect("postgres").unwrap();
    connection.execute("BEGIN").unwrap();
    connection.execute("SELECT 1/0").unwrap_err();
    let error = connection.execute("SELECT 1").unwrap_err();
    assert!(error.to_string().contains("25P02"), "{error}");
    let error = connection.execute("commit").unwrap_err();
    assert!(error.to_string().contains("ROLLBACK"), "{error}");
    // The session is as before.
    connection.execute("BEGIN").unwrap();
    connection.execute("ROLLBACK").unwrap();
}

#[test]
fn a_server_without_room_refuses_with_its_reason() {
    let Some(cluster) = shared() else { return };
    let mut connection = cluster.connect("postgres").unwrap();
    connection.execute("DROP ROLE IF EXISTS crowd").unwrap();
    let create = "CREATE ROLE crowd LOGIN PASSWORD 'p' CONNECTION LIMIT 0";
    connection.execute(create).unwrap();
    let credentials = Credentials::new("crowd", "p");
    let refused = Connection::connect(&cluster.address(), &credentials, &options("postgres"));
    let error = refused.unwrap_err();
    assert_eq!(error.refused().unwrap().sqlstate(), "53300");
}
