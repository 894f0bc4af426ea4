//! Prepared statements, and the answer to the request to prepare one.

use super::error::ServerError;
use super::message::Event;
use super::reply::ReplyParser;
use super::types::{ParameterKind, is_binary, kind_by_oid};
use crate::bytes::Cursor;
use crate::error::WireError;
use crate::reply::Skip;
use crate::value::ColumnKind;

/// A statement that the server has prepared under a name. It lives until it is closed or its session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub(super) name: u32,
    pub(super) parameters: Vec<ParameterKind>,
    pub(super) columns: Vec<ColumnKind>,
    /// Formats of the columns, encoded as in a request: a count and a code for each; no codes when all are text.
    pub(super) result_formats: Vec<u8>,
}

impl Statement {
    /// A statement with parameters and columns of these types.
    pub(super) fn described(name: u32, parameters: &[u32], columns: &[u32]) -> Self {
        let mut result_formats = Vec::new();
        let all_text = !columns.iter().any(|&oid| is_binary(oid));
        let asked = if all_text { &[][..] } else { columns };
        // Counts come in 16 bits, so they fit.
        let count = u16::try_from(asked.len()).unwrap_or(u16::MAX);
        result_formats.extend_from_slice(&count.to_be_bytes());
        for &oid in asked {
            result_formats.extend_from_slice(&u16::from(is_binary(oid)).to_be_bytes());
        }
        Statement {
            name,
            parameters: parameters
                .iter()
                .map(|&oid| ParameterKind::by_oid(oid))
                .collect(),
            columns: columns.iter().map(|&oid| kind_by_oid(oid)).collect(),
            result_formats,
        }
    }

    /// Number of values of an execution.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// The columns of its result set; empty if it returns no rows.
    #[must_use]
    pub fn columns(&self) -> &[ColumnKind] {
        &self.columns
    }
}

/// The answer to one [`prepare`](super::command::prepare), read from the stream that [`ReplyParser`] keeps.
#[derive(Debug)]
pub struct PrepareParser {
    name: u32,
    parameters: Vec<u32>,
    columns: Vec<u32>,
    error: Option<ServerError>,
}

impl PrepareParser {
    /// A parser for the answer about the statement with this name.
    #[must_use]
    pub fn new(name: u32) -> Self {
        PrepareParser {
            name,
            parameters: Vec::new(),
            columns: Vec::new(),
            error: None,
        }
    }

    /// Takes all bytes that arrived. `None` while the answer is incomplete; then the statement, or the server's error.
    ///
    /// # Errors
    /// [`WireError`] when the bytes violate the protocol.
    pub fn feed(
        &mut self,
        connection: &mut ReplyParser,
        bytes: &[u8],
    ) -> Result<Option<Result<Statement, ServerError>>, WireError> {
        let mut position = 0;
        loop {
            let skip = |tag| matches!(tag, b'1' | b'n' | b'N' | b'S' | b'A');
            let (tag, body) = match connection.reader.next(bytes, &mut position, skip)? {
                Event::NeedMore => return Ok(None),
                Event::Skipped { .. } => continue,
                Event::Message { tag, body } => (tag, body),
            };
            match tag {
                b't' => read_parameters(body, &mut self.parameters)?,
                b'T' => each_column(body, |_, oid| self.columns.push(oid))?,
                b'E' => {
                    let error = ServerError::parse(body)?;
                    if error.is_fatal {
                        return Ok(Some(Err(error)));
                    }
                    self.error = Some(error);
                }
                b'Z' => {
                    // What follows belongs to the next answer.
                    connection.feed(&bytes[position..], &mut Skip)?;
                    return Ok(Some(match self.error.take() {
                        Some(error) => Err(error),
                        None => Ok(Statement::described(
                            self.name,
                            &self.parameters,
                            &self.columns,
                        )),
                    }));
                }
                _ => {
                    return Err(WireError::malformed(
                        "answer to a request to prepare",
                        "a message of another kind",
                    ));
                }
            }
        }
    }
}

fn read_parameters(body: &[u8], parameters: &mut Vec<u32>) -> Result<(), WireError> {
    let mut body = Cursor::new("ParameterDescription", body);
    for _ in 0..body.be_u16()? {
        parameters.push(body.be_u32()?);
    }
    Ok(())
}

/// Passes the name and type of each column of a RowDescription to `take`.
pub(super) fn each_column<'a>(
    body: &'a [u8],
    mut take: impl FnMut(&'a [u8], u32),
) -> Result<(), WireError> {
    let mut body = Cursor::new("RowDescription", body);
    for _ in 0..body.be_u16()? {
        let name = body.nul_bytes()?;
        let _table = body.be_u32()?;
        let _number = body.be_u16()?;
        let oid = body.be_u32()?;
        let _length = body.be_u16()?;
        let _modifier = body.be_u32()?;
        let _format = body.be_u16()?;
        take(name, oid);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x17\
        T\0\0\0\x1a\0\x01k\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0Z\0\0\0\x05I";

    #[test]
    fn parameters_and_columns_are_described_however_the_bytes_arrive() {
        let expected = Statement::described(3, &[23], &[23]);
        assert_eq!(expected.result_formats, [0, 1, 0, 1]);
        for piece in 1..=ANSWER.len() {
            let mut parser = PrepareParser::new(3);
            let mut connection = ReplyParser::default();
            let mut seen = None;
            for bytes in ANSWER.chunks(piece) {
                assert_eq!(seen, None);
                seen = parser.feed(&mut connection, bytes).unwrap();
            }
            assert_eq!(seen, Some(Ok(expected.clone())), "pieces of {piece}");
        }
    }

    #[test]
    fn an_error_is_the_answer_when_the_server_is_ready_again() {
        let mut parser = PrepareParser::new(1);
        let mut connection = ReplyParser::default();
        let error = b"E\0\0\0\x15SERROR\0C42P01\0M\0\0";
        assert_eq!(parser.feed(&mut connection, error), Ok(None));
        let answer = parser
            .feed(&mut connection, b"Z\0\0\0\x05E")
            .unwrap()
            .unwrap();
        assert_eq!(answer.unwrap_err().sqlstate(), "42P01");
    }

    #[test]
    fn descriptions_that_end_early_are_refused() {
        let body = b"\0\x01k\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        assert!(each_column(body, |_, _| {}).is_ok());
        for cut in 0..body.len() {
            assert!(
                each_column(&body[..cut], |_, _| {}).is_err(),
                "cut at {cut}"
            );
        }
        for bytes in [
            &b"t\0\0\0\x06\0\x01"[..],
            b"T\0\0\0\x08\0\x01kk",
            b"D\0\0\0\x04",
        ] {
            let mut connection = ReplyParser::default();
            let answer = PrepareParser::new(1).feed(&mut connection, bytes);
            assert!(answer.is_err());
        }
    }
}
