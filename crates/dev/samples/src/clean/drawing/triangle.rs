//! Shared by the two triangle samples: the mesh, and the expected picture.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Gpu, GraphicsPipeline, MemoryPlacement, Picture, RenderTarget, shader};
use crate::failure::Failure;

pub(crate) const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
pub(crate) const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
pub(crate) const BACKGROUND: vk::ClearValue =
    vk::ClearValue { color: vk::ClearColorValue { float32: [0.2, 0.4, 0.6, 1.0] } };
const BACKGROUND_BYTES: [u8; 4] = [51, 102, 153, 255];

/// The right angle is at pixel (8, 8) and the legs are 48.5 pixels long: the long side passes between the centers of
/// pixels, so which of them are covered is the same on every device.
const FIRST: f32 = 8.0;
const LEG: f32 = 48.5;
/// Rows of 48, 47, … 1 pixels.
const COVERED: u64 = 48 * 49 / 2;

/// A kept vertex buffer: position and color of three corners.
pub(crate) fn vertices(gpu: &Gpu) -> Result<Buffer, Failure> {
    let place = |it: f32| it / 32.0 - 1.0;
    let (near, far) = (place(FIRST), place(FIRST + LEG));
    #[rustfmt::skip]
    let floats = [
        near, near, 1.0, 0.0, 0.0,
        far,  near, 0.0, 1.0, 0.0,
        near, far,  0.0, 0.0, 1.0,
    ];
    let usage = vk::BufferUsageFlags::VERTEX_BUFFER;
    let buffer = gpu.buffer("corners", size_of_val(&floats) as u64, usage, MemoryPlacement::Host)?;
    gpu.write_floats(&buffer, &floats)?;
    Ok(buffer)
}

pub(crate) fn pipeline(gpu: &Gpu, target: RenderTarget) -> Result<vk::Pipeline, Failure> {
    let layout = gpu.pipeline_layout(&[], None)?;
    let binding = vk::VertexInputBindingDescription { binding: 0, stride: 20, input_rate: vk::VertexInputRate::VERTEX };
    let attribute =
        |location, format, offset| vk::VertexInputAttributeDescription { location, binding: 0, format, offset };
    gpu.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("triangle.vert"),
        fragment: shader!("color.frag"),
        middle_stages: &[],
        layout,
        bindings: &[binding],
        attributes: &[attribute(0, vk::Format::R32G32_SFLOAT, 0), attribute(1, vk::Format::R32G32B32_SFLOAT, 8)],
        target,
    })
}

/// Draws the triangle inside of a render pass that the caller began.
pub(crate) fn draw(gpu: &Gpu, commands: vk::CommandBuffer, pipeline: vk::Pipeline, vertices: &Buffer) {
    gpu.set_viewport_and_scissor(commands, EXTENT);
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe {
        gpu.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
        gpu.device.cmd_bind_vertex_buffers(commands, 0, &[vertices.handle], &[0]);
        gpu.device.cmd_draw(commands, 3, 1, 0, 0);
    }
}

pub(crate) fn check(options: &SampleOptions, picture: &Picture) -> Result<(), Failure> {
    picture.save(options)?;
    let covered = picture.pixels().filter(|(x, y)| picture.pixel(*x, *y) != BACKGROUND_BYTES).count();
    check_coverage(options, covered as u64)?;
    // Devices may interpolate with few bits.
    options.check.picture(picture, 3, expected)
}

pub(crate) fn check_coverage(options: &SampleOptions, pixels: u64) -> Result<(), Failure> {
    options.check.number("the number of covered pixels", pixels, COVERED..COVERED + 1)
}

fn expected(x: u32, y: u32) -> [u8; 4] {
    if x < 8 || y < 8 || x + y > 63 {
        return BACKGROUND_BYTES;
    }
    let share = |it: u32| (it as f32 + 0.5 - FIRST) / LEG;
    let (green, blue) = (share(x), share(y));
    let byte = |it: f32| (it * 255.0).round() as u8;
    [byte(1.0 - green - blue), byte(green), byte(blue), 255]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_picture_has_the_expected_coverage() {
        let covered = (0..64 * 64).filter(|at| expected(at % 64, at / 64) != BACKGROUND_BYTES).count();
        assert_eq!(covered as u64, COVERED);
    }
}
