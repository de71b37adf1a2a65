//! Hazards as diagnostics, with explanation and fix.

use std::borrow::Cow;
use std::collections::HashMap;

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{Code, Diagnostic, Fact, Fix, Object, Place as DiagPlace, Severity};
use lavascope_program::{
    Barrier, Command, CommandBufferId, Findings, Found, HazardKind, Place, Program, QueueId, ResourceId, ResourceKind,
    Step, WaitEvents,
};

use super::describe::describe_operation;
use super::element::recorded;
use super::fault::diagnose_faults;
use super::words::{access_names, region_text, stage_names};
use super::{AccessFacts, Explainer, Explanation, Lane, Proposal, Role, Verdict};
use crate::check_all;

/// How things of a program are called.
pub trait Names {
    fn resource(&self, resource: ResourceId) -> String;
    fn queue(&self, queue: QueueId) -> String;
    /// A command as it was executed.
    fn place(&self, place: &Place) -> String;
    /// A command as it was recorded.
    fn recorded(&self, buffer: CommandBufferId, command: u32) -> String;
    /// The function that the application called; `stage` is where the access happens, zero if nowhere.
    fn function(&self, place: &Place, stage: u64) -> String;
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
            _ => "host access",
        }
        .to_owned()
    }
}

fn function_of(command: &Command, stage: u64) -> &'static str {
    match command {
        Command::Action(_) if stage & PipelineStageFlags2::COMPUTE_SHADER.0 != 0 => "dispatch",
        Command::Action(_) if crate::usage::group_members(PipelineStageFlags2::ALL_GRAPHICS.0) & stage != 0 => "draw",
        Command::Action(_) if stage & PipelineStageFlags2::COPY.0 != 0 => "copy",
        Command::Action(_) if stage & PipelineStageFlags2::CLEAR.0 != 0 => "clear",
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
    let mut causes: HashMap<Cause, usize> = HashMap::new();
    let mut firsts: Vec<(&Found, u64)> = Vec::new();
    for it in found {
        let index = *causes.entry(cause(program, it)).or_insert(firsts.len());
        match firsts.get_mut(index) {
            Some((_, count)) => *count += 1,
            None => firsts.push((it, 1)),
        }
    }
    firsts.into_iter().map(|(it, count)| diagnostic(&explainer, found, it, count, names)).collect()
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
        text: names.place(place),
        cause: recorded(program, place).map_or_else(|| names.place(place), |(b, c)| names.recorded(b, c)),
    };
    let kind = program.resources.get(found.resource.0 as usize).map(|it| &it.kind);
    let kind = if matches!(kind, Some(ResourceKind::Image(_))) { "VkImage" } else { "VkBuffer" };
    let (id, name) = (u64::from(found.resource.0), Some(names.resource(found.resource)));
    Diagnostic {
        code: Code(Cow::Owned(format!("SYNC-HAZARD-{}", found.kind.name()))),
        severity: Severity::Error,
        message: message(found, explanation.as_ref(), names),
        places: vec![place("access", &found.at), place("prior access", &found.prior)],
        objects: vec![Object { kind, id, name }],
        facts: facts(found, explanation.as_ref(), names),
        explanation: explanation.as_ref().map_or_else(Vec::new, |it| lines(it, names)),
        fixes: fixes(&proposal, names),
        no_fix: proposal.why_not,
        count,
    }
}

fn fixes(proposal: &Proposal, names: &dyn Names) -> Vec<Fix> {
    proposal.fixes.iter().map(|it| Fix { text: it.text(names), is_verified: true }).collect()
}

/// What is wrong, in a few sentences.
fn message(found: &Found, explanation: Option<&Explanation>, names: &dyn Names) -> String {
    let kind = found.kind.name().replace('-', "_");
    let resource = format!("{}{}", names.resource(found.resource), region_text(&found.region));
    let Some(it) = explanation else {
        let (at, prior) = (names.place(&found.at), names.place(&found.prior));
        return format!("{at}: {kind} hazard detected on {resource}, with {prior}.");
    };
    let function = names.function(&found.at, it.at.stage);
    let prior = names.function(&found.prior, it.prior.stage);
    let another = if function == prior { "another " } else { "" };
    let (action, done) = (action(&it.at), done(&it.prior));
    let why = why(found.kind, it, names);
    format!(
        "{function}(): {kind} hazard detected. {function} {action} {resource}, which was previously {done} \
         {another}{prior}.\n{why}"
    )
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

fn done(it: &AccessFacts) -> &'static str {
    match it.role {
        Role::Transition => "written during an image layout transition initiated by",
        Role::Present => "presented by",
        Role::Acquire => "acquired by",
        Role::Load => "accessed by the attachment loadOp of",
        Role::Store => "written by the attachment storeOp of",
        Role::Resolve => "accessed during the resolve operation of",
        Role::Command | Role::Host if it.is_write => "written by",
        Role::Command | Role::Host => "read by",
    }
}

/// What the synchronization there is does not do.
fn why(kind: HazardKind, it: &Explanation, names: &dyn Names) -> String {
    let (now, before) = (usage_text(&it.at), usage_text(&it.prior));
    if let HazardKind::ReadRacingWrite | HazardKind::WriteRacingWrite | HazardKind::WriteRacingRead = kind {
        return match (it.prior.lane, it.at.lane) {
            (Lane::Queue(from), Lane::Queue(to)) if from != to => format!(
                "The two race: no semaphore or wait leads from the batch on {} to the batch on {}.",
                names.queue(from),
                names.queue(to)
            ),
            _ => "The two race: no dependency leads from the one subpass to the other.".to_owned(),
        };
    }
    let carried: Vec<String> = carried(it).map(|it| side(it.scope.dst_stages, it.scope.dst_access)).collect();
    let hint =
        if it.prior.is_write { "" } else { "\nHint: an execution dependency is sufficient to prevent this hazard." };
    if carried.is_empty() {
        return format!("Nothing between them orders {before} before {now}.{hint}");
    }
    if it.prior.is_write {
        return format!("The synchronization between them allows {}, but it must allow {now}.", carried.join(", "));
    }
    let stages = carried_stages(it);
    format!("The synchronization between them orders {}, but it must order {now}.{hint}", stage_names(stages))
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
            lavascope_program::Region::Buffer(_) => "BufferError",
            lavascope_program::Region::Image(_) => "ImageSubresourceRangeError",
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
