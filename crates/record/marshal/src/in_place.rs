//! In-place unpacking: the functions that the generated code for frequent commands calls.
//!
//! The body of a record has the layout of the C parameters, with ids instead of handles and offsets instead of pointers
//! (an *image*). First, the code checks the whole record, as strictly as `check` of `record`. Then handles replace ids,
//! and addresses replace offsets. If the record has anything unusual, for example a `pNext` chain, it stays unchanged,
//! and the general code checks and unpacks it (`check`, `unpack`).

use lavascope_abi::{HandleType, ObjectId, Pod, Ptr};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader};

use crate::unpack::{HandleResolver, opaque_address};

pub use crate::generated::in_place::unpacker_for;

/// Converts a record into C memory in place. Returns false and changes nothing if only `unpack` can do it.
pub type UnpackInPlace<H> = fn(&mut [u64], &H) -> bool;

/// Parameters or a structure that can be unpacked in place.
///
/// Only implementations get an [`InPlaceChecker`] or an [`InPlaceWriter`], so no other code can access offsets through
/// them.
///
/// # Safety
///
/// `check_at` accesses only the `SIZE` bytes of the image at `at` and the blocks that it got, and words only at
/// multiples of eight. `unpack_at` accesses only offsets that `check_at` accessed for the same image, after it returned
/// true.
pub(crate) unsafe trait InPlaceImage: Pod {
    /// Size in bytes.
    const SIZE: usize;
    /// Whether it has no pointers and no handles, so that nothing is to be unpacked.
    const IS_FLAT: bool;

    /// Whether the image at `at` and all of its blocks are valid.
    #[inline(always)]
    fn check_at(_at: usize, _it: &mut InPlaceChecker<'_>) -> bool {
        true
    }

    /// Replaces ids and offsets. The image must have passed `check_at`.
    #[inline(always)]
    fn unpack_at<H: HandleResolver + ?Sized>(_at: usize, _it: &mut InPlaceWriter<'_, H>) {}
}

/// Unpacks the record of a call with parameters `T`, without order edges.
pub(crate) fn unpack_record<T: InPlaceImage, H: HandleResolver + ?Sized>(words: &mut [u64], handles: &H) -> bool {
    let first = HEADER_SIZE + T::SIZE.next_multiple_of(8);
    if words.len() * 8 < first || RecordHeader::from_words(words[0], 0).omissions != 0 {
        return false;
    }
    let mut checker = InPlaceChecker { words, cursor: first };
    // `InPlaceChecker` checks that the padding after a block is zero.
    if !T::check_at(HEADER_SIZE, &mut checker) || checker.cursor != checker.words.len() * 8 {
        return false;
    }
    let mut writer = InPlaceWriter { base: words.as_mut_ptr().cast(), handles };
    T::unpack_at(HEADER_SIZE, &mut writer);
    true
}

/// A record that is being checked.
pub(crate) struct InPlaceChecker<'a> {
    words: &'a [u64],
    /// The offset at which the next block must begin; never after the end of the record.
    cursor: usize,
}

impl InPlaceChecker<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        debug_assert!(at.is_multiple_of(8) && at < self.cursor, "only claimed words are read");
        // SAFETY: by the contract of `InPlaceImage`, `at` is in an image or in a block that it got. `block` and
        // `unpack_record` return only blocks and images that end before the cursor, which is never after the end of the
        // words.
        unsafe { *self.words.get_unchecked(at / 8) }
    }

    /// Reads an integer of one, two, four or eight bytes.
    #[inline(always)]
    pub(crate) fn number<const WIDTH: usize>(&self, at: usize) -> u64 {
        number::<WIDTH>(self.word(at & !7), at)
    }

    /// Whether these bytes are zero. They are whole words, or do not cross the end of a word.
    #[inline(always)]
    pub(crate) fn is_zero(&self, at: usize, size: usize) -> bool {
        let (first, end) = (at & !7, at + size);
        let mut is_zero = true;
        let mut word = first;
        while word < end {
            let low = at.saturating_sub(word);
            let high = (end - word).min(8);
            let mask = (u64::MAX >> (64 - 8 * (high - low))) << (8 * low);
            is_zero &= self.word(word) & mask == 0;
            word += 8;
        }
        is_zero
    }

    #[inline(always)]
    pub(crate) fn is_handles(&self, at: usize, count: usize, ty: HandleType) -> bool {
        (0..count).all(|it| ObjectId::from_raw_typed(self.word(at + it * 8), ty).is_some())
    }

    /// The block of a pointer: none if it is invalid, zero for a null pointer.
    #[inline(always)]
    fn block(&mut self, at: usize, count: u64, size: usize) -> Option<usize> {
        let slot = self.word(at);
        if slot == 0 {
            return Some(0);
        }
        if count == 0 {
            return (slot == Ptr::<u8>::EMPTY.0).then_some(0);
        }
        let room = self.words.len() * 8 - self.cursor;
        if slot != self.cursor as u64 || count > room as u64 {
            return None;
        }
        let bytes = count as usize * size;
        let padded = bytes.next_multiple_of(8);
        if padded > room {
            return None;
        }
        self.cursor += padded;
        (bytes == padded || self.is_zero(slot as usize + bytes, padded - bytes)).then_some(slot as usize)
    }

    #[inline(always)]
    pub(crate) fn values(&mut self, at: usize, count: u64, size: usize) -> bool {
        self.block(at, count, size).is_some()
    }

    #[inline(always)]
    pub(crate) fn handles(&mut self, at: usize, count: u64, ty: HandleType) -> bool {
        match self.block(at, count, 8) {
            None => false,
            Some(0) => true,
            Some(first) => self.is_handles(first, count as usize, ty),
        }
    }

    #[inline(always)]
    pub(crate) fn images<T: InPlaceImage>(&mut self, at: usize, count: u64) -> bool {
        match self.block(at, count, T::SIZE) {
            None => false,
            Some(first) => {
                T::IS_FLAT || first == 0 || (0..count as usize).all(|it| T::check_at(first + it * T::SIZE, self))
            }
        }
    }
}

#[inline(always)]
fn number<const WIDTH: usize>(word: u64, at: usize) -> u64 {
    (word >> (8 * (at % 8))) & (u64::MAX >> (64 - 8 * WIDTH))
}

/// A checked record that is being unpacked.
pub(crate) struct InPlaceWriter<'a, H: ?Sized> {
    base: *mut u8,
    handles: &'a H,
}

impl<H: HandleResolver + ?Sized> InPlaceWriter<'_, H> {
    #[inline(always)]
    fn read(&self, at: usize) -> u64 {
        // SAFETY: `unpack_record` creates an `InPlaceWriter` after `check_at` returned true. By the contract of
        // `InPlaceImage`, `check_at` has read this offset, too. `InPlaceChecker` allows that only if it is in the
        // record. The record consists of words, and `at` is a multiple of eight.
        unsafe { self.base.add(at).cast::<u64>().read() }
    }

    #[inline(always)]
    fn write(&mut self, at: usize, value: u64) {
        // SAFETY: by the contract of `InPlaceImage`, `check_at` has read this offset, so it is in the record.
        // `unpack_record` borrows the record mutably, and accesses it only through the `InPlaceWriter`.
        unsafe { self.base.add(at).cast::<u64>().write(value) };
    }

    #[inline(always)]
    pub(crate) fn number<const WIDTH: usize>(&self, at: usize) -> u64 {
        number::<WIDTH>(self.read(at & !7), at)
    }

    /// Replaces `count` ids by handles of this process.
    #[inline(always)]
    pub(crate) fn translate_handles(&mut self, at: usize, count: usize, ty: HandleType) {
        for value in 0..count {
            let at = at + value * 8;
            let id = ObjectId::from_raw_typed(self.read(at), ty).unwrap_or(ObjectId::NULL);
            if !id.is_null() {
                let handle = self.handles.handle(id);
                self.write(at, handle);
            }
        }
    }

    /// Replaces an offset by an address. Returns the offset if there is one.
    #[inline(always)]
    pub(crate) fn pointer(&mut self, at: usize) -> Option<usize> {
        let slot = self.read(at) as usize;
        if slot == 0 {
            return None;
        }
        let is_offset = slot >= HEADER_SIZE;
        let address = if is_offset { (self.base.expose_provenance() + slot) as u64 } else { opaque_address() };
        self.write(at, address);
        is_offset.then_some(slot)
    }

    #[inline(always)]
    pub(crate) fn handles(&mut self, at: usize, count: u64, ty: HandleType) {
        if let Some(first) = self.pointer(at) {
            self.translate_handles(first, count as usize, ty);
        }
    }

    #[inline(always)]
    pub(crate) fn images<T: InPlaceImage>(&mut self, at: usize, count: u64) {
        if let Some(first) = self.pointer(at).filter(|_| !T::IS_FLAT) {
            (0..count as usize).for_each(|it| T::unpack_at(first + it * T::SIZE, self));
        }
    }
}
