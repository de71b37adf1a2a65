//! A run of addresses that a command uses.

use std::ops::Range;

use lavascope_sync_ir::ResourceId;

use crate::access::access_order::AccessOrder;
use crate::access::range_state::Accessor;
use crate::access::usages::UsageIndex;
use crate::memory::addresses::ResourceIdentity;

#[derive(Clone, Debug)]
pub(crate) struct AddressedAccess {
    pub(crate) range: Range<u64>,
    pub(crate) resource: ResourceId,
    /// The identity of the resource, which its compatible aliases share.
    pub(crate) identity: ResourceIdentity,
    /// The index of the access among those of the command buffer.
    pub(crate) access_index: u32,
    pub(crate) usage: UsageIndex,
    pub(crate) order: AccessOrder,
}

impl AddressedAccess {
    #[inline]
    pub(crate) fn accessor(&self, queue: u8) -> Accessor {
        Accessor { usage: self.usage, queue, order: self.order }
    }

    #[inline]
    pub(crate) fn is_same_range(&self, other: &AddressedAccess) -> bool {
        self.range == other.range && self.identity == other.identity
    }

    #[inline]
    pub(crate) fn overlaps(&self, other: &AddressedAccess) -> bool {
        self.range.start < other.range.end && other.range.start < self.range.end
    }

    /// Whether two commands make the same access.
    #[inline]
    pub(crate) fn is_same_use(&self, other: &AddressedAccess) -> bool {
        let key = |it: &AddressedAccess| (it.resource, it.usage, it.order);
        self.is_same_range(other) && key(self) == key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::usages::TRANSITION_WRITE;

    #[test]
    fn neighbors_do_not_overlap() {
        let addressed_access = |range: Range<u64>| {
            let (resource, identity) = (ResourceId(0), ResourceIdentity::default());
            AddressedAccess {
                range,
                resource,
                identity,
                access_index: 0,
                usage: TRANSITION_WRITE,
                order: AccessOrder::None,
            }
        };
        let own = addressed_access(8..16);
        assert!(!own.overlaps(&addressed_access(0..8)) && !own.overlaps(&addressed_access(16..24)));
        assert!(
            own.overlaps(&addressed_access(0..9))
                && own.overlaps(&addressed_access(15..24))
                && own.overlaps(&addressed_access(10..12))
        );
    }
}
