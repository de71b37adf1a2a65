//! TestRng command buffers: actions with dependencies between them.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Access, Barrier, Certainty, Command, CommandBuffer, CommandBufferId, Dependency, DependencyTarget, EventId,
    MarkerStage, QueueFamilyTransfer, RasterOrder, ResourceId, SetEvent, SyncScope, WaitEvents,
};

use super::{CommandBufferTraits, DependencyStyle, ProgramGenerator, StageAccessMasks, rendering::ATTACHMENTS};
use lavascope_oracle::is_write;

type StageAccessPair = (u64, u64);

/// What queues without graphics can do to buffers.
const BUFFER_COMPUTE: &[StageAccessPair] = &[
    (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_READ.0),
    (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_WRITE.0),
    (S::COMPUTE_SHADER.0, A::UNIFORM_READ.0),
    (S::COPY.0, A::TRANSFER_READ.0),
    (S::COPY.0, A::TRANSFER_WRITE.0),
    (S::CLEAR.0, A::TRANSFER_WRITE.0),
    (S::DRAW_INDIRECT.0, A::INDIRECT_COMMAND_READ.0),
];
const BUFFER_GRAPHICS: &[StageAccessPair] = &[
    (S::VERTEX_SHADER.0, A::SHADER_STORAGE_READ.0),
    (S::VERTEX_SHADER.0, A::UNIFORM_READ.0),
    (S::FRAGMENT_SHADER.0, A::SHADER_STORAGE_READ.0),
    (S::FRAGMENT_SHADER.0, A::SHADER_STORAGE_WRITE.0),
    (S::INDEX_INPUT.0, A::INDEX_READ.0),
    (S::VERTEX_ATTRIBUTE_INPUT.0, A::VERTEX_ATTRIBUTE_READ.0),
];
const IMAGE_COMPUTE: &[StageAccessPair] = &[
    (S::COMPUTE_SHADER.0, A::SHADER_SAMPLED_READ.0),
    (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_WRITE.0),
    (S::COPY.0, A::TRANSFER_READ.0),
    (S::COPY.0, A::TRANSFER_WRITE.0),
    (S::CLEAR.0, A::TRANSFER_WRITE.0),
];
const IMAGE_GRAPHICS: &[StageAccessPair] = &[
    (S::VERTEX_SHADER.0, A::SHADER_SAMPLED_READ.0),
    (S::FRAGMENT_SHADER.0, A::SHADER_SAMPLED_READ.0),
    (S::FRAGMENT_SHADER.0, A::SHADER_STORAGE_WRITE.0),
    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_READ.0),
    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
    (S::LATE_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
    (S::COLOR_ATTACHMENT_OUTPUT.0, A::COLOR_ATTACHMENT_READ.0),
    (S::COLOR_ATTACHMENT_OUTPUT.0, A::COLOR_ATTACHMENT_WRITE.0),
];

impl ProgramGenerator {
    pub(super) fn command_buffers(&mut self) {
        if self.features.secondaries && self.chance(40) {
            let commands = self.commands(1, false);
            self.secondary = Some(self.push_secondary(commands));
        }
        for _ in 0..1 + self.random.below(3) {
            let needs_graphics = self.chance(70);
            let actions = if self.chance(3) { 0 } else { 1 + self.random.below(4) };
            let mut commands = self.commands(actions, needs_graphics);
            let can_render = needs_graphics && self.features.dynamic_rendering && !self.attachments.is_empty();
            let tail = if can_render && self.chance(8) { Some(self.suspended_rendering(&mut commands)) } else { None };
            self.push_buffer(
                CommandBuffer { is_secondary: false, commands },
                CommandBufferTraits { needs_graphics, resumed_by: tail, ..CommandBufferTraits::default() },
            );
        }
        if self.features.ownership && self.program.queues.len() > 1 && self.chance(30) {
            self.ownership_transfer();
        }
        if let Some(image) = self.presentable {
            self.presented_frame(image);
        }
    }

    /// Rendering that goes on in another command buffer, which this gives.
    fn suspended_rendering(&mut self, commands: &mut Vec<Command>) -> CommandBufferId {
        let (head, tail) = self.split_rendering();
        self.push_dependency(commands, StageAccessMasks::EVERYTHING, ATTACHMENTS, &head);
        commands.extend(head);
        let uses = CommandBufferTraits { needs_graphics: true, is_resuming: true, ..CommandBufferTraits::default() };
        self.push_buffer(CommandBuffer { is_secondary: false, commands: tail }, uses)
    }

    /// Actions, or whole render passes, each with its dependencies before it.
    fn commands(&mut self, actions: u64, needs_graphics: bool) -> Vec<Command> {
        let mut commands = Vec::new();
        // What ran before is not known here: the command buffer may be submitted anywhere.
        let mut before = StageAccessMasks::EVERYTHING;
        if self.features.events && self.features.host_accesses && self.chance(8) {
            commands.push(self.wait_for_host());
        }
        for _ in 0..actions {
            let is_pass = needs_graphics && !self.attachments.is_empty() && self.chance(35);
            let (part, usage) = match is_pass {
                true => self.pass(before),
                false if self.features.markers && self.chance(6) => self.markers(),
                false if self.chance(4) => self.writes_around_possible_read(),
                false => self.action(needs_graphics),
            };
            if self.dependency_style != DependencyStyle::Random || self.chance(50) {
                self.push_dependency(&mut commands, before, usage, &part);
            }
            commands.extend(part);
            before = before.union(usage);
            if self.dependency_style == DependencyStyle::Tight {
                before = self.recorded_accesses.union(usage);
            }
            self.recorded_accesses = self.recorded_accesses.union(usage);
            self.maybe_execute_secondary(&mut commands);
        }
        if self.features.transitions && self.features.queues && self.chance(15) {
            commands.push(self.final_transition());
        }
        if self.features.host_accesses && self.dependency_style != DependencyStyle::Random && self.chance(60) {
            let host = StageAccessMasks { stages: S::HOST.0, access: A::HOST_READ.0 | A::HOST_WRITE.0 };
            let dependency =
                Dependency { scope: scope(StageAccessMasks::EVERYTHING, host), target: DependencyTarget::Global };
            commands.push(Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] }));
        }
        commands
    }

    fn maybe_execute_secondary(&mut self, commands: &mut Vec<Command>) {
        if let Some(secondary) = self.secondary.filter(|_| self.random.below(100) < 40) {
            commands.push(Command::Execute(vec![secondary]));
        }
    }

    fn action(&mut self, needs_graphics: bool) -> (Vec<Command>, StageAccessMasks) {
        let mut usage = StageAccessMasks::default();
        let mut accesses = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let resource = self.random_resource();
            let region = self.random_region(resource);
            let (compute, graphics) = if self.is_image(resource) {
                (IMAGE_COMPUTE, IMAGE_GRAPHICS)
            } else {
                (BUFFER_COMPUTE, BUFFER_GRAPHICS)
            };
            let from = if needs_graphics && self.chance(60) { graphics } else { compute };
            let (stage, access) = self.pick(from);
            usage = usage.union(StageAccessMasks { stages: stage, access });
            accesses.push(Access::new(resource, region, stage, access));
        }
        (vec![Command::Action(accesses)], usage)
    }

    /// A layout transition behind everything else, for whatever comes after one stage: a signal may wait for just that.
    fn final_transition(&mut self) -> Command {
        let resource = ResourceId(1);
        let stages = self.pick(&[S::COPY.0, S::COMPUTE_SHADER.0]);
        let target = DependencyTarget::Transition { resource, region: self.whole_region(resource) };
        let dst = StageAccessMasks { stages, access: 0 };
        self.final_stages = stages;
        let dependency = Dependency { scope: scope(StageAccessMasks::EVERYTHING, dst), target };
        Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] })
    }

    /// Buffer markers with nothing between them, most often of one stage or of later and later ones.
    fn markers(&mut self) -> (Vec<Command>, StageAccessMasks) {
        if self.chance(40) {
            return self.chain_through_markers();
        }
        let stages = [S::TOP_OF_PIPE, S::DRAW_INDIRECT, S::COMPUTE_SHADER, S::BOTTOM_OF_PIPE, S::COPY, S::ALL_COMMANDS];
        let (resource, mut stage) = (ResourceId(0), self.random.below(stages.len() as u64));
        let region = self.random_region(resource);
        let mut commands = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let order = RasterOrder::marker(MarkerStage::from_stages(stages[stage as usize].0));
            let marker = Access::new(resource, region.clone(), S::COPY.0, A::TRANSFER_WRITE.0);
            commands.push(Command::Action(vec![Access { order, ..marker }]));
            stage = match self.random.below(4) {
                0 => self.random.below(stages.len() as u64),
                1 => (stage + 1).min(3),
                _ => stage,
            };
        }
        (commands, StageAccessMasks { stages: S::COPY.0, access: A::TRANSFER_WRITE.0 })
    }

    /// Two accesses with buffer markers between them, and a barrier behind the markers for what comes after these only.
    fn chain_through_markers(&mut self) -> (Vec<Command>, StageAccessMasks) {
        let resource = self.random_resource();
        let region = self.random_region(resource);
        let uses = if self.is_image(resource) { IMAGE_COMPUTE } else { BUFFER_COMPUTE };
        let (first, second) = (self.pick(uses), self.pick(uses));
        let masks = |of: StageAccessPair| StageAccessMasks { stages: of.0, access: of.1 };
        let access = |of: StageAccessPair| Command::Action(vec![Access::new(resource, region.clone(), of.0, of.1)]);
        let barrier = |src: StageAccessMasks, dst: StageAccessMasks| {
            let dependency = Dependency { scope: scope(src, dst), target: DependencyTarget::Global };
            Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] })
        };
        let mut commands = vec![access(first)];
        if is_write(first.1) && self.chance(80) {
            commands.push(barrier(masks(first), StageAccessMasks { stages: first.0, access: 0 }));
        }
        let written = self.random_region(ResourceId(0));
        for _ in 0..1 + self.random.below(2) {
            let stage = self.pick(&[first.0, first.0, first.0, S::BOTTOM_OF_PIPE.0, S::DRAW_INDIRECT.0]);
            let order = RasterOrder::marker(MarkerStage::from_stages(stage));
            let marker = Access::new(ResourceId(0), written.clone(), S::COPY.0, A::TRANSFER_WRITE.0);
            commands.push(Command::Action(vec![Access { order, ..marker }]));
        }
        let shown = if self.chance(50) { A::TRANSFER_WRITE.0 } else { 0 };
        commands.push(barrier(StageAccessMasks { stages: S::COPY.0, access: shown }, masks(second)));
        commands.push(access(second));
        (commands, masks(first).union(StageAccessMasks { stages: S::COPY.0, access: A::TRANSFER_WRITE.0 }))
    }

    /// Two writes, and between them a read that may be or not, with a dependency before and behind it.
    fn writes_around_possible_read(&mut self) -> (Vec<Command>, StageAccessMasks) {
        let resource = self.random_resource();
        let region = self.random_region(resource);
        let uses = if self.is_image(resource) { IMAGE_COMPUTE } else { BUFFER_COMPUTE };
        let writes: Vec<StageAccessPair> = uses.iter().copied().filter(|it| is_write(it.1)).collect();
        let reads: Vec<StageAccessPair> = uses.iter().copied().filter(|it| !is_write(it.1)).collect();
        let [first, second] = [self.pick(&writes), self.pick(&writes)];
        let [read, shown] = [self.pick(&reads), self.pick(&reads)];
        // Most often what the barrier is for.
        let shown = if self.chance(75) { read } else { shown };
        let write = |of: StageAccessPair| Access::new(resource, region.clone(), of.0, of.1);
        let masks = |of: StageAccessPair| StageAccessMasks { stages: of.0, access: of.1 };
        let barrier = |src: StageAccessMasks, dst: StageAccessMasks| {
            let dependency = Dependency { scope: scope(src, dst), target: DependencyTarget::Global };
            Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] })
        };
        let possible = Access { certainty: Certainty::Unreported, ..write(read) };
        let mut middle = if self.chance(70) { Vec::new() } else { self.action(false).0 };
        match middle.last_mut() {
            Some(Command::Action(accesses)) => accesses.push(possible),
            _ => middle.push(Command::Action(vec![possible])),
        }
        let mut commands = vec![Command::Action(vec![write(first)]), barrier(masks(first), masks(shown))];
        commands.extend(middle.into_iter().filter(|_| self.chance(90)));
        commands.push(barrier(masks(shown), StageAccessMasks { stages: second.0, access: 0 }));
        commands.push(Command::Action(vec![write(second)]));
        (commands, masks(first).union(masks(second)).union(masks(read)).union(StageAccessMasks::EVERYTHING))
    }

    /// Something that leads from what was before to what comes.
    fn push_dependency(
        &mut self,
        commands: &mut Vec<Command>,
        before: StageAccessMasks,
        after: StageAccessMasks,
        next: &[Command],
    ) {
        let is_all = self.chance(80);
        let (src, dst) = match self.dependency_style {
            DependencyStyle::Generous if is_all => (StageAccessMasks::EVERYTHING, StageAccessMasks::EVERYTHING),
            DependencyStyle::Random => (self.random_stage_access(), self.random_stage_access()),
            _ => (before, after),
        };
        if self.features.events && self.chance(20) {
            self.push_event(commands, (src, dst), next);
        } else if self.dependency_style == DependencyStyle::Tight && self.chance(15) {
            // In two steps, through some stage in the middle.
            let middle = StageAccessMasks {
                stages: self.pick(&[S::VERTEX_SHADER.0, S::COMPUTE_SHADER.0, S::COPY.0]),
                access: 0,
            };
            let one = self.dependency_element(src, middle, next);
            let two = Dependency { scope: scope(middle, dst), target: DependencyTarget::Global };
            commands.push(self.barrier(vec![one], src, middle));
            commands.push(self.barrier(vec![two], middle, dst));
        } else {
            let mut elements = vec![self.dependency_element(src, dst, next)];
            if self.chance(25) {
                let (src, dst) = (self.random_stage_access(), self.random_stage_access());
                elements.push(self.dependency_element(src, dst, next));
            }
            if self.features.mostly_aliased && self.chance(50) {
                elements.push(self.unrelated_element(src, dst));
            }
            // A barrier on a part is seldom enough.
            if !matches!(elements[0].target, DependencyTarget::Global) && self.chance(85) {
                elements.push(Dependency { scope: scope(src, dst), target: DependencyTarget::Global });
            }
            commands.push(self.barrier(elements, src, dst));
        }
    }

    fn barrier(&mut self, dependencies: Vec<Dependency>, src: StageAccessMasks, dst: StageAccessMasks) -> Command {
        if self.features.version_one && self.chance(30) {
            return Command::Barrier(Barrier::Sync1 { src_stages: src.stages, dst_stages: dst.stages, dependencies });
        }
        Command::Barrier(Barrier::Sync2 { dependencies })
    }

    /// A dependency on everything, or on what the next action uses.
    fn dependency_element(&mut self, src: StageAccessMasks, dst: StageAccessMasks, next: &[Command]) -> Dependency {
        let memory = Dependency { scope: scope(src, dst), target: DependencyTarget::Global };
        let Some(Command::Action(accesses)) = next.first() else { return memory };
        let access = &accesses[self.random.below(accesses.len() as u64) as usize];
        let (resource, mut region) = (access.resource, access.region.clone());
        if self.chance(40) {
            region = self.whole_region(resource);
        }
        if self.features.transitions && self.is_image(resource) && self.chance(30) {
            return Dependency { target: DependencyTarget::Transition { resource, region }, ..memory };
        }
        if self.features.resource_barriers && self.chance(35) {
            return Dependency { target: DependencyTarget::Resource { resource, region }, ..memory };
        }
        memory
    }

    /// A dependency on whatever else there is.
    fn unrelated_element(&mut self, src: StageAccessMasks, dst: StageAccessMasks) -> Dependency {
        let resource = self.random_resource();
        let region = self.random_region(resource);
        let is_transition = self.features.transitions && self.is_image(resource) && self.chance(50);
        let what = match is_transition {
            true => DependencyTarget::Transition { resource, region },
            false => DependencyTarget::Resource { resource, region },
        };
        let part = |it: StageAccessMasks| StageAccessMasks { access: 0, ..it };
        let (src, dst) = self.pick(&[(src, dst), (src, part(dst)), (part(src), dst)]);
        Dependency { scope: scope(src, dst), target: what }
    }

    /// An event that is set and waited for; sometimes one of the two is left to another command buffer.
    fn push_event(
        &mut self,
        commands: &mut Vec<Command>,
        (src, dst): (StageAccessMasks, StageAccessMasks),
        next: &[Command],
    ) {
        // Each event has one form: an even number one pair of masks, an odd one dependencies.
        let event = EventId(self.random.below(3) as u32);
        let mut dependencies = vec![self.dependency_element(src, dst, next)];
        if !matches!(dependencies[0].target, DependencyTarget::Global) {
            dependencies.push(Dependency { scope: scope(src, dst), target: DependencyTarget::Global });
        }
        let (set, wait) = if event.0.is_multiple_of(2) {
            let mut events = vec![event];
            let other = EventId(2 - event.0);
            if self.chance(15) {
                commands.push(Command::SetEvent(SetEvent::Sync1 { event: other, stages: src.stages }));
                events.push(other);
            }
            let (src_stages, dst_stages) = (src.stages, dst.stages);
            let wait = WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies };
            (SetEvent::Sync1 { event, stages: src.stages }, wait)
        } else {
            let wait = WaitEvents::Sync2 { events: vec![(event, dependencies.clone())] };
            (SetEvent::Sync2 { event, dependencies }, wait)
        };
        let part = self.random.below(12);
        if part != 0 {
            commands.push(Command::SetEvent(set.clone()));
        }
        if self.chance(8) {
            // Nothing decides which comes first.
            commands.push(match self.chance(50) {
                true => Command::SetEvent(set),
                false => Command::ResetEvent { event, stages: src.stages },
            });
        }
        if self.chance(20) {
            let (action, _) = self.action(false);
            commands.extend(action);
        }
        if part != 1 {
            commands.push(Command::WaitEvents(wait));
        }
        if part > 1 && self.chance(80) {
            commands.push(Command::ResetEvent { event, stages: S::ALL_COMMANDS.0 });
        }
    }

    /// Waits for the event that the host sets.
    fn wait_for_host(&mut self) -> Command {
        let host = StageAccessMasks { stages: S::HOST.0, access: A::HOST_WRITE.0 };
        let dependency =
            Dependency { scope: scope(host, StageAccessMasks::EVERYTHING), target: DependencyTarget::Global };
        let event = EventId(self.program.event_count - 1);
        Command::WaitEvents(WaitEvents::Sync2 { events: vec![(event, vec![dependency])] })
    }

    fn random_stage_access(&mut self) -> StageAccessMasks {
        let all = [BUFFER_COMPUTE, BUFFER_GRAPHICS, IMAGE_COMPUTE, IMAGE_GRAPHICS];
        let mut usage = StageAccessMasks::default();
        for _ in 0..self.random.below(3) {
            let palette = self.pick(&all);
            let (stages, access) = self.pick(palette);
            usage = usage.union(StageAccessMasks { stages, access });
        }
        usage
    }

    /// A pair of command buffers that give a resource from one family to another, each with a use of it.
    fn ownership_transfer(&mut self) {
        let resource = ResourceId(self.random.below(2) as u32);
        let is_transition = self.is_image(resource) && self.chance(50);
        let region = if self.chance(60) { self.whole_region(resource) } else { self.random_region(resource) };
        let [src_family, dst_family] = self.pick(&[[0, 1], [0, 1], [1, 0]]);
        let ownership = QueueFamilyTransfer { src_family, dst_family, is_transition };
        let what = DependencyTarget::QueueFamilyTransfer { resource, region: region.clone(), transfer: ownership };
        let uses = if self.is_image(resource) { IMAGE_COMPUTE } else { BUFFER_COMPUTE };
        for family in [src_family, dst_family] {
            let is_release = family == src_family;
            let (stage, access) = self.pick(uses);
            let own = StageAccessMasks { stages: stage, access };
            let all = StageAccessMasks { stages: S::ALL_COMMANDS.0, access: 0 };
            let (src, dst) = if is_release { (own.union(self.recorded_accesses), all) } else { (all, own) };
            let dependency = Dependency { scope: scope(src, dst), target: what.clone() };
            let barrier = self.barrier(vec![dependency], src, dst);
            let access = Access::new(resource, region.clone(), stage, access);
            let action = Command::Action(vec![access]);
            let everything = scope(StageAccessMasks::EVERYTHING, StageAccessMasks::EVERYTHING);
            let guard = Dependency { scope: everything, target: DependencyTarget::Global };
            let guard = Command::Barrier(Barrier::Sync2 { dependencies: vec![guard] });
            let early = [guard.clone(), action.clone()];
            let commands = if is_release { vec![guard, action, barrier] } else { vec![barrier, action] };
            let uses = CommandBufferTraits { family: Some(family), ..CommandBufferTraits::default() };
            self.push_buffer(CommandBuffer { is_secondary: false, commands }, uses);
            if is_release && self.chance(30) {
                // Somebody uses it before the other family has it.
                let uses = CommandBufferTraits { family: Some(self.pick(&[0, 1])), ..uses };
                self.push_buffer(CommandBuffer { is_secondary: false, commands: early.to_vec() }, uses);
            }
        }
    }
}

/// Only writes can be made available.
pub(super) fn scope(src: StageAccessMasks, dst: StageAccessMasks) -> SyncScope {
    let writes =
        (0..64).map(|it| 1 << it).filter(|it| src.access & it != 0 && is_write(*it)).fold(0, |all, it| all | it);
    SyncScope { src_stages: src.stages, src_access: writes, dst_stages: dst.stages, dst_access: dst.access }
}
