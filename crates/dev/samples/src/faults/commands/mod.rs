//! Hazards between commands.

pub(crate) mod attachments;
pub(crate) mod dispatches;
pub(crate) mod draws;
pub(crate) mod extensions;
pub(crate) mod observed;
pub(crate) mod observed_variants;
pub(crate) mod render_passes;
pub(crate) mod secondaries;
pub(crate) mod transfers;
