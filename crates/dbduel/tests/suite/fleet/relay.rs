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

use super::network::Network;

/// Between two looks for connections, and at whether there shall be more.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);

/// A listener on a free port. Dropped, it resets its connections and takes no more.
pub struct Relay {
    port: u16,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    is_over: Arc<AtomicBool>,
}

impl Relay {
    /// Passes bytes on to `port`, each `delay` after it came, in both directions.
    pub fn start(port: u16, delay: Duration) -> Self {
        Self::start_by(|| Ok(()), "127.0.0.1", port, delay).unwrap()
    }

    /// As [`Relay::start`], on all addresses of a network.
    ///
    /// # Errors
    /// When this user may not enter it.
    pub fn start_in(network: &Network, port: u16, delay: Duration) -> nix::Result<Self> {
        Self::start_by(network.entrance(), "0.0.0.0", port, delay)
    }

    fn start_by(
        enter: impl FnOnce() -> nix::Result<()> + Send + 'static,
        address: &'static str,
        port: u16,
        delay: Duration,
    ) -> nix::Result<Self> {
        let (sender, listening) = channel();
        let connections: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let is_over: Arc<AtomicBool> = Arc::default();
        let (kept, ends) = (Arc::clone(&connections), Arc::clone(&is_over));
        thread::spawn(move || {
            if let Err(error) = enter() {
                sender.send(Err(error)).unwrap();
                return;
            }
            let listener = TcpListener::bind((address, 0)).unwrap();
            listener.set_nonblocking(true).unwrap();
            let own_port = listener.local_addr().unwrap().port();
            sender.send(Ok(own_port)).unwrap();
            while !ends.load(Ordering::Relaxed) {
                let Ok((client, _)) = listener.accept() else {
                    thread::sleep(ACCEPT_PAUSE);
                    continue;
                };
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                pass(&client, &server, delay);
                pass(&server, &client, delay);
                kept.lock().unwrap().extend([client, server]);
            }
        });
        Ok(Self {
            port: listening.recv().unwrap()?,
            connections,
            is_over,
        })
    }

    pub fn url(&self) -> String {
        self.url_at("127.0.0.1")
    }

    pub fn url_at(&self, address: &str) -> String {
        format!("nats://{address}:{}", self.port)
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
