//! An error as a server reports it.

use std::fmt;

use crate::bytes::{Cursor, printable};
use crate::error::{ServerError as MySqlError, WireError};

/// An ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// SQLSTATE, five ASCII characters.
    pub sqlstate: [u8; 5],
    /// The server's text, with spaces for control characters, cut at 4096 bytes.
    pub message: String,
    /// True when the server closes the connection after it (FATAL, PANIC).
    pub is_fatal: bool,
}

impl ServerError {
    /// SQLSTATE as text.
    #[must_use]
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("XX000")
    }

    /// Reads the fields of an ErrorResponse.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when a field does not end, or there is no SQLSTATE.
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Cursor::new("ErrorResponse", body);
        let (mut sqlstate, mut message) = (None, String::new());
        let (mut severity, mut translated) = (None, &b""[..]);
        loop {
            match body.u8()? {
                0 => break,
                b'S' => translated = body.nul_bytes()?,
                // The same in English whatever `lc_messages` says, since 9.6.
                b'V' => severity = Some(body.nul_bytes()?),
                b'C' => sqlstate = body.nul_bytes()?.try_into().ok(),
                b'M' => message = printable(body.nul_bytes()?, MySqlError::MESSAGE_LIMIT),
                _ => drop(body.nul_bytes()?),
            }
        }
        let sqlstate: [u8; 5] = sqlstate.ok_or_else(|| body.wrong("has no SQLSTATE"))?;
        if !sqlstate.iter().all(u8::is_ascii_alphanumeric) {
            return Err(body.wrong("its SQLSTATE is invalid"));
        }
        Ok(ServerError {
            sqlstate,
            message,
            is_fatal: matches!(severity.unwrap_or(translated), b"FATAL" | b"PANIC"),
        })
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "server error {}: {}", self.sqlstate(), self.message)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_read_and_foreign_ones_passed_over() {
        let body = b"SFEHLER\0VERROR\0C40P01\0Mdeadlock\ndetected\0Dsome detail\0\0";
        let error = ServerError::parse(body).unwrap();
        assert_eq!(error.to_string(), "server error 40P01: deadlock detected");
        assert!(!error.is_fatal);
        let fatal = ServerError::parse(b"SFATAL\0C57P01\0Mbye\0\0").unwrap();
        assert!(fatal.is_fatal);
    }

    #[test]
    fn an_error_that_does_not_end_or_has_no_state_is_refused() {
        let body = b"SERROR\0C40P01\0Mdeadlock\0\0";
        for cut in 0..body.len() {
            assert!(ServerError::parse(&body[..cut]).is_err(), "cut at {cut}");
        }
        for body in [&b"Mx\0\0"[..], b"C1\0\0", b"C\x1b[2J0\0\0"] {
            assert!(ServerError::parse(body).is_err());
        }
    }
}
