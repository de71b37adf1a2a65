//! A Vulkan driver (ICD) that accepts everything and draws nothing, for tests and GPU-less replay.
//!
//! Every command of the registry has an entry point, of one of three kinds. Most recorded commands are *empty*
//! functions. Commands whose outputs the tables describe well enough are answered *by table*: handles are handed
//! out, enumerations are empty, structures zero. The rest is *by hand*, in a module per topic.
//!
//! The same program sees the same handles, addresses, sizes and results in every run.
//!
//! A loader finds it by a manifest (`lavascope_loader::manifests` writes one) in `VK_ICD_FILENAMES` or `VK_DRIVER_FILES`.
//! Settings: `LAVASCOPE_NULL_EXECUTE=transfer` performs copies, fills and updates; `LAVASCOPE_NULL_PROFILE=FILE`
//! takes away features, extensions and limits that the file does not list; `LAVASCOPE_NULL_LOSE=N` never ends the N-th
//! submission of a process, and says so as drivers do: from then on its devices are lost; `LAVASCOPE_NULL_FUTURE=NAME`
//! has a command of devices that no registry has; `LAVASCOPE_NULL_LOG=FILE` writes the name of each command that is
//! called into a file, one a line; `LAVASCOPE_NULL_COMPILE=fail` or `=crash` does so at shaders with device addresses;
//! `LAVASCOPE_NULL_SALT=N` gives other addresses, handles of shader groups and descriptors, as another device would.
//!
//! Absent on purpose: shaders, rasterization, threads of our own, and other systems than Linux.

#[macro_use]
mod macros;
mod calls;
mod capabilities;
mod execution;
mod resources;

mod device;
#[rustfmt::skip]
mod generated;
mod instance;
#[cfg(test)]
mod tests;

// The generated tables name the module of each command by its last segment.
use capabilities::{formats, physical_device, surface, video};
use execution::{commands, host_copy, queries, submit, swapchain, sync, transfer};
use resources::{buffers, compiler, descriptors, external, images, memory, pipelines, private_data, ray_tracing};

pub use instance::{
    vk_icdGetInstanceProcAddr, vk_icdGetPhysicalDeviceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion,
};
