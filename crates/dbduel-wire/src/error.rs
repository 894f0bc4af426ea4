//! Errors in received bytes, and errors that a server answers.
//!
//! A broken connection is an error of the caller's socket, not one of these.

use std::fmt;

use crate::bytes::{Cursor, printable};

/// Bytes that do not follow the protocol. The stream cannot be used any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A packet that must be kept in memory is longer than the reader allows.
    #[error(
        "a packet of at least {length} bytes is over the limit of {limit}; ask for smaller rows"
    )]
    TooLong {
        /// Length announced so far, bytes.
        length: usize,
        /// The limit, bytes.
        limit: usize,
    },
    /// The sequence number jumped: bytes were lost, or request and reply are out of step.
    #[error(
        "packet number {got} arrived where {expected} was expected; request and reply are out of step"
    )]
    OutOfStep {
        /// The expected number.
        expected: u8,
        /// The number received.
        got: u8,
    },
    /// A packet's content contradicts the protocol.
    #[error("malformed {packet}: {problem}")]
    Malformed {
        /// The packet being read.
        packet: &'static str,
        /// The problem.
        problem: &'static str,
    },
}

impl WireError {
    pub(crate) fn malformed(packet: &'static str, problem: &'static str) -> Self {
        WireError::Malformed { packet, problem }
    }
}

/// An error reported by the server in an ERR packet.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerError {
    /// The server's error number, for instance 1213 for a deadlock.
    pub code: u16,
    /// SQLSTATE, five ASCII characters; `HY000` where the server sent none.
    pub sqlstate: [u8; 5],
    /// The server's text, at most [`ServerError::MESSAGE_LIMIT`] bytes of it, with spaces for control characters.
    pub message: String,
}

impl ServerError {
    /// Longest message kept, bytes; servers themselves stop at 512.
    pub const MESSAGE_LIMIT: usize = 4096;

    /// SQLSTATE as text.
    #[must_use]
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }

    /// Parses a whole ERR packet, the leading 0xFF included.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the packet is not an ERR packet or ends inside the error number.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("ERR packet", payload);
        if cursor.u8()? != 0xFF {
            return Err(cursor.wrong("does not begin with 0xFF"));
        }
        let code = cursor.u16()?;
        let mut rest = cursor.rest();
        let mut sqlstate = *b"HY000";
        // Errors sent before the login (host blocked, too many connections) carry no SQLSTATE.
        if rest.len() >= 6 && rest[0] == b'#' && rest[1..6].is_ascii() {
            sqlstate.copy_from_slice(&rest[1..6]);
            rest = &rest[6..];
        }
        Ok(ServerError {
            code,
            sqlstate,
            message: printable(rest, Self::MESSAGE_LIMIT),
        })
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "server error {} ({}): {}",
            self.code,
            self.sqlstate(),
            self.message
        )
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_state_and_words_are_read() {
        let error = ServerError::parse(b"\xff\xbd\x04#40001Deadlock found").unwrap();
        assert_eq!(
            (error.code, error.sqlstate(), error.message.as_str()),
            (1213, "40001", "Deadlock found")
        );
    }

    #[test]
    fn an_error_before_login_has_no_sqlstate() {
        let error = ServerError::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!(
            (error.code, error.sqlstate(), error.message.as_str()),
            (1040, "HY000", "Too many connections")
        );
    }

    #[test]
    fn a_long_message_is_cut_and_a_short_packet_refused() {
        let mut packet = b"\xff\x10\x04#HY000".to_vec();
        packet.resize(100_000, b'x');
        assert_eq!(
            ServerError::parse(&packet).unwrap().message.len(),
            ServerError::MESSAGE_LIMIT
        );
        assert!(ServerError::parse(b"\xff\x10").is_err());
        assert!(ServerError::parse(b"").is_err());
    }
}
