//! A fix as data: the changed object, its location, and the lines before and after the change.

use lavascope_abi::{IMAGE_ASPECT_FLAG_BITS_ENUM, PipelineStageFlags2};
use lavascope_diag::{Fix, FixChange, FixEdit};
use lavascope_sync_ir::{Dependency, DependencyTarget, ImageRegion, ProgramLocation, Region, SyncScope};

use super::change::{
    BatchLocation, HostWait, ProgramChange, ProgramFix, dependency_flag_names, dependency_flags, location_text,
    subpass_name, wait_mask_name,
};
use super::sync_version::SyncVersion;
use crate::text::api_names::mask_names;
use crate::{OperationLocation, ProgramNames, SyncOperation};

impl ProgramFix {
    /// The fix for a diagnostic. It is always verified, because the search drops other fixes.
    /// `operations` are those between the two accesses.
    pub(crate) fn describe(&self, operations: &[SyncOperation], names: &dyn ProgramNames) -> Fix {
        let changes = self.changes.iter().flat_map(|it| it.describe(operations, names)).collect();
        Fix { text: self.text(names), is_verified: true, changes }
    }
}

impl ProgramChange {
    /// One change for each call that is edited.
    fn describe(&self, operations: &[SyncOperation], names: &dyn ProgramNames) -> Vec<FixChange> {
        match self {
            ProgramChange::AddBits { location, bits, adds_memory_barrier, version } => {
                let operation = operations.iter().find(|it| it.location == *location);
                let (given, member) = (operation.map(|it| it.scope), operation.and_then(|it| it.member.as_deref()));
                let mut edits = match adds_memory_barrier {
                    true => memory_barrier_edits((*location, *version), given, *bits),
                    false => mask_edits((*location, *version), given, *bits),
                };
                if !adds_memory_barrier {
                    name_barrier(&mut edits, member, *version);
                }
                let set = set_change(*location, given, *bits, *version, names);
                set.into_iter().chain([at_location(*location, edits, names)]).collect()
            }
            ProgramChange::ExtendRange { location, region, .. } => {
                let given = operations.iter().find(|it| it.location == *location);
                let before = given.and_then(|it| it.resource_region.as_ref()).map(|it| &it.1);
                let mut edits = range_edits(before, region);
                // The range is a member of the barrier itself in both versions.
                name_barrier(&mut edits, given.and_then(|it| it.member.as_deref()), SyncVersion::Two);
                vec![at_location(*location, edits, names)]
            }
            ProgramChange::InsertBarrier { buffer, before, dependency, flags, version, .. } => vec![FixChange {
                target: format!("before {}", names.recorded_function(*buffer, *before)),
                place: names.recorded_command(*buffer, *before),
                stack: names.recorded_stack(*buffer, *before),
                edits: barrier_edits(dependency, *flags, *version, names),
            }],
            ProgramChange::AddSubpassDependency { pass, dependency, version } => {
                let mut edits = vec![
                    added("VkSubpassDependency", String::new()),
                    added("srcSubpass", subpass_name(dependency.src)),
                    added("dstSubpass", subpass_name(dependency.dst)),
                ];
                edits.extend(scope_edits(&dependency.scope, *version));
                edits.extend(flags_edit(dependency_flags(dependency)));
                vec![in_object(names.render_pass(*pass), edits)]
            }
            ProgramChange::AddSemaphore { .. }
            | ProgramChange::AddPresentWait { .. }
            | ProgramChange::AddWait { .. } => self.describe_semaphore(names),
            ProgramChange::InsertHostWait { before, wait } => {
                let edit = match wait {
                    HostWait::Fence(fence) => added("vkWaitForFences", names.fence(*fence)),
                    HostWait::Queue(queue) => added("vkQueueWaitIdle", names.queue(*queue)),
                };
                let function = names.function(&ProgramLocation::Step(*before), 0);
                let (target, place) = match names.noticed_before(*before) {
                    Some(next) => (format!("the write of the host, which comes before {next}"), String::new()),
                    None if function.starts_with("vk") => (function, names.step(*before)),
                    None => ("the access of the host".to_owned(), names.step(*before)),
                };
                vec![FixChange {
                    target: format!("before {target}"),
                    place,
                    stack: step_stack(*before, names),
                    edits: vec![edit],
                }]
            }
        }
    }

    /// Describes a new signal with a new wait, or a new wait alone.
    fn describe_semaphore(&self, names: &dyn ProgramNames) -> Vec<FixChange> {
        const NEW: &str = "a new semaphore";
        let submission = |at: BatchLocation, edits| FixChange {
            target: "the submission".to_owned(),
            place: names.batch(at.step, at.batch),
            stack: step_stack(at.step, names),
            edits,
        };
        // `VkSubmitInfo` and `VkSubmitInfo2` have other members.
        let member = |at: BatchLocation, old, new| if at.version == SyncVersion::One { old } else { new };
        let signals = |at: BatchLocation, stages: u64| {
            let mask = match at.version {
                // In version 1, a signal has no stages.
                SyncVersion::One => None,
                SyncVersion::Two => Some(added("stageMask", spaced(at.version.stage_names(stages)))),
            };
            let member = member(at, "pSignalSemaphores", "pSignalSemaphoreInfos");
            submission(at, [added(member, NEW.to_owned())].into_iter().chain(mask).collect())
        };
        let waits = |at: BatchLocation, semaphore: String, stages: u64| {
            let mask = added(wait_mask_name(at.version), spaced(at.version.stage_names(stages)));
            submission(at, vec![added(member(at, "pWaitSemaphores", "pWaitSemaphoreInfos"), semaphore), mask])
        };
        let same = || "the same semaphore".to_owned();
        match self {
            ProgramChange::AddSemaphore { signal, signal_stages, wait, wait_stages } => {
                vec![signals(*signal, *signal_stages), waits(*wait, same(), *wait_stages)]
            }
            ProgramChange::AddPresentWait { signal, signal_stages, present } => {
                let presentation = FixChange {
                    target: "the presentation".to_owned(),
                    place: names.step(*present),
                    stack: step_stack(*present, names),
                    edits: vec![added("pWaitSemaphores", same())],
                };
                vec![signals(*signal, *signal_stages), presentation]
            }
            ProgramChange::AddWait { semaphore, wait, wait_stages } => {
                vec![waits(*wait, names.semaphore(*semaphore), *wait_stages)]
            }
            _ => Vec::new(),
        }
    }
}

/// The change of the command that sets an event. Its source stages are those of the wait, and in
/// version 2 both have the same dependencies (`VUID-vkCmdWaitEvents-srcStageMask-01158`).
fn set_change(
    location: OperationLocation,
    given: Option<SyncScope>,
    bits: SyncScope,
    version: SyncVersion,
    names: &dyn ProgramNames,
) -> Option<FixChange> {
    let OperationLocation::Event { set: Some((buffer, command)), .. } = location else { return None };
    let location = OperationLocation::SetEvent { buffer, command };
    let bits = match version {
        SyncVersion::One => SyncScope { src_stages: bits.src_stages, ..SyncScope::default() },
        SyncVersion::Two => bits,
    };
    let edits = mask_edits((location, version), given, bits);
    (!edits.is_empty()).then(|| at_location(location, edits, names))
}

fn added(field: &str, after: String) -> FixEdit {
    FixEdit { field: field.to_owned(), before: None, after }
}

fn step_stack(step: u32, names: &dyn ProgramNames) -> u32 {
    names.call_stack(&ProgramLocation::Step(step)).unwrap_or(0)
}

fn in_object(place: String, edits: Vec<FixEdit>) -> FixChange {
    FixChange { target: "the render pass".to_owned(), place, stack: 0, edits }
}

/// A change of an existing operation.
fn at_location(location: OperationLocation, edits: Vec<FixEdit>, names: &dyn ProgramNames) -> FixChange {
    let (target, place, stack) = match location {
        OperationLocation::Barrier { buffer, command, .. } => {
            ("the barrier", names.recorded_command(buffer, command), names.recorded_stack(buffer, command))
        }
        OperationLocation::Event { buffer, command, .. } => {
            ("the event wait", names.recorded_command(buffer, command), names.recorded_stack(buffer, command))
        }
        OperationLocation::SetEvent { buffer, command } => {
            ("the event set", names.recorded_command(buffer, command), names.recorded_stack(buffer, command))
        }
        OperationLocation::Subpass { .. } => ("the subpass dependency", location_text(location, names), 0),
        OperationLocation::Semaphore { signal, wait } => {
            let step = wait.or(signal).map_or(0, |it| step_stack(it.step, names));
            ("the semaphore", location_text(location, names), step)
        }
        OperationLocation::Step(step) => ("the call", names.step(step), step_stack(step, names)),
    };
    FixChange { target: target.to_owned(), place, stack, edits }
}

/// The edits that add bits to the masks of an operation.
fn mask_edits(
    (location, version): (OperationLocation, SyncVersion),
    given: Option<SyncScope>,
    bits: SyncScope,
) -> Vec<FixEdit> {
    let fields = match location {
        OperationLocation::Semaphore { .. } if version == SyncVersion::One => ["", "", wait_mask_name(version), ""],
        OperationLocation::Semaphore { .. } => ["signal stageMask", "", "wait stageMask", ""],
        // `vkCmdSetEvent` has one mask.
        OperationLocation::SetEvent { .. } if version == SyncVersion::One => ["stageMask", "", "", ""],
        _ => ["srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask"],
    };
    let masks = |it: SyncScope| [it.src_stages, it.src_access, it.dst_stages, it.dst_access];
    let (given, bits) = (given.map(masks), masks(bits));
    let is_stage = [true, false, true, false];
    // These stages execute nothing, so they are redundant next to other stages.
    let idle = [PipelineStageFlags2::TOP_OF_PIPE.0, 0, PipelineStageFlags2::BOTTOM_OF_PIPE.0, 0];
    let mut edits = Vec::new();
    for place in (0..4).filter(|it| bits[*it] != 0) {
        let name =
            |mask: u64| spaced(if is_stage[place] { version.stage_names(mask) } else { version.access_names(mask) });
        let before = given.map(|it| it[place]);
        if before.is_some_and(|it| it & bits[place] == bits[place]) {
            continue;
        }
        // The existing bits come first, then the added bits.
        let after = match before.map(|it| it & !idle[place]).filter(|it| *it != 0) {
            Some(mask) => format!("{} | {}", name(mask), name(bits[place] & !mask)),
            None => name(bits[place]),
        };
        edits.push(FixEdit { field: fields[place].to_owned(), before: before.map(name), after });
    }
    edits
}

/// Adds the barrier of the call to the names of its members. In version 1, the stages are parameters of the call.
fn name_barrier(edits: &mut [FixEdit], member: Option<&str>, version: SyncVersion) {
    let Some(member) = member else { return };
    let is_of_call = |field: &str| version == SyncVersion::One && field.ends_with("StageMask");
    for edit in edits.iter_mut().filter(|it| !is_of_call(&it.field)) {
        let range = if RANGE_MEMBERS.contains(&edit.field.as_str()) { "subresourceRange." } else { "" };
        edit.field = format!("{member}.{range}{}", edit.field);
    }
}

/// The members of `VkImageSubresourceRange`.
const RANGE_MEMBERS: [&str; 5] = ["aspectMask", "baseMipLevel", "levelCount", "baseArrayLayer", "layerCount"];

/// The edits that give a command of version 1 a memory barrier.
fn memory_barrier_edits(
    at: (OperationLocation, SyncVersion),
    given: Option<SyncScope>,
    bits: SyncScope,
) -> Vec<FixEdit> {
    let mut edits = mask_edits(at, given, SyncScope { src_access: 0, dst_access: 0, ..bits });
    let access = scope_edits(&SyncScope { src_stages: 0, dst_stages: 0, ..bits }, at.1);
    edits.push(added("pMemoryBarriers", "VkMemoryBarrier".to_owned()));
    edits.extend(access);
    edits
}

/// The members of a barrier that say what it covers, where they change.
fn range_edits(before: Option<&Region>, after: &Region) -> Vec<FixEdit> {
    let members: Vec<(&str, Option<String>, String)> = match (before, after) {
        (before, Region::Buffer(bytes)) => {
            let before = before.and_then(|it| if let Region::Buffer(bytes) = it { Some(bytes) } else { None });
            let length = |it: &std::ops::Range<u64>| it.end.saturating_sub(it.start).to_string();
            vec![
                ("offset", before.map(|it| it.start.to_string()), bytes.start.to_string()),
                ("size", before.map(length), length(bytes)),
            ]
        }
        (before, Region::Image(image)) => {
            let before = before.and_then(|it| if let Region::Image(image) = it { Some(image) } else { None });
            let all = image_members(image).into_iter().enumerate();
            all.map(|(at, (member, after))| (member, before.map(|it| image_members(it)[at].1.clone()), after)).collect()
        }
    };
    let is_changed = |it: &(&str, Option<String>, String)| it.1.as_ref() != Some(&it.2);
    let edit =
        |(field, before, after): (&str, Option<String>, String)| FixEdit { field: field.to_owned(), before, after };
    members.into_iter().filter(is_changed).map(edit).collect()
}

/// The members of `VkImageSubresourceRange` with their values.
fn image_members(image: &ImageRegion) -> [(&'static str, String); 5] {
    let [aspects, first_mip, mips, first_layer, layers] = RANGE_MEMBERS;
    [
        (aspects, spaced(mask_names(&IMAGE_ASPECT_FLAG_BITS_ENUM, image.aspects.into()))),
        (first_mip, image.mips.start.to_string()),
        (mips, image.mips.len().to_string()),
        (first_layer, image.layers.start.to_string()),
        (layers, image.layers.len().to_string()),
    ]
}

/// The fields of a new barrier.
fn barrier_edits(dependency: &Dependency, flags: u32, version: SyncVersion, names: &dyn ProgramNames) -> Vec<FixEdit> {
    let what = match &dependency.target {
        DependencyTarget::Global => version.name("VkMemoryBarrier"),
        DependencyTarget::Resource { resource, region }
        | DependencyTarget::Transition { resource, region }
        | DependencyTarget::QueueFamilyTransfer { resource, region, .. } => {
            let is_image = matches!(region, Region::Image(_));
            let kind = version.name(if is_image { "VkImageMemoryBarrier" } else { "VkBufferMemoryBarrier" });
            format!("{kind} of {}", names.region(*resource, region))
        }
    };
    let command = added(&version.name("vkCmdPipelineBarrier"), what);
    std::iter::once(command).chain(scope_edits(&dependency.scope, version)).chain(flags_edit(flags)).collect()
}

fn flags_edit(flags: u32) -> Option<FixEdit> {
    (flags != 0).then(|| added("dependencyFlags", spaced(dependency_flag_names(flags))))
}

/// All masks of a new dependency.
fn scope_edits(scope: &SyncScope, version: SyncVersion) -> Vec<FixEdit> {
    let stages = |field, mask: u64| (mask != 0).then(|| added(field, spaced(version.stage_names(mask))));
    let access = |field, mask: u64| (mask != 0).then(|| added(field, spaced(version.access_names(mask))));
    [
        stages("srcStageMask", scope.src_stages),
        access("srcAccessMask", scope.src_access),
        stages("dstStageMask", scope.dst_stages),
        access("dstAccessMask", scope.dst_access),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn spaced(names: String) -> String {
    names.replace('|', " | ")
}
