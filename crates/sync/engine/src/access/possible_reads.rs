//! Reads that may have happened, of whatever resource: of draws without instances, and of shaders that pick descriptors.
//!
//! Nothing is reported of them. But a write that a barrier made visible to such a read, which may have happened since, need
//! not be visible to the next write: the barrier was for the read. This is the same as for reads that are known
//! (`RangeState::is_followed_by_read`), and asked only where a hazard would be reported otherwise.

use std::sync::Arc;

use crate::access::usages::UsageIndex;
use crate::dependency::clocks::{QueueClock, Tag};

/// The reads of a queue. Those between two commands that are no actions are one for each usage, the last: nothing can tell
/// them apart.
#[derive(Default)]
pub(crate) struct PossibleReads {
    all: Vec<TaggedRead>,
    /// Where those since the last command begin that is no action.
    recent: usize,
    /// What the queue knew at these.
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

/// So many are remembered; the oldest are forgotten.
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
