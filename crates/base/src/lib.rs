//! Containers that know nothing of Vulkan.

mod interval_map;
mod tagged_map;

pub use interval_map::IntervalMap;
pub use tagged_map::TaggedMap;
