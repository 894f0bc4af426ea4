//! Framing: conversion between payloads and frames.
//!
//! A frame is a header (3 bytes of length, 1 byte of sequence number) and up to 2^24 − 1 bytes. A payload that fills a
//! frame exactly continues in the next one, so a payload of 2^24 − 1 bytes is followed by an empty frame.

use crate::error::WireError;

/// Bytes of a frame's header.
pub const HEADER_LENGTH: usize = 4;

/// The longest payload of one frame.
pub const FRAME_LIMIT: usize = 0xFF_FFFF;

/// The longest payload that a reader keeps in memory by default: 64 MiB. It is also what the login
/// announces to the server.
pub const PAYLOAD_LIMIT: usize = 64 << 20;

/// Assembly memory above this is released before the next packet.
const KEPT_CAPACITY: usize = 1 << 20;

/// Appends one packet: the bytes appended by `write` become the payload, headers are added around it.
///
/// Returns the sequence number of the next packet of the same exchange. Memory is only allocated when `out` must grow.
#[inline]
pub fn append(out: &mut Vec<u8>, sequence: u8, write: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    write(out);
    let length = out.len() - start - HEADER_LENGTH;
    if length < FRAME_LIMIT {
        put_header(out, start, length, sequence);
        return sequence.wrapping_add(1);
    }
    split(out, start, length, sequence)
}

fn put_header(out: &mut [u8], at: usize, length: usize, sequence: u8) {
    let [a, b, c, ..] = length.to_le_bytes();
    out[at..at + HEADER_LENGTH].copy_from_slice(&[a, b, c, sequence]);
}

/// Splits an oversized payload into several frames, moving each part once, from the back.
#[cold]
fn split(out: &mut Vec<u8>, start: usize, length: usize, sequence: u8) -> u8 {
    let frames = length / FRAME_LIMIT + 1;
    out.resize(start + length + frames * HEADER_LENGTH, 0);
    for frame in (0..frames).rev() {
        let from = start + HEADER_LENGTH + frame * FRAME_LIMIT;
        let size = (length - frame * FRAME_LIMIT).min(FRAME_LIMIT);
        let header = start + frame * (HEADER_LENGTH + FRAME_LIMIT);
        out.copy_within(from..from + size, header + HEADER_LENGTH);
        put_header(
            out,
            header,
            size,
            sequence.wrapping_add(frame.to_le_bytes()[0]),
        );
    }
    sequence.wrapping_add(frames.to_le_bytes()[0])
}

/// Result of a [`PacketReader`].
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// All bytes were consumed and the packet is incomplete.
    NeedMore,
    /// A complete payload.
    Packet {
        /// Its bytes, without headers.
        payload: &'a [u8],
        /// The sequence number of the packet that answers it.
        next_sequence: u8,
    },
    /// A complete payload that the caller did not want.
    Skipped,
}

/// The beginning of a payload, from which the caller decides whether to keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// First byte of the payload.
    pub first: u8,
    /// Length of the payload's first frame; [`FRAME_LIMIT`] means that the payload continues after it.
    pub frame_length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Decide,
    Body,
}

/// Splits a stream of bytes, arriving in pieces of any size, into payloads.
///
/// A payload that is complete in one piece is returned as a slice of that piece. Only one that is spread over pieces
/// or frames is copied, and a skipped one never is.
#[derive(Debug)]
pub struct PacketReader {
    header: [u8; HEADER_LENGTH],
    header_filled: usize,
    stage: Stage,
    frame_length: usize,
    frame_left: usize,
    continued: bool,
    skipping: bool,
    payload: Vec<u8>,
    expected: u8,
    check: bool,
    limit: usize,
}

impl PacketReader {
    /// A reader that keeps payloads up to `limit` bytes; longer ones can still be skipped.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        PacketReader {
            header: [0; HEADER_LENGTH],
            header_filled: 0,
            stage: Stage::Header,
            frame_length: 0,
            frame_left: 0,
            continued: false,
            skipping: false,
            payload: Vec::new(),
            expected: 0,
            check: false,
            limit,
        }
    }

    /// Prepares for a new exchange: discards a half-read packet and accepts any next sequence number.
    #[inline]
    pub fn restart(&mut self) {
        self.header_filled = 0;
        self.stage = Stage::Header;
        self.continued = false;
        self.expected = 0;
        self.check = false;
    }

    /// Accepts any next sequence number, because packets of the other side count too now.
    pub(crate) fn skip_sequence_check(&mut self) {
        self.check = false;
    }

    /// True when no packet has been begun.
    pub(crate) fn is_between_packets(&self) -> bool {
        self.stage == Stage::Header && self.header_filled == 0 && !self.continued
    }

    /// The sequence number of the next packet of this exchange, 0 before the first.
    #[must_use]
    pub fn next_sequence(&self) -> u8 {
        self.expected
    }

    /// Continues to read at `bytes[*position]` and moves `position` past the consumed bytes.
    ///
    /// `skip` is called once per payload, when its first byte is known; an empty payload is never skipped.
    ///
    /// # Errors
    /// [`WireError::OutOfStep`] on a jump of the sequence number, [`WireError::TooLong`] on a wanted payload over the
    /// limit. The reader must then be restarted or dropped.
    #[inline]
    pub fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
        position: &mut usize,
        skip: impl FnOnce(Start) -> bool,
    ) -> Result<Event<'a>, WireError> {
        if self.is_between_packets() {
            let rest = &bytes[(*position).min(bytes.len())..];
            if let Some((&[a, b, c, sequence], body)) = rest.split_first_chunk::<HEADER_LENGTH>() {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if length < FRAME_LIMIT && 0 < length && length <= body.len() {
                    self.check_sequence(sequence)?;
                    *position += HEADER_LENGTH + length;
                    let payload = &body[..length];
                    if skip(Start {
                        first: payload[0],
                        frame_length: length,
                    }) {
                        return Ok(Event::Skipped);
                    }
                    if length > self.limit {
                        return Err(WireError::TooLong {
                            length,
                            limit: self.limit,
                        });
                    }
                    return Ok(Event::Packet {
                        payload,
                        next_sequence: self.expected,
                    });
                }
            }
        }
        self.assemble(bytes, position, skip)
    }

    fn check_sequence(&mut self, got: u8) -> Result<(), WireError> {
        if self.check && self.expected != got {
            return Err(WireError::OutOfStep {
                expected: self.expected,
                got,
            });
        }
        self.check = true;
        self.expected = got.wrapping_add(1);
        Ok(())
    }

    fn assemble<'a>(
        &'a mut self,
        bytes: &'a [u8],
        position: &mut usize,
        skip: impl FnOnce(Start) -> bool,
    ) -> Result<Event<'a>, WireError> {
        let mut skip = Some(skip);
        loop {
            let rest = &bytes[(*position).min(bytes.len())..];
            match self.stage {
                Stage::Header => {
                    let taken = rest.len().min(HEADER_LENGTH - self.header_filled);
                    self.header[self.header_filled..self.header_filled + taken]
                        .copy_from_slice(&rest[..taken]);
                    self.header_filled += taken;
                    *position += taken;
                    if self.header_filled < HEADER_LENGTH {
                        return Ok(Event::NeedMore);
                    }
                    self.begin_frame()?;
                }
                Stage::Decide => {
                    let Some(&first) = rest.first() else {
                        return Ok(Event::NeedMore);
                    };
                    let start = Start {
                        first,
                        frame_length: self.frame_length,
                    };
                    self.skipping = skip.take().is_some_and(|decide| decide(start));
                    self.stage = Stage::Body;
                }
                Stage::Body => {
                    let taken = rest.len().min(self.frame_left);
                    if !self.skipping {
                        let length = self.payload.len() + self.frame_left;
                        if length > self.limit {
                            return Err(WireError::TooLong {
                                length,
                                limit: self.limit,
                            });
                        }
                        // Grown as bytes arrive, never by what a header announces.
                        self.payload.extend_from_slice(&rest[..taken]);
                    }
                    *position += taken;
                    self.frame_left -= taken;
                    if self.frame_left > 0 {
                        return Ok(Event::NeedMore);
                    }
                    self.stage = Stage::Header;
                    self.continued = self.frame_length == FRAME_LIMIT;
                    if !self.continued {
                        return Ok(if self.skipping {
                            Event::Skipped
                        } else {
                            Event::Packet {
                                payload: &self.payload,
                                next_sequence: self.expected,
                            }
                        });
                    }
                }
            }
        }
    }

    fn begin_frame(&mut self) -> Result<(), WireError> {
        let [a, b, c, sequence] = self.header;
        self.check_sequence(sequence)?;
        self.header_filled = 0;
        self.frame_length = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.frame_left = self.frame_length;
        if self.continued {
            self.stage = Stage::Body;
            return Ok(());
        }
        self.payload.clear();
        if self.payload.capacity() > KEPT_CAPACITY {
            self.payload.shrink_to(KEPT_CAPACITY);
        }
        self.skipping = false;
        self.stage = if self.frame_length == 0 {
            Stage::Body
        } else {
            Stage::Decide
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    fn read(
        reader: &mut PacketReader,
        bytes: &[u8],
        size: usize,
        skip: bool,
    ) -> Option<Option<Vec<u8>>> {
        for piece in bytes.chunks(size) {
            let mut position = 0;
            match reader.next(piece, &mut position, |_| skip).unwrap() {
                Event::NeedMore => assert_eq!(position, piece.len()),
                Event::Skipped => return Some(None),
                Event::Packet { payload, .. } => return Some(Some(payload.to_vec())),
            }
        }
        None
    }

    #[test]
    fn payloads_around_the_frame_limit_are_split_and_joined() {
        for length in [
            0,
            1,
            FRAME_LIMIT - 1,
            FRAME_LIMIT,
            FRAME_LIMIT + 1,
            2 * FRAME_LIMIT,
            2 * FRAME_LIMIT + 3,
        ] {
            let payload = payload(length);
            let mut out = b"before".to_vec();
            let next = append(&mut out, 254, |out| out.extend_from_slice(&payload));
            let frames = length / FRAME_LIMIT + 1;
            assert_eq!(
                (out.len(), next),
                (6 + length + 4 * frames, 254u8.wrapping_add(frames as u8))
            );
            assert_eq!(&out[..6], b"before");
            for size in [usize::MAX, FRAME_LIMIT + 4, 65_536, 1000] {
                let mut reader = PacketReader::new(PAYLOAD_LIMIT);
                let read_back = read(&mut reader, &out[6..], size.min(out.len()), false);
                assert_eq!(
                    read_back,
                    Some(Some(payload.clone())),
                    "{length} bytes in pieces of {size}"
                );
                assert_eq!(reader.next_sequence(), next);
                reader.restart();
                let skipped = read(&mut reader, &out[6..], size.min(out.len()), length > 0);
                assert_eq!(
                    skipped,
                    Some((length == 0).then(Vec::new)),
                    "{length} bytes in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn a_jump_of_the_running_number_is_noticed() {
        let mut reader = PacketReader::new(100);
        let bytes = b"\x01\0\0\x05a\x01\0\0\x06b\x01\0\0\x08c";
        let mut position = 0;
        for due in [b"a", b"b"] {
            let event = reader.next(bytes, &mut position, |_| false).unwrap();
            assert!(matches!(event, Event::Packet { payload, .. } if payload == due));
        }
        let jump = reader.next(bytes, &mut position, |_| false);
        assert_eq!(
            jump,
            Err(WireError::OutOfStep {
                expected: 7,
                got: 8
            })
        );
    }

    #[test]
    fn a_wanted_payload_over_the_limit_is_refused_before_it_is_stored() {
        let mut reader = PacketReader::new(1000);
        let header = [0xFF, 0xFF, 0xFF, 0, 1];
        let refused = reader.next(&header, &mut 0, |_| false);
        assert_eq!(
            refused,
            Err(WireError::TooLong {
                length: FRAME_LIMIT,
                limit: 1000
            })
        );
        assert_eq!(reader.payload.capacity(), 0);
        reader.restart();
        assert_eq!(
            reader.next(&header, &mut 0, |_| true),
            Ok(Event::NeedMore),
            "skipping needs no memory"
        );
    }

    #[test]
    fn memory_of_a_large_payload_is_given_back() {
        let mut reader = PacketReader::new(PAYLOAD_LIMIT);
        let mut out = Vec::new();
        append(&mut out, 0, |out| out.resize(4 + (4 << 20), 1));
        append(&mut out, 1, |out| out.push(1));
        let half = out.len() / 2;
        let mut position = 0;
        assert_eq!(
            reader.next(&out[..half], &mut position, |_| false),
            Ok(Event::NeedMore)
        );
        assert!(matches!(
            reader.next(&out, &mut position, |_| false),
            Ok(Event::Packet { .. })
        ));
        assert!(reader.payload.capacity() >= 4 << 20);
        let end = out.len();
        assert_eq!(
            reader.next(&out[..end - 1], &mut position, |_| false),
            Ok(Event::NeedMore)
        );
        assert!(reader.payload.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn an_empty_payload_is_never_skipped() {
        let mut reader = PacketReader::new(100);
        for piece in [&b"\x01\0\0"[..], b"\0"] {
            assert_eq!(reader.next(piece, &mut 0, |_| true), Ok(Event::NeedMore));
        }
        assert_eq!(reader.next(b"x", &mut 0, |_| true), Ok(Event::Skipped));
        let empty = reader.next(b"\0\0\0\x01", &mut 0, |_| true);
        assert_eq!(
            empty,
            Ok(Event::Packet {
                payload: b"",
                next_sequence: 2
            })
        );
    }

    #[test]
    fn the_limit_holds_for_a_payload_in_one_piece_too() {
        let mut reader = PacketReader::new(3);
        let bytes = b"\x04\0\0\0abcd";
        let refused = reader.next(bytes, &mut 0, |_| false);
        assert_eq!(
            refused,
            Err(WireError::TooLong {
                length: 4,
                limit: 3
            })
        );
        reader.restart();
        assert_eq!(reader.next(bytes, &mut 0, |_| true), Ok(Event::Skipped));
    }
}
