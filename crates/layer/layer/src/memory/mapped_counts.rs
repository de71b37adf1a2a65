//! How many memories stay mapped while the device works, and for which of them host writes are checked.

use std::sync::Arc;

use lavascope_abi::*;

use super::mapped_copy::WriteTarget;
use super::shadow::Shadow;
use super::write_detection::WriteDetection;
use super::{HostVisibleMemories, MappedWriteSink, WatchedMemories, WatchedMemory, lock};
use crate::report::coverage;

impl HostVisibleMemories {
    /// Work is about to be submitted: what is mapped now stays mapped meanwhile.
    pub(super) fn count_mapped(&self) {
        let new = std::mem::take(&mut lock(&self.inner).uncounted);
        for memory in new {
            let is_checked = matches!(lock(&memory.state).detection, WriteDetection::PageTracking);
            coverage::count_mapped_memory((!is_checked).then_some(self.unchecked_reason));
        }
    }

    /// A memory is not mapped any more. If nothing was submitted since it was mapped, it does not count.
    pub(super) fn uncount(&self, inner: &mut WatchedMemories, memory: &Arc<WatchedMemory>) {
        let before = inner.uncounted.len();
        inner.uncounted.retain(|it| it.id != memory.id);
        if inner.uncounted.len() < before {
            lock(&memory.state).is_counted = false;
        }
    }
}

/// Some bytes of a memory have no copy, so writes to them are not found.
pub(super) fn note_cut(shadow: &mut Shadow) {
    if !std::mem::replace(&mut shadow.is_cut, true) {
        coverage::retract_mapped_memory("copies of 1 GiB are the most that the layer makes");
    }
}

impl HostVisibleMemories {
    /// The host is about to wait for the device.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command.
    pub(super) unsafe fn notice_before_wait(
        &self,
        command: Command,
        params: *const u8,
        sink: &mut MappedWriteSink<'_>,
    ) {
        // SAFETY: by the contract of this function the parameters are those of the command.
        let is_poll = unsafe { is_poll(command, params) };
        if !is_poll {
            self.notice_writes(&mut WriteTarget::Recorded(sink));
        }
    }
}

/// Whether a wait returns at once, and so is a question.
///
/// # Safety
///
/// The parameters must be those of the command.
unsafe fn is_poll(command: Command, params: *const u8) -> bool {
    match command {
        // SAFETY: by the contract of this function the parameters are those of the command.
        Command::WaitForFences => unsafe { (*params.cast::<WaitForFencesParams>()).timeout == 0 },
        // SAFETY: by the contract of this function the parameters are those of the command.
        Command::WaitSemaphores => unsafe { (*params.cast::<WaitSemaphoresParams>()).timeout == 0 },
        _ => false,
    }
}
