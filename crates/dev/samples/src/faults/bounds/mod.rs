//! Faults in shaders: accesses out of bounds.

pub(crate) mod addresses;
pub(crate) mod blocks;
pub(crate) mod buffers;
pub(crate) mod descriptor_buffers;
pub(crate) mod push_descriptors;
pub(crate) mod resubmits;
pub(crate) mod shader_objects;
pub(crate) mod stages;
pub(crate) mod update_after_bind;
pub(crate) mod variants;
