//! Possible reads: draws without vertices or instances would make them, and shaders that choose descriptors at run time.
//! Their resources are not known.
//!
//! The engine reports no hazards of possible reads. But they explain barriers: if a barrier makes a write visible to a
//! possible read, and orders that read before the next write, the write need not be visible to the next write. The same
//! holds for reads that are known (`RangeState::is_followed_by_read`). The engine asks for possible reads only if it would
//! report a hazard otherwise.

use std::sync::Arc;

use crate::access::usages::UsageIndex;
use crate::dependency::clocks::{QueueClock, Tag};

/// The possible reads of a queue. Of the reads between two commands that are not actions, only the last one of each usage
/// is stored, because nothing orders them differently.
#[derive(Default)]
pub(crate) struct PossibleReads {
    all: Vec<TaggedRead>,
    /// The index of the first read after the last command that is not an action.
    recent: usize,
    /// The clock of the queue at these reads.
    clock: Option<Arc<QueueClock>>,
}

#[derive(Clone)]
pub(crate) struct TaggedRead {
    pub(crate) usage: UsageIndex,
    pub(crate) tag: Tag,
    /// The tag before the subpass of the read; zero outside of render passes.
    pub(crate) subpass_begin: Tag,
    pub(crate) clock: Arc<QueueClock>,
}

/// Largest number of stored reads. Older ones are dropped.
const READS_MAX: usize = 64;

impl PossibleReads {
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        (self.recent, self.clock) = (0, None);
    }

    /// A command that is no action was executed.
    #[inline]
    pub(crate) fn begin_run(&mut self) {
        (self.recent, self.clock) = (self.all.len(), None);
    }

    pub(crate) fn add(&mut self, usage: UsageIndex, tag: Tag, subpass_begin: Tag, clock: &QueueClock) {
        if let Some(own) = self.all[self.recent..].iter_mut().find(|it| it.usage == usage) {
            own.tag = tag;
            return;
        }
        if self.all.len() >= READS_MAX {
            self.all.drain(..READS_MAX / 2);
            self.recent = self.recent.saturating_sub(READS_MAX / 2);
        }
        let clock = Arc::clone(self.clock.get_or_insert_with(|| Arc::new(clock.clone())));
        self.all.push(TaggedRead { usage, tag, subpass_begin, clock });
    }

    pub(crate) fn as_slice(&self) -> &[TaggedRead] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_between_two_barriers_are_one() {
        let mut reads = PossibleReads::default();
        let (usage, clock) = (UsageIndex, QueueClock::default());
        for tag in [10, 20] {
            reads.add(usage(1), tag, 0, &clock);
        }
        reads.add(usage(2), 30, 0, &clock);
        reads.begin_run();
        reads.add(usage(1), 40, 0, &clock);
        let found: Vec<(u8, Tag)> = reads.as_slice().iter().map(|it| (it.usage.0, it.tag)).collect();
        assert_eq!(found, [(1, 20), (2, 30), (1, 40)]);
    }

    #[test]
    fn the_oldest_reads_are_forgotten() {
        let mut reads = PossibleReads::default();
        for tag in 0..10 * READS_MAX as Tag {
            reads.begin_run();
            reads.add(UsageIndex(1), tag, 0, &QueueClock::default());
        }
        assert!(reads.as_slice().len() <= READS_MAX);
        assert_eq!(reads.as_slice().last().map(|it| it.tag), Some(10 * READS_MAX as Tag - 1));
    }
}
