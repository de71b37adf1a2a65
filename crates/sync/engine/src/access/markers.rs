//! Buffer markers: writes that come after a stage of all earlier commands, and after earlier markers, by themselves.
//!
//! Spec: `vkCmdWriteBufferMarker2AMD`. Its first synchronization scope has earlier commands in the stage of the marker, and
//! earlier markers of the same stage or a logically earlier one; its first access scope has the writes of those markers.

use std::sync::LazyLock;

use lavascope_sync_ir::MarkerStage;

use crate::access::usages::StageSet;
use crate::dependency::scopes;

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
