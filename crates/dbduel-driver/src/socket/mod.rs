//! A non-blocking socket with or without TLS, and how a connection waits for it.

mod tls_layer;
mod waiter;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, UnixAddr, connect, getsockopt, socket,
    sockopt::SocketError,
};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::ClientConnection;

use super::tls::HandshakeError;
use crate::address::Address;
use crate::executor::Interest;
pub(super) use waiter::{Blocking, deadline_passed};
pub use waiter::{OnLoop, Waiter};

/// Pause before retrying a unix socket whose backlog is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket {
    kind: Kind,
    /// TLS layer; carries all bytes once it exists.
    tls: Option<Box<ClientConnection>>,
}

impl Socket {
    pub(super) async fn connect(waiter: &impl Waiter, address: &Address) -> io::Result<Self> {
        let kind = match address {
            Address::Unix { path } => Kind::Unix(connect_unix(waiter, path).await?),
            Address::Tcp { host, port } => Kind::Tcp(connect_tcp(waiter, host, *port).await?),
            Address::File { path, .. } => {
                let text = format!("`{}` is a SQLite file, not a server", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        if let Kind::Unix(stream) = &kind {
            waiter.watch(stream.as_fd(), Interest::Read)?;
        }
        Ok(Socket { kind, tls: None })
    }

    /// A connection that a listener accepted; it must be non-blocking.
    pub(crate) fn accepted(waiter: &impl Waiter, stream: UnixStream) -> io::Result<Self> {
        waiter.watch(stream.as_fd(), Interest::Read)?;
        Ok(Socket {
            kind: Kind::Unix(stream),
            tls: None,
        })
    }

    /// Starts TLS on the connection and waits for its handshake.
    pub(super) async fn start_tls(
        &mut self,
        waiter: &impl Waiter,
        client: ClientConnection,
    ) -> Result<(), HandshakeError> {
        self.tls = Some(Box::new(client));
        let ended = self.shake_hands(waiter).await;
        ended.map_err(|error| match &self.tls {
            Some(client) => HandshakeError::of(error, client),
            None => HandshakeError::Io(error),
        })
    }

    async fn shake_hands(&mut self, waiter: &impl Waiter) -> io::Result<()> {
        loop {
            self.send(waiter, &[]).await?;
            match &mut self.tls {
                Some(tls) if tls.is_handshaking() => {
                    if !tls_layer::read(tls, &mut self.kind)? {
                        self.wait(waiter).await?;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// True when the connection uses TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Sends all bytes; nearly always with one system call.
    #[inline]
    pub(crate) async fn send(&mut self, waiter: &impl Waiter, bytes: &[u8]) -> io::Result<()> {
        match self.write(bytes)? {
            sent if sent == bytes.len() && self.is_flushed() => Ok(()),
            sent => self.send_rest(waiter, &bytes[sent..]).await,
        }
    }

    #[cold]
    async fn send_rest(&mut self, waiter: &impl Waiter, mut rest: &[u8]) -> io::Result<()> {
        let both = Interest::ReadAndWrite;
        waiter.rewatch(self.kind.as_fd(), both)?;
        while !rest.is_empty() || !self.is_flushed() {
            waiter.wait(self.kind.as_fd(), both).await?;
            rest = &rest[self.write(rest)?..];
        }
        waiter.rewatch(self.kind.as_fd(), Interest::Read)
    }

    /// Waits until bytes may have arrived.
    #[inline]
    pub(crate) async fn wait(&self, waiter: &impl Waiter) -> io::Result<()> {
        waiter.wait(self.kind.as_fd(), Interest::Read).await
    }

    /// True when the TLS layer holds no bytes that wait to be sent.
    #[inline]
    fn is_flushed(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// The bytes that have arrived; none when there are none now. A call that did not fill the buffer
    /// has emptied the socket: the next bytes make an event of their own.
    #[inline]
    pub(crate) fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        let received = match &mut self.tls {
            None => read(&self.kind, buffer),
            Some(tls) => tls_layer::receive(tls, &mut self.kind, buffer),
        };
        match received {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            )),
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for bytes and appends them. Returns after the first read: the next may be the end of the connection, and
    /// a server that refuses a client states the reason right before it.
    pub(super) async fn receive_into(
        &mut self,
        waiter: &impl Waiter,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        loop {
            if let Some(fresh) = self.receive(&mut waiter.buffer())? {
                bytes.extend_from_slice(fresh);
                return Ok(());
            }
            self.wait(waiter).await?;
        }
    }

    /// Writes what the socket takes now; 0 when that is nothing.
    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.tls {
            None => write(&self.kind, bytes),
            Some(tls) => tls_layer::write(tls, &mut self.kind, bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }
}

/// Reads once, again after a signal.
#[inline]
fn read(kind: &Kind, buffer: &mut [u8]) -> io::Result<usize> {
    let (_, length) = retry_on_intr(|| recv(kind, &mut *buffer, RecvFlags::empty()))?;
    Ok(length)
}

/// Writes once, again after a signal.
#[inline]
fn write(kind: &Kind, bytes: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| send(kind, bytes, SendFlags::NOSIGNAL))?)
}

impl Read for Kind {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        read(self, buffer)
    }
}

impl Write for Kind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Kind {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kind.as_fd()
    }
}

async fn connect_unix(waiter: &impl Waiter, path: &Path) -> io::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        match connect(socket.as_raw_fd(), &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            // The queue is full, and the kernel does not report when it is not any more.
            Err(Errno::EAGAIN) => waiter.pause(QUEUE_PAUSE).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The system's resolver has no address for a host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnknownHost(pub(crate) io::Error);

/// True when no address was found for a host.
pub(crate) fn is_unknown_host(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<UnknownHost>())
}

/// Connects by TCP. Resolving a name blocks the thread as long as the system's resolver does, so a load should use a
/// numeric address.
async fn connect_tcp(waiter: &impl Waiter, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "no address found for the host");
    let addresses = (host, port).to_socket_addrs();
    for address in addresses.map_err(|error| io::Error::new(error.kind(), UnknownHost(error)))? {
        match connect_tcp_to(waiter, address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn connect_tcp_to(waiter: &impl Waiter, address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let stream = TcpStream::from(socket(family, SockType::Stream, flags, None)?);
    let both = Interest::ReadAndWrite;
    match connect(stream.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) => waiter.watch(stream.as_fd(), Interest::Read)?,
        Err(Errno::EINPROGRESS) => {
            waiter.watch(stream.as_fd(), both)?;
            waiter.wait(stream.as_fd(), both).await?;
            // Not connected means that the task was polled for another reason.
            while stream.peer_addr().is_err() {
                match getsockopt(&stream, SocketError)? {
                    0 => waiter.wait(stream.as_fd(), both).await?,
                    code => return Err(io::Error::from_raw_os_error(code)),
                }
            }
            waiter.rewatch(stream.as_fd(), Interest::Read)?;
        }
        Err(error) => return Err(error.into()),
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}
