//! The context of an access: on which queue, at which tag and in which subpass it happens, and through which resource.

use crate::access::access_order;
use crate::access::access_order::AccessOrder;
use crate::access::markers::QueueMarkers;
use crate::access::possible_reads::{PossibleReads, TaggedRead};
use crate::access::usages::UsageIndex;
use crate::dependency::clocks::{QueueClock, Tag};
use crate::dependency::expanded::ResourceFirstScope;
use crate::memory::addresses::ResourceIdentity;
use crate::rules::Rules;

/// The context of the access that is being checked or added to the state of a range.
#[derive(Clone, Copy)]
pub(crate) struct AccessContext<'a> {
    pub(crate) rules: Rules,
    /// What happened before this point of the queue.
    pub(crate) clock: &'a QueueClock,
    pub(crate) queue: u8,
    pub(crate) tag: Tag,
    /// The tag before the subpass or the dynamic rendering in which rendering orders accesses.
    pub(crate) instance_begin: Option<Tag>,
    /// The tag before the render pass instance, with all of its subpasses; the largest outside of one.
    pub(crate) pass_begin: Tag,
    /// The tag before the subpass to which the first scopes of barriers are limited; zero outside of render passes.
    pub(crate) subpass_begin: Tag,
    /// Subpasses that no dependency orders before the current one: the tags after the first number, up to the second.
    pub(crate) unordered_subpasses: &'a [(Tag, Tag)],
    /// What orders accesses in few programs only; nothing for the host.
    pub(crate) rare_order: Option<&'a RareOrder>,
    /// The resource through which the memory is accessed.
    pub(crate) identity: ResourceIdentity,
    pub(crate) addressing: Addressing,
}

/// What orders accesses of a queue in few programs only.
#[derive(Default)]
pub(crate) struct RareOrder {
    pub(crate) possible_reads: PossibleReads,
    pub(crate) markers: QueueMarkers,
}

/// Whether an access and the range it is checked against have the same addresses. A dependency on one resource does not
/// concern another resource in the same memory (`resources-memory-aliasing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressing {
    /// The access has the addresses of the range.
    Own,
    /// The access goes through another resource in the same memory, at these addresses of that resource.
    Alias { start: u64, end: u64 },
}

impl<'a> AccessContext<'a> {
    /// Reads of the queue that may have happened, of whatever resource.
    pub(crate) fn possible_reads(&self) -> &'a [TaggedRead] {
        self.rare_order.map_or(&[], |it| it.possible_reads.as_slice())
    }

    /// The first scope of the buffer marker that is executed.
    pub(crate) fn marker_scope(&self) -> Option<&'a ResourceFirstScope> {
        self.rare_order?.markers.first_scope()
    }

    /// Whether an earlier command of the queue is earlier in submission order: not in another subpass of the same render
    /// pass instance (`synchronization-submission-order`).
    pub(crate) fn is_earlier_in_submission_order(&self, queue: u8, tag: Tag) -> bool {
        queue == self.queue && (tag <= self.pass_begin || tag > self.subpass_begin)
    }

    /// Whether rendering itself orders an earlier access before this one (`access_order`).
    #[inline]
    pub(crate) fn is_ordered_by_rendering(
        &self,
        queue: u8,
        tag: Tag,
        prior: (UsageIndex, AccessOrder),
        own: (UsageIndex, AccessOrder),
    ) -> bool {
        let is_inside = self.instance_begin.is_some_and(|begin| tag > begin) && queue == self.queue;
        is_inside && access_order::is_ordered(prior, own)
    }

    /// The same between any two subpasses of a render pass instance: load operations come first, store operations last.
    pub(crate) fn is_ordered_across_subpasses(
        &self,
        queue: u8,
        tag: Tag,
        prior: (UsageIndex, AccessOrder),
        own: (UsageIndex, AccessOrder),
    ) -> bool {
        self.is_in_same_pass(queue, tag) && access_order::is_ordered_across_subpasses(prior, own)
    }

    /// Whether an earlier access lies in the same render pass instance.
    pub(crate) fn is_in_same_pass(&self, queue: u8, tag: Tag) -> bool {
        tag > self.pass_begin && queue == self.queue
    }

    /// Whether the second scope of a dependency has this access. `subpass_begin` is that of the dependency. Outside of
    /// render passes, where it is zero, the scope has all later commands; in a subpass, only those of that subpass.
    pub(crate) fn is_in_subpass(&self, queue: u8, subpass_begin: Tag) -> bool {
        queue == self.queue && (subpass_begin == 0 || subpass_begin == self.subpass_begin)
    }

    /// Whether an earlier access lies in a subpass that no dependency orders before this one.
    #[inline]
    pub(crate) fn is_in_unordered_subpass(&self, queue: u8, tag: Tag) -> bool {
        queue == self.queue && self.unordered_subpasses.iter().any(|(begin, end)| *begin < tag && tag <= *end)
    }

    /// Whether no semaphore or fence at all leads from an earlier access on another queue to this one.
    pub(crate) fn is_in_unknown_batch(&self, queue: u8, tag: Tag) -> bool {
        queue != self.queue && self.clock.batches.get(queue) < tag
    }
}
