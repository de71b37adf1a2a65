//! Events that are set for another stage, for another buffer, or without a wait.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Feature, Needs, scope};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, WORDS};
use crate::faults::faults;

faults! {
    stage: "event-stage", "an event is set when dispatches are done, but a fill writes what is read behind the wait.",
    buffer: "event-buffer", "an event makes another buffer readable than the one that is read (synchronization2).",
    wait: "event-wait", "an event is set behind a fill, and the copy does not wait for it.",
}

/// Sets an event behind a fill and waits for it before a copy.
fn split(lab: &FaultContext, set: BarrierScope, is_waited_for: bool) -> Result<(), Failure> {
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let event = lab.event("filled")?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        let to = scope::COPY_READ;
        let barrier = [vk::MemoryBarrier::default().src_access_mask(set.access).dst_access_mask(to.access)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_set_event(commands, event, set.stages);
            if is_waited_for {
                lab.device.cmd_wait_events(commands, &[event], set.stages, to.stages, &barrier, &[], &[]);
            }
        }
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn stage(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    split(&lab, lab.planted_or_fixed(scope::COMPUTE_WRITE, scope::COPY_WRITE), true)
}

fn wait(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    split(&lab, scope::COPY_WRITE, lab.is_fixed())
}

fn buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::Synchronization2], ..Needs::NOTHING })?;
    let [source, other, target] = lab.word_buffers(["source", "other", "target"])?;
    let event = lab.event("filled")?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        let barriers = [vk::BufferMemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::ALL_TRANSFER)
            .src_access_mask(vk::AccessFlags2::TRANSFER_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags2::ALL_TRANSFER)
            .dst_access_mask(vk::AccessFlags2::TRANSFER_READ)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .buffer(lab.planted_or_fixed(other, source).handle)
            .size(vk::WHOLE_SIZE)];
        let dependency = vk::DependencyInfo::default().buffer_memory_barriers(&barriers);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_set_event2(commands, event, &dependency);
            lab.device.cmd_wait_events2(commands, &[event], &[dependency]);
        }
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}
