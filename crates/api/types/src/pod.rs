//! Plain data: types any bytes are a valid value of, and the one place where bytes become such values.

use crate::ptr::{FnPtr, Ptr};

/// A type without invalid bit patterns, without references and without drop code.
///
/// # Safety
///
/// Every field must itself be plain, and the type must be `repr(C)` or `repr(transparent)`. Nothing in it may change through
/// a shared reference.
pub unsafe trait Pod: Sized + 'static {}

/// Makes the compiler say whether a type is plain.
pub(crate) const fn assert_pod<T: Pod>() {}

/// Sees the front of `bytes` as a `T`; none if it is too short or misaligned.
pub fn cast<T: Pod>(bytes: &[u8]) -> Option<&T> {
    cast_slice(bytes, 1)?.first()
}

/// Sees the front of `bytes` as `count` values of `T`; none if it is too short or misaligned.
pub fn cast_slice<T: Pod>(bytes: &[u8], count: usize) -> Option<&[T]> {
    let size = size_of::<T>().checked_mul(count)?;
    let is_aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
    if size > bytes.len() || !is_aligned {
        return None;
    }
    // SAFETY: the conditions before say that the bytes are enough and aligned. A `Pod` has no invalid bit patterns and no
    // interior mutability, and the slice borrows what `bytes` does.
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) })
}

/// The bytes of values without padding.
pub fn bytes_of_slice(words: &[u64]) -> &[u8] {
    // SAFETY: a slice of `u64` is so many initialized bytes, without padding, and `u8` needs no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        // SAFETY: a number, or transparent with a number as its one field: every bit pattern is a value.
        unsafe impl Pod for $ty {}
    )* };
}
numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, FnPtr);

// SAFETY: transparent, and its one field with a size is a `u64`, of which every bit pattern is a value.
unsafe impl<T: 'static> Pod for Ptr<T> {}
// SAFETY: an array is its elements without anything between them, and by the bound each is plain.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}
