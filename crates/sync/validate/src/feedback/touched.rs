//! What shaders really touched, in the place of what they might have.
//!
//! An access of a shader that is not certain becomes those parts of it that the device touched: those that it surely
//! did are certain, the others are as sure as what the device kept of them. What it did not touch is gone.
//! Spec: "Shader Memory Access Ordering".

use std::collections::BTreeSet;
use std::ops::Range;

use lavascope_abi::{AccessFlags2, Command as ApiCommand, DescriptorType, ObjectId};
use lavascope_sync_ir::{
    Access, Certainty, Command, CommandBufferId, Descriptor, EventId, FenceId, HostStep, OriginKind, RasterOrder,
    Region, RenderPassId, ResourceId, SemaphoreId,
};

use crate::feedback::pending::PendingFeedback;
use crate::findings::program_slice::ProgramSlice;
use crate::map_ids::{self, IdMapper};
use crate::recording::command_buffer::CommandCall;
use crate::recording::step_history::HistoryStep;

/// What the device did with a command buffer since the last time that somebody reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandBufferFeedback {
    pub command_buffer: ObjectId,
    /// How often it was executed.
    pub executions: u32,
    /// Whether all of it was executed, and what it touched is known.
    pub is_complete: bool,
    pub launches: Vec<ShaderLaunch>,
}

/// A draw or dispatch of which it is known what its shaders touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaderLaunch {
    /// Counted from zero, among the draws and dispatches of the command buffer.
    pub number: u32,
    pub function: ApiCommand,
    pub stages: Vec<StageTouches>,
}

/// A stage whose shader kept what it touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageTouches {
    /// One bit of `VkPipelineStageFlags2`.
    pub stage: u64,
    /// Sets and bindings of which all accesses were kept.
    pub covered: Vec<(u32, u32)>,
    pub touched: Vec<BindingTouched>,
    /// What was touched by addresses; none where that is not known of all accesses.
    pub addresses: Option<Vec<AddressTouched>>,
}

/// What was touched through a binding, by accesses of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingTouched {
    pub set: u32,
    pub binding: u32,
    pub reads: bool,
    pub writes: bool,
    pub is_atomic: bool,
    /// The descriptors that were used.
    pub elements: Vec<u32>,
    /// There were others, too.
    pub is_incomplete: bool,
    /// It was touched if the shader ran at all, and nobody saw that it did.
    pub is_assumed: bool,
    /// From the beginning of what a descriptor leads to; none for what is no buffer.
    pub bytes: Option<TouchedBytes>,
    /// Four bytes stand for a texel, however large that is.
    pub are_texels: bool,
}

/// What was touched by addresses, by accesses of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressTouched {
    pub reads: bool,
    pub writes: bool,
    pub is_atomic: bool,
    /// By their addresses.
    pub bytes: TouchedBytes,
}

/// Bytes that were touched, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TouchedBytes {
    /// No others were.
    pub may: Vec<Range<u64>>,
    /// These surely were, if there is one descriptor only.
    pub must: Vec<Range<u64>>,
}

/// An access does not become more than so many.
const PARTS_MAX: usize = 256;
/// Of texel buffers that have more, shaders cannot count the bytes.
const TEXELS_END: u64 = 1 << 30;

impl ProgramSlice<'_> {
    /// Puts what was touched in the place of what might have been, for each time that it was executed.
    pub(crate) fn apply_feedback(&mut self, feed: &PendingFeedback) {
        for at in 0..self.steps.len() {
            let step = self.steps[at].index;
            let HostStep::Submit { batches, .. } = &self.program.steps[at] else { continue };
            let mut batches = batches.clone();
            for id in batches.iter_mut().flat_map(|it| &mut it.command_buffers) {
                *id = self.apply_feedback_to(*id, step, feed);
            }
            if let HostStep::Submit { batches: own, .. } = &mut self.program.steps[at] {
                *own = batches;
            }
        }
    }

    /// A command buffer as it was executed.
    fn apply_feedback_to(&mut self, id: CommandBufferId, step: u32, feed: &PendingFeedback) -> CommandBufferId {
        let Some(recorded) = self.recorded_buffers.get(id.0 as usize).cloned() else { return id };
        let feedback = feed.feedback_for(recorded.object, step);
        let mut made = self.program.command_buffers[id.0 as usize].clone();
        let mut is_other = false;
        for (index, (call, command)) in recorded.calls.iter().zip(&mut made.commands).enumerate() {
            match command {
                Command::Execute(all) => {
                    let before = all.clone();
                    all.iter_mut().for_each(|it| *it = self.apply_feedback_to(*it, step, feed));
                    is_other |= before != *all;
                }
                Command::Action(accesses) => {
                    if let Some((launch, is_single)) = feedback.and_then(|it| it.launch(call)) {
                        let all = recorded.accesses(index).unwrap_or_default();
                        *accesses = touched_accesses(accesses, &all, launch, is_single);
                        is_other = true;
                    }
                }
                _ => {}
            }
        }
        if !is_other {
            return id;
        }
        self.recorded_buffers.push(recorded);
        self.program.command_buffers.push(made);
        CommandBufferId(self.program.command_buffers.len() as u32 - 1)
    }
}

impl CommandBufferFeedback {
    /// What is known of a command, and whether it was executed once.
    fn launch(&self, call: &CommandCall) -> Option<(&ShaderLaunch, bool)> {
        let number = call.launch.checked_sub(1)?;
        let launch = self.launches.iter().find(|it| it.number == number && it.function == call.function)?;
        Some((launch, self.executions == 1))
    }
}

/// Those of some resources, in order, that a step has to do with as it was executed.
pub(crate) fn touched_resources(kept: &HistoryStep, feed: &PendingFeedback, about: &[ResourceId]) -> Vec<ResourceId> {
    let mut found = MentionedResources { candidates: about, found: BTreeSet::new() };
    let buffers = kept.buffers.iter().flatten();
    for recorded in buffers.flat_map(|it| it.own.iter().chain(it.executed.iter().map(|it| &it.1))) {
        let feedback = feed.feedback_for(recorded.object, kept.index);
        for (call, command) in recorded.calls.iter().zip(recorded.commands()) {
            let Command::Action(all) = &*command else {
                map_ids::command(&command, &mut found);
                continue;
            };
            let own: Vec<Access> = all.iter().filter(|it| found.is_candidate(it.resource)).cloned().collect();
            let made = match feedback.and_then(|it| it.launch(call)).filter(|_| !own.is_empty()) {
                Some((launch, is_single)) => touched_accesses(&own, all, launch, is_single),
                None => own,
            };
            found.found.extend(made.iter().map(|it| it.resource));
        }
    }
    found.found.into_iter().collect()
}

/// Resources that commands speak of.
struct MentionedResources<'a> {
    candidates: &'a [ResourceId],
    found: BTreeSet<ResourceId>,
}

impl MentionedResources<'_> {
    fn is_candidate(&self, id: ResourceId) -> bool {
        self.candidates.binary_search(&id).is_ok()
    }
}

impl IdMapper for MentionedResources<'_> {
    fn resource(&mut self, id: ResourceId) -> ResourceId {
        if self.is_candidate(id) {
            self.found.insert(id);
        }
        id
    }

    fn pass(&mut self, id: RenderPassId) -> RenderPassId {
        id
    }

    fn event(&mut self, id: EventId) -> EventId {
        id
    }

    fn semaphore(&mut self, id: SemaphoreId) -> SemaphoreId {
        id
    }

    fn fence(&mut self, id: FenceId) -> FenceId {
        id
    }

    fn command_buffer(&mut self, id: CommandBufferId) -> CommandBufferId {
        id
    }
}

/// Some of the accesses of a command, as far as they were made.
fn touched_accesses(accesses: &[Access], all: &[Access], launch: &ShaderLaunch, is_single: bool) -> Vec<Access> {
    let mut made = Vec::new();
    for access in accesses {
        let stage = stage_touches(access, launch);
        let is_known = match access.origin.kind() {
            OriginKind::Descriptor(own) => stage
                .and_then(|it| binding_touches(access, own, it))
                .map(|it| add_touched(access, all, &it, is_single, &mut made)),
            OriginKind::Address(buffer) => stage
                .and_then(|it| it.addresses.as_deref())
                .map(|it| add_addressed(access, buffer, it, is_single, &mut made)),
            _ => None,
        };
        if is_known.is_none() {
            made.push(access.clone());
        }
    }
    // They stand behind all others.
    made.sort_by_key(|it| it.certainty == Certainty::Unreported);
    made
}

/// What the stage of an access touched; none where the access is certain, or nobody kept it.
fn stage_touches<'a>(access: &Access, launch: &'a ShaderLaunch) -> Option<&'a StageTouches> {
    if matches!(access.certainty, Certainty::Certain | Certainty::Unreported) {
        return None;
    }
    let mut stages = launch.stages.iter().filter(|it| it.stage == access.stage);
    let (Some(stage), None) = (stages.next(), stages.next()) else { return None };
    Some(stage)
}

/// Whether what was touched is of the kind of an access.
fn is_same_access_kind(access: &Access, (reads, writes, is_atomic): (bool, bool, bool)) -> bool {
    let is_write = access.access == AccessFlags2::SHADER_STORAGE_WRITE.0;
    is_atomic == (access.order == RasterOrder::Atomic) && if is_write { writes } else { reads }
}

/// What was touched by accesses of the same kind; none where nobody kept it.
fn binding_touches<'a>(access: &Access, own: Descriptor, stage: &'a StageTouches) -> Option<Vec<&'a BindingTouched>> {
    if !stage.covered.contains(&(own.set, own.binding)) {
        return None;
    }
    let sites = stage.touched.iter().filter(|binding_touched| {
        (binding_touched.set, binding_touched.binding) == (own.set, own.binding)
            && is_same_access_kind(access, (binding_touched.reads, binding_touched.writes, binding_touched.is_atomic))
    });
    let sites: Vec<&BindingTouched> = sites.collect();
    (!sites.iter().any(|it| it.is_incomplete)).then_some(sites)
}

/// What was touched by addresses, in the buffer that begins at one.
fn add_addressed(access: &Access, buffer: u64, all: &[AddressTouched], is_single: bool, made: &mut Vec<Access>) {
    let Region::Buffer(region) = &access.region else { return made.push(access.clone()) };
    for address_touched in all.iter().filter(|it| is_same_access_kind(access, (it.reads, it.writes, it.is_atomic))) {
        add_bytes(access, region, -i128::from(buffer), &address_touched.bytes, is_single, made);
    }
}

fn add_touched(access: &Access, all: &[Access], sites: &[&BindingTouched], is_single: bool, made: &mut Vec<Access>) {
    let elements = binding_elements(access, all);
    let OriginKind::Descriptor(own) = access.origin.kind() else { return };
    for site in sites {
        // Of descriptors that are the same as the first one, only that is reported.
        let is_stray = elements.first() == Some(&own.element) && site.elements.iter().any(|it| !elements.contains(it));
        let is_own = site.elements.contains(&own.element);
        if !is_own && !is_stray {
            continue;
        }
        // Nobody saw whether the command launched anything.
        if site.is_assumed && access.certainty == Certainty::IfLaunched {
            made.push(access.clone());
            continue;
        }
        // An access that is made somewhere says that the shader runs.
        let has_run = !site.is_assumed || matches!(access.certainty, Certainty::Somewhere | Certainty::Anywhere);
        let is_sure = is_own && is_single && has_run;
        match (&access.region, &site.bytes) {
            (Region::Buffer(region), Some(bytes)) if access.word_offset != Access::NO_WORD_OFFSET => {
                let is_sure = is_sure && site.elements.len() == 1;
                match (is_texel_buffer(own.ty), site.are_texels) {
                    (false, false) => {
                        let base = i128::from(region.start) - i128::from(access.word_offset) * 4;
                        add_bytes(access, region, base, bytes, is_sure, made);
                    }
                    (true, true) if (region.end - region.start) / u64::from(access.word_offset.max(1)) < TEXELS_END => {
                        let bytes = bytes.scaled_to_texels(access.word_offset.into());
                        add_bytes(access, region, region.start.into(), &bytes, is_sure, made);
                    }
                    _ => made.push(access.clone()),
                }
            }
            (Region::Buffer(_), Some(_)) => made.push(access.clone()),
            _ => {
                let certainty = if is_sure { Certainty::Somewhere } else { Certainty::Maybe };
                made.push(Access { certainty, ..access.clone() });
            }
        }
    }
}

/// The descriptors of the same binding that a command may use in the same stage, in order.
fn binding_elements(access: &Access, all: &[Access]) -> Vec<u32> {
    let OriginKind::Descriptor(own) = access.origin.kind() else { return Vec::new() };
    let beside = all.iter().filter(|it| it.stage == access.stage).filter_map(|item| match item.origin.kind() {
        OriginKind::Descriptor(descriptor) if (descriptor.set, descriptor.binding) == (own.set, own.binding) => {
            Some(descriptor.element)
        }
        _ => None,
    });
    let mut elements: Vec<u32> = beside.collect();
    elements.sort_unstable();
    elements.dedup();
    elements
}

fn is_texel_buffer(ty: i32) -> bool {
    [DescriptorType::UNIFORM_TEXEL_BUFFER.0, DescriptorType::STORAGE_TEXEL_BUFFER.0].contains(&ty)
}

impl TouchedBytes {
    /// Bytes of texels that are so large.
    fn scaled_to_texels(&self, size: u64) -> TouchedBytes {
        let bytes = |it: &Range<u64>| it.start / 4 * size..it.end / 4 * size;
        TouchedBytes { may: self.may.iter().map(bytes).collect(), must: self.must.iter().map(bytes).collect() }
    }
}

/// What was touched of a region. Bytes are counted from a base, which is where it is in the resource.
fn add_bytes(
    access: &Access,
    region: &Range<u64>,
    base: i128,
    bytes: &TouchedBytes,
    is_sure: bool,
    made: &mut Vec<Access>,
) {
    let inside = |range: &Range<u64>| {
        let moved = base + i128::from(range.start)..base + i128::from(range.end);
        let cut = moved.start.max(region.start.into())..moved.end.min(region.end.into());
        let is_whole = cut == moved;
        // What is inside of the region has a place in the resource.
        (cut.start < cut.end).then_some((cut.start as u64..cut.end as u64, is_whole))
    };
    let part = |bytes: Range<u64>, certainty| Access { region: Region::Buffer(bytes), certainty, ..access.clone() };
    if is_sure {
        let surely = bytes.must.iter().filter_map(inside).take(PARTS_MAX);
        made.extend(surely.map(|it| part(it.0, Certainty::Certain)));
        if bytes.may == bytes.must && bytes.must.len() <= PARTS_MAX {
            return;
        }
    }
    for (bytes, is_whole) in merge_closest(bytes.may.iter().filter_map(inside).collect()) {
        let certainty = if is_sure && is_whole { Certainty::Somewhere } else { Certainty::Maybe };
        made.push(part(bytes, certainty));
    }
}

/// As many as there may be: what is closest to each other becomes one.
fn merge_closest(mut all: Vec<(Range<u64>, bool)>) -> Vec<(Range<u64>, bool)> {
    if all.len() <= PARTS_MAX {
        return all;
    }
    let gap = |pair: &[(Range<u64>, bool)]| pair[1].0.start.saturating_sub(pair[0].0.end);
    let mut gaps: Vec<u64> = all.windows(2).map(gap).collect();
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    // What is farther apart than all but the largest gaps stays apart.
    let least = gaps[PARTS_MAX - 1];
    let mut made: Vec<(Range<u64>, bool)> = Vec::new();
    for (bytes, is_whole) in all.drain(..) {
        match made.last_mut() {
            Some((last, is_all)) if bytes.start - last.end <= least => {
                last.end = bytes.end;
                *is_all &= is_whole;
            }
            _ => made.push((bytes, is_whole)),
        }
    }
    made
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges are what is tested")]
mod tests {
    use lavascope_abi::PipelineStageFlags2;
    use lavascope_sync_ir::Origin;

    use super::*;

    const STAGE: u64 = PipelineStageFlags2::COMPUTE_SHADER.0;

    fn access(element: u32, region: Range<u64>, certainty: Certainty) -> Access {
        let ty = DescriptorType::STORAGE_BUFFER.0;
        let origin = Origin::descriptor(Descriptor { set: 0, binding: 1, element, ty, layout: None });
        let write = AccessFlags2::SHADER_STORAGE_WRITE.0;
        let made = Access::new(ResourceId(element), Region::Buffer(region), STAGE, write);
        Access { certainty, word_offset: 1, origin, ..made }
    }

    fn launch(elements: &[u32], may: &[Range<u64>], must: &[Range<u64>]) -> ShaderLaunch {
        let touched = BindingTouched {
            binding: 1,
            writes: true,
            elements: elements.to_vec(),
            bytes: Some(TouchedBytes { may: may.to_vec(), must: must.to_vec() }),
            ..BindingTouched::default()
        };
        let stage = StageTouches { stage: STAGE, covered: vec![(0, 1)], touched: vec![touched], addresses: None };
        ShaderLaunch { number: 0, function: ApiCommand::CmdDispatch, stages: vec![stage] }
    }

    fn parts(all: &[Access]) -> Vec<(u32, Range<u64>, Certainty)> {
        let bytes = |access: &Access| match &access.region {
            Region::Buffer(bytes) => bytes.clone(),
            Region::Image(_) => 0..0,
        };
        all.iter().map(|it| (it.resource.0, bytes(it), it.certainty)).collect()
    }

    #[test]
    fn what_is_known_word_for_word_is_certain_where_it_was() {
        // The descriptor begins at byte 96: the region begins one word behind it.
        let all = [access(0, 100..200, Certainty::Somewhere)];
        let found = touched_accesses(&all, &all, &launch(&[0], &[8..16, 32..36], &[8..16, 32..36]), true);
        assert_eq!(parts(&found), [(0, 104..112, Certainty::Certain), (0, 128..132, Certainty::Certain)]);
    }

    #[test]
    fn of_blocks_only_what_was_kept_is_certain() {
        let all = [access(0, 100..200, Certainty::Maybe)];
        let found = touched_accesses(&all, &all, &launch(&[0], &[8..64], &[8..12]), true);
        assert_eq!(parts(&found), [(0, 104..108, Certainty::Certain), (0, 104..160, Certainty::Somewhere)]);
        let cut = touched_accesses(&all, &all, &launch(&[0], &[0..64], &[]), true);
        assert_eq!(parts(&cut), [(0, 100..160, Certainty::Maybe)], "it may have been before the region");
    }

    #[test]
    fn what_was_executed_twice_is_not_certain() {
        let all = [access(0, 100..200, Certainty::Somewhere)];
        let found = touched_accesses(&all, &all, &launch(&[0], &[8..16], &[8..16]), false);
        assert_eq!(parts(&found), [(0, 104..112, Certainty::Maybe)]);
    }

    #[test]
    fn descriptors_that_were_not_used_are_gone() {
        let all = [0, 1, 2].map(|it| access(it, 100..200, Certainty::OneOfArray));
        assert_eq!(
            parts(&touched_accesses(&all, &all, &launch(&[1], &[8..12], &[8..12]), true)),
            [(1, 104..108, Certainty::Certain)]
        );
        assert_eq!(parts(&touched_accesses(&all, &all, &launch(&[], &[], &[]), true)), []);
        let several = touched_accesses(&all, &all, &launch(&[1, 2], &[8..12], &[8..12]), true);
        assert_eq!(parts(&several), [(1, 104..108, Certainty::Maybe), (2, 104..108, Certainty::Maybe)]);
    }

    #[test]
    fn what_a_shader_does_always_is_sure_if_it_ran() {
        let mut assumed = launch(&[0], &[8..12], &[8..12]);
        assumed.stages[0].touched[0].is_assumed = true;
        for (before, after) in [(Certainty::Maybe, Certainty::Maybe), (Certainty::Somewhere, Certainty::Certain)] {
            let all = [access(0, 100..200, before)];
            assert_eq!(parts(&touched_accesses(&all, &all, &assumed, true)), [(0, 104..108, after)]);
        }
    }

    #[test]
    fn a_descriptor_that_is_not_reported_counts_as_the_first() {
        let all = [0, 2].map(|it| access(it, 100..200, Certainty::OneOfArray));
        let found = touched_accesses(&all, &all, &launch(&[1], &[8..12], &[8..12]), true);
        assert_eq!(parts(&found), [(0, 104..108, Certainty::Maybe)]);
    }

    #[test]
    fn what_nobody_kept_stays_as_it_is() {
        let all = [access(0, 100..200, Certainty::Somewhere)];
        let mut other = launch(&[0], &[8..12], &[8..12]);
        other.stages[0].covered.clear();
        assert_eq!(touched_accesses(&all, &all, &other, true), all);
        let mut lost = launch(&[0], &[8..12], &[8..12]);
        lost.stages[0].touched[0].is_incomplete = true;
        assert_eq!(touched_accesses(&all, &all, &lost, true), all);
        let certain = [access(0, 100..200, Certainty::Certain)];
        assert_eq!(touched_accesses(&certain, &certain, &launch(&[0], &[8..12], &[8..12]), true), certain);
        let unknown = [Access { word_offset: Access::NO_WORD_OFFSET, ..all[0].clone() }];
        assert_eq!(touched_accesses(&unknown, &unknown, &launch(&[0], &[8..12], &[8..12]), true), unknown);
        // Plain accesses and atomic ones are told apart.
        let atomic = [Access { order: RasterOrder::Atomic, ..all[0].clone() }];
        assert_eq!(touched_accesses(&atomic, &atomic, &launch(&[0], &[8..12], &[8..12]), true), []);
    }

    /// What a dispatch does at addresses, if all of it was kept.
    fn addressed(is_all: bool, writes: bool, may: &[Range<u64>], must: &[Range<u64>]) -> ShaderLaunch {
        let bytes = TouchedBytes { may: may.to_vec(), must: must.to_vec() };
        let touched = AddressTouched { reads: !writes, writes, is_atomic: false, bytes };
        let addresses = is_all.then(|| vec![touched]);
        let stage = StageTouches { stage: STAGE, addresses, ..StageTouches::default() };
        ShaderLaunch { number: 0, function: ApiCommand::CmdDispatch, stages: vec![stage] }
    }

    #[test]
    fn what_was_touched_by_addresses_is_where_the_buffer_is() {
        const BUFFER: u64 = 0x7000_0000_1000;
        let write = AccessFlags2::SHADER_STORAGE_WRITE.0;
        let made = Access::new(ResourceId(0), Region::Buffer(64..256), STAGE, write);
        let all = [Access { certainty: Certainty::Somewhere, origin: Origin::address(BUFFER), ..made }];
        let at = |it: Range<u64>| BUFFER + it.start..BUFFER + it.end;
        let found = |launch: &ShaderLaunch| parts(&touched_accesses(&all, &all, launch, true));
        let inside = [at(64..72), at(100..104)];
        assert_eq!(
            found(&addressed(true, true, &inside, &inside)),
            [(0, 64..72, Certainty::Certain), (0, 100..104, Certainty::Certain)]
        );
        assert_eq!(found(&addressed(true, true, &[], &[])), [], "nothing was");
        // In other buffers, before and behind, and by other accesses.
        let elsewhere = [0x1000..0x2000, at(0..64), at(256..300)];
        assert_eq!(found(&addressed(true, true, &elsewhere, &elsewhere)), []);
        assert_eq!(found(&addressed(true, false, &inside, &inside)), []);
        // What reaches over the beginning of the region may be outside of it.
        let over = std::slice::from_ref(&(BUFFER - 4096..BUFFER + 80)).to_vec();
        assert_eq!(found(&addressed(true, true, &over, &[])), [(0, 64..80, Certainty::Maybe)]);
        // What is not known stays as it is.
        assert_eq!(found(&addressed(false, true, &inside, &inside)), parts(&all));
        assert_eq!(parts(&touched_accesses(&all, &all, &launch(&[0], &[], &[]), true)), parts(&all));
        assert_eq!(
            parts(&touched_accesses(&all, &all, &addressed(true, true, &inside[..1], &inside[..1]), false)),
            [(0, 64..72, Certainty::Maybe)],
            "it was executed twice"
        );
    }

    #[test]
    fn texels_are_as_large_as_their_view_says() {
        let ty = DescriptorType::STORAGE_TEXEL_BUFFER.0;
        let origin = Origin::descriptor(Descriptor { set: 0, binding: 1, element: 0, ty, layout: None });
        let texels =
            |size: u16, end: u64| Access { word_offset: size, origin, ..access(0, 64..end, Certainty::Somewhere) };
        // Texels 2, 3 and 8.
        let mut shader_launch = launch(&[0], &[8..16, 32..36], &[8..16, 32..36]);
        shader_launch.stages[0].touched[0].are_texels = true;
        let found = |access: Access| {
            let all = [access];
            parts(&touched_accesses(&all, &all, &shader_launch, true))
        };
        assert_eq!(found(texels(4, 200)), [(0, 72..80, Certainty::Certain), (0, 96..100, Certainty::Certain)]);
        assert_eq!(found(texels(16, 400)), [(0, 96..128, Certainty::Certain), (0, 192..208, Certainty::Certain)]);
        assert_eq!(found(texels(1, 200)), [(0, 66..68, Certainty::Certain), (0, 72..73, Certainty::Certain)]);
        // Where nobody knows how large they are, or there are too many to be counted, or it is no texel buffer.
        for access in
            [texels(Access::NO_WORD_OFFSET, 200), texels(1, 1 << 31), access(0, 64..200, Certainty::Somewhere)]
        {
            assert_eq!(found(access.clone()), parts(&[access]));
        }
    }

    #[test]
    fn of_many_parts_the_largest_gaps_stay() {
        let near = (0..1000u64).map(|it| it * 8..it * 8 + 4);
        let far = (0..10u64).map(|it| 100_000 + it * 1000..100_004 + it * 1000);
        let all: Vec<_> = near.chain(far).map(|it| (it, true)).collect();
        let made = merge_closest(all.clone());
        assert!(made.len() <= PARTS_MAX);
        assert!(all.iter().all(|it| made.iter().any(|made| made.0.start <= it.0.start && it.0.end <= made.0.end)));
        assert!(made.iter().filter(|it| it.0.start >= 100_000).count() == 10, "{made:?}");
    }
}
