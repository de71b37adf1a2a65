//! Executes pipeline barriers and event waits: checks layout transitions, and applies dependencies to clocks and ranges.
//!
//! All elements of a command take their first scopes before any of them takes effect, so they do not chain with each
//! other.

use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{Barrier, Dependency, ResourceId, SetEvent, WaitEvents};
use smallvec::{SmallVec, smallvec};

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::access_order::AccessOrder;
use crate::access::range_state::{Conflict, SharedOverlays};
use crate::access::usages::{StageSet, TRANSITION_WRITE, UsageSet};
use crate::dependency::clocks::{KeySet, Tag};
use crate::dependency::expanded::{
    AliasFirstScope, AvailableSource, DependencyRange, ExpandedDependency, MergedAddresses, MergedDependency,
    ResolvedDependency, ResourceFirstScope, TransitionKind, expand_single_sync1, expand_sync1, expand_sync2,
};
use crate::dependency::scopes;
use crate::dependency::subpass_intervals::SubpassInterval;
use crate::memory::aliases::split_range;
use crate::queue::device::EngineDevice;
use crate::queue::execution::{CommandExecutor, access_context};
use crate::queue::render_passes::{RenderPassInstance, SharedTransition};
use crate::queue::signals::EventSetState;

impl CommandExecutor<'_> {
    #[inline]
    pub(super) fn barrier(&mut self, tag: Tag, barrier: &Barrier) {
        let (Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) = barrier;
        self.apply_ownership_transfers(tag, dependencies);
        match barrier {
            Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                // Most barriers have one element. Without a vector, the large dependency stays on the stack.
                if let [only] = &dependencies[..] {
                    let element = expand_single_sync1(only, *src_stages, *dst_stages, self.timeline());
                    let resolved = [self.resolve_dependency(tag, element)];
                    self.apply_dependencies(tag, &resolved);
                    return self.share_transitions(tag, &resolved);
                }
                let elements = self.merged_sync1_dependencies(dependencies, *src_stages, *dst_stages);
                let resolved: Vec<ResolvedDependency> =
                    elements.into_iter().map(|it| self.resolve_dependency(tag, it)).collect();
                self.apply_dependencies(tag, &resolved);
                self.share_transitions(tag, &resolved);
            }
            Barrier::Sync2 { dependencies } => {
                let mut resolved = |dependency: &Dependency| {
                    let element = expand_sync2(dependency, self.timeline());
                    self.resolve_dependency(tag, element)
                };
                if let [only] = &dependencies[..] {
                    let resolved = [resolved(only)];
                    return self.apply_dependencies(tag, &resolved);
                }
                let resolved: Vec<ResolvedDependency> = dependencies.iter().map(&mut resolved).collect();
                self.apply_dependencies(tag, &resolved);
            }
        }
    }

    fn resolve_dependency(&self, tag: Tag, element: ExpandedDependency) -> ResolvedDependency {
        ResolvedDependency { first_scope: self.barrier_first_scope(tag, &element), dependency: element }
    }

    /// The first scopes of an element of a barrier. Inside a subpass they are limited to that subpass
    /// (`vkCmdPipelineBarrier`, see `subpass_intervals`).
    fn barrier_first_scope(&self, tag: Tag, element: &ExpandedDependency) -> ResourceFirstScope {
        let clock = &self.device.queues[usize::from(self.queue)].clock;
        let first_scope = |src_usages| match self.scope_begin() {
            0 => clock.first_scope(self.queue, tag, element.scope.src, src_usages),
            begin => clock.first_scope_of_interval(SubpassInterval {
                queue: self.queue,
                begin,
                end: tag,
                src: element.scope.src,
                src_usages,
                dst: StageSet::default(),
                dst_usages: UsageSet::default(),
            }),
        };
        let through_resource = self.sources(element).into_iter().map(|it| (it.identity, first_scope(it.usages)));
        let through_aliases = element.alias_sources().iter();
        let through_aliases = through_aliases.map(|(addresses, source)| AliasFirstScope {
            addresses: addresses.clone(),
            resource: source.identity,
            scope: first_scope(source.usages),
        });
        ResourceFirstScope {
            through_resource: through_resource.collect(),
            through_aliases: through_aliases.collect(),
            global: first_scope(element.global_usages()),
            stage_limits: smallvec![(element.scope.src, tag)],
            ..ResourceFirstScope::default()
        }
    }

    /// The first access scopes for the resources of a dependency.
    fn sources(&self, element: &ExpandedDependency) -> SmallVec<[AvailableSource; 1]> {
        match &element.range {
            None => SmallVec::new(),
            Some(DependencyRange::Region(resource, _)) => {
                smallvec![AvailableSource {
                    identity: self.device.addresses.identity(*resource),
                    usages: element.scope.src_usages
                }]
            }
            Some(DependencyRange::Addresses(merged)) => merged.sources.iter().copied().collect(),
        }
    }

    /// Checks the layout transitions, then applies all elements to their ranges and to the clock of the queue.
    fn apply_dependencies(&mut self, tag: Tag, elements: &[ResolvedDependency]) {
        for resolved_dependency in elements.iter().filter(|it| it.dependency.transition.is_some()) {
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
            match element.range {
                None => clock.apply_second_scope(&first.global, element.scope.dst, element.scope.dst_usages),
                Some(_) => clock.apply_execution_dependency(&first.global, element.scope.dst),
            }
        }
    }

    /// Makes the layout transitions of a version 1 command visible to the second scopes of all its elements in the same
    /// memory: the command is one dependency.
    fn share_transitions(&mut self, tag: Tag, elements: &[ResolvedDependency]) {
        let elements = if elements.iter().any(|it| it.dependency.transition.is_some()) { elements } else { &[] };
        for resolved in elements {
            let Some((resource, ranges)) = self.dependency_ranges(&resolved.dependency) else { continue };
            let aliased = self.device.addresses.aliased_ranges(resource, &ranges);
            let (rules, queue, subpass_begin) = (self.device.rules, self.queue, self.scope_begin());
            let (identity, tag) = (self.device.addresses.identity(resource), tag + 1);
            let EngineDevice { queues, states, .. } = &mut *self.device;
            let clock = &queues[usize::from(queue)].clock;
            let alias = |it: &Range<u64>| Addressing::Alias { start: it.start, end: it.end };
            let own = ranges.into_iter().map(|it| (Addressing::Own, it));
            for (addressing, range) in aliased.into_iter().map(|(own, theirs)| (alias(&own), theirs)).chain(own) {
                let context = AccessContext {
                    rules,
                    clock,
                    queue,
                    tag,
                    instance_begin: None,
                    pass_begin: Tag::MAX,
                    subpass_begin,
                    unordered_subpasses: &[],
                    rare_order: None,
                    identity,
                    addressing,
                };
                let mut shared = SharedOverlays::default();
                states.update(range, |_, state| {
                    if let Some(state) = state {
                        state.share_transition(&context, tag, &resolved.dependency.scope, &mut shared);
                    }
                });
            }
        }
    }

    /// Makes an earlier layout transition of the same render pass visible to the subpass that begins.
    pub(super) fn share_earlier_transition(&mut self, tag: Tag, shared: &SharedTransition) {
        let Some((resource, ranges)) = self.dependency_ranges(&shared.dependency) else { return };
        let identity = self.device.addresses.identity(resource);
        let EngineDevice { rules, queues, states, .. } = &mut *self.device;
        let timeline = &queues[usize::from(self.queue)];
        let context = access_context(*rules, timeline, self.queue, self.instance.as_ref(), tag + 1, identity);
        let mut overlays = SharedOverlays::default();
        for range in ranges {
            states.update(range, |_, state| {
                if let Some(state) = state {
                    state.share_transition(&context, shared.tag, &shared.dependency.scope, &mut overlays);
                }
            });
        }
    }

    /// Reports the hazards of a layout transition.
    pub(crate) fn check_transition(&mut self, tag: Tag, resolved: &ResolvedDependency) {
        let Some((resource, ranges)) = self.dependency_ranges(&resolved.dependency) else { return };
        let mut conflicts: Vec<(Range<u64>, Vec<Conflict>)> = Vec::new();
        let context = self.access_context(tag + 1, resource);
        let order = resolved.dependency.transition.map_or(AccessOrder::None, TransitionKind::order);
        for range in &ranges {
            for (part, state) in self.device.states.overlapping(range.clone()) {
                let found = state.find_transition_conflicts(&context, &resolved.first_scope, order, &part);
                conflicts.extend(Some((part, found)).filter(|it| !it.1.is_empty()));
            }
        }
        for (own, theirs) in self.device.addresses.aliased_ranges(resource, &ranges) {
            let context = AccessContext { addressing: Addressing::Alias { start: own.start, end: own.end }, ..context };
            for (part, state) in split_range(&theirs, resolved.alias_boundaries())
                .into_iter()
                .flat_map(|it| self.device.states.overlapping(it))
            {
                let found = state.find_transition_conflicts(&context, &resolved.first_scope, order, &part);
                conflicts.extend(self.device.without_newer_access(
                    &context,
                    (TRANSITION_WRITE, AccessOrder::None),
                    &own,
                    &found,
                ));
            }
        }
        self.device.report_conflicts(tag, resource, conflicts);
    }

    /// Applies a dependency to the ranges of the resource that it names.
    pub(crate) fn apply_to_resource(&mut self, tag: Tag, resolved: &ResolvedDependency) {
        let Some((resource, ranges)) = self.dependency_ranges(&resolved.dependency) else { return };
        let aliased = self.device.addresses.aliased_ranges(resource, &ranges);
        let (queue, subpass_begin, instance_begin) =
            (self.queue, self.scope_begin(), self.instance.as_ref().map(RenderPassInstance::raster_order_begin));
        let EngineDevice { rules, queues, states, addresses, .. } = &mut *self.device;
        let (rules, clock, identity) = (*rules, &queues[usize::from(queue)].clock, addresses.identity(resource));
        let context = AccessContext {
            rules,
            clock,
            queue,
            tag: tag + 1,
            instance_begin,
            pass_begin: Tag::MAX,
            subpass_begin,
            unordered_subpasses: &[],
            rare_order: None,
            identity,
            addressing: Addressing::Own,
        };
        let mut shared = SharedOverlays::default();
        for range in ranges {
            states.update(range, |part, state| {
                if let Some(kind) = resolved.dependency.transition {
                    let (state, scope) = (state.get_or_insert_default(), &resolved.dependency.scope);
                    state.add_transition(&context, kind.order(), scope, &mut shared);
                } else if let Some(state) = state {
                    state.apply_dependency(&context, resolved, &part, &mut shared);
                }
            });
        }
        if resolved.dependency.transition.is_none() {
            // Writes through other resources in the same memory become visible to accesses through this one.
            for (own, theirs) in aliased {
                let context =
                    AccessContext { addressing: Addressing::Alias { start: own.start, end: own.end }, ..context };
                let mut shared = SharedOverlays::default();
                for theirs in split_range(&theirs, resolved.alias_boundaries()) {
                    states.update(theirs, |part, state| {
                        if let Some(state) = state {
                            state.apply_dependency(&context, resolved, &part, &mut shared);
                        }
                    });
                }
            }
        }
    }

    /// The resource and the addresses that a dependency names.
    fn dependency_ranges(&mut self, element: &ExpandedDependency) -> Option<(ResourceId, Vec<Range<u64>>)> {
        match element.range.as_ref()? {
            DependencyRange::Region(resource, region) => Some((*resource, self.device.ranges(*resource, region))),
            DependencyRange::Addresses(addresses) => {
                Some((addresses.resource, Some(addresses.range.clone()).into_iter().collect()))
            }
        }
    }

    /// The elements of a version 1 command. Elements that concern the same memory are merged there.
    fn merged_sync1_dependencies(
        &mut self,
        dependencies: &[Dependency],
        src_stages: u64,
        dst_stages: u64,
    ) -> Vec<ExpandedDependency> {
        let mut elements = expand_sync1(dependencies, src_stages, dst_stages, self.timeline());
        if elements.iter().filter(|it| it.range.is_some()).count() < 2 {
            return elements;
        }
        // The first use of single components moves an image. All moves must happen before addresses are compared.
        for expanded_dependency in &elements {
            self.dependency_ranges(expanded_dependency);
        }
        let mut merged: IntervalMap<Vec<MergedDependency>> = IntervalMap::default();
        for expanded_dependency in elements.extract_if(.., |it| it.range.is_some()) {
            let Some((resource, ranges)) = self.dependency_ranges(&expanded_dependency) else { continue };
            let identity = self.device.addresses.identity(resource);
            for range in ranges {
                merged.update(range, |_, own| {
                    let new = MergedDependency {
                        resource,
                        identity,
                        scope: expanded_dependency.scope,
                        transition: expanded_dependency.transition,
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
            // The elements are one dependency: each has the first access scopes of all.
            let sources: Vec<AvailableSource> = all.iter().map(MergedDependency::source).collect();
            for MergedDependency { resource, scope, transition, .. } in all {
                let aliased = self.device.addresses.aliased_ranges(*resource, std::slice::from_ref(&range));
                let others = aliased.into_iter().flat_map(|it| merged.overlapping(it.1));
                let aliases = others.flat_map(|(at, all)| all.iter().map(move |it| (at.clone(), it.source())));
                let addresses = MergedAddresses {
                    resource: *resource,
                    range: range.clone(),
                    sources: sources.clone(),
                    alias_sources: aliases.collect(),
                };
                let range = Some(DependencyRange::Addresses(addresses));
                elements.push(ExpandedDependency { scope: *scope, range, transition: *transition });
            }
        }
        elements
    }

    pub(super) fn set_event(&mut self, tag: Tag, set: &SetEvent) {
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
            // Setting an event that is set already changes nothing.
            event.set.get_or_insert(EventSetState { tag, queue, clock, stages });
        }
    }

    pub(super) fn wait_events(&mut self, tag: Tag, wait: &WaitEvents) {
        match wait {
            WaitEvents::Sync1 { dependencies, .. } => self.apply_ownership_transfers(tag, dependencies),
            WaitEvents::Sync2 { events } => self.apply_ownership_transfers(tag, events.iter().flat_map(|it| &it.1)),
        }
        let mut resolved = Vec::new();
        match wait {
            WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => {
                // One dependency: its first scopes are those of all events together.
                let events: Vec<u32> = events.iter().map(|it| it.0).collect();
                for element in self.merged_sync1_dependencies(dependencies, *src_stages, *dst_stages) {
                    resolved.push(ResolvedDependency {
                        first_scope: self.event_first_scope(&events, &element),
                        dependency: element,
                    });
                }
            }
            WaitEvents::Sync2 { events } => {
                for (event, dependencies) in events {
                    for item in dependencies {
                        let element = expand_sync2(item, self.timeline());
                        resolved.push(ResolvedDependency {
                            first_scope: self.event_first_scope(&[event.0], &element),
                            dependency: element,
                        });
                    }
                }
            }
        }
        self.apply_dependencies(tag, &resolved);
        if matches!(wait, WaitEvents::Sync1 { .. }) {
            self.share_transitions(tag, &resolved);
        }
    }

    /// The first scopes as they were when the events were set. An event that is not set adds nothing.
    fn event_first_scope(&self, events: &[u32], element: &ExpandedDependency) -> ResourceFirstScope {
        let mut first = ResourceFirstScope::default();
        for event in events {
            let Some(set) = self.device.events.get(*event as usize).and_then(|it| it.set.as_ref()) else { continue };
            // An event orders nothing between two queues.
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
            let aliases = element.alias_sources().iter();
            let aliases = aliases.map(|(addresses, source)| AliasFirstScope {
                addresses: addresses.clone(),
                resource: source.identity,
                scope: first_scope(source.usages),
            });
            first.through_aliases.extend(aliases);
            first.stage_limits.push((src, set.tag));
        }
        first
    }
}
