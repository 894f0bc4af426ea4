//! A client of an event loop at the gate: it waits without holding up the others of its thread.

use std::rc::Rc;
use std::time::Instant;

use super::gate::Gate;
use crate::executor::{Reactor, Token, turn};

/// Where one client waits.
pub(crate) struct Entry<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) reactor: &'a Rc<Reactor>,
    pub(crate) token: Token,
}

impl Entry<'_> {
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

/// Waits for an instant.
pub(crate) async fn pause(reactor: &Reactor, token: Token, until: Instant) {
    reactor.wake_at(token, until);
    while Instant::now() < until {
        turn().await;
    }
}
