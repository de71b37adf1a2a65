//! Many accesses, in little room: what was recorded is kept for as long as it may be told of.

use std::ops::Range;

use crate::{Access, Certainty, Origin, RasterOrder, Region, ResourceId};

/// Accesses one behind the other, in the order in which they came. Those to buffers, of which there are most, take half
/// the room of an [`Access`].
#[derive(Clone, Debug, Default)]
pub struct AccessList {
    all: Vec<Kept>,
    /// Those that are not to buffers.
    others: Vec<Access>,
}

/// An access to a buffer, or the place of another one.
#[derive(Clone, Debug)]
struct Kept {
    /// Of another one: where it lies.
    bytes: Range<u64>,
    origin: Origin,
    resource: ResourceId,
    inset: u16,
    /// The number of the bit; [`OTHER`], if it is another one.
    stage: u8,
    access: u8,
    order: RasterOrder,
    certainty: Certainty,
}

/// No bit has this number.
const OTHER: u8 = u8::MAX;

impl AccessList {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// For how many there is room.
    pub fn capacity(&self) -> usize {
        self.all.capacity()
    }

    #[inline]
    pub fn push(&mut self, access: &Access) {
        self.push_with(access, access.resource);
    }

    /// The same, with another number of its resource.
    #[inline]
    pub fn push_with(&mut self, access: &Access, resource: ResourceId) {
        let Access { stage, access: bit, order, certainty, inset, origin, .. } = *access;
        match &access.region {
            Region::Buffer(bytes) if stage.is_power_of_two() && bit.is_power_of_two() => {
                let (stage, access) = (stage.trailing_zeros() as u8, bit.trailing_zeros() as u8);
                let bytes = bytes.clone();
                self.all.push(Kept { bytes, origin, resource, inset, stage, access, order, certainty });
            }
            _ => self.push_other(access, resource),
        }
    }

    /// The same for one that uses what it is to as the one at a place does; to a buffer, as that one is.
    #[inline]
    pub fn push_like(&mut self, at: usize, access: &Access, resource: ResourceId) {
        let Kept { stage, access: bit, order, .. } = self.all[at];
        match &access.region {
            Region::Buffer(bytes) if stage != OTHER => {
                let (bytes, origin, inset, certainty) = (bytes.clone(), access.origin, access.inset, access.certainty);
                self.all.push(Kept { bytes, origin, resource, inset, stage, access: bit, order, certainty });
            }
            _ => self.push_other(access, resource),
        }
    }

    fn push_other(&mut self, access: &Access, resource: ResourceId) {
        let Access { order, certainty, inset, origin, .. } = *access;
        let at = self.others.len() as u64;
        self.others.push(Access { resource, ..access.clone() });
        let (stage, access) = (OTHER, OTHER);
        self.all.push(Kept { bytes: at..at + 1, origin, resource, inset, stage, access, order, certainty });
    }

    pub fn extend(&mut self, accesses: &[Access]) {
        self.all.reserve(accesses.len());
        accesses.iter().for_each(|it| self.push(it));
    }

    /// The one at a place, where there must be one.
    pub fn get(&self, at: usize) -> Access {
        let kept = &self.all[at];
        match kept.other() {
            Some(other) => self.others[other].clone(),
            None => kept.access(),
        }
    }

    pub fn range(&self, range: Range<usize>) -> Vec<Access> {
        range.map(|it| self.get(it)).collect()
    }

    /// Whether the one at a place is this one.
    #[inline]
    pub fn is(&self, at: usize, access: &Access) -> bool {
        let kept = &self.all[at];
        match (kept.other(), &access.region) {
            (None, Region::Buffer(bytes)) => {
                kept.resource == access.resource
                    && kept.bytes == *bytes
                    && kept.uses(access)
                    && (kept.certainty, kept.inset, kept.origin) == (access.certainty, access.inset, access.origin)
            }
            (None, Region::Image(_)) => false,
            (Some(other), _) => self.others[other] == *access,
        }
    }

    /// Whether the one at a place does the same as this one, and whether to the same part of whatever the two are to.
    #[inline]
    pub fn compare(&self, at: usize, access: &Access) -> (bool, bool) {
        let kept = &self.all[at];
        match (kept.other(), &access.region) {
            (None, Region::Buffer(bytes)) => (kept.uses(access), kept.bytes == *bytes),
            (None, Region::Image(_)) => (kept.uses(access), false),
            (Some(other), _) => {
                let (key, other) = (|it: &Access| (it.stage, it.access, it.order), &self.others[other]);
                (key(other) == key(access), other.region == access.region)
            }
        }
    }

    /// Only the first ones stay.
    pub fn truncate(&mut self, len: usize) {
        let Some(gone) = self.all.get(len..).filter(|it| !it.is_empty()) else { return };
        if !self.others.is_empty()
            && let Some(first) = gone.iter().find_map(Kept::other)
        {
            self.others.truncate(first);
        }
        self.all.truncate(len);
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.others.clear();
    }

    /// No room is kept for more.
    pub fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    /// The first ones, with room for as many as there are here.
    pub fn first(&self, len: usize) -> AccessList {
        let mut first =
            AccessList { all: Vec::with_capacity(self.all.len()), others: Vec::with_capacity(self.others.len()) };
        first.all.extend_from_slice(&self.all[..len]);
        let others = first.all.iter().rev().find_map(Kept::other).map_or(0, |it| it + 1);
        first.others.extend_from_slice(&self.others[..others]);
        first
    }
}

impl Kept {
    /// Where it lies among the others, if it is one of them.
    #[inline]
    fn other(&self) -> Option<usize> {
        (self.stage == OTHER).then_some(self.bytes.start as usize)
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
            inset: self.inset,
            origin: self.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Area, Components, ImageRegion};

    /// Of buffers and images, with all that an access can have; one has two stages, which none should.
    fn some() -> Vec<Access> {
        let area = Some(Area { offset: [1, 2, 0], extent: [3, 4, 1] });
        let components = Components::ALL;
        let image = Region::Image(ImageRegion { aspects: 1, mips: 0..2, layers: 1..3, area, components });
        let buffer = Access::new(ResourceId(7), Region::Buffer(16..64), 1 << 40, 1 << 33);
        let certainty = Certainty::Maybe;
        vec![
            buffer.clone().of(Origin::region(3)),
            Access { certainty, ..Access::new(ResourceId(2), image.clone(), 4, 8) },
            Access { inset: 5, order: RasterOrder::Atomic, ..buffer.clone() },
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
            let same: Vec<bool> = all.iter().map(|it| list.is(at, it)).collect();
            let expected: Vec<bool> = all.iter().map(|it| it == access).collect();
            assert_eq!(same, expected, "{access:?}");
            let key = |it: &Access| (it.stage, it.access, it.order);
            for other in &all {
                let expected = (key(access) == key(other), access.region == other.region);
                assert_eq!(list.compare(at, other), expected, "{access:?} {other:?}");
                let mut more = list.clone();
                if expected.0 {
                    more.push_like(at, other, ResourceId(3));
                    assert_eq!(more.get(all.len()), Access { resource: ResourceId(3), ..other.clone() });
                }
            }
        }
        // Each of what an access has counts.
        let changes: [fn(&mut Access); 8] = [
            |it| it.resource = ResourceId(1),
            |it| it.region = Region::Buffer(16..65),
            |it| it.stage = 1,
            |it| it.access = 1,
            |it| it.order = RasterOrder::Color,
            |it| it.certainty = Certainty::Picked,
            |it| it.inset = 1,
            |it| it.origin = Origin::region(1),
        ];
        for change in changes {
            let mut other = all[0].clone();
            change(&mut other);
            assert!(!list.is(0, &other), "{other:?}");
        }
    }

    #[test]
    fn what_is_cut_off_makes_room_for_others() {
        let all = some();
        for len in 0..=all.len() {
            let mut cut = list(&all);
            cut.truncate(len);
            let first = list(&all).first(len);
            assert_eq!((cut.len(), first.len()), (len, len));
            for mut list in [cut, first] {
                list.extend(&all);
                assert_eq!(list.range(0..len), all[..len]);
                assert_eq!(list.range(len..len + all.len()), all);
                assert_eq!(list.others.len(), list.all.iter().filter_map(Kept::other).count());
            }
        }
        let mut list = list(&all);
        list.clear();
        list.push_with(&all[1], ResourceId(4));
        assert_eq!(list.range(0..1), [Access { resource: ResourceId(4), ..all[1].clone() }]);
    }
}
