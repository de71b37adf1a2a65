//! The small helpers that all samples share.
//!
//! They shorten what every program does alike and hide nothing that a sample is about: barriers, submissions and
//! descriptors are spelled out where they matter.

mod check;
mod commands;
mod descriptors;
mod features;
mod gpu;
mod instance;
mod kernels;
mod debug_names;
mod owned_object;
mod pictures;
mod pipelines;
mod random;
mod buffers_and_images;
mod screen;
mod shaders;
mod xcb_window;

pub(crate) use check::{Check, Mode};
pub(crate) use commands::{BarrierScope, scope};
pub(crate) use descriptors::binding_of;
pub(crate) use features::Feature;
pub(crate) use gpu::{Gpu, Needs, Queue};
pub(crate) use instance::SampleInstance;
pub(crate) use kernels::ComputeKernel;
pub(crate) use pictures::Picture;
pub(crate) use pipelines::{GraphicsPipeline, RenderTarget, after_drawing, before_drawing};
pub(crate) use random::Random;
pub(crate) use buffers_and_images::{Buffer, SampleImage, MemoryPlacement, image_info, words_of_bytes};
pub(crate) use screen::Screen;
pub(crate) use shaders::{Shader, shader};
pub(crate) use xcb_window::XcbWindow;
