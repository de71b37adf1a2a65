//! Containers that know nothing of Vulkan.

/// The types of `tagged_map`, except in the model.
mod atomics {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};

    pub(crate) const SLOTS_MIN: usize = 16;
}
mod interval_map;
#[cfg(test)]
mod model;
mod nearest;
mod tagged_map;
#[cfg(test)]
mod tagged_map_tests;

pub use interval_map::IntervalMap;
pub use nearest::nearest;
pub use tagged_map::TaggedMap;
