//! Removes the last command of a command buffer, after a callback of the application cancelled the call.
//!
//! A call records at most one command. The state that it changes is kept until the next command; most commands change
//! none.

use crate::command::bound_state::BoundState;
use crate::command::incomplete::InheritedAttachments;
use crate::device::TrackedDevice;
use crate::draw::rendering::{CurrentAttachments, RecordingRenderPass};
use crate::listener::TrackerOutput;

/// The state that the last command changed.
#[derive(Debug, Default)]
pub(crate) enum Undo {
    #[default]
    Nothing,
    /// It began or ended rendering; this is the state before.
    Rendering {
        recording_render_pass: Option<RecordingRenderPass>,
        attachments: CurrentAttachments,
    },
    NextSubpass,
    /// Whether transform feedback was active before.
    Feedback(bool),
    /// Whether conditional rendering was active before.
    Condition(bool),
    Executed(Box<BeforeExecute>),
}

/// The state before secondary command buffers were executed.
#[derive(Debug)]
pub(crate) struct BeforeExecute {
    /// The number of executed command buffers.
    pub(crate) count: usize,
    /// The bound state.
    pub(crate) state: BoundState,
    /// The inherited attachments of each.
    pub(crate) inherited_attachments: Vec<(u64, InheritedAttachments)>,
}

impl TrackedDevice {
    /// Removes the command that the call recorded, and restores the state before it.
    pub(crate) fn cancel_command(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer) else { return };
        // Many calls record no command.
        if own.last_call.take_if(|it| *it == (out.at.source.thread, out.at.source.call)).is_none() {
            return;
        }
        own.count -= 1;
        own.incomplete.pop(own.count);
        own.state.index_updates.cancel_from(own.count);
        out.listener.cancel_command(out.at, own.id);
        match std::mem::take(&mut own.undo) {
            Undo::Nothing => {}
            Undo::Rendering { recording_render_pass: open, attachments: scene } => {
                (own.state.recording_render_pass, own.state.attachments) = (open, scene)
            }
            Undo::NextSubpass => own.state.previous_subpass(),
            Undo::Feedback(is_active) => own.state.is_transform_feedback_active = is_active,
            Undo::Condition(is_conditional) => own.state.is_conditional = is_conditional,
            Undo::Executed(before) => {
                own.executed.truncate(before.count);
                let (open, scene) =
                    (own.state.recording_render_pass.take(), std::mem::take(&mut own.state.attachments));
                own.state = BoundState { recording_render_pass: open, attachments: scene, ..before.state };
                for (secondary, attached) in before.inherited_attachments {
                    self.set_inherited_attachments(secondary, attached, out);
                }
            }
        }
    }
}
