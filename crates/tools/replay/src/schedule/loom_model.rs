//! All interleavings of threads that publish how far they are and wait for each other, also such as only weakly ordered
//! processors show. The code is that of [`crate::schedule::progress_counter`], compiled with the atomics of `loom`.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

#[path = "progress_counter.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled with other atomics, and only what is modeled is used")]
mod progress_counter;

use progress_counter::ProgressCounter;

/// The types that the code under test uses here.
mod atomics {
    use std::time::Duration;

    use loom::sync::atomic::AtomicU32;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
    use loom::sync::{Condvar, Mutex};

    /// A futex as in the kernel: it reads the number under the lock that a waking thread takes as well.
    #[derive(Default)]
    pub(crate) struct EventCount {
        epoch: AtomicU32,
        lock: Mutex<()>,
        sleepers: Condvar,
    }

    impl EventCount {
        pub(crate) fn epoch(&self) -> u32 {
            self.epoch.load(Ordering::Acquire)
        }

        pub(crate) fn notify_all(&self) {
            self.epoch.fetch_add(1, Ordering::Release);
            let _guard = self.lock.lock().expect("nobody panics");
            self.sleepers.notify_all();
        }

        /// Without a time limit: a thread that is not woken sleeps forever, and `loom` reports that.
        pub(crate) fn wait(&self, heard: u32, _nap: Duration) -> bool {
            let guard = self.lock.lock().expect("nobody panics");
            if self.epoch.load(Ordering::Acquire) == heard {
                drop(self.sleepers.wait(guard).expect("nobody panics"));
            }
            false
        }
    }
}

/// As `ReplayProgress::sleep` does it.
fn wait(own: &ProgressCounter, other: &ProgressCounter, until: u64) {
    own.flush_wakeups();
    while other.get() < until {
        other.sleep(until, Duration::MAX, || false);
    }
}

/// All ways in which threads are interrupted at most so often.
fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

#[test]
fn whoever_sleeps_is_woken_and_sees_what_was_done() {
    explore(4, || {
        let marks = Arc::new([ProgressCounter::default(), ProgressCounter::default()]);
        let work = Arc::new(loom::cell::UnsafeCell::new(0));
        let (other_marks, other_work) = (marks.clone(), work.clone());
        let other = thread::spawn(move || {
            wait(&other_marks[1], &other_marks[0], 2);
            // SAFETY: written before the number that was waited for, and never again.
            other_work.with(|it| assert_eq!(unsafe { *it }, 7));
        });
        marks[0].publish(1);
        // SAFETY: no thread reads it before the next number.
        work.with_mut(|it| unsafe { *it = 7 });
        marks[0].publish(2);
        marks[0].flush_wakeups();
        other.join().expect("it ends");
    });
}

#[test]
fn two_that_sleep_for_different_calls_are_both_woken() {
    explore(2, || {
        let mark = Arc::new(ProgressCounter::default());
        let sleep = |until: u64| {
            let mark = mark.clone();
            thread::spawn(move || wait(&ProgressCounter::default(), &mark, until))
        };
        let others = [sleep(1), sleep(2)];
        mark.publish(1);
        mark.publish(2);
        mark.flush_wakeups();
        for other in others {
            other.join().expect("it ends");
        }
    });
}

#[test]
fn threads_that_take_turns_never_wait_for_each_other_for_ever() {
    explore(4, || {
        let marks = Arc::new([ProgressCounter::default(), ProgressCounter::default()]);
        let other_marks = marks.clone();
        let other = thread::spawn(move || {
            wait(&other_marks[1], &other_marks[0], 1);
            other_marks[1].publish(1);
            other_marks[1].flush_wakeups();
        });
        marks[0].publish(1);
        wait(&marks[0], &marks[1], 1);
        other.join().expect("it ends");
    });
}

/// Whether there is an interleaving in which a thread sleeps forever.
fn misses_wakeup(settles: bool) -> bool {
    let missed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let found = missed.clone();
    explore(4, move || {
        let mark = Arc::new(ProgressCounter::default());
        let other_mark = mark.clone();
        let other = thread::spawn(move || {
            let would_sleep = std::cell::Cell::new(false);
            other_mark.sleep(1, Duration::MAX, || !would_sleep.replace(true));
            would_sleep.get()
        });
        mark.publish(1);
        if settles {
            mark.flush_wakeups();
        }
        if other.join().expect("it ends") && mark.wakeup_count() == 0 {
            found.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    missed.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn only_settling_makes_sure_that_nobody_is_missed() {
    assert!(misses_wakeup(false), "then it need not be done");
    assert!(!misses_wakeup(true));
}
