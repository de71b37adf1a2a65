//! The threads of the application: how far each has come, and after what its next record must come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_record::encoding::{CALL_MAX, OrderEdge};

use crate::chunk_queue::{Consumer, Producer, StreamControl, chunk_queue};
use crate::thread_progress::ThreadProgress;

/// The part of a thread that other threads may read.
pub struct ThreadShared {
    number: u32,
    progress: ThreadProgress,
    consumer: Mutex<Option<Consumer>>,
    beside: Mutex<BesideCalls>,
}

/// The newest records of a thread that stand beside calls: host writes, which have positions like calls and are none.
#[derive(Debug, Default)]
pub struct BesideCalls {
    count: u64,
    newest: VecDeque<u64>,
}

impl BesideCalls {
    /// Messages name calls that have not returned, or not long ago.
    const NEWEST_MAX: usize = 1024;

    /// Adds a record, behind those before it.
    pub fn add(&mut self, position: u64) {
        if self.newest.len() == BesideCalls::NEWEST_MAX {
            self.newest.pop_front();
        }
        self.newest.push_back(position);
        self.count += 1;
    }

    /// The number of a call in messages, of its position in the stream.
    pub fn call_number(&self, position: u64) -> u64 {
        let later = self.newest.iter().rev().take_while(|it| **it > position).count() as u64;
        position.saturating_sub(self.count - later)
    }
}

impl ThreadShared {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The reading end of the thread's stream. Only the first caller gets it.
    pub fn take_consumer(&self) -> Option<Consumer> {
        lock(&self.consumer).take()
    }
}

/// The state of a thread of the application. Only that thread writes its stream.
pub struct StreamThread {
    shared: Arc<ThreadShared>,
    number: u32,
    calls: u64,
    /// Whether no record has come after what was complete when the thread began.
    is_new: bool,
    /// By thread number: the last call that our records are already ordered after.
    ordered_after: Vec<u64>,
    /// The order edges of the record that is being made.
    order_edges: Vec<u64>,
    producer: Producer,
}

impl StreamThread {
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Begins a call, and returns its number.
    #[inline(always)]
    pub fn begin(&mut self) -> u64 {
        self.calls += 1;
        self.producer.begin();
        debug_assert!(self.calls <= CALL_MAX, "a thread makes fewer calls than this in any run");
        self.calls
    }

    /// Begins a record that stands beside calls, and returns its position among them.
    pub fn begin_beside(&mut self) -> u64 {
        let position = self.begin();
        lock(&self.shared.beside).add(position);
        position
    }

    /// Orders the record that is being made after an edge of an object; zero stands for none.
    #[inline(always)]
    pub fn order_after(&mut self, word: u64) {
        let edge = OrderEdge::from_word(word);
        if word != 0 && edge.thread != self.number {
            self.add_edge(edge);
        }
    }

    fn add_edge(&mut self, edge: OrderEdge) {
        let index = edge.thread as usize;
        if self.ordered_after.len() <= index {
            self.ordered_after.resize(index + 1, 0);
        }
        if self.ordered_after[index] < edge.call {
            self.ordered_after[index] = edge.call;
            self.order_edges.push(edge.to_word());
        }
    }

    /// Whether another thread requested a barrier. Clears the request.
    #[inline(always)]
    pub fn take_barrier_request(&self) -> bool {
        self.shared.progress.take_barrier_request()
    }

    /// Orders the record that is being made after everything that other threads have completed.
    pub fn order_after_completed(&mut self, threads: &StreamThreads) {
        self.is_new = false;
        self.order_after_calls(threads, ThreadProgress::last_returned);
    }

    /// Orders the record that is being made after what was complete at the last push barriers, or, for the first record of
    /// a thread, after everything that is complete: nobody knows why the thread began. To be called if a barrier was
    /// requested.
    pub fn order_after_pushes(&mut self, threads: &StreamThreads) {
        match self.is_new {
            true => self.order_after_completed(threads),
            false => self.order_after_calls(threads, ThreadProgress::pushed),
        }
    }

    fn order_after_calls(&mut self, threads: &StreamThreads, call_of: impl Fn(&ThreadProgress) -> u64) {
        let own = self.number;
        for other in lock(&threads.list).iter().filter(|it| it.number != own) {
            let call = call_of(&other.progress);
            if call != 0 {
                self.add_edge(OrderEdge { thread: other.number, call });
            }
        }
    }

    /// The order edges of the record that is being made, one word each.
    #[inline(always)]
    pub fn order_edges(&self) -> &[u64] {
        &self.order_edges
    }

    /// Ends the record: the next one starts without edges.
    #[inline(always)]
    pub fn end_record(&mut self) {
        // Most records have no edges, and then nothing is written.
        if !self.order_edges.is_empty() {
            self.order_edges.clear();
        }
    }

    /// Appends a complete record to the stream.
    #[inline(always)]
    pub fn append(&mut self, record: &[u64]) {
        self.producer.append(record);
    }

    /// Reserves words for a record that is written in place; see [`Producer::claim`].
    #[inline(always)]
    pub fn claim(&mut self, words: usize) -> *mut u64 {
        self.producer.claim(words)
    }

    /// Hands a record that was written in place to the reader of the stream.
    ///
    /// # Safety
    ///
    /// [`StreamThread::claim`] of at least so many words must have been the last of `claim`, `append`, `begin` and `commit`,
    /// and the first `words` of them must be written.
    #[inline(always)]
    pub unsafe fn commit(&mut self, words: usize) {
        // SAFETY: nothing but the four functions that the contract names calls the producer, so `claim` was the last call
        // on it; and the words are written.
        unsafe { self.producer.commit(words) };
    }

    /// The call has returned: records of other threads may name it in an edge.
    #[inline(always)]
    pub fn complete(&self, call: u64) {
        self.shared.progress.complete(call);
    }

    /// The edge that names a call of this thread.
    #[inline(always)]
    pub fn edge_to(&self, call: u64) -> OrderEdge {
        OrderEdge { thread: self.number, call }
    }
}

/// All threads that make calls, and those that have ended.
pub struct StreamThreads {
    list: Mutex<Vec<Arc<ThreadShared>>>,
    /// Streams of threads that ended. A new thread continues one of them, with its number. It began after the other
    /// thread had ended, so the order stays correct, and a program that starts a thread per job needs few streams.
    idle: Mutex<Vec<StreamThread>>,
}

impl Default for StreamThreads {
    fn default() -> StreamThreads {
        StreamThreads::new()
    }
}

impl StreamThreads {
    pub const fn new() -> StreamThreads {
        StreamThreads { list: Mutex::new(Vec::new()), idle: Mutex::new(Vec::new()) }
    }

    /// Registers a thread at its first call. A barrier is requested of it: what was complete when it began may be why it
    /// began, and barriers that were pushed earlier could not reach it.
    pub fn register(&self, control: &Arc<StreamControl>) -> StreamThread {
        let idle = lock(&self.idle).pop();
        if let Some(thread) = idle {
            thread.shared.progress.request_barrier();
            return StreamThread { is_new: true, ..thread };
        }
        let mut list = lock(&self.list);
        // No thread has number zero, so no edge is the word zero.
        let number = list.len() as u32 + 1;
        let (producer, consumer) = chunk_queue(number, control);
        let shared = Arc::new(ThreadShared {
            number,
            progress: ThreadProgress::new(),
            consumer: Mutex::new(Some(consumer)),
            beside: Mutex::default(),
        });
        list.push(Arc::clone(&shared));
        StreamThread {
            number: shared.number,
            shared,
            calls: 0,
            is_new: true,
            ordered_after: Vec::new(),
            order_edges: Vec::new(),
            producer,
        }
    }

    /// Unregisters a thread that ends.
    pub fn retire(&self, thread: StreamThread) {
        lock(&self.idle).push(thread);
    }

    /// Requests a barrier before the next record of every other thread. What the calling thread completed must already
    /// be published.
    pub fn push_barrier(&self, by: &StreamThread) {
        let list = lock(&self.list);
        list.iter().for_each(|it| it.progress.note_push());
        for other in list.iter().filter(|it| it.number != by.number()) {
            other.progress.request_barrier();
        }
    }

    /// Whether a call has not returned yet.
    pub fn is_in_call(&self, call: OrderEdge) -> bool {
        let list = lock(&self.list);
        let thread = list.get((call.thread as usize).wrapping_sub(1));
        thread.is_some_and(|it| it.progress.last_returned() < call.call)
    }

    /// The number of a call in messages: records beside calls do not count.
    pub fn call_number(&self, call: OrderEdge) -> u64 {
        let list = lock(&self.list);
        let thread = list.get((call.thread as usize).wrapping_sub(1));
        thread.map_or(call.call, |it| lock(&it.beside).call_number(call.call))
    }

    /// The threads that were registered after the first `known` ones.
    pub fn registered_since(&self, known: usize) -> Vec<Arc<ThreadShared>> {
        lock(&self.list).get(known..).unwrap_or_default().to_vec()
    }

    pub fn len(&self) -> usize {
        lock(&self.list).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// These locks guard lists that are consistent at every moment, so a panic elsewhere does not matter.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (StreamThreads, StreamThread, StreamThread) {
        let (threads, wake) = (StreamThreads::new(), StreamControl::new(usize::MAX));
        let (a, b) = (threads.register(&wake), threads.register(&wake));
        (threads, a, b)
    }

    fn edge_word(thread: u32, call: u64) -> u64 {
        OrderEdge { thread, call }.to_word()
    }

    #[test]
    fn own_and_known_touches_are_left_out() {
        let (_, mut a, b) = two();
        a.order_after(0);
        a.order_after(edge_word(a.number(), 7));
        a.order_after(edge_word(b.number(), 5));
        a.order_after(edge_word(b.number(), 4));
        assert_eq!(a.order_edges(), [edge_word(2, 5)]);
        a.end_record();
        a.order_after(edge_word(b.number(), 5));
        assert!(a.order_edges().is_empty());
        a.order_after(edge_word(b.number(), 6));
        assert_eq!(a.order_edges(), [edge_word(2, 6)]);
    }

    #[test]
    fn a_barrier_comes_after_what_others_completed() {
        let (threads, mut a, mut b) = two();
        let (first, _second) = (b.begin(), b.begin());
        b.complete(first);
        a.order_after_completed(&threads);
        assert_eq!(a.order_edges(), [edge_word(2, 1)], "a call that did not return is not waited for");
    }

    #[test]
    fn a_push_reaches_every_other_thread_once() {
        let (threads, a, b) = two();
        assert!(a.take_barrier_request() && b.take_barrier_request(), "both are new");
        threads.push_barrier(&a);
        assert!(!a.take_barrier_request());
        assert!(b.take_barrier_request());
        assert!(!b.take_barrier_request());
    }

    #[test]
    fn a_thread_begins_with_a_barrier_also_in_the_stream_of_another() {
        let (threads, a, mut b) = two();
        let wait = b.begin();
        b.complete(wait);
        threads.push_barrier(&b);
        let mut new = threads.register(&StreamControl::new(usize::MAX));
        assert!(new.take_barrier_request(), "it did not exist when the barrier was pushed");
        new.order_after_completed(&threads);
        assert_eq!(new.order_edges(), [edge_word(2, 1)]);
        assert!(a.take_barrier_request());
        threads.retire(a);
        let next = threads.register(&StreamControl::new(usize::MAX));
        assert!(next.number() == 1 && next.take_barrier_request(), "what the thread before it took is not its own");
    }

    #[test]
    fn a_call_is_inside_until_it_returns_whatever_is_made_inside_of_it() {
        let (threads, mut a, _b) = two();
        let (outer, inner) = (a.begin(), a.begin());
        assert!(threads.is_in_call(a.edge_to(outer)) && threads.is_in_call(a.edge_to(inner)));
        a.complete(inner);
        a.complete(outer);
        assert!(!threads.is_in_call(a.edge_to(inner)) && !threads.is_in_call(a.edge_to(outer)));
        assert!(!threads.is_in_call(OrderEdge { thread: 9, call: 1 }), "nobody has this number");
    }

    #[test]
    fn records_beside_calls_have_positions_and_no_numbers() {
        let (threads, mut a, _b) = two();
        let first = a.begin();
        let beside = a.begin_beside();
        let second = a.begin();
        assert_eq!((first, beside, second), (1, 2, 3));
        assert_eq!([first, second].map(|it| threads.call_number(a.edge_to(it))), [1, 2]);
        (0..2 * BesideCalls::NEWEST_MAX).for_each(|_| _ = a.begin_beside());
        let third = a.begin();
        assert_eq!(threads.call_number(a.edge_to(third)), 3);
        assert_eq!(threads.call_number(OrderEdge { thread: 9, call: 4 }), 4, "nobody has this number");
    }

    #[test]
    fn a_new_thread_goes_on_where_one_ended() {
        let (threads, mut a, b) = two();
        a.begin();
        let number = a.number();
        threads.retire(a);
        let mut next = threads.register(&StreamControl::new(usize::MAX));
        assert_eq!((next.number(), next.begin(), threads.len()), (number, 2, 2));
        drop(b);
    }
}
