//! What was checked already, and in which block.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub(crate) type Key = SmallVec<[u32; 12]>;

/// The values of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// In this block.
    pub(crate) block: usize,
    /// Whether it went well.
    pub(crate) ok: u32,
    /// A pointer that may be used either way, if one was made.
    pub(crate) pointer: Option<u32>,
}

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) buffers: FxHashMap<Key, Done>,
    /// By base pointer: what is known of its place in a buffer.
    pub(crate) rooms: FxHashMap<u32, (usize, crate::addresses::Room)>,
    /// What was computed of rooms, by kind, room, bytes up to the end of the first element, and stride.
    pub(crate) sums: FxHashMap<(u8, u32, u64, u64), (usize, u32)>,
    /// By pointer, size, and whether it is written.
    pub(crate) addresses: FxHashMap<(u32, u64, bool), Done>,
}
