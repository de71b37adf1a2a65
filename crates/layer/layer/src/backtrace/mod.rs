//! The application's call stacks, for the reports of its findings.
//!
//! Stacks do not go through the records. A thread captures its stack before it publishes the record of its call, and
//! puts the number of the stack into a queue of its own ([`StackCapture::capture`]). Whoever validates the record takes
//! it from there ([`StackReader::take`]). The validator carries the number to the finding and does not interpret it.
//! Only calls that can be a part of a finding have a stack ([`CommandOrdering::has_call_stack`]).
//!
//! Walking a stack costs microseconds, so a thread remembers the stacks that it has met (`known_stacks`). Equal stacks
//! have one number and are kept once, by module and offset (`stack_table`).
//!
//! A thread that is not on the stack that the system gave it, such as a fiber, gets the innermost frame alone: how far
//! its stack goes is unknown, and stack walks have crashed at the ends of fibers.

mod known_stacks;
mod stack_table;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_abi::Command;
use lavascope_platform::stack::{self, ReturnAddress, ThreadStack};
use lavascope_settings::BacktraceMode;
use lavascope_stream::{Consumer, Producer, StreamControl, chunk_queue};

use self::known_stacks::KnownStacks;
use crate::intercept::order::CommandOrdering;

pub(crate) use stack_table::{CapturedFrame, frames};

/// The [`BacktraceMode`] as a number. Relaxed: stacks that are missing at first are only missing.
static MODE: AtomicU8 = AtomicU8::new(0);
const OFF: u8 = 0;
const CALLER: u8 = 1;
const FULL: u8 = 2;

/// Entries are the number of the call, and the number of its stack in the bits above.
const STACK_SHIFT: u32 = 40;
const CALL_MASK: u64 = (1 << STACK_SHIFT) - 1;

/// By number of the thread.
static QUEUES: RwLock<Vec<Option<Arc<StackQueue>>>> = RwLock::new(Vec::new());
/// Entries are as many as records that wait for the reader, which have a limit of their own.
static CONTROL: LazyLock<Arc<StreamControl>> = LazyLock::new(|| StreamControl::new(usize::MAX));

/// The reading ends of a thread's queue. A thread that takes over the number of one that ended adds its own.
#[derive(Default)]
struct StackQueue(Mutex<VecDeque<Consumer>>);

/// From now on stacks can be captured: as much of them as the instance that wants most.
pub(crate) fn enable(mode: BacktraceMode) {
    let mode = match mode {
        BacktraceMode::Off => OFF,
        BacktraceMode::Caller => CALLER,
        BacktraceMode::Full => FULL,
    };
    if MODE.fetch_max(mode, Ordering::Relaxed) < mode {
        stack_table::forget_known_stacks();
    }
}

/// What a thread knows of its stacks; nothing, until it captures the first.
#[derive(Default)]
pub(crate) struct StackCapture(Option<Box<ThreadStacks>>);

struct ThreadStacks {
    thread: u32,
    bounds: Option<ThreadStack>,
    queue: Producer,
    known: KnownStacks,
    /// The frames of the last walk.
    walked: Vec<ReturnAddress>,
}

impl StackCapture {
    /// Captures the stack of a call that is about to be recorded.
    #[inline(never)]
    pub(crate) fn capture(&mut self, thread: u32, call: u64, command: Command) {
        let mark = 0usize;
        // The frames of the callers lie above this one.
        let depth = (&raw const mark).addr();
        let own = match &mut self.0 {
            Some(own) if own.thread == thread => own,
            own => own.insert(ThreadStacks::boxed(thread)),
        };
        let stack = own.stack_number(depth, command);
        own.queue.append(&[call & CALL_MASK | u64::from(stack) << STACK_SHIFT]);
    }
}

impl ThreadStacks {
    #[cold]
    fn boxed(thread: u32) -> Box<ThreadStacks> {
        let (producer, consumer) = chunk_queue(thread, &CONTROL);
        let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
        let index = thread as usize;
        if queues.len() <= index {
            queues.resize_with(index + 1, || None);
        }
        queues[index].get_or_insert_default().lock().push_back(consumer);
        Box::new(ThreadStacks {
            thread,
            bounds: ThreadStack::of_this_thread(),
            queue: producer,
            known: KnownStacks::default(),
            walked: Vec::new(),
        })
    }

    #[inline(always)]
    fn stack_number(&mut self, depth: usize, command: Command) -> u32 {
        // SAFETY: the depth is of a frame of this thread that calls this.
        match unsafe { self.known.find(depth, command) } {
            Some(stack) => stack,
            None => self.walk(depth, command),
        }
    }

    #[cold]
    #[inline(never)]
    fn walk(&mut self, depth: usize, command: Command) -> u32 {
        let bounds = self.bounds.filter(|it| it.contains_word(depth));
        let wants_all = MODE.load(Ordering::Relaxed) == FULL && bounds.is_some();
        let walked = &mut self.walked;
        walked.clear();
        let mut is_own = true;
        stack::walk_stack(depth, bounds, &mut |frame| {
            is_own &= stack_table::is_own(frame.address);
            if !is_own {
                walked.push(frame);
            }
            let is_enough = !is_own && !wants_all && !stack_table::is_of_loader(frame.address);
            if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let number = stack_table::number_of_stack(walked);
        if stack::HAS_PLACES {
            self.known.insert(depth, command, walked, number);
        }
        number
    }
}

impl StackQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Consumer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stack of a call; the entries of calls before it are dropped.
    fn take(&self, call: u64) -> u32 {
        let mut ends = self.lock();
        loop {
            let has_more = ends.len() > 1;
            let Some(first) = ends.front_mut() else { return 0 };
            match first.peek().first().copied() {
                Some(entry) if entry & CALL_MASK > call => return 0,
                Some(entry) => {
                    first.take(1);
                    if entry & CALL_MASK == call {
                        return (entry >> STACK_SHIFT) as u32;
                    }
                }
                // The thread that wrote into it has ended, since there is another one.
                None if has_more => drop(ends.pop_front()),
                None => return 0,
            }
        }
    }
}

/// Takes the stacks of calls, in the order of each thread.
#[derive(Default)]
pub(crate) struct StackReader {
    /// The thread whose record came last, and its queue.
    last: Option<(u32, Arc<StackQueue>)>,
}

impl StackReader {
    /// The stack of a call whose record is read now; zero if there is none. Those of calls before it are gone then.
    #[inline]
    pub(crate) fn take(&mut self, thread: u32, command: Command, call: u64) -> u32 {
        let has_none = MODE.load(Ordering::Relaxed) == OFF || !CommandOrdering::has_call_stack(command);
        if has_none { 0 } else { self.take_queued(thread, call) }
    }

    fn take_queued(&mut self, thread: u32, call: u64) -> u32 {
        if self.last.as_ref().is_none_or(|it| it.0 != thread) {
            let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
            let Some(queue) = queues.get(thread as usize).cloned().flatten() else { return 0 };
            self.last = Some((thread, queue));
        }
        self.last.as_ref().map_or(0, |it| it.1.take(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn one(stacks: &mut StackCapture, call: u64) {
        stacks.capture(77, call, Command::CmdDraw);
        std::hint::black_box(());
    }

    #[inline(never)]
    fn other(stacks: &mut StackCapture, call: u64) {
        one(stacks, call);
        std::hint::black_box(());
    }

    /// Calls at the same depth from different lines, as a function does that records several commands.
    #[inline(never)]
    fn several(stacks: &mut StackCapture, call: u64) {
        match call % 3 {
            0 => one(stacks, call),
            1 => one(stacks, call),
            _ => other(stacks, call),
        }
        std::hint::black_box(());
    }

    #[test]
    fn equal_stacks_have_one_number_and_others_another() {
        enable(BacktraceMode::Full);
        let mut stacks = StackCapture::default();
        for call in 0..100 {
            several(&mut stacks, call);
        }
        let mut reader = StackReader::default();
        let mut take = |call| reader.take(77, Command::CmdDraw, call);
        let mut numbers: Vec<(u64, u32)> = (10..100).map(|call| (call % 3, take(call))).collect();
        assert_eq!(take(50), 0, "it is gone");
        assert_eq!(reader.take(77, Command::CmdSetViewport, 100), 0, "it is no part of a finding");
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.iter().all(|it| it.1 != 0), "{numbers:?}");
        assert_eq!(numbers.len(), 3, "{numbers:?}");
        assert_ne!(numbers[0].1, numbers[2].1);
        let names: Vec<String> = frames(numbers[0].1).iter().filter_map(|it| it.symbol.clone()).collect();
        assert!(frames(numbers[0].1).len() > 2, "{names:?}");
        assert_eq!(frames(0), []);
    }

    #[test]
    fn a_later_thread_of_the_same_number_has_its_own_stacks() {
        enable(BacktraceMode::Full);
        let mut reader = StackReader::default();
        for first in [1, 11, 21] {
            std::thread::spawn(move || {
                let mut stacks = StackCapture::default();
                (first..first + 10).for_each(|call| stacks.capture(78, call, Command::CmdDraw));
            })
            .join()
            .expect("it does not crash");
        }
        let all: Vec<u32> = (5..31).map(|call| reader.take(78, Command::CmdDraw, call)).collect();
        assert!(all.iter().all(|it| *it != 0), "{all:?}");
    }
}
