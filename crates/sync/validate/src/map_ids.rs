//! The things of commands and steps under other numbers.

use lavascope_sync_ir::{
    Access, AttachmentView, Barrier, Command, CommandBufferId, Dependency, DependencyTarget, EventId, FenceId,
    HostStep, RenderPassId, Rendering, RenderingAttachment, Resolve, ResourceId, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SetEvent, SparseBind, SubmitBatch, WaitEvents,
};

/// A number that nothing has.
pub(crate) const UNKNOWN_ID: u32 = u32::MAX;

/// Gives other numbers; [`UNKNOWN_ID`] for what is not known.
pub(crate) trait IdMapper {
    fn resource(&mut self, id: ResourceId) -> ResourceId;
    fn pass(&mut self, id: RenderPassId) -> RenderPassId;
    fn event(&mut self, id: EventId) -> EventId;
    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId;
    fn fence(&mut self, id: FenceId) -> FenceId;
    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId;
}

/// Keeps the number of commands: each has its place.
pub(crate) fn command(it: &Command, ids: &mut impl IdMapper) -> Command {
    match it {
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
        Command::WaitEvents(it) => Command::WaitEvents(wait_events(it, ids)),
        Command::BeginRenderPass { pass, views, area } => Command::BeginRenderPass {
            pass: ids.pass(*pass),
            views: views.iter().map(|it| view(it, ids)).collect(),
            area: *area,
        },
        Command::NextSubpass => Command::NextSubpass,
        Command::EndRenderPass => Command::EndRenderPass,
        Command::BeginRendering(it) => Command::BeginRendering(rendering(it, ids)),
        Command::EndRendering => Command::EndRendering,
        Command::Execute(all) => Command::Execute(all.iter().map(|it| ids.command_buffer(*it)).collect()),
    }
}

fn accesses(all: &[Access], ids: &mut impl IdMapper) -> Vec<Access> {
    let access = |it: &Access| {
        let resource = ids.resource(it.resource);
        (resource.0 != UNKNOWN_ID).then(|| Access { resource, ..it.clone() })
    };
    all.iter().filter_map(access).collect()
}

/// Keeps the number of dependencies, since explanations count them.
fn dependencies(all: &[Dependency], ids: &mut impl IdMapper) -> Vec<Dependency> {
    let what = |it: &DependencyTarget, ids: &mut _| match it {
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

fn wait_events(it: &WaitEvents, ids: &mut impl IdMapper) -> WaitEvents {
    match it {
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

fn view(it: &AttachmentView, ids: &mut impl IdMapper) -> AttachmentView {
    AttachmentView { resource: ids.resource(it.resource), region: it.region.clone() }
}

fn rendering(it: &Rendering, ids: &mut impl IdMapper) -> Rendering {
    let attachment = |it: &RenderingAttachment| RenderingAttachment {
        kind: it.kind,
        view: view(&it.view, ids),
        load: it.load,
        store: it.store,
        resolve: it.resolve.as_ref().map(|it| Resolve { view: view(&it.view, ids), mode: it.mode }),
    };
    let attachments = it.attachments.iter().map(attachment).collect();
    Rendering { attachments, ..it.clone() }
}

pub(crate) fn step(it: &HostStep, ids: &mut impl IdMapper) -> HostStep {
    match it {
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
        HostStep::SignalSemaphore(it) => HostStep::SignalSemaphore(point(*it, ids)),
        HostStep::SetEvent(it) => HostStep::SetEvent(ids.event(*it)),
        HostStep::ResetEvent(it) => HostStep::ResetEvent(ids.event(*it)),
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
        HostStep::Destroy(it) => HostStep::Destroy(ids.resource(*it)),
    }
}

fn batch(it: &SubmitBatch, ids: &mut impl IdMapper) -> SubmitBatch {
    SubmitBatch {
        waits: it.waits.iter().map(|it| SemaphoreWait { point: point(it.point, ids), stages: it.stages }).collect(),
        command_buffers: it.command_buffers.iter().map(|it| ids.command_buffer(*it)).collect(),
        signals: it
            .signals
            .iter()
            .map(|it| SemaphoreSignal { point: point(it.point, ids), stages: it.stages })
            .collect(),
    }
}

fn point(it: SemaphorePoint, ids: &mut impl IdMapper) -> SemaphorePoint {
    SemaphorePoint { semaphore: ids.semaphore(it.semaphore), value: it.value }
}
