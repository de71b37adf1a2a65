//! Hazards that only the device can decide, held back until it is known what it did.
//!
//! Where shaders record what they touch, a hazard that is not certain waits for the feedback of its submission. Then
//! the slice of the past that it is about is checked again, by the same engine, with what was touched in the place of
//! what might have been (`touched`): what is found then is reported, and the rest was no hazard. So an access that
//! touched nothing hides none before it. Submissions are decided in their order. Executions are counted on both sides.
//! Where feedback does not agree, or does not come, the hazards are reported as if nobody had waited for it.

use std::collections::VecDeque;

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_engine::check;
use lavascope_explain::{HazardCertainty, hazard_certainty_between};
use lavascope_state::{CallSource, DeviceCall};
use lavascope_sync_ir::{
    Access, Certainty, CommandBufferId, CommandLocation, Hazard, HostStep, OriginKind, ProgramLocation, ResourceId,
};
use rustc_hash::FxHashMap;

use crate::device::ValidatedDevice;
use crate::devices::ValidatedDevices;
use crate::feedback::touched::{CommandBufferFeedback, touched_resources};
use crate::findings::causes::{COMMANDS_MAX, CauseRegistry};
use crate::findings::diagnostic_builder::DiagnosticBuilder;
use crate::recording::step_history::{HistoryLocation, HistoryStep, SubmittedCommandBuffer, step_of};

/// Submissions that wait for feedback, or are remembered with it.
const OPEN_MAX: usize = 64;
/// How many submissions before the earlier access of a hazard are checked again with it: that access may have touched
/// nothing, and have stood before another one.
const SUBMISSIONS_BEFORE: usize = 8;

/// What a device did, and what waits for that.
#[derive(Default)]
pub(crate) struct PendingFeedback {
    /// By command buffer, the steps that executed it and of which nothing is known yet.
    awaited_steps: FxHashMap<ObjectId, VecDeque<u32>>,
    /// In the order of submission.
    undecided: VecDeque<UndecidedSubmission>,
    /// By command buffer and step. The steps that there are, the earliest first.
    received: FxHashMap<(ObjectId, u32), CommandBufferFeedback>,
    steps: VecDeque<u32>,
    /// What was found while command buffers were recorded.
    recorded_hazards: FxHashMap<CommandBufferId, RecordedHazards>,
}

/// A submission that is not decided.
#[derive(Default)]
struct UndecidedSubmission {
    step: u32,
    /// Executions of which nothing is known yet.
    missing_executions: usize,
    is_complete: bool,
    held: Vec<Hazard>,
    /// What was told at once.
    reported: Vec<Hazard>,
}

#[derive(Default)]
struct RecordedHazards {
    held: Vec<Hazard>,
    reported: Vec<Hazard>,
    is_submitted: bool,
}

impl PendingFeedback {
    /// What is known of a command buffer as a step executed it.
    pub(crate) fn feedback_for(&self, commands: ObjectId, step: u32) -> Option<&CommandBufferFeedback> {
        self.received.get(&(commands, step))
    }

    /// The device told of a command buffer.
    fn receive(&mut self, buffer_feedback: CommandBufferFeedback) {
        let Some(waiting) = self.awaited_steps.get_mut(&buffer_feedback.command_buffer) else { return };
        let count = buffer_feedback.executions as usize;
        let is_whole = buffer_feedback.is_complete && count <= waiting.len();
        let steps: Vec<u32> = waiting.drain(..count.min(waiting.len())).collect();
        for step in steps {
            if let Some(open) = self.undecided.iter_mut().find(|open| open.step == step) {
                open.missing_executions = open.missing_executions.saturating_sub(1);
                open.is_complete &= is_whole;
            }
            if is_whole {
                self.received.insert((buffer_feedback.command_buffer, step), buffer_feedback.clone());
            }
        }
    }

    /// The next submission that can be decided.
    fn take_decidable(&mut self) -> Option<UndecidedSubmission> {
        let is_full = self.undecided.len() > OPEN_MAX;
        let open = self.undecided.pop_front_if(|it| it.missing_executions == 0 || is_full)?;
        if open.missing_executions > 0 {
            // What was reported of it so far is about more commands than there are then, and does not count.
            self.awaited_steps.values_mut().for_each(|it| it.retain(|step| *step != open.step));
        }
        self.awaited_steps.retain(|_, it| !it.is_empty());
        self.steps.push_back(open.step);
        if self.steps.len() > OPEN_MAX {
            let oldest = self.steps.pop_front().unwrap_or(0);
            self.received.retain(|it, _| it.1 > oldest);
        }
        Some(UndecidedSubmission { is_complete: open.is_complete && open.missing_executions == 0, ..open })
    }

    /// Nothing more will come.
    fn take_all_held(&mut self) -> Vec<Hazard> {
        self.awaited_steps.clear();
        self.received.clear();
        self.undecided.drain(..).flat_map(|it| it.held).collect()
    }

    /// The step of some submissions before one.
    fn before(&self, first: u32) -> u32 {
        let before = self.steps.iter().rev().filter(|it| **it < first).take(SUBMISSIONS_BEFORE);
        before.last().copied().unwrap_or(first)
    }
}

/// What was found in a command buffer while it was recorded, where it is submitted.
fn hazard_in_submission(hazard: &Hazard, step: u32, batch: u32, primary: u32) -> Hazard {
    let place = |program_location: &ProgramLocation| match program_location {
        ProgramLocation::Command(at) => {
            ProgramLocation::Command(CommandLocation { step, batch, primary, path: at.path.clone() })
        }
        other => other.clone(),
    };
    Hazard { at: place(&hazard.at), prior: place(&hazard.prior), ..hazard.clone() }
}

/// Everything that a command buffer executes, each as often as it does.
fn collect_executed_buffers(command_buffer: &SubmittedCommandBuffer, out: &mut Vec<ObjectId>) {
    let Some(own) = &command_buffer.own else { return };
    out.push(own.object);
    let mut open: Vec<CommandBufferId> = own.executes().collect();
    while let Some(next) = open.pop() {
        if let Some((_, recorded)) = command_buffer.executed.iter().find(|it| it.0 == next) {
            out.push(recorded.object);
            open.extend(recorded.executes());
        }
    }
}

impl ValidatedDevice {
    /// Whether only what the device does decides a hazard.
    fn waits_for_feedback(&self, hazard: &Hazard, locate: impl Fn(&ProgramLocation) -> Option<Vec<Access>>) -> bool {
        let (Some(later), Some(earlier)) = (locate(&hazard.at), locate(&hazard.prior)) else { return false };
        let is_open = |access: &Access| {
            let is_kept = matches!(access.origin.kind(), OriginKind::Descriptor(_) | OriginKind::Address(_));
            is_kept && access.certainty != Certainty::Certain
        };
        let own = |all: &[Access]| all.iter().any(|own| own.resource == hazard.resource && is_open(own));
        let may_share = |it| self.objects.may_share_memory(it, hazard.resource);
        (own(&later) || own(&earlier))
            && hazard_certainty_between(hazard, &later, &earlier, may_share) != HazardCertainty::Certain
    }

    /// Keeps what was found in a command buffer that is recorded. Gives what is reported at once.
    pub(crate) fn hold_recorded(&mut self, id: CommandBufferId, kept: &HistoryStep, found: Vec<Hazard>) -> Vec<Hazard> {
        let Some(mut feed) = self.feedback.take() else { return found };
        let waits = |it: &Hazard| self.waits_for_feedback(it, |place| kept.locate(place).and_then(accesses));
        let (held, reported): (Vec<Hazard>, Vec<Hazard>) = found.into_iter().partition(waits);
        if !held.is_empty() || feed.recorded_hazards.contains_key(&id) {
            let own = feed.recorded_hazards.entry(id).or_default();
            own.held.extend(held);
            own.reported.extend(reported.iter().cloned());
        }
        self.feedback = Some(feed);
        reported
    }

    /// Keeps what was found because of the last step. Gives what is reported at once.
    pub(crate) fn hold_step(&mut self, found: Vec<Hazard>) -> Vec<Hazard> {
        let Some(mut feed) = self.feedback.take() else { return found };
        let waits = |hazard: &Hazard| {
            let is_open = feed.undecided.iter().any(|open| open.step == step_of(&hazard.at));
            is_open && self.waits_for_feedback(hazard, |place| self.history.locate(place).and_then(accesses))
        };
        let (held, reported): (Vec<Hazard>, Vec<Hazard>) = found.into_iter().partition(waits);
        for (all, is_held) in [(&held, true), (&reported, false)] {
            for hazard in all {
                if let Some(open) = feed.undecided.iter_mut().find(|open| open.step == step_of(&hazard.at)) {
                    if is_held { &mut open.held } else { &mut open.reported }.push(hazard.clone());
                }
            }
        }
        self.feedback = Some(feed);
        reported
    }

    /// Something is submitted: the device will tell what it did.
    pub(crate) fn expect_submission_feedback(
        &mut self,
        index: u32,
        step: &HostStep,
        buffers: &[Vec<SubmittedCommandBuffer>],
    ) {
        let (Some(feed), HostStep::Submit { batches, .. }) = (&mut self.feedback, step) else { return };
        let mut open = UndecidedSubmission { step: index, is_complete: true, ..UndecidedSubmission::default() };
        for (batch, (own, all)) in (0..).zip(batches.iter().zip(buffers)) {
            for (primary, (id, one)) in (0..).zip(own.command_buffers.iter().zip(all)) {
                let mut executed = Vec::new();
                collect_executed_buffers(one, &mut executed);
                open.missing_executions += executed.len();
                executed.into_iter().for_each(|it| feed.awaited_steps.entry(it).or_default().push_back(index));
                if let Some(recorded) = feed.recorded_hazards.get_mut(id) {
                    recorded.is_submitted = true;
                    open.held.extend(recorded.held.iter().map(|it| hazard_in_submission(it, index, batch, primary)));
                    open.reported
                        .extend(recorded.reported.iter().map(|it| hazard_in_submission(it, index, batch, primary)));
                }
            }
        }
        feed.undecided.push_back(open);
    }
}

fn accesses(history_location: HistoryLocation<'_>) -> Option<Vec<Access>> {
    let (recorded, index) = history_location.recorded?;
    recorded.accesses(index as usize)
}

impl ValidatedDevices {
    /// The device will tell what its shaders touched.
    pub(crate) fn expect_feedback(&mut self, device: ObjectId) {
        if let Some(device) = self.devices.get_mut(&device).filter(|_| self.checks_submissions) {
            device.feedback.get_or_insert_default();
        }
    }

    /// A device reported what it did.
    pub(crate) fn feedback(&mut self, id: ObjectId, all: Vec<CommandBufferFeedback>) {
        let feed = self.devices.get_mut(&id).and_then(|it| it.feedback.as_deref_mut());
        let Some(feed) = feed else { return };
        all.into_iter().for_each(|it| feed.receive(it));
        self.decide_submissions(id);
    }

    /// Decides all submissions that can be decided.
    pub(crate) fn decide_submissions(&mut self, id: ObjectId) {
        while let Some(open) = self.devices.get_mut(&id).and_then(|it| it.feedback.as_deref_mut()?.take_decidable()) {
            self.decide_submission(id, open);
        }
    }

    fn decide_submission(&mut self, id: ObjectId, open: UndecidedSubmission) {
        let mut about: Vec<ResourceId> = open.held.iter().map(|it| it.resource).collect();
        about.sort_unstable();
        about.dedup();
        let Some(device) = self.devices.get_mut(&id) else { return };
        // What was not touched at all is in no hazard: of many descriptors, most are not.
        if let (Some(feed), Some(kept), true) = (&device.feedback, device.history.step(open.step), open.is_complete) {
            about = touched_resources(kept, feed, &about);
        }
        for resource in about {
            let held: Vec<Hazard> = open.held.iter().filter(|it| it.resource == resource).cloned().collect();
            let Some(feed) = &device.feedback else { return };
            let first = held.iter().map(|it| step_of(&it.prior)).min().unwrap_or(open.step).min(open.step);
            let before = feed.before(first);
            let observed = Some(&**feed).filter(|_| open.is_complete);
            let builder =
                DiagnosticBuilder { id, device, recording: None, feedback: observed, object_names: &self.object_names };
            let found = builder.observed_hazards(before, resource, &open);
            match found.or_else(|| builder.observed_hazards(first, resource, &open)) {
                Some(found) => builder.report_hazards(&found, &mut self.causes),
                None => DiagnosticBuilder { feedback: None, ..builder }.report_hazards(&held, &mut self.causes),
            }
        }
    }

    /// A command buffer is recorded anew or is no more: what was found in it is reported, if it was never submitted.
    pub(crate) fn report_held(&mut self, at: DeviceCall, commands: CommandBufferId) {
        let (id, source) = (at.device, at.source);
        let Some(device) = self.devices.get_mut(&id) else { return };
        let Some(own) = device.feedback.as_deref_mut().and_then(|it| it.recorded_hazards.remove(&commands)) else {
            return;
        };
        if !own.is_submitted && !own.held.is_empty() {
            let kept = device.as_single_submission(commands, source);
            let builder = DiagnosticBuilder {
                id,
                device,
                recording: Some(&kept),
                feedback: None,
                object_names: &self.object_names,
            };
            builder.report_hazards(&own.held, &mut self.causes);
        }
    }

    /// No more feedback will come: what waits for it is reported.
    pub(crate) fn report_all_held(&mut self, id: ObjectId) {
        let Some(device) = self.devices.get_mut(&id) else { return };
        let Some(feed) = device.feedback.as_deref_mut() else { return };
        let found = feed.take_all_held();
        let mut recorded: Vec<CommandBufferId> = feed.recorded_hazards.keys().copied().collect();
        recorded.sort_unstable();
        let builder =
            DiagnosticBuilder { id, device, recording: None, feedback: None, object_names: &self.object_names };
        builder.report_hazards(&found, &mut self.causes);
        // Nobody calls any more: the last one that was made counts.
        let source = CallSource { command: ApiCommand::EndCommandBuffer, thread: 0, call: 0 };
        recorded.into_iter().for_each(|it| self.report_held(DeviceCall { device: id, source }, it));
    }
}

impl DiagnosticBuilder<'_> {
    /// The hazards of a step with what was touched, but for those that were reported; none where that cannot be checked.
    fn observed_hazards(&self, first: u32, about: ResourceId, open: &UndecidedSubmission) -> Option<Vec<Hazard>> {
        self.feedback?;
        let is_there = |it: &&Hazard| self.device.history.locate(&it.prior).is_some();
        if !open.held.iter().filter(|it| it.resource == about).all(|it| is_there(&it)) {
            return None;
        }
        let slice = self.slice(first, about, COMMANDS_MAX)?;
        let at = slice.steps.iter().position(|it| it.index == open.step)? as u32;
        let mut found = Vec::new();
        for hazard in check(&slice.program).into_iter().filter(|it| step_of(&it.at) == at) {
            let hazard = slice.device_hazard(&hazard)?;
            let key = |it: &Hazard| (it.kind, it.resource, it.at.clone(), it.prior.clone());
            if !open.reported.iter().any(|reported| key(reported) == key(&hazard)) {
                found.push(hazard);
            }
        }
        Some(found)
    }
}

impl CauseRegistry {
    /// How many were found so far, for tests.
    #[cfg(test)]
    pub(crate) fn severities(&self) -> Vec<lavascope_diag::Severity> {
        self.diagnostics.iter().map(|it| it.severity).collect()
    }
}
