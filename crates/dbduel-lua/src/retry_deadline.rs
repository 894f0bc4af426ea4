//! When a script's clients stop waiting for their connections.

use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a connection may take that is being made when the run is over: far more than one to a server that is well, so that
/// the event which needs it ends and counts.
pub const GRACE: Duration = Duration::from_secs(1);

/// How long a client waits for the connections that its script makes: until an end that may move, and what an attempt may still
/// take after it. Clones are about the same end.
#[derive(Clone)]
pub struct RetryDeadline {
    over_at: Rc<dyn Fn() -> Option<Instant>>,
    grace: Duration,
}

impl RetryDeadline {
    /// There is no end; the limits of the script's settings remain.
    pub fn endless() -> Self {
        Self::until(|| None, Duration::ZERO)
    }

    /// Until `over_at`, as far as that is known; what moves it has the client polled. An attempt is waited for at least
    /// for `grace`, however late it begins.
    pub fn until(over_at: impl Fn() -> Option<Instant> + 'static, grace: Duration) -> Self {
        RetryDeadline {
            over_at: Rc::new(over_at),
            grace,
        }
    }

    /// When an attempt that began at `since` is given up.
    pub(super) fn end_of(&self, since: Instant) -> Option<Instant> {
        Some((self.over_at)()?.max(since) + self.grace)
    }

    /// True when a connection that is not there by now is not to be asked for again.
    pub(super) fn is_over(&self) -> bool {
        let over_at = (self.over_at)();
        over_at.is_some_and(|over_at| Instant::now() >= over_at + self.grace)
    }
}
