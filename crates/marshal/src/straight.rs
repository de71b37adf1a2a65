//! Packing in straight lines: what the generated code for the hottest commands is made of.
//!
//! First the size of the whole record is computed and claimed at once, then everything is stored. What is unusual,
//! a chain above all, is found while computing the size, and the walker does it.
//!
//! Unsafe here rests on the same promise as the walker's: whoever packs hands over the parameters of a call whose
//! pointers are valid as the specification demands.

use lavascope_abi::desc::Access;
use lavascope_abi::{Command, HandleType, Pod, Ptr};
use lavascope_event::record::{CALL_MAX, HEAD_SIZE};

use crate::pack::Ids;
use crate::stream::Stream;

pub use crate::generated::*;

/// A structure or parameter image that can be stored in a straight line.
pub(crate) trait Block: Pod {
    const WORDS: usize;
    /// Whether its bytes are all there is to it.
    const IS_FLAT: bool;

    /// Words of the blocks behind it; none where the walker must do it.
    #[inline(always)]
    fn behind(_it: &Self) -> Option<usize> {
        Some(0)
    }

    /// Mends the copy of `it` at `at`: padding, handles, pointers.
    #[inline(always)]
    fn finish<I: Ids + ?Sized>(_it: &Self, _at: usize, _lines: &mut Lines<'_, I>) {}
}

/// Words of an array of bytes.
#[inline(always)]
pub(crate) fn bytes(address: u64, size: usize) -> usize {
    if address == 0 { 0 } else { size.div_ceil(8) }
}

/// Words of an array of structures and of all that is behind them.
#[inline(always)]
pub(crate) fn array<T: Block>(first: Ptr<T>, count: usize) -> Option<usize> {
    if first.is_null() {
        return Some(0);
    }
    let mut words = (size_of::<T>() * count).div_ceil(8);
    if !T::IS_FLAT {
        for index in 0..count {
            // SAFETY: a pointer that is not null is valid for its count; see the module's promise.
            words += T::behind(unsafe { &*first.as_ptr().add(index) })?;
        }
    }
    Some(words)
}

/// Where records are stored: in a stream of their own, or right where they shall stay.
pub trait Space {
    /// Room for a record of so many words, which the caller writes.
    fn claim(&mut self, words: usize) -> *mut u64;

    /// The record, now that it is written.
    ///
    /// # Safety
    ///
    /// `words` must be what was claimed last, and every word of it written.
    unsafe fn written(&mut self, words: usize) -> &[u64];
}

impl Space for Stream {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.claim_record(words)
    }

    #[inline(always)]
    unsafe fn written(&mut self, words: usize) -> &[u64] {
        // SAFETY: the caller's word.
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
    /// As for `Packer::new`.
    #[inline(always)]
    pub(crate) unsafe fn record<'s, S: Space, T: Block>(
        space: &'s mut S,
        ids: &I,
        command: Command,
        call: u64,
        it: &T,
    ) -> Option<&'s [u64]> {
        let words = HEAD_SIZE / 8 + T::WORDS + T::behind(it)?;
        let base = space.claim(words).cast::<u8>();
        let mut lines = Lines { base, cursor: HEAD_SIZE + T::WORDS * 8, ids };
        lines.word(0, words as u64 | (command as u64) << 32);
        lines.word(8, call & CALL_MAX);
        // SAFETY: the record was claimed with room for the parameters.
        unsafe { std::ptr::copy_nonoverlapping(it, base.add(HEAD_SIZE).cast::<T>(), 1) };
        T::finish(it, HEAD_SIZE, &mut lines);
        debug_assert_eq!(lines.cursor, words * 8, "the size was computed before");
        // SAFETY: head, parameters and blocks fill the record, as the assertion says.
        Some(unsafe { space.written(words) })
    }

    #[inline(always)]
    pub(crate) fn word(&mut self, at: usize, value: u64) {
        // SAFETY: `at` lies in the record, whose size was computed from the same call, and is a multiple of eight.
        unsafe { self.base.add(at).cast::<u64>().write(value) };
    }

    #[inline(always)]
    pub(crate) fn read(&self, at: usize) -> u64 {
        // SAFETY: as in `word`; the copy of the structure is there already.
        unsafe { self.base.add(at).cast::<u64>().read() }
    }

    #[inline(always)]
    pub(crate) fn zero(&mut self, at: usize, size: usize) {
        // SAFETY: padding of a structure that lies in the record.
        unsafe { self.base.add(at).write_bytes(0, size) };
    }

    #[inline(always)]
    pub(crate) fn handle(&mut self, at: usize, ty: HandleType, handle: u64, access: Access) {
        let id = if handle == 0 { 0 } else { self.ids.id(ty, handle, access).raw() };
        self.word(at, id);
    }

    /// What goes into the slot of a pointer, and where its block begins if there is one.
    #[inline(always)]
    fn slot(&mut self, at: usize, address: u64, size: usize) -> Option<usize> {
        let first = self.cursor;
        let slot = match (address, size) {
            (0, _) => 0,
            (_, 0) => Ptr::<u8>::EMPTY.0,
            _ => first as u64,
        };
        self.word(at, slot);
        if address == 0 || size == 0 {
            return None;
        }
        self.cursor = first + size.next_multiple_of(8);
        if !size.is_multiple_of(8) {
            self.word(self.cursor - 8, 0);
        }
        let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the source is valid for its count, see the module's promise; the room was claimed.
        unsafe { std::ptr::copy_nonoverlapping(from, self.base.add(first), size) };
        Some(first)
    }

    #[inline(always)]
    pub(crate) fn values(&mut self, at: usize, address: u64, size: usize) {
        self.slot(at, address, size);
    }

    #[inline(always)]
    pub(crate) fn handles(&mut self, at: usize, address: u64, count: usize, ty: HandleType, access: Access) {
        let Some(first) = self.slot(at, address, count * 8) else { return };
        for index in 0..count {
            let handle = self.read(first + index * 8);
            self.handle(first + index * 8, ty, handle, access);
        }
    }

    #[inline(always)]
    pub(crate) fn blocks<T: Block>(&mut self, at: usize, first: Ptr<T>, count: usize) {
        let Some(block) = self.slot(at, first.0, count * size_of::<T>()) else { return };
        if T::IS_FLAT {
            return;
        }
        for index in 0..count {
            // SAFETY: a pointer that is not null is valid for its count; see the module's promise.
            let it = unsafe { &*first.as_ptr().add(index) };
            T::finish(it, block + index * size_of::<T>(), self);
        }
    }
}
