//! Executes commands: their accesses are checked and kept, their dependencies enter the clocks.

use std::borrow::Cow;
use std::ops::Range;

use lavascope_base::IntervalMap;
use lavascope_program::{
    Access, At, Barrier, Batch, Command, CommandBufferId, Dependency, Ownership, Region, RenderPass, ResourceId, Scope,
    SetEvent, WaitEvents, What,
};
use smallvec::smallvec;

use crate::alias::{self, pieces};
use crate::clock::{Clock, Keys, Stretch, Tag};
use crate::contents::PassContents;
use crate::device::{Device, SetAt, Timeline};
use crate::order::Order;
use crate::prepare::{PlanKind, Prepared, Spot, group_len};
use crate::render::Instance;
use crate::rules::Rules;
use crate::scope::{self, Expanded};
use crate::state::{By, Conflict, First, Name, Now, Shared, State};
use crate::usage::{Stages, TABLES, TRANSITION_WRITE, Usage, Usages};

/// Command buffers call command buffers at most this deep; the specification allows less.
const DEPTH_MAX: usize = 16;

/// What was recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) command_buffers: &'a [Prepared],
    pub(crate) render_passes: &'a [RenderPass],
}

/// Executes the command buffers of a batch.
pub(crate) fn batch(device: &mut Device, recorded: Recorded<'_>, queue: u8, step: u32, index: u32, batch: &Batch) {
    for (primary, id) in batch.command_buffers.iter().enumerate() {
        let Some(commands) = recorded.command_buffers.get(id.0 as usize) else { continue };
        let at = At { step, batch: index, primary: primary as u32, path: Vec::new() };
        let first = (device.found.len(), device.contents.found.len());
        let mut walk = Walk::new(at);
        Executor::new(device, recorded, queue, &mut walk).run(commands);
        let mut found = device.found.split_off(first.0);
        found.retain(|it| !commands.told.has(it));
        device.found.append(&mut found);
        let mut faults = device.contents.found.split_off(first.1);
        faults.retain(|it| !commands.told.has_fault(it));
        device.contents.found.append(&mut faults);
    }
}

/// How far the execution of a command buffer has come.
pub(crate) struct Walk {
    /// The command being executed.
    at: At,
    /// How many were executed.
    done: usize,
    /// Whether the command before was an action without a conflict.
    is_smooth: bool,
    instance: Option<Instance>,
    pass_contents: Option<PassContents>,
}

impl Walk {
    pub(crate) fn new(at: At) -> Walk {
        Walk { at, done: 0, is_smooth: false, instance: None, pass_contents: None }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.at.path.clear();
        (self.done, self.is_smooth, self.instance, self.pass_contents) = (0, false, None, None);
    }

    /// Executes what was recorded since the last time, up to a command, on the only queue of a device.
    pub(crate) fn go_on(&mut self, device: &mut Device, recorded: Recorded<'_>, commands: &Prepared, until: usize) {
        if self.at.path.is_empty() {
            self.at.path.push(0);
            device.begin_run(&self.at);
        }
        let (part, is_smooth) = (self.done..until, self.is_smooth);
        self.is_smooth = Executor::new(device, recorded, 0, self).run_part(commands, part, is_smooth);
        self.done = until;
    }
}

pub(crate) struct Executor<'a> {
    pub(crate) device: &'a mut Device,
    pub(crate) recorded: Recorded<'a>,
    pub(crate) queue: u8,
    /// The command being executed.
    at: &'a mut At,
    /// The render pass instance that is open.
    pub(crate) instance: &'a mut Option<Instance>,
    /// Of the attachments of a render pass that is open.
    pub(crate) pass_contents: &'a mut Option<PassContents>,
}

impl<'a> Executor<'a> {
    fn new(device: &'a mut Device, recorded: Recorded<'a>, queue: u8, walk: &'a mut Walk) -> Executor<'a> {
        let Walk { at, instance, pass_contents, .. } = walk;
        Executor { device, recorded, queue, at, instance, pass_contents }
    }

    fn run(&mut self, commands: &Prepared) {
        self.at.path.push(0);
        self.device.begin_run(self.at);
        self.run_part(commands, 0..commands.source.commands.len(), false);
        self.at.path.pop();
    }

    /// Executes some of the commands. Takes, and gives, whether the last one was an action without a conflict.
    fn run_part(&mut self, commands: &Prepared, part: Range<usize>, mut is_smooth: bool) -> bool {
        for index in part {
            let command = &commands.source.commands[index];
            let tag = self.device.next_tag();
            if let Command::Action(accesses) = command {
                is_smooth = self.action(tag, accesses, commands.spots(index, &self.device.addresses), is_smooth);
                continue;
            }
            is_smooth = false;
            if let Some(last) = self.at.path.last_mut() {
                *last = index as u32;
            }
            self.command(tag, command);
        }
        is_smooth
    }

    fn command(&mut self, tag: Tag, command: &Command) {
        match command {
            Command::Action(accesses) => {
                self.action(tag, accesses, (PlanKind::Unknown, &[]), false);
            }
            Command::Barrier(barrier) => self.barrier(tag, barrier),
            Command::SetEvent(set) => self.set_event(tag, set),
            Command::ResetEvent { event, .. } => {
                if let Some(event) = self.device.events.get_mut(event.0 as usize) {
                    event.set = None;
                }
            }
            Command::WaitEvents(wait) => self.wait_events(tag, wait),
            Command::Execute(buffers) => self.secondaries(buffers),
            Command::BeginRenderPass { pass, views, area } => self.begin_render_pass(tag, *pass, views, *area),
            Command::NextSubpass => self.next_subpass(tag),
            Command::EndRenderPass => self.end_render_pass(tag),
            Command::BeginRendering(rendering) => self.begin_rendering(tag, rendering),
            Command::EndRendering => self.end_rendering(tag),
        }
    }

    fn secondaries(&mut self, buffers: &[CommandBufferId]) {
        for (place, id) in buffers.iter().enumerate() {
            let Some(commands) = self.recorded.command_buffers.get(id.0 as usize) else { continue };
            if self.at.path.len() < DEPTH_MAX {
                self.at.path.push(place as u32);
                self.run(commands);
                self.at.path.pop();
            }
        }
        // The commands behind it go on with numbers of their own.
        if let Some(last) = self.at.path.last_mut() {
            *last += 1;
            self.device.begin_run(self.at);
        }
    }

    /// All accesses of a command are checked before any of them is kept: they do not conflict with each other. Gives
    /// whether what the command behind repeats was left to it.
    fn action(&mut self, tag: Tag, accesses: &[Access], (kind, spots): (PlanKind, &[Spot]), is_smooth: bool) -> bool {
        let uses = || accesses.iter().filter_map(Use::of).collect::<Vec<Use<'_>>>();
        if self.is_watching() {
            self.watch_contents(tag, &uses());
        }
        let is_done = match kind {
            PlanKind::Apart => self.check_and_keep(tag, spots, is_smooth),
            PlanKind::Overlapping => self.check_then_keep(tag, spots),
            PlanKind::Unknown => false,
        };
        if !is_done {
            self.check_and_keep_all(tag, &uses());
        }
        is_done && kind == PlanKind::Apart
    }

    /// The common case, without a conflict: each range is looked up once. False if there is a conflict, or other names
    /// of the memory to be looked at; what was kept until then may be kept again.
    fn check_and_keep(&mut self, tag: Tag, spots: &[Spot], is_smooth: bool) -> bool {
        let Executor { device, queue, instance, .. } = self;
        let Device { rules, queues, states, addresses, .. } = &mut **device;
        let clock = &queues[usize::from(*queue)].clock;
        let mut now = now(*rules, clock, *queue, instance.as_ref(), tag, ResourceId(0));
        let mut rest = spots;
        while let Some(spot) = rest.first() {
            let range = &spot.range;
            let (group, others) = rest.split_at(group_len(rest));
            (rest, now.through) = (others, spot.through);
            if group.iter().any(|it| addresses.has_aliases(it.resource)) {
                return false;
            }
            let is_again = is_smooth && spot.repeats.before(instance.is_some());
            if is_again && spot.repeats.behind() {
                continue;
            }
            let conflicts = |state: &State| !is_again && group.iter().any(|it| state.conflicts(now, it.by(*queue)));
            let add = |state: &mut State| add_all(state, group, *queue, now);
            let mut is_fine = true;
            match states.exact_mut(range) {
                Some(state) => match conflicts(state) {
                    true => is_fine = false,
                    false => add(state),
                },
                None => {
                    let mut parts = 0;
                    states.update(range.clone(), |_, state| {
                        parts += 1;
                        match state {
                            Some(state) if conflicts(state) => is_fine = false,
                            state => add(state.get_or_insert_default()),
                        }
                    });
                    // What was apart may be alike now: a buffer that is used in small pieces must not stay in pieces.
                    if parts > 1 {
                        states.join(range.clone());
                    }
                }
            }
            if !is_fine {
                return false;
            }
        }
        true
    }

    /// The same where accesses of one command overlap in part.
    fn check_then_keep(&mut self, tag: Tag, spots: &[Spot]) -> bool {
        let Executor { device, queue, instance, .. } = self;
        let Device { rules, queues, states, addresses, .. } = &mut **device;
        let clock = &queues[usize::from(*queue)].clock;
        let now = |through| now(*rules, clock, *queue, instance.as_ref(), tag, through);
        for spot in spots {
            let (by, now) = (spot.by(*queue), now(spot.through));
            let is_bad = |(_, state): (_, &State)| state.conflicts(now, by);
            if addresses.has_aliases(spot.resource) || states.overlapping(spot.range.clone()).any(is_bad) {
                return false;
            }
        }
        // Writes first, so that reads of the same command stay known beside them.
        for is_write in [true, false] {
            for spot in spots.iter().filter(|it| TABLES.write_column(it.usage).is_some() == is_write) {
                let (by, now) = (spot.by(*queue), now(spot.through));
                states.update(spot.range.clone(), |_, state| state.get_or_insert_default().add(by, now));
            }
        }
        true
    }

    pub(crate) fn uses(&mut self, tag: Tag, uses: &[Use<'_>]) {
        if self.is_watching() {
            self.watch_contents(tag, uses);
        }
        self.check_and_keep_all(tag, uses);
    }

    fn check_and_keep_all(&mut self, tag: Tag, uses: &[Use<'_>]) {
        for it in uses {
            self.check(tag, it);
        }
        let is_write = |it: &&Use<'_>| TABLES.write_column(it.usage).is_some();
        // Writes first, so that reads of the same command stay known beside them.
        for it in uses.iter().filter(|it| is_write(it)) {
            self.keep(tag, it);
        }
        for it in uses.iter().filter(|it| !is_write(it)) {
            self.keep(tag, it);
        }
    }

    fn check(&mut self, tag: Tag, it: &Use<'_>) {
        let ranges = self.device.ranges(it.resource, &it.region);
        let device = &*self.device;
        let now = self.now(tag, it.resource);
        let mut conflicts = Vec::new();
        for range in &ranges {
            for (part, state) in device.states.overlapping(range.clone()) {
                let found = state.check(now, it.usage, it.order);
                if !found.is_empty() {
                    conflicts.push((part, found));
                }
            }
        }
        conflicts.extend(device.alias_conflicts(now, it.resource, &ranges, (it.usage, it.order)));
        self.device.report(tag, it.resource, conflicts);
    }

    fn keep(&mut self, tag: Tag, it: &Use<'_>) {
        let ranges = self.device.addresses.ranges(it.resource, &it.region);
        let by = By { usage: it.usage, queue: self.queue, order: it.order };
        let elsewhere = self.device.written_elsewhere(it.resource, &ranges, by);
        let Executor { device, queue, instance, .. } = self;
        let Device { rules, queues, states, addresses, .. } = &mut **device;
        let through = addresses.identity(it.resource);
        let now = now(*rules, &queues[usize::from(*queue)].clock, *queue, instance.as_ref(), tag, through);
        for range in ranges {
            alias::keep(states, range, &elsewhere, by, now);
        }
    }

    /// Where and how this command is.
    pub(crate) fn now(&self, tag: Tag, resource: ResourceId) -> Now<'_> {
        let clock = &self.device.queues[usize::from(self.queue)].clock;
        let through = self.device.addresses.identity(resource);
        now(self.device.rules, clock, self.queue, self.instance.as_ref(), tag, through)
    }

    /// Before this tag nothing is directly in the first scope of a barrier.
    fn from(&self) -> Tag {
        self.instance.as_ref().map_or(0, Instance::from)
    }

    pub(crate) fn clock(&mut self) -> &mut Clock {
        &mut self.device.queues[usize::from(self.queue)].clock
    }

    fn timeline(&mut self) -> &mut Timeline {
        &mut self.device.queues[usize::from(self.queue)]
    }

    pub(crate) fn flags(&self) -> u32 {
        self.device.queues[usize::from(self.queue)].flags
    }

    fn barrier(&mut self, tag: Tag, barrier: &Barrier) {
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

    fn set_event(&mut self, tag: Tag, set: &SetEvent) {
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
    fn wait_events(&mut self, tag: Tag, wait: &WaitEvents) {
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

/// Writes first, so that reads of the same command stay known beside them.
fn add_all(state: &mut State, spots: &[Spot], queue: u8, now: Now<'_>) {
    if let [spot] = spots {
        return state.add(spot.by(queue), now);
    }
    for is_write in [true, false] {
        let wanted = spots.iter().filter(|it| TABLES.write_column(it.usage).is_some() == is_write);
        wanted.for_each(|it| state.add(it.by(queue), now));
    }
}

fn now<'n>(
    rules: Rules,
    clock: &'n Clock,
    queue: u8,
    instance: Option<&'n Instance>,
    tag: Tag,
    through: ResourceId,
) -> Now<'n> {
    Now {
        rules,
        through,
        clock,
        queue,
        tag,
        instance: instance.map(Instance::ordered_from),
        from: instance.map_or(0, Instance::from),
        apart: instance.map_or(&[][..], Instance::apart),
        name: Name::Own,
    }
}

/// One use of a part of a resource, by the name that the tables have for it.
pub(crate) struct Use<'a> {
    pub(crate) resource: ResourceId,
    pub(crate) region: Cow<'a, Region>,
    pub(crate) usage: Usage,
    pub(crate) order: Order,
}

impl<'a> Use<'a> {
    /// None for an access that its stage cannot make: that is another's to report.
    fn of(access: &'a Access) -> Option<Use<'a>> {
        let usage = TABLES.usage(access.stage, access.access)?;
        let (resource, region) = (access.resource, Cow::Borrowed(&access.region));
        Some(Use { resource, region, usage, order: access.order.into() })
    }
}

/// A dependency, expanded.
pub(crate) struct Element {
    pub(crate) scope: Expanded,
    pub(crate) part: Option<Part>,
    pub(crate) is_transition: bool,
}

/// What a dependency is about, if not everything.
pub(crate) enum Part {
    Region(ResourceId, Region),
    Addresses(MergedPart),
}

/// Addresses that one element, or several elements of one command, are about.
pub(crate) struct MergedPart {
    resource: ResourceId,
    range: Range<u64>,
    sources: Vec<Source>,
    /// What the command makes available of accesses to the same memory at other addresses.
    elsewhere: Vec<(Range<u64>, Source)>,
}

/// What is made available of accesses through a resource.
#[derive(Clone, Copy)]
struct Source {
    through: ResourceId,
    usages: Usages,
}

/// Elements of one command that are about the same memory, through one resource.
#[derive(Clone, Copy)]
struct Merged {
    resource: ResourceId,
    through: ResourceId,
    scope: Expanded,
    is_transition: bool,
}

impl Merged {
    fn source(&self) -> Source {
        Source { through: self.through, usages: self.scope.src_usages }
    }

    fn with(self, other: Merged) -> Merged {
        let scope = Expanded {
            src: self.scope.src.union(other.scope.src),
            src_usages: self.scope.src_usages.union(other.scope.src_usages),
            src_everywhere: self.scope.src_everywhere.union(other.scope.src_everywhere),
            dst: self.scope.dst.union(other.scope.dst),
            dst_usages: self.scope.dst_usages.union(other.scope.dst_usages),
            dst_everywhere: self.scope.dst_everywhere.union(other.scope.dst_everywhere),
        };
        // What changes its layout is what conflicts.
        let resource = if self.is_transition { self.resource } else { other.resource };
        Merged { resource, scope, is_transition: self.is_transition || other.is_transition, ..self }
    }
}

/// Which half of a transfer between queue families a queue executes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Release,
    Acquire,
}

impl Half {
    fn of(ownership: &Ownership, family: u32) -> Option<Half> {
        if ownership.src_family == ownership.dst_family {
            return None;
        }
        let is_release = ownership.src_family == family;
        let half = if is_release { Half::Release } else { Half::Acquire };
        (is_release || ownership.dst_family == family).then_some(half)
    }
}

/// With what its first scope hands on.
pub(crate) struct Ready {
    pub(crate) first: First,
    pub(crate) element: Element,
}

impl Ready {
    /// Addresses at which another part of the command begins or ends.
    fn cuts(&self) -> impl Iterator<Item = u64> {
        self.first.elsewhere.iter().flat_map(|it| [it.0.start, it.0.end])
    }
}

impl Element {
    fn sources_elsewhere(&self) -> &[(Range<u64>, Source)] {
        match &self.part {
            Some(Part::Addresses(part)) => &part.elsewhere,
            Some(Part::Region(..)) | None => &[],
        }
    }

    /// What it makes available of everything.
    fn global_usages(&self) -> Usages {
        if self.part.is_some() { self.scope.src_everywhere } else { self.scope.src_usages }
    }
}

/// Of a transfer between queue families each queue sees one half: nothing is visible after the release, nothing
/// available before the acquire.
fn limit_to_half(dependency: &Dependency, scope: &mut Expanded, family: u32) -> Option<Half> {
    let What::Ownership { ownership, .. } = &dependency.what else { return None };
    let half = Half::of(ownership, family)?;
    match half {
        Half::Release => scope.dst_usages = Usages::default(),
        Half::Acquire => scope.src_usages = Usages::default(),
    }
    Some(half)
}

/// Both halves of a transfer are accesses themselves.
fn element(dependency: &Dependency, scope: Expanded, family: u32) -> Element {
    let (part, is_transition) = match &dependency.what {
        What::Memory => (None, false),
        What::Resource { resource, region } => (Some(Part::Region(*resource, region.clone())), false),
        What::Transition { resource, region } => (Some(Part::Region(*resource, region.clone())), true),
        What::Ownership { resource, region, ownership } => {
            let is_access = Half::of(ownership, family).is_some() || ownership.is_transition;
            (Some(Part::Region(*resource, region.clone())), is_access)
        }
    };
    Element { scope, part, is_transition }
}

/// Version 2: each dependency stands for itself, and of a transfer each half also for its one scope only.
fn expanded(it: &Dependency, queue: &mut Timeline) -> Element {
    let mut scope = queue.expand(it.scope);
    match limit_to_half(it, &mut scope, queue.family) {
        Some(Half::Release) => scope.dst = Stages::default(),
        Some(Half::Acquire) => scope.src = Stages::default(),
        None => {}
    }
    element(it, scope, queue.family)
}

/// Version 1: the command is one dependency. Its stages are those of the command, and what any element makes
/// available is visible to what any element asks for, as far as they are about the same memory.
fn united(dependencies: &[Dependency], src_stages: u64, dst_stages: u64, queue: &mut Timeline) -> Vec<Element> {
    let family = queue.family;
    let mut of = |access: Scope| queue.expand(Scope { src_stages, dst_stages, ..access });
    let mut global = of(Scope::default());
    for it in dependencies.iter().filter(|it| it.what == What::Memory) {
        let scope = of(it.scope);
        global.src_usages = global.src_usages.union(scope.src_usages);
        global.dst_usages = global.dst_usages.union(scope.dst_usages);
    }
    let mut elements = vec![Element { scope: global, part: None, is_transition: false }];
    for it in dependencies.iter().filter(|it| it.what != What::Memory) {
        let mut scope = of(it.scope);
        limit_to_half(it, &mut scope, family);
        scope.src_usages = scope.src_usages.union(global.src_usages);
        scope.dst_usages = scope.dst_usages.union(global.dst_usages);
        (scope.src_everywhere, scope.dst_everywhere) = (global.src_usages, global.dst_usages);
        elements.push(element(it, scope, family));
    }
    elements
}
