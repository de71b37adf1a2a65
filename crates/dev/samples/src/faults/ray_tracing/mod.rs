//! Faults in ray tracing.

pub(crate) mod acceleration_structures;
pub(crate) mod nv;
pub(crate) mod pipelines;
