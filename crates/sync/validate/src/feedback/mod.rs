//! What shaders report that they touched.

pub(crate) mod pending;
pub(crate) mod touched;
