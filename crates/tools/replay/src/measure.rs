//! The cost of a hand-over between threads, for the benchmark: by the progress counters of a replay, and by a bare futex.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lavascope_platform::threads::pin_to_processor;
use lavascope_platform::wait;

use crate::options::ThreadSharing;
use crate::schedule::progress::ReplayProgress;

/// Long enough for the waiting thread to fall asleep.
const PAUSE: Duration = Duration::from_micros(150);

/// Keeps the calling thread on a processor of its own: where the scheduler puts two threads decides more than anything
/// that is measured here.
fn pin(index: usize) {
    pin_to_processor(index);
}

/// Nanoseconds of a hand-over between two threads that both run: the median of `times` hand-overs.
pub fn handover_spinning(times: u64) -> f64 {
    let progress = ReplayProgress::new(&[1, 2], Arc::default(), ThreadSharing::OnePerStream);
    let turn = |index: usize, turn: u64, needed: u64| {
        // No thread stops, and there is no cycle.
        let _ = progress.wait(index, turn, (1 - index, needed));
        progress.publish(index, turn);
        progress.flush_wakeups(index);
    };
    thread::scope(|scope| {
        pin(0);
        let other = scope.spawn(|| {
            pin(1);
            (1..=times).for_each(|it| turn(1, it, it));
        });
        let mut took = Vec::new();
        for value in 1..=times {
            let began = Instant::now();
            turn(0, value, value - 1);
            let _ = progress.wait(0, value, (1, value));
            // There and back.
            took.push(began.elapsed().as_nanos() as f64 / 2.0);
        }
        // Joined by hand: ThreadSanitizer does not see what the end of a scope waits for.
        other.join().expect("nobody panics");
        median(took)
    })
}

/// Nanoseconds from when a call is complete to when a thread that slept for it continues: the median of `times` calls.
pub fn handover_sleeping(times: u64) -> f64 {
    let progress = ReplayProgress::new(&[1, 2], Arc::default(), ThreadSharing::OnePerStream);
    let wait = |turn: u64| {
        let _ = progress.wait(1, turn, (0, turn));
    };
    let wake = |turn: u64| {
        progress.publish(0, turn);
        progress.flush_wakeups(0);
    };
    wakes(times, wait, wake)
}

/// The same with a futex and nothing else.
pub fn bare_futex(times: u64) -> f64 {
    let word = AtomicU32::new(0);
    let wait = |turn: u64| {
        while word.load(Ordering::Acquire) < turn as u32 {
            wait::wait(&word, turn as u32 - 1, None);
        }
    };
    let wake = |turn: u64| {
        word.store(turn as u32, Ordering::Release);
        wait::wake_one(&word);
    };
    wakes(times, wait, wake)
}

fn wakes(times: u64, wait: impl Fn(u64) + Sync, wake: impl Fn(u64)) -> f64 {
    let epoch = Instant::now();
    let woken: Vec<AtomicU64> = (0..times).map(|_| AtomicU64::new(0)).collect();
    let began: Vec<u64> = thread::scope(|scope| {
        pin(0);
        let other = scope.spawn(|| {
            pin(1);
            for (turn, atomic_u) in woken.iter().enumerate() {
                wait(turn as u64 + 1);
                atomic_u.store(epoch.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        });
        let one = |turn| {
            thread::sleep(PAUSE);
            let began = epoch.elapsed().as_nanos() as u64;
            wake(turn);
            began
        };
        let began = (1..=times).map(one).collect();
        other.join().expect("nobody panics");
        began
    });
    median(woken.into_iter().zip(began).map(|it| it.0.into_inner().saturating_sub(it.1) as f64).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_comes_to_its_end() {
        assert!(handover_spinning(50) > 0.0 && handover_sleeping(5) > 0.0 && bare_futex(5) > 0.0);
    }
}
