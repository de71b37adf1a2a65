//! Programs that record or submit on several threads.

pub(crate) mod handoff;
pub(crate) mod recording;
pub(crate) mod secondaries;
