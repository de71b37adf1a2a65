//! Step 1 of a call: from the handle that it is called on to the device or instance, and to the calling thread.

use std::ptr::NonNull;

use lavascope_abi::HandleType;

use super::thread_state::{self, ThreadLocalState};
use crate::intercept::object_deps::LastCommandBuffer;
use crate::loader::device::DeviceData;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::InstanceData;
use crate::loader::proc_addr::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::process::process_state::PROCESS_STATE;

/// The device or instance that a command is called on, and the thread that calls it.
///
/// Only functions that are inlined may take a reference to one: then it stays in registers, which saves a tenth of the
/// instructions of a recorded command.
pub(crate) struct CallTarget<'a, T> {
    pub(crate) owner: &'a T,
    pub(crate) thread_state: *mut ThreadLocalState,
    /// Whether the call records into the `last_command_buffer` of the thread.
    pub(super) is_last_command_buffer: bool,
}

impl<T> CallTarget<'_, T> {
    /// The command buffer that the call records into, if the thread knows it.
    #[inline(always)]
    pub(super) fn command_buffer<'l>(&self, last: &'l Option<LastCommandBuffer>) -> Option<&'l LastCommandBuffer> {
        if self.is_last_command_buffer { last.as_ref() } else { None }
    }
}

/// # Safety
///
/// `handle` must be an instance or physical device that is alive, and stays so while the result is used.
pub(crate) unsafe fn instance_of<'a>(handle: u64) -> Option<CallTarget<'a, InstanceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_INSTANCES.get(dispatch_key(handle)) }?;
    Some(CallTarget { owner, thread_state: thread_state::current(), is_last_command_buffer: false })
}

/// # Safety
///
/// `handle` must be a device or queue that is alive, and stays so while the result is used.
pub(crate) unsafe fn device_of<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?;
    Some(CallTarget { owner, thread_state: thread_state::current(), is_last_command_buffer: false })
}

/// The target of a command that is recorded into a command buffer. A thread mostly records into the same command buffer
/// as before, and then no lookup is needed.
///
/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(always)]
pub(crate) unsafe fn device_of_command_buffer<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    let local = thread_state::current_or_null();
    // SAFETY: null, or the thread's own, which `unregister` alone frees, on this thread. No reference to it is kept
    // past a call out of the layer.
    if let Some(ThreadLocalState { last_command_buffer: Some(command_buffer), .. }) = unsafe { local.as_ref() }
        && command_buffer.handle == handle
        && command_buffer.generation == PROCESS_STATE.generation()
    {
        // SAFETY: since the generation did not move, the command buffer is the one that was looked up then, and its
        // device is alive by the contract of this function.
        let owner = unsafe { command_buffer.owner.as_ref() };
        return Some(CallTarget { owner, thread_state: local, is_last_command_buffer: true });
    }
    // SAFETY: `handle` is alive while the result is used, as the contract of `look_up_recorder` asks, too.
    unsafe { look_up_recorder(handle) }
}

/// Looks up a command buffer, and stores it, so that the next command of this thread needs no lookup.
///
/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(never)]
unsafe fn look_up_recorder<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    // Read before the look-up: if a command buffer is freed in between, the entry is invalid at once.
    let generation = PROCESS_STATE.generation();
    // SAFETY: the contract of this function; a command buffer shares the key of its device.
    let target = unsafe { device_of(handle) }?;
    if !PROCESS_STATE.is_cache_disabled()
        && let Some(slot) = target.owner.handles().slot(HandleType::CommandBuffer, handle)
        && let Some(id) = PROCESS_STATE.objects.id(slot)
    {
        let sync_domain = PROCESS_STATE.objects.sync_domain(slot);
        let owner = NonNull::from(target.owner);
        let readers = PROCESS_STATE.objects.readers(slot);
        let found = LastCommandBuffer { handle, generation, owner, id, sync_domain, readers };
        // SAFETY: made by `register` for this thread, which alone has it, and no other reference to it is in use here.
        unsafe { (*target.thread_state).last_command_buffer = Some(found) };
    }
    Some(target)
}
