//! A map from ranges of numbers that do not overlap to values.
//!
//! Ranges lie in leaves of at most [`LEAF_MAX`] each, in order; an array of the leaves' first numbers leads to them.
//! Finding a range is two binary searches over plain numbers, and most changes stay inside one leaf.

use std::ops::Range;

/// Ranges of a leaf.
const LEAF_MAX: usize = 128;

/// Values by range. Neighbors with equal values stay apart unless [`IntervalMap::merge_equal_neighbors`] is called.
#[derive(Clone, Debug)]
pub struct IntervalMap<V> {
    /// The first number of each leaf.
    leaf_starts: Vec<u64>,
    leaves: Vec<Leaf<V>>,
    len: usize,
    /// The leaf of the last look-up, and the place in it: the next look-up is often in the same leaf, or in the next
    /// place.
    last_leaf: usize,
    last_index: usize,
    /// Leaves of before it was cleared, empty.
    spare_leaves: Vec<Leaf<V>>,
    /// Places of exact ranges that were looked up before: some of them, or none at all.
    lookup_cache: Vec<(u32, u32)>,
}

/// How many such ranges are remembered, at most.
const LOOKUP_CACHE_SIZE: usize = 256;
/// Below this many ranges there is nothing to gain.
const FOUND_MIN: usize = 8;

/// Leaves whose room is kept when everything goes.
const SPARE_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Leaf<V> {
    starts: Vec<u64>,
    ends: Vec<u64>,
    values: Vec<V>,
}

impl<V> Default for IntervalMap<V> {
    fn default() -> IntervalMap<V> {
        IntervalMap {
            leaf_starts: Vec::new(),
            leaves: Vec::new(),
            len: 0,
            last_leaf: 0,
            last_index: 0,
            spare_leaves: Vec::new(),
            lookup_cache: Vec::new(),
        }
    }
}

impl<V> Default for Leaf<V> {
    fn default() -> Leaf<V> {
        Leaf { starts: Vec::new(), ends: Vec::new(), values: Vec::new() }
    }
}

impl<V> Leaf<V> {
    fn insert(&mut self, at: usize, range: Range<u64>, value: V) {
        self.starts.insert(at, range.start);
        self.ends.insert(at, range.end);
        self.values.insert(at, value);
    }

    fn remove(&mut self, those: Range<usize>) {
        self.starts.drain(those.clone());
        self.ends.drain(those.clone());
        self.values.drain(those);
    }

    fn clear(&mut self) {
        self.starts.clear();
        self.ends.clear();
        self.values.clear();
    }
}

/// Where a range lies: its leaf and its place there. The place may be one past the end.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LeafCursor {
    leaf: usize,
    index: usize,
}

/// Under which number a range is remembered, by its start.
#[inline]
fn lookup_cache_slot(start: u64) -> usize {
    // Starts are multiples of the same numbers, so that all of their bits must count.
    ((start ^ start >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - LOOKUP_CACHE_SIZE.trailing_zeros())) as usize
}

impl<V: Clone + Default> IntervalMap<V> {
    /// The ranges that have values.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Everything that lies in `range`, cut to it, in order.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &V)> {
        let mut spot = self.first_ending_after(range.start);
        std::iter::from_fn(move || {
            let mut leaf = self.leaves.get(spot.leaf)?;
            if spot.index == leaf.starts.len() {
                spot = LeafCursor { leaf: spot.leaf + 1, index: 0 };
                leaf = self.leaves.get(spot.leaf)?;
            }
            let (start, end) = (leaf.starts[spot.index], leaf.ends[spot.index]);
            if start >= range.end || range.is_empty() {
                return None;
            }
            spot.index += 1;
            Some((start.max(range.start)..end.min(range.end), &leaf.values[spot.index - 1]))
        })
    }

    /// Everything, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &V)> {
        self.overlapping(0..u64::MAX)
    }

    /// The value of a range that is in the map exactly.
    #[inline]
    pub fn get_exact_mut(&mut self, range: &Range<u64>) -> Option<&mut V> {
        let hint = self
            .lookup_cache
            .get(lookup_cache_slot(range.start))
            .map(|it| LeafCursor { leaf: it.0 as usize, index: it.1 as usize });
        let spot = match hint.filter(|it| self.start(*it) == Some(range.start)) {
            Some(spot) => spot,
            None => self.find_exact(range.start)?,
        };
        let leaf = self.leaves.get_mut(spot.leaf)?;
        let is_exact = *leaf.ends.get(spot.index)? == range.end;
        if is_exact { leaf.values.get_mut(spot.index) } else { None }
    }

    /// A new value for a range of which nothing is there yet, to be written in its place; none if something is.
    pub fn insert_default_if_vacant(&mut self, range: &Range<u64>) -> Option<&mut V> {
        let spot = self.first_ending_after_cached(range.start);
        if range.is_empty() || self.get(spot).is_some_and(|(start, _)| start < range.end) {
            return None;
        }
        let spot = self.insert(spot, range.clone(), V::default());
        self.leaves.get_mut(spot.leaf)?.values.get_mut(spot.index)
    }

    #[inline]
    fn start(&self, spot: LeafCursor) -> Option<u64> {
        self.leaves.get(spot.leaf)?.starts.get(spot.index).copied()
    }

    /// Where the range is that starts there, which is remembered.
    fn find_exact(&mut self, start: u64) -> Option<LeafCursor> {
        let spot = self.first_ending_after_cached(start);
        if self.start(spot)? != start {
            return None;
        }
        if self.len >= FOUND_MIN {
            if self.lookup_cache.is_empty() {
                self.lookup_cache.resize(LOOKUP_CACHE_SIZE, (0, 0));
            }
            self.lookup_cache[lookup_cache_slot(start)] = (spot.leaf as u32, spot.index as u32);
        }
        Some(spot)
    }

    /// Changes everything in `range`, the gaps too. What is none afterwards is a gap.
    pub fn update(&mut self, range: Range<u64>, mut change: impl FnMut(Range<u64>, &mut Option<V>)) {
        if range.is_empty() {
            return;
        }
        let spot = self.first_ending_after_cached(range.start);
        if self.update_one(spot, &range, &mut change) {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut at = range.start;
        while at < range.end {
            let spot = self.first_ending_after(at);
            let next = self.get(spot).map(|(start, end)| start..end).filter(|it| it.start < range.end);
            match next {
                Some(part) if part.start == at => {
                    let mut value = Some(std::mem::take(&mut self.leaves[spot.leaf].values[spot.index]));
                    change(part.clone(), &mut value);
                    self.set(spot, value);
                    at = part.end;
                }
                gap => {
                    let part = at..gap.map_or(range.end, |it| it.start);
                    let mut value = None;
                    change(part.clone(), &mut value);
                    at = part.end;
                    if let Some(value) = value {
                        self.insert(spot, part, value);
                    }
                }
            }
        }
    }

    /// The common cases: exactly one range that is there, a part of one, or one gap.
    fn update_one(
        &mut self,
        spot: LeafCursor,
        range: &Range<u64>,
        change: &mut impl FnMut(Range<u64>, &mut Option<V>),
    ) -> bool {
        match self.get(spot) {
            Some((start, end)) if start == range.start && end == range.end => {
                let mut value = Some(std::mem::take(&mut self.leaves[spot.leaf].values[spot.index]));
                change(range.clone(), &mut value);
                self.set(spot, value);
                true
            }
            Some((start, end)) if start <= range.start && range.end <= end => {
                let mut value = Some(self.leaves[spot.leaf].values[spot.index].clone());
                change(range.clone(), &mut value);
                self.replace_part(spot, start..end, range, value);
                true
            }
            Some((start, _)) if start < range.end => false,
            _ => {
                let mut value = None;
                change(range.clone(), &mut value);
                if let Some(value) = value {
                    self.insert(spot, range.clone(), value);
                }
                true
            }
        }
    }

    /// Takes everything out of `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let LeafCursor { leaf: first, index: mut at } = self.first_ending_after(range.start);
        let mut end = first;
        while let Some(leaf) = self.leaves.get_mut(end) {
            let (count, until) = (leaf.starts.len(), at + leaf.starts[at..].partition_point(|it| *it < range.end));
            leaf.remove(at..until);
            self.len -= until - at;
            if let Some(start) = leaf.starts.first() {
                self.leaf_starts[end] = *start;
            }
            if until < count {
                break;
            }
            (end, at) = (end + 1, 0);
        }
        // The leaves that are empty now are neighbors.
        let is_empty = |it: &usize| self.leaves[*it].starts.is_empty();
        let Some(begin) = (first..end).find(is_empty) else { return };
        self.leaves.drain(begin..end);
        self.leaf_starts.drain(begin..end);
    }

    /// Takes everything out, and keeps some of the room.
    pub fn clear(&mut self) {
        self.leaf_starts.clear();
        self.leaves.truncate(SPARE_MAX - self.spare_leaves.len());
        for mut leaf in self.leaves.drain(..) {
            leaf.clear();
            self.spare_leaves.push(leaf);
        }
        (self.len, self.last_leaf, self.last_index) = (0, 0, 0);
    }

    /// Keeps only the ranges whose values fit.
    pub fn retain(&mut self, mut fits: impl FnMut(&V) -> bool) {
        for leaf in &mut self.leaves {
            let mut kept = 0;
            for at in 0..leaf.values.len() {
                if fits(&leaf.values[at]) {
                    leaf.starts.swap(kept, at);
                    leaf.ends.swap(kept, at);
                    leaf.values.swap(kept, at);
                    kept += 1;
                }
            }
            leaf.starts.truncate(kept);
            leaf.ends.truncate(kept);
            leaf.values.truncate(kept);
        }
        self.leaves.retain(|it| !it.starts.is_empty());
        self.leaf_starts.clear();
        self.leaf_starts.extend(self.leaves.iter().map(|it| it.starts[0]));
        (self.len, self.last_leaf) = (self.leaves.iter().map(|it| it.starts.len()).sum(), 0);
    }

    /// Neighbors inside `range`, and at its edges, that have equal values become one.
    pub fn merge_equal_neighbors(&mut self, range: Range<u64>)
    where
        V: PartialEq,
    {
        let mut at = range.start.saturating_sub(1);
        loop {
            let spot = self.first_ending_after(at);
            let Some((start, end)) = self.get(spot).filter(|it| it.0 <= range.end) else { return };
            let next = self.first_ending_after(end);
            let is_same = self.get(next).is_some_and(|it| it.0 == end)
                && self.leaves[spot.leaf].values[spot.index] == self.leaves[next.leaf].values[next.index];
            if is_same {
                let end = self.leaves[next.leaf].ends[next.index];
                self.set(next, None);
                // Taking out what comes behind moves nothing in front of it, but may empty a leaf behind.
                let spot = self.first_ending_after(start);
                self.leaves[spot.leaf].ends[spot.index] = end;
                at = start;
            } else {
                at = end;
            }
        }
    }

    fn get(&self, spot: LeafCursor) -> Option<(u64, u64)> {
        let leaf = self.leaves.get(spot.leaf)?;
        Some((*leaf.starts.get(spot.index)?, leaf.ends[spot.index]))
    }

    /// The first range that ends after a number: the one it lies in, or the next one. Where there is none, the end of
    /// the last leaf.
    fn first_ending_after(&self, number: u64) -> LeafCursor {
        self.first_ending_after_in(self.leaf_starts.partition_point(|it| *it <= number).saturating_sub(1), number)
    }

    /// The same, with a check of the last leaf first.
    #[inline]
    fn first_ending_after_cached(&mut self, number: u64) -> LeafCursor {
        let last = self.last_leaf;
        let is_there = self.leaf_starts.get(last).is_some_and(|it| *it <= number)
            && self.leaf_starts.get(last + 1).is_none_or(|it| number < *it);
        if !is_there {
            self.last_leaf = self.leaf_starts.partition_point(|it| *it <= number).saturating_sub(1);
        }
        let spot = self.first_ending_near(number).unwrap_or_else(|| self.first_ending_after_in(self.last_leaf, number));
        self.last_index = spot.index;
        spot
    }

    /// If the last leaf has it, at the last place or at the next one.
    #[inline]
    fn first_ending_near(&self, number: u64) -> Option<LeafCursor> {
        let (leaf, ends) = (self.last_leaf, &self.leaves.get(self.last_leaf)?.ends[..]);
        let is_over = |at: usize| ends.get(at).is_some_and(|it| *it <= number);
        let at = match is_over(self.last_index) {
            true => self.last_index + 1,
            false if self.last_index == 0 || is_over(self.last_index - 1) => self.last_index,
            false => return None,
        };
        let is_there = ends.get(at).is_some_and(|it| number < *it);
        let is_end = at == ends.len() && leaf + 1 == self.leaves.len();
        (is_there || is_end).then_some(LeafCursor { leaf, index: at })
    }

    #[inline]
    fn first_ending_after_in(&self, leaf: usize, number: u64) -> LeafCursor {
        let Some(other) = self.leaves.get(leaf) else { return LeafCursor { leaf: 0, index: 0 } };
        let at = other.ends.partition_point(|it| *it <= number);
        if at == other.ends.len() && leaf + 1 < self.leaves.len() {
            return LeafCursor { leaf: leaf + 1, index: 0 };
        }
        LeafCursor { leaf, index: at }
    }

    /// Changes a value, or takes its range out.
    fn set(&mut self, spot: LeafCursor, value: Option<V>) {
        let leaf = &mut self.leaves[spot.leaf];
        match value {
            Some(value) => leaf.values[spot.index] = value,
            None => {
                leaf.remove(spot.index..spot.index + 1);
                self.len -= 1;
                if leaf.starts.is_empty() {
                    self.leaves.remove(spot.leaf);
                    self.leaf_starts.remove(spot.leaf);
                } else {
                    self.leaf_starts[spot.leaf] = leaf.starts[0];
                }
            }
        }
    }

    /// Puts a range in front of the one at a spot; nothing of it is there yet. Gives where it is then.
    fn insert(&mut self, spot: LeafCursor, range: Range<u64>, value: V) -> LeafCursor {
        self.len += 1;
        if self.leaves.is_empty() {
            self.leaf_starts.push(range.start);
            let mut leaf = self.spare_leaves.pop().unwrap_or_default();
            leaf.insert(0, range, value);
            self.leaves.push(leaf);
            return LeafCursor { leaf: 0, index: 0 };
        }
        let spot = self.split_full_leaf(spot);
        let leaf = &mut self.leaves[spot.leaf];
        leaf.insert(spot.index, range, value);
        self.leaf_starts[spot.leaf] = leaf.starts[0];
        spot
    }

    /// A full leaf is split before an insertion, so that no leaf ever exceeds its capacity. Returns the place after the
    /// split.
    fn split_full_leaf(&mut self, spot: LeafCursor) -> LeafCursor {
        let len = self.leaves[spot.leaf].starts.len();
        if len < LEAF_MAX {
            return spot;
        }
        let is_last = spot.leaf + 1 == self.leaves.len() && spot.index == len;
        if is_last {
            // At the end of everything, most likely more is to come: the old leaf stays full.
            self.leaf_starts.push(u64::MAX);
            self.leaves.push(self.spare_leaves.pop().unwrap_or_default());
            return LeafCursor { leaf: spot.leaf + 1, index: 0 };
        }
        let at = LEAF_MAX / 2;
        let leaf = &mut self.leaves[spot.leaf];
        let new = Leaf {
            starts: leaf.starts.split_off(at),
            ends: leaf.ends.split_off(at),
            values: leaf.values.split_off(at),
        };
        self.leaf_starts.insert(spot.leaf + 1, new.starts[0]);
        self.leaves.insert(spot.leaf + 1, new);
        match spot.index.checked_sub(at) {
            Some(at) if at > 0 => LeafCursor { leaf: spot.leaf + 1, index: at },
            _ => spot,
        }
    }

    /// A part of a range gets another value, or becomes a gap. It is not all of the range.
    fn replace_part(&mut self, mut spot: LeafCursor, whole: Range<u64>, part: &Range<u64>, value: Option<V>) {
        let leaf = &mut self.leaves[spot.leaf];
        if whole.start < part.start {
            // Entries before it stay in place.
            leaf.ends[spot.index] = part.start;
            let behind = (part.end < whole.end).then(|| leaf.values[spot.index].clone());
            spot.index += 1;
            if let Some(behind) = behind {
                spot = self.insert(spot, part.end..whole.end, behind);
            }
        } else {
            leaf.starts[spot.index] = part.end;
            self.leaf_starts[spot.leaf] = leaf.starts[0];
        }
        if let Some(value) = value {
            self.insert(spot, part.clone(), value);
        }
    }

    /// A range that a number lies inside of becomes two.
    fn split(&mut self, at: u64) {
        let spot = self.first_ending_after(at);
        let Some((start, end)) = self.get(spot) else { return };
        if start < at {
            let leaf = &mut self.leaves[spot.leaf];
            leaf.ends[spot.index] = at;
            let value = leaf.values[spot.index].clone();
            self.insert(LeafCursor { leaf: spot.leaf, index: spot.index + 1 }, at..end, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    fn all(map: &IntervalMap<u32>, range: Range<u64>) -> Vec<(Range<u64>, u32)> {
        map.overlapping(range).map(|(range, value)| (range, *value)).collect()
    }

    #[test]
    fn ranges_are_split_filled_and_joined() {
        let mut map: IntervalMap<u32> = IntervalMap::default();
        map.update(10..20, |_, value| *value = Some(1));
        map.update(15..30, |part, value| {
            assert!(part == (15..20) && *value == Some(1) || part == (20..30) && value.is_none());
            *value = Some(2);
        });
        assert_eq!(all(&map, 0..100), [(10..15, 1), (15..20, 2), (20..30, 2)]);
        map.merge_equal_neighbors(15..30);
        assert_eq!(map.len(), 2);
        assert_eq!(all(&map, 14..16), [(14..15, 1), (15..16, 2)]);
        map.remove(12..18);
        assert_eq!(all(&map, 0..100), [(10..12, 1), (18..30, 2)]);
    }

    #[test]
    fn a_part_of_a_range_changes_alone() {
        let whole = |part: Range<u64>, value: Option<u32>| {
            let mut map: IntervalMap<u32> = IntervalMap::default();
            map.update(10..20, |_, it| *it = Some(1));
            map.update(part.clone(), |at, number| {
                assert_eq!((at, *number), (part.clone(), Some(1)));
                *number = value;
            });
            assert_eq!(map.len(), map.iter().count());
            all(&map, 0..100)
        };
        assert_eq!(whole(10..12, Some(2)), [(10..12, 2), (12..20, 1)]);
        assert_eq!(whole(14..20, Some(2)), [(10..14, 1), (14..20, 2)]);
        assert_eq!(whole(12..14, Some(2)), [(10..12, 1), (12..14, 2), (14..20, 1)]);
        assert_eq!(whole(10..12, None), [(12..20, 1)]);
        assert_eq!(whole(14..20, None), [(10..14, 1)]);
        assert_eq!(whole(12..14, None), [(10..12, 1), (14..20, 1)]);
    }

    fn as_array(map: &IntervalMap<u32>, size: usize) -> Vec<u32> {
        let mut found = vec![0; size];
        for (range, value) in map.overlapping(0..size as u64) {
            found[range.start as usize..range.end as usize].fill(*value);
        }
        assert_eq!(map.overlapping(0..u64::MAX).count(), map.len());
        found
    }

    /// Against an array, in a space large enough for several leaves.
    #[test]
    fn it_is_an_array_of_values() {
        const SIZE: usize = 2000;
        let mut random = TestRng::new(7);
        let (mut map, mut array) = (IntervalMap::<u32>::default(), vec![0_u32; SIZE]);
        for round in 0..40_000 {
            let start = random.below(SIZE as u64);
            let end = (start + 1 + random.below(if round % 100 == 0 { 500 } else { 6 })).min(SIZE as u64);
            let value = random.below(3) as u32 + 1;
            match random.below(8) {
                0 => {
                    map.remove(start..end);
                    array[start as usize..end as usize].fill(0);
                }
                1 => map.merge_equal_neighbors(start..end),
                _ if round % 1_000 == 500 => {
                    map.retain(|it| *it != value);
                    array.iter_mut().filter(|it| **it == value).for_each(|it| *it = 0);
                }
                _ if round % 10_000 == 5_000 => {
                    map.clear();
                    assert!(map.is_empty() && map.iter().next().is_none());
                    array.fill(0);
                }
                2 => {
                    map.update(start..end, |_, it| *it = it.map(|it| it % 3 + 1));
                    array[start as usize..end as usize]
                        .iter_mut()
                        .filter(|it| **it > 0)
                        .for_each(|it| *it = *it % 3 + 1);
                }
                3 => {
                    let own = &mut array[start as usize..end as usize];
                    let is_fresh = own.iter().all(|it| *it == 0);
                    match map.insert_default_if_vacant(&(start..end)) {
                        Some(item) if is_fresh => {
                            *item = value;
                            own.fill(value);
                        }
                        number => assert!(number.is_none() && !is_fresh, "round {round}"),
                    }
                }
                4 => {
                    let is_there = map.iter().any(|(it, _)| it == (start..end));
                    let own = map.get_exact_mut(&(start..end));
                    assert_eq!(own.is_some(), is_there, "round {round}");
                    if let Some(number) = own {
                        *number = value;
                        array[start as usize..end as usize].fill(value);
                    }
                }
                5 => {
                    let mut parts = 0;
                    map.update(start..end, |_, number| {
                        (parts, *number) = (parts + 1, number.filter(|it| *it != value));
                    });
                    let own = &mut array[start as usize..end as usize];
                    own.iter_mut().filter(|it| **it == value).for_each(|it| *it = 0);
                    assert!(parts > 0 && parts <= own.len(), "round {round}");
                }
                _ => {
                    map.update(start..end, |_, it| *it = Some(value));
                    array[start as usize..end as usize].fill(value);
                }
            }
            if round % 50 == 0 {
                assert_eq!(as_array(&map, SIZE), array, "round {round}");
            }
        }
        assert!(map.leaves.len() > 3, "{} leaves", map.leaves.len());
    }

    #[test]
    fn joining_leaves_no_equal_neighbors() {
        let mut map: IntervalMap<u32> = IntervalMap::default();
        for at in 0..1000_u64 {
            map.update(at..at + 1, |_, it| *it = Some((at / 250) as u32));
        }
        map.merge_equal_neighbors(0..1000);
        assert_eq!(all(&map, 0..1000), [(0..250, 0), (250..500, 1), (500..750, 2), (750..1000, 3)]);
    }
}
