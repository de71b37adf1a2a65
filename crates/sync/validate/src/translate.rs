//! The things of commands and steps under other numbers.

use lavascope_sync_ir::{
    Access, AttachmentView, Barrier, Batch, Command, CommandBufferId, Dependency, EventId, FenceId, Point,
    RenderPassId, Rendering, RenderingAttachment, Resolve, ResourceId, SemaphoreId, SetEvent, Signal, SparseBind, Step,
    Wait, WaitEvents, What,
};

/// A number that nothing has.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Gives other numbers; [`NOBODY`] for what is not known.
pub(crate) trait Ids {
    fn resource(&mut self, id: ResourceId) -> ResourceId;
    fn pass(&mut self, id: RenderPassId) -> RenderPassId;
    fn event(&mut self, id: EventId) -> EventId;
    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId;
    fn fence(&mut self, id: FenceId) -> FenceId;
    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId;
}

/// Keeps the number of commands: each has its place.
pub(crate) fn command(it: &Command, ids: &mut impl Ids) -> Command {
    match it {
        Command::Action(all) => Command::Action(accesses(all, ids)),
        Command::Barrier(Barrier::One { src_stages, dst_stages, dependencies: all }) => {
            Command::Barrier(Barrier::One {
                src_stages: *src_stages,
                dst_stages: *dst_stages,
                dependencies: dependencies(all, ids),
            })
        }
        Command::Barrier(Barrier::Two { dependencies: all }) => {
            Command::Barrier(Barrier::Two { dependencies: dependencies(all, ids) })
        }
        Command::SetEvent(SetEvent::One { event, stages }) => {
            Command::SetEvent(SetEvent::One { event: ids.event(*event), stages: *stages })
        }
        Command::SetEvent(SetEvent::Two { event, dependencies: all }) => {
            Command::SetEvent(SetEvent::Two { event: ids.event(*event), dependencies: dependencies(all, ids) })
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

fn accesses(all: &[Access], ids: &mut impl Ids) -> Vec<Access> {
    let access = |it: &Access| {
        let resource = ids.resource(it.resource);
        (resource.0 != NOBODY).then(|| Access { resource, ..it.clone() })
    };
    all.iter().filter_map(access).collect()
}

/// Keeps the number of dependencies, since explanations count them.
fn dependencies(all: &[Dependency], ids: &mut impl Ids) -> Vec<Dependency> {
    let what = |it: &What, ids: &mut _| match it {
        What::Memory => What::Memory,
        What::Resource { resource, region } => {
            What::Resource { resource: Ids::resource(ids, *resource), region: region.clone() }
        }
        What::Transition { resource, region } => {
            What::Transition { resource: Ids::resource(ids, *resource), region: region.clone() }
        }
        What::Ownership { resource, region, ownership } => {
            What::Ownership { resource: Ids::resource(ids, *resource), region: region.clone(), ownership: *ownership }
        }
    };
    all.iter().map(|it| Dependency { scope: it.scope, what: what(&it.what, ids) }).collect()
}

fn wait_events(it: &WaitEvents, ids: &mut impl Ids) -> WaitEvents {
    match it {
        WaitEvents::One { events, src_stages, dst_stages, dependencies: all } => WaitEvents::One {
            events: events.iter().map(|it| ids.event(*it)).collect(),
            src_stages: *src_stages,
            dst_stages: *dst_stages,
            dependencies: dependencies(all, ids),
        },
        WaitEvents::Two { events } => WaitEvents::Two {
            events: events.iter().map(|(event, all)| (ids.event(*event), dependencies(all, ids))).collect(),
        },
    }
}

fn view(it: &AttachmentView, ids: &mut impl Ids) -> AttachmentView {
    AttachmentView { resource: ids.resource(it.resource), region: it.region.clone() }
}

fn rendering(it: &Rendering, ids: &mut impl Ids) -> Rendering {
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

pub(crate) fn step(it: &Step, ids: &mut impl Ids) -> Step {
    match it {
        Step::Submit { queue, batches, fence } => Step::Submit {
            queue: *queue,
            batches: batches.iter().map(|it| batch(it, ids)).collect(),
            fence: fence.map(|it| ids.fence(it)),
        },
        Step::WaitFences(all) => Step::WaitFences(all.iter().map(|it| ids.fence(*it)).collect()),
        Step::ResetFences(all) => Step::ResetFences(all.iter().map(|it| ids.fence(*it)).collect()),
        Step::QueueIdle(queue) => Step::QueueIdle(*queue),
        Step::DeviceIdle => Step::DeviceIdle,
        Step::WaitSemaphores(all) => Step::WaitSemaphores(all.iter().map(|it| point(*it, ids)).collect()),
        Step::SignalSemaphore(it) => Step::SignalSemaphore(point(*it, ids)),
        Step::SetEvent(it) => Step::SetEvent(ids.event(*it)),
        Step::ResetEvent(it) => Step::ResetEvent(ids.event(*it)),
        Step::HostAccess { resource, region, is_write, certainty } => Step::HostAccess {
            resource: ids.resource(*resource),
            region: region.clone(),
            is_write: *is_write,
            certainty: *certainty,
        },
        Step::Acquire { image, semaphore, fence } => Step::Acquire {
            image: ids.resource(*image),
            semaphore: semaphore.map(|it| ids.semaphore(it)),
            fence: fence.map(|it| ids.fence(it)),
        },
        Step::Present { queue, waits, images } => Step::Present {
            queue: *queue,
            waits: waits.iter().map(|it| ids.semaphore(*it)).collect(),
            images: images.iter().map(|it| ids.resource(*it)).collect(),
        },
        Step::BindSparse { queue, waits, binds, signals, fence } => Step::BindSparse {
            queue: *queue,
            waits: waits.iter().map(|it| point(*it, ids)).collect(),
            binds: binds.iter().map(|it| SparseBind { resource: ids.resource(it.resource), ..it.clone() }).collect(),
            signals: signals.iter().map(|it| point(*it, ids)).collect(),
            fence: fence.map(|it| ids.fence(it)),
        },
        Step::Destroy(it) => Step::Destroy(ids.resource(*it)),
    }
}

fn batch(it: &Batch, ids: &mut impl Ids) -> Batch {
    Batch {
        waits: it.waits.iter().map(|it| Wait { point: point(it.point, ids), stages: it.stages }).collect(),
        command_buffers: it.command_buffers.iter().map(|it| ids.command_buffer(*it)).collect(),
        signals: it.signals.iter().map(|it| Signal { point: point(it.point, ids), stages: it.stages }).collect(),
    }
}

fn point(it: Point, ids: &mut impl Ids) -> Point {
    Point { semaphore: ids.semaphore(it.semaphore), value: it.value }
}
