//! Fast packing: the functions that the generated straight-line code for frequent commands calls.
//!
//! It first computes the size of the whole record and claims it at once, then it stores everything. If it finds
//! anything unusual, for instance a chain, while computing the size, the walker packs the call.
//!
//! The unsafe code relies on the same contract as the walker: the parameters are those of a call whose pointers are
//! valid as the specification demands, see [`crate::Packer::pack_parameters`].

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{Command, HandleType, Pod, Ptr};
use lavascope_record::encoding::{CALL_MAX, HEADER_SIZE};

use crate::pack::IdResolver;
use crate::record_buffer::RecordBuffer;

pub use crate::generated::*;

/// A structure or parameter image that straight-line code can store.
///
/// # Safety
///
/// `WORDS` is the size in words, rounded up. `finish_copy` appends exactly the blocks that `trailing_words` counts.
/// Otherwise it writes only into the copy of `it`, and writes words only at multiples of eight.
pub(crate) unsafe trait FastPack: Pod {
    const WORDS: usize;
    /// Whether it has no pointers and no handles, so that copying its bytes is sufficient.
    const IS_FLAT: bool;

    /// The size in words of the blocks after it; none if the walker must pack it.
    ///
    /// # Safety
    ///
    /// Every pointer of `it` is null or points to as many elements as its length field states. The same holds for the
    /// pointers of those elements.
    #[inline(always)]
    unsafe fn trailing_words(_it: &Self) -> Option<usize> {
        Some(0)
    }

    /// Completes the copy of `it` at `at`: padding, handles, pointers.
    ///
    /// # Safety
    ///
    /// `it` satisfies the contract of [`FastPack::trailing_words`], which returned a number. The copy is at `at`, a
    /// multiple of the alignment, in the record that is being written. At its cursor the record has room for that
    /// number of words.
    #[inline(always)]
    unsafe fn finish_copy<I: IdResolver + ?Sized>(_it: &Self, _at: usize, _lines: &mut RecordWriter<'_, I>) {}
}

/// The size in words of an array of bytes.
#[inline(always)]
pub(crate) fn byte_words(address: u64, size: usize) -> usize {
    if address == 0 { 0 } else { size.div_ceil(8) }
}

/// The size in words of an array of structures with all blocks after it.
///
/// # Safety
///
/// `first` is null or points to `count` elements that satisfy the contract of [`FastPack::trailing_words`].
#[inline(always)]
pub(crate) unsafe fn array_words<T: FastPack>(first: Ptr<T>, count: usize) -> Option<usize> {
    if first.is_null() {
        return Some(0);
    }
    let mut words = (size_of::<T>() * count).div_ceil(8);
    if !T::IS_FLAT {
        for index in 0..count {
            // SAFETY: `first` is not null, so by the contract it points to `count` elements, and `index` is less.
            let value = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: by the contract each element satisfies that of `trailing_words`.
            words += unsafe { T::trailing_words(value) }?;
        }
    }
    Some(words)
}

/// Where records are written: to a buffer, or directly to their final place.
///
/// # Safety
///
/// [`RecordSpace::claim`] must return a pointer to that many words, which nobody else uses until the next call on the
/// space.
pub unsafe trait RecordSpace {
    /// Claims space for a record of this size, which the caller writes.
    fn claim(&mut self, words: usize) -> *mut u64;

    /// The record in the space that was claimed. Does not yet publish it: a stream has a commit of its own.
    ///
    /// # Safety
    ///
    /// `words` must be the size that was claimed last, and every word must be written.
    unsafe fn written_record(&mut self, words: usize) -> &[u64];
}

// SAFETY: `claim_record` reserves the words after the last record, and only one thread uses a buffer.
unsafe impl RecordSpace for RecordBuffer {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.claim_record(words)
    }

    #[inline(always)]
    unsafe fn written_record(&mut self, words: usize) -> &[u64] {
        // SAFETY: `claim` is `claim_record`. By the contract `words` were claimed and are written.
        unsafe { self.commit_record(words) }
    }
}

/// A record that is being written.
pub(crate) struct RecordWriter<'a, I: ?Sized> {
    base: *mut u8,
    /// The offset in bytes of the next block.
    cursor: usize,
    ids: &'a I,
}

impl<I: IdResolver + ?Sized> RecordWriter<'_, I> {
    /// Writes the record of a call with these parameters.
    ///
    /// # Safety
    ///
    /// `it` satisfies the contract of [`FastPack::trailing_words`].
    #[inline(always)]
    pub(crate) unsafe fn write_record<'s, S: RecordSpace, T: FastPack>(
        space: &'s mut S,
        ids: &I,
        command: Command,
        call: u64,
        value: &T,
    ) -> Option<&'s [u64]> {
        // SAFETY: by the contract of this function, `it` satisfies that of `trailing_words`.
        let words = HEADER_SIZE / 8 + T::WORDS + unsafe { T::trailing_words(value) }?;
        let base = space.claim(words).cast::<u8>();
        let mut lines = RecordWriter { base, cursor: HEADER_SIZE + T::WORDS * 8, ids };
        // SAFETY: the header is the first two words of the record, for which `RecordSpace` returned space.
        unsafe { lines.word(0, words as u64 | (command as u64) << 32) };
        // SAFETY: this is the second word of the header.
        unsafe { lines.word(8, call & CALL_MAX) };
        // SAFETY: `RecordSpace` returned space for the header, for `WORDS` words of parameters, which `FastPack`
        // guarantees as their size, and for the blocks. Nobody else uses it, so it does not overlap `it`.
        unsafe { std::ptr::copy_nonoverlapping(value, base.add(HEADER_SIZE).cast::<T>(), 1) };
        // SAFETY: `trailing_words` counted the blocks after the copy at `HEADER_SIZE`, and the record has space for
        // them at the cursor.
        unsafe { T::finish_copy(value, HEADER_SIZE, &mut lines) };
        debug_assert_eq!(lines.cursor, words * 8, "the size was computed before");
        // SAFETY: `words` were claimed. Header and parameters are written, and by the contract of `FastPack`
        // `finish_copy` writes the blocks that `trailing_words` counted.
        Some(unsafe { space.written_record(words) })
    }

    /// # Safety
    ///
    /// `at` is a multiple of eight, and the word there is in the record.
    #[inline(always)]
    pub(crate) unsafe fn word(&mut self, at: usize, value: u64) {
        // SAFETY: by the contract the word is in the record, for which `RecordSpace` returned space.
        unsafe { self.base.add(at).cast::<u64>().write(value) };
    }

    /// # Safety
    ///
    /// `at` is a multiple of eight, and the word there is in the record and was written.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, at: usize) -> u64 {
        // SAFETY: by the contract the word is in the record and was written.
        unsafe { self.base.add(at).cast::<u64>().read() }
    }

    /// # Safety
    ///
    /// The bytes are in the record.
    #[inline(always)]
    pub(crate) unsafe fn zero(&mut self, at: usize, size: usize) {
        // SAFETY: by the contract the bytes are in the record, for which `RecordSpace` returned space.
        unsafe { self.base.add(at).write_bytes(0, size) };
    }

    /// # Safety
    ///
    /// As for [`RecordWriter::word`].
    #[inline(always)]
    pub(crate) unsafe fn handle(&mut self, at: usize, ty: HandleType, handle: u64, access: HandleAccess) {
        let id = if handle == 0 { 0 } else { self.ids.id(ty, handle, access).raw() };
        // SAFETY: by the contract `at` is a word of the record.
        unsafe { self.word(at, id) };
    }

    /// Writes a pointer and copies its target into a new block. Returns the offset of the block if there is one.
    ///
    /// # Safety
    ///
    /// `at` is the offset of a word of the record. `address` is null or points to `size` bytes, for which the record
    /// has space at the cursor.
    #[inline(always)]
    unsafe fn slot(&mut self, at: usize, address: u64, size: usize) -> Option<usize> {
        let first = self.cursor;
        let slot = match (address, size) {
            (0, _) => 0,
            (_, 0) => Ptr::<u8>::EMPTY.0,
            _ => first as u64,
        };
        // SAFETY: by the contract `at` is a word of the record.
        unsafe { self.word(at, slot) };
        if address == 0 || size == 0 {
            return None;
        }
        self.cursor = first + size.next_multiple_of(8);
        if !size.is_multiple_of(8) {
            // SAFETY: this is the last word of the block, for which the record has space by the contract.
            unsafe { self.word(self.cursor - 8, 0) };
        }
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: `address` is not null here. So by the contract it points to `size` bytes, and the record has space
        // for them at `first`. Nobody else uses the record, so the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, self.base.add(first), size) };
        Some(first)
    }

    /// # Safety
    ///
    /// As for [`RecordWriter::slot`].
    #[inline(always)]
    pub(crate) unsafe fn values(&mut self, at: usize, address: u64, size: usize) {
        // SAFETY: `slot` has the same contract for the same arguments.
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
        // SAFETY: by the contract `address` points to `count` handles of eight bytes each, and there is space for them.
        let Some(first) = (unsafe { self.slot(at, address, count * 8) }) else { return };
        for index in 0..count {
            // SAFETY: `slot` copied `count` words to `first`, a multiple of eight, and `index` is less.
            let handle = unsafe { self.read(first + index * 8) };
            // SAFETY: this word was just read.
            unsafe { self.handle(first + index * 8, ty, handle, access) };
        }
    }

    /// # Safety
    ///
    /// As for [`RecordWriter::slot`], for `count` elements that satisfy the contract of [`FastPack::trailing_words`].
    /// The record has space for their blocks, too.
    #[inline(always)]
    pub(crate) unsafe fn blocks<T: FastPack>(&mut self, at: usize, first: Ptr<T>, count: usize) {
        // SAFETY: by the contract `first` points to `count` elements, and there is space for them.
        let Some(block) = (unsafe { self.slot(at, first.0, count * size_of::<T>()) }) else { return };
        if T::IS_FLAT {
            return;
        }
        for index in 0..count {
            // SAFETY: `slot` returned a block, so `first` is not null; by the contract it points to `count` elements.
            let value = unsafe { &*first.as_ptr().add(index) };
            // SAFETY: the element satisfies the contract of `trailing_words`. `slot` copied it here, and the record has
            // space for its blocks.
            unsafe { T::finish_copy(value, block + index * size_of::<T>(), self) };
        }
    }
}
