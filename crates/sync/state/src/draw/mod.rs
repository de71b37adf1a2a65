//! Draws: vertex input, rasterization state, attachments and render passes.

pub(crate) mod attachment;
pub(crate) mod draw_commands;
pub(crate) mod index_values;
pub(crate) mod indirect_arguments;
pub(crate) mod raster_state;
pub(crate) mod render_pass;
pub(crate) mod rendering;
pub(crate) mod vertex_input;
