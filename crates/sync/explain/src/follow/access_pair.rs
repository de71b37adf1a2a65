//! Finds the pairs of accesses that cause a hazard.

use std::ops::Range;

use lavascope_sync_ir::{Hazard, HazardKind, Region, may_share_bytes};

use super::follower::{FollowMode, follow_access};
use super::timeline::{ExecutionTimeline, TimelineAccess, TimelineAction, TimelineMoment};
use crate::{AccessRole, AdjacentAccesses};

/// Two accesses that overlap. Each is the index of its moment, and its index among the accesses of
/// that moment.
pub(crate) struct AccessPair {
    pub(crate) prior: (usize, usize),
    pub(crate) later: (usize, usize),
    /// A range of addresses of the earlier access. Each dependency covers it completely or not at
    /// all.
    pub(crate) memory_range: Range<u64>,
    pub(crate) region: Region,
    /// Whether the two resources share memory, but their addresses cannot be compared
    /// (`resources-memory-aliasing`).
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

/// The unsafe pairs of accesses of a hazard. The first pair has the earliest later access and the
/// last access of the earlier command, because the engine remembers the last access. If every pair
/// seems safe, all pairs are returned, because the engine did report the hazard.
pub(crate) fn pairs_of_hazard(timeline: &ExecutionTimeline<'_>, found: &Hazard) -> Vec<AccessPair> {
    let (at_writes, prior_writes) = writes_of_hazard(found.kind);
    let mut all = Vec::new();
    for at in accesses(timeline).filter(|it| it.0.executed_at == found.at && it.1.is_write() == at_writes) {
        let meet = timeline.addresses(at.2.0).ranges(found.resource, &found.region);
        if at.1.resource != found.resource || intersections(&ranges(timeline, &at), &meet).is_empty() {
            continue;
        }
        // An acquire counts as a write too, because nothing makes it visible either.
        let fits = |it: &TimelineAccess| it.is_write() == prior_writes || it.role == AccessRole::Acquire;
        let is_prior = |it: &LocatedAccess<'_>| it.0.executed_at == found.prior && fits(it.1);
        let priors: Vec<LocatedAccess<'_>> = accesses(timeline).filter(|it| is_prior(it) && it.2.0 < at.2.0).collect();
        all.extend(priors.into_iter().rev().filter_map(|it| first_unsafe_pair(timeline, it, at, &meet, &found.region)));
    }
    // Pairs through an alias come after pairs through the same resource.
    all.sort_by_key(|it| it.is_aliased);
    let has_unsafe = all.iter().any(|it| !it.is_covered);
    all.retain(|it| it.is_covered != has_unsafe);
    all
}

/// The later access of a hazard, without the earlier one: the index of its moment, and its index
/// among the accesses of that moment.
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

/// The pair on the first range of the earlier access on which the later access is unsafe. If no
/// range is unsafe, the pair on the first range.
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

/// The addresses of an access.
fn ranges(timeline: &ExecutionTimeline<'_>, access: &LocatedAccess<'_>) -> Vec<Range<u64>> {
    timeline.addresses(access.2.0).ranges(access.1.resource, &access.1.region)
}

/// The intersections of two lists of ranges.
pub(crate) fn intersections(left: &[Range<u64>], right: &[Range<u64>]) -> Vec<Range<u64>> {
    let common = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
    let all = left.iter().flat_map(|a| right.iter().map(move |b| common(a, b)));
    all.filter(|it| !it.is_empty()).collect()
}

/// Splits a range into parts that every dependency of the program covers completely or not at all.
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

/// Whether the later and the earlier access of a kind of hazard are writes.
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

/// All pairs of accesses with at least one write, and with no other access to the same memory
/// between them.
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
        // If a command accesses a resource several times, the regions decide which access counts.
        // Such pairs are skipped.
        let identity = |it: &LocatedAccess<'_>| timeline.addresses(it.2.0).identity(it.1.resource);
        let is_same = |it: &&LocatedAccess<'_>| it.0.executed_at == at.0.executed_at && identity(it) == identity(at);
        if all.iter().filter(is_same).count() > 1 {
            continue;
        }
        // The same applies if the last accesses are several accesses of one command.
        let is_alone = before.iter().filter(|it| it.0.executed_at == last.0.executed_at).count() == 1;
        if !is_alone || !(last.1.is_write() || at.1.is_write()) {
            continue;
        }
        // An unreported read may lie between two writes, and would count as another access.
        let is_between = |it: &usize| last.2.0 < *it && *it <= at.2.0;
        if last.1.is_write() && at.1.is_write() && timeline.possible_reads.iter().any(is_between) {
            continue;
        }
        // Bytes between the attributes of vertices are in the region and are not accessed.
        let kind = match (last.1.is_write(), at.1.is_write()) {
            (true, true) => HazardKind::WriteAfterWrite,
            (true, false) => HazardKind::ReadAfterWrite,
            (false, _) => HazardKind::WriteAfterRead,
        };
        let pair = Hazard {
            kind,
            at: at.0.executed_at.clone(),
            prior: last.0.executed_at.clone(),
            resource: at.1.resource,
            region: at.1.region.clone(),
        };
        let program = timeline.program;
        if !may_share_bytes(&pair, program.accesses_at(&pair.at), program.accesses_at(&pair.prior)) {
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
