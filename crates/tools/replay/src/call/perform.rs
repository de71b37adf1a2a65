//! Performs one call: unpacks it as C memory with the handles of this device, calls the driver, and assigns ids to new
//! objects.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lavascope_abi::desc::{Blob, CommandLevel, Fixup, Pointee, ResultKind};
use lavascope_abi::{Command, HandleType, ObjectId, Ptr, SpecializationMapEntry};
use lavascope_marshal::{Arena, HandleResolver, UnpackPurpose, Unpacker};
use lavascope_record::encoding::{HEADER_SIZE, Record};
use lavascope_record::walk::StructFrame;

use crate::call::functions::Functions;
use crate::call::handlers::CommandHandler;
use crate::call::in_place_call::{CachedCall, InPlaceHandles};
use crate::call::objects::{ReplayObject, ReplayObjects};
use crate::call::output_handles::{match_output_handles, returns_handles};
use crate::error::ReplayError;
use crate::generated::caller;
use crate::memory::host_memory::HostMemory;
use crate::port::device::ReplayDevice;
use crate::port::device_addresses::DeviceAddressMap;
use crate::port::queue_families::QueueFamilyMap;
use crate::replay::{GLOBAL, Replay, lock};

/// A complete call of the trace.
pub(crate) struct RecordedCall<'r> {
    pub(crate) enter: Record<'r>,
    /// None for a command without result and outputs.
    pub(crate) leave: Option<Record<'r>>,
}

impl RecordedCall<'_> {
    pub(crate) fn command(&self) -> Command {
        self.enter.command()
    }

    /// The result code in the trace; success if it returned none.
    pub(crate) fn code(&self) -> i32 {
        let kind = self.command().desc().outputs.map(|it| it.result);
        match (kind, self.leave) {
            (Some(ResultKind::Codes { .. }), Some(leave)) => word(leave.words(), 0) as u32 as i32,
            _ => 0,
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.code() < 0
    }

    /// The first parameter: the object on which the command is called.
    pub(crate) fn first_object(&self) -> ObjectId {
        ObjectId::from_raw(word(self.enter.words(), 0)).unwrap_or(ObjectId::NULL)
    }
}

/// A word of a body.
fn word(words: &[u64], at: usize) -> u64 {
    words.get(HEADER_SIZE / 8 + at).copied().unwrap_or(0)
}

/// Finds handles, and stores ids that it did not find.
struct HandleLookup<'a> {
    objects: &'a ReplayObjects,
    addresses: &'a DeviceAddressMap,
    families: &'a QueueFamilyMap,
    host_memory: &'a HostMemory,
    missing: Cell<Option<ObjectId>>,
}

impl HandleResolver for HandleLookup<'_> {
    fn has_addresses(&self) -> bool {
        self.addresses.needs_remap()
    }

    fn has_patched_bytes(&self) -> bool {
        self.addresses.needs_remap() || self.addresses.blobs.needs_remap()
    }

    fn patch_bytes(&self, first: u64, bytes: &mut [u8]) {
        self.addresses.patch(first, bytes);
    }

    fn patch_constants(&self, entries: &[SpecializationMapEntry], bytes: &mut [u8]) {
        self.addresses.patch_constants(entries, bytes);
    }

    fn blob_size(&self, blob: Blob, _owner: &StructFrame<'_>) -> Option<u32> {
        // `host_image_copy` provides the memory.
        (blob == Blob::HostImage).then_some(0)
    }

    fn host_contents(&self, region: u64) -> Option<u64> {
        self.host_memory.address(region)
    }

    fn has_families(&self) -> bool {
        self.families.needs_remap()
    }

    fn family(&self, recorded: u32) -> u32 {
        self.families.remap(recorded)
    }

    fn address(&self, recorded: u64) -> u64 {
        self.addresses.remap(recorded).unwrap_or(recorded)
    }

    fn handle(&self, id: ObjectId) -> u64 {
        // The id was unknown at capture: the call does not use the object, or was invalid.
        if id.is_unknown() {
            return 0;
        }
        match self.objects.find(id) {
            Some(replay_object) => replay_object.handle,
            None => {
                self.missing.set(Some(id));
                0
            }
        }
    }
}

/// The state with which one thread performs calls.
pub(crate) struct Performer<'a> {
    pub(crate) replay: &'a Replay,
    pub(crate) stream: u32,
    pub(crate) arena: Arena,
    /// The host memory that the next call reads.
    pub(crate) host_memory: HostMemory,
    /// The functions of each owner that this thread has used.
    functions: Vec<Option<Arc<Functions>>>,
    pub(crate) in_place_handles: InPlaceHandles,
    /// By command number; empty until a command is cached.
    pub(crate) cached_calls: Vec<Option<CachedCall>>,
    /// When the current call began and returned in the trace, in ticks.
    recorded_span: (u64, u64),
}

/// A call laid out as C memory, which [`Performer::unpack`] makes.
///
/// `image` holds the parameters of the record's command, aligned to eight. It lies in the arena of the performer, and
/// is valid, writable and referred to by nobody else until the next `unpack` clears that arena. The pointers in it are
/// null, or lead to as many elements as the counts beside them say, which lie in the arena too.
#[derive(Clone, Copy)]
pub(crate) struct UnpackedCall {
    pub(crate) image: *mut u8,
    pub(crate) owner: u32,
}

impl<'a> Performer<'a> {
    pub(crate) fn new(replay: &'a Replay, stream: u32) -> Performer<'a> {
        Performer {
            replay,
            stream,
            arena: Arena::default(),
            host_memory: HostMemory::default(),
            functions: Vec::new(),
            in_place_handles: InPlaceHandles::new(replay),
            cached_calls: Vec::new(),
            recorded_span: (0, 0),
        }
    }

    /// Notes when a call began and returned in the trace.
    #[inline]
    pub(crate) fn note_times(&mut self, command: u16, began: u64, returned: u64) {
        self.recorded_span = (began, returned);
        let is_submission = matches!(
            Command::from_number(command),
            Some(Command::QueueSubmit | Command::QueueSubmit2 | Command::QueueBindSparse)
        );
        if is_submission {
            self.replay.last_submission.store(returned, Ordering::Relaxed);
        }
    }

    /// How long the current call waited in the trace. A program may wait by asking again and again, so the time counts
    /// from the last submission, if that was before the call.
    pub(crate) fn recorded_wait(&self) -> Duration {
        let (began, returned) = self.recorded_span;
        let ticks = returned.saturating_sub(began.min(self.replay.last_submission.load(Ordering::Relaxed)));
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.replay.ticks_per_second);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    pub(crate) fn perform(&mut self, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
        let result = match self.replay.handlers.of(recorded_call.command()).handler {
            CommandHandler::Skip => Ok(()),
            CommandHandler::Unchanged => self.perform_unchanged(recorded_call),
            CommandHandler::Custom(special) => special(self, recorded_call),
        };
        result.or_else(|it| self.replay.skip_call(it))
    }

    pub(crate) fn error(&self, recorded_call: &RecordedCall<'_>, what: impl Into<String>) -> ReplayError {
        let (call, command) = (recorded_call.enter.call_number(), recorded_call.command().desc().name);
        ReplayError::Call { stream: self.stream, call, command, what: what.into() }
    }

    /// Performs a call without changes.
    pub(crate) fn perform_unchanged(&mut self, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
        if recorded_call.has_failed() {
            return Ok(());
        }
        let unpacked = self.unpack(recorded_call)?;
        let result = self.call(recorded_call, unpacked)?;
        self.host_memory.clear();
        self.finish_call(recorded_call, unpacked, result)
    }

    /// Unpacks the parameters as C memory, which is valid until the next call is unpacked.
    pub(crate) fn unpack(&mut self, recorded_call: &RecordedCall<'_>) -> Result<UnpackedCall, ReplayError> {
        self.arena.clear();
        let Replay { objects, addresses, families, .. } = self.replay;
        let lookup =
            HandleLookup { objects, addresses, families, host_memory: &self.host_memory, missing: Cell::new(None) };
        let unpacker = Unpacker { handles: &lookup, purpose: UnpackPurpose::Driver };
        let image = unpacker.unpack(recorded_call.enter, &mut self.arena);
        if let Some(id) = lookup.missing.get() {
            return Err(self.error(recorded_call, format!("{id} does not exist at this point")));
        }
        let image = image.map_err(|it| self.error(recorded_call, it.to_string()))?;
        let owner = match recorded_call.command().desc().level {
            CommandLevel::Global => GLOBAL,
            _ => self.owner(recorded_call)?,
        };
        Ok(UnpackedCall { image, owner })
    }

    /// The memory that a required pointer parameter refers to. A record may have null there: its check knows the format
    /// of a record, but not what a command requires.
    pub(crate) fn required<T>(&self, recorded_call: &RecordedCall<'_>, pointer: Ptr<T>) -> Result<*mut T, ReplayError> {
        match pointer.is_null() {
            true => Err(self.error(recorded_call, "it has a null pointer instead of a structure")),
            false => Ok(pointer.as_mut_ptr()),
        }
    }

    /// The memory of an array parameter.
    pub(crate) fn elements<T>(
        &self,
        recorded_call: &RecordedCall<'_>,
        (first, count): (Ptr<T>, u32),
    ) -> Result<impl Iterator<Item = *mut T> + use<T>, ReplayError> {
        let first = if count == 0 { first.as_mut_ptr() } else { self.required(recorded_call, first)? };
        Ok((0..count as usize).map(move |at| first.wrapping_add(at)))
    }

    pub(crate) fn owner(&self, recorded_call: &RecordedCall<'_>) -> Result<u32, ReplayError> {
        let subject = recorded_call.first_object();
        let found = self.replay.objects.find(subject);
        found
            .map(|it| it.owner)
            .ok_or_else(|| self.error(recorded_call, format!("{subject} does not exist at this point")))
    }

    /// Calls the driver.
    pub(crate) fn call(
        &mut self,
        recorded_call: &RecordedCall<'_>,
        unpacked: UnpackedCall,
    ) -> Result<u64, ReplayError> {
        let command = recorded_call.command();
        let Some(function) = self.function(unpacked.owner, command) else {
            // Debug names and labels do not change the result.
            if command.desc().block.contains("debug") {
                return Ok(0);
            }
            return Err(self.error(recorded_call, missing_command_text(command)));
        };
        if recorded_call.first_object().ty() == Some(HandleType::Queue) {
            // SAFETY: the subject is the first parameter of the image, which is a handle of eight bytes.
            let queue = self.replay.queue_lock(unsafe { unpacked.image.cast::<u64>().read() });
            let _guard = lock(&queue);
            // SAFETY: `caller` is that of the command whose function and parameters these are, as below; the lock makes
            // this thread the only one that uses the queue (its host access must be externally synchronized).
            return Ok(unsafe { caller(command)(function, unpacked.image) });
        }
        // SAFETY: `function` is the driver's for this command and `unpacked` holds its parameters: the record was checked,
        // and `unpack` refused ids of objects that do not exist. That the values are valid usage is a promise of the
        // captured program: the replay makes its calls in the order of the trace, which keeps its external
        // synchronization.
        Ok(unsafe { caller(command)(function, unpacked.image) })
    }

    pub(crate) fn function(&mut self, owner: u32, command: Command) -> Option<*const ()> {
        let at = owner as usize;
        if self.functions.len() <= at {
            self.functions.resize(at + 1, None);
        }
        if self.functions[at].is_none() {
            self.functions[at] = self.replay.functions(owner);
        }
        self.functions[at].as_ref()?.get(command)
    }

    /// After the driver has returned: reports a failure, assigns ids to new objects, and forgets destroyed ones.
    pub(crate) fn finish_call(
        &mut self,
        recorded_call: &RecordedCall<'_>,
        unpacked: UnpackedCall,
        result: u64,
    ) -> Result<(), ReplayError> {
        let desc = recorded_call.command().desc();
        if matches!(desc.outputs.map(|it| it.result), Some(ResultKind::Codes { .. })) && (result as u32 as i32) < 0 {
            let code = lavascope_abi::Result(result as u32 as i32);
            return Err(self.error(recorded_call, format!("the driver returned {}", result_name(code))));
        }
        if let Some(leave) = recorded_call.leave.filter(|_| returns_handles(desc)) {
            // SAFETY: `unpacked` holds the parameters of the call of this command that has just returned `result`.
            let made = unsafe { match_output_handles(leave, unpacked.image, result, &mut self.arena) };
            let made = made.ok_or_else(|| self.error(recorded_call, "it returns other objects than in the trace"))?;
            for (id, handle) in made {
                self.add_object(recorded_call, id, ReplayObject { handle, owner: unpacked.owner })?;
            }
        }
        self.remove_destroyed(recorded_call);
        Ok(())
    }

    pub(crate) fn add_object(
        &self,
        recorded_call: &RecordedCall<'_>,
        id: ObjectId,
        object: ReplayObject,
    ) -> Result<(), ReplayError> {
        match self.replay.objects.insert(id, object) {
            true => Ok(()),
            false => Err(self.error(recorded_call, format!("{id} is not a valid object"))),
        }
    }

    /// Forgets the objects that a call destroys.
    pub(crate) fn remove_destroyed(&self, recorded_call: &RecordedCall<'_>) {
        let desc = recorded_call.command().desc();
        if !desc.name.starts_with("vkDestroy") && !desc.name.starts_with("vkFree") {
            return;
        }
        // The destroyed objects come last, after the device and the pool.
        let body = recorded_call.enter.body();
        let word_at = |at: usize| {
            let bytes = body.get(at..at + 8)?;
            Some(u64::from_le_bytes(std::array::from_fn(|it| bytes[it])))
        };
        for fixup in desc.parameters.fixups.iter().rev() {
            match fixup {
                Fixup::Handles { at, .. } => {
                    let id = word_at(HEADER_SIZE + *at as usize).and_then(ObjectId::from_raw);
                    id.into_iter().for_each(|it| self.replay.objects.remove(it));
                    return;
                }
                Fixup::Pointer { at, pointer } if matches!(pointer.to, Pointee::Handle(_)) => {
                    let first = word_at(HEADER_SIZE + *at as usize).unwrap_or(0) as usize;
                    let count = lavascope_record::rules::count(
                        &lavascope_record::memory::RecordMemory { body },
                        &lavascope_record::walk::StructFrame::root(desc.parameters, HEADER_SIZE as u64),
                        pointer.len,
                        0,
                    );
                    let ids = (0..count.unwrap_or(0) as usize).filter_map(|it| word_at(first + it * 8));
                    ids.filter_map(ObjectId::from_raw).for_each(|it| self.replay.objects.remove(it));
                    return;
                }
                _ => {}
            }
        }
    }

    /// The device on which a call is made.
    pub(crate) fn device(&self, recorded_call: &RecordedCall<'_>) -> Result<Arc<ReplayDevice>, ReplayError> {
        let owner = self.owner(recorded_call)?;
        self.replay.device(owner).ok_or_else(|| self.error(recorded_call, "its device does not exist at this point"))
    }

    /// The handle of an object that a call needs; null stays null.
    pub(crate) fn handle(&self, recorded_call: &RecordedCall<'_>, raw: u64) -> Result<u64, ReplayError> {
        match ObjectId::from_raw(raw) {
            Some(id) if id.is_null() || id.is_unknown() => Ok(0),
            Some(id) => match self.replay.objects.find(id) {
                Some(replay_object) => Ok(replay_object.handle),
                None => Err(self.error(recorded_call, format!("{id} does not exist at this point"))),
            },
            None => Ok(0),
        }
    }
}

/// Why a command cannot be called.
pub(crate) fn missing_command_text(command: Command) -> String {
    format!("this driver does not have it; it needs {}", command.desc().block)
}

/// The name of a result code.
pub(crate) fn result_name(code: lavascope_abi::Result) -> String {
    let known = lavascope_abi::command_by_name("vkDeviceWaitIdle").and_then(|it| it.desc().outputs);
    let field = known.and_then(|it| it.layout.fields.first());
    let name = match field.map(|it| it.ty) {
        Some(lavascope_abi::desc::Ty::Enum(desc)) => desc.values.iter().find(|it| it.0 == i64::from(code.0)),
        _ => None,
    };
    name.map_or_else(|| format!("code {}", code.0), |it| it.1.to_owned())
}

#[cfg(test)]
mod tests {
    use lavascope_abi as vk;
    use lavascope_abi::desc::HandleAccess;
    use lavascope_marshal::{IdResolver, Packer, RecordBuffer};
    use lavascope_record::pack_context::NoPackContext;

    use super::*;
    use crate::options::ReplayOptions;
    use crate::replay::RunMode as ReplayPurpose;

    /// Resolves no id.
    struct NoIds;

    impl IdResolver for NoIds {
        fn id(&self, ty: HandleType, _handle: u64, _access: HandleAccess) -> ObjectId {
            ObjectId::unknown(ty)
        }
    }

    #[test]
    fn a_record_with_a_null_pointer_that_the_call_needs_is_an_error() {
        let replay = Replay::new(ReplayOptions::default(), ReplayPurpose::Perform, (Vec::new(), 1), &[0]);
        let replay = replay.expect("there is a loader");
        let mut instance = vk::Instance(0);
        let parameters = vk::CreateInstanceParams {
            p_create_info: Ptr::NULL,
            p_allocator: Ptr::NULL,
            p_instance: crate::port::instance::out(&mut instance),
        };
        let mut packer = Packer::new(&NoIds, &NoPackContext);
        let mut stream = RecordBuffer::default();
        // SAFETY: the parameters of this command, one of which leads to a handle of this stack frame; the others are
        // null.
        let words =
            unsafe { packer.pack_parameters(&mut stream, Command::CreateInstance, (&raw const parameters).cast(), 0) };
        let recorded_call =
            RecordedCall { enter: lavascope_record::check(words).expect("it is well formed"), leave: None };
        let result = Performer::new(&replay, 0).perform(&recorded_call);
        let message = result.expect_err("nothing can be created of it").to_string();
        assert!(message.contains("a null pointer instead of a structure"), "{message}");
    }
}
