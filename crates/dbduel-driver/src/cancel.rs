//! What gives up waits for servers, from another thread or because the user wants an end.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::executor::Bell;

/// Gives up the waits of those that were given it. Clones give up the same ones.
#[derive(Clone)]
pub struct Cancel(Option<Arc<Inner>>);

struct Inner {
    is_set: AtomicBool,
    /// Asked as well at each look.
    is_wanted: fn() -> bool,
    bells: Mutex<Vec<Bell>>,
}

impl Cancel {
    /// One that gives up nothing.
    #[must_use]
    pub fn never() -> Self {
        Cancel(None)
    }

    /// One that is set as long as `is_wanted` says so, too. Only waits that look at it again and again notice, as those of blocking
    /// connections do; it rings no bell.
    #[must_use]
    pub fn when(is_wanted: fn() -> bool) -> Self {
        Cancel(Some(Arc::new(Inner {
            is_set: AtomicBool::new(false),
            is_wanted,
            bells: Mutex::default(),
        })))
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

    /// True when waits are to be given up.
    #[inline]
    #[must_use]
    pub fn is_set(&self) -> bool {
        let inner = self.0.as_ref();
        inner.is_some_and(|inner| inner.is_set.load(Ordering::Acquire) || (inner.is_wanted)())
    }

    /// Rings this bell too.
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
