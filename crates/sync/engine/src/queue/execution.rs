//! Executes commands: their accesses are checked and kept, their dependencies enter the clocks.

use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, CommandLocation, Dependency, DependencyTarget, Hazard, QueueFamilyTransfer,
    Region, RenderPass, ResourceId, SetEvent, SubmitBatch, SyncScope, WaitEvents,
};
use smallvec::{SmallVec, smallvec};

use crate::access::access_order::AccessOrder;
use crate::access::contents::RenderPassContents;
use crate::access::range_state::{AccessContext, Addressing, Conflict, ResourceFirstScope, SharedOverlays};
use crate::access::usages::{StageSet, TRANSITION_WRITE, UsageSet};
use crate::command_buffer::marks::{ExecutionProgress, MarkMode};
use crate::command_buffer::plans;
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::command_buffer::recording::is_same_execution;
use crate::dependency::clocks::{KeySet, QueueClock, Tag};
use crate::dependency::scopes;
use crate::dependency::scopes::ExpandedScope;
use crate::dependency::subpass_intervals::SubpassInterval;
use crate::memory::addresses::ResourceIdentity;
use crate::memory::aliases::split_range;
use crate::queue::device::{EngineDevice, EventSetState, QueueTimeline};
use crate::queue::render_passes::RenderPassInstance;
use crate::rules::Rules;

/// Command buffers call command buffers at most this deep; the specification allows less.
const DEPTH_MAX: usize = 16;

/// What was recorded.
#[derive(Clone, Copy)]
pub(crate) struct RecordedCommands<'a> {
    pub(crate) command_buffers: &'a [PreparedCommandBuffer],
    pub(crate) render_passes: &'a [RenderPass],
}

/// Executes the command buffers of a batch.
pub(crate) fn execute_batch(
    device: &mut EngineDevice,
    recorded: RecordedCommands<'_>,
    queue: u8,
    step: u32,
    index: u32,
    batch: &SubmitBatch,
) {
    for (primary, id) in batch.command_buffers.iter().enumerate() {
        let Some(commands) = recorded.command_buffers.get(id.0 as usize) else { continue };
        let at = CommandLocation { step, batch: index, primary: primary as u32, path: Vec::new() };
        let first = (device.hazards.len(), device.contents.faults.len());
        let mut walk = ExecutionCursor::new(at);
        let is_marked = commands.is_marked(&device.addresses)
            && commands.queue == Some(device.queues[usize::from(queue)].kind())
            && recorded.is_up_to_date(commands);
        walk.progress.marking = if is_marked { MarkMode::Apply } else { MarkMode::Off };
        CommandExecutor::new(device, recorded, queue, &mut walk).execute_all(commands);
        let is_told = |hazard: &Hazard| {
            if is_marked { is_same_execution(&hazard.at, &hazard.prior) } else { commands.reported.has_hazard(hazard) }
        };
        let mut found = device.hazards.split_off(first.0);
        found.retain(|it| !is_told(it));
        device.hazards.append(&mut found);
        let mut faults = device.contents.faults.split_off(first.1);
        faults.retain(|it| !commands.reported.has_fault(it));
        device.contents.faults.append(&mut faults);
    }
}

impl RecordedCommands<'_> {
    /// Whether what a command buffer executes is what it was when that was recorded.
    #[inline]
    pub(crate) fn is_up_to_date(self, commands: &PreparedCommandBuffer) -> bool {
        let version = |id: CommandBufferId| self.command_buffers.get(id.0 as usize).map(|it| it.version);
        commands.executed.iter().all(|it| version(it.0) == Some(it.1))
    }
}

/// How far the execution of a command buffer has come.
pub(crate) struct ExecutionCursor {
    /// The command being executed.
    location: CommandLocation,
    /// How many were executed.
    executed_count: usize,
    pub(crate) progress: ExecutionProgress,
    instance: Option<RenderPassInstance>,
    pass_contents: Option<RenderPassContents>,
}

impl ExecutionCursor {
    pub(crate) fn new(at: CommandLocation) -> ExecutionCursor {
        ExecutionCursor {
            location: at,
            executed_count: 0,
            progress: ExecutionProgress::new(),
            instance: None,
            pass_contents: None,
        }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.location.path.clear();
        self.progress.clear();
        (self.executed_count, self.instance, self.pass_contents) = (0, None, None);
    }

    /// Executes what was recorded since the last time, up to a command, on the only queue of a device.
    pub(crate) fn advance(
        &mut self,
        device: &mut EngineDevice,
        recorded: RecordedCommands<'_>,
        commands: &PreparedCommandBuffer,
        until: usize,
    ) {
        if self.location.path.is_empty() {
            self.location.path.push(0);
            (self.progress.is_recording, self.progress.tag_run) = (true, (device.begin_run(&self.location), 0));
        }
        let part = self.executed_count..until;
        CommandExecutor::new(device, recorded, 0, self).execute_range(commands, part);
        self.executed_count = until;
    }
}

pub(crate) struct CommandExecutor<'a> {
    pub(crate) device: &'a mut EngineDevice,
    pub(crate) recorded: RecordedCommands<'a>,
    pub(crate) queue: u8,
    /// The command being executed.
    location: &'a mut CommandLocation,
    pub(crate) progress: &'a mut ExecutionProgress,
    /// The render pass instance that is open.
    pub(crate) instance: &'a mut Option<RenderPassInstance>,
    /// Of the attachments of a render pass that is open.
    pub(crate) pass_contents: &'a mut Option<RenderPassContents>,
}

impl<'a> CommandExecutor<'a> {
    fn new(
        device: &'a mut EngineDevice,
        recorded: RecordedCommands<'a>,
        queue: u8,
        walk: &'a mut ExecutionCursor,
    ) -> CommandExecutor<'a> {
        let ExecutionCursor { location: at, progress, instance, pass_contents, .. } = walk;
        CommandExecutor { device, recorded, queue, location: at, progress, instance, pass_contents }
    }

    fn execute_all(&mut self, commands: &PreparedCommandBuffer) {
        self.location.path.push(0);
        self.device.begin_run(self.location);
        self.execute_range(commands, 0..commands.plans.len());
        self.location.path.pop();
    }

    /// Executes some of the commands.
    fn execute_range(&mut self, commands: &PreparedCommandBuffer, part: Range<usize>) {
        let mut next = part.start;
        while next < part.end {
            let index = next;
            if self.progress.marking == MarkMode::Apply && self.progress.is_clean && !self.is_tracking_contents() {
                next = commands.next_busy_command(index);
                if next > index {
                    self.device.skip_commands(next - index);
                    self.progress.was_clean_action = true;
                    continue;
                }
            }
            next = index + 1;
            if self.progress.was_clean_action && self.progress.is_recording {
                self.record_last_repeated(commands, index - 1);
            }
            let tag = self.device.next_tag();
            match commands.plans.command(index) {
                plans::RecordedCommand::Action(accesses) => {
                    self.progress.was_clean_action = self.execute_action(tag, accesses, commands, index);
                }
                plans::RecordedCommand::Other(command) => {
                    self.progress.was_clean_action = false;
                    if let Some(last) = self.location.path.last_mut() {
                        *last = index as u32;
                    }
                    self.command(tag, command);
                }
            }
        }
    }

    fn command(&mut self, tag: Tag, command: &Command) {
        match command {
            // Executed where its place is known.
            Command::Action(_) => {}
            Command::Barrier(barrier) => self.barrier(tag, barrier),
            Command::SetEvent(set) => self.set_event(tag, set),
            Command::ResetEvent { event, .. } => {
                if let Some(event) = self.device.events.get_mut(event.0 as usize) {
                    event.set = None;
                }
            }
            Command::WaitEvents(wait) => self.wait_events(tag, wait),
            Command::Execute(buffers) => self.execute_secondaries(buffers),
            Command::BeginRenderPass { pass, views, area } => self.begin_render_pass(tag, *pass, views, *area),
            Command::NextSubpass => self.next_subpass(tag),
            Command::EndRenderPass => self.end_render_pass(tag),
            Command::BeginRendering(rendering) => self.begin_rendering(tag, rendering),
            Command::EndRendering => self.end_rendering(tag),
        }
        // What subpasses may rely on goes no further than they do.
        let is_resuming = matches!(command, Command::BeginRendering(item) if item.is_resuming);
        if is_resuming || matches!(command, Command::NextSubpass | Command::EndRenderPass | Command::EndRendering) {
            self.progress.visible_since = tag;
        }
    }

    fn execute_secondaries(&mut self, buffers: &[CommandBufferId]) {
        for (place, id) in buffers.iter().enumerate() {
            let Some(commands) = self.recorded.command_buffers.get(id.0 as usize) else { continue };
            if self.location.path.len() < DEPTH_MAX {
                self.location.path.push(place as u32);
                let outside = std::mem::replace(self.progress, ExecutionProgress::new());
                self.execute_all(commands);
                *self.progress = outside;
                self.location.path.pop();
            }
        }
        // The commands behind it go on with numbers of their own.
        if let Some(last) = self.location.path.last_mut() {
            *last += 1;
            let command = *last as usize;
            self.progress.tag_run = (self.device.begin_run(self.location), command);
        }
    }

    /// Where and how this command is.
    pub(crate) fn access_context(&self, tag: Tag, resource: ResourceId) -> AccessContext<'_> {
        let clock = &self.device.queues[usize::from(self.queue)].clock;
        let identity = self.device.addresses.identity(resource);
        access_context(self.device.rules, clock, self.queue, self.instance.as_ref(), tag, identity)
    }

    /// Before this tag nothing is directly in the first scope of a barrier.
    fn scope_begin(&self) -> Tag {
        self.instance.as_ref().map_or(0, RenderPassInstance::scope_begin)
    }

    pub(crate) fn clock(&mut self) -> &mut QueueClock {
        &mut self.device.queues[usize::from(self.queue)].clock
    }

    fn timeline(&mut self) -> &mut QueueTimeline {
        &mut self.device.queues[usize::from(self.queue)]
    }

    pub(crate) fn flags(&self) -> u32 {
        self.device.queues[usize::from(self.queue)].flags
    }

    fn barrier(&mut self, tag: Tag, barrier: &Barrier) {
        let (Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) = barrier;
        self.apply_ownership_transfers(tag, dependencies);
        match barrier {
            Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                // They are large, and most barriers have one.
                if let [only] = &dependencies[..] {
                    let element = expand_single_sync1(only, *src_stages, *dst_stages, self.timeline());
                    let ready = [self.resolve_dependency(tag, element)];
                    self.apply_dependencies(tag, &ready);
                    return self.share_transitions(tag, &ready);
                }
                let elements = self.merged_sync1_dependencies(dependencies, *src_stages, *dst_stages);
                let ready: Vec<ResolvedDependency> =
                    elements.into_iter().map(|it| self.resolve_dependency(tag, it)).collect();
                self.apply_dependencies(tag, &ready);
                self.share_transitions(tag, &ready);
            }
            Barrier::Sync2 { dependencies } => {
                let mut ready = |dependency: &Dependency| {
                    let element = expand_sync2(dependency, self.timeline());
                    self.resolve_dependency(tag, element)
                };
                if let [only] = &dependencies[..] {
                    let ready = [ready(only)];
                    return self.apply_dependencies(tag, &ready);
                }
                let ready: Vec<ResolvedDependency> = dependencies.iter().map(&mut ready).collect();
                self.apply_dependencies(tag, &ready);
            }
        }
    }

    fn resolve_dependency(&self, tag: Tag, element: ExpandedDependency) -> ResolvedDependency {
        ResolvedDependency { first_scope: self.first(tag, &element), dependency: element }
    }

    /// The first scope of an element of a barrier; inside a subpass, only of that subpass.
    fn first(&self, tag: Tag, expanded_dependency: &ExpandedDependency) -> ResourceFirstScope {
        let clock = &self.device.queues[usize::from(self.queue)].clock;
        let first_scope = |src_usages| match self.scope_begin() {
            0 => clock.first_scope(self.queue, tag, expanded_dependency.scope.src, src_usages),
            begin => clock.first_scope_of_interval(SubpassInterval {
                queue: self.queue,
                begin,
                end: tag,
                src: expanded_dependency.scope.src,
                src_usages,
                dst: StageSet::default(),
                dst_usages: UsageSet::default(),
            }),
        };
        let own =
            self.sources(expanded_dependency).into_iter().map(|it| (it.identity, first_scope(it.usages))).collect();
        let elsewhere = expanded_dependency
            .alias_sources()
            .iter()
            .map(|(at, it)| (at.clone(), it.identity, first_scope(it.usages)));
        let elsewhere = elsewhere.collect();
        let (first_scope, parts) =
            (first_scope(expanded_dependency.global_usages()), smallvec![(expanded_dependency.scope.src, tag)]);
        ResourceFirstScope {
            global: first_scope,
            through_resource: own,
            through_aliases: elsewhere,
            stage_limits: parts,
            ..ResourceFirstScope::default()
        }
    }

    /// What a dependency makes available of accesses through which resources.
    fn sources(&self, expanded_dependency: &ExpandedDependency) -> SmallVec<[AvailableSource; 1]> {
        match &expanded_dependency.part {
            None => SmallVec::new(),
            Some(DependencyRange::Region(resource, _)) => {
                smallvec![AvailableSource {
                    identity: self.device.addresses.identity(*resource),
                    usages: expanded_dependency.scope.src_usages
                }]
            }
            Some(DependencyRange::Addresses(part)) => part.sources.iter().copied().collect(),
        }
    }

    /// All elements look at what was before the command, and then take effect.
    fn apply_dependencies(&mut self, tag: Tag, elements: &[ResolvedDependency]) {
        for resolved_dependency in elements.iter().filter(|it| it.dependency.is_transition) {
            self.check_transition(tag, resolved_dependency);
        }
        for resolved_dependency in elements {
            self.apply_to_resource(tag, resolved_dependency);
        }
        let clock = &mut self.device.queues[usize::from(self.queue)].clock;
        if let Some(instance) = self.instance.as_mut().filter(|_| !elements.is_empty()) {
            instance.save_outside_clock(clock);
        }
        for ResolvedDependency { first_scope: first, dependency: element } in elements {
            match element.part {
                None => clock.apply_second_scope(&first.global, element.scope.dst, element.scope.dst_usages),
                Some(_) => clock.apply_execution_dependency(&first.global, element.scope.dst),
            }
        }
    }

    /// A barrier of version 1 is one dependency: what one of its elements writes by changing a layout is visible to what
    /// another asks for by another name of the same memory.
    fn share_transitions(&mut self, tag: Tag, elements: &[ResolvedDependency]) {
        let elements = if elements.iter().any(|it| it.dependency.is_transition) { elements } else { &[] };
        for ready in elements {
            let Some((resource, ranges)) = self.dependency_ranges(&ready.dependency) else { continue };
            let aliased = self.device.addresses.aliased_ranges(resource, &ranges);
            let (rules, queue, from) = (self.device.rules, self.queue, self.scope_begin());
            let (identity, tag) = (self.device.addresses.identity(resource), tag + 1);
            let EngineDevice { queues, states, .. } = &mut *self.device;
            let clock = &queues[usize::from(queue)].clock;
            let alias = |it: &Range<u64>| Addressing::Alias { start: it.start, end: it.end };
            let own = ranges.into_iter().map(|it| (Addressing::Own, it));
            for (name, range) in aliased.into_iter().map(|(own, theirs)| (alias(&own), theirs)).chain(own) {
                let context = AccessContext {
                    rules,
                    clock,
                    queue,
                    tag,
                    instance_begin: None,
                    subpass_begin: from,
                    unordered_subpasses: &[],
                    identity,
                    addressing: name,
                };
                let mut shared = SharedOverlays::default();
                states.update(range, |_, state| {
                    if let Some(state) = state {
                        state.share_transition(&context, &ready.dependency.scope, &mut shared);
                    }
                });
            }
        }
    }

    pub(crate) fn check_transition(&mut self, tag: Tag, ready: &ResolvedDependency) {
        let Some((resource, ranges)) = self.dependency_ranges(&ready.dependency) else { return };
        let mut conflicts: Vec<(Range<u64>, Vec<Conflict>)> = Vec::new();
        let context = self.access_context(tag + 1, resource);
        for range in &ranges {
            for (part, state) in self.device.states.overlapping(range.clone()) {
                let found = state.check_transition(&context, &ready.first_scope, &part);
                conflicts.extend(Some((part, found)).filter(|it| !it.1.is_empty()));
            }
        }
        for (own, theirs) in self.device.addresses.aliased_ranges(resource, &ranges) {
            let context = AccessContext { addressing: Addressing::Alias { start: own.start, end: own.end }, ..context };
            for (part, state) in split_range(&theirs, ready.alias_boundaries())
                .into_iter()
                .flat_map(|it| self.device.states.overlapping(it))
            {
                let found = state.check_transition(&context, &ready.first_scope, &part);
                conflicts.extend(self.device.without_newer_access(
                    &context,
                    (TRANSITION_WRITE, AccessOrder::None),
                    &own,
                    &found,
                ));
            }
        }
        self.device.report(tag, resource, conflicts);
    }

    /// What a dependency does to the resource that it names.
    pub(crate) fn apply_to_resource(&mut self, tag: Tag, ready: &ResolvedDependency) {
        let Some((resource, ranges)) = self.dependency_ranges(&ready.dependency) else { return };
        let aliased = self.device.addresses.aliased_ranges(resource, &ranges);
        let (queue, from, instance) =
            (self.queue, self.scope_begin(), self.instance.as_ref().map(RenderPassInstance::raster_order_begin));
        let EngineDevice { rules, queues, states, addresses, .. } = &mut *self.device;
        let (rules, clock, identity) = (*rules, &queues[usize::from(queue)].clock, addresses.identity(resource));
        let context = AccessContext {
            rules,
            clock,
            queue,
            tag: tag + 1,
            instance_begin: instance,
            subpass_begin: from,
            unordered_subpasses: &[],
            identity,
            addressing: Addressing::Own,
        };
        let mut shared = SharedOverlays::default();
        for range in ranges {
            states.update(range, |part, state| {
                if ready.dependency.is_transition {
                    state.get_or_insert_default().record_transition(&context, &ready.dependency.scope, &mut shared);
                } else if let Some(state) = state {
                    state.apply_dependency(&context, ready, &part, &mut shared);
                }
            });
        }
        if !ready.dependency.is_transition {
            // What was written by another name and is available becomes visible to accesses by this one.
            for (own, theirs) in aliased {
                let context =
                    AccessContext { addressing: Addressing::Alias { start: own.start, end: own.end }, ..context };
                let mut shared = SharedOverlays::default();
                for theirs in split_range(&theirs, ready.alias_boundaries()) {
                    states.update(theirs, |part, state| {
                        if let Some(state) = state {
                            state.apply_dependency(&context, ready, &part, &mut shared);
                        }
                    });
                }
            }
        }
    }

    fn dependency_ranges(&mut self, element: &ExpandedDependency) -> Option<(ResourceId, Vec<Range<u64>>)> {
        match element.part.as_ref()? {
            DependencyRange::Region(resource, region) => Some((*resource, self.device.ranges(*resource, region))),
            DependencyRange::Addresses(addresses) => {
                Some((addresses.resource, Some(addresses.range.clone()).into_iter().collect()))
            }
        }
    }

    /// The elements of a barrier of version 1; where several are about the same memory, they are one there.
    fn merged_sync1_dependencies(
        &mut self,
        dependencies: &[Dependency],
        src_stages: u64,
        dst_stages: u64,
    ) -> Vec<ExpandedDependency> {
        let mut elements = expand_sync1(dependencies, src_stages, dst_stages, self.timeline());
        if elements.iter().filter(|it| it.part.is_some()).count() < 2 {
            return elements;
        }
        // Once for all, since any of them may be the first to ask for single components, which moves an image.
        for expanded_dependency in &elements {
            self.dependency_ranges(expanded_dependency);
        }
        let mut merged: IntervalMap<Vec<MergedDependency>> = IntervalMap::default();
        for expanded_dependency in elements.extract_if(.., |it| it.part.is_some()) {
            let Some((resource, ranges)) = self.dependency_ranges(&expanded_dependency) else { continue };
            let identity = self.device.addresses.identity(resource);
            for range in ranges {
                merged.update(range, |_, own| {
                    let new = MergedDependency {
                        resource,
                        identity,
                        scope: expanded_dependency.scope,
                        is_transition: expanded_dependency.is_transition,
                    };
                    let all = own.get_or_insert_default();
                    match all.iter_mut().find(|it| it.identity == identity) {
                        Some(old) => *old = old.merge(new),
                        None => all.push(new),
                    }
                });
            }
        }
        for (range, all) in merged.overlapping(0..u64::MAX) {
            // They are one dependency: each has what the others make available.
            let sources: Vec<AvailableSource> = all.iter().map(MergedDependency::source).collect();
            for MergedDependency { resource, scope, is_transition, .. } in all {
                let aliased = self.device.addresses.aliased_ranges(*resource, std::slice::from_ref(&range));
                let others = aliased.into_iter().flat_map(|it| merged.overlapping(it.1));
                let elsewhere = others.flat_map(|(at, all)| all.iter().map(move |it| (at.clone(), it.source())));
                let elsewhere = elsewhere.collect();
                let part = MergedAddresses {
                    resource: *resource,
                    range: range.clone(),
                    sources: sources.clone(),
                    alias_sources: elsewhere,
                };
                let part = Some(DependencyRange::Addresses(part));
                elements.push(ExpandedDependency { scope: *scope, part, is_transition: *is_transition });
            }
        }
        elements
    }

    fn set_event(&mut self, tag: Tag, set: &SetEvent) {
        let (event, stages) = match set {
            SetEvent::Sync1 { event, stages } => (*event, *stages),
            SetEvent::Sync2 { event, dependencies } => {
                (*event, dependencies.iter().fold(0, |all, it| all | it.scope.src_stages))
            }
        };
        let stages = scopes::source_stages(stages, self.flags());
        let clock = self.device.queues[usize::from(self.queue)].clock.clone();
        let queue = self.queue;
        if let Some(event) = self.device.events.get_mut(event.0 as usize) {
            // Setting what is set already changes nothing.
            event.set.get_or_insert(EventSetState { tag, queue, clock, stages });
        }
    }

    /// The dependencies of all events are one command: they look at what was before it, and do not chain.
    fn wait_events(&mut self, tag: Tag, wait: &WaitEvents) {
        match wait {
            WaitEvents::Sync1 { dependencies, .. } => self.apply_ownership_transfers(tag, dependencies),
            WaitEvents::Sync2 { events } => self.apply_ownership_transfers(tag, events.iter().flat_map(|it| &it.1)),
        }
        let mut ready = Vec::new();
        match wait {
            WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => {
                // One dependency, whose first scope is that of all the events together.
                let events: Vec<u32> = events.iter().map(|it| it.0).collect();
                for element in self.merged_sync1_dependencies(dependencies, *src_stages, *dst_stages) {
                    ready.push(ResolvedDependency {
                        first_scope: self.event_first_scope(&events, &element),
                        dependency: element,
                    });
                }
            }
            WaitEvents::Sync2 { events } => {
                for (event, dependencies) in events {
                    for item in dependencies {
                        let element = expand_sync2(item, self.timeline());
                        ready.push(ResolvedDependency {
                            first_scope: self.event_first_scope(&[event.0], &element),
                            dependency: element,
                        });
                    }
                }
            }
        }
        self.apply_dependencies(tag, &ready);
        if matches!(wait, WaitEvents::Sync1 { .. }) {
            self.share_transitions(tag, &ready);
        }
    }

    /// A first scope as it was when events were set; of one that is not set there is nothing.
    fn event_first_scope(&self, events: &[u32], element: &ExpandedDependency) -> ResourceFirstScope {
        let mut first = ResourceFirstScope::default();
        for event in events {
            let Some(set) = self.device.events.get(*event as usize).and_then(|it| it.set.as_ref()) else { continue };
            // Between queues events order nothing.
            if set.queue != self.queue && set.queue != self.device.host_queue() {
                continue;
            }
            let src = StageSet(element.scope.src.0 & set.stages.0);
            let set_usages = scopes::usages_of(set.stages);
            let first_scope = |usages: UsageSet| set.clock.first_scope(set.queue, set.tag, src, usages.and(set_usages));
            first.global.merge(&first_scope(element.global_usages()));
            first
                .through_resource
                .extend(self.sources(element).into_iter().map(|it| (it.identity, first_scope(it.usages))));
            let elsewhere = element.alias_sources().iter();
            first.through_aliases.extend(elsewhere.map(|(at, it)| (at.clone(), it.identity, first_scope(it.usages))));
            first.stage_limits.push((src, set.tag));
        }
        first
    }
}

pub(crate) fn access_context<'n>(
    rules: Rules,
    clock: &'n QueueClock,
    queue: u8,
    instance: Option<&'n RenderPassInstance>,
    tag: Tag,
    identity: ResourceIdentity,
) -> AccessContext<'n> {
    AccessContext {
        rules,
        identity,
        clock,
        queue,
        tag,
        instance_begin: instance.map(RenderPassInstance::raster_order_begin),
        subpass_begin: instance.map_or(0, RenderPassInstance::scope_begin),
        unordered_subpasses: instance.map_or(&[][..], RenderPassInstance::unordered_subpasses),
        addressing: Addressing::Own,
    }
}

/// A dependency, expanded.
pub(crate) struct ExpandedDependency {
    pub(crate) scope: ExpandedScope,
    pub(crate) part: Option<DependencyRange>,
    pub(crate) is_transition: bool,
}

/// What a dependency is about, if not everything.
pub(crate) enum DependencyRange {
    Region(ResourceId, Region),
    Addresses(MergedAddresses),
}

/// Addresses that one element, or several elements of one command, are about.
pub(crate) struct MergedAddresses {
    resource: ResourceId,
    range: Range<u64>,
    sources: Vec<AvailableSource>,
    /// What the command makes available of accesses to the same memory at other addresses.
    alias_sources: Vec<(Range<u64>, AvailableSource)>,
}

/// What is made available of accesses through a resource.
#[derive(Clone, Copy)]
struct AvailableSource {
    identity: ResourceIdentity,
    usages: UsageSet,
}

/// Elements of one command that are about the same memory, through one resource.
#[derive(Clone, Copy)]
struct MergedDependency {
    resource: ResourceId,
    identity: ResourceIdentity,
    scope: ExpandedScope,
    is_transition: bool,
}

impl MergedDependency {
    fn source(&self) -> AvailableSource {
        AvailableSource { identity: self.identity, usages: self.scope.src_usages }
    }

    fn merge(self, other: MergedDependency) -> MergedDependency {
        let scope = ExpandedScope {
            src: self.scope.src.union(other.scope.src),
            src_usages: self.scope.src_usages.union(other.scope.src_usages),
            src_global_usages: self.scope.src_global_usages.union(other.scope.src_global_usages),
            dst: self.scope.dst.union(other.scope.dst),
            dst_usages: self.scope.dst_usages.union(other.scope.dst_usages),
            dst_global_usages: self.scope.dst_global_usages.union(other.scope.dst_global_usages),
        };
        // What changes its layout is what conflicts.
        let resource = if self.is_transition { self.resource } else { other.resource };
        MergedDependency { resource, scope, is_transition: self.is_transition || other.is_transition, ..self }
    }
}

/// Which half of a transfer between queue families a queue executes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferHalf {
    Release,
    Acquire,
}

impl TransferHalf {
    fn of(ownership: &QueueFamilyTransfer, family: u32) -> Option<TransferHalf> {
        if ownership.src_family == ownership.dst_family {
            return None;
        }
        let is_release = ownership.src_family == family;
        let half = if is_release { TransferHalf::Release } else { TransferHalf::Acquire };
        (is_release || ownership.dst_family == family).then_some(half)
    }
}

/// With what its first scope hands on.
pub(crate) struct ResolvedDependency {
    pub(crate) first_scope: ResourceFirstScope,
    pub(crate) dependency: ExpandedDependency,
}

impl ResolvedDependency {
    /// Addresses at which another part of the command begins or ends.
    fn alias_boundaries(&self) -> impl Iterator<Item = u64> {
        self.first_scope.through_aliases.iter().flat_map(|it| [it.0.start, it.0.end])
    }
}

impl ExpandedDependency {
    fn alias_sources(&self) -> &[(Range<u64>, AvailableSource)] {
        match &self.part {
            Some(DependencyRange::Addresses(part)) => &part.alias_sources,
            Some(DependencyRange::Region(..)) | None => &[],
        }
    }

    /// What it makes available of everything.
    fn global_usages(&self) -> UsageSet {
        if self.part.is_some() { self.scope.src_global_usages } else { self.scope.src_usages }
    }
}

/// Of a transfer between queue families each queue sees one half: nothing is visible after the release, nothing
/// available before the acquire.
fn limit_to_half(dependency: &Dependency, scope: &mut ExpandedScope, family: u32) -> Option<TransferHalf> {
    let DependencyTarget::QueueFamilyTransfer { transfer: ownership, .. } = &dependency.target else { return None };
    let half = TransferHalf::of(ownership, family)?;
    match half {
        TransferHalf::Release => scope.dst_usages = UsageSet::default(),
        TransferHalf::Acquire => scope.src_usages = UsageSet::default(),
    }
    Some(half)
}

/// Both halves of a transfer are accesses themselves.
fn expanded_dependency(dependency: &Dependency, scope: ExpandedScope, family: u32) -> ExpandedDependency {
    let (part, is_transition) = match &dependency.target {
        DependencyTarget::Global => (None, false),
        DependencyTarget::Resource { resource, region } => {
            (Some(DependencyRange::Region(*resource, region.clone())), false)
        }
        DependencyTarget::Transition { resource, region } => {
            (Some(DependencyRange::Region(*resource, region.clone())), true)
        }
        DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
            let is_access = TransferHalf::of(ownership, family).is_some() || ownership.is_transition;
            (Some(DependencyRange::Region(*resource, region.clone())), is_access)
        }
    };
    ExpandedDependency { scope, part, is_transition }
}

/// Version 2: each dependency stands for itself, and of a transfer each half also for its one scope only.
fn expand_sync2(dependency: &Dependency, queue: &mut QueueTimeline) -> ExpandedDependency {
    let mut scope = queue.expand(dependency.scope);
    match limit_to_half(dependency, &mut scope, queue.family) {
        Some(TransferHalf::Release) => scope.dst = StageSet::default(),
        Some(TransferHalf::Acquire) => scope.src = StageSet::default(),
        None => {}
    }
    expanded_dependency(dependency, scope, queue.family)
}

/// What [`united`] gives for one dependency, in one element: that of a resource also orders execution of everything
/// else, as the command does, and nothing else is made available or visible.
fn expand_single_sync1(
    dependency: &Dependency,
    src_stages: u64,
    dst_stages: u64,
    queue: &mut QueueTimeline,
) -> ExpandedDependency {
    let family = queue.family;
    let mut scope = queue.expand(SyncScope { src_stages, dst_stages, ..dependency.scope });
    limit_to_half(dependency, &mut scope, family);
    (scope.src_global_usages, scope.dst_global_usages) = (UsageSet::default(), UsageSet::default());
    expanded_dependency(dependency, scope, family)
}

/// Version 1: the command is one dependency. Its stages are those of the command, and what any element makes
/// available is visible to what any element asks for, as far as they are about the same memory.
fn expand_sync1(
    dependencies: &[Dependency],
    src_stages: u64,
    dst_stages: u64,
    queue: &mut QueueTimeline,
) -> Vec<ExpandedDependency> {
    let family = queue.family;
    let mut of = |access: SyncScope| queue.expand(SyncScope { src_stages, dst_stages, ..access });
    let mut global = of(SyncScope::default());
    for dependency in dependencies.iter().filter(|it| it.target == DependencyTarget::Global) {
        let scope = of(dependency.scope);
        global.src_usages = global.src_usages.union(scope.src_usages);
        global.dst_usages = global.dst_usages.union(scope.dst_usages);
    }
    let mut elements = vec![ExpandedDependency { scope: global, part: None, is_transition: false }];
    for dependency in dependencies.iter().filter(|it| it.target != DependencyTarget::Global) {
        let mut scope = of(dependency.scope);
        limit_to_half(dependency, &mut scope, family);
        scope.src_usages = scope.src_usages.union(global.src_usages);
        scope.dst_usages = scope.dst_usages.union(global.dst_usages);
        (scope.src_global_usages, scope.dst_global_usages) = (global.src_usages, global.dst_usages);
        elements.push(expanded_dependency(dependency, scope, family));
    }
    elements
}
