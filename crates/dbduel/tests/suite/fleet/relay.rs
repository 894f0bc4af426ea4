//! A relay before nats-server that delays what passes and resets its connections.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

/// A listener on a free port of the loopback interface. Dropped, it resets its connections and takes no more.
pub struct Relay {
    port: u16,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    is_over: Arc<AtomicBool>,
}

impl Relay {
    /// Passes bytes on to `port`, each `delay` after it came, in both directions.
    pub fn start(port: u16, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            is_over: Arc::default(),
        };
        let (connections, is_over) = (Arc::clone(&relay.connections), Arc::clone(&relay.is_over));
        thread::spawn(move || {
            for client in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let client = client.unwrap();
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                pass(&client, &server, delay);
                pass(&server, &client, delay);
                connections.lock().unwrap().extend([client, server]);
            }
        });
        relay
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Resets all connections; returns how many there were.
    pub fn reset(&self) -> usize {
        let connections = std::mem::take(&mut *self.connections.lock().unwrap());
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        for connection in &connections {
            // It may have ended by itself.
            let _ = setsockopt(connection, sockopt::Linger, &at_once);
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
        connections.len() / 2
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.reset();
        // The listener looks when a connection comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Passes on what comes from one end, until one of them has ended.
fn pass(from: &TcpStream, to: &TcpStream, delay: Duration) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let (sender, chunks) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + delay;
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in chunks {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
