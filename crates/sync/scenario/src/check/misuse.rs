//! Programs that can be read and make no sense: each fault with its place.

use std::collections::BTreeMap;

use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, Dependency, DependencyTarget, HostStep, Program, ResourceId, SetEvent,
    WaitEvents,
};

use crate::error::{Result, ScenarioError};
use crate::{ScenarioSource, StatementId};

/// The first fault of a program.
pub(crate) fn check(source: &ScenarioSource<'_>) -> Result<()> {
    let program = &source.scenario.program;
    for (at, buffer) in program.command_buffers.iter().enumerate() {
        check_passes(source, at as u32, &buffer.commands)?;
    }
    let mut destroyed: BTreeMap<ResourceId, u32> = BTreeMap::new();
    for (at, step) in program.steps.iter().enumerate() {
        let site = StatementId::Step(at as u32);
        check_primaries(source, site, step)?;
        for (resource, user) in used_resources(program, step) {
            let Some(gone) = destroyed.get(&resource) else { continue };
            return Err(misuse_error(source, site, use_after_destroy_text(source, resource, user, *gone)));
        }
        if let HostStep::Destroy(resource) = step {
            destroyed.insert(*resource, at as u32);
        }
    }
    Ok(())
}

fn misuse_error(source: &ScenarioSource<'_>, site: StatementId, message: String) -> ScenarioError {
    let (line, column) = source.location(site).map_or((1, 1), |it| (it.line, it.column));
    ScenarioError { line, column, message }
}

fn use_after_destroy_text(
    source: &ScenarioSource<'_>,
    resource: ResourceId,
    user: Option<UsingCommand>,
    gone: u32,
) -> String {
    let name = &source.scenario.names.resources[resource.0 as usize];
    let line = |site| source.location(site).map_or(0, |it| it.line);
    let by = user.map_or(String::new(), |(buffer, index)| {
        let user = &source.scenario.names.command_buffers[buffer.0 as usize];
        let at = line(StatementId::Command { command_buffer: buffer.0, index });
        format!(" by line {at} of `{user}`")
    });
    let gone = line(StatementId::Step(gone));
    format!("`{name}` is used{by} after line {gone} destroyed it: destroy it later, or use another")
}

/// Everything that begins must end, in the same command buffer.
fn check_passes(source: &ScenarioSource<'_>, buffer: u32, commands: &[Command]) -> Result<()> {
    let is_secondary = source.scenario.program.command_buffers[buffer as usize].is_secondary;
    let name = &source.scenario.names.command_buffers[buffer as usize];
    let mut open: Option<(u32, &str)> = None;
    for (index, command) in commands.iter().enumerate() {
        let index = index as u32;
        let site = |index| StatementId::Command { command_buffer: buffer, index };
        let error = |message: String| Err(misuse_error(source, site(index), message));
        match (command, open) {
            (Command::BeginRenderPass { .. } | Command::BeginRendering(_), Some((begun, end))) => {
                let line = source.location(site(begun)).map_or(0, |it| it.line);
                return error(format!("`{end}` is missing before this: line {line} began and did not end"));
            }
            (Command::BeginRenderPass { .. }, None) => open = Some((index, "end pass")),
            (Command::BeginRendering(_), None) => open = Some((index, "end rendering")),
            (Command::EndRenderPass, Some((_, "end pass"))) => open = None,
            (Command::EndRendering, Some((_, "end rendering"))) => open = None,
            (Command::EndRenderPass | Command::EndRendering, Some((_, end))) => {
                return error(format!("`{end}` is wanted here"));
            }
            (Command::EndRenderPass | Command::EndRendering, None) => {
                return error("nothing has begun that could end here".to_owned());
            }
            (Command::NextSubpass, None) if !is_secondary => {
                return error("no pass has begun that could have a next subpass".to_owned());
            }
            _ => {}
        }
    }
    match open {
        None => Ok(()),
        Some((begun, end)) => {
            let site = StatementId::Command { command_buffer: buffer, index: begun };
            let message = format!("`{name}` never ends what begins here: `{end}` is missing");
            Err(misuse_error(source, site, message))
        }
    }
}

fn check_primaries(source: &ScenarioSource<'_>, site: StatementId, step: &HostStep) -> Result<()> {
    let HostStep::Submit { batches, .. } = step else { return Ok(()) };
    for batch in batches.iter().flat_map(|it| &it.command_buffers) {
        if source.scenario.program.command_buffers[batch.0 as usize].is_secondary {
            let name = &source.scenario.names.command_buffers[batch.0 as usize];
            let message = format!("`{name}` is `secondary` and cannot be submitted: a primary executes it");
            return Err(misuse_error(source, site, message));
        }
    }
    Ok(())
}

/// The command that uses something; none if the step itself does.
type UsingCommand = (CommandBufferId, u32);

/// The objects that a step uses, and where.
fn used_resources(program: &Program, step: &HostStep) -> Vec<(ResourceId, Option<UsingCommand>)> {
    match step {
        HostStep::Submit { batches, .. } => {
            let buffers = batches.iter().flat_map(|it| &it.command_buffers);
            buffers.flat_map(|it| used_by(program, *it)).map(|(it, user)| (it, Some(user))).collect()
        }
        HostStep::HostAccess { resource, .. } | HostStep::Destroy(resource) => vec![(*resource, None)],
        HostStep::Acquire { image, .. } => vec![(*image, None)],
        HostStep::Present { images, .. } => images.iter().map(|it| (*it, None)).collect(),
        _ => Vec::new(),
    }
}

fn used_by(program: &Program, buffer: CommandBufferId) -> Vec<(ResourceId, UsingCommand)> {
    let commands = &program.command_buffers[buffer.0 as usize].commands;
    let mut found = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        if let Command::Execute(all) = command {
            found.extend(all.iter().flat_map(|it| used_by(program, *it)));
        }
        found.extend(resources(command).into_iter().map(|it| (it, (buffer, index as u32))));
    }
    found
}

fn resources(command: &Command) -> Vec<ResourceId> {
    match command {
        Command::Action(accesses) => accesses.iter().map(|it| it.resource).collect(),
        Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies })
        | Command::SetEvent(SetEvent::Sync2 { dependencies, .. })
        | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => dependency_resources(dependencies),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            events.iter().flat_map(|it| dependency_resources(&it.1)).collect()
        }
        Command::BeginRenderPass { views, .. } => views.iter().map(|it| it.resource).collect(),
        Command::BeginRendering(begin_rendering) => {
            let resolves =
                begin_rendering.attachments.iter().filter_map(|it| it.resolve.as_ref()).map(|it| it.view.resource);
            begin_rendering.attachments.iter().map(|it| it.view.resource).chain(resolves).collect()
        }
        _ => Vec::new(),
    }
}

fn dependency_resources(dependencies: &[Dependency]) -> Vec<ResourceId> {
    let resource = |dependency: &Dependency| match dependency.target {
        DependencyTarget::Global => None,
        DependencyTarget::Resource { resource, .. }
        | DependencyTarget::Transition { resource, .. }
        | DependencyTarget::QueueFamilyTransfer { resource, .. } => Some(resource),
    };
    dependencies.iter().filter_map(resource).collect()
}
