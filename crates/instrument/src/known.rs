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
    /// By base pointer: the range it is in, as a vector.
    pub(crate) ranges: FxHashMap<u32, (usize, u32)>,
    /// By range and size: where the last access of that size may begin.
    pub(crate) lasts: FxHashMap<(u32, u64), (usize, [u32; 3])>,
    pub(crate) addresses: FxHashMap<(u32, u64), Done>,
}
