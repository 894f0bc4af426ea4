//! What ends what a script does: another thread, or that its connections take too long.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::executor::Bell;

/// Ends the commands of the hosts that were made with it. Clones end the same ones.
#[derive(Clone)]
pub struct Cancel(Option<Arc<Inner>>);

#[derive(Default)]
struct Inner {
    is_set: AtomicBool,
    bells: Mutex<Vec<Bell>>,
}

impl Cancel {
    /// One that ends nothing, for those who are ended in another way.
    #[must_use]
    pub fn never() -> Self {
        Cancel(None)
    }

    /// From now on nothing is sent to a server; what waits for one is given up and its connections are closed. A script
    /// that computes goes on until it asks for something.
    pub fn cancel(&self) {
        let Some(inner) = &self.0 else {
            return;
        };
        inner.is_set.store(true, Ordering::Release);
        let bells = inner.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.iter().for_each(Bell::ring);
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        let inner = self.0.as_ref();
        inner.is_some_and(|inner| inner.is_set.load(Ordering::Acquire))
    }

    /// Rings this bell too.
    pub(super) fn listen(&self, bell: Bell) {
        if let Some(inner) = &self.0 {
            let mut bells = inner.bells.lock().unwrap_or_else(PoisonError::into_inner);
            bells.push(bell);
        }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Cancel(Some(Arc::default()))
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cancel({})", self.is_set())
    }
}

/// How long a client waits for the connections that its script makes: until an end that may move, and what an attempt may still take after it. Clones are about the same end.
#[derive(Clone)]
pub(crate) struct RetryDeadline {
    over_at: Rc<dyn Fn() -> Option<Instant>>,
    grace: Duration,
}

impl RetryDeadline {
    /// There is no end; the limits of the script's settings remain.
    pub(crate) fn endless() -> Self {
        Self::until(|| None, Duration::ZERO)
    }

    /// Until `over_at`, as far as that is known; what moves it has the client polled. An attempt is waited for at least
    /// for `grace`, however late it begins.
    pub(crate) fn until(over_at: impl Fn() -> Option<Instant> + 'static, grace: Duration) -> Self {
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
