//! The blocking connection on a real server, over its socket and over TCP.

use std::io;
use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_driver::{BytesLiteral, TextLiteral};
use dbduel_driver::{ConnectOptions, Connection, Credentials, QueryError, TlsMode};

use super::server::{ALL, Server};

fn logins(server: &Server) -> [(Address, Credentials); 2] {
    [server.unix(), server.tcp()].map(|address| (address, server.credentials()))
}

fn options() -> ConnectOptions {
    ConnectOptions {
        local_infile: true,
        ..ConnectOptions::default()
    }
}

#[test(on = ALL)]
fn a_real_server_answers_statements(server: &Server) {
    for (address, credentials) in logins(server) {
        let mut connection = Connection::connect(&address, &credentials, &options()).unwrap();
        let version = connection
            .query("SELECT VERSION(), NULL, 'a''b', 1 + 1")
            .unwrap();
        assert_eq!(version.text(0, 0).unwrap(), connection.server_version());
        assert_eq!(
            version.rows[0][1..],
            [None, Some(b"a'b".to_vec()), Some(b"2".to_vec())]
        );
        assert_eq!((version.columns.len(), version.summary.rows), (4, 1));
        let variables = connection.query("SHOW GLOBAL VARIABLES").unwrap();
        assert!(
            variables.rows.len() > 300,
            "{} variables",
            variables.rows.len()
        );
        let error = connection
            .query("SELECT * FROM nowhere.nothing")
            .unwrap_err();
        assert!(matches!(error.code(), Some(1049 | 1146)), "{error}");
        assert_eq!(
            connection
                .query("SELECT REPEAT('x', 20000000)")
                .unwrap()
                .rows[0][0],
            Some(vec![b'x'; 20_000_000])
        );
    }
}

#[test(on = ALL)]
fn a_real_server_changes_and_loads_rows(server: &Server) {
    for (address, credentials) in logins(server) {
        // Without limits of time, which must not overflow the clock.
        let endless = ConnectOptions {
            deadline: Duration::MAX,
            statement_deadline: Duration::MAX,
            ..options()
        };
        let mut connection = Connection::connect(&address, &credentials, &endless).unwrap();
        let database = format!("dbduel_wire_{}", std::process::id());
        connection
            .execute(&format!("CREATE DATABASE {database}"))
            .unwrap();
        let table = format!("{database}.t");
        connection
            .execute(&format!(
                "CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)"
            ))
            .unwrap();
        let inserted = connection
            .execute(&format!("INSERT INTO {table} (v) VALUES ('a'), (NULL)"))
            .unwrap();
        assert_eq!((inserted.affected_rows, inserted.last_insert_id), (2, 1));
        let content: String = (0..50_000)
            .map(|id| format!("{}\tv{id}\n", id + 10))
            .collect();
        let load = format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table}");
        let loaded = connection.load(&load, &mut content.as_bytes()).unwrap();
        assert_eq!(loaded.affected_rows, 50_000);
        // A load that was not asked for by us gets no content.
        assert_eq!(connection.execute(&load).unwrap().affected_rows, 0);
        let counted = connection
            .query(&format!("SELECT COUNT(*), MIN(id) FROM {table}"))
            .unwrap();
        assert_eq!(
            (
                counted.text(0, 0).unwrap().as_str(),
                counted.text(0, 1).unwrap().as_str()
            ),
            ("50002", "1")
        );
        connection
            .execute(&format!("DROP DATABASE {database}"))
            .unwrap();
    }
}

#[test(on = ALL)]
fn a_real_server_refuses_a_wrong_password(server: &Server) {
    for (address, credentials) in logins(server) {
        let wrong = Credentials::new(credentials.user, "certainly not this");
        let error = Connection::connect(&address, &wrong, &options()).unwrap_err();
        assert_eq!(error.refused().unwrap().code, 1045, "{error:?}");
    }
}

#[test(on = ALL)]
fn a_statement_over_its_deadline_breaks_the_connection(server: &Server) {
    for (address, credentials) in logins(server) {
        let options = ConnectOptions {
            statement_deadline: Duration::from_millis(200),
            ..options()
        };
        let mut connection = Connection::connect(&address, &credentials, &options).unwrap();
        let error = connection.query("SELECT SLEEP(3)").unwrap_err();
        assert!(
            matches!(&error, QueryError::Broken { source, .. } if source.kind() == io::ErrorKind::TimedOut)
        );
        assert!(matches!(
            connection.query("SELECT 1"),
            Err(QueryError::Broken { .. })
        ));
    }
}

#[test(on = ALL)]
fn tls_is_used_where_the_server_offers_it(server: &Server) {
    for (address, credentials) in logins(server) {
        let options = ConnectOptions {
            tls: TlsMode::Preferred,
            ..options()
        };
        let mut connection = Connection::connect(&address, &credentials, &options).unwrap();
        let cipher = connection
            .query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            .unwrap()
            .text(0, 1)
            .unwrap_or_default();
        assert_eq!(connection.is_encrypted(), !cipher.is_empty());
        let long = connection.query("SELECT REPEAT('x', 20000000)").unwrap();
        assert_eq!(long.rows[0][0].as_ref().map(Vec::len), Some(20_000_000));
    }
}

#[test(on = ALL)]
fn literals_are_the_same_bytes_in_every_sql_mode(server: &Server) {
    let mut connection =
        Connection::connect(&server.unix(), &server.credentials(), &options()).unwrap();
    let every_byte: Vec<u8> = (0..=255).collect();
    let hexadecimal = |bytes: &[u8]| -> String {
        let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
        digits.collect()
    };
    for mode in ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES"] {
        connection
            .execute(&format!("SET SESSION sql_mode = '{mode}'"))
            .unwrap();
        let mut read = |literal: String| {
            let answer = connection.query(&format!("SELECT HEX({literal})")).unwrap();
            answer.text(0, 0).unwrap()
        };
        for bytes in [&every_byte[..], b"it's", b"a\\b\\", b"plain", b""] {
            assert_eq!(
                read(BytesLiteral(bytes).to_string()),
                hexadecimal(bytes),
                "{mode}"
            );
        }
        for text in ["it's \u{e9}", "C:\\new \u{20ac}", "plain", "\0"] {
            let expected = hexadecimal(text.as_bytes());
            assert_eq!(read(TextLiteral(text).to_string()), expected, "{mode}");
        }
    }
}
