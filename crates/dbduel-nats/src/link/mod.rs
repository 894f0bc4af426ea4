//! A link: lines between two programs, both ways, each once and in order.
//!
//! NATS delivers at most once: messages in flight are lost when a connection breaks. [`LinkEnd`] numbers, keeps and resends
//! lines; this module carries its frames. Both ends send a frame several times a second, so that each notices when the
//! other is out of reach.

mod protocol;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use crate::NatsError;
use crate::connection::Nats;
pub use protocol::LinkEnd;

/// Timeout of handing a frame to the client of NATS. The frame is then resent later.
const PUBLISH_TIMEOUT: Duration = Duration::from_millis(100);

/// One end of a link. Dropping it closes it; unacknowledged lines are then lost.
#[derive(Debug)]
pub struct Link {
    outgoing: UnboundedSender<Vec<u8>>,
    state: Arc<LinkState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct LinkState {
    end: Mutex<LinkEnd>,
    bytes: AtomicU64,
    /// Lines that were not yet given to the protocol.
    waiting_lines: AtomicU64,
}

impl LinkState {
    fn end(&self) -> MutexGuard<'_, LinkEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            end: Mutex::new(LinkEnd::new(Instant::now())),
            bytes: AtomicU64::new(0),
            waiting_lines: AtomicU64::new(0),
        });
        let carrier = Carrier {
            client: self.client.clone(),
            subject: sends_on.to_owned(),
            state: Arc::clone(&state),
            on_line,
        };
        let task = self.spawn(carrier.run(incoming, lines));
        Ok(Link {
            outgoing,
            state,
            task,
        })
    }
}

impl Link {
    /// Sends a line, as soon as there is a connection.
    pub fn send(&self, line: Vec<u8>) {
        self.state.waiting_lines.fetch_add(1, Ordering::Relaxed);
        // The task ends with the link only.
        let _ = self.outgoing.send(line);
    }

    /// Time since the other end was heard last, or since the link was opened.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.state.end().silent_for(Instant::now())
    }

    /// Bytes of all frames, sent and received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.state.bytes.load(Ordering::Relaxed)
    }

    /// True when more bytes wait for acknowledgement than are kept. Lines are lost then.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.state.end().is_broken()
    }

    /// Waits until the other end has all lines, at most for `limit`.
    pub fn finish(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.has_open_lines() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn has_open_lines(&self) -> bool {
        let waiting = self.state.waiting_lines.load(Ordering::Relaxed);
        waiting > 0 || self.state.end().open_lines() > 0
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries the frames of one end, in its task.
struct Carrier<F> {
    client: Client,
    subject: String,
    state: Arc<LinkState>,
    on_line: F,
}

impl<F: FnMut(Vec<u8>) + Send + Sync> Carrier<F> {
    async fn run(mut self, mut incoming: Subscriber, mut lines: UnboundedReceiver<Vec<u8>>) {
        let mut beat = tokio::time::interval(LinkEnd::BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => {
                        let frames = self.state.end().send(&line, Instant::now());
                        self.state.waiting_lines.fetch_sub(1, Ordering::Relaxed);
                        self.publish(frames).await;
                    }
                    None => return,
                },
                message = incoming.next() => match message {
                    Some(message) => {
                        self.count(message.payload.len());
                        let line = self.state.end().receive(&message.payload, Instant::now());
                        if let Some(line) = line {
                            (self.on_line)(line);
                        }
                    }
                    None => return,
                },
                // Without a connection nothing arrives, and the client would keep frames that are resent anyway.
                _ = beat.tick() => if self.client.connection_state() == State::Connected {
                    let frames = self.state.end().beat(Instant::now());
                    self.publish(frames).await;
                },
            }
        }
    }

    fn count(&self, bytes: usize) {
        self.state.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    async fn publish(&self, frames: Vec<Vec<u8>>) {
        for bytes in frames {
            self.count(bytes.len());
            let publish = self.client.publish(self.subject.clone(), bytes.into());
            let _ = tokio::time::timeout(PUBLISH_TIMEOUT, publish).await;
        }
    }
}
