//! Hazards as diagnostics, with explanation and fix.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{Code, Diagnostic, Fact, Fix, Object, Place as DiagPlace, Severity};
use lavascope_program::{
    Barrier, Command, CommandBufferId, FenceId, Findings, Found, HazardKind, Place, Program, QueueId, Region,
    RenderPassId, ResourceId, ResourceKind, SemaphoreId, Step, WaitEvents,
};

use super::describe::describe_operation;
use super::element::recorded;
use super::fault::diagnose_faults;
use super::level::{Level, level};
use super::words::{access_names, region_text, stage_names};
use super::{AccessFacts, Explainer, Explanation, Lane, OperationKind, Proposal, Role, Verdict};
use crate::check_all;

/// How things of a program are called.
pub trait Names {
    fn resource(&self, resource: ResourceId) -> String;
    fn part(&self, resource: ResourceId, region: &Region) -> String {
        format!("{}{}", self.resource(resource), region_text(region))
    }
    fn queue(&self, queue: QueueId) -> String;
    /// A command as it was executed.
    fn place(&self, place: &Place) -> String;
    /// A command as it was recorded.
    fn recorded(&self, buffer: CommandBufferId, command: u32) -> String;
    /// The function that the application called; `stage` is where the access happens, zero if nowhere.
    fn function(&self, place: &Place, stage: u64) -> String;
    /// Something that the host does.
    fn step(&self, step: u32) -> String {
        format!("step {step}")
    }
    /// A batch of a submission.
    fn batch(&self, step: u32, batch: u32) -> String {
        format!("batch {batch} of {}", self.step(step))
    }
    fn render_pass(&self, pass: RenderPassId) -> String {
        format!("render pass {}", pass.0)
    }
    fn semaphore(&self, semaphore: SemaphoreId) -> String {
        format!("semaphore {}", semaphore.0)
    }
    fn fence(&self, fence: FenceId) -> String {
        format!("fence {}", fence.0)
    }
    /// What the application wrote there, where that is known.
    fn source(&self, _place: &Place) -> Option<String> {
        None
    }
    /// The path of debug labels.
    fn debug_region(&self, _place: &Place) -> Option<String> {
        None
    }
}

/// Names for programs that have none: numbers.
pub struct Numbers<'a>(pub &'a Program);

impl Names for Numbers<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        let kind = self.0.resources.get(resource.0 as usize).map(|it| &it.kind);
        let kind = if matches!(kind, Some(ResourceKind::Image(_))) { "image" } else { "buffer" };
        format!("{kind} {}", resource.0)
    }

    fn queue(&self, queue: QueueId) -> String {
        format!("queue {}", queue.0)
    }

    fn place(&self, place: &Place) -> String {
        match (place, recorded(self.0, place)) {
            (Place::Command(at), Some((buffer, command))) => {
                format!("{} (step {}, batch {})", self.recorded(buffer, command), at.step, at.batch)
            }
            (Place::Command(at), None) => format!("batch {} of step {}", at.batch, at.step),
            (Place::Step(step), _) => format!("step {step}"),
        }
    }

    fn recorded(&self, buffer: CommandBufferId, command: u32) -> String {
        format!("command {command} of command buffer {}", buffer.0)
    }

    fn function(&self, place: &Place, stage: u64) -> String {
        let command = recorded(self.0, place).and_then(|(buffer, command)| {
            self.0.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)
        });
        let step = match place {
            Place::Step(step) => self.0.steps.get(*step as usize),
            Place::Command(_) => None,
        };
        match (command, step) {
            (Some(command), _) => function_of(command, stage),
            (_, Some(Step::Present { .. })) => "vkQueuePresentKHR",
            (_, Some(Step::Acquire { .. })) => "vkAcquireNextImageKHR",
            _ => HOST,
        }
        .to_owned()
    }
}

/// What stands for a function where there is none.
const HOST: &str = "the host";

fn function_of(command: &Command, stage: u64) -> &'static str {
    match command {
        Command::Action(_) if stage & PipelineStageFlags2::COMPUTE_SHADER.0 != 0 => "dispatch",
        Command::Action(_) if crate::usage::group_members(PipelineStageFlags2::ALL_GRAPHICS.0) & stage != 0 => "draw",
        Command::Action(_) if stage & PipelineStageFlags2::COPY.0 != 0 => "copy",
        Command::Action(_) if stage & PipelineStageFlags2::CLEAR.0 != 0 => "clear",
        Command::Action(_) if stage & PipelineStageFlags2::BLIT.0 != 0 => "blit",
        Command::Action(_) if stage & PipelineStageFlags2::RESOLVE.0 != 0 => "resolve",
        Command::Action(_) => "command",
        Command::Barrier(Barrier::One { .. }) => "vkCmdPipelineBarrier",
        Command::Barrier(Barrier::Two { .. }) => "vkCmdPipelineBarrier2",
        Command::SetEvent(_) => "vkCmdSetEvent",
        Command::ResetEvent { .. } => "vkCmdResetEvent",
        Command::WaitEvents(WaitEvents::One { .. }) => "vkCmdWaitEvents",
        Command::WaitEvents(WaitEvents::Two { .. }) => "vkCmdWaitEvents2",
        Command::BeginRenderPass { .. } => "vkCmdBeginRenderPass",
        Command::NextSubpass => "vkCmdNextSubpass",
        Command::EndRenderPass => "vkCmdEndRenderPass",
        Command::BeginRendering(_) => "vkCmdBeginRendering",
        Command::EndRendering => "vkCmdEndRendering",
        Command::Execute(_) => "vkCmdExecuteCommands",
    }
}

/// Every hazard and every fault of a program, those with the same cause once, with their number.
pub fn report(program: &Program, names: &dyn Names) -> Vec<Diagnostic> {
    let Findings { hazards, faults } = check_all(program);
    let mut all = diagnose(program, &hazards, names);
    all.extend(diagnose_faults(program, &faults, names));
    all
}

/// The same of hazards that were found already.
pub fn diagnose(program: &Program, found: &[Found], names: &dyn Names) -> Vec<Diagnostic> {
    let explainer = Explainer::new(program);
    causes(program, found).into_iter().map(|(it, count)| diagnostic(&explainer, found, it, count, names)).collect()
}

/// The first hazard of each cause, and how often its two commands were executed so: what [`diagnose`] makes a
/// diagnostic of.
pub fn causes<'a>(program: &Program, found: &'a [Found]) -> Vec<(&'a Found, u64)> {
    let mut causes: HashMap<Cause, usize> = HashMap::new();
    let mut firsts: Vec<(&Found, u64)> = Vec::new();
    let mut executions: HashSet<(HazardKind, &Place, &Place, ResourceId)> = HashSet::new();
    for it in found {
        // Several parts of a resource are one hazard.
        let is_new = executions.insert((it.kind, &it.at, &it.prior, it.resource));
        let index = *causes.entry(cause(program, it)).or_insert(firsts.len());
        match firsts.get_mut(index) {
            Some((_, count)) => *count += u64::from(is_new),
            None => firsts.push((it, 1)),
        }
    }
    firsts
}

type Cause = (HazardKind, Recorded, Recorded, ResourceId);
type Recorded = Result<(CommandBufferId, u32), Place>;

/// The same commands as they were recorded, however often they are executed.
fn cause(program: &Program, it: &Found) -> Cause {
    let of = |place: &Place| recorded(program, place).ok_or_else(|| place.clone());
    (it.kind, of(&it.at), of(&it.prior), it.resource)
}

fn diagnostic(explainer: &Explainer<'_>, all: &[Found], found: &Found, count: u64, names: &dyn Names) -> Diagnostic {
    let program = explainer.timeline.program;
    let explanation = explainer.explain(found);
    let proposal = explainer.propose(found, all);
    let place = |role, place: &Place| DiagPlace {
        role,
        text: names.source(place).map_or_else(|| names.place(place), |it| format!("{}: {it}", names.place(place))),
        cause: recorded(program, place).map_or_else(|| names.place(place), |(b, c)| names.recorded(b, c)),
    };
    let kind = program.resources.get(found.resource.0 as usize).map(|it| &it.kind);
    let kind = if matches!(kind, Some(ResourceKind::Image(_))) { "VkImage" } else { "VkBuffer" };
    let (id, name) = (u64::from(found.resource.0), Some(names.resource(found.resource)));
    Diagnostic {
        code: Code(Cow::Owned(format!("SYNC-HAZARD-{}", found.kind.name()))),
        severity: severity(level(program, found)),
        message: message(found, all, explanation.as_ref(), names),
        places: vec![place("access", &found.at), place("prior access", &found.prior)],
        objects: vec![Object { kind, id, name }],
        facts: facts(found, explanation.as_ref(), names),
        explanation: explanation.as_ref().map_or_else(Vec::new, |it| lines(it, names)),
        fixes: fixes(&proposal, names),
        no_fix: proposal.why_not,
        count,
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::Certain => Severity::Error,
        Level::Likely => Severity::Warning,
        Level::Possible => Severity::Information,
    }
}

fn fixes(proposal: &Proposal, names: &dyn Names) -> Vec<Fix> {
    proposal.fixes.iter().map(|it| Fix { text: it.text(names), is_verified: true }).collect()
}

/// What is wrong, in a few sentences.
fn message(found: &Found, all: &[Found], explanation: Option<&Explanation>, names: &dyn Names) -> String {
    let kind = found.kind.name().replace('-', "_");
    let resource = parts(found, all, names);
    let Some(it) = explanation else {
        let (at, prior) = (names.place(&found.at), names.place(&found.prior));
        return format!("{at}: {kind} hazard detected on {resource}, with {prior}.");
    };
    let function = names.function(&found.at, it.at.stage);
    let prior = names.function(&found.prior, it.prior.stage);
    let which = match (found.at == found.prior, function == prior && function != HOST) {
        (true, _) => "the same ",
        (false, true) => "another ",
        (false, false) => "",
    };
    let (title, subject) = match function.as_str() {
        HOST => ("Host access".to_owned(), "The host".to_owned()),
        _ => (format!("{function}()"), function),
    };
    let alias = if it.at.resource == it.prior.resource {
        String::new()
    } else {
        format!(
            "\nThat was an access to {}, which has the same memory.",
            names.part(it.prior.resource, &it.prior.region)
        )
    };
    let (action, how, done, why) = (action(&it.at), how(&it.at), done(&it.prior), why(found.kind, it, names));
    format!(
        "{title}: {kind} hazard detected. {subject} {action} {resource}{how}, which was previously {done} \
         {which}{prior}.{alias}\n{why}"
    )
}

/// How many parts of a resource are named; the others are counted.
const PARTS_MAX: usize = 3;

/// What the two commands conflict on.
fn parts(found: &Found, all: &[Found], names: &dyn Names) -> String {
    let same = all.iter().filter(|it| {
        (it.kind, &it.at, &it.prior, it.resource) == (found.kind, &found.at, &found.prior, found.resource)
    });
    parts_text(found.resource, same.map(|it| &it.region), names)
}

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

fn action(it: &AccessFacts) -> &'static str {
    match it.role {
        Role::Transition => "performs an image layout transition on",
        Role::Present => "presents",
        Role::Acquire => "acquires",
        Role::Resolve if it.is_write => "writes to the single sample resolve attachment",
        Role::Resolve => "reads the multisample attachment",
        Role::Command | Role::Load | Role::Store | Role::Host if it.is_write => "writes to",
        Role::Command | Role::Load | Role::Store | Role::Host => "reads",
    }
}

fn how(it: &AccessFacts) -> &'static str {
    match it.role {
        Role::Load => " (attachment loadOp)",
        Role::Store => " (attachment storeOp)",
        _ => "",
    }
}

fn done(it: &AccessFacts) -> &'static str {
    match (it.role, it.is_write) {
        (Role::Transition, _) => "written during an image layout transition initiated by",
        (Role::Present, _) => "presented by",
        (Role::Acquire, _) => "acquired by",
        (Role::Load, true) => "written by the attachment loadOp of",
        (Role::Load, false) => "read by the attachment loadOp of",
        (Role::Store, _) => "written by the attachment storeOp of",
        (Role::Resolve, true) => "written by the resolve operation of",
        (Role::Resolve, false) => "read by the resolve operation of",
        (Role::Command | Role::Host, true) => "written by",
        (Role::Command | Role::Host, false) => "read by",
    }
}

/// What the synchronization there is does not do.
fn why(kind: HazardKind, it: &Explanation, names: &dyn Names) -> String {
    if let HazardKind::ReadRacingWrite | HazardKind::WriteRacingWrite | HazardKind::WriteRacingRead = kind {
        return race(it, names);
    }
    let (now, before) = (usage_text(&it.at), usage_text(&it.prior));
    let carried: Vec<String> = carried(it).filter_map(reach).collect();
    match (it.prior.role, it.at.role) {
        (_, Role::Present) => return format!("The presentation does not wait for {before}."),
        (Role::Present | Role::Acquire, _) if carried.is_empty() => {
            return format!("Nothing lets {now} wait until the presentation engine is done with the image.");
        }
        (Role::Present | Role::Acquire, _) => {
            return format!("The wait for the image reaches {}, but it must reach {now}.", carried.join(", "));
        }
        (_, Role::Host) if it.prior.is_write => {
            return format!(
                "The write is over when the host gets there, but nothing makes it visible to the host: that takes a \
                 dependency to {}.",
                side(it.at.stage, it.at.access)
            );
        }
        _ => {}
    }
    let hint =
        if it.prior.is_write { "" } else { "\nHint: an execution dependency is sufficient to prevent this hazard." };
    if carried.is_empty() {
        return match it.prior.is_write {
            true => format!("Nothing between them makes {before} visible to {now}."),
            false => format!("Nothing between them orders {before} before {now}.{hint}"),
        };
    }
    if it.prior.is_write {
        return format!("The synchronization between them allows {}, but it must allow {now}.", carried.join(", "));
    }
    let stages = stage_names(carried_stages(it));
    format!("The synchronization between them orders {before} before {stages}, but not before {now}.{hint}")
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
fn reach(it: &super::Operation) -> Option<String> {
    match it.kind {
        _ if it.scope.dst_stages == 0 => None,
        OperationKind::Semaphore | OperationKind::HostWait | OperationKind::Submit => {
            Some(stage_names(it.scope.dst_stages))
        }
        _ => Some(side(it.scope.dst_stages, it.scope.dst_access)),
    }
}

fn carried(it: &Explanation) -> impl Iterator<Item = &super::Operation> {
    let lane = it.at.lane;
    it.operations.iter().filter(move |it| it.verdict != Verdict::Misses && it.lane == lane)
}

fn carried_stages(it: &Explanation) -> u64 {
    carried(it).fold(0, |all, it| all | it.scope.dst_stages)
}

fn usage_text(it: &AccessFacts) -> String {
    match it.role {
        Role::Transition => "the image layout transition".to_owned(),
        Role::Present | Role::Acquire => "the presentation engine".to_owned(),
        _ => format!("{} accesses at {}", access_names(it.access), stage_names(it.stage)),
    }
}

fn side(stages: u64, access: u64) -> String {
    format!("{}({})", stage_names(stages), access_names(access))
}

/// Properties in the order in which tools know them.
fn facts(found: &Found, explanation: Option<&Explanation>, names: &dyn Names) -> Vec<Fact> {
    let mut all = Vec::new();
    let mut add = |key, value: String| all.push(Fact { key, value });
    if let Some(it) = explanation {
        add("message_type", message_type(it).to_owned());
    }
    add("hazard_type", found.kind.name().replace('-', "_"));
    if let Some(it) = explanation {
        add("access", access_fact(&it.at));
        add("prior_access", access_fact(&it.prior));
        if it.prior.is_write {
            let barriers: Vec<String> = carried(it).map(|it| side(it.scope.dst_stages, it.scope.dst_access)).collect();
            add("write_barriers", if barriers.is_empty() { "0".to_owned() } else { barriers.join(":") });
        } else {
            let stages = carried_stages(it);
            add("read_barriers", if stages == 0 { "0".to_owned() } else { stage_names(stages) });
        }
        add("command", names.function(&found.at, it.at.stage));
        add("prior_command", names.function(&found.prior, it.prior.stage));
    }
    names.debug_region(&found.at).into_iter().for_each(|it| add("debug_region", it));
    names.debug_region(&found.prior).into_iter().for_each(|it| add("prior_debug_region", it));
    if let Place::Command(at) = &found.at {
        add("submit_index", at.step.to_string());
        add("batch_index", at.batch.to_string());
        add("command_buffer_index", at.primary.to_string());
    }
    all
}

fn access_fact(it: &AccessFacts) -> String {
    match it.role {
        Role::Transition => "SYNC_IMAGE_LAYOUT_TRANSITION".to_owned(),
        Role::Present => "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL".to_owned(),
        Role::Acquire => "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL".to_owned(),
        _ => side(it.stage, it.access),
    }
}

fn message_type(it: &Explanation) -> &'static str {
    let is_pass = |place: &Place| {
        matches!((place, &it.prior.place), (Place::Command(a), Place::Command(b))
        if (a.step, a.batch, a.primary) == (b.step, b.batch, b.primary))
    };
    match it.at.role {
        Role::Present | Role::Acquire => "PresentError",
        _ if !is_pass(&it.at.place) => "SubmitTimeError",
        Role::Transition => "ImageBarrierError",
        Role::Load => "RenderPassLoadOpError",
        Role::Store => "RenderPassStoreOpError",
        Role::Resolve => "RenderPassResolveError",
        Role::Command | Role::Host => match it.region {
            Region::Buffer(_) => "BufferError",
            Region::Image(_) => "ImageSubresourceRangeError",
        },
    }
}

/// The operations between the two accesses, one line each; equal ones that follow each other once, with their number.
fn lines(it: &Explanation, names: &dyn Names) -> Vec<String> {
    if it.operations.is_empty() {
        return vec!["no synchronization operation lies between the two accesses".to_owned()];
    }
    let mut found: Vec<(String, u32)> = Vec::new();
    for operation in &it.operations {
        let text = describe_operation(operation, names);
        match found.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => found.push((text, 1)),
        }
    }
    let line = |(text, count): (String, u32)| if count > 1 { format!("{text} ({count} times)") } else { text };
    found.into_iter().map(line).collect()
}
