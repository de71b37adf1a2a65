//! Which Vulkan commands make the accesses of a program.

pub(crate) mod choose;
pub(crate) mod draw;
pub(crate) mod formats;
pub(crate) mod live_command;
pub(crate) mod open_attachments;
pub(crate) mod transfer;
pub(crate) mod version_1;
