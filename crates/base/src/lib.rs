//! Containers that know nothing of Vulkan.

mod interval_map;
mod nearest;
mod tagged_map;

pub use interval_map::IntervalMap;
pub use nearest::nearest;
pub use tagged_map::TaggedMap;
