//! Undoes the effects of a call that a messenger callback cancelled.
//!
//! The engine has no history to return to. It starts again with the remembered steps, so the cost depends on their
//! number. Accesses that are older than these steps are in no hazard after that.

use std::collections::HashMap;

use lavascope_engine::EventRaces;
use lavascope_state::CallSource;
use lavascope_sync_ir::{CommandBufferId, HostStep, ResourceId};

use crate::device::ValidatedDevice;
use crate::engine::IdMappedEngine;
use crate::recording::command_buffer::RecordedCommandBuffer;
use crate::recording::step_history::{HistoryStep, StepHistory};

impl ValidatedDevice {
    /// Undoes the steps of a call. Returns whether there were any.
    pub(crate) fn undo_steps(&mut self, source: CallSource) -> bool {
        let removed = self.history.remove(source);
        self.submits -= removed.iter().filter(|it| matches!(it.step, HostStep::Submit { .. })).count() as u64;
        if !removed.is_empty() {
            removed.iter().for_each(|it| self.undo_submission(it));
            self.rebuild();
        }
        !removed.is_empty()
    }

    fn rebuild(&mut self) {
        let (before, mut all) = std::mem::take(&mut self.history).into_parts();
        self.engine = self.new_engine();
        // Without the past, event races could be reported that do not exist.
        self.races = EventRaces::default();
        self.host_polls.clear();
        for point in before.points() {
            self.engine.step(&HostStep::SignalSemaphore(point));
        }
        let mut resources: Vec<(u32, ResourceId)> = self.objects.first_steps.iter().map(|it| (*it.1, *it.0)).collect();
        resources.sort_unstable();
        let mut resources = resources.into_iter().peekable();
        let mut known = HashMap::new();
        for (kept, gone) in &mut all {
            while let Some((_, id)) = resources.next_if(|it| it.0 <= kept.index) {
                self.add_again(id);
            }
            self.set_submitted_buffers(kept, &mut known);
            (kept.index, _) = self.engine.step(&kept.step);
            gone.iter().for_each(|it| self.engine.remove_object(*it));
        }
        resources.for_each(|(_, id)| self.add_again(id));
        self.history = StepHistory::from_parts(before, all);
        self.record_all_again();
        // These resources get no addresses again, and that is already reported.
        self.engine.take_unplaced();
    }

    /// An engine with all objects except resources, which are added in their original order because they may share
    /// memory.
    fn new_engine(&self) -> IdMappedEngine {
        let mut live = IdMappedEngine::new(&self.objects.queues);
        self.objects.passes.iter().for_each(|(id, it)| live.add_render_pass(*id, &it.1));
        self.objects.events.keys().for_each(|it| live.add_event(*it));
        self.objects.semaphores.keys().for_each(|it| live.add_semaphore(*it));
        self.objects.fences.keys().for_each(|it| live.add_fence(*it));
        live
    }

    fn add_again(&mut self, id: ResourceId) {
        if let Some((_, resource)) = self.objects.resources.get(&id) {
            self.engine.add_resource(id, resource);
            self.objects.first_steps.insert(id, self.engine.next_step());
        }
    }

    /// Restores the command buffers of a step as they were at its submission.
    fn set_submitted_buffers(
        &mut self,
        kept: &HistoryStep,
        known: &mut HashMap<CommandBufferId, RecordedCommandBuffer>,
    ) {
        let HostStep::Submit { batches, .. } = &kept.step else { return };
        let ids = batches.iter().flat_map(|it| &it.command_buffers);
        for (id, submitted) in ids.zip(kept.buffers.iter().flatten()) {
            let own = submitted.own.as_ref().map(|it| (*id, it));
            for (id, recorded) in submitted.executed.iter().map(|it| (it.0, &it.1)).chain(own) {
                if known.get(&id).is_none_or(|it| it.identity() != recorded.identity()) {
                    self.engine.set_command_buffer(id, &recorded.buffer());
                    known.insert(id, recorded.clone());
                }
            }
        }
    }
}
