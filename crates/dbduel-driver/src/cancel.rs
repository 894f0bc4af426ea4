//! Cancellation of waits for servers, from another thread or on the user's request.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::executor::Bell;

/// A cancellation handle shared by its clones.
#[derive(Clone)]
pub struct Cancel(Option<Arc<Inner>>);

struct Inner {
    is_set: AtomicBool,
    /// Further condition, asked at each check.
    is_wanted: fn() -> bool,
    bells: Mutex<Vec<Bell>>,
}

impl Cancel {
    /// A handle that is never cancelled.
    #[must_use]
    pub fn never() -> Self {
        Cancel(None)
    }

    /// A handle that is also cancelled while `is_wanted` returns true. Only waits that poll notice it, as those of
    /// blocking connections do; it rings no bell.
    #[must_use]
    pub fn when(is_wanted: fn() -> bool) -> Self {
        Cancel(Some(Arc::new(Inner {
            is_set: AtomicBool::new(false),
            is_wanted,
            bells: Mutex::default(),
        })))
    }

    /// Cancels: from now on nothing is sent to a server, waits for replies end, and their connections are closed. A
    /// script that computes continues until its next request.
    pub fn cancel(&self) {
        let Some(inner) = &self.0 else {
            return;
        };
        inner.is_set.store(true, Ordering::Release);
        let bells = inner.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.iter().for_each(Bell::ring);
    }

    /// True when cancelled.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        let inner = self.0.as_ref();
        inner.is_some_and(|inner| inner.is_set.load(Ordering::Acquire) || (inner.is_wanted)())
    }

    /// Registers a bell that rings on cancellation.
    pub fn listen(&self, bell: Bell) {
        if let Some(inner) = &self.0 {
            let mut bells = inner.bells.lock().unwrap_or_else(PoisonError::into_inner);
            bells.push(bell);
        }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Cancel::when(|| false)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cancel({})", self.is_set())
    }
}
