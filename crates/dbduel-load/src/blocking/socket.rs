//! A socket, with or without TLS, on which every system call waits until a deadline at most.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use dbduel_wire::Transport;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt::SendTimeout,
};
use nix::sys::time::{TimeVal, TimeValLike};
use rustls::{ClientConnection, StreamOwned};

use super::tls::HandshakeError;
use crate::address::Address;

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
struct Socket {
    kind: Kind,
    deadline: Instant,
}

/// A connection's bytes.
#[derive(Debug)]
pub(super) struct Stream(Layer);

#[derive(Debug)]
enum Layer {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    /// Connects. Looking up a host's name waits as long as the system's resolver does; all else keeps the deadline.
    pub(super) fn connect(address: &Address, deadline: Instant) -> io::Result<Self> {
        let kind = match address {
            Address::Tcp { host, port } => Kind::Tcp(connect_tcp(host, *port, deadline)?),
            Address::Unix { path } => Kind::Unix(connect_unix(path, deadline)?),
        };
        Ok(Stream(Layer::Plain(Socket { kind, deadline })))
    }

    /// Puts TLS over the connection and waits for its handshake.
    pub(super) fn with_tls(self, client: ClientConnection) -> Result<Self, HandshakeError> {
        match self.0 {
            Layer::Plain(socket) => {
                let mut tls = StreamOwned::new(client, socket);
                while tls.conn.is_handshaking() {
                    if let Err(error) = tls.conn.complete_io(&mut tls.sock) {
                        return Err(HandshakeError::of(error, &tls.conn));
                    }
                }
                Ok(Stream(Layer::Tls(Box::new(tls))))
            }
            layer @ Layer::Tls(_) => Ok(Stream(layer)),
        }
    }

    fn socket(&self) -> &Socket {
        match &self.0 {
            Layer::Plain(socket) => socket,
            Layer::Tls(tls) => &tls.sock,
        }
    }

    pub(super) fn transport(&self) -> Transport {
        match self.socket().kind {
            Kind::Tcp(_) => Transport::Tcp,
            Kind::Unix(_) => Transport::UnixSocket,
        }
    }

    /// From now on nothing waits beyond this instant.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        match &mut self.0 {
            Layer::Plain(socket) => socket.deadline = deadline,
            Layer::Tls(tls) => tls.sock.deadline = deadline,
        }
    }

    /// Waits for bytes; never returns 0.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = match &mut self.0 {
            Layer::Plain(socket) => socket.read(buffer),
            Layer::Tls(tls) => tls.read(buffer),
        }?;
        if received == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            ));
        }
        Ok(received)
    }

    /// Sends all bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Layer::Plain(socket) => socket.write_all(bytes),
            Layer::Tls(tls) => {
                tls.write_all(bytes)?;
                tls.flush()
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket().kind {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the deadline passed")
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    // The system reads a timeout of zero as "for ever"; below a microsecond it would be one.
    if left < Duration::from_micros(1) {
        Err(too_late())
    } else {
        Ok(left)
    }
}

fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Connecting to a full queue of a unix socket waits as long as sending may, so that limit is set first.
fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let socket = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let micros = i64::try_from(left(deadline)?.as_micros()).unwrap_or(i64::MAX);
    setsockopt(&socket, SendTimeout, &TimeVal::microseconds(micros))?;
    match connect(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &UnixAddr::new(path)?,
    ) {
        Ok(()) => Ok(UnixStream::from(socket)),
        Err(nix::Error::EAGAIN) => Err(too_late()),
        Err(error) => Err(error.into()),
    }
}

impl Socket {
    /// Repeats a call that a signal interrupted, and names a missed deadline for what it is.
    fn until_deadline(
        &mut self,
        mut call: impl FnMut(&mut Self, Duration) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let left = left(self.deadline)?;
            match call(self, left) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    return Err(too_late());
                }
                outcome => return outcome,
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_deadline(|socket, left| match &mut socket.kind {
            Kind::Tcp(stream) => stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(buffer)),
            Kind::Unix(stream) => stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(buffer)),
        })
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_deadline(|socket, left| match &mut socket.kind {
            Kind::Tcp(stream) => stream
                .set_write_timeout(Some(left))
                .and_then(|()| stream.write(bytes)),
            Kind::Unix(stream) => stream
                .set_write_timeout(Some(left))
                .and_then(|()| stream.write(bytes)),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
