//! What the commands need on the machine.

pub(crate) mod chromium;
pub(crate) mod process;
pub(crate) mod registry_files;
pub(crate) mod system;
pub(crate) mod x_server;
