//! The server's answer to a query or an execution, parsed as it arrives.
//!
//! Nothing is allocated for OK replies or for rows that are only counted; a packet is copied only when it arrived in
//! pieces and a sink wants it.
//! Rows are not kept: they go to a [`Sink`].

mod column;
mod ok;
mod row;

pub use column::{COLUMN_LIMIT, Column};
pub use ok::Completion;
pub use row::{Row, RowFormat, Values};

use crate::bytes::Cursor;
use crate::capability::{Capabilities, Status};
use crate::error::{ServerError, WireError};
use crate::packet::{Event, FRAME_LIMIT, PAYLOAD_LIMIT, PacketReader, Start};
use crate::value::ColumnKind;

/// Receives the parts of a reply. All methods do nothing unless implemented.
///
/// The two questions are asked once per result set; unwanted parts are skipped unread.
pub trait Sink {
    /// Whether to call [`Sink::column`].
    fn wants_columns(&self) -> bool {
        true
    }
    /// Whether to call [`Sink::row`].
    fn wants_rows(&self) -> bool {
        true
    }
    /// A result set with this many columns begins.
    fn result_set(&mut self, columns: usize) {
        let _ = columns;
    }
    /// The next column of the result set.
    fn column(&mut self, column: &Column<'_>) {
        let _ = column;
    }
    /// The next row of the result set.
    fn row(&mut self, row: &Row<'_>) {
        let _ = row;
    }
    /// A statement without rows, or a list of rows, has ended successfully.
    fn completed(&mut self, completion: &Completion) {
        let _ = completion;
    }
}

/// A sink for callers that need only the outcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct Skip;

impl Sink for Skip {
    #[inline]
    fn wants_columns(&self) -> bool {
        false
    }
    #[inline]
    fn wants_rows(&self) -> bool {
        false
    }
}

/// Result of feeding bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Number of bytes that belong to this reply.
    pub consumed: usize,
    /// The next step.
    pub step: Step,
}

/// Next step of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More bytes are needed. All bytes fed are consumed.
    NeedMore,
    /// Send the content of a file, see [`ReplyParser::local_infile`]; then continue to feed.
    LocalInfile,
    /// Nothing: the reply is complete, see [`ReplyParser::outcome`].
    Done,
}

/// Summary of a complete reply, over all its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Rows affected, summed over the results.
    pub affected_rows: u64,
    /// The last generated AUTO_INCREMENT value that was reported, 0 if none.
    pub last_insert_id: u64,
    /// Warnings, summed over the results.
    pub warnings: u64,
    /// The session's status after the last result.
    pub status: Status,
    /// Rows returned, summed over the result sets.
    pub rows: u64,
    /// Result sets (results with columns).
    pub result_sets: u64,
}

/// The server asks for a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalInfile<'a> {
    /// The name in the server's request. A server can name any file: never open it unless it is the one you sent.
    pub name: &'a [u8],
    /// Sequence number of the first content packet, see [`crate::local_infile`].
    pub sequence: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Columns { left: u64 },
    ColumnsEnd,
    Rows,
    Done,
}

/// Parses one reply at a time; made once per connection and [begun](ReplyParser::begin) again for each statement.
///
/// ```
/// use dbduel_wire::{Capabilities, ReplyParser, RowFormat, Skip, Step};
///
/// let mut parser = ReplyParser::new(Capabilities::DEPRECATE_EOF);
/// parser.begin(RowFormat::Text);
/// let ok = b"\x07\0\0\x01\0\x02\0\x02\0\0\0"; // two rows affected
/// assert_eq!(parser.feed(&ok[..5], &mut Skip).unwrap().step, Step::NeedMore);
/// assert_eq!(parser.feed(&ok[5..], &mut Skip).unwrap().step, Step::Done);
/// assert_eq!(parser.outcome().unwrap().affected_rows, 2);
/// ```
#[derive(Debug)]
pub struct ReplyParser {
    reader: PacketReader,
    state: State,
    format: RowFormat,
    deprecate_eof: bool,
    columns_wanted: bool,
    rows_wanted: bool,
    kinds: Vec<ColumnKind>,
    summary: Summary,
    error: Option<ServerError>,
    /// The protocol violation, if any. Not in the state, which is copied for every packet.
    failure: Option<WireError>,
    infile: Vec<u8>,
}

impl ReplyParser {
    /// A parser for a connection with these negotiated capabilities, ready for a text reply.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self::with_limit(capabilities, PAYLOAD_LIMIT)
    }

    /// As [`ReplyParser::new`], with another limit for packets that must be kept in memory, in bytes.
    #[must_use]
    pub fn with_limit(capabilities: Capabilities, limit: usize) -> Self {
        ReplyParser {
            reader: PacketReader::new(limit),
            state: State::Head,
            format: RowFormat::Text,
            deprecate_eof: capabilities.contains(Capabilities::DEPRECATE_EOF),
            columns_wanted: false,
            rows_wanted: false,
            kinds: Vec::new(),
            summary: Summary::default(),
            error: None,
            failure: None,
            infile: Vec::new(),
        }
    }

    /// Prepares for the reply to the next statement.
    #[inline]
    pub fn begin(&mut self, format: RowFormat) {
        self.reader.restart();
        self.state = State::Head;
        self.format = format;
        self.summary = Summary::default();
        self.error = None;
        self.failure = None;
    }

    /// Takes bytes that arrived.
    ///
    /// Stops after the reply's last packet, so that bytes of a following reply can be fed after the next
    /// [`begin`](ReplyParser::begin).
    ///
    /// # Errors
    /// [`WireError`] when the bytes violate the protocol; the connection is then unusable, and the same error is
    /// returned until the next `begin`. An error reported by the server is not an error here but the reply's
    /// [outcome](ReplyParser::outcome).
    #[inline]
    pub fn feed<S: Sink + ?Sized>(&mut self, bytes: &[u8], sink: &mut S) -> Result<Fed, WireError> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let mut consumed = 0;
        match self.run(bytes, &mut consumed, sink) {
            Ok(step) => Ok(Fed { consumed, step }),
            Err(error) => {
                self.failure = Some(error);
                Err(error)
            }
        }
    }

    /// Outcome of a complete reply: its summary, or the server's error. The summary of results before an error is in
    /// [`ReplyParser::summary`].
    ///
    /// # Errors
    /// The error that the server reported.
    #[inline]
    pub fn outcome(&self) -> Result<Summary, &ServerError> {
        match &self.error {
            Some(error) => Err(error),
            None => Ok(self.summary),
        }
    }

    /// The summary so far.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The file that the server asks for, after [`Step::LocalInfile`].
    #[must_use]
    pub fn local_infile(&self) -> LocalInfile<'_> {
        LocalInfile {
            name: &self.infile,
            sequence: self.reader.next_sequence(),
        }
    }
}

impl ReplyParser {
    #[inline]
    fn run<S: Sink + ?Sized>(
        &mut self,
        bytes: &[u8],
        position: &mut usize,
        sink: &mut S,
    ) -> Result<Step, WireError> {
        let (format, deprecate_eof) = (self.format, self.deprecate_eof);
        loop {
            let (state, columns_wanted, rows_wanted) =
                (self.state, self.columns_wanted, self.rows_wanted);
            if state == State::Done {
                return Ok(Step::Done);
            }
            let event = self.reader.next(bytes, position, |start| match state {
                State::Columns { .. } => !columns_wanted && !rows_wanted && start.first != 0xFF,
                State::Rows => !rows_wanted && is_row(start, format, deprecate_eof),
                _ => false,
            })?;
            let payload = match event {
                Event::NeedMore => return Ok(Step::NeedMore),
                Event::Skipped => {
                    match state {
                        State::Columns { left } => self.state = after_column(left, deprecate_eof),
                        _ => self.summary.rows += 1,
                    }
                    continue;
                }
                Event::Packet { payload, .. } => payload,
            };
            let Some(&first) = payload.first() else {
                return Err(WireError::malformed("reply", "an empty packet"));
            };
            if first == 0xFF {
                self.error = Some(ServerError::parse(payload)?);
                self.state = State::Done;
                return Ok(Step::Done);
            }
            match state {
                State::Head => match first {
                    0x00 => {
                        let completion = Completion::parse_ok(payload)?;
                        self.state = add(&mut self.summary, &completion);
                        sink.completed(&completion);
                    }
                    0xFB => {
                        self.infile.clear();
                        self.infile.extend_from_slice(&payload[1..]);
                        self.reader.skip_sequence_check();
                        return Ok(Step::LocalInfile);
                    }
                    _ => {
                        let left = column_count(payload)?;
                        self.columns_wanted = sink.wants_columns();
                        self.rows_wanted = sink.wants_rows();
                        self.kinds.clear();
                        self.summary.result_sets += 1;
                        self.state = State::Columns { left };
                        sink.result_set(usize::try_from(left).unwrap_or(usize::MAX));
                    }
                },
                State::Columns { left } => {
                    let column = Column::parse(payload)?;
                    if rows_wanted {
                        self.kinds.push(column.kind);
                    }
                    if columns_wanted {
                        sink.column(&column);
                    }
                    self.state = after_column(left, deprecate_eof);
                }
                State::ColumnsEnd => {
                    if first != 0xFE || payload.len() >= 9 {
                        return Err(WireError::malformed(
                            "result set",
                            "no EOF packet after the columns",
                        ));
                    }
                    self.state = State::Rows;
                }
                State::Rows if ends_rows(first, payload.len(), deprecate_eof) => {
                    let completion = if deprecate_eof {
                        Completion::parse_ok(payload)?
                    } else {
                        Completion::parse_eof(payload)?
                    };
                    self.state = add(&mut self.summary, &completion);
                    sink.completed(&completion);
                }
                State::Rows => {
                    if format == RowFormat::Binary && first != 0 {
                        return Err(WireError::malformed(
                            "row",
                            "a binary row does not begin with 0x00",
                        ));
                    }
                    self.summary.rows += 1;
                    // Packets that are too long or too short to be skipped safely end up here unwanted.
                    if rows_wanted {
                        sink.row(&Row::new(payload, format, &self.kinds));
                    }
                }
                State::Done => {}
            }
        }
    }
}

fn column_count(payload: &[u8]) -> Result<u64, WireError> {
    let mut cursor = Cursor::new("result set", payload);
    let count = cursor.length()?;
    if count == 0 || count > COLUMN_LIMIT {
        return Err(cursor.wrong("an impossible number of columns"));
    }
    Ok(count)
}

fn after_column(left: u64, deprecate_eof: bool) -> State {
    match left {
        2.. => State::Columns { left: left - 1 },
        _ if deprecate_eof => State::Rows,
        _ => State::ColumnsEnd,
    }
}

fn add(summary: &mut Summary, completion: &Completion) -> State {
    summary.affected_rows = summary
        .affected_rows
        .saturating_add(completion.affected_rows);
    summary.warnings += u64::from(completion.warnings);
    summary.status = completion.status;
    if completion.last_insert_id != 0 {
        summary.last_insert_id = completion.last_insert_id;
    }
    if completion.status.contains(Status::MORE_RESULTS) {
        State::Head
    } else {
        State::Done
    }
}

/// A text row can also begin with 0xFE: then its first value has 2^24 bytes or more, and its first frame is full.
#[inline]
fn ends_rows(first: u8, length: usize, deprecate_eof: bool) -> bool {
    first == 0xFE
        && if deprecate_eof {
            length < FRAME_LIMIT
        } else {
            length < 9
        }
}

#[inline]
fn is_row(start: Start, format: RowFormat, deprecate_eof: bool) -> bool {
    match format {
        RowFormat::Binary => start.first == 0,
        _ => start.first != 0xFF && !ends_rows(start.first, start.frame_length, deprecate_eof),
    }
}

#[cfg(test)]
mod tests;
