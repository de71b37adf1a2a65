//! Starts programs with the layer.

pub(crate) mod capture_signal;
pub(crate) mod child_program;
pub(crate) mod crashed_shaders;
pub(crate) mod direct_driver;
pub(crate) mod layer_manifest;
pub(crate) mod libraries;
pub(crate) mod missing_instance;
pub(crate) mod null_driver;
