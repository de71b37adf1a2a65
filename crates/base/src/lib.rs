//! Containers that know nothing of Vulkan.

mod tagged_map;

pub use tagged_map::TaggedMap;
