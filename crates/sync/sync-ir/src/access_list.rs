//! A compact list of accesses: recorded commands are stored as long as explanations may need them.

use std::ops::Range;

use crate::{Access, Certainty, Origin, RasterOrder, Region, ResourceId};

/// Accesses one behind the other, in the order in which they came. Those to buffers, of which there are most, take half
/// the room of an [`Access`].
#[derive(Clone, Debug, Default)]
pub struct AccessList {
    packed: Vec<PackedAccess>,
    /// Accesses to other resources than buffers.
    unpacked: Vec<Access>,
}

/// An access to a buffer, or the place of another one.
#[derive(Clone, Debug)]
struct PackedAccess {
    /// The bytes of the buffer; for an access to another resource, its index in the other list.
    bytes: Range<u64>,
    origin: Origin,
    resource: ResourceId,
    word_offset: u16,
    /// The number of the bit; [`UNPACKED`], if it is another one.
    stage: u8,
    access: u8,
    order: RasterOrder,
    certainty: Certainty,
}

/// No bit has this number.
const UNPACKED: u8 = u8::MAX;

impl AccessList {
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// For how many there is room.
    pub fn capacity(&self) -> usize {
        self.packed.capacity()
    }

    #[inline]
    pub fn push(&mut self, access: &Access) {
        self.push_with_resource(access, access.resource);
    }

    /// The same, with another number of its resource.
    #[inline]
    pub fn push_with_resource(&mut self, access: &Access, resource: ResourceId) {
        let Access { stage, access: bit, order, certainty, word_offset: inset, origin, .. } = *access;
        match &access.region {
            Region::Buffer(bytes) if stage.is_power_of_two() && bit.is_power_of_two() => {
                let (stage, access) = (stage.trailing_zeros() as u8, bit.trailing_zeros() as u8);
                let bytes = bytes.clone();
                self.packed.push(PackedAccess {
                    bytes,
                    origin,
                    resource,
                    word_offset: inset,
                    stage,
                    access,
                    order,
                    certainty,
                });
            }
            _ => self.push_unpacked(access, resource),
        }
    }

    /// The same for one that uses what it is to as the one at a place does; to a buffer, as that one is.
    #[inline]
    pub fn push_like(&mut self, at: usize, access: &Access, resource: ResourceId) {
        let PackedAccess { stage, access: bit, order, .. } = self.packed[at];
        match &access.region {
            Region::Buffer(bytes) if stage != UNPACKED => {
                let (bytes, origin, inset, certainty) =
                    (bytes.clone(), access.origin, access.word_offset, access.certainty);
                self.packed.push(PackedAccess {
                    bytes,
                    origin,
                    resource,
                    word_offset: inset,
                    stage,
                    access: bit,
                    order,
                    certainty,
                });
            }
            _ => self.push_unpacked(access, resource),
        }
    }

    fn push_unpacked(&mut self, access: &Access, resource: ResourceId) {
        let Access { order, certainty, word_offset: inset, origin, .. } = *access;
        let at = self.unpacked.len() as u64;
        self.unpacked.push(Access { resource, ..access.clone() });
        let (stage, access) = (UNPACKED, UNPACKED);
        self.packed.push(PackedAccess {
            bytes: at..at + 1,
            origin,
            resource,
            word_offset: inset,
            stage,
            access,
            order,
            certainty,
        });
    }

    pub fn extend(&mut self, accesses: &[Access]) {
        self.packed.reserve(accesses.len());
        accesses.iter().for_each(|it| self.push(it));
    }

    /// The one at a place, where there must be one.
    pub fn get(&self, at: usize) -> Access {
        let kept = &self.packed[at];
        match kept.unpacked_index() {
            Some(other) => self.unpacked[other].clone(),
            None => kept.access(),
        }
    }

    /// How sure the one at a place is.
    pub fn certainty(&self, at: usize) -> Certainty {
        self.packed[at].certainty
    }

    pub fn range(&self, range: Range<usize>) -> Vec<Access> {
        range.map(|it| self.get(it)).collect()
    }

    /// Whether the one at a place is this one.
    #[inline]
    pub fn is_equal_at(&self, at: usize, access: &Access) -> bool {
        let kept = &self.packed[at];
        match (kept.unpacked_index(), &access.region) {
            (None, Region::Buffer(bytes)) => {
                kept.resource == access.resource
                    && kept.bytes == *bytes
                    && kept.uses(access)
                    && (kept.certainty, kept.word_offset, kept.origin)
                        == (access.certainty, access.word_offset, access.origin)
            }
            (None, Region::Image(_)) => false,
            (Some(other), _) => self.unpacked[other] == *access,
        }
    }

    /// Whether the access at an index has the same kind as this one, and whether it has the same part of its resource.
    #[inline]
    pub fn compare_use_and_region(&self, at: usize, access: &Access) -> (bool, bool) {
        let kept = &self.packed[at];
        match (kept.unpacked_index(), &access.region) {
            (None, Region::Buffer(bytes)) => (kept.uses(access), kept.bytes == *bytes),
            (None, Region::Image(_)) => (kept.uses(access), false),
            (Some(other), _) => {
                let (key, other) = (|it: &Access| (it.stage, it.access, it.order), &self.unpacked[other]);
                (key(other) == key(access), other.region == access.region)
            }
        }
    }

    /// Only the first ones stay.
    pub fn truncate(&mut self, len: usize) {
        let Some(gone) = self.packed.get(len..).filter(|it| !it.is_empty()) else { return };
        if !self.unpacked.is_empty()
            && let Some(first) = gone.iter().find_map(PackedAccess::unpacked_index)
        {
            self.unpacked.truncate(first);
        }
        self.packed.truncate(len);
    }

    pub fn clear(&mut self) {
        self.packed.clear();
        self.unpacked.clear();
    }

    /// No room is kept for more.
    pub fn shrink_to_fit(&mut self) {
        self.packed.shrink_to_fit();
        self.unpacked.shrink_to_fit();
    }

    /// The first ones, with room for as many as there are here.
    pub fn clone_prefix(&self, len: usize) -> AccessList {
        let mut first = AccessList {
            packed: Vec::with_capacity(self.packed.len()),
            unpacked: Vec::with_capacity(self.unpacked.len()),
        };
        first.packed.extend_from_slice(&self.packed[..len]);
        let others = first.packed.iter().rev().find_map(PackedAccess::unpacked_index).map_or(0, |it| it + 1);
        first.unpacked.extend_from_slice(&self.unpacked[..others]);
        first
    }
}

impl PackedAccess {
    /// Where it lies among the others, if it is one of them.
    #[inline]
    fn unpacked_index(&self) -> Option<usize> {
        (self.stage == UNPACKED).then_some(self.bytes.start as usize)
    }

    #[inline]
    fn uses(&self, access: &Access) -> bool {
        let own = (1_u64 << self.stage, 1_u64 << self.access, self.order);
        own == (access.stage, access.access, access.order)
    }

    fn access(&self) -> Access {
        Access {
            resource: self.resource,
            region: Region::Buffer(self.bytes.clone()),
            stage: 1 << self.stage,
            access: 1 << self.access,
            order: self.order,
            certainty: self.certainty,
            word_offset: self.word_offset,
            origin: self.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Area, Components, ImageRegion};

    /// Accesses to buffers and images, with every property; one has two stages, which is not valid.
    fn some() -> Vec<Access> {
        let area = Some(Area { offset: [1, 2, 0], extent: [3, 4, 1] });
        let components = Components::ALL;
        let image = Region::Image(ImageRegion { aspects: 1, mips: 0..2, layers: 1..3, area, components });
        let buffer = Access::new(ResourceId(7), Region::Buffer(16..64), 1 << 40, 1 << 33);
        let certainty = Certainty::Maybe;
        vec![
            buffer.clone().with_origin(Origin::region(3)),
            Access { certainty, ..Access::new(ResourceId(2), image.clone(), 4, 8) },
            Access { word_offset: 5, order: RasterOrder::Atomic, ..buffer.clone() },
            Access { stage: 3, ..buffer.clone() },
            Access { resource: ResourceId(9), region: image, ..buffer },
        ]
    }

    fn list(all: &[Access]) -> AccessList {
        let mut list = AccessList::default();
        list.extend(all);
        list
    }

    #[test]
    fn what_is_kept_is_what_was_given() {
        let all = some();
        let list = list(&all);
        assert_eq!(list.range(0..all.len()), all);
        for (at, access) in all.iter().enumerate() {
            let same: Vec<bool> = all.iter().map(|it| list.is_equal_at(at, it)).collect();
            let expected: Vec<bool> = all.iter().map(|it| it == access).collect();
            assert_eq!(same, expected, "{access:?}");
            let key = |it: &Access| (it.stage, it.access, it.order);
            for other in &all {
                let expected = (key(access) == key(other), access.region == other.region);
                assert_eq!(list.compare_use_and_region(at, other), expected, "{access:?} {other:?}");
                let mut more = list.clone();
                if expected.0 {
                    more.push_like(at, other, ResourceId(3));
                    assert_eq!(more.get(all.len()), Access { resource: ResourceId(3), ..other.clone() });
                }
            }
        }
        // Each of what an access has counts.
        let changes: [fn(&mut Access); 8] = [
            |item| item.resource = ResourceId(1),
            |it| it.region = Region::Buffer(16..65),
            |it| it.stage = 1,
            |it| it.access = 1,
            |it| it.order = RasterOrder::Color,
            |it| it.certainty = Certainty::OneOfArray,
            |it| it.word_offset = 1,
            |it| it.origin = Origin::region(1),
        ];
        for change in changes {
            let mut other = all[0].clone();
            change(&mut other);
            assert!(!list.is_equal_at(0, &other), "{other:?}");
        }
    }

    #[test]
    fn what_is_cut_off_makes_room_for_others() {
        let all = some();
        for len in 0..=all.len() {
            let mut cut = list(&all);
            cut.truncate(len);
            let first = list(&all).clone_prefix(len);
            assert_eq!((cut.len(), first.len()), (len, len));
            for mut list in [cut, first] {
                list.extend(&all);
                assert_eq!(list.range(0..len), all[..len]);
                assert_eq!(list.range(len..len + all.len()), all);
                assert_eq!(list.unpacked.len(), list.packed.iter().filter_map(PackedAccess::unpacked_index).count());
            }
        }
        let mut list = list(&all);
        list.clear();
        list.push_with_resource(&all[1], ResourceId(4));
        assert_eq!(list.range(0..1), [Access { resource: ResourceId(4), ..all[1].clone() }]);
    }
}
