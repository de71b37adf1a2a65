//! What a fix changes, as data and in words.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    CommandBufferId, Dependency, DependencyTarget, FenceId, ProgramLocation, QueueId, Region, RenderPassId, ResourceId,
    SemaphoreId, SubpassDependency, SyncScope,
};

use crate::text::api_names::{access_names, stage_names};
use crate::{BatchSemaphoreLocation, OperationLocation, ProgramNames};

/// A change to a program, or a few that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFix {
    pub changes: Vec<ProgramChange>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProgramChange {
    /// Bits are added to the masks of an operation that is there.
    AddBits {
        location: OperationLocation,
        bits: SyncScope,
    },
    /// A barrier that is there gets a larger part of its resource.
    ExtendRange {
        location: OperationLocation,
        resource: ResourceId,
        region: Region,
    },
    /// A barrier of version 2 is put in front of a command. Inside rendering it needs a feature of the device.
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
    /// A new binary semaphore: one batch signals, another waits.
    AddSemaphore {
        signal: BatchLocation,
        signal_stages: u64,
        wait: BatchLocation,
        wait_stages: u64,
    },
    /// A new binary semaphore that a present waits for.
    AddPresentWait {
        signal: BatchLocation,
        signal_stages: u64,
        present: u32,
    },
    /// A batch waits for a semaphore that is signaled already.
    AddWait {
        semaphore: SemaphoreId,
        wait: BatchLocation,
        wait_stages: u64,
    },
    /// The host waits before one of its steps.
    InsertHostWait {
        before: u32,
        wait: HostWait,
    },
}

/// A batch: the step that submits it, and its place there.
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
    /// How much must be written: a bit is less than a new operation, and that less than a new object.
    pub fn size(&self) -> u32 {
        self.changes.iter().map(ProgramChange::size).sum()
    }

    /// Whether another fix is the same barrier elsewhere.
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

/// `vkQueuePresentKHR, call 9 of thread 1`; where a step has another name, the function comes before it.
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
    // Waiting for everything is more than waiting for one stage.
    let wide = stages.iter().filter(|it| *it & PipelineStageFlags2::ALL_COMMANDS.0 != 0).count() as u32;
    masks.iter().map(|it| it.count_ones()).sum::<u32>() + wide
}

/// A barrier on everything says the least.
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

/// Bits of the masks of an operation, with the word between them and a mask: `to`, or `from`.
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
