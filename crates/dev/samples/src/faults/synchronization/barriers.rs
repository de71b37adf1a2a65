//! Barriers that are there, and do not cover what they are for.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, Needs, image_info, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{EXTENT, FORMAT, FaultContext, GREEN_WORD, LAYOUT, SIZE, WORDS, any_image};
use crate::faults::faults;

faults! {
    stage: "barrier-stage", "a barrier makes a dispatch wait for nothing: it names the stage of fragment shaders.",
    access: "barrier-access", "a barrier makes a write visible to uniform reads, but the shader reads a storage buffer.",
    execution: "barrier-execution", "a barrier orders a write and a read, but makes the write visible to nobody.",
    order: "barrier-order", "a barrier stands before the write that it is for.",
    bytes: "barrier-bytes", "a barrier covers the first half of a buffer that is read as a whole.",
    levels: "barrier-levels", "a barrier covers the first level of an image whose second level is read.",
    clear: "barrier-clear", "a barrier waits for copies, and a fill is none (synchronization2).",
    layout: "layout", "an image changes its layout while it may still be written (write after write).",
    queue: "barrier-queue", "a barrier is recorded for a queue that has nothing to do with the write.",
}

/// A dispatch writes what the next one reads, with a barrier between them, and perhaps one before.
fn two_dispatches(lab: &FaultContext, barriers: [Option<(BarrierScope, BarrierScope)>; 2]) -> Result<(), Failure> {
    let [source, between, target] = lab.word_buffers(["source", "between", "target"])?;
    let buffers = |from: Buffer, to: Buffer| {
        BoundPipeline::compute(
            lab,
            shader!("double.comp"),
            &[],
            &[ShaderResource::Storage(&[from]), ShaderResource::Storage(&[to])],
        )
    };
    let (write, read) = (buffers(source, between)?, buffers(between, target)?);
    lab.run_once("two dispatches", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        for (program, barrier) in [write, read].iter().zip(barriers) {
            if let Some((from, to)) = barrier {
                lab.memory_barrier(commands, from, to);
            }
            program.dispatch(lab, commands);
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[28; WORDS])
}

fn stage(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let to = lab.planted_or_fixed(scope::FRAGMENT_READ, scope::COMPUTE_READ);
    two_dispatches(&lab, [None, Some((scope::COMPUTE_WRITE, to))])
}

fn access(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let access = lab.planted_or_fixed(vk::AccessFlags::UNIFORM_READ, vk::AccessFlags::SHADER_READ);
    two_dispatches(&lab, [None, Some((scope::COMPUTE_WRITE, BarrierScope { access, ..scope::COMPUTE_READ }))])
}

fn execution(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let nothing = BarrierScope { access: vk::AccessFlags::empty(), ..scope::COMPUTE_READ };
    let (from, to) = lab.planted_or_fixed((nothing, nothing), (scope::COMPUTE_WRITE, scope::COMPUTE_READ));
    two_dispatches(&lab, [None, Some((from, to))])
}

fn order(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let barrier = Some((scope::COMPUTE_WRITE, scope::COMPUTE_READ));
    two_dispatches(&lab, lab.planted_or_fixed([barrier, None], [None, barrier]))
}

fn bytes(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        let (from, to) = (scope::COPY_WRITE, scope::COPY_READ);
        let barrier = source.barrier(from, to).size(lab.planted_or_fixed(SIZE / 2, SIZE));
        lab.barriers(commands, from, to, &[barrier], &[]);
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn levels(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let image = lab.prepared_image("levels", &image_info(FORMAT, EXTENT).usage(any_image()).mip_levels(2))?;
    let [target] = lab.word_buffers(["target"])?;
    lab.run_once("clear and copy", |commands| {
        lab.fill(commands, &target, 7);
        lab.clear(commands, &image);
        let (from, to) = (scope::COPY_WRITE, scope::COPY_READ.union(scope::COPY_WRITE));
        let range = image.range().level_count(lab.planted_or_fixed(1, 2));
        let barrier = image.barrier(from, to).old_layout(LAYOUT).new_layout(LAYOUT).subresource_range(range);
        lab.barriers(commands, from, to, &[target.barrier(from, to)], &[barrier]);
        let region = [image.buffer_copy_region(1, 0)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_copy_image_to_buffer(commands, image.handle, LAYOUT, target.handle, &region) };
    })?;
    let mut want = [GREEN_WORD; WORDS];
    want[WORDS / 4..].fill(7);
    lab.expect(&target, scope::COPY_WRITE, &want)
}

fn clear(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::Synchronization2], ..Needs::NOTHING })?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        let barriers = [vk::MemoryBarrier2::default()
            .src_stage_mask(lab.planted_or_fixed(vk::PipelineStageFlags2::COPY, vk::PipelineStageFlags2::CLEAR))
            .src_access_mask(vk::AccessFlags2::TRANSFER_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags2::COPY)
            .dst_access_mask(vk::AccessFlags2::TRANSFER_READ)];
        let dependency = vk::DependencyInfo::default().memory_barriers(&barriers);
        // SAFETY: recorded by this thread, and the feature is enabled (owner, feature).
        unsafe { lab.device.cmd_pipeline_barrier2(commands, &dependency) };
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn layout(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([source, target], [image]) = (lab.word_buffers(["source", "target"])?, lab.color_images(["uploaded"])?);
    lab.run_once("upload and read", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.write_texels(commands, &source, &image);
        let readable = (scope::COPY_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        lab.image_barrier(
            commands,
            &image,
            (lab.planted_or_fixed(scope::NOTHING, scope::COPY_WRITE), LAYOUT),
            readable,
        );
        let region = [image.buffer_copy_region(0, 0)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_copy_image_to_buffer(commands, image.handle, readable.1, target.handle, &region) };
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn queue(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::with_two_queues(options)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let barrier = |commands| lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
    let other = lab.record_new(lab.second, "barrier elsewhere", barrier)?;
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.second, &vk::SubmitInfo::default().command_buffers(&[other]), fence)?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        if lab.is_fixed() {
            barrier(commands);
        }
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.wait(fence)?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}
