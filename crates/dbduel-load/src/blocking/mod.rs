//! One blocking connection, for administration: settings, schema, loading, readiness.
//!
//! Not for measuring: it allocates freely and waits in system calls. Every wait has a deadline; a statement that
//! misses its own leaves the connection unusable, because its reply could still come.

mod error;
mod prepared;
mod result;
mod socket;
mod tls;

use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

pub use dbduel_wire::Credentials;
use dbduel_wire::{
    Capabilities, LoggedIn, Login, LoginError, LoginOptions, LoginStep, ReplyParser, RowFormat,
    Sink, Skip, Step, Summary, command, local_infile,
};

pub use self::error::{ConnectError, QueryError};
use self::error::{Failure, excerpt};
pub use self::prepared::PreparedStatement;
pub use self::result::ResultSet;
use self::result::{Collector, RESULT_LIMIT};
use self::socket::Stream;
pub(crate) use self::tls::HandshakeError;
pub use self::tls::{Tls, TlsError, TlsMode};
use crate::address::Address;
use crate::statement_watch::{StatementWatch, WatchedConnection};

/// Bytes asked for per read, and sent per packet of a loaded file.
const PIECE: usize = 64 << 10;

/// Time to say goodbye in.
const QUIT_TIMEOUT: Duration = Duration::from_millis(100);

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a connection is made and used.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Time for connecting, changing to TLS and logging in, all together.
    pub deadline: Duration,
    /// Time for one statement with its whole reply; for a load, between two signs of life of the server.
    pub statement_deadline: Duration,
    /// Default database, if any.
    pub database: Option<String>,
    /// How much TLS.
    pub tls: TlsMode,
    /// Whether [`Connection::load`] may be used.
    pub local_infile: bool,
}

impl Default for ConnectOptions {
    /// Ten seconds to connect, sixty per statement; no database, no TLS, no loading.
    fn default() -> Self {
        ConnectOptions {
            deadline: Duration::from_secs(10),
            statement_deadline: Duration::from_secs(60),
            database: None,
            tls: TlsMode::Off,
            local_infile: false,
        }
    }
}

/// A connection that is logged in. Dropping it says goodbye to the server.
pub struct Connection {
    /// Goes before the stream, which it may shut down.
    watched: Option<WatchedConnection>,
    stream: Stream,
    logged_in: LoggedIn,
    parser: ReplyParser,
    statement_deadline: Duration,
    broken: bool,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ConnectError`]; whether a server answered at all is told by [`ConnectError::refused`].
    pub fn connect(
        address: &Address,
        credentials: &Credentials,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let deadline = from_now(options.deadline);
        let unreachable = |source| ConnectError::Unreachable {
            address: address.clone(),
            source,
        };
        let refused = |source| ConnectError::Login {
            address: address.clone(),
            user: credentials.user.clone(),
            source,
        };
        let no_tls = |source| ConnectError::Tls {
            address: address.clone(),
            source,
        };
        let mut stream = Stream::connect(address, deadline).map_err(unreachable)?;
        let mut login = Login::new(LoginOptions {
            database: options.database.clone(),
            tls: options.tls.wish(),
            wanted: if options.local_infile {
                Capabilities::LOCAL_FILES
            } else {
                Capabilities::default()
            },
            ..LoginOptions::new(credentials.clone(), stream.transport())
        });
        let mut buffer = vec![0; PIECE];
        let mut pending = 0..0;
        loop {
            if pending.is_empty() {
                pending = 0..stream.receive(&mut buffer).map_err(unreachable)?;
            }
            let (used, step) = login.feed(&buffer[pending.clone()]).map_err(refused)?;
            pending.start += used;
            match step {
                LoginStep::NeedMore => {}
                LoginStep::Send(bytes) => stream.send(&bytes).map_err(unreachable)?,
                // Clear bytes behind the greeting must not be taken for the server's words under TLS.
                LoginStep::StartTls(_) | LoginStep::Done(_) if !pending.is_empty() => {
                    return Err(refused(LoginError::Unexpected));
                }
                LoginStep::StartTls(bytes) => {
                    stream.send(&bytes).map_err(unreachable)?;
                    let client = Tls::new(options.tls.clone()).client(address);
                    let started = stream.with_tls(client.map_err(no_tls)?);
                    stream = started.map_err(|error| match error {
                        HandshakeError::Tls(source) => no_tls(source),
                        HandshakeError::Io(source) => unreachable(source),
                    })?;
                    let bytes = login.tls_started().map_err(refused)?;
                    stream.send(&bytes).map_err(unreachable)?;
                }
                LoginStep::Done(logged_in) => {
                    let parser = ReplyParser::new(logged_in.capabilities);
                    return Ok(Connection {
                        watched: None,
                        stream,
                        logged_in,
                        parser,
                        statement_deadline: options.statement_deadline,
                        broken: false,
                        out: Vec::new(),
                        buffer,
                    });
                }
            }
        }
    }

    /// What the login found out: the server's version, the capabilities, whether TLS is on.
    #[must_use]
    pub fn login(&self) -> &LoggedIn {
        &self.logged_in
    }

    /// Lets a watch end statements that the server at `address` will never answer.
    pub fn watch(&mut self, watch: &StatementWatch, address: &Address) {
        let id = self.logged_in.greeting.connection_id;
        self.watched = Some(watch.enter(self.stream.as_fd(), address, id));
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn query(&mut self, sql: &str) -> Result<ResultSet, QueryError> {
        let mut collector = Collector::default();
        let summary = self.run(sql, None, &mut collector)?;
        if let Some(source) = collector.failed {
            return Err(QueryError::Protocol {
                sql: excerpt(sql),
                source,
            });
        }
        if collector.bytes > RESULT_LIMIT {
            return Err(QueryError::TooMuch { sql: excerpt(sql) });
        }
        Ok(ResultSet {
            summary,
            ..collector.set
        })
    }

    /// Runs a statement and throws its rows away.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn execute(&mut self, sql: &str) -> Result<Summary, QueryError> {
        self.run(sql, None, &mut Skip)
    }

    /// Runs a `LOAD DATA LOCAL INFILE` statement with this content, whatever file the statement names.
    ///
    /// # Errors
    /// [`QueryError`]. When the content cannot be read the server has loaded what came before.
    pub fn load(&mut self, sql: &str, content: &mut dyn Read) -> Result<Summary, QueryError> {
        self.run(sql, Some(content), &mut Skip)
    }

    fn run<S: Sink>(
        &mut self,
        sql: &str,
        content: Option<&mut dyn Read>,
        sink: &mut S,
    ) -> Result<Summary, QueryError> {
        self.begin(sql)?;
        command::query(&mut self.out, sql.as_bytes());
        self.finish(sql, content, sink)
    }

    /// Makes `out` empty for a request, whose time begins to run.
    fn begin(&mut self, sql: &str) -> Result<(), QueryError> {
        if self.broken {
            let source = io::Error::new(
                io::ErrorKind::NotConnected,
                "an earlier statement broke the connection",
            );
            return Err(QueryError::Broken {
                sql: excerpt(sql),
                source,
            });
        }
        // Stands until the reply is complete, so that every early return leaves it behind.
        self.broken = true;
        self.stream.set_deadline(from_now(self.statement_deadline));
        self.out.clear();
        if let Some(watched) = &self.watched {
            watched.begin();
        }
        Ok(())
    }

    /// The reply is complete, so the connection can be used further.
    fn complete(&mut self) {
        self.broken = false;
        self.end_wait();
    }

    fn end_wait(&self) {
        if let Some(watched) = &self.watched {
            watched.end();
        }
    }

    /// With the statement, and with the reason when the watch ended its wait.
    fn explain(&self, failure: Failure, sql: &str) -> QueryError {
        self.end_wait();
        let failure = match (failure, &self.watched) {
            (Failure::Io(error), Some(watched)) => Failure::Io(watched.explain(error)),
            (failure, _) => failure,
        };
        failure.explain(sql)
    }

    /// Sends what is in `out` and reads its reply.
    fn finish<S: Sink>(
        &mut self,
        sql: &str,
        content: Option<&mut dyn Read>,
        sink: &mut S,
    ) -> Result<Summary, QueryError> {
        let unread = self
            .exchange(content, sink)
            .map_err(|failure| self.explain(failure, sql))?;
        self.complete();
        if let Some(source) = unread {
            return Err(QueryError::Content {
                sql: excerpt(sql),
                source,
            });
        }
        self.parser
            .outcome()
            .map_err(|error| QueryError::refused(error, sql))
    }

    /// Sends what is in `out` and reads the whole reply. Returns the error that cut short the content, if any.
    fn exchange<S: Sink>(
        &mut self,
        mut content: Option<&mut dyn Read>,
        sink: &mut S,
    ) -> Result<Option<io::Error>, Failure> {
        self.stream.send(&self.out)?;
        self.parser.begin(RowFormat::Text);
        let mut unread = None;
        loop {
            let received = self.stream.receive(&mut self.buffer)?;
            let mut pending = &self.buffer[..received];
            while !pending.is_empty() {
                let fed = self.parser.feed(pending, sink)?;
                pending = &pending[fed.consumed..];
                match fed.step {
                    Step::NeedMore => {}
                    Step::Done if pending.is_empty() => return Ok(unread),
                    Step::Done => return Err(Failure::Surplus),
                    Step::LocalInfile => {
                        let sequence = self.parser.local_infile().sequence;
                        unread = send_content(
                            &mut self.stream,
                            &mut self.out,
                            sequence,
                            content.take(),
                            self.statement_deadline,
                        )?;
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("stream", &self.stream)
            .field("login", &self.logged_in)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.broken {
            self.out.clear();
            command::quit(&mut self.out);
            self.stream.set_deadline(from_now(QUIT_TIMEOUT));
            // The server notices the closed socket in any case.
            let _ = self.stream.send(&self.out);
        }
    }
}

/// The instant after so long; a time beyond the clock's range is cut to a year.
fn from_now(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time.min(YEAR)).unwrap_or(now)
}

/// Sends the content in packets and the empty packet that ends it. Without content, only the latter.
fn send_content(
    stream: &mut Stream,
    out: &mut Vec<u8>,
    mut sequence: u8,
    content: Option<&mut dyn Read>,
    patience: Duration,
) -> io::Result<Option<io::Error>> {
    let mut unread = None;
    if let Some(content) = content {
        let mut piece = vec![0; PIECE];
        loop {
            let length = match content.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    unread = Some(error);
                    break;
                }
            };
            out.clear();
            sequence = local_infile::content(out, sequence, &piece[..length]);
            // A load may take hours; the server shows that it lives by taking the next piece. A server that asks
            // again, without content to get, gains no time.
            stream.set_deadline(from_now(patience));
            stream.send(out)?;
        }
    }
    out.clear();
    local_infile::end(out, sequence);
    stream.send(out)?;
    Ok(unread)
}

#[cfg(test)]
mod tests;
