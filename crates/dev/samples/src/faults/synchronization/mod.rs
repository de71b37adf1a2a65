//! Hazards of barriers, events, queues, the host and presentation.

pub(crate) mod barriers;
pub(crate) mod events;
pub(crate) mod host;
pub(crate) mod mapped;
pub(crate) mod memory;
pub(crate) mod present;
pub(crate) mod queues;
pub(crate) mod several;
