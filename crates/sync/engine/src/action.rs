//! Accesses: they are checked against what their ranges remember, and kept there.
//!
//! What other commands of the same command buffer have shown already is left out, where marks say so (`mark`).

use std::borrow::Cow;
use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{Access, Region, ResourceId};

use smallvec::SmallVec;

use crate::address::{Identity, Looked};
use crate::alias;
use crate::clock::Tag;
use crate::device::Device;
use crate::execute::{Executor, now};
use crate::mark::{Made, Marking};
use crate::order::Order;
use crate::plan::{Accesses, Marked, PlanKind, Plans};
use crate::prepare::Prepared;
use crate::spot::Spot;
use crate::state::{By, Now, State};
use crate::usage::{TABLES, Usage};

impl Executor<'_> {
    /// All accesses of a command are checked before any of them is kept: they do not conflict with each other. Takes
    /// whether the command before was an action without a conflict, and gives whether this one is.
    pub(crate) fn action(&mut self, tag: Tag, accesses: Accesses<'_>, commands: &Prepared, index: usize) -> bool {
        let uses = || accesses.iter().filter_map(Use::of).collect::<Vec<Use<'static>>>();
        if self.is_watching() {
            self.watch_contents(tag, &uses());
        }
        let (kind, spots) = commands.spots(index, &self.device.addresses);
        let is_done = match kind {
            PlanKind::Apart => self.check_and_keep(tag, &commands.plans, index),
            PlanKind::Overlapping => self.check_then_keep(tag, spots),
            PlanKind::Unknown | PlanKind::Other => false,
        };
        if !is_done {
            self.progress.is_clean = false;
            let is_marked = self.progress.marking == Marking::Used;
            let inner: Vec<&Spot> = if is_marked { commands.plans.inner(index).collect() } else { Vec::new() };
            self.check_and_keep_all(tag, &uses(), &inner);
        }
        is_done && kind == PlanKind::Apart
    }

    /// The common case, without a conflict: each range is looked up once. False if there is a conflict, or other names
    /// of the memory to be looked at; what was kept until then may be kept again.
    #[inline]
    fn check_and_keep(&mut self, tag: Tag, plans: &Plans, index: usize) -> bool {
        let (addresses, is_rendering) = (&self.device.addresses, self.instance.is_some());
        if addresses.relations() != 0 && plans.spots(index).1.iter().any(|it| addresses.has_aliases(it.resource)) {
            return false;
        }
        let mut word = 0;
        while let Some(marked) = plans.marked_at(index, word) {
            word += 1;
            let skipped = self.progress.skipped(marked.marks, is_rendering);
            let left = marked.valid & !(skipped.check & skipped.keep);
            if left != 0 && !self.check_and_keep_some(tag, plans, marked, left, skipped.check) {
                return false;
            }
        }
        true
    }

    /// The same for some spots, of which others need no check.
    fn check_and_keep_some(&mut self, tag: Tag, plans: &Plans, marked: Marked<'_>, left: u64, known: u64) -> bool {
        let Executor { device, queue, instance, progress, .. } = self;
        let Device { rules, queues, states, .. } = &mut **device;
        let clock = &queues[usize::from(*queue)].clock;
        let mut now = now(*rules, clock, *queue, instance.as_ref(), tag, Identity::default());
        let (is_made, mut left, mut inner, mut again) = (progress.marking == Marking::Made, left, 0, 0);
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            let (bits, spots) = marked.group(at);
            let (spot, is_write) = (&spots[0], marked.marks.beside_write & bits != 0);
            left &= !bits;
            now.through = spot.through;
            let Some(state) = states.exact_mut(&spot.range) else {
                if let Some(state) = states.fresh_mut(&spot.range) {
                    add_all(state, spots, is_write, &now);
                    state.set_marked(is_made);
                    continue;
                }
                if !keep_in_parts(states, spots, &now, is_made, known & bits == 0) {
                    return false;
                }
                continue;
            };
            if known & bits == 0 && conflicts(state, spots, is_write, &now) {
                return false;
            }
            let mut is_marked = state.is_marked();
            if is_made {
                inner |= if state.is_written() { bits } else { 0 };
                if is_write {
                    is_marked = true;
                    progress.mark_overwritten(plans, state, spot);
                } else if progress.mark_read(plans, state, &now, spot, at) && !state.is_written() {
                    again |= bits;
                }
            }
            add_all(state, spots, is_write, &now);
            state.set_marked(is_marked);
        }
        if inner != 0 || again != 0 {
            progress.made.push((marked.number, Made::Own { inner, again }));
        }
        true
    }

    /// Keeps what the last command did as the one before it, and which the next one does not do.
    #[inline]
    pub(crate) fn keep_last(&mut self, commands: &Prepared, index: usize) {
        let is_rendering = self.instance.is_some();
        let mut word = 0;
        while let Some(marked) = commands.plans.marked_at(index, word) {
            word += 1;
            let left = marked.marks.repeated(is_rendering) & !marked.marks.behind;
            if left != 0 && commands.spots(index, &self.device.addresses).0 == PlanKind::Apart {
                self.keep_some(marked, left);
            }
        }
    }

    fn keep_some(&mut self, marked: Marked<'_>, mut left: u64) {
        let tag = self.device.last_tag();
        let Executor { device, queue, instance, .. } = self;
        let Device { rules, queues, states, .. } = &mut **device;
        let clock = &queues[usize::from(*queue)].clock;
        let mut now = now(*rules, clock, *queue, instance.as_ref(), tag, Identity::default());
        while left != 0 {
            let (bits, spots) = marked.group(left.trailing_zeros() as usize);
            let is_write = marked.marks.beside_write & bits != 0;
            left &= !bits;
            now.through = spots[0].through;
            if let Some(state) = states.exact_mut(&spots[0].range) {
                let is_marked = state.is_marked();
                add_all(state, spots, is_write, &now);
                state.set_marked(is_marked);
            } else {
                let add = |it: &mut Option<State>| add_all(it.get_or_insert_default(), spots, is_write, &now);
                states.update(spots[0].range.clone(), |_, it| add(it));
            }
        }
    }

    /// The same where accesses of one command overlap in part.
    fn check_then_keep(&mut self, tag: Tag, spots: &[Spot]) -> bool {
        let Executor { device, queue, instance, .. } = self;
        let Device { rules, queues, states, addresses, .. } = &mut **device;
        let clock = &queues[usize::from(*queue)].clock;
        let now = |through| now(*rules, clock, *queue, instance.as_ref(), tag, through);
        for spot in spots {
            let (by, now) = (spot.by(*queue), now(spot.through));
            let is_bad = |(_, state): (_, &State)| state.conflicts(&now, by);
            if addresses.has_aliases(spot.resource) || states.overlapping(spot.range.clone()).any(is_bad) {
                return false;
            }
        }
        // Writes first, so that reads of the same command stay known beside them.
        for is_write in [true, false] {
            for spot in spots.iter().filter(|it| TABLES.write_column(it.usage).is_some() == is_write) {
                let (by, now) = (spot.by(*queue), now(spot.through));
                states.update(spot.range.clone(), |_, state| state.get_or_insert_default().add(by, &now));
            }
        }
        true
    }

    pub(crate) fn uses(&mut self, tag: Tag, uses: &[Use<'_>]) {
        if self.is_watching() {
            self.watch_contents(tag, uses);
        }
        let is_done = self.spots_of(uses).is_some_and(|it| self.check_then_keep(tag, &it));
        if !is_done {
            self.check_and_keep_all(tag, uses, &[]);
        }
    }

    /// The spots of some uses, if each is one and known.
    fn spots_of(&self, uses: &[Use<'_>]) -> Option<SmallVec<[Spot; 4]>> {
        let addresses = &self.device.addresses;
        let spot = |it: &Use<'_>| match addresses.look_up(it.resource, &it.region) {
            Looked::One(range, through) => {
                Some(Spot { range, resource: it.resource, through, access: 0, usage: it.usage, order: it.order })
            }
            Looked::Many(..) | Looked::Nothing | Looked::Unsettled => None,
        };
        uses.iter().map(spot).collect()
    }

    fn check_and_keep_all(&mut self, tag: Tag, uses: &[Use<'_>], known: &[&Spot]) {
        for it in uses {
            self.check(tag, it, known);
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

    /// Some spots of the command may be known to be fine.
    fn check(&mut self, tag: Tag, it: &Use<'_>, known: &[&Spot]) {
        let ranges = self.device.ranges(it.resource, &it.region);
        let device = &*self.device;
        let now = self.now(tag, it.resource);
        let mut conflicts = Vec::new();
        let is_known = |range: &Range<u64>| {
            let is_own = |spot: &Spot| (spot.resource, spot.usage) == (it.resource, it.usage);
            known.iter().any(|spot| spot.range == *range && is_own(spot))
        };
        for range in ranges.iter().filter(|it| !is_known(it)) {
            for (part, state) in device.states.overlapping(range.clone()) {
                let found = state.check(&now, it.usage, it.order);
                if !found.is_empty() {
                    conflicts.push((part, found));
                }
            }
        }
        conflicts.extend(device.alias_conflicts(&now, it.resource, &ranges, (it.usage, it.order)));
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
            alias::keep(states, range, &elsewhere, by, &now);
        }
    }
}

#[inline]
fn conflicts(state: &State, spots: &[Spot], is_write: bool, now: &Now<'_>) -> bool {
    match is_write {
        false => state.conflicts_with_read(now, spots[0].by(now.queue)),
        true => spots.iter().any(|it| state.conflicts(now, it.by(now.queue))),
    }
}

/// Writes first, so that reads of the same command stay known beside them.
#[inline(always)]
fn add_all(state: &mut State, spots: &[Spot], is_write: bool, now: &Now<'_>) {
    if is_write {
        add_written(state, spots, now);
    } else {
        state.read(spots[0].by(now.queue), now);
    }
}

fn add_written(state: &mut State, spots: &[Spot], now: &Now<'_>) {
    if let [spot] = spots {
        return state.add_write(spot.by(now.queue), now.through, now.tag);
    }
    for is_write in [true, false] {
        let wanted = spots.iter().filter(|it| TABLES.write_column(it.usage).is_some() == is_write);
        wanted.for_each(|it| state.add(it.by(now.queue), now));
    }
}

/// Checks and keeps spots whose range is not there just as it is. False if there is a conflict.
fn keep_in_parts(
    states: &mut IntervalMap<State>,
    spots: &[Spot],
    now: &Now<'_>,
    is_made: bool,
    is_checked: bool,
) -> bool {
    let (range, mut parts, mut is_fine) = (&spots[0].range, 0, true);
    let is_write = spots.iter().any(|it| TABLES.write_column(it.usage).is_some());
    states.update(range.clone(), |_, state| {
        parts += 1;
        match state {
            Some(state) if is_checked && conflicts(state, spots, is_write, now) => is_fine = false,
            Some(state) => {
                add_all(state, spots, is_write, now);
                state.set_marked(false);
            }
            None => {
                let state = state.get_or_insert_default();
                add_all(state, spots, is_write, now);
                state.set_marked(is_made);
            }
        }
    });
    // What was apart may be alike now: a buffer that is used in small pieces must not stay in pieces.
    if parts > 1 {
        states.join(range.clone());
    }
    is_fine
}

/// One use of a part of a resource, by the name that the tables have for it.
pub(crate) struct Use<'a> {
    pub(crate) resource: ResourceId,
    pub(crate) region: Cow<'a, Region>,
    pub(crate) usage: Usage,
    pub(crate) order: Order,
}

impl Use<'static> {
    /// None for an access that its stage cannot make: that is another's to report.
    fn of(access: Access) -> Option<Use<'static>> {
        let usage = TABLES.usage(access.stage, access.access)?;
        let (resource, region) = (access.resource, Cow::Owned(access.region));
        Some(Use { resource, region, usage, order: access.order.into() })
    }
}
