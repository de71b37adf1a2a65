//! Memory and tables that the checks use, and the resources that they describe.

pub(crate) mod acceleration_structures;
pub(crate) mod acceleration_structures_nv;
pub(crate) mod arena;
pub(crate) mod buffer_addresses;
pub(crate) mod descriptor_buffers;
pub(crate) mod descriptor_sets;
pub(crate) mod device_memory_use;
pub(crate) mod leases;
