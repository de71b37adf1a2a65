//! What every object is at a given event: lifetimes, bindings, recorded commands.
//!
//! A [`Tracker`] takes checked records in their order, live or from a trace, and tells a [`Listener`] what they mean
//! in the words of `program`: resources, recorded commands with their accesses and dependencies, and what the host
//! does. What it does not understand it counts and names ([`Tracker::missing`]); nothing is passed over in silence,
//! and there is a verdict on every command of the registry (`decision`).
//!
//! One file for each family of objects. A call is taken either before the driver sees it or, where its results
//! matter, after it returned; the verdicts say which.
//!
//! Absent on purpose: whether a call is valid, and whether its accesses are in order.

#![forbid(unsafe_code)]

mod address;
mod attachment;
mod barrier;
mod bind;
mod collect;
mod command_buffer;
mod contents;
mod copy;
mod decision;
mod descriptor;
mod descriptor_memory;
mod device;
mod draw;
mod external;
mod format;
mod generated_commands;
#[rustfmt::skip]
mod generated;
mod host_build;
mod host_copy;
mod image;
mod indices;
mod indirect;
mod late;
mod launch;
mod listener;
mod memory;
mod micromap;
mod numbers;
mod opaque;
mod optical_flow;
mod pipeline;
mod pitch;
mod query;
mod raster;
mod ray;
mod ray_nv;
mod region;
mod render_pass;
mod rendering;
mod shader;
mod shader_use;
mod slab;
mod sparse;
mod spirv;
mod submit;
mod swapchain;
mod tracker;
mod undo;
mod usage;
mod vertex;
mod video;

pub use collect::{CollectedDevice, Collector};
pub use decision::{CommandSupport, CommandFamily, TrackPhase, command_support};
pub use listener::{Destroyed, Listener, Untracked, CallSource, DeviceCall};
pub use shader::{AddressUse, DescriptorUse, DescriptorArrayIndex, NoReflection, Reflect, ShaderCode, ShaderInterface, TileReads};
pub use slab::ObjectLifetime;
pub use spirv::SpirvReflection;
pub use tracker::Tracker;
