//! Tests through the entry points, as a loader calls them.

mod creation;
mod execution;
mod objects;
mod synchronization;
mod world;
