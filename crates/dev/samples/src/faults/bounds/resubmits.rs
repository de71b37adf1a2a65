//! Accesses out of bounds in command buffers that run more than once, or whose completion is never waited for.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    again: "bounds-again", "a secondary command buffer reads behind a buffer; it is pending twice, and only a timeline tells its end.",
    many: "bounds-many", "six reads of each invocation are behind a buffer.",
    exit: "bounds-exit", "a dispatch reads behind a buffer, and the program ends without destroying anything, where shaders are checked.",
}

/// Doubles a buffer of which half is bound.
fn half(lab: &FaultContext) -> Result<(BoundPipeline, Buffer), Failure> {
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let bound =
        [ShaderResource::Dynamic(&source, lab.planted_or_fixed(SIZE / 2, SIZE)), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(lab, shader!("double.comp"), &[], &bound)?;
    lab.run_once("fill", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    Ok((program, target))
}

fn again(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::TimelineSemaphore], ..Needs::NOTHING })?;
    let (program, target) = half(&lab)?;
    let pool = lab.command_pool(lab.main)?;
    let inheritance = vk::CommandBufferInheritanceInfo::default();
    let begin = vk::CommandBufferBeginInfo::default()
        .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
        .inheritance_info(&inheritance);
    let secondary = lab.command_buffer(pool, vk::CommandBufferLevel::SECONDARY)?;
    let primary = lab.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?;
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe {
        lab.device.begin_command_buffer(secondary, &begin)?;
        program.bind(&lab, secondary, &[0]);
        lab.device.cmd_dispatch(secondary, WORDS as u32 / 64, 1, 1);
        lab.device.end_command_buffer(secondary)?;
        lab.device.begin_command_buffer(primary, &begin)?;
        lab.memory_barrier(primary, scope::ALL, scope::ALL);
        lab.device.cmd_execute_commands(primary, &[secondary]);
        lab.device.end_command_buffer(primary)?;
    }
    let timeline = lab.timeline("done")?;
    for value in [1, 2] {
        let (commands, semaphores, values) = ([primary], [timeline], [value]);
        let mut signal = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let submit = vk::SubmitInfo::default().command_buffers(&commands).signal_semaphores(&semaphores);
        lab.submit(lab.main, &submit.push_next(&mut signal), vk::Fence::null())?;
    }
    let (semaphores, values) = ([timeline], [2]);
    let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    // SAFETY: a live semaphore, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.wait_semaphores(&info, u64::MAX) }?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn exit(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (program, target) = half(&lab)?;
    let done = lab.event("done")?;
    let commands = lab.record_new(lab.main, "double", |commands| {
        program.bind(&lab, commands, &[0]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1);
            lab.device.cmd_set_event(commands, done, vk::PipelineStageFlags::ALL_COMMANDS);
        }
    })?;
    lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands]), vk::Fence::null())?;
    if !lab.is_fixed() && std::env::var_os("LAVASCOPE_GPU").is_some() {
        // SAFETY: a live event (lifetime).
        while !unsafe { lab.device.get_event_status(done) }? {
            std::thread::yield_now();
        }
        std::process::exit(0);
    }
    // SAFETY: no other thread uses the device or its queues, which this call needs all (owner).
    unsafe { lab.device.device_wait_idle() }?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The first fault of an invocation is remembered with its details, the others as bits; so it is done again and again.
fn many(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.buffer("source", lab.planted_or_fixed(SIZE / 2, SIZE * 6), usage, MemoryPlacement::Device)?;
    let [target] = lab.word_buffers(["target"])?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("many.comp"), &[], &bound)?;
    lab.run_once("fill", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    let is_checked = std::env::var_os("LAVASCOPE_GPU").is_some();
    for _ in 0..if is_checked { lab.planted_or_fixed(ROUNDS, 1) } else { 1 } {
        lab.run_once("sum", |commands| {
            lab.memory_barrier(commands, scope::COMPUTE_WRITE, scope::ALL);
            program.dispatch(&lab, commands);
        })?;
        if is_checked && !lab.is_fixed() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    lab.expect(&target, scope::COMPUTE_WRITE, &[42; WORDS])
}

/// Enough time for a layer that checks shaders to learn more.
const ROUNDS: u32 = 50;
