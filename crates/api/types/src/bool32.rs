//! `VkBool32`: a number, of which only zero is false.

use crate::pod::Pod;

/// `VkBool32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bool32(pub u32);

impl Bool32 {
    pub const FALSE: Bool32 = Bool32(0);
    pub const TRUE: Bool32 = Bool32(1);

    pub const fn is_true(self) -> bool {
        self.0 != 0
    }
}

// SAFETY: transparent, and its one field is a `u32`, of which every bit pattern is a value.
unsafe impl Pod for Bool32 {}
