//! Programs that draw.

pub(crate) mod indirect;
pub(crate) mod lit;
pub(crate) mod present;
pub(crate) mod queries;
pub(crate) mod textured;
pub(crate) mod triangle;
pub(crate) mod triangle_dynamic;
pub(crate) mod triangle_render_pass;
