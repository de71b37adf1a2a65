//! Executes barriers and events: what they make available, what they wait for, and the layouts that they change.
//!
//! A dependency on everything enters the clock; one on a resource is kept with what was written there (`overlay`).
//! Spec: "Pipeline Barriers", "Events".

use std::ops::Range;

use lavascope_base::IntervalMap;
use lavascope_program::{Barrier, Dependency, ResourceId, SetEvent, WaitEvents};
use smallvec::smallvec;

use crate::alias::pieces;
use crate::clock::{Keys, Stretch, Tag};
use crate::device::{Device, SetAt};
use crate::element::{Element, Merged, MergedPart, Part, Ready, Source, expanded, united};
use crate::execute::Executor;
use crate::order::Order;
use crate::render::Instance;
use crate::scope;
use crate::state::{Conflict, First, Name, Now, Shared};
use crate::usage::{Stages, TRANSITION_WRITE, Usages};

impl Executor<'_> {
    pub(crate) fn barrier(&mut self, tag: Tag, barrier: &Barrier) {
        let (Barrier::One { dependencies, .. } | Barrier::Two { dependencies }) = barrier;
        self.transfer_owners(tag, dependencies);
        let ready: Vec<Ready> = match barrier {
            Barrier::One { src_stages, dst_stages, dependencies } => {
                let elements = self.united(dependencies, *src_stages, *dst_stages);
                elements.into_iter().map(|it| self.ready(tag, it)).collect()
            }
            Barrier::Two { dependencies } => {
                let mut ready = |it: &Dependency| {
                    let element = expanded(it, self.timeline());
                    self.ready(tag, element)
                };
                dependencies.iter().map(&mut ready).collect()
            }
        };
        self.apply(tag, &ready);
        if matches!(barrier, Barrier::One { .. }) {
            self.share_transitions(tag, &ready);
        }
    }

    fn ready(&self, tag: Tag, element: Element) -> Ready {
        Ready { first: self.first(tag, &element), element }
    }

    /// The first scope of an element of a barrier; inside a subpass, only of that subpass.
    fn first(&self, tag: Tag, it: &Element) -> First {
        let clock = &self.device.queues[usize::from(self.queue)].clock;
        let carry = |src_usages| match self.from() {
            0 => clock.first_scope(self.queue, tag, it.scope.src, src_usages),
            begin => clock.first_scope_of(Stretch {
                queue: self.queue,
                begin,
                end: tag,
                src: it.scope.src,
                src_usages,
                dst: Stages::default(),
                dst_usages: Usages::default(),
            }),
        };
        let own = self.sources(it).into_iter().map(|it| (it.through, carry(it.usages))).collect();
        let elsewhere = it.sources_elsewhere().iter().map(|(at, it)| (at.clone(), it.through, carry(it.usages)));
        let elsewhere = elsewhere.collect();
        First { carry: carry(it.global_usages()), own, elsewhere, parts: smallvec![(it.scope.src, tag)] }
    }

    /// What a dependency makes available of accesses through which resources.
    fn sources(&self, it: &Element) -> Vec<Source> {
        match &it.part {
            None => Vec::new(),
            Some(Part::Region(resource, _)) => {
                vec![Source { through: self.device.addresses.identity(*resource), usages: it.scope.src_usages }]
            }
            Some(Part::Addresses(part)) => part.sources.clone(),
        }
    }

    /// All elements look at what was before the command, and then take effect.
    fn apply(&mut self, tag: Tag, elements: &[Ready]) {
        for it in elements.iter().filter(|it| it.element.is_transition) {
            self.check_transition(tag, it);
        }
        for it in elements {
            self.depend(tag, it);
        }
        let clock = &mut self.device.queues[usize::from(self.queue)].clock;
        for Ready { first, element } in elements {
            match element.part {
                None => clock.second_scope(&first.carry, element.scope.dst, element.scope.dst_usages),
                Some(_) => clock.execution_only(&first.carry, element.scope.dst),
            }
        }
    }

    /// A barrier of version 1 is one dependency: what one of its elements writes by changing a layout is visible to what
    /// another asks for by another name of the same memory.
    fn share_transitions(&mut self, tag: Tag, elements: &[Ready]) {
        for ready in elements {
            let Some((resource, ranges)) = self.part(&ready.element) else { continue };
            let aliased = self.device.addresses.aliased(resource, &ranges);
            let (rules, queue, from) = (self.device.rules, self.queue, self.from());
            let (through, tag) = (self.device.addresses.identity(resource), tag + 1);
            let Device { queues, states, .. } = &mut *self.device;
            let clock = &queues[usize::from(queue)].clock;
            let alias = |it: &Range<u64>| Name::Alias { start: it.start, end: it.end };
            let own = ranges.into_iter().map(|it| (Name::Own, it));
            for (name, range) in aliased.into_iter().map(|(own, theirs)| (alias(&own), theirs)).chain(own) {
                let now = Now { rules, clock, queue, tag, instance: None, from, apart: &[], through, name };
                let mut shared = Shared::default();
                states.update(range, |_, state| {
                    if let Some(state) = state {
                        state.share_transition(now, &ready.element.scope, &mut shared);
                    }
                });
            }
        }
    }

    pub(crate) fn check_transition(&mut self, tag: Tag, ready: &Ready) {
        let Some((resource, ranges)) = self.part(&ready.element) else { return };
        let mut conflicts: Vec<(Range<u64>, Vec<Conflict>)> = Vec::new();
        let now = self.now(tag + 1, resource);
        for range in &ranges {
            for (part, state) in self.device.states.overlapping(range.clone()) {
                let found = state.check_transition(now, &ready.first, &part);
                conflicts.push((part, found));
            }
        }
        for (own, theirs) in self.device.addresses.aliased(resource, &ranges) {
            let now = Now { name: Name::Alias { start: own.start, end: own.end }, ..now };
            for (part, state) in
                pieces(&theirs, ready.cuts()).into_iter().flat_map(|it| self.device.states.overlapping(it))
            {
                let found = state.check_transition(now, &ready.first, &part);
                conflicts.extend(self.device.by_another_name(now, (TRANSITION_WRITE, Order::None), &own, &found));
            }
        }
        self.device.report(tag, resource, conflicts);
    }

    /// What a dependency does to the resource that it names.
    pub(crate) fn depend(&mut self, tag: Tag, ready: &Ready) {
        let Some((resource, ranges)) = self.part(&ready.element) else { return };
        let aliased = self.device.addresses.aliased(resource, &ranges);
        let (queue, from, instance) = (self.queue, self.from(), self.instance.as_ref().map(Instance::ordered_from));
        let Device { rules, queues, states, addresses, .. } = &mut *self.device;
        let (rules, clock, through) = (*rules, &queues[usize::from(queue)].clock, addresses.identity(resource));
        let now = Now { rules, clock, queue, tag: tag + 1, instance, from, apart: &[], through, name: Name::Own };
        let mut shared = Shared::default();
        for range in ranges {
            states.update(range, |part, state| {
                if ready.element.is_transition {
                    state.get_or_insert_default().add_transition(now, &ready.element.scope, &mut shared);
                } else if let Some(state) = state {
                    state.depend(now, ready, &part, &mut shared);
                }
            });
        }
        if !ready.element.is_transition {
            // What was written by another name and is available becomes visible to accesses by this one.
            for (own, theirs) in aliased {
                let now = Now { name: Name::Alias { start: own.start, end: own.end }, ..now };
                let mut shared = Shared::default();
                for theirs in pieces(&theirs, ready.cuts()) {
                    states.update(theirs, |part, state| {
                        if let Some(state) = state {
                            state.depend(now, ready, &part, &mut shared);
                        }
                    });
                }
            }
        }
    }

    fn part(&mut self, element: &Element) -> Option<(ResourceId, Vec<Range<u64>>)> {
        match element.part.as_ref()? {
            Part::Region(resource, region) => Some((*resource, self.device.ranges(*resource, region))),
            Part::Addresses(it) => Some((it.resource, Some(it.range.clone()).into_iter().collect())),
        }
    }

    /// The elements of a barrier of version 1; where several are about the same memory, they are one there.
    fn united(&mut self, dependencies: &[Dependency], src_stages: u64, dst_stages: u64) -> Vec<Element> {
        let mut elements = united(dependencies, src_stages, dst_stages, self.timeline());
        if elements.iter().filter(|it| it.part.is_some()).count() < 2 {
            return elements;
        }
        // Once for all, since any of them may be the first to ask for single components, which moves an image.
        for it in &elements {
            self.part(it);
        }
        let mut merged: IntervalMap<Vec<Merged>> = IntervalMap::default();
        for it in elements.extract_if(.., |it| it.part.is_some()) {
            let Some((resource, ranges)) = self.part(&it) else { continue };
            let through = self.device.addresses.identity(resource);
            for range in ranges {
                merged.update(range, |_, own| {
                    let new = Merged { resource, through, scope: it.scope, is_transition: it.is_transition };
                    let all = own.get_or_insert_default();
                    match all.iter_mut().find(|it| it.through == through) {
                        Some(old) => *old = old.with(new),
                        None => all.push(new),
                    }
                });
            }
        }
        for (range, all) in merged.overlapping(0..u64::MAX) {
            // They are one dependency: each has what the others make available.
            let sources: Vec<Source> = all.iter().map(Merged::source).collect();
            for Merged { resource, scope, is_transition, .. } in all {
                let aliased = self.device.addresses.aliased(*resource, std::slice::from_ref(&range));
                let others = aliased.into_iter().flat_map(|it| merged.overlapping(it.1));
                let elsewhere = others.flat_map(|(at, all)| all.iter().map(move |it| (at.clone(), it.source())));
                let elsewhere = elsewhere.collect();
                let part =
                    MergedPart { resource: *resource, range: range.clone(), sources: sources.clone(), elsewhere };
                let part = Some(Part::Addresses(part));
                elements.push(Element { scope: *scope, part, is_transition: *is_transition });
            }
        }
        elements
    }

    pub(crate) fn set_event(&mut self, tag: Tag, set: &SetEvent) {
        let (event, stages) = match set {
            SetEvent::One { event, stages } => (*event, *stages),
            SetEvent::Two { event, dependencies } => {
                (*event, dependencies.iter().fold(0, |all, it| all | it.scope.src_stages))
            }
        };
        let stages = scope::source(stages, self.flags());
        let clock = self.device.queues[usize::from(self.queue)].clock.clone();
        let queue = self.queue;
        if let Some(event) = self.device.events.get_mut(event.0 as usize) {
            // Setting what is set already changes nothing.
            event.set.get_or_insert(SetAt { tag, queue, clock, stages });
        }
    }

    /// The dependencies of all events are one command: they look at what was before it, and do not chain.
    pub(crate) fn wait_events(&mut self, tag: Tag, wait: &WaitEvents) {
        match wait {
            WaitEvents::One { dependencies, .. } => self.transfer_owners(tag, dependencies),
            WaitEvents::Two { events } => self.transfer_owners(tag, events.iter().flat_map(|it| &it.1)),
        }
        let mut ready = Vec::new();
        match wait {
            WaitEvents::One { events, src_stages, dst_stages, dependencies } => {
                // One dependency, whose first scope is that of all the events together.
                let events: Vec<u32> = events.iter().map(|it| it.0).collect();
                for element in self.united(dependencies, *src_stages, *dst_stages) {
                    ready.push(Ready { first: self.waited(&events, &element), element });
                }
            }
            WaitEvents::Two { events } => {
                for (event, dependencies) in events {
                    for it in dependencies {
                        let element = expanded(it, self.timeline());
                        ready.push(Ready { first: self.waited(&[event.0], &element), element });
                    }
                }
            }
        }
        self.apply(tag, &ready);
        if matches!(wait, WaitEvents::One { .. }) {
            self.share_transitions(tag, &ready);
        }
    }

    /// A first scope as it was when events were set; of one that is not set there is nothing.
    fn waited(&self, events: &[u32], element: &Element) -> First {
        let mut first = First::default();
        for event in events {
            let Some(set) = self.device.events.get(*event as usize).and_then(|it| it.set.as_ref()) else { continue };
            // Between queues events order nothing.
            if set.queue != self.queue && set.queue != self.device.host_queue() {
                continue;
            }
            let src = Stages(element.scope.src.0 & set.stages.0);
            let set_usages = scope::usages_of(set.stages);
            let carry = |usages: Usages| set.clock.first_scope(set.queue, set.tag, src, usages.and(set_usages));
            first.carry.raise_all(&carry(element.global_usages()));
            first.own.extend(self.sources(element).into_iter().map(|it| (it.through, carry(it.usages))));
            let elsewhere = element.sources_elsewhere().iter();
            first.elsewhere.extend(elsewhere.map(|(at, it)| (at.clone(), it.through, carry(it.usages))));
            first.parts.push((src, set.tag));
        }
        first
    }
}
