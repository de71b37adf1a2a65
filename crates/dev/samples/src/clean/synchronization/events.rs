//! Events split a barrier in two: work between setting and waiting is not held up.

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Gpu, MemoryPlacement, Needs, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "events",
    about: "Orders fills and copies with events that the device sets, and one that the host sets.",
    run,
};

const SIZE: u64 = 1024;
const WORDS: usize = SIZE as usize / 4;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let source = gpu.buffer("source", SIZE, usage, MemoryPlacement::Device)?;
    let other = gpu.buffer("other", SIZE, usage, MemoryPlacement::Device)?;
    let target = gpu.buffer("target", SIZE * 2, usage, MemoryPlacement::Device)?;
    let (filled, released) = (gpu.event("filled")?, gpu.event("released")?);
    let commands = gpu.record_new(gpu.main, "split barriers", |commands| {
        let stages = vk::PipelineStageFlags::TRANSFER;
        // The host releases the device before the submission: an event may be set before it is waited for.
        wait(&gpu, commands, released, vk::PipelineStageFlags::HOST, &[]);
        gpu.fill_buffer(commands, &source, (0, SIZE), 3);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_set_event(commands, filled, stages) };
        gpu.fill_buffer(commands, &other, (0, SIZE), 4);
        wait(&gpu, commands, filled, stages, &[source.barrier(scope::COPY_WRITE, scope::COPY_READ)]);
        gpu.copy_buffer(commands, &source, &target);
        gpu.buffer_barrier(commands, &other, scope::COPY_WRITE, scope::COPY_READ);
        let region = vk::BufferCopy::default().dst_offset(SIZE).size(SIZE);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            gpu.device.cmd_copy_buffer(commands, other.handle, target.handle, &[region]);
            gpu.device.cmd_reset_event(commands, filled, stages);
        }
    })?;
    // SAFETY: a live event that no other thread uses (lifetime, owner).
    unsafe { gpu.device.set_event(released) }?;
    gpu.submit_and_wait(&[commands])?;
    // SAFETY: live events that no other thread uses, and no submission is pending (lifetime, owner).
    let statuses = unsafe { [gpu.device.get_event_status(released)?, gpu.device.get_event_status(filled)?] };
    options.check.words("the events", &statuses.map(u32::from), &[1, 0])?;
    let want = [[3; WORDS], [4; WORDS]].concat();
    options.check.words("the copies", &gpu.download(&target, scope::COPY_WRITE)?, &want)
}

/// Copies after this wait for the event.
fn wait(
    gpu: &Gpu,
    commands: vk::CommandBuffer,
    event: vk::Event,
    from: vk::PipelineStageFlags,
    barriers: &[vk::BufferMemoryBarrier],
) {
    let to = vk::PipelineStageFlags::TRANSFER;
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe { gpu.device.cmd_wait_events(commands, &[event], from, to, &[], barriers, &[]) };
}
