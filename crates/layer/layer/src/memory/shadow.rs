//! The contents of a memory in the trace: zeros at first, and then the recorded writes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use lavascope_platform::bytes::changed_bytes;

/// Bytes that are compared together; a record holds no more. Several records fit into a chunk of a stream.
pub(super) const SEGMENT_BYTES: usize = 16 << 10;

/// Bytes that are compared at once.
const WORD: usize = 8;
/// Where so many bytes are equal, a run of bytes ends: the device may use just these.
const ELEMENT: usize = 4;

/// Bytes that all copies have. Relaxed: a little more or less does no harm.
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);

/// A copy of the bytes that are not zero, by number of the segment.
#[derive(Default)]
pub(super) struct Shadow {
    segments: HashMap<u64, Box<[u8]>>,
    /// Whether bytes were skipped because there are too many copies.
    pub(super) is_cut: bool,
}

impl Drop for Shadow {
    fn drop(&mut self) {
        COPIED_BYTES.fetch_sub((self.segments.len() * SEGMENT_BYTES) as u64, Ordering::Relaxed);
    }
}

impl Shadow {
    /// Whether the bytes at an offset have a copy, or may get one while all copies have at most so many bytes.
    pub(super) fn has_room(&self, offset: u64, bytes_max: u64) -> bool {
        let is_known = || self.segments.contains_key(&(offset / SEGMENT_BYTES as u64));
        COPIED_BYTES.load(Ordering::Relaxed) < bytes_max || is_known()
    }

    /// Compares bytes of one segment, from an offset on. Returns the ranges of new bytes, relative to that offset.
    pub(super) fn update(&mut self, offset: u64, live: &[u8], changed: &mut Vec<Range<usize>>) {
        self.update_exactly(offset, live, changed, None);
    }

    /// Compares bytes likewise, and keeps the copy as it is. Returns whether any is new; `bits` then has one bit for each
    /// byte, whether it is.
    pub(super) fn compare(&self, offset: u64, live: &[u8], bits: &mut Vec<u64>) -> bool {
        let (segment, inside) = (offset / SEGMENT_BYTES as u64, (offset % SEGMENT_BYTES as u64) as usize);
        let zeros = &[0; SEGMENT_BYTES][..live.len()];
        let old = self.segments.get(&segment).map_or(zeros, |it| &it[inside..inside + live.len()]);
        bits.clear();
        if old == live {
            return false;
        }
        changed_bits(old, live, bits);
        true
    }

    /// Compares bytes likewise. Returns whether any is new; `bits` then has one bit for each byte, whether it is.
    pub(super) fn update_bits(&mut self, offset: u64, live: &[u8], bits: &mut Vec<u64>) -> bool {
        let (segment, inside) = (offset / SEGMENT_BYTES as u64, (offset % SEGMENT_BYTES as u64) as usize);
        let zeros = &[0; SEGMENT_BYTES][..live.len()];
        bits.clear();
        match self.segments.get_mut(&segment).map(|it| &mut it[inside..inside + live.len()]) {
            Some(old) if *old == *live => return false,
            Some(old) => {
                changed_bits(old, live, bits);
                old.copy_from_slice(live);
            }
            None if zeros == live => return false,
            None => {
                changed_bits(zeros, live, bits);
                self.set(offset, live);
            }
        }
        true
    }

    /// The same. Also returns the ranges without any byte that is equal.
    pub(super) fn update_exactly(
        &mut self,
        offset: u64,
        live: &[u8],
        changed: &mut Vec<Range<usize>>,
        exact: Option<&mut Vec<Range<usize>>>,
    ) {
        let (segment, inside) = (offset / SEGMENT_BYTES as u64, (offset % SEGMENT_BYTES as u64) as usize);
        debug_assert!(inside + live.len() <= SEGMENT_BYTES);
        match self.segments.get_mut(&segment) {
            Some(old) => {
                let old = &mut old[inside..inside + live.len()];
                differences(old, live, changed);
                if let Some(exact) = exact {
                    changed.iter().for_each(|it| split_run(old, live, it.clone(), exact));
                }
                changed.iter().for_each(|it| old[it.clone()].copy_from_slice(&live[it.clone()]));
            }
            None => {
                let zeros = &[0; SEGMENT_BYTES][..live.len()];
                differences(zeros, live, changed);
                if let Some(exact) = exact {
                    changed.iter().for_each(|it| split_run(zeros, live, it.clone(), exact));
                }
                if !changed.is_empty() {
                    let mut new = vec![0; SEGMENT_BYTES].into_boxed_slice();
                    new[inside..inside + live.len()].copy_from_slice(live);
                    self.segments.insert(segment, new);
                    COPIED_BYTES.fetch_add(SEGMENT_BYTES as u64, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Shadow {
    /// The segments that are not zeros, in their order: the offset of each, and its bytes.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let all = self.segments.iter().map(|it| (it.0 * SEGMENT_BYTES as u64, &it.1[..]));
        let mut all: Vec<(u64, &[u8])> = all.collect();
        all.sort_unstable_by_key(|it| it.0);
        all.into_iter()
    }

    /// Sets bytes of one segment.
    pub(super) fn set(&mut self, offset: u64, bytes: &[u8]) {
        let (segment, inside) = (offset / SEGMENT_BYTES as u64, (offset % SEGMENT_BYTES as u64) as usize);
        let own = self.segments.entry(segment).or_insert_with(|| {
            COPIED_BYTES.fetch_add(SEGMENT_BYTES as u64, Ordering::Relaxed);
            vec![0; SEGMENT_BYTES].into_boxed_slice()
        });
        own[inside..inside + bytes.len()].copy_from_slice(bytes);
    }
}

/// The runs of bytes that differ; equal bytes are in them where there are too few for the run to end.
fn differences(old: &[u8], new: &[u8], found: &mut Vec<Range<usize>>) {
    // By far the most are equal, which is found out fast.
    if old == new {
        return;
    }
    let mut open: Option<usize> = None;
    let word = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|it| bytes[it]));
    let mut note = |at: usize, differs: bool| match (differs, open) {
        (true, None) => open = Some(at),
        (false, Some(start)) => {
            found.push(trimmed(old, new, start..at));
            open = None;
        }
        _ => {}
    };
    let whole = new.len() / WORD * WORD;
    for (index, (own, other)) in old.chunks_exact(WORD).zip(new.chunks_exact(WORD)).enumerate() {
        let different = word(own) ^ word(other);
        note(index * WORD, different as u32 != 0);
        note(index * WORD + ELEMENT, different >> 32 != 0);
    }
    for at in (whole..new.len()).step_by(ELEMENT) {
        let end = (at + ELEMENT).min(new.len());
        note(at, old[at..end] != new[at..end]);
    }
    found.extend(open.map(|start| trimmed(old, new, start..new.len())));
}

/// Adds one bit for each byte: whether it differs.
fn changed_bits(old: &[u8], new: &[u8], bits: &mut Vec<u64>) {
    let ((old, old_rest), (new, new_rest)) = (old.as_chunks(), new.as_chunks());
    bits.extend(old.iter().zip(new).map(|it| changed_bytes(it.0, it.1)));
    if !new_rest.is_empty() {
        let rest = old_rest.iter().zip(new_rest).enumerate();
        bits.push(rest.fold(0, |all, (index, it)| all | u64::from(it.0 != it.1) << index));
    }
}

/// A run without the equal bytes at its ends; there is one that differs.
fn trimmed(old: &[u8], new: &[u8], run: Range<usize>) -> Range<usize> {
    let differs = |it: &usize| old[*it] != new[*it];
    let first = run.clone().find(differs).unwrap_or(run.start);
    let last = run.clone().rfind(differs).unwrap_or(run.start);
    first..last + 1
}

/// Adds the parts of a run in which each byte differs.
fn split_run(old: &[u8], new: &[u8], run: Range<usize>, parts: &mut Vec<Range<usize>>) {
    let mut at = run.start;
    while at < run.end {
        let size = equal_bytes(&old[at..run.end], &new[at..run.end]);
        let start = at + size;
        at = start + different_bytes(&old[start..run.end], &new[start..run.end]);
        if start < at {
            parts.push(start..at);
        }
    }
}

/// The number of bytes at the beginning that are equal.
fn equal_bytes(old: &[u8], new: &[u8]) -> usize {
    old.iter().zip(new).take_while(|it| it.0 == it.1).count()
}

/// The number of bytes at the beginning that differ.
fn different_bytes(old: &[u8], new: &[u8]) -> usize {
    let word = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|it| bytes[it]));
    // A word without a zero byte differs in all bytes.
    let has_zero = |it: u64| it.wrapping_sub(0x0101_0101_0101_0101) & !it & 0x8080_8080_8080_8080 != 0;
    let words = old.chunks_exact(WORD).zip(new.chunks_exact(WORD));
    let size = words.take_while(|it| !has_zero(word(it.0) ^ word(it.1))).count() * WORD;
    size + old[size..].iter().zip(&new[size..]).take_while(|it| it.0 != it.1).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    #[test]
    fn what_is_reported_is_what_differs_and_is_reported_once() {
        let mut shadow = Shadow::default();
        const NONE: [Range<usize>; 0] = [];
        let mut take = |offset: u64, live: &[u8]| {
            let mut changed = Vec::new();
            shadow.update(offset, live, &mut changed);
            changed
        };
        assert_eq!(take(0, &[0; 100]), NONE, "zeros are not reported");
        let mut live = [0; 100];
        (live[3], live[99]) = (1, 2);
        assert_eq!(take(0, &live), [3..4, 99..100]);
        assert_eq!(take(0, &live), NONE);
        live[3] = 0;
        assert_eq!(take(0, &live), std::slice::from_ref(&(3..4)), "zeros are reported where there was something else");
        // Changes close to each other are one range; distant ones are separate.
        (live[40], live[46], live[70]) = (5, 6, 7);
        assert_eq!(take(0, &live), [40..47, 70..71]);
        // From the middle of another segment on.
        assert_eq!(take(SEGMENT_BYTES as u64 + 8, &live[40..47]), std::slice::from_ref(&(0..7)));
        assert_eq!(take(SEGMENT_BYTES as u64 + 9, &live[41..47]), NONE);
    }

    #[test]
    fn exact_ranges_have_all_bytes_that_differ_and_no_other() {
        let (mut shadow, mut live, mut rng) = (Shadow::default(), vec![0u8; SEGMENT_BYTES], TestRng::new(5));
        for _ in 0..500 {
            let before = live.clone();
            for _ in 0..rng.below(6) {
                let (start, size) = (rng.below(SEGMENT_BYTES - 80), rng.below(80));
                let density = 1 + rng.below(4);
                live[start..start + size].iter_mut().for_each(|it| *it ^= u8::from(rng.below(density) == 0));
            }
            let (mut changed, mut exact) = (Vec::new(), Vec::new());
            shadow.update_exactly(0, &live, &mut changed, Some(&mut exact));
            let wanted: Vec<usize> = (0..live.len()).filter(|it| before[*it] != live[*it]).collect();
            assert!(exact.iter().all(|it| !it.is_empty()) && exact.windows(2).all(|it| it[0].end < it[1].start));
            assert_eq!(exact.into_iter().flatten().collect::<Vec<usize>>(), wanted);
        }
    }

    #[test]
    fn bits_say_which_bytes_differ() {
        let (mut shadow, mut live, mut rng) = (Shadow::default(), vec![0u8; SEGMENT_BYTES], TestRng::new(9));
        let mut bits = vec![7];
        assert!(!shadow.update_bits(0, &live, &mut bits), "zeros are nothing new");
        for _ in 0..300 {
            let before = live.clone();
            let (start, size) = (rng.below(SEGMENT_BYTES - 200), rng.below(200));
            let density = 1 + rng.below(4);
            live[start..start + size].iter_mut().for_each(|it| *it ^= (rng.below(density) == 0) as u8 * 0x90);
            let part = rng.below(start + 1)..start + size + rng.below(SEGMENT_BYTES - start - size);
            let mut compared = vec![9];
            let is_other = shadow.compare(part.start as u64, &live[part.clone()], &mut compared);
            let is_new = shadow.update_bits(part.start as u64, &live[part.clone()], &mut bits);
            assert_eq!((is_other, &compared), (is_new, &bits), "a look that keeps the copy finds the same");
            let differs: Vec<bool> = part.clone().map(|it| before[it] != live[it]).collect();
            assert_eq!(is_new, differs.contains(&true));
            if is_new {
                assert_eq!(bits.len(), part.len().div_ceil(64));
                let found: Vec<bool> = (0..part.len()).map(|it| bits[it / 64] >> (it % 64) & 1 == 1).collect();
                assert_eq!(found, differs);
            }
            assert!(!shadow.update_bits(part.start as u64, &live[part], &mut bits), "it is known now");
        }
    }

    #[test]
    fn random_writes_are_reported_so_that_a_copy_stays_equal() {
        let (mut shadow, mut live, mut copy) = (Shadow::default(), vec![0u8; SEGMENT_BYTES], vec![0u8; SEGMENT_BYTES]);
        let mut rng = TestRng::new(1);
        let mut next = |max: usize| rng.below(max);
        for _ in 0..500 {
            for _ in 0..next(6) {
                let (start, size) = (next(SEGMENT_BYTES - 64), next(64));
                let value = next(3) as u8;
                live[start..start + size].fill(value);
            }
            let mut changed = Vec::new();
            shadow.update(0, &live, &mut changed);
            for range in changed {
                assert!(copy[range.start] != live[range.start] && copy[range.end - 1] != live[range.end - 1]);
                copy[range.clone()].copy_from_slice(&live[range]);
            }
            assert_eq!(copy, live);
        }
    }
}
