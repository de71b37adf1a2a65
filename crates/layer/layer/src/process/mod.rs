//! State that exists once per process, and the end of the process.

pub(crate) mod catch_panic;
pub(crate) mod forks;
pub(crate) mod library;
pub(crate) mod listeners;
pub(crate) mod process_state;
pub(crate) mod termination;
pub(crate) mod thread_exit;
