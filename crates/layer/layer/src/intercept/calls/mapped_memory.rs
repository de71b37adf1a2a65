//! Mapped memory: writes of the host become records before the call that makes them visible to the device
//! (`synchronization-submission-host-writes`), and writes of the device after a call by which the host learns of them.

use lavascope_abi::{Command, DeviceMemory, HandleType};

use super::thread_state::ThreadLocalState;
use crate::intercept::handle_table::HandleTable;
use crate::memory::MappedWriteSink;
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;

impl ThreadLocalState {
    fn mapped_write_sink(&mut self, listeners: Listeners, command: Command) -> MappedWriteSink<'_> {
        let ThreadLocalState { thread, stacks, write_scratch: scratch, .. } = self;
        MappedWriteSink { listeners, thread, stacks, command, scratch }
    }

    /// Before a call that may make host writes visible to the device, or that waits for the device: records the host writes
    /// to mapped memory.
    ///
    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that obey its VUIDs and was not passed on yet.
    #[cold]
    pub(super) unsafe fn record_host_writes(
        &mut self,
        listeners: Listeners,
        handles: &HandleTable,
        command: Command,
        params: *const u8,
    ) {
        if let Some(memories) = &handles.memories
            && listeners.has_any(Listeners::READER | Listeners::INLINE)
        {
            // SAFETY: the contract of this function, which is that of `before_call`.
            unsafe { memories.before_call(command, params, &mut self.mapped_write_sink(listeners, command)) };
        }
    }

    /// After a call by which the host learned of the device's progress: records the device writes to mapped memory.
    pub(super) fn record_device_writes(&mut self, listeners: Listeners, handles: &HandleTable, command: Command) {
        if let Some(memories) = &handles.memories {
            let mut sink = self.mapped_write_sink(listeners, command);
            sink.set_after_wait(true);
            memories.record_all_results(&mut sink);
            sink.set_after_wait(false);
        }
    }
}

/// Follows allocations and mappings.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obeyed its VUIDs, and that has returned `result`
/// to us and not returned to the application.
pub(super) unsafe fn track_mappings(handles: &HandleTable, command: Command, params: *const u8, result: u64) {
    if let Some(memories) = &handles.memories {
        let id_of = |it: DeviceMemory| PROCESS_STATE.objects.id(handles.slot(HandleType::DeviceMemory, it.0)?);
        // SAFETY: the contract of this function, which is that of `after_call`.
        unsafe { memories.after_call(command, params, result, id_of) };
    }
}
