//! What a command returns when all is well, when it is not, and when the fault is ours.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi::{Bool32, FnPtr, Result};

/// The return types of commands.
pub(crate) trait Answer {
    fn accepted() -> Self;
    fn failed() -> Self;

    /// What a command that returns results would say, for those that return them.
    fn of(_: Result) -> Self
    where
        Self: Sized,
    {
        Self::accepted()
    }
}

impl Answer for () {
    fn accepted() {}
    fn failed() {}
}

impl Answer for Result {
    fn accepted() -> Result {
        Result::SUCCESS
    }
    fn failed() -> Result {
        Result::ERROR_UNKNOWN
    }
    fn of(result: Result) -> Result {
        result
    }
}

impl Answer for Bool32 {
    fn accepted() -> Bool32 {
        Bool32::TRUE
    }
    fn failed() -> Bool32 {
        Bool32::FALSE
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Answer for $ty {
            fn accepted() -> $ty {
                <$ty>::default()
            }
            fn failed() -> $ty {
                <$ty>::default()
            }
        }
    )* };
}
numbers!(u32, u64, FnPtr);

/// Runs `work`; after a panic says so once and gives `instead`. A panic never crosses into the application.
pub(crate) fn fence<T>(name: &str, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
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
        assert_eq!(fence("Test", || panic!("on purpose"), Result::failed), Result::ERROR_UNKNOWN);
        assert_eq!(fence("Test", Result::accepted, Result::failed), Result::SUCCESS);
    }
}
