//! Pictures of frames: out of the bytes of images, as PNG files, and compared.
//!
//! The layer makes pictures of what a program presents, and a replay of what it performs; both mean the same by a
//! picture, so that they can be compared. [`Texels`] says how the bytes of an image become pixels, [`region`] and
//! [`transition`] how the image is copied to where the host can read it.
//!
//! Absent on purpose: calls of Vulkan. The layer and the replay reach the driver in ways of their own.

#![forbid(unsafe_code)]

mod compare;
mod copy;
mod file;
mod texels;

pub use compare::{Comparison, OtherSize, compare, hash};
pub use copy::{region, transition};
pub use file::{PictureError, frame_of, name, read, write};
pub use texels::Texels;

/// Pixels as one sees them: red, green, blue and alpha, a byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
}
