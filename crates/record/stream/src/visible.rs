//! A `OnceLock` that sanitizers understand: the one of the standard library sets its state in code that is not
//! instrumented.

use std::sync::atomic::{AtomicBool, Ordering};

/// Like `std::sync::OnceLock`, for a value that one thread sets.
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    /// Set after the value, with Release. It gives no guarantee beyond that of `value`.
    is_set: AtomicBool,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), is_set: AtomicBool::new(false) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get().filter(|_| self.is_set.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take()
    }
}
