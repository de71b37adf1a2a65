//! The small helpers that all samples share.
//!
//! They shorten what every program does alike and hide nothing that a sample is about: barriers, submissions and
//! descriptors are spelled out where they matter.

mod check;
mod commands;
pub(crate) mod device;
mod pictures;
pub(crate) mod resources;
mod screen;
mod xcb_window;

pub(crate) use check::{Check, Mode};
pub(crate) use commands::{BarrierScope, scope};
pub(crate) use device::features::Feature;
pub(crate) use device::gpu::{Gpu, Needs, Queue};
pub(crate) use device::instance::SampleInstance;
pub(crate) use pictures::Picture;
pub(crate) use resources::buffers_and_images::{Buffer, MemoryPlacement, SampleImage, image_info, words_of_bytes};
pub(crate) use resources::descriptors::binding_of;
pub(crate) use resources::kernels::ComputeKernel;
pub(crate) use resources::pipelines::{GraphicsPipeline, RenderTarget, after_drawing, before_drawing};
pub(crate) use resources::shaders::{Shader, shader};
pub(crate) use screen::Screen;
pub(crate) use xcb_window::XcbWindow;
