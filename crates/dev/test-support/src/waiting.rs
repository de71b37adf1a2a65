//! Waits until something has happened, instead of sleeping for as long as it might take.

use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds. Panics with `what` if that never happens.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until there is a value. Panics with `what` if that never happens.
#[track_caller]
pub fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited {} seconds in vain: {what}", PATIENCE.as_secs());
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_until_there_is_a_value() {
        let mut count = 0;
        let found = wait_for("the third time", || {
            count += 1;
            (count == 3).then_some(count)
        });
        assert_eq!((found, count), (3, 3));
    }
}
