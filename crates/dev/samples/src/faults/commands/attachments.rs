//! Attachments of dynamic rendering: loads, stores, resolves, draws and clears without a barrier before or after.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, SampleImage, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, RENDERING, attachment, rendering};
use crate::faults::context::{EXTENT, FaultContext, GREEN, GREEN_WORD, LAYOUT, WORDS};
use crate::faults::faults;

faults! {
    color: "color-attachment", "a draw overwrites an image that a copy may still read (write after read).",
    clear: "clear-attachments", "an attachment is cleared while a copy may still read it (write after read).",
    depth: "depth-attachment", "a depth attachment is loaded while the rendering before may still store it.",
    resolve: "resolve-attachment", "an attachment is resolved into an image that a copy may still read.",
    load: "load-op", "an attachment is loaded while it may still be cleared (read after write).",
    store: "store-op", "an image is copied while rendering may still store it (read after write).",
    suspended: "suspended-rendering", "an image is copied while rendering that was suspended and resumed may store it.",
}

const CLEAR: vk::AttachmentLoadOp = vk::AttachmentLoadOp::CLEAR;
const LOAD: vk::AttachmentLoadOp = vk::AttachmentLoadOp::LOAD;

/// A copy reads an image, and then something writes it as an attachment.
fn overwritten(
    lab: &FaultContext,
    image: &SampleImage,
    target: &Buffer,
    write: impl FnOnce(vk::CommandBuffer),
) -> Result<(), Failure> {
    lab.run_once("copy and overwrite", |commands| {
        lab.clear(commands, image);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ.union(scope::COLOR_READ));
        lab.read_texels(commands, image, target);
        lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COLOR_WRITE);
        write(commands);
    })?;
    lab.expect(target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}

fn color(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    let program = BoundPipeline::graphics(&lab, DYNAMIC, shader!("green.frag"), &[])?;
    overwritten(&lab, &canvas, &target, |commands| {
        lab.render(commands, &[attachment(&canvas, LOAD)], || program.draw(&lab, commands));
    })
}

fn clear(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    overwritten(&lab, &canvas, &target, |commands| {
        let clear = vk::ClearAttachment::default().aspect_mask(vk::ImageAspectFlags::COLOR);
        let clear = [clear.clear_value(vk::ClearValue { color: GREEN })];
        let rect = [vk::ClearRect { rect: EXTENT.into(), base_array_layer: 0, layer_count: 1 }];
        lab.render(commands, &[attachment(&canvas, LOAD)], || {
            // SAFETY: recorded by this thread inside of rendering (owner).
            unsafe { lab.device.cmd_clear_attachments(commands, &clear, &rect) };
        });
    })
}

fn resolve(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([target], [resolved]) = (lab.word_buffers(["target"])?, lab.color_images(["resolved"])?);
    let canvas = lab.multisampled_image("canvas")?;
    overwritten(&lab, &resolved, &target, |commands| {
        let color = attachment(&canvas, CLEAR)
            .resolve_mode(vk::ResolveModeFlags::AVERAGE)
            .resolve_image_view(resolved.view)
            .resolve_image_layout(LAYOUT);
        lab.render(commands, &[color], || {});
    })
}

fn depth(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let (depths, [target]) = (lab.depth_image("depths")?, lab.word_buffers(["target"])?);
    let half = vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth: 0.5, stencil: 0 } };
    lab.run_once("render twice", |commands| {
        let clear = attachment(&depths, CLEAR).clear_value(half);
        lab.render_with(commands, &rendering().depth_attachment(&clear), || {});
        lab.barrier_if_fixed(commands, scope::DEPTH_WRITE, scope::DEPTH_READ.union(scope::DEPTH_WRITE));
        lab.render_with(commands, &rendering().depth_attachment(&attachment(&depths, LOAD)), || {});
        lab.memory_barrier(commands, scope::DEPTH_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &depths, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[0.5f32.to_bits(); WORDS])
}

fn load(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let [canvas] = lab.color_images(["canvas"])?;
    lab.run_once("clear and load", |commands| {
        lab.clear(commands, &canvas);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COLOR_READ.union(scope::COLOR_WRITE));
        lab.render(commands, &[attachment(&canvas, LOAD)], || {});
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

fn store(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    lab.run_once("render and copy", |commands| {
        lab.render(commands, &[attachment(&canvas, CLEAR)], || {});
        lab.barrier_if_fixed(commands, scope::COLOR_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &canvas, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}

fn suspended(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    let color = [attachment(&canvas, CLEAR)];
    let part = |label: &str, flags: vk::RenderingFlags| {
        lab.record_new(lab.main, label, |commands| {
            lab.render_with(commands, &rendering().flags(flags).color_attachments(&color), || {});
        })
    };
    let first = part("begin", vk::RenderingFlags::SUSPENDING)?;
    let last = part("end", vk::RenderingFlags::RESUMING)?;
    let copy = lab.record_new(lab.main, "copy", |commands| {
        lab.barrier_if_fixed(commands, scope::COLOR_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &canvas, &target);
    })?;
    lab.submit_and_wait(&[first, last, copy])?;
    lab.expect(&target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}
