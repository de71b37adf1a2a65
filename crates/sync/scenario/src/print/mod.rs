//! From a scenario back to text.

pub(crate) mod document;
pub(crate) mod print_command;
pub(crate) mod print_scope;
