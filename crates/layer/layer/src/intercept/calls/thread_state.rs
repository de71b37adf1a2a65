//! The state of each thread of the application: its stream, and the buffers in which it makes records.

use std::cell::Cell;

use lavascope_marshal::RecordBuffer;
use lavascope_stream::StreamThread;

use crate::backtrace::StackCapture;
use crate::intercept::object_deps::{LastCommandBuffer, ObjectDeps};
use crate::memory::WriteScratch;
use crate::process::process_state::PROCESS_STATE;
use crate::process::thread_exit;

/// A thread of the application, and the buffers in which it makes records.
pub(crate) struct ThreadLocalState {
    pub(super) thread: StreamThread,
    /// The record that is being made, if it is not made in the stream itself.
    pub(super) record: RecordBuffer,
    /// The outputs of the call that returned last, gathered for packing.
    pub(super) outputs: Vec<u64>,
    /// The objects of the call that is being packed.
    pub(super) deps: ObjectDeps,
    pub(super) last_command_buffer: Option<LastCommandBuffer>,
    pub(super) stacks: StackCapture,
    pub(super) write_scratch: WriteScratch,
}

thread_local! {
    /// The state of the calling thread, or null before its first call.
    static THREAD_STATE: Cell<*mut ThreadLocalState> = const { Cell::new(std::ptr::null_mut()) };
}

#[inline(always)]
pub(super) fn current_or_null() -> *mut ThreadLocalState {
    THREAD_STATE.get()
}

/// The state of the calling thread. Only this thread has it, so a call may borrow it until it leaves the layer.
#[inline(always)]
pub(super) fn current() -> *mut ThreadLocalState {
    let local = THREAD_STATE.get();
    if local.is_null() { register() } else { local }
}

#[cold]
fn register() -> *mut ThreadLocalState {
    let thread = PROCESS_STATE.threads.register(&PROCESS_STATE.stream_control);
    let local = ThreadLocalState {
        thread,
        record: RecordBuffer::with_capacity(512),
        outputs: Vec::new(),
        deps: ObjectDeps::default(),
        last_command_buffer: None,
        stacks: StackCapture::default(),
        write_scratch: WriteScratch::default(),
    };
    let local = Box::into_raw(Box::new(local));
    THREAD_STATE.set(local);
    thread_exit::on_thread_exit(unregister);
    local
}

/// Called when the thread ends. If a later destructor calls Vulkan, the thread is registered again.
fn unregister() {
    let local = THREAD_STATE.replace(std::ptr::null_mut());
    if !local.is_null() {
        // SAFETY: made by `Box::into_raw` in `register`, on this thread, and taken out of the thread-local, so that
        // this is done once. The thread is in no call any more: references to it end with the call that made them.
        PROCESS_STATE.threads.retire(unsafe { Box::from_raw(local) }.thread);
    }
}
