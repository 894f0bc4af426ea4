//! A place between a client and a server that keeps what the client sends: what of a password was on the way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dbduel_driver::address::Address;

/// Nothing here takes longer, or the test is stuck.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream with two ends that can be used at once.
trait Pipe: Read + Write + Send + Sized + 'static {
    fn again(&self) -> Self;
    fn bound(&self);
    fn end(&self);
}

macro_rules! pipe {
    ($stream:ty) => {
        impl Pipe for $stream {
            fn again(&self) -> Self {
                self.try_clone().unwrap()
            }

            fn bound(&self) {
                self.set_nonblocking(false).unwrap();
                self.set_read_timeout(Some(TIMEOUT)).unwrap();
            }

            fn end(&self) {
                let _ = self.shutdown(Shutdown::Both);
            }
        }
    };
}
pipe!(TcpStream);
pipe!(UnixStream);

/// What `talk` sends to the server over one connection, which it makes to the address that it is handed.
pub fn sent<T>(server: &Address, talk: impl FnOnce(&Address) -> T) -> (T, Vec<u8>) {
    match server {
        Address::File { .. } => panic!("a file has no connections"),
        Address::Tcp { host, port } => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = Address::Tcp {
                host: host.clone(),
                port: listener.local_addr().unwrap().port(),
            };
            listener.set_nonblocking(true).unwrap();
            let target = TcpStream::connect((host.as_str(), *port)).unwrap();
            between(
                move || listener.accept().map(|it| it.0),
                target,
                || talk(&address),
            )
        }
        Address::Unix { path } => {
            let folder = tempfile::tempdir().unwrap();
            let address = Address::Unix {
                path: folder.path().join("tap.sock"),
            };
            let listener = UnixListener::bind(folder.path().join("tap.sock")).unwrap();
            listener.set_nonblocking(true).unwrap();
            let target = UnixStream::connect(path).unwrap();
            between(
                move || listener.accept().map(|it| it.0),
                target,
                || talk(&address),
            )
        }
    }
}

fn between<S: Pipe, T>(
    accept: impl Fn() -> std::io::Result<S> + Send + 'static,
    server: S,
    talk: impl FnOnce() -> T,
) -> (T, Vec<u8>) {
    let tap: JoinHandle<Vec<u8>> = thread::spawn(move || {
        let client = wait_for(accept);
        client.bound();
        server.bound();
        let (mut from_server, mut to_client) = (server.again(), client.again());
        let down = thread::spawn(move || {
            let _ = copy(&mut from_server, &mut to_client);
            to_client.end();
        });
        let (mut from_client, mut to_server) = (client, server);
        let sent = copy(&mut from_client, &mut to_server);
        to_server.end();
        down.join().unwrap();
        sent
    });
    let outcome = talk();
    (outcome, tap.join().unwrap())
}

fn wait_for<S>(accept: impl Fn() -> std::io::Result<S>) -> S {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match accept() {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "nobody connects: {error}"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Hands on what comes until the end, and returns it.
fn copy(from: &mut impl Read, to: &mut impl Write) -> Vec<u8> {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    seen
}
