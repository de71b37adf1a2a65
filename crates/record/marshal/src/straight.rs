//! Packing in straight lines: what the generated code for the hottest commands is made of.
//!
//! First the size of the whole record is computed and claimed at once, then everything is stored. What is unusual,
//! a chain above all, is found while computing the size, and the walker does it.
//!
//! Unsafe here rests on what the walker's does: the parameters are those of a call whose pointers are valid as the
//! specification demands, see [`crate::Packer::enter`].

use lavascope_abi::desc::Access;
use lavascope_abi::{Command, HandleType, Pod, Ptr};
use lavascope_record::record::{CALL_MAX, HEAD_SIZE};

use crate::pack::Ids;
use crate::stream::Stream;

pub use crate::generated::*;

/// A structure or parameter image that can be stored in a straight line.
///
/// # Safety
///
/// `WORDS` is the size in words, rounded up. `finish` appends exactly the blocks that `behind` counts, and else writes into
/// the copy of `it` alone, at multiples of eight where it writes words.
pub(crate) unsafe trait Block: Pod {
    const WORDS: usize;
    /// Whether its bytes are all there is to it.
    const IS_FLAT: bool;

    /// Words of the blocks behind it; none where the walker must do it.
    ///
    /// # Safety
    ///
    /// Every pointer of `it` is null or leads to as many elements as the field says that counts them, and so do the
    /// pointers of those elements.
    #[inline(always)]
    unsafe fn behind(_it: &Self) -> Option<usize> {
        Some(0)
    }

    /// Completes the copy of `it` at `at`: padding, handles, pointers.
    ///
    /// # Safety
    ///
    /// `it` keeps the contract of [`Block::behind`], which gave a number. The copy lies at `at`, a multiple of the
    /// alignment, in the record being stored, which has room for so many words at its cursor.
    #[inline(always)]
    unsafe fn finish<I: Ids + ?Sized>(_it: &Self, _at: usize, _lines: &mut Lines<'_, I>) {}
}

/// Words of an array of bytes.
#[inline(always)]
pub(crate) fn bytes(address: u64, size: usize) -> usize {
    if address == 0 { 0 } else { size.div_ceil(8) }
}

/// Words of an array of structures and of all that is behind them.
///
/// # Safety
///
/// `first` is null or leads to `count` elements, each of which keeps the contract of [`Block::behind`].
#[inline(always)]
pub(crate) unsafe fn array<T: Block>(first: Ptr<T>, count: usize) -> Option<usize> {
    if first.is_null() {
        return Some(0);
    }
    let mut words = (size_of::<T>() * count).div_ceil(8);
    if !T::IS_FLAT {
        for index in 0..count {
            // SAFETY: `first` is not null, so by the contract it leads to `count` elements, and `index` is less.
            let it = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: by the contract each element keeps that of `behind`.
            words += unsafe { T::behind(it) }?;
        }
    }
    Some(words)
}

/// Where records are stored: in a stream of their own, or right where they shall stay.
///
/// # Safety
///
/// What [`Space::claim`] gives must lead to room for so many words that nobody else uses until the next call on the space.
pub unsafe trait Space {
    /// Room for a record of so many words, which the caller writes.
    fn claim(&mut self, words: usize) -> *mut u64;

    /// The record, now that it is written.
    ///
    /// # Safety
    ///
    /// `words` must be what was claimed last, and every word of it written.
    unsafe fn written(&mut self, words: usize) -> &[u64];
}

// SAFETY: `claim_record` reserves room for so many words behind the last one, and a stream is one thread's at a time.
unsafe impl Space for Stream {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.claim_record(words)
    }

    #[inline(always)]
    unsafe fn written(&mut self, words: usize) -> &[u64] {
        // SAFETY: `claim` is `claim_record`, so by the contract that one was asked for `words`, and they are written.
        unsafe { self.commit_record(words) }
    }
}

/// A record being stored.
pub(crate) struct Lines<'a, I: ?Sized> {
    base: *mut u8,
    /// Where the next block goes, in bytes.
    cursor: usize,
    ids: &'a I,
}

impl<I: Ids + ?Sized> Lines<'_, I> {
    /// Stores the record of a call with these parameters.
    ///
    /// # Safety
    ///
    /// `it` keeps the contract of [`Block::behind`].
    #[inline(always)]
    pub(crate) unsafe fn record<'s, S: Space, T: Block>(
        space: &'s mut S,
        ids: &I,
        command: Command,
        call: u64,
        it: &T,
    ) -> Option<&'s [u64]> {
        // SAFETY: `it` keeps the contract of `behind`, by that of this function.
        let words = HEAD_SIZE / 8 + T::WORDS + unsafe { T::behind(it) }?;
        let base = space.claim(words).cast::<u8>();
        let mut lines = Lines { base, cursor: HEAD_SIZE + T::WORDS * 8, ids };
        // SAFETY: the head is the first two words of the record, which `Space` gave room for.
        unsafe { lines.word(0, words as u64 | (command as u64) << 32) };
        // SAFETY: the second word of the head.
        unsafe { lines.word(8, call & CALL_MAX) };
        // SAFETY: `Space` gave room for the head, `WORDS` words of parameters, which `Block` says is their size, and more;
        // nobody else has that, so it is apart from `it`.
        unsafe { std::ptr::copy_nonoverlapping(it, base.add(HEAD_SIZE).cast::<T>(), 1) };
        // SAFETY: `behind` counted what comes behind the copy at `HEAD_SIZE`, and the record has room for it at the cursor.
        unsafe { T::finish(it, HEAD_SIZE, &mut lines) };
        debug_assert_eq!(lines.cursor, words * 8, "the size was computed before");
        // SAFETY: `words` were claimed. Head and parameters are written, and `finish` writes the blocks that `behind`
        // counted, as `Block` demands.
        Some(unsafe { space.written(words) })
    }

    /// # Safety
    ///
    /// A word of the record begins at `at`, a multiple of eight.
    #[inline(always)]
    pub(crate) unsafe fn word(&mut self, at: usize, value: u64) {
        // SAFETY: the word is in the record, which `Space` gave room for, by the contract.
        unsafe { self.base.add(at).cast::<u64>().write(value) };
    }

    /// # Safety
    ///
    /// A word of the record that was written begins at `at`, a multiple of eight.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, at: usize) -> u64 {
        // SAFETY: the word is in the record and was written, by the contract.
        unsafe { self.base.add(at).cast::<u64>().read() }
    }

    /// # Safety
    ///
    /// The bytes are in the record.
    #[inline(always)]
    pub(crate) unsafe fn zero(&mut self, at: usize, size: usize) {
        // SAFETY: the bytes are in the record, which `Space` gave room for, by the contract.
        unsafe { self.base.add(at).write_bytes(0, size) };
    }

    /// # Safety
    ///
    /// As for [`Lines::word`].
    #[inline(always)]
    pub(crate) unsafe fn handle(&mut self, at: usize, ty: HandleType, handle: u64, access: Access) {
        let id = if handle == 0 { 0 } else { self.ids.id(ty, handle, access).raw() };
        // SAFETY: a word of the record begins at `at`, by the contract.
        unsafe { self.word(at, id) };
    }

    /// What goes into the slot of a pointer, and where its block begins if there is one.
    ///
    /// # Safety
    ///
    /// A word of the record begins at `at`. `address` is null or leads to `size` bytes, for which the record has room at
    /// the cursor.
    #[inline(always)]
    unsafe fn slot(&mut self, at: usize, address: u64, size: usize) -> Option<usize> {
        let first = self.cursor;
        let slot = match (address, size) {
            (0, _) => 0,
            (_, 0) => Ptr::<u8>::EMPTY.0,
            _ => first as u64,
        };
        // SAFETY: a word of the record begins at `at`, by the contract.
        unsafe { self.word(at, slot) };
        if address == 0 || size == 0 {
            return None;
        }
        self.cursor = first + size.next_multiple_of(8);
        if !size.is_multiple_of(8) {
            // SAFETY: the last word of the block, for which the record has room by the contract.
            unsafe { self.word(self.cursor - 8, 0) };
        }
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: `address` is not null here, so by the contract it leads to `size` bytes, and the record has room for them
        // at `first`. The record is nobody else's, so the two are apart.
        unsafe { std::ptr::copy_nonoverlapping(from, self.base.add(first), size) };
        Some(first)
    }

    /// # Safety
    ///
    /// As for [`Lines::slot`].
    #[inline(always)]
    pub(crate) unsafe fn values(&mut self, at: usize, address: u64, size: usize) {
        // SAFETY: `slot` asks for what this function asks for, of the same three numbers.
        unsafe { self.slot(at, address, size) };
    }

    /// # Safety
    ///
    /// As for [`Lines::slot`], of `count` handles.
    #[inline(always)]
    pub(crate) unsafe fn handles(&mut self, at: usize, address: u64, count: usize, ty: HandleType, access: Access) {
        // SAFETY: by the contract `address` leads to `count` handles, of eight bytes each, and there is room for them.
        let Some(first) = (unsafe { self.slot(at, address, count * 8) }) else { return };
        for index in 0..count {
            // SAFETY: `slot` copied `count` words to `first`, a multiple of eight, and `index` is less.
            let handle = unsafe { self.read(first + index * 8) };
            // SAFETY: the word that was just read.
            unsafe { self.handle(first + index * 8, ty, handle, access) };
        }
    }

    /// # Safety
    ///
    /// As for [`Lines::slot`], of `count` elements that keep the contract of [`Block::behind`], with room for what is
    /// behind them, too.
    #[inline(always)]
    pub(crate) unsafe fn blocks<T: Block>(&mut self, at: usize, first: Ptr<T>, count: usize) {
        // SAFETY: by the contract `first` leads to `count` elements, and there is room for them.
        let Some(block) = (unsafe { self.slot(at, first.0, count * size_of::<T>()) }) else { return };
        if T::IS_FLAT {
            return;
        }
        for index in 0..count {
            // SAFETY: `slot` gave a block, so `first` is not null; by the contract it leads to `count` elements.
            let it = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: the element keeps the contract of `behind`. `slot` copied it to here, and the record has room for
            // what is behind it.
            unsafe { T::finish(it, block + index * size_of::<T>(), self) };
        }
    }
}
