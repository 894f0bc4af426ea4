//! What was made last in this process: contenders of a contest share what follows from their capture.

use std::sync::{Arc, Mutex, PoisonError};

/// A value and what it was made from.
pub(crate) struct LastMade<S, T>(Mutex<Option<(S, Arc<T>)>>);

impl<S: PartialEq, T> LastMade<S, T> {
    /// Nothing was made so far.
    pub(crate) const fn none() -> Self {
        LastMade(Mutex::new(None))
    }

    /// The value of a source: the last one where that was made from it, otherwise a new one.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn or_make<E>(
        &self,
        source: S,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, value)) = &*last
            && *known == source
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(make()?);
        *last = Some((source, Arc::clone(&value)));
        Ok(value)
    }
}
