//! Performs the most frequent commands with their record as C memory, without a copy.
//!
//! Generated code checks the record. Then it replaces ids with handles, and offsets with addresses, inside the decoded
//! block (`marshal::in_place`). The driver gets these parameters. If there is a `pNext` chain, an omission, or an address
//! or queue family that differs on this device, `perform` performs the call instead.

use std::cell::Cell;
use std::sync::Arc;

use lavascope_abi::desc::{Field, Layout, Pointee, ResultKind, Ty};
use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_marshal::{HandleResolver, in_place};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader};

use crate::call::objects::ReplayObjects;
use crate::call::output_handles::returns_handles;
use crate::call::perform::{Performer, missing_command_text, result_name};
use crate::call::trampolines::Caller;
use crate::error::ReplayError;
use crate::generated::caller;
use crate::replay::{GLOBAL, Replay, lock};

/// Number of words before the parameters.
const FIRST: usize = HEADER_SIZE / 8;

/// How to perform a command with its record as C memory.
pub(crate) struct InPlaceCall {
    unpack: in_place::UnpackInPlace<InPlaceHandles>,
    call: Caller,
    command: Command,
    /// Whether it is recorded into a command buffer, and so never blocks.
    pub(crate) is_recorded: bool,
    operands: RemappedOperands,
}

/// Whether a command may have device addresses or queue families, which may differ on this device.
#[derive(Clone, Copy)]
struct RemappedOperands {
    has_addresses: bool,
    has_families: bool,
}

impl RemappedOperands {
    /// Whether they are the same on this device.
    #[inline]
    fn need_no_remap(self, replay: &Replay) -> bool {
        !(self.has_addresses && replay.addresses.needs_remap() || self.has_families && replay.families.needs_remap())
    }
}

impl InPlaceCall {
    /// None for commands that return more than a `VkResult`, or destroy objects.
    pub(crate) fn of(command: Command) -> Option<InPlaceCall> {
        let desc = command.desc();
        let is_known = desc.outputs.is_none_or(|output| {
            output.layout.fixups.is_empty()
                && output.layout.size == 8
                && matches!(output.result, ResultKind::Codes { .. })
        });
        let ends = ["vkDestroy", "vkFree"].iter().any(|it| desc.name.starts_with(it));
        if !is_known || ends || returns_handles(desc) {
            return None;
        }
        let is_recorded = desc.name.starts_with("vkCmd");
        use Command as C;
        let has_bytes =
            matches!(command, C::CmdPushConstants | C::CmdPushConstants2 | C::CmdPushDataEXT | C::CmdUpdateBuffer);
        let is_address = |it: &Field| matches!(it.ty, Ty::DeviceAddress);
        let is_family = |it: &Field| it.name.contains("ueueFamilyInd");
        Some(InPlaceCall {
            unpack: in_place::unpacker_for(command)?,
            call: caller(command),
            command,
            is_recorded,
            operands: RemappedOperands {
                has_addresses: has_bytes || has_field(desc.parameters, &is_address, 0),
                has_families: has_field(desc.parameters, &is_family, 0),
            },
        })
    }

    /// Whether its device addresses and queue families are the same on this device.
    #[inline]
    pub(crate) fn needs_no_remap(&self, replay: &Replay) -> bool {
        self.operands.need_no_remap(replay)
    }
}

/// Whether a structure has such a field, directly or in a structure to which it points.
fn has_field(layout: &Layout, is_it: &dyn Fn(&Field) -> bool, depth: u32) -> bool {
    const DEPTH_MAX: u32 = 8;
    let leads = |field: &Field| match field.ty {
        Ty::Struct(inner) => has_field(inner, is_it, depth + 1),
        Ty::Pointer(pointer) => match &pointer.to {
            Pointee::Struct(inner) => has_field(inner, is_it, depth + 1),
            Pointee::Values(ty) => matches!(ty, Ty::DeviceAddress),
            Pointee::Handle(_) => false,
            _ => true,
        },
        _ => false,
    };
    depth > DEPTH_MAX || layout.fields.iter().any(|it| is_it(it) || leads(it))
}

/// The result code of a record that has no other outputs.
pub(crate) fn only_code(head: RecordHeader, leave: &[u64]) -> Option<i32> {
    let code = *leave.get(FIRST)?;
    let is_plain = head.body_words as usize == FIRST + 1 && head.omissions == 0 && code >> 32 == 0;
    is_plain.then_some(code as u32 as i32)
}

/// The function and properties of a recorded command, from the last time this thread performed it.
#[derive(Clone, Copy)]
pub(crate) struct CachedCall {
    unpack: in_place::UnpackInPlace<InPlaceHandles>,
    call: Caller,
    command: Command,
    function: *const (),
    /// The object to which the function belongs.
    owner: u32,
    operands: RemappedOperands,
}

// SAFETY: the pointer is the address of a function of the driver, which any thread may call; nothing is read through it.
unsafe impl Send for CachedCall {}

/// The result of performing a cached command.
pub(crate) enum CachedOutcome {
    Done,
    /// Nothing was done.
    NotCached,
    /// The command names an object that does not exist.
    MissingObject(Command),
}

/// Finds handles, and stores ids that it did not find.
pub(crate) struct InPlaceHandles {
    objects: Arc<ReplayObjects>,
    missing: Cell<Option<ObjectId>>,
    /// The object of the last call, and its owner.
    last: Cell<(u64, u32)>,
}

impl InPlaceHandles {
    pub(crate) fn new(replay: &Replay) -> InPlaceHandles {
        InPlaceHandles { objects: replay.objects.clone(), missing: Cell::new(None), last: Cell::new((0, GLOBAL)) }
    }

    /// The owner of the functions for an object. Ids are never reused, so a cached answer stays correct.
    #[inline]
    fn owner(&self, subject: u64) -> u32 {
        let (last, owner) = self.last.get();
        if last == subject {
            return owner;
        }
        let found = ObjectId::from_raw(subject).and_then(|it| self.objects.find(it));
        let owner = found.map_or(GLOBAL, |it| it.owner);
        self.last.set((subject, owner));
        owner
    }
}

impl HandleResolver for InPlaceHandles {
    #[inline]
    fn handle(&self, id: ObjectId) -> u64 {
        if let Some(replay_object) = self.objects.find(id) {
            return replay_object.handle;
        }
        // The id was unknown at capture: the call does not use the object, or was invalid.
        if !id.is_unknown() {
            self.missing.set(Some(id));
        }
        0
    }
}

impl Performer<'_> {
    /// Performs a call with its record as C memory. Returns none if that is not possible, and then nothing was done.
    #[inline]
    pub(crate) fn call_in_place(
        &mut self,
        in_place_call: &InPlaceCall,
        head: (u64, u64),
        words: &mut [u64],
    ) -> Result<Option<u64>, ReplayError> {
        let size = RecordHeader::from_words(head.0, head.1).body_words as usize;
        let Some(record) = words.get_mut(..size).filter(|it| it.len() > FIRST) else {
            return Ok(None);
        };
        let subject = record[FIRST];
        if !(in_place_call.unpack)(record, &self.in_place_handles) {
            return Ok(None);
        }
        if let Some(id) = self.in_place_handles.missing.take() {
            return Err(self.call_error(head, in_place_call.command, format!("{id} does not exist at this point")));
        }
        let owner = self.in_place_handles.owner(subject);
        let Some(function) = self.function(owner, in_place_call.command) else {
            return self.skip_missing_command(head, in_place_call.command).map(|()| Some(0));
        };
        let image = record[FIRST..].as_ptr().cast::<u8>();
        if !in_place_call.is_recorded && subject >> 56 == HandleType::Queue as u64 {
            let queue = self.replay.queue_lock(record[FIRST]);
            let _guard = lock(&queue);
            // SAFETY: the function and parameters of this command, as below; the lock makes this thread the only one
            // that uses the queue (its host access must be externally synchronized).
            return Ok(Some(unsafe { (in_place_call.call)(function, image) }));
        }
        // SAFETY: `function` is the driver's for the command that `call` is made for. `unpack` checked the record and
        // made it C memory, and all objects that it names exist. That the values are valid usage is a promise of the
        // captured program: the replay makes its calls in the order of the trace, which keeps its external
        // synchronization.
        Ok(Some(unsafe { (in_place_call.call)(function, image) }))
    }

    /// From now on, the command is performed by its cached function.
    pub(crate) fn cache_call(&mut self, in_place_call: &InPlaceCall) {
        let owner = self.in_place_handles.last.get().1;
        let Some(function) = self.function(owner, in_place_call.command) else { return };
        let InPlaceCall { unpack, call, command, operands, .. } = *in_place_call;
        if self.cached_calls.is_empty() {
            self.cached_calls.resize(Command::ALL.len(), None);
        }
        self.cached_calls[command as usize] = Some(CachedCall { unpack, call, command, function, owner, operands });
    }

    /// Performs a recorded command with its cached function: [`Performer::call_in_place`] with all lookups done before.
    #[inline]
    pub(crate) fn call_cached(&self, head: (u64, u64), words: &mut [u64]) -> CachedOutcome {
        let RecordHeader { command, body_words, .. } = RecordHeader::from_words(head.0, head.1);
        let Some(Some(cached)) = self.cached_calls.get(usize::from(command)) else { return CachedOutcome::NotCached };
        let Some(record) = words.get_mut(..body_words as usize).filter(|it| it.len() > FIRST) else {
            return CachedOutcome::NotCached;
        };
        if !cached.operands.need_no_remap(self.replay) {
            return CachedOutcome::NotCached;
        }
        if self.in_place_handles.owner(record[FIRST]) != cached.owner
            || !(cached.unpack)(record, &self.in_place_handles)
        {
            return CachedOutcome::NotCached;
        }
        if self.in_place_handles.missing.get().is_some() {
            return CachedOutcome::MissingObject(cached.command);
        }
        // SAFETY: `function` is the one that `cache_call` found for this command and owner, and owners are never
        // used again. `unpack` checked the record and made it C memory, and all objects that it names exist. That the
        // values are valid usage is a promise of the captured program, whose order the replay keeps.
        unsafe { (cached.call)(cached.function, record[FIRST..].as_ptr().cast()) };
        CachedOutcome::Done
    }

    /// The error after [`Performer::call_cached`] found that an object does not exist.
    #[cold]
    pub(crate) fn missing_object_error(&self, head: (u64, u64), command: Command) -> ReplayError {
        let id = self.in_place_handles.missing.take().unwrap_or(ObjectId::NULL);
        self.call_error(head, command, format!("{id} does not exist at this point"))
    }

    /// Checks the result of a call that succeeded in the trace.
    pub(crate) fn expect_success(&self, head: (u64, u64), result: u64) -> Result<(), ReplayError> {
        let code = lavascope_abi::Result(result as u32 as i32);
        let command = RecordHeader::from_words(head.0, head.1).command;
        match Command::from_number(command).filter(|_| code.0 < 0) {
            Some(command) => Err(self.call_error(head, command, format!("the driver returned {}", result_name(code)))),
            None => Ok(()),
        }
    }

    #[cold]
    fn call_error(&self, head: (u64, u64), command: Command, what: String) -> ReplayError {
        let call = RecordHeader::from_words(head.0, head.1).call;
        ReplayError::Call { stream: self.stream, call, command: command.desc().name, what }
    }

    /// Skips a command that the driver does not support.
    #[cold]
    fn skip_missing_command(&self, head: (u64, u64), command: Command) -> Result<(), ReplayError> {
        // Debug names and labels do not change the result.
        if command.desc().provider.contains("debug") {
            return Ok(());
        }
        Err(self.call_error(head, command, missing_command_text(command)))
    }
}
