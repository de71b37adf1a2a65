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

mod device_address;
mod attachment;
mod barrier;
mod bound_state;
mod collector;
mod command_buffer;
mod host_contents;
mod copy;
mod command_support;
mod descriptor_set;
mod descriptor_buffer;
mod device;
mod draw_commands;
mod external_sync;
mod format;
mod device_generated_commands;
#[rustfmt::skip]
mod generated;
mod host_build;
mod host_image_copy;
mod image;
mod index_values;
mod indirect_memory;
mod incomplete;
mod launch;
mod listener;
mod memory;
mod micromap;
mod input_values;
mod opaque_object;
mod optical_flow;
mod pipeline;
mod linear_layout;
mod query;
mod raster_state;
mod acceleration_structure;
mod ray_tracing_nv;
mod region;
mod render_pass;
mod rendering;
mod interface;
mod accesses;
mod slab;
mod sparse_binding;
mod spirv_reflection;
mod submit;
mod swapchain;
mod tracker;
mod undo;
mod stage_access;
mod vertex_input;
mod video;

pub use collector::{CollectedDevice, Collector};
pub use command_support::{CommandSupport, CommandFamily, TrackPhase, command_support};
pub use listener::{Destroyed, Listener, Untracked, CallSource, DeviceCall};
pub use interface::{AddressUse, DescriptorUse, DescriptorArrayIndex, NoReflection, Reflect, ShaderCode, ShaderInterface, TileReads};
pub use slab::ObjectLifetime;
pub use spirv_reflection::SpirvReflection;
pub use tracker::Tracker;
