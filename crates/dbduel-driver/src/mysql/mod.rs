//! MySQL and MariaDB: the protocol-specific part of a connection. Login, error numbers and literals are in the files
//! beside.

pub(super) mod client_errors;
mod errors;
mod literal;
mod login;

use dbduel_wire::{
    CommandError, LoggedIn, ReplyParser, RowFormat, SentTypes, Statement, Step, Types, WireError,
    command,
};

use super::conn::Progress;
use super::{LostError, ServerError, Sink, StatementError, Summary, Value};
pub use literal::{BytesLiteral, TextLiteral};
pub(super) use login::{log_in, wish};

/// The state of a connection that is logged in.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) logged_in: LoggedIn,
    pub(super) parser: ReplyParser,
}

impl Session {
    pub(super) fn put_query(&mut self, out: &mut Vec<u8>, sql: &[u8]) {
        command::query(out, sql);
        self.begin_text_reply();
    }

    pub(super) fn begin_text_reply(&mut self) {
        self.parser.begin(RowFormat::Text);
    }

    #[inline]
    pub(super) fn put_execution(
        &mut self,
        out: &mut Vec<u8>,
        statement: &Statement,
        sent: &mut SentTypes,
        values: &[Value<'_>],
    ) -> Result<(), CommandError> {
        let types: Types = sent.choose(values);
        command::execute(out, statement, values, types)?;
        self.parser.begin(RowFormat::Binary);
        Ok(())
    }

    #[inline]
    pub(super) fn feed<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Progress, LostError> {
        let fed = self.parser.feed(bytes, sink)?;
        match fed.step {
            Step::NeedMore => Ok(Progress::NeedMore),
            _ if fed.consumed < bytes.len() => Err(surplus().into()),
            Step::LocalInfile => Ok(Progress::Content),
            Step::Done => Ok(Progress::Done),
        }
    }

    #[inline]
    pub(super) fn outcome(&self) -> Result<Summary, StatementError> {
        self.parser.outcome().map_err(refused)
    }
}

#[cold]
fn refused(error: &dbduel_wire::ServerError) -> StatementError {
    ServerError::from(error.clone()).into()
}

pub(super) fn surplus() -> WireError {
    WireError::Malformed {
        packet: "reply",
        problem: "bytes follow its end",
    }
}
