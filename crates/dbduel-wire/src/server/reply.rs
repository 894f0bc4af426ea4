//! Answers, appended to a buffer.

use crate::bytes::{put_length, put_length_bytes};
use crate::capability::{Capabilities, Status};
use crate::error::ServerError;
use crate::packet;
use crate::prepare::Statement;
use crate::reply::Completion;
use crate::value::{ColumnKind, Value};

/// Terms of an answer: the session's capabilities and the sequence number after the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Negotiated capabilities.
    pub capabilities: Capabilities,
    /// Sequence number of the answer's first packet.
    pub sequence: u8,
}

/// Writes one answer, packet by packet, in the order of the protocol: only [`ok`](Self::ok) or [`error`](Self::error);
/// or [`columns`](Self::columns), rows and [`end`](Self::end); or [`prepared`](Self::prepared). With
/// [`Status::MORE_RESULTS`] another result may follow.
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    out: &'a mut Vec<u8>,
    terms: Terms,
}

impl<'a> ReplyWriter<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>, terms: Terms) -> Self {
        ReplyWriter { out, terms }
    }

    /// Sequence number of the next packet.
    #[must_use]
    pub fn sequence(&self) -> u8 {
        self.terms.sequence
    }

    /// Appends any payload as a packet.
    pub fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.terms.sequence = packet::append(self.out, self.terms.sequence, write);
    }

    /// Success of a statement without rows.
    pub fn ok(&mut self, completion: &Completion) {
        self.packet(|out| put_ok(out, 0x00, completion));
    }

    /// Failure of a statement.
    pub fn error(&mut self, error: &ServerError) {
        self.packet(|out| {
            out.push(0xFF);
            out.extend_from_slice(&error.code.to_le_bytes());
            out.push(b'#');
            out.extend_from_slice(&error.sqlstate);
            out.extend_from_slice(error.message.as_bytes());
        });
    }

    /// A request for the content of this file.
    pub fn local_infile(&mut self, name: &[u8]) {
        self.packet(|out| {
            out.push(0xFB);
            out.extend_from_slice(name);
        });
    }

    /// The beginning of a result set, with these names and types.
    pub fn columns<'c>(&mut self, columns: impl ExactSizeIterator<Item = (&'c str, ColumnKind)>) {
        let count = columns.len();
        self.packet(|out| put_length(out, count as u64));
        for (name, kind) in columns {
            self.column(name, kind);
        }
        self.eof_unless_deprecated();
    }

    fn column(&mut self, name: &str, kind: ColumnKind) {
        self.packet(|out| {
            for text in ["def", "", "", "", name, ""] {
                put_length_bytes(out, text.as_bytes());
            }
            out.push(12);
            out.extend_from_slice(&63u16.to_le_bytes());
            out.extend_from_slice(&20u32.to_le_bytes());
            out.push(kind.column_type.0);
            out.extend_from_slice(&(u16::from(kind.unsigned) << 5).to_le_bytes());
            out.extend_from_slice(&[0, 0, 0]);
        });
    }

    fn eof_unless_deprecated(&mut self) {
        if !self
            .terms
            .capabilities
            .contains(Capabilities::DEPRECATE_EOF)
        {
            self.packet(|out| out.extend_from_slice(&[0xFE, 0, 0, 0, 0]));
        }
    }

    /// A row for the answer to a text query.
    pub fn text_row<'v>(&mut self, values: impl Iterator<Item = Option<&'v [u8]>>) {
        self.packet(|out| {
            for value in values {
                match value {
                    Some(bytes) => put_length_bytes(out, bytes),
                    None => out.push(0xFB),
                }
            }
        });
    }

    /// A row for the answer to an execution. Every value that is not NULL must have the kind of its column, by
    /// [`Value::kind`].
    pub fn binary_row(&mut self, values: &[Value<'_>]) {
        self.packet(|out| {
            out.push(0);
            let nulls = out.len();
            out.resize(nulls + (values.len() + 9) / 8, 0);
            for (index, value) in values.iter().enumerate() {
                if *value == Value::Null {
                    out[nulls + (index + 2) / 8] |= 1 << ((index + 2) % 8);
                }
                value.put(out);
            }
        });
    }

    /// The end of the rows.
    pub fn end(&mut self, status: Status, warnings: u16) {
        let completion = Completion {
            status,
            warnings,
            ..Completion::default()
        };
        if self
            .terms
            .capabilities
            .contains(Capabilities::DEPRECATE_EOF)
        {
            return self.packet(|out| put_ok(out, 0xFE, &completion));
        }
        self.packet(|out| {
            out.push(0xFE);
            out.extend_from_slice(&warnings.to_le_bytes());
            out.extend_from_slice(&status.0.to_le_bytes());
        });
    }

    /// A prepared statement; its parameters and columns are all described with this kind.
    pub fn prepared(&mut self, statement: &Statement, kind: ColumnKind) {
        self.packet(|out| {
            out.push(0);
            out.extend_from_slice(&statement.id.to_le_bytes());
            out.extend_from_slice(&statement.columns.to_le_bytes());
            out.extend_from_slice(&statement.parameters.to_le_bytes());
            out.push(0);
            out.extend_from_slice(&statement.warnings.to_le_bytes());
        });
        for count in [statement.parameters, statement.columns] {
            for _ in 0..count {
                self.column("?", kind);
            }
            if count > 0 {
                self.eof_unless_deprecated();
            }
        }
    }
}

fn put_ok(out: &mut Vec<u8>, first: u8, completion: &Completion) {
    out.push(first);
    put_length(out, completion.affected_rows);
    put_length(out, completion.last_insert_id);
    out.extend_from_slice(&completion.status.0.to_le_bytes());
    out.extend_from_slice(&completion.warnings.to_le_bytes());
}
