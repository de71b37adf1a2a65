//! Vulkan's C types, constants and function types, generated from the registry.
//!
//! One set of types serves both forms of a call. In C memory a [`Ptr`] is an address and a handle is what the
//! driver gave; in a record a [`Ptr`] is an offset and a handle is an object id. The bytes lie the same way, which
//! is why packing a call is mostly a copy.
//!
//! Absent on purpose: what the fields mean, which is in `abi`, and any behaviour.
//! The wire form is little-endian LP64, so only such targets build.

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("the record of a call is an image of 64-bit little-endian C memory");

#[macro_use]
mod macros;

mod bool32;
#[rustfmt::skip]
mod generated;
mod id;
mod pod;
mod ptr;

pub use bool32::Bool32;
pub use generated::*;
pub use id::ObjectId;
pub use pod::{Pod, bytes_of_slice, cast, cast_slice};
pub use ptr::{FnPtr, Opaque, Ptr};
