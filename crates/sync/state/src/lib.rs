//! Tracks the state of every object at each call: lifetimes, bindings, recorded commands.
//!
//! A [`Tracker`] takes checked records in order, live or from a trace. It calls a [`TrackerListener`] with resources, recorded
//! commands with their accesses and dependencies, and host steps, in the types of `sync-ir`. It counts and reports what
//! it does not support ([`Tracker::untracked`]): commands, structures, unknown objects, descriptors that only the
//! shader chooses. Every command of the registry has an entry ([`command_support`]).
//!
//! One file for each family of objects. A call is tracked before the driver executes it or, if its results matter,
//! after it returned.
//!
//! - **Accesses at recording.** The accesses of a draw or a dispatch are determined when it is recorded. What is known
//!   only later is completed with [`TrackerListener::replace_command`]: descriptors that may be updated after they are bound,
//!   and the attachments of a secondary command buffer (`command/incomplete.rs`).
//! - **Shader reflection.** An implementation of [`Reflect`] returns what a shader accesses. If it returns none, the
//!   shader counts as accessing no descriptors. Dynamically indexed descriptors are reported on request, each as
//!   possible.
//! - **Ranges, not resources.** Copies access rows, merged if adjacent. Draws read the vertices and indices that their
//!   parameters name; if these are only in memory, the rest of the bound range counts.
//! - **The host.** Writes to mapped memory are not in the records. A flush or an invalidation counts if it concerns a
//!   single resource. A map and unmap with no submission in between counts as a likely access.
//!
//! Not checked here: whether a call is valid, and whether its accesses are ordered.

#![forbid(unsafe_code)]

mod collector;
mod command;
mod command_caching;
mod command_support;
mod device;
mod draw;
mod extension;
mod queue;
mod resource;
mod shader;
#[rustfmt::skip]
mod generated;
mod listener;
mod slab;
mod tracker;

pub use collector::{CollectedDevice, Collector};
pub use command_caching::REPEATABLE_COMMANDS;
pub use command_support::{CommandFamily, CommandSupport, TrackPhase, command_support};
pub use listener::{CallSource, Destroyed, DeviceCall, TrackerListener, Untracked};
pub use shader::interface::{
    AddressUse, DescriptorArrayIndex, DescriptorUse, NoReflection, Reflect, ShaderCode, ShaderInterface, TileReads,
};
pub use shader::spirv_reflection::SpirvReflection;
pub use slab::ObjectLifetime;
pub use tracker::Tracker;
