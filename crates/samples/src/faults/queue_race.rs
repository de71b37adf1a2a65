//! Two queues use one buffer, and no semaphore orders them. On a device with one queue, two submissions race.

use ash::vk;

use super::check;
use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Gpu, Needs, Place, scope};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-queue-race",
    about: "Fault: one queue writes what another reads, and no semaphore orders them.",
    run,
};

const SIZE: u64 = 1024;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs { second_queue: true, ..Needs::NOTHING })?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let shared = gpu.shared_buffer("shared", SIZE, usage, Place::Device)?;
    let target = gpu.shared_buffer("target", SIZE, usage, Place::Device)?;
    let write = gpu.recorded(gpu.second, "write", |commands| gpu.fill_buffer(commands, &shared, (0, SIZE), 5))?;
    let read = gpu.recorded(gpu.main, "read", |commands| gpu.copy_buffer(commands, &shared, &target))?;

    let semaphores = [gpu.semaphore("written")?];
    let semaphores = if options.fault == Fault::Mended { &semaphores[..] } else { &[] };
    let stages = &[vk::PipelineStageFlags::TRANSFER][..semaphores.len()];
    let fences = [gpu.fence(vk::FenceCreateFlags::empty())?, gpu.fence(vk::FenceCreateFlags::empty())?];
    let (write, read) = ([write], [read]);
    let first = vk::SubmitInfo::default().command_buffers(&write).signal_semaphores(semaphores);
    gpu.submit(gpu.second, &first, fences[0])?;
    let second = vk::SubmitInfo::default().command_buffers(&read);
    gpu.submit(gpu.main, &second.wait_semaphores(semaphores).wait_dst_stage_mask(stages), fences[1])?;
    fences.into_iter().try_for_each(|it| gpu.wait(it))?;
    check(options, "the copy", &gpu.download(&target, scope::COPY_WRITE)?, &[5; SIZE as usize / 4])
}
