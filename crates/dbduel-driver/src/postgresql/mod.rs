//! PostgreSQL: the protocol-specific part of a connection. Login, meanings of SQLSTATEs and literals are in the files
//! beside.

pub(super) mod client_errors;
mod errors;
pub(super) mod literal;
mod login;

use dbduel_wire::CommandError;
use dbduel_wire::postgresql::{LoggedIn, PrepareParser, ReplyParser, Statement, Step, command};

use super::conn::{Progress, Results};
use super::placeholders::numbered;
use super::{LostError, Sink, StatementError, Summary, Value};
pub use errors::code as sqlstate_code;
use errors::commit_rolled_back;
pub(super) use login::log_in;

/// The state of a connection that is logged in.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) logged_in: LoggedIn,
    parser: ReplyParser,
    /// Statements prepared so far; their names are numbers.
    prepared: u32,
    /// True when the last statement of the current request commits: the server answers the COMMIT of a failed
    /// transaction with a successful ROLLBACK.
    commits: bool,
}

/// A statement that the server has prepared.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) statement: Statement,
    pub(super) commits: bool,
}

impl Prepared {
    pub(super) fn parameters(&self) -> usize {
        self.statement.parameters()
    }
}

/// State of a request to prepare a statement.
pub(super) struct Preparation {
    parser: PrepareParser,
    commits: bool,
}

impl Session {
    fn new(logged_in: LoggedIn) -> Self {
        Session {
            logged_in,
            parser: ReplyParser::default(),
            prepared: 0,
            commits: false,
        }
    }

    pub(super) fn put_query(&mut self, out: &mut Vec<u8>, sql: &[u8]) {
        command::query(out, sql);
        self.commits = commits(sql);
        self.parser.begin_query();
    }

    #[inline]
    pub(super) fn put_execution(
        &mut self,
        out: &mut Vec<u8>,
        prepared: &Prepared,
        values: &[Value<'_>],
    ) -> Result<(), CommandError> {
        command::execute(out, &prepared.statement, values)?;
        command::sync(out);
        self.commits = prepared.commits;
        self.parser.begin_executions();
        self.parser.expect(&prepared.statement);
        Ok(())
    }

    /// Appends a statement in text with its values as text.
    pub(super) fn put_text_execution(
        &mut self,
        out: &mut Vec<u8>,
        sql: &[u8],
        values: &[Option<&[u8]>],
    ) -> Result<(), CommandError> {
        command::execute_text(out, sql, values)?;
        command::sync(out);
        self.commits = commits(sql);
        // The reply is that of a query in text, with a result for the execution.
        self.parser.begin_query();
        self.parser.expect_columns(&[]);
        Ok(())
    }

    /// Appends the executions of a group.
    pub(super) fn put_group(&mut self, out: &mut Vec<u8>, request: &[u8], results: &Results) {
        out.extend_from_slice(request);
        command::sync(out);
        self.commits = results.commits;
        self.parser.begin_executions();
        let mut columns = results.columns.as_slice();
        for &count in &results.counts {
            let (own, others) = columns.split_at(count.min(columns.len()));
            self.parser.expect_columns(own);
            columns = others;
        }
    }

    /// Appends a request to prepare a statement, in which `?` outside of quotes stands for a value.
    pub(super) fn put_prepare(&mut self, out: &mut Vec<u8>, sql: &str) -> Preparation {
        self.prepared += 1;
        command::prepare(out, self.prepared, numbered(sql).as_bytes());
        Preparation {
            parser: PrepareParser::new(self.prepared),
            commits: commits(sql.as_bytes()),
        }
    }

    /// Consumes bytes of the answer; `None` while it is incomplete.
    pub(super) fn feed_prepared(
        &mut self,
        preparation: &mut Preparation,
        bytes: &[u8],
    ) -> Result<Option<Result<Prepared, StatementError>>, LostError> {
        let answer = preparation.parser.feed(&mut self.parser, bytes)?;
        Ok(answer.map(|answer| match answer {
            Ok(statement) => Ok(Prepared {
                statement,
                commits: preparation.commits,
            }),
            Err(error) => Err(error.into()),
        }))
    }

    /// Appends a request to deallocate a statement.
    pub(super) fn put_close(&mut self, out: &mut Vec<u8>, prepared: &Prepared) {
        command::close(out, &prepared.statement);
        command::sync(out);
        self.commits = false;
        self.parser.begin_executions();
    }

    #[inline]
    pub(super) fn feed<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Progress, LostError> {
        Ok(match self.parser.feed(bytes, sink)? {
            Step::NeedMore => Progress::NeedMore,
            Step::CopyIn => Progress::Content,
            Step::Done => Progress::Done,
        })
    }

    #[inline]
    pub(super) fn outcome(&mut self) -> Result<Summary, StatementError> {
        match self.parser.outcome() {
            Ok(_) if self.commits && self.parser.rolled_back() => Err(commit_rolled_back().into()),
            Ok(summary) => Ok(summary),
            Err(error) => Err(error.into()),
        }
    }
}

/// True when a statement commits a transaction.
fn commits(sql: &[u8]) -> bool {
    let begins_with = |word: &[u8]| {
        let sql = sql.trim_ascii_start();
        sql.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    begins_with(b"COMMIT") || begins_with(b"END")
}
