//! Instances, devices and their features.

pub(crate) mod debug_names;
pub(crate) mod features;
pub(crate) mod gpu;
pub(crate) mod instance;
pub(crate) mod owned_object;
