//! Memory, buffers, images, descriptors and pipelines.

pub(crate) mod address_space;
pub(crate) mod buffers;
pub(crate) mod compiler;
pub(crate) mod descriptors;
pub(crate) mod external;
pub(crate) mod image_layout;
pub(crate) mod images;
pub(crate) mod memory;
pub(crate) mod pipelines;
pub(crate) mod private_data;
pub(crate) mod ray_tracing;
