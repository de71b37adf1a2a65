//! Command buffers that are not checked while they are recorded, but when they are executed.
//!
//! That costs half, and finds something whenever the other finds something, but not with the same words and not at the
//! same time: whoever looks at a program that is over can look this way first, and the other way where there is
//! something to be told. What is never executed is checked by itself, before anything goes that it uses.

use lavascope_sync_ir::{CommandBufferId, Queue};

use crate::check::Engine;
use crate::device::slot;
use crate::mark::Marking;
use crate::prepare::Prepared;

/// What is not checked yet.
#[derive(Default)]
pub(crate) struct Late {
    /// Primary command buffers that were recorded; some were executed since.
    recorded: Vec<CommandBufferId>,
    has_found: bool,
}

/// How a command buffer was recorded.
pub(crate) enum Unchecked {
    /// It is checked with what executes it.
    Secondary,
    Primary {
        /// For what kind of queue it is recorded.
        queue: Queue,
        /// How many commands were checked.
        checked: usize,
        is_executed: bool,
    },
}

impl Engine {
    /// From now on command buffers are not checked while they are recorded.
    pub fn check_when_executed(&mut self) {
        self.late = Some(Late::default());
    }

    /// Whether there was something wrong inside of a command buffer that was not executed, or something waits, so that
    /// it may still be.
    pub fn is_in_doubt(&mut self) -> bool {
        self.check_unexecuted();
        self.late.as_ref().is_some_and(|it| it.has_found) || self.device.parked().next().is_some()
    }

    /// Something is about to go that command buffers may use.
    pub fn check_unexecuted(&mut self) {
        self.check_those(|_| true);
    }

    /// A command buffer is about to be recorded anew.
    pub(crate) fn begin_late(&mut self, id: CommandBufferId, queue: Queue, is_secondary: bool) {
        self.end_late(id);
        let Some(late) = &mut self.late else { return };
        let commands = slot(&mut self.command_buffers, id.0 as usize);
        let is_listed = matches!(commands.unchecked, Some(Unchecked::Primary { .. }));
        commands.unchecked = Some(if is_secondary {
            Unchecked::Secondary
        } else {
            Unchecked::Primary { queue, checked: 0, is_executed: false }
        });
        if !is_secondary && !is_listed {
            late.recorded.push(id);
        }
    }

    /// What a command buffer was is over.
    pub(crate) fn end_late(&mut self, id: CommandBufferId) {
        match self.command_buffers.get(id.0 as usize).and_then(|it| it.unchecked.as_ref()) {
            Some(Unchecked::Primary { .. }) => self.check_alone(id),
            // One that was never recorded may be executed all the same.
            Some(Unchecked::Secondary) | None => self.check_those(|it| it.executed.iter().any(|it| it.0 == id)),
        }
    }

    /// Checks some of what was not executed.
    fn check_those(&mut self, are_those: impl Fn(&Prepared) -> bool) {
        let Some(late) = &mut self.late else { return };
        let mut recorded = std::mem::take(&mut late.recorded);
        recorded.retain(|id| {
            let commands = &mut self.command_buffers[id.0 as usize];
            commands.unchecked.take_if(|it| matches!(it, Unchecked::Primary { is_executed: true, .. }));
            let is_left = matches!(commands.unchecked, Some(Unchecked::Primary { .. }));
            let is_one = are_those(commands);
            if is_left && is_one {
                self.check_alone(*id);
            }
            is_left
        });
        if let Some(late) = &mut self.late {
            late.recorded = recorded;
        }
    }

    /// Checks a command buffer by itself, if it was not executed.
    fn check_alone(&mut self, id: CommandBufferId) {
        let index = id.0 as usize;
        let commands = &mut self.command_buffers[index];
        let until = commands.plans.len();
        let Some(Unchecked::Primary { queue, checked, is_executed: false }) = &mut commands.unchecked else { return };
        let queue = *queue;
        if std::mem::replace(checked, until) == until {
            return;
        }
        commands.refresh(&self.device.addresses);
        let executed: Vec<CommandBufferId> = commands.executed.iter().map(|it| it.0).collect();
        self.refresh_all(executed.into_iter());
        let mut alone = self.new_alone(queue);
        alone.walk.progress.marking = Marking::None;
        alone.device.grow_events(&self.device);
        self.go_on(&mut alone, index, until);
        let has_found = !(alone.device.found.is_empty() && alone.device.contents.found.is_empty());
        if let Some(late) = &mut self.late {
            late.has_found |= has_found;
        }
        self.keep_spare(alone);
    }
}

impl Prepared {
    /// It is executed, or nobody asks for it any more.
    pub(crate) fn end_unchecked(&mut self) {
        if let Some(Unchecked::Primary { is_executed, .. }) = &mut self.unchecked {
            *is_executed = true;
        }
    }
}
