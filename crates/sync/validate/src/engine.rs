//! The engine of a device, behind a translation of ids. Those of the tracker never come again. Those of the engine are
//! reused after an object is destroyed, so its memory is bounded by the number of live objects.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::map_ids::{self, IdMapper, UNKNOWN_ID};
use lavascope_engine::{Engine, UnplacedReason};
use lavascope_state::Destroyed;
use lavascope_sync_ir::{
    Access, Command, CommandBuffer, CommandBufferId, EventId, FenceId, Findings, HostStep, Queue, QueueId, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId, SemaphorePoint,
};

pub(crate) struct IdMappedEngine {
    engine: Engine,
    steps: u32,
    ids: EngineIds,
    pub(crate) never_repeats: bool,
}

/// The engine's id for each id of the tracker.
#[derive(Default)]
struct EngineIds {
    resources: ReusedIds,
    passes: ReusedIds,
    events: ReusedIds,
    semaphores: ReusedIds,
    fences: ReusedIds,
    command_buffers: ReusedIds,
}

impl IdMappedEngine {
    pub(crate) fn new(queues: &[Queue]) -> IdMappedEngine {
        IdMappedEngine {
            engine: Engine::new(queues, 0, 0, 0),
            steps: 0,
            ids: EngineIds::default(),
            never_repeats: false,
        }
    }

    /// Switches off the caches of the engine and of repeated recordings; see [`Engine::disable_caches`].
    pub(crate) fn disable_caches(&mut self) {
        self.never_repeats = true;
        self.engine.disable_caches();
    }

    /// Checks command buffers only when they are executed; see [`Engine::check_when_executed`].
    pub(crate) fn check_when_executed(&mut self) {
        self.engine.check_when_executed();
    }

    pub(crate) fn finish_quick_check(&mut self) -> bool {
        self.engine.finish_deferred_checks()
    }

    pub(crate) fn add_resource(&mut self, id: ResourceId, resource: &Resource) {
        self.engine.set_resource(ResourceId(self.ids.resources.add(id.0)), resource);
    }

    #[inline]
    pub(crate) fn has_unplaced(&self) -> bool {
        self.engine.has_unplaced()
    }

    /// How often the engine had no addresses for a resource since the last call, by reason.
    pub(crate) fn take_unplaced(&mut self) -> BTreeMap<UnplacedReason, u64> {
        self.engine.take_unplaced()
    }

    pub(crate) fn add_render_pass(&mut self, id: RenderPassId, pass: &RenderPass) {
        self.engine.set_render_pass(RenderPassId(self.ids.passes.add(id.0)), pass.clone());
    }

    pub(crate) fn add_event(&mut self, id: EventId) {
        self.engine.set_event(EventId(self.ids.events.add(id.0)));
    }

    pub(crate) fn add_semaphore(&mut self, id: SemaphoreId) {
        self.engine.set_semaphore(SemaphoreId(self.ids.semaphores.add(id.0)));
    }

    pub(crate) fn add_fence(&mut self, id: FenceId) {
        self.engine.set_fence(FenceId(self.ids.fences.add(id.0)));
    }

    /// The number of the next step.
    pub(crate) fn next_step(&self) -> u32 {
        self.steps
    }

    /// Begins to record a command buffer for queues like this one.
    pub(crate) fn begin_recording(&mut self, id: CommandBufferId, queue: Queue, is_secondary: bool) {
        self.engine.begin_recording(self.ids.command_buffer(id), queue, is_secondary);
    }

    /// Whether a command buffer need not be recorded again if its commands stay the same; see [`Engine::can_repeat`].
    pub(crate) fn prepare_repeat(&mut self, id: CommandBufferId, queue: Queue, is_secondary: bool) -> bool {
        if self.never_repeats {
            return false;
        }
        self.engine.can_repeat(self.ids.command_buffer(id), queue, is_secondary)
    }

    #[inline]
    pub(crate) fn check_unchanged(&mut self, id: CommandBufferId) -> bool {
        self.engine.is_unchanged(self.ids.command_buffer(id))
    }

    /// See [`Engine::check_command`]. Takes and returns ids of the tracker.
    pub(crate) fn check_command(&mut self, id: CommandBufferId, command: &Command) -> Findings {
        if let Command::Action(accesses) = command {
            return self.check_action(id, accesses).map_or_else(Findings::default, |it| *it);
        }
        let engine_id = self.ids.command_buffer(id);
        let found = self.engine.check_command(engine_id, map_ids::command(command, &mut self.ids));
        if found.is_empty() { found } else { self.ids.with_tracker_ids(found) }
    }

    /// See [`Engine::check_action`]. Takes and returns ids of the tracker.
    pub(crate) fn check_action(&mut self, id: CommandBufferId, accesses: &[Access]) -> Option<Box<Findings>> {
        let (engine_id, resources) = (self.ids.command_buffer(id), &self.ids.resources);
        let found = self.engine.check_action(engine_id, accesses, |it| ResourceId(resources.get(it.0)))?;
        Some(Box::new(self.ids.with_tracker_ids(*found)))
    }

    /// Removes the last command.
    pub(crate) fn undo_last_command(&mut self, id: CommandBufferId) {
        self.engine.undo_last_command(self.ids.command_buffer(id));
    }

    pub(crate) fn replace_command(&mut self, id: CommandBufferId, index: u32, command: &Command) {
        let command = map_ids::command(command, &mut self.ids);
        self.engine.replace_command(self.ids.command_buffer(id), index, command);
    }

    pub(crate) fn end_recording(&mut self, id: CommandBufferId) {
        self.engine.end_recording(self.ids.command_buffer(id));
    }

    pub(crate) fn set_command_buffer(&mut self, id: CommandBufferId, buffer: &CommandBuffer) {
        let commands = buffer.commands.iter().map(|it| map_ids::command(it, &mut self.ids)).collect();
        let engine_id = self.ids.command_buffer(id);
        self.engine.set_command_buffer(engine_id, CommandBuffer { commands, ..*buffer });
    }

    /// The blocked submissions; see [`Engine::blocked_submissions`].
    pub(crate) fn blocked_submissions(&self) -> Vec<(QueueId, u32)> {
        self.engine.blocked_submissions()
    }

    /// The semaphores for which the first blocked submission of a queue waits, with the ids of the tracker.
    pub(crate) fn unsignaled(&self, queue: QueueId) -> Vec<SemaphorePoint> {
        let back = |semaphore_point: SemaphorePoint| SemaphorePoint {
            semaphore: SemaphoreId(self.ids.semaphores.tracker_id(semaphore_point.semaphore.0)),
            ..semaphore_point
        };
        self.engine.unsignaled_waits(queue).into_iter().map(back).collect()
    }

    #[cfg(test)]
    pub(crate) fn id_count(&self) -> usize {
        let EngineIds { resources, passes, events, semaphores, fences, command_buffers } = &self.ids;
        [resources, passes, events, semaphores, fences, command_buffers].iter().map(|it| it.ids.len()).sum()
    }

    pub(crate) fn remove_object(&mut self, gone: Destroyed) {
        if let Destroyed::RenderPass(_) | Destroyed::Event(_) = gone {
            self.engine.check_unexecuted();
        }
        match gone {
            Destroyed::RenderPass(id) => drop(self.ids.passes.remove(id.0)),
            Destroyed::Event(id) => drop(self.ids.events.remove(id.0)),
            Destroyed::Semaphore(id) => drop(self.ids.semaphores.remove(id.0)),
            Destroyed::Fence(id) => drop(self.ids.fences.remove(id.0)),
            Destroyed::CommandBuffer(id) => {
                if let Some(engine_id) = self.ids.command_buffers.remove(id.0) {
                    self.engine.set_command_buffer(CommandBufferId(engine_id), CommandBuffer::default());
                }
            }
        }
    }

    /// See [`Engine::bytes_in_use`].
    pub(crate) fn bytes_in_use(&self, resource: ResourceId, bytes: &[Range<u64>]) -> Vec<Range<u64>> {
        self.engine.bytes_in_use(ResourceId(self.ids.resources.get(resource.0)), bytes)
    }

    /// Processes a step of the host. Returns the number of the step, and the findings with the ids of the tracker.
    pub(crate) fn step(&mut self, step: &HostStep) -> (u32, Findings) {
        self.engine.step(&map_ids::step(step, &mut self.ids));
        let index = self.steps;
        self.steps += 1;
        let found = Findings { hazards: self.engine.take_hazards(), faults: self.engine.take_faults() };
        let found = self.ids.with_tracker_ids(found);
        if let HostStep::Destroy(id) = step {
            self.ids.resources.remove(id.0);
        }
        (index, found)
    }
}

impl EngineIds {
    /// Findings with the ids of the tracker.
    fn with_tracker_ids(&self, mut found: Findings) -> Findings {
        let hazards = found.hazards.iter_mut().map(|it| &mut it.resource);
        for hazard in hazards.chain(found.faults.iter_mut().map(|it| &mut it.resource)) {
            *hazard = ResourceId(self.resources.tracker_id(hazard.0));
        }
        found
    }
}

impl IdMapper for EngineIds {
    fn resource(&mut self, id: ResourceId) -> ResourceId {
        ResourceId(self.resources.get(id.0))
    }

    fn pass(&mut self, id: RenderPassId) -> RenderPassId {
        RenderPassId(self.passes.get(id.0))
    }

    fn event(&mut self, id: EventId) -> EventId {
        EventId(self.events.get(id.0))
    }

    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId {
        SemaphoreId(self.semaphores.get(id.0))
    }

    fn fence(&mut self, id: FenceId) -> FenceId {
        FenceId(self.fences.get(id.0))
    }

    /// The engine does not learn when a command buffer is allocated. It gets an id when it is first used.
    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId {
        let known = self.command_buffers.get(id.0);
        CommandBufferId(if known == UNKNOWN_ID { self.command_buffers.add(id.0) } else { known })
    }
}

/// Dense ids for objects that come and go.
#[derive(Default)]
struct ReusedIds {
    /// Pages by id of the tracker. These ids count up, so one lookup finds the page; a page without live objects is
    /// freed.
    by_id: Vec<Option<Box<IdPage>>>,
    ids: Vec<u32>,
    free: Vec<u32>,
}

struct IdPage {
    slots: [u32; PAGE],
    live: usize,
}

/// Number of ids in a page.
const PAGE: usize = 256;

impl ReusedIds {
    fn add(&mut self, id: u32) -> u32 {
        let slot = self.free.pop().unwrap_or(self.ids.len() as u32);
        if slot as usize == self.ids.len() {
            self.ids.push(id);
        } else {
            self.ids[slot as usize] = id;
        }
        let page = id as usize / PAGE;
        if self.by_id.len() <= page {
            self.by_id.resize_with(page + 1, || None);
        }
        let page = self.by_id[page].get_or_insert_with(|| Box::new(IdPage { slots: [UNKNOWN_ID; PAGE], live: 0 }));
        let own = &mut page.slots[id as usize % PAGE];
        page.live += usize::from(*own == UNKNOWN_ID);
        *own = slot;
        slot
    }

    #[inline]
    fn get(&self, id: u32) -> u32 {
        let page = self.by_id.get(id as usize / PAGE).and_then(Option::as_ref);
        page.map_or(UNKNOWN_ID, |it| it.slots[id as usize % PAGE])
    }

    fn tracker_id(&self, slot: u32) -> u32 {
        self.ids.get(slot as usize).copied().unwrap_or(UNKNOWN_ID)
    }

    fn remove(&mut self, id: u32) -> Option<u32> {
        let page = self.by_id.get_mut(id as usize / PAGE)?;
        let own = page.as_mut()?;
        let slot = std::mem::replace(&mut own.slots[id as usize % PAGE], UNKNOWN_ID);
        if slot == UNKNOWN_ID {
            return None;
        }
        own.live -= 1;
        if own.live == 0 {
            *page = None;
        }
        self.free.push(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_old_ones_lead_nowhere() {
        let mut slots = ReusedIds::default();
        for id in 0..1000 {
            assert!(slots.add(id) < 2);
            assert_eq!(slots.tracker_id(slots.get(id)), id);
            if id > 0 {
                slots.remove(id - 1);
                assert_eq!(slots.get(id - 1), UNKNOWN_ID);
            }
        }
        assert_eq!(slots.ids.len(), 2);
        assert_eq!(slots.by_id.iter().flatten().count(), 1);
    }
}
