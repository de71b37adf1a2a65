//! Whether each rendering that is suspended goes on: the next command of its batch resumes it, with the same
//! attachments.

use lavascope_sync_ir::{Command, HostStep, Program, Rendering, SubmitBatch};

/// Small edits leave one half alone, and that is no valid program.
pub(crate) fn resumes_what_is_suspended(program: &Program) -> bool {
    let batches = program.steps.iter().flat_map(|step| match step {
        HostStep::Submit { batches, .. } => batches.as_slice(),
        _ => &[],
    });
    batches.into_iter().all(|it| is_batch_paired(program, it))
}

fn is_batch_paired(program: &Program, batch: &SubmitBatch) -> bool {
    let mut current: Option<&Rendering> = None;
    let mut suspended: Option<&Rendering> = None;
    let buffers = batch.command_buffers.iter().map(|it| &program.command_buffers[it.0 as usize]);
    for command in buffers.flat_map(|it| &it.commands) {
        match command {
            Command::BeginRendering(rendering) => {
                let fits = match suspended.take() {
                    Some(before) => rendering.is_resuming && is_same_instance(before, rendering),
                    None => !rendering.is_resuming,
                };
                if !fits {
                    return false;
                }
                current = Some(rendering);
            }
            Command::EndRendering => suspended = current.take().filter(|it| it.is_suspending),
            _ if suspended.is_some() => return false,
            _ => {}
        }
    }
    suspended.is_none()
}

fn is_same_instance(one: &Rendering, other: &Rendering) -> bool {
    (&one.attachments, one.area, one.view_mask) == (&other.attachments, other.area, other.view_mask)
}
