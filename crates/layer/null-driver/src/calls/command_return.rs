//! The results of a command: on success, on failure, and after a bug of ours.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi::{Bool32, FnPtr, Result};

/// The return types of commands.
pub(crate) trait CommandReturn {
    fn success() -> Self;
    fn failure() -> Self;

    /// The return value for a `VkResult`, if the command returns one.
    fn from_result(_: Result) -> Self
    where
        Self: Sized,
    {
        Self::success()
    }
}

impl CommandReturn for () {
    fn success() {}
    fn failure() {}
}

impl CommandReturn for Result {
    fn success() -> Result {
        Result::SUCCESS
    }
    fn failure() -> Result {
        Result::ERROR_UNKNOWN
    }
    fn from_result(result: Result) -> Result {
        result
    }
}

impl CommandReturn for Bool32 {
    fn success() -> Bool32 {
        Bool32::TRUE
    }
    fn failure() -> Bool32 {
        Bool32::FALSE
    }
}

macro_rules! impl_default_return {
    ($($ty:ty),*) => { $(
        impl CommandReturn for $ty {
            fn success() -> $ty {
                <$ty>::default()
            }
            fn failure() -> $ty {
                <$ty>::default()
            }
        }
    )* };
}
impl_default_return!(u32, u64, FnPtr);

/// Runs `work`; after a panic, reports it once and returns `instead`. A panic never crosses into the application.
pub(crate) fn catch_panic<T>(name: &str, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
    /// Relaxed: it orders nothing, and two reports at worst would do no harm.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(_) => {
            if !IS_REPORTED.swap(true, Ordering::Relaxed) {
                eprintln!("lavascope null driver: a bug of ours in vk{name}; the call failed. Please report it");
            }
            instead()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure() {
        assert_eq!(catch_panic("Test", || panic!("on purpose"), Result::failure), Result::ERROR_UNKNOWN);
        assert_eq!(catch_panic("Test", Result::success, Result::failure), Result::SUCCESS);
    }
}
