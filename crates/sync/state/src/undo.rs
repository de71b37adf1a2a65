//! Takes back the last command of a command buffer: the application was asked, and the driver never saw the call.
//!
//! A call records at most one command. Most change nothing else of what is known; of those that do, what was there
//! before is kept until the next one.

use crate::bind::State;
use crate::device::Device;
use crate::late::Attached;
use crate::listener::Out;
use crate::rendering::{Open, Scene};

/// What the last command of a command buffer changed beside being recorded.
#[derive(Debug, Default)]
pub(crate) enum Undo {
    #[default]
    Nothing,
    /// It began or ended rendering: what there was before.
    Scene {
        open: Option<Open>,
        scene: Scene,
    },
    NextSubpass,
    /// Whether transform feedback was active before.
    Feedback(bool),
    /// Whether what followed was conditional before.
    Condition(bool),
    Executed(Box<Executed>),
}

/// Before secondary command buffers were executed.
#[derive(Debug)]
pub(crate) struct Executed {
    /// How many there were.
    pub(crate) count: usize,
    /// What was bound.
    pub(crate) state: State,
    /// The attachments of each.
    pub(crate) attached: Vec<(u64, Attached)>,
}

impl Device {
    /// The command that the call recorded is gone, and with it all that it changed.
    pub(crate) fn take_back(&mut self, buffer: u64, out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer) else { return };
        // Many calls record nothing.
        if own.last.take_if(|it| *it == (out.at.source.thread, out.at.source.call)).is_none() {
            return;
        }
        own.count -= 1;
        own.waiting.pop(own.count);
        own.state.updates.take_back(own.count);
        out.listener.take_back(out.at, own.id);
        match std::mem::take(&mut own.undo) {
            Undo::Nothing => {}
            Undo::Scene { open, scene } => (own.state.open, own.state.scene) = (open, scene),
            Undo::NextSubpass => own.state.last_subpass(),
            Undo::Feedback(is_active) => own.state.is_feeding_back = is_active,
            Undo::Condition(is_conditional) => own.state.is_conditional = is_conditional,
            Undo::Executed(before) => {
                own.executed.truncate(before.count);
                let (open, scene) = (own.state.open.take(), std::mem::take(&mut own.state.scene));
                own.state = State { open, scene, ..before.state };
                for (secondary, attached) in before.attached {
                    self.set_attached(secondary, attached, out);
                }
            }
        }
    }
}
