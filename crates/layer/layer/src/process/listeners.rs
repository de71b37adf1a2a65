//! The listeners that need the records of calls, as a set that fits into a byte.

use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of listeners. Functions of ours that replace the driver's count as listeners as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Listeners(u8);

impl Listeners {
    pub(crate) const NONE: Listeners = Listeners(0);
    /// Records are printed on the application's thread, before the driver sees the call.
    pub(crate) const PRINTS: Listeners = Listeners(1);
    /// Records go into streams, which the reader reads.
    pub(crate) const READER: Listeners = Listeners(2);
    /// Records are validated on the application's thread.
    pub(crate) const INLINE: Listeners = Listeners(4);
    /// A validation wants the stacks of calls.
    pub(crate) const STACKS: Listeners = Listeners(8);
    /// Needs no records, but replaces functions of the driver to check shaders.
    pub(crate) const GPU: Listeners = Listeners(16);
    /// Needs no records, but replaces functions of the driver to copy presented images.
    pub(crate) const PICTURES: Listeners = Listeners(32);
    /// Needs no records, but replaces functions of the driver to offer headless surfaces.
    pub(crate) const SURFACES: Listeners = Listeners(64);
    /// If all listeners of a call are in this set, the call is packed straight into the stream. Stacks are taken beside the
    /// record.
    pub(crate) const WITHOUT_RECORDS: Listeners = Listeners(8 | 32 | 64);
    /// A bug of the layer disabled it: there are no listeners any more.
    pub(super) const DISABLED: Listeners = Listeners(128);

    #[inline(always)]
    pub(crate) const fn from_bits(bits: u8) -> Listeners {
        Listeners(bits)
    }

    #[inline(always)]
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether at least one of `others` is in the set.
    #[inline(always)]
    pub(crate) const fn has_any(self, others: Listeners) -> bool {
        self.0 & others.0 != 0
    }
}

impl Listeners {
    /// The set without `others`.
    #[inline(always)]
    pub(crate) const fn without(self, others: Listeners) -> Listeners {
        Listeners(self.0 & !others.0)
    }
}

impl BitOr for Listeners {
    type Output = Listeners;

    #[inline(always)]
    fn bitor(self, other: Listeners) -> Listeners {
        Listeners(self.0 | other.0)
    }
}

impl BitOrAssign for Listeners {
    #[inline(always)]
    fn bitor_assign(&mut self, other: Listeners) {
        self.0 |= other.0;
    }
}

impl BitAnd for Listeners {
    type Output = Listeners;

    #[inline(always)]
    fn bitand(self, other: Listeners) -> Listeners {
        Listeners(self.0 & other.0)
    }
}
