//! Packing in straight lines: what the generated code for the hottest commands is made of.
//!
//! First the size of the whole record is computed and claimed at once, then everything is stored. What is unusual,
//! a chain above all, is found while computing the size, and the walker does it.
//!
//! Unsafe here rests on what the walker's does: the parameters are those of a call whose pointers are valid as the
//! specification demands, see [`crate::Packer::enter`].

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{Command, HandleType, Pod, Ptr};
use lavascope_record::encoding::{CALL_MAX, HEADER_SIZE};

use crate::pack::IdResolver;
use crate::record_buffer::RecordBuffer;

pub use crate::generated::*;

/// A structure or parameter image that can be stored in a straight line.
///
/// # Safety
///
/// `WORDS` is the size in words, rounded up. `finish_copy` appends exactly the blocks that `trailing_words` counts, and else writes into
/// the copy of `it` alone, at multiples of eight where it writes words.
pub(crate) unsafe trait FastPack: Pod {
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
    unsafe fn trailing_words(_it: &Self) -> Option<usize> {
        Some(0)
    }

    /// Completes the copy of `it` at `at`: padding, handles, pointers.
    ///
    /// # Safety
    ///
    /// `it` keeps the contract of [`FastPack::trailing_words`], which gave a number. The copy lies at `at`, a multiple of the
    /// alignment, in the record being stored, which has room for so many words at its cursor.
    #[inline(always)]
    unsafe fn finish_copy<I: IdResolver + ?Sized>(_it: &Self, _at: usize, _lines: &mut RecordWriter<'_, I>) {}
}

/// Words of an array of bytes.
#[inline(always)]
pub(crate) fn byte_words(address: u64, size: usize) -> usize {
    if address == 0 { 0 } else { size.div_ceil(8) }
}

/// Words of an array of structures and of all that is behind them.
///
/// # Safety
///
/// `first` is null or leads to `count` elements, each of which keeps the contract of [`FastPack::trailing_words`].
#[inline(always)]
pub(crate) unsafe fn array_words<T: FastPack>(first: Ptr<T>, count: usize) -> Option<usize> {
    if first.is_null() {
        return Some(0);
    }
    let mut words = (size_of::<T>() * count).div_ceil(8);
    if !T::IS_FLAT {
        for index in 0..count {
            // SAFETY: `first` is not null, so by the contract it leads to `count` elements, and `index` is less.
            let value = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: by the contract each element keeps that of `trailing_words`.
            words += unsafe { T::trailing_words(value) }?;
        }
    }
    Some(words)
}

/// Where records are stored: in a stream of their own, or right where they shall stay.
///
/// # Safety
///
/// What [`RecordSpace::claim`] gives must lead to room for so many words that nobody else uses until the next call on the space.
pub unsafe trait RecordSpace {
    /// Room for a record of so many words, which the caller writes.
    fn claim(&mut self, words: usize) -> *mut u64;

    /// The record, now that it is written.
    ///
    /// # Safety
    ///
    /// `words` must be what was claimed last, and every word of it written.
    unsafe fn commit(&mut self, words: usize) -> &[u64];
}

// SAFETY: `claim_record` reserves room for so many words behind the last one, and a stream is one thread's at a time.
unsafe impl RecordSpace for RecordBuffer {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.claim_record(words)
    }

    #[inline(always)]
    unsafe fn commit(&mut self, words: usize) -> &[u64] {
        // SAFETY: `claim` is `claim_record`, so by the contract that one was asked for `words`, and they are written.
        unsafe { self.commit_record(words) }
    }
}

/// A record being stored.
pub(crate) struct RecordWriter<'a, I: ?Sized> {
    base: *mut u8,
    /// Where the next block goes, in bytes.
    cursor: usize,
    ids: &'a I,
}

impl<I: IdResolver + ?Sized> RecordWriter<'_, I> {
    /// Stores the record of a call with these parameters.
    ///
    /// # Safety
    ///
    /// `it` keeps the contract of [`FastPack::trailing_words`].
    #[inline(always)]
    pub(crate) unsafe fn write_record<'s, S: RecordSpace, T: FastPack>(
        space: &'s mut S,
        ids: &I,
        command: Command,
        call: u64,
        value: &T,
    ) -> Option<&'s [u64]> {
        // SAFETY: `it` keeps the contract of `trailing_words`, by that of this function.
        let words = HEADER_SIZE / 8 + T::WORDS + unsafe { T::trailing_words(value) }?;
        let base = space.claim(words).cast::<u8>();
        let mut lines = RecordWriter { base, cursor: HEADER_SIZE + T::WORDS * 8, ids };
        // SAFETY: the head is the first two words of the record, which `RecordSpace` gave room for.
        unsafe { lines.word(0, words as u64 | (command as u64) << 32) };
        // SAFETY: the second word of the head.
        unsafe { lines.word(8, call & CALL_MAX) };
        // SAFETY: `RecordSpace` gave room for the head, `WORDS` words of parameters, which `FastPack` says is their size, and more;
        // nobody else has that, so it is apart from `it`.
        unsafe { std::ptr::copy_nonoverlapping(value, base.add(HEADER_SIZE).cast::<T>(), 1) };
        // SAFETY: `trailing_words` counted what comes behind the copy at `HEADER_SIZE`, and the record has room for it at the cursor.
        unsafe { T::finish_copy(value, HEADER_SIZE, &mut lines) };
        debug_assert_eq!(lines.cursor, words * 8, "the size was computed before");
        // SAFETY: `words` were claimed. Head and parameters are written, and `finish_copy` writes the blocks that `trailing_words`
        // counted, as `FastPack` demands.
        Some(unsafe { space.commit(words) })
    }

    /// # Safety
    ///
    /// A word of the record begins at `at`, a multiple of eight.
    #[inline(always)]
    pub(crate) unsafe fn word(&mut self, at: usize, value: u64) {
        // SAFETY: the word is in the record, which `RecordSpace` gave room for, by the contract.
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
        // SAFETY: the bytes are in the record, which `RecordSpace` gave room for, by the contract.
        unsafe { self.base.add(at).write_bytes(0, size) };
    }

    /// # Safety
    ///
    /// As for [`RecordWriter::word`].
    #[inline(always)]
    pub(crate) unsafe fn handle(&mut self, at: usize, ty: HandleType, handle: u64, access: HandleAccess) {
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
    /// As for [`RecordWriter::slot`].
    #[inline(always)]
    pub(crate) unsafe fn values(&mut self, at: usize, address: u64, size: usize) {
        // SAFETY: `slot` asks for what this function asks for, of the same three numbers.
        unsafe { self.slot(at, address, size) };
    }

    /// # Safety
    ///
    /// As for [`RecordWriter::slot`], of `count` handles.
    #[inline(always)]
    pub(crate) unsafe fn handles(
        &mut self,
        at: usize,
        address: u64,
        count: usize,
        ty: HandleType,
        access: HandleAccess,
    ) {
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
    /// As for [`RecordWriter::slot`], of `count` elements that keep the contract of [`FastPack::trailing_words`], with room for what is
    /// behind them, too.
    #[inline(always)]
    pub(crate) unsafe fn blocks<T: FastPack>(&mut self, at: usize, first: Ptr<T>, count: usize) {
        // SAFETY: by the contract `first` leads to `count` elements, and there is room for them.
        let Some(block) = (unsafe { self.slot(at, first.0, count * size_of::<T>()) }) else { return };
        if T::IS_FLAT {
            return;
        }
        for index in 0..count {
            // SAFETY: `slot` gave a block, so `first` is not null; by the contract it leads to `count` elements.
            let value = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: the element keeps the contract of `trailing_words`. `slot` copied it to here, and the record has room for
            // what is behind it.
            unsafe { T::finish_copy(value, block + index * size_of::<T>(), self) };
        }
    }
}
