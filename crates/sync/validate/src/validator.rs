//! The validator: records in, diagnostics out.

use lavascope_abi::ObjectId;
use lavascope_diag::Diagnostic;
use lavascope_record::{RecordPhase, Record, HostWrite, from_trusted};
use lavascope_state::{Untracked, CallSource, SpirvReflection, Tracker};

use crate::causes::Finding;
use crate::devices::{Devices, Part, is_recorded, part_of};
use crate::observed::Feedback;
use crate::scripts::{End, Moment, Next};

/// Follows an application by its records, and tells what hazards it has.
///
/// Records must come in an order that the application's threads could have made the calls in.
pub struct Validator {
    tracker: Tracker<Devices>,
}

impl Default for Validator {
    fn default() -> Validator {
        let reflection = Box::new(SpirvReflection::default());
        Validator { tracker: Tracker::with_reflection(Devices::default(), reflection) }
    }
}

impl Validator {
    /// The call of the next record was made from here; what the number means is the caller's. Zero is nowhere.
    pub fn at_stack(&mut self, stack: u32) {
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
        let now = self.moment(thread);
        match part_of(record.command()) {
            Part::Other => self.look_at(thread, record),
            Part::Begins => {
                self.look_at(thread, record);
                self.tracker.listener.scripts.begin(record, now);
            }
            part @ (Part::Plain | Part::Special) => {
                match self.tracker.listener.scripts.next(record, now, part == Part::Plain) {
                    Next::Same => {}
                    Next::Other => {
                        self.make_up(thread);
                        self.enter(thread, record);
                    }
                    Next::New => self.look_at(thread, record),
                }
            }
            Part::Ends => {
                self.end_script(thread, record);
                self.look_at(thread, record);
            }
        }
    }

    fn look_at(&mut self, thread: u32, record: Record<'_>) {
        if !self.tracker.listener.checks_when_executed {
            self.tracker.listener.follow(record);
        }
        self.tracker.enter(thread, record);
    }

    fn moment(&self, thread: u32) -> Moment {
        Moment { thread, stack: self.tracker.listener.stack, changes: self.tracker.change_count() }
    }

    /// A recording ends: all of it was looked at, or is what was looked at the last time.
    fn end_script(&mut self, thread: u32, record: Record<'_>) {
        let now = self.moment(thread);
        let listener = &mut self.tracker.listener;
        let is_made_up = match listener.scripts.end(record, now) {
            End::Same(place) => listener.repeat_all(place),
            End::Other => false,
            End::New => true,
        };
        if !is_made_up {
            self.make_up(thread);
        }
        let now = self.moment(thread);
        self.tracker.listener.scripts.finish(now);
    }

    /// Looks at the calls that a command buffer was recorded with as the last time, since the next one is another.
    #[cold]
    fn make_up(&mut self, thread: u32) {
        let now = self.moment(thread);
        let calls = self.tracker.listener.scripts.turn_away(now);
        // What was not looked at had no call stack; the next call may.
        let stack = std::mem::take(&mut self.tracker.listener.stack);
        let mut rest = &calls[..];
        while let Some(record) = from_trusted(rest) {
            self.look_at(thread, record);
            rest = &rest[record.words().len()..];
        }
        self.tracker.listener.stack = stack;
    }

    /// The driver returned from the last call of a thread.
    pub fn leave(&mut self, thread: u32, record: Record<'_>) {
        self.tracker.leave(thread, record);
    }

    /// Looks at descriptors that shaders pick out of arrays, too: hazards with these are possible.
    pub fn want_possible(&mut self) {
        self.tracker.report_dynamic_indexing(true);
    }

    /// Looks at every call of a recording, also where all of them are what they were the last time: to compare with.
    pub fn compare_no_calls(&mut self) {
        self.tracker.listener.scripts.is_off = true;
    }

    /// Calls of recordings that were not looked at, since they were what they were the last time.
    pub fn same_calls(&self) -> u64 {
        self.tracker.listener.scripts.same
    }

    /// All that the host writes into memory that it maps will be told ([`Validator::host_wrote`]), before the device can
    /// read it.
    pub fn hear_host_writes(&mut self) {
        self.tracker.expect_all_host_writes();
    }

    /// The same of some memories only: of one of which something was told, all will be.
    pub fn hear_some_host_writes(&mut self) {
        self.tracker.expect_some_host_writes();
    }

    /// Nothing more is told of what the host writes.
    pub fn hear_no_host_writes(&mut self) {
        self.tracker.ignore_host_writes();
    }

    /// The host wrote into memory.
    pub fn host_wrote(&mut self, written: HostWrite<'_>) {
        self.tracker.apply_host_write(written);
    }

    /// Looks at what queues execute too; else only at what is inside of each command buffer.
    pub fn want_submissions(&mut self) {
        self.tracker.listener.wants_submissions = true;
    }

    /// The shaders of a device keep what they touch, and it will be told ([`Validator::feedback`]): hazards that only the
    /// device can decide wait for that.
    pub fn expect_feedback(&mut self, device: ObjectId) {
        self.tracker.listener.expect_feedback(device);
    }

    /// What the device did with command buffers that it is done with. All that was submitted must have been told.
    pub fn feedback(&mut self, device: ObjectId, all: Vec<Feedback>) {
        self.tracker.listener.feedback(device, all);
    }

    /// Looks into command buffers when they are executed, and not while they are recorded: that costs half, and tells
    /// only whether there is something to be told ([`Validator::is_in_doubt`]). To be called before the first record.
    pub fn check_when_executed(&mut self) {
        self.tracker.listener.checks_when_executed = true;
    }

    /// Whether something may be told by a validator that looks into command buffers while they are recorded. To be
    /// asked after the last record.
    pub fn is_in_doubt(&mut self) -> bool {
        self.tracker.listener.is_in_doubt()
    }

    /// The driver does not see the call that a thread entered last: it is as if it had not been.
    pub fn take_back(&mut self, thread: u32, record: Record<'_>) {
        if is_recorded(record.command()) {
            if self.tracker.listener.scripts.is_following(record) {
                self.make_up(thread);
            }
            self.tracker.listener.scripts.spoil();
            self.tracker.cancel_command(thread, record);
        } else {
            let source = CallSource { command: record.command(), thread, call: record.call_number() };
            self.tracker.listener.take_back_steps(source);
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
        let Devices { causes, is_in_doubt, .. } = &self.tracker.listener;
        *is_in_doubt || !causes.new.is_empty()
    }

    /// What was found since the last time, in the order in which it happened.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.tracker.listener.causes.new)
    }

    /// One diagnostic for each cause, with how often it was found so far.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.tracker.listener.causes.diagnostics
    }

    /// Hazards that were found after there were too many causes to tell them apart.
    pub fn beyond(&self) -> u64 {
        self.tracker.listener.causes.beyond
    }

    /// What was not understood of the calls so far, and how often.
    pub fn missing(&self) -> impl Iterator<Item = (Untracked, u64)> {
        let unplaced = self.tracker.listener.unplaced.iter().map(|(missing, count)| (*missing, *count));
        self.tracker.untracked().chain(unplaced)
    }
}
