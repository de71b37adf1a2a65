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
//! called into a file, one a line; `LAVASCOPE_NULL_SALT=N` gives other addresses, handles of shader groups and
//! descriptors, as another device would.
//!
//! Absent on purpose: shaders, rasterization, threads of our own, and other systems than Linux.

#[macro_use]
mod macros;

mod address_space;
mod command_return;
mod dispatchable;
mod buffers;
mod application_memory;
mod clear_color;
mod commands;
mod descriptors;
mod device;
mod queue_engine;
mod extensions;
mod external;
mod formats;
#[rustfmt::skip]
mod generated;
mod host_copy;
mod image_layout;
mod images;
mod instance;
mod command_log;
mod struct_bytes;
mod memory;
mod object_table;
mod physical_device;
mod pipelines;
mod private_data;
mod profile;
mod properties;
mod queries;
mod ray_tracing;
mod settings;
mod submit;
mod surface;
mod swapchain;
mod sync;
mod described_outputs;
#[cfg(test)]
mod tests;
mod transfer;
mod video;

pub use instance::{
    vk_icdGetInstanceProcAddr, vk_icdGetPhysicalDeviceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion,
};
