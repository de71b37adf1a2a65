//! The changes of a fix, as data and in words.

use lavascope_abi::{DEPENDENCY_FLAG_BITS_ENUM, PipelineStageFlags2};
use lavascope_sync_ir::{
    CommandBufferId, Dependency, DependencyTarget, FenceId, ProgramLocation, QueueId, Region, RenderPassId, ResourceId,
    SemaphoreId, SubpassDependency, SyncScope,
};

use super::sync_version::SyncVersion;
use crate::text::api_names::mask_names;
use crate::{BatchSemaphoreLocation, OperationLocation, ProgramNames};

/// One or more changes that together fix a hazard.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFix {
    pub changes: Vec<ProgramChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProgramChange {
    /// Adds bits to the masks of an existing operation.
    AddBits {
        location: OperationLocation,
        bits: SyncScope,
        /// Whether the access bits need a memory barrier that the command does not have yet. Only
        /// in version 1.
        adds_memory_barrier: bool,
        version: SyncVersion,
    },
    /// Extends the range of an existing barrier.
    ExtendRange {
        location: OperationLocation,
        resource: ResourceId,
        region: Region,
    },
    /// Inserts a `vkCmdPipelineBarrier` before a command.
    InsertBarrier {
        buffer: CommandBufferId,
        before: u32,
        dependency: Dependency,
        /// `VkDependencyFlags`. A barrier inside a render pass instance needs some.
        flags: u32,
        /// The device feature that the barrier needs inside dynamic rendering.
        feature: Option<&'static str>,
        version: SyncVersion,
    },
    AddSubpassDependency {
        pass: RenderPassId,
        dependency: SubpassDependency,
        version: SyncVersion,
    },
    /// Adds a binary semaphore. One batch signals it, and another batch waits for it.
    AddSemaphore {
        signal: BatchLocation,
        signal_stages: u64,
        wait: BatchLocation,
        wait_stages: u64,
    },
    /// Adds a binary semaphore. A batch signals it, and a present waits for it.
    AddPresentWait {
        signal: BatchLocation,
        signal_stages: u64,
        present: u32,
    },
    /// Adds a wait for an existing semaphore to a batch.
    AddWait {
        semaphore: SemaphoreId,
        wait: BatchLocation,
        wait_stages: u64,
    },
    /// Inserts a wait of the host before a step.
    InsertHostWait {
        before: u32,
        wait: HostWait,
    },
}

/// The step that submits a batch, and the index of the batch in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLocation {
    pub step: u32,
    pub batch: u32,
    /// The version of the submission.
    pub version: SyncVersion,
}

impl BatchLocation {
    pub(crate) fn new(step: u32, batch: u32) -> BatchLocation {
        BatchLocation { step, batch, version: SyncVersion::default() }
    }
}

/// `VK_DEPENDENCY_BY_REGION_BIT`.
pub(crate) const BY_REGION: u32 = 1;
/// `VK_DEPENDENCY_VIEW_LOCAL_BIT`.
pub(crate) const VIEW_LOCAL: u32 = 2;

/// The flags of a dependency inside a subpass (`VUID-VkSubpassDependency-srcSubpass-02243`,
/// `VUID-vkCmdPipelineBarrier-dependencyFlags-07891`).
pub(crate) fn self_dependency_flags(scope: &SyncScope, is_view_local: bool) -> u32 {
    let by_region = if scope.src_stages & FRAMEBUFFER_STAGES != 0 { BY_REGION } else { 0 };
    by_region | if is_view_local { VIEW_LOCAL } else { 0 }
}

/// Whether the stages may be those of a dependency inside a subpass: no work of the framebuffer
/// comes before other work (`VUID-VkSubpassDependency-srcSubpass-06809`).
pub(crate) fn may_be_self_dependency(scope: &SyncScope) -> bool {
    const GRAPHICS: u64 = FRAMEBUFFER_STAGES
        | PipelineStageFlags2::DRAW_INDIRECT.0
        | PipelineStageFlags2::VERTEX_INPUT.0
        | PipelineStageFlags2::INDEX_INPUT.0
        | PipelineStageFlags2::VERTEX_ATTRIBUTE_INPUT.0
        | PipelineStageFlags2::VERTEX_SHADER.0
        | PipelineStageFlags2::TESSELLATION_CONTROL_SHADER.0
        | PipelineStageFlags2::TESSELLATION_EVALUATION_SHADER.0
        | PipelineStageFlags2::GEOMETRY_SHADER.0
        | PipelineStageFlags2::PRE_RASTERIZATION_SHADERS.0
        | PipelineStageFlags2::TASK_SHADER_EXT.0
        | PipelineStageFlags2::MESH_SHADER_EXT.0
        | PipelineStageFlags2::TRANSFORM_FEEDBACK_EXT.0
        | PipelineStageFlags2::CONDITIONAL_RENDERING_EXT.0;
    let is_graphics = (scope.src_stages | scope.dst_stages) & !GRAPHICS == 0;
    is_graphics && (scope.src_stages & FRAMEBUFFER_STAGES == 0 || scope.dst_stages & !FRAMEBUFFER_STAGES == 0)
}

/// The framebuffer-space stages (`synchronization-framebuffer-regions`).
const FRAMEBUFFER_STAGES: u64 = PipelineStageFlags2::FRAGMENT_SHADER.0
    | PipelineStageFlags2::EARLY_FRAGMENT_TESTS.0
    | PipelineStageFlags2::LATE_FRAGMENT_TESTS.0
    | PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0;

/// The flags of a dependency by name: `VK_DEPENDENCY_BY_REGION_BIT`.
pub(crate) fn dependency_flag_names(flags: u32) -> String {
    mask_names(&DEPENDENCY_FLAG_BITS_ENUM, flags.into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWait {
    Fence(FenceId),
    Queue(QueueId),
}

impl ProgramFix {
    /// The size of a fix. A bit is smaller than a new operation, and a new operation is smaller
    /// than a new object.
    pub fn size(&self) -> u32 {
        self.changes.iter().map(ProgramChange::size).sum()
    }

    /// Whether the fix applies to one resource only.
    pub fn names_resource(&self) -> bool {
        self.changes.iter().any(|change| match change {
            ProgramChange::ExtendRange { .. } => true,
            ProgramChange::InsertBarrier { dependency, .. } => dependency.target != DependencyTarget::Global,
            ProgramChange::AddBits { .. }
            | ProgramChange::AddSubpassDependency { .. }
            | ProgramChange::AddSemaphore { .. }
            | ProgramChange::AddPresentWait { .. }
            | ProgramChange::AddWait { .. }
            | ProgramChange::InsertHostWait { .. } => false,
        })
    }

    /// Whether the fix inserts a barrier between commands.
    pub fn inserts_barrier(&self) -> bool {
        self.changes.iter().any(|it| matches!(it, ProgramChange::InsertBarrier { .. }))
    }

    /// Whether the fix declares a missing subpass dependency. It may fix hazards of several kinds.
    pub fn declares_dependency(&self) -> bool {
        matches!(self.changes[..], [ProgramChange::AddSubpassDependency { .. }])
    }

    /// The operations that the fix edits.
    pub(crate) fn edited_operations(&self) -> Vec<OperationLocation> {
        let edited = |change: &ProgramChange| match change {
            ProgramChange::AddBits { location, .. } | ProgramChange::ExtendRange { location, .. } => Some(*location),
            _ => None,
        };
        self.changes.iter().filter_map(edited).collect()
    }

    /// Whether another fix inserts the same barrier at another location.
    pub(crate) fn is_same_barrier(&self, other: &ProgramFix) -> bool {
        match (&self.changes[..], &other.changes[..]) {
            (
                [ProgramChange::InsertBarrier { dependency: left, .. }],
                [ProgramChange::InsertBarrier { dependency: right, .. }],
            ) => left == right,
            _ => false,
        }
    }

    pub fn text(&self, names: &dyn ProgramNames) -> String {
        let parts: Vec<String> = self.changes.iter().map(|it| it.text(names)).collect();
        parts.join("; and ")
    }
}

impl ProgramChange {
    fn size(&self) -> u32 {
        match self {
            ProgramChange::AddBits { bits, adds_memory_barrier, .. } => {
                count(bits) + if *adds_memory_barrier { NEW_MEMORY_BARRIER_SIZE } else { 0 }
            }
            ProgramChange::ExtendRange { .. } => 3,
            ProgramChange::InsertBarrier { dependency, .. } => {
                10 + count(&dependency.scope) + part_size(&dependency.target)
            }
            ProgramChange::AddSubpassDependency { dependency, .. } => 12 + count(&dependency.scope),
            ProgramChange::AddWait { .. } => 12,
            ProgramChange::InsertHostWait { wait: HostWait::Fence(_), .. } => 14,
            ProgramChange::InsertHostWait { .. } => 15,
            ProgramChange::AddSemaphore { .. } | ProgramChange::AddPresentWait { .. } => 20,
        }
    }

    fn text(&self, names: &dyn ProgramNames) -> String {
        match self {
            ProgramChange::AddBits { location, bits, adds_memory_barrier: false, version } => {
                format!("add {}", bits_text(bits, (*location, *version), "to", names))
            }
            ProgramChange::AddBits { location, bits, adds_memory_barrier: true, version } => {
                let access = SyncScope { src_stages: 0, dst_stages: 0, ..*bits };
                let stages = SyncScope { src_access: 0, dst_access: 0, ..*bits };
                let more = match stages == SyncScope::default() {
                    true => String::new(),
                    false => format!("; and add {}", bits_text(&stages, (*location, *version), "to", names)),
                };
                let (masks, place) = (masks_text(&access, *version), location_text(*location, names));
                format!("add a VkMemoryBarrier ({masks}) to {place}{more}")
            }
            ProgramChange::ExtendRange { location, resource, region } => {
                format!(
                    "extend the range of {} to {}",
                    location_text(*location, names),
                    names.region(*resource, region)
                )
            }
            ProgramChange::InsertBarrier { buffer, before, dependency, flags, feature, version } => {
                let (what, place) =
                    (barrier_text(dependency, *version, names), names.recorded_command(*buffer, *before));
                let feature = feature.map_or(String::new(), |it| format!(" (needs the feature {it})"));
                let command = version.name("vkCmdPipelineBarrier");
                format!("insert {command} with {what}{} before {place}{feature}", flags_text(" and ", *flags))
            }
            ProgramChange::AddSubpassDependency { pass, dependency, version } => format!(
                "add a VkSubpassDependency to {}: srcSubpass {}, dstSubpass {}, {}{}",
                names.render_pass(*pass),
                subpass_name(dependency.src),
                subpass_name(dependency.dst),
                masks_text(&dependency.scope, *version),
                flags_text(", ", dependency_flags(dependency)),
            ),
            ProgramChange::AddSemaphore { signal, signal_stages: after, wait, wait_stages: at } => format!(
                "signal a new semaphore in {}{} and wait for it in {}{}",
                names.batch(signal.step, signal.batch),
                signal_mask_text(signal.version, *after),
                names.batch(wait.step, wait.batch),
                wait_mask_text(wait.version, *at),
            ),
            ProgramChange::AddPresentWait { signal, signal_stages: after, present } => format!(
                "signal a new semaphore in {}{} and have {} wait for it",
                names.batch(signal.step, signal.batch),
                signal_mask_text(signal.version, *after),
                present_text(*present, names),
            ),
            ProgramChange::AddWait { semaphore, wait, wait_stages: at } => format!(
                "wait for {} in {}{}",
                names.semaphore(*semaphore),
                names.batch(wait.step, wait.batch),
                wait_mask_text(wait.version, *at),
            ),
            ProgramChange::InsertHostWait { before, wait: HostWait::Fence(fence) } => {
                format!("call vkWaitForFences on {} before {}", names.fence(*fence), names.step(*before))
            }
            ProgramChange::InsertHostWait { before, wait: HostWait::Queue(queue) } => {
                format!(
                    "wait for {} (a fence of its submission, or vkQueueWaitIdle) before {}",
                    names.queue(*queue),
                    names.step(*before)
                )
            }
        }
    }
}

/// The name of a present: `vkQueuePresentKHR, call 9 of thread 1`. If the name of the step does not
/// begin with the function, the function comes first.
fn present_text(present: u32, names: &dyn ProgramNames) -> String {
    let (function, step) = (names.function(&ProgramLocation::Step(present), 0), names.step(present));
    if step.starts_with(&function) { step } else { format!("{function} of {step}") }
}

fn barrier_text(dependency: &Dependency, version: SyncVersion, names: &dyn ProgramNames) -> String {
    let masks = masks_text(&dependency.scope, version);
    match &dependency.target {
        DependencyTarget::Global => format!("a {} ({masks})", version.name("VkMemoryBarrier")),
        DependencyTarget::Resource { resource, region }
        | DependencyTarget::Transition { resource, region }
        | DependencyTarget::QueueFamilyTransfer { resource, region, .. } => {
            let kind = match region {
                Region::Image(_) => format!("a {} without layout change", version.name("VkImageMemoryBarrier")),
                Region::Buffer(_) => format!("a {}", version.name("VkBufferMemoryBarrier")),
            };
            format!("{kind} of {} ({masks})", names.region(*resource, region))
        }
    }
}

/// The flags of a new subpass dependency.
pub(crate) fn dependency_flags(dependency: &SubpassDependency) -> u32 {
    if dependency.src != dependency.dst {
        return 0;
    }
    self_dependency_flags(&dependency.scope, dependency.view_offset.is_some())
}

fn flags_text(before: &str, flags: u32) -> String {
    if flags == 0 { String::new() } else { format!("{before}dependencyFlags {}", dependency_flag_names(flags)) }
}

/// In version 1, a signal has no stages.
fn signal_mask_text(version: SyncVersion, stages: u64) -> String {
    match version {
        SyncVersion::One => String::new(),
        SyncVersion::Two => format!(" (stageMask {})", version.stage_names(stages)),
    }
}

fn wait_mask_text(version: SyncVersion, stages: u64) -> String {
    format!(" ({} {})", wait_mask_name(version), version.stage_names(stages))
}

/// The member that has the stages of a wait.
pub(crate) fn wait_mask_name(version: SyncVersion) -> &'static str {
    if version == SyncVersion::One { "pWaitDstStageMask" } else { "stageMask" }
}

/// An operation that orders nothing else yet is a smaller change than a new command.
const NEW_MEMORY_BARRIER_SIZE: u32 = 8;

fn count(scope: &SyncScope) -> u32 {
    let masks = [scope.src_stages, scope.src_access, scope.dst_stages, scope.dst_access];
    let stages = [scope.src_stages, scope.dst_stages];
    // A wait for all commands counts more than a wait for one stage.
    let wide = stages.iter().filter(|it| *it & PipelineStageFlags2::ALL_COMMANDS.0 != 0).count() as u32;
    masks.iter().map(|it| it.count_ones()).sum::<u32>() + wide
}

/// A global barrier is the shortest to write.
fn part_size(what: &DependencyTarget) -> u32 {
    if matches!(what, DependencyTarget::Global) { 0 } else { 2 }
}

pub(crate) fn subpass_name(subpass: Option<u32>) -> String {
    subpass.map_or("VK_SUBPASS_EXTERNAL".to_owned(), |it| it.to_string())
}

fn masks_text(scope: &SyncScope, version: SyncVersion) -> String {
    let stages = |field: &str, mask: u64| (mask != 0).then(|| format!("{field} {}", version.stage_names(mask)));
    let accesses = |field: &str, mask: u64| (mask != 0).then(|| format!("{field} {}", version.access_names(mask)));
    let parts = [
        stages("srcStageMask", scope.src_stages),
        accesses("srcAccessMask", scope.src_access),
        stages("dstStageMask", scope.dst_stages),
        accesses("dstAccessMask", scope.dst_access),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The mask bits of an operation in words. `word` stands between the bits and the mask: `to` or
/// `from`.
pub(crate) fn bits_text(
    bits: &SyncScope,
    (location, version): (OperationLocation, SyncVersion),
    word: &str,
    names: &dyn ProgramNames,
) -> String {
    let mut parts = Vec::new();
    let (stages, accesses) = (|mask: u64| version.stage_names(mask), |mask: u64| version.access_names(mask));
    if let OperationLocation::Semaphore { signal, wait } = location {
        let part = |mask: &str, kind: &str, semaphore_location: Option<BatchSemaphoreLocation>| match semaphore_location
        {
            Some(semaphore_location) => format!(
                "the {mask} of {kind} {} of {}",
                semaphore_location.index,
                names.batch(semaphore_location.step, semaphore_location.batch)
            ),
            None => format!("the {mask} of the {kind}"),
        };
        let (signal, wait) = (part("stageMask", "signal", signal), part(wait_mask_name(version), "wait", wait));
        parts.extend((bits.src_stages != 0).then(|| format!("{} {word} {signal}", stages(bits.src_stages))));
        parts.extend((bits.dst_stages != 0).then(|| format!("{} {word} {wait}", stages(bits.dst_stages))));
        return parts.join(" and ");
    }
    parts.extend((bits.src_stages != 0).then(|| format!("{} {word} srcStageMask", stages(bits.src_stages))));
    parts.extend((bits.src_access != 0).then(|| format!("{} {word} srcAccessMask", accesses(bits.src_access))));
    parts.extend((bits.dst_stages != 0).then(|| format!("{} {word} dstStageMask", stages(bits.dst_stages))));
    parts.extend((bits.dst_access != 0).then(|| format!("{} {word} dstAccessMask", accesses(bits.dst_access))));
    format!("{} of {}", parts.join(" and "), location_text(location, names))
}

pub(crate) fn location_text(location: OperationLocation, names: &dyn ProgramNames) -> String {
    let element = |it: Option<u32>| it.map_or(String::new(), |it| format!("dependency {it} of "));
    match location {
        OperationLocation::Barrier { buffer, command, dependency: value } => {
            format!("{}the barrier at {}", element(value), names.recorded_command(buffer, command))
        }
        OperationLocation::Event { set, buffer, command, dependency: value, .. } => {
            let set = set.map_or(String::new(), |(buffer, command)| {
                format!(" (and its set at {})", names.recorded_command(buffer, command))
            });
            format!("{}the event wait at {}{set}", element(value), names.recorded_command(buffer, command))
        }
        OperationLocation::Subpass { pass, dependency: Some(item) } => {
            format!("subpass dependency {item} of {}", names.render_pass(pass))
        }
        OperationLocation::Subpass { pass, dependency: None } => {
            format!("the implicit dependency of {}", names.render_pass(pass))
        }
        OperationLocation::Semaphore { signal, wait } => {
            let part = |it: BatchSemaphoreLocation| format!("{} of {}", it.index, names.batch(it.step, it.batch));
            let signal = signal.map(|it| format!("signal {}", part(it)));
            let wait = wait.map(|it| format!("wait {}", part(it)));
            signal.into_iter().chain(wait).collect::<Vec<_>>().join(" and ")
        }
        OperationLocation::SetEvent { buffer, command } => {
            format!("the event set at {}", names.recorded_command(buffer, command))
        }
        OperationLocation::Step(step) => names.step(step),
    }
}
