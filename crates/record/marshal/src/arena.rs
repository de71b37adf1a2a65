//! Zeroed memory with stable addresses, for unpacked calls.

use std::cell::UnsafeCell;

/// Chunks of memory that are handed out in pieces and reused after [`Arena::clear`].
#[derive(Default)]
pub struct Arena {
    /// Cells, because a piece may be written while another is claimed.
    chunks: Vec<Box<[UnsafeCell<u64>]>>,
    /// Used words of the last chunk.
    used: usize,
}

const CHUNK_WORDS: usize = 8 * 1024;

impl Arena {
    /// Frees all pieces. One chunk of normal size is kept, and its used part is zeroed.
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

    /// Zeroed bytes, aligned to eight. Never null, even if `size` is zero.
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
        // A shared reference to the chunk does not invalidate the pointers that were handed out before.
        match self.chunks.last() {
            Some(chunk) => UnsafeCell::raw_get(chunk[at..].as_ptr()).cast(),
            None => std::ptr::dangling_mut::<u64>().cast(),
        }
    }
}
