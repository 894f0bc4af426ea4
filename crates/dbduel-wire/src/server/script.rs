//! A server that answers by a script: right or wrong, whole or torn, late or never.
//!
//! Owns no clock. It returns what is to be sent and after which delay; the driver obeys.

use std::time::Duration;

use super::null::answer;
use super::{Command, ReplyWriter, Session, Shape, Terms, Turn};
use crate::capability::Status;
use crate::error::{ServerError, WireError};
use crate::reply::Completion;

/// How one request is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Delay between the arrival of the request and the answer.
    pub after: Duration,
    /// The answer.
    pub answer: Answer,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// As the null server would.
    Proper,
    /// OK, with this number of rows affected, for any request.
    Ok {
        /// Rows affected.
        affected_rows: u64,
    },
    /// An error.
    Error(ServerError),
    /// One packet with this payload, which may be invalid.
    Payload(Vec<u8>),
    /// These bytes, without a header around them.
    Bytes(Vec<u8>),
    /// The proper answer, but only its first bytes; then the connection is closed.
    Torn {
        /// Number of bytes to send.
        bytes: usize,
    },
    /// Nothing, ever; later requests are not answered either.
    Stall,
    /// No answer: the connection is closed.
    Close,
}

/// An action of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Close the connection.
    Close,
}

/// An effect with its due time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Delay since the arrival of the bytes fed.
    pub after: Duration,
    /// The effect.
    pub effect: Effect,
}

/// One session with the scripted server.
///
/// Queries and executions play the script, act by act; after the last act it begins again. Login, preparing, queries
/// whose [shape](Shape::is_outside_script) says so and everything else are answered properly and at once.
#[derive(Debug)]
pub struct ScriptedServer {
    session: Session,
    prepared: Vec<Shape>,
    script: Vec<Act>,
    next_act: usize,
    deaf: bool,
}

impl ScriptedServer {
    /// A new session; appends the greeting to `out`. An empty script answers everything properly.
    #[must_use]
    pub fn begin(connection_id: u32, script: Vec<Act>, out: &mut Vec<u8>) -> Self {
        ScriptedServer {
            session: Session::begin(connection_id, "8.0.0-dbduel-scripted", out),
            prepared: Vec::new(),
            script,
            next_act: 0,
            deaf: false,
        }
    }

    /// Takes bytes that arrived; returns the effects, in order. `shape` is used as by the [null
    /// server](super::NullServer::feed).
    ///
    /// # Errors
    /// [`WireError`] when the client violates the protocol; the connection must be closed.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        shape: &mut dyn FnMut(&[u8]) -> Shape,
    ) -> Result<Vec<Action>, WireError> {
        let mut actions = Vec::new();
        let mut position = 0;
        while !self.deaf {
            let mut out = Vec::new();
            let (after, end) = match self.session.next(bytes, &mut position, &mut out)? {
                Turn::NeedMore => break,
                Turn::LoggedIn => (Duration::ZERO, End::GoOn),
                Turn::Request(Command::Quit, _) => (Duration::ZERO, End::Close),
                Turn::Request(command, terms) => {
                    let mut plays = scripted(&command);
                    let mut shape = |sql: &[u8]| {
                        let shape = shape(sql);
                        plays &= !shape.is_outside_script;
                        shape
                    };
                    answer(&command, terms, &mut self.prepared, &mut shape, &mut out);
                    match plays.then(|| self.script.get(self.next_act)).flatten() {
                        None => (Duration::ZERO, End::GoOn),
                        Some(act) => {
                            self.next_act = (self.next_act + 1) % self.script.len();
                            (act.after, act.answer.replace(&mut out, terms))
                        }
                    }
                }
            };
            self.deaf = end != End::GoOn;
            if !out.is_empty() {
                actions.push(Action {
                    after,
                    effect: Effect::Send(out),
                });
            }
            if end == End::Close {
                actions.push(Action {
                    after,
                    effect: Effect::Close,
                });
            }
        }
        Ok(actions)
    }
}

fn scripted(command: &Command<'_>) -> bool {
    matches!(
        command,
        Command::Query(_) | Command::Execute { .. } | Command::BulkExecute { .. }
    )
}

/// How the session continues after an answer.
#[derive(Debug, PartialEq, Eq)]
enum End {
    GoOn,
    Stall,
    Close,
}

impl Answer {
    /// Replaces the proper answer in `out` by this one.
    fn replace(&self, out: &mut Vec<u8>, terms: Terms) -> End {
        if let Answer::Proper = self {
            return End::GoOn;
        }
        if let Answer::Torn { bytes } = self {
            out.truncate(*bytes);
            return End::Close;
        }
        out.clear();
        let mut reply = ReplyWriter::new(out, terms);
        match self {
            Answer::Ok { affected_rows } => {
                let (affected_rows, status) = (*affected_rows, Status::AUTOCOMMIT);
                reply.ok(&Completion {
                    affected_rows,
                    status,
                    ..Completion::default()
                });
            }
            Answer::Error(error) => reply.error(error),
            Answer::Payload(payload) => reply.packet(|out| out.extend_from_slice(payload)),
            Answer::Bytes(bytes) => out.extend_from_slice(bytes),
            Answer::Stall => return End::Stall,
            Answer::Close => return End::Close,
            Answer::Proper | Answer::Torn { .. } => {}
        }
        End::GoOn
    }
}
