//! Opens the system's Vulkan loader and queries its drivers and layers.
//!
//! There are two sources: [`query`] asks the loader itself, which runs driver code, and [`manifests`] reads the files
//! that the loader would read, which runs nothing. The first shows what works, the second why something does not work.
//!
//! Absent on purpose: protection against a driver that crashes. Call [`query`] in a process that may die.

mod calls;
mod elf;
mod info;
pub mod manifests;
mod query;

pub use info::{DeviceInfo, ExtensionInfo, LayerInfo, LoaderError, LoaderInfo, QueryStep, Version};
pub use query::{LIBRARY, query, try_devices};
