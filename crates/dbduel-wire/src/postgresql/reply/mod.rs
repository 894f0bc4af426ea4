//! The server's answer to a query or to executions, parsed as it arrives.
//!
//! An answer ends when the server is ready for the next request. Notices, changed parameters and notifications may
//! come at any time, even after that, and are skipped.

use super::error::ServerError;
use super::message::{Event, MESSAGE_LIMIT, MessageReader};
use super::prepare::{Statement, each_column};
use super::types::kind_by_oid;
use crate::error::WireError;
use crate::reply::{Column, Completion, Row, RowFormat, Sink, Summary};
use crate::value::ColumnKind;

/// Next step of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More bytes.
    NeedMore,
    /// Send the input of a `COPY … FROM STDIN`, and its end.
    CopyIn,
    /// Nothing: the answer is complete, see [`ReplyParser::outcome`].
    Done,
}

/// Expectation for one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Not known yet whether it has rows.
    Undescribed,
    /// A result set, whose rows are wanted or not.
    Described { wanted: bool },
}

/// Parses one answer at a time; created once per connection and kept: bytes after an answer are the beginning of
/// messages that the next call completes.
#[derive(Debug)]
pub struct ReplyParser {
    pub(super) reader: MessageReader,
    format: RowFormat,
    /// Columns of the unfinished executions, concatenated; of the current result set in the simple protocol.
    kinds: Vec<ColumnKind>,
    /// Number of `kinds` for each execution.
    counts: Vec<usize>,
    execution: usize,
    /// Index in `kinds` of the current result set's first column.
    first: usize,
    end: usize,
    rows: Rows,
    is_idle: bool,
    summary: Summary,
    rolled_back: bool,
    error: Option<ServerError>,
    failure: Option<WireError>,
}

impl Default for ReplyParser {
    fn default() -> Self {
        ReplyParser {
            reader: MessageReader::new(MESSAGE_LIMIT),
            format: RowFormat::PostgresText,
            kinds: Vec::new(),
            counts: Vec::new(),
            execution: 0,
            first: 0,
            end: 0,
            rows: Rows::Undescribed,
            is_idle: true,
            summary: Summary::default(),
            rolled_back: false,
            error: None,
            failure: None,
        }
    }
}

impl ReplyParser {
    /// Prepares for the answer to a query in text.
    #[inline]
    pub fn begin_query(&mut self) {
        self.begin(RowFormat::PostgresText);
    }

    /// Prepares for the answer to executions; [`ReplyParser::expect`] must be called for each, in their order.
    #[inline]
    pub fn begin_executions(&mut self) {
        self.begin(RowFormat::PostgresBinary);
    }

    /// Expects the result of an execution of this statement.
    #[inline]
    pub fn expect(&mut self, statement: &Statement) {
        self.expect_columns(&statement.columns);
    }

    /// Expects a result with these columns, none for one without rows.
    #[inline]
    pub fn expect_columns(&mut self, columns: &[ColumnKind]) {
        self.kinds.extend_from_slice(columns);
        self.counts.push(columns.len());
    }

    #[inline]
    fn begin(&mut self, format: RowFormat) {
        self.format = format;
        self.kinds.clear();
        self.counts.clear();
        self.execution = 0;
        (self.first, self.end) = (0, 0);
        self.rows = Rows::Undescribed;
        self.is_idle = false;
        self.summary = Summary::default();
        self.rolled_back = false;
    }

    /// Takes all bytes that arrived.
    ///
    /// # Errors
    /// [`WireError`] when the bytes violate the protocol; the connection is then unusable, and the same error is
    /// returned from then on. An error reported by the server is not an error here but the
    /// [outcome](ReplyParser::outcome).
    #[inline]
    pub fn feed<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Step, WireError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        self.run(bytes, sink)
            .inspect_err(|&error| self.failure = Some(error))
    }

    /// Outcome of a complete answer: its summary, or the server's error.
    ///
    /// # Errors
    /// The error that the server reported. It is removed, so that the next answer begins without.
    #[inline]
    pub fn outcome(&mut self) -> Result<Summary, ServerError> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self.summary),
        }
    }

    /// True when the last statement rolled the transaction back, as the COMMIT of a failed one also does.
    #[inline]
    #[must_use]
    pub fn rolled_back(&self) -> bool {
        self.rolled_back
    }

    #[inline]
    fn run<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<Step, WireError> {
        let mut position = 0;
        loop {
            let rows = self.rows;
            let skip = |tag| match tag {
                b'D' => rows == Rows::Described { wanted: false },
                b'1' | b'3' | b'n' | b'N' | b'S' | b'A' | b'd' | b'c' => true,
                _ => false,
            };
            let event = self.reader.next(bytes, &mut position, skip)?;
            let (tag, body) = match event {
                Event::NeedMore if self.is_idle => return Ok(Step::Done),
                Event::NeedMore => return Ok(Step::NeedMore),
                Event::Skipped { tag: b'D' } => {
                    self.summary.rows += 1;
                    continue;
                }
                Event::Skipped { .. } => continue,
                Event::Message { tag, body } => (tag, body),
            };
            if self.is_idle && tag != b'E' {
                return Err(malformed("an unexpected message"));
            }
            match tag {
                b'2' => {
                    let count = self.counts.get(self.execution).copied();
                    let count = count.ok_or_else(|| malformed("more results than executions"))?;
                    self.execution += 1;
                    (self.first, self.end) = (self.end, self.end + count);
                    self.rows = match count {
                        0 => Rows::Undescribed,
                        count => begin_rows(count, &mut self.summary, sink),
                    };
                }
                b'T' if self.format == RowFormat::PostgresText => {
                    let kinds = &mut self.kinds;
                    kinds.clear();
                    each_column(body, |_, oid| kinds.push(kind_by_oid(oid)))?;
                    (self.first, self.end) = (0, kinds.len());
                    self.rows = begin_rows(kinds.len(), &mut self.summary, sink);
                    if sink.wants_columns() {
                        each_column(body, |name, oid| sink.column(&column(name, oid)))?;
                    }
                }
                b'D' if self.rows != Rows::Undescribed => {
                    self.summary.rows += 1;
                    sink.row(&Row::new(
                        body,
                        self.format,
                        &self.kinds[self.first..self.end],
                    ));
                }
                b'C' => {
                    let had_rows = self.rows != Rows::Undescribed;
                    self.rows = Rows::Undescribed;
                    let affected_rows = affected_rows(body, had_rows);
                    self.rolled_back = body.starts_with(b"ROLLBACK");
                    self.summary.affected_rows =
                        self.summary.affected_rows.saturating_add(affected_rows);
                    sink.completed(&Completion {
                        affected_rows,
                        ..Completion::default()
                    });
                }
                // A statement without words.
                b'I' => sink.completed(&Completion::default()),
                b'G' => return Ok(Step::CopyIn),
                b'H' => {}
                b'E' => {
                    let error = ServerError::parse(body)?;
                    // The server closes the connection: nothing else comes.
                    let is_last = error.is_fatal;
                    self.error = self.error.take().or(Some(error));
                    self.rows = Rows::Undescribed;
                    if is_last {
                        self.is_idle = true;
                        return Ok(Step::Done);
                    }
                }
                b'Z' => {
                    if !matches!(body, b"I" | b"T" | b"E") {
                        return Err(malformed("the server reports an unknown transaction state"));
                    }
                    self.is_idle = true;
                }
                _ => return Err(malformed("a message of another kind")),
            }
        }
    }
}

#[cold]
fn malformed(problem: &'static str) -> WireError {
    WireError::malformed("answer", problem)
}

#[inline]
fn begin_rows<S: Sink + ?Sized>(count: usize, summary: &mut Summary, sink: &mut S) -> Rows {
    summary.result_sets += 1;
    sink.result_set(count);
    Rows::Described {
        wanted: sink.wants_rows(),
    }
}

fn column(name: &[u8], oid: u32) -> Column<'_> {
    Column {
        table: b"",
        name,
        collation: 0,
        length: 0,
        kind: kind_by_oid(oid),
        flags: 0,
        decimals: 0,
    }
}

/// The number at the end of a command tag, for statements that change rows: that of a query counts rows returned.
#[inline]
fn affected_rows(body: &[u8], had_rows: bool) -> u64 {
    let tag = body.strip_suffix(b"\0").unwrap_or(body);
    if had_rows && (tag.starts_with(b"SELECT") || tag.starts_with(b"FETCH")) {
        return 0;
    }
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let mut unit = 1_u64;
    digits.fold(0, |sum: u64, digit| {
        let sum = sum.saturating_add(unit.saturating_mul(u64::from(digit - b'0')));
        unit = unit.saturating_mul(10);
        sum
    })
}

#[cfg(test)]
mod tests;
