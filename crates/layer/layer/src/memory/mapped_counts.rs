//! How many memories stay mapped while the device works, and for which of them host writes are checked.

use std::sync::Arc;

use lavascope_abi::*;

use super::write_detection::WriteDetection;
use super::{HostVisibleMemories, WatchedMemories, WatchedMemory, lock};
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

/// Whether a wait returns at once, and so is a question.
///
/// # Safety
///
/// The parameters must be those of the command.
pub(super) unsafe fn is_poll(command: Command, params: *const u8) -> bool {
    match command {
        // SAFETY: the contract of this function.
        Command::WaitForFences => unsafe { (*params.cast::<WaitForFencesParams>()).timeout == 0 },
        // SAFETY: the contract of this function.
        Command::WaitSemaphores => unsafe { (*params.cast::<WaitSemaphoresParams>()).timeout == 0 },
        _ => false,
    }
}
