//! The contents of a memory in the trace: zeros at first, and then the recorded writes.

use std::collections::HashMap;
use std::ops::Range;

/// Bytes that are compared together; a record holds no more. Several records fit into a chunk of a stream.
pub(super) const SEGMENT_BYTES: usize = 16 << 10;

/// Where one word is equal, a run of bytes ends: a run costs as much as a word.
const WORD: usize = 8;

/// A copy of the bytes that are not zero, by number of the segment.
#[derive(Default)]
pub(super) struct Shadow(HashMap<u64, Box<[u8]>>);

impl Shadow {
    /// Compares bytes of one segment, from an offset on. Returns the ranges of new bytes, relative to that offset.
    pub(super) fn update(&mut self, offset: u64, live: &[u8], changed: &mut Vec<Range<usize>>) {
        let (segment, inside) = (offset / SEGMENT_BYTES as u64, (offset % SEGMENT_BYTES as u64) as usize);
        debug_assert!(inside + live.len() <= SEGMENT_BYTES);
        match self.0.get_mut(&segment) {
            Some(old) => {
                let old = &mut old[inside..inside + live.len()];
                differences(old, live, changed);
                changed.iter().for_each(|it| old[it.clone()].copy_from_slice(&live[it.clone()]));
            }
            None => {
                differences(&[0; SEGMENT_BYTES][..live.len()], live, changed);
                if !changed.is_empty() {
                    let mut new = vec![0; SEGMENT_BYTES].into_boxed_slice();
                    new[inside..inside + live.len()].copy_from_slice(live);
                    self.0.insert(segment, new);
                }
            }
        }
    }
}

/// The runs of bytes that differ; equal bytes are in them where there are too few for the run to end.
fn differences(old: &[u8], new: &[u8], found: &mut Vec<Range<usize>>) {
    // By far the most are equal, which is found out fast.
    if old == new {
        return;
    }
    let mut open: Option<usize> = None;
    for at in (0..new.len()).step_by(WORD) {
        let end = (at + WORD).min(new.len());
        match (old[at..end] == new[at..end], open) {
            (false, None) => open = Some(at),
            (true, Some(start)) => {
                found.push(trimmed(old, new, start..at));
                open = None;
            }
            _ => {}
        }
    }
    found.extend(open.map(|start| trimmed(old, new, start..new.len())));
}

/// A run without the equal bytes at its ends; there is one that differs.
fn trimmed(old: &[u8], new: &[u8], run: Range<usize>) -> Range<usize> {
    let differs = |it: &usize| old[*it] != new[*it];
    let first = run.clone().find(differs).unwrap_or(run.start);
    let last = run.clone().rfind(differs).unwrap_or(run.start);
    first..last + 1
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
