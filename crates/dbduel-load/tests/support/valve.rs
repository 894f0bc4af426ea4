//! A server whose replies a test holds back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use dbduel_driver::address::Address;

/// Passes bytes on between clients and a server; while it holds, those of the server stay. Its threads end with the
/// connections, or with the process.
pub struct Valve {
    path: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    valve: Mutex<Held>,
    released: Condvar,
}

#[derive(Default)]
struct Held {
    /// Connections whose replies are held back at the most.
    most: u32,
    /// Connections that have a reply which is held back.
    connections: u32,
}

impl Valve {
    /// Listens on a socket in `folder`, before the server at `address`.
    pub fn before(address: &Address, folder: &Path) -> Valve {
        let Address::Unix { path: server } = address.clone() else {
            panic!("{address}")
        };
        let valve = Valve {
            path: folder.join("valve.sock"),
            state: Arc::default(),
        };
        let listener = UnixListener::bind(&valve.path).unwrap();
        let state = Arc::clone(&valve.state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
                let (to_server, to_client) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                let state = Arc::clone(&state);
                std::thread::spawn(move || pass_on(client, to_server, || ()));
                std::thread::spawn(move || pass_on(server, to_client, || state.wait()));
            }
        });
        valve
    }

    pub fn address(&self) -> Address {
        Address::Unix {
            path: self.path.clone(),
        }
    }

    /// From now on no reply is passed on.
    pub fn hold(&self) {
        self.hold_of(u32::MAX);
    }

    /// From now on no reply is passed on to the first so many connections that have one.
    pub fn hold_of(&self, connections: u32) {
        self.state.valve.lock().unwrap().most = connections;
    }

    /// Passes on what was held back and what comes.
    pub fn release(&self) {
        self.hold_of(0);
        self.state.released.notify_all();
    }

    /// Connections with a reply that is held back now.
    pub fn held(&self) -> u32 {
        self.state.valve.lock().unwrap().connections
    }
}

impl State {
    fn wait(&self) {
        let mut valve = self.valve.lock().unwrap();
        if valve.connections >= valve.most {
            return;
        }
        valve.connections += 1;
        valve = self
            .released
            .wait_while(valve, |valve| valve.most > 0)
            .unwrap();
        valve.connections -= 1;
    }
}

/// Passes bytes on until one end is closed; calls `wait` before each piece.
fn pass_on(mut from: UnixStream, mut to: UnixStream, wait: impl Fn()) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        wait();
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
