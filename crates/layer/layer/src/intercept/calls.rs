//! What happens around an intercepted call: its record is made and given to whoever listens.
//!
//! Before the driver sees a call its parameters are packed and ordered after the calls of other threads that it
//! depends on; after it returned its outputs are packed, and new objects get their ids. No lock is held in between.

use std::cell::Cell;
use std::ptr::NonNull;

use lavascope_abi::desc::Layout;
use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer, fast_pack, outputs_image};
use lavascope_record::{Call, OrderEdge, check};
use lavascope_stream::{ObjectParent, StreamThread};

use crate::backtrace::StackCapture;
use crate::intercept::deferred_operations::{DeferredStatus, deferred_status};
use crate::intercept::handle_table::HandleTable;
use crate::intercept::handles::{CallHandle, direct_handles, handle_type, nested_handles};
use crate::intercept::object_deps::{LastCommandBuffer, ObjectDeps, ObjectIdResolver};
use crate::intercept::object_parent;
use crate::intercept::order::{CommandOrdering, PushBarrier};
use crate::intercept::shim::ReturnBits;
use crate::intercept::thread_safety;
use crate::loader::device::DeviceData;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::InstanceData;
use crate::loader::proc_addr::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::memory::{MappedWriteSink, WriteScratch};
use crate::process::catch_panic::{catch_panic, is_disabled, run_if_enabled};
use crate::process::process_state::{PROCESS_STATE, ProcessState};
use crate::process::thread_exit;
use crate::report::inline_validation;
use crate::report::inline_validation::{CallPhase, InlineFindings};
use crate::report::messages::Delivery;

/// A thread of the application, and the space in which it makes records.
pub(crate) struct ThreadLocalState {
    thread: StreamThread,
    /// One record at a time.
    stream: RecordBuffer,
    outputs: Vec<u64>,
    deps: ObjectDeps,
    last_command_buffer: Option<LastCommandBuffer>,
    stacks: StackCapture,
    /// For records of what was written into memory.
    write_scratch: WriteScratch,
}

/// What a command is called on, and the thread that calls it.
pub(crate) struct CallTarget<'a, T> {
    pub(crate) owner: &'a T,
    pub(crate) thread_state: *mut ThreadLocalState,
    /// Whether it is a command buffer that the thread remembers.
    is_recording: bool,
}

/// # Safety
///
/// `handle` must be an instance or physical device that is alive, and stays so while the result is used.
pub(crate) unsafe fn instance_of<'a>(handle: u64) -> Option<CallTarget<'a, InstanceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_INSTANCES.get(dispatch_key(handle)) }?;
    Some(CallTarget { owner, thread_state: thread_state(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a device or queue that is alive, and stays so while the result is used.
pub(crate) unsafe fn device_of<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?;
    Some(CallTarget { owner, thread_state: thread_state(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(always)]
pub(crate) unsafe fn recorder_of<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    let local = THREAD_STATE.get();
    // SAFETY: null, or the thread's own, which `retire` alone frees, on this thread. No reference to it is kept past a
    // call out of the layer.
    if let Some(ThreadLocalState { last_command_buffer: Some(command_buffer), .. }) = unsafe { local.as_ref() }
        && command_buffer.handle == handle
        && command_buffer.generation == PROCESS_STATE.generation()
    {
        // SAFETY: since the generation did not move, the command buffer is the one that was looked up then, and its
        // device is alive by the contract of this function.
        return Some(CallTarget {
            owner: unsafe { command_buffer.owner.as_ref() },
            thread_state: local,
            is_recording: true,
        });
    }
    // SAFETY: `handle` is alive while the result is used, as the contract of `look_up_recorder` asks, too.
    unsafe { look_up_recorder(handle) }
}

/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(never)]
unsafe fn look_up_recorder<'a>(handle: u64) -> Option<CallTarget<'a, DeviceData>> {
    // Before the look-up, so that an end in between is noticed.
    let generation = PROCESS_STATE.generation();
    // SAFETY: the contract of this function; a command buffer shares the key of its device.
    let called = unsafe { device_of(handle) }?;
    if let Some(slot) = called.owner.handles().slot(HandleType::CommandBuffer, handle)
        && let Some(id) = PROCESS_STATE.objects.id(slot)
    {
        let keeper = PROCESS_STATE.objects.sync_domain(slot);
        let owner = NonNull::from(called.owner);
        // SAFETY: made by `local` for this thread, which alone has it, and no other reference to it is in use here.
        unsafe {
            (*called.thread_state).last_command_buffer =
                Some(LastCommandBuffer { handle, generation, owner, id, sync_domain: keeper })
        };
    }
    Some(called)
}

/// A call between its two halves.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall {
    /// Null if nobody listens.
    thread_state: *mut ThreadLocalState,
    call: u64,
    /// Who got the first half, and gets the second: half a call in a stream would hold up the others. One word with
    /// what else there is to say, since the processor waits where a word is read that was written in pieces.
    flags: u64,
}

impl PendingCall {
    const NONE: PendingCall = PendingCall { thread_state: std::ptr::null_mut(), call: 0, flags: 0 };
    /// The application wants that the driver does not see it.
    const SKIPPED_BY_CALLBACK: u64 = 1 << 8;

    fn new(local: *mut ThreadLocalState, call: u64, listeners: u8) -> PendingCall {
        PendingCall { thread_state: local, call, flags: u64::from(listeners) }
    }

    #[inline(always)]
    pub(crate) fn is_skipped_by_callback(self) -> bool {
        self.flags & PendingCall::SKIPPED_BY_CALLBACK != 0
    }

    #[inline(always)]
    fn listeners(self) -> u8 {
        self.flags as u8
    }

    /// Tells the application what its call led to before the driver sees it.
    #[inline(always)]
    fn send_before_driver(self, found: Option<Box<InlineFindings>>, names: &HandleTable) -> PendingCall {
        match found {
            None => self,
            Some(found) => self.send_findings_before_driver(&found, names),
        }
    }

    #[cold]
    fn send_findings_before_driver(self, found: &InlineFindings, names: &HandleTable) -> PendingCall {
        let tell = || found.send(names, CallPhase::BeforeDriver);
        match run_if_enabled("messages", tell, || Delivery::NoMessenger) {
            Delivery::SkipCall => PendingCall {
                flags: self.flags & !u64::from(ProcessState::INLINE) | PendingCall::SKIPPED_BY_CALLBACK,
                ..self
            },
            _ => self,
        }
    }
}

thread_local! {
    /// The calling thread's own, or null before its first call.
    static THREAD_STATE: Cell<*mut ThreadLocalState> = const { Cell::new(std::ptr::null_mut()) };
}

#[inline(always)]
fn thread_state() -> *mut ThreadLocalState {
    let local = THREAD_STATE.get();
    if local.is_null() { register_thread() } else { local }
}

#[cold]
fn register_thread() -> *mut ThreadLocalState {
    let thread = PROCESS_STATE.threads.register(&PROCESS_STATE.wake);
    let local = ThreadLocalState {
        thread,
        stream: RecordBuffer::with_capacity(512),
        outputs: Vec::new(),
        deps: ObjectDeps::default(),
        last_command_buffer: None,
        stacks: StackCapture::default(),
        write_scratch: WriteScratch::default(),
    };
    let local = Box::into_raw(Box::new(local));
    THREAD_STATE.set(local);
    thread_exit::on_thread_exit(unregister_thread);
    local
}

/// The thread ends. It may still make calls in destructors that come later, and is then enlisted again.
fn unregister_thread() {
    let local = THREAD_STATE.replace(std::ptr::null_mut());
    if !local.is_null() {
        // SAFETY: made by `Box::into_raw` in `register_thread`, on this thread, and taken out of the thread-local, so that this
        // is done once. The thread is in no call any more: references to it end with the call that made them.
        PROCESS_STATE.threads.retire(unsafe { Box::from_raw(local) }.thread);
    }
}

/// A thread's stream as a place to store records in.
pub(crate) struct StreamSpace<'a>(&'a mut StreamThread);

// SAFETY: `StreamThread::claim` gives room for so many words behind what is committed, and the thread is borrowed.
unsafe impl fast_pack::RecordSpace for StreamSpace<'_> {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.0.claim(words)
    }

    #[inline(always)]
    unsafe fn commit(&mut self, words: usize) -> &[u64] {
        // Claiming again gives the same words, since nothing was committed.
        let first = self.0.claim(words);
        // SAFETY: the contract of `WriteScratch::commit`: these are the words that were claimed last, and all of them are
        // written.
        unsafe { std::slice::from_raw_parts(first, words) }
    }
}

/// A call is about to be passed on. Straight code packs its parameters, unless there is something unusual in them:
/// into the stream where the record shall stay, or into a space apart. It gives the words of the record.
///
/// # Safety
///
/// `params` must be the parameters of a call of `command` that obey its VUIDs, on this thread, and the call must not
/// have been passed on yet. `called` must be of this thread and of the device that the command is called on.
#[inline(always)]
pub(crate) unsafe fn enter<T: Structure>(
    called: &CallTarget<'_, DeviceData>,
    command: Command,
    order: CommandOrdering,
    params: &T,
    in_place: impl FnOnce(&mut StreamSpace<'_>, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    apart: impl FnOnce(&mut RecordBuffer, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
) -> PendingCall {
    let listeners = PROCESS_STATE.listeners(called.owner.listeners);
    if listeners == 0 {
        return PendingCall::NONE;
    }
    let work = || {
        // SAFETY: made by `local` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *called.thread_state };
        let names = called.owner.handles();
        if order.has_local_barrier {
            // SAFETY: the contract of this function, which is that of `record_mapped_writes`.
            unsafe { local.record_mapped_writes(listeners, names, command, std::ptr::from_ref(params).cast()) };
        }
        let call = local.begin_record(listeners, order);
        let (thread, is_ordered) = (local.thread.number(), listeners & ProcessState::READS != 0);
        let look = ObjectIdResolver {
            names,
            thread,
            deps: &local.deps,
            is_ordered,
            last_command_buffer: local.last_command_buffer.as_ref().filter(|_| called.is_recording),
        };
        if listeners == ProcessState::READS {
            let words = in_place(&mut StreamSpace(&mut local.thread), &look, call, params);
            if let (Some(words), true) = (words, local.depends_on_own_thread_only(called.is_recording)) {
                // SAFETY: `in_place` gives the words that it claimed last and has written, and nothing was claimed
                // since.
                unsafe { local.thread.commit(words) };
                local.mark_objects_used(call, called.is_recording);
                return (PendingCall::new(called.thread_state, call, listeners), None);
            }
            // It has touches, or the walker must make it: once more, apart. What was noted is noted again.
            local.deps.clear();
        }
        let look = ObjectIdResolver {
            names,
            thread,
            deps: &local.deps,
            is_ordered,
            last_command_buffer: local.last_command_buffer.as_ref().filter(|_| called.is_recording),
        };
        if apart(&mut local.stream, &look, call, params).is_none() {
            local.stream.clear();
            // SAFETY: the contract of this function, which is that of `pack_by_tables`.
            unsafe { pack_by_tables(&mut local.stream, &look, command, std::ptr::from_ref(params).cast(), call) };
        }
        if is_ordered {
            local.add_command_buffer_dep(called.is_recording);
        }
        local.finish_enter(listeners, call, command, order);
        (PendingCall::new(called.thread_state, call, listeners), local.validate_inline(listeners))
    };
    let (entered, found) = catch_panic(command, work, || (PendingCall::NONE, None));
    entered.send_before_driver(found, called.owner.handles())
}

/// A call is about to be passed on. The tables tell how it is packed.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs, on this thread, and the call must
/// not have been passed on yet.
#[inline(never)]
pub(crate) unsafe fn enter_by_tables(
    names: &HandleTable,
    wanted: u8,
    command: Command,
    order: CommandOrdering,
    params: *const u8,
) -> PendingCall {
    let listeners = PROCESS_STATE.listeners(wanted);
    if listeners == 0 {
        return PendingCall::NONE;
    }
    let work = || {
        let place = thread_state();
        // SAFETY: made by `local` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *place };
        if order.has_local_barrier {
            // SAFETY: the contract of this function, which is that of `record_mapped_writes`.
            unsafe { local.record_mapped_writes(listeners, names, command, params) };
        }
        let call = local.begin_record(listeners, order);
        let (thread, is_ordered) = (local.thread.number(), listeners & ProcessState::READS != 0);
        let look = ObjectIdResolver { names, thread, deps: &local.deps, is_ordered, last_command_buffer: None };
        // SAFETY: the contract of this function, which is that of `pack_by_tables`.
        unsafe { pack_by_tables(&mut local.stream, &look, command, params, call) };
        local.finish_enter(listeners, call, command, order);
        (PendingCall::new(place, call, listeners), local.validate_inline(listeners))
    };
    let (entered, found) = catch_panic(command, work, || (PendingCall::NONE, None));
    let entered = entered.send_before_driver(found, names);
    if order.has_local_barrier && !entered.thread_state.is_null() && !entered.is_skipped_by_callback() {
        // Before the driver sees it: it may give the same handle to another thread at once.
        // SAFETY: the contract of this function, which is that of `forget`.
        catch_panic(command, || unsafe { remove_destroyed_objects(names, command, params) }, || ());
    }
    entered
}

/// A call that says nothing returned.
///
/// # Safety
///
/// `entered` must be what `enter` or `enter_by_tables` gave for this call, on this thread.
#[inline(always)]
pub(crate) unsafe fn leave_without_outputs(entered: PendingCall, order: CommandOrdering) {
    // Who only prints needs no order.
    if entered.listeners() & ProcessState::READS == 0 {
        return;
    }
    // SAFETY: not null, since somebody listens. It was made by `local` for this thread, on which the call returns, and
    // no reference to it is kept across the call.
    let local = unsafe { &*entered.thread_state };
    local.thread.complete(entered.call);
    if order.push_barrier != PushBarrier::Never {
        PROCESS_STATE.threads.push_barrier(&local.thread);
    }
}

/// A call returned, with a result and outputs.
///
/// # Safety
///
/// `entered` must be what `enter` or `enter_by_tables` gave for this call, on this thread, and `params` must point to the
/// parameters of that call, which must have returned `result` to us and not returned to the application.
#[inline(never)]
pub(crate) unsafe fn leave(
    entered: PendingCall,
    names: &HandleTable,
    command: Command,
    order: CommandOrdering,
    params: *const u8,
    result: u64,
) {
    if entered.thread_state.is_null() || is_disabled() {
        return;
    }
    // SAFETY: made by `local` for this thread, on which the call returns, and no reference to it is kept across the
    // call; by the contract of this function the parameters are those of the call, which has returned.
    let work = || unsafe { (*entered.thread_state).leave(names, command, order, params, result, entered) };
    if let Some(found) = catch_panic(command, work, || None) {
        run_if_enabled("messages", || _ = found.send(names, CallPhase::AfterDriver), || ());
    }
}

/// Passes a call on, with what happens around it. For the commands that are intercepted by hand.
///
/// # Safety
///
/// `params` must be the parameters of a call of `command` that obey its VUIDs and stay until this returns, on this
/// thread. `next` must pass that call on, and give its result.
pub(crate) unsafe fn forward_recorded<T: Structure, R: ReturnBits>(
    names: &HandleTable,
    wanted: u8,
    command: Command,
    params: &T,
    next: impl FnOnce() -> R,
) -> R {
    let (order, params) = (CommandOrdering::of(command), std::ptr::from_ref(params).cast());
    // SAFETY: the contract of this function: the call is passed on by `next`, below.
    let entered = unsafe { enter_by_tables(names, wanted, command, order, params) };
    let result = next();
    if command.desc().outputs.is_some() {
        // SAFETY: `entered` is of this call, on this thread. By the contract of this function `result` is what the call
        // returned, and the parameters are still there.
        unsafe { leave(entered, names, command, order, params, result.bits()) };
    } else {
        // SAFETY: `entered` is of this call, on this thread.
        unsafe { leave_without_outputs(entered, order) };
    }
    result
}

impl ThreadLocalState {
    /// Begins a call and its record.
    #[inline(always)]
    fn begin_record(&mut self, listeners: u8, order: CommandOrdering) -> u64 {
        if listeners & ProcessState::READS != 0 && order.has_local_barrier | self.thread.take_barrier_request() {
            self.thread.order_after_completed(&PROCESS_STATE.threads);
        }
        self.stream.clear();
        self.thread.begin()
    }

    /// Before a call that may let the device read: what the host wrote comes first.
    ///
    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that obey its VUIDs and was not passed on yet.
    #[cold]
    unsafe fn record_mapped_writes(&mut self, listeners: u8, names: &HandleTable, command: Command, params: *const u8) {
        if let Some(memories) = &names.memories
            && listeners & (ProcessState::READS | ProcessState::INLINE) != 0
        {
            let mut teller = MappedWriteSink { listeners, thread: &mut self.thread, scratch: &mut self.write_scratch };
            // SAFETY: the contract of this function, which is that of `before`.
            unsafe { memories.before_call(command, params, &mut teller) };
        }
    }

    /// The record of the parameters is made: it is given away, and then the objects are touched, so that whoever
    /// sees a touch can see the record too.
    #[inline(always)]
    fn finish_enter(&mut self, listeners: u8, call: u64, command: Command, order: CommandOrdering) {
        if listeners & ProcessState::STACKS != 0 {
            // Before anybody may read the record.
            self.stacks.capture(self.thread.number(), call);
        }
        if listeners & ProcessState::READS == 0 {
            // Nothing was noted: nobody may be told to wait for a record that is in no stream.
            return self.publish_record(listeners);
        }
        self.order_after_deps();
        self.publish_record(listeners);
        let own = self.thread.edge_to(call);
        if order.is_shared {
            return self.deps.clear();
        }
        self.deps.mark_all_used(own);
        for (object, last) in self.deps.last_used_elsewhere.get_mut().drain(..) {
            thread_safety::check_concurrent_use(object, OrderEdge::from_word(last), own, command);
        }
    }

    /// The command buffer that the call records into, if it is one.
    #[inline(always)]
    fn current_command_buffer(&self, is_recording: bool) -> Option<&LastCommandBuffer> {
        if is_recording { self.last_command_buffer.as_ref() } else { None }
    }

    /// Whether the record being made comes after nothing on other threads that it does not come after already.
    #[inline(always)]
    fn depends_on_own_thread_only(&mut self, is_recording: bool) -> bool {
        let last = self.current_command_buffer(is_recording).map_or(0, |it| it.sync_domain.last_edge());
        let is_own = last == 0 || OrderEdge::from_word(last).thread == self.thread.number();
        is_own && self.deps.order_edges.get_mut().is_empty() && self.thread.order_edges().is_empty()
    }

    /// The command buffer of a straight command is not noted while packing: it is always there, and always the call's
    /// own.
    #[inline(always)]
    fn mark_objects_used(&mut self, call: u64, is_recording: bool) {
        let by = self.thread.edge_to(call);
        if let Some(command_buffer) = self.current_command_buffer(is_recording) {
            command_buffer.sync_domain.set_last_edge(by);
        }
        self.deps.mark_all_used(by);
    }

    /// The same, where the record has touches or goes elsewhere.
    fn add_command_buffer_dep(&mut self, is_recording: bool) {
        if let Some((id, keeper)) = self.current_command_buffer(is_recording).map(|it| (it.id, it.sync_domain)) {
            let last = keeper.last_edge();
            self.deps.order_edges.get_mut().push(last);
            if last != 0 && OrderEdge::from_word(last).thread != self.thread.number() {
                self.deps.last_used_elsewhere.get_mut().push((id, last));
            }
            self.deps.add_exclusive(keeper);
        }
    }

    #[inline(always)]
    fn order_after_deps(&mut self) {
        let touches = self.deps.order_edges.get_mut();
        if !touches.is_empty() {
            touches.drain(..).for_each(|it| self.thread.order_after(it));
        }
    }

    /// Gives the record that was just made to whoever listens.
    #[inline(always)]
    fn publish_record(&mut self, listeners: u8) {
        let record = self.stream.add_order_edges(self.thread.order_edges());
        if listeners & ProcessState::READS != 0 {
            self.thread.append(record);
        }
        if listeners & ProcessState::PRINTS != 0 {
            PROCESS_STATE.print(self.thread.number(), record);
        }
        self.thread.end_record();
    }

    /// Has the record that was just made validated, where that is wanted. Gives what the application must be told.
    #[inline(always)]
    fn validate_inline(&self, listeners: u8) -> Option<Box<InlineFindings>> {
        if listeners & ProcessState::INLINE == 0 {
            return None;
        }
        inline_validation::validate_record(self.thread.number(), self.stream.words())
    }

    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that obeyed its VUIDs, and that has returned
    /// `result` to us and not returned to the application.
    unsafe fn leave(
        &mut self,
        names: &HandleTable,
        command: Command,
        order: CommandOrdering,
        params: *const u8,
        result: u64,
        entered: PendingCall,
    ) -> Option<Box<InlineFindings>> {
        let (desc, call) = (command.desc(), entered.call);
        let mut found = None;
        let is_read = entered.listeners() & ProcessState::READS != 0;
        let touch = is_read.then(|| self.thread.edge_to(call));
        // SAFETY: the contract of this function: the parameters of a call of this command that returned `result`.
        if unsafe { outputs_image(desc, params, result, &mut self.outputs) }
            && let Some(outputs) = desc.outputs
        {
            // SAFETY: the contract of this function, and `self.outputs` was just filled from the call.
            unsafe { self.add_returned_objects(names, command, params, outputs.layout, touch) };
            self.stream.clear();
            // What a call returns is ordered by the call itself.
            let (thread, is_ordered) = (self.thread.number(), false);
            let look = ObjectIdResolver { names, thread, deps: &self.deps, is_ordered, last_command_buffer: None };
            // SAFETY: `outputs_image` gathered the outputs from the parameters of a call that obeys its VUIDs, and left
            // null what it did not write. What they lead to stays until the call returns to the application.
            unsafe { Packer::new(&look, names).leave(&mut self.stream, command, self.outputs.as_ptr().cast(), call) };
            self.publish_record(entered.listeners());
            found = self.validate_inline(entered.listeners());
        }
        // SAFETY: the contract of this function, which is that of `deferred_status`.
        match unsafe { deferred_status(command, params, result) } {
            DeferredStatus::Unrelated => {}
            DeferredStatus::Begun => {
                // SAFETY: `deferred_status` gives this for `vkCreateRayTracingPipelinesKHR` alone, so that these are its
                // parameters.
                let params = unsafe { &*params.cast() };
                // SAFETY: `deferred_status` gives this where the call returned `VK_OPERATION_DEFERRED_KHR`.
                unsafe { names.deferred.begin(params) };
            }
            DeferredStatus::Complete(operation) => add_deferred_pipelines(names, operation, touch),
        }
        if let Some(memories) = &names.memories {
            let id_of = |it: DeviceMemory| PROCESS_STATE.objects.id(names.slot(HandleType::DeviceMemory, it.0)?);
            // SAFETY: the contract of this function, which is that of `after`.
            unsafe { memories.after_call(command, params, result, id_of) };
        }
        if !is_read {
            return found;
        }
        self.thread.complete(call);
        // SAFETY: it is asked for `vkGetSemaphoreCounterValue` alone, where that succeeded; by the contract of this
        // function these are its parameters.
        if order.push_barrier.is_due(result, || unsafe { advance_semaphore_counter(names, params) }) {
            PROCESS_STATE.threads.push_barrier(&self.thread);
            if let Some(memories) = &names.memories {
                memories.record_all_results(&mut MappedWriteSink {
                    listeners: entered.listeners(),
                    thread: &mut self.thread,
                    scratch: &mut self.write_scratch,
                });
            }
        }
        found
    }

    /// Names the objects that a call gave out, and keeps what it says about them.
    ///
    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that has returned to us and not to the application,
    /// and `self.outputs` must be what `outputs_image` gathered from it.
    unsafe fn add_returned_objects(
        &mut self,
        names: &HandleTable,
        command: Command,
        params: *const u8,
        outputs: &'static Layout,
        touch: Option<OrderEdge>,
    ) {
        let base = self.outputs.as_ptr().expose_provenance() as u64;
        // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
        let mut made = unsafe { direct_handles(outputs, base) };
        let is_new = creates_objects(command);
        // What makes objects has structures only to say again what it was given: the layout of a pipeline, for one.
        if !is_new {
            // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
            made.extend(unsafe { nested_handles(outputs, base) });
        }
        made.retain(|it| it.is_behind_pointer);
        if made.is_empty() {
            return;
        }
        // SAFETY: the contract of this function: the parameters of the call that made these objects.
        let (parent, note) = unsafe { object_parent::parent_and_note(names, command, params, made[0].ty) };
        for call_handle in &made {
            let own = names.table_for(call_handle.ty);
            if call_handle.handle == 0 || !is_new && own.slot(call_handle.ty, call_handle.handle).is_some() {
                continue;
            }
            add_object(own, call_handle.ty, call_handle.handle, (parent, note), touch);
        }
        if defines_pack_context(command) {
            // SAFETY: the contract of this function, which is that of `store_pack_context`.
            unsafe { store_pack_context(names, command, params, &made) };
        }
    }
}

/// A new object, last touched by the call that made it.
fn add_object(
    names: &HandleTable,
    ty: HandleType,
    handle: u64,
    (parent, note): (ObjectParent, u32),
    touch: Option<OrderEdge>,
) {
    if let Some(slot) = names.add(ty, handle, parent, note)
        && let Some(touch) = touch
    {
        PROCESS_STATE.objects.set_last_edge(slot, touch);
    }
}

fn add_deferred_pipelines(names: &HandleTable, operation: DeferredOperationKHR, touch: Option<OrderEdge>) {
    let learn = |pipeline| add_object(names, HandleType::Pipeline, pipeline, (ObjectParent::None, 0), touch);
    // SAFETY: `deferred_status` gives an operation only where a call found that it is complete. That call has not returned to the
    // application, and every call by which the application can find out comes here first.
    unsafe { names.deferred.complete(operation.0, learn) };
}

/// Packs the parameters of a call by the tables.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and that has not returned to the
/// application.
#[inline(never)]
unsafe fn pack_by_tables(
    stream: &mut RecordBuffer,
    look: &ObjectIdResolver<'_>,
    command: Command,
    params: *const u8,
    call: u64,
) {
    // SAFETY: the contract of this function: the VUIDs of the command make its pointers valid until the call returns.
    unsafe { Packer::new(look, look.names).enter(stream, command, params, call) };
}

fn creates_objects(command: Command) -> bool {
    let name = command.desc().name;
    name.starts_with("vkCreate") || name.starts_with("vkAllocate") || name.starts_with("vkRegister")
}

fn defines_pack_context(command: Command) -> bool {
    matches!(
        command,
        Command::CreateRenderPass
            | Command::CreateRenderPass2
            | Command::CreateDescriptorUpdateTemplate
            | Command::CreateGraphicsPipelines
    )
}

/// Keeps what a creation says about its objects: its parameters, read as a record.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and that has not returned to the
/// application.
unsafe fn store_pack_context(names: &HandleTable, command: Command, params: *const u8, made: &[CallHandle]) {
    let (mut stream, notes) = (RecordBuffer::default(), ObjectDeps::default());
    let look = ObjectIdResolver { names, thread: 0, deps: &notes, is_ordered: false, last_command_buffer: None };
    // SAFETY: the contract of this function, which is that of `pack_by_tables`.
    unsafe { pack_by_tables(&mut stream, &look, command, params, 0) };
    if let Ok(record) = check(stream.words())
        && let Some(call) = Call::of(record)
    {
        let made: Vec<u64> = made.iter().map(|it| it.handle).collect();
        names.store_pack_context(call, &made);
    }
}

/// Whether a semaphore's counter is another than at the last look.
///
/// # Safety
///
/// `params` must point to the parameters of a `vkGetSemaphoreCounterValue` that succeeded and has not returned to the
/// application.
unsafe fn advance_semaphore_counter(names: &HandleTable, params: *const u8) -> bool {
    // SAFETY: by the contract of this function these are the parameters of a `vkGetSemaphoreCounterValue`.
    let params = unsafe { &*params.cast::<GetSemaphoreCounterValueParams>() };
    // SAFETY: VUID-vkGetSemaphoreCounterValue-pValue-parameter: a place, which the call that succeeded has written.
    let value = unsafe { params.p_value.as_ptr().read() };
    let Some(slot) = names.slot(HandleType::Semaphore, params.semaphore.0) else { return true };
    PROCESS_STATE.objects.swap_user_data(slot, value as u32) != value as u32
}

/// What a call ends is known no more.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and was not passed on yet.
#[cold]
unsafe fn remove_destroyed_objects(names: &HandleTable, command: Command, params: *const u8) {
    let desc = command.desc();
    let is_end = desc.name.starts_with("vkDestroy") || desc.name.starts_with("vkFree");
    let is_reset = command == Command::ResetDescriptorPool;
    if !is_end && !is_reset && command != Command::ReleasePerformanceConfigurationINTEL {
        return;
    }
    // What is destroyed comes last; before it stand the device and the pool. An empty list ends nothing.
    let Some(ended) = desc.parameters.fixups.iter().rev().find_map(handle_type) else { return };
    let base = params.expose_provenance() as u64;
    // SAFETY: the contract of this function: the image of a call of this command, whose layout this is.
    for call_handle in unsafe { direct_handles(desc.parameters, base) }.into_iter().filter(|it| it.ty == ended) {
        let own = names.table_for(call_handle.ty);
        match own.slot(call_handle.ty, call_handle.handle) {
            Some(pool) if is_reset => own.remove_children(pool),
            _ => own.remove(call_handle.ty, call_handle.handle),
        }
    }
}
