//! The changes of a fix, as data and in words.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    CommandBufferId, Dependency, DependencyTarget, FenceId, ProgramLocation, QueueId, Region, RenderPassId, ResourceId,
    SemaphoreId, SubpassDependency, SyncScope,
};

use crate::text::api_names::{access_names, stage_names};
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
    },
    /// Extends the range of an existing barrier.
    ExtendRange {
        location: OperationLocation,
        resource: ResourceId,
        region: Region,
    },
    /// Inserts a `vkCmdPipelineBarrier2` before a command. Inside dynamic rendering, the barrier
    /// needs a device feature.
    InsertBarrier {
        buffer: CommandBufferId,
        before: u32,
        dependency: Dependency,
        feature: Option<&'static str>,
    },
    AddSubpassDependency {
        pass: RenderPassId,
        dependency: SubpassDependency,
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
            ProgramChange::AddBits { bits, .. } => count(bits),
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
            ProgramChange::AddBits { location: site, bits } => format!("add {}", bits_text(bits, *site, "to", names)),
            ProgramChange::ExtendRange { location: site, resource, region } => {
                format!("extend the range of {} to {}", location_text(*site, names), names.region(*resource, region))
            }
            ProgramChange::InsertBarrier { buffer, before, dependency, feature } => {
                let (what, place) = (barrier_text(dependency, names), names.recorded_command(*buffer, *before));
                let feature = feature.map_or(String::new(), |it| format!(" (needs the feature {it})"));
                format!("insert vkCmdPipelineBarrier2 with {what} before {place}{feature}")
            }
            ProgramChange::AddSubpassDependency { pass, dependency } => format!(
                "add a VkSubpassDependency2 to {}: srcSubpass {}, dstSubpass {}, {}",
                names.render_pass(*pass),
                subpass_name(dependency.src),
                subpass_name(dependency.dst),
                masks_text(&dependency.scope),
            ),
            ProgramChange::AddSemaphore { signal, signal_stages: after, wait, wait_stages: at } => format!(
                "signal a new semaphore in {} (stageMask {}) and wait for it in {} (stageMask {})",
                names.batch(signal.step, signal.batch),
                stage_names(*after),
                names.batch(wait.step, wait.batch),
                stage_names(*at),
            ),
            ProgramChange::AddPresentWait { signal, signal_stages: after, present } => format!(
                "signal a new semaphore in {} (stageMask {}) and have {} wait for it",
                names.batch(signal.step, signal.batch),
                stage_names(*after),
                present_text(*present, names),
            ),
            ProgramChange::AddWait { semaphore, wait, wait_stages: at } => format!(
                "wait for {} in {} (stageMask {})",
                names.semaphore(*semaphore),
                names.batch(wait.step, wait.batch),
                stage_names(*at),
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

fn barrier_text(dependency: &Dependency, names: &dyn ProgramNames) -> String {
    let masks = masks_text(&dependency.scope);
    match &dependency.target {
        DependencyTarget::Global => format!("a VkMemoryBarrier2 ({masks})"),
        DependencyTarget::Resource { resource, region }
        | DependencyTarget::Transition { resource, region }
        | DependencyTarget::QueueFamilyTransfer { resource, region, .. } => {
            let kind = match region {
                Region::Image(_) => "a VkImageMemoryBarrier2 without layout change",
                Region::Buffer(_) => "a VkBufferMemoryBarrier2",
            };
            format!("{kind} of {} ({masks})", names.region(*resource, region))
        }
    }
}

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

fn masks_text(scope: &SyncScope) -> String {
    let mut parts = vec![format!("srcStageMask {}", stage_names(scope.src_stages))];
    parts.extend((scope.src_access != 0).then(|| format!("srcAccessMask {}", access_names(scope.src_access))));
    parts.push(format!("dstStageMask {}", stage_names(scope.dst_stages)));
    parts.extend((scope.dst_access != 0).then(|| format!("dstAccessMask {}", access_names(scope.dst_access))));
    parts.join(", ")
}

/// The mask bits of an operation in words. `word` stands between the bits and the mask: `to` or
/// `from`.
pub(crate) fn bits_text(bits: &SyncScope, site: OperationLocation, word: &str, names: &dyn ProgramNames) -> String {
    let mut parts = Vec::new();
    if let OperationLocation::Semaphore { signal, wait } = site {
        let part = |kind: &str, semaphore_location: Option<BatchSemaphoreLocation>| match semaphore_location {
            Some(semaphore_location) => format!(
                "the stageMask of {kind} {} of {}",
                semaphore_location.index,
                names.batch(semaphore_location.step, semaphore_location.batch)
            ),
            None => format!("the stageMask of the {kind}"),
        };
        let (signal, wait) = (part("signal", signal), part("wait", wait));
        parts.extend((bits.src_stages != 0).then(|| format!("{} {word} {signal}", stage_names(bits.src_stages))));
        parts.extend((bits.dst_stages != 0).then(|| format!("{} {word} {wait}", stage_names(bits.dst_stages))));
        return parts.join(" and ");
    }
    parts.extend((bits.src_stages != 0).then(|| format!("{} {word} srcStageMask", stage_names(bits.src_stages))));
    parts.extend((bits.src_access != 0).then(|| format!("{} {word} srcAccessMask", access_names(bits.src_access))));
    parts.extend((bits.dst_stages != 0).then(|| format!("{} {word} dstStageMask", stage_names(bits.dst_stages))));
    parts.extend((bits.dst_access != 0).then(|| format!("{} {word} dstAccessMask", access_names(bits.dst_access))));
    format!("{} of {}", parts.join(" and "), location_text(site, names))
}

pub(crate) fn location_text(site: OperationLocation, names: &dyn ProgramNames) -> String {
    let element = |it: Option<u32>| it.map_or(String::new(), |it| format!("dependency {it} of "));
    match site {
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
