//! The libraries in memory: keeps this one loaded, and finds the library of an address.
//!
//! The loader unloads the layer with its last instance. If a listener was active, this module keeps the library loaded
//! until the process ends: counts and ids must outlive the instance, and unloading would lose them.

pub(crate) use lavascope_platform::library::{keep_loaded, module_of};
