//! A map from ranges of numbers that do not overlap to values.
//!
//! Ranges lie in leaves of at most [`LEAF_MAX`] each, in order; an array of the leaves' first numbers leads to them.
//! Finding a range is two binary searches over plain numbers, and most changes stay inside one leaf.

use std::ops::Range;

/// Ranges of a leaf.
const LEAF_MAX: usize = 128;

/// Values by range. Neighbors with equal values stay apart unless [`IntervalMap::join`] is called.
#[derive(Clone, Debug)]
pub struct IntervalMap<V> {
    /// The first number of each leaf.
    firsts: Vec<u64>,
    leaves: Vec<Leaf<V>>,
    len: usize,
    /// The leaf that was looked into last, and the place there: the next look is often into the same, or to what is
    /// behind.
    last: usize,
    near: usize,
    /// Leaves of before it was cleared, empty.
    spare: Vec<Leaf<V>>,
    /// Where ranges were found that were asked for just as they are: some of them, or none at all.
    found: Vec<(u32, u32)>,
}

/// How many such ranges are remembered, at most.
const FOUND: usize = 256;
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
            firsts: Vec::new(),
            leaves: Vec::new(),
            len: 0,
            last: 0,
            near: 0,
            spare: Vec::new(),
            found: Vec::new(),
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
struct Spot {
    leaf: usize,
    at: usize,
}

/// Under which number a range is remembered, by its start.
#[inline]
fn found_at(start: u64) -> usize {
    // Starts are multiples of the same numbers, so that all of their bits must count.
    ((start ^ start >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - FOUND.trailing_zeros())) as usize
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
            if spot.at == leaf.starts.len() {
                spot = Spot { leaf: spot.leaf + 1, at: 0 };
                leaf = self.leaves.get(spot.leaf)?;
            }
            let (start, end) = (leaf.starts[spot.at], leaf.ends[spot.at]);
            if start >= range.end || range.is_empty() {
                return None;
            }
            spot.at += 1;
            Some((start.max(range.start)..end.min(range.end), &leaf.values[spot.at - 1]))
        })
    }

    /// Everything, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &V)> {
        self.overlapping(0..u64::MAX)
    }

    /// The value of a range that is there just as it is.
    #[inline]
    pub fn exact_mut(&mut self, range: &Range<u64>) -> Option<&mut V> {
        let hint = self.found.get(found_at(range.start)).map(|it| Spot { leaf: it.0 as usize, at: it.1 as usize });
        let spot = match hint.filter(|it| self.start(*it) == Some(range.start)) {
            Some(spot) => spot,
            None => self.find_exact(range.start)?,
        };
        let leaf = self.leaves.get_mut(spot.leaf)?;
        let is_exact = *leaf.ends.get(spot.at)? == range.end;
        if is_exact { leaf.values.get_mut(spot.at) } else { None }
    }

    /// A new value for a range of which nothing is there yet, to be written in its place; none if something is.
    pub fn fresh_mut(&mut self, range: &Range<u64>) -> Option<&mut V> {
        let spot = self.first_ending_after_again(range.start);
        if range.is_empty() || self.get(spot).is_some_and(|(start, _)| start < range.end) {
            return None;
        }
        let spot = self.insert(spot, range.clone(), V::default());
        self.leaves.get_mut(spot.leaf)?.values.get_mut(spot.at)
    }

    #[inline]
    fn start(&self, spot: Spot) -> Option<u64> {
        self.leaves.get(spot.leaf)?.starts.get(spot.at).copied()
    }

    /// Where the range is that starts there, which is remembered.
    fn find_exact(&mut self, start: u64) -> Option<Spot> {
        let spot = self.first_ending_after_again(start);
        if self.start(spot)? != start {
            return None;
        }
        if self.len >= FOUND_MIN {
            if self.found.is_empty() {
                self.found.resize(FOUND, (0, 0));
            }
            self.found[found_at(start)] = (spot.leaf as u32, spot.at as u32);
        }
        Some(spot)
    }

    /// Changes everything in `range`, the gaps too. What is none afterwards is a gap.
    pub fn update(&mut self, range: Range<u64>, mut change: impl FnMut(Range<u64>, &mut Option<V>)) {
        if range.is_empty() {
            return;
        }
        let spot = self.first_ending_after_again(range.start);
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
                    let mut value = Some(std::mem::take(&mut self.leaves[spot.leaf].values[spot.at]));
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
        spot: Spot,
        range: &Range<u64>,
        change: &mut impl FnMut(Range<u64>, &mut Option<V>),
    ) -> bool {
        match self.get(spot) {
            Some((start, end)) if start == range.start && end == range.end => {
                let mut value = Some(std::mem::take(&mut self.leaves[spot.leaf].values[spot.at]));
                change(range.clone(), &mut value);
                self.set(spot, value);
                true
            }
            Some((start, end)) if start <= range.start && range.end <= end => {
                let mut value = Some(self.leaves[spot.leaf].values[spot.at].clone());
                change(range.clone(), &mut value);
                self.put_inside(spot, start..end, range, value);
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
        let Spot { leaf: first, mut at } = self.first_ending_after(range.start);
        let mut end = first;
        while let Some(leaf) = self.leaves.get_mut(end) {
            let (count, until) = (leaf.starts.len(), at + leaf.starts[at..].partition_point(|it| *it < range.end));
            leaf.remove(at..until);
            self.len -= until - at;
            if let Some(start) = leaf.starts.first() {
                self.firsts[end] = *start;
            }
            if until < count {
                break;
            }
            (end, at) = (end + 1, 0);
        }
        // Those that are empty now lie one behind the other.
        let is_empty = |it: &usize| self.leaves[*it].starts.is_empty();
        let Some(begin) = (first..end).find(is_empty) else { return };
        self.leaves.drain(begin..end);
        self.firsts.drain(begin..end);
    }

    /// Takes everything out, and keeps some of the room.
    pub fn clear(&mut self) {
        self.firsts.clear();
        self.leaves.truncate(SPARE_MAX - self.spare.len());
        for mut leaf in self.leaves.drain(..) {
            leaf.clear();
            self.spare.push(leaf);
        }
        (self.len, self.last, self.near) = (0, 0, 0);
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
        self.firsts.clear();
        self.firsts.extend(self.leaves.iter().map(|it| it.starts[0]));
        (self.len, self.last) = (self.leaves.iter().map(|it| it.starts.len()).sum(), 0);
    }

    /// Neighbors inside `range`, and at its edges, that have equal values become one.
    pub fn join(&mut self, range: Range<u64>)
    where
        V: PartialEq,
    {
        let mut at = range.start.saturating_sub(1);
        loop {
            let spot = self.first_ending_after(at);
            let Some((start, end)) = self.get(spot).filter(|it| it.0 <= range.end) else { return };
            let next = self.first_ending_after(end);
            let is_same = self.get(next).is_some_and(|it| it.0 == end)
                && self.leaves[spot.leaf].values[spot.at] == self.leaves[next.leaf].values[next.at];
            if is_same {
                let end = self.leaves[next.leaf].ends[next.at];
                self.set(next, None);
                // Taking out what comes behind moves nothing in front of it, but may empty a leaf behind.
                let spot = self.first_ending_after(start);
                self.leaves[spot.leaf].ends[spot.at] = end;
                at = start;
            } else {
                at = end;
            }
        }
    }

    fn get(&self, spot: Spot) -> Option<(u64, u64)> {
        let leaf = self.leaves.get(spot.leaf)?;
        Some((*leaf.starts.get(spot.at)?, leaf.ends[spot.at]))
    }

    /// The first range that ends after a number: the one it lies in, or the next one. Where there is none, the end of
    /// the last leaf.
    fn first_ending_after(&self, number: u64) -> Spot {
        self.first_ending_after_in(self.firsts.partition_point(|it| *it <= number).saturating_sub(1), number)
    }

    /// The same, with a look into the last leaf first.
    #[inline]
    fn first_ending_after_again(&mut self, number: u64) -> Spot {
        let last = self.last;
        let is_there = self.firsts.get(last).is_some_and(|it| *it <= number)
            && self.firsts.get(last + 1).is_none_or(|it| number < *it);
        if !is_there {
            self.last = self.firsts.partition_point(|it| *it <= number).saturating_sub(1);
        }
        let spot = self.first_ending_near(number).unwrap_or_else(|| self.first_ending_after_in(self.last, number));
        self.near = spot.at;
        spot
    }

    /// If it is what was found last, or what is behind that, in the last leaf.
    #[inline]
    fn first_ending_near(&self, number: u64) -> Option<Spot> {
        let (leaf, ends) = (self.last, &self.leaves.get(self.last)?.ends[..]);
        let is_over = |at: usize| ends.get(at).is_some_and(|it| *it <= number);
        let at = match is_over(self.near) {
            true => self.near + 1,
            false if self.near == 0 || is_over(self.near - 1) => self.near,
            false => return None,
        };
        let is_there = ends.get(at).is_some_and(|it| number < *it);
        let is_end = at == ends.len() && leaf + 1 == self.leaves.len();
        (is_there || is_end).then_some(Spot { leaf, at })
    }

    #[inline]
    fn first_ending_after_in(&self, leaf: usize, number: u64) -> Spot {
        let Some(it) = self.leaves.get(leaf) else { return Spot { leaf: 0, at: 0 } };
        let at = it.ends.partition_point(|it| *it <= number);
        if at == it.ends.len() && leaf + 1 < self.leaves.len() {
            return Spot { leaf: leaf + 1, at: 0 };
        }
        Spot { leaf, at }
    }

    /// Changes a value, or takes its range out.
    fn set(&mut self, spot: Spot, value: Option<V>) {
        let leaf = &mut self.leaves[spot.leaf];
        match value {
            Some(value) => leaf.values[spot.at] = value,
            None => {
                leaf.remove(spot.at..spot.at + 1);
                self.len -= 1;
                if leaf.starts.is_empty() {
                    self.leaves.remove(spot.leaf);
                    self.firsts.remove(spot.leaf);
                } else {
                    self.firsts[spot.leaf] = leaf.starts[0];
                }
            }
        }
    }

    /// Puts a range in front of the one at a spot; nothing of it is there yet. Gives where it is then.
    fn insert(&mut self, spot: Spot, range: Range<u64>, value: V) -> Spot {
        self.len += 1;
        if self.leaves.is_empty() {
            self.firsts.push(range.start);
            let mut leaf = self.spare.pop().unwrap_or_default();
            leaf.insert(0, range, value);
            self.leaves.push(leaf);
            return Spot { leaf: 0, at: 0 };
        }
        let spot = self.make_room(spot);
        let leaf = &mut self.leaves[spot.leaf];
        leaf.insert(spot.at, range, value);
        self.firsts[spot.leaf] = leaf.starts[0];
        spot
    }

    /// A full leaf is split before something is put into it, so that no leaf ever has room for more. Gives the spot as
    /// it is then.
    fn make_room(&mut self, spot: Spot) -> Spot {
        let len = self.leaves[spot.leaf].starts.len();
        if len < LEAF_MAX {
            return spot;
        }
        let is_last = spot.leaf + 1 == self.leaves.len() && spot.at == len;
        if is_last {
            // At the end of everything, most likely more is to come: the old leaf stays full.
            self.firsts.push(u64::MAX);
            self.leaves.push(self.spare.pop().unwrap_or_default());
            return Spot { leaf: spot.leaf + 1, at: 0 };
        }
        let at = LEAF_MAX / 2;
        let leaf = &mut self.leaves[spot.leaf];
        let new = Leaf {
            starts: leaf.starts.split_off(at),
            ends: leaf.ends.split_off(at),
            values: leaf.values.split_off(at),
        };
        self.firsts.insert(spot.leaf + 1, new.starts[0]);
        self.leaves.insert(spot.leaf + 1, new);
        match spot.at.checked_sub(at) {
            Some(at) if at > 0 => Spot { leaf: spot.leaf + 1, at },
            _ => spot,
        }
    }

    /// A part of a range gets another value, or becomes a gap. It is not all of the range.
    fn put_inside(&mut self, mut spot: Spot, whole: Range<u64>, part: &Range<u64>, value: Option<V>) {
        let leaf = &mut self.leaves[spot.leaf];
        if whole.start < part.start {
            // What is in front of it stays where it is.
            leaf.ends[spot.at] = part.start;
            let behind = (part.end < whole.end).then(|| leaf.values[spot.at].clone());
            spot.at += 1;
            if let Some(behind) = behind {
                spot = self.insert(spot, part.end..whole.end, behind);
            }
        } else {
            leaf.starts[spot.at] = part.end;
            self.firsts[spot.leaf] = leaf.starts[0];
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
            leaf.ends[spot.at] = at;
            let value = leaf.values[spot.at].clone();
            self.insert(Spot { leaf: spot.leaf, at: spot.at + 1 }, at..end, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        map.join(15..30);
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
            map.update(part.clone(), |at, it| {
                assert_eq!((at, *it), (part.clone(), Some(1)));
                *it = value;
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

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }
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
        let mut random = Random(7);
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
                1 => map.join(start..end),
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
                    match map.fresh_mut(&(start..end)) {
                        Some(it) if is_fresh => {
                            *it = value;
                            own.fill(value);
                        }
                        it => assert!(it.is_none() && !is_fresh, "round {round}"),
                    }
                }
                4 => {
                    let is_there = map.iter().any(|(it, _)| it == (start..end));
                    let own = map.exact_mut(&(start..end));
                    assert_eq!(own.is_some(), is_there, "round {round}");
                    if let Some(it) = own {
                        *it = value;
                        array[start as usize..end as usize].fill(value);
                    }
                }
                5 => {
                    let mut parts = 0;
                    map.update(start..end, |_, it| {
                        (parts, *it) = (parts + 1, it.filter(|it| *it != value));
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
        map.join(0..1000);
        assert_eq!(all(&map, 0..1000), [(0..250, 0), (250..500, 1), (500..750, 2), (750..1000, 3)]);
    }
}
