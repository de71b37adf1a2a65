//! Decides when one thread plays all streams, and when each stream has a thread of its own.
//!
//! A hand-over between two sleeping threads costs more than most calls. If threads sleep very often, the replay tries
//! one thread for all streams, and keeps to whatever performs more calls in a second. It compares again from time to
//! time, because a program may change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::options::ThreadSharing;

/// The clock is read once in this many sleeps of threads, and once in this many records of a serial phase.
const SLEEPS_PER_LOOK: u64 = 64;
const RECORDS_PER_LOOK: u32 = 256;
/// The shortest time in which calls are counted.
const WINDOW: Duration = Duration::from_millis(10);
/// Threads that sleep less often than this are never played by one thread.
const SLEEP_INTERVAL: Duration = Duration::from_micros(100);
/// How much faster one thread must be.
const GAIN_MIN: f64 = 1.05;
/// How long a decision holds at first, and at most. Each confirmation doubles it.
const HOLD_MIN: Duration = Duration::from_millis(100);
const HOLD_MAX: Duration = Duration::from_secs(2);
/// One in this many records ends a phase, if phases change at random.
const RANDOM_SWITCH: u64 = 48;

/// Whether one thread plays all streams.
pub(crate) struct PhaseSwitch {
    sharing: ThreadSharing,
    is_serial: AtomicBool,
    /// Number of times that a thread slept until another was ready.
    sleeps: AtomicU64,
    random: AtomicU64,
    comparison: Mutex<PhaseComparison>,
}

impl PhaseSwitch {
    pub(crate) fn new(sharing: ThreadSharing) -> PhaseSwitch {
        let seed = if let ThreadSharing::Random(seed) = sharing { seed } else { 0 };
        PhaseSwitch {
            sharing,
            is_serial: AtomicBool::new(false),
            sleeps: AtomicU64::new(0),
            random: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            comparison: Mutex::new(PhaseComparison::new(Instant::now())),
        }
    }

    /// Whether threads must give their streams to the one that plays all.
    #[inline]
    pub(crate) fn is_serial(&self) -> bool {
        self.is_serial.load(Ordering::Relaxed)
    }

    /// Notes that a thread sleeps, in a parallel phase. Returns whether that begins a serial phase. `calls` gives the
    /// number of complete calls.
    pub(crate) fn note_sleep(&self, calls: impl FnOnce() -> u64) -> bool {
        if self.sharing != ThreadSharing::Adaptive || self.is_serial() {
            return false;
        }
        let sleeps = self.sleeps.fetch_add(1, Ordering::Relaxed) + 1;
        sleeps.is_multiple_of(SLEEPS_PER_LOOK)
            && self.lock().ends_parallel_phase(Instant::now(), sleeps, calls())
            && !self.is_serial.swap(true, Ordering::SeqCst)
    }

    /// Whether a serial phase begins at random before the next record.
    #[inline]
    pub(crate) fn begins_at_random(&self) -> bool {
        self.is_random_moment() && !self.is_serial.swap(true, Ordering::SeqCst)
    }

    /// The streams begin to come to one thread.
    pub(crate) fn begin_serial_phase(&self, calls: u64) {
        self.lock().restart(Instant::now(), 0, calls);
    }

    /// Whether the serial phase is over. `record` is the number of the record in the phase.
    #[inline]
    pub(crate) fn ends_serial_phase(&self, record: u32, calls: impl FnOnce() -> u64) -> bool {
        match self.sharing {
            ThreadSharing::Random(_) => self.is_random_moment(),
            _ if !record.is_multiple_of(RECORDS_PER_LOOK) => false,
            _ => self.lock().ends_serial_phase(Instant::now(), calls()),
        }
    }

    /// Each thread continues with its stream. `is_stalled` if the serial phase could not go on.
    pub(crate) fn end_serial_phase(&self, is_stalled: bool, calls: u64) {
        let (now, mut comparison) = (Instant::now(), self.lock());
        if is_stalled {
            comparison.decide(false, now);
        }
        comparison.restart(now, self.sleeps.load(Ordering::Relaxed), calls);
        self.is_serial.store(false, Ordering::SeqCst);
    }

    #[inline]
    fn is_random_moment(&self) -> bool {
        matches!(self.sharing, ThreadSharing::Random(_)) && self.next_random().is_multiple_of(RANDOM_SWITCH)
    }

    #[cold]
    fn next_random(&self) -> u64 {
        let step = |state: u64| {
            let state = state ^ (state << 13);
            let state = state ^ (state >> 7);
            state ^ (state << 17)
        };
        let last = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| Some(step(it)));
        step(last.unwrap_or(1)) >> 16
    }

    /// What is behind the lock is consistent at every moment.
    fn lock(&self) -> MutexGuard<'_, PhaseComparison> {
        self.comparison.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures both ways, one after the other.
struct PhaseComparison {
    /// When the current measurement began, and the numbers of sleeps and of complete calls then.
    since: Instant,
    sleeps: u64,
    calls: u64,
    /// Calls in a second before the serial phase.
    parallel_speed: f64,
    /// The last decision, how long it holds, and until when.
    is_serial_faster: bool,
    hold: Duration,
    until: Instant,
    /// Whether the current serial phase was found faster.
    is_confirmed: bool,
}

impl PhaseComparison {
    fn new(now: Instant) -> PhaseComparison {
        PhaseComparison {
            since: now,
            sleeps: 0,
            calls: 0,
            parallel_speed: 0.0,
            is_serial_faster: false,
            hold: HOLD_MIN,
            until: now,
            is_confirmed: false,
        }
    }

    fn restart(&mut self, now: Instant, sleeps: u64, calls: u64) {
        (self.since, self.sleeps, self.calls, self.is_confirmed) = (now, sleeps, calls, false);
    }

    fn decide(&mut self, is_serial_faster: bool, now: Instant) {
        self.hold = match is_serial_faster == self.is_serial_faster {
            true => (self.hold * 2).min(HOLD_MAX),
            false => HOLD_MIN,
        };
        self.is_serial_faster = is_serial_faster;
        self.until = now + self.hold;
    }

    /// Calls in a second. None if streams have ended meanwhile, which have no number of calls any more.
    fn speed(&self, now: Instant, calls: u64) -> Option<f64> {
        let made = calls.checked_sub(self.calls)?;
        Some(made as f64 / now.saturating_duration_since(self.since).as_secs_f64())
    }

    fn ends_parallel_phase(&mut self, now: Instant, sleeps: u64, calls: u64) -> bool {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < WINDOW {
            return false;
        }
        let slept = u32::try_from(sleeps.saturating_sub(self.sleeps)).unwrap_or(u32::MAX);
        let is_often = SLEEP_INTERVAL * slept >= elapsed;
        let speed = self.speed(now, calls);
        self.restart(now, sleeps, calls);
        self.parallel_speed = speed.unwrap_or(f64::INFINITY);
        is_often && speed.is_some() && (self.is_serial_faster || now >= self.until)
    }

    fn ends_serial_phase(&mut self, now: Instant, calls: u64) -> bool {
        if self.is_confirmed {
            return now >= self.until;
        }
        if now.saturating_duration_since(self.since) < WINDOW {
            return false;
        }
        // A stream that ended is no reason to decide anything.
        let Some(speed) = self.speed(now, calls) else {
            self.restart(now, 0, calls);
            return false;
        };
        self.is_confirmed = speed >= self.parallel_speed * GAIN_MIN;
        self.decide(self.is_confirmed, now);
        !self.is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A replay whose calls take so long: on threads of their own, and on one thread.
    struct Speeds {
        comparison: PhaseComparison,
        now: Instant,
        calls: u64,
        sleeps: u64,
    }

    impl Speeds {
        fn new() -> Speeds {
            let now = Instant::now();
            Speeds { comparison: PhaseComparison::new(now), now, calls: 0, sleeps: 0 }
        }

        /// Whether a parallel phase of some milliseconds ends.
        fn parallel(&mut self, ms: u32, calls_per_ms: u64, sleeps_per_ms: u64) -> bool {
            (0..ms).any(|_| {
                self.now += MS;
                self.calls += calls_per_ms;
                self.sleeps += sleeps_per_ms;
                self.comparison.ends_parallel_phase(self.now, self.sleeps, self.calls)
            })
        }

        /// After how many milliseconds a serial phase ends.
        fn serial(&mut self, calls_per_ms: u64) -> u32 {
            self.comparison.restart(self.now, 0, self.calls);
            let mut ms = 0;
            loop {
                ms += 1;
                self.now += MS;
                self.calls += calls_per_ms;
                if self.comparison.ends_serial_phase(self.now, self.calls) {
                    self.comparison.restart(self.now, self.sleeps, self.calls);
                    return ms;
                }
            }
        }
    }

    #[test]
    fn threads_that_seldom_sleep_keep_their_threads() {
        assert!(!Speeds::new().parallel(1000, 100, 9));
    }

    #[test]
    fn one_thread_stays_as_long_as_it_is_faster() {
        let mut speeds = Speeds::new();
        assert!(speeds.parallel(10, 100, 50), "they sleep often");
        assert_eq!(speeds.serial(200), 110, "ten to measure, and the time of the decision");
        assert!(speeds.parallel(10, 100, 50), "one comparison");
        assert_eq!(speeds.serial(200), 210);
        assert!(speeds.parallel(10, 100, 50));
        assert_eq!(speeds.serial(80), 10, "the program has changed");
        assert!(!speeds.parallel(99, 100, 50) && speeds.parallel(20, 100, 50), "not at once again");
    }

    #[test]
    fn one_thread_that_is_slower_is_tried_ever_less_often() {
        let mut speeds = Speeds::new();
        assert!(speeds.parallel(10, 100, 50));
        for wait in [200, 400, 800, 1600, 2000, 2000] {
            assert_eq!(speeds.serial(100), 10, "as fast is not faster");
            assert!(!speeds.parallel(wait - 10, 100, 50), "{wait}");
            assert!(speeds.parallel(20, 100, 50), "{wait}");
        }
    }

    #[test]
    fn a_stream_that_ends_decides_nothing() {
        let mut speeds = Speeds::new();
        speeds.calls = 1 << 40;
        speeds.comparison.restart(speeds.now, 0, speeds.calls);
        speeds.calls = 0;
        assert!(!speeds.parallel(10, 100, 50), "there is no speed");
        assert!(speeds.parallel(10, 100, 50));
        let end = speeds.now + 2 * WINDOW;
        speeds.comparison.restart(speeds.now, 0, 1 << 40);
        assert!(!speeds.comparison.ends_serial_phase(speeds.now + WINDOW, 10), "the measurement begins anew");
        assert!(!speeds.comparison.is_confirmed && !speeds.comparison.ends_serial_phase(end, 10_000));
        assert!(speeds.comparison.is_confirmed);
    }

    #[test]
    fn phases_change_at_random_only_if_asked() {
        let changes = |sharing| {
            let switch = PhaseSwitch::new(sharing);
            (0..10_000).filter(|it| switch.begins_at_random() && switch.ends_random(*it)).count()
        };
        assert_eq!([ThreadSharing::Adaptive, ThreadSharing::OnePerStream].map(changes), [0, 0]);
        assert!((100..400).contains(&changes(ThreadSharing::Random(3))));
    }

    impl PhaseSwitch {
        fn ends_random(&self, record: u32) -> bool {
            while !self.ends_serial_phase(record, || 0) {}
            self.end_serial_phase(false, 0);
            true
        }
    }
}
