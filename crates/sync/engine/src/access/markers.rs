//! Buffer markers: writes that come after a stage of all earlier commands, and after earlier markers, by themselves.
//!
//! Spec: `vkCmdWriteBufferMarker2AMD`. A marker is a dependency. Its first synchronization scope has earlier commands in
//! the stage of the marker, and earlier markers of the same stage or a logically earlier one; its second one has only the
//! marker. Its first access scope has the writes of those markers; its second one is empty. So:
//!
//! 1. **A later dependency with the marker in its first scope continues the chain**
//!    (`synchronization-dependencies-chains`). Markers are written in the copy stage. What is ordered before markers, but
//!    not before all later copies, has a stage of its own in the clocks (`SyncTables::marker`). Each first scope with the
//!    copy stage has that stage as well, except those of markers: an earlier marker comes after nothing that the marker
//!    itself does not come after.
//! 2. **A marker orders nothing before other commands of the copy stage.** A barrier inside a subpass or rendering has no
//!    earlier marker from outside in its first scope, so chains through these are forgotten there.
//! 3. **What an earlier marker wrote is available from a later marker on.** It becomes visible by a dependency that has
//!    the later marker in its first scope. The state of the range keeps this as a point (`overlays`), at the stage of
//!    markers: a marker has earlier markers in its first scope by their stages only.

use std::ops::Range;
use std::sync::LazyLock;

use lavascope_sync_ir::{Access, MarkerStage};
use smallvec::smallvec;

use crate::access::usages::{SYNC_TABLES, StageSet, UsageSet};
use crate::dependency::clocks::Tag;
use crate::dependency::expanded::ResourceFirstScope;
use crate::dependency::scopes;
use crate::dependency::subpass_intervals::SubpassInterval;
use crate::memory::addresses::ResourceIdentity;
use crate::queue::device::EngineDevice;
use crate::queue::execution::{CommandExecutor, access_context};
use crate::queue::render_passes::RenderPassInstance;

/// The stages that a marker comes after, for each bit.
static EARLIER_STAGES: LazyLock<[StageSet; 64]> =
    LazyLock::new(|| std::array::from_fn(|bit| scopes::source_stages(1 << bit, u32::MAX)));

/// The stages of earlier commands that a marker comes after.
pub(crate) fn earlier_stages(marker: MarkerStage) -> StageSet {
    EARLIER_STAGES[marker as usize]
}

/// Whether an earlier marker comes before a later one: its stage is the same or logically earlier.
pub(crate) fn is_after(later: MarkerStage, earlier: MarkerStage) -> bool {
    earlier_stages(earlier).0 & !earlier_stages(later).0 == 0
}

/// The markers of a queue.
#[derive(Default)]
pub(crate) struct QueueMarkers {
    /// The first scope of the marker that is executed.
    first_scope: Option<Box<ResourceFirstScope>>,
    /// Markers whose writes no later marker has made available.
    unavailable: Vec<MarkerWrite>,
}

struct MarkerWrite {
    stage: MarkerStage,
    tag: Tag,
    ranges: Vec<Range<u64>>,
}

/// So many are remembered; the oldest are forgotten.
const WRITES_MAX: usize = 64;

impl QueueMarkers {
    pub(crate) fn clear(&mut self) {
        self.first_scope = None;
        self.unavailable.clear();
    }

    pub(crate) fn first_scope(&self) -> Option<&ResourceFirstScope> {
        self.first_scope.as_deref()
    }

    fn add_write(&mut self, write: MarkerWrite) {
        if self.unavailable.len() >= WRITES_MAX {
            self.unavailable.drain(..WRITES_MAX / 2);
        }
        self.unavailable.push(write);
    }
}

impl CommandExecutor<'_> {
    /// A marker is about to be checked: makes its first scope.
    #[cold]
    pub(crate) fn begin_marker(&mut self, tag: Tag, stage: MarkerStage) {
        let (src, queue) = (earlier_stages(stage).without(SYNC_TABLES.marker), self.queue);
        let clock = &self.device.queues[usize::from(queue)].clock;
        let mut global = match self.instance.as_ref().filter(|it| it.has_subpasses()) {
            None => clock.first_scope(queue, tag, src, UsageSet::default()),
            Some(instance) => clock.first_scope_of_interval(SubpassInterval {
                queue,
                begin: instance.scope_begin(),
                end: tag,
                src,
                src_usages: UsageSet::default(),
                dst: StageSet::default(),
                dst_usages: UsageSet::default(),
            }),
        };
        if let Some((outside, begin)) = self.instance.as_ref().and_then(RenderPassInstance::outside_clock) {
            global.merge(&outside.first_scope(queue, begin, src, UsageSet::default()));
        }
        let scope = ResourceFirstScope { global, stage_limits: smallvec![(src, tag)], ..ResourceFirstScope::default() };
        self.timeline().rare_order.markers.first_scope = Some(Box::new(scope));
    }

    /// A marker was recorded: later dependencies continue chains through it.
    #[cold]
    pub(crate) fn end_marker(&mut self, tag: Tag, stage: MarkerStage, access: Option<Access>) {
        let timeline = self.timeline();
        let scope = timeline.rare_order.markers.first_scope.take();
        if let Some(ResourceFirstScope { global, .. }) = scope.as_deref() {
            timeline.clock.apply_marker(global);
        }
        self.make_earlier_markers_available(tag, stage);
        if let Some(access) = access {
            let ranges = self.device.ranges(access.resource, &access.region);
            self.timeline().rare_order.markers.add_write(MarkerWrite { stage, tag, ranges });
        }
    }

    fn make_earlier_markers_available(&mut self, tag: Tag, stage: MarkerStage) {
        let EngineDevice { rules, queues, states, .. } = &mut *self.device;
        let timeline = &mut queues[usize::from(self.queue)];
        let mut unavailable = std::mem::take(&mut timeline.rare_order.markers.unavailable);
        let timeline = &queues[usize::from(self.queue)];
        let context =
            access_context(*rules, timeline, self.queue, self.instance.as_ref(), tag, ResourceIdentity::default());
        let is_first = |earlier: &mut MarkerWrite| {
            is_after(stage, earlier.stage) && context.is_earlier_in_submission_order(self.queue, earlier.tag)
        };
        for earlier in unavailable.extract_if(.., is_first) {
            for range in earlier.ranges {
                states.update(range, |_, state| {
                    if let Some(state) = state {
                        state.add_marker_point(&context, earlier.tag);
                    }
                });
            }
        }
        self.timeline().rare_order.markers.unavailable = unavailable;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::access_order::AccessOrder;
    use lavascope_abi::PipelineStageFlags2 as S;

    fn marker(stage: S) -> MarkerStage {
        MarkerStage::from_stages(stage.0)
    }

    #[test]
    fn markers_of_later_stages_come_after_those_of_earlier_ones() {
        let order = [S::TOP_OF_PIPE, S::DRAW_INDIRECT, S::VERTEX_SHADER, S::COLOR_ATTACHMENT_OUTPUT, S::BOTTOM_OF_PIPE];
        for (at, later) in order.map(marker).into_iter().enumerate() {
            for (other, earlier) in order.map(marker).into_iter().enumerate() {
                assert_eq!(is_after(later, earlier), other <= at, "{at} {other}");
            }
        }
        // Of different pipelines, neither comes first; all commands come after everything, like the bottom.
        let [copy, compute, all] = [S::COPY, S::COMPUTE_SHADER, S::ALL_COMMANDS].map(marker);
        assert!(!is_after(copy, compute) && !is_after(compute, copy));
        assert!(is_after(all, copy) && is_after(all, marker(S::BOTTOM_OF_PIPE)) && !is_after(copy, all));
    }

    /// Every range of memory has two of these.
    #[test]
    fn an_order_is_one_byte() {
        assert_eq!(size_of::<AccessOrder>(), 1);
    }
}
