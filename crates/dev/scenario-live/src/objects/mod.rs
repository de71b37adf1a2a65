//! The device and its objects.

pub(crate) mod calls;
pub(crate) mod descriptors;
pub(crate) mod device;
pub(crate) mod features;
pub(crate) mod gpu;
pub(crate) mod pipeline;
pub(crate) mod resources;
pub(crate) mod shader;
