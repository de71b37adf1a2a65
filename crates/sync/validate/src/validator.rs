//! The validator: records in, diagnostics out.

use lavascope_abi::ObjectId;
use lavascope_diag::Diagnostic;
use lavascope_record::{HostWrite, Record, RecordPhase, from_trusted};
use lavascope_state::{CallSource, SpirvReflection, Tracker, Untracked};

use crate::devices::{RecordingCall, ValidatedDevices, is_recorded, recording_call};
use crate::feedback::touched::CommandBufferFeedback;
use crate::findings::causes::{CutExplanations, ValidatorFinding};
use crate::recording::call_sequence::{CallContext, NextCall, SequenceEnd};
use crate::recording::host_polls::OpenPolls;

/// Follows an application by its records, and tells what hazards it has.
///
/// Records must come in an order that the application's threads could have made the calls in.
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
    /// The call of the next record was made from here; what the number means is the caller's. Zero is nowhere.
    pub fn set_call_stack(&mut self, stack: u32) {
        self.tracker.listener.stack = stack;
    }

    /// The next record, of either kind.
    pub fn record(&mut self, thread: u32, record: Record<'_>) {
        match record.phase() {
            RecordPhase::Enter => self.enter(thread, record),
            RecordPhase::Leave => self.leave(thread, record),
        }
    }

    /// The driver is about to see a call.
    pub fn enter(&mut self, thread: u32, record: Record<'_>) {
        let now = self.call_context(thread);
        match recording_call(record.command()) {
            RecordingCall::Other => self.process_call(thread, record),
            RecordingCall::Begins => {
                self.process_call(thread, record);
                self.tracker.listener.call_sequences.begin(record, now);
            }
            part @ (RecordingCall::Repeatable | RecordingCall::NotRepeatable) => {
                match self.tracker.listener.call_sequences.compare_next(record, now, part == RecordingCall::Repeatable)
                {
                    NextCall::Same => {}
                    NextCall::Different => {
                        self.process_skipped_calls(thread);
                        self.enter(thread, record);
                    }
                    NextCall::Untracked => self.process_call(thread, record),
                }
            }
            RecordingCall::Ends => {
                self.end_call_sequence(thread, record);
                self.process_call(thread, record);
            }
        }
    }

    fn process_call(&mut self, thread: u32, record: Record<'_>) {
        if !self.tracker.listener.checks_when_executed {
            self.tracker.listener.track_names(record);
        }
        if OpenPolls::is_poll(record.command()) {
            self.tracker.listener.track_poll(thread, record);
        }
        self.tracker.enter(thread, record);
    }

    fn call_context(&self, thread: u32) -> CallContext {
        CallContext { thread, stack: self.tracker.listener.stack, changes: self.tracker.change_count() }
    }

    /// A recording ends: all of it was looked at, or is what was looked at the last time.
    fn end_call_sequence(&mut self, thread: u32, record: Record<'_>) {
        let now = self.call_context(thread);
        let listener = &mut self.tracker.listener;
        let is_made_up = match listener.call_sequences.compare_end(record, now) {
            SequenceEnd::Same(place) => listener.repeat_all(place),
            SequenceEnd::Different => false,
            SequenceEnd::Untracked => true,
        };
        if !is_made_up {
            self.process_skipped_calls(thread);
        }
        let now = self.call_context(thread);
        self.tracker.listener.call_sequences.finish(now);
    }

    /// Looks at the calls that a command buffer was recorded with as the last time, since the next one is another.
    #[cold]
    fn process_skipped_calls(&mut self, thread: u32) {
        let now = self.call_context(thread);
        let calls = self.tracker.listener.call_sequences.stop_matching(now);
        // What was not looked at had no call stack; the next call may.
        let stack = std::mem::take(&mut self.tracker.listener.stack);
        let mut rest = &calls[..];
        while let Some(record) = from_trusted(rest) {
            self.process_call(thread, record);
            rest = &rest[record.words().len()..];
        }
        self.tracker.listener.stack = stack;
    }

    /// The driver returned from the last call of a thread.
    pub fn leave(&mut self, thread: u32, record: Record<'_>) {
        if OpenPolls::is_poll(record.command()) {
            self.tracker.listener.track_poll(thread, record);
        }
        self.tracker.leave(thread, record);
    }

    /// Looks at descriptors that shaders pick out of arrays, too: hazards with these are possible.
    pub fn report_possible(&mut self) {
        self.tracker.report_dynamic_indexing(true);
    }

    /// Switches all caches off, those of the tracker and of the engine too: to compare with. To be called before the
    /// first record.
    pub fn disable_caches(&mut self) {
        self.tracker.listener.call_sequences.is_disabled = true;
        self.tracker.disable_caches();
        self.tracker.set_reflection(Box::new(SpirvReflection::uncached()));
        self.tracker.listener.is_cache_disabled = true;
    }

    /// Calls of recordings that were not looked at, since they were what they were the last time.
    pub fn cached_calls(&self) -> u64 {
        self.tracker.listener.call_sequences.same_calls
    }

    /// All that the host writes into memory that it maps will be told ([`Validator::host_wrote`]), before the device can
    /// read it.
    pub fn expect_all_host_writes(&mut self) {
        self.tracker.expect_all_host_writes();
    }

    /// The same of some memories only: of one of which something was told, all will be.
    pub fn expect_some_host_writes(&mut self) {
        self.tracker.expect_some_host_writes();
    }

    /// Nothing more is told of what the host writes.
    pub fn stop_host_writes(&mut self) {
        self.tracker.ignore_host_writes();
    }

    /// The host wrote into memory.
    pub fn host_wrote(&mut self, written: HostWrite<'_>) {
        self.tracker.apply_host_write(written);
    }

    /// Looks at what queues execute too; else only at what is inside of each command buffer.
    pub fn check_submissions(&mut self) {
        self.tracker.listener.checks_submissions = true;
    }

    /// The shaders of a device keep what they touch, and it will be told ([`Validator::feedback`]): hazards that only the
    /// device can decide wait for that.
    pub fn expect_feedback(&mut self, device: ObjectId) {
        self.tracker.listener.expect_feedback(device);
    }

    /// What the device did with command buffers that it is done with. All that was submitted must have been told.
    pub fn feedback(&mut self, device: ObjectId, all: Vec<CommandBufferFeedback>) {
        self.tracker.listener.feedback(device, all);
    }

    /// Looks into command buffers when they are executed, and not while they are recorded: that costs half, and tells
    /// only whether there is something to be told ([`Validator::finish_quick_check`]). To be called before the first record.
    pub fn check_when_executed(&mut self) {
        self.tracker.listener.checks_when_executed = true;
    }

    /// Whether something may be told by a validator that looks into command buffers while they are recorded. To be
    /// asked after the last record.
    pub fn finish_quick_check(&mut self) -> bool {
        self.tracker.listener.finish_quick_check()
    }

    /// The driver does not see the call that a thread entered last: it is as if it had not been.
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

    /// Nothing more will come, as far as one knows: work that waits is told of.
    pub fn finish(&mut self) {
        self.tracker.listener.finish();
    }

    /// How far the queues of a device came, as far as the host knows: for one that was lost, line by line.
    pub fn progress(&self, device: ObjectId) -> Vec<String> {
        self.tracker.listener.progress(device)
    }

    /// Whether something was found since the last time.
    #[inline]
    pub fn has_found(&self) -> bool {
        let ValidatedDevices { causes, needs_recheck: is_in_doubt, .. } = &self.tracker.listener;
        *is_in_doubt || !causes.new.is_empty()
    }

    /// What was found since the last time, in the order in which it happened.
    pub fn take_findings(&mut self) -> Vec<ValidatorFinding> {
        std::mem::take(&mut self.tracker.listener.causes.new)
    }

    /// One diagnostic for each cause, with how often it was found so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.tracker.listener.causes.diagnostics
    }

    /// Diagnostics of causes that are in [`Validator::diagnostics`] already, about other parts of their resources.
    pub fn variants(&self) -> &[Diagnostic] {
        &self.tracker.listener.causes.variants
    }

    /// How many findings have less than a whole explanation.
    pub fn cut_explanations(&self) -> CutExplanations {
        self.tracker.listener.causes.cut_explanations()
    }

    /// What was not understood of the calls so far, and how often.
    pub fn unsupported(&self) -> impl Iterator<Item = (Untracked, u64)> {
        let unplaced = self.tracker.listener.unplaced.iter().map(|(missing, count)| (*missing, *count));
        self.tracker.untracked().chain(unplaced)
    }
}
