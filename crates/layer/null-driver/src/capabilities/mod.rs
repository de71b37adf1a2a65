//! The capabilities that the driver reports.

pub(crate) mod extensions;
pub(crate) mod formats;
pub(crate) mod physical_device;
pub(crate) mod profile;
pub(crate) mod properties;
pub(crate) mod settings;
pub(crate) mod struct_bytes;
pub(crate) mod surface;
pub(crate) mod video;
