//! What every object is at a given call: lifetimes, bindings, recorded commands.
//!
//! A [`Tracker`] takes checked records in their order, live or from a trace, and calls a [`Listener`] with what they
//! mean, in the types of `sync-ir`: resources, recorded commands with their accesses and dependencies, and what the
//! host does. It counts and names what it does not understand ([`Tracker::untracked`]): commands, structures, objects
//! that nobody created, descriptors that only the shader chooses. Every command of the registry has a decision
//! ([`command_support`]).
//!
//! One file for each family of objects. A call is tracked either before the driver sees it or, where its results
//! matter, after it returned; the decisions say which.
//!
//! - **Accesses when recorded.** A draw or a dispatch becomes its accesses as it is recorded. What is known only later
//!   is amended ([`Listener::replace_command`]): descriptors that may be updated after they are bound, and the
//!   attachments of a secondary command buffer (`command/incomplete.rs`).
//! - **Shaders are asked for.** What a shader accesses comes from whoever implements [`Reflect`]. Where nobody can
//!   tell, it accesses no descriptors. Descriptors that only the shader picks are reported on request, each as
//!   possible.
//! - **Ranges, not resources.** Copies are rows, joined where they touch; draws read the vertices and indices that
//!   their parameters name. Where only memory knows, the rest of the bound range is meant.
//! - **The host.** Writes to mapped memory cannot be seen. A flush or an invalidation counts where it concerns one
//!   resource. A map that is undone before anything else is submitted counts as a likely access.
//!
//! Absent on purpose: whether a call is valid, and whether its accesses are in order.

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
pub use listener::{CallSource, Destroyed, DeviceCall, Listener, Untracked};
pub use shader::interface::{
    AddressUse, DescriptorArrayIndex, DescriptorUse, NoReflection, Reflect, ShaderCode, ShaderInterface, TileReads,
};
pub use shader::spirv_reflection::SpirvReflection;
pub use slab::ObjectLifetime;
pub use tracker::Tracker;
