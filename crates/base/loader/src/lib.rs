//! Opens the system's Vulkan loader and asks what is there.
//!
//! Two ways to know: [`query`] asks the loader itself, which runs driver code, and [`manifests`] reads the files the
//! loader would read, which runs nothing. The first tells what works, the second why something does not.
//!
//! Absent on purpose: protection against a driver that crashes. Call [`query`] in a process that may die.

mod calls;
mod elf;
mod info;
pub mod manifests;
mod query;

pub use info::{DeviceInfo, ExtensionInfo, LayerInfo, LoaderError, LoaderInfo, QueryStep, Version};
pub use query::{LIBRARY, query};
