//! One module for each crate that generated files are written for.

pub(crate) mod abi;
pub(crate) mod abi_tables;
pub(crate) mod coverage;
pub(crate) mod entry_points;
pub(crate) mod in_place;
pub(crate) mod marshal;
pub(crate) mod null_driver;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod state;
pub(crate) mod text;
pub(crate) mod vulkanalia;
