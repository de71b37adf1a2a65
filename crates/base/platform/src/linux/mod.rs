//! Linux behind the border.

pub(crate) mod clock;
mod fault_signal;
pub(crate) mod files;
pub(crate) mod library;
pub(crate) mod memory_trim;
pub(crate) mod page_tracker;
pub(crate) mod pages;
pub(crate) mod process;
pub(crate) mod shared_memory;
pub(crate) mod signals;
pub(crate) mod termination;
pub(crate) mod threads;
pub(crate) mod wait;
pub(crate) mod write_guard;
