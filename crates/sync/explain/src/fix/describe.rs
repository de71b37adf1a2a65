//! A fix as data: the changed object, its location, and the lines before and after the change.

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{Fix, FixChange, FixEdit};
use lavascope_sync_ir::{Dependency, DependencyTarget, ProgramLocation, Region, SyncScope};

use super::change::{BatchLocation, HostWait, ProgramChange, ProgramFix, location_text, subpass_name};
use crate::text::api_names::{access_names, stage_names};
use crate::{OperationLocation, ProgramNames, SyncOperation};

impl ProgramFix {
    /// The fix for a diagnostic. It is always verified, because the search drops other fixes.
    /// `operations` are those between the two accesses.
    pub(crate) fn describe(&self, operations: &[SyncOperation], names: &dyn ProgramNames) -> Fix {
        let changes = self.changes.iter().map(|it| it.describe(operations, names)).collect();
        Fix { text: self.text(names), is_verified: true, changes }
    }
}

impl ProgramChange {
    fn describe(&self, operations: &[SyncOperation], names: &dyn ProgramNames) -> FixChange {
        match self {
            ProgramChange::AddBits { location, bits } => {
                let given = operations.iter().find(|it| it.location == *location).map(|it| it.scope);
                at_location(*location, mask_edits(*location, given, *bits), names)
            }
            ProgramChange::ExtendRange { location, resource, region } => {
                let given = operations.iter().find(|it| it.location == *location);
                let before = given.and_then(|it| it.resource_region.as_ref());
                let edit = FixEdit {
                    field: if matches!(region, Region::Image(_)) { "subresourceRange" } else { "offset, size" }
                        .to_owned(),
                    before: before.map(|it| names.region(it.0, &it.1)),
                    after: names.region(*resource, region),
                };
                at_location(*location, vec![edit], names)
            }
            ProgramChange::InsertBarrier { buffer, before, dependency, .. } => FixChange {
                target: format!("before {}", names.recorded_function(*buffer, *before)),
                place: names.recorded_command(*buffer, *before),
                stack: names.recorded_stack(*buffer, *before),
                edits: barrier_edits(dependency, names),
            },
            ProgramChange::AddSubpassDependency { pass, dependency } => {
                let mut edits = vec![
                    added("VkSubpassDependency2", String::new()),
                    added("srcSubpass", subpass_name(dependency.src)),
                    added("dstSubpass", subpass_name(dependency.dst)),
                ];
                edits.extend(scope_edits(&dependency.scope));
                in_object(names.render_pass(*pass), edits)
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
                FixChange {
                    target: format!(
                        "before {}",
                        if function.starts_with("vk") { &function } else { "the access of the host" }
                    ),
                    place: names.step(*before),
                    stack: step_stack(*before, names),
                    edits: vec![edit],
                }
            }
        }
    }
}

impl ProgramChange {
    /// Describes a new signal with a new wait, or a new wait alone.
    fn describe_semaphore(&self, names: &dyn ProgramNames) -> FixChange {
        let batch = |it: BatchLocation| names.batch(it.step, it.batch);
        let waits = |text: String| added("pWaitSemaphores", text);
        let signals = |place: &str, stages: u64| {
            added("pSignalSemaphores", format!("a new semaphore, in {place}, stageMask {}", stage_names(stages)))
        };
        let of_two = |target: &str, signal: String, wait: String, edits| FixChange {
            target: target.to_owned(),
            place: format!("{signal} and {wait}"),
            stack: 0,
            edits,
        };
        match self {
            ProgramChange::AddSemaphore { signal, signal_stages, wait, wait_stages } => {
                let (signal, wait) = (batch(*signal), batch(*wait));
                let waited = format!("the same, in {wait}, stageMask {}", stage_names(*wait_stages));
                let edits = vec![signals(&signal, *signal_stages), waits(waited)];
                of_two("two submissions", signal, wait, edits)
            }
            ProgramChange::AddPresentWait { signal, signal_stages, present } => {
                let (signal, present) = (batch(*signal), names.step(*present));
                let edits = vec![signals(&signal, *signal_stages), waits(format!("the same, in {present}"))];
                of_two("submission and presentation", signal, present, edits)
            }
            ProgramChange::AddWait { semaphore, wait, wait_stages } => FixChange {
                target: "the submission".to_owned(),
                place: batch(*wait),
                stack: step_stack(wait.step, names),
                edits: vec![waits(format!("{}, stageMask {}", names.semaphore(*semaphore), stage_names(*wait_stages)))],
            },
            _ => FixChange::default(),
        }
    }
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
fn mask_edits(location: OperationLocation, given: Option<SyncScope>, bits: SyncScope) -> Vec<FixEdit> {
    let fields = match location {
        OperationLocation::Semaphore { .. } => ["signal stageMask", "", "wait stageMask", ""],
        _ => ["srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask"],
    };
    let masks = |it: SyncScope| [it.src_stages, it.src_access, it.dst_stages, it.dst_access];
    let (given, bits) = (given.map(masks), masks(bits));
    let is_stage = [true, false, true, false];
    // These stages execute nothing, so they are redundant next to other stages.
    let idle = [PipelineStageFlags2::TOP_OF_PIPE.0, 0, PipelineStageFlags2::BOTTOM_OF_PIPE.0, 0];
    let mut edits = Vec::new();
    for place in (0..4).filter(|it| bits[*it] != 0) {
        let name = |mask: u64| spaced(if is_stage[place] { stage_names(mask) } else { access_names(mask) });
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

/// The fields of a new barrier.
fn barrier_edits(dependency: &Dependency, names: &dyn ProgramNames) -> Vec<FixEdit> {
    let what = match &dependency.target {
        DependencyTarget::Global => "VkMemoryBarrier2".to_owned(),
        DependencyTarget::Resource { resource, region }
        | DependencyTarget::Transition { resource, region }
        | DependencyTarget::QueueFamilyTransfer { resource, region, .. } => {
            let kind =
                if matches!(region, Region::Image(_)) { "VkImageMemoryBarrier2" } else { "VkBufferMemoryBarrier2" };
            format!("{kind} of {}", names.region(*resource, region))
        }
    };
    std::iter::once(added("vkCmdPipelineBarrier2", what)).chain(scope_edits(&dependency.scope)).collect()
}

/// All masks of a new dependency.
fn scope_edits(scope: &SyncScope) -> Vec<FixEdit> {
    let access = |field, mask: u64| (mask != 0).then(|| added(field, spaced(access_names(mask))));
    [
        Some(added("srcStageMask", spaced(stage_names(scope.src_stages)))),
        access("srcAccessMask", scope.src_access),
        Some(added("dstStageMask", spaced(stage_names(scope.dst_stages)))),
        access("dstAccessMask", scope.dst_access),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn spaced(names: String) -> String {
    names.replace('|', " | ")
}
