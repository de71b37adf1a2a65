//! Accesses of shaders: buffers, addresses, images, and the recording of touches.
//!
//! | module | |
//! | --- | --- |
//! | `instructions` | which instructions are checked, and how each is written again |
//! | `buffers` | bytes behind descriptors |
//! | `remaining_bytes` | pointers to buffers that are chosen at run time |
//! | `addresses` | bytes at device addresses |
//! | `images` | images, samplers, texels |
//! | `touches` | what is recorded of each access |
//! | `touch_functions` | the code that records it |
//!
//! Unknown instructions are copied. So are cooperative matrices and `OpCopyMemorySized`, whose sites are listed as
//! [`crate::CheckDecision::Unchecked`].

pub(crate) mod addresses;
pub(crate) mod buffers;
pub(crate) mod elsewhere;
pub(crate) mod images;
pub(crate) mod instructions;
pub(crate) mod remaining_bytes;
pub(crate) mod touch_functions;
pub(crate) mod touches;
