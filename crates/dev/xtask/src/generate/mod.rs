//! Generated files: code, shaders, expected texts.

pub(crate) mod bless;
pub(crate) mod codegen;
pub(crate) mod freshness;
pub(crate) mod shaders;
