//! A map from ranges of numbers that do not overlap to values.

use std::collections::BTreeMap;
use std::ops::Range;

/// Values by range. Neighbors with equal values stay apart unless [`IntervalMap::join`] is called.
#[derive(Clone, Debug)]
pub struct IntervalMap<V> {
    by_start: BTreeMap<u64, (u64, V)>,
}

impl<V> Default for IntervalMap<V> {
    fn default() -> IntervalMap<V> {
        IntervalMap { by_start: BTreeMap::new() }
    }
}

impl<V: Clone> IntervalMap<V> {
    /// The ranges that have values.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Everything that lies in `range`, cut to it, in order.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &V)> {
        let first = self.by_start.range(..=range.start).next_back().map_or(range.start, |it| *it.0);
        let all = self.by_start.range(first..range.end);
        all.filter_map(move |(start, (end, value))| {
            let cut = (*start).max(range.start)..(*end).min(range.end);
            (cut.start < cut.end).then_some((cut, value))
        })
    }

    /// Changes everything in `range`, the gaps too. What is none afterwards is a gap.
    pub fn update(&mut self, range: Range<u64>, mut change: impl FnMut(Range<u64>, &mut Option<V>)) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut at = range.start;
        while at < range.end {
            let next = self.by_start.range(at..range.end).next().map(|(start, (end, _))| (*start, *end));
            let (part, mut value) = match next {
                Some((start, end)) if start == at => (at..end, self.by_start.remove(&at).map(|it| it.1)),
                Some((start, _)) => (at..start, None),
                None => (at..range.end, None),
            };
            change(part.clone(), &mut value);
            at = part.end;
            if let Some(value) = value {
                self.by_start.insert(part.start, (part.end, value));
            }
        }
    }

    /// Takes everything out of `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        self.update(range, |_, value| *value = None);
    }

    /// Neighbors inside `range`, and at its edges, that have equal values become one.
    pub fn join(&mut self, range: Range<u64>)
    where
        V: PartialEq,
    {
        let first = self.by_start.range(..range.start).next_back().map_or(range.start, |it| *it.0);
        let mut at = first;
        while let Some((start, end)) = self.by_start.range(at..=range.end).next().map(|it| (*it.0, it.1.0)) {
            let is_same =
                self.by_start.get(&end).is_some_and(|it| Some(&it.1) == self.by_start.get(&start).map(|it| &it.1));
            if is_same {
                let next_end = self.by_start.remove(&end).map_or(end, |it| it.0);
                if let Some(it) = self.by_start.get_mut(&start) {
                    it.0 = next_end;
                }
                at = start;
            } else {
                at = end;
            }
        }
    }

    fn split(&mut self, at: u64) {
        let Some((start, (end, value))) = self.by_start.range_mut(..at).next_back() else { return };
        if *end > at {
            let (tail, value) = (*end, value.clone());
            *end = at;
            debug_assert!(*start < at, "the range before is not empty");
            self.by_start.insert(at, (tail, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_split_filled_and_joined() {
        let mut map: IntervalMap<u32> = IntervalMap::default();
        map.update(10..20, |_, value| *value = Some(1));
        map.update(15..30, |part, value| {
            assert!(part == (15..20) && *value == Some(1) || part == (20..30) && value.is_none());
            *value = Some(2);
        });
        let all: Vec<_> = map.overlapping(0..100).map(|(range, value)| (range, *value)).collect();
        assert_eq!(all, [(10..15, 1), (15..20, 2), (20..30, 2)]);
        map.join(15..30);
        assert_eq!(map.len(), 2);
        assert_eq!(map.overlapping(14..16).map(|it| it.0).collect::<Vec<_>>(), [14..15, 15..16]);
        map.remove(12..18);
        let all: Vec<_> = map.overlapping(0..100).map(|(range, value)| (range, *value)).collect();
        assert_eq!(all, [(10..12, 1), (18..30, 2)]);
    }

    /// Against an array.
    #[test]
    fn it_is_an_array_of_values() {
        let mut random = 12_345_u64;
        let mut below = |end: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        let (mut map, mut array) = (IntervalMap::<u64>::default(), [0_u64; 64]);
        for _ in 0..20_000 {
            let (start, value) = (below(64), below(5));
            let end = (start + below(20)).min(64);
            match below(4) {
                0 => map.remove(start..end),
                1 => map.join(start..end),
                _ => map.update(start..end, |_, it| *it = Some(value + 1)),
            }
            for (at, cell) in array.iter_mut().enumerate() {
                let expected = if (start..end).contains(&(at as u64)) { Some(value + 1) } else { None };
                let found = map.overlapping(at as u64..at as u64 + 1).next().map(|it| *it.1);
                let is_changed = found.unwrap_or(0) != *cell;
                assert!(!is_changed || expected.is_some() && (found.is_none() || found == expected));
                *cell = found.unwrap_or(0);
            }
        }
    }
}
