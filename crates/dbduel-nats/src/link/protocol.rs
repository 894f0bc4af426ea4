//! Protocol of one end of a link: numbers, acknowledgements and resending, without a connection and without a clock.
//!
//! Lines are cut into frames with consecutive numbers, which are kept until the other end has acknowledged them and
//! resent meanwhile. A frame is accepted only when it has the next number, so a line is delivered once and in order
//! however frames are lost, repeated or reordered on their way.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most frames resent at one time.
const RESENT_MAX: usize = 64;
/// Most bytes of a line in one frame; longer lines take several.
const PIECE_BYTES: usize = 128 << 10;
/// Most bytes that wait for their acknowledgement. Beyond that the link is broken.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Number, acknowledgement and kind of a frame.
const HEADER_BYTES: usize = 17;

/// Content of a frame besides its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// Nothing.
    Beat,
    /// A piece of a line that is not the last.
    Piece,
    /// The last piece of a line.
    End,
}

/// A frame on the wire: number (0 for a beat), highest number received without a gap, kind, piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    number: u64,
    acknowledged: u64,
    kind: FrameKind,
    piece: Vec<u8>,
}

impl Frame {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.piece.len());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.acknowledged.to_le_bytes());
        bytes.push(match self.kind {
            FrameKind::Beat => 0,
            FrameKind::Piece => 1,
            FrameKind::End => 2,
        });
        bytes.extend(&self.piece);
        bytes
    }

    /// `None` for bytes that are not a frame.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (acknowledged, rest) = rest.split_first_chunk()?;
        let (kind, piece) = rest.split_first()?;
        Some(Frame {
            number: u64::from_le_bytes(*number),
            acknowledged: u64::from_le_bytes(*acknowledged),
            kind: match kind {
                0 => FrameKind::Beat,
                1 => FrameKind::Piece,
                2 => FrameKind::End,
                _ => return None,
            },
            piece: piece.to_vec(),
        })
    }
}

/// A frame that is kept until it is acknowledged.
#[derive(Debug)]
struct Kept {
    frame: Frame,
    sent: Instant,
}

/// One end of a link: the state of its protocol. It returns the frames to send, and the caller carries them.
#[derive(Debug)]
pub struct LinkEnd {
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// Number of the next frame here.
    next: u64,
    /// Number of the next frame from there.
    expected: u64,
    /// Pieces of a line that is not complete.
    partial: Vec<u8>,
    open_lines: u64,
    heard: Instant,
    is_broken: bool,
}

impl LinkEnd {
    /// A frame is sent at least this often: the caller calls [`LinkEnd::beat`] at this interval.
    pub const BEAT: Duration = Duration::from_millis(200);
    /// A line that is not acknowledged within this time is resent.
    pub const RESEND_AFTER: Duration = Duration::from_millis(600);

    /// The end of a link that is opened at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            kept: VecDeque::new(),
            kept_bytes: 0,
            next: 1,
            expected: 1,
            partial: Vec::new(),
            open_lines: 0,
            heard: now,
            is_broken: false,
        }
    }

    /// The frames of a line. Without room for it the link is broken, and there are none.
    pub fn send(&mut self, line: &[u8], now: Instant) -> Vec<Vec<u8>> {
        self.open_lines += 1;
        if self.is_broken || self.kept_bytes + line.len() > KEPT_BYTES_MAX {
            self.is_broken = true;
            return Vec::new();
        }
        self.kept_bytes += line.len();
        let pieces = line.len().div_ceil(PIECE_BYTES).max(1);
        let mut frames = Vec::with_capacity(pieces);
        for place in 0..pieces {
            let from = place * PIECE_BYTES;
            let frame = Frame {
                number: self.next,
                acknowledged: self.expected - 1,
                kind: match place + 1 == pieces {
                    true => FrameKind::End,
                    false => FrameKind::Piece,
                },
                piece: line[from..line.len().min(from + PIECE_BYTES)].to_vec(),
            };
            self.next += 1;
            frames.push(frame.to_bytes());
            self.kept.push_back(Kept { frame, sent: now });
        }
        frames
    }

    /// Takes bytes from the other end; returns the line that they complete. Bytes that are not a frame are ignored.
    pub fn receive(&mut self, bytes: &[u8], now: Instant) -> Option<Vec<u8>> {
        let frame = Frame::of_bytes(bytes)?;
        self.heard = now;
        while let Some(first) = self.kept.front()
            && first.frame.number <= frame.acknowledged
        {
            self.kept_bytes -= first.frame.piece.len();
            if first.frame.kind == FrameKind::End {
                self.open_lines -= 1;
            }
            self.kept.pop_front();
        }
        // A repeated frame was delivered before; one that follows a lost frame is resent after that one.
        if frame.kind == FrameKind::Beat || frame.number != self.expected {
            return None;
        }
        self.expected += 1;
        self.partial.extend(frame.piece);
        (frame.kind == FrameKind::End).then(|| std::mem::take(&mut self.partial))
    }

    /// The frames that are due: those that were not acknowledged in time, or else one without content.
    pub fn beat(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let acknowledged = self.expected - 1;
        let is_overdue = |kept: &Kept| now.duration_since(kept.sent) >= Self::RESEND_AFTER;
        let mut frames = Vec::new();
        for kept in self.kept.iter_mut().take(RESENT_MAX) {
            if !is_overdue(kept) {
                break;
            }
            kept.sent = now;
            kept.frame.acknowledged = acknowledged;
            frames.push(kept.frame.to_bytes());
        }
        if frames.is_empty() {
            let beat = Frame {
                number: 0,
                acknowledged,
                kind: FrameKind::Beat,
                piece: Vec::new(),
            };
            frames.push(beat.to_bytes());
        }
        frames
    }

    /// Time since the other end was heard last, or since the link was opened.
    #[must_use]
    pub fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard)
    }

    /// Lines given to [`LinkEnd::send`] and not yet acknowledged.
    #[must_use]
    pub fn open_lines(&self) -> u64 {
        self.open_lines
    }

    /// True when more bytes wait for acknowledgement than are kept. Lines are lost then.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_travel_as_they_are() {
        for (kind, piece) in [
            (FrameKind::Beat, Vec::new()),
            (FrameKind::Piece, vec![7; 300]),
            (FrameKind::End, b"{}".to_vec()),
        ] {
            let frame = Frame {
                number: 3,
                acknowledged: 9,
                kind,
                piece,
            };
            assert_eq!(Frame::of_bytes(&frame.to_bytes()), Some(frame));
        }
        for bad in [&b""[..], &[0; 16], &[9; 17]] {
            assert_eq!(Frame::of_bytes(bad), None);
        }
    }

    #[test]
    fn a_line_of_several_frames_is_delivered_once_however_they_arrive() {
        let now = Instant::now();
        let (mut here, mut there) = (LinkEnd::new(now), LinkEnd::new(now));
        let line = vec![b'x'; 2 * PIECE_BYTES + 1];
        let frames = here.send(&line, now);
        assert_eq!(frames.len(), 3);
        // The first is late, so the others count as lost.
        for place in [1, 2, 0, 0] {
            assert_eq!(there.receive(&frames[place], now), None);
        }
        let later = now + LinkEnd::RESEND_AFTER;
        let mut delivered = Vec::new();
        for frame in here.beat(later).iter().chain(&frames) {
            delivered.extend(there.receive(frame, later));
        }
        assert_eq!(delivered, [line]);
        assert_eq!(here.open_lines(), 1);
        for frame in there.beat(later) {
            here.receive(&frame, later);
        }
        assert_eq!((here.open_lines(), here.kept_bytes), (0, 0));
    }

    #[test]
    fn a_link_that_is_not_acknowledged_breaks_and_keeps_no_more() {
        let now = Instant::now();
        let mut end = LinkEnd::new(now);
        let line = vec![0; KEPT_BYTES_MAX / 2];
        assert!(!end.send(&line, now).is_empty());
        assert!(!end.send(&line, now).is_empty());
        assert!(!end.is_broken());
        assert!(end.send(b"x", now).is_empty());
        assert!(end.is_broken());
    }
}
