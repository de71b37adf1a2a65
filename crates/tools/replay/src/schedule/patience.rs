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
        elapsed >= patience && is_too_long(elapsed, processor_time().saturating_sub(self.processor_time), patience)
    }
}

/// Whether a time is too long for a process that has computed so much of it.
fn is_too_long(elapsed: Duration, computed: Duration, patience: Duration) -> bool {
    elapsed >= patience && (computed < elapsed / 2 || elapsed >= patience.saturating_mul(BUSY_FACTOR))
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
        let second = Duration::from_secs(1);
        let is_over = |elapsed, computed| is_too_long(elapsed * second, computed * second, 20 * second);
        assert!(!is_over(19, 0) && is_over(20, 0) && is_over(30, 14), "it waits for nothing");
        assert!(!is_over(30, 15) && !is_over(599, 1000), "it works");
        assert!(is_over(600, 1000), "but not without end");
        let clock = StallClock::start();
        assert!(!clock.is_over(1000 * second) && clock.since().elapsed() < 1000 * second);
    }
}
