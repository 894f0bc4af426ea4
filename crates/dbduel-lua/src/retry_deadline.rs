//! When a script's clients stop waiting for their connections.

use std::rc::Rc;
use std::time::{Duration, Instant};

/// Longest time of a connection that is being made when the run ends: far more than a healthy server needs, so that
/// the event which needs it ends and counts.
pub const GRACE: Duration = Duration::from_secs(1);

/// Deadline of a client for the connections that its script makes: an end that may move, and a grace period for an
/// attempt after it. Clones share the same end.
#[derive(Clone)]
pub struct RetryDeadline {
    over_at: Rc<dyn Fn() -> Option<Instant>>,
    grace: Duration,
}

impl RetryDeadline {
    /// No deadline; the limits of the script's settings remain.
    pub fn endless() -> Self {
        Self::until(|| None, Duration::ZERO)
    }

    /// Until `over_at`, as far as that is known; the code that moves it must have the client polled. An attempt gets at
    /// least `grace`, however late it begins.
    pub fn until(over_at: impl Fn() -> Option<Instant> + 'static, grace: Duration) -> Self {
        RetryDeadline {
            over_at: Rc::new(over_at),
            grace,
        }
    }

    /// When an attempt that began at `since` is abandoned.
    pub(super) fn end_of(&self, since: Instant) -> Option<Instant> {
        Some((self.over_at)()?.max(since) + self.grace)
    }

    /// True when a connection that does not exist by now must not be requested again.
    pub(super) fn is_over(&self) -> bool {
        let over_at = (self.over_at)();
        over_at.is_some_and(|over_at| Instant::now() >= over_at + self.grace)
    }
}
