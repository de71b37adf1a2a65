//! Chooses the spans of calls before a part that are skipped.
//!
//! The search goes backwards from the end of the part and collects the resources that are read later. A submission that
//! writes to none of them is unneeded. A span of unneeded submissions can be skipped if fences, semaphores and acquired
//! images are the same after it as before it. Submissions between spans are executed in any case, so everything that
//! they read is needed, too. That may make a span smaller, so the search repeats until nothing changes.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::ObjectId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call_role::CallRole;
use crate::content_tracker::ResourceUse;
use crate::kept_calls::removable_calls;
use crate::scan::{PartBounds, Scan};
use crate::sync_state::{Boundary, TimelineState};

/// The spans that are skipped: record numbers, in order and disjoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkippedSpans {
    pub(crate) spans: Vec<SkippedSpan>,
    pub(crate) reason: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(crate) struct SkippedSpan {
    pub(crate) records: Range<usize>,
    /// Timeline semaphores that have another value behind it.
    pub(crate) signals: Vec<(ObjectId, TimelineState)>,
}

impl SkippedSpan {
    /// Whether a call begins and ends in it.
    pub(crate) fn contains_call(&self, first: usize, done: usize) -> bool {
        self.records.contains(&first) && self.records.contains(&done)
    }
}

pub(crate) fn find_skipped_spans(scan: &Scan, bounds: PartBounds) -> SkippedSpans {
    let none = |reason| SkippedSpans { spans: Vec::new(), reason: Some(reason) };
    if bounds.first == 0 {
        return SkippedSpans::default();
    }
    if scan.contents.unknown.is_some() {
        return none("there are commands of which is not known what they do to contents");
    }
    if !scan.sync_state.is_without_events() {
        return none("the host sets events, for which the device may wait at any time");
    }
    if scan.sync_state.devices != 1 {
        return none("there are several devices");
    }
    let has_frames = scan.boundaries.iter().any(|it| it.is_frame && it.record < bounds.first);
    let is_fitting = |it: &&Boundary| it.record < bounds.first && (it.is_frame || !has_frames);
    let boundaries: Vec<&Boundary> = scan.boundaries.iter().filter(is_fitting).collect();
    let mut needed = needed(scan, bounds, &[]);
    loop {
        let spans = choose(scan, &boundaries, &needed);
        let more = self::needed(scan, bounds, &spans);
        let is_stable = needed.union(&more).count() == needed.len();
        needed.extend(more);
        let is_free = |span: &SkippedSpan| !needed.iter().any(|it| span.records.contains(it));
        if is_stable && spans.iter().all(is_free) {
            let reason =
                spans.is_empty().then_some("its frames use earlier contents, or the order on the device never repeats");
            return SkippedSpans { spans, reason };
        }
    }
}

/// The record numbers of submissions before the part that write what is read later.
fn needed(scan: &Scan, bounds: PartBounds, spans: &[SkippedSpan]) -> FxHashSet<usize> {
    let resources = &scan.contents.resources;
    let begin = spans.first().map_or(usize::MAX, |it| it.records.start);
    let mut live: FxHashSet<ObjectId> = FxHashSet::default();
    let mut needed = FxHashSet::default();
    let mut presents = scan.presents.iter().rev().peekable();
    for submit in scan.contents.submits.iter().rev() {
        let call = &scan.calls[submit.call];
        while let Some((at, images)) = presents.next_if(|it| scan.calls[it.0].first_record > call.first_record) {
            if scan.calls[*at].first_record >= bounds.first && scan.calls[*at].last_record <= bounds.end {
                live.extend(images.iter().map(|it| resources.alias_class(*it)));
            }
        }
        if call.first_record > bounds.end {
            continue;
        }
        let is_part = call.last_record >= bounds.first;
        let is_between =
            call.first_record >= begin && !spans.iter().any(|it| it.contains_call(call.first_record, call.last_record));
        let writes = |it: &(ObjectId, ResourceUse)| it.1.writes && live.contains(&resources.alias_class(it.0));
        if !is_part && !is_between && !submit.uses.iter().any(writes) {
            continue;
        }
        if !is_part {
            needed.insert(call.first_record);
        }
        for (usage, what) in &submit.uses {
            let class = resources.alias_class(*usage);
            match *what {
                ResourceUse { discards_first: true, .. } if !resources.is_aliased(class) => drop(live.remove(&class)),
                ResourceUse { reads: false, discards_first: false, .. } => {}
                _ => drop(live.insert(class)),
            }
        }
    }
    needed
}

/// The longest span between each two places that must stay.
fn choose(scan: &Scan, boundaries: &[&Boundary], needed: &FxHashSet<usize>) -> Vec<SkippedSpan> {
    let fixed = scan.calls.iter().filter(|it| scan.role(it) == CallRole::Always).map(|it| it.first_record);
    let mut walls: Vec<usize> = needed.iter().copied().chain(fixed).collect();
    walls.sort_unstable();
    let segment = |place: usize| walls.partition_point(|it| *it <= place);
    let mut spans = Vec::new();
    let mut first = 0;
    while first < boundaries.len() {
        let number = segment(boundaries[first].record);
        let count = boundaries[first..].iter().take_while(|it| segment(it.record) == number).count();
        // Added calls take the places of skipped ones.
        let has_room = |it: &SkippedSpan| removable_calls(scan, it).nth(it.signals.len()).is_some();
        spans.extend(longest(&boundaries[first..first + count]).filter(has_room));
        first += count;
    }
    spans
}

fn longest(boundaries: &[&Boundary]) -> Option<SkippedSpan> {
    let mut firsts: FxHashMap<u128, usize> = FxHashMap::default();
    let mut best: Option<(usize, usize)> = None;
    for (at, boundary) in boundaries.iter().enumerate() {
        let first = *firsts.entry(boundary.state_hash).or_insert(at);
        let is_longer = best.is_none_or(|best| at - first > best.1 - best.0);
        if at > first && is_longer && signals(&boundaries[first].timelines, &boundary.timelines).is_some() {
            best = Some((first, at));
        }
    }
    let (first, last) = best.map(|it| (boundaries[it.0], boundaries[it.1]))?;
    Some(SkippedSpan {
        records: first.record + 1..last.record + 1,
        signals: signals(&first.timelines, &last.timelines)?,
    })
}

/// The signals that bring timeline semaphores from one state to another; none if one of the semaphores does not exist
/// yet.
fn signals(
    from: &BTreeMap<ObjectId, TimelineState>,
    to: &BTreeMap<ObjectId, TimelineState>,
) -> Option<Vec<(ObjectId, TimelineState)>> {
    let mut all = Vec::new();
    for (semaphore, timeline_state) in to {
        let before = from.get(semaphore).map_or(timeline_state.initial, |it| it.value);
        if timeline_state.value != before {
            from.get(semaphore)?;
            all.push((*semaphore, *timeline_state));
        }
    }
    Some(all)
}
