//! Executes commands: their accesses are checked and kept, their dependencies enter the clocks.

use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{
    At, Barrier, Batch, Command, CommandBufferId, Dependency, Found, Ownership, Region, RenderPass, ResourceId, Scope,
    SetEvent, WaitEvents, What,
};
use smallvec::{SmallVec, smallvec};

use crate::address::Identity;
use crate::alias::pieces;
use crate::clock::{Clock, Keys, Tag};
use crate::contents::PassContents;
use crate::device::{Device, SetAt, Timeline};
use crate::mark::{Marking, Progress};
use crate::order::Order;
use crate::plan;
use crate::prepare::Prepared;
use crate::record::is_inside;
use crate::render::Instance;
use crate::rules::Rules;
use crate::scope::{self, Expanded};
use crate::state::{Conflict, First, Name, Now, Shared};
use crate::stretch::Stretch;
use crate::usage::{Stages, TRANSITION_WRITE, Usages};

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
        let is_marked = commands.is_marked(&device.addresses)
            && commands.queue == Some(device.queues[usize::from(queue)].kind())
            && recorded.is_as_it_was(commands);
        walk.progress.marking = if is_marked { Marking::Used } else { Marking::None };
        Executor::new(device, recorded, queue, &mut walk).run(commands);
        let is_told = |it: &Found| if is_marked { is_inside(&it.at, &it.prior) } else { commands.told.has(it) };
        let mut found = device.found.split_off(first.0);
        found.retain(|it| !is_told(it));
        device.found.append(&mut found);
        let mut faults = device.contents.found.split_off(first.1);
        faults.retain(|it| !commands.told.has_fault(it));
        device.contents.found.append(&mut faults);
    }
}

impl Recorded<'_> {
    /// Whether what a command buffer executes is what it was when that was recorded.
    #[inline]
    pub(crate) fn is_as_it_was(self, commands: &Prepared) -> bool {
        let version = |id: CommandBufferId| self.command_buffers.get(id.0 as usize).map(|it| it.version);
        commands.executed.iter().all(|it| version(it.0) == Some(it.1))
    }
}

/// How far the execution of a command buffer has come.
pub(crate) struct Walk {
    /// The command being executed.
    at: At,
    /// How many were executed.
    done: usize,
    pub(crate) progress: Progress,
    instance: Option<Instance>,
    pass_contents: Option<PassContents>,
}

impl Walk {
    pub(crate) fn new(at: At) -> Walk {
        Walk { at, done: 0, progress: Progress::new(), instance: None, pass_contents: None }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.at.path.clear();
        self.progress.clear();
        (self.done, self.instance, self.pass_contents) = (0, None, None);
    }

    /// Executes what was recorded since the last time, up to a command, on the only queue of a device.
    pub(crate) fn go_on(&mut self, device: &mut Device, recorded: Recorded<'_>, commands: &Prepared, until: usize) {
        if self.at.path.is_empty() {
            self.at.path.push(0);
            (self.progress.is_growing, self.progress.run) = (true, (device.begin_run(&self.at), 0));
        }
        let part = self.done..until;
        Executor::new(device, recorded, 0, self).run_part(commands, part);
        self.done = until;
    }
}

pub(crate) struct Executor<'a> {
    pub(crate) device: &'a mut Device,
    pub(crate) recorded: Recorded<'a>,
    pub(crate) queue: u8,
    /// The command being executed.
    at: &'a mut At,
    pub(crate) progress: &'a mut Progress,
    /// The render pass instance that is open.
    pub(crate) instance: &'a mut Option<Instance>,
    /// Of the attachments of a render pass that is open.
    pub(crate) pass_contents: &'a mut Option<PassContents>,
}

impl<'a> Executor<'a> {
    fn new(device: &'a mut Device, recorded: Recorded<'a>, queue: u8, walk: &'a mut Walk) -> Executor<'a> {
        let Walk { at, progress, instance, pass_contents, .. } = walk;
        Executor { device, recorded, queue, at, progress, instance, pass_contents }
    }

    fn run(&mut self, commands: &Prepared) {
        self.at.path.push(0);
        self.device.begin_run(self.at);
        self.run_part(commands, 0..commands.plans.len());
        self.at.path.pop();
    }

    /// Executes some of the commands.
    fn run_part(&mut self, commands: &Prepared, part: Range<usize>) {
        let mut next = part.start;
        while next < part.end {
            let index = next;
            if self.progress.marking == Marking::Used && self.progress.is_clean && !self.is_watching() {
                next = commands.next_busy(index);
                if next > index {
                    self.device.skip(next - index);
                    self.progress.is_smooth = true;
                    continue;
                }
            }
            next = index + 1;
            if self.progress.is_smooth && self.progress.is_growing {
                self.keep_last(commands, index - 1);
            }
            let tag = self.device.next_tag();
            match commands.plans.command(index) {
                plan::Recorded::Action(accesses) => {
                    self.progress.is_smooth = self.action(tag, accesses, commands, index);
                }
                plan::Recorded::Other(command) => {
                    self.progress.is_smooth = false;
                    if let Some(last) = self.at.path.last_mut() {
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
            Command::Execute(buffers) => self.secondaries(buffers),
            Command::BeginRenderPass { pass, views, area } => self.begin_render_pass(tag, *pass, views, *area),
            Command::NextSubpass => self.next_subpass(tag),
            Command::EndRenderPass => self.end_render_pass(tag),
            Command::BeginRendering(rendering) => self.begin_rendering(tag, rendering),
            Command::EndRendering => self.end_rendering(tag),
        }
        // What subpasses may rely on goes no further than they do.
        let is_resuming = matches!(command, Command::BeginRendering(it) if it.is_resuming);
        if is_resuming || matches!(command, Command::NextSubpass | Command::EndRenderPass | Command::EndRendering) {
            self.progress.epoch = tag;
        }
    }

    fn secondaries(&mut self, buffers: &[CommandBufferId]) {
        for (place, id) in buffers.iter().enumerate() {
            let Some(commands) = self.recorded.command_buffers.get(id.0 as usize) else { continue };
            if self.at.path.len() < DEPTH_MAX {
                self.at.path.push(place as u32);
                let outside = std::mem::replace(self.progress, Progress::new());
                self.run(commands);
                *self.progress = outside;
                self.at.path.pop();
            }
        }
        // The commands behind it go on with numbers of their own.
        if let Some(last) = self.at.path.last_mut() {
            *last += 1;
            let command = *last as usize;
            self.progress.run = (self.device.begin_run(self.at), command);
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
        match barrier {
            Barrier::One { src_stages, dst_stages, dependencies } => {
                // They are large, and most barriers have one.
                if let [only] = &dependencies[..] {
                    let element = united_alone(only, *src_stages, *dst_stages, self.timeline());
                    let ready = [self.ready(tag, element)];
                    self.apply(tag, &ready);
                    return self.share_transitions(tag, &ready);
                }
                let elements = self.united(dependencies, *src_stages, *dst_stages);
                let ready: Vec<Ready> = elements.into_iter().map(|it| self.ready(tag, it)).collect();
                self.apply(tag, &ready);
                self.share_transitions(tag, &ready);
            }
            Barrier::Two { dependencies } => {
                let mut ready = |it: &Dependency| {
                    let element = expanded(it, self.timeline());
                    self.ready(tag, element)
                };
                if let [only] = &dependencies[..] {
                    let ready = [ready(only)];
                    return self.apply(tag, &ready);
                }
                let ready: Vec<Ready> = dependencies.iter().map(&mut ready).collect();
                self.apply(tag, &ready);
            }
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
        let (carry, parts) = (carry(it.global_usages()), smallvec![(it.scope.src, tag)]);
        First { carry, own, elsewhere, parts, ..First::default() }
    }

    /// What a dependency makes available of accesses through which resources.
    fn sources(&self, it: &Element) -> SmallVec<[Source; 1]> {
        match &it.part {
            None => SmallVec::new(),
            Some(Part::Region(resource, _)) => {
                smallvec![Source { through: self.device.addresses.identity(*resource), usages: it.scope.src_usages }]
            }
            Some(Part::Addresses(part)) => part.sources.iter().copied().collect(),
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
        if let Some(instance) = self.instance.as_mut().filter(|_| !elements.is_empty()) {
            instance.keep_outside(clock);
        }
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
        let elements = if elements.iter().any(|it| it.element.is_transition) { elements } else { &[] };
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
                        state.share_transition(&now, &ready.element.scope, &mut shared);
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
                let found = state.check_transition(&now, &ready.first, &part);
                conflicts.extend(Some((part, found)).filter(|it| !it.1.is_empty()));
            }
        }
        for (own, theirs) in self.device.addresses.aliased(resource, &ranges) {
            let now = Now { name: Name::Alias { start: own.start, end: own.end }, ..now };
            for (part, state) in
                pieces(&theirs, ready.cuts()).into_iter().flat_map(|it| self.device.states.overlapping(it))
            {
                let found = state.check_transition(&now, &ready.first, &part);
                conflicts.extend(self.device.by_another_name(&now, (TRANSITION_WRITE, Order::None), &own, &found));
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
                    state.get_or_insert_default().add_transition(&now, &ready.element.scope, &mut shared);
                } else if let Some(state) = state {
                    state.depend(&now, ready, &part, &mut shared);
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
                            state.depend(&now, ready, &part, &mut shared);
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

pub(crate) fn now<'n>(
    rules: Rules,
    clock: &'n Clock,
    queue: u8,
    instance: Option<&'n Instance>,
    tag: Tag,
    through: Identity,
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
    through: Identity,
    usages: Usages,
}

/// Elements of one command that are about the same memory, through one resource.
#[derive(Clone, Copy)]
struct Merged {
    resource: ResourceId,
    through: Identity,
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

/// What [`united`] gives for one dependency, in one element: that of a resource also orders execution of everything
/// else, as the command does, and nothing else is made available or visible.
fn united_alone(it: &Dependency, src_stages: u64, dst_stages: u64, queue: &mut Timeline) -> Element {
    let family = queue.family;
    let mut scope = queue.expand(Scope { src_stages, dst_stages, ..it.scope });
    limit_to_half(it, &mut scope, family);
    (scope.src_everywhere, scope.dst_everywhere) = (Usages::default(), Usages::default());
    element(it, scope, family)
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
