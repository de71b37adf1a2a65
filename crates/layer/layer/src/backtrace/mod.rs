//! The application's call stacks, where somebody wants them with its findings.
//!
//! Stacks do not go through the records. A thread captures its stack before a record of its call is complete, and puts
//! the number of the stack into a queue of its own ([`StackCapture::capture`]); whoever validates the record takes it
//! from there ([`take_stack`]). The validator carries the number to the finding without knowing what it means. Equal
//! stacks have one number and are kept once, by module and offset, so that a module may be unloaded before anybody
//! asks.

mod stack_table;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_platform::stack::{self, ReturnAddress};

pub(crate) use stack_table::{CapturedFrame, frames};

/// Numbers that may wait in one queue; older ones are lost, as if they had not been captured.
const QUEUE_MAX: usize = 1 << 20;
/// Places of the stack in which calls are remembered, for each thread.
const CACHED_STACKS: usize = 64;

/// Whether anybody wants stacks. Relaxed: what is missed at first is only missed.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// By number of the thread.
static QUEUES: RwLock<Vec<Option<Arc<StackQueue>>>> = RwLock::new(Vec::new());

/// Calls, each with its stack.
#[derive(Default)]
struct StackQueue(Mutex<VecDeque<(u64, u32)>>);

/// From now on stacks can be captured.
pub(crate) fn enable() {
    IS_ENABLED.store(true, Ordering::Relaxed);
}

/// What a thread knows of its stacks; nothing, until it captures the first.
#[derive(Default)]
pub(crate) struct StackCapture(Option<Box<ThreadStacks>>);

struct ThreadStacks {
    thread: u32,
    queue: Arc<StackQueue>,
    cache: Vec<Option<CachedStack>>,
    return_addresses: Vec<ReturnAddress>,
}

/// A stack as it was captured at some depth: it is the same again if all its return addresses are still in place.
struct CachedStack {
    depth: usize,
    return_addresses: Box<[ReturnAddress]>,
    stack: u32,
}

impl StackCapture {
    /// Captures the stack of a call that is about to be recorded.
    #[cold]
    #[inline(never)]
    pub(crate) fn capture(&mut self, thread: u32, call: u64) {
        let mark = 0u8;
        // The frames of the callers lie above this one.
        let depth = (&raw const mark).addr();
        let own = match &mut self.0 {
            Some(own) if own.thread == thread => own,
            own => own.insert(Box::new(ThreadStacks::new(thread))),
        };
        let stack = own.stack_number(depth);
        let mut waiting = own.queue.lock();
        if waiting.len() == QUEUE_MAX {
            waiting.pop_front();
        }
        waiting.push_back((call, stack));
    }
}

impl ThreadStacks {
    fn new(thread: u32) -> ThreadStacks {
        let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
        let index = thread as usize;
        if queues.len() <= index {
            queues.resize_with(index + 1, || None);
        }
        // A thread that took over the number of one that ended takes over its queue as well.
        let queue = queues[index].get_or_insert_default().clone();
        ThreadStacks { thread, queue, cache: (0..CACHED_STACKS).map(|_| None).collect(), return_addresses: Vec::new() }
    }

    fn stack_number(&mut self, depth: usize) -> u32 {
        // Frames are at least 16 bytes.
        let memo = &mut self.cache[(depth / 16) % CACHED_STACKS];
        if let Some(cached_stack) = memo
            && cached_stack.depth == depth
            // SAFETY: these are places of frames above the one at this depth.
            && unsafe { stack::is_unchanged(&cached_stack.return_addresses) }
        {
            return cached_stack.stack;
        }
        stack::walk_stack(&mut self.return_addresses, depth);
        let stack = stack_table::number_of_stack(&self.return_addresses);
        *memo = Some(CachedStack { depth, return_addresses: self.return_addresses.as_slice().into(), stack });
        stack
    }
}

impl StackQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stack of a call whose record is read now; zero if there is none. Those of calls before it are gone then.
#[inline]
pub(crate) fn take_stack(thread: u32, call: u64) -> u32 {
    if IS_ENABLED.load(Ordering::Relaxed) { take_queued_stack(thread, call) } else { 0 }
}

fn take_queued_stack(thread: u32, call: u64) -> u32 {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let Some(queue) = queues.get(thread as usize).and_then(Option::as_ref) else { return 0 };
    let mut waiting = queue.lock();
    while let Some((own, stack)) = waiting.front().copied().filter(|it| it.0 <= call) {
        waiting.pop_front();
        if own == call {
            return stack;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn one(stacks: &mut StackCapture, call: u64) {
        stacks.capture(77, call);
        std::hint::black_box(());
    }

    #[inline(never)]
    fn other(stacks: &mut StackCapture, call: u64) {
        one(stacks, call);
        std::hint::black_box(());
    }

    #[test]
    fn return_addresses_are_where_they_are_said_to_be() {
        let mark = 0u8;
        let mut slots = Vec::new();
        stack::walk_stack(&mut slots, (&raw const mark).addr());
        assert!(slots.len() > 2);
        // SAFETY: frames above this one.
        assert_eq!(unsafe { stack::is_unchanged(&slots) }, cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn equal_stacks_have_one_number_and_others_another() {
        enable();
        let mut stacks = StackCapture::default();
        let mut numbers = Vec::new();
        for call in 0..100 {
            if call % 3 == 0 { other(&mut stacks, call) } else { one(&mut stacks, call) }
        }
        // The first calls are those of somebody who never looked.
        for call in 10..100 {
            numbers.push((call % 3, take_stack(77, call)));
        }
        assert_eq!(take_stack(77, 50), 0, "it is gone");
        numbers.sort_unstable();
        numbers.dedup();
        // Two calls of `one` and one of `other`.
        assert!(numbers.iter().all(|it| it.1 != 0), "{numbers:?}");
        assert_ne!(numbers[0].1, numbers[1].1);
        let names: Vec<String> = frames(numbers[0].1).iter().filter_map(|it| it.symbol.clone()).collect();
        assert!(frames(numbers[0].1).len() > 2, "{names:?}");
        assert_eq!(frames(0), []);
    }
}
