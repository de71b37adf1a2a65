//! Translates the ids in commands and steps.

use lavascope_sync_ir::{
    Access, AttachmentView, Barrier, Command, CommandBufferId, Dependency, DependencyTarget, EventId, FenceId,
    HostStep, RenderPassId, Rendering, RenderingAttachment, Resolve, ResourceId, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SetEvent, SparseBind, SubmitBatch, WaitEvents,
};

/// An id that no object has.
pub(crate) const UNKNOWN_ID: u32 = u32::MAX;

/// Translates ids; returns [`UNKNOWN_ID`] for an unknown object.
pub(crate) trait IdMapper {
    fn resource(&mut self, id: ResourceId) -> ResourceId;
    fn pass(&mut self, id: RenderPassId) -> RenderPassId;
    fn event(&mut self, id: EventId) -> EventId;
    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId;
    fn fence(&mut self, id: FenceId) -> FenceId;
    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId;
}

/// Translates a command. The number of commands stays the same, so that each keeps its index.
pub(crate) fn command(item: &Command, ids: &mut impl IdMapper) -> Command {
    match item {
        Command::Action(all) => Command::Action(accesses(all, ids)),
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies: all }) => {
            Command::Barrier(Barrier::Sync1 {
                src_stages: *src_stages,
                dst_stages: *dst_stages,
                dependencies: dependencies(all, ids),
            })
        }
        Command::Barrier(Barrier::Sync2 { dependencies: all }) => {
            Command::Barrier(Barrier::Sync2 { dependencies: dependencies(all, ids) })
        }
        Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
            Command::SetEvent(SetEvent::Sync1 { event: ids.event(*event), stages: *stages })
        }
        Command::SetEvent(SetEvent::Sync2 { event, dependencies: all }) => {
            Command::SetEvent(SetEvent::Sync2 { event: ids.event(*event), dependencies: dependencies(all, ids) })
        }
        Command::ResetEvent { event, stages } => Command::ResetEvent { event: ids.event(*event), stages: *stages },
        Command::WaitEvents(events) => Command::WaitEvents(wait_events(events, ids)),
        Command::BeginRenderPass { pass, views, area } => Command::BeginRenderPass {
            pass: ids.pass(*pass),
            views: views.iter().map(|it| view(it, ids)).collect(),
            area: *area,
        },
        Command::NextSubpass => Command::NextSubpass,
        Command::EndRenderPass => Command::EndRenderPass,
        Command::BeginRendering(begin_rendering) => Command::BeginRendering(rendering(begin_rendering, ids)),
        Command::EndRendering => Command::EndRendering,
        Command::Execute(all) => Command::Execute(all.iter().map(|it| ids.command_buffer(*it)).collect()),
    }
}

fn accesses(all: &[Access], ids: &mut impl IdMapper) -> Vec<Access> {
    let access = |item: &Access| {
        let resource = ids.resource(item.resource);
        (resource.0 != UNKNOWN_ID).then(|| Access { resource, ..item.clone() })
    };
    all.iter().filter_map(access).collect()
}

/// Translates dependencies. Their number stays the same, because explanations refer to them by index.
fn dependencies(all: &[Dependency], ids: &mut impl IdMapper) -> Vec<Dependency> {
    let what = |dependency_target: &DependencyTarget, ids: &mut _| match dependency_target {
        DependencyTarget::Global => DependencyTarget::Global,
        DependencyTarget::Resource { resource, region } => {
            DependencyTarget::Resource { resource: IdMapper::resource(ids, *resource), region: region.clone() }
        }
        DependencyTarget::Transition { resource, region } => {
            DependencyTarget::Transition { resource: IdMapper::resource(ids, *resource), region: region.clone() }
        }
        DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
            DependencyTarget::QueueFamilyTransfer {
                resource: IdMapper::resource(ids, *resource),
                region: region.clone(),
                transfer: *ownership,
            }
        }
    };
    all.iter().map(|it| Dependency { scope: it.scope, target: what(&it.target, ids) }).collect()
}

fn wait_events(item: &WaitEvents, ids: &mut impl IdMapper) -> WaitEvents {
    match item {
        WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies: all } => WaitEvents::Sync1 {
            events: events.iter().map(|it| ids.event(*it)).collect(),
            src_stages: *src_stages,
            dst_stages: *dst_stages,
            dependencies: dependencies(all, ids),
        },
        WaitEvents::Sync2 { events } => WaitEvents::Sync2 {
            events: events.iter().map(|(event, all)| (ids.event(*event), dependencies(all, ids))).collect(),
        },
    }
}

fn view(attachment_view: &AttachmentView, ids: &mut impl IdMapper) -> AttachmentView {
    AttachmentView { resource: ids.resource(attachment_view.resource), region: attachment_view.region.clone() }
}

fn rendering(item: &Rendering, ids: &mut impl IdMapper) -> Rendering {
    let attachment = |rendering_attachment: &RenderingAttachment| RenderingAttachment {
        kind: rendering_attachment.kind,
        view: view(&rendering_attachment.view, ids),
        load: rendering_attachment.load,
        store: rendering_attachment.store,
        resolve: rendering_attachment.resolve.as_ref().map(|it| Resolve { view: view(&it.view, ids), mode: it.mode }),
    };
    let attachments = item.attachments.iter().map(attachment).collect();
    Rendering { attachments, ..item.clone() }
}

pub(crate) fn step(host_step: &HostStep, ids: &mut impl IdMapper) -> HostStep {
    match host_step {
        HostStep::Submit { queue, batches, fence } => HostStep::Submit {
            queue: *queue,
            batches: batches.iter().map(|it| batch(it, ids)).collect(),
            fence: fence.map(|it| ids.fence(it)),
        },
        HostStep::WaitFences(all) => HostStep::WaitFences(all.iter().map(|it| ids.fence(*it)).collect()),
        HostStep::ResetFences(all) => HostStep::ResetFences(all.iter().map(|it| ids.fence(*it)).collect()),
        HostStep::QueueIdle(queue) => HostStep::QueueIdle(*queue),
        HostStep::DeviceIdle => HostStep::DeviceIdle,
        HostStep::WaitSemaphores(all) => HostStep::WaitSemaphores(all.iter().map(|it| point(*it, ids)).collect()),
        HostStep::SignalSemaphore(signal_semaphore) => HostStep::SignalSemaphore(point(*signal_semaphore, ids)),
        HostStep::SetEvent(set_event) => HostStep::SetEvent(ids.event(*set_event)),
        HostStep::ResetEvent(reset_event) => HostStep::ResetEvent(ids.event(*reset_event)),
        HostStep::HostAccess { resource, region, is_write, certainty } => HostStep::HostAccess {
            resource: ids.resource(*resource),
            region: region.clone(),
            is_write: *is_write,
            certainty: *certainty,
        },
        HostStep::Acquire { image, semaphore, fence } => HostStep::Acquire {
            image: ids.resource(*image),
            semaphore: semaphore.map(|it| ids.semaphore(it)),
            fence: fence.map(|it| ids.fence(it)),
        },
        HostStep::Present { queue, waits, images } => HostStep::Present {
            queue: *queue,
            waits: waits.iter().map(|it| ids.semaphore(*it)).collect(),
            images: images.iter().map(|it| ids.resource(*it)).collect(),
        },
        HostStep::BindSparse { queue, waits, binds, signals, fence } => HostStep::BindSparse {
            queue: *queue,
            waits: waits.iter().map(|it| point(*it, ids)).collect(),
            binds: binds.iter().map(|it| SparseBind { resource: ids.resource(it.resource), ..it.clone() }).collect(),
            signals: signals.iter().map(|it| point(*it, ids)).collect(),
            fence: fence.map(|it| ids.fence(it)),
        },
        HostStep::Destroy(destroy) => HostStep::Destroy(ids.resource(*destroy)),
    }
}

fn batch(submit_batch: &SubmitBatch, ids: &mut impl IdMapper) -> SubmitBatch {
    SubmitBatch {
        waits: submit_batch
            .waits
            .iter()
            .map(|it| SemaphoreWait { point: point(it.point, ids), stages: it.stages })
            .collect(),
        command_buffers: submit_batch.command_buffers.iter().map(|it| ids.command_buffer(*it)).collect(),
        signals: submit_batch
            .signals
            .iter()
            .map(|it| SemaphoreSignal { point: point(it.point, ids), stages: it.stages })
            .collect(),
    }
}

fn point(semaphore_point: SemaphorePoint, ids: &mut impl IdMapper) -> SemaphorePoint {
    SemaphorePoint { semaphore: ids.semaphore(semaphore_point.semaphore), value: semaphore_point.value }
}
