//! Libraries in memory: this one, which the loader closes with its last instance, and whose an address is.
//!
//! Where somebody listens, this library stays until the process ends: what was counted, and the ids that were given, must
//! outlive the instance, and what is kept of threads and objects would be lost with the library.

pub(crate) use lavascope_platform::library::{Module, keep_loaded, module_of};
