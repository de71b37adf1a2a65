//! Queues: batches are executed when they are submitted, or when what they wait for is signaled.
//!
//! One lock protects pending work. The payloads of fences, semaphores and events are atomics, changed only under the
//! lock, so that a status query needs no lock. There is no thread: the thread that signals executes the work.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lavascope_abi::Result;

use crate::execution::commands::RecordedOp;

/// Nanoseconds from one timestamp to the next.
const TICK: u64 = 1000;

/// A fence. Release under the lock, Acquire where its status is asked for.
#[derive(Default)]
pub(crate) struct FencePayload {
    pub(crate) is_signaled: AtomicBool,
}

/// An event, with the same orderings as a fence.
#[derive(Default)]
pub(crate) struct EventPayload {
    pub(crate) is_set: AtomicBool,
}

/// A semaphore, with the same orderings as a fence. A binary one is 0 or 1.
pub(crate) struct SemaphorePayload {
    pub(crate) is_timeline: bool,
    pub(crate) value: AtomicU64,
}

impl SemaphorePayload {
    fn is_reached(&self, value: u64) -> bool {
        let now = self.value.load(Ordering::Acquire);
        if self.is_timeline { now >= value } else { now != 0 }
    }

    fn signal(&self, value: u64) {
        self.value.store(if self.is_timeline { value } else { 1 }, Ordering::Release);
    }
}

/// A semaphore and the value to wait for or to signal.
pub(crate) type SemaphoreValue = (Arc<SemaphorePayload>, u64);

/// A batch: waits, then work, then signals.
#[derive(Default)]
pub(crate) struct QueueBatch {
    pub(crate) waits: Vec<SemaphoreValue>,
    pub(crate) recorded_ops: Vec<Arc<Vec<RecordedOp>>>,
    pub(crate) signals: Vec<SemaphoreValue>,
    pub(crate) fences: Vec<Arc<FencePayload>>,
    pub(crate) progress: BatchProgress,
}

/// How far a batch came.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BatchProgress {
    has_waited: bool,
    /// The next command, where an event stopped the batch: which of `work`, and which in it.
    at: (usize, usize),
}

struct QueueEngine {
    /// Queues with batches that could not be executed yet.
    pending: BTreeMap<u64, VecDeque<QueueBatch>>,
    time: u64,
    waiting_threads: usize,
    submissions: u64,
    /// Nothing is executed any more.
    is_lost: bool,
}

static ENGINE: Mutex<QueueEngine> =
    Mutex::new(QueueEngine { pending: BTreeMap::new(), time: 0, waiting_threads: 0, submissions: 0, is_lost: false });
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, QueueEngine> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a new queue.
pub(crate) fn next_queue() -> u64 {
    /// Relaxed: the numbers must differ and order nothing.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Drops what a queue never came to.
pub(crate) fn remove_queue(queue: u64) {
    let mut engine = lock();
    engine.pending.remove(&queue);
    if engine.pending.is_empty() {
        // An empty map still has memory, which would be lost when the driver is unloaded.
        engine.pending = BTreeMap::new();
    }
}

/// The time on the driver's clock.
pub(crate) fn time() -> u64 {
    lock().time
}

/// Whether the devices of this process are lost.
pub(crate) fn is_lost() -> bool {
    lock().is_lost
}

/// Submits batches; the submission with the number `lose` loses the device, which only later calls report.
pub(crate) fn submit(queue: u64, batches: impl IntoIterator<Item = QueueBatch>, lose: u64) -> Result {
    let mut engine = lock();
    if engine.is_lost {
        return Result::ERROR_DEVICE_LOST;
    }
    engine.submissions += 1;
    if engine.submissions == lose {
        engine.is_lost = true;
        CHANGED.notify_all();
        return Result::SUCCESS;
    }
    for mut batch in batches {
        let is_first = !engine.pending.contains_key(&queue);
        if !(is_first && engine.run(&mut batch)) {
            engine.pending.entry(queue).or_default().push_back(batch);
        }
    }
    engine.run_pending();
    Result::SUCCESS
}

/// Changes a payload from the host, and executes what waited for it.
pub(crate) fn change(change: impl FnOnce()) {
    let mut engine = lock();
    change();
    engine.run_pending();
}

pub(crate) fn signal(semaphore: &SemaphorePayload, value: u64) {
    change(|| semaphore.signal(value));
}

pub(crate) fn wait_idle(queues: &[u64]) -> Result {
    wait(u64::MAX, |engine| !engine.is_lost && queues.iter().all(|it| !engine.pending.contains_key(it)))
}

/// Waits until `is_done`, or until no queue has work left that could make it so.
pub(crate) fn wait_for_work(mut is_done: impl FnMut() -> bool) {
    wait(u64::MAX, |engine| is_done() || engine.pending.is_empty());
}

/// Waits until `is_done`, with a time limit in nanoseconds.
pub(crate) fn wait_until(timeout: u64, mut is_done: impl FnMut() -> bool) -> Result {
    if is_done() { Result::SUCCESS } else { wait(timeout, |_| is_done()) }
}

pub(crate) fn is_reached(point: &SemaphoreValue) -> bool {
    point.0.is_reached(point.1)
}

fn wait(timeout: u64, mut is_done: impl FnMut(&QueueEngine) -> bool) -> Result {
    // Far away enough to be never, near enough to be added.
    let deadline = Instant::now().checked_add(Duration::from_nanos(timeout.min(1 << 60)));
    let mut engine = lock();
    loop {
        if is_done(&engine) {
            return Result::SUCCESS;
        }
        if engine.is_lost {
            return Result::ERROR_DEVICE_LOST;
        }
        let left = deadline.map_or(Duration::MAX, |it| it.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Result::TIMEOUT;
        }
        engine.waiting_threads += 1;
        engine = CHANGED.wait_timeout(engine, left).unwrap_or_else(PoisonError::into_inner).0;
        engine.waiting_threads -= 1;
    }
}

impl QueueEngine {
    /// Executes pending batches until none can be.
    fn run_pending(&mut self) {
        while !self.pending.is_empty() && self.run_queues_once() {}
        if self.waiting_threads > 0 {
            CHANGED.notify_all();
        }
    }

    /// Tries every queue once; whether any got further.
    fn run_queues_once(&mut self) -> bool {
        let mut got_further = false;
        for (queue, mut batches) in std::mem::take(&mut self.pending) {
            while let Some(first) = batches.front_mut() {
                let before = first.progress;
                if !self.run(first) {
                    got_further |= before != first.progress;
                    break;
                }
                batches.pop_front();
                got_further = true;
            }
            if !batches.is_empty() {
                self.pending.insert(queue, batches);
            }
        }
        got_further
    }

    /// Executes a batch as far as it goes; whether that is to its end.
    fn run(&mut self, batch: &mut QueueBatch) -> bool {
        if !batch.progress.has_waited {
            if !batch.waits.iter().all(is_reached) {
                return false;
            }
            for (semaphore, _) in batch.waits.iter().filter(|it| !it.0.is_timeline) {
                semaphore.value.store(0, Ordering::Release);
            }
            batch.progress.has_waited = true;
        }
        let at = &mut batch.progress.at;
        while let Some(work) = batch.recorded_ops.get(at.0) {
            while let Some(op) = work.get(at.1) {
                if !op.execute(&mut self.time) {
                    return false;
                }
                at.1 += 1;
            }
            *at = (at.0 + 1, 0);
        }
        for (semaphore, value) in &batch.signals {
            semaphore.signal(*value);
        }
        for fence in &batch.fences {
            fence.is_signaled.store(true, Ordering::Release);
        }
        true
    }
}

/// The next time on the driver's clock.
pub(crate) fn tick(time: &mut u64) -> u64 {
    *time += TICK;
    *time
}
