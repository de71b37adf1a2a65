//! Command buffers, queues, queries and presentation.

pub(crate) mod clear_color;
pub(crate) mod commands;
pub(crate) mod host_copy;
pub(crate) mod queries;
pub(crate) mod queue_engine;
pub(crate) mod submit;
pub(crate) mod swapchain;
pub(crate) mod sync;
pub(crate) mod transfer;
