//! What happens around an intercepted call: its record is made and given to whoever listens.
//!
//! Before the driver sees a call its parameters are packed and ordered after the calls of other threads that it
//! depends on; after it returned its outputs are packed, and new objects get their ids. No lock is held in between.

use std::cell::Cell;
use std::ptr::NonNull;

use lavascope_abi::desc::Layout;
use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer, outputs_image, straight};
use lavascope_record::{Call, OrderEdge, check};
use lavascope_stream::{ObjectParent, StreamThread};

use crate::backtrace::Stacks;
use crate::breach;
use crate::deferred::{Said, said};
use crate::device::DeviceData;
use crate::dispatch::dispatch_key;
use crate::entry::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::fence::{fence, is_off, while_on};
use crate::handles::{Handle, handle_type, handles_behind, handles_in_structures};
use crate::hub::{HUB, Hub};
use crate::inline::{self, Found, Moment};
use crate::instance::InstanceData;
use crate::kin;
use crate::memory::{Space, Teller};
use crate::messages::Answer;
use crate::names::Names;
use crate::object_deps::{Look, Notes, Recorder};
use crate::order::{After, Order};
use crate::shim::Bits;
use crate::thread_end;

/// A thread of the application, and the space in which it makes records.
pub(crate) struct Local {
    thread: StreamThread,
    /// One record at a time.
    stream: RecordBuffer,
    outputs: Vec<u64>,
    notes: Notes,
    recorder: Option<Recorder>,
    stacks: Stacks,
    /// For records of what was written into memory.
    space: Space,
}

/// What a command is called on, and the thread that calls it.
pub(crate) struct Called<'a, T> {
    pub(crate) owner: &'a T,
    pub(crate) local: *mut Local,
    /// Whether it is a command buffer that the thread remembers.
    is_recording: bool,
}

/// # Safety
///
/// `handle` must be an instance or physical device that is alive, and stays so while the result is used.
pub(crate) unsafe fn instance_of<'a>(handle: u64) -> Option<Called<'a, InstanceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_INSTANCES.get(dispatch_key(handle)) }?;
    Some(Called { owner, local: local(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a device or queue that is alive, and stays so while the result is used.
pub(crate) unsafe fn device_of<'a>(handle: u64) -> Option<Called<'a, DeviceData>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    let owner = unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?;
    Some(Called { owner, local: local(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(always)]
pub(crate) unsafe fn recorder_of<'a>(handle: u64) -> Option<Called<'a, DeviceData>> {
    let local = LOCAL.get();
    // SAFETY: null, or the thread's own, which `retire` alone frees, on this thread. No reference to it is kept past a
    // call out of the layer.
    if let Some(Local { recorder: Some(it), .. }) = unsafe { local.as_ref() }
        && it.handle == handle
        && it.generation == HUB.generation()
    {
        // SAFETY: since the generation did not move, the command buffer is the one that was looked up then, and its
        // device is alive by the contract of this function.
        return Some(Called { owner: unsafe { it.owner.as_ref() }, local, is_recording: true });
    }
    // SAFETY: `handle` is alive while the result is used, as the contract of `new_recorder_of` asks, too.
    unsafe { new_recorder_of(handle) }
}

/// # Safety
///
/// `handle` must be a command buffer that is alive, and stays so while the result is used.
#[inline(never)]
unsafe fn new_recorder_of<'a>(handle: u64) -> Option<Called<'a, DeviceData>> {
    // Before the look-up, so that an end in between is noticed.
    let generation = HUB.generation();
    // SAFETY: the contract of this function; a command buffer shares the key of its device.
    let called = unsafe { device_of(handle) }?;
    if let Some(slot) = called.owner.names().slot(HandleType::CommandBuffer, handle)
        && let Some(id) = HUB.objects.id(slot)
    {
        let keeper = HUB.objects.sync_domain(slot);
        let owner = NonNull::from(called.owner);
        // SAFETY: made by `local` for this thread, which alone has it, and no other reference to it is in use here.
        unsafe { (*called.local).recorder = Some(Recorder { handle, generation, owner, id, keeper }) };
    }
    Some(called)
}

/// A call between its two halves.
#[derive(Clone, Copy)]
pub(crate) struct Entered {
    /// Null if nobody listens.
    local: *mut Local,
    call: u64,
    /// Who got the first half, and gets the second: half a call in a stream would hold up the others. One word with
    /// what else there is to say, since the processor waits where a word is read that was written in pieces.
    marks: u64,
}

impl Entered {
    const NOT: Entered = Entered { local: std::ptr::null_mut(), call: 0, marks: 0 };
    /// The application wants that the driver does not see it.
    const GIVEN_UP: u64 = 1 << 8;

    fn new(local: *mut Local, call: u64, listeners: u8) -> Entered {
        Entered { local, call, marks: u64::from(listeners) }
    }

    #[inline(always)]
    pub(crate) fn is_given_up(self) -> bool {
        self.marks & Entered::GIVEN_UP != 0
    }

    #[inline(always)]
    fn listeners(self) -> u8 {
        self.marks as u8
    }

    /// Tells the application what its call led to before the driver sees it.
    #[inline(always)]
    fn after(self, found: Option<Box<Found>>, names: &Names) -> Entered {
        match found {
            None => self,
            Some(found) => self.after_telling(&found, names),
        }
    }

    #[cold]
    fn after_telling(self, found: &Found, names: &Names) -> Entered {
        let tell = || found.tell(names, Moment::BeforeTheDriver);
        match while_on("messages", tell, || Answer::Nobody) {
            Answer::GiveUp => Entered { marks: self.marks & !u64::from(Hub::INLINE) | Entered::GIVEN_UP, ..self },
            _ => self,
        }
    }
}

thread_local! {
    /// The calling thread's own, or null before its first call.
    static LOCAL: Cell<*mut Local> = const { Cell::new(std::ptr::null_mut()) };
}

#[inline(always)]
fn local() -> *mut Local {
    let local = LOCAL.get();
    if local.is_null() { enlist() } else { local }
}

#[cold]
fn enlist() -> *mut Local {
    let thread = HUB.threads.register(&HUB.wake);
    let local = Local {
        thread,
        stream: RecordBuffer::with_capacity(512),
        outputs: Vec::new(),
        notes: Notes::default(),
        recorder: None,
        stacks: Stacks::default(),
        space: Space::default(),
    };
    let local = Box::into_raw(Box::new(local));
    LOCAL.set(local);
    thread_end::call(retire);
    local
}

/// The thread ends. It may still make calls in destructors that come later, and is then enlisted again.
fn retire() {
    let local = LOCAL.replace(std::ptr::null_mut());
    if !local.is_null() {
        // SAFETY: made by `Box::into_raw` in `enlist`, on this thread, and taken out of the thread-local, so that this
        // is done once. The thread is in no call any more: references to it end with the call that made them.
        HUB.threads.retire(unsafe { Box::from_raw(local) }.thread);
    }
}

/// A thread's stream as a place to store records in.
pub(crate) struct InPlace<'a>(&'a mut StreamThread);

// SAFETY: `StreamThread::claim` gives room for so many words behind what is committed, and the thread is borrowed.
unsafe impl straight::RecordSpace for InPlace<'_> {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.0.claim(words)
    }

    #[inline(always)]
    unsafe fn commit(&mut self, words: usize) -> &[u64] {
        // Claiming again gives the same words, since nothing was committed.
        let first = self.0.claim(words);
        // SAFETY: the contract of `Space::commit`: these are the words that were claimed last, and all of them are
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
    called: &Called<'_, DeviceData>,
    command: Command,
    order: Order,
    params: &T,
    in_place: impl FnOnce(&mut InPlace<'_>, &Look<'_>, u64, &T) -> Option<usize>,
    apart: impl FnOnce(&mut RecordBuffer, &Look<'_>, u64, &T) -> Option<usize>,
) -> Entered {
    let listeners = HUB.listeners(called.owner.listeners);
    if listeners == 0 {
        return Entered::NOT;
    }
    let work = || {
        // SAFETY: made by `local` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *called.local };
        let names = called.owner.names();
        if order.before {
            // SAFETY: the contract of this function, which is that of `look_at_memory`.
            unsafe { local.look_at_memory(listeners, names, command, std::ptr::from_ref(params).cast()) };
        }
        let call = local.begin(listeners, order);
        let (thread, is_ordered) = (local.thread.number(), listeners & Hub::READS != 0);
        let look = Look {
            names,
            thread,
            notes: &local.notes,
            is_ordered,
            recorder: local.recorder.as_ref().filter(|_| called.is_recording),
        };
        if listeners == Hub::READS {
            let words = in_place(&mut InPlace(&mut local.thread), &look, call, params);
            if let (Some(words), true) = (words, local.is_unordered(called.is_recording)) {
                // SAFETY: `in_place` gives the words that it claimed last and has written, and nothing was claimed
                // since.
                unsafe { local.thread.commit(words) };
                local.touch_objects(call, called.is_recording);
                return (Entered::new(called.local, call, listeners), None);
            }
            // It has touches, or the walker must make it: once more, apart. What was noted is noted again.
            local.notes.clear();
        }
        let look = Look {
            names,
            thread,
            notes: &local.notes,
            is_ordered,
            recorder: local.recorder.as_ref().filter(|_| called.is_recording),
        };
        if apart(&mut local.stream, &look, call, params).is_none() {
            local.stream.clear();
            // SAFETY: the contract of this function, which is that of `walk`.
            unsafe { walk(&mut local.stream, &look, command, std::ptr::from_ref(params).cast(), call) };
        }
        if is_ordered {
            local.note_recorder(called.is_recording);
        }
        local.finish_enter(listeners, call, command, order);
        (Entered::new(called.local, call, listeners), local.validate(listeners))
    };
    let (entered, found) = fence(command, work, || (Entered::NOT, None));
    entered.after(found, called.owner.names())
}

/// A call is about to be passed on. The tables tell how it is packed.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs, on this thread, and the call must
/// not have been passed on yet.
#[inline(never)]
pub(crate) unsafe fn enter_walking(
    names: &Names,
    wanted: u8,
    command: Command,
    order: Order,
    params: *const u8,
) -> Entered {
    let listeners = HUB.listeners(wanted);
    if listeners == 0 {
        return Entered::NOT;
    }
    let work = || {
        let place = local();
        // SAFETY: made by `local` for this thread, which alone has it. No other reference to it is in use: nothing
        // below calls out of the layer.
        let local = unsafe { &mut *place };
        if order.before {
            // SAFETY: the contract of this function, which is that of `look_at_memory`.
            unsafe { local.look_at_memory(listeners, names, command, params) };
        }
        let call = local.begin(listeners, order);
        let (thread, is_ordered) = (local.thread.number(), listeners & Hub::READS != 0);
        let look = Look { names, thread, notes: &local.notes, is_ordered, recorder: None };
        // SAFETY: the contract of this function, which is that of `walk`.
        unsafe { walk(&mut local.stream, &look, command, params, call) };
        local.finish_enter(listeners, call, command, order);
        (Entered::new(place, call, listeners), local.validate(listeners))
    };
    let (entered, found) = fence(command, work, || (Entered::NOT, None));
    let entered = entered.after(found, names);
    if order.before && !entered.local.is_null() && !entered.is_given_up() {
        // Before the driver sees it: it may give the same handle to another thread at once.
        // SAFETY: the contract of this function, which is that of `forget`.
        fence(command, || unsafe { forget(names, command, params) }, || ());
    }
    entered
}

/// A call that says nothing returned.
///
/// # Safety
///
/// `entered` must be what `enter` or `enter_walking` gave for this call, on this thread.
#[inline(always)]
pub(crate) unsafe fn leave_silently(entered: Entered, order: Order) {
    // Who only prints needs no order.
    if entered.listeners() & Hub::READS == 0 {
        return;
    }
    // SAFETY: not null, since somebody listens. It was made by `local` for this thread, on which the call returns, and
    // no reference to it is kept across the call.
    let local = unsafe { &*entered.local };
    local.thread.complete(entered.call);
    if order.after != After::Never {
        HUB.threads.push_barrier(&local.thread);
    }
}

/// A call returned, with a result and outputs.
///
/// # Safety
///
/// `entered` must be what `enter` or `enter_walking` gave for this call, on this thread, and `params` must point to the
/// parameters of that call, which must have returned `result` to us and not returned to the application.
#[inline(never)]
pub(crate) unsafe fn leave(
    entered: Entered,
    names: &Names,
    command: Command,
    order: Order,
    params: *const u8,
    result: u64,
) {
    if entered.local.is_null() || is_off() {
        return;
    }
    // SAFETY: made by `local` for this thread, on which the call returns, and no reference to it is kept across the
    // call; by the contract of this function the parameters are those of the call, which has returned.
    let work = || unsafe { (*entered.local).leave(names, command, order, params, result, entered) };
    if let Some(found) = fence(command, work, || None) {
        while_on("messages", || _ = found.tell(names, Moment::AfterTheDriver), || ());
    }
}

/// Passes a call on, with what happens around it. For the commands that are intercepted by hand.
///
/// # Safety
///
/// `params` must be the parameters of a call of `command` that obey its VUIDs and stay until this returns, on this
/// thread. `next` must pass that call on, and give its result.
pub(crate) unsafe fn around<T: Structure, R: Bits>(
    names: &Names,
    wanted: u8,
    command: Command,
    params: &T,
    next: impl FnOnce() -> R,
) -> R {
    let (order, params) = (Order::of(command), std::ptr::from_ref(params).cast());
    // SAFETY: the contract of this function: the call is passed on by `next`, below.
    let entered = unsafe { enter_walking(names, wanted, command, order, params) };
    let result = next();
    if command.desc().outputs.is_some() {
        // SAFETY: `entered` is of this call, on this thread. By the contract of this function `result` is what the call
        // returned, and the parameters are still there.
        unsafe { leave(entered, names, command, order, params, result.bits()) };
    } else {
        // SAFETY: `entered` is of this call, on this thread.
        unsafe { leave_silently(entered, order) };
    }
    result
}

impl Local {
    /// Begins a call and its record.
    #[inline(always)]
    fn begin(&mut self, listeners: u8, order: Order) -> u64 {
        if listeners & Hub::READS != 0 && order.before | self.thread.take_barrier_request() {
            self.thread.order_after_completed(&HUB.threads);
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
    unsafe fn look_at_memory(&mut self, listeners: u8, names: &Names, command: Command, params: *const u8) {
        if let Some(memories) = &names.memories
            && listeners & (Hub::READS | Hub::INLINE) != 0
        {
            let mut teller = Teller { listeners, thread: &mut self.thread, space: &mut self.space };
            // SAFETY: the contract of this function, which is that of `before`.
            unsafe { memories.before(command, params, &mut teller) };
        }
    }

    /// The record of the parameters is made: it is given away, and then the objects are touched, so that whoever
    /// sees a touch can see the record too.
    #[inline(always)]
    fn finish_enter(&mut self, listeners: u8, call: u64, command: Command, order: Order) {
        if listeners & Hub::STACKS != 0 {
            // Before anybody may read the record.
            self.stacks.capture(self.thread.number(), call);
        }
        if listeners & Hub::READS == 0 {
            // Nothing was noted: nobody may be told to wait for a record that is in no stream.
            return self.give(listeners);
        }
        self.order_after_touches();
        self.give(listeners);
        let own = self.thread.edge_to(call);
        if order.is_shared {
            return self.notes.clear();
        }
        self.notes.touch_all(own);
        for (object, last) in self.notes.taken_over.get_mut().drain(..) {
            breach::look(object, OrderEdge::from_word(last), own, command);
        }
    }

    /// The command buffer that the call records into, if it is one.
    #[inline(always)]
    fn recorder(&self, is_recording: bool) -> Option<&Recorder> {
        if is_recording { self.recorder.as_ref() } else { None }
    }

    /// Whether the record being made comes after nothing on other threads that it does not come after already.
    #[inline(always)]
    fn is_unordered(&mut self, is_recording: bool) -> bool {
        let last = self.recorder(is_recording).map_or(0, |it| it.keeper.last_edge());
        let is_own = last == 0 || OrderEdge::from_word(last).thread == self.thread.number();
        is_own && self.notes.touches.get_mut().is_empty() && self.thread.order_edges().is_empty()
    }

    /// The command buffer of a straight command is not noted while packing: it is always there, and always the call's
    /// own.
    #[inline(always)]
    fn touch_objects(&mut self, call: u64, is_recording: bool) {
        let by = self.thread.edge_to(call);
        if let Some(it) = self.recorder(is_recording) {
            it.keeper.set_last_edge(by);
        }
        self.notes.touch_all(by);
    }

    /// The same, where the record has touches or goes elsewhere.
    fn note_recorder(&mut self, is_recording: bool) {
        if let Some((id, keeper)) = self.recorder(is_recording).map(|it| (it.id, it.keeper)) {
            let last = keeper.last_edge();
            self.notes.touches.get_mut().push(last);
            if last != 0 && OrderEdge::from_word(last).thread != self.thread.number() {
                self.notes.taken_over.get_mut().push((id, last));
            }
            self.notes.exclusive(keeper);
        }
    }

    #[inline(always)]
    fn order_after_touches(&mut self) {
        let touches = self.notes.touches.get_mut();
        if !touches.is_empty() {
            touches.drain(..).for_each(|it| self.thread.order_after(it));
        }
    }

    /// Gives the record that was just made to whoever listens.
    #[inline(always)]
    fn give(&mut self, listeners: u8) {
        let record = self.stream.add_order_edges(self.thread.order_edges());
        if listeners & Hub::READS != 0 {
            self.thread.append(record);
        }
        if listeners & Hub::PRINTS != 0 {
            HUB.print(self.thread.number(), record);
        }
        self.thread.end_record();
    }

    /// Has the record that was just made validated, where that is wanted. Gives what the application must be told.
    #[inline(always)]
    fn validate(&self, listeners: u8) -> Option<Box<Found>> {
        if listeners & Hub::INLINE == 0 {
            return None;
        }
        inline::take(self.thread.number(), self.stream.words())
    }

    /// # Safety
    ///
    /// `params` must point to the parameters of a call of `command` that obeyed its VUIDs, and that has returned
    /// `result` to us and not returned to the application.
    unsafe fn leave(
        &mut self,
        names: &Names,
        command: Command,
        order: Order,
        params: *const u8,
        result: u64,
        entered: Entered,
    ) -> Option<Box<Found>> {
        let (desc, call) = (command.desc(), entered.call);
        let mut found = None;
        let is_read = entered.listeners() & Hub::READS != 0;
        let touch = is_read.then(|| self.thread.edge_to(call));
        // SAFETY: the contract of this function: the parameters of a call of this command that returned `result`.
        if unsafe { outputs_image(desc, params, result, &mut self.outputs) }
            && let Some(outputs) = desc.outputs
        {
            // SAFETY: the contract of this function, and `self.outputs` was just filled from the call.
            unsafe { self.learn(names, command, params, outputs.layout, touch) };
            self.stream.clear();
            // What a call returns is ordered by the call itself.
            let (thread, is_ordered) = (self.thread.number(), false);
            let look = Look { names, thread, notes: &self.notes, is_ordered, recorder: None };
            // SAFETY: `outputs_image` gathered the outputs from the parameters of a call that obeys its VUIDs, and left
            // null what it did not write. What they lead to stays until the call returns to the application.
            unsafe { Packer::new(&look, names).leave(&mut self.stream, command, self.outputs.as_ptr().cast(), call) };
            self.give(entered.listeners());
            found = self.validate(entered.listeners());
        }
        // SAFETY: the contract of this function, which is that of `said`.
        match unsafe { said(command, params, result) } {
            Said::Nothing => {}
            Said::Begun => {
                // SAFETY: `said` gives this for `vkCreateRayTracingPipelinesKHR` alone, so that these are its
                // parameters.
                let params = unsafe { &*params.cast() };
                // SAFETY: `said` gives this where the call returned `VK_OPERATION_DEFERRED_KHR`.
                unsafe { names.deferred.begin(params) };
            }
            Said::Complete(operation) => learn_deferred(names, operation, touch),
        }
        if let Some(memories) = &names.memories {
            let id_of = |it: DeviceMemory| HUB.objects.id(names.slot(HandleType::DeviceMemory, it.0)?);
            // SAFETY: the contract of this function, which is that of `after`.
            unsafe { memories.after(command, params, result, id_of) };
        }
        if !is_read {
            return found;
        }
        self.thread.complete(call);
        // SAFETY: it is asked for `vkGetSemaphoreCounterValue` alone, where that succeeded; by the contract of this
        // function these are its parameters.
        if order.after.is_due(result, || unsafe { has_progressed(names, params) }) {
            HUB.threads.push_barrier(&self.thread);
            if let Some(memories) = &names.memories {
                memories.learned(&mut Teller {
                    listeners: entered.listeners(),
                    thread: &mut self.thread,
                    space: &mut self.space,
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
    unsafe fn learn(
        &mut self,
        names: &Names,
        command: Command,
        params: *const u8,
        outputs: &'static Layout,
        touch: Option<OrderEdge>,
    ) {
        let base = self.outputs.as_ptr().expose_provenance() as u64;
        // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
        let mut made = unsafe { handles_behind(outputs, base) };
        let is_new = command_makes(command);
        // What makes objects has structures only to say again what it was given: the layout of a pipeline, for one.
        if !is_new {
            // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
            made.extend(unsafe { handles_in_structures(outputs, base) });
        }
        made.retain(|it| it.is_behind_pointer);
        if made.is_empty() {
            return;
        }
        // SAFETY: the contract of this function: the parameters of the call that made these objects.
        let (parent, note) = unsafe { kin::of(names, command, params, made[0].ty) };
        for it in &made {
            let own = names.of(it.ty);
            if it.handle == 0 || !is_new && own.slot(it.ty, it.handle).is_some() {
                continue;
            }
            add(own, it.ty, it.handle, (parent, note), touch);
        }
        if is_studied(command) {
            // SAFETY: the contract of this function, which is that of `study`.
            unsafe { study(names, command, params, &made) };
        }
    }
}

/// A new object, last touched by the call that made it.
fn add(names: &Names, ty: HandleType, handle: u64, (parent, note): (ObjectParent, u32), touch: Option<OrderEdge>) {
    if let Some(slot) = names.add(ty, handle, parent, note)
        && let Some(touch) = touch
    {
        HUB.objects.set_last_edge(slot, touch);
    }
}

fn learn_deferred(names: &Names, operation: DeferredOperationKHR, touch: Option<OrderEdge>) {
    let learn = |pipeline| add(names, HandleType::Pipeline, pipeline, (ObjectParent::None, 0), touch);
    // SAFETY: `said` gives an operation only where a call found that it is complete. That call has not returned to the
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
unsafe fn walk(stream: &mut RecordBuffer, look: &Look<'_>, command: Command, params: *const u8, call: u64) {
    // SAFETY: the contract of this function: the VUIDs of the command make its pointers valid until the call returns.
    unsafe { Packer::new(look, look.names).enter(stream, command, params, call) };
}

fn command_makes(command: Command) -> bool {
    let name = command.desc().name;
    name.starts_with("vkCreate") || name.starts_with("vkAllocate") || name.starts_with("vkRegister")
}

fn is_studied(command: Command) -> bool {
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
unsafe fn study(names: &Names, command: Command, params: *const u8, made: &[Handle]) {
    let (mut stream, notes) = (RecordBuffer::default(), Notes::default());
    let look = Look { names, thread: 0, notes: &notes, is_ordered: false, recorder: None };
    // SAFETY: the contract of this function, which is that of `walk`.
    unsafe { walk(&mut stream, &look, command, params, 0) };
    if let Ok(record) = check(stream.words())
        && let Some(call) = Call::of(record)
    {
        let made: Vec<u64> = made.iter().map(|it| it.handle).collect();
        names.study(call, &made);
    }
}

/// Whether a semaphore's counter is another than at the last look.
///
/// # Safety
///
/// `params` must point to the parameters of a `vkGetSemaphoreCounterValue` that succeeded and has not returned to the
/// application.
unsafe fn has_progressed(names: &Names, params: *const u8) -> bool {
    // SAFETY: by the contract of this function these are the parameters of a `vkGetSemaphoreCounterValue`.
    let params = unsafe { &*params.cast::<GetSemaphoreCounterValueParams>() };
    // SAFETY: VUID-vkGetSemaphoreCounterValue-pValue-parameter: a place, which the call that succeeded has written.
    let value = unsafe { params.p_value.as_ptr().read() };
    let Some(slot) = names.slot(HandleType::Semaphore, params.semaphore.0) else { return true };
    HUB.objects.swap_user_data(slot, value as u32) != value as u32
}

/// What a call ends is known no more.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and was not passed on yet.
#[cold]
unsafe fn forget(names: &Names, command: Command, params: *const u8) {
    let desc = command.desc();
    let is_end = desc.name.starts_with("vkDestroy") || desc.name.starts_with("vkFree");
    let is_reset = command == Command::ResetDescriptorPool;
    if !is_end && !is_reset && command != Command::ReleasePerformanceConfigurationINTEL {
        return;
    }
    // What is destroyed comes last; before it stand the device and the pool. An empty list ends nothing.
    let Some(ended) = desc.parameters.work.iter().rev().find_map(handle_type) else { return };
    let base = params.expose_provenance() as u64;
    // SAFETY: the contract of this function: the image of a call of this command, whose layout this is.
    for it in unsafe { handles_behind(desc.parameters, base) }.into_iter().filter(|it| it.ty == ended) {
        let own = names.of(it.ty);
        match own.slot(it.ty, it.handle) {
            Some(pool) if is_reset => own.forget_children(pool),
            _ => own.forget(it.ty, it.handle),
        }
    }
}
