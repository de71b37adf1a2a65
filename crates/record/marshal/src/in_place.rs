//! Records made into C memory where they lie: what the generated code for the hottest commands is made of.
//!
//! A record is the image of its call already, with ids for handles and offsets for pointers. First everything is looked
//! at, as `check` does and as strictly; then ids become handles and offsets addresses. What is unusual, a chain above
//! all, does not fit: the record stays as it is, and the walkers check and unpack it.

use lavascope_abi::{HandleType, ObjectId, Pod, Ptr};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader};

use crate::unpack::{HandleResolver, opaque_address};

pub use crate::generated::in_place::unpacker_for;

/// Makes a record into C memory. False where only the walkers can: then nothing was changed.
pub type UnpackInPlace<H> = fn(&mut [u64], &H) -> bool;

/// Parameters or a structure that can be made into C memory where they lie.
///
/// Only its implementations are given a [`InPlaceChecker`] or a [`InPlaceWriter`], so nobody else can ask those for places.
///
/// # Safety
///
/// `check_at` asks only for places of the image at `at`, which has `SIZE` bytes, and of blocks that it was given, for
/// words at multiples of eight. `unpack_at` asks only for places that a `check_at` of the same image asked for, which
/// returned true.
pub(crate) unsafe trait InPlaceImage: Pod {
    /// Bytes of it.
    const SIZE: usize;
    /// Whether its bytes are all there is to it.
    const IS_FLAT: bool;

    /// Whether the image at `at` is what it should be, with all that is behind it.
    #[inline(always)]
    fn check_at(_at: usize, _it: &mut InPlaceChecker<'_>) -> bool {
        true
    }

    /// Changes what means something else here. It fits.
    #[inline(always)]
    fn unpack_at<H: HandleResolver + ?Sized>(_at: usize, _it: &mut InPlaceWriter<'_, H>) {}
}

/// The record of a call with parameters `T`, without order edges.
pub(crate) fn unpack_record<T: InPlaceImage, H: HandleResolver + ?Sized>(words: &mut [u64], handles: &H) -> bool {
    let first = HEADER_SIZE + T::SIZE.next_multiple_of(8);
    if words.len() * 8 < first || RecordHeader::from_words(words[0], 0).omissions != 0 {
        return false;
    }
    let mut fits = InPlaceChecker { words, cursor: first };
    // `InPlaceChecker` checks that the padding behind a block is zero.
    if !T::check_at(HEADER_SIZE, &mut fits) || fits.cursor != fits.words.len() * 8 {
        return false;
    }
    let mut placer = InPlaceWriter { base: words.as_mut_ptr().cast(), handles };
    T::unpack_at(HEADER_SIZE, &mut placer);
    true
}

/// A record being looked at.
pub(crate) struct InPlaceChecker<'a> {
    words: &'a [u64],
    /// Where the next block must begin, in bytes; never behind the end.
    cursor: usize,
}

impl InPlaceChecker<'_> {
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        debug_assert!(at.is_multiple_of(8) && at < self.cursor, "what is looked at was claimed");
        // SAFETY: by the contract of `InPlaceImage`, `at` lies in an image or block that was given, and `block` and `unpack_record` give
        // what ends before the cursor, which is never behind the end of the words.
        unsafe { *self.words.get_unchecked(at / 8) }
    }

    /// A number of one, two, four or eight bytes.
    #[inline(always)]
    pub(crate) fn number<const WIDTH: usize>(&self, at: usize) -> u64 {
        number::<WIDTH>(self.word(at & !7), at)
    }

    /// Whether so many bytes, which do not cross the end of a word unless they are whole words, are zero.
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

    /// The block behind a pointer: none where it does not fit, zero where there is nothing.
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

/// A record that fits, on its way to C memory.
pub(crate) struct InPlaceWriter<'a, H: ?Sized> {
    base: *mut u8,
    handles: &'a H,
}

impl<H: HandleResolver + ?Sized> InPlaceWriter<'_, H> {
    #[inline(always)]
    fn read(&self, at: usize) -> u64 {
        // SAFETY: `unpack_record` makes an `InPlaceWriter` after `check_at` returned true. By the contract of
        // `InPlaceImage`, `check_at` asked for this place, too. `InPlaceChecker` gives it only if it lies in the record.
        // The record is made of words, and `at` is a multiple of eight.
        unsafe { self.base.add(at).cast::<u64>().read() }
    }

    #[inline(always)]
    fn write(&mut self, at: usize, value: u64) {
        // SAFETY: by the contract of `InPlaceImage`, `check_at` asked for this place, which therefore lies in the record.
        // `unpack_record` borrows the record mutably, and accesses it through the `InPlaceWriter` alone.
        unsafe { self.base.add(at).cast::<u64>().write(value) };
    }

    #[inline(always)]
    pub(crate) fn number<const WIDTH: usize>(&self, at: usize) -> u64 {
        number::<WIDTH>(self.read(at & !7), at)
    }

    /// Handles of here for so many ids.
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

    /// The address for an offset, which is given if there is one.
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
