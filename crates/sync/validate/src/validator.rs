//! The validator: records in, diagnostics out.

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_diag::{Diagnostic, FirstAccessKey};
use lavascope_record::{HostWrite, Record, RecordPhase, from_trusted};
use lavascope_state::{CallSource, SpirvReflection, Tracker, Untracked};

use crate::devices::{CheckedWork, RecordingCall, ValidatedDevices, is_recorded, recording_call};
use crate::feedback::touched::CommandBufferFeedback;
use crate::findings::causes::{CutExplanations, ValidatorFinding};
use crate::findings::launch::LaunchLocation;
use crate::recording::call_sequence::{CallContext, NextCall, SequenceEnd};
use crate::recording::host_polls::OpenPolls;

/// Follows an application by its records, and reports its hazards.
///
/// The order of the records must be one in which the application's threads could have made the calls.
pub struct Validator {
    tracker: Tracker<ValidatedDevices>,
}

impl Default for Validator {
    fn default() -> Validator {
        let reflection = Box::new(SpirvReflection::default());
        Validator { tracker: Tracker::with_reflection(ValidatedDevices::default(), reflection) }
    }
}

impl Validator {
    /// Sets the call stack of the next record. The caller defines the meaning of the number; zero means none.
    pub fn set_call_stack(&mut self, stack: u32) {
        self.tracker.listener.stack = stack;
    }

    /// Processes the next record, of parameters or of outputs.
    pub fn process_record(&mut self, thread: u32, record: Record<'_>) {
        match record.phase() {
            RecordPhase::Enter => self.process_parameters(thread, record),
            RecordPhase::Leave => self.process_outputs(thread, record),
        }
    }

    /// Processes the parameters of a call, before the driver sees it.
    pub fn process_parameters(&mut self, thread: u32, record: Record<'_>) {
        let now = self.call_context(thread);
        match recording_call(record.command()) {
            RecordingCall::Other => self.process_call(thread, record),
            RecordingCall::Begins => {
                self.process_call(thread, record);
                let stack = self.tracker.listener.stack;
                self.tracker.listener.call_sequences.begin(record, stack, now);
            }
            // A recorded command, for example a draw. As long as a command buffer is recorded with the same words as
            // the last time, and nothing that they refer to has changed, nothing can be found: the cache keeps the
            // call, and no more is done. At the first difference, the kept calls are processed.
            part @ (RecordingCall::Repeatable | RecordingCall::NotRepeatable) => {
                let (is_repeatable, listener) = (part == RecordingCall::Repeatable, &mut self.tracker.listener);
                match listener.call_sequences.compare_next(record, listener.stack, now, is_repeatable) {
                    NextCall::Same => {}
                    NextCall::Different => {
                        self.process_skipped_calls(thread);
                        self.process_parameters(thread, record);
                    }
                    NextCall::NotCompared => self.process_call(thread, record),
                }
            }
            RecordingCall::Ends => {
                self.end_call_sequence(thread, record);
                self.process_call(thread, record);
            }
        }
    }

    /// Gives a call to the tracker, which notifies its listener, [`ValidatedDevices`], of what the call does.
    fn process_call(&mut self, thread: u32, record: Record<'_>) {
        if !self.tracker.listener.checks_when_executed {
            self.tracker.listener.track_names(record);
        }
        if OpenPolls::is_poll(record.command()) {
            self.tracker.listener.track_poll(thread, record);
        }
        self.tracker.track_parameters(thread, record);
    }

    fn call_context(&self, thread: u32) -> CallContext {
        CallContext { thread, changes: self.tracker.change_count() }
    }

    /// Ends a recording. If its calls were skipped, it either repeats the previous recording completely, or the skipped
    /// calls are processed now.
    fn end_call_sequence(&mut self, thread: u32, record: Record<'_>) {
        let now = self.call_context(thread);
        let listener = &mut self.tracker.listener;
        let is_complete = match listener.call_sequences.compare_end(record, now) {
            SequenceEnd::Same(place) => listener.repeat_all(place),
            SequenceEnd::Different => false,
            SequenceEnd::NotCompared => true,
        };
        if !is_complete {
            self.process_skipped_calls(thread);
        }
        let now = self.call_context(thread);
        self.tracker.listener.call_sequences.finish(now);
    }

    /// Processes the calls of a recording that were skipped as repeated, because the next call is a different one.
    #[cold]
    fn process_skipped_calls(&mut self, thread: u32) {
        let now = self.call_context(thread);
        let calls = self.tracker.listener.call_sequences.stop_matching(now);
        let stack = self.tracker.listener.stack;
        let (mut rest, mut stacks) = (&calls.words[..], calls.stacks.iter());
        while let Some(record) = from_trusted(rest) {
            self.tracker.listener.stack = stacks.next().copied().unwrap_or(0);
            self.process_call(thread, record);
            rest = &rest[record.words().len()..];
        }
        self.tracker.listener.stack = stack;
    }

    /// Processes the outputs of the last call of a thread.
    pub fn process_outputs(&mut self, thread: u32, record: Record<'_>) {
        if OpenPolls::is_poll(record.command()) {
            self.tracker.listener.track_poll(thread, record);
        }
        self.tracker.track_outputs(thread, record);
    }

    /// Also reports hazards with descriptors that shaders pick out of arrays. These hazards are possible, not certain.
    pub fn report_possible(&mut self) {
        self.tracker.report_dynamic_indexing(true);
    }

    /// Switches off all caches, including those of the tracker and of the engine, as a reference for tests. Must be
    /// called before the first record.
    pub fn disable_caches(&mut self) {
        self.tracker.listener.call_sequences.is_disabled = true;
        self.tracker.disable_caches();
        self.tracker.set_reflection(Box::new(SpirvReflection::uncached()));
        self.tracker.listener.is_cache_disabled = true;
    }

    /// Number of calls that were skipped because they repeated the previous recording.
    pub fn cached_calls(&self) -> u64 {
        self.tracker.listener.call_sequences.same_calls
    }

    /// Promises that the caller reports all host writes to mapped memory ([`Validator::host_wrote`]), before the device
    /// can read them.
    pub fn expect_all_host_writes(&mut self) {
        self.tracker.expect_all_host_writes();
    }

    /// Like `expect_all_host_writes`, but only for memories of which the caller reported a write.
    pub fn expect_some_host_writes(&mut self) {
        self.tracker.expect_some_host_writes();
    }

    /// From now on, the caller reports no host writes.
    pub fn stop_host_writes(&mut self) {
        self.tracker.ignore_host_writes();
    }

    /// Reports a host write to memory, which a thread noticed before its next call.
    pub fn host_wrote(&mut self, thread: u32, written: HostWrite<'_>) {
        self.tracker.apply_host_write(thread, written);
    }

    /// Also checks whether the device may still use what the host writes.
    pub fn check_host_writes(&mut self) {
        self.tracker.listener.checks_host_writes = true;
    }

    /// Also checks what queues execute. Otherwise, only the inside of command buffers is checked.
    pub fn check_submissions(&mut self) {
        self.tracker.listener.checks_submissions = true;
    }

    /// Watches for accesses that fit these keys: the earlier accesses of hazards of another run.
    pub fn watch_first_accesses(&mut self, keys: &[FirstAccessKey]) {
        self.tracker.listener.watched.get_or_insert_default().add(keys);
    }

    /// The accesses that fit the watched keys since the last call, as text. Each recorded command counts once.
    pub fn take_first_accesses(&mut self) -> Vec<String> {
        self.tracker.listener.watched.as_mut().map_or_else(Vec::new, |it| it.take())
    }

    /// Promises that the shaders of a device record their accesses, and that the caller reports them
    /// ([`Validator::feedback`]). Hazards that only these accesses decide wait for them.
    pub fn expect_feedback(&mut self, device: ObjectId) {
        self.tracker.listener.expect_feedback(device);
    }

    /// Reports the accesses of shaders in completed command buffers. The submissions must have been reported before.
    pub fn feedback(&mut self, device: ObjectId, all: Vec<CommandBufferFeedback>) {
        self.tracker.listener.feedback(device, all);
    }

    /// Where a draw or dispatch of a device was recorded. It is given by its number among the draws and dispatches of
    /// its command buffer, from zero.
    pub fn locate_launch(
        &self,
        device: ObjectId,
        command_buffer: ObjectId,
        launch: (u32, ApiCommand),
    ) -> Option<LaunchLocation> {
        self.tracker.listener.locate_launch(device, command_buffer, launch)
    }

    /// Checks command buffers when they are executed, not while they are recorded. That halves the cost, but only
    /// answers whether there are findings ([`Validator::finish_quick_check`]). Must be called before the first record.
    pub fn check_when_executed(&mut self) {
        self.tracker.listener.checks_when_executed = true;
    }

    /// Whether a validator that checks command buffers while they are recorded may have findings. Call it after the
    /// last record.
    pub fn finish_quick_check(&mut self) -> bool {
        self.tracker.listener.finish_quick_check()
    }

    /// Undoes the last call of a thread, because the driver does not see it.
    pub fn undo_call(&mut self, thread: u32, record: Record<'_>) {
        if is_recorded(record.command()) {
            if self.tracker.listener.call_sequences.select_matching(record) {
                self.process_skipped_calls(thread);
            }
            self.tracker.listener.call_sequences.invalidate_last();
            self.tracker.cancel_command(thread, record);
        } else {
            let source = CallSource { command: record.command(), thread, call: record.call_number() };
            self.tracker.listener.undo_steps(source);
        }
    }

    /// Ends the validation, and reports submissions that are still blocked.
    pub fn finish(&mut self) {
        self.tracker.listener.finish();
    }

    /// The progress of the queues of a lost device, as far as the host knows it, line by line.
    pub fn progress(&self, device: ObjectId) -> Vec<String> {
        self.tracker.listener.progress(device)
    }

    /// Whether there are findings since the last call.
    #[inline]
    pub fn has_found(&self) -> bool {
        let ValidatedDevices { causes, needs_recheck, .. } = &self.tracker.listener;
        *needs_recheck || !causes.new.is_empty()
    }

    /// The findings since the last call, in the order in which they occurred.
    pub fn take_findings(&mut self) -> Vec<ValidatorFinding> {
        std::mem::take(&mut self.tracker.listener.causes.new)
    }

    /// One diagnostic for each cause, with the number of its occurrences so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.tracker.listener.causes.diagnostics
    }

    /// Diagnostics of causes that are in [`Validator::diagnostics`] already, about other parts of their resources.
    pub fn site_diagnostics(&self) -> &[Diagnostic] {
        &self.tracker.listener.causes.site_diagnostics
    }

    /// How many findings have less than a whole explanation.
    pub fn cut_explanations(&self) -> CutExplanations {
        self.tracker.listener.causes.cut_explanations()
    }

    /// How much of the application's work was seen and checked so far.
    pub fn checked_work(&self) -> CheckedWork {
        self.tracker.listener.checked_work()
    }

    /// Calls and features that were not understood so far, and how often.
    pub fn unsupported(&self) -> impl Iterator<Item = (Untracked, u64)> {
        let unplaced = self.tracker.listener.unplaced.iter().map(|(missing, count)| (*missing, *count));
        self.tracker.untracked().chain(unplaced)
    }
}
