//! How sure it is that a hazard happens: shaders decide some things only when they run.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    Access, Certainty, Command, Hazard, HazardKind, HostStep, ImageRegion, Program, ProgramLocation, Region,
    RenderPass, Subpass,
};

use crate::follow::dependency::recorded_location;
use lavascope_engine::access::usages::SYNC_TABLES;

/// How sure a hazard is. The surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardCertainty {
    /// Both accesses are made, and they overlap.
    Certain,
    /// A read and a write of the same resource, where the device decides whether or where.
    Likely,
    /// Two writes, where the device decides: often apart by design. Or a descriptor picked from an array.
    Possible,
}

impl HazardCertainty {
    pub const fn name(self) -> &'static str {
        match self {
            HazardCertainty::Certain => "certain",
            HazardCertainty::Likely => "likely",
            HazardCertainty::Possible => "possible",
        }
    }
}

/// How sure a hazard is, from what was recorded.
pub fn hazard_certainty(program: &Program, found: &Hazard) -> HazardCertainty {
    if is_beside_render_area(program, &found.at, found) || is_beside_render_area(program, &found.prior, found) {
        let both_write = later_writes(found.kind) && prior_writes(found.kind);
        return if both_write { HazardCertainty::Possible } else { HazardCertainty::Likely };
    }
    let later = candidates(program, &found.at, found, later_writes(found.kind));
    let earlier = candidates(program, &found.prior, found, prior_writes(found.kind));
    let (Some(later), Some(earlier)) = (later, earlier) else { return HazardCertainty::Certain };
    most_certain_pair(found, &later, &earlier)
}

/// The same, from all accesses of the later command and of the earlier one.
pub fn hazard_certainty_between(found: &Hazard, later: &[Access], earlier: &[Access]) -> HazardCertainty {
    let later = accesses_of_kind(later, found, later_writes(found.kind));
    most_certain_pair(found, &later, &accesses_of_kind(earlier, found, prior_writes(found.kind)))
}

/// The surest of the pairs that meet where the hazard is.
fn most_certain_pair(found: &Hazard, later: &[Access], earlier: &[Access]) -> HazardCertainty {
    let both_write = later_writes(found.kind) && prior_writes(found.kind);
    let meets = |it: &Access| it.resource != found.resource || overlaps(&it.region, &found.region);
    let pairs = later.iter().flat_map(|at| earlier.iter().map(move |prior| (at, prior)));
    let levels = pairs.filter(|(at, prior)| {
        meets(at) && meets(prior) && (at.resource != prior.resource || overlaps(&at.region, &prior.region))
    });
    levels.map(|(at, prior)| pair_certainty(at, prior, both_write)).min().unwrap_or(HazardCertainty::Certain)
}

fn overlaps(one: &Region, other: &Region) -> bool {
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

/// An access as far as its certainty goes; what is no action of a shader is certain.
fn pair_certainty(at: &Access, prior: &Access, both_write: bool) -> HazardCertainty {
    let unsure = if both_write { HazardCertainty::Possible } else { HazardCertainty::Likely };
    match (at.certainty, prior.certainty) {
        (Certainty::Certain, Certainty::Certain) => HazardCertainty::Certain,
        (Certainty::OneOfArray | Certainty::Unreported, _) | (_, Certainty::OneOfArray | Certainty::Unreported) => {
            HazardCertainty::Possible
        }
        (Certainty::Certain, Certainty::Somewhere) if covers(at, prior) => HazardCertainty::Certain,
        (Certainty::Somewhere, Certainty::Certain) if covers(prior, at) => HazardCertainty::Certain,
        _ => unsure,
    }
}

/// Wherever one access is made, the other is made there too. Between resources that share memory nobody knows.
fn covers(whole: &Access, part: &Access) -> bool {
    whole.resource == part.resource && contains(&whole.region, &part.region)
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

/// Whether a hazard is about a load, store or resolve operation, and lies outside of the render area. There it is up to
/// the implementation whether such an operation reads and writes back what it does not change
/// (`renderpass-load-operations`, `renderpass-store-operations`).
fn is_beside_render_area(program: &Program, place: &ProgramLocation, found: &Hazard) -> bool {
    let Some((buffer, index)) = recorded_location(program, place) else { return false };
    let Some(commands) = program.command_buffers.get(buffer.0 as usize).map(|it| &it.commands) else { return false };
    let is_of_pass = |command: &Command| {
        matches!(
            command,
            Command::BeginRenderPass { .. }
                | Command::NextSubpass
                | Command::EndRenderPass
                | Command::BeginRendering(_)
                | Command::EndRendering
        )
    };
    if !commands.get(index as usize).is_some_and(is_of_pass) {
        return false;
    }
    let begin = |it: &&Command| matches!(it, Command::BeginRenderPass { .. } | Command::BeginRendering(_));
    let (views, area) = match commands[..=index as usize].iter().rev().find(begin) {
        Some(Command::BeginRendering(rendering)) => {
            let resolves = rendering.attachments.iter().filter_map(|it| it.resolve.as_ref()).map(|it| &it.view);
            (rendering.attachments.iter().map(|it| &it.view).chain(resolves).collect::<Vec<_>>(), rendering.area)
        }
        // Layout transitions are about whole attachments.
        Some(Command::BeginRenderPass { pass, views, area }) => {
            let pass = program.render_passes.get(pass.0 as usize);
            let is_changed = |index: usize| pass.is_none_or(|it| changes_layout(it, index));
            if views.iter().enumerate().any(|(index, it)| it.resource == found.resource && is_changed(index)) {
                return false;
            }
            (views.iter().collect(), *area)
        }
        _ => return false,
    };
    let mut own = views.into_iter().filter(|it| it.resource == found.resource).peekable();
    own.peek().is_some()
        && own.all(|view| {
            let inside = ImageRegion { area: Some(view.area_in_attachment(area)), ..view.region.clone() };
            !overlaps(&Region::Image(inside), &found.region)
        })
}

/// Whether a render pass changes the layout of an attachment.
fn changes_layout(pass: &RenderPass, attachment: usize) -> bool {
    let Some(own) = pass.attachments.get(attachment) else { return false };
    let uses = |subpass: &Subpass| {
        let resolves = subpass.resolves.iter().map(|it| (it.target, it.layout));
        let all = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
        let all = all.chain(&subpass.depth_stencil_resolve).copied().chain(resolves);
        all.filter(|it| it.0 as usize == attachment).map(|it| it.1).collect::<Vec<_>>()
    };
    let is_other = |layout: i32| layout != own.initial_layout;
    is_other(own.final_layout) || pass.subpasses.iter().flat_map(uses).any(is_other)
}

/// The accesses of a command, or of the host, that a hazard may be about. None where it is something else than an action.
fn candidates(program: &Program, place: &ProgramLocation, found: &Hazard, is_write: bool) -> Option<Vec<Access>> {
    if let ProgramLocation::Step(step) = place
        && let Some(HostStep::HostAccess { resource, region, certainty, .. }) = program.steps.get(*step as usize)
    {
        let access = Access::new(*resource, region.clone(), PipelineStageFlags2::HOST.0, 0);
        return Some(vec![Access { certainty: *certainty, ..access }]);
    }
    let (buffer, index) = recorded_location(program, place)?;
    let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(index as usize)?;
    let Command::Action(accesses) = command else { return None };
    Some(accesses_of_kind(accesses, found, is_write))
}

/// Those that read, or those that write.
fn accesses_of_kind(accesses: &[Access], found: &Hazard, is_write: bool) -> Vec<Access> {
    let writes =
        |it: &Access| SYNC_TABLES.usage(it.stage, it.access).is_some_and(|it| SYNC_TABLES.write_column(it).is_some());
    let is_reported = |it: &&Access| it.certainty != Certainty::Unreported;
    let of_kind = accesses.iter().filter(is_reported).filter(|it| writes(it) == is_write);
    let of_kind: Vec<Access> = of_kind.cloned().collect();
    let own: Vec<Access> = of_kind.iter().filter(|it| it.resource == found.resource).cloned().collect();
    // The earlier access may have been made to another resource in the same memory.
    if own.is_empty() { of_kind } else { own }
}

fn later_writes(kind: HazardKind) -> bool {
    match kind {
        HazardKind::WriteAfterRead
        | HazardKind::WriteAfterWrite
        | HazardKind::WriteRacingWrite
        | HazardKind::WriteRacingRead
        | HazardKind::WriteAfterPresent => true,
        HazardKind::ReadAfterWrite
        | HazardKind::ReadRacingWrite
        | HazardKind::ReadAfterPresent
        | HazardKind::PresentAfterRead
        | HazardKind::PresentAfterWrite => false,
    }
}

fn prior_writes(kind: HazardKind) -> bool {
    match kind {
        HazardKind::WriteAfterRead | HazardKind::WriteRacingRead | HazardKind::PresentAfterRead => false,
        HazardKind::ReadAfterWrite
        | HazardKind::WriteAfterWrite
        | HazardKind::ReadRacingWrite
        | HazardKind::WriteRacingWrite
        | HazardKind::ReadAfterPresent
        | HazardKind::WriteAfterPresent
        | HazardKind::PresentAfterWrite => true,
    }
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
        use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
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
        assert_eq!(hazard_certainty_between(&found(4..32), &later, &earlier), HazardCertainty::Possible);
        assert_eq!(hazard_certainty_between(&found(60..64), &later, &earlier), HazardCertainty::Possible);
        let certain = [write(0..64, Certainty::Certain)];
        assert_eq!(hazard_certainty_between(&found(60..64), &certain, &earlier), HazardCertainty::Certain);
    }

    #[test]
    fn what_the_device_decides_is_not_certain() {
        use Certainty::{Certain, Maybe, OneOfArray, Somewhere};
        let (whole, half) = (0..64, 0..32);
        let cases = [
            (whole.clone(), Certain, half.clone(), Certain, HazardCertainty::Certain, HazardCertainty::Certain),
            (whole.clone(), Certain, half.clone(), Somewhere, HazardCertainty::Certain, HazardCertainty::Certain),
            (half.clone(), Somewhere, whole.clone(), Certain, HazardCertainty::Certain, HazardCertainty::Certain),
            (whole.clone(), Somewhere, half.clone(), Certain, HazardCertainty::Likely, HazardCertainty::Possible),
            (whole.clone(), Somewhere, whole.clone(), Somewhere, HazardCertainty::Likely, HazardCertainty::Possible),
            (whole.clone(), Certain, whole.clone(), Maybe, HazardCertainty::Likely, HazardCertainty::Possible),
            (whole.clone(), Certain, whole, OneOfArray, HazardCertainty::Possible, HazardCertainty::Possible),
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
