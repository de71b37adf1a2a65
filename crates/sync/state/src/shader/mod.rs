//! What shaders access: reflection, descriptors and pipelines.

pub(crate) mod accesses;
pub(crate) mod descriptor_buffer;
pub(crate) mod descriptor_set;
pub(crate) mod input_values;
pub(crate) mod interface;
pub(crate) mod launch;
pub(crate) mod pipeline;
pub(crate) mod spirv_reflection;
