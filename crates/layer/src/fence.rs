//! Our bugs stay ours: a panic never crosses into the application.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work`; after a panic says so once and gives `instead`.
pub(crate) fn fence<T>(name: &str, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
    /// Relaxed: it orders nothing, and two reports at worst would do no harm.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(_) => {
            if !IS_REPORTED.swap(true, Ordering::Relaxed) {
                eprintln!("lavascope: a bug of ours in {name}; the call went on without us. Please report it");
            }
            instead()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn a_panic_ends_here() {
        assert_eq!(fence("vkTest", || panic!("on purpose"), || 7), 7);
        assert_eq!(fence("vkTest", || 3, || 7), 3);
    }
}
