//! Variations of a scenario by other means of the API, which must get the same verdict.

use lavascope_sync_ir::{
    Attachment, AttachmentKind, Barrier, Command, Dependency, EventId, LoadOp, Program, SubmitBatch,
};
use lavascope_sync_ir::{DependencyTarget, Subpass, WaitEvents};
use lavascope_sync_ir::{
    HostStep, RenderPass, RenderPassId, Rendering, RenderingAttachment, SetEvent, StoreOp, SyncScope,
};

use crate::error::{Result, ScenarioError};
use crate::parse::builder::Statement;
use crate::parse::declare::layout_of_kind;
use crate::{Scenario, StatementId, VariationKind};

/// A program that means the same as a scenario's.
#[derive(Clone, Debug)]
pub struct Variation {
    /// Such as `barrier-api = v1`.
    pub name: String,
    pub program: Program,
    /// For each step the step of the scenario that it comes from.
    pub steps: Vec<u32>,
}

/// All that the header asks for.
pub fn variations(scenario: &Scenario) -> Vec<Variation> {
    let mut all = Vec::new();
    for vary in &scenario.header.vary {
        let same_steps = || (0..scenario.program.steps.len() as u32).collect();
        let by_command = |name: &str, change: &dyn Fn(&mut Program, &Command) -> Option<Command>| Variation {
            name: name.to_owned(),
            program: rewrite_commands(&scenario.program, change).program,
            steps: same_steps(),
        };
        match vary {
            VariationKind::BarrierApi => {
                all.push(by_command("barrier-api = v1", &|program, it| to_version_1(program, it)));
                all.push(by_command("barrier-api = v2", &|program, it| to_version_2(program, it)));
            }
            VariationKind::Submit => {
                all.push(merge_submits(&scenario.program));
                all.push(split_submits(&scenario.program));
            }
            VariationKind::Rendering => {
                all.push(by_command("rendering = pass", &to_pass));
                all.push(by_command("rendering = dynamic", &|program, it| to_dynamic(program, it)));
            }
        }
    }
    all
}

/// Whether the program can be expressed in all variations that the header asks for.
pub(crate) fn check(scenario: &Scenario, statements: &[Statement], line: u32) -> Result<()> {
    for vary in &scenario.header.vary {
        let (first, second, why): (CommandRewrite, CommandRewrite, &str) = match vary {
            VariationKind::BarrierApi => (
                &|p, it| to_version_1(p, it),
                &|p, it| to_version_2(p, it),
                "only one dependency, and one event each, can vary",
            ),
            VariationKind::Rendering => (
                &to_pass,
                &|p, it| to_dynamic(p, it),
                "only one subpass without transitions, resolves and dependencies can vary",
            ),
            VariationKind::Submit => continue,
        };
        let failed =
            rewrite_commands(&scenario.program, first).failed.or(rewrite_commands(&scenario.program, second).failed);
        if let Some(failed) = failed {
            let place = statements.iter().find(|it| it.id == failed);
            let (line, column) = place.map_or((line, 1), |it| (it.line, it.column));
            return Err(ScenarioError { line, column, message: format!("`vary: {}`: {why}", vary.text()) });
        }
    }
    Ok(())
}

type CommandRewrite<'a> = &'a dyn Fn(&mut Program, &Command) -> Option<Command>;

struct RewrittenProgram {
    program: Program,
    /// The first command that could not be changed.
    failed: Option<StatementId>,
}

/// A program with each command changed, if possible.
fn rewrite_commands(program: &Program, change: CommandRewrite) -> RewrittenProgram {
    let mut made = program.clone();
    let mut failed = None;
    for (buffer, item) in program.command_buffers.iter().enumerate() {
        for (index, command) in item.commands.iter().enumerate() {
            match change(&mut made, command) {
                Some(command) => made.command_buffers[buffer].commands[index] = command,
                None => {
                    let site = StatementId::Command { command_buffer: buffer as u32, index: index as u32 };
                    failed = failed.or(Some(site));
                }
            }
        }
    }
    RewrittenProgram { program: made, failed }
}

fn to_version_1(program: &Program, command: &Command) -> Option<Command> {
    Some(match command {
        Command::Barrier(Barrier::Sync2 { dependencies }) => {
            let [one] = &dependencies[..] else { return None };
            let SyncScope { src_stages, dst_stages, .. } = one.scope;
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies: version_1_dependencies(one) })
        }
        Command::Barrier(Barrier::Sync1 { dependencies, .. }) if dependencies.len() > 1 => return None,
        Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
            let [one] = &dependencies[..] else { return None };
            Command::SetEvent(SetEvent::Sync1 { event: *event, stages: one.scope.src_stages })
        }
        Command::SetEvent(SetEvent::Sync1 { event, .. }) => {
            dependency_of_waits(program, *event)?;
            command.clone()
        }
        Command::WaitEvents(_) => {
            let (event, one) = single_wait(command)?;
            let SyncScope { src_stages, dst_stages, .. } = one.scope;
            let dependencies = version_1_dependencies(&one);
            Command::WaitEvents(WaitEvents::Sync1 { events: vec![event], src_stages, dst_stages, dependencies })
        }
        other => other.clone(),
    })
}

fn to_version_2(program: &Program, command: &Command) -> Option<Command> {
    Some(match command {
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies }) => {
            let one = version_2_dependency(*src_stages, *dst_stages, dependencies)?;
            Command::Barrier(Barrier::Sync2 { dependencies: vec![one] })
        }
        Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
            let one = dependency_of_waits(program, *event).filter(|it| it.scope.src_stages == *stages)?;
            Command::SetEvent(SetEvent::Sync2 { event: *event, dependencies: vec![one] })
        }
        Command::WaitEvents(_) => {
            let events = vec![single_wait(command).map(|(event, one)| (event, vec![one]))?];
            Command::WaitEvents(WaitEvents::Sync2 { events })
        }
        other => other.clone(),
    })
}

/// A dependency without accesses on everything is none in version 1.
fn version_1_dependencies(one: &Dependency) -> Vec<Dependency> {
    let is_execution = one.target == DependencyTarget::Global && one.scope.src_access == 0 && one.scope.dst_access == 0;
    if is_execution { Vec::new() } else { vec![one.clone()] }
}

fn version_2_dependency(src_stages: u64, dst_stages: u64, dependencies: &[Dependency]) -> Option<Dependency> {
    let scope = SyncScope { src_stages, dst_stages, ..SyncScope::default() };
    match dependencies {
        [] => Some(Dependency { scope, target: DependencyTarget::Global }),
        [one] => {
            Some(Dependency { scope: SyncScope { src_stages, dst_stages, ..one.scope }, target: one.target.clone() })
        }
        _ => None,
    }
}

fn single_wait(command: &Command) -> Option<(EventId, Dependency)> {
    match command {
        Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }) => {
            let [event] = events[..] else { return None };
            Some((event, version_2_dependency(*src_stages, *dst_stages, dependencies)?))
        }
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            let [(event, dependencies)] = &events[..] else { return None };
            let [one] = &dependencies[..] else { return None };
            Some((*event, one.clone()))
        }
        _ => None,
    }
}

/// The one dependency that all waits for an event have.
fn dependency_of_waits(program: &Program, event: EventId) -> Option<Dependency> {
    let commands = program.command_buffers.iter().flat_map(|it| &it.commands);
    let mut waits = commands.filter_map(single_wait).filter(|it| it.0 == event).map(|it| it.1);
    let first = waits.next()?;
    waits.all(|it| it == first).then_some(first)
}

/// Neighboring submits to a queue as one.
fn merge_submits(program: &Program) -> Variation {
    let mut made = program.clone();
    made.steps.clear();
    let mut steps: Vec<u32> = Vec::new();
    for (at, step) in program.steps.iter().enumerate() {
        if let (
            Some(HostStep::Submit { queue, batches, fence: fence @ None }),
            HostStep::Submit { queue: on, batches: more, fence: with },
        ) = (made.steps.last_mut(), step)
            && queue == on
        {
            batches.extend(more.iter().cloned());
            *fence = *with;
            continue;
        }
        made.steps.push(step.clone());
        steps.push(at as u32);
    }
    Variation { name: "submit = one".to_owned(), program: made, steps }
}

/// Each command buffer by itself: waits with the first, signals and fence with the last.
fn split_submits(program: &Program) -> Variation {
    let mut made = program.clone();
    made.steps.clear();
    let mut steps: Vec<u32> = Vec::new();
    for (at, step) in program.steps.iter().enumerate() {
        let HostStep::Submit { queue, batches, fence } = step else {
            made.steps.push(step.clone());
            steps.push(at as u32);
            continue;
        };
        let parts: Vec<SubmitBatch> = batches.iter().flat_map(split).collect();
        let count = parts.len();
        for (place, batch) in parts.into_iter().enumerate() {
            let fence = fence.filter(|_| place + 1 == count);
            made.steps.push(HostStep::Submit { queue: *queue, batches: vec![batch], fence });
            steps.push(at as u32);
        }
        if count == 0 {
            made.steps.push(step.clone());
            steps.push(at as u32);
        }
    }
    Variation { name: "submit = many".to_owned(), program: made, steps }
}

fn split(batch: &SubmitBatch) -> Vec<SubmitBatch> {
    if batch.command_buffers.len() < 2 {
        return vec![batch.clone()];
    }
    let last = batch.command_buffers.len() - 1;
    let part = |(at, id)| SubmitBatch {
        waits: if at == 0 { batch.waits.clone() } else { Vec::new() },
        command_buffers: vec![id],
        signals: if at == last { batch.signals.clone() } else { Vec::new() },
    };
    batch.command_buffers.iter().copied().enumerate().map(part).collect()
}

fn to_dynamic(program: &Program, command: &Command) -> Option<Command> {
    match command {
        Command::BeginRenderPass { pass, views, area } => {
            let pass = program.render_passes.get(pass.0 as usize)?;
            let subpass = plain_subpass(pass)?;
            let used: Vec<u32> = subpass.colors.iter().chain(&subpass.depth_stencil).map(|it| it.0).collect();
            let mut attachments = Vec::new();
            for number in used {
                let attachment = pass.attachments.get(number as usize)?;
                let view = views.get(number as usize)?.clone();
                attachments.push(RenderingAttachment {
                    kind: attachment.kind,
                    view,
                    load: attachment.load,
                    store: attachment.store,
                    resolve: None,
                });
            }
            let view_mask = subpass.view_mask;
            let rendering = Rendering { attachments, area: *area, view_mask, is_suspending: false, is_resuming: false };
            Some(Command::BeginRendering(rendering))
        }
        Command::EndRenderPass => Some(Command::EndRendering),
        Command::NextSubpass => None,
        other => Some(other.clone()),
    }
}

/// The one subpass of a pass that does nothing which rendering without passes does not do.
fn plain_subpass(pass: &RenderPass) -> Option<&Subpass> {
    let [subpass] = &pass.subpasses[..] else { return None };
    let is_plain = pass.dependencies.is_empty()
        && subpass.inputs.is_empty()
        && subpass.resolves.is_empty()
        && subpass.depth_stencil_resolve.is_none()
        && subpass.preserves.is_empty()
        && subpass.colors.len() + usize::from(subpass.depth_stencil.is_some()) == pass.attachments.len();
    let keeps = |(number, layout): &(u32, i32)| {
        pass.attachments.get(*number as usize).is_some_and(|attachment| {
            let is_one = matches!(attachment.kind, AttachmentKind::Color | AttachmentKind::Depth);
            is_one && attachment.initial_layout == *layout && attachment.final_layout == *layout
        })
    };
    (is_plain && subpass.colors.iter().chain(&subpass.depth_stencil).all(keeps)).then_some(subpass)
}

fn to_pass(program: &mut Program, command: &Command) -> Option<Command> {
    match command {
        Command::BeginRenderPass { pass, .. } => {
            plain_subpass(program.render_passes.get(pass.0 as usize)?)?;
            Some(command.clone())
        }
        Command::BeginRendering(rendering) => {
            if rendering.is_suspending || rendering.is_resuming {
                return None;
            }
            let pass = RenderPassId(program.render_passes.len() as u32);
            program.render_passes.push(pass_of(rendering)?);
            let views = rendering.attachments.iter().map(|it| it.view.clone()).collect();
            Some(Command::BeginRenderPass { pass, views, area: rendering.area })
        }
        Command::EndRendering => Some(Command::EndRenderPass),
        other => Some(other.clone()),
    }
}

fn pass_of(rendering: &Rendering) -> Option<RenderPass> {
    let mut made = RenderPass::default();
    let mut subpass = Subpass { view_mask: rendering.view_mask, ..Subpass::default() };
    for attachment in &rendering.attachments {
        let number = made.attachments.len() as u32;
        let layout = layout_of_kind(attachment.kind);
        match attachment.kind {
            AttachmentKind::Color => subpass.colors.push((number, layout)),
            AttachmentKind::Depth => subpass.depth_stencil = Some((number, layout)),
            AttachmentKind::Stencil | AttachmentKind::DepthStencil => return None,
        }
        if attachment.resolve.is_some() {
            return None;
        }
        made.attachments.push(Attachment {
            kind: attachment.kind,
            load: attachment.load,
            store: attachment.store,
            stencil_load: LoadOp::Load,
            stencil_store: StoreOp::Store,
            initial_layout: layout,
            final_layout: layout,
        });
    }
    made.subpasses.push(subpass);
    Some(made)
}
