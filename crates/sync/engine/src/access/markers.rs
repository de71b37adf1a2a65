//! Buffer markers: writes that come after a stage of all earlier commands, and after earlier markers, by themselves.
//!
//! Spec: `vkCmdWriteBufferMarker2AMD`. Its first synchronization scope has earlier commands in the stage of the marker, and
//! earlier markers of the same stage or a logically earlier one; its first access scope has the writes of those markers.

use std::sync::LazyLock;

use crate::access::usages::{StageIndex, StageSet};
use crate::dependency::scopes;

/// The stage of a marker, by the number of its bit. It is an enum so that [`AccessOrder`] stays one byte.
///
/// [`AccessOrder`]: crate::access::access_order::AccessOrder
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerStage {
    B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15,
    B16, B17, B18, B19, B20, B21, B22, B23, B24, B25, B26, B27, B28, B29, B30, B31,
    B32, B33, B34, B35, B36, B37, B38, B39, B40, B41, B42, B43, B44, B45, B46, B47,
    B48, B49, B50, B51, B52, B53, B54, B55, B56, B57, B58, B59, B60, B61, B62, B63,
}

#[rustfmt::skip]
const ALL: [MarkerStage; 64] = {
    use MarkerStage::*;
    [
        B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15,
        B16, B17, B18, B19, B20, B21, B22, B23, B24, B25, B26, B27, B28, B29, B30, B31,
        B32, B33, B34, B35, B36, B37, B38, B39, B40, B41, B42, B43, B44, B45, B46, B47,
        B48, B49, B50, B51, B52, B53, B54, B55, B56, B57, B58, B59, B60, B61, B62, B63,
    ]
};

/// The stages that a marker comes after, for each bit.
static EARLIER_STAGES: LazyLock<[StageSet; 64]> =
    LazyLock::new(|| std::array::from_fn(|bit| scopes::source_stages(1 << bit, u32::MAX)));

impl MarkerStage {
    pub(crate) fn from_bit(bit: u8) -> MarkerStage {
        ALL[usize::from(bit) % ALL.len()]
    }

    /// The stages of earlier commands that the marker comes after.
    pub fn earlier_stages(self) -> StageSet {
        EARLIER_STAGES[self as usize]
    }

    /// Whether an earlier marker comes before this one: its stage is the same or logically earlier.
    pub(crate) fn is_after(self, earlier: MarkerStage) -> bool {
        earlier.earlier_stages().0 & !self.earlier_stages().0 == 0
    }

    pub(crate) fn is_after_stage(self, stage: StageIndex) -> bool {
        self.earlier_stages().has(stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::access_order::AccessOrder;
    use lavascope_abi::PipelineStageFlags2 as S;

    fn marker(stage: S) -> MarkerStage {
        let marker = MarkerStage::from_bit(stage.0.trailing_zeros() as u8);
        assert_eq!(1_u64 << marker as u64, stage.0);
        marker
    }

    #[test]
    fn markers_of_later_stages_come_after_those_of_earlier_ones() {
        let order = [S::TOP_OF_PIPE, S::DRAW_INDIRECT, S::VERTEX_SHADER, S::COLOR_ATTACHMENT_OUTPUT, S::BOTTOM_OF_PIPE];
        for (at, later) in order.map(marker).into_iter().enumerate() {
            for (other, earlier) in order.map(marker).into_iter().enumerate() {
                assert_eq!(later.is_after(earlier), other <= at, "{at} {other}");
            }
        }
        // Of different pipelines, neither comes first; all commands come after everything, like the bottom.
        let [copy, compute, all] = [S::COPY, S::COMPUTE_SHADER, S::ALL_COMMANDS].map(marker);
        assert!(!copy.is_after(compute) && !compute.is_after(copy));
        assert!(all.is_after(copy) && all.is_after(marker(S::BOTTOM_OF_PIPE)) && !copy.is_after(all));
    }

    /// Every range of memory has two of these.
    #[test]
    fn an_order_is_one_byte() {
        assert_eq!(size_of::<AccessOrder>(), 1);
    }
}
