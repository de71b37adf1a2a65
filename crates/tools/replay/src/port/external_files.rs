//! Fences, semaphores and memory that a program shares with itself by file descriptors.
//!
//! The replay exports where the program did, and imports what it exported itself. A descriptor is known by its number in
//! the trace, which is free for another one as soon as it was imported or closed. What comes from elsewhere, another
//! process or another interface, does not exist here:
//!
//! - a sync file counts as signaled, because what the program did afterwards was possible,
//! - a payload that others would signal cannot be waited for, so its import is an error that a plan names,
//! - memory is plain memory.

use std::sync::Mutex;
use std::time::Duration;

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use lavascope_platform::shared_memory::SharedMemory;
use lavascope_record::{Call, Outcome};
use rustc_hash::FxHashMap;

use crate::call::chain;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::device::ReplayDevice;
use crate::replay::lock;
use crate::schedule::device_waits::WaitLimit;

/// How long a wait for a sync file lasts before the replay checks whether waiting still makes sense.
const SLICE: Duration = Duration::from_millis(200);
/// What a sync file is that was signaled when it was made.
const SIGNALED: i32 = -1;

/// What the descriptors of the trace are here, by their numbers there.
#[derive(Default)]
pub(crate) struct ExternalFiles(Mutex<FxHashMap<i32, ExportedFile>>);

/// A descriptor that was exported, and is neither imported nor replaced.
struct ExportedFile {
    /// What it was exported from.
    subject: ObjectId,
    /// None in a plan, and for a sync file that was signaled already.
    file: Option<SharedMemory>,
}

/// What an export returned in the trace.
struct RecordedExport {
    subject: ObjectId,
    is_sync_file: bool,
    number: i32,
}

/// What an import asks for in the trace.
#[derive(Clone, Copy)]
struct RecordedImport {
    subject: ObjectId,
    is_sync_file: bool,
    is_temporary: bool,
    number: i32,
}

const OF_ANOTHER: &str =
    "it imports a file descriptor that no call of the trace exported: nothing would signal it here";

fn id(raw: u64) -> ObjectId {
    ObjectId::from_raw(raw).unwrap_or(ObjectId::NULL)
}

fn recorded_export(done: &RecordedCall<'_>) -> Option<RecordedExport> {
    let outcome = done.leave.filter(|_| !done.has_failed()).and_then(Outcome::of)?;
    let (subject, is_sync_file, number) = match (Call::of(done.enter)?, outcome) {
        (Call::GetFenceFdKHR(call), Outcome::GetFenceFdKHR(outcome)) => {
            let info = call.p_get_fd_info()?;
            let sync = vk::ExternalFenceHandleTypeFlagBits::SYNC_FD;
            (info.fence.0, info.handle_type == sync, *outcome.p_fd()?)
        }
        (Call::GetSemaphoreFdKHR(call), Outcome::GetSemaphoreFdKHR(outcome)) => {
            let info = call.p_get_fd_info()?;
            let sync = vk::ExternalSemaphoreHandleTypeFlagBits::SYNC_FD;
            (info.semaphore.0, info.handle_type == sync, *outcome.p_fd()?)
        }
        (Call::GetMemoryFdKHR(call), Outcome::GetMemoryFdKHR(outcome)) => {
            (call.p_get_fd_info()?.memory.0, false, *outcome.p_fd()?)
        }
        _ => return None,
    };
    Some(RecordedExport { subject: id(subject), is_sync_file, number })
}

fn recorded_import(done: &RecordedCall<'_>) -> Option<RecordedImport> {
    match Call::of(done.enter)? {
        Call::ImportFenceFdKHR(call) => call.p_import_fence_fd_info().map(|info| RecordedImport {
            subject: id(info.fence.0),
            is_sync_file: info.handle_type == vk::ExternalFenceHandleTypeFlagBits::SYNC_FD,
            is_temporary: info.flags.0 & vk::FenceImportFlags::TEMPORARY.0 != 0,
            number: info.fd,
        }),
        Call::ImportSemaphoreFdKHR(call) => call.p_import_semaphore_fd_info().map(|info| RecordedImport {
            subject: id(info.semaphore.0),
            is_sync_file: info.handle_type == vk::ExternalSemaphoreHandleTypeFlagBits::SYNC_FD,
            is_temporary: info.flags.0 & vk::SemaphoreImportFlags::TEMPORARY.0 != 0,
            number: info.fd,
        }),
        _ => None,
    }
}

impl ExternalFiles {
    /// An older entry of this number was closed by the program, and is closed here.
    fn insert(&self, number: i32, exported: ExportedFile) {
        if number >= 0 {
            lock(&self.0).insert(number, exported);
        }
    }

    fn take(&self, number: i32) -> Option<ExportedFile> {
        lock(&self.0).remove(&number)
    }
}

/// An export: of a fence, a semaphore or memory.
pub(crate) fn export(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(recorded) = recorded_export(done) else { return Ok(()) };
    let is_memory = done.command() == vk::Command::GetMemoryFdKHR;
    if is_memory && !shares_memory(&*performer.device(done)?) {
        return Ok(());
    }
    let laid = performer.unpack(done)?;
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. Those of the three commands are the same, and `unpack`
    // made room for the descriptor.
    let handle = unsafe {
        let image = &*laid.image.cast::<vk::GetFenceFdKHRParams>();
        performer.required(done, image.p_fd)?.read()
    };
    // SAFETY: the driver has just made the descriptor for its caller.
    let file = (handle >= 0).then(|| unsafe { SharedMemory::from_handle(handle.into()) });
    if recorded.is_sync_file {
        performer.replay.held_submissions.take_signal(recorded.subject);
    }
    if recorded.number == SIGNALED {
        // In the trace, the work was complete at this point, and the program may have relied on that.
        return file.map_or(Ok(()), |it| wait_for_sync_file(performer, done, &it));
    }
    performer.replay.external_files.insert(recorded.number, ExportedFile { subject: recorded.subject, file });
    Ok(())
}

fn wait_for_sync_file(
    performer: &Performer<'_>,
    done: &RecordedCall<'_>,
    sync_file: &SharedMemory,
) -> Result<(), ReplayError> {
    let mut waiting = performer.begin_wait(done, "the device", WaitLimit::Sliced);
    while !sync_file.wait_until_ready(SLICE).map_err(|it| performer.error(done, it.to_string()))? {
        waiting.check()?;
    }
    Ok(())
}

/// An import into a fence or a semaphore.
pub(crate) fn import(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(recorded) = recorded_import(done).filter(|_| !done.has_failed()) else { return Ok(()) };
    let exported = performer.replay.external_files.take(recorded.number);
    if exported.is_none() && !recorded.is_sync_file {
        return Err(performer.error(done, OF_ANOTHER));
    }
    let subject = exported.as_ref().map(|it| it.subject);
    let handle = exported.and_then(|it| it.file).map(SharedMemory::into_handle);
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. The structure that one of them leads to is not null;
    // it lies in the arena, and nobody else refers to it.
    unsafe {
        let fd = handle.map_or(SIGNALED, |it| it as i32);
        match done.command() {
            vk::Command::ImportFenceFdKHR => {
                let image = &*laid.image.cast::<vk::ImportFenceFdKHRParams>();
                (*performer.required(done, image.p_import_fence_fd_info)?).fd = fd;
            }
            _ => {
                let image = &*laid.image.cast::<vk::ImportSemaphoreFdKHRParams>();
                (*performer.required(done, image.p_import_semaphore_fd_info)?).fd = fd;
            }
        }
    }
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)?;
    match subject.filter(|_| !recorded.is_sync_file) {
        Some(subject) => {
            performer.replay.held_submissions.share_payload(recorded.subject, (subject, recorded.is_temporary));
            Ok(())
        }
        None if performer.device(done)?.shares_queues => performer.note_semaphore_signal(recorded.subject, 0),
        None => Ok(()),
    }
}

/// Whether memory of this device is shared as in the trace: on another device it may have other types and sizes.
fn shares_memory(device: &ReplayDevice) -> bool {
    !device.is_other_device && !device.mapping.missing_extensions.iter().any(|it| it == "VK_KHR_external_memory_fd")
}

/// How the chain of an allocation is changed.
pub(crate) struct SharedAllocation {
    /// Whether the request to be exported stays.
    pub(crate) is_exportable: bool,
    /// Whether the memory is one that exists already.
    pub(crate) is_import: bool,
}

/// Imports memory that the replay exported itself.
///
/// # Safety
///
/// `info` must lead to a structure with a valid chain, all of it writable and referred to by nobody else.
pub(crate) unsafe fn import_memory(
    performer: &Performer<'_>,
    device: &ReplayDevice,
    info: *mut vk::MemoryAllocateInfo,
) -> SharedAllocation {
    let is_exportable = shares_memory(device);
    // SAFETY: by the contract of this function; `find` gives a structure of the type that it is asked for.
    let Some(import) = (unsafe { chain::find::<_, vk::ImportMemoryFdInfoKHR>(info) }) else {
        return SharedAllocation { is_exportable, is_import: false };
    };
    // SAFETY: it lies in the chain, which nobody else refers to by the contract of this function.
    let import = unsafe { &mut *import };
    let exported = performer.replay.external_files.take(import.fd);
    let handle = exported.and_then(|it| it.file).map(SharedMemory::into_handle);
    import.fd = handle.map_or(SIGNALED, |it| it as i32);
    if handle.is_none() {
        performer.replay.remark("memory that was shared by a file descriptor is memory of its own here".to_owned());
    }
    SharedAllocation { is_exportable, is_import: handle.is_some() }
}

/// An export or import that a plan finds: what the driver does not have, and why it could not be performed.
pub(crate) fn plan(performer: &Performer<'_>, done: &RecordedCall<'_>) -> Option<&'static str> {
    let files = &performer.replay.external_files;
    if let Some(RecordedExport { subject, number, .. }) = recorded_export(done) {
        files.insert(number, ExportedFile { subject, file: None });
        return None;
    }
    let recorded = recorded_import(done).filter(|_| !done.has_failed())?;
    (files.take(recorded.number).is_none() && !recorded.is_sync_file).then_some(OF_ANOTHER)
}

/// Memory that a plan finds to be imported, if this device cannot share it as in the trace.
pub(crate) fn plan_memory(
    performer: &Performer<'_>,
    device: &ReplayDevice,
    done: &RecordedCall<'_>,
) -> Option<&'static str> {
    let Some(Call::AllocateMemory(call)) = Call::of(done.enter).filter(|_| !done.has_failed()) else { return None };
    let import = call.p_allocate_info()?.chained::<vk::ImportMemoryFdInfoKHR>()?;
    let is_own = performer.replay.external_files.take(import.fd).is_some();
    (is_own && !shares_memory(device)).then_some("this device cannot share the memory as in the trace")
}
