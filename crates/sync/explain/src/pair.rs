//! Which accesses of a program make up a hazard.

use std::ops::Range;

use lavascope_sync_ir::{Hazard, HazardKind, Region};

use super::follow::{Want, follow};
use super::timeline::{Happens, Moment, Timeline, Used};
use super::{Neighbors, Role};

/// Two accesses that meet: each by its moment and its place among the accesses of that moment.
pub(super) struct Pair {
    pub(super) prior: (usize, usize),
    pub(super) at: (usize, usize),
    /// Addresses of the earlier access, on all of which it fares the same.
    pub(super) piece: Range<u64>,
    pub(super) region: Region,
    /// Whether they meet in memory only: as resources whose addresses cannot be compared.
    pub(super) is_alias: bool,
    pub(super) is_covered: bool,
}

pub(super) fn used<'t>(timeline: &'t Timeline<'_>, moment: usize, used: usize) -> (&'t Moment, &'t Used) {
    let it = &timeline.moments[moment];
    let Happens::Uses(uses) = &it.what else { unreachable!("pairs are made of moments with accesses") };
    (it, &uses[used])
}

/// The pairs of accesses of a hazard that nothing makes safe; first the one whose later access happens first, with the
/// last of what the earlier command did: that is what memory remembers. Should all of them seem safe, they are all
/// given: the hazard is there.
pub(super) fn pairs(timeline: &Timeline<'_>, found: &Hazard) -> Vec<Pair> {
    let (at_writes, prior_writes) = writes(found.kind);
    let mut all = Vec::new();
    for at in accesses(timeline).filter(|it| it.0.place == found.at && it.1.is_write() == at_writes) {
        let meet = timeline.addresses(at.2.0).ranges(found.resource, &found.region);
        if at.1.resource != found.resource || cut(&ranges(timeline, &at), &meet).is_empty() {
            continue;
        }
        // What an acquire still reads is kept as a write: nothing makes it visible either.
        let fits = |it: &Used| it.is_write() == prior_writes || it.role == Role::Acquire;
        let is_prior = |it: &Access<'_>| it.0.place == found.prior && fits(it.1);
        let priors: Vec<Access<'_>> = accesses(timeline).filter(|it| is_prior(it) && it.2.0 < at.2.0).collect();
        all.extend(priors.into_iter().rev().filter_map(|it| pair_of(timeline, it, at, &meet, &found.region)));
    }
    // Another name of the memory counts where its own has nothing to tell.
    all.sort_by_key(|it| it.is_alias);
    let has_unsafe = all.iter().any(|it| !it.is_covered);
    all.retain(|it| it.is_covered != has_unsafe);
    all
}

type Access<'t> = (&'t Moment, &'t Used, (usize, usize));

/// The two accesses on the first piece of the earlier one on which the later one is not safe, or else on the first.
fn pair_of(
    timeline: &Timeline<'_>,
    prior: Access<'_>,
    at: Access<'_>,
    meet: &[Range<u64>],
    region: &Region,
) -> Option<Pair> {
    let own = ranges(timeline, &prior);
    let mut pieces = cut(&own, meet);
    let is_alias = pieces.is_empty();
    if is_alias {
        let aliased = timeline.addresses(at.2.0).aliased_ranges(at.1.resource, meet);
        pieces = cut(&own, &aliased.into_iter().map(|it| it.1).collect::<Vec<_>>());
    }
    let mut first = None;
    for piece in pieces.into_iter().flat_map(|it| split(timeline, it)) {
        let mut pair = Pair { prior: prior.2, at: at.2, piece, region: region.clone(), is_alias, is_covered: false };
        pair.is_covered = follow(timeline, &pair, Want::Verdict).is_covered;
        if !pair.is_covered {
            return Some(pair);
        }
        first.get_or_insert(pair);
    }
    first
}

fn accesses<'t>(timeline: &'t Timeline<'_>) -> impl Iterator<Item = Access<'t>> {
    timeline.moments.iter().enumerate().flat_map(|(moment, it)| {
        let uses = if let Happens::Uses(uses) = &it.what { &uses[..] } else { &[] };
        uses.iter().enumerate().map(move |(index, used)| (it, used, (moment, index)))
    })
}

/// Where an access takes place.
fn ranges(timeline: &Timeline<'_>, access: &Access<'_>) -> Vec<Range<u64>> {
    timeline.addresses(access.2.0).ranges(access.1.resource, &access.1.region)
}

/// What two lists of ranges have in common.
pub(super) fn cut(left: &[Range<u64>], right: &[Range<u64>]) -> Vec<Range<u64>> {
    let common = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
    let all = left.iter().flat_map(|a| right.iter().map(move |b| common(a, b)));
    all.filter(|it| !it.is_empty()).collect()
}

/// Pieces of a range that every dependency of the program covers whole or not at all.
fn split(timeline: &Timeline<'_>, range: Range<u64>) -> Vec<Range<u64>> {
    let mut cuts = vec![range.start, range.end];
    for (number, moment) in timeline.moments.iter().enumerate() {
        let Happens::Depends(elements) = &moment.what else { continue };
        for about in elements.iter().filter_map(|it| it.about.as_ref()) {
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
fn writes(kind: HazardKind) -> (bool, bool) {
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
pub(super) fn neighbors(timeline: &Timeline<'_>) -> Vec<Neighbors> {
    let all: Vec<Access<'_>> = accesses(timeline).collect();
    let mut found = Vec::new();
    for (index, at) in all.iter().enumerate() {
        let own = ranges(timeline, at);
        let aliased = timeline.addresses(at.2.0).aliased_ranges(at.1.resource, &own);
        let aliased: Vec<Range<u64>> = aliased.into_iter().map(|it| it.1).collect();
        let meets = |it: &Access<'_>, other: &[Range<u64>]| !cut(&ranges(timeline, it), other).is_empty();
        let touches = |it: &&Access<'_>| it.2.0 < at.2.0 && (meets(it, &own) || meets(it, &aliased));
        let before: Vec<&Access<'_>> = all[..index].iter().filter(touches).collect();
        let Some(last) = before.last() else { continue };
        // Where a command does several things with a resource, which of them counts depends on their parts.
        let identity = |it: &Access<'_>| timeline.addresses(it.2.0).identity(it.1.resource);
        let is_same = |it: &&Access<'_>| it.0.place == at.0.place && identity(it) == identity(at);
        if all.iter().filter(is_same).count() > 1 {
            continue;
        }
        // And so where several accesses of one command came last.
        let is_alone = before.iter().filter(|it| it.0.place == last.0.place).count() == 1;
        if !is_alone || !(last.1.is_write() || at.1.is_write()) {
            continue;
        }
        let is_alias = !meets(last, &own);
        let met = cut(&ranges(timeline, last), if is_alias { &aliased } else { &own });
        let pieces = met.into_iter().flat_map(|it| split(timeline, it));
        let mut is_covered = pieces.map(|piece| {
            let region = at.1.region.clone();
            let pair = Pair { prior: last.2, at: at.2, piece, region, is_alias, is_covered: false };
            follow(timeline, &pair, Want::Verdict).is_covered
        });
        let is_covered = is_covered.all(|it| it);
        let (prior, place) = (last.0.place.clone(), at.0.place.clone());
        found.push(Neighbors { prior, at: place, resource: at.1.resource, is_covered });
    }
    found
}
