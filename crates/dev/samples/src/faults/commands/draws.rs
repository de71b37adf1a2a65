//! Draws that read what may still be written.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, GraphicsPipeline, MemoryPlacement, Needs, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, RENDERING, ShaderResource, attachment, rendering};
use crate::faults::classic_pass::ClassicPass;
use crate::faults::context::{EXTENT, FORMAT, FaultContext, GREEN_WORD, SIZE};
use crate::faults::faults;

faults! {
    vertex_buffer: "vertex-buffer", "a draw takes vertices that may still be written.",
    indexed_vertices: "indexed-vertices", "the host's indices of a draw name vertices that may still be written.",
    indirect_indices: "indirect-indices", "indices are overwritten that an indirect draw may still read.",
    index_buffer: "index-buffer", "a draw takes indices that may still be written.",
    indirect: "draw-indirect", "a draw takes its parameters from a buffer that may still be written.",
    indirect_count: "draw-indirect-count", "a draw takes the number of draws from a buffer that may still be written.",
    uniform_buffer: "uniform-buffer", "a fragment shader reads a uniform buffer that may still be written.",
    storage_buffer: "storage-buffer", "a fragment shader reads a storage buffer that a dispatch may still write.",
    sampled_image: "sampled-image", "a fragment shader samples an image that may still be written.",
    secondary_draw: "secondary-draw", "a draw of a secondary command buffer takes indices that the primary one writes.",
}

/// The words of a green color.
pub(crate) const GREEN_FLOATS: [u32; 4] = [0, 0x3F80_0000, 0, 0x3F80_0000];
/// The two triangles of the picture.
pub(crate) const CORNERS: [f32; 12] = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0];
const INDICES: [u32; 6] = [0, 1, 2, 3, 4, 5];

/// Writes, then draws into an image that must be green at the end, without the barrier between them.
pub(crate) fn picture(
    lab: &FaultContext,
    (from, to): (BarrierScope, BarrierScope),
    write: impl FnOnce(vk::CommandBuffer),
    draw: impl FnOnce(vk::CommandBuffer),
) -> Result<(), Failure> {
    let [canvas] = lab.color_images(["canvas"])?;
    let classic = lab.uses_render_pass().then(|| ClassicPass::new(lab, &canvas)).transpose()?;
    lab.run_once("write and draw", |commands| {
        write(commands);
        lab.barrier_if_fixed(commands, from, to);
        match &classic {
            Some(pass) => pass.render(lab, commands, || draw(commands)),
            None => {
                let color = [attachment(&canvas, vk::AttachmentLoadOp::DONT_CARE)];
                lab.render(commands, &color, || draw(commands));
            }
        }
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

/// A pipeline that takes its corners from a vertex buffer.
pub(crate) fn corner_pipeline(lab: &FaultContext) -> Result<vk::Pipeline, Failure> {
    let binding = vk::VertexInputBindingDescription { binding: 0, stride: 8, input_rate: vk::VertexInputRate::VERTEX };
    let format = vk::Format::R32G32_SFLOAT;
    lab.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("corner.vert"),
        fragment: shader!("green.frag"),
        middle_stages: &[],
        layout: lab.pipeline_layout(&[], None)?,
        bindings: &[binding],
        attributes: &[vk::VertexInputAttributeDescription { location: 0, binding: 0, format, offset: 0 }],
        target: DYNAMIC,
    })
}

fn vertex_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [vertices] = lab.word_buffers(["vertices"])?;
    let pipeline = corner_pipeline(&lab)?;
    let write = |commands| lab.update(commands, &vertices, &CORNERS.map(f32::to_bits));
    picture(&lab, (scope::COPY_WRITE, scope::VERTEX_READ), write, |commands| {
        lab.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
            lab.device.cmd_bind_vertex_buffers(commands, 0, &[vertices.handle], &[0]);
            lab.device.cmd_draw(commands, 6, 1, 0, 0);
        }
    })
}

/// Other vertices of the same buffer are there already: the draw may take those.
fn indexed_vertices(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([vertices, others], [canvas]) = (lab.word_buffers(["vertices", "others"])?, lab.color_images(["canvas"])?);
    let indices = lab.buffer("indices", SIZE, vk::BufferUsageFlags::INDEX_BUFFER, MemoryPlacement::Host)?;
    lab.write(&indices, &std::array::from_fn::<u32, 12, _>(|it| it as u32))?;
    let pipeline = corner_pipeline(&lab)?;
    let corners = CORNERS.map(f32::to_bits);
    lab.run_once("write all", |commands| {
        lab.update(commands, &vertices, &corners);
        lab.update(commands, &others, &corners);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    let copy = [vk::BufferCopy { src_offset: 0, dst_offset: 48, size: 48 }];
    let first = lab.planted_or_fixed(6, 0);
    lab.run_once("write some and draw", |commands| {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_copy_buffer(commands, others.handle, vertices.handle, &copy) };
        let color = [attachment(&canvas, vk::AttachmentLoadOp::DONT_CARE)];
        lab.render(commands, &color, || {
            lab.set_viewport_and_scissor(commands, EXTENT);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
                lab.device.cmd_bind_vertex_buffers(commands, 0, &[vertices.handle], &[0]);
                lab.device.cmd_bind_index_buffer(commands, indices.handle, 0, vk::IndexType::UINT32);
                lab.device.cmd_draw_indexed(commands, 6, 1, first, 0, 0);
            }
        });
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

/// The number of indices comes from the host: memory behind them may be overwritten.
fn indirect_indices(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([indices], [canvas]) = (lab.word_buffers(["indices"])?, lab.color_images(["canvas"])?);
    let usage = vk::BufferUsageFlags::INDIRECT_BUFFER;
    let parameters = lab.buffer("parameters", SIZE, usage, MemoryPlacement::Host)?;
    lab.write(&parameters, &[INDICES.len() as u32, 1, 0, 0, 0])?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    lab.run_once("write", |commands| {
        lab.update(commands, &indices, &INDICES);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    let size = size_of_val(&INDICES) as u64;
    let first = lab.planted_or_fixed(0, size);
    lab.run_once("draw and overwrite", |commands| {
        let color = [attachment(&canvas, vk::AttachmentLoadOp::DONT_CARE)];
        lab.render(commands, &color, || {
            program.bind(&lab, commands, &[]);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                lab.device.cmd_bind_index_buffer(commands, indices.handle, 0, vk::IndexType::UINT32);
                lab.device.cmd_draw_indexed_indirect(commands, parameters.handle, 0, 1, 20);
            }
        });
        lab.fill_buffer(commands, &indices, (first, size), 0);
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

fn draw_indexed(lab: &FaultContext, commands: vk::CommandBuffer, program: &BoundPipeline, indices: &Buffer) {
    program.bind(lab, commands, &[]);
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe {
        lab.device.cmd_bind_index_buffer(commands, indices.handle, 0, vk::IndexType::UINT32);
        lab.device.cmd_draw_indexed(commands, 6, 1, 0, 0, 0);
    }
}

fn index_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [indices] = lab.word_buffers(["indices"])?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    let write = |commands| lab.update(commands, &indices, &INDICES);
    picture(&lab, (scope::COPY_WRITE, scope::INDEX_READ), write, |commands| {
        draw_indexed(&lab, commands, &program, &indices);
    })
}

fn indirect(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [parameters] = lab.word_buffers(["parameters"])?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    let write = |commands| lab.update(commands, &parameters, &[6, 1, 0, 0]);
    picture(&lab, (scope::COPY_WRITE, scope::INDIRECT_READ), write, |commands| {
        program.bind(&lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_draw_indirect(commands, parameters.handle, 0, 1, 16) };
    })
}

fn indirect_count(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::DrawIndirectCount];
    let lab = FaultContext::new(options, &Needs { features, ..Needs::NOTHING })?;
    let [parameters, count] = lab.word_buffers(["parameters", "count"])?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    let write = |commands| {
        lab.update(commands, &parameters, &[6, 1, 0, 0]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::INDIRECT_READ);
        lab.update(commands, &count, &[1]);
    };
    picture(&lab, (scope::COPY_WRITE, scope::INDIRECT_READ), write, |commands| {
        program.bind(&lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { lab.device.cmd_draw_indirect_count(commands, parameters.handle, 0, count.handle, 0, 1, 16) };
    })
}

fn uniform_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [paint] = lab.word_buffers(["paint"])?;
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("uniform.frag"), &[ShaderResource::Uniform(&paint)])?;
    let write = |commands| lab.update(commands, &paint, &GREEN_FLOATS);
    picture(&lab, (scope::COPY_WRITE, scope::UNIFORM_READ), write, |commands| program.draw(&lab, commands))
}

fn storage_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [source, paint] = lab.word_buffers(["source", "paint"])?;
    let buffers = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[paint])];
    let double = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &buffers)?;
    let program =
        BoundPipeline::graphics(&lab, DYNAMIC, shader!("storage.frag"), &[ShaderResource::Storage(&[paint])])?;
    let write = |commands| {
        lab.fill(commands, &source, 0);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_WRITE);
        // Doubled, each becomes the one of the color.
        lab.update(commands, &source, &GREEN_FLOATS.map(|it| it / 2));
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        double.dispatch(&lab, commands);
    };
    picture(&lab, (scope::COMPUTE_WRITE, scope::FRAGMENT_READ), write, |commands| program.draw(&lab, commands))
}

fn sampled_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [texture] = lab.color_images(["texture"])?;
    let program =
        BoundPipeline::graphics(&lab, DYNAMIC, shader!("sampled.frag"), &[ShaderResource::Sampled(&texture)])?;
    let write = |commands| lab.clear(commands, &texture);
    picture(&lab, (scope::COPY_WRITE, scope::FRAGMENT_READ), write, |commands| program.draw(&lab, commands))
}

fn secondary_draw(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([indices], [canvas]) = (lab.word_buffers(["indices"])?, lab.color_images(["canvas"])?);
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    let formats = [FORMAT];
    let mut inherited = vk::CommandBufferInheritanceRenderingInfo::default()
        .color_attachment_formats(&formats)
        .rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let inheritance = vk::CommandBufferInheritanceInfo::default().push_next(&mut inherited);
    let secondary =
        lab.record_secondary("draw", &inheritance, |commands| draw_indexed(&lab, commands, &program, &indices))?;
    lab.run_once("write and execute", |commands| {
        lab.update(commands, &indices, &INDICES);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::INDEX_READ);
        let color = [attachment(&canvas, vk::AttachmentLoadOp::DONT_CARE)];
        let contents = vk::RenderingFlags::CONTENTS_SECONDARY_COMMAND_BUFFERS;
        lab.render_with(commands, &rendering().flags(contents).color_attachments(&color), || {
            // SAFETY: recorded by this thread (owner).
            unsafe { lab.device.cmd_execute_commands(commands, &[secondary]) };
        });
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}
