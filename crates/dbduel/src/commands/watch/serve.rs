//! A web server for one reader on this machine: enough of HTTP/1.1 to show a page and to stream events.
//!
//! Knows nothing of records. Every connection has a thread of its own and a deadline for its request, and
//! there are few of them at a time.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Connections at a time; a browser keeps one for events and opens a few for pages.
const CONNECTIONS_MAX: usize = 16;
/// Bytes of a request's head.
const HEAD_MAX: u64 = 16 << 10;
/// Time for a request to arrive, and for a piece of an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);
/// An event stream ends after this long; the browser then opens another.
const STREAM_MAX: Duration = Duration::from_secs(3600);

/// An answer.
pub enum Reply {
    /// A page.
    Page(String),
    /// A stream that sends a number whenever it has changed.
    Events {
        /// Between two looks at the number.
        every: Duration,
        /// The number.
        state: Box<dyn Fn() -> u64>,
    },
    /// There is nothing at this path.
    Unknown,
    /// The page could not be made.
    Failed(String),
}

/// A running server. It ends with the process.
#[derive(Debug)]
pub struct Server {
    port: u16,
}

impl Server {
    /// Listens on 127.0.0.1 and answers reads of whoever knows the token.
    ///
    /// # Errors
    /// When the port is taken, or the system gives no thread.
    pub fn start(
        port: u16,
        token: String,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).with_context(|| {
            format!("could not listen on 127.0.0.1:{port}; name another `--port`")
        })?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new((token, reply));
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                        open.fetch_sub(1, Ordering::Relaxed);
                        continue;
                    }
                    let (shared, count) = (Arc::clone(&shared), Arc::clone(&open));
                    let answering = std::thread::Builder::new().name("page".to_owned());
                    let spawned = answering.spawn(move || {
                        let (token, reply) = &*shared;
                        // A reader that goes away needs no answer.
                        let _ = answer(stream, token, reply);
                        count.fetch_sub(1, Ordering::Relaxed);
                    });
                    if spawned.is_err() {
                        open.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            })
            .context("could not start the thread that serves pages")?;
        Ok(Self { port })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn answer(mut stream: TcpStream, token: &str, reply: &impl Fn(&str) -> Reply) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&stream)?;
    let Some(request) = request else {
        return send(&mut stream, "400 Bad Request", "This is no request.");
    };
    if request.method != "GET" {
        return send(
            &mut stream,
            "405 Method Not Allowed",
            "Only reading is possible.",
        );
    }
    if !request.is_local || !is_same(&request.token, token) {
        return send(
            &mut stream,
            "403 Forbidden",
            "The token in the address is not the right one.",
        );
    }
    match reply(&request.path) {
        Reply::Page(html) => {
            head(
                &mut stream,
                "200 OK",
                "text/html; charset=utf-8",
                Some(html.len()),
            )?;
            stream.write_all(html.as_bytes())
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
    fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
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
                let host = value.trim();
                let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
                is_local = ["127.0.0.1", "localhost"].contains(&host);
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

/// Compares without telling by its time how much was right.
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
