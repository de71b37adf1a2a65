//! From a type to its layout.

use lavascope_types::Pod;

use crate::desc::Layout;

/// A structure, union or parameter image that the tables describe.
///
/// # Safety
///
/// The layout must be that of the type: as large, and with the same fields at the same places.
pub unsafe trait Structure: Pod {
    // Not a constant: the compiler would check everything that it leads to, once per structure.
    fn layout() -> &'static Layout;

    /// A value of zeros with its structure type set.
    fn zeroed() -> Self {
        // SAFETY: a `Pod` has no invalid bit patterns, so zeros are a value of it.
        let mut value: Self = unsafe { std::mem::zeroed() };
        if let Some(s_type) = Self::layout().s_type() {
            // SAFETY: the layout is that of the type, by the contract of `Structure`, and `Layout::s_type` gives a number
            // only where the first field is an `sType`, which is an `i32`; the value is as aligned as its fields.
            unsafe { std::ptr::from_mut(&mut value).cast::<i32>().write(s_type) };
        }
        value
    }
}
