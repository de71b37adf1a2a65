//! Checks that were made, and in which block.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The identity of an access: its shape, and the value of its index, or the number of several.
pub(crate) type AccessKey = (u32, u32);

/// Numbers of several values are no ids.
const LIST: u32 = 1 << 31;

/// The values of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedCheck {
    /// In this block.
    pub(crate) block: u32,
    /// Whether it went well.
    pub(crate) ok: u32,
    /// A pointer that may be used either way, if one was made.
    pub(crate) pointer: Option<NonZeroU32>,
}

/// Which check of an address it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AddressKey {
    /// The number of the pointer's value.
    pub(crate) pointer: u32,
    pub(crate) size: u64,
    pub(crate) is_written: bool,
}

/// A value that is computed once from the bytes around an address and used again; its fields are ids and constants.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DerivedValue {
    /// Whether this many bytes follow.
    HasBytes {
        remaining: u32,
        least: u64,
    },
    /// The index of the last element that fits, if one does.
    LastFitting {
        remaining: u32,
        least: u64,
        stride: u64,
    },
    FittingCount {
        remaining: u32,
        least: u64,
        stride: u64,
    },
    /// How many elements lie before the address.
    PrecedingCount {
        preceding: u32,
        offset: u64,
        stride: u64,
    },
    /// How many elements a signed index may reach.
    SignedCount {
        count: u32,
        before: u32,
    },
    PointerOrScratch {
        ok: u32,
        base: u32,
    },
    /// Whether an access is fine that may not be in the buffer of its base, by the lower word of that.
    Elsewhere {
        ok: u32,
        low: u32,
        offset: u64,
        size: u64,
        index: u32,
    },
}

#[derive(Default)]
pub(crate) struct CheckCache {
    pub(crate) buffers: FxHashMap<AccessKey, CachedCheck>,
    /// Several values, numbered.
    value_lists: FxHashMap<SmallVec<[u32; 4]>, u32>,
    /// By base pointer: its known place in a buffer.
    pub(crate) address_bounds: FxHashMap<u32, (usize, crate::accesses::addresses::AddressBounds)>,
    /// Values computed from the bytes of a buffer.
    pub(crate) derived_values: FxHashMap<DerivedValue, (usize, u32)>,
    pub(crate) addresses: FxHashMap<AddressKey, CachedCheck>,
}

impl CheckCache {
    /// The key of an access by its shape and the values of its indices that are no constants.
    pub(crate) fn access_key(&mut self, shape: u32, values: SmallVec<[u32; 4]>) -> AccessKey {
        match values[..] {
            [] => (shape, 0),
            [value] => (shape, value),
            _ => {
                let number = LIST | self.value_lists.len() as u32;
                (shape, *self.value_lists.entry(values).or_insert(number))
            }
        }
    }
}
