//! Against a real server where one is named in the environment, and against sockets that misbehave.

mod handshake;

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use super::error::EXCERPT;
use super::*;

/// The certificate of an authority that has signed nothing.
const STRANGER: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBfjCCASOgAwIBAgIUCzURj3Q0AQw+UumUmFSC/Sq52MAwCgYIKoZIzj0EAwIw\n\
EzERMA8GA1UEAwwIc3RyYW5nZXIwIBcNMjYxMTIwMTAyMjQwWhgPMjEyNjEwMjcx\n\
MDIyNDBaMBMxETAPBgNVBAMMCHN0cmFuZ2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
AQcDQgAE4dtMGxB0Xyrv5doFAyzJE8IRq+4KputyLRjMUVeyKPZwhJaDGF2Hxfes\n\
1Pl9sBgBq2tgjC6PUdHSlq4OsNp0o6NTMFEwHQYDVR0OBBYEFB3GEvhjQ8gBYIzZ\n\
Px8h6fOX5cpHMB8GA1UdIwQYMBaAFB3GEvhjQ8gBYIzZPx8h6fOX5cpHMA8GA1Ud\n\
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhANBRDcMm0bgwKEvQF/HYQZ71\n\
S1r5tLMiB+EOSQkVq7EzAiEAsEkQMQEoCHnP3j/Um6cHqB6+fCtfwKjJ4pGY4NgC\n\
F5Q=\n\
-----END CERTIFICATE-----\n";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The servers to test with: `DBDUEL_TEST_SOCKET=/path` and `DBDUEL_TEST_TCP=host:port`, with the account in
/// `DBDUEL_TEST_USER` (root) and `DBDUEL_TEST_PASSWORD` (none).
fn servers() -> Vec<(Address, Credentials)> {
    let credentials = Credentials::new(
        variable("DBDUEL_TEST_USER").unwrap_or_else(|| "root".to_owned()),
        variable("DBDUEL_TEST_PASSWORD").unwrap_or_default(),
    );
    let socket = variable("DBDUEL_TEST_SOCKET").map(|path| Address::Unix { path: path.into() });
    let tcp = variable("DBDUEL_TEST_TCP").map(|place| format!("tcp://{place}").parse().unwrap());
    let servers: Vec<_> = socket
        .into_iter()
        .chain(tcp)
        .map(|address| (address, credentials.clone()))
        .collect();
    if servers.is_empty() {
        eprintln!(
            "SKIPPED: no real server; set DBDUEL_TEST_SOCKET=/path and DBDUEL_TEST_TCP=host:port"
        );
    }
    servers
}

fn options() -> ConnectOptions {
    ConnectOptions {
        local_infile: true,
        ..ConnectOptions::default()
    }
}

#[test]
fn a_real_server_answers_statements() {
    for (address, credentials) in servers() {
        let mut connection = Connection::connect(&address, &credentials, &options()).unwrap();
        eprintln!("{address}: {:?}", connection.login());
        let version = connection
            .query("SELECT VERSION(), NULL, 'a''b', 1 + 1")
            .unwrap();
        assert_eq!(
            version.text(0, 0).unwrap(),
            connection.login().greeting.version()
        );
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

#[test]
fn a_real_server_changes_and_loads_rows() {
    for (address, credentials) in servers() {
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

#[test]
fn a_real_server_refuses_a_wrong_password() {
    for (address, credentials) in servers() {
        let wrong = Credentials::new(credentials.user, "certainly not this");
        let error = Connection::connect(&address, &wrong, &options()).unwrap_err();
        assert_eq!(error.refused().unwrap().code, 1045, "{error:?}");
    }
}

#[test]
fn a_statement_over_its_deadline_breaks_the_connection() {
    for (address, credentials) in servers() {
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

#[test]
fn tls_is_used_where_the_server_offers_it() {
    for (address, credentials) in servers() {
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
        eprintln!("{address}: cipher `{cipher}`");
        assert_eq!(connection.login().tls, !cipher.is_empty());
        let long = connection.query("SELECT REPEAT('x', 20000000)").unwrap();
        assert_eq!(long.rows[0][0].as_ref().map(Vec::len), Some(20_000_000));
    }
}

/// `DBDUEL_TEST_CA` names a PEM file with the authority of the TCP server's certificate, which bears `localhost`.
#[test]
fn certificates_are_checked_as_far_as_the_mode_says() {
    let tcp = servers()
        .into_iter()
        .find(|(address, _)| matches!(address, Address::Tcp { .. }));
    let (Some((Address::Tcp { port, .. }, credentials)), Some(ca)) =
        (tcp, variable("DBDUEL_TEST_CA"))
    else {
        eprintln!(
            "SKIPPED: no certificates to check; set DBDUEL_TEST_TCP=host:port and DBDUEL_TEST_CA=/path"
        );
        return;
    };
    let stranger = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(stranger.path(), STRANGER).unwrap();
    let attempt = |host: &str, tls: TlsMode| {
        let address = Address::Tcp {
            host: host.to_owned(),
            port,
        };
        Connection::connect(&address, &credentials, &ConnectOptions { tls, ..options() })
            .map(|it| it.login().tls)
    };
    assert!(
        attempt(
            "127.0.0.1",
            TlsMode::VerifyCa {
                ca: ca.clone().into()
            }
        )
        .unwrap()
    );
    assert!(
        attempt(
            "localhost",
            TlsMode::VerifyIdentity {
                ca: ca.clone().into()
            }
        )
        .unwrap()
    );
    assert!(
        attempt("127.0.0.1", TlsMode::VerifyIdentity { ca: ca.into() }).is_err(),
        "the name differs"
    );
    let wrong = attempt(
        "localhost",
        TlsMode::VerifyCa {
            ca: stranger.path().to_owned(),
        },
    );
    assert!(wrong.is_err(), "the authority differs");
}

#[test]
fn nobody_listening_is_an_error_that_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for address in [
        format!("tcp://127.0.0.1:{port}"),
        "unix:/nowhere/server.sock".to_owned(),
    ] {
        let place = address.parse().unwrap();
        let error =
            Connection::connect(&place, &Credentials::default(), &ConnectOptions::default())
                .unwrap_err();
        assert!(
            matches!(&error, ConnectError::Unreachable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(&address), "{error}");
    }
}

#[test]
fn a_server_that_stays_silent_is_given_up_at_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("silent.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let options = ConnectOptions {
        deadline: Duration::from_millis(100),
        ..ConnectOptions::default()
    };
    let started = Instant::now();
    let error = Connection::connect(&Address::Unix { path }, &Credentials::default(), &options)
        .unwrap_err();
    let waited = started.elapsed();
    assert!(
        matches!(error, ConnectError::Unreachable { ref source, .. } if source.kind() == io::ErrorKind::TimedOut)
    );
    assert!(
        waited >= Duration::from_millis(100) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
}

#[test]
fn a_server_that_drips_bytes_is_given_up_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A greeting of 200 bytes that would take ten seconds.
        let greeting = [&[196, 0, 0, 0, 10][..], &[b'x'; 195]].concat();
        for byte in greeting {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    let options = ConnectOptions {
        deadline: Duration::from_millis(300),
        ..ConnectOptions::default()
    };
    let started = Instant::now();
    let error = Connection::connect(&address, &Credentials::default(), &options).unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { ref source, .. } if source.kind() == io::ErrorKind::TimedOut)
    );
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    server.join().unwrap();
}

#[test]
fn something_else_than_a_database_is_recognised() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .write_all(b"SSH-2.0-OpenSSH_9.9 and more words of that kind\r\n")
            .unwrap();
    });
    let error = Connection::connect(
        &address,
        &Credentials::default(),
        &ConnectOptions::default(),
    )
    .unwrap_err();
    server.join().unwrap();
    assert!(
        matches!(
            error,
            ConnectError::Login { .. } | ConnectError::Unreachable { .. }
        ),
        "{error:?}"
    );
}

#[test]
fn an_excerpt_is_short_and_on_one_line() {
    assert_eq!(excerpt("SELECT\n  1"), "SELECT 1");
    let long = excerpt(&"ä".repeat(500));
    assert!(
        long.ends_with('…') && long.len() <= EXCERPT + '…'.len_utf8(),
        "{long}"
    );
}
