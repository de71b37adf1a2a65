//! Accesses of shaders: buffers, addresses, images, and what is touched.

pub(crate) mod addresses;
pub(crate) mod buffers;
pub(crate) mod images;
pub(crate) mod instructions;
pub(crate) mod remaining_bytes;
pub(crate) mod touches;
