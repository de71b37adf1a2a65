//! The slice of the past that a hazard is about, as a program that can be explained and changed.
//!
//! It begins with the earlier of the two submissions. Earlier work cannot order the two accesses; it matters only for
//! sparse bindings. The slice does not wait for semaphores that were signaled before, and skips accesses to memory that
//! the two accesses do not touch.

use std::collections::HashMap;
use std::ops::Range;

use lavascope_sync_ir::{
    Command, CommandBuffer, CommandBufferId, CommandLocation, EventId, FenceId, Hazard, HostStep, Program,
    ProgramLocation, RenderPass, RenderPassId, Resource, ResourceId, ResourceKind, SemaphoreId, SemaphorePoint,
    UndefinedContents,
};

use crate::device::{DeviceObjects, ValidatedDevice};
use crate::map_ids::{self, IdMapper, UNKNOWN_ID};
use crate::recording::command_buffer::RecordedCommandBuffer;
use crate::recording::step_history::{HistoryStep, SignaledSemaphores, SubmittedCommandBuffer};

/// A program, and where its objects come from.
pub(crate) struct ProgramSlice<'a> {
    pub(crate) program: Program,
    pub(crate) steps: Vec<&'a HistoryStep>,
    pub(crate) recorded_buffers: Vec<RecordedCommandBuffer>,
    pub(crate) resources: Vec<ResourceId>,
    pub(crate) passes: Vec<RenderPassId>,
    pub(crate) semaphores: Vec<SemaphoreId>,
    pub(crate) fences: Vec<FenceId>,
}

impl<'a> ProgramSlice<'a> {
    /// Everything from a step on that matters to a resource; none if that exceeds a number of commands.
    pub(crate) fn new(
        device: &'a ValidatedDevice,
        first: u32,
        about: ResourceId,
        commands_max: usize,
    ) -> Option<ProgramSlice<'a>> {
        let (signaled, steps) = device.history.steps_since(first);
        let steps = device.history.sparse_binds_before(first).chain(steps).collect();
        ProgramSlice::build(device, signaled, (first, steps), about, commands_max)
    }

    /// These steps alone, which wait for nothing, and where things lay before the last of them.
    pub(crate) fn of_steps(device: &'a ValidatedDevice, steps: &[u32], about: ResourceId) -> Option<ProgramSlice<'a>> {
        let last = steps.iter().copied().max()?;
        let is_one_of = |it: &&HistoryStep| steps.contains(&it.index);
        let binds = device.history.sparse_binds_before(last).filter(|it| !is_one_of(it));
        let mut all: Vec<&HistoryStep> = binds.chain(steps.iter().filter_map(|it| device.history.step(*it))).collect();
        all.sort_by_key(|it| it.index);
        all.dedup_by_key(|it| it.index);
        let mut slice = ProgramSlice::build(device, SignaledSemaphores::default(), (0, all), about, usize::MAX)?;
        for (kept, step) in slice.steps.iter().zip(&mut slice.program.steps) {
            if !steps.contains(&kept.index) {
                *step = only_sparse_binds(step);
            }
            remove_waits(step);
        }
        Some(slice)
    }

    /// A command buffer that is being recorded, alone.
    pub(crate) fn of_recording(
        device: &'a ValidatedDevice,
        kept: &'a HistoryStep,
        about: ResourceId,
        commands_max: usize,
    ) -> Option<ProgramSlice<'a>> {
        ProgramSlice::build(device, SignaledSemaphores::default(), (0, vec![kept]), about, commands_max)
    }

    fn build(
        device: &'a ValidatedDevice,
        mut signaled: SignaledSemaphores,
        (first, steps): (u32, Vec<&'a HistoryStep>),
        about: ResourceId,
        commands_max: usize,
    ) -> Option<ProgramSlice<'a>> {
        if steps.iter().map(|it| it.commands()).sum::<usize>() > commands_max {
            return None;
        }
        let mut dense = SliceIds::new(&device.objects, about);
        let mut program = Program { queues: device.objects.queues.clone(), ..Program::default() };
        for kept in &steps {
            let made = if kept.index < first { only_sparse_binds(&kept.step) } else { kept.step.clone() };
            program.steps.push(slice_step(kept, made, &mut signaled, &mut dense));
        }
        program.resources = dense.resources.ids.iter().map(|it| device.objects.resource(*it)).collect();
        program.render_passes = dense.passes.ids.iter().map(|it| device.objects.pass(*it)).collect();
        program.event_count = dense.events.ids.len() as u32;
        program.semaphore_count = dense.semaphores.ids.len() as u32;
        program.fence_count = dense.fences.ids.len() as u32;
        program.command_buffers = dense.commands;
        Some(ProgramSlice {
            program,
            steps,
            recorded_buffers: dense.buffers,
            resources: dense.resources.ids,
            passes: dense.passes.ids,
            semaphores: dense.semaphores.ids,
            fences: dense.fences.ids,
        })
    }

    /// Translates a hazard of the engine into the slice; none if the slice does not have its accesses.
    pub(crate) fn slice_hazard(&self, hazard: &Hazard) -> Option<Hazard> {
        let resource = self.resources.iter().position(|own| *own == hazard.resource)?;
        Some(Hazard {
            kind: hazard.kind,
            at: self.slice_location(&hazard.at)?,
            prior: self.slice_location(&hazard.prior)?,
            resource: ResourceId(resource as u32),
            region: hazard.region.clone(),
        })
    }

    /// The same without the earlier access, which is none of the program.
    pub(crate) fn slice_hazard_without_prior(&self, hazard: &Hazard) -> Option<Hazard> {
        let prior = CommandLocation { step: UNKNOWN_ID, batch: 0, primary: 0, path: Vec::new() };
        let later = Hazard { prior: hazard.at.clone(), ..hazard.clone() };
        Some(Hazard { prior: ProgramLocation::Command(prior), ..self.slice_hazard(&later)? })
    }

    /// Translates a hazard of the slice into one of the device.
    pub(crate) fn device_hazard(&self, hazard: &Hazard) -> Option<Hazard> {
        let index = |step: u32| self.steps.get(step as usize).map(|it| it.index);
        let location = |place: &ProgramLocation| {
            Some(match place {
                ProgramLocation::Step(step) => ProgramLocation::Step(index(*step)?),
                ProgramLocation::Command(at) => {
                    ProgramLocation::Command(CommandLocation { step: index(at.step)?, ..at.clone() })
                }
            })
        };
        Some(Hazard {
            kind: hazard.kind,
            at: location(&hazard.at)?,
            prior: location(&hazard.prior)?,
            resource: *self.resources.get(hazard.resource.0 as usize)?,
            region: hazard.region.clone(),
        })
    }

    pub(crate) fn commands(&self) -> usize {
        self.steps.iter().map(|it| it.commands()).sum()
    }

    /// The same of a fault; what made it so may be too long ago.
    pub(crate) fn slice_fault(&self, undefined_contents: &UndefinedContents) -> Option<UndefinedContents> {
        let resource = self.resources.iter().position(|own| *own == undefined_contents.resource)?;
        Some(UndefinedContents {
            kind: undefined_contents.kind,
            at: self.slice_location(&undefined_contents.at)?,
            prior: undefined_contents.prior.as_ref().and_then(|it| self.slice_location(it)),
            resource: ResourceId(resource as u32),
            region: undefined_contents.region.clone(),
        })
    }

    fn slice_location(&self, place: &ProgramLocation) -> Option<ProgramLocation> {
        let index = |step: u32| Some(self.steps.binary_search_by_key(&step, |it| it.index).ok()? as u32);
        Some(match place {
            ProgramLocation::Step(step) => ProgramLocation::Step(index(*step)?),
            ProgramLocation::Command(at) => {
                ProgramLocation::Command(CommandLocation { step: index(at.step)?, ..at.clone() })
            }
        })
    }
}

impl DeviceObjects {
    fn resource(&self, id: ResourceId) -> Resource {
        let gone = || Resource::new(ResourceKind::Buffer { size: 0 }, None);
        self.resources.get(&id).map_or_else(gone, |it| it.1.clone())
    }

    fn pass(&self, id: RenderPassId) -> RenderPass {
        self.passes.get(&id).map_or_else(RenderPass::default, |it| it.1.clone())
    }

    /// Whether two resources may share memory, or are one.
    pub(crate) fn may_share_memory(&self, one: ResourceId, other: ResourceId) -> bool {
        let is_sparse = |id: ResourceId| self.resources.get(&id).is_some_and(|it| it.1.is_sparse);
        let binding = |id: ResourceId| self.resources.get(&id).and_then(|it| it.1.binding);
        let overlap = |a: Range<u64>, b: Range<u64>| a.start < b.end && b.start < a.end;
        one == other
            || is_sparse(one)
            || is_sparse(other)
            || matches!((binding(one), binding(other)), (Some(a), Some(b)) if a.memory == b.memory
                && overlap(a.offset..a.offset.saturating_add(a.size), b.offset..b.offset.saturating_add(b.size)))
    }
}

/// The part of an older step that the slice keeps: sparse bindings.
fn only_sparse_binds(step: &HostStep) -> HostStep {
    let mut host_step = step.clone();
    if let HostStep::BindSparse { waits, signals, fence, .. } = &mut host_step {
        waits.clear();
        signals.clear();
        *fence = None;
    }
    host_step
}

/// The step is executed at once.
fn remove_waits(step: &mut HostStep) {
    match step {
        HostStep::Submit { batches, .. } => batches.iter_mut().for_each(|it| it.waits.clear()),
        HostStep::Present { waits, .. } => waits.clear(),
        HostStep::BindSparse { waits, .. } => waits.clear(),
        _ => {}
    }
}

/// A step with the command buffers that it submitted.
fn slice_step(
    kept: &HistoryStep,
    mut host_step: HostStep,
    signaled: &mut SignaledSemaphores,
    dense: &mut SliceIds<'_>,
) -> HostStep {
    match &mut host_step {
        HostStep::Submit { batches, .. } => {
            for batch in batches {
                batch.waits.retain(|it| !signaled.take_signal(it.point));
                // The command buffers get new ids below, by their contents.
                batch.command_buffers.clear();
            }
        }
        HostStep::Present { waits, .. } => {
            waits.retain(|it| !signaled.take_signal(SemaphorePoint { semaphore: *it, value: None }));
        }
        HostStep::BindSparse { waits, .. } => waits.retain(|it| !signaled.take_signal(*it)),
        _ => {}
    }
    let mut made = map_ids::step(&host_step, dense);
    if let HostStep::Submit { batches, .. } = &mut made {
        for (batch, buffers) in batches.iter_mut().zip(&kept.buffers) {
            batch.command_buffers = buffers.iter().map(|it| dense.submit(it)).collect();
        }
    }
    made
}

/// Assigns ids in the order in which objects are first used.
struct SliceIds<'a> {
    objects: &'a DeviceObjects,
    resource: ResourceId,
    /// Whether the ids of an action are being translated, where only some accesses count.
    is_in_action: bool,
    resources: FirstUseIds<ResourceId>,
    passes: FirstUseIds<RenderPassId>,
    events: FirstUseIds<EventId>,
    semaphores: FirstUseIds<SemaphoreId>,
    fences: FirstUseIds<FenceId>,
    /// By the addresses of the recorded commands: the command buffer itself, and all that it executes.
    known: HashMap<Vec<(usize, u32)>, CommandBufferId>,
    buffers: Vec<RecordedCommandBuffer>,
    commands: Vec<CommandBuffer>,
    /// The current meaning of the tracker's ids of secondary command buffers.
    executed: HashMap<CommandBufferId, CommandBufferId>,
}

struct FirstUseIds<T> {
    ids: Vec<T>,
    indices: HashMap<T, u32>,
}

impl<T: Copy + Eq + std::hash::Hash> FirstUseIds<T> {
    fn new() -> FirstUseIds<T> {
        FirstUseIds { ids: Vec::new(), indices: HashMap::new() }
    }

    fn insert(&mut self, id: T) -> u32 {
        *self.indices.entry(id).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() as u32 - 1
        })
    }
}

impl<'a> SliceIds<'a> {
    fn new(objects: &'a DeviceObjects, about: ResourceId) -> SliceIds<'a> {
        SliceIds {
            objects,
            resource: about,
            is_in_action: false,
            resources: FirstUseIds::new(),
            passes: FirstUseIds::new(),
            events: FirstUseIds::new(),
            semaphores: FirstUseIds::new(),
            fences: FirstUseIds::new(),
            known: HashMap::new(),
            buffers: Vec::new(),
            commands: Vec::new(),
            executed: HashMap::new(),
        }
    }

    fn submit(&mut self, command_buffer: &SubmittedCommandBuffer) -> CommandBufferId {
        let Some(own) = &command_buffer.own else { return CommandBufferId(UNKNOWN_ID) };
        let all = [own]
            .into_iter()
            .chain(command_buffer.executed.iter().map(|it| &it.1))
            .map(RecordedCommandBuffer::identity)
            .collect();
        if let Some(known) = self.known.get(&all) {
            return *known;
        }
        self.executed.clear();
        for (id, recorded) in &command_buffer.executed {
            let place = self.reserve(recorded);
            self.executed.insert(*id, place);
        }
        let place = self.reserve(own);
        for (id, recorded) in &command_buffer.executed {
            let place = self.executed[id];
            self.fill(place, recorded);
        }
        self.fill(place, own);
        self.known.insert(all, place);
        place
    }

    fn reserve(&mut self, recorded: &RecordedCommandBuffer) -> CommandBufferId {
        self.buffers.push(recorded.clone());
        self.commands.push(CommandBuffer::default());
        CommandBufferId(self.commands.len() as u32 - 1)
    }

    fn fill(&mut self, place: CommandBufferId, recorded: &RecordedCommandBuffer) {
        let commands = recorded.commands().map(|it| self.command(&it)).collect();
        self.commands[place.0 as usize] = CommandBuffer { commands, is_secondary: recorded.is_secondary };
    }

    fn command(&mut self, item: &Command) -> Command {
        self.is_in_action = matches!(item, Command::Action(_));
        let made = map_ids::command(item, self);
        self.is_in_action = false;
        made
    }
}

impl IdMapper for SliceIds<'_> {
    fn resource(&mut self, id: ResourceId) -> ResourceId {
        if self.is_in_action && !self.objects.may_share_memory(id, self.resource) {
            return ResourceId(UNKNOWN_ID);
        }
        ResourceId(self.resources.insert(id))
    }

    fn pass(&mut self, id: RenderPassId) -> RenderPassId {
        RenderPassId(self.passes.insert(id))
    }

    fn event(&mut self, id: EventId) -> EventId {
        EventId(self.events.insert(id))
    }

    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId {
        SemaphoreId(self.semaphores.insert(id))
    }

    fn fence(&mut self, id: FenceId) -> FenceId {
        FenceId(self.fences.insert(id))
    }

    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId {
        self.executed.get(&id).copied().unwrap_or(CommandBufferId(UNKNOWN_ID))
    }
}
