//! One blocking connection, for administration: settings, schema, loading, readiness.
//!
//! Not for measuring: results are kept in memory and waits are system calls. Every wait has a deadline; a statement
//! that misses its deadline makes the connection unusable, because its reply could still arrive.

use std::fmt;
use std::io::{self, Read};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::conn::{BulkKind, Conn, Content, Extra, Statement};
use super::error::{ConnectError, LostError, QueryError, StatementError, excerpt};
use super::result::{Collector, RESULT_LIMIT, ResultSet};
use super::socket::Blocking;
use super::{Credentials, Dialect, SessionStart, Sink, Summary, Tls, TlsMode, Value};
use crate::address::Address;
use crate::cancel::Cancel;
use crate::statement_watch::StatementWatch;

/// Bytes of a statement of which errors repeat a part.
const EXCERPT_BYTES: usize = 1024;

/// How a connection is made and used.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The dialect.
    pub dialect: Dialect,
    /// Time for connecting, changing to TLS and logging in, all together.
    pub deadline: Duration,
    /// Time for one statement with its whole reply; for a load, time between two replies or requests of the server.
    pub statement_deadline: Duration,
    /// Default database, if any.
    pub database: Option<String>,
    /// TLS mode.
    pub tls: TlsMode,
    /// Whether [`Connection::load`] may be used; always allowed with PostgreSQL.
    pub local_infile: bool,
    /// Cancels waits; the connection is unusable afterwards.
    pub cancel: Cancel,
    /// Settings of the session before its first statement.
    pub session: SessionStart,
}

impl Default for ConnectOptions {
    /// MySQL; ten seconds to connect, sixty per statement; no database, no TLS, no loading; no cancellation; a session
    /// for unmeasured statements.
    fn default() -> Self {
        ConnectOptions {
            dialect: Dialect::MySql,
            deadline: Duration::from_secs(10),
            statement_deadline: Duration::from_secs(60),
            database: None,
            tls: TlsMode::Off,
            local_infile: false,
            cancel: Cancel::never(),
            session: SessionStart::Ours,
        }
    }
}

/// A connection that is logged in. Dropping it sends a quit command.
pub struct Connection {
    conn: Conn<Blocking>,
    broken: bool,
}

/// A statement of one connection.
#[derive(Debug)]
pub struct PreparedStatement {
    statement: Statement,
    sql: String,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ConnectError`]; [`ConnectError::refused`] shows whether a server answered at all.
    pub fn connect(
        address: &Address,
        credentials: &Credentials,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let extra = match options.local_infile {
            true => Extra::Files,
            false => Extra::None,
        };
        let tls = Tls::new(options.tls.clone());
        let connecting = Conn::connect(
            Blocking::new(options.deadline, options.cancel.clone()),
            options.dialect,
            address,
            credentials.clone(),
            options.database.clone(),
            extra,
            &tls,
        );
        let started = block_on(async {
            let mut conn = connecting.await?;
            conn.start_session(options.session).await?;
            Ok(conn)
        });
        let conn = started.map_err(|lost| ConnectError::new(lost, address, &credentials.user))?;
        conn.waiter().set_timeout(options.statement_deadline);
        Ok(Connection {
            conn,
            broken: false,
        })
    }

    /// The server's version from its greeting.
    #[must_use]
    pub fn server_version(&self) -> &str {
        self.conn.session().server_version()
    }

    /// The server's number of the connection.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.conn.session().id()
    }

    /// Authentication method of the login.
    #[must_use]
    pub fn authentication(&self) -> &'static str {
        self.conn.session().authentication()
    }

    /// The dialect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.conn.dialect()
    }

    /// True when the connection changed to TLS at login.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.conn.is_encrypted()
    }

    /// True where no further statement can be sent.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Lets a watch end statements that the server at `address` will never answer.
    pub fn watch(&mut self, watch: &StatementWatch, address: &Address) {
        self.conn.watch(watch, address);
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn query(&mut self, sql: &str) -> Result<ResultSet, QueryError> {
        let mut collector = Collector::default();
        let summary = self.run(sql, async |conn| {
            conn.query_into(sql.as_bytes(), &mut collector).await
        })?;
        if let Some(source) = collector.failed {
            return Err(QueryError::Protocol {
                sql: excerpt(sql),
                source: source.into(),
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

    /// Runs a statement and hands its rows to `sink` as they arrive.
    ///
    /// # Errors
    /// [`QueryError`]; the sink may then have seen some rows.
    pub fn query_into<S: Sink>(&mut self, sql: &str, sink: &mut S) -> Result<Summary, QueryError> {
        self.run(sql, async |conn| {
            conn.query_into(sql.as_bytes(), sink).await
        })
    }

    /// Runs a statement and discards its rows.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn execute(&mut self, sql: &str) -> Result<Summary, QueryError> {
        self.run(sql, async |conn| conn.query(sql.as_bytes()).await)
    }

    /// As [`Connection::execute`], for text that need not be UTF-8, such as that of a dump.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn execute_bytes(&mut self, sql: &[u8]) -> Result<Summary, QueryError> {
        let first = &sql[..sql.len().min(EXCERPT_BYTES)];
        let beginning = String::from_utf8_lossy(first);
        self.run(&beginning, async |conn| conn.query(sql).await)
    }

    /// Runs a statement as it was captured and hands its rows to `sink`: as text, or with these values of PostgreSQL's parameters.
    ///
    /// # Errors
    /// [`QueryError`]; the sink may then have seen some rows.
    pub fn replay_into<S: Sink>(
        &mut self,
        sql: &[u8],
        values: Option<&[Option<&[u8]>]>,
        sink: &mut S,
    ) -> Result<Summary, QueryError> {
        // Errors repeat none of it: it may hold values.
        self.run("a captured statement", async |conn| match values {
            Some(values) => conn.query_with_into(sql, values, sink).await,
            None => conn.query_into(sql, sink).await,
        })
    }

    /// Runs a `LOAD DATA LOCAL INFILE` statement with this content, regardless of the file that the statement names,
    /// or a `COPY … FROM STDIN`.
    ///
    /// # Errors
    /// [`QueryError`]. When the content cannot be read, MySQL keeps the rows loaded so far, PostgreSQL none.
    pub fn load(&mut self, sql: &str, content: &mut dyn Read) -> Result<Summary, QueryError> {
        let mut content = Content {
            reader: content,
            failed: None,
        };
        let outcome = self.run(sql, async |conn| {
            conn.load(sql.as_bytes(), &mut content).await
        });
        match (outcome, content.failed) {
            (Ok(_) | Err(QueryError::Refused { .. }), Some(source)) => Err(QueryError::Content {
                sql: excerpt(sql),
                source,
            }),
            (outcome, _) => outcome,
        }
    }

    /// Whether both sides agreed at login that [`Connection::load`] may be used.
    #[must_use]
    pub fn may_load_files(&self) -> bool {
        self.conn.session().may_load_files()
    }

    /// Whether the server executes one statement for many rows in one request (MariaDB).
    #[must_use]
    pub fn has_bulk_execution(&self) -> bool {
        self.conn.session().has_bulk_execution()
    }

    /// Prepares a statement on the server.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn prepare(&mut self, sql: &str) -> Result<PreparedStatement, QueryError> {
        let statement = self.run(sql, async |conn| conn.prepare_on_server(sql).await)?;
        Ok(PreparedStatement {
            statement,
            sql: excerpt(sql),
        })
    }

    /// Deallocates a statement; servers limit their number.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn forget(&mut self, prepared: PreparedStatement) -> Result<(), QueryError> {
        let PreparedStatement { statement, sql } = prepared;
        self.run(&sql, async |conn| Ok(conn.close(statement).await?))
    }

    /// Executes a statement for each of the rows, whose values are of these kinds or NULL; see
    /// [`Connection::has_bulk_execution`].
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn execute_for_all<'a, R: AsRef<[Value<'a>]>>(
        &mut self,
        prepared: &PreparedStatement,
        kinds: &[BulkKind],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Summary, QueryError> {
        let PreparedStatement { statement, sql } = prepared;
        self.run(sql, async |conn| {
            conn.execute_bulk(statement, kinds, rows).await
        })
    }

    /// Makes a request, unless an earlier one broke the connection.
    fn run<T>(
        &mut self,
        sql: &str,
        request: impl AsyncFnOnce(&mut Conn<Blocking>) -> Result<T, StatementError>,
    ) -> Result<T, QueryError> {
        let outcome = if self.broken {
            let text = "an earlier statement broke the connection";
            let error = io::Error::new(io::ErrorKind::NotConnected, text);
            Err(error.into())
        } else {
            block_on(request(&mut self.conn))
        };
        // Of values that do not fit nothing was sent.
        self.broken |= matches!(&outcome, Err(StatementError::Lost(lost)) if !matches!(lost, LostError::Values(_)));
        outcome.map_err(|error| QueryError::new(error, sql))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("server", &self.server_version())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

/// Runs a future whose waits block the thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    use dbduel_wire::server::{NullServer, Shape};

    use super::*;

    #[test]
    fn a_session_that_is_reset_has_the_character_set_of_the_handshake() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let (mut heard, mut out) = (Vec::new(), Vec::new());
            let mut server = NullServer::begin(1, &mut out);
            let mut buffer = [0; 4096];
            loop {
                stream.write_all(&out).unwrap();
                out.clear();
                let length = stream.read(&mut buffer).unwrap();
                let mut shape = |sql: &[u8]| {
                    heard.push(String::from_utf8_lossy(sql).into_owned());
                    Shape::default()
                };
                let goes_on = server.feed(&buffer[..length], &mut shape, &mut out);
                if length == 0 || !goes_on.unwrap() {
                    return heard;
                }
            }
        });
        let mut connection = Connection::connect(
            &address.parse().unwrap(),
            &Credentials::default(),
            &ConnectOptions::default(),
        )
        .unwrap();
        block_on(connection.conn.reset_session()).unwrap();
        drop(connection);
        let heard = server.join().unwrap();
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert_eq!(
            heard[1..3],
            ["ROLLBACK", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"]
        );
        assert!(heard[3].starts_with("SET SESSION "), "{heard:?}");
    }
}
