//! Reading what shaders recorded.

pub(crate) mod destroyed_pipelines;
pub(crate) mod submissions;
pub(crate) mod touches;
