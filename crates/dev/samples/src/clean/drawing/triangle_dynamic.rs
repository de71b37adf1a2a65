//! A triangle with dynamic rendering and synchronization2: no render pass, no framebuffer.

use ash::vk;

use super::triangle::{self, BACKGROUND, EXTENT, FORMAT};
use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Feature, Gpu, Needs, RenderTarget, SampleImage};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "triangle-dynamic",
    about: "Draws a triangle with dynamic rendering, and submits with synchronization2.",
    run,
};

const NEEDS: Needs = Needs { features: &[Feature::DynamicRendering, Feature::Synchronization2], ..Needs::NOTHING };

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let image = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
    let pipeline = triangle::pipeline(&gpu, RenderTarget::Format(FORMAT))?;
    let vertices = triangle::vertices(&gpu)?;
    let commands = gpu.record_new(gpu.main, "triangle", |commands| {
        barrier(&gpu, commands, &image, BEFORE);
        render(&gpu, commands, &image, || triangle::draw(&gpu, commands, pipeline, &vertices));
        barrier(&gpu, commands, &image, AFTER);
    })?;
    submit(&gpu, commands)?;
    triangle::check(options, &gpu.picture(&image)?)
}

/// One side of a barrier: stages, accesses, layout.
type BarrierSide = (vk::PipelineStageFlags2, vk::AccessFlags2, vk::ImageLayout);

const COLOR_WRITTEN: BarrierSide = (
    vk::PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT,
    vk::AccessFlags2::COLOR_ATTACHMENT_WRITE,
    vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL,
);
const BEFORE: (BarrierSide, BarrierSide) =
    ((vk::PipelineStageFlags2::NONE, vk::AccessFlags2::NONE, vk::ImageLayout::UNDEFINED), COLOR_WRITTEN);
const AFTER: (BarrierSide, BarrierSide) = (
    COLOR_WRITTEN,
    (vk::PipelineStageFlags2::COPY, vk::AccessFlags2::TRANSFER_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL),
);

fn barrier(gpu: &Gpu, commands: vk::CommandBuffer, image: &SampleImage, (from, to): (BarrierSide, BarrierSide)) {
    let barriers = [vk::ImageMemoryBarrier2::default()
        .src_stage_mask(from.0)
        .src_access_mask(from.1)
        .old_layout(from.2)
        .dst_stage_mask(to.0)
        .dst_access_mask(to.1)
        .new_layout(to.2)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(image.handle)
        .subresource_range(image.range())];
    let dependency = vk::DependencyInfo::default().image_memory_barriers(&barriers);
    // SAFETY: a live image, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
    unsafe { gpu.device.cmd_pipeline_barrier2(commands, &dependency) };
}

fn render(gpu: &Gpu, commands: vk::CommandBuffer, image: &SampleImage, draw: impl FnOnce()) {
    let colors = [vk::RenderingAttachmentInfo::default()
        .image_view(image.view)
        .image_layout(vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .clear_value(BACKGROUND)];
    let info = vk::RenderingInfo::default().render_area(EXTENT.into()).layer_count(1).color_attachments(&colors);
    // SAFETY: a live view; recorded by this thread, and the feature is enabled (lifetime, owner, feature).
    unsafe { gpu.device.cmd_begin_rendering(commands, &info) };
    draw();
    // SAFETY: recorded by this thread, after rendering has begun, and the feature is enabled (owner, feature).
    unsafe { gpu.device.cmd_end_rendering(commands) };
}

fn submit(gpu: &Gpu, commands: vk::CommandBuffer) -> Result<(), Failure> {
    let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
    let submit = [vk::SubmitInfo2::default().command_buffer_infos(&buffers)];
    let fence = gpu.fence(vk::FenceCreateFlags::empty())?;
    // SAFETY: this thread owns the queue, and all objects live until the fence is signaled (lifetime, owner, feature).
    unsafe { gpu.device.queue_submit2(gpu.main.handle, &submit, fence) }?;
    gpu.wait(fence)
}
