//! What a fix changes, as data and in words.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    CommandBufferId, Dependency, FenceId, QueueId, Region, RenderPassId, ResourceId, SyncScope, SemaphoreId,
    SubpassDependency, DependencyTarget,
};

use super::words::{access_names, stage_names};
use super::{BatchPart, Names, Site};

/// A change to a program, or a few that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Bits are added to the masks of an operation that is there.
    AddBits {
        site: Site,
        bits: SyncScope,
    },
    /// A barrier that is there gets a larger part of its resource.
    ExtendRange {
        site: Site,
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
        signal: BatchSite,
        after: u64,
        wait: BatchSite,
        at: u64,
    },
    /// A new binary semaphore that a present waits for.
    AddPresentWait {
        signal: BatchSite,
        after: u64,
        present: u32,
    },
    /// A batch waits for a semaphore that is signaled already.
    AddWait {
        semaphore: SemaphoreId,
        wait: BatchSite,
        at: u64,
    },
    /// The host waits before one of its steps.
    InsertHostWait {
        before: u32,
        wait: HostWait,
    },
}

/// A batch: the step that submits it, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSite {
    pub step: u32,
    pub batch: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostWait {
    Fence(FenceId),
    Queue(QueueId),
}

impl Fix {
    /// How much must be written: a bit is less than a new operation, and that less than a new object.
    pub fn size(&self) -> u32 {
        self.changes.iter().map(Change::size).sum()
    }

    /// Whether another fix is the same barrier elsewhere.
    pub(super) fn is_elsewhere(&self, other: &Fix) -> bool {
        match (&self.changes[..], &other.changes[..]) {
            ([Change::InsertBarrier { dependency: left, .. }], [Change::InsertBarrier { dependency: right, .. }]) => {
                left == right
            }
            _ => false,
        }
    }

    pub fn text(&self, names: &dyn Names) -> String {
        let parts: Vec<String> = self.changes.iter().map(|it| it.text(names)).collect();
        parts.join("; and ")
    }
}

impl Change {
    fn size(&self) -> u32 {
        match self {
            Change::AddBits { bits, .. } => count(bits),
            Change::ExtendRange { .. } => 3,
            Change::InsertBarrier { dependency, .. } => 10 + count(&dependency.scope) + part_size(&dependency.target),
            Change::AddSubpassDependency { dependency, .. } => 12 + count(&dependency.scope),
            Change::AddWait { .. } => 12,
            Change::InsertHostWait { wait: HostWait::Fence(_), .. } => 14,
            Change::InsertHostWait { .. } => 15,
            Change::AddSemaphore { .. } | Change::AddPresentWait { .. } => 20,
        }
    }

    fn text(&self, names: &dyn Names) -> String {
        match self {
            Change::AddBits { site, bits } => format!("add {}", bits_text(bits, *site, "to", names)),
            Change::ExtendRange { site, resource, region } => {
                format!("extend the range of {} to {}", site_name(*site, names), names.part(*resource, region))
            }
            Change::InsertBarrier { buffer, before, dependency, feature } => {
                let (what, place) = (barrier_text(dependency, names), names.recorded(*buffer, *before));
                let feature = feature.map_or(String::new(), |it| format!(" (needs the feature {it})"));
                format!("insert vkCmdPipelineBarrier2 with {what} before {place}{feature}")
            }
            Change::AddSubpassDependency { pass, dependency } => format!(
                "add a VkSubpassDependency2 to {}: srcSubpass {}, dstSubpass {}, {}",
                names.render_pass(*pass),
                subpass_name(dependency.src),
                subpass_name(dependency.dst),
                masks_text(&dependency.scope),
            ),
            Change::AddSemaphore { signal, after, wait, at } => format!(
                "signal a new semaphore in {} (stageMask {}) and wait for it in {} (stageMask {})",
                names.batch(signal.step, signal.batch),
                stage_names(*after),
                names.batch(wait.step, wait.batch),
                stage_names(*at),
            ),
            Change::AddPresentWait { signal, after, present } => format!(
                "signal a new semaphore in {} (stageMask {}) and have vkQueuePresentKHR of {} wait for it",
                names.batch(signal.step, signal.batch),
                stage_names(*after),
                names.step(*present),
            ),
            Change::AddWait { semaphore, wait, at } => format!(
                "wait for {} in {} (stageMask {})",
                names.semaphore(*semaphore),
                names.batch(wait.step, wait.batch),
                stage_names(*at),
            ),
            Change::InsertHostWait { before, wait: HostWait::Fence(fence) } => {
                format!("call vkWaitForFences on {} before {}", names.fence(*fence), names.step(*before))
            }
            Change::InsertHostWait { before, wait: HostWait::Queue(queue) } => {
                format!(
                    "wait for {} (a fence of its submission, or vkQueueWaitIdle) before {}",
                    names.queue(*queue),
                    names.step(*before)
                )
            }
        }
    }
}

fn barrier_text(dependency: &Dependency, names: &dyn Names) -> String {
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
            format!("{kind} of {} ({masks})", names.part(*resource, region))
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

fn subpass_name(subpass: Option<u32>) -> String {
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
pub(super) fn bits_text(bits: &SyncScope, site: Site, word: &str, names: &dyn Names) -> String {
    let mut parts = Vec::new();
    if let Site::Semaphore { signal, wait } = site {
        let part = |kind: &str, it: Option<BatchPart>| match it {
            Some(it) => format!("the stageMask of {kind} {} of {}", it.index, names.batch(it.step, it.batch)),
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
    format!("{} of {}", parts.join(" and "), site_name(site, names))
}

pub(super) fn site_name(site: Site, names: &dyn Names) -> String {
    let element = |it: Option<u32>| it.map_or(String::new(), |it| format!("dependency {it} of "));
    match site {
        Site::Barrier { buffer, command, element: it } => {
            format!("{}the barrier at {}", element(it), names.recorded(buffer, command))
        }
        Site::Event { set, buffer, command, element: it, .. } => {
            let set = set.map_or(String::new(), |(buffer, command)| {
                format!(" (and its set at {})", names.recorded(buffer, command))
            });
            format!("{}the event wait at {}{set}", element(it), names.recorded(buffer, command))
        }
        Site::Subpass { pass, dependency: Some(it) } => {
            format!("subpass dependency {it} of {}", names.render_pass(pass))
        }
        Site::Subpass { pass, dependency: None } => format!("the implicit dependency of {}", names.render_pass(pass)),
        Site::Semaphore { signal, wait } => {
            let part = |it: BatchPart| format!("{} of {}", it.index, names.batch(it.step, it.batch));
            let signal = signal.map(|it| format!("signal {}", part(it)));
            let wait = wait.map(|it| format!("wait {}", part(it)));
            signal.into_iter().chain(wait).collect::<Vec<_>>().join(" and ")
        }
        Site::SetEvent { buffer, command } => format!("the event set at {}", names.recorded(buffer, command)),
        Site::Step(step) => names.step(step),
    }
}
