//! How long a wait may take.
//!
//! Threads that wait for each other need no time of the device, so they have the time of the options. The device may be
//! much slower than that of the trace: a wait for it has as long again as the wait took in the trace, times
//! [`SLOWNESS`]. A driver that runs on the host shows that it works by its processor time. As long as it does, a wait
//! may take [`BUSY_FACTOR`] times as long.

use std::time::{Duration, Instant};

use lavascope_platform::clock;

/// How much slower the device may be than that of the trace, beside the time of the options.
const SLOWNESS: u32 = 20;
/// How much longer a wait may take while the process computes.
const BUSY_FACTOR: u32 = 30;

/// The limit of a wait for the device that took so long in the trace.
pub(crate) fn device_patience(patience: Duration, recorded: Duration) -> Duration {
    patience.saturating_add(recorded.saturating_mul(SLOWNESS))
}

/// The time since something happened.
pub(crate) struct StallClock {
    since: Instant,
    processor_time: Duration,
}

impl StallClock {
    pub(crate) fn start() -> StallClock {
        StallClock { since: Instant::now(), processor_time: processor_time() }
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Whether nothing has happened for so long, and the process has hardly computed meanwhile.
    pub(crate) fn is_over(&self, patience: Duration) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed < patience {
            return false;
        }
        let computed = processor_time().saturating_sub(self.processor_time);
        computed < elapsed / 2 || elapsed >= patience.saturating_mul(BUSY_FACTOR)
    }
}

fn processor_time() -> Duration {
    Duration::from_nanos(clock::process_nanoseconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_may_take_longer_if_it_took_long_in_the_trace() {
        let [short, long] = [Duration::from_secs(20), Duration::from_secs(30)];
        assert_eq!(device_patience(short, Duration::ZERO), short);
        assert_eq!(device_patience(short, long), Duration::from_secs(620));
        assert_eq!(device_patience(short, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_process_that_computes_may_take_longer() {
        let at = |since: Duration, computed: Duration| StallClock {
            since: Instant::now() - since,
            processor_time: processor_time().saturating_sub(computed),
        };
        let second = Duration::from_secs(1);
        // Other tests of this process compute as well, so only a long idle time is certain to be one.
        let idle = StallClock { since: Instant::now() - 1000 * second, processor_time: processor_time() };
        assert!(idle.is_over(500 * second) && !idle.is_over(2000 * second));
        let busy = at(Duration::from_millis(20), Duration::from_millis(20));
        assert!(!busy.is_over(Duration::from_millis(10)), "it works");
        assert!(busy.is_over(Duration::from_micros(100)), "but not without end");
    }
}
