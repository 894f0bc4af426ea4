//! The watch over statements on a real PostgreSQL: what is executed goes on, what was answered and lost ends.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dbduel_driver::Connection;
use dbduel_driver::address::Address;
use dbduel_driver::statement_watch::StatementWatch;

use super::cluster::{Cluster, options, shared};

/// What makes the proxy lose the answer.
const LOST: &str = "SELECT 'lost'";

/// Passes bytes on to the server, but nothing back after a client has sent [`LOST`].
struct Proxy {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Proxy {
    fn start(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxy.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let Address::Unix { path: server } = cluster.address() else {
            unreachable!("the tests' server has a socket");
        };
        // Ends with the test program.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                pass(client.unwrap(), UnixStream::connect(&server).unwrap());
            }
        });
        Proxy {
            path,
            _folder: folder,
        }
    }

    fn address(&self) -> Address {
        Address::Unix {
            path: self.path.clone(),
        }
    }
}

fn pass(client: UnixStream, server: UnixStream) {
    let is_lost = Arc::new(AtomicBool::new(false));
    let directions = [
        (
            client.try_clone().unwrap(),
            server.try_clone().unwrap(),
            true,
        ),
        (server, client, false),
    ];
    for (mut from, mut to, is_request) in directions {
        let is_lost = Arc::clone(&is_lost);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                let bytes = &buffer[..length];
                let has_mark = bytes
                    .windows(LOST.len())
                    .any(|part| part == LOST.as_bytes());
                is_lost.fetch_or(is_request && has_mark, Ordering::SeqCst);
                let passes = is_request || !is_lost.load(Ordering::SeqCst);
                if passes && to.write_all(bytes).is_err() {
                    return;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}

#[test]
fn a_statement_is_ended_when_the_server_does_not_execute_it_any_more() {
    let Some(cluster) = shared() else { return };
    let proxy = Proxy::start(&cluster);
    let interval = Duration::from_millis(400);
    let watch =
        StatementWatch::start(cluster.credentials(), options("postgres"), interval).unwrap();
    let connect = || {
        let address = proxy.address();
        let mut connection =
            Connection::connect(&address, &cluster.credentials(), &options("postgres")).unwrap();
        connection.watch(&watch, &address);
        connection
    };
    let answer = connect().query("SELECT pg_sleep(2), 'slept'").unwrap();
    assert_eq!(answer.text(0, 1).as_deref(), Some("slept"));
    let error = connect().query(LOST).unwrap_err();
    let error = format!("{:#}", anyhow::Error::from(error));
    assert!(
        error.contains("the server no longer executes the statement"),
        "{error}"
    );
}
