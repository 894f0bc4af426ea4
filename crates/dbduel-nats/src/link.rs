//! A link: lines between two programs, both ways, each once and in order.
//!
//! NATS delivers at most once: messages in flight are lost when a connection breaks. So lines are numbered, kept until
//! the other end has acknowledged them, and resent. Both ends send a frame several times a second, so that each notices
//! when the other is out of reach.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::NatsError;
use crate::connection::Nats;

/// A frame is sent at least this often.
const BEAT: Duration = Duration::from_millis(200);
/// Most frames resent at one time.
const RESENT_MAX: usize = 64;
/// Most bytes of a line in one frame; longer lines take several.
const PIECE_BYTES: usize = 128 << 10;
/// Most bytes that wait for their acknowledgement. Beyond that the link is broken.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Timeout of handing a frame to the client of NATS; exceeded only without a connection. The frame is then resent
/// later.
const PUBLISH_TIMEOUT: Duration = Duration::from_millis(100);
/// Number, acknowledgement and kind of a frame.
const HEADER_BYTES: usize = 17;

/// One end of a link. Dropping it closes it; unacknowledged lines are then lost.
#[derive(Debug)]
pub struct Link {
    outgoing: UnboundedSender<Vec<u8>>,
    state: Arc<LinkState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct LinkState {
    heard: Mutex<Instant>,
    bytes: AtomicU64,
    /// Lines given to [`Link::send`] and not yet acknowledged.
    open_lines: AtomicU64,
    is_broken: AtomicBool,
}

impl Nats {
    /// Opens one end of a link, which sends on one subject and listens on the other; `on_line` is called with every
    /// line and must not wait.
    ///
    /// # Errors
    /// When the subject cannot be listened on.
    pub fn link(
        &self,
        sends_on: &str,
        hears_on: &str,
        on_line: impl FnMut(Vec<u8>) + Send + Sync + 'static,
    ) -> Result<Link, NatsError> {
        let action = format!("listen on `{hears_on}`");
        let incoming = self.call(&action, self.client.subscribe(hears_on.to_owned()))?;
        self.call(&action, self.client.flush())?;
        let (outgoing, lines) = unbounded_channel();
        let state = Arc::new(LinkState {
            heard: Mutex::new(Instant::now()),
            bytes: AtomicU64::new(0),
            open_lines: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
        });
        let end = End {
            client: self.client.clone(),
            subject: sends_on.to_owned(),
            state: Arc::clone(&state),
            kept: VecDeque::new(),
            kept_bytes: 0,
            next: 1,
            expected: 1,
            partial: Vec::new(),
            on_line,
        };
        let task = self.spawn(end.run(incoming, lines));
        Ok(Link {
            outgoing,
            state,
            task,
        })
    }
}

impl Link {
    /// A line that is not acknowledged within this time is resent.
    pub const RESEND_AFTER: Duration = Duration::from_millis(600);

    /// Sends a line, as soon as there is a connection.
    pub fn send(&self, line: Vec<u8>) {
        self.state.open_lines.fetch_add(1, Ordering::Relaxed);
        // The task ends with the link only.
        let _ = self.outgoing.send(line);
    }

    /// Time since the other end was heard last, or since the link was opened.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        let heard = self.state.heard.lock();
        heard.unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Bytes of all frames, sent and received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Ordering::Relaxed)
    }

    /// True when more bytes wait for acknowledgement than are kept. Lines are lost then.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.state.is_broken.load(Ordering::Relaxed)
    }

    /// Waits until the other end has all lines, at most for `limit`.
    pub fn finish(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.state.open_lines.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

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
struct Kept {
    frame: Frame,
    sent: Instant,
}

/// The end of a link in its task.
struct End<F> {
    client: Client,
    subject: String,
    state: Arc<LinkState>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// Number of the next frame here.
    next: u64,
    /// Number of the next frame from there.
    expected: u64,
    /// Pieces of a line that is not complete.
    partial: Vec<u8>,
    on_line: F,
}

impl<F: FnMut(Vec<u8>) + Send + Sync> End<F> {
    async fn run(mut self, mut incoming: Subscriber, mut lines: UnboundedReceiver<Vec<u8>>) {
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => self.send(&line).await,
                    None => return,
                },
                message = incoming.next() => match message {
                    Some(message) => {
                        self.count(message.payload.len());
                        if let Some(frame) = Frame::of_bytes(&message.payload) {
                            self.receive(frame);
                        }
                    }
                    None => return,
                },
                _ = beat.tick() => self.beat().await,
            }
        }
    }

    fn count(&self, bytes: usize) {
        self.state.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    async fn send(&mut self, line: &[u8]) {
        let pieces = line.len().div_ceil(PIECE_BYTES).max(1);
        for place in 0..pieces {
            let from = place * PIECE_BYTES;
            let piece = &line[from..line.len().min(from + PIECE_BYTES)];
            let frame = Frame {
                number: self.next,
                acknowledged: self.expected - 1,
                kind: match place + 1 == pieces {
                    true => FrameKind::End,
                    false => FrameKind::Piece,
                },
                piece: piece.to_vec(),
            };
            if self.kept_bytes + piece.len() > KEPT_BYTES_MAX {
                self.state.is_broken.store(true, Ordering::Relaxed);
                return;
            }
            self.next += 1;
            self.kept_bytes += piece.len();
            self.publish(&frame).await;
            let sent = Instant::now();
            self.kept.push_back(Kept { frame, sent });
        }
    }

    async fn publish(&self, frame: &Frame) {
        let bytes = frame.to_bytes();
        self.count(bytes.len());
        let publish = self.client.publish(self.subject.clone(), bytes.into());
        let _ = tokio::time::timeout(PUBLISH_TIMEOUT, publish).await;
    }

    fn receive(&mut self, frame: Frame) {
        *self
            .state
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
        while let Some(first) = self.kept.front()
            && first.frame.number <= frame.acknowledged
        {
            self.kept_bytes -= first.frame.piece.len();
            if first.frame.kind == FrameKind::End {
                self.state.open_lines.fetch_sub(1, Ordering::Relaxed);
            }
            self.kept.pop_front();
        }
        // One that comes again, or before one that was lost, comes again in its turn.
        if frame.kind == FrameKind::Beat || frame.number != self.expected {
            return;
        }
        self.expected += 1;
        self.partial.extend(frame.piece);
        if frame.kind == FrameKind::End {
            (self.on_line)(std::mem::take(&mut self.partial));
        }
    }

    async fn beat(&mut self) {
        let now = Instant::now();
        let is_overdue = |kept: &Kept| now.duration_since(kept.sent) >= Link::RESEND_AFTER;
        let overdue = self
            .kept
            .iter()
            .take(RESENT_MAX)
            .take_while(|kept| is_overdue(kept));
        let again: Vec<Frame> = overdue.map(|kept| kept.frame.clone()).collect();
        for kept in self.kept.iter_mut().take(again.len()) {
            kept.sent = now;
        }
        for frame in &again {
            self.publish(&Frame {
                acknowledged: self.expected - 1,
                ..frame.clone()
            })
            .await;
        }
        if again.is_empty() {
            self.publish(&Frame {
                number: 0,
                acknowledged: self.expected - 1,
                kind: FrameKind::Beat,
                piece: Vec::new(),
            })
            .await;
        }
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
}
