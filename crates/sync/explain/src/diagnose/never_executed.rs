//! Turns submissions that were never executed into diagnostics. Lavascope did not check their
//! commands, so the report must say so.

use lavascope_diag::{Diagnostic, DiagnosticLocation, Severity};
use lavascope_sync_ir::{HostStep, Program, QueueId, SemaphorePoint};

use crate::ProgramNames;
use lavascope_engine::Engine;

/// The code of a submission that waits forever.
pub const NEVER_EXECUTED: &str = "SYNC-NEVER-EXECUTED";

/// The submissions that were never executed, because no operation signals the semaphores that they
/// wait for. Each is the queue and the step of the submission.
pub fn blocked_submissions(program: &Program) -> Vec<(QueueId, u32)> {
    let mut engine = Engine::new(&program.queues, program.event_count, program.semaphore_count, program.fence_count);
    program.resources.iter().for_each(|resource| {
        engine.add_resource(resource);
    });
    program.render_passes.iter().for_each(|render_pass| {
        engine.add_render_pass(render_pass.clone());
    });
    program.command_buffers.iter().for_each(|command_buffer| {
        engine.add_command_buffer(command_buffer.clone());
    });
    program.steps.iter().for_each(|it| engine.step(it));
    engine.blocked_submissions()
}

/// One diagnostic for each submission of [`blocked_submissions`].
pub fn diagnose_never_executed(
    program: &Program,
    parked: &[(QueueId, u32)],
    names: &dyn ProgramNames,
) -> Vec<Diagnostic> {
    let mut reported: Vec<(QueueId, u32)> = Vec::new();
    let mut found = Vec::new();
    for (queue, step) in parked {
        if reported.contains(&(*queue, *step)) {
            continue;
        }
        let first = reported.iter().find(|it| it.0 == *queue).map(|it| it.1);
        let why = match first {
            Some(first) => format!("it is behind {} on its queue, which waits.", names.step(first)),
            None => waits_text(&waits(program, *step), names),
        };
        reported.push((*queue, *step));
        let path = names.path(&lavascope_sync_ir::ProgramLocation::Step(*step), 0);
        let (step, queue) = (names.step(*step), names.queue(*queue));
        let message = format!("Work of {step} on {queue} was never executed, and not checked: {why}");
        let places = vec![DiagnosticLocation { path, ..DiagnosticLocation::new("submission", step.clone(), step) }];
        found.push(Diagnostic { locations: places, ..Diagnostic::new(NEVER_EXECUTED, Severity::Warning, message) });
    }
    found
}

fn waits(program: &Program, step: u32) -> Vec<SemaphorePoint> {
    match program.steps.get(step as usize) {
        Some(HostStep::Submit { batches, .. }) => batches.iter().flat_map(|it| &it.waits).map(|it| it.point).collect(),
        Some(HostStep::Present { waits, .. }) => {
            waits.iter().map(|it| SemaphorePoint { semaphore: *it, value: None }).collect()
        }
        _ => Vec::new(),
    }
}

fn waits_text(waits: &[SemaphorePoint], names: &dyn ProgramNames) -> String {
    let text = |semaphore_point: &SemaphorePoint| match semaphore_point.value {
        Some(value) => format!("{} with the value {value}", names.semaphore(semaphore_point.semaphore)),
        None => names.semaphore(semaphore_point.semaphore),
    };
    let texts: Vec<String> = waits.iter().map(text).collect();
    match &texts[..] {
        [one] => format!("nobody signals {one} for it."),
        _ => format!("nobody signals one of {} for it.", texts.join(", ")),
    }
}
