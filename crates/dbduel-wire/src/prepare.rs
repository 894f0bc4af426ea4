//! The answer to a request to prepare a statement.

use crate::bytes::Cursor;
use crate::capability::Capabilities;
use crate::error::{ServerError, WireError};
use crate::packet::{Event, PacketReader};

/// A statement that the server has prepared. It lives until it is closed or its connection ends or is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// The server's id of it.
    pub id: u32,
    /// Number of placeholders.
    pub parameters: u16,
    /// Number of columns of its result set; 0 if it returns none.
    pub columns: u16,
    /// Warnings that preparing it raised.
    pub warnings: u16,
}

impl Statement {
    /// Reads the first packet of the answer.
    ///
    /// # Errors
    /// [`WireError::Malformed`] when the packet is something else or ends early.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("reply to prepare", payload);
        if cursor.u8()? != 0 {
            return Err(cursor.wrong("neither OK nor an error"));
        }
        let id = cursor.u32()?;
        let columns = cursor.u16()?;
        let parameters = cursor.u16()?;
        cursor.u8()?;
        let warnings = cursor.u16()?;
        Ok(Statement {
            id,
            parameters,
            columns,
            warnings,
        })
    }
}

/// State of a [`PrepareParser`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// More bytes are needed. All bytes fed are consumed.
    NeedMore,
    /// The reply is complete.
    Done(Result<Statement, ServerError>),
}

/// Longest packet of the answer that is read; only the first and an ERR packet are, the descriptions of parameters and
/// columns are skipped.
const LIMIT: usize = 1 << 16;

/// Parses one answer. Descriptions of parameters and columns are skipped: executions describe their columns again.
#[derive(Debug)]
pub struct PrepareParser {
    reader: PacketReader,
    deprecate_eof: bool,
    outcome: Option<Result<Statement, ServerError>>,
    left: u32,
    failed: Option<WireError>,
}

impl PrepareParser {
    /// A parser for a connection with these negotiated capabilities.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        PrepareParser {
            reader: PacketReader::new(LIMIT),
            deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF),
            outcome: None,
            left: 0,
            failed: None,
        }
    }

    /// Prepares for the next answer.
    pub fn begin(&mut self) {
        self.reader.restart();
        self.outcome = None;
        self.left = 0;
        self.failed = None;
    }

    /// Takes bytes that arrived; returns the number of bytes of this answer, and its state.
    ///
    /// # Errors
    /// [`WireError`] when the bytes violate the protocol; the same error is returned until the next `begin`.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Prepared), WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut consumed = 0;
        match self.run(bytes, &mut consumed) {
            Ok(prepared) => Ok((consumed, prepared)),
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }

    fn run(&mut self, bytes: &[u8], position: &mut usize) -> Result<Prepared, WireError> {
        loop {
            match &self.outcome {
                Some(Ok(statement)) if self.left == 0 => return Ok(Prepared::Done(Ok(*statement))),
                Some(Err(error)) => return Ok(Prepared::Done(Err(error.clone()))),
                _ => {}
            }
            let described = self.outcome.is_some();
            match self
                .reader
                .next(bytes, position, |start| described && start.first != 0xFF)?
            {
                Event::NeedMore => return Ok(Prepared::NeedMore),
                Event::Skipped => self.left -= 1,
                Event::Packet {
                    payload: payload @ [0xFF, ..],
                    ..
                } => {
                    let error = ServerError::parse(payload)?;
                    self.outcome = Some(Err(error));
                }
                Event::Packet { payload, .. } => {
                    let statement = Statement::parse(payload)?;
                    self.left = [statement.parameters, statement.columns]
                        .into_iter()
                        .filter(|&count| count > 0)
                        // Without DEPRECATE_EOF each list is closed by an EOF packet.
                        .map(|count| u32::from(count) + u32::from(!self.deprecate_eof))
                        .sum();
                    self.outcome = Some(Ok(statement));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] = b"\x0c\0\0\x01\0\x05\0\0\0\x01\0\x02\0\0\x03\0";

    #[test]
    fn descriptions_are_skipped_and_their_ends_awaited() {
        let statement = Statement {
            id: 5,
            parameters: 2,
            columns: 1,
            warnings: 3,
        };
        let described = [FIRST, b"\x01\0\0\x02a\x01\0\0\x03b\x01\0\0\x04c"].concat();
        let mut parser = PrepareParser::new(Capabilities::DEPRECATE_EOF);
        assert_eq!(
            parser.feed(&described),
            Ok((described.len(), Prepared::Done(Ok(statement))))
        );
        assert_eq!(
            parser.feed(b"next"),
            Ok((0, Prepared::Done(Ok(statement)))),
            "it stays complete"
        );

        let eof = b"\x05\0\0\x04\xfe\0\0\0\0";
        let described = [FIRST, b"\x01\0\0\x02a\x01\0\0\x03b", eof, b"\x01\0\0\x05c"].concat();
        let mut parser = PrepareParser::new(Capabilities::default());
        assert_eq!(
            parser.feed(&described),
            Ok((described.len(), Prepared::NeedMore))
        );
        assert_eq!(
            parser.feed(b"\x05\0\0\x06\xfe\0\0\0\0"),
            Ok((9, Prepared::Done(Ok(statement))))
        );
    }

    #[test]
    fn what_is_neither_ok_nor_error_stays_an_error() {
        let mut parser = PrepareParser::new(Capabilities::default());
        let error = parser.feed(b"\x01\0\0\x01\x42").unwrap_err();
        assert_eq!(parser.feed(FIRST), Err(error));
        parser.begin();
        assert!(parser.feed(FIRST).is_ok());
    }
}
