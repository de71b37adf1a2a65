//! What the two ends of a queue share: the number of complete words in a chunk, and the link to the next chunk.
//!
//! Compiled twice: with the atomics of the standard library, and with those of `loom` for a test of all interleavings.

use super::atomics::{AtomicUsize, OnceLock, Ordering};

/// Called by the writing end: the first `words` words of the chunk are complete and never change again.
#[inline(always)]
pub(crate) fn commit(counter: &AtomicUsize, words: usize) {
    // Pairs with `committed`: a thread that sees the number also sees the words.
    counter.store(words, Ordering::Release);
}

/// Called by the reading end: the number of complete words.
#[inline(always)]
pub(crate) fn committed(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Acquire)
}

/// Called by the reading end after `at` words of a chunk: the next chunk, if this one is read completely.
pub(crate) fn next_chunk<'a, C>(counter: &AtomicUsize, next: &'a OnceLock<C>, at: usize) -> Option<&'a C> {
    // The next chunk is loaded first. Once it exists, this chunk does not grow any more.
    let next = next.get()?;
    (at == committed(counter)).then_some(next)
}
