//! How far each thread is, and waiting for it.
//!
//! A thread that performs a call tells so by one store. Who needs a call of another thread looks a few times, and then
//! sleeps until that thread goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lavascope_event::Touch;
use rustc_hash::FxHashMap;
use rustix::thread::futex;

use crate::error::ReplayError;

/// How often one looks before one sleeps: about two microseconds.
const LOOKS: u32 = 400;
/// How long one sleeps before one asks whether anybody can go on at all.
const NAP: Duration = Duration::from_millis(200);

/// The threads of a trace.
pub(crate) struct Positions {
    all: Vec<Position>,
    /// By number of the stream: its place above.
    places: FxHashMap<u32, usize>,
    is_stopped: AtomicBool,
    /// Set by somebody who does not want any more.
    interrupt: Arc<AtomicBool>,
    /// Whether somebody looks at a thread, so that nobody should be impatient.
    pub(crate) is_paused: AtomicBool,
}

struct Position {
    stream: u32,
    /// The last call that is complete; all of them when the thread is at its end.
    done: AtomicU64,
    /// Changes whenever somebody sleeps and `done` has changed.
    bell: AtomicU32,
    sleepers: AtomicU32,
    /// What the thread waits for, so that a circle can be told: the place of the other, plus one, and the call.
    waits_for: AtomicU32,
    waits_until: AtomicU64,
    /// What the thread is at.
    call: AtomicU64,
}

impl Positions {
    pub(crate) fn new(streams: &[u32], interrupt: Arc<AtomicBool>) -> Positions {
        let position = |stream: &u32| Position {
            stream: *stream,
            done: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            waits_for: AtomicU32::new(0),
            waits_until: AtomicU64::new(0),
            call: AtomicU64::new(0),
        };
        Positions {
            all: streams.iter().map(position).collect(),
            places: streams.iter().enumerate().map(|it| (*it.1, it.0)).collect(),
            is_stopped: AtomicBool::new(false),
            interrupt,
            is_paused: AtomicBool::new(false),
        }
    }

    /// Everything before and including a call is complete.
    pub(crate) fn publish(&self, place: usize, call: u64) {
        let own = &self.all[place];
        // One total order with the sleepers' count: either we see the sleeper, or it sees this.
        own.done.store(call, Ordering::SeqCst);
        if own.sleepers.load(Ordering::SeqCst) > 0 {
            ring(own);
        }
    }

    /// The thread will do no more.
    pub(crate) fn end(&self, place: usize) {
        self.publish(place, u64::MAX);
    }

    /// All threads stop where they are.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.all.iter().for_each(ring);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.interrupt.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self, place: usize) -> u64 {
        self.all[place].done.load(Ordering::Acquire)
    }

    /// Whether a call of another thread is complete. What is not in the file is not waited for.
    pub(crate) fn is_done(&self, touch: Touch) -> bool {
        self.places.get(&touch.thread).is_none_or(|it| self.done(*it) >= touch.call)
    }

    /// Returns when a call of another thread is complete.
    pub(crate) fn wait(&self, place: usize, call: u64, touch: Touch) -> Result<(), ReplayError> {
        let Some(&other) = self.places.get(&touch.thread) else { return Ok(()) };
        for _ in 0..LOOKS {
            if self.done(other) >= touch.call {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.sleep(place, call, other, touch.call)
    }

    fn sleep(&self, place: usize, call: u64, other: usize, until: u64) -> Result<(), ReplayError> {
        let (own, it) = (&self.all[place], &self.all[other]);
        own.call.store(call, Ordering::Relaxed);
        own.waits_until.store(until, Ordering::Relaxed);
        own.waits_for.store(other as u32 + 1, Ordering::Release);
        it.sleepers.fetch_add(1, Ordering::SeqCst);
        let result = loop {
            let bell = it.bell.load(Ordering::Acquire);
            if it.done.load(Ordering::SeqCst) >= until {
                break Ok(());
            }
            if self.is_stopped() {
                break Err(ReplayError::Stopped);
            }
            let nap = futex::Timespec { tv_sec: 0, tv_nsec: NAP.as_nanos() as i64 };
            let slept = futex::wait(&it.bell, futex::Flags::PRIVATE, bell, Some(&nap));
            if slept == Err(rustix::io::Errno::TIMEDOUT)
                && let Some(circle) = self.circle(place)
            {
                break Err(ReplayError::Circle(circle));
            }
        };
        it.sleepers.fetch_sub(1, Ordering::SeqCst);
        own.waits_for.store(0, Ordering::Release);
        result
    }

    /// Who waits for whom, if that leads back to the thread at `place`.
    fn circle(&self, place: usize) -> Option<String> {
        let mut texts = Vec::new();
        let mut at = place;
        for _ in 0..self.all.len() {
            let own = &self.all[at];
            let other = (own.waits_for.load(Ordering::Acquire) as usize).checked_sub(1)?;
            let until = own.waits_until.load(Ordering::Relaxed);
            if self.done(other) >= until {
                return None;
            }
            let (call, stream) = (own.call.load(Ordering::Relaxed), self.all[other].stream);
            texts.push(format!("call {call} of thread {} waits for call {until} of thread {stream}", own.stream));
            at = other;
            if at == place {
                return Some(texts.join(", "));
            }
        }
        None
    }

    /// Calls that are complete, of threads that are not at their end.
    pub(crate) fn calls(&self) -> u64 {
        let all = self.all.iter().map(|it| it.done.load(Ordering::Relaxed));
        all.filter(|it| *it != u64::MAX).sum()
    }

    /// How far all threads are, as one number that changes whenever anybody gets on.
    fn sum(&self) -> u64 {
        self.all.iter().fold(0, |sum, it| sum.wrapping_add(it.done.load(Ordering::Relaxed)))
    }

    /// Tells when nobody has got on for some time.
    pub(crate) fn watch(&self, patience: Duration) -> Watch<'_> {
        Watch { positions: self, patience, seen: self.sum(), since: Instant::now() }
    }
}

fn ring(it: &Position) {
    it.bell.fetch_add(1, Ordering::SeqCst);
    let _ = futex::wake(&it.bell, futex::Flags::PRIVATE, u32::MAX >> 1);
}

/// Held by somebody who waits for the device.
pub(crate) struct Watch<'a> {
    positions: &'a Positions,
    patience: Duration,
    seen: u64,
    since: Instant,
}

impl Watch<'_> {
    /// Looks again: an error if the replay was stopped, or nobody gets on.
    pub(crate) fn look(&mut self, what: &str) -> Result<(), ReplayError> {
        if self.positions.is_stopped() {
            return Err(ReplayError::Stopped);
        }
        let seen = self.positions.sum();
        if seen != self.seen || self.positions.is_paused.load(Ordering::Relaxed) {
            (self.seen, self.since) = (seen, Instant::now());
        }
        if self.since.elapsed() < self.patience {
            return Ok(());
        }
        Err(ReplayError::Stuck { seconds: self.patience.as_secs(), what: what.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn touch(thread: u32, call: u64) -> Touch {
        Touch { thread, call }
    }

    #[test]
    fn threads_take_turns() {
        let positions = Positions::new(&[4, 9], Arc::default());
        let seen = AtomicU64::new(0);
        thread::scope(|scope| {
            for (place, other) in [(0, 9), (1, 4)] {
                let (positions, seen) = (&positions, &seen);
                scope.spawn(move || {
                    for turn in 1..=2000 {
                        // The first goes first in each turn.
                        let needed = turn - u64::from(place == 0);
                        positions.wait(place, turn, touch(other, needed)).expect("no circle");
                        assert_eq!(seen.fetch_add(1, Ordering::Relaxed), (turn - 1) * 2 + place as u64);
                        positions.publish(place, turn);
                    }
                    positions.end(place);
                });
            }
        });
        assert_eq!(seen.into_inner(), 4000);
    }

    #[test]
    fn what_is_not_in_the_file_is_not_waited_for() {
        let positions = Positions::new(&[1], Arc::default());
        assert!(positions.wait(0, 1, touch(77, 5)).is_ok());
        positions.end(0);
        assert!(positions.wait(0, 1, touch(1, 1_000_000)).is_ok());
    }

    #[test]
    fn a_circle_is_told_with_its_calls() {
        let positions = Positions::new(&[1, 2], Arc::default());
        let errors: Vec<String> = thread::scope(|scope| {
            let one = |place: usize, other| {
                let positions = &positions;
                scope.spawn(move || {
                    let error = positions.wait(place, 10 + place as u64, touch(other, 50)).expect_err("a circle");
                    positions.stop();
                    error.to_string()
                })
            };
            [one(0, 2), one(1, 1)].map(|it| it.join().expect("no panic")).to_vec()
        });
        let told = "call 10 of thread 1 waits for call 50 of thread 2";
        assert!(errors.iter().any(|it| it.contains(told)), "{errors:?}");
    }

    #[test]
    fn somebody_who_waits_for_ever_is_told() {
        let positions = Positions::new(&[1], Arc::default());
        let mut watch = positions.watch(Duration::from_millis(20));
        assert!(watch.look("a fence").is_ok());
        thread::sleep(Duration::from_millis(15));
        positions.publish(0, 1);
        assert!(watch.look("a fence").is_ok());
        thread::sleep(Duration::from_millis(30));
        assert!(watch.look("a fence").is_err_and(|it| it.to_string().contains("a fence")));
    }
}
