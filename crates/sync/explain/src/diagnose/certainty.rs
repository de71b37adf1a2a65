//! How certain a hazard is. Shaders decide some accesses only at run time.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_diag::Severity;
use lavascope_sync_ir::{
    Access, Certainty, Command, Hazard, HazardKind, HostStep, MemoryBinding, OriginKind, Program, ProgramLocation,
    Region, RenderPassId, ResourceId, may_share_bytes,
};

use super::render_area;
use crate::follow::dependency::recorded_location;
use lavascope_engine::access::usages::SYNC_TABLES;

/// How certain a hazard is, the most certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardCertainty {
    /// Both accesses happen, and they overlap.
    Certain,
    /// A read and a write of the same resource. The device decides at run time whether or where one
    /// of them happens. Or two accesses that overlap, if an indirect command launches anything.
    Likely,
    /// Two writes. The device decides at run time whether or where one of them happens. Programs
    /// often keep such writes apart by design.
    Possible,
    /// It is unknown whether the accesses overlap. Either a shader selects a descriptor from an
    /// array, or the range is an upper bound because Lavascope did not read the values that limit
    /// it.
    Assumed,
}

impl HazardCertainty {
    pub const fn name(self) -> &'static str {
        match self {
            HazardCertainty::Certain => "certain",
            HazardCertainty::Likely => "likely",
            HazardCertainty::Possible | HazardCertainty::Assumed => "possible",
        }
    }

    pub const fn severity(self) -> Severity {
        match self {
            HazardCertainty::Certain => Severity::Error,
            HazardCertainty::Likely => Severity::Warning,
            HazardCertainty::Possible | HazardCertainty::Assumed => Severity::Information,
        }
    }
}

/// How certain a hazard is, from the recorded commands.
pub fn hazard_certainty(program: &Program, found: &Hazard) -> HazardCertainty {
    if is_beside_render_area(program, &found.at, found) || is_beside_render_area(program, &found.prior, found) {
        return HazardCertainty::Possible;
    }
    let (Some(later), Some(earlier)) = (candidates(program, &found.at), candidates(program, &found.prior)) else {
        return HazardCertainty::Certain;
    };
    hazard_certainty_between(found, &later, &earlier, |it| may_share_memory(program, it, found.resource))
}

/// Like [`hazard_certainty`], from all accesses of the two commands. `may_share_memory` returns
/// whether a resource may share memory with the resource of the hazard.
pub fn hazard_certainty_between(
    found: &Hazard,
    later: &[Access],
    earlier: &[Access],
    may_share_memory: impl Fn(ResourceId) -> bool,
) -> HazardCertainty {
    let later = accesses_of_kind(later, found, later_writes(found.kind), &may_share_memory);
    let earlier = accesses_of_kind(earlier, found, prior_writes(found.kind), &may_share_memory);
    most_certain_pair(found, &later, &earlier)
}

/// Whether two resources may share memory. Unknown resources do not.
fn may_share_memory(program: &Program, one: ResourceId, other: ResourceId) -> bool {
    let resource = |id: ResourceId| program.resources.get(id.0 as usize);
    let (Some(one), Some(other)) = (resource(one), resource(other)) else { return false };
    let overlap = |a: &MemoryBinding, b: &MemoryBinding| {
        a.memory == b.memory && a.offset < b.offset.saturating_add(b.size) && b.offset < a.offset.saturating_add(a.size)
    };
    let is_bound_alike = matches!((&one.binding, &other.binding), (Some(one), Some(other)) if overlap(one, other));
    one.is_sparse || other.is_sparse || is_bound_alike
}

/// The certainty of the most certain pair of accesses that overlap in the region of the hazard.
fn most_certain_pair(found: &Hazard, later: &[Access], earlier: &[Access]) -> HazardCertainty {
    let both_write = later_writes(found.kind) && prior_writes(found.kind);
    let meets = |it: &Access| it.resource != found.resource || overlaps(&it.region, &found.region);
    let pairs = later.iter().flat_map(|at| earlier.iter().map(move |prior| (at, prior)));
    let levels = pairs.filter(|(at, prior)| {
        meets(at)
            && meets(prior)
            && (at.resource != prior.resource
                || overlaps(&at.region, &prior.region)
                    && may_share_bytes(found, std::slice::from_ref(at), std::slice::from_ref(prior)))
    });
    levels.map(|(at, prior)| pair_certainty(at, prior, both_write)).min().unwrap_or(HazardCertainty::Certain)
}

pub(super) fn overlaps(one: &Region, other: &Region) -> bool {
    fn shares<T: PartialOrd>(one: &std::ops::Range<T>, other: &std::ops::Range<T>) -> bool {
        one.start < other.end && other.start < one.end
    }
    match (one, other) {
        (Region::Buffer(one), Region::Buffer(other)) => shares(one, other),
        (Region::Image(one), Region::Image(other)) => {
            let end = |it: &lavascope_sync_ir::Area, axis: usize| it.offset[axis].saturating_add(it.extent[axis]);
            let is_area = match (one.area, other.area) {
                (Some(one), Some(other)) => (0..3)
                    .all(|axis| shares(&(one.offset[axis]..end(&one, axis)), &(other.offset[axis]..end(&other, axis)))),
                _ => true,
            };
            one.aspects & other.aspects != 0
                && one.components.0 & other.components.0 != 0
                && shares(&one.mips, &other.mips)
                && shares(&one.layers, &other.layers)
                && is_area
        }
        _ => true,
    }
}

/// The certainty of a hazard between two accesses.
fn pair_certainty(at: &Access, prior: &Access, both_write: bool) -> HazardCertainty {
    let is_launch_unknown = [at, prior].iter().any(|it| it.certainty == Certainty::IfLaunched);
    let launched = launched_certainty((at, prior), both_write);
    if is_launch_unknown { launched.max(HazardCertainty::Likely) } else { launched }
}

/// The certainty if both commands launch something.
fn launched_certainty((at, prior): (&Access, &Access), both_write: bool) -> HazardCertainty {
    let unsure = if both_write { HazardCertainty::Possible } else { HazardCertainty::Likely };
    let is_assumed = |own: &Access, other: &Access| own.certainty.is_range_unknown() && !covers(other, own);
    let if_launched = |it: Certainty| if it == Certainty::IfLaunched { Certainty::Certain } else { it };
    match (if_launched(at.certainty), if_launched(prior.certainty)) {
        (Certainty::Certain, Certainty::Certain) => HazardCertainty::Certain,
        (Certainty::OneOfArray | Certainty::Unreported, _) | (_, Certainty::OneOfArray | Certainty::Unreported) => {
            HazardCertainty::Assumed
        }
        (Certainty::Certain, Certainty::Somewhere | Certainty::Anywhere) if covers(at, prior) => {
            HazardCertainty::Certain
        }
        (Certainty::Somewhere | Certainty::Anywhere, Certainty::Certain) if covers(prior, at) => {
            HazardCertainty::Certain
        }
        _ if is_assumed(at, prior) || is_assumed(prior, at) => HazardCertainty::Assumed,
        _ => unsure,
    }
}

/// Whether one access includes all of the region of another. Between two resources that share
/// memory, this is unknown, so the result is false.
fn covers(whole: &Access, part: &Access) -> bool {
    let has_gaps = matches!(whole.origin.kind(), OriginKind::Attributes(_));
    whole.resource == part.resource && contains(&whole.region, &part.region) && !has_gaps
}

fn contains(whole: &Region, part: &Region) -> bool {
    match (whole, part) {
        (Region::Buffer(whole), Region::Buffer(part)) => whole.start <= part.start && part.end <= whole.end,
        (Region::Image(whole), Region::Image(part)) => {
            let is_in = |whole: &std::ops::Range<u32>, part: &std::ops::Range<u32>| {
                whole.start <= part.start && part.end <= whole.end
            };
            let is_area = match (whole.area, part.area) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(whole), Some(part)) => (0..3).all(|value| {
                    whole.offset[value] <= part.offset[value]
                        && part.offset[value].saturating_add(part.extent[value])
                            <= whole.offset[value].saturating_add(whole.extent[value])
                }),
            };
            part.aspects & !whole.aspects == 0
                && part.components.0 & !whole.components.0 == 0
                && is_in(&whole.mips, &part.mips)
                && is_in(&whole.layers, &part.layers)
                && is_area
        }
        _ => false,
    }
}

fn is_beside_render_area(program: &Program, place: &ProgramLocation, found: &Hazard) -> bool {
    let Some((buffer, index)) = recorded_location(program, place) else { return false };
    let Some(recorded) = program.command_buffers.get(buffer.0 as usize) else { return false };
    let pass = |id: RenderPassId| program.render_passes.get(id.0 as usize);
    render_area::is_beside_render_area(|it| recorded.commands.get(it), index as usize, pass, found)
}

/// The accesses of a command or of the host that may belong to a hazard. None for synchronization
/// commands and render pass commands.
fn candidates(program: &Program, place: &ProgramLocation) -> Option<Vec<Access>> {
    if let ProgramLocation::Step(step) = place {
        return host_accesses(program.steps.get(*step as usize)?);
    }
    let (buffer, index) = recorded_location(program, place)?;
    let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(index as usize)?;
    let Command::Action(accesses) = command else { return None };
    Some(accesses.clone())
}

/// The host access of a step, as an access of a command. None if the step accesses nothing.
pub fn host_accesses(step: &HostStep) -> Option<Vec<Access>> {
    let HostStep::HostAccess { resource, region, is_write, certainty } = step else { return None };
    let access = if *is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
    let access = Access::new(*resource, region.clone(), PipelineStageFlags2::HOST.0, access.0);
    Some(vec![Access { certainty: *certainty, ..access }])
}

/// The accesses that read, or the accesses that write.
fn accesses_of_kind(
    accesses: &[Access],
    found: &Hazard,
    is_write: bool,
    may_share_memory: impl Fn(ResourceId) -> bool,
) -> Vec<Access> {
    let writes =
        |it: &Access| SYNC_TABLES.usage(it.stage, it.access).is_some_and(|it| SYNC_TABLES.write_column(it).is_some());
    let is_reported = |it: &&Access| it.certainty != Certainty::Unreported;
    let of_kind = accesses.iter().filter(is_reported).filter(|it| writes(it) == is_write);
    let of_kind: Vec<Access> = of_kind.cloned().collect();
    let own: Vec<Access> = of_kind.iter().filter(|it| it.resource == found.resource).cloned().collect();
    // The earlier access may have used another resource in the same memory.
    if own.is_empty() { of_kind.into_iter().filter(|it| may_share_memory(it.resource)).collect() } else { own }
}

fn later_writes(kind: HazardKind) -> bool {
    kind.writes()[1]
}

/// Whether the earlier access of a kind of hazard writes.
pub fn prior_writes(kind: HazardKind) -> bool {
    kind.writes()[0]
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::ResourceId;

    use super::*;

    fn access(bytes: std::ops::Range<u64>, certainty: Certainty) -> Access {
        let region = Region::Buffer(bytes);
        Access { certainty, ..Access::new(ResourceId(0), region, 1, 1) }
    }

    #[test]
    fn only_accesses_that_meet_where_the_hazard_is_decide() {
        let write = |bytes: std::ops::Range<u64>, certainty| {
            let (stage, access) = (PipelineStageFlags2::COMPUTE_SHADER.0, AccessFlags2::SHADER_STORAGE_WRITE.0);
            Access { certainty, ..Access::new(ResourceId(0), Region::Buffer(bytes), stage, access) }
        };
        let later = [write(0..4, Certainty::Certain), write(4..64, Certainty::Somewhere)];
        let earlier = [write(60..64, Certainty::Certain), write(4..32, Certainty::Somewhere)];
        let place = ProgramLocation::Step(0);
        let found = |region| Hazard {
            kind: HazardKind::WriteAfterWrite,
            at: place.clone(),
            prior: place.clone(),
            resource: ResourceId(0),
            region: Region::Buffer(region),
        };
        let between = |found: Hazard, later: &[Access]| hazard_certainty_between(&found, later, &earlier, |_| false);
        assert_eq!(between(found(4..32), &later), HazardCertainty::Possible);
        assert_eq!(between(found(60..64), &later), HazardCertainty::Possible);
        let certain = [write(0..64, Certainty::Certain)];
        assert_eq!(between(found(60..64), &certain), HazardCertainty::Certain);
    }

    /// Accesses of the earlier command to other memory than that of the hazard do not change the
    /// certainty.
    #[test]
    fn accesses_to_other_memory_do_not_decide() {
        use lavascope_sync_ir::{MemoryId, Resource, ResourceKind};
        let (stage, access) = (PipelineStageFlags2::COMPUTE_SHADER.0, AccessFlags2::SHADER_STORAGE_WRITE.0);
        let write = |resource: u32, certainty| Access {
            certainty,
            ..Access::new(ResourceId(resource), Region::Buffer(0..64), stage, access)
        };
        let resource = |offset| {
            let binding = MemoryBinding { memory: MemoryId(0), offset, size: 64 };
            Resource::new(ResourceKind::Buffer { size: 64 }, Some(binding))
        };
        let program = Program { resources: vec![resource(0), resource(0), resource(64)], ..Program::default() };
        let place = ProgramLocation::Step(0);
        let found = Hazard {
            kind: HazardKind::WriteAfterWrite,
            at: place.clone(),
            prior: place,
            resource: ResourceId(0),
            region: Region::Buffer(0..64),
        };
        // The earlier command may write the alias, and certainly writes the memory behind it.
        let earlier = [write(1, Certainty::Maybe), write(2, Certainty::Certain)];
        let between = |earlier: &[Access]| {
            let shares = |it| may_share_memory(&program, it, found.resource);
            hazard_certainty_between(&found, &[write(0, Certainty::Certain)], earlier, shares)
        };
        assert_eq!(between(&earlier), HazardCertainty::Possible);
        assert_eq!(between(&[write(1, Certainty::Certain)]), HazardCertainty::Certain);
    }

    #[test]
    fn what_the_device_decides_is_not_certain() {
        use Certainty::{Anywhere, Certain, IfLaunched, Maybe, MaybeAnywhere, OneOfArray, Somewhere};
        use HazardCertainty::{Assumed, Likely, Possible};
        let certain = HazardCertainty::Certain;
        let (whole, half) = (0..64, 0..32);
        let cases = [
            (whole.clone(), Certain, half.clone(), Certain, HazardCertainty::Certain, HazardCertainty::Certain),
            (whole.clone(), Certain, half.clone(), Somewhere, HazardCertainty::Certain, HazardCertainty::Certain),
            (half.clone(), Somewhere, whole.clone(), Certain, HazardCertainty::Certain, HazardCertainty::Certain),
            (whole.clone(), Somewhere, half.clone(), Certain, HazardCertainty::Likely, HazardCertainty::Possible),
            (whole.clone(), Somewhere, whole.clone(), Somewhere, HazardCertainty::Likely, HazardCertainty::Possible),
            (whole.clone(), Certain, whole.clone(), Maybe, HazardCertainty::Likely, HazardCertainty::Possible),
            // An unknown range matters only if the other access does not include all of it.
            (whole.clone(), Certain, half.clone(), Anywhere, certain, certain),
            (whole.clone(), Certain, half.clone(), MaybeAnywhere, Likely, Possible),
            (whole.clone(), Maybe, half.clone(), Anywhere, Likely, Possible),
            (whole.clone(), Somewhere, whole.clone(), Anywhere, Likely, Possible),
            (whole.clone(), Anywhere, half.clone(), Certain, Assumed, Assumed),
            (half.clone(), Certain, whole.clone(), Anywhere, Assumed, Assumed),
            (half.clone(), Certain, whole.clone(), MaybeAnywhere, Assumed, Assumed),
            (half.clone(), Somewhere, whole.clone(), Anywhere, Assumed, Assumed),
            (whole.clone(), Certain, whole.clone(), OneOfArray, Assumed, Assumed),
            // An indirect command that may launch nothing.
            (whole.clone(), Certain, half.clone(), IfLaunched, Likely, Likely),
            (half.clone(), IfLaunched, half.clone(), IfLaunched, Likely, Likely),
            (half.clone(), Somewhere, whole.clone(), IfLaunched, Likely, Likely),
            (whole.clone(), Somewhere, half.clone(), IfLaunched, Likely, Possible),
            (whole, IfLaunched, half, OneOfArray, Assumed, Assumed),
        ];
        for (at, at_certainty, prior, prior_certainty, one, both) in cases {
            let (at, prior) = (access(at, at_certainty), access(prior, prior_certainty));
            assert_eq!(
                (pair_certainty(&at, &prior, false), pair_certainty(&at, &prior, true)),
                (one, both),
                "{at:?} {prior:?}"
            );
        }
    }
}
