//! A triangle in a render pass.

use ash::vk;

use super::triangle::{self, BACKGROUND, EXTENT, FORMAT};
use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Gpu, Needs, RenderTarget};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample =
    Sample { name: "triangle-render-pass", about: "Draws a triangle in a render pass with a framebuffer.", run };

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let image = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
    let render_pass = gpu.render_pass(FORMAT)?;
    let framebuffer = gpu.framebuffer(render_pass, &[image])?;
    let pipeline = triangle::pipeline(&gpu, RenderTarget::Subpass(render_pass, 0))?;
    let vertices = triangle::vertices(&gpu)?;
    gpu.run_once("triangle", |commands| {
        let clear = [BACKGROUND];
        let begin = vk::RenderPassBeginInfo::default().render_pass(render_pass).framebuffer(framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE) };
        triangle::draw(&gpu, commands, pipeline, &vertices);
        // SAFETY: recorded by this thread, inside of the render pass that began above (owner).
        unsafe { gpu.device.cmd_end_render_pass(commands) };
    })?;
    triangle::check(options, &gpu.picture(&image)?)
}
