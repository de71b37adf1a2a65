//! What dependencies on single resources did for the last write to a range.
//!
//! They do not enter the clocks, where they would speak for every resource. Instead the write remembers to whom it is
//! visible, and *points*: at a tag it became available to some stages. Whether a later stage is reached from there
//! is asked of the clocks, so later barriers of any kind reach points without touching them.

use crate::clock::{Carry, Clock, Tag};
use crate::usage::{Stage, Stages, Usage, Usages};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    /// By queue.
    visible: Vec<(u8, Usages)>,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    queue: u8,
    tag: Tag,
    stages: Stages,
}

impl Overlay {
    /// At `tag` on `queue` the write became available to `stages` and visible to `usages`.
    pub(crate) fn add(&mut self, queue: u8, tag: Tag, stages: Stages, usages: Usages) {
        match self.visible.iter_mut().find(|it| it.0 == queue) {
            Some(own) => own.1 = own.1.union(usages),
            None => self.visible.push((queue, usages)),
        }
        // A stage keeps its earliest point: whatever comes after a later one comes after that one too.
        let known = self.points.iter().filter(|it| it.queue == queue).fold(0, |all, it| all | it.stages.0);
        let stages = Stages(stages.0 & !known);
        if !stages.is_empty() {
            self.points.push(Point { queue, tag, stages });
        }
    }

    /// Whether the write is visible to a usage on `queue`, whose clock this is.
    pub(crate) fn is_visible(&self, clock: &Clock, queue: u8, usage: Usage) -> bool {
        let here = self.visible.iter().any(|it| it.0 == queue && it.1.has(usage));
        here || self.points.iter().any(|it| it.stages.iter().any(|c| clock.is_reached(usage, it.queue, c, it.tag)))
    }

    /// Whether a chain of dependencies from the write reaches a stage of `queue`, whose clock this is.
    pub(crate) fn is_available(&self, clock: &Clock, queue: u8, stage: Stage) -> bool {
        self.points.iter().any(|it| {
            let is_direct = it.queue == queue && it.stages.has(stage);
            is_direct || it.stages.iter().any(|c| clock.has_happened(stage, it.queue, c, it.tag))
        })
    }

    /// Whether a chain of dependencies from the write reaches a scope of `queue` that begins with these stages and
    /// hands on `carry`, at `until` or before.
    pub(crate) fn reaches(&self, carry: &Carry, queue: u8, src: Stages, until: Tag) -> bool {
        self.points.iter().filter(|it| it.tag <= until).any(|it| {
            let is_direct = it.queue == queue && it.stages.0 & src.0 != 0;
            is_direct || it.stages.iter().any(|c| carry.has(it.queue, c, it.tag))
        })
    }
}
