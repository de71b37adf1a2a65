//! The order that rendering itself gives to accesses of attachments, inside one render pass instance, and accesses
//! that need none.
//!
//! Spec: "Rasterization Order"; "Load Operations", "Store Operations" and "Render Pass Multisample Resolve Operations".

use lavascope_abi::AccessFlags2;
use lavascope_sync_ir::RasterOrder;

use crate::usage::{TABLES, Usage};

/// In which order an access takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    None,
    /// Fragments, in the order of primitives.
    Color,
    DepthStencil,
    /// Before every command that accesses the attachment.
    Load,
    /// After every command that accesses the attachment.
    Last,
    /// Needs no order with others of its kind.
    Atomic,
}

impl From<RasterOrder> for Order {
    fn from(order: RasterOrder) -> Order {
        match order {
            RasterOrder::None => Order::None,
            RasterOrder::Color => Order::Color,
            RasterOrder::DepthStencil => Order::DepthStencil,
            RasterOrder::Atomic => Order::Atomic,
        }
    }
}

/// Whether an earlier access of the same instance comes before a later one by itself.
pub fn is_ordered(prior: (Usage, Order), own: (Usage, Order)) -> bool {
    match (prior.1, own.1) {
        (Order::Color, Order::Color) | (Order::DepthStencil, Order::DepthStencil) => true,
        (Order::Load, _) => is_attachment_access(own.0),
        (_, Order::Last) => is_attachment_access(prior.0),
        _ => false,
    }
}

/// Whether two accesses are in no data race, whatever their order is. Spec: "Data-Race".
pub fn are_atomic(prior: Order, own: Order) -> bool {
    prior == Order::Atomic && own == Order::Atomic
}

/// Whether rendering puts two accesses into the same places.
pub fn is_alike(one: (Usage, Order), other: (Usage, Order)) -> bool {
    one.1 == other.1 && is_attachment_access(one.0) == is_attachment_access(other.0)
}

const ATTACHMENTS: u64 = AccessFlags2::INPUT_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_READ.0
    | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
    | AccessFlags2::COLOR_ATTACHMENT_READ_NONCOHERENT_EXT.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ.0
    | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0;

fn is_attachment_access(usage: Usage) -> bool {
    TABLES.usages[usize::from(usage.0)].access & ATTACHMENTS != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::PipelineStageFlags2 as S;

    fn usage(stage: S, access: AccessFlags2) -> Usage {
        TABLES.usage(stage.0, access.0).expect("a usage")
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
            assert!(is_ordered((sampled, Order::Load), (own, Order::None)));
            assert!(is_ordered((own, Order::None), (sampled, Order::Last)));
            assert!(is_alike((own, Order::None), (attachments[0], Order::None)));
            assert!(!is_alike((own, Order::None), (sampled, Order::None)));
            assert!(!is_ordered((own, Order::Last), (own, Order::Load)));
        }
        assert!(!is_ordered((sampled, Order::Load), (sampled, Order::None)));
        assert!(!is_ordered((sampled, Order::None), (sampled, Order::Last)));
        assert!(!is_alike((sampled, Order::None), (sampled, Order::Color)));
        for (prior, own, is_wanted) in [
            (Order::Color, Order::Color, true),
            (Order::DepthStencil, Order::DepthStencil, true),
            (Order::Color, Order::DepthStencil, false),
            (Order::None, Order::None, false),
            (Order::Atomic, Order::Atomic, false),
        ] {
            assert_eq!(is_ordered((attachments[2], prior), (attachments[2], own)), is_wanted, "{prior:?} {own:?}");
            assert_eq!(are_atomic(prior, own), prior == Order::Atomic);
        }
        assert!(!are_atomic(Order::Atomic, Order::None) && !are_atomic(Order::None, Order::Atomic));
    }
}
