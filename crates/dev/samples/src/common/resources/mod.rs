//! Buffers, images, descriptors, pipelines and shaders.

pub(crate) mod buffers_and_images;
pub(crate) mod descriptors;
pub(crate) mod kernels;
pub(crate) mod pipelines;
pub(crate) mod shaders;
