//! Writes the module anew with the checks in it.

pub(crate) mod context;
pub(crate) mod entry_points;
pub(crate) mod function;
pub(crate) mod table_access;
