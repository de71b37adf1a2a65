//! The tail of a capture: the stream memory, as a mapped file beside the trace, which survives a crash of the process.
//!
//! The file system allocates the space immediately, because a write to a mapped page would crash the application if the
//! disk were full.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lavascope_platform::files;
use lavascope_stream::{ChunkSpace, ChunkStorage, WORDS_PER_CHUNK};
use lavascope_trace::{TailHeader, TailSlot};

const SLOT_WORDS: usize = TailSlot::HEAD_WORDS + WORDS_PER_CHUNK;
/// Number of slots that are added at once: about four megabytes.
const SLOTS_AT_ONCE: usize = 64;

pub(crate) struct TailStorage {
    path: PathBuf,
    inner: Mutex<TailFile>,
}

struct TailFile {
    file: File,
    /// Bytes of the file that are slots.
    size: usize,
    /// Free slots. A large one is only reused for records of about its size.
    free: Vec<FreeSlot>,
}

/// The first word of a slot, and the number of words after its header.
#[derive(Clone, Copy)]
struct FreeSlot {
    head: NonNull<u64>,
    words: usize,
}

// SAFETY: mapped memory of this slot, which has one owner at a time.
unsafe impl Send for FreeSlot {}

impl TailStorage {
    /// Creates the file. Its mapping stays until the process ends.
    pub(crate) fn create(path: &Path, id: u128, began: u64) -> io::Result<TailStorage> {
        let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
        let header = TailHeader { id, slot_words: SLOT_WORDS as u32, began };
        files::write_all_at(&file, &header.to_bytes(), 0)?;
        let inner = TailFile { file, size: 0, free: Vec::new() };
        Ok(TailStorage { path: path.to_owned(), inner: Mutex::new(inner) })
    }

    /// Removes the file, when the trace is complete without it.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl ChunkStorage for TailStorage {
    fn claim(&self, stream: u32, word_offset: u64, words: usize) -> Option<ChunkSpace> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let FreeSlot { head, words: count } = inner.take_slot(words)?;
        drop(inner);
        let slot = TailSlot { stream, word_offset, committed: 0, size: count as u64 };
        let [stream, word_offset, committed, size] = slot.to_words();
        // A reader of the file takes a slot with a stream number as valid, so that word is written last.
        for (at, word) in [(TailSlot::COMMITTED, committed), (3, size), (1, word_offset), (0, stream)] {
            word_of(head, at).store(word as usize, Ordering::Release);
        }
        // SAFETY: the slot has these words behind its head, and nobody else has the slot.
        let words = unsafe { head.add(TailSlot::HEAD_WORDS) };
        // SAFETY: as above; the counter is a word of the head.
        let committed = unsafe { head.add(TailSlot::COMMITTED) }.cast::<AtomicUsize>();
        // SAFETY: they stay mapped, and are nobody else's until they are released.
        Some(unsafe { ChunkSpace::new(words, count, committed) })
    }

    fn release(&self, space: ChunkSpace) {
        let Some(words) = NonNull::new(space.words()) else { return };
        // SAFETY: a space of ours has its head before it.
        let head = unsafe { words.sub(TailSlot::HEAD_WORDS) };
        word_of(head, 0).store(0, Ordering::Release);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.free.push(FreeSlot { head, words: space.len() });
    }
}

fn word_of<'a>(head: NonNull<u64>, at: usize) -> &'a AtomicUsize {
    // SAFETY: a slot has a head of this many words, and stays mapped.
    unsafe { head.add(at).cast::<AtomicUsize>().as_ref() }
}

impl TailFile {
    fn take_slot(&mut self, words: usize) -> Option<FreeSlot> {
        let is_fitting = |free_slot: &FreeSlot| match words <= WORDS_PER_CHUNK {
            true => free_slot.words == WORDS_PER_CHUNK,
            // A slot that is much larger than needed stays free for larger records.
            false => free_slot.words >= words && free_slot.words <= words * 2,
        };
        if let Some(at) = self.free.iter().rposition(is_fitting) {
            return Some(self.free.swap_remove(at));
        }
        if words > WORDS_PER_CHUNK {
            let slots = (TailSlot::HEAD_WORDS + words).div_ceil(SLOT_WORDS);
            let head = self.map_slots(slots)?;
            return Some(FreeSlot { head, words: slots * SLOT_WORDS - TailSlot::HEAD_WORDS });
        }
        let first = self.map_slots(SLOTS_AT_ONCE)?;
        for at in (0..SLOTS_AT_ONCE).rev() {
            // SAFETY: that many slots were just mapped.
            let head = unsafe { first.add(at * SLOT_WORDS) };
            // A reader of the file needs the size to find the next slot.
            word_of(head, 3).store(WORDS_PER_CHUNK, Ordering::Release);
            self.free.push(FreeSlot { head, words: WORDS_PER_CHUNK });
        }
        self.free.pop()
    }

    /// Extends the file by some slots, and maps them.
    fn map_slots(&mut self, slots: usize) -> Option<NonNull<u64>> {
        let first = TailHeader::SIZE + self.size;
        let bytes = slots * SLOT_WORDS * 8;
        let mapped = files::map_until_exit(&self.file, first as u64, bytes).ok()?;
        self.size += bytes;
        // The header and the slots are whole words, so the address is aligned.
        Some(mapped.cast())
    }
}

#[cfg(test)]
mod tests {
    use lavascope_trace::Tail;

    use super::*;

    #[test]
    fn what_was_written_is_in_the_file_without_a_word_to_anybody() {
        let folder = std::env::temp_dir().join(format!("lavascope-tail-{}", std::process::id()));
        let storage = TailStorage::create(&folder, 77, 0).expect("a file in the folder for such");
        let spaces: Vec<ChunkSpace> = (1..=70).filter_map(|it| storage.claim(it, u64::from(it) * 10, 100)).collect();
        let large = storage.claim(71, 5, WORDS_PER_CHUNK * 3).expect("there is room");
        assert!(spaces.len() == 70 && large.len() >= WORDS_PER_CHUNK * 3);
        // A free slot has no stream number, and is reused.
        let mut spaces = spaces.into_iter();
        let first = spaces.next().expect("there are 70");
        let place = first.words();
        storage.release(first);
        let again = storage.claim(72, 0, 1).expect("there is room");
        assert_eq!(again.words(), place);
        let tail = Tail::read(&std::fs::read(&folder).expect("it is there")).expect("it is one");
        assert_eq!(tail.header().id, 77);
        let mut streams = tail.streams();
        streams.sort_unstable();
        assert_eq!(streams, (2..=72).collect::<Vec<u32>>());
        storage.remove();
        assert!(!folder.exists());
    }
}
