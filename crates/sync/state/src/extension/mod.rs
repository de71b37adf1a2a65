//! Extensions with resources or commands of their own.

pub(crate) mod acceleration_structure;
pub(crate) mod device_generated_commands;
pub(crate) mod host_build;
pub(crate) mod host_image_copy;
pub(crate) mod indirect_memory;
pub(crate) mod micromap;
pub(crate) mod optical_flow;
pub(crate) mod ray_tracing_nv;
pub(crate) mod video;
