//! Words from one thread to one reader, in chunks.
//!
//! The producer owns every word behind `committed` of its last chunk, readers may look at those before it; a word
//! that was committed never changes. So a record can be read as soon as it is complete, also while its thread is
//! idle, and the producer neither waits nor calls the system, except for a new chunk every few thousand calls.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Words of an ordinary chunk; a larger record gets a chunk of its own.
pub const WORDS_PER_CHUNK: usize = 8192;
/// So much may gather before the reader is called: less than fits into a cache.
const WAKE_WORDS: usize = 1 << 17;
/// Chunks kept for later.
const SPARE_MAX: usize = 64;

type Words = Box<[UnsafeCell<MaybeUninit<u64>>]>;

struct Chunk {
    words: Words,
    /// Words that are complete. Release in `append`; pairs with Acquire in `Consumer::committed`.
    committed: AtomicUsize,
    /// The chunk after this one. Set after the last word was committed.
    next: OnceLock<Arc<Chunk>>,
    wake: Arc<Wake>,
}

// SAFETY: words before `committed` are never written again, words behind it belong to the one producer.
unsafe impl Sync for Chunk {}
// SAFETY: as above; nothing in a chunk belongs to a thread.
unsafe impl Send for Chunk {}

/// The space of a chunk that nobody reads or writes.
struct Spare(Words);

// SAFETY: plain memory, which belongs to whoever holds it.
unsafe impl Send for Spare {}

/// What all queues of a process share: how much is under way, and whom to wake when there is more.
pub struct Wake {
    words: AtomicUsize,
    /// Relaxed, as `words`: a little more or less does not matter.
    words_max: AtomicUsize,
    /// How often producers waited for the reader, and for how many microseconds together. Relaxed: it is told now and
    /// then.
    waits: AtomicU64,
    waited_us: AtomicU64,
    /// Space that was read and can be written again, the longest unused first: what was read a moment ago is in the
    /// reader's cache, and memory that another thread frees comes back cold, or not at all.
    spare: Mutex<VecDeque<Spare>>,
    reader: Mutex<Option<std::thread::Thread>>,
}

impl Wake {
    /// At most about `words_max` words are under way; beyond that producers wait for the reader.
    pub fn new(words_max: usize) -> Arc<Wake> {
        Arc::new(Wake {
            words: AtomicUsize::new(0),
            words_max: AtomicUsize::new(words_max),
            waits: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            spare: Mutex::default(),
            reader: Mutex::new(None),
        })
    }

    /// From now on so many words may be under way.
    pub fn set_words_max(&self, words_max: usize) {
        self.words_max.store(words_max, Ordering::Relaxed);
    }

    /// How often producers waited for the reader, and how long all of them together.
    pub fn waited(&self) -> (u64, Duration) {
        let time = Duration::from_micros(self.waited_us.load(Ordering::Relaxed));
        (self.waits.load(Ordering::Relaxed), time)
    }

    /// The calling thread is the reader.
    pub fn set_reader(&self) {
        *self.reader() = Some(std::thread::current());
    }

    pub fn wake(&self) {
        if let Some(reader) = self.reader().as_ref() {
            reader.unpark();
        }
    }

    /// Nobody reads any more, and nobody waits for it.
    pub fn end_reader(&self) {
        *self.reader() = None;
    }

    /// Words in chunks that somebody still holds.
    pub fn words_under_way(&self) -> usize {
        self.words.load(Ordering::Relaxed)
    }

    fn spare(&self) -> MutexGuard<'_, VecDeque<Spare>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Option<std::thread::Thread>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a new chunk. The reader looks every few milliseconds by itself; it is called when much has gathered.
    fn wait_for_room(&self) {
        let words_max = self.words_max.load(Ordering::Relaxed);
        if self.words_under_way() > (words_max / 8).min(WAKE_WORDS) {
            self.wake();
        }
        if self.words_under_way() > words_max {
            self.wait_until_below(words_max);
        }
    }

    #[cold]
    fn wait_until_below(&self, words_max: usize) {
        let start = Instant::now();
        while self.words_under_way() > words_max && self.reader().is_some() {
            std::thread::sleep(Duration::from_micros(50));
            self.wake();
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_us.fetch_add(start.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

impl Chunk {
    fn new(count: usize, wake: &Arc<Wake>) -> Arc<Chunk> {
        wake.words.fetch_add(count, Ordering::Relaxed);
        let spare = if count == WORDS_PER_CHUNK { wake.spare().pop_front() } else { None };
        let fresh = || (0..count).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        let words = spare.map_or_else(fresh, |it| it.0);
        Arc::new(Chunk { words, committed: AtomicUsize::new(0), next: OnceLock::new(), wake: Arc::clone(wake) })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.wake.words.fetch_sub(self.words.len(), Ordering::Relaxed);
        let mut spare = self.wake.spare();
        if self.words.len() == WORDS_PER_CHUNK && spare.len() < SPARE_MAX {
            spare.push_back(Spare(std::mem::take(&mut self.words)));
        }
        drop(spare);
        // A long run of chunks must not be dropped by recursion, one inside the other.
        let mut next = self.next.take();
        while let Some(mut chunk) = next.and_then(Arc::into_inner) {
            next = chunk.next.take();
        }
    }
}

/// A new queue.
pub fn queue(wake: &Arc<Wake>) -> (Producer, Consumer) {
    let chunk = Chunk::new(WORDS_PER_CHUNK, wake);
    (Producer { chunk: Arc::clone(&chunk), at: 0 }, Consumer { chunk, at: 0 })
}

/// The writing end.
pub struct Producer {
    chunk: Arc<Chunk>,
    /// Words committed in this chunk.
    at: usize,
}

impl Producer {
    /// Appends words; the reader sees all of them or none.
    #[inline(always)]
    pub fn append(&mut self, words: &[u64]) {
        if words.len() > self.chunk.words.len() - self.at {
            self.next_chunk(words.len());
        }
        // SAFETY: there is room by the test above.
        let to = unsafe { UnsafeCell::raw_get(self.chunk.words.as_ptr().add(self.at)).cast::<u64>() };
        // SAFETY: words behind `committed` are the producer's alone.
        unsafe { copy(words, to) };
        self.at += words.len();
        self.chunk.committed.store(self.at, Ordering::Release);
    }

    /// Room for words that are to be written in place. Until they are committed they are nobody's.
    #[inline(always)]
    pub fn claim(&mut self, words: usize) -> *mut u64 {
        if words > self.chunk.words.len() - self.at {
            self.next_chunk(words);
        }
        // SAFETY: there is room by the test above.
        unsafe { UnsafeCell::raw_get(self.chunk.words.as_ptr().add(self.at)).cast::<u64>() }
    }

    /// The reader may see the first of the words that were claimed.
    ///
    /// # Safety
    ///
    /// They must have been claimed last, and written.
    #[inline(always)]
    pub unsafe fn commit(&mut self, words: usize) {
        self.at += words;
        self.chunk.committed.store(self.at, Ordering::Release);
    }

    #[cold]
    fn next_chunk(&mut self, words: usize) {
        self.chunk.wake.wait_for_room();
        let next = Chunk::new(words.max(WORDS_PER_CHUNK), &self.chunk.wake);
        let _ = self.chunk.next.set(Arc::clone(&next));
        *self = Producer { chunk: next, at: 0 };
    }
}

/// Most records are a few words: not worth a call.
///
/// # Safety
///
/// There must be room for the words.
#[inline(always)]
unsafe fn copy(words: &[u64], to: *mut u64) {
    if words.len() <= 16 {
        for (index, word) in words.iter().enumerate() {
            // SAFETY: the caller's word.
            unsafe { to.add(index).write(*word) };
        }
    } else {
        // SAFETY: the caller's word; the spaces are apart.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len()) };
    }
}

/// The reading end.
pub struct Consumer {
    chunk: Arc<Chunk>,
    /// Words taken of this chunk.
    at: usize,
}

impl Consumer {
    /// The words that are there and were not taken yet, as far as they lie in one run.
    pub fn peek(&mut self) -> &[u64] {
        // The next chunk is looked for first: once it is there, this one does not grow any more.
        let next = self.chunk.next.get().cloned();
        if let Some(next) = next
            && self.at == self.committed()
        {
            *self = Consumer { chunk: next, at: 0 };
        }
        let words = &self.chunk.words[self.at..self.committed()];
        // SAFETY: words before `committed` are written and never change; the cells have the layout of the words.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u64>(), words.len()) }
    }

    /// The first `count` words of what `peek` gave are done with.
    pub fn take(&mut self, count: usize) {
        assert!(self.at + count <= self.committed(), "only what was seen is taken");
        self.at += count;
    }

    fn committed(&self) -> usize {
        self.chunk.committed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_out_as_they_went_in() {
        let wake = Wake::new(usize::MAX);
        let (mut producer, mut consumer) = queue(&wake);
        let large: Vec<u64> = (0..WORDS_PER_CHUNK as u64 * 3).collect();
        producer.append(&[1, 2, 3]);
        producer.append(&large);
        producer.append(&[4]);
        assert_eq!(consumer.peek(), [1, 2, 3]);
        consumer.take(3);
        assert_eq!(consumer.peek(), large);
        consumer.take(large.len());
        assert_eq!(consumer.peek(), [4]);
        consumer.take(1);
        assert!(consumer.peek().is_empty());
        drop((producer, consumer));
        assert_eq!(wake.words_under_way(), 0);
    }

    #[test]
    fn a_reader_sees_every_word_once_and_producers_wait_for_it() {
        let wake = Wake::new(WORDS_PER_CHUNK * 4);
        let (mut producer, mut consumer) = queue(&wake);
        const RUNS: u64 = 200_000;
        wake.set_reader();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for it in 0..RUNS {
                    producer.append(&[it * 3, it * 3 + 1, it * 3 + 2]);
                }
            });
            let mut expected = 0;
            while expected < RUNS * 3 {
                let words = consumer.peek();
                assert!(words.len().is_multiple_of(3), "a run is seen whole");
                assert!(words.iter().all(|it| {
                    expected += 1;
                    *it == expected - 1
                }));
                let count = words.len();
                consumer.take(count);
                assert!(wake.words_under_way() <= WORDS_PER_CHUNK * 6);
                if count == 0 {
                    std::thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn waits_are_counted_and_timed() {
        let wake = Wake::new(usize::MAX);
        let (mut producer, mut consumer) = queue(&wake);
        let words = [7; WORDS_PER_CHUNK / 2];
        wake.set_reader();
        (0..8).for_each(|_| producer.append(&words));
        assert_eq!(wake.waited(), (0, Duration::ZERO));
        wake.set_words_max(WORDS_PER_CHUNK);
        let pause = Duration::from_millis(20);
        std::thread::scope(|scope| {
            scope.spawn(|| producer.append(&words));
            std::thread::sleep(pause);
            for _ in 0..9 {
                while consumer.peek().is_empty() {
                    std::thread::yield_now();
                }
                consumer.take(words.len());
            }
        });
        let (times, time) = wake.waited();
        assert!(times == 1 && time > pause / 2, "{times} times, {time:?}");
    }

    #[test]
    fn a_long_queue_nobody_reads_is_dropped_without_recursion() {
        let wake = Wake::new(usize::MAX);
        let (mut producer, consumer) = queue(&wake);
        for _ in 0..2000 {
            producer.append(&[0; WORDS_PER_CHUNK]);
        }
        drop((producer, consumer));
        assert_eq!(wake.words_under_way(), 0);
    }
}
