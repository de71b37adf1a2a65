//! Makes pictures of frames out of the bytes of images, writes them as PNG, compares them.
//!
//! The layer makes pictures of what a program presents, and a replay of what it performs; both mean the same by a
//! picture, so that they can be compared. [`TexelFormat`] says how the bytes of an image become pixels,
//! [`copy_region`] and [`layout_barrier`] how the image is copied to where the host can read it.
//!
//! Absent on purpose: calls of Vulkan. The layer and the replay reach the driver in ways of their own.

#![forbid(unsafe_code)]

mod compare;
mod copy;
mod file;
mod texel_format;

pub use compare::{Comparison, SizeMismatch, compare, difference, hash};
pub use copy::{copy_region, layout_barrier};
pub use file::{PictureError, file_name, parse_file_name, read, write};
pub use texel_format::TexelFormat;

/// Pixels as one sees them: red, green, blue and alpha, a byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
}
