//! Tests all interleavings of threads that complete calls, request barriers and pass words on, including those that
//! only weakly ordered processors show. The code is that of [`crate::thread_progress`] and [`crate::chunk_link`],
//! compiled with the atomics of `loom`.

use std::sync::atomic::AtomicBool as Plain;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[path = "chunk_link.rs"]
#[allow(clippy::duplicate_mod, reason = "compiled with other atomics")]
mod chunk_link;

#[path = "thread_progress.rs"]
#[allow(clippy::duplicate_mod, reason = "compiled with other atomics")]
mod thread_progress;

use thread_progress::ThreadProgress;

/// The atomics of the code under test.
mod atomics {
    use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

    /// Like the one of the standard library: a thread that sees the value also sees everything before it.
    pub(crate) struct OnceLock<T> {
        is_set: AtomicBool,
        value: UnsafeCell<Option<T>>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> OnceLock<T> {
            OnceLock { is_set: AtomicBool::new(false), value: UnsafeCell::new(None) }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if !self.is_set.load(Ordering::Acquire) {
                return None;
            }
            // SAFETY: `set` stores the value before it sets `is_set`, which was seen, and is called once.
            self.value.with(|it| unsafe { (*it).as_ref() })
        }

        /// One thread calls this once.
        pub(crate) fn set(&self, value: T) {
            // SAFETY: `get` does not look before `is_set`, which the next step sets; `loom` finds out if it does.
            self.value.with_mut(|it| unsafe { *it = Some(value) });
            self.is_set.store(true, Ordering::Release);
        }
    }
}

const WORDS: usize = 2;

/// A chunk of two words. `loom` reports a read of an incomplete word.
struct ModelChunk {
    words: [UnsafeCell<u64>; WORDS],
    counter: atomics::AtomicUsize,
    next: atomics::OnceLock<Arc<ModelChunk>>,
}

impl ModelChunk {
    fn new() -> Arc<ModelChunk> {
        let words = [UnsafeCell::new(0), UnsafeCell::new(0)];
        Arc::new(ModelChunk { words, counter: atomics::AtomicUsize::new(0), next: atomics::OnceLock::new() })
    }
}

/// Writes a number of words as `Producer` does, in as many chunks as they need.
fn produce(mut chunk: Arc<ModelChunk>, count: u64) {
    let mut at = 0;
    for word in 1..=count {
        if at == WORDS {
            let next = ModelChunk::new();
            chunk.next.set(next.clone());
            (chunk, at) = (next, 0);
        }
        // SAFETY: readers stop at what is committed, and this word is behind that; `loom` finds out if they do not.
        chunk.words[at].with_mut(|it| unsafe { *it = word });
        at += 1;
        chunk_link::commit(&chunk.counter, at);
    }
}

/// Reads as `Consumer` does.
struct ModelReader {
    chunk: Arc<ModelChunk>,
    at: usize,
    seen: Vec<u64>,
}

impl ModelReader {
    fn new(chunk: Arc<ModelChunk>) -> ModelReader {
        ModelReader { chunk, at: 0, seen: Vec::new() }
    }

    /// Reads everything in a chunk, after the next chunk was loaded.
    fn read(&mut self, next: Option<Arc<ModelChunk>>) {
        if let Some(next) = next {
            (self.chunk, self.at) = (next, 0);
        }
        let end = chunk_link::committed(&self.chunk.counter);
        for word in &self.chunk.words[self.at..end] {
            // SAFETY: `produce` writes no word again that it committed; `loom` finds out if it does.
            self.seen.push(word.with(|it| unsafe { *it }));
        }
        self.at = end;
    }

    fn step(&mut self) {
        let next = chunk_link::next_chunk(&self.chunk.counter, &self.chunk.next, self.at).cloned();
        self.read(next);
    }

    /// Like the correct step, but loads the chunk's counter before the next chunk.
    fn step_in_the_wrong_order(&mut self) {
        let is_read = self.at == chunk_link::committed(&self.chunk.counter);
        let next = self.chunk.next.get().filter(|_| is_read).cloned();
        self.read(next);
    }
}

/// Explores all interleavings with at most three preemptions.
fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(test);
}

#[test]
fn every_word_of_a_queue_is_seen_once_and_in_its_order() {
    explore(|| {
        const COUNT: u64 = 3;
        let first = ModelChunk::new();
        let mut reader = ModelReader::new(first.clone());
        let producer = thread::spawn(move || produce(first, COUNT));
        for _ in 0..3 {
            reader.step();
            assert!(reader.seen.iter().copied().eq(1..=reader.seen.len() as u64), "{:?}", reader.seen);
        }
        producer.join().expect("it ends");
        (0..2).for_each(|_| reader.step());
        assert!(reader.seen.iter().copied().eq(1..=COUNT), "{:?}", reader.seen);
    });
}

/// Whether there is an interleaving in which a reader misses words.
fn is_lost(step: fn(&mut ModelReader)) -> bool {
    let is_lost = std::sync::Arc::new(Plain::new(false));
    let found = is_lost.clone();
    explore(move || {
        const COUNT: u64 = 3;
        let first = ModelChunk::new();
        let mut reader = ModelReader::new(first.clone());
        let producer = thread::spawn(move || produce(first, COUNT));
        (0..2).for_each(|_| step(&mut reader));
        producer.join().expect("it ends");
        (0..2).for_each(|_| step(&mut reader));
        if !reader.seen.iter().copied().eq(1..=COUNT) {
            found.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    is_lost.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn the_next_chunk_has_to_be_looked_for_first() {
    assert!(is_lost(ModelReader::step_in_the_wrong_order), "then the order does not matter");
    assert!(!is_lost(ModelReader::step));
}

#[test]
fn whoever_is_asked_for_a_barrier_sees_the_call_that_asked() {
    loom::model(|| {
        let posts = Arc::new([ThreadProgress::new(), ThreadProgress::new()]);
        assert!(posts[1].take_barrier_request(), "it is new");
        let other_posts = posts.clone();
        // One thread waits for the device, and signals the other.
        let other = thread::spawn(move || {
            other_posts[0].complete(1);
            other_posts[0].complete(2);
            other_posts[1].request_barrier();
        });
        let seen = posts[0].last_returned();
        if posts[1].take_barrier_request() {
            assert_eq!(posts[0].last_returned(), 2, "the barrier comes after the wait");
            assert!(!posts[1].take_barrier_request());
        }
        assert!(posts[0].last_returned() >= seen, "positions only grow");
        other.join().expect("it ends");
        assert_eq!(posts[0].last_returned(), 2);
    });
}

#[test]
fn two_wishes_are_never_both_lost() {
    loom::model(|| {
        let posts = Arc::new([ThreadProgress::new(), ThreadProgress::new(), ThreadProgress::new()]);
        let ask = |by: usize| {
            let posts = posts.clone();
            thread::spawn(move || {
                posts[by].complete(1);
                posts[2].request_barrier();
            })
        };
        let others = [ask(0), ask(1)];
        let mut known = [0; 2];
        let barrier = |known: &mut [u64; 2]| {
            if posts[2].take_barrier_request() {
                known.iter_mut().zip(posts.iter()).for_each(|it| *it.0 = it.1.last_returned());
            }
        };
        // One record during the requests, and one after them.
        barrier(&mut known);
        for other in others {
            other.join().expect("it ends");
        }
        barrier(&mut known);
        assert_eq!(known, [1, 1], "the next record comes after both");
    });
}

/// What was complete at a push barrier is known to whoever is asked for one, and what came later need not be.
#[test]
fn whoever_is_asked_for_a_barrier_knows_what_was_pushed() {
    loom::model(|| {
        let posts = Arc::new([ThreadProgress::new(), ThreadProgress::new(), ThreadProgress::new()]);
        posts[2].take_barrier_request();
        posts[0].complete(5);
        let push = |by: usize, call: u64| {
            let posts = posts.clone();
            thread::spawn(move || {
                posts[by].complete(call);
                posts.iter().for_each(ThreadProgress::note_push);
                posts[2].request_barrier();
            })
        };
        // The application orders the two: the second one knows of the first.
        push(1, 1).join().expect("it ends");
        let second = push(1, 2);
        let mut known = [0; 2];
        let barrier = |known: &mut [u64; 2]| {
            if posts[2].take_barrier_request() {
                known.iter_mut().zip(posts.iter()).for_each(|it| *it.0 = it.1.pushed());
            }
        };
        barrier(&mut known);
        assert!(known[0] == 5 && known[1] >= 1, "the first one is known");
        second.join().expect("it ends");
        barrier(&mut known);
        assert_eq!(known, [5, 2], "and now the second");
    });
}

/// How a thread begins that another one may have had a reason to start.
#[derive(Clone, Copy, PartialEq)]
enum ThreadBegin {
    NewStream,
    /// In the stream of a thread that has ended, and has taken the request of its own beginning.
    IdleStream,
    /// Wrong: without a barrier of its own.
    WithoutBarrier,
}

/// Whether there is an interleaving in which a thread begins, learns that another has waited for the device, and makes
/// a record that does not come after the wait.
fn misses_the_wait(begin: ThreadBegin) -> bool {
    let is_missed = std::sync::Arc::new(Plain::new(false));
    let found = is_missed.clone();
    loom::model(move || {
        let waiter = Arc::new(ThreadProgress::new());
        let idle = Arc::new(ThreadProgress::new());
        idle.take_barrier_request();
        let list = Arc::new(loom::sync::Mutex::new(vec![waiter.clone()]));
        if begin == ThreadBegin::IdleStream {
            list.lock().expect("nobody panics").push(idle.clone());
        }
        let is_notified = Arc::new(atomics::AtomicBool::new(false));
        let (other, others, notify) = (waiter.clone(), list.clone(), is_notified.clone());
        // The wait, the push barrier behind it, and the word that the application passes on.
        let waits = thread::spawn(move || {
            other.complete(1);
            others.lock().expect("nobody panics")[1..].iter().for_each(|it| it.request_barrier());
            notify.store(true, atomics::Ordering::Release);
        });
        let own = if begin == ThreadBegin::IdleStream { idle } else { Arc::new(ThreadProgress::new()) };
        match begin {
            ThreadBegin::IdleStream => own.request_barrier(),
            ThreadBegin::NewStream => list.lock().expect("nobody panics").push(own.clone()),
            ThreadBegin::WithoutBarrier => {
                own.take_barrier_request();
                list.lock().expect("nobody panics").push(own.clone());
            }
        }
        let mut known = 0;
        for _ in 0..2 {
            let is_reported = is_notified.load(atomics::Ordering::Acquire);
            if own.take_barrier_request() {
                known = waiter.last_returned();
            }
            if is_reported && known == 0 {
                found.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        waits.join().expect("it ends");
    });
    is_missed.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_thread_that_begins_comes_after_what_was_complete() {
    assert!(!misses_the_wait(ThreadBegin::NewStream) && !misses_the_wait(ThreadBegin::IdleStream));
    assert!(misses_the_wait(ThreadBegin::WithoutBarrier), "then the barrier is not needed");
}
