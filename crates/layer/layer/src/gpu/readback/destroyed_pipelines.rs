//! Reports the remaining findings of pipelines that are destroyed, and forgets their shaders.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::pipeline::variants::{InstrumentedPipeline, PipelineVariant};
use crate::gpu::report::fault_draws::{ExecutedCommands, FaultDraws};
use crate::gpu::report::findings::{CheckFinding, ReportedFault, fault_counts};
use crate::gpu::{ChecksState, DeviceChecks};

impl ChecksState {
    /// Takes the variants of a pipeline, with their shaders.
    fn take_variants(&mut self, number: u32) -> Vec<Arc<PipelineVariant>> {
        let all = std::mem::take(&mut self.variants);
        let (ended, rest) = all.into_iter().partition(|it| it.application.1 == number);
        self.variants = rest;
        ended
    }

    /// Takes the variants of shader objects of which none exists any more.
    fn take_shader_object_variants(&mut self) -> Vec<Arc<PipelineVariant>> {
        let live: HashSet<u32> = self.shader_objects.live.values().map(|it| it.number).collect();
        let is_there = |pipeline_variant: &Arc<PipelineVariant>| {
            pipeline_variant.shader_objects.is_none()
                || pipeline_variant
                    .stages
                    .iter()
                    .filter_map(|instrumented_stage| instrumented_stage.object)
                    .any(|pair| live.contains(&pair.1))
        };
        let (rest, ended) = std::mem::take(&mut self.variants).into_iter().partition(is_there);
        self.variants = rest;
        ended
    }

    /// The shader objects of removed variants that no other variant has.
    fn destroyed_shader_objects(&self, ended: &[Arc<PipelineVariant>]) -> HashSet<u32> {
        let numbers = |all: &[Arc<PipelineVariant>]| -> HashSet<u32> {
            all.iter().flat_map(|it| &it.stages).filter_map(|it| Some(it.object?.1)).collect()
        };
        let mut gone = numbers(ended);
        let left = numbers(&self.variants);
        gone.retain(|it| !left.contains(it) && !self.shader_objects.live.values().any(|live| live.number == *it));
        gone
    }

    /// Takes the reported faults of some pipelines or shader objects.
    fn take_reported(&mut self, is_it: impl Fn(u32) -> bool) -> Vec<ReportedFault> {
        self.reported_faults.extract_if(.., |it| is_it(it.pipeline())).collect()
    }

    /// Takes the draws of the faults of some pipelines or shader objects.
    fn take_fault_draws(&mut self, is_it: impl Fn(u32) -> bool) -> FaultDraws {
        self.fault_draws.take(is_it)
    }

    /// Reads the records of draws with a pipeline that no work uses any more.
    fn read_pipeline_records(&mut self, handle: u64, commands: &CommandBufferState, number: u32) -> Vec<CheckFinding> {
        let mut found = Vec::new();
        let CommandBufferState { number: of_commands, object_id, queue_labels, submitted_frames, .. } = commands;
        let (frames, object) = (submitted_frames, *object_id);
        let place = ExecutedCommands { handle, number: *of_commands, object, queue_labels, frames };
        for drawn in commands.draws.iter().filter(|it| commands.variant_of(it).application.1 == number) {
            found.extend(self.read_draw(commands, drawn, &place));
        }
        found
    }
}

impl DeviceChecks {
    /// A pipeline is about to be destroyed, and no work uses it.
    pub(crate) fn retire_pipeline(&self, checked: &InstrumentedPipeline) {
        let (mut state, number) = (self.state(), checked.number);
        let ended = state.take_variants(number);
        let has_news = ended.iter().any(|it| state.has_unreported(it));
        drop(state);
        if has_news {
            let found = self.read_draws_of_pipeline(number);
            self.report_all(found);
        }
        let mut state = self.state();
        let found = state.find_unrecorded(&ended);
        state.forget_faults(&ended, |it| it == number);
        drop(state);
        self.report_all(found);
        let (reported, counts) = (self.state().take_reported(|it| it == number), fault_counts(&ended));
        let draws = self.state().take_fault_draws(|it| it == number);
        reported.into_iter().for_each(|mut it| it.report_new_counts(&counts, &draws));
        self.destroy_variants(checked);
        // A variant without draws may have been created meanwhile.
        drop(self.state().take_variants(number));
    }

    /// Shader objects are about to be destroyed, and no work uses them.
    pub(crate) fn retire_shader_object_variants(&self) {
        let mut state = self.state();
        let ended = state.take_shader_object_variants();
        let has_news = ended.iter().any(|it| state.has_unreported(it));
        drop(state);
        if ended.is_empty() {
            return;
        }
        let numbers: BTreeSet<u32> = ended.iter().filter(|_| has_news).map(|it| it.application.1).collect();
        for number in numbers {
            let found = self.read_draws_of_pipeline(number);
            self.report_all(found);
        }
        let mut state = self.state();
        let found = state.find_unrecorded(&ended);
        if !state.reported_faults.is_empty() {
            let all: Vec<Arc<PipelineVariant>> = ended.iter().chain(&state.variants).cloned().collect();
            // An object is in many variants. From now on, its counts in the others matter.
            let (now, rest) = (fault_counts(&all), fault_counts(&state.variants));
            let ChecksState { reported_faults, fault_draws, .. } = &mut *state;
            reported_faults.iter_mut().for_each(|it| it.report_and_rebase((&now, &rest), fault_draws));
        }
        let gone = state.destroyed_shader_objects(&ended);
        state.forget_faults(&ended, |it| gone.contains(&it));
        drop(state);
        self.report_all(found);
        drop(self.state().take_reported(|it| gone.contains(&it)));
        drop(self.state().take_fault_draws(|it| gone.contains(&it)));
    }

    /// Reads the draws of a pipeline. The application may have learned of their completion in a way that the layer does
    /// not see.
    fn read_draws_of_pipeline(&self, number: u32) -> Vec<CheckFinding> {
        let mut found = Vec::new();
        for handle in self.command_buffers.handles_unsorted() {
            let Some(slot) = self.slot(handle) else { continue };
            // The lock of the state comes first, as everywhere: a recording thread waits for a slot that is being read.
            let mut state = self.state();
            slot.with(|commands| found.extend(state.read_pipeline_records(handle, commands, number)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Pipeline;

    use super::*;

    fn variant(handle: u64, number: u32) -> Arc<PipelineVariant> {
        Arc::new(PipelineVariant {
            handle: Pipeline(handle),
            application: (Pipeline(number.into()), number),
            ..PipelineVariant::empty()
        })
    }

    #[test]
    fn the_forms_of_a_destroyed_pipeline_are_forgotten() {
        let mut state =
            ChecksState { variants: vec![variant(1, 0), variant(2, 1), variant(3, 0)], ..ChecksState::default() };
        let weak: Vec<_> = state.variants.iter().map(Arc::downgrade).collect();
        assert_eq!(state.take_variants(0).iter().map(|it| it.handle.0).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(weak.iter().map(|it| it.upgrade().is_some()).collect::<Vec<_>>(), [false, true, false]);
        assert!(state.take_variants(0).is_empty());
    }
}
