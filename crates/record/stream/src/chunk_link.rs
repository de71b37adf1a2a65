//! What the two ends of a queue tell each other: how many words of a chunk are complete, and where it goes on.
//!
//! Compiled twice: with the atomics of the standard library, and for the test that goes through all interleavings.

use super::atomics::{AtomicUsize, OnceLock, Ordering};

/// By the writing end: so many words of the chunk are complete, and never change again.
#[inline(always)]
pub(crate) fn commit(counter: &AtomicUsize, words: usize) {
    // Pairs with `committed`: who sees the number sees the words.
    counter.store(words, Ordering::Release);
}

/// By the reading end: the words that are complete.
#[inline(always)]
pub(crate) fn committed(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Acquire)
}

/// By the reading end, which has read `at` words of a chunk: the chunk behind it, if all of this one was read.
pub(crate) fn next_chunk<'a, C>(counter: &AtomicUsize, next: &'a OnceLock<C>, at: usize) -> Option<&'a C> {
    // The next chunk is looked for first: once it is there, this one does not grow any more.
    let next = next.get()?;
    (at == committed(counter)).then_some(next)
}
