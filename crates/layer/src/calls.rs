//! What happens around an intercepted call: its record is made and given to whoever listens.
//!
//! Before the driver sees a call its parameters are packed and ordered after the calls of other threads that it
//! depends on; after it returned its outputs are packed, and new objects get their ids. No lock is held in between.

use std::cell::{Cell, RefCell};

use lavascope_abi::desc::{Access, Layout};
use lavascope_abi::*;
use lavascope_event::{Call, Touch, check};
use lavascope_marshal::{Ids, Packer, Stream, outputs_image, straight};
use lavascope_stream::{Keeper, Parent, Thread};

use crate::backtrace::Stacks;
use crate::breach;
use crate::deferred::{Said, said};
use crate::device::DeviceData;
use crate::dispatch::dispatch_key;
use crate::entry::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::fence::fence;
use crate::handles::{Handle, handle_type, handles_behind, handles_in_structures};
use crate::hub::{HUB, Hub};
use crate::inline::{self, Found, Moment};
use crate::instance::InstanceData;
use crate::kin;
use crate::memory::{Space, Teller};
use crate::messages::Answer;
use crate::names::Names;
use crate::order::{After, Order};
use crate::shim::Bits;
use crate::thread_end;

/// A thread of the application, and the space in which it makes records.
pub(crate) struct Local {
    thread: Thread,
    /// One record at a time.
    stream: Stream,
    outputs: Vec<u64>,
    notes: Notes,
    recorder: Option<Recorder>,
    stacks: Stacks,
    /// For records of what was written into memory.
    space: Space,
}

/// The command buffer that the thread recorded into last: mostly the one it records into next.
#[derive(Clone, Copy)]
struct Recorder {
    handle: u64,
    /// The generation in which this was true.
    generation: u64,
    owner: &'static DeviceData,
    id: ObjectId,
    keeper: Keeper<'static>,
}

/// What a command is called on, and the thread that calls it.
pub(crate) struct Called<T: 'static> {
    pub(crate) owner: &'static T,
    pub(crate) local: *mut Local,
    /// Whether it is a command buffer that the thread remembers.
    is_recording: bool,
}

/// # Safety
///
/// `handle` must be an instance or physical device that is alive.
pub(crate) unsafe fn instance_of(handle: u64) -> Option<Called<InstanceData>> {
    // SAFETY: the caller says so.
    let owner = WATCHED_INSTANCES.get(unsafe { dispatch_key(handle) })?;
    Some(Called { owner, local: local(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a device or queue that is alive.
pub(crate) unsafe fn device_of(handle: u64) -> Option<Called<DeviceData>> {
    // SAFETY: the caller says so.
    let owner = WATCHED_DEVICES.get(unsafe { dispatch_key(handle) })?;
    Some(Called { owner, local: local(), is_recording: false })
}

/// # Safety
///
/// `handle` must be a command buffer that is alive.
#[inline(always)]
pub(crate) unsafe fn recorder_of(handle: u64) -> Option<Called<DeviceData>> {
    let local = LOCAL.get();
    // SAFETY: the thread's own, if there is one.
    if let Some(Local { recorder: Some(it), .. }) = unsafe { local.as_ref() }
        && it.handle == handle
        && it.generation == HUB.generation()
    {
        return Some(Called { owner: it.owner, local, is_recording: true });
    }
    // SAFETY: the caller says so.
    unsafe { new_recorder_of(handle) }
}

#[inline(never)]
unsafe fn new_recorder_of(handle: u64) -> Option<Called<DeviceData>> {
    // Before the look-up, so that an end in between is noticed.
    let generation = HUB.generation();
    // SAFETY: the caller says so.
    let called = unsafe { device_of(handle) }?;
    if let Some(slot) = called.owner.names().slot(HandleType::CommandBuffer, handle)
        && let Some(id) = HUB.objects.id(slot)
    {
        let keeper = HUB.objects.keeper_of(slot);
        // SAFETY: the thread's own.
        unsafe { (*called.local).recorder = Some(Recorder { handle, generation, owner: called.owner, id, keeper }) };
    }
    Some(called)
}

/// What packing a call finds out about its objects.
#[derive(Default)]
struct Notes {
    /// Touches by other threads.
    touches: RefCell<Vec<u64>>,
    /// The first object that the call has to itself: all there is for recorded commands.
    first: Cell<Option<Keeper<'static>>>,
    more: RefCell<Vec<Keeper<'static>>>,
    /// Those of them that another thread had last, with its touch.
    taken_over: RefCell<Vec<(ObjectId, u64)>>,
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
        match fence("messages", tell, || Answer::Nobody) {
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
    let thread = HUB.threads.enlist(&HUB.wake);
    let local = Local {
        thread,
        stream: Stream::with_capacity(512),
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
        // SAFETY: made by `Box::into_raw` on this thread, and no call is under way.
        HUB.threads.retire(unsafe { Box::from_raw(local) }.thread);
    }
}

/// Gives objects their ids, and notes what the call must come after.
pub(crate) struct Look<'a> {
    names: &'a Names,
    thread: u32,
    notes: &'a Notes,
    /// Whether somebody wants to know what the call must come after.
    is_ordered: bool,
    recorder: Option<&'a Recorder>,
}

impl Ids for Look<'_> {
    #[inline(always)]
    fn id(&self, ty: HandleType, handle: u64, access: Access) -> ObjectId {
        if let (HandleType::CommandBuffer, Some(it)) = (ty, self.recorder)
            && it.handle == handle
        {
            return it.id;
        }
        let Some((id, slot)) = self.names.of(ty).object(ty, handle) else { return ObjectId::unknown(ty) };
        if !self.is_ordered {
            return id;
        }
        let keeper = HUB.objects.keeper_of(slot);
        let touch = keeper.last();
        let is_exclusive = access == Access::Exclusive && breach::is_exclusive(ty, slot);
        if touch != 0 && Touch::from_word(touch).thread != self.thread {
            self.notes.touches.borrow_mut().push(touch);
            if is_exclusive && !breach::is_shared(ty, slot) {
                self.notes.taken_over.borrow_mut().push((id, touch));
            }
        }
        if is_exclusive {
            self.notes.exclusive(keeper);
        }
        id
    }
}

impl Notes {
    /// Nothing was found out about the objects of the call.
    fn clear(&mut self) {
        self.touches.get_mut().clear();
        self.first.take();
        self.more.get_mut().clear();
        self.taken_over.get_mut().clear();
    }

    #[inline(always)]
    fn exclusive(&self, keeper: Keeper<'static>) {
        match self.first.get() {
            None => self.first.set(Some(keeper)),
            Some(_) => self.more.borrow_mut().push(keeper),
        }
    }

    #[inline(always)]
    fn touch_all(&self, by: Touch) {
        let Some(first) = self.first.take() else { return };
        first.touch(by);
        let mut more = self.more.borrow_mut();
        if !more.is_empty() {
            more.drain(..).for_each(|it| it.touch(by));
        }
    }
}

/// A thread's stream as a place to store records in.
pub(crate) struct InPlace<'a>(&'a mut Thread);

// SAFETY: `Thread::claim` gives room for so many words behind what is committed, and the thread is borrowed.
unsafe impl straight::Space for InPlace<'_> {
    #[inline(always)]
    fn claim(&mut self, words: usize) -> *mut u64 {
        self.0.claim(words)
    }

    #[inline(always)]
    unsafe fn written(&mut self, words: usize) -> &[u64] {
        // Claiming again gives the same words, since nothing was committed.
        let first = self.0.claim(words);
        // SAFETY: the caller says that they are written.
        unsafe { std::slice::from_raw_parts(first, words) }
    }
}

/// A call is about to be passed on. Straight code packs its parameters, unless there is something unusual in them:
/// into the stream where the record shall stay, or into a space apart. It gives the words of the record.
///
/// # Safety
///
/// `params` must be valid parameters of `command`.
#[inline(always)]
pub(crate) unsafe fn enter<T: Structure>(
    called: &Called<DeviceData>,
    command: Command,
    order: Order,
    params: &T,
    in_place: impl FnOnce(&mut InPlace<'_>, &Look<'_>, u64, &T) -> Option<usize>,
    apart: impl FnOnce(&mut Stream, &Look<'_>, u64, &T) -> Option<usize>,
) -> Entered {
    let listeners = HUB.listeners(called.owner.listeners);
    if listeners == 0 {
        return Entered::NOT;
    }
    let work = || {
        // SAFETY: the thread's own, and nobody else on this thread has it while we do not call out.
        let local = unsafe { &mut *called.local };
        let names = called.owner.names();
        if order.before {
            // SAFETY: the caller says that the parameters are valid.
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
                // SAFETY: the record was just written, and nothing was claimed since.
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
            // SAFETY: the caller says that the parameters are valid.
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
/// As for [`enter`].
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
        // SAFETY: as in `enter`.
        let local = unsafe { &mut *place };
        if order.before {
            // SAFETY: the caller says that the parameters are valid.
            unsafe { local.look_at_memory(listeners, names, command, params) };
        }
        let call = local.begin(listeners, order);
        let (thread, is_ordered) = (local.thread.number(), listeners & Hub::READS != 0);
        let look = Look { names, thread, notes: &local.notes, is_ordered, recorder: None };
        // SAFETY: the caller says that the parameters are valid.
        unsafe { walk(&mut local.stream, &look, command, params, call) };
        local.finish_enter(listeners, call, command, order);
        (Entered::new(place, call, listeners), local.validate(listeners))
    };
    let (entered, found) = fence(command, work, || (Entered::NOT, None));
    let entered = entered.after(found, names);
    if order.before && !entered.local.is_null() && !entered.is_given_up() {
        // Before the driver sees it: it may give the same handle to another thread at once.
        // SAFETY: the caller says that the parameters are valid.
        fence(command, || unsafe { forget(names, command, params) }, || ());
    }
    entered
}

/// A call that says nothing returned.
///
/// # Safety
///
/// `entered` must come from this call, on this thread.
#[inline(always)]
pub(crate) unsafe fn leave_silently(entered: Entered, order: Order) {
    // Who only prints needs no order.
    if entered.listeners() & Hub::READS == 0 {
        return;
    }
    // SAFETY: the thread's own; a call returns on the thread that made it.
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
/// As for [`enter`], and the call must have returned `result`.
#[inline(never)]
pub(crate) unsafe fn leave(
    entered: Entered,
    names: &Names,
    command: Command,
    order: Order,
    params: *const u8,
    result: u64,
) {
    if entered.local.is_null() {
        return;
    }
    // SAFETY: the thread's own, and the caller's word for the parameters.
    let work = || unsafe { (*entered.local).leave(names, command, order, params, result, entered) };
    if let Some(found) = fence(command, work, || None) {
        fence("messages", || _ = found.tell(names, Moment::AfterTheDriver), || ());
    }
}

/// Passes a call on, with what happens around it. For the commands that are intercepted by hand.
///
/// # Safety
///
/// As for [`enter`] and [`leave`]; `next` must make the call.
pub(crate) unsafe fn around<T: Structure, R: Bits>(
    names: &Names,
    wanted: u8,
    command: Command,
    params: &T,
    next: impl FnOnce() -> R,
) -> R {
    let (order, params) = (Order::of(command), std::ptr::from_ref(params).cast());
    // SAFETY: the caller's word.
    let entered = unsafe { enter_walking(names, wanted, command, order, params) };
    let result = next();
    if command.desc().outputs.is_some() {
        // SAFETY: as above, after the call.
        unsafe { leave(entered, names, command, order, params, result.bits()) };
    } else {
        // SAFETY: as above.
        unsafe { leave_silently(entered, order) };
    }
    result
}

impl Local {
    /// Begins a call and its record.
    #[inline(always)]
    fn begin(&mut self, listeners: u8, order: Order) -> u64 {
        if listeners & Hub::READS != 0 && order.before | self.thread.is_barrier_wanted() {
            self.thread.barrier(&HUB.threads);
        }
        self.stream.clear();
        self.thread.begin()
    }

    /// Before a call that may let the device read: what the host wrote comes first.
    #[cold]
    unsafe fn look_at_memory(&mut self, listeners: u8, names: &Names, command: Command, params: *const u8) {
        if let Some(memories) = &names.memories
            && listeners & (Hub::READS | Hub::INLINE) != 0
        {
            let mut teller = Teller { listeners, thread: &mut self.thread, space: &mut self.space };
            // SAFETY: the caller says that the parameters are valid.
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
        let own = self.thread.touch(call);
        if order.is_shared {
            return self.notes.clear();
        }
        self.notes.touch_all(own);
        for (object, last) in self.notes.taken_over.get_mut().drain(..) {
            breach::look(object, Touch::from_word(last), own, command);
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
        let last = self.recorder(is_recording).map_or(0, |it| it.keeper.last());
        let is_own = last == 0 || Touch::from_word(last).thread == self.thread.number();
        is_own && self.notes.touches.get_mut().is_empty() && self.thread.touches().is_empty()
    }

    /// The command buffer of a straight command is not noted while packing: it is always there, and always the call's
    /// own.
    #[inline(always)]
    fn touch_objects(&mut self, call: u64, is_recording: bool) {
        let by = self.thread.touch(call);
        if let Some(it) = self.recorder(is_recording) {
            it.keeper.touch(by);
        }
        self.notes.touch_all(by);
    }

    /// The same, where the record has touches or goes elsewhere.
    fn note_recorder(&mut self, is_recording: bool) {
        if let Some((id, keeper)) = self.recorder(is_recording).map(|it| (it.id, it.keeper)) {
            let last = keeper.last();
            self.notes.touches.get_mut().push(last);
            if last != 0 && Touch::from_word(last).thread != self.thread.number() {
                self.notes.taken_over.get_mut().push((id, last));
            }
            self.notes.exclusive(keeper);
        }
    }

    #[inline(always)]
    fn order_after_touches(&mut self) {
        let touches = self.notes.touches.get_mut();
        if !touches.is_empty() {
            touches.drain(..).for_each(|it| self.thread.after(it));
        }
    }

    /// Gives the record that was just made to whoever listens.
    #[inline(always)]
    fn give(&mut self, listeners: u8) {
        let record = self.stream.add_touches(self.thread.touches());
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
        let touch = is_read.then(|| self.thread.touch(call));
        // SAFETY: the caller says that the parameters are valid and the call returned.
        if unsafe { outputs_image(desc, params, result, &mut self.outputs) }
            && let Some(outputs) = desc.outputs
        {
            // SAFETY: as above.
            unsafe { self.learn(names, command, params, outputs.layout, touch) };
            self.stream.clear();
            // What a call returns is ordered by the call itself.
            let (thread, is_ordered) = (self.thread.number(), false);
            let look = Look { names, thread, notes: &self.notes, is_ordered, recorder: None };
            // SAFETY: the outputs were just gathered from valid parameters.
            unsafe { Packer::new(&look, names).leave(&mut self.stream, command, self.outputs.as_ptr().cast(), call) };
            self.give(entered.listeners());
            found = self.validate(entered.listeners());
        }
        // SAFETY: as above.
        match unsafe { said(command, params, result) } {
            Said::Nothing => {}
            // SAFETY: said of no other command.
            Said::Begun => names.deferred.begin(unsafe { &*params.cast() }),
            Said::Complete(operation) => learn_deferred(names, operation, touch),
        }
        if let Some(memories) = &names.memories {
            let id_of = |it: DeviceMemory| HUB.objects.id(names.slot(HandleType::DeviceMemory, it.0)?);
            // SAFETY: as above.
            unsafe { memories.after(command, params, result, id_of) };
        }
        if !is_read {
            return found;
        }
        self.thread.complete(call);
        // SAFETY: as above.
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
    unsafe fn learn(
        &mut self,
        names: &Names,
        command: Command,
        params: *const u8,
        outputs: &'static Layout,
        touch: Option<Touch>,
    ) {
        let base = self.outputs.as_ptr().expose_provenance() as u64;
        // SAFETY: the outputs are those of a call that returned.
        let mut made = unsafe { handles_behind(outputs, base) };
        let is_new = command_makes(command);
        // What makes objects has structures only to say again what it was given: the layout of a pipeline, for one.
        if !is_new {
            // SAFETY: as above.
            made.extend(unsafe { handles_in_structures(outputs, base) });
        }
        made.retain(|it| it.is_behind_pointer);
        if made.is_empty() {
            return;
        }
        // SAFETY: the parameters are those of the call.
        let (parent, note) = unsafe { kin::of(names, command, params, made[0].ty) };
        for it in &made {
            let own = names.of(it.ty);
            if it.handle == 0 || !is_new && own.slot(it.ty, it.handle).is_some() {
                continue;
            }
            add(own, it.ty, it.handle, (parent, note), touch);
        }
        if is_studied(command) {
            // SAFETY: as above.
            unsafe { study(names, command, params, &made) };
        }
    }
}

/// A new object, last touched by the call that made it.
fn add(names: &Names, ty: HandleType, handle: u64, (parent, note): (Parent, u32), touch: Option<Touch>) {
    if let Some(slot) = names.add(ty, handle, parent, note)
        && let Some(touch) = touch
    {
        HUB.objects.touch(slot, touch);
    }
}

fn learn_deferred(names: &Names, operation: DeferredOperationKHR, touch: Option<Touch>) {
    let learn = |pipeline| add(names, HandleType::Pipeline, pipeline, (Parent::None, 0), touch);
    // SAFETY: the call that says so has not returned to the application, and every such call comes here.
    unsafe { names.deferred.complete(operation.0, learn) };
}

/// Packs the parameters of a call by the tables.
#[inline(never)]
unsafe fn walk(stream: &mut Stream, look: &Look<'_>, command: Command, params: *const u8, call: u64) {
    // SAFETY: the caller says that the parameters are valid.
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
unsafe fn study(names: &Names, command: Command, params: *const u8, made: &[Handle]) {
    let (mut stream, notes) = (Stream::default(), Notes::default());
    let look = Look { names, thread: 0, notes: &notes, is_ordered: false, recorder: None };
    // SAFETY: the parameters are still those of the call.
    unsafe { walk(&mut stream, &look, command, params, 0) };
    if let Ok(record) = check(stream.words())
        && let Some(call) = Call::of(record)
    {
        let made: Vec<u64> = made.iter().map(|it| it.handle).collect();
        names.study(call, &made);
    }
}

/// Whether a semaphore's counter is another than at the last look.
unsafe fn has_progressed(names: &Names, params: *const u8) -> bool {
    // SAFETY: the caller has the parameters of a vkGetSemaphoreCounterValue that succeeded, so the value is there.
    let (semaphore, value) = unsafe {
        let params = &*params.cast::<GetSemaphoreCounterValueParams>();
        (params.semaphore, params.p_value.as_ptr().read())
    };
    let Some(slot) = names.slot(HandleType::Semaphore, semaphore.0) else { return true };
    HUB.objects.set_note(slot, value as u32) != value as u32
}

/// What a call ends is known no more.
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
    // SAFETY: the parameters are those of the call.
    for it in unsafe { handles_behind(desc.parameters, base) }.into_iter().filter(|it| it.ty == ended) {
        let own = names.of(it.ty);
        match own.slot(it.ty, it.handle) {
            Some(pool) if is_reset => own.forget_children(pool),
            _ => own.forget(it.ty, it.handle),
        }
    }
}
