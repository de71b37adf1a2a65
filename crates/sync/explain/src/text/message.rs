//! The message of a hazard, in a few sentences.
//!
//! The grammar is the one of the Khronos layer's messages. First come the function and the kind of
//! hazard, then the later access and the earlier access to the resource. The last sentence compares
//! the existing synchronization with the synchronization that the accesses need.

use lavascope_abi::PipelineStageFlags2 as Stage;
use lavascope_abi::{AccessFlags2, DESCRIPTOR_TYPE_ENUM, IMAGE_LAYOUT_ENUM, SHADER_STAGE_FLAG_BITS_ENUM};
use lavascope_sync_ir::{
    Barrier, Certainty, Command, CommandLocation, Dependency, DependencyTarget, Hazard, HazardKind, HostStep, LoadOp,
    OriginKind, Program, ProgramLocation, Region, ResourceId, StoreOp, SyncScope, WaitEvents,
};

use super::api_names::{ALL_ACCESSES, access_names, accesses_at, enum_name, second_scope_stages, stage_names};
use super::barrier_member::{array_index, array_of};
use super::names::HOST;
use super::properties::is_image;
use crate::{
    AccessDetail, AccessRelation, AccessRole, Agent, CoverageGap, ExplainedAccess, Explanation, OperationLocation,
    ProgramNames, RenderingContext, ScopeCoverage, SyncOperation, SyncOperationKind,
};

/// A hazard with its explanation, and the names for its message.
#[derive(Clone, Copy)]
pub(crate) struct ExplainedHazard<'a> {
    pub(crate) program: &'a Program,
    pub(crate) hazard: &'a Hazard,
    /// The regions of the resource on which the two commands conflict.
    pub(crate) regions: &'a [Region],
    pub(crate) explanation: &'a Explanation,
    pub(crate) names: &'a dyn ProgramNames,
    pub(crate) relation: AccessRelation,
    /// Whether the synchronization operations between the two accesses are known.
    pub(crate) has_operations: bool,
}

impl ExplainedHazard<'_> {
    /// The function that the message names first. Empty if the host made the access.
    pub(crate) fn function(&self) -> String {
        let own = self.command();
        match (self.relation, &self.hazard.at) {
            (AccessRelation::Recorded, _) => own,
            (AccessRelation::Executed, ProgramLocation::Command(at)) => {
                let way = &at.path[..at.path.len().saturating_sub(2)];
                self.names.function(&ProgramLocation::Command(CommandLocation { path: way.to_vec(), ..at.clone() }), 0)
            }
            _ if own == HOST => String::new(),
            _ => self.names.submitting_call(&self.hazard.at).unwrap_or(own),
        }
    }

    /// The command of the later access.
    pub(crate) fn command(&self) -> String {
        self.names.function(&self.hazard.at, self.explanation.later.stage)
    }

    pub(crate) fn prior_command(&self) -> String {
        self.names.function(&self.hazard.prior, self.explanation.prior.stage)
    }

    /// The message of the hazard: the two accesses, and the synchronization that is missing between them.
    pub(crate) fn message(&self, resource: &str) -> String {
        let function = self.function();
        let title = if function.is_empty() { "Host access".to_owned() } else { format!("{function}()") };
        let kind = self.hazard.kind.name().replace('-', "_");
        let text = format!(
            "{title}: {kind} hazard detected{}. {} {} {resource}{}, which was previously {}.",
            self.overview(),
            self.initiator(),
            self.action(),
            attachment_op_suffix(&self.explanation.later),
            self.prior_access_text(),
        );
        let lines = [
            self.binding(),
            self.alias(),
            self.has_operations.then(|| missing_sync_text(self.hazard.kind, self.explanation, self.names)),
            self.parameters_text(),
        ];
        lines.into_iter().flatten().fold(text, |text, line| format!("{text}\n{line}"))
    }

    fn overview(&self) -> &'static str {
        let is_own_transition =
            self.explanation.prior.role == AccessRole::Transition && self.hazard.at == self.hazard.prior;
        match self.explanation.later.role {
            AccessRole::Load if is_own_transition => {
                ": the loadOp of an attachment does not wait for its layout transition"
            }
            _ => "",
        }
    }

    /// The first words of the sentence: the command or the host that makes the later access.
    fn initiator(&self) -> String {
        let command = self.command();
        if command == HOST {
            return "The host".to_owned();
        }
        let labeled = labeled(command, &self.hazard.at, self.names);
        let executor = self.names.executor(&self.hazard.at);
        match (self.relation, executor) {
            (AccessRelation::Recorded, _) => {
                shader_stage(&self.explanation.later).map_or(labeled, |it| format!("Shader stage {it}"))
            }
            (AccessRelation::Executed, Some(executor_names)) => {
                format!("{labeled} (from the secondary {})", executor_names.command_buffer)
            }
            (AccessRelation::Submitted, Some(executor_names)) => {
                format!(
                    "{labeled} (from {} submitted on the current {})",
                    executor_names.command_buffer, executor_names.queue
                )
            }
            (AccessRelation::Executed | AccessRelation::Submitted, None) => labeled,
        }
    }

    fn action(&self) -> String {
        let at = &self.explanation.later;
        let action = match (at.role, at.detail) {
            (AccessRole::Transition, AccessDetail::Barrier(location)) if self.is_transfer(location) => {
                "performs queue family ownership transfer on"
            }
            (AccessRole::Transition, AccessDetail::FinalTransition(_)) => {
                let pass = match at.within {
                    RenderingContext::RenderPass(pass) => self.names.render_pass(pass),
                    RenderingContext::Nothing | RenderingContext::Rendering => "the render pass".to_owned(),
                };
                return format!("performs final image layout transition during {pass} on");
            }
            (AccessRole::Transition, _) => "performs image layout transition on",
            (AccessRole::Present, _) => "presents",
            (AccessRole::Acquire, _) => "acquires",
            (AccessRole::Resolve, _) if at.is_write => "writes to single sample resolve attachment",
            (AccessRole::Resolve, _) => "reads multisample attachment",
            (_, AccessDetail::Load(LoadOp::Clear)) => "clears",
            (_, AccessDetail::Load(LoadOp::DontCare)) => "potentially modifies",
            (AccessRole::Command, _) if self.command() == "vkCmdClearAttachments" => "clears",
            (AccessRole::Command, _) if is_ray_traced(at) => "traces rays against",
            (AccessRole::Host, _) if self.is_assumed(&self.hazard.at) && at.is_write => "may write to",
            (AccessRole::Host, _) if self.is_assumed(&self.hazard.at) => "may read or write",
            _ if at.is_write => "writes to",
            _ => "reads",
        };
        action.to_owned()
    }

    /// Whether the program only mapped and unmapped the memory. The host may then have accessed it,
    /// but Lavascope cannot see it.
    fn is_assumed(&self, place: &ProgramLocation) -> bool {
        let ProgramLocation::Step(step) = place else { return false };
        let step = self.program.steps.get(*step as usize);
        matches!(step, Some(HostStep::HostAccess { certainty, .. }) if *certainty != Certainty::Certain)
    }

    /// The earlier access: what it did, and which command made it.
    fn prior_access_text(&self) -> String {
        let prior = &self.explanation.prior;
        let command = self.prior_command();
        let is_other = command == self.command() && command != HOST;
        let labeled = labeled(command.clone(), &self.hazard.prior, self.names);
        let verb = if prior.is_write { "written" } else { "read" };
        let by = match (self.hazard.at == self.hazard.prior, is_other) {
            (true, _) => "by the same command".to_owned(),
            (false, true) => format!("by another {labeled} command"),
            (false, false) => format!("by {labeled}"),
        };
        let part = match prior.within {
            RenderingContext::RenderPass(_) => format!("of subpass {} ({labeled})", prior.subpass.unwrap_or(0)),
            RenderingContext::Nothing | RenderingContext::Rendering => {
                format!("of the render pass instance ({labeled})")
            }
        };
        let text = match prior.role {
            AccessRole::Transition if self.is_transfer_of(prior) => {
                format!("written during a queue family ownership transfer initiated {by}")
            }
            AccessRole::Transition => format!("written during an image layout transition initiated {by}"),
            AccessRole::Present => format!("presented {by}"),
            AccessRole::Acquire => format!("accessed {by}"),
            AccessRole::Load => format!("{verb} at the beginning {part} by the attachment loadOp"),
            AccessRole::Store => format!("written at the end {part} by the attachment storeOp"),
            AccessRole::Resolve => format!("{verb} at the end {part} during resolve operation"),
            AccessRole::Host if self.is_assumed(&self.hazard.prior) => {
                "mapped by the host, which may have accessed it".to_owned()
            }
            AccessRole::Command | AccessRole::Host => format!("{verb} {by}"),
            AccessRole::Forgotten => format!("{verb} by work that was submitted long before"),
        };
        format!("{text}{}", self.prior_recording_text())
    }

    /// The command buffer and the queue of the earlier access, if they differ from those of the
    /// later access.
    fn prior_recording_text(&self) -> String {
        let Some(other) = self.names.executor(&self.hazard.prior) else { return String::new() };
        match (self.relation, &self.hazard.prior) {
            (AccessRelation::Submitted, ProgramLocation::Command(_)) => {
                format!(" (from {} submitted on {})", other.command_buffer, other.queue)
            }
            (AccessRelation::Executed, ProgramLocation::Command(at)) if at.path.len() == 1 => {
                format!(" (from the primary {})", other.command_buffer)
            }
            (AccessRelation::Executed, ProgramLocation::Command(_)) => {
                format!(" (from the secondary {})", other.command_buffer)
            }
            _ => String::new(),
        }
    }

    /// The descriptor that the later access uses.
    fn binding(&self) -> Option<String> {
        let AccessDetail::Command(origin) = self.explanation.later.detail else { return None };
        let descriptor = match origin.kind() {
            OriginKind::AccelerationStructure => return Some("The buffer holds an acceleration structure.".to_owned()),
            OriginKind::Descriptor(item) => item,
            OriginKind::Command | OriginKind::Region(_) | OriginKind::Address(_) | OriginKind::Attributes(_) => {
                return None;
            }
        };
        let ty = enum_name(&DESCRIPTOR_TYPE_ENUM, descriptor.ty);
        let element =
            if descriptor.element > 0 { format!(", array element {}", descriptor.element) } else { String::new() };
        let layout = descriptor.layout.map(|it| format!(", image layout {}", enum_name(&IMAGE_LAYOUT_ENUM, it)));
        let layout = layout.unwrap_or_default();
        Some(format!(
            "It is bound to descriptor set {}, binding {} ({ty}){element}{layout}.",
            descriptor.set, descriptor.binding
        ))
    }

    fn alias(&self) -> Option<String> {
        let (at, prior) = (&self.explanation.later, &self.explanation.prior);
        (at.resource != prior.resource).then(|| {
            let part = self.names.region(prior.resource, &prior.region);
            format!("The earlier access was to {part}, which has the same memory.")
        })
    }

    /// The parameters of the API that cause the later access.
    fn parameters_text(&self) -> Option<String> {
        let at = &self.explanation.later;
        match at.detail {
            AccessDetail::Barrier(location) => {
                let (index, sync_scope) = self.image_barrier(location)?;
                let SyncScope { src_stages, src_access, dst_stages, dst_access } = sync_scope;
                Some(format!(
                    "pImageMemoryBarriers[{index}]: srcStageMask = {}, srcAccessMask = {}, dstStageMask = {}, \
                     dstAccessMask = {}",
                    stage_names(src_stages),
                    access_names(src_access),
                    stage_names(dst_stages),
                    access_names(dst_access)
                ))
            }
            AccessDetail::Load(LoadOp::DontCare) => Some(format!(
                "VK_ATTACHMENT_LOAD_OP_DONT_CARE counts as a write ({}): the contents may be overwritten.",
                access_names(at.access)
            )),
            AccessDetail::Store(StoreOp::None) => Some(format!(
                "VK_ATTACHMENT_STORE_OP_NONE counts as a write ({}): values were written to the attachment, which it then \
                 treats like VK_ATTACHMENT_STORE_OP_DONT_CARE.",
                access_names(at.access)
            )),
            _ => None,
        }
    }

    /// The index of a dependency among the image barriers of its command, and its masks.
    fn image_barrier(&self, location: OperationLocation) -> Option<(usize, SyncScope)> {
        let CommandDependencies { all, element, stages } = dependencies(self.program, location)?;
        let own = all.get(element)?;
        let (src_stages, dst_stages) = stages.unwrap_or((own.scope.src_stages, own.scope.dst_stages));
        let index = array_index(self.program, all, element)?;
        let is_of_image = array_of(self.program, own) == "pImageMemoryBarriers";
        is_of_image.then_some((index, SyncScope { src_stages, dst_stages, ..own.scope }))
    }

    /// Whether a dependency transfers a resource to another queue family without a layout
    /// transition.
    pub(crate) fn is_transfer(&self, location: OperationLocation) -> bool {
        let own = dependencies(self.program, location).and_then(|it| it.all.get(it.element));
        matches!(own.map(|it| &it.target), Some(DependencyTarget::QueueFamilyTransfer { transfer, .. }) if !transfer.is_transition)
    }

    pub(crate) fn is_transfer_of(&self, explained_access: &ExplainedAccess) -> bool {
        matches!(explained_access.detail, AccessDetail::Barrier(location) if self.is_transfer(location))
    }
}

/// The dependencies of a command.
pub(crate) struct CommandDependencies<'a> {
    pub(crate) all: &'a [Dependency],
    /// The index of the wanted one.
    pub(crate) element: usize,
    /// The stage masks of the whole command, which only version 1 has.
    stages: Option<(u64, u64)>,
}

pub(crate) fn dependencies(program: &Program, location: OperationLocation) -> Option<CommandDependencies<'_>> {
    let (buffer, command, event, element) = match location {
        OperationLocation::Barrier { buffer, command, dependency: element } => (buffer, command, 0, element?),
        OperationLocation::Event { buffer, command, event, dependency: element, .. } => {
            (buffer, command, event, element?)
        }
        OperationLocation::Subpass { .. }
        | OperationLocation::Semaphore { .. }
        | OperationLocation::SetEvent { .. }
        | OperationLocation::Step(_) => return None,
    };
    let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)?;
    let (all, stages) = match command {
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            (dependencies, Some((*src_stages, *dst_stages)))
        }
        Command::Barrier(Barrier::Sync2 { dependencies }) => (dependencies, None),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => (&events.get(event as usize)?.1, None),
        _ => return None,
    };
    Some(CommandDependencies { all, element: element as usize, stages })
}

/// A function with its debug labels: `vkCmdDraw[Frame::Shadows]`.
fn labeled(function: String, place: &ProgramLocation, names: &dyn ProgramNames) -> String {
    match names.labels(place).path() {
        Some(labels) => format!("{function}[{labels}]"),
        None => function,
    }
}

fn attachment_op_suffix(explained_access: &ExplainedAccess) -> &'static str {
    match explained_access.role {
        AccessRole::Load => " (attachment loadOp)",
        AccessRole::Store => " (attachment storeOp)",
        _ => "",
    }
}

/// Whether a shader traces rays against an acceleration structure.
pub(crate) fn is_ray_traced(explained_access: &ExplainedAccess) -> bool {
    is_shader_access(explained_access) && explained_access.access == AccessFlags2::ACCELERATION_STRUCTURE_READ_KHR.0
}

/// Whether a shader makes the access through a descriptor.
pub(crate) fn is_shader_access(explained_access: &ExplainedAccess) -> bool {
    let shaders = Stage::RAY_TRACING_SHADER_KHR.0 | SHADERS.iter().fold(0, |all, it| all | it.0.0);
    explained_access.role == AccessRole::Command
        && explained_access.stage & shaders != 0
        && explained_access.access != AccessFlags2::SHADER_BINDING_TABLE_READ_KHR.0
        && explained_access.access != AccessFlags2::COLOR_ATTACHMENT_READ.0
}

/// The shader stage that makes an access. None for ray tracing, where one pipeline stage covers
/// several shader stages.
fn shader_stage(explained_access: &ExplainedAccess) -> Option<&'static str> {
    let number = SHADERS.iter().find(|own| is_shader_access(explained_access) && own.0.0 == explained_access.stage)?.1;
    SHADER_STAGE_FLAG_BITS_ENUM.values.iter().find(|it| it.0 == number).map(|it| it.1)
}

/// Pipeline stages with exactly one shader stage, and its value in `VkShaderStageFlagBits`.
const SHADERS: [(Stage, i64); 10] = [
    (Stage::VERTEX_SHADER, 0x1),
    (Stage::TESSELLATION_CONTROL_SHADER, 0x2),
    (Stage::TESSELLATION_EVALUATION_SHADER, 0x4),
    (Stage::GEOMETRY_SHADER, 0x8),
    (Stage::FRAGMENT_SHADER, 0x10),
    (Stage::COMPUTE_SHADER, 0x20),
    (Stage::TASK_SHADER_EXT, 0x40),
    (Stage::MESH_SHADER_EXT, 0x80),
    (Stage::SUBPASS_SHADER_HUAWEI, 0x4000),
    (Stage::CLUSTER_CULLING_SHADER_HUAWEI, 0x80000),
];

/// The message names this many regions of a resource, and counts the others.
const PARTS_MAX: usize = 3;

/// A list of regions of a resource, in words.
pub(crate) fn regions_text(resource: ResourceId, regions: &[Region], names: &dyn ProgramNames) -> String {
    let mut texts: Vec<String> = regions.iter().take(PARTS_MAX).map(|it| names.region(resource, it)).collect();
    if regions.len() > PARTS_MAX {
        texts.push(format!("{} other parts", regions.len() - PARTS_MAX));
    }
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

/// What the synchronization between the two accesses does, and what is missing.
fn missing_sync_text(kind: HazardKind, explanation: &Explanation, names: &dyn ProgramNames) -> String {
    if let HazardKind::ReadRacingWrite | HazardKind::WriteRacingWrite | HazardKind::WriteRacingRead = kind {
        return race(explanation, names);
    }
    let (now, before) = (usage_text(&explanation.later), usage_text(&explanation.prior));
    let carried = carried_texts(explanation, names);
    let limited = later_limit_text(explanation, names);
    match (explanation.prior.role, explanation.later.role) {
        (_, AccessRole::Present) => return format!("The presentation does not wait for {before}."),
        (AccessRole::Present | AccessRole::Acquire, _) if carried.is_empty() => {
            return format!("Nothing lets {now} wait until the presentation engine is done with the image.");
        }
        (AccessRole::Present | AccessRole::Acquire, _) => {
            let carried = joined_once(carried.into_iter());
            return format!("The wait for the image reaches {carried}, but it must reach {now}.");
        }
        (_, AccessRole::Host) if explanation.prior.is_write && !has_host_wait_for_prior(explanation) => {
            return format!("Nothing that the host waits for comes after {before}.");
        }
        (_, AccessRole::Host) if explanation.prior.is_write => {
            return format!(
                "The write is over when the host gets there, but nothing makes it visible to the host: that takes a \
                 dependency to {now}."
            );
        }
        _ => {}
    }
    let hint = if explanation.prior.is_write {
        ""
    } else {
        "\nHint: an execution dependency is sufficient to prevent this hazard."
    };
    if carried.is_empty() {
        return match explanation.prior.is_write {
            true if explanation.operations.iter().any(SyncOperation::has_later_alias_gap) => {
                other_resource_text(explanation, names)
            }
            true => format!("Nothing between them makes {before} visible to {now}."),
            false => format!("Nothing between them orders {before} before {now}.{hint}"),
        };
    }
    if explanation.prior.is_write {
        let carried = joined_once(carried.into_iter());
        return format!("The synchronization between them allows {carried}, but it must allow {now}{limited}.");
    }
    let stages = stages_reached(explanation, names);
    format!("The synchronization between them orders {before} before {stages}, but not before {now}{limited}.{hint}")
}

/// What comes after the operations between the two accesses. If any of them has destination
/// accesses, pure execution dependencies are skipped.
fn carried_texts(explanation: &Explanation, names: &dyn ProgramNames) -> Vec<String> {
    let (all, memory): (Vec<&SyncOperation>, Vec<&SyncOperation>) = (
        ordering_operations(explanation).collect(),
        ordering_operations(explanation).filter(|it| it.scope.dst_access != 0).collect(),
    );
    let operations = if memory.is_empty() { all } else { memory };
    operations.into_iter().filter_map(|it| reach(it, names)).collect()
}

/// The message lists this many entries, and counts the others.
const LISTED_MAX: usize = 4;

/// A list without duplicates, as text.
fn joined_once(texts: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for text in texts {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    let more = once.len().saturating_sub(LISTED_MAX);
    if more > 1 {
        once.truncate(LISTED_MAX);
        once.push(format!("{more} others"));
    }
    once.join(", ")
}

/// Whether the host waited until the earlier access was complete.
fn has_host_wait_for_prior(explanation: &Explanation) -> bool {
    explanation
        .operations
        .iter()
        .any(|it| it.kind == SyncOperationKind::HostWait && it.coverage != ScopeCoverage::NotInFirst)
}

/// The stages that the operations order after the earlier access. Operations without a limit are
/// united. Each limited operation is listed separately.
fn stages_reached(explanation: &Explanation, names: &dyn ProgramNames) -> String {
    let is_free = |it: &&SyncOperation| limit(it, names).is_none();
    let reached = |it: &SyncOperation| second_scope_stages(it.scope.dst_stages);
    let free = ordering_operations(explanation).filter(is_free).fold(0, |all, it| all | reached(it));
    let limited = ordering_operations(explanation)
        .filter(|it| reached(it) != 0)
        .filter_map(|it| Some(format!("{} {}", stage_names(reached(it)), limit(it, names)?)));
    let free = (free != 0).then(|| stage_names(second_scope_stages(free)));
    joined_once(free.into_iter().chain(limited))
}

/// The subpass or the region to which an operation is limited. None if the operation has no limit,
/// or if its masks do not include the later access.
fn limit(sync_operation: &SyncOperation, names: &dyn ProgramNames) -> Option<String> {
    if sync_operation.coverage != ScopeCoverage::FirstOnly
        || sync_operation.missing.dst_stages | sync_operation.missing.dst_access != 0
    {
        return None;
    }
    sync_operation.gaps.iter().find_map(|gap| match gap {
        CoverageGap::OtherSubpass => Some("in another subpass only".to_owned()),
        CoverageGap::OtherRange | CoverageGap::OtherResource | CoverageGap::PriorThroughAlias(_) => sync_operation
            .resource_region
            .as_ref()
            .map(|(resource, region)| format!("to {} only", names.region(*resource, region))),
        _ => None,
    })
}

/// The subpass or the region of the later access. The message compares it with the limits of the
/// operations.
fn later_limit_text(explanation: &Explanation, names: &dyn ProgramNames) -> String {
    let is_of_subpass = |it: &SyncOperation| it.gaps.contains(&CoverageGap::OtherSubpass);
    let mut limited = ordering_operations(explanation).filter(|it| limit(it, names).is_some()).peekable();
    match (limited.peek().is_some(), limited.any(is_of_subpass), explanation.later.subpass) {
        (false, ..) => String::new(),
        (true, true, Some(subpass)) => format!(" in subpass {subpass}"),
        (true, true, None) => " outside of it".to_owned(),
        (true, false, _) => format!(" to {}", names.region(explanation.later.resource, &explanation.region)),
    }
}

/// The synchronization covers the memory, but not through the resource that the later access uses
/// (`resources-memory-aliasing`).
fn other_resource_text(explanation: &Explanation, names: &dyn ProgramNames) -> String {
    let mut about: Vec<String> = Vec::new();
    for operation in explanation.operations.iter().filter(|it| it.has_later_alias_gap()) {
        let name = operation.resource_region.as_ref().map(|it| names.resource(it.0));
        about.extend(name.filter(|it| !about.contains(it)));
    }
    format!(
        "The synchronization between them is about {}, but it must make {} visible to {} through {}.",
        about.join(" and "),
        usage_text(&explanation.prior),
        usage_text(&explanation.later),
        names.resource(explanation.later.resource)
    )
}

fn race(explanation: &Explanation, names: &dyn ProgramNames) -> String {
    match (explanation.prior.agent, explanation.later.agent) {
        (Agent::Queue(from), Agent::Queue(to)) if from != to => format!(
            "The two race: no semaphore or wait leads from the batch on {} to the batch on {}.",
            names.queue(from),
            names.queue(to)
        ),
        (Agent::Queue(from), Agent::Host) => {
            format!("The two race: the host does not wait for the batch on {}.", names.queue(from))
        }
        (Agent::Host, Agent::Queue(to)) => {
            format!("The two race: the batch on {} was submitted before the host was done.", names.queue(to))
        }
        _ => "The two race: no dependency leads from the one subpass to the other.".to_owned(),
    }
}

/// The accesses in the second scope of an operation. None if the scope has no stages.
fn reach(sync_operation: &SyncOperation, names: &dyn ProgramNames) -> Option<String> {
    let SyncScope { dst_stages, dst_access, .. } = sync_operation.scope;
    let dst_stages = second_scope_stages(dst_stages);
    let text = match sync_operation.kind {
        _ if dst_stages == 0 => return None,
        SyncOperationKind::Semaphore | SyncOperationKind::HostWait | SyncOperationKind::Submit => {
            accesses_at(dst_stages, ALL_ACCESSES)
        }
        // An execution dependency makes no write visible.
        _ => accesses_at(dst_stages, dst_access),
    };
    Some(limit(sync_operation, names).map_or_else(|| text.clone(), |limit| format!("{text} {limit}")))
}

/// The operations that order something after the earlier access, on the queue of the later access.
pub(crate) fn ordering_operations(explanation: &Explanation) -> impl Iterator<Item = &SyncOperation> {
    let lane = explanation.later.agent;
    // The second scope of a release is on another queue
    // (`synchronization-queue-transfers-release`).
    let is_here = |it: &SyncOperation| !it.has_later_alias_gap() && !it.gaps.contains(&CoverageGap::Release);
    let is_carrying = move |it: &&SyncOperation| it.coverage != ScopeCoverage::NotInFirst && is_here(it);
    explanation.operations.iter().filter(move |it| it.agent == lane).filter(is_carrying)
}

pub(crate) fn ordering_stages(explanation: &Explanation) -> u64 {
    ordering_operations(explanation).fold(0, |all, it| all | it.scope.dst_stages)
}

fn usage_text(explained_access: &ExplainedAccess) -> String {
    match explained_access.role {
        AccessRole::Transition if is_image(explained_access) => "the image layout transition".to_owned(),
        AccessRole::Transition => "the queue family ownership transfer".to_owned(),
        AccessRole::Present | AccessRole::Acquire => "the presentation engine".to_owned(),
        _ => accesses_at(explained_access.stage, explained_access.access),
    }
}
