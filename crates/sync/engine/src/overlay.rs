//! What dependencies on single resources did for the last write to a range.
//!
//! They do not enter the clocks, where they would speak for every resource. Instead the write remembers to whom it is
//! visible, and *points*: at a tag it became available to some stages. Whether a later stage is reached from there
//! is asked of the clocks, so later barriers of any kind reach points without touching them.

use std::ops::Range;

use crate::address::Identity;
use crate::clock::{Keys, Tag};
use crate::scope::{EVERYTHING, Expanded};
use crate::state::{First, Name, Now};
use crate::stretch::Ask;
use crate::usage::{Stage, Stages, TRANSITION, Usage, Usages};

/// There may be one for each range, so lists have room for what they hold and no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    visible: Vec<Visible>,
    points: Vec<Point>,
    /// What few overlays have.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToHost {
    through: Identity,
    queue: u8,
    tag: Tag,
    usages: Usages,
}

/// To what a write is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Visible {
    queue: u8,
    /// The beginning of the subpass in which this holds; zero outside, where it holds from then on.
    from: Tag,
    /// Through this resource.
    through: Identity,
    usages: Usages,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    /// What became visible to the host: on a queue, at a tag, which the host must know of.
    to_host: Vec<ToHost>,
    elsewhere: Vec<Elsewhere>,
}

/// What is visible otherwise than through one resource by the addresses of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elsewhere {
    visible: Visible,
    /// Where its addresses are not those of the write, at some of them.
    at: Option<(u64, u64)>,
    /// Through whatever resource.
    is_any: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    queue: u8,
    /// As in [`Visible`], for what follows directly; by chains it may lead out of a subpass.
    from: Tag,
    tag: Tag,
    stages: Stages,
    /// Whether it is the write itself, a layout transition, that these stages are after.
    is_itself: bool,
}

impl Point {
    /// Whether it is before every later command in its stages.
    fn is_open(&self) -> bool {
        self.from == 0 && !self.is_itself
    }
}

impl Overlay {
    /// Now the write became available and visible to a second scope.
    pub(crate) fn add(&mut self, now: &Now<'_>, scope: &Expanded) {
        let Now { queue, from, .. } = *now;
        // The second scope of a layout transition before a subpass begins with the subpass.
        let tag = now.tag.max(from + 1);
        let Expanded { dst: stages, dst_usages, dst_everywhere, .. } = *scope;
        let (usages, everywhere) = (dst_usages.union(dst_everywhere), dst_everywhere);
        let at = match now.name {
            Name::Own => None,
            Name::Alias { start, end } => Some((start, end)),
        };
        let new = Visible { queue, from, through: now.through, usages };
        // What is visible by every name needs none.
        let has_name = usages != everywhere;
        if has_name && at.is_none() {
            self.add_visible(new);
        } else if has_name {
            self.rest.get_or_insert_default().add_elsewhere(Elsewhere { visible: new, at, is_any: false });
        }
        if !everywhere.is_empty() {
            let visible = Visible { usages: everywhere, ..new };
            self.rest.get_or_insert_default().add_elsewhere(Elsewhere { visible, at, is_any: true });
        }
        let to_host = usages.and(EVERYTHING.host_usages);
        if at.is_none() && !to_host.is_empty() {
            let new = ToHost { through: now.through, queue, tag, usages: to_host };
            self.rest.get_or_insert_default().add_to_host(new);
        }
        // A stage keeps its earliest point: whatever comes after a later one comes after that one too.
        let is_same = |it: &&Point| it.queue == queue && it.from == from && !it.is_itself;
        let known = self.points.iter().filter(is_same).fold(0, |all, it| all | it.stages.0);
        let stages = Stages(stages.0 & !known);
        if !stages.is_empty() {
            push(&mut self.points, Point { queue, from, tag, stages, is_itself: false });
        }
    }

    /// The write is a layout transition: available by itself to whatever comes after layout transitions.
    pub(crate) fn add_itself(&mut self, now: &Now<'_>) {
        let mut stages = Stages::default();
        stages.add(TRANSITION);
        let Now { queue, from, tag, .. } = *now;
        push(&mut self.points, Point { queue, from, tag, stages, is_itself: true });
    }

    fn add_visible(&mut self, new: Visible) {
        let key = |it: &Visible| (it.queue, it.from, it.through);
        match self.visible.iter_mut().find(|it| key(it) == key(&new)) {
            Some(own) => own.usages = own.usages.union(new.usages),
            None if new.usages.is_empty() => {}
            None => push(&mut self.visible, new),
        }
    }

    fn elsewhere(&self) -> &[Elsewhere] {
        self.rest.as_ref().map_or(&[][..], |it| &it.elsewhere)
    }

    /// What is visible at some addresses of another resource is visible at others from now on, once for each plane.
    pub(crate) fn move_names(&mut self, old: &Range<u64>, planes: &[u64]) {
        let Some(rest) = &mut self.rest else { return };
        let is_moved = |it: &Elsewhere| it.at.is_some_and(|at| old.start <= at.0 && at.1 <= old.end);
        let moved: Vec<Elsewhere> = rest.elsewhere.extract_if(.., |it| is_moved(it)).collect();
        for it in moved {
            for plane in planes {
                let at = it.at.map(|at| (plane + at.0 - old.start, plane + at.1 - old.start));
                rest.elsewhere.push(Elsewhere { at, ..it });
            }
        }
    }

    /// Where visibility by another name begins or ends.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u64> {
        self.elsewhere().iter().filter_map(|it| it.at).flat_map(|it| [it.0, it.1])
    }

    /// What it asks clocks for that stretches may have.
    pub(crate) fn asks(&self) -> impl Iterator<Item = Ask> {
        let closed = self.points.iter().filter(|it| !it.is_open());
        closed.map(|it| Ask { tag: it.tag, queue: it.queue, stages: it.stages, write: None })
    }

    /// Whether the write is visible to a usage.
    pub(crate) fn is_visible(&self, now: &Now<'_>, usage: Usage) -> bool {
        let clock = now.clock;
        let is_at = |at: (u64, u64)| match now.name {
            Name::Own => false,
            Name::Alias { start, end } => at.0 <= start && end <= at.1,
        };
        let is_there = |it: &Visible| now.is_inside(it.queue, it.from) && it.usages.has(usage);
        let here = self.visible.iter().any(|it| it.through == now.through && is_there(it))
            || self.elsewhere().iter().any(|it| {
                let is_through = it.is_any || it.visible.through == now.through;
                is_through && it.at.is_none_or(is_at) && is_there(&it.visible)
            });
        let knows = |queue: u8, tag| clock.batches.get(queue) >= tag;
        let is_through = |it: &&ToHost| it.through == now.through && it.usages.has(usage);
        let to_host = self.rest.as_ref().map_or(&[][..], |it| &it.to_host);
        let to_host = to_host.iter().filter(is_through).any(|it| knows(it.queue, it.tag));
        here || to_host
            || self.points.iter().any(|it| {
                it.stages.iter().any(|c| match it.is_open() {
                    true => clock.is_reached(usage, it.queue, c, it.tag),
                    false => clock.is_reached_from_subpass(usage, it.queue, c, it.tag),
                })
            })
    }

    /// Whether a chain of dependencies from the write reaches a stage.
    pub(crate) fn is_available(&self, now: &Now<'_>, stage: Stage) -> bool {
        self.points.iter().any(|it| {
            let is_direct = !it.is_itself && now.is_inside(it.queue, it.from) && it.stages.has(stage);
            is_direct
                || it.stages.iter().any(|c| match it.is_open() {
                    true => now.clock.has_point(stage, it.queue, c, it.tag),
                    false => now.clock.has_happened(stage, it.queue, c, it.tag),
                })
        })
    }

    /// Whether a chain of dependencies from the write reaches a first scope.
    pub(crate) fn reaches(&self, now: &Now<'_>, first: &First) -> bool {
        self.points.iter().any(|it| {
            let is_in = |part: &(Stages, Tag)| it.tag <= part.1 && it.stages.0 & part.0.0 != 0;
            let is_direct = !it.is_itself && now.is_inside(it.queue, it.from) && first.parts.iter().any(is_in);
            let is_before = first.parts.iter().any(|part| it.tag <= part.1);
            is_direct
                || is_before
                    && it.stages.iter().any(|c| match it.is_open() {
                        true => first.carry.has_point(it.queue, c, it.tag),
                        false => first.carry.has(it.queue, c, it.tag),
                    })
        })
    }
}

impl Rest {
    fn add_elsewhere(&mut self, new: Elsewhere) {
        let key = |it: &Elsewhere| (it.visible.queue, it.visible.from, it.visible.through, it.at, it.is_any);
        match self.elsewhere.iter_mut().find(|it| key(it) == key(&new)) {
            Some(own) => own.visible.usages = own.visible.usages.union(new.visible.usages),
            None => self.elsewhere.push(new),
        }
    }

    /// Whoever knows of a later one knows of the earlier.
    fn add_to_host(&mut self, new: ToHost) {
        let is_known = |it: &&ToHost| (it.through, it.queue) == (new.through, new.queue) && it.tag <= new.tag;
        let known = self.to_host.iter().filter(is_known).fold(Usages::default(), |all, it| all.union(it.usages));
        let usages = new.usages.and_not(known);
        if !usages.is_empty() {
            self.to_host.push(ToHost { usages, ..new });
        }
    }
}

/// Adds to a list that will hardly grow.
fn push<T>(all: &mut Vec<T>, new: T) {
    all.reserve_exact(1);
    all.push(new);
}

#[cfg(test)]
mod tests;
