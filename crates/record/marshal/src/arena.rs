//! Zeroed memory with stable addresses, for calls laid out again.

use std::cell::UnsafeCell;

/// Chunks that are given out piece by piece and reused after [`Arena::clear`].
#[derive(Default)]
pub struct Arena {
    /// Cells, since what was given out is written while more is asked for.
    chunks: Vec<Box<[UnsafeCell<u64>]>>,
    /// Words used of the last chunk.
    used: usize,
}

const CHUNK_WORDS: usize = 8 * 1024;

impl Arena {
    /// Forgets everything; one chunk of the usual size is kept, and what was used of it zeroed.
    pub fn clear(&mut self) {
        let last = self.chunks.pop().map(|it| (it, self.used));
        let earlier = self.chunks.drain(..).map(|it| (it, CHUNK_WORDS));
        let kept = earlier.chain(last).find(|it| it.0.len() == CHUNK_WORDS);
        self.used = 0;
        if let Some((mut chunk, used)) = kept {
            chunk[..used].iter_mut().for_each(|it| *it.get_mut() = 0);
            self.chunks.push(chunk);
        }
    }

    /// Zeroed bytes, aligned to eight. Never null, also for none.
    pub(crate) fn claim(&mut self, size: usize) -> *mut u8 {
        let words = size.div_ceil(8).max(1);
        let fits = self.chunks.last().is_some_and(|it| it.len() - self.used >= words);
        if !fits {
            let words = vec![0_u64; words.max(CHUNK_WORDS)];
            self.chunks.push(words.into_iter().map(UnsafeCell::new).collect());
            self.used = 0;
        }
        let at = self.used;
        self.used += words;
        // A shared look at the chunk leaves the pointers into it that were given before as they are.
        match self.chunks.last() {
            Some(chunk) => UnsafeCell::raw_get(chunk[at..].as_ptr()).cast(),
            None => std::ptr::dangling_mut::<u64>().cast(),
        }
    }
}
