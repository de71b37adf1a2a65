//! The progress of each thread of the replay, and waiting for it.
//!
//! A thread that has performed a call publishes its number by one store. A thread that needs a call of another thread
//! spins for two microseconds, and then sleeps on a futex until the call is complete. A thread that sleeps for long looks
//! for a cycle of waits. A cycle is an error that names its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lavascope_record::OrderEdge;
use rustc_hash::FxHashMap;

use crate::error::{ReplayError, ThreadWait, ThreadWaits};
use crate::options::ThreadSharing;
use crate::schedule::patience::StallClock;
use crate::schedule::phase_switch::PhaseSwitch;
use crate::schedule::progress_counter::ProgressCounter;

/// How long a thread polls before it sleeps, in polls between two looks at the clock: how long a poll takes differs ten
/// times between processors.
const SPIN_TIME: Duration = Duration::from_micros(2);
const POLLS_PER_LOOK: u32 = 16;
/// How long a thread sleeps before it looks for a cycle.
const CYCLE_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Stream numbers below this are looked up in a list, and others in a map.
const DENSE_MAX: u32 = 4096;
/// The index of a thread that is not in the trace.
const NO_INDEX: u32 = u32::MAX;

/// The threads of a trace.
pub(crate) struct ReplayProgress {
    all: Vec<StreamProgress>,
    /// The index of a thread in `all`, by stream number, for small numbers.
    dense: Vec<u32>,
    /// The same for other numbers.
    sparse: FxHashMap<u32, usize>,
    is_stopped: AtomicBool,
    /// Set by the user to end the replay.
    interrupt: Arc<AtomicBool>,
    /// Whether the replay is paused, so that waits may take long.
    pub(crate) is_paused: AtomicBool,
    /// Whether one thread plays all streams.
    pub(crate) phases: PhaseSwitch,
}

/// The progress of one thread. Padded against false sharing, because each thread writes its own at every call.
#[repr(align(128))]
struct StreamProgress {
    /// The last complete call; the largest number when the thread has ended.
    completed: ProgressCounter,
    stream: u32,
    /// While the thread sleeps: the index of the other thread plus one, the call it waits for, and its own next call.
    waits_for: AtomicU32,
    waits_until: AtomicU64,
    call: AtomicU64,
}

impl ReplayProgress {
    pub(crate) fn new(streams: &[u32], interrupt: Arc<AtomicBool>, sharing: ThreadSharing) -> ReplayProgress {
        let progress_of = |stream: &u32| StreamProgress {
            completed: ProgressCounter::default(),
            stream: *stream,
            waits_for: AtomicU32::new(0),
            waits_until: AtomicU64::new(0),
            call: AtomicU64::new(0),
        };
        let mut dense = Vec::new();
        let mut sparse = FxHashMap::default();
        for (index, stream) in streams.iter().enumerate() {
            if *stream >= DENSE_MAX {
                sparse.insert(*stream, index);
                continue;
            }
            dense.resize(dense.len().max(*stream as usize + 1), NO_INDEX);
            dense[*stream as usize] = index as u32;
        }
        ReplayProgress {
            all: streams.iter().map(progress_of).collect(),
            dense,
            sparse,
            is_stopped: AtomicBool::new(false),
            interrupt,
            is_paused: AtomicBool::new(false),
            phases: PhaseSwitch::new(sharing),
        }
    }

    /// The index of a thread; none if it is not in the file.
    #[inline]
    pub(crate) fn index_of(&self, thread: u32) -> Option<usize> {
        match self.dense.get(thread as usize) {
            Some(item) => (*item != NO_INDEX).then_some(*item as usize),
            None => self.sparse.get(&thread).copied(),
        }
    }

    /// The progress of a thread, for that thread itself.
    pub(crate) fn counter(&self, index: usize) -> &ProgressCounter {
        &self.all[index].completed
    }

    /// Publishes that all calls up to this one are complete.
    #[inline]
    pub(crate) fn publish(&self, index: usize, call: u64) {
        self.all[index].completed.publish(call);
    }

    /// Wakes threads that sleep for published calls. Must be called before the thread may block, as most calls do.
    #[inline]
    pub(crate) fn flush_wakeups(&self, index: usize) {
        self.all[index].completed.flush_wakeups();
    }

    /// Publishes that the thread has ended.
    pub(crate) fn end(&self, index: usize) {
        self.publish(index, u64::MAX);
        self.flush_wakeups(index);
    }

    /// Stops all threads.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Wakes all threads that wait for others.
    fn wake_all(&self) {
        self.all.iter().for_each(|it| it.completed.wake_all());
    }

    /// Whether a serial phase begins before the next record, as in tests.
    #[inline]
    pub(crate) fn begins_phase_at_random(&self) -> bool {
        let begins = self.phases.begins_at_random();
        if begins {
            self.wake_all();
        }
        begins
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.interrupt.load(Ordering::Relaxed)
    }

    pub(crate) fn completed(&self, index: usize) -> u64 {
        self.all[index].completed.get()
    }

    /// Whether a call of another thread is complete. A thread that is not in the file is not waited for.
    pub(crate) fn is_complete(&self, edge: OrderEdge) -> bool {
        self.index_of(edge.thread).is_none_or(|it| self.completed(it) >= edge.call)
    }

    /// Waits until a call of another thread is complete. Returns the last complete one; none if a serial phase begins.
    pub(crate) fn wait(
        &self,
        index: usize,
        call: u64,
        (other, until): (usize, u64),
    ) -> Result<Option<u64>, ReplayError> {
        let start = Instant::now();
        loop {
            for _ in 0..POLLS_PER_LOOK {
                let done = self.completed(other);
                if done >= until {
                    return Ok(Some(done));
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= SPIN_TIME {
                return self.sleep(index, call, other, until);
            }
        }
    }

    fn sleep(&self, index: usize, call: u64, other: usize, until: u64) -> Result<Option<u64>, ReplayError> {
        if self.phases.note_sleep(|| self.calls()) {
            self.wake_all();
        }
        let own = &self.all[index];
        own.call.store(call, Ordering::Relaxed);
        own.waits_until.store(until, Ordering::Relaxed);
        own.waits_for.store(other as u32 + 1, Ordering::Release);
        // Threads that wait for this one must learn of its progress.
        own.completed.flush_wakeups();
        let result = loop {
            let slept = self.all[other]
                .completed
                .sleep(until, CYCLE_CHECK_INTERVAL, || self.is_stopped() || self.phases.is_serial());
            let done = self.completed(other);
            if done >= until {
                break Ok(Some(done));
            }
            if self.is_stopped() {
                break Err(ReplayError::Stopped);
            }
            if self.phases.is_serial() {
                break Ok(None);
            }
            if slept.is_timeout
                && let Some(cycle) = self.find_cycle(index)
            {
                break Err(ReplayError::OrderCycle(cycle));
            }
        };
        own.waits_for.store(0, Ordering::Release);
        result
    }

    /// Describes the waits from the thread at `index`, if they form a cycle.
    fn find_cycle(&self, index: usize) -> Option<ThreadWaits> {
        let mut waits = Vec::new();
        let mut at = index;
        for _ in 0..self.all.len() {
            let own = &self.all[at];
            let other = (own.waits_for.load(Ordering::Acquire) as usize).checked_sub(1)?;
            let until = own.waits_until.load(Ordering::Relaxed);
            if self.completed(other) >= until {
                return None;
            }
            waits.push(self.thread_wait(own, other, until));
            at = other;
            if at == index {
                return Some(ThreadWaits(waits));
            }
        }
        None
    }

    /// Which thread waits for which.
    pub(crate) fn thread_waits(&self) -> Vec<ThreadWait> {
        let one = |own: &StreamProgress| {
            let other = (own.waits_for.load(Ordering::Acquire) as usize).checked_sub(1)?;
            Some(self.thread_wait(own, other, own.waits_until.load(Ordering::Relaxed)))
        };
        self.all.iter().filter_map(one).collect()
    }

    fn thread_wait(&self, own: &StreamProgress, other: usize, until: u64) -> ThreadWait {
        let call = own.call.load(Ordering::Relaxed);
        ThreadWait::Call { stream: own.stream, call, other: self.all[other].stream, until }
    }

    /// Number of complete calls of threads that have not ended.
    pub(crate) fn calls(&self) -> u64 {
        let all = self.all.iter().map(|it| it.completed.get());
        all.filter(|it| *it != u64::MAX).sum()
    }

    /// The progress of all threads as one number, which changes whenever any thread makes progress.
    pub(crate) fn total_progress(&self) -> u64 {
        self.all.iter().fold(0, |sum, it| sum.wrapping_add(it.completed.get()))
    }

    /// Detects that no thread makes progress for some time.
    pub(crate) fn watch(&self) -> StallWatch<'_> {
        StallWatch { progress: self, seen: self.total_progress(), clock: StallClock::start() }
    }
}

/// Used by a thread that waits for the device.
pub(crate) struct StallWatch<'a> {
    progress: &'a ReplayProgress,
    seen: u64,
    clock: StallClock,
}

impl StallWatch<'_> {
    /// Returns an error if the replay was stopped, or no thread makes progress.
    pub(crate) fn check(&mut self, patience: Duration, what: impl FnOnce() -> ThreadWaits) -> Result<(), ReplayError> {
        if self.progress.is_stopped() {
            return Err(ReplayError::Stopped);
        }
        let seen = self.progress.total_progress();
        if seen != self.seen || self.progress.is_paused.load(Ordering::Relaxed) {
            (self.seen, self.clock) = (seen, StallClock::start());
        }
        if !self.clock.is_over(patience) {
            return Ok(());
        }
        Err(ReplayError::Stuck { seconds: self.clock.since().elapsed().as_secs(), what: what() })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn edge(thread: u32, call: u64) -> OrderEdge {
        OrderEdge { thread, call }
    }

    #[test]
    fn threads_take_turns() {
        let progress = ReplayProgress::new(&[4, 9], Arc::default(), ThreadSharing::OnePerStream);
        let seen = AtomicU64::new(0);
        thread::scope(|scope| {
            let start = |(index, other): (usize, u32)| {
                let (progress, seen) = (&progress, &seen);
                scope.spawn(move || {
                    for turn in 1..=2000 {
                        // The first thread is first in each turn.
                        let needed = turn - u64::from(index == 0);
                        let other = progress.index_of(other).expect("it is there");
                        progress.wait(index, turn, (other, needed)).expect("no circle");
                        assert_eq!(seen.fetch_add(1, Ordering::Relaxed), (turn - 1) * 2 + index as u64);
                        progress.publish(index, turn);
                    }
                    progress.end(index);
                })
            };
            // Joined explicitly, because ThreadSanitizer does not see what the end of a scope waits for.
            [(0, 9), (1, 4)].map(start).into_iter().for_each(|it| it.join().expect("nobody panics"));
        });
        assert_eq!(seen.into_inner(), 4000);
    }

    #[test]
    fn what_is_not_in_the_file_is_not_waited_for() {
        let progress = ReplayProgress::new(&[1, DENSE_MAX + 5], Arc::default(), ThreadSharing::OnePerStream);
        assert!(progress.is_complete(edge(77, 5)) && progress.is_complete(edge(0, 5)));
        assert!(!progress.is_complete(edge(1, 5)) && !progress.is_complete(edge(DENSE_MAX + 5, 5)));
        progress.end(1);
        assert!(progress.wait(0, 1, (1, 1_000_000)).is_ok());
        assert_eq!(progress.index_of(DENSE_MAX + 5), Some(1));
    }

    #[test]
    fn a_circle_is_reported_with_its_calls() {
        let progress = ReplayProgress::new(&[1, 2], Arc::default(), ThreadSharing::OnePerStream);
        let errors: Vec<String> = thread::scope(|scope| {
            let one = |index: usize, other| {
                let progress = &progress;
                scope.spawn(move || {
                    let error = progress.wait(index, 10 + index as u64, (other, 50)).expect_err("a circle");
                    progress.stop();
                    error.to_string()
                })
            };
            [one(0, 1), one(1, 0)].map(|it| it.join().expect("no panic")).to_vec()
        });
        let expected = "call 10 of thread 1 waits for call 50 of thread 2";
        assert!(errors.iter().any(|it| it.contains(expected)), "{errors:?}");
    }

    #[test]
    fn somebody_who_waits_for_ever_is_reported() {
        let progress = ReplayProgress::new(&[1], Arc::default(), ThreadSharing::OnePerStream);
        let [long, short] = [Duration::from_secs(3600), Duration::from_millis(1)];
        let wait = ThreadWait::Device { stream: 1, call: 2, command: "vkWaitForFences", what: "a fence" };
        let waits = || ThreadWaits(vec![wait.clone()]);
        let mut watch = progress.watch();
        assert!(watch.check(long, waits).is_ok());
        let before = watch.clock.since();
        thread::sleep(short);
        assert!(watch.check(long, waits).is_ok() && watch.clock.since() == before);
        progress.publish(0, 1);
        assert!(watch.check(long, waits).is_ok() && watch.clock.since() > before);
        // Long enough even if other tests compute.
        thread::sleep(40 * short);
        let text = watch.check(short, waits).expect_err("it is over").to_string();
        assert!(text.contains("call 2 of thread 1, vkWaitForFences, waits for a fence"), "{text}");
    }
}
