//! Tests through the entry points, as a loader calls them.

mod creation;
mod execution;
mod extras;
mod objects;
mod synchronization;
mod test_device;
