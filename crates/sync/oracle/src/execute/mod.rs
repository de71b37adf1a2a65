//! Executes a program in submission order, and logs every access and dependency.

pub(crate) mod cells;
pub(crate) mod commands;
pub(crate) mod executor;
pub(crate) mod log;
pub(crate) mod masks;
pub(crate) mod rendering;
