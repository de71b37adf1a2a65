//! Threads record secondary command buffers that each fill their own slice of a buffer; one, which the seed
//! chooses, reaches into the slice of the next: write after write, in one of many.

use std::thread;

use ash::vk;

use super::check;
use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Gpu, Needs, Place, Random, scope};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-threads",
    about: "Fault: one of many secondary command buffers fills a part of its neighbor's slice (write after write).",
    run,
};

const SLICE: u64 = 256;
/// How far the fault reaches into the next slice.
const REACH: u64 = 64;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    // A fault needs a neighbor.
    let threads = options.threads.unwrap_or(8).max(2);
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let buffer = gpu.buffer("slices", SLICE * u64::from(threads), usage, Place::Device)?;
    let culprit = Random::new(options.seed).below(threads - 1);
    let record = |index: u32| {
        let is_culprit = options.fault == Fault::Planted && index == culprit;
        let size = if is_culprit { SLICE + REACH } else { SLICE };
        secondary(&gpu, &format!("thread {index}"), |commands| {
            gpu.fill_buffer(commands, &buffer, (SLICE * u64::from(index), size), index + 1);
        })
    };
    let recorded = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|index| scope.spawn(move || record(index))).collect();
        let panicked = || Failure::Wrong("a thread panicked".to_owned());
        workers.into_iter().map(|it| it.join().map_err(|_| panicked())?).collect::<Result<Vec<_>, Failure>>()
    })?;
    gpu.run_once("all slices", |commands| {
        // SAFETY: live objects; the threads have ended (lifetime, owner).
        unsafe { gpu.device.cmd_execute_commands(commands, &recorded) };
    })?;
    let want: Vec<u32> = (0..threads).flat_map(|index| [index + 1; SLICE as usize / 4]).collect();
    check(options, "the slices", &gpu.download(&buffer, scope::COPY_WRITE)?, &want)
}

/// A command buffer of a pool of its own, recorded by this thread outside of any render pass.
fn secondary(gpu: &Gpu, label: &str, record: impl FnOnce(vk::CommandBuffer)) -> Result<vk::CommandBuffer, Failure> {
    let pool = gpu.command_pool(gpu.main)?;
    let commands = gpu.name(gpu.command_buffer(pool, vk::CommandBufferLevel::SECONDARY)?, label);
    let inheritance = vk::CommandBufferInheritanceInfo::default();
    let begin = vk::CommandBufferBeginInfo::default()
        .flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)
        .inheritance_info(&inheritance);
    // SAFETY: the pool is this thread's, and its command buffer is new (owner).
    unsafe { gpu.device.begin_command_buffer(commands, &begin) }?;
    gpu.labeled(commands, label, || record(commands));
    // SAFETY: as above, and it is being recorded.
    unsafe { gpu.device.end_command_buffer(commands) }?;
    Ok(commands)
}
