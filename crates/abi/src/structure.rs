//! From a type to its layout.

use lavascope_types::Pod;

use crate::desc::Layout;

/// A structure, union or parameter image that the tables describe.
pub trait Structure: Pod {
    // Not a constant: the compiler would check everything that it leads to, once per structure.
    fn layout() -> &'static Layout;

    /// A value of zeros with its structure type set.
    fn zeroed() -> Self {
        // SAFETY: zero is a valid bit pattern of every `Pod`.
        let mut value: Self = unsafe { std::mem::zeroed() };
        if let Some(s_type) = Self::layout().s_type() {
            // SAFETY: a structure with a structure type begins with it, and it is an `i32`.
            unsafe { std::ptr::from_mut(&mut value).cast::<i32>().write(s_type) };
        }
        value
    }
}
