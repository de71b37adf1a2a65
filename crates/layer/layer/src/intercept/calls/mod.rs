//! An intercepted call: enter, driver, leave.
//!
//! A generated shim finds the target of the call (`call_target`), and then does three things:
//!
//! 1. [`enter_call`]: writes of the host into mapped memory become records (`mapped_memory`); the call gets a number
//!    (`order_edges`); its parameters are packed; the record is ordered after calls of other threads, and
//!    published. Inline, findings are reported now, and a messenger callback may cancel the call.
//! 2. The driver executes the call. The layer holds no lock meanwhile.
//! 3. [`leave_call`]: new objects get ids (`object_lifetimes`); the outputs are packed and published; the call counts as
//!    completed. If the host learned how far the device is, a push barrier orders other threads after this call.
//!
//! If only the reader wants the record, a call with `fast_pack` code is packed straight into the stream. A recorded
//! command has no outputs ([`leave_without_outputs`]).
//!
//! Frequent commands have generated code that packs them (`fast_pack`). It declines unusual parameters, for example a
//! `pNext` chain. These calls, and calls of all other commands, are packed by the description of the command
//! (`lavascope_abi::desc`).

mod call_target;
mod mapped_memory;
mod object_lifetimes;
mod order_edges;
mod thread_state;

use lavascope_abi::{Command, Structure};
use lavascope_marshal::{Packer, RecordBuffer, fast_pack, outputs_image};
use lavascope_stream::StreamThread;

pub(crate) use self::call_target::{CallTarget, device_of, device_of_command_buffer, instance_of};
use self::order_edges::NewValue;
use self::thread_state::ThreadLocalState;
use crate::intercept::handle_table::HandleTable;
use crate::intercept::object_deps::ObjectIdResolver;
use crate::intercept::order::{CommandOrdering, PushBarrier};
use crate::intercept::shim::ReturnBits;
use crate::loader::device::DeviceData;
use crate::process::catch_panic::{catch_panic, is_disabled, run_if_enabled};
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;
use crate::report::debugger::lavascope_break_here;
use crate::report::inline_validation;
use crate::report::inline_validation::{CallPhase, InlineFindings};
use crate::report::messages::Delivery;

/// A call that was entered and not left.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall {
    /// Null if there are no listeners.
    thread_state: *mut ThreadLocalState,
    /// The number of the call on its thread.
    call: u64,
    flags: PendingCallFlags,
}

/// The listeners that got the record of the parameters, and whether a messenger callback cancelled the call.
///
/// The same listeners get the record of the outputs. Without it, a call in a stream would never become complete, and the
/// reader would never get to records with an order edge to it.
/// Both stand in one word: reading a word that was written in pieces costs a store-forwarding stall.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct PendingCallFlags(u64);

impl PendingCallFlags {
    /// The bits of [`Listeners`].
    const LISTENERS: u64 = 0xff;
    /// The driver does not see the call.
    const SKIPPED_BY_CALLBACK: u64 = 1 << 8;
    /// A debugger stops before the driver sees the call.
    const STOPS: u64 = 1 << 9;

    #[inline(always)]
    const fn new(listeners: Listeners) -> PendingCallFlags {
        PendingCallFlags(listeners.bits() as u64)
    }

    #[inline(always)]
    fn listeners(self) -> Listeners {
        Listeners::from_bits((self.0 & PendingCallFlags::LISTENERS) as u8)
    }

    #[inline(always)]
    fn is_skipped_by_callback(self) -> bool {
        self.0 & PendingCallFlags::SKIPPED_BY_CALLBACK != 0
    }

    #[inline(always)]
    fn is_stop_wanted(self) -> bool {
        self.0 & PendingCallFlags::STOPS != 0
    }

    #[inline(always)]
    fn is_special(self) -> bool {
        self.0 & (PendingCallFlags::SKIPPED_BY_CALLBACK | PendingCallFlags::STOPS) != 0
    }

    /// Inline validation has undone the call, so it gets no record of the outputs.
    fn with_skipped_call(self) -> PendingCallFlags {
        let undone = u64::from(Listeners::INLINE.bits());
        PendingCallFlags(self.0 & !undone | PendingCallFlags::SKIPPED_BY_CALLBACK)
    }
}

impl PendingCall {
    /// There are no listeners.
    const UNRECORDED: PendingCall =
        PendingCall { thread_state: std::ptr::null_mut(), call: 0, flags: PendingCallFlags::new(Listeners::NONE) };

    fn new(thread_state: *mut ThreadLocalState, call: u64, listeners: Listeners) -> PendingCall {
        PendingCall { thread_state, call, flags: PendingCallFlags::new(listeners) }
    }

    #[inline(always)]
    pub(crate) fn is_skipped_by_callback(self) -> bool {
        self.flags.is_skipped_by_callback()
    }

    /// Whether a callback skipped the call, or a debugger stops before it.
    #[inline(always)]
    pub(crate) fn is_special(self) -> bool {
        self.flags.is_special()
    }

    /// Whether a debugger stops before the driver sees the call.
    #[inline(always)]
    pub(crate) fn is_stop_wanted(self) -> bool {
        self.flags.is_stop_wanted()
    }

    /// Reports the findings of the call to the application. A callback may cancel the call.
    #[inline(always)]
    fn report_before_driver(self, findings: Option<Box<InlineFindings>>, handles: &HandleTable) -> PendingCall {
        match findings {
            None => self,
            Some(findings) => self.report_findings_before_driver(&findings, handles),
        }
    }

    #[cold]
    fn report_findings_before_driver(self, findings: &InlineFindings, handles: &HandleTable) -> PendingCall {
        let report = || findings.send(handles, CallPhase::BeforeDriver);
        let flags = match run_if_enabled("messages", report, || Delivery::NoMessenger) {
            Delivery::SkipCall => self.flags.with_skipped_call(),
            _ => self.flags,
        };
        let stops = run_if_enabled("a stop", || findings.print_stops(), || false);
        let stop = if stops { PendingCallFlags::STOPS } else { 0 };
        PendingCall { flags: PendingCallFlags(flags.0 | stop), ..self }
    }
}

/// Enters a call of a command for which `fast_pack` has generated code. Both `pack` functions are that code: one packs
/// into the stream, the other into a record buffer. They return the number of words of the record, or none for unusual
/// parameters.
///
/// # Safety
///
/// `params` must be the parameters of a call of `command` that obey its VUIDs, on this thread, and the call must not
/// have been passed on yet. `target` must be of this thread and of the device that the command is called on.
#[inline(always)]
pub(crate) unsafe fn enter_call<T: Structure>(
    target: &CallTarget<'_, DeviceData>,
    command: Command,
    order: CommandOrdering,
    params: &T,
    pack_in_stream: impl FnOnce(&mut StreamSpace<'_>, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    pack_in_record_buffer: impl FnOnce(&mut RecordBuffer, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
) -> PendingCall {
    let listeners = PROCESS_STATE.listeners(target.owner.listeners);
    if listeners.is_empty() {
        return PendingCall::UNRECORDED;
    }
    let work = || {
        // SAFETY: made by `register` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *target.thread_state };
        if order.looks_for_writes {
            let (handles, params) = (target.owner.handles(), std::ptr::from_ref(params).cast());
            // SAFETY: the contract of this function, which is that of `record_host_writes`.
            unsafe { local.record_host_writes(listeners, handles, command, params) };
        }
        let call = local.begin_record(listeners, order);
        local.capture_stack(listeners, call, command, order);
        // The usual case with async validation or a capture: only the reader thread wants the record.
        if listeners.without(Listeners::WITHOUT_RECORDS) == Listeners::READER
            && local.try_pack_in_stream(target, (call, order), params, pack_in_stream)
        {
            return (PendingCall::new(target.thread_state, call, listeners), None);
        }
        // Inline validation or the printer wants the record, or it needs order edges.
        // SAFETY: the contract of this function, which is that of `pack_in_record_buffer`.
        unsafe { local.pack_in_record_buffer(target, listeners, (command, call), params, pack_in_record_buffer) };
        if listeners.has_any(Listeners::READER) {
            local.add_command_buffer_readers(target, order);
        }
        local.publish_parameters(listeners, call, command, order);
        (PendingCall::new(target.thread_state, call, listeners), local.validate_inline(listeners))
    };
    let (entered, findings) = catch_panic(command, work, || (PendingCall::UNRECORDED, None));
    entered.report_before_driver(findings, target.owner.handles())
}

/// Enters a call of a command without generated code: its description (`lavascope_abi::desc`) defines how to pack it.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs, on this thread, and the call must
/// not have been passed on yet.
#[inline(never)]
pub(crate) unsafe fn enter_by_desc(
    handles: &HandleTable,
    wanted: Listeners,
    command: Command,
    order: CommandOrdering,
    params: *const u8,
) -> PendingCall {
    let listeners = PROCESS_STATE.listeners(wanted);
    if listeners.is_empty() {
        return PendingCall::UNRECORDED;
    }
    let work = || {
        let thread_state = thread_state::current();
        // SAFETY: made by `register` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *thread_state };
        if order.looks_for_writes {
            // SAFETY: the contract of this function, which is that of `record_host_writes`.
            unsafe { local.record_host_writes(listeners, handles, command, params) };
        }
        let call = local.begin_record(listeners, order);
        local.capture_stack(listeners, call, command, order);
        // `deps` gets the objects that packing finds, and the calls that this one comes after.
        let resolver = ObjectIdResolver {
            handles,
            thread: local.thread.number(),
            deps: &local.deps,
            is_ordered: listeners.has_any(Listeners::READER),
            last_command_buffer: None,
        };
        // SAFETY: the contract of this function, which is that of `pack_by_desc`.
        unsafe { pack_by_desc(&mut local.record, &resolver, command, params, call) };
        local.publish_parameters(listeners, call, command, order);
        (PendingCall::new(thread_state, call, listeners), local.validate_inline(listeners))
    };
    let (entered, findings) = catch_panic(command, work, || (PendingCall::UNRECORDED, None));
    let entered = entered.report_before_driver(findings, handles);
    // The calls that may destroy objects are among those with a local barrier.
    if order.has_local_barrier && !entered.thread_state.is_null() && !entered.is_skipped_by_callback() {
        // SAFETY: the contract of this function, which is that of `remove_destroyed_objects`.
        let remove = || unsafe { object_lifetimes::remove_destroyed_objects(handles, command, params) };
        catch_panic(command, remove, || ());
    }
    entered
}

/// Leaves a call that has neither outputs nor a result.
///
/// # Safety
///
/// `entered` must be what `enter_call` or `enter_by_desc` returned for this call, on this thread.
#[inline(always)]
pub(crate) unsafe fn leave_without_outputs(entered: PendingCall, order: CommandOrdering) {
    // Only a reader of streams needs the order between threads.
    if !entered.flags.listeners().has_any(Listeners::READER) {
        return;
    }
    // SAFETY: not null, since there are listeners. It was made by `register` for this thread, on which the call
    // returns, and no reference to it is kept across the call.
    let local = unsafe { &*entered.thread_state };
    local.thread.complete(entered.call);
    if order.push_barrier != PushBarrier::Never {
        PROCESS_STATE.threads.push_barrier(&local.thread);
    }
}

/// Leaves a call with a result or outputs.
///
/// # Safety
///
/// `entered` must be what `enter_call` or `enter_by_desc` gave for this call, on this thread, and `params` must point to
/// the parameters of that call, which must have returned `result` to us and not returned to the application.
#[inline(never)]
pub(crate) unsafe fn leave_call(
    entered: PendingCall,
    handles: &HandleTable,
    command: Command,
    order: CommandOrdering,
    params: *const u8,
    result: u64,
) {
    if entered.thread_state.is_null() || is_disabled() {
        return;
    }
    // SAFETY: made by `register` for this thread, on which the call returns, and no reference to it is kept across the
    // call; by the contract of this function the parameters are those of the call, which has returned.
    let work = || unsafe { (*entered.thread_state).record_outputs(entered, handles, command, order, params, result) };
    if let Some(findings) = catch_panic(command, work, || None) {
        run_if_enabled("messages", || _ = findings.send(handles, CallPhase::AfterDriver), || ());
        if run_if_enabled("a stop", || findings.print_stops(), || false) {
            lavascope_break_here();
        }
    }
}

/// Enter, driver and leave in one function, for the commands that are intercepted by hand. If a messenger callback
/// cancels the call, it is passed on all the same.
///
/// # Safety
///
/// `params` must be the parameters of a call of `command` that obey its VUIDs and stay until this returns, on this
/// thread. `next` must pass that call on, and give its result.
pub(crate) unsafe fn forward_recorded<T: Structure, R: ReturnBits>(
    handles: &HandleTable,
    wanted: Listeners,
    command: Command,
    params: &T,
    next: impl FnOnce() -> R,
) -> R {
    let (order, params) = (CommandOrdering::of(command), std::ptr::from_ref(params).cast());
    // SAFETY: the contract of this function: the call is passed on by `next`, below.
    let entered = unsafe { enter_by_desc(handles, wanted, command, order, params) };
    if entered.is_stop_wanted() {
        lavascope_break_here();
    }
    let result = next();
    if command.desc().outputs.is_some() {
        // SAFETY: `entered` is of this call, on this thread. By the contract of this function `result` is what the call
        // returned, and the parameters are still there.
        unsafe { leave_call(entered, handles, command, order, params, result.bits()) };
    } else {
        // SAFETY: `entered` is of this call, on this thread.
        unsafe { leave_without_outputs(entered, order) };
    }
    result
}

impl ThreadLocalState {
    /// Captures the call stack, before the record is published.
    #[inline(always)]
    fn capture_stack(&mut self, listeners: Listeners, call: u64, command: Command, order: CommandOrdering) {
        if order.has_call_stack && listeners.has_any(Listeners::STACKS) {
            self.stacks.capture(self.thread.number(), call, command);
        }
    }

    /// The last steps of entering: order, publish, mark the objects as used.
    #[inline(always)]
    fn publish_parameters(&mut self, listeners: Listeners, call: u64, command: Command, order: CommandOrdering) {
        if !listeners.has_any(Listeners::READER) {
            // Packing found no order edges: no thread may wait for a record that is in no stream.
            return self.publish_record(listeners);
        }
        self.order_after_deps();
        self.publish_record(listeners);
        self.mark_deps_used(call, command, order);
    }

    /// Publishes the record in the record buffer to the reader and the printer.
    #[inline(always)]
    fn publish_record(&mut self, listeners: Listeners) {
        let record = self.record.add_order_edges(self.thread.order_edges());
        if listeners.has_any(Listeners::READER) {
            self.thread.append(record);
        }
        if listeners.has_any(Listeners::PRINTS) {
            PROCESS_STATE.print(self.thread.number(), record);
        }
        self.thread.end_record();
    }

    /// Validates the record in the record buffer, if validation is inline. Returns the findings that must be reported.
    #[inline(always)]
    fn validate_inline(&mut self, listeners: Listeners) -> Option<Box<InlineFindings>> {
        if !listeners.has_any(Listeners::INLINE) {
            return None;
        }
        let (thread, record) = (self.thread.number(), self.record.words());
        let findings = inline_validation::validate_under_lock(thread, record);
        let noticed = self.write_scratch.take_findings();
        if noticed.is_empty() { findings } else { Some(InlineFindings::merged(findings, noticed, (thread, record))) }
    }

    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that obeyed its VUIDs, and that has returned
    /// `result` to us and not returned to the application.
    unsafe fn record_outputs(
        &mut self,
        entered: PendingCall,
        handles: &HandleTable,
        command: Command,
        order: CommandOrdering,
        params: *const u8,
        result: u64,
    ) -> Option<Box<InlineFindings>> {
        let (call, listeners) = (entered.call, entered.flags.listeners());
        let edge = listeners.has_any(Listeners::READER).then(|| self.thread.edge_to(call));
        let mut findings = None;
        // SAFETY: the contract of this function: the parameters of a call of this command that returned `result`.
        if unsafe { outputs_image(command.desc(), params, result, &mut self.outputs) }
            && let Some(outputs) = command.desc().outputs
        {
            let image = (&self.outputs[..], outputs.layout);
            // SAFETY: the contract of this function, and `self.outputs` was just filled from the call.
            unsafe { object_lifetimes::add_returned_objects(handles, command, params, image, edge) };
            // SAFETY: the contract of this function, and `self.outputs` was just filled from the call.
            unsafe { self.pack_outputs(handles, command, call) };
            self.publish_record(listeners);
            findings = self.validate_inline(listeners);
        }
        // SAFETY: the contract of this function, which is that of `follow_deferred_operation`.
        unsafe { object_lifetimes::follow_deferred_operation(handles, command, params, result, edge) };
        // SAFETY: the contract of this function, which is that of `track_mappings`.
        unsafe { mapped_memory::track_mappings(handles, command, params, result) };
        if listeners.has_any(Listeners::READER) {
            self.thread.complete(call);
            let mut new_value = None;
            let has_progressed = || {
                // SAFETY: by the contract of this function these are the parameters of a call of the command; `is_due`
                // asks only where it succeeded.
                new_value = unsafe { NewValue::of_query(handles, command, params) };
                new_value.is_some()
            };
            if order.push_barrier.is_due(result, has_progressed) {
                PROCESS_STATE.threads.push_barrier(&self.thread);
                new_value.into_iter().for_each(NewValue::store);
                if order.push_barrier.is_device_progress() {
                    self.record_device_writes(listeners, handles, command);
                }
            }
        }
        findings
    }
}

/// The stream of a thread as the place in which `fast_pack` stores a record. `StreamThread` passes `claim`, `commit` and
/// `append` on to the `Producer` of its stream.
pub(crate) struct StreamSpace<'a>(&'a mut StreamThread);

// SAFETY: `StreamThread::claim` reserves this many words after those that are committed, and the thread is borrowed.
unsafe impl fast_pack::RecordSpace for StreamSpace<'_> {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.0.claim(words)
    }

    #[inline(always)]
    unsafe fn written_record(&mut self, words: usize) -> &[u64] {
        // Claiming again gives the same words, since the stream commits only in `try_pack_in_stream`.
        let first = self.0.claim(words);
        // SAFETY: the contract of `RecordSpace::written_record`: these are the words that were claimed last, and all of them
        // are written.
        unsafe { std::slice::from_raw_parts(first, words) }
    }
}

impl ThreadLocalState {
    /// Packs a call into the stream of the thread itself, which saves a copy. Returns whether the record is published there.
    ///
    /// A record in the stream cannot get order edges any more. So a call that needs some, or that `pack` declines,
    /// is not published, and must be packed again in the record buffer.
    #[inline(always)]
    fn try_pack_in_stream<T>(
        &mut self,
        target: &CallTarget<'_, DeviceData>,
        (call, order): (u64, CommandOrdering),
        params: &T,
        pack: impl FnOnce(&mut StreamSpace<'_>, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    ) -> bool {
        let resolver = ObjectIdResolver {
            handles: target.owner.handles(),
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered: true,
            last_command_buffer: target.command_buffer(&self.last_command_buffer),
        };
        let words = pack(&mut StreamSpace(&mut self.thread), &resolver, call, params);
        self.add_command_buffer_readers(target, order);
        if let (Some(words), true) = (words, self.depends_on_own_thread_only(target)) {
            // From here on, the reader thread finds the record (`ReaderState::read_available`).
            // SAFETY: `pack` gives the words that it claimed last and has written, and nothing was claimed since.
            unsafe { self.thread.commit(words) };
            self.mark_objects_used(target, call);
            return true;
        }
        self.deps.clear();
        false
    }

    /// Packs a call into the thread's record buffer, by generated code or else by the description of the command.
    ///
    /// # Safety
    ///
    /// `params` must be the parameters of a call of `command` that obey its VUIDs and that has not returned to the
    /// application.
    #[inline(always)]
    unsafe fn pack_in_record_buffer<T>(
        &mut self,
        target: &CallTarget<'_, DeviceData>,
        listeners: Listeners,
        (command, call): (Command, u64),
        params: &T,
        pack: impl FnOnce(&mut RecordBuffer, &ObjectIdResolver<'_>, u64, &T) -> Option<usize>,
    ) {
        let is_ordered = listeners.has_any(Listeners::READER);
        let resolver = ObjectIdResolver {
            handles: target.owner.handles(),
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered,
            last_command_buffer: target.command_buffer(&self.last_command_buffer),
        };
        if pack(&mut self.record, &resolver, call, params).is_none() {
            self.record.clear();
            let params = std::ptr::from_ref(params).cast();
            // SAFETY: the contract of this function, which is that of `pack_by_desc`.
            unsafe { pack_by_desc(&mut self.record, &resolver, command, params, call) };
        }
        if is_ordered && let Some(command_buffer) = target.command_buffer(&self.last_command_buffer) {
            self.add_command_buffer_dep(command_buffer.id, command_buffer.sync_domain);
        }
    }

    /// Packs the outputs that `outputs_image` gathered.
    ///
    /// # Safety
    ///
    /// `self.outputs` must be what `outputs_image` gathered from a call of `command` that obeys its VUIDs, and that has
    /// not returned to the application.
    unsafe fn pack_outputs(&mut self, handles: &HandleTable, command: Command, call: u64) {
        self.record.clear();
        // The record of the outputs needs no order of its own: it comes after the record of the parameters.
        let resolver = ObjectIdResolver {
            handles,
            thread: self.thread.number(),
            deps: &self.deps,
            is_ordered: false,
            last_command_buffer: None,
        };
        let outputs = self.outputs.as_ptr().cast();
        // SAFETY: the contract of this function. `outputs_image` left null what the call did not write, and what the
        // outputs lead to stays until the call returns to the application.
        unsafe { Packer::new(&resolver, handles).pack_outputs(&mut self.record, command, outputs, call) };
    }
}

/// Packs the parameters of a call by the description of the command.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and that has not returned to the
/// application.
#[inline(never)]
unsafe fn pack_by_desc(
    record: &mut RecordBuffer,
    resolver: &ObjectIdResolver<'_>,
    command: Command,
    params: *const u8,
    call: u64,
) {
    // SAFETY: the contract of this function: the VUIDs of the command make its pointers valid until the call returns.
    unsafe { Packer::new(resolver, resolver.handles).pack_parameters(record, command, params, call) };
}
