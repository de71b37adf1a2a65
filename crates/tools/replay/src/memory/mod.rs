//! Device and host memory of the replay.

pub(crate) mod allocator_defaults;
pub(crate) mod bind;
pub(crate) mod bindings;
pub(crate) mod device_memory;
pub(crate) mod host_allocator;
pub(crate) mod host_image_copy;
pub(crate) mod host_memory;
pub(crate) mod linear_images;
