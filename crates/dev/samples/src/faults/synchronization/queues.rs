//! Submissions that no semaphore orders, or not the right stage or value of it, and transfers of ownership.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, Queue, scope};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    race: "queue-race", "one queue writes what another reads, and no semaphore orders them.",
    stage: "semaphore-stage", "a submission waits for its semaphore before dispatches, and copies meanwhile.",
    value: "timeline-value", "a submission waits for a smaller value of a timeline than the write signals.",
    ownership: "ownership-race", "a queue acquires a buffer while another may still release it.",
    acquire: "ownership-acquire", "a queue reads a buffer that another family released to it, and does not acquire it.",
}

fn any_queue() -> vk::BufferUsageFlags {
    vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST
}

/// The second queue fills what the main queue copies. On a device with one queue these are two submissions to it.
struct QueueHandover {
    target: Buffer,
    write: vk::CommandBuffer,
    read: vk::CommandBuffer,
}

impl QueueHandover {
    fn new(lab: &FaultContext) -> Result<QueueHandover, Failure> {
        let shared = lab.shared_buffer("shared", SIZE, any_queue(), MemoryPlacement::Device)?;
        let target = lab.shared_buffer("target", SIZE, any_queue(), MemoryPlacement::Device)?;
        let write = lab.record_new(lab.second, "write", |commands| lab.fill(commands, &shared, 5))?;
        let read = lab.record_new(lab.main, "read", |commands| lab.copy_buffer(commands, &shared, &target))?;
        Ok(QueueHandover { target, write, read })
    }
}

/// Submits to one queue after the other, and waits for both.
fn submit(lab: &FaultContext, submissions: [(Queue, vk::SubmitInfo); 2]) -> Result<(), Failure> {
    let mut fences = Vec::new();
    for (queue, info) in submissions {
        fences.push(lab.fence(vk::FenceCreateFlags::empty())?);
        lab.submit(queue, &info, fences[fences.len() - 1])?;
    }
    fences.into_iter().try_for_each(|it| lab.wait(it))
}

/// Writes, then reads, with a semaphore that the read waits for at these stages.
fn hand_over(
    lab: &FaultContext,
    [write, read]: [vk::CommandBuffer; 2],
    stages: Option<vk::PipelineStageFlags>,
) -> Result<(), Failure> {
    let semaphores = [lab.semaphore("written")?];
    let semaphores = &semaphores[..stages.iter().len()];
    let (write, read) = ([write], [read]);
    let first = vk::SubmitInfo::default().command_buffers(&write).signal_semaphores(semaphores);
    let second = vk::SubmitInfo::default().command_buffers(&read).wait_semaphores(semaphores);
    submit(lab, [(lab.second, first), (lab.main, second.wait_dst_stage_mask(stages.as_slice()))])
}

fn race(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { second_queue: true, ..Needs::NOTHING })?;
    let hand = QueueHandover::new(&lab)?;
    hand_over(&lab, [hand.write, hand.read], lab.planted_or_fixed(None, Some(vk::PipelineStageFlags::TRANSFER)))?;
    lab.expect(&hand.target, scope::COPY_WRITE, &[5; WORDS])
}

fn stage(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { second_queue: true, ..Needs::NOTHING })?;
    let hand = QueueHandover::new(&lab)?;
    let stages = lab.planted_or_fixed(vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::TRANSFER);
    hand_over(&lab, [hand.write, hand.read], Some(stages))?;
    lab.expect(&hand.target, scope::COPY_WRITE, &[5; WORDS])
}

/// The counter has the smaller value before the write is submitted.
fn value(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(
        options,
        &Needs { features: &[Feature::TimelineSemaphore], second_queue: true, ..Needs::NOTHING },
    )?;
    let (hand, timeline) = (QueueHandover::new(&lab)?, [lab.timeline("progress")?]);
    let signal = vk::SemaphoreSignalInfo::default().semaphore(timeline[0]).value(1);
    // SAFETY: a live timeline semaphore, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.signal_semaphore(&signal) }?;
    let (write, read, stages) = ([hand.write], [hand.read], [vk::PipelineStageFlags::TRANSFER]);
    let (signaled, awaited) = ([2], [lab.planted_or_fixed(1, 2)]);
    let mut signals = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&signaled);
    let mut waits = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&awaited);
    let first = vk::SubmitInfo::default().command_buffers(&write).signal_semaphores(&timeline);
    let second = vk::SubmitInfo::default().command_buffers(&read).wait_semaphores(&timeline);
    let second = second.wait_dst_stage_mask(&stages).push_next(&mut waits);
    submit(&lab, [(lab.second, first.push_next(&mut signals)), (lab.main, second)])?;
    lab.expect(&hand.target, scope::COPY_WRITE, &[5; WORDS])
}

/// Fills a buffer on the second queue and reads it on the main one, handing it over between.
fn transfer(lab: &FaultContext, is_acquired: bool, is_ordered: bool) -> Result<(), Failure> {
    let shared = lab.buffer("shared", SIZE, any_queue(), MemoryPlacement::Device)?;
    let [target] = lab.word_buffers(["target"])?;
    let barrier = |commands, from, to| {
        let families = shared.barrier(from, to).src_queue_family_index(lab.second.family);
        lab.barriers(commands, from, to, &[families.dst_queue_family_index(lab.main.family)], &[]);
    };
    let write = lab.record_new(lab.second, "write and release", |commands| {
        lab.fill(commands, &shared, 5);
        barrier(commands, scope::COPY_WRITE, scope::PRESENTED);
    })?;
    let read = lab.record_new(lab.main, "acquire and read", |commands| {
        if is_acquired {
            // The stage of the semaphore's wait, so that the acquire happens after it.
            let waited = BarrierScope { access: vk::AccessFlags::empty(), ..scope::COPY_READ };
            barrier(commands, waited, scope::COPY_READ);
        }
        lab.copy_buffer(commands, &shared, &target);
    })?;
    hand_over(lab, [write, read], is_ordered.then_some(vk::PipelineStageFlags::TRANSFER))?;
    lab.expect(&target, scope::COPY_WRITE, &[5; WORDS])
}

fn ownership(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::with_two_queues(options)?;
    transfer(&lab, true, lab.is_fixed())
}

fn acquire(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::with_two_queues(options)?;
    transfer(&lab, lab.is_fixed(), true)
}
