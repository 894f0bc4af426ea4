//! Connections to sockets that misbehave.

mod handshake;

use std::io::{self, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dbduel_wire::server::{NullServer, Shape};

use super::*;
use crate::address::Address;

/// A server that handles one client by `deal`: its address and thread.
fn server(deal: impl FnOnce(TcpStream) + Send + 'static) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || deal(listener.accept().unwrap().0));
    (address.parse().unwrap(), server)
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
    assert!(started.elapsed() >= options.deadline);
    assert!(
        matches!(error, ConnectError::Unreachable { ref source, .. } if source.kind() == io::ErrorKind::TimedOut)
    );
}

#[test]
fn a_server_that_drips_bytes_is_given_up_at_the_deadline() {
    let (address, server) = server(|mut stream| {
        // A greeting of 600 bytes that would take thirty seconds.
        let greeting = [&[0x54, 2, 0, 0, 10][..], &[b'x'; 595]].concat();
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
    // Without the deadline the whole greeting would come, and be refused for what it says.
    let error = Connection::connect(&address, &Credentials::default(), &options).unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { ref source, .. } if source.kind() == io::ErrorKind::TimedOut)
    );
    server.join().unwrap();
}

#[test]
fn bytes_that_trail_the_login_are_refused() {
    let (address, server) = server(|mut stream| {
        let mut out = Vec::new();
        let mut server = NullServer::begin(1, &mut out);
        stream.write_all(&out).unwrap();
        let mut login = [0; 1024];
        let length = stream.read(&mut login).unwrap();
        out.clear();
        let mut shape = |_: &[u8]| Shape::default();
        server.feed(&login[..length], &mut shape, &mut out).unwrap();
        out.push(1);
        stream.write_all(&out).unwrap();
    });
    let (user, options) = (Credentials::default(), ConnectOptions::default());
    let error = Connection::connect(&address, &user, &options).unwrap_err();
    server.join().unwrap();
    let ConnectError::Login { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.to_string(), "bytes arrived when none were due");
}

#[test]
fn something_else_than_a_database_is_recognised() {
    let (address, server) = server(|mut stream| {
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
