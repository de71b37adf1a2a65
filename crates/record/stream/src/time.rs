//! The time of a record, from a clock that is cheap to read and counts in steps of some nanoseconds.

use std::time::{Duration, Instant};

pub use lavascope_platform::clock::ticks;

/// The bits of a time that a record stores; the others follow from the record before.
pub const TIME_MASK: u64 = (1 << 48) - 1;

/// The rate of the clock, measured for as long as `patience`.
pub fn ticks_per_second(patience: Duration) -> u64 {
    let (start, first) = (Instant::now(), ticks());
    std::thread::sleep(patience);
    let (elapsed, steps) = (start.elapsed(), ticks().wrapping_sub(first));
    (u128::from(steps) * 1_000_000_000 / elapsed.as_nanos().max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_in_steps_of_some_nanoseconds() {
        let first = ticks();
        let speed = ticks_per_second(Duration::from_millis(20));
        assert!(ticks() > first);
        assert!((1_000_000..1_000_000_000).contains(&speed), "{speed} steps a second");
    }
}
