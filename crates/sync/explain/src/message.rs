//! What is wrong with two accesses, in a few sentences.
//!
//! The grammar is the one that users of the Khronos layer know: where it is told and what hazard it is; who does what
//! to which resource, and who did what to it before; what the synchronization between them does and must do.

use lavascope_abi::PipelineStageFlags2 as Stage;
use lavascope_abi::{AccessFlags2, DESCRIPTOR_TYPE_ENUM, IMAGE_LAYOUT_ENUM, SHADER_STAGE_FLAG_BITS_ENUM};
use lavascope_sync_ir::{
    CommandLocation, Barrier, Command, Dependency, Hazard, HazardKind, LoadOp, OriginKind, ProgramLocation, Program, Region, ResourceId,
    ResourceKind, SyncScope, WaitEvents, DependencyTarget,
};

use super::calling::HOST;
use super::facts::is_image;
use super::words::{access_names, enum_name, stage_names};
use super::{
    AccessFacts, Detail, Explanation, Gap, Lane, Names, Operation, OperationKind, Relation, Role, Site, Verdict, Within,
};

/// A hazard that is explained, and whoever has names for it.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) program: &'a Program,
    pub(super) found: &'a Hazard,
    pub(super) it: &'a Explanation,
    pub(super) names: &'a dyn Names,
    pub(super) relation: Relation,
}

impl Told<'_> {
    /// The function in which it is told; empty for the host.
    pub(super) fn function(&self) -> String {
        let own = self.command();
        match (self.relation, &self.found.at) {
            (Relation::Recorded, _) => own,
            (Relation::Executed, ProgramLocation::Command(at)) => {
                let way = &at.path[..at.path.len().saturating_sub(2)];
                self.names.function(&ProgramLocation::Command(CommandLocation { path: way.to_vec(), ..at.clone() }), 0)
            }
            _ if own == HOST => String::new(),
            _ => self.names.call(&self.found.at).unwrap_or(own),
        }
    }

    /// The command of the later access.
    pub(super) fn command(&self) -> String {
        self.names.function(&self.found.at, self.it.at.stage)
    }

    pub(super) fn prior_command(&self) -> String {
        self.names.function(&self.found.prior, self.it.prior.stage)
    }

    pub(super) fn message(&self, resource: &str) -> String {
        let function = self.function();
        let title = if function.is_empty() { "Host access".to_owned() } else { format!("{function}()") };
        let kind = self.found.kind.name().replace('-', "_");
        let text = format!(
            "{title}: {kind} hazard detected{}. {} {} {resource}{}, which was previously {}.",
            self.overview(),
            self.initiator(),
            self.action(),
            how(&self.it.at),
            self.earlier(),
        );
        let lines = [self.binding(), self.alias(), Some(why(self.found.kind, self.it, self.names)), self.end()];
        lines.into_iter().flatten().fold(text, |text, line| format!("{text}\n{line}"))
    }

    fn overview(&self) -> &'static str {
        let is_own_transition = self.it.prior.role == Role::Transition && self.found.at == self.found.prior;
        match self.it.at.role {
            Role::Load if is_own_transition => ": the loadOp of an attachment does not wait for its layout transition",
            _ => "",
        }
    }

    /// Who makes the later access.
    fn initiator(&self) -> String {
        let command = self.command();
        if command == HOST {
            return "The host".to_owned();
        }
        let labeled = labeled(command, &self.found.at, self.names);
        let executor = self.names.executor(&self.found.at);
        match (self.relation, executor) {
            (Relation::Recorded, _) => shader_stage(&self.it.at).map_or(labeled, |it| format!("Shader stage {it}")),
            (Relation::Executed, Some(it)) => format!("{labeled} (from the secondary {})", it.commands),
            (Relation::Submitted, Some(it)) => {
                format!("{labeled} (from {} submitted on the current {})", it.commands, it.queue)
            }
            (Relation::Executed | Relation::Submitted, None) => labeled,
        }
    }

    fn action(&self) -> String {
        let at = &self.it.at;
        let action = match (at.role, at.detail) {
            (Role::Transition, Detail::Barrier(site)) if self.is_transfer(site) => {
                "performs queue family ownership transfer on"
            }
            (Role::Transition, Detail::Final(_)) => {
                let pass = match at.within {
                    Within::RenderPass(pass) => self.names.render_pass(pass),
                    Within::Nothing | Within::Rendering => "the render pass".to_owned(),
                };
                return format!("performs final image layout transition during {pass} on");
            }
            (Role::Transition, _) => "performs image layout transition on",
            (Role::Present, _) => "presents",
            (Role::Acquire, _) => "acquires",
            (Role::Resolve, _) if at.is_write => "writes to single sample resolve attachment",
            (Role::Resolve, _) => "reads multisample attachment",
            (_, Detail::Load(LoadOp::Clear)) => "clears",
            (_, Detail::Load(LoadOp::DontCare)) => "potentially modifies",
            (Role::Command, _) if self.command() == "vkCmdClearAttachments" => "clears",
            (Role::Command, _) if is_traced(at) => "traces rays against",
            _ if at.is_write => "writes to",
            _ => "reads",
        };
        action.to_owned()
    }

    /// Who made the earlier access, and how.
    fn earlier(&self) -> String {
        let prior = &self.it.prior;
        let command = self.prior_command();
        let is_other = command == self.command() && command != HOST;
        let labeled = labeled(command.clone(), &self.found.prior, self.names);
        let verb = if prior.is_write { "written" } else { "read" };
        let by = match (self.found.at == self.found.prior, is_other) {
            (true, _) => "by the same command".to_owned(),
            (false, true) => format!("by another {labeled} command"),
            (false, false) => format!("by {labeled}"),
        };
        let part = match prior.within {
            Within::RenderPass(_) => format!("of subpass {} ({labeled})", prior.subpass.unwrap_or(0)),
            Within::Nothing | Within::Rendering => format!("of the render pass instance ({labeled})"),
        };
        let text = match prior.role {
            Role::Transition if self.is_transfer_of(prior) => {
                format!("written during a queue family ownership transfer initiated {by}")
            }
            Role::Transition => format!("written during an image layout transition initiated {by}"),
            Role::Present => format!("presented {by}"),
            Role::Acquire => format!("accessed {by}"),
            Role::Load => format!("{verb} at the beginning {part} by the attachment loadOp"),
            Role::Store => format!("written at the end {part} by the attachment storeOp"),
            Role::Resolve => format!("{verb} at the end {part} during resolve operation"),
            Role::Command | Role::Host => format!("{verb} {by}"),
        };
        format!("{text}{}", self.recorded_where())
    }

    /// Where the earlier access was recorded, if elsewhere than the later one.
    fn recorded_where(&self) -> String {
        let Some(it) = self.names.executor(&self.found.prior) else { return String::new() };
        match (self.relation, &self.found.prior) {
            (Relation::Submitted, ProgramLocation::Command(_)) => format!(" (from {} submitted on {})", it.commands, it.queue),
            (Relation::Executed, ProgramLocation::Command(at)) if at.path.len() == 1 => {
                format!(" (from the primary {})", it.commands)
            }
            (Relation::Executed, ProgramLocation::Command(_)) => format!(" (from the secondary {})", it.commands),
            _ => String::new(),
        }
    }

    /// Through which descriptor the later access goes.
    fn binding(&self) -> Option<String> {
        let Detail::Command(origin) = self.it.at.detail else { return None };
        let it = match origin.kind() {
            OriginKind::AccelerationStructure => return Some("The buffer holds an acceleration structure.".to_owned()),
            OriginKind::Descriptor(it) => it,
            OriginKind::Command | OriginKind::Region(_) | OriginKind::Address(_) => return None,
        };
        let ty = enum_name(&DESCRIPTOR_TYPE_ENUM, it.ty);
        let element = if it.element > 0 { format!(", array element {}", it.element) } else { String::new() };
        let layout = it.layout.map(|it| format!(", image layout {}", enum_name(&IMAGE_LAYOUT_ENUM, it)));
        let layout = layout.unwrap_or_default();
        Some(format!("It is bound to descriptor set {}, binding {} ({ty}){element}{layout}.", it.set, it.binding))
    }

    fn alias(&self) -> Option<String> {
        let (at, prior) = (&self.it.at, &self.it.prior);
        (at.resource != prior.resource).then(|| {
            let part = self.names.part(prior.resource, &prior.region);
            format!("The earlier access was to {part}, which has the same memory.")
        })
    }

    /// The parameters that the later access comes from.
    fn end(&self) -> Option<String> {
        let at = &self.it.at;
        match at.detail {
            Detail::Barrier(site) => {
                let (index, it) = self.image_barrier(site)?;
                let SyncScope { src_stages, src_access, dst_stages, dst_access } = it;
                Some(format!(
                    "pImageMemoryBarriers[{index}]: srcStageMask = {}, srcAccessMask = {}, dstStageMask = {}, \
                     dstAccessMask = {}",
                    stage_names(src_stages),
                    access_names(src_access),
                    stage_names(dst_stages),
                    access_names(dst_access)
                ))
            }
            Detail::Load(LoadOp::DontCare) => Some(format!(
                "VK_ATTACHMENT_LOAD_OP_DONT_CARE counts as a write ({}): the contents may be overwritten.",
                access_names(at.access)
            )),
            _ => None,
        }
    }

    /// The place of a dependency among the image barriers of its command, and its masks.
    fn image_barrier(&self, site: Site) -> Option<(usize, SyncScope)> {
        let (all, element, stages) = dependencies(self.program, site)?;
        let own = all.get(element)?;
        let is_of_image = |it: &&Dependency| match &it.target {
            DependencyTarget::Global => false,
            DependencyTarget::Resource { resource, .. } | DependencyTarget::Transition { resource, .. } | DependencyTarget::QueueFamilyTransfer { resource, .. } => {
                let kind = self.program.resources.get(resource.0 as usize).map(|it| &it.kind);
                matches!(kind, Some(ResourceKind::Image(_)))
            }
        };
        let (src_stages, dst_stages) = stages.unwrap_or((own.scope.src_stages, own.scope.dst_stages));
        let index = all[..element].iter().filter(is_of_image).count();
        is_of_image(&own).then_some((index, SyncScope { src_stages, dst_stages, ..own.scope }))
    }

    /// Whether a dependency gives a resource to another queue family and leaves its layout.
    pub(super) fn is_transfer(&self, site: Site) -> bool {
        let own = dependencies(self.program, site).and_then(|(all, element, _)| all.get(element));
        matches!(own.map(|it| &it.target), Some(DependencyTarget::QueueFamilyTransfer { transfer, .. }) if !transfer.is_transition)
    }

    pub(super) fn is_transfer_of(&self, it: &AccessFacts) -> bool {
        matches!(it.detail, Detail::Barrier(site) if self.is_transfer(site))
    }
}

/// The dependencies of a command, which of them is meant, and the stages that they share in version 1.
type Dependencies<'a> = (&'a [Dependency], usize, Option<(u64, u64)>);

fn dependencies(program: &Program, site: Site) -> Option<Dependencies<'_>> {
    let (buffer, command, event, element) = match site {
        Site::Barrier { buffer, command, element } => (buffer, command, 0, element?),
        Site::Event { buffer, command, event, element, .. } => (buffer, command, event, element?),
        Site::Subpass { .. } | Site::Semaphore { .. } | Site::SetEvent { .. } | Site::Step(_) => return None,
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
    Some((all, element as usize, stages))
}

/// `vkCmdDraw[Frame::Shadows]`.
fn labeled(function: String, place: &ProgramLocation, names: &dyn Names) -> String {
    match names.labels(place).path() {
        Some(labels) => format!("{function}[{labels}]"),
        None => function,
    }
}

fn how(it: &AccessFacts) -> &'static str {
    match it.role {
        Role::Load => " (attachment loadOp)",
        Role::Store => " (attachment storeOp)",
        _ => "",
    }
}

/// Whether rays are traced against it.
pub(super) fn is_traced(it: &AccessFacts) -> bool {
    is_of_shader(it) && it.access == AccessFlags2::ACCELERATION_STRUCTURE_READ_KHR.0
}

/// Whether a shader makes the access, through a descriptor.
pub(super) fn is_of_shader(it: &AccessFacts) -> bool {
    let shaders = Stage::RAY_TRACING_SHADER_KHR.0 | SHADERS.iter().fold(0, |all, it| all | it.0.0);
    it.role == Role::Command
        && it.stage & shaders != 0
        && it.access != AccessFlags2::SHADER_BINDING_TABLE_READ_KHR.0
        && it.access != AccessFlags2::COLOR_ATTACHMENT_READ.0
}

/// The shader that makes an access; in ray tracing it may be one of several.
fn shader_stage(it: &AccessFacts) -> Option<&'static str> {
    let number = SHADERS.iter().find(|own| is_of_shader(it) && own.0.0 == it.stage)?.1;
    SHADER_STAGE_FLAG_BITS_ENUM.values.iter().find(|it| it.0 == number).map(|it| it.1)
}

/// The stages in which one kind of shader runs, with `VkShaderStageFlagBits`.
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

/// How many parts of a resource are named; the others are counted.
const PARTS_MAX: usize = 3;

/// Parts of a resource, joined where they touch.
pub(super) fn parts_text<'r>(
    resource: ResourceId,
    regions: impl Iterator<Item = &'r Region>,
    names: &dyn Names,
) -> String {
    let regions = Region::join_all(regions.cloned());
    let mut texts: Vec<String> = regions.iter().take(PARTS_MAX).map(|it| names.part(resource, it)).collect();
    if regions.len() > PARTS_MAX {
        texts.push(format!("{} other parts", regions.len() - PARTS_MAX));
    }
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}

/// What the synchronization there is does not do.
fn why(kind: HazardKind, it: &Explanation, names: &dyn Names) -> String {
    if let HazardKind::ReadRacingWrite | HazardKind::WriteRacingWrite | HazardKind::WriteRacingRead = kind {
        return race(it, names);
    }
    let (now, before) = (usage_text(&it.at), usage_text(&it.prior));
    let carried: Vec<String> = carried(it).filter_map(|it| reach(it, names)).collect();
    let limited = carried_limit(it, names);
    match (it.prior.role, it.at.role) {
        (_, Role::Present) => return format!("The presentation does not wait for {before}."),
        (Role::Present | Role::Acquire, _) if carried.is_empty() => {
            return format!("Nothing lets {now} wait until the presentation engine is done with the image.");
        }
        (Role::Present | Role::Acquire, _) => {
            return format!("The wait for the image reaches {}, but it must reach {now}.", carried.join(", "));
        }
        (_, Role::Host) if it.prior.is_write && !is_over(it) => {
            return format!("Nothing that the host waits for comes after {before}.");
        }
        (_, Role::Host) if it.prior.is_write => {
            return format!(
                "The write is over when the host gets there, but nothing makes it visible to the host: that takes a \
                 dependency to {now}."
            );
        }
        _ => {}
    }
    let hint =
        if it.prior.is_write { "" } else { "\nHint: an execution dependency is sufficient to prevent this hazard." };
    if carried.is_empty() {
        return match it.prior.is_write {
            true if it.operations.iter().any(Operation::is_by_other_name) => by_other_name(it, names),
            true => format!("Nothing between them makes {before} visible to {now}."),
            false => format!("Nothing between them orders {before} before {now}.{hint}"),
        };
    }
    if it.prior.is_write {
        let carried = carried.join(", ");
        return format!("The synchronization between them allows {carried}, but it must allow {now}{limited}.");
    }
    let stages = stages_reached(it, names);
    format!("The synchronization between them orders {before} before {stages}, but not before {now}{limited}.{hint}")
}

/// Whether the host has waited for the earlier access.
fn is_over(it: &Explanation) -> bool {
    it.operations.iter().any(|it| it.kind == OperationKind::HostWait && it.verdict != Verdict::Misses)
}

/// What comes behind all operations: those that are not limited together, the others by themselves.
fn stages_reached(it: &Explanation, names: &dyn Names) -> String {
    let is_free = |it: &&Operation| limit(it, names).is_none();
    let free = carried(it).filter(is_free).fold(0, |all, it| all | it.scope.dst_stages);
    let limited =
        carried(it).filter_map(|it| Some(format!("{} {}", stage_names(it.scope.dst_stages), limit(it, names)?)));
    (free != 0).then(|| stage_names(free)).into_iter().chain(limited).collect::<Vec<String>>().join(", ")
}

/// To what an operation is limited whose masks have the later access.
fn limit(it: &Operation, names: &dyn Names) -> Option<String> {
    if it.verdict != Verdict::Carries || it.missing.dst_stages | it.missing.dst_access != 0 {
        return None;
    }
    it.gaps.iter().find_map(|gap| match gap {
        Gap::OtherSubpass => Some("in another subpass only".to_owned()),
        Gap::OtherRange | Gap::OtherResource | Gap::EarlierName(_) => {
            it.about.as_ref().map(|(resource, region)| format!("to {} only", names.part(*resource, region)))
        }
        _ => None,
    })
}

/// What the limits of operations are to be held against: where the later access is.
fn carried_limit(it: &Explanation, names: &dyn Names) -> String {
    let is_of_subpass = |it: &Operation| it.gaps.contains(&Gap::OtherSubpass);
    let mut limited = carried(it).filter(|it| limit(it, names).is_some()).peekable();
    match (limited.peek().is_some(), limited.any(is_of_subpass), it.at.subpass) {
        (false, ..) => String::new(),
        (true, true, Some(subpass)) => format!(" in subpass {subpass}"),
        (true, true, None) => " outside of it".to_owned(),
        (true, false, _) => format!(" to {}", names.part(it.at.resource, &it.region)),
    }
}

/// The synchronization there is does something, but not for the resource through which the later access goes.
fn by_other_name(it: &Explanation, names: &dyn Names) -> String {
    let mut about: Vec<String> = Vec::new();
    for operation in it.operations.iter().filter(|it| it.is_by_other_name()) {
        let name = operation.about.as_ref().map(|it| names.resource(it.0));
        about.extend(name.filter(|it| !about.contains(it)));
    }
    format!(
        "The synchronization between them is about {}, but it must make {} visible to {} through {}.",
        about.join(" and "),
        usage_text(&it.prior),
        usage_text(&it.at),
        names.resource(it.at.resource)
    )
}

fn race(it: &Explanation, names: &dyn Names) -> String {
    match (it.prior.lane, it.at.lane) {
        (Lane::Queue(from), Lane::Queue(to)) if from != to => format!(
            "The two race: no semaphore or wait leads from the batch on {} to the batch on {}.",
            names.queue(from),
            names.queue(to)
        ),
        (Lane::Queue(from), Lane::Host) => {
            format!("The two race: the host does not wait for the batch on {}.", names.queue(from))
        }
        (Lane::Host, Lane::Queue(to)) => {
            format!("The two race: the batch on {} was submitted before the host was done.", names.queue(to))
        }
        _ => "The two race: no dependency leads from the one subpass to the other.".to_owned(),
    }
}

/// What comes behind an operation; none if nothing does.
fn reach(it: &Operation, names: &dyn Names) -> Option<String> {
    let SyncScope { dst_stages, dst_access, .. } = it.scope;
    let text = match it.kind {
        _ if dst_stages == 0 => return None,
        OperationKind::Semaphore | OperationKind::HostWait | OperationKind::Submit => stage_names(dst_stages),
        // An execution dependency lets no access see anything.
        _ if dst_access == 0 => format!("no accesses at {}", stage_names(dst_stages)),
        _ => format!("{} accesses at {}", access_names(dst_access), stage_names(dst_stages)),
    };
    Some(limit(it, names).map_or_else(|| text.clone(), |limit| format!("{text} {limit}")))
}

/// What leads from the earlier access towards the later one.
pub(super) fn carried(it: &Explanation) -> impl Iterator<Item = &Operation> {
    let lane = it.at.lane;
    // What a release hands on it hands to another queue.
    let is_here = |it: &Operation| !it.is_by_other_name() && !it.gaps.contains(&Gap::Release);
    let is_carrying = move |it: &&Operation| it.verdict != Verdict::Misses && is_here(it);
    it.operations.iter().filter(move |it| it.lane == lane).filter(is_carrying)
}

pub(super) fn carried_stages(it: &Explanation) -> u64 {
    carried(it).fold(0, |all, it| all | it.scope.dst_stages)
}

fn usage_text(it: &AccessFacts) -> String {
    match it.role {
        Role::Transition if is_image(it) => "the image layout transition".to_owned(),
        Role::Transition => "the queue family ownership transfer".to_owned(),
        Role::Present | Role::Acquire => "the presentation engine".to_owned(),
        _ => format!("{} accesses at {}", access_names(it.access), stage_names(it.stage)),
    }
}
