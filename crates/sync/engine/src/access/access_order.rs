//! The order that rendering itself gives to accesses of attachments, inside one render pass instance, and accesses
//! that need none.
//!
//! Spec: "Rasterization Order"; "Load Operations", "Store Operations" and "Render Pass Multisample Resolve Operations".

use lavascope_abi::AccessFlags2;
use lavascope_sync_ir::RasterOrder;

use crate::access::usages::{SYNC_TABLES, UsageIndex};

/// The order to which an access belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessOrder {
    #[default]
    None,
    /// Rasterization order: fragments in the order of primitives.
    Color,
    DepthStencil,
    /// Before every command that accesses the attachment.
    Load,
    /// After every command that accesses the attachment.
    StoreOrResolve,
    /// Atomic accesses need no order with each other.
    Atomic,
}

impl From<RasterOrder> for AccessOrder {
    fn from(order: RasterOrder) -> AccessOrder {
        match order {
            RasterOrder::None => AccessOrder::None,
            RasterOrder::Color => AccessOrder::Color,
            RasterOrder::DepthStencil => AccessOrder::DepthStencil,
            RasterOrder::Atomic => AccessOrder::Atomic,
        }
    }
}

/// Whether rendering orders an earlier access of the same render pass instance before a later one.
pub fn is_ordered(prior: (UsageIndex, AccessOrder), own: (UsageIndex, AccessOrder)) -> bool {
    match (prior.1, own.1) {
        (AccessOrder::Color, AccessOrder::Color) | (AccessOrder::DepthStencil, AccessOrder::DepthStencil) => true,
        (AccessOrder::Load, _) => is_attachment_access(own.0),
        (_, AccessOrder::StoreOrResolve) => is_attachment_access(prior.0),
        _ => false,
    }
}

/// Whether two accesses are in no data race, whatever their order is. Spec: "Data-Race".
pub fn are_atomic(prior: AccessOrder, own: AccessOrder) -> bool {
    prior == AccessOrder::Atomic && own == AccessOrder::Atomic
}

/// Whether rendering orders two accesses in the same way.
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
            assert!(is_ordered((own, AccessOrder::None), (sampled, AccessOrder::StoreOrResolve)));
            assert!(is_same_order_class((own, AccessOrder::None), (attachments[0], AccessOrder::None)));
            assert!(!is_same_order_class((own, AccessOrder::None), (sampled, AccessOrder::None)));
            assert!(!is_ordered((own, AccessOrder::StoreOrResolve), (own, AccessOrder::Load)));
        }
        assert!(!is_ordered((sampled, AccessOrder::Load), (sampled, AccessOrder::None)));
        assert!(!is_ordered((sampled, AccessOrder::None), (sampled, AccessOrder::StoreOrResolve)));
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
}
