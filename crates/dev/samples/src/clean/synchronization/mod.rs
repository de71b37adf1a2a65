//! Programs that show one kind of synchronization each.

pub(crate) mod events;
pub(crate) mod linear;
pub(crate) mod mapped;
pub(crate) mod multi_queue_upload;
pub(crate) mod timeline;
