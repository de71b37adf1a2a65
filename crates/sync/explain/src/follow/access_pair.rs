//! Which accesses of a program make up a hazard.

use std::ops::Range;

use lavascope_sync_ir::{Hazard, HazardKind, Region};

use super::follower::{FollowMode, follow_access};
use super::timeline::{ExecutionTimeline, TimelineAccess, TimelineAction, TimelineMoment};
use crate::{AccessRole, AdjacentAccesses};

/// Two accesses that meet: each by its moment and its place among the accesses of that moment.
pub(crate) struct AccessPair {
    pub(crate) prior: (usize, usize),
    pub(crate) later: (usize, usize),
    /// Addresses of the earlier access, on all of which it fares the same.
    pub(crate) memory_range: Range<u64>,
    pub(crate) region: Region,
    /// Whether they meet in memory only: as resources whose addresses cannot be compared.
    pub(crate) is_aliased: bool,
    pub(crate) is_covered: bool,
}

pub(crate) fn access_at<'t>(
    timeline: &'t ExecutionTimeline<'_>,
    moment: usize,
    used: usize,
) -> (&'t TimelineMoment, &'t TimelineAccess) {
    let timeline_moment = &timeline.moments[moment];
    let TimelineAction::Accesses(uses) = &timeline_moment.action else {
        unreachable!("pairs are made of moments with accesses")
    };
    (timeline_moment, &uses[used])
}

/// The pairs of accesses of a hazard that nothing makes safe; first the one whose later access happens first, with the
/// last of what the earlier command did: that is what memory remembers. Should all of them seem safe, they are all
/// given: the hazard is there.
pub(crate) fn pairs_of_hazard(timeline: &ExecutionTimeline<'_>, found: &Hazard) -> Vec<AccessPair> {
    let (at_writes, prior_writes) = writes_of_hazard(found.kind);
    let mut all = Vec::new();
    for at in accesses(timeline).filter(|it| it.0.executed_at == found.at && it.1.is_write() == at_writes) {
        let meet = timeline.addresses(at.2.0).ranges(found.resource, &found.region);
        if at.1.resource != found.resource || intersections(&ranges(timeline, &at), &meet).is_empty() {
            continue;
        }
        // What an acquire still reads is kept as a write: nothing makes it visible either.
        let fits = |it: &TimelineAccess| it.is_write() == prior_writes || it.role == AccessRole::Acquire;
        let is_prior = |it: &LocatedAccess<'_>| it.0.executed_at == found.prior && fits(it.1);
        let priors: Vec<LocatedAccess<'_>> = accesses(timeline).filter(|it| is_prior(it) && it.2.0 < at.2.0).collect();
        all.extend(priors.into_iter().rev().filter_map(|it| first_unsafe_pair(timeline, it, at, &meet, &found.region)));
    }
    // Another name of the memory counts where its own has nothing to tell.
    all.sort_by_key(|it| it.is_aliased);
    let has_unsafe = all.iter().any(|it| !it.is_covered);
    all.retain(|it| it.is_covered != has_unsafe);
    all
}

/// The later access of a hazard, without the earlier one: its moment and its place among the accesses of that moment.
pub(crate) fn later_access(timeline: &ExecutionTimeline<'_>, found: &Hazard) -> Option<(usize, usize)> {
    let (at_writes, _) = writes_of_hazard(found.kind);
    let is_later = |access: &LocatedAccess<'_>| {
        let meet = timeline.addresses(access.2.0).ranges(found.resource, &found.region);
        access.0.executed_at == found.at
            && access.1.is_write() == at_writes
            && access.1.resource == found.resource
            && !intersections(&ranges(timeline, access), &meet).is_empty()
    };
    accesses(timeline).find(is_later).map(|it| it.2)
}

type LocatedAccess<'t> = (&'t TimelineMoment, &'t TimelineAccess, (usize, usize));

/// The two accesses on the first piece of the earlier one on which the later one is not safe, or else on the first.
fn first_unsafe_pair(
    timeline: &ExecutionTimeline<'_>,
    prior: LocatedAccess<'_>,
    at: LocatedAccess<'_>,
    meet: &[Range<u64>],
    region: &Region,
) -> Option<AccessPair> {
    let own = ranges(timeline, &prior);
    let mut pieces = intersections(&own, meet);
    let is_alias = pieces.is_empty();
    if is_alias {
        let aliased = timeline.addresses(at.2.0).aliased_ranges(at.1.resource, meet);
        pieces = intersections(&own, &aliased.into_iter().map(|it| it.1).collect::<Vec<_>>());
    }
    let mut first = None;
    for piece in pieces.into_iter().flat_map(|it| split_at_dependencies(timeline, it)) {
        let mut pair = AccessPair {
            prior: prior.2,
            later: at.2,
            memory_range: piece,
            region: region.clone(),
            is_aliased: is_alias,
            is_covered: false,
        };
        pair.is_covered = follow_access(timeline, &pair, FollowMode::CoverageOnly).is_covered;
        if !pair.is_covered {
            return Some(pair);
        }
        first.get_or_insert(pair);
    }
    first
}

fn accesses<'t>(timeline: &'t ExecutionTimeline<'_>) -> impl Iterator<Item = LocatedAccess<'t>> {
    timeline.moments.iter().enumerate().flat_map(|(moment, timeline_moment)| {
        let uses = if let TimelineAction::Accesses(uses) = &timeline_moment.action { &uses[..] } else { &[] };
        uses.iter().enumerate().map(move |(index, used)| (timeline_moment, used, (moment, index)))
    })
}

/// Where an access takes place.
fn ranges(timeline: &ExecutionTimeline<'_>, access: &LocatedAccess<'_>) -> Vec<Range<u64>> {
    timeline.addresses(access.2.0).ranges(access.1.resource, &access.1.region)
}

/// What two lists of ranges have in common.
pub(crate) fn intersections(left: &[Range<u64>], right: &[Range<u64>]) -> Vec<Range<u64>> {
    let common = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
    let all = left.iter().flat_map(|a| right.iter().map(move |b| common(a, b)));
    all.filter(|it| !it.is_empty()).collect()
}

/// Pieces of a range that every dependency of the program covers whole or not at all.
fn split_at_dependencies(timeline: &ExecutionTimeline<'_>, range: Range<u64>) -> Vec<Range<u64>> {
    let mut cuts = vec![range.start, range.end];
    for (number, moment) in timeline.moments.iter().enumerate() {
        let TimelineAction::Depends(elements) = &moment.action else { continue };
        for about in elements.iter().filter_map(|it| it.resource_region.as_ref()) {
            let ranges = timeline.addresses(number).ranges(about.resource, &about.region);
            let ends = ranges.iter().flat_map(|it| [it.start, it.end]);
            cuts.extend(ends.filter(|it| range.contains(it)));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|it| it[0]..it[1]).collect()
}

/// Whether the later and the earlier access of a kind of hazard write.
pub(crate) fn writes_of_hazard(kind: HazardKind) -> (bool, bool) {
    match kind {
        HazardKind::ReadAfterWrite | HazardKind::ReadRacingWrite | HazardKind::ReadAfterPresent => (false, true),
        HazardKind::WriteAfterRead | HazardKind::WriteRacingRead | HazardKind::PresentAfterRead => (true, false),
        HazardKind::WriteAfterWrite
        | HazardKind::WriteRacingWrite
        | HazardKind::WriteAfterPresent
        | HazardKind::PresentAfterWrite => (true, true),
    }
}

/// Every two accesses of which one writes, with no other access to the same memory between them.
pub(crate) fn adjacent_accesses(timeline: &ExecutionTimeline<'_>) -> Vec<AdjacentAccesses> {
    let all: Vec<LocatedAccess<'_>> = accesses(timeline).collect();
    let mut found = Vec::new();
    for (index, at) in all.iter().enumerate() {
        let own = ranges(timeline, at);
        let aliased = timeline.addresses(at.2.0).aliased_ranges(at.1.resource, &own);
        let aliased: Vec<Range<u64>> = aliased.into_iter().map(|it| it.1).collect();
        let meets =
            |it: &LocatedAccess<'_>, other: &[Range<u64>]| !intersections(&ranges(timeline, it), other).is_empty();
        let touches = |it: &&LocatedAccess<'_>| it.2.0 < at.2.0 && (meets(it, &own) || meets(it, &aliased));
        let before: Vec<&LocatedAccess<'_>> = all[..index].iter().filter(touches).collect();
        let Some(last) = before.last() else { continue };
        // Where a command does several things with a resource, which of them counts depends on their parts.
        let identity = |it: &LocatedAccess<'_>| timeline.addresses(it.2.0).identity(it.1.resource);
        let is_same = |it: &&LocatedAccess<'_>| it.0.executed_at == at.0.executed_at && identity(it) == identity(at);
        if all.iter().filter(is_same).count() > 1 {
            continue;
        }
        // And so where several accesses of one command came last.
        let is_alone = before.iter().filter(|it| it.0.executed_at == last.0.executed_at).count() == 1;
        if !is_alone || !(last.1.is_write() || at.1.is_write()) {
            continue;
        }
        // Between two writes, a read that may have happened is an access as well.
        let is_between = |it: &usize| last.2.0 < *it && *it <= at.2.0;
        if last.1.is_write() && at.1.is_write() && timeline.possible_reads.iter().any(is_between) {
            continue;
        }
        let is_alias = !meets(last, &own);
        let met = intersections(&ranges(timeline, last), if is_alias { &aliased } else { &own });
        let pieces = met.into_iter().flat_map(|it| split_at_dependencies(timeline, it));
        let mut is_covered = pieces.map(|piece| {
            let region = at.1.region.clone();
            let pair = AccessPair {
                prior: last.2,
                later: at.2,
                memory_range: piece,
                region,
                is_aliased: is_alias,
                is_covered: false,
            };
            follow_access(timeline, &pair, FollowMode::CoverageOnly).is_covered
        });
        let is_covered = is_covered.all(|it| it);
        let (prior, place) = (last.0.executed_at.clone(), at.0.executed_at.clone());
        found.push(AdjacentAccesses { prior, later: place, resource: at.1.resource, is_covered });
    }
    found
}
