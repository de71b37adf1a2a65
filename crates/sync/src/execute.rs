//! Executes commands: their accesses are checked and kept, their dependencies enter the clocks.

use std::borrow::Cow;
use std::ops::Range;

use lavascope_program::{Access, At, Batch, Command, CommandBufferId, Region, RenderPass, ResourceId};

use crate::address::Identity;
use crate::alias;
use crate::clock::{Clock, Tag};
use crate::contents::PassContents;
use crate::device::{Device, Timeline};
use crate::order::Order;
use crate::prepare::{PlanKind, Prepared, Spot, group_len};
use crate::render::Instance;
use crate::rules::Rules;
use crate::state::{By, Name, Now, State};
use crate::usage::{TABLES, Usage};

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
        let mut now = now(*rules, clock, *queue, instance.as_ref(), tag, Identity::default());
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
    pub(crate) fn from(&self) -> Tag {
        self.instance.as_ref().map_or(0, Instance::from)
    }

    pub(crate) fn clock(&mut self) -> &mut Clock {
        &mut self.device.queues[usize::from(self.queue)].clock
    }

    pub(crate) fn timeline(&mut self) -> &mut Timeline {
        &mut self.device.queues[usize::from(self.queue)]
    }

    pub(crate) fn flags(&self) -> u32 {
        self.device.queues[usize::from(self.queue)].flags
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
