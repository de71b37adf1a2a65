//! Checks command buffers when they are executed, not while they are recorded.
//!
//! This halves the cost. It finds a hazard exactly when the other way finds one, but with other words and at another
//! time. A tool that checks a finished program can therefore use this first, and check again in the other way only if
//! there are findings. A command buffer that is never executed is checked by itself, before any object that it uses is
//! destroyed.

use lavascope_sync_ir::{CommandBufferId, Queue};

use crate::check::Engine;
use crate::command_buffer::marks::MarkMode;
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::queue::device::get_or_grow;

/// The command buffers that are not checked yet.
#[derive(Default)]
pub(crate) struct DeferredChecks {
    /// Primary command buffers that were recorded; some have been executed since.
    recorded: Vec<CommandBufferId>,
    has_found: bool,
}

/// How a command buffer was recorded.
pub(crate) enum DeferredCheck {
    /// It is checked together with the primary command buffer that executes it.
    Secondary,
    Primary {
        /// The kind of queue for which it is recorded.
        queue: Queue,
        /// Number of commands that are already checked.
        checked: usize,
        is_executed: bool,
    },
}

impl Engine {
    /// From now on, command buffers are checked when they are executed.
    pub fn check_when_executed(&mut self) {
        self.deferred_checks = Some(DeferredChecks::default());
    }

    /// Checks all command buffers that were not executed. Returns whether there is a hazard, or a submission still
    /// waits and may have one.
    pub fn finish_deferred_checks(&mut self) -> bool {
        self.check_unexecuted();
        self.deferred_checks.as_ref().is_some_and(|it| it.has_found)
            || self.device.blocked_submissions().next().is_some()
    }

    /// Checks command buffers that may use an object which is about to be destroyed.
    pub fn check_unexecuted(&mut self) {
        self.check_deferred_where(|_| true);
    }

    /// Begins to record a command buffer again.
    pub(crate) fn begin_deferred_check(&mut self, id: CommandBufferId, queue: Queue, is_secondary: bool) {
        self.end_deferred_check(id);
        let Some(late) = &mut self.deferred_checks else { return };
        let commands = get_or_grow(&mut self.command_buffers, id.0 as usize);
        let is_listed = matches!(commands.deferred, Some(DeferredCheck::Primary { .. }));
        commands.deferred = Some(if is_secondary {
            DeferredCheck::Secondary
        } else {
            DeferredCheck::Primary { queue, checked: 0, is_executed: false }
        });
        if !is_secondary && !is_listed {
            late.recorded.push(id);
        }
    }

    /// Checks a command buffer whose contents are about to be discarded.
    pub(crate) fn end_deferred_check(&mut self, id: CommandBufferId) {
        match self.command_buffers.get(id.0 as usize).and_then(|it| it.deferred.as_ref()) {
            Some(DeferredCheck::Primary { .. }) => self.check_isolated(id),
            // It may be executed although it was never recorded.
            Some(DeferredCheck::Secondary) | None => {
                self.check_deferred_where(|it| it.executed.iter().any(|it| it.0 == id))
            }
        }
    }

    /// Checks selected command buffers that were not executed.
    fn check_deferred_where(&mut self, are_those: impl Fn(&PreparedCommandBuffer) -> bool) {
        let Some(late) = &mut self.deferred_checks else { return };
        let mut recorded = std::mem::take(&mut late.recorded);
        recorded.retain(|id| {
            let commands = &mut self.command_buffers[id.0 as usize];
            commands.deferred.take_if(|it| matches!(it, DeferredCheck::Primary { is_executed: true, .. }));
            let is_left = matches!(commands.deferred, Some(DeferredCheck::Primary { .. }));
            let is_one = are_those(commands);
            if is_left && is_one {
                self.check_isolated(*id);
            }
            is_left
        });
        if let Some(late) = &mut self.deferred_checks {
            late.recorded = recorded;
        }
    }

    /// Checks a command buffer by itself, if it was not executed.
    fn check_isolated(&mut self, id: CommandBufferId) {
        let index = id.0 as usize;
        let commands = &mut self.command_buffers[index];
        let until = commands.list.len();
        let Some(DeferredCheck::Primary { queue, checked, is_executed: false }) = &mut commands.deferred else {
            return;
        };
        let queue = *queue;
        if std::mem::replace(checked, until) == until {
            return;
        }
        commands.refresh(&self.device.addresses);
        let executed: Vec<CommandBufferId> = commands.executed.iter().map(|it| it.0).collect();
        self.refresh_all(executed.into_iter());
        let mut isolated = self.new_isolated(queue);
        isolated.cursor.progress.marking = MarkMode::Off;
        isolated.device.grow_events(&self.device);
        self.advance_isolated(&mut isolated, index, until);
        let has_found = !(isolated.device.hazards.is_empty() && isolated.device.contents.faults.is_empty());
        if let Some(late) = &mut self.deferred_checks {
            late.has_found |= has_found;
        }
        self.recycle_isolated(isolated);
    }
}

impl PreparedCommandBuffer {
    /// Marks it as executed, or as no longer needed.
    pub(crate) fn set_executed(&mut self) {
        if let Some(DeferredCheck::Primary { is_executed, .. }) = &mut self.deferred {
            *is_executed = true;
        }
    }
}
