//! Makes records of what was found in mapped memory, in the stream of the thread that looks.

use std::ops::Range;

use lavascope_abi::{Command, ObjectId};
use lavascope_record::{HostBytes, HostWriteBuilder};
use lavascope_stream::StreamThread;

use crate::backtrace::StackCapture;
use crate::intercept::order::CommandOrdering;
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;
use crate::report::inline_validation::{self, InlineFindings};

/// What records of host writes to a memory have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedContents {
    Bytes,
    /// Which bytes were written, and not what they are.
    Places,
}

/// The thread that looks, and space for its records.
pub(crate) struct MappedWriteSink<'a> {
    pub(crate) listeners: Listeners,
    pub(crate) thread: &'a mut StreamThread,
    pub(crate) stacks: &'a mut StackCapture,
    /// Of the call that is about to be recorded.
    pub(crate) command: Command,
    pub(crate) scratch: &'a mut WriteScratch,
}

#[derive(Default)]
pub(crate) struct WriteScratch {
    /// Bytes of a memory that may have changed.
    pub(super) dirty: Vec<Range<u64>>,
    /// Addresses of written pages.
    pub(super) written: Vec<Range<u64>>,
    pub(super) current: Vec<u8>,
    pub(super) changed: Vec<Range<usize>>,
    /// The same without equal bytes.
    pub(super) exact: Vec<Range<usize>>,
    /// One bit for each byte of `current`: whether it changed.
    pub(super) bits: Vec<u64>,
    pub(super) writing: HostWriteBuilder,
    words: Vec<u64>,
    /// What inline validation found in host writes.
    findings: Vec<InlineFindings>,
}

impl WriteScratch {
    /// The findings in host writes since the last call.
    #[inline(always)]
    pub(crate) fn take_findings(&mut self) -> Vec<InlineFindings> {
        if self.findings.is_empty() { Vec::new() } else { std::mem::take(&mut self.findings) }
    }
}

impl MappedWriteSink<'_> {
    /// From now on, changes are found after a wait for the device, or are not.
    pub(crate) fn set_after_wait(&mut self, is_after_wait: bool) {
        self.scratch.writing.set_after_wait(is_after_wait);
    }

    /// Makes a record of what has changed behind a byte of a memory.
    pub(super) fn record_changes(&mut self, memory: ObjectId, first: u64, needs: RecordedContents) {
        let WriteScratch { current: live, changed, bits, writing, findings, .. } = &mut *self.scratch;
        writing.set_noticed_by(self.command);
        writing.begin(memory, first);
        match needs {
            RecordedContents::Bytes => {
                changed.iter().for_each(|it| writing.add_run(it.start as u32, &live[it.clone()]));
            }
            RecordedContents::Places => writing.set_bits(live.len() as u32, bits),
        }
        // After the look: what another thread learned and then wrote about comes before.
        let is_read = self.listeners.has_any(Listeners::READER);
        if is_read {
            self.thread.order_after_completed(&PROCESS_STATE.threads);
        }
        let call = self.thread.begin_beside();
        if self.listeners.has_any(Listeners::STACKS) && CommandOrdering::has_call_stack(self.command) {
            self.stacks.capture(self.thread.number(), call, self.command);
        }
        let record = writing.finish(call, self.thread.order_edges());
        if self.listeners.has_any(Listeners::INLINE) {
            findings.extend(inline_validation::validate_under_lock(self.thread.number(), record).map(|it| *it));
        }
        if is_read {
            self.thread.append(record);
            self.thread.end_record();
            self.thread.complete(call);
        }
    }

    /// Makes a record of what the call that is about to be made reads.
    pub(super) fn record_host_bytes(&mut self, bytes: HostBytes<'_>) {
        self.thread.order_after_completed(&PROCESS_STATE.threads);
        let call = self.thread.begin_beside();
        bytes.to_words(call, self.thread.order_edges(), &mut self.scratch.words);
        if self.listeners.has_any(Listeners::INLINE) {
            inline_validation::validate_under_lock(self.thread.number(), &self.scratch.words);
        }
        self.thread.append(&self.scratch.words);
        self.thread.end_record();
        self.thread.complete(call);
    }
}
