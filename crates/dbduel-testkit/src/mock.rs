//! Servers of MySQL's protocol that answer as a test says.

use std::time::Duration;

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_wire::ServerError;
use dbduel_wire::server::{Act, Answer};
use tempfile::TempDir;

/// Turns a hang into a failure. Far above what anything takes on a busy machine.
pub const PROMPT: Duration = Duration::from_secs(60);

/// A server on a socket in a directory of its own.
#[must_use]
pub fn mock(role: Role) -> (TempDir, MockServer) {
    let directory = tempfile::tempdir().unwrap();
    let server = MockServer::start(&directory.path().join("s.sock"), role).unwrap();
    (directory, server)
}

/// A server that does this to the statements of a connection, one after another.
#[must_use]
pub fn scripted(acts: Vec<Act>) -> (TempDir, MockServer) {
    mock(Role::Scripted(acts))
}

/// An answer after so many milliseconds.
#[must_use]
pub fn act(after_ms: u64, answer: Answer) -> Act {
    Act {
        after: Duration::from_millis(after_ms),
        answer,
    }
}

/// An error as an answer.
#[must_use]
pub fn error(code: u16, sqlstate: &[u8; 5]) -> Answer {
    Answer::Error(ServerError {
        code,
        sqlstate: *sqlstate,
        message: format!("error {code}"),
    })
}
