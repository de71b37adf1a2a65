//! Vulkan's C types, constants, function tables and field descriptions, generated from the registry.
//!
//! One set of types serves both forms of a call. In C memory a [`Ptr`] is an address and a handle is what the
//! driver gave; in a record a [`Ptr`] is an offset and a handle is an object id. The bytes lie the same way, which
//! is why packing a call is mostly a copy.
//!
//! What the walkers of `event` and `marshal` need to know about each structure is in [`desc`], as data.
//!
//! Absent on purpose: behaviour. Reading C memory is `marshal`, reading records is `event`.
//! The wire form is little-endian LP64, so only such targets build.

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("the record of a call is an image of 64-bit little-endian C memory");

#[macro_use]
mod macros;

mod bool32;
pub mod desc;
#[rustfmt::skip]
mod generated;
mod id;
mod lookup;
mod pod;
mod ptr;

pub use bool32::Bool32;
pub use generated::*;
pub use id::ObjectId;
pub use lookup::{command_by_name, structure_by_name, structure_by_type};
pub use pod::{Pod, Structure, bytes_of_slice, cast, cast_slice};
pub use ptr::{FnPtr, Opaque, Ptr};
