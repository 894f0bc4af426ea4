//! Ends what a script does, from another thread.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::executor::Bell;

/// Ends the commands of the hosts that were made with it. Clones end the same ones.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_set: AtomicBool,
    bells: Mutex<Vec<Bell>>,
}

impl Cancel {
    /// From now on nothing is sent to a server; what waits for one is given up and its connections are closed. A script
    /// that computes goes on until it asks for something.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::Release);
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.iter().for_each(Bell::ring);
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Rings this bell too.
    pub(super) fn listen(&self, bell: Bell) {
        let mut bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.push(bell);
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cancel({})", self.is_set())
    }
}
