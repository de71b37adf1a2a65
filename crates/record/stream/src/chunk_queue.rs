//! A queue of words from one thread to one reader, in chunks.
//!
//! The producer owns every word after `committed` in its last chunk. Readers may read the words before it, which never
//! change. A record can therefore be read as soon as it is complete, even while its thread is idle. The producer never
//! waits for a lock and makes no system call, except for a new chunk every few thousand calls.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lavascope_record::encoding::beside;

use crate::atomics::OnceLock;
use crate::chunk_link;
use crate::chunk_storage::{ChunkSpace, ChunkStorage, HeapChunk};
use crate::time::{TIME_MASK, ticks};

/// Words of a normal chunk; a larger record gets a chunk of its own.
pub const WORDS_PER_CHUNK: usize = 8192;
/// Number of words after which the reader is woken. They still fit into a cache.
const WAKE_WORDS: usize = 1 << 17;
/// Largest number of free chunks that are kept.
const SPARE_MAX: usize = 64;

struct Chunk {
    /// The words and the counter of complete ones (`chunk_link`). None only while the chunk is dropped.
    space: Option<ChunkSpace>,
    /// The owner of the words, if they are not on our heap.
    storage: Option<Arc<dyn ChunkStorage>>,
    heap: Option<HeapChunk>,
    /// The next chunk. Set after the last word of this one was committed.
    next: OnceLock<Arc<Chunk>>,
    control: Arc<StreamControl>,
}

/// What all queues of a process share: the number of words in flight, and the reader to wake.
pub struct StreamControl {
    words: AtomicUsize,
    /// Relaxed, like `words`, because the limit need not be exact.
    words_max: AtomicUsize,
    /// How often and how long (in microseconds) producers waited for the reader. Relaxed, because these are only
    /// statistics.
    waits: AtomicU64,
    waited_us: AtomicU64,
    /// Free chunks, the longest unused first. A chunk that was just read is still in the reader's cache. Memory that
    /// another thread frees would come back cold or not at all.
    spare: Mutex<VecDeque<HeapChunk>>,
    reader: Mutex<Option<std::thread::Thread>>,
    /// The storage in which chunks are allocated; none means the heap. With a storage, each record also has its time. A
    /// change takes effect with the next call of each thread.
    storage: Mutex<Option<Arc<dyn ChunkStorage>>>,
    /// Counts changes of `storage`. Relaxed, because `storage` itself is behind a lock.
    storage_changes: AtomicU32,
}

impl StreamControl {
    /// At most about `words_max` words may be in flight; beyond that, producers wait for the reader.
    pub fn new(words_max: usize) -> Arc<StreamControl> {
        Arc::new(StreamControl {
            words: AtomicUsize::new(0),
            words_max: AtomicUsize::new(words_max),
            waits: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            spare: Mutex::default(),
            reader: Mutex::new(None),
            storage: Mutex::new(None),
            storage_changes: AtomicU32::new(0),
        })
    }

    /// Changes the limit of words in flight.
    pub fn set_words_max(&self, words_max: usize) {
        self.words_max.store(words_max, Ordering::Relaxed);
    }

    /// How often producers waited for the reader, and the total time.
    pub fn wait_stats(&self) -> (u64, Duration) {
        let time = Duration::from_micros(self.waited_us.load(Ordering::Relaxed));
        (self.waits.load(Ordering::Relaxed), time)
    }

    /// Sets the storage of new chunks; none means the heap. In a storage, a word with the time precedes each record.
    pub fn set_storage(&self, storage: Option<Arc<dyn ChunkStorage>>) {
        *self.storage.lock().unwrap_or_else(PoisonError::into_inner) = storage;
        self.storage_changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Declares the calling thread to be the reader.
    pub fn set_reader(&self) {
        *self.reader() = Some(std::thread::current());
    }

    pub fn wake(&self) {
        if let Some(reader) = self.reader().as_ref() {
            reader.unpark();
        }
    }

    /// From now on there is no reader, and no producer waits for one.
    pub fn clear_reader(&self) {
        *self.reader() = None;
    }

    /// Number of words in chunks that are still in use.
    pub fn words_in_flight(&self) -> usize {
        self.words.load(Ordering::Relaxed)
    }

    fn spare(&self) -> MutexGuard<'_, VecDeque<HeapChunk>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Option<std::thread::Thread>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before a new chunk. The reader polls every few milliseconds; it is only woken when many words are in
    /// flight.
    fn wait_for_capacity(&self) {
        let words_max = self.words_max.load(Ordering::Relaxed);
        if self.words_in_flight() > (words_max / 8).min(WAKE_WORDS) {
            self.wake();
        }
        if self.words_in_flight() > words_max {
            self.wait_until_below(words_max);
        }
    }

    #[cold]
    fn wait_until_below(&self, words_max: usize) {
        let start = Instant::now();
        while self.words_in_flight() > words_max && self.reader().is_some() {
            std::thread::sleep(Duration::from_micros(50));
            self.wake();
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_us.fetch_add(start.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

impl Chunk {
    fn new(count: usize, stream: u32, word_offset: u64, control: &Arc<StreamControl>) -> Arc<Chunk> {
        control.words.fetch_add(count, Ordering::Relaxed);
        let storage = control.storage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (next, control) = (OnceLock::new(), Arc::clone(control));
        if let Some(space) = storage.as_ref().and_then(|it| it.claim(stream, word_offset, count)) {
            return Arc::new(Chunk { space: Some(space), storage, heap: None, next, control });
        }
        let spare = if count == WORDS_PER_CHUNK { control.spare().pop_front() } else { None };
        let heap = spare.unwrap_or_else(|| HeapChunk::new(count));
        // SAFETY: the heap is new, or `Chunk::drop` put it among the spare ones after it took its space. The chunk keeps
        // it until it drops the space.
        let space = unsafe { heap.space() };
        Arc::new(Chunk { space: Some(space), storage: None, heap: Some(heap), next, control })
    }

    #[inline(always)]
    fn space(&self) -> &ChunkSpace {
        // SAFETY: `Chunk::new` puts a space in, and only `drop` takes it out, which has the chunk alone.
        unsafe { self.space.as_ref().unwrap_unchecked() }
    }

    fn committed(&self) -> usize {
        chunk_link::committed(self.space().committed())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Some(space) = self.space.take() else { return };
        self.control.words.fetch_sub(space.len(), Ordering::Relaxed);
        if let Some(storage) = self.storage.take() {
            storage.release(space);
        } else if let Some(heap) = self.heap.take().filter(|_| space.len() == WORDS_PER_CHUNK) {
            let mut spare = self.control.spare();
            if spare.len() < SPARE_MAX {
                spare.push_back(heap);
            }
        }
        // Dropping a long list of chunks recursively would overflow the stack.
        let mut next = self.next.take();
        while let Some(mut chunk) = next.and_then(Arc::into_inner) {
            next = chunk.next.take();
        }
    }
}

/// Creates the queue of a stream.
pub fn chunk_queue(stream: u32, control: &Arc<StreamControl>) -> (Producer, Consumer) {
    let changes = control.storage_changes.load(Ordering::Relaxed);
    let chunk = Chunk::new(WORDS_PER_CHUNK, stream, 0, control);
    let is_timed = chunk.storage.is_some();
    let producer =
        Producer { chunk: Arc::clone(&chunk), at: 0, stream, word_offset: 0, storage_changes: changes, is_timed };
    (producer, Consumer { chunk, at: 0, word_offset: 0, retained: VecDeque::new() })
}

/// The writing end.
pub struct Producer {
    chunk: Arc<Chunk>,
    /// Words committed in this chunk.
    at: usize,
    stream: u32,
    /// Words before this chunk.
    word_offset: u64,
    /// The value of `storage_changes` that this producer has seen.
    storage_changes: u32,
    /// Whether a word with the time stands before each record.
    is_timed: bool,
}

impl Producer {
    /// Begins a call: applies a change of the storage.
    #[inline(always)]
    pub fn begin(&mut self) {
        let changes = self.chunk.control.storage_changes.load(Ordering::Relaxed);
        if changes != self.storage_changes {
            self.storage_changes = changes;
            self.next_chunk(0);
        }
    }

    /// Appends words; the reader sees all of them or none.
    #[inline(always)]
    pub fn append(&mut self, words: &[u64]) {
        let to = self.claim(words.len());
        // SAFETY: `claim` gave room for so many words behind what is committed, which no slice can overlap: readers get
        // slices of committed words only.
        unsafe { copy(words, to) };
        // SAFETY: the two steps before claimed these words and wrote all of them.
        unsafe { self.commit(words.len()) };
    }

    /// Reserves words that the caller writes in place. Until they are committed, the reader does not see them.
    ///
    /// Building a record elsewhere and copying it costs half as much again: the copy reads words that were just written
    /// in parts, which is a store-forwarding stall.
    #[inline(always)]
    pub fn claim(&mut self, words: usize) -> *mut u64 {
        let time_words = usize::from(self.is_timed);
        if words + time_words > self.chunk.space().len() - self.at {
            return self.claim_next(words);
        }
        // SAFETY: `at + time_words` is at most the length of the space, by the condition before.
        unsafe { self.chunk.space().words().add(self.at + time_words) }
    }

    /// The reader may see the first of the words that were claimed.
    ///
    /// # Safety
    ///
    /// The last call on the producer must have been a [`Producer::claim`] of at least so many words, and the first
    /// `words` of them must be written.
    #[inline(always)]
    pub unsafe fn commit(&mut self, words: usize) {
        if self.is_timed {
            let time_word = u64::from(beside::TIME) << 48 | ticks() & TIME_MASK;
            // SAFETY: by the contract `claim` came last; it made room for one word more, before those that it gave.
            unsafe { self.chunk.space().words().add(self.at).write(time_word) };
            self.at += 1;
        }
        self.at += words;
        chunk_link::commit(self.chunk.space().committed(), self.at);
    }

    #[cold]
    fn claim_next(&mut self, words: usize) -> *mut u64 {
        self.next_chunk(words);
        self.claim(words)
    }

    #[cold]
    fn next_chunk(&mut self, words: usize) {
        self.chunk.control.wait_for_capacity();
        let word_offset = self.word_offset + self.at as u64;
        let next = Chunk::new((words + 1).max(WORDS_PER_CHUNK), self.stream, word_offset, &self.chunk.control);
        let _ = self.chunk.next.set(Arc::clone(&next));
        let is_timed = next.storage.is_some();
        *self = Producer { chunk: next, at: 0, word_offset, is_timed, ..*self };
    }
}

/// Most records are a few words: not worth a call.
///
/// # Safety
///
/// `to` must lead to room for as many words as there are, apart from them.
#[inline(always)]
unsafe fn copy(words: &[u64], to: *mut u64) {
    if words.len() <= 16 {
        for (index, word) in words.iter().enumerate() {
            // SAFETY: `index` is less than the number of words, for which there is room at `to` by the contract.
            unsafe { to.add(index).write(*word) };
        }
    } else {
        // SAFETY: by the contract there is room for all words at `to`, apart from where they are.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len()) };
    }
}

/// The reading end.
pub struct Consumer {
    chunk: Arc<Chunk>,
    /// Words of this chunk that were taken.
    at: usize,
    /// Words before this chunk.
    word_offset: u64,
    /// Chunks of a storage that were read, each with the number of words up to its end. They are kept until `release`
    /// confirms that their words are saved elsewhere.
    retained: VecDeque<(u64, Arc<Chunk>)>,
}

impl Consumer {
    /// The committed words that were not taken yet, as far as they are contiguous.
    pub fn peek(&mut self) -> &[u64] {
        let next = chunk_link::next_chunk(self.chunk.space().committed(), &self.chunk.next, self.at).cloned();
        if let Some(next) = next {
            self.word_offset += self.at as u64;
            self.at = 0;
            let chunk = std::mem::replace(&mut self.chunk, next);
            if chunk.storage.is_some() {
                self.retained.push_back((self.word_offset, chunk));
            }
        }
        let count = self.chunk.committed() - self.at;
        // SAFETY: `Producer::commit` counts words that are written, never more than the space has, and nobody writes them
        // again; `committed` sees the number with them. `at` is not larger, by `take`. The slice borrows `self`, whose
        // chunk keeps the space.
        unsafe { std::slice::from_raw_parts(self.chunk.space().words().add(self.at), count) }
    }

    /// Number of words of the stream that were taken.
    pub fn word_offset(&self) -> u64 {
        self.word_offset + self.at as u64
    }

    /// Takes the first `count` words of the result of `peek`.
    pub fn take(&mut self, count: usize) {
        assert!(self.at + count <= self.chunk.committed(), "only what was seen is taken");
        self.at += count;
    }

    /// Releases the chunks before an offset in words, which are saved elsewhere.
    pub fn release(&mut self, word_offset: u64) {
        while self.retained.pop_front_if(|it| it.0 <= word_offset).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_out_as_they_went_in() {
        let wake = StreamControl::new(usize::MAX);
        let (mut producer, mut consumer) = chunk_queue(1, &wake);
        let large: Vec<u64> = (0..WORDS_PER_CHUNK as u64 * 3).collect();
        producer.append(&[1, 2, 3]);
        producer.append(&large);
        producer.append(&[4, 5]);
        assert_eq!(consumer.peek(), [1, 2, 3]);
        consumer.take(3);
        assert_eq!(consumer.peek(), large);
        consumer.take(large.len());
        assert_eq!(consumer.peek(), [4, 5]);
        consumer.take(2);
        assert!(consumer.peek().is_empty());
        drop((producer, consumer));
        assert_eq!(wake.words_in_flight(), 0);
    }

    #[test]
    fn a_reader_sees_every_word_once_and_producers_wait_for_it() {
        let wake = StreamControl::new(WORDS_PER_CHUNK * 4);
        let (mut producer, mut consumer) = chunk_queue(1, &wake);
        const RUNS: u64 = 200_000;
        wake.set_reader();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                for value in 0..RUNS {
                    producer.append(&[value * 3, value * 3 + 1, value * 3 + 2]);
                }
            });
            let mut expected = 0;
            while expected < RUNS * 3 {
                let words = consumer.peek();
                assert!(words.len().is_multiple_of(3), "a run is seen whole");
                assert!(words.iter().all(|word| {
                    expected += 1;
                    *word == expected - 1
                }));
                let count = words.len();
                consumer.take(count);
                assert!(wake.words_in_flight() <= WORDS_PER_CHUNK * 6);
                if count == 0 {
                    std::thread::yield_now();
                }
            }
            // Joined explicitly, because ThreadSanitizer does not see what the end of a scope waits for.
            thread.join().expect("nobody panics");
        });
    }

    #[test]
    fn waits_are_counted_and_timed() {
        let wake = StreamControl::new(usize::MAX);
        let (mut producer, mut consumer) = chunk_queue(1, &wake);
        let words = [7; WORDS_PER_CHUNK / 2];
        wake.set_reader();
        (0..8).for_each(|_| producer.append(&words));
        assert_eq!(wake.wait_stats(), (0, Duration::ZERO));
        wake.set_words_max(WORDS_PER_CHUNK);
        let pause = Duration::from_millis(20);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| producer.append(&words));
            // The producer wakes this thread once before it waits, and then while it waits. An earlier wake-up may be
            // pending.
            (0..3).for_each(|_| std::thread::park());
            std::thread::sleep(pause);
            for _ in 0..9 {
                while consumer.peek().is_empty() {
                    std::thread::yield_now();
                }
                consumer.take(words.len());
            }
            thread.join().expect("nobody panics");
        });
        let (times, time) = wake.wait_stats();
        assert!(times == 1 && time >= pause, "{times} times, {time:?}");
    }

    #[test]
    fn a_long_queue_nobody_reads_is_dropped_without_recursion() {
        let wake = StreamControl::new(usize::MAX);
        let (mut producer, consumer) = chunk_queue(1, &wake);
        for _ in 0..2000 {
            producer.append(&[0; WORDS_PER_CHUNK]);
        }
        drop((producer, consumer));
        assert_eq!(wake.words_in_flight(), 0);
    }

    /// Records the requests for space, and what was released.
    #[derive(Default)]
    struct Log {
        heaps: Mutex<Vec<HeapChunk>>,
        claimed: Mutex<Vec<(u32, u64, usize)>>,
        released: AtomicUsize,
    }

    impl ChunkStorage for Log {
        fn claim(&self, stream: u32, word_offset: u64, words: usize) -> Option<ChunkSpace> {
            self.claimed.lock().expect("nobody panics").push((stream, word_offset, words));
            let heap = HeapChunk::new(words);
            // SAFETY: the heap is new, and the log keeps it for longer than any queue of the test.
            let space = unsafe { heap.space() };
            self.heaps.lock().expect("nobody panics").push(heap);
            Some(space)
        }

        fn release(&self, _: ChunkSpace) {
            self.released.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn words_in_a_room_have_times_and_stay_until_they_are_safe() {
        let (wake, log) = (StreamControl::new(usize::MAX), Arc::new(Log::default()));
        let (mut producer, mut consumer) = chunk_queue(7, &wake);
        producer.append(&[1]);
        wake.set_storage(Some(log.clone()));
        producer.append(&[2]);
        producer.begin();
        producer.append(&[3, 4]);
        producer.append(&[5; WORDS_PER_CHUNK]);
        assert_eq!(consumer.peek(), [1, 2], "until the next call nothing changes");
        consumer.take(2);
        let is_mark = |it: u64| (it >> 48) as u8 == beside::TIME;
        assert!(matches!(*consumer.peek(), [mark, 3, 4] if is_mark(mark)));
        consumer.take(3);
        assert!(matches!(*consumer.peek(), [mark, 5, ..] if is_mark(mark)));
        assert_eq!(*log.claimed.lock().expect("nobody panics"), [(7, 2, WORDS_PER_CHUNK), (7, 5, WORDS_PER_CHUNK + 1)]);
        assert_eq!(consumer.word_offset(), 5);
        consumer.release(4);
        assert_eq!(log.released.load(Ordering::Relaxed), 0);
        consumer.release(5);
        assert_eq!(log.released.load(Ordering::Relaxed), 1);
        wake.set_storage(None);
        producer.begin();
        producer.append(&[6]);
        consumer.take(WORDS_PER_CHUNK + 1);
        assert_eq!(consumer.peek(), [6], "no time any more");
    }
}
