//! The order that rendering itself gives to accesses of attachments, inside one render pass instance; the order of buffer
//! markers and of layout transitions; and accesses that need none.
//!
//! Spec: "Rasterization Order"; "Load Operations", "Store Operations" and "Render Pass Multisample Resolve Operations".

use lavascope_abi::AccessFlags2;
use lavascope_sync_ir::{MarkerStage, RasterOrder};

use crate::access::markers;
use crate::access::usages::{SYNC_TABLES, StageSet, UsageIndex};

/// In which order an access takes part. Like a [`RasterOrder`], it is a byte without a payload: every check compares two.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessOrder {
    // Buffer markers after a stage, by the number of its bit.
    Marker0, Marker1, Marker2, Marker3, Marker4, Marker5, Marker6, Marker7,
    Marker8, Marker9, Marker10, Marker11, Marker12, Marker13, Marker14, Marker15,
    Marker16, Marker17, Marker18, Marker19, Marker20, Marker21, Marker22, Marker23,
    Marker24, Marker25, Marker26, Marker27, Marker28, Marker29, Marker30, Marker31,
    Marker32, Marker33, Marker34, Marker35, Marker36, Marker37, Marker38, Marker39,
    Marker40, Marker41, Marker42, Marker43, Marker44, Marker45, Marker46, Marker47,
    Marker48, Marker49, Marker50, Marker51, Marker52, Marker53, Marker54, Marker55,
    Marker56, Marker57, Marker58, Marker59, Marker60, Marker61, Marker62, Marker63,
    #[default]
    None,
    /// Rasterization order: fragments in the order of primitives.
    Color,
    DepthStencil,
    /// Before every command of the render pass instance that accesses the attachment.
    Load,
    /// After every command of the subpass that accesses the attachment.
    Resolve,
    /// After every command of the render pass instance that accesses the attachment.
    Store,
    /// Needs no order with others of its kind.
    Atomic,
    /// The layout transition of a barrier.
    BarrierTransition,
    /// A layout transition of a render pass.
    PassTransition,
}

#[rustfmt::skip]
const MARKERS: [AccessOrder; 64] = {
    use AccessOrder::*;
    [
        Marker0, Marker1, Marker2, Marker3, Marker4, Marker5, Marker6, Marker7,
        Marker8, Marker9, Marker10, Marker11, Marker12, Marker13, Marker14, Marker15,
        Marker16, Marker17, Marker18, Marker19, Marker20, Marker21, Marker22, Marker23,
        Marker24, Marker25, Marker26, Marker27, Marker28, Marker29, Marker30, Marker31,
        Marker32, Marker33, Marker34, Marker35, Marker36, Marker37, Marker38, Marker39,
        Marker40, Marker41, Marker42, Marker43, Marker44, Marker45, Marker46, Marker47,
        Marker48, Marker49, Marker50, Marker51, Marker52, Marker53, Marker54, Marker55,
        Marker56, Marker57, Marker58, Marker59, Marker60, Marker61, Marker62, Marker63,
    ]
};

impl AccessOrder {
    #[inline]
    pub fn is_marker(self) -> bool {
        (self as u8) < AccessOrder::None as u8
    }

    /// The stage of a buffer marker.
    #[inline]
    pub fn marker_stage(self) -> Option<MarkerStage> {
        self.is_marker().then(|| MarkerStage::from_bit(u32::from(self as u8)))
    }
}

impl From<RasterOrder> for AccessOrder {
    fn from(order: RasterOrder) -> AccessOrder {
        match order {
            RasterOrder::None => AccessOrder::None,
            RasterOrder::Color => AccessOrder::Color,
            RasterOrder::DepthStencil => AccessOrder::DepthStencil,
            RasterOrder::Atomic => AccessOrder::Atomic,
            marker => marker.marker_stage().map_or(AccessOrder::None, |it| MARKERS[it as usize]),
        }
    }
}

/// Whether an earlier access of the same subpass comes before a later one by itself.
pub fn is_ordered(prior: (UsageIndex, AccessOrder), own: (UsageIndex, AccessOrder)) -> bool {
    match (prior.1, own.1) {
        (AccessOrder::Color, AccessOrder::Color) | (AccessOrder::DepthStencil, AccessOrder::DepthStencil) => true,
        (AccessOrder::Load, _) => is_attachment_access(own.0),
        (_, AccessOrder::Store | AccessOrder::Resolve) => is_attachment_access(prior.0),
        _ => false,
    }
}

/// The same of an access in any subpass of the same render pass instance.
pub fn is_ordered_across_subpasses(prior: (UsageIndex, AccessOrder), own: (UsageIndex, AccessOrder)) -> bool {
    match (prior.1, own.1) {
        (AccessOrder::Load, AccessOrder::Load) | (AccessOrder::Store, _) => false,
        (AccessOrder::Load, _) => is_attachment_access(own.0),
        (_, AccessOrder::Store) => is_attachment_access(prior.0),
        _ => false,
    }
}

/// Whether two accesses are in no data race, whatever their order is. Spec: "Data-Race".
pub fn are_atomic(prior: AccessOrder, own: AccessOrder) -> bool {
    prior == AccessOrder::Atomic && own == AccessOrder::Atomic
}

/// Whether both are buffer markers, and the earlier one of a queue comes before the later one by itself
/// (`vkCmdWriteBufferMarker2AMD`).
pub fn are_ordered_markers(prior: AccessOrder, own: AccessOrder) -> bool {
    prior.marker_stage().zip(own.marker_stage()).is_some_and(|(prior, own)| markers::is_after(own, prior))
}

/// The stages of earlier commands of its queue that a buffer marker comes after; none of anything else.
pub fn marker_stages(order: AccessOrder) -> StageSet {
    order.marker_stage().map_or(StageSet::default(), markers::earlier_stages)
}

/// Whether both are layout transitions, of which those of barriers are in order with all others of their queue
/// (`synchronization-image-barrier-layout-transition-order`).
pub(crate) fn are_ordered_transitions(prior: AccessOrder, own: AccessOrder) -> bool {
    use AccessOrder::{BarrierTransition, PassTransition};
    matches!(
        (prior, own),
        (BarrierTransition, BarrierTransition | PassTransition) | (PassTransition, BarrierTransition)
    )
}

/// Whether rendering puts two accesses into the same places.
pub fn is_same_order_class(one: (UsageIndex, AccessOrder), other: (UsageIndex, AccessOrder)) -> bool {
    one.1 == other.1 && is_attachment_access(one.0) == is_attachment_access(other.0)
}

const ATTACHMENTS: u64 = AccessFlags2::INPUT_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
    | AccessFlags2::COLOR_ATTACHMENT_READ_NONCOHERENT_EXT.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;

fn is_attachment_access(usage: UsageIndex) -> bool {
    SYNC_TABLES.usages[usize::from(usage.0)].access & ATTACHMENTS != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::PipelineStageFlags2 as S;

    fn usage(stage: S, access: AccessFlags2) -> UsageIndex {
        SYNC_TABLES.usage(stage.0, access.0).expect("a usage")
    }

    #[test]
    fn loads_come_first_and_stores_last() {
        let attachments = [
            usage(S::FRAGMENT_SHADER, AccessFlags2::INPUT_ATTACHMENT_READ),
            usage(S::COLOR_ATTACHMENT_OUTPUT, AccessFlags2::COLOR_ATTACHMENT_READ),
            usage(S::COLOR_ATTACHMENT_OUTPUT, AccessFlags2::COLOR_ATTACHMENT_WRITE),
            usage(S::COLOR_ATTACHMENT_OUTPUT, AccessFlags2::COLOR_ATTACHMENT_READ_NONCOHERENT_EXT),
            usage(S::EARLY_FRAGMENT_TESTS, AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ),
            usage(S::LATE_FRAGMENT_TESTS, AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE),
        ];
        let sampled = usage(S::FRAGMENT_SHADER, AccessFlags2::SHADER_SAMPLED_READ);
        for own in attachments {
            assert!(is_ordered((sampled, AccessOrder::Load), (own, AccessOrder::None)));
            for last in [AccessOrder::Store, AccessOrder::Resolve] {
                assert!(is_ordered((own, AccessOrder::None), (sampled, last)));
                assert!(!is_ordered((own, last), (own, AccessOrder::Load)));
            }
            assert!(is_same_order_class((own, AccessOrder::None), (attachments[0], AccessOrder::None)));
            assert!(!is_same_order_class((own, AccessOrder::None), (sampled, AccessOrder::None)));
        }
        assert!(!is_ordered((sampled, AccessOrder::Load), (sampled, AccessOrder::None)));
        assert!(!is_ordered((sampled, AccessOrder::None), (sampled, AccessOrder::Store)));
        assert!(!is_same_order_class((sampled, AccessOrder::None), (sampled, AccessOrder::Color)));
        for (prior, own, is_wanted) in [
            (AccessOrder::Color, AccessOrder::Color, true),
            (AccessOrder::DepthStencil, AccessOrder::DepthStencil, true),
            (AccessOrder::Color, AccessOrder::DepthStencil, false),
            (AccessOrder::None, AccessOrder::None, false),
            (AccessOrder::Atomic, AccessOrder::Atomic, false),
        ] {
            assert_eq!(is_ordered((attachments[2], prior), (attachments[2], own)), is_wanted, "{prior:?} {own:?}");
            assert_eq!(are_atomic(prior, own), prior == AccessOrder::Atomic);
        }
        assert!(
            !are_atomic(AccessOrder::Atomic, AccessOrder::None) && !are_atomic(AccessOrder::None, AccessOrder::Atomic)
        );
    }

    #[test]
    fn other_subpasses_come_after_loads_and_before_stores() {
        use AccessOrder::{Color, Load, None, Resolve, Store};
        let color = usage(S::COLOR_ATTACHMENT_OUTPUT, AccessFlags2::COLOR_ATTACHMENT_WRITE);
        let sampled = usage(S::FRAGMENT_SHADER, AccessFlags2::SHADER_SAMPLED_READ);
        for (prior, own) in [(Load, None), (Load, Color), (Load, Resolve), (Load, Store), (Color, Store)] {
            assert!(is_ordered_across_subpasses((color, prior), (color, own)), "{prior:?} {own:?}");
            assert!(!is_ordered_across_subpasses((color, own), (color, prior)), "{own:?} {prior:?}");
        }
        for (prior, own) in [(Load, Load), (Store, Store), (Color, Color), (Color, Resolve)] {
            assert!(!is_ordered_across_subpasses((color, prior), (color, own)), "{prior:?} {own:?}");
        }
        assert!(!is_ordered_across_subpasses((color, Load), (sampled, None)));
        assert!(!is_ordered_across_subpasses((sampled, None), (color, Store)));
    }
}
