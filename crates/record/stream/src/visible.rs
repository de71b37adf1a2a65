//! A `OnceLock` whose order a sanitizer sees: that of the standard library sets its state in code without instruments.

use std::sync::atomic::{AtomicBool, Ordering};

/// As `std::sync::OnceLock`, for a value that one thread sets.
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    /// Released after the value is there. It promises what `value` promises already, and no more.
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
