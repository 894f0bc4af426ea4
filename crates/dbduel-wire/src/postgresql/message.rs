//! Framing: a one-byte tag, four bytes of length that include themselves, and the body.

use crate::error::WireError;

/// Bytes before the body.
const HEADER_LENGTH: usize = 5;

/// The longest body that is kept in memory: 64 MiB.
pub const MESSAGE_LIMIT: usize = 64 << 20;

/// The longest body that the protocol allows, 1 GiB; anything longer is not a message.
const BODY_MAX: usize = 1 << 30;

/// Assembly memory above this is released before the next message.
const KEPT_CAPACITY: usize = 1 << 20;

/// Result of a [`MessageReader`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// All bytes were consumed and the message is incomplete.
    NeedMore,
    /// A complete message.
    Message {
        /// Its type.
        tag: u8,
        /// Its body.
        body: &'a [u8],
    },
    /// A complete message that the caller did not want.
    Skipped {
        /// Its type.
        tag: u8,
    },
}

/// Splits a stream of bytes, arriving in pieces of any size, into messages.
///
/// A message that is complete in one piece is returned as a slice of that piece. Only one that is spread over pieces
/// is copied, and a skipped one never is.
#[derive(Debug)]
pub(super) struct MessageReader {
    header: [u8; HEADER_LENGTH],
    header_filled: usize,
    body_left: usize,
    skipping: bool,
    body: Vec<u8>,
    limit: usize,
}

impl MessageReader {
    /// A reader that keeps bodies up to `limit` bytes; longer ones can still be skipped.
    pub(super) fn new(limit: usize) -> Self {
        MessageReader {
            header: [0; HEADER_LENGTH],
            header_filled: 0,
            body_left: 0,
            skipping: false,
            body: Vec::new(),
            limit,
        }
    }

    /// Continues to read at `bytes[*position]` and moves `position` past the consumed bytes. `skip` is called for each
    /// message with its tag.
    #[inline]
    pub(super) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        position: &mut usize,
        skip: impl FnOnce(u8) -> bool,
    ) -> Result<Event<'a>, WireError> {
        if self.header_filled == 0 {
            let rest = &bytes[(*position).min(bytes.len())..];
            if let Some((header, after)) = rest.split_first_chunk::<HEADER_LENGTH>() {
                let length = body_length(*header)?;
                if let Some(body) = after.get(..length) {
                    *position += HEADER_LENGTH + length;
                    let tag = header[0];
                    if skip(tag) {
                        return Ok(Event::Skipped { tag });
                    }
                    return match length <= self.limit {
                        true => Ok(Event::Message { tag, body }),
                        false => Err(self.too_long(length)),
                    };
                }
            }
        }
        self.assemble(bytes, position, skip)
    }

    fn too_long(&self, length: usize) -> WireError {
        WireError::TooLong {
            length,
            limit: self.limit,
        }
    }

    fn assemble<'a>(
        &'a mut self,
        bytes: &'a [u8],
        position: &mut usize,
        skip: impl FnOnce(u8) -> bool,
    ) -> Result<Event<'a>, WireError> {
        let mut rest = &bytes[(*position).min(bytes.len())..];
        if self.header_filled < HEADER_LENGTH {
            let taken = rest.len().min(HEADER_LENGTH - self.header_filled);
            let end = self.header_filled + taken;
            self.header[self.header_filled..end].copy_from_slice(&rest[..taken]);
            self.header_filled = end;
            *position += taken;
            rest = &rest[taken..];
            if self.header_filled < HEADER_LENGTH {
                return Ok(Event::NeedMore);
            }
            self.body_left = body_length(self.header)?;
            self.skipping = skip(self.header[0]);
            if !self.skipping && self.body_left > self.limit {
                return Err(self.too_long(self.body_left));
            }
            self.body.clear();
            self.body.shrink_to(KEPT_CAPACITY);
        }
        let taken = rest.len().min(self.body_left);
        if !self.skipping {
            // Grown as bytes arrive, never by what a header announces.
            self.body.extend_from_slice(&rest[..taken]);
        }
        *position += taken;
        self.body_left -= taken;
        if self.body_left > 0 {
            return Ok(Event::NeedMore);
        }
        self.header_filled = 0;
        let tag = self.header[0];
        Ok(match self.skipping {
            true => Event::Skipped { tag },
            false => Event::Message {
                tag,
                body: &self.body,
            },
        })
    }
}

/// The length of a body.
#[inline]
fn body_length(header: [u8; HEADER_LENGTH]) -> Result<usize, WireError> {
    let [_, a, b, c, d] = header;
    match (u32::from_be_bytes([a, b, c, d]) as usize).checked_sub(4) {
        Some(length) if length <= BODY_MAX => Ok(length),
        _ => Err(WireError::malformed("message", "an impossible length")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

    #[test]
    fn messages_are_the_same_however_the_bytes_arrive() {
        for piece in 1..=TWO.len() {
            let mut reader = MessageReader::new(100);
            let mut seen = Vec::new();
            for bytes in TWO.chunks(piece) {
                let mut position = 0;
                while let Event::Message { tag, body } =
                    reader.next(bytes, &mut position, |_| false).unwrap()
                {
                    seen.push((tag, body.to_vec()));
                }
                assert_eq!(position, bytes.len());
            }
            let expected = [(b'C', b"SELECT 1\0".to_vec()), (b'Z', b"I".to_vec())];
            assert_eq!(seen, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn impossible_lengths_are_refused_and_long_messages_can_only_be_skipped() {
        for header in [b"D\0\0\0\x03", b"D\xff\xff\xff\xff", b"D\x50\0\0\0"] {
            let next = MessageReader::new(8).next(header, &mut 0, |_| true).err();
            assert!(
                matches!(next, Some(WireError::Malformed { .. })),
                "{header:?}"
            );
        }
        for bytes in [TWO, &TWO[..5]] {
            let next = MessageReader::new(8).next(bytes, &mut 0, |_| false).err();
            let (length, limit) = (9, 8);
            assert_eq!(next, Some(WireError::TooLong { length, limit }));
        }
        let mut reader = MessageReader::new(8);
        let skipped = reader.next(TWO, &mut 0, |_| true);
        assert_eq!(skipped, Ok(Event::Skipped { tag: b'C' }));
    }

    #[test]
    fn an_announced_length_takes_no_memory() {
        let mut reader = MessageReader::new(MESSAGE_LIMIT);
        let next = reader.next(b"D\x03\0\0\0abc", &mut 0, |_| false);
        assert_eq!(next, Ok(Event::NeedMore));
        assert!(reader.body.capacity() < 100);
    }
}
