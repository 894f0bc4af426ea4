//! Ends what a script does, from another thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
