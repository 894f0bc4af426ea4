//! Loading: one statement for many rows, and files of the client.

use std::io::{self, Read};

use dbduel_wire::{ColumnKind, WireError, bulk_execute, local_infile, postgresql};

use super::session::{Session, foreign_statement};
use super::statement::Kind;
use super::{Conn, Statement, wired};
use crate::socket::Waiter;
use crate::{LostError, Skip, StatementError, Summary, Value};

/// Bytes of a file that go into one packet.
const CONTENT_BYTES: usize = 64 << 10;

/// Type of the values of a column in a request for many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkKind {
    /// Signed integers of 64 bits.
    Integer,
    /// Strings of bytes.
    Bytes,
}

impl BulkKind {
    fn of_column(self) -> ColumnKind {
        match self {
            BulkKind::Integer => Value::Signed(0).kind(),
            BulkKind::Bytes => Value::Bytes(b"").kind(),
        }
    }
}

/// Content for a server that asks for a file. The type is generic at the call, so statements without a file pay
/// nothing for it.
pub(super) trait FileContent {
    /// The next bytes; 0 at the end.
    fn read(&mut self, piece: &mut [u8]) -> usize;

    /// True when the end came early.
    fn is_cut_short(&self) -> bool;
}

/// None.
impl FileContent for () {
    fn read(&mut self, _piece: &mut [u8]) -> usize {
        0
    }

    fn is_cut_short(&self) -> bool {
        true
    }
}

impl FileContent for &mut Content<'_> {
    fn read(&mut self, piece: &mut [u8]) -> usize {
        loop {
            match self.reader.read(piece) {
                Ok(length) => return length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = Some(error);
                    return 0;
                }
            }
        }
    }

    fn is_cut_short(&self) -> bool {
        self.failed.is_some()
    }
}

/// Content of a file that a statement loads.
pub(crate) struct Content<'a> {
    pub(crate) reader: &'a mut dyn Read,
    /// Read error that ended the content early.
    pub(crate) failed: Option<io::Error>,
}

impl<W: Waiter> Conn<W> {
    /// Executes a statement for each of the rows, whose values have these kinds or are NULL; see
    /// [`bulk_execute`].
    pub(crate) async fn execute_bulk<'a, R: AsRef<[Value<'a>]>>(
        &mut self,
        statement: &Statement,
        kinds: &[BulkKind],
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Summary, StatementError> {
        let kinds: Vec<ColumnKind> = kinds.iter().map(|kind| kind.of_column()).collect();
        self.out.clear();
        if self.dialect().is_in_process() {
            self.begin_wait();
        }
        let (session, statement) = match (&mut self.session, &statement.kind) {
            (Session::MySql(session), Kind::MySql { statement, .. }) => (session, statement),
            (Session::Sqlite(session), Kind::Sqlite { statement }) => {
                return session.run_for_all(*statement, rows);
            }
            _ => return Err(LostError::from(foreign_statement(&[])).into()),
        };
        bulk_execute(&mut self.out, statement, &kinds, rows).map_err(LostError::from)?;
        session.begin_text_reply();
        self.round_trip(&mut Skip, ()).await
    }

    /// Runs a text query that loads a file or copies from the client, and gets this content.
    pub(crate) async fn load(
        &mut self,
        sql: &[u8],
        content: &mut Content<'_>,
    ) -> Result<Summary, StatementError> {
        self.out.clear();
        self.session.put_query(&mut self.out, sql);
        self.round_trip(&mut Skip, content).await
    }

    /// Sends the content in packets, and the end marker.
    #[cold]
    pub(super) async fn send_content(
        &mut self,
        content: &mut impl FileContent,
    ) -> Result<(), LostError> {
        if !self.session.may_load_files() {
            return Err(no_file().into());
        }
        let mut piece = vec![0; CONTENT_BYTES];
        let mut sequence = match &self.session {
            Session::MySql(session) => session.parser.local_infile().sequence,
            Session::PostgreSql(_) | Session::Sqlite(_) => 0,
        };
        loop {
            let length = content.read(&mut piece);
            self.out.clear();
            match &self.session {
                Session::MySql(_) if length == 0 => local_infile::end(&mut self.out, sequence),
                Session::MySql(_) => {
                    sequence = local_infile::content(&mut self.out, sequence, &piece[..length]);
                }
                Session::PostgreSql(_) if length > 0 => {
                    postgresql::command::copy_data(&mut self.out, &piece[..length]);
                }
                Session::PostgreSql(_) if content.is_cut_short() => {
                    postgresql::command::copy_fail(&mut self.out, "the content ended early");
                }
                Session::PostgreSql(_) => postgresql::command::copy_done(&mut self.out),
                Session::Sqlite(_) => {}
            }
            // A load may take hours; the server shows that it lives by taking the next piece. A server that asks
            // again, without content to get, gains no time.
            if length > 0 {
                self.waiter.restart();
            }
            let socket = wired(&mut self.socket)?;
            socket.send(&self.waiter, &self.out).await?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

fn no_file() -> WireError {
    WireError::Malformed {
        packet: "reply",
        problem: "the server asks for a file that was not offered",
    }
}
