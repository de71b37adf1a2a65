//! From a recorded fault to a message.

pub(crate) mod codes;
pub(crate) mod debug_names;
pub(crate) mod fault_draws;
pub(crate) mod fault_launch;
pub(crate) mod fault_texts;
pub(crate) mod findings;
pub(crate) mod message_texts;
pub(crate) mod prints;
