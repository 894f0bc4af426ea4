//! A web server for readers on this machine: enough of HTTP/1.1 to show a page and to stream events.
//!
//! Every connection has a thread of its own and a deadline for its whole request, and there are few of them at a time.
//! Written here because the timeout of `oxhttp` is that of one read, which a request sent byte by byte never exceeds, and
//! `axum` needs an async runtime and hyper's own connection builder for that deadline.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_driver::address::is_loopback;

/// Connections at a time; a browser keeps one for events and opens a few for pages.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a request's head.
const HEAD_MAX: u64 = 16 << 10;
/// Time for a whole request to arrive, and for a piece of an answer to be taken.
const TIMEOUT: Duration = Duration::from_secs(5);
/// An event stream ends after this long; the browser then opens another.
const STREAM_MAX: Duration = Duration::from_secs(3600);

/// Pause after a failed accept, for example without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Reply to a request.
pub enum Reply {
    /// A text of this media type.
    Text(&'static str, String),
    /// A stream that sends a number whenever it has changed.
    Events {
        /// Interval between two reads of the number.
        every: Duration,
        /// The number.
        state: Box<dyn Fn() -> u64>,
    },
    /// There is nothing at this path.
    Unknown,
    /// The page could not be made.
    Failed(String),
}

/// An address and port that only this machine can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loopback(SocketAddr);

impl Loopback {
    /// A port of 127.0.0.1; 0 takes a free one.
    #[must_use]
    pub fn port(port: u16) -> Self {
        Self((Ipv4Addr::LOCALHOST, port).into())
    }
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotLoopback {
    /// The text is not an address with a port.
    #[error("this is not an address with a port; write it like 127.0.0.1:9464 or [::1]:9464")]
    Unreadable,
    /// Other machines can reach it.
    #[error(
        "other machines can reach this address, and there is no password; use 127.0.0.1 or [::1], and a \
         tunnel from elsewhere"
    )]
    Reachable,
}

impl FromStr for Loopback {
    type Err = NotLoopback;

    fn from_str(text: &str) -> std::result::Result<Self, NotLoopback> {
        let address: SocketAddr = text.parse().map_err(|_| NotLoopback::Unreadable)?;
        if address.ip().is_loopback() {
            Ok(Self(address))
        } else {
            Err(NotLoopback::Reachable)
        }
    }
}

/// A running server. It ends with the process.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Listens on `address` and answers reads. If set, requests must carry the token.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no thread.
    pub fn start(
        address: Loopback,
        token: Option<String>,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::start_with(address, token, TIMEOUT, reply)
    }

    /// As [`Server::start`], with the time for a whole request to arrive.
    fn start_with(
        address: Loopback,
        token: Option<String>,
        timeout: Duration,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address.0)
            .with_context(|| format!("could not listen on {}; name another port", address.0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new((token, reply));
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    let Ok(stream) = stream else {
                        std::thread::sleep(PAUSE);
                        continue;
                    };
                    let Some(place) = Place::take(&open) else {
                        continue;
                    };
                    let shared = Arc::clone(&shared);
                    let answering = std::thread::Builder::new().name("page".to_owned());
                    // Without a thread the connection is closed, and its place is free again.
                    let _ = answering.spawn(move || {
                        let _place = place;
                        let (token, reply) = &*shared;
                        // A reader that goes away needs no answer.
                        let _ = answer(stream, token.as_deref(), timeout, reply);
                    });
                }
            })
            .context("could not start the thread that serves pages")?;
        Ok(Self { address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One of the few connections at a time; free again when dropped, also after a panic.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(open));
        (open.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream with one deadline for all of its reads.
struct Patient<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

fn answer(
    mut stream: TcpStream,
    token: Option<&str>,
    timeout: Duration,
    reply: &impl Fn(&str) -> Reply,
) -> io::Result<()> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = Request::read(&stream, timeout)?;
    let Some(request) = request else {
        return send(
            &mut stream,
            "400 Bad Request",
            "The request could not be parsed.",
        );
    };
    if request.method != "GET" {
        return send(
            &mut stream,
            "405 Method Not Allowed",
            "Only GET is supported.",
        );
    }
    if !request.is_local || token.is_some_and(|token| !is_same(&request.token, token)) {
        return send(
            &mut stream,
            "403 Forbidden",
            "Only requests to a loopback name of this machine are answered, and only with the \
             token of the printed address where it has one.",
        );
    }
    match reply(&request.path) {
        Reply::Text(kind, text) => {
            head(&mut stream, "200 OK", kind, Some(text.len()))?;
            stream.write_all(text.as_bytes())
        }
        Reply::Events { every, state } => {
            head(&mut stream, "200 OK", "text/event-stream", None)?;
            events(&mut stream, every, &state)
        }
        Reply::Unknown => send(&mut stream, "404 Not Found", "There is nothing here."),
        Reply::Failed(why) => send(&mut stream, "500 Internal Server Error", &why),
    }
}

struct Request {
    method: String,
    path: String,
    token: String,
    is_local: bool,
}

impl Request {
    fn read(stream: &TcpStream, timeout: Duration) -> io::Result<Option<Self>> {
        let stream = Patient {
            stream,
            until: Instant::now() + timeout,
        };
        let mut lines = BufReader::new(stream.take(HEAD_MAX)).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        let mut is_local = false;
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                // Keeps out a foreign page whose own name resolves to this machine (DNS rebinding).
                is_local = is_loopback(value.trim());
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let token = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("token="))
            .unwrap_or_default();
        Ok(Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            token: token.to_owned(),
            is_local,
        }))
    }
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

fn head(stream: &mut TcpStream, status: &str, kind: &str, length: Option<usize>) -> io::Result<()> {
    let length = length.map_or_else(String::new, |length| {
        format!("Content-Length: {length}\r\n")
    });
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}Connection: close\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
         connect-src 'self'; frame-ancestors 'none'\r\n\r\n"
    )
}

fn send(stream: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    head(
        stream,
        status,
        "text/plain; charset=utf-8",
        Some(text.len()),
    )?;
    stream.write_all(text.as_bytes())
}

fn events(stream: &mut TcpStream, every: Duration, state: &dyn Fn() -> u64) -> io::Result<()> {
    let until = Instant::now() + STREAM_MAX;
    let mut last = None;
    while Instant::now() < until {
        let now = state();
        if last == Some(now) {
            // A comment, which fails when the reader has gone.
            stream.write_all(b":\n\n")?;
        } else {
            write!(stream, "data: {now}\n\n")?;
            last = Some(now);
        }
        stream.flush()?;
        std::thread::sleep(every);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_taken() {
        for good in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:9464"] {
            assert!(good.parse::<Loopback>().is_ok(), "{good}");
        }
        for reachable in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80"] {
            let refused = reachable.parse::<Loopback>();
            assert_eq!(refused, Err(NotLoopback::Reachable), "{reachable}");
        }
        for unreadable in ["9464", "localhost:80", "127.0.0.1", "127.0.0.1:99999"] {
            let refused = unreadable.parse::<Loopback>();
            assert_eq!(refused, Err(NotLoopback::Unreadable), "{unreadable}");
        }
    }

    #[test]
    fn a_request_that_drips_is_cut_off_and_one_too_long_is_not_read_to_its_end() {
        let timeout = Duration::from_millis(100);
        let server =
            Server::start_with(Loopback::port(0), None, timeout, |_| Reply::Unknown).unwrap();
        let mut slow = TcpStream::connect(server.address()).unwrap();
        // Every byte comes in time, and they would come for two minutes.
        let is_cut_off = (0..6_000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            slow.write_all(b"G").is_err()
        });
        assert!(is_cut_off);
        let mut long = TcpStream::connect(server.address()).unwrap();
        let _ = long.write_all(&vec![b'x'; 4 * HEAD_MAX as usize]);
        let mut answer = Vec::new();
        let _ = long.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
}
