//! Memory, buffers, images and device addresses.

pub(crate) mod device_address;
pub(crate) mod format;
pub(crate) mod host_contents;
pub(crate) mod image;
pub(crate) mod linear_layout;
pub(crate) mod memory;
pub(crate) mod opaque_object;
pub(crate) mod region;
