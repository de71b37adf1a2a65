//! The threads of the application: how far each is, and what its next record must come after.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_record::encoding::{CALL_MAX, OrderEdge};

use crate::chunk_queue::{Consumer, Producer, StreamControl, chunk_queue};
use crate::thread_progress::ThreadProgress;

/// What other threads may see of a thread.
pub struct ThreadShared {
    number: u32,
    progress: ThreadProgress,
    consumer: Mutex<Option<Consumer>>,
}

impl ThreadShared {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The reading end of the thread's stream, for the first who asks.
    pub fn take_consumer(&self) -> Option<Consumer> {
        lock(&self.consumer).take()
    }
}

/// The application's thread itself: only it writes its stream.
pub struct StreamThread {
    shared: Arc<ThreadShared>,
    number: u32,
    calls: u64,
    /// By thread number: the call that our records are known to come after.
    ordered_after: Vec<u64>,
    /// Of the record being made.
    order_edges: Vec<u64>,
    producer: Producer,
}

impl StreamThread {
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Counts a new call.
    #[inline(always)]
    pub fn begin(&mut self) -> u64 {
        self.calls += 1;
        self.producer.begin();
        debug_assert!(self.calls <= CALL_MAX, "a thread makes fewer calls than this in any run");
        self.calls
    }

    /// The record being made comes after a touch of an object; zero is none.
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

    /// Whether a wait of another thread asked for a barrier; asking takes the wish away.
    #[inline(always)]
    pub fn take_barrier_request(&self) -> bool {
        self.shared.progress.take_barrier_request()
    }

    /// The record being made comes after all that other threads have completed.
    pub fn order_after_completed(&mut self, threads: &StreamThreads) {
        let own = self.number;
        for other in lock(&threads.list).iter().filter(|it| it.number != own) {
            let call = other.progress.position();
            if call != 0 {
                self.add_edge(OrderEdge { thread: other.number, call });
            }
        }
    }

    /// What the record being made comes after, one word each.
    #[inline(always)]
    pub fn order_edges(&self) -> &[u64] {
        &self.order_edges
    }

    /// The record is made: the next one starts without touches.
    #[inline(always)]
    pub fn end_record(&mut self) {
        // Most records have none, and then there is nothing to write.
        if !self.order_edges.is_empty() {
            self.order_edges.clear();
        }
    }

    /// Hands a complete record to the reader of the stream.
    #[inline(always)]
    pub fn append(&mut self, record: &[u64]) {
        self.producer.append(record);
    }

    /// Room for a record that is to be written in place; see [`Producer::claim`].
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

    /// The call returned: others may rely on its having happened.
    #[inline(always)]
    pub fn complete(&self, call: u64) {
        self.shared.progress.complete(call);
    }

    /// The touch that stands for a call of this thread.
    #[inline(always)]
    pub fn edge_to(&self, call: u64) -> OrderEdge {
        OrderEdge { thread: self.number, call }
    }
}

/// All threads that make calls, or did.
pub struct StreamThreads {
    list: Mutex<Vec<Arc<ThreadShared>>>,
    /// Of threads that ended. A new thread goes on where one of them stopped, numbers and all: it began after that
    /// one ended, so the order stays true, and a program that starts a thread per job has few streams.
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

    /// A thread makes its first call.
    pub fn register(&self, wake: &Arc<StreamControl>) -> StreamThread {
        if let Some(thread) = lock(&self.idle).pop() {
            return thread;
        }
        let mut list = lock(&self.list);
        // Zero is nobody, so that no touch is the word zero.
        let number = list.len() as u32 + 1;
        let (producer, consumer) = chunk_queue(number, wake);
        let shared =
            Arc::new(ThreadShared { number, progress: ThreadProgress::new(), consumer: Mutex::new(Some(consumer)) });
        list.push(Arc::clone(&shared));
        StreamThread {
            number: shared.number,
            shared,
            calls: 0,
            ordered_after: Vec::new(),
            order_edges: Vec::new(),
            producer,
        }
    }

    /// A thread ended.
    pub fn retire(&self, thread: StreamThread) {
        lock(&self.idle).push(thread);
    }

    /// Every other thread makes a barrier before its next record. The calling thread's own position is published
    /// already.
    pub fn push_barrier(&self, by: &StreamThread) {
        for other in lock(&self.list).iter().filter(|it| it.number != by.number()) {
            other.progress.request_barrier();
        }
    }

    /// Whether a call has not returned yet.
    pub fn is_in_call(&self, call: OrderEdge) -> bool {
        let list = lock(&self.list);
        let thread = list.get((call.thread as usize).wrapping_sub(1));
        thread.is_some_and(|it| it.progress.position() < call.call)
    }

    /// The threads that were enlisted after the first `known` ones.
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

/// These locks guard lists that are whole at every moment, so a panic elsewhere does not matter to them.
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
        threads.push_barrier(&a);
        assert!(!a.take_barrier_request());
        assert!(b.take_barrier_request());
        assert!(!b.take_barrier_request());
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
