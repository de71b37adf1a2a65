//! Takes back the last command of a command buffer: the application was asked, and the driver never saw the call.
//!
//! A call records at most one command. Most change nothing else of what is known; of those that do, what was there
//! before is kept until the next one.

use crate::command::bound_state::BoundState;
use crate::command::incomplete::InheritedAttachments;
use crate::device::TrackedDevice;
use crate::draw::rendering::{CurrentAttachments, RecordingRenderPass};
use crate::listener::TrackerOutput;

/// What the last command of a command buffer changed beside being recorded.
#[derive(Debug, Default)]
pub(crate) enum Undo {
    #[default]
    Nothing,
    /// It began or ended rendering: what there was before.
    Rendering {
        recording_render_pass: Option<RecordingRenderPass>,
        attachments: CurrentAttachments,
    },
    NextSubpass,
    /// Whether transform feedback was active before.
    Feedback(bool),
    /// Whether what followed was conditional before.
    Condition(bool),
    Executed(Box<BeforeExecute>),
}

/// Before secondary command buffers were executed.
#[derive(Debug)]
pub(crate) struct BeforeExecute {
    /// How many there were.
    pub(crate) count: usize,
    /// What was bound.
    pub(crate) state: BoundState,
    /// The attachments of each.
    pub(crate) inherited_attachments: Vec<(u64, InheritedAttachments)>,
}

impl TrackedDevice {
    /// The command that the call recorded is gone, and with it all that it changed.
    pub(crate) fn cancel_command(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer) else { return };
        // Many calls record nothing.
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
