//! What the layer and the shaders share: options, tables, records.

pub(crate) mod address_table;
pub mod fault_records;
pub mod instance_check;
pub(crate) mod options;
pub(crate) mod serialized;
pub mod tables;
pub(crate) mod touch_area;
