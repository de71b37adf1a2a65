//! What every object is at a given event: lifetimes, bindings, recorded commands.
//!
//! A [`Tracker`] takes checked records in their order, live or from a trace, and tells a [`Listener`] what they mean
//! in the words of `program`: resources, recorded commands with their accesses and dependencies, and what the host
//! does. What it does not understand it counts and names ([`Tracker::untracked`]); nothing is passed over in silence,
//! and there is a verdict on every command of the registry (`decision`).
//!
//! One file for each family of objects. A call is taken either before the driver sees it or, where its results
//! matter, after it returned; the verdicts say which.
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
