//! What was checked already, and in which block.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What makes an access the same as another one: its shape, and the value of its index, or the number of several.
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

#[derive(Default)]
pub(crate) struct CheckCache {
    pub(crate) buffers: FxHashMap<AccessKey, CachedCheck>,
    /// Several values, numbered.
    value_lists: FxHashMap<SmallVec<[u32; 4]>, u32>,
    /// By base pointer: what is known of its place in a buffer.
    pub(crate) address_bounds: FxHashMap<u32, (usize, crate::accesses::addresses::AddressBounds)>,
    /// What was computed of rooms, by kind, room, bytes up to the end of the first element, and stride.
    pub(crate) derived_values: FxHashMap<(u8, u32, u64, u64), (usize, u32)>,
    /// By pointer, size, and whether it is written.
    pub(crate) addresses: FxHashMap<(u32, u64, bool), CachedCheck>,
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
