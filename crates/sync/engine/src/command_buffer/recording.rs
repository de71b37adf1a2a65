//! Reports the hazards inside a command buffer while it is recorded, command by command, and not again when it is
//! executed. These hazards do not depend on what comes before the command buffer.
//!
//! The engine executes the command buffer on an isolated device, which has the addresses of the real one but no earlier
//! work.
//! Secondary command buffers are checked as part of the primary ones: only those know the render pass.

use lavascope_sync_ir::{
    Access, Command, CommandBufferId, CommandLocation, Findings, Hazard, ProgramLocation, Queue, ResourceId, StoreOp,
    UndefinedContents,
};

use crate::check::Engine;
use crate::command_buffer::marks::MarkMode;
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::command_buffer::used_blocks::UsedBlocks;
use crate::queue::device::{EngineDevice, MovedImage, get_or_grow};
use crate::queue::execution::{ExecutionCursor, RecordedCommands};

/// Largest number of unused devices that are kept for reuse.
const SPARE_MAX: usize = 32;

/// The isolated execution of a command buffer, up to the command that was recorded last.
pub(crate) struct IsolatedExecution {
    pub(crate) device: EngineDevice,
    pub(crate) cursor: ExecutionCursor,
    /// The value of `AddressMap::move_count` when the execution began.
    move_count: u64,
}

/// The findings of a command buffer that were reported while it was recorded.
#[derive(Default)]
pub(crate) struct ReportedFindings {
    hazards: Vec<Hazard>,
    faults: Vec<UndefinedContents>,
}

impl Engine {
    /// The step number in findings of recording, because no step has been executed yet.
    pub const RECORDING: u32 = u32::MAX;

    /// Begins to record an empty command buffer for queues of this kind. Its commands follow one by one.
    pub fn begin_recording(&mut self, id: CommandBufferId, queue: Queue, is_secondary: bool) {
        self.end_recording(id);
        self.begin_deferred_check(id, queue, is_secondary);
        let checked = self.checked_for(queue, is_secondary);
        let commands = get_or_grow(&mut self.command_buffers, id.0 as usize);
        commands.list.is_cache_disabled = self.is_cache_disabled;
        commands.begin(checked, &self.device.addresses);
        // If resources alias each other, every command is checked at once.
        if checked.is_some() && !self.is_cache_disabled && self.device.addresses.alias_count() == 0 {
            commands.used_blocks = Some(self.spare_used_blocks.pop().unwrap_or_default());
        }
    }

    /// Whether recording the same commands again for such a queue would have no findings and the same marks.
    pub fn can_repeat(&self, id: CommandBufferId, queue: Queue, is_secondary: bool) -> bool {
        let checked = self.checked_for(queue, is_secondary);
        let is_for = |it: &PreparedCommandBuffer| it.queue == checked && !self.is_cache_disabled;
        self.command_buffers.get(id.0 as usize).is_some_and(is_for) && self.is_unchanged(id)
    }

    /// The kind of queue for which a command buffer is checked while it is recorded, if it is checked at all.
    fn checked_for(&self, queue: Queue, is_secondary: bool) -> Option<Queue> {
        Some(queue).filter(|_| !is_secondary && self.deferred_checks.is_none())
    }

    /// Whether the result of the recording is still valid: no resource of the command buffer has moved or got an alias,
    /// and no secondary command buffer was recorded again.
    #[inline]
    pub fn is_unchanged(&self, id: CommandBufferId) -> bool {
        let Some(commands) = self.command_buffers.get(id.0 as usize) else { return false };
        let recorded = RecordedCommands { command_buffers: &self.command_buffers, render_passes: &self.render_passes };
        commands.is_clean(&self.device.addresses) && recorded.is_up_to_date(commands)
    }

    /// Adds a recorded command and checks it. Returns the hazards between it and earlier commands; its execution does not
    /// report them again. Hazards of sparse resources are reported only when the command is executed.
    pub fn check_command(&mut self, id: CommandBufferId, command: Command) -> Findings {
        let (versions, is_special) = match &command {
            Command::Action(accesses) => {
                return self.check_action(id, accesses, |it| it).map_or_else(Findings::default, |it| *it);
            }
            Command::Execute(executed) => self.prepare_secondaries(executed),
            command => (Vec::new(), depends_on_earlier_work(command)),
        };
        let Some(commands) = self.command_buffers.get_mut(id.0 as usize) else { return Findings::default() };
        let has_events = matches!(command, Command::SetEvent(_) | Command::Execute(_));
        commands.push(command, &versions, &self.device.addresses);
        if is_special {
            commands.discard_marks();
        }
        self.check_last(id, has_events).map_or_else(Findings::default, |it| *it)
    }

    /// Like `check_command`, for an action command; `engine_id` translates its resources to ids of the engine. Returns
    /// none if there is no finding.
    pub fn check_action(
        &mut self,
        id: CommandBufferId,
        accesses: &[Access],
        engine_id: impl Fn(ResourceId) -> ResourceId,
    ) -> Option<Box<Findings>> {
        let commands = self.command_buffers.get_mut(id.0 as usize)?;
        // Looks up the memory range and the usage of each access, once for all executions.
        commands.push_action(accesses, engine_id, &self.device.addresses);
        self.check_last(id, false)
    }

    /// Checks the command that was recorded last.
    fn check_last(&mut self, id: CommandBufferId, has_events: bool) -> Option<Box<Findings>> {
        let index = id.0 as usize;
        let commands = &mut self.command_buffers[index];
        let queue = commands.queue?;
        // Marks tell a later execution what need not be checked again. They are void if a resource has moved since.
        let has_marks = commands.has_valid_marks(&self.device.addresses);
        // A hazard needs two accesses to the same memory, one of them a write. Until there are two, commands that access
        // only buffers, and barriers between them, wait here: only the blocks of memory that they use are kept.
        if let Some(used_blocks) = &mut commands.used_blocks {
            if has_marks && used_blocks.insert_last_if_unused(&commands.list) {
                return None;
            }
            self.check_postponed(index, queue, has_marks);
        }
        let moves = self.device.addresses.move_count();
        let current = self.command_buffers[index].isolated.take().filter(|it| it.move_count == moves);
        let mut isolated = current.unwrap_or_else(|| self.catch_up(index, queue));
        if has_events {
            isolated.device.grow_events(&self.device);
        }
        // Executes the last command: `ExecutionCursor::advance` calls `CommandExecutor::execute_range`.
        self.check_until(&mut isolated, index, self.command_buffers[index].list.len());
        let commands = &mut self.command_buffers[index];
        let found = isolated.take_findings();
        if let Some(found) = &found {
            commands.reported.add(found);
        }
        commands.isolated = Some(isolated);
        found
    }

    /// Executes and marks commands from the last executed one up to `until`.
    fn check_until(&mut self, isolated: &mut IsolatedExecution, index: usize, until: usize) {
        let has_marks = self.command_buffers[index].has_valid_marks(&self.device.addresses);
        isolated.cursor.progress.marking = if has_marks { MarkMode::Set } else { MarkMode::Off };
        self.advance_isolated(isolated, index, until);
        let commands = &mut self.command_buffers[index];
        for update in isolated.cursor.progress.mark_updates.drain(..) {
            commands.list.apply_mark(update.marks_index, update.change);
        }
        if isolated.device.has_used_sparse {
            commands.discard_marks();
        }
    }

    /// Executes the commands whose check was postponed, all but the last. None of them has a hazard.
    #[cold]
    fn check_postponed(&mut self, index: usize, queue: Queue, has_marks: bool) {
        let used_blocks = self.command_buffers[index].used_blocks.take();
        self.recycle_used_blocks(used_blocks);
        // A resource has moved since, so no marks are set.
        if !has_marks {
            return;
        }
        let mut isolated = self.new_isolated(queue);
        // One by one, because the marks of a command decide which marks the next one gets.
        for until in 1..self.command_buffers[index].list.len() {
            self.check_until(&mut isolated, index, until);
        }
        self.command_buffers[index].isolated = Some(isolated);
    }

    /// Prepares secondary command buffers for execution. Returns their versions, and whether one of them waits for
    /// events or executes others.
    fn prepare_secondaries(&mut self, executed: &[CommandBufferId]) -> (Vec<u64>, bool) {
        self.refresh_all(executed.iter().copied());
        let own = |it: &CommandBufferId| self.command_buffers.get(it.0 as usize);
        let versions = executed.iter().map(|it| own(it).map_or(0, |it| it.version)).collect();
        let is_special = |it: &PreparedCommandBuffer| it.has_event_wait || !it.executed.is_empty();
        (versions, executed.iter().filter_map(own).any(is_special))
    }

    /// Removes the last command.
    pub fn undo_last_command(&mut self, id: CommandBufferId) {
        self.end_recording(id);
        if let Some(commands) = self.command_buffers.get_mut(id.0 as usize) {
            commands.pop();
        }
    }

    /// Replaces a recorded command whose accesses were not known before. Its hazards are reported when it is executed.
    pub fn replace_command(&mut self, id: CommandBufferId, index: u32, command: Command) {
        self.end_recording(id);
        if let Some(commands) = self.command_buffers.get_mut(id.0 as usize) {
            commands.replace(index as usize, command);
        }
    }

    /// Ends recording, and frees what was kept only to check further commands.
    pub fn end_recording(&mut self, id: CommandBufferId) {
        let Some(commands) = self.command_buffers.get_mut(id.0 as usize) else { return };
        let (isolated, used_blocks) = (commands.isolated.take(), commands.used_blocks.take());
        if let Some(isolated) = isolated {
            self.recycle_isolated(isolated);
        }
        self.recycle_used_blocks(used_blocks);
    }

    #[inline]
    fn recycle_used_blocks(&mut self, used_blocks: Option<UsedBlocks>) {
        let Some(mut used_blocks) = used_blocks else { return };
        if self.spare_used_blocks.len() < SPARE_MAX {
            used_blocks.clear();
            self.spare_used_blocks.push(used_blocks);
        }
    }

    pub(crate) fn recycle_isolated(&mut self, isolated: Box<IsolatedExecution>) {
        if self.spare_isolated.len() < SPARE_MAX {
            self.spare_isolated.push(isolated);
        }
    }

    /// Executes all commands of a command buffer but the last. Their hazards are already reported.
    #[cold]
    fn catch_up(&mut self, index: usize, queue: Queue) -> Box<IsolatedExecution> {
        let mut isolated = self.new_isolated(queue);
        let last = self.command_buffers[index].list.len() - 1;
        isolated.cursor.progress.marking = MarkMode::Off;
        if last > 0 {
            isolated.device.grow_events(&self.device);
            self.advance_isolated(&mut isolated, index, last);
            isolated.device.hazards.clear();
            isolated.device.contents.faults.clear();
        }
        isolated
    }

    /// Creates an isolated execution without commands.
    pub(crate) fn new_isolated(&mut self, queue: Queue) -> Box<IsolatedExecution> {
        let mut isolated = match self.spare_isolated.pop() {
            Some(mut isolated) => {
                isolated.device.reset_isolated(queue);
                isolated.cursor.clear();
                isolated
            }
            None => Box::new(IsolatedExecution::new(queue)),
        };
        isolated.device.rules = self.device.rules;
        isolated
    }

    /// Executes commands from the last executed one up to `until`. The execution shares the addresses of the real
    /// device, but not the state of its ranges.
    pub(crate) fn advance_isolated(&mut self, isolated: &mut IsolatedExecution, index: usize, until: usize) {
        let IsolatedExecution { device, cursor, move_count } = isolated;
        std::mem::swap(&mut device.addresses, &mut self.device.addresses);
        let recorded = RecordedCommands { command_buffers: &self.command_buffers, render_passes: &self.render_passes };
        cursor.advance(device, recorded, &self.command_buffers[index], until);
        std::mem::swap(&mut device.addresses, &mut self.device.addresses);
        *move_count = self.device.addresses.move_count();
        for MovedImage { image, old_addresses, planes } in device.moved_images.drain(..) {
            self.device.move_states(image, &old_addresses, &planes);
        }
    }
}

impl IsolatedExecution {
    fn new(queue: Queue) -> IsolatedExecution {
        let at = CommandLocation { step: Engine::RECORDING, batch: 0, primary: 0, path: Vec::new() };
        IsolatedExecution { device: EngineDevice::isolated(queue), cursor: ExecutionCursor::new(at), move_count: 0 }
    }

    #[inline]
    fn take_findings(&mut self) -> Option<Box<Findings>> {
        if self.device.hazards.is_empty() && self.device.contents.faults.is_empty() {
            return None;
        }
        let hazards = std::mem::take(&mut self.device.hazards);
        let faults = std::mem::take(&mut self.device.contents.faults);
        // The memory of sparse resources, and so their aliases, is known only when the command buffer is executed.
        let hazards = if self.device.has_used_sparse { Vec::new() } else { hazards };
        Some(Box::new(Findings { hazards, faults }))
    }
}

impl ReportedFindings {
    fn add(&mut self, found: &Findings) {
        self.hazards.extend_from_slice(&found.hazards);
        self.faults.extend_from_slice(&found.faults);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hazards.is_empty() && self.faults.is_empty()
    }

    /// Removes the findings of a command.
    pub(crate) fn remove_command(&mut self, index: usize) {
        let is_other = |it: &ProgramLocation| !matches!(it, ProgramLocation::Command(at) if at.path.first() == Some(&(index as u32)));
        self.hazards.retain(|it| is_other(&it.at));
        self.faults.retain(|it| is_other(&it.at));
    }

    /// Whether a hazard inside one execution of the command buffer is already reported. The region is not compared,
    /// because earlier work decides how regions are split.
    pub(crate) fn has_hazard(&self, found: &Hazard) -> bool {
        let is_same = |reported: &&Hazard| (reported.kind, reported.resource) == (found.kind, found.resource);
        let mut reported = self.hazards.iter().filter(is_same);
        is_same_execution(&found.at, &found.prior)
            && reported.any(|it| is_same_path(&it.at, &found.at) && is_same_path(&it.prior, &found.prior))
    }

    pub(crate) fn has_fault(&self, found: &UndefinedContents) -> bool {
        let Some(prior) = found.prior.as_ref().filter(|it| is_same_execution(&found.at, it)) else { return false };
        let is_same =
            |reported: &&UndefinedContents| (reported.kind, reported.resource) == (found.kind, found.resource);
        let is_prior = |reported: &UndefinedContents| reported.prior.as_ref().is_some_and(|it| is_same_path(it, prior));
        self.faults.iter().filter(is_same).any(|it| is_same_path(&it.at, &found.at) && is_prior(it))
    }
}

/// Whether two locations are in one execution of a command buffer.
pub(crate) fn is_same_execution(at: &ProgramLocation, prior: &ProgramLocation) -> bool {
    let (ProgramLocation::Command(at), ProgramLocation::Command(prior)) = (at, prior) else { return false };
    (at.step, at.batch, at.primary) == (prior.step, prior.batch, prior.primary)
}

/// Whether two places are the same command of a command buffer, whenever that was executed.
pub(crate) fn is_same_path(one: &ProgramLocation, other: &ProgramLocation) -> bool {
    matches!((one, other), (ProgramLocation::Command(one), ProgramLocation::Command(other)) if one.path == other.path)
}

/// Whether a command may do more when it is executed than when it is recorded. Events may be set before, and then less
/// is ordered. Rendering that is resumed may have written to an attachment before, and then it is stored.
fn depends_on_earlier_work(command: &Command) -> bool {
    match command {
        Command::WaitEvents(_) => true,
        Command::BeginRendering(rendering) => {
            rendering.is_resuming && rendering.attachments.iter().any(|it| it.store == StoreOp::None)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
    use lavascope_sync_ir::{
        Access, Barrier, Command, CommandBuffer, Dependency, DependencyTarget, HazardKind, HostStep, ImageRegion,
        MemoryBinding, MemoryId, ProgramLocation, QueueId, Region, Resource, ResourceId, ResourceKind, SparseBind,
        SparsePart, SubmitBatch, SyncScope,
    };

    use super::*;

    fn access(resource: u32, access: A) -> Command {
        let region = Region::Buffer(0..16);
        let (resource, stage, access) = (ResourceId(resource), S::COPY.0, access.0);
        Command::Action(vec![Access::new(resource, region, stage, access)])
    }

    fn engine(queue: Queue) -> Engine {
        let mut engine = Engine::new(&[queue], 0, 0, 0);
        for id in [4, 1] {
            let kind = ResourceKind::Buffer { size: 64 };
            engine.set_resource(ResourceId(id), &Resource::new(kind, None));
        }
        engine
    }

    fn submit(engine: &mut Engine, id: CommandBufferId) -> Vec<Hazard> {
        let batches = vec![SubmitBatch { command_buffers: vec![id], ..SubmitBatch::default() }];
        engine.step(&HostStep::Submit { queue: QueueId(0), batches, fence: None });
        engine.take_hazards()
    }

    #[test]
    fn what_was_reported_while_recording_is_not_reported_again() {
        let queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };
        let (mut engine, id) = (engine(queue), CommandBufferId(3));
        // One hazard inside the command buffer, and one between its read and the write of an earlier execution.
        let commands = vec![access(4, A::TRANSFER_READ), access(1, A::TRANSFER_WRITE), access(1, A::TRANSFER_READ)];
        engine.begin_recording(id, queue, false);
        let reported: Vec<Hazard> = commands.into_iter().flat_map(|it| engine.check_command(id, it).hazards).collect();
        let at = |index: u32, it: &ProgramLocation| matches!(it, ProgramLocation::Command(it) if it.path == [index]);
        assert_eq!(reported.len(), 1);
        assert!(reported[0].kind == HazardKind::ReadAfterWrite && at(2, &reported[0].at) && at(1, &reported[0].prior));
        assert_eq!(submit(&mut engine, id), []);
        let again = submit(&mut engine, id);
        assert_eq!(again.iter().map(|it| it.kind).collect::<Vec<_>>(), [HazardKind::WriteAfterRead]);
        // Recorded again without checks: its execution reports all hazards.
        let commands = vec![access(4, A::TRANSFER_WRITE), access(4, A::TRANSFER_WRITE)];
        engine.set_command_buffer(id, CommandBuffer { is_secondary: false, commands });
        assert_eq!(submit(&mut engine, id).len(), 2);
    }

    /// Two buffers that share memory at recording need not share it at execution.
    #[test]
    fn what_is_sparse_is_not_reported_while_recording() {
        let queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };
        let (mut engine, id) = (engine(queue), CommandBufferId(0));
        let kind = ResourceKind::Buffer { size: 64 };
        engine.set_resource(ResourceId(1), &Resource { is_sparse: true, ..Resource::new(kind, None) });
        let memory = Some((MemoryId(0), 0));
        let bind = SparseBind { resource: ResourceId(1), part: SparsePart::Bytes(0), size: 64, memory };
        let (waits, signals) = (Vec::new(), Vec::new());
        engine.step(&HostStep::BindSparse { queue: QueueId(0), waits, binds: vec![bind], signals, fence: None });
        let commands = vec![access(1, A::TRANSFER_WRITE), access(1, A::TRANSFER_READ)];
        engine.begin_recording(id, queue, false);
        assert!(commands.into_iter().all(|it| engine.check_command(id, it) == Findings::default()));
        assert_eq!(submit(&mut engine, id).len(), 1);
    }

    fn part(resource: u32, bytes: std::ops::Range<u64>, stage: S, access: A) -> Access {
        Access::new(ResourceId(resource), Region::Buffer(bytes), stage.0, access.0)
    }

    fn barrier() -> Command {
        let (stages, access) = (S::ALL_COMMANDS.0, A::MEMORY_READ.0 | A::MEMORY_WRITE.0);
        let scope = SyncScope { src_stages: stages, src_access: access, dst_stages: stages, dst_access: access };
        Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
    }

    const GRAPHICS: Queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };

    /// The state after recording: whether the whole command buffer was clean, whether its last command was, and how
    /// many ranges are remembered.
    fn shown(engine: &mut Engine, commands: Vec<Command>) -> (bool, bool, usize) {
        let id = CommandBufferId(7);
        engine.begin_recording(id, GRAPHICS, false);
        engine.command_buffers[7].used_blocks = None;
        commands.into_iter().for_each(|it| drop(engine.check_command(id, it)));
        let isolated = engine.command_buffers[7].isolated.as_ref().expect("it is being recorded");
        let progress = &isolated.cursor.progress;
        (progress.has_no_conflict, progress.was_clean_action, isolated.device.states.len())
    }

    /// Only ranges with a conflict are checked a second time, one by one.
    #[test]
    fn what_does_not_conflict_is_clean() {
        let mut engine = engine(GRAPHICS);
        let (low, high) = (0..32, 32..64);
        let copy = |bytes, access| part(1, bytes, S::COPY, access);
        let one = |it: Access| Command::Action(vec![it]);
        let write = || one(copy(0..64, A::TRANSFER_WRITE));
        let sampled = || part(1, 0..64, S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ);
        let storage = || part(1, 0..64, S::VERTEX_SHADER, A::SHADER_STORAGE_WRITE);
        let parts = || vec![one(copy(low.clone(), A::TRANSFER_WRITE)), one(copy(high.clone(), A::TRANSFER_WRITE))];
        let overlapping = || Command::Action(vec![copy(0..32, A::TRANSFER_WRITE), copy(16..48, A::TRANSFER_READ)]);
        assert_eq!(shown(&mut engine, vec![write()]), (true, true, 1));
        assert_eq!(shown(&mut engine, vec![write(), barrier()]), (true, false, 1));
        assert_eq!(shown(&mut engine, vec![write(), barrier(), one(sampled())]), (true, true, 1));
        assert_eq!(shown(&mut engine, vec![overlapping()]), (true, false, 3));
        assert_eq!(shown(&mut engine, vec![write(), barrier(), overlapping()]), (true, false, 4));
        // Used in pieces and then as a whole: the ranges become one.
        assert_eq!(shown(&mut engine, parts()), (true, true, 2));
        assert_eq!(shown(&mut engine, [parts(), vec![barrier(), write()]].concat()), (true, true, 1));
        let later = one(copy(0..16, A::TRANSFER_READ));
        assert_eq!(shown(&mut engine, [parts(), vec![barrier(), later]].concat()), (true, true, 3));
        // Read by several stages, and written in several ways.
        let reads = || vec![one(copy(0..64, A::TRANSFER_READ)), one(sampled())];
        assert_eq!(shown(&mut engine, [reads(), vec![barrier(), write()]].concat()), (true, true, 1));
        let both = || Command::Action(vec![copy(0..64, A::TRANSFER_WRITE), storage()]);
        assert_eq!(shown(&mut engine, vec![both(), barrier(), one(sampled())]), (true, true, 1));
        assert_eq!(shown(&mut engine, vec![both(), barrier(), both()]), (true, true, 1));
        // In conflict.
        assert_eq!(shown(&mut engine, vec![write(), write()]), (false, false, 1));
        assert_eq!(shown(&mut engine, [parts(), vec![write()]].concat()), (false, false, 2));
        assert_eq!(shown(&mut engine, vec![write(), overlapping()]), (false, false, 4));
    }

    /// Only resources that share memory with others need the slower check.
    #[test]
    fn other_names_are_the_concern_of_whom_they_name() {
        let mut engine = engine(GRAPHICS);
        let binding = Some(MemoryBinding { memory: MemoryId(0), offset: 0, size: 64 });
        let format = lavascope_abi::Format::R8G8B8A8_UNORM;
        let (tiling, alias) = (lavascope_sync_ir::Tiling::Optimal, false);
        let image = lavascope_sync_ir::ImageDesc { format, extent: [4, 4, 1], mips: 1, layers: 1, tiling, alias };
        engine.set_resource(ResourceId(2), &Resource::new(ResourceKind::Image(image), binding));
        assert_eq!(engine.device.addresses.alias_count(), 0);
        engine.set_resource(ResourceId(3), &Resource::new(ResourceKind::Buffer { size: 64 }, binding));
        assert_eq!(engine.device.addresses.alias_count(), 1);
        let write = |it| Command::Action(vec![part(it, 0..64, S::COPY, A::TRANSFER_WRITE)]);
        assert_eq!(shown(&mut engine, vec![write(1), write(4)]), (true, true, 2));
        assert_eq!(shown(&mut engine, vec![write(3)]), (false, false, 1));
    }

    /// The components of an image get separate addresses during recording. The state of its ranges moves along.
    #[test]
    fn what_moves_while_recording_moves_for_all() {
        let mut engine = engine(GRAPHICS);
        let format = lavascope_abi::Format::R8G8B8A8_UNORM;
        let (tiling, alias) = (lavascope_sync_ir::Tiling::Optimal, false);
        let image = lavascope_sync_ir::ImageDesc { format, extent: [4, 4, 1], mips: 1, layers: 1, tiling, alias };
        engine.set_resource(ResourceId(2), &Resource::new(ResourceKind::Image(image), None));
        let aspects = lavascope_abi::ImageAspectFlags::COLOR.0;
        let access = |components, row, stage: S, access: A| {
            let components = lavascope_sync_ir::Components(components);
            let area = Some(lavascope_sync_ir::Area { offset: [0, row, 0], extent: [4, 1, 1] });
            let region = ImageRegion { aspects, mips: 0..1, layers: 0..1, area, components };
            Command::Action(vec![Access::new(ResourceId(2), Region::Image(region), stage.0, access.0)])
        };
        let [fill, look] = [0, 1].map(CommandBufferId);
        engine.begin_recording(fill, GRAPHICS, false);
        engine.check_command(fill, access(15, 1, S::COPY, A::TRANSFER_WRITE));
        assert_eq!(submit(&mut engine, fill), []);
        // The row that was written, and the next row.
        for (row, wanted) in [(2, vec![]), (1, vec![HazardKind::ReadAfterWrite])] {
            engine.begin_recording(look, GRAPHICS, false);
            engine.check_command(look, access(2, row, S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ));
            let found = submit(&mut engine, look);
            assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), wanted);
        }
    }

    /// A finding of a command that was removed is reported again if it occurs again.
    #[test]
    fn what_is_taken_back_was_not_reported() {
        let (mut engine, id) = (engine(GRAPHICS), CommandBufferId(0));
        let write = || access(1, A::TRANSFER_WRITE);
        engine.begin_recording(id, GRAPHICS, false);
        engine.check_command(id, write());
        assert_eq!(engine.check_command(id, write()).hazards.len(), 1);
        engine.undo_last_command(id);
        assert!(engine.check_command(id, Command::Action(Vec::new())).is_empty());
        engine.replace_command(id, 1, write());
        assert_eq!(submit(&mut engine, id).len(), 1);
    }

    /// A command buffer that waits for events or executes others is checked as a whole each time.
    #[test]
    fn special_command_buffers_leave_no_marks() {
        let mut engine = engine(GRAPHICS);
        let [primary, secondary, inner] = [0, 1, 2].map(CommandBufferId);
        let wait = Command::WaitEvents(lavascope_sync_ir::WaitEvents::Sync2 { events: Vec::new() });
        let execute = Command::Execute(vec![inner]);
        for (own, is_marked) in [(access(1, A::TRANSFER_READ), true), (wait, false), (execute, false)] {
            engine.begin_recording(inner, GRAPHICS, true);
            engine.begin_recording(secondary, GRAPHICS, true);
            engine.check_command(secondary, own);
            engine.begin_recording(primary, GRAPHICS, false);
            engine.check_command(primary, access(1, A::TRANSFER_READ));
            engine.check_command(primary, Command::Execute(vec![secondary]));
            assert_eq!(engine.command_buffers[0].has_valid_marks(&engine.device.addresses), is_marked);
            let versions = [secondary].map(|it| (it, engine.command_buffers[it.0 as usize].version));
            assert_eq!(engine.command_buffers[0].executed, versions);
        }
    }

    /// Undefined contents inside a command buffer are reported at recording, and not again.
    #[test]
    fn faults_are_reported_once() {
        let text = include_str!("../../tests/scenarios/render_pass/not_preserved.vks");
        let program = lavascope_scenario::parse(text).expect("a scenario").program;
        let (mut engine, id) = (Engine::with_program(crate::Rules::CONTRACT, &program), CommandBufferId(7));
        engine.begin_recording(id, GRAPHICS, false);
        let commands = program.command_buffers[0].commands.iter();
        let reported: usize = commands.map(|it| engine.check_command(id, it.clone()).faults.len()).sum();
        assert_eq!(reported, 1);
        engine.command_buffers[7].discard_marks();
        submit(&mut engine, id);
        assert_eq!(engine.take_faults(), []);
        // A second command buffer, without findings so far.
        let again = engine.add_command_buffer(program.command_buffers[0].clone());
        submit(&mut engine, again);
        assert_eq!(engine.take_faults().len(), 1);
    }

    #[test]
    fn devices_are_kept_for_later() {
        let mut engine = engine(GRAPHICS);
        for id in (0..40).map(CommandBufferId) {
            engine.begin_recording(id, GRAPHICS, false);
            (0..2).for_each(|_| drop(engine.check_command(id, access(1, A::TRANSFER_WRITE))));
        }
        assert!(engine.spare_isolated.is_empty());
        engine.end_recording(CommandBufferId(0));
        engine.end_recording(CommandBufferId(0));
        assert_eq!(engine.spare_isolated.len(), 1);
        (1..40).for_each(|it| engine.end_recording(CommandBufferId(it)));
        assert_eq!(engine.spare_isolated.len(), SPARE_MAX);
        engine.begin_recording(CommandBufferId(0), GRAPHICS, false);
        engine.check_command(CommandBufferId(0), access(1, A::TRANSFER_WRITE));
        assert_eq!(engine.spare_isolated.len(), SPARE_MAX, "nothing is to be checked yet");
        engine.check_command(CommandBufferId(0), access(1, A::TRANSFER_WRITE));
        assert_eq!(engine.spare_isolated.len(), SPARE_MAX - 1);
    }

    /// A secondary command buffer was recorded again after the primary one.
    #[test]
    fn what_is_executed_may_have_changed() {
        let mut engine = engine(GRAPHICS);
        let [primary, secondary] = [0, 1].map(CommandBufferId);
        let scope = SyncScope {
            src_stages: S::COPY.0,
            src_access: A::TRANSFER_WRITE.0,
            dst_stages: S::COPY.0,
            dst_access: A::TRANSFER_READ.0,
        };
        let barrier = Command::Barrier(Barrier::Sync2 {
            dependencies: vec![Dependency { scope, target: DependencyTarget::Global }],
        });
        let sampled = Command::Action(vec![part(1, 0..16, S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ)]);
        for (own, is_again) in [(access(1, A::TRANSFER_READ), false), (access(1, A::TRANSFER_READ), true)] {
            engine.begin_recording(secondary, GRAPHICS, true);
            engine.check_command(secondary, own);
            engine.begin_recording(primary, GRAPHICS, false);
            for command in [access(1, A::TRANSFER_WRITE), barrier.clone(), Command::Execute(vec![secondary])] {
                assert_eq!(engine.check_command(primary, command), Findings::default());
            }
            if is_again {
                engine.begin_recording(secondary, GRAPHICS, true);
                engine.check_command(secondary, sampled.clone());
            }
            engine.step(&HostStep::DeviceIdle);
            assert_eq!(submit(&mut engine, primary).len(), usize::from(is_again));
        }
    }

    /// A queue family may support stages that another does not, so a barrier that suffices on one may not on the other.
    #[test]
    fn marks_are_for_one_kind_of_queue() {
        let other = Queue { family: 1, flags: QueueFlags::SPARSE_BINDING.0 };
        let mut engine = Engine::new(&[other], 0, 0, 0);
        engine.set_resource(ResourceId(1), &Resource::new(ResourceKind::Buffer { size: 64 }, None));
        let id = CommandBufferId(0);
        for (queue, reported, later) in [(GRAPHICS, 0, 1), (other, 1, 0)] {
            engine.begin_recording(id, queue, false);
            let commands = [access(1, A::TRANSFER_WRITE), barrier(), access(1, A::TRANSFER_READ)];
            let found: usize = commands.into_iter().map(|it| engine.check_command(id, it).hazards.len()).sum();
            assert_eq!(found, reported);
            engine.step(&HostStep::DeviceIdle);
            assert_eq!(submit(&mut engine, id).len(), later, "{queue:?}");
        }
    }
}
