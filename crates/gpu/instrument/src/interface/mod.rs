//! Shared by the layer and the shaders: options, tables, records.
//!
//! | module | direction | contents |
//! | --- | --- | --- |
//! | `options` | host to [`crate::instrument`] | what to check, and the root table |
//! | [`tables`] | host to shader | what is bound to descriptors, and the cells |
//! | `address_table` | host to shader | the buffers that have addresses |
//! | [`fault_records`] | shader to host | faults and prints |
//! | `print_format` | neither | the format strings of prints, and their problems |
//! | `touch_area` | shader to host | which descriptors and bytes were touched |
//! | [`instance_check`] | both | the check of instances before a build |
//! | `serialized` | host to disk | a module with checks, for a cache |

pub(crate) mod address_table;
pub mod fault_records;
pub mod instance_check;
pub(crate) mod options;
pub(crate) mod print_format;
pub(crate) mod serialized;
pub mod tables;
pub(crate) mod touch_area;
