//! The differences between the recorded device and this one.

pub(crate) mod device;
pub(crate) mod device_addresses;
pub(crate) mod driver_blobs;
pub(crate) mod external_files;
pub(crate) mod features;
pub(crate) mod formats;
pub(crate) mod instance;
pub(crate) mod pipeline;
pub(crate) mod plan;
pub(crate) mod queue_families;
pub(crate) mod recorded_device;
pub(crate) mod shader_capabilities;
