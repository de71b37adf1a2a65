//! A run of addresses that a command uses.

use std::ops::Range;

use lavascope_sync_ir::ResourceId;

use crate::address::Identity;
use crate::order::Order;
use crate::state::By;
use crate::usage::Usage;

#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) range: Range<u64>,
    pub(crate) resource: ResourceId,
    /// What the resource is, whatever it is called.
    pub(crate) through: Identity,
    /// Of which access it is, among those of the command buffer.
    pub(crate) access: u32,
    pub(crate) usage: Usage,
    pub(crate) order: Order,
}

impl Spot {
    #[inline]
    pub(crate) fn by(&self, queue: u8) -> By {
        By { usage: self.usage, queue, order: self.order }
    }

    #[inline]
    pub(crate) fn is_same_range(&self, other: &Spot) -> bool {
        self.range == other.range && self.through == other.through
    }

    #[inline]
    pub(crate) fn overlaps(&self, other: &Spot) -> bool {
        self.range.start < other.range.end && other.range.start < self.range.end
    }

    /// Whether two commands do the same.
    #[inline]
    pub(crate) fn is_same(&self, other: &Spot) -> bool {
        let key = |it: &Spot| (it.resource, it.usage, it.order);
        self.is_same_range(other) && key(self) == key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::TRANSITION_WRITE;

    #[test]
    fn neighbors_do_not_overlap() {
        let spot = |range: Range<u64>| {
            let (resource, through) = (ResourceId(0), Identity::default());
            Spot { range, resource, through, access: 0, usage: TRANSITION_WRITE, order: Order::None }
        };
        let own = spot(8..16);
        assert!(!own.overlaps(&spot(0..8)) && !own.overlaps(&spot(16..24)));
        assert!(own.overlaps(&spot(0..9)) && own.overlaps(&spot(15..24)) && own.overlaps(&spot(10..12)));
    }
}
