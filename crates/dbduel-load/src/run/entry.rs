//! A client of an event loop at the gate: it waits without holding up the others of its thread.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use super::gate::Gate;
use crate::executor::{Reactor, Token, turn};

/// Events without a wait after which the other clients of the thread have their turn.
const EVENTS_PER_TURN: u32 = 16;

/// Where one client waits.
pub(crate) struct Entry<'a> {
    gate: &'a Gate,
    reactor: &'a Rc<Reactor>,
    token: Token,
    /// The event loop's turn at the last event, and events since it began.
    seen: Cell<(Instant, u32)>,
}

impl<'a> Entry<'a> {
    /// A client that has not had an event.
    pub(crate) fn new(gate: &'a Gate, reactor: &'a Rc<Reactor>, token: Token) -> Self {
        Entry {
            gate,
            reactor,
            token,
            seen: Cell::new((reactor.turn_began(), 0)),
        }
    }

    pub(crate) fn gate(&self) -> &'a Gate {
        self.gate
    }

    /// Counts an event; true when the client has not waited for anything for too many of them.
    fn has_had_its_turn(&self) -> bool {
        let (turn, events) = self.seen.get();
        let now = self.reactor.turn_began();
        let events = if now == turn { events + 1 } else { 1 };
        self.seen.set((now, events));
        events > EVENTS_PER_TURN
    }

    /// Waits for the beginning; false when there will be none.
    pub(crate) async fn opened(&self) -> bool {
        while self.gate.started().is_none() {
            if self.gate.is_closed() {
                return false;
            }
            turn().await;
        }
        true
    }

    /// Waits until the next event is due and returns when that is; none when the run is over. `now` is when the client
    /// became free, and afterwards when it goes on.
    pub(crate) async fn next_due(&self, now: &mut Instant) -> Option<Instant> {
        if self.has_had_its_turn() {
            pause(self.reactor, self.token, *now).await;
            *now = Instant::now();
        }
        let Some(due) = self.gate.take(*now)?.due else {
            return Some(*now);
        };
        if *now < due {
            self.reactor.wake_at(self.token, due);
        }
        while *now < due {
            if self.gate.is_closed() {
                return None;
            }
            turn().await;
            *now = Instant::now();
        }
        Some(due)
    }
}

/// Waits for an instant, and at least for the next turn of the event loop.
pub(crate) async fn pause(reactor: &Reactor, token: Token, until: Instant) {
    reactor.wake_at(token, until);
    turn().await;
    while Instant::now() < until {
        turn().await;
    }
}
