//! What queues and the host execute, step by step.

pub(crate) mod attachment_uses;
pub(crate) mod barriers;
pub(crate) mod device;
pub(crate) mod execution;
pub(crate) mod host;
pub(crate) mod render_passes;
pub(crate) mod signals;
pub(crate) mod submissions;
pub(crate) mod sweep;
pub(crate) mod tag_locations;
