//! The commands of a program in the order in which the host submits them.

use lavascope_sync_ir::{Command, HostStep, Program};

use crate::reported_hazard::{NamedCommand, ReportedHazard};

/// A command with its place: the command buffer, and the number in there.
#[derive(Clone, Copy)]
pub(crate) struct ExecutedCommand<'a> {
    pub(crate) buffer: usize,
    pub(crate) index: usize,
    pub(crate) command: &'a Command,
}

/// All commands of all submissions; those of a secondary command buffer follow the one that executes it.
pub(crate) fn executed_commands(program: &Program) -> Vec<ExecutedCommand<'_>> {
    let batches = program.steps.iter().flat_map(|step| match step {
        HostStep::Submit { batches, .. } => batches.as_slice(),
        _ => &[],
    });
    let mut found = Vec::new();
    batches.flat_map(|it| &it.command_buffers).for_each(|it| push_commands(program, it.0 as usize, &mut found));
    found
}

fn push_commands<'a>(program: &'a Program, buffer: usize, found: &mut Vec<ExecutedCommand<'a>>) {
    for (index, command) in program.command_buffers[buffer].commands.iter().enumerate() {
        found.push(ExecutedCommand { buffer, index, command });
        if let Command::Execute(all) = command {
            all.iter().for_each(|it| push_commands(program, it.0 as usize, found));
        }
    }
}

/// From the earlier command of a hazard to its later one, with both. All commands where one of them is not recorded, or
/// the later one is submitted first.
pub(crate) fn commands_between<'a>(program: &'a Program, hazard: &ReportedHazard) -> Vec<ExecutedCommand<'a>> {
    let all = executed_commands(program);
    let is_named = |it: &ExecutedCommand<'_>, named: &NamedCommand| named.place() == Some((it.buffer, it.index));
    let first = hazard.prior.as_ref().and_then(|prior| all.iter().position(|it| is_named(it, prior)));
    let last = all.iter().rposition(|it| is_named(it, &hazard.at));
    match (first, last) {
        (Some(first), Some(last)) if first <= last => all[first..=last].to_vec(),
        (None, Some(last)) => all[..=last].to_vec(),
        (Some(first), None) => all[first..].to_vec(),
        _ => all,
    }
}

/// The command that begins the render pass or the rendering around a command, which may be in a secondary command
/// buffer; the command itself if it begins one.
pub(crate) fn enclosing_instance<'a>(program: &'a Program, named: &NamedCommand) -> Option<&'a Command> {
    let all = executed_commands(program);
    let at = all.iter().position(|it| named.place() == Some((it.buffer, it.index)))?;
    for (earlier, executed) in all[..=at].iter().enumerate().rev() {
        match executed.command {
            Command::BeginRenderPass { .. } | Command::BeginRendering(_) => return Some(executed.command),
            Command::EndRenderPass | Command::EndRendering if earlier != at => return None,
            _ => {}
        }
    }
    None
}
