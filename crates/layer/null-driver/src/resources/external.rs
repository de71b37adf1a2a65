//! File descriptors of fences and semaphores, and what can be shared at all.
//!
//! A descriptor is an empty file of its own, by whose number a payload is found again. That works inside one process;
//! in another one an import is a payload of its own. A sync file is none at all, which means "signaled already".

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lavascope_abi::*;
use lavascope_platform::shared_memory::SharedMemory;

use crate::calls::application_memory::ApplicationMemory;
use crate::execution::queue_engine;
use crate::execution::sync::{FENCES, SEMAPHORES};

/// Payloads that were exported, by the number of their file.
type Exported<T> = Mutex<BTreeMap<u64, Weak<T>>>;

static EXPORTED_FENCES: Exported<queue_engine::FencePayload> = Mutex::new(BTreeMap::new());
static EXPORTED_SEMAPHORES: Exported<queue_engine::SemaphorePayload> = Mutex::new(BTreeMap::new());

pub(crate) fn get_fence_fd_khr(c: ApplicationMemory<'_>, call: &GetFenceFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_get_fd_info) else { return Result::ERROR_UNKNOWN };
    let Some(fence) = FENCES.get(info.fence.0) else { return Result::ERROR_UNKNOWN };
    if info.handle_type.0 == ExternalFenceHandleTypeFlags::SYNC_FD.0 {
        fence.is_signaled.store(false, Ordering::Release);
        c.write(call.p_fd, -1);
        return Result::SUCCESS;
    }
    export_fd(c, call.p_fd, &EXPORTED_FENCES, Arc::downgrade(&fence))
}

pub(crate) fn get_semaphore_fd_khr(c: ApplicationMemory<'_>, call: &GetSemaphoreFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_get_fd_info) else { return Result::ERROR_UNKNOWN };
    let Some(semaphore) = SEMAPHORES.get(info.semaphore.0) else { return Result::ERROR_UNKNOWN };
    if info.handle_type.0 == ExternalSemaphoreHandleTypeFlags::SYNC_FD.0 {
        if !semaphore.is_timeline {
            semaphore.value.store(0, Ordering::Release);
        }
        c.write(call.p_fd, -1);
        return Result::SUCCESS;
    }
    export_fd(c, call.p_fd, &EXPORTED_SEMAPHORES, Arc::downgrade(&semaphore))
}

fn export_fd<T>(c: ApplicationMemory<'_>, to: Ptr<i32>, exported: &Exported<T>, payload: Weak<T>) -> Result {
    let file = SharedMemory::new(0);
    let made = file.and_then(|it| Ok((it.number()?, it.to_handle()?)));
    let Ok((number, handle)) = made else { return Result::ERROR_TOO_MANY_OBJECTS };
    let mut exported = exported.lock().unwrap_or_else(PoisonError::into_inner);
    exported.retain(|_, it| it.strong_count() > 0);
    exported.insert(number, payload);
    c.write(to, handle as i32);
    Result::SUCCESS
}

/// Forgets exported payloads that are gone. An empty map still has memory, which an unloaded driver would lose.
pub(crate) fn remove_dead_exports() {
    fn clean<T>(exported: &Exported<T>) {
        let mut exported = exported.lock().unwrap_or_else(PoisonError::into_inner);
        exported.retain(|_, it| it.strong_count() > 0);
        if exported.is_empty() {
            *exported = BTreeMap::new();
        }
    }
    clean(&EXPORTED_FENCES);
    clean(&EXPORTED_SEMAPHORES);
}

/// The payload behind an imported descriptor, which is ours from now on.
fn import_fd<T>(fd: i32, exported: &Exported<T>) -> Option<Arc<T>> {
    if fd < 0 {
        return None;
    }
    // SAFETY: the application gives the descriptor away with the import, by the extension's rules.
    let file = unsafe { SharedMemory::from_handle(fd.into()) };
    let exported = exported.lock().unwrap_or_else(PoisonError::into_inner);
    exported.get(&file.number().ok()?)?.upgrade()
}

pub(crate) fn import_fence_fd_khr(c: ApplicationMemory<'_>, call: &ImportFenceFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_import_fence_fd_info) else { return Result::ERROR_UNKNOWN };
    if let Some(payload) = import_fd(info.fd, &EXPORTED_FENCES) {
        FENCES.replace(info.fence.0, payload);
    } else if info.handle_type.0 == ExternalFenceHandleTypeFlags::SYNC_FD.0
        && let Some(fence) = FENCES.get(info.fence.0)
    {
        queue_engine::change(|| fence.is_signaled.store(true, Ordering::Release));
    }
    Result::SUCCESS
}

pub(crate) fn import_semaphore_fd_khr(c: ApplicationMemory<'_>, call: &ImportSemaphoreFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_import_semaphore_fd_info) else { return Result::ERROR_UNKNOWN };
    if let Some(payload) = import_fd(info.fd, &EXPORTED_SEMAPHORES) {
        SEMAPHORES.replace(info.semaphore.0, payload);
    } else if info.handle_type.0 == ExternalSemaphoreHandleTypeFlags::SYNC_FD.0
        && let Some(semaphore) = SEMAPHORES.get(info.semaphore.0)
    {
        queue_engine::signal(&semaphore, 1);
    }
    Result::SUCCESS
}

/// Memory can be shared through files, and the application's own can be imported.
pub(crate) fn memory_properties(handle_type: u32) -> ExternalMemoryProperties {
    let file = ExternalMemoryHandleTypeFlags::OPAQUE_FD.0;
    let host = ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT.0;
    let importable = ExternalMemoryFeatureFlags::IMPORTABLE.0;
    let features = match handle_type {
        value if value == file => importable | ExternalMemoryFeatureFlags::EXPORTABLE.0,
        value if value == host => importable,
        _ => 0,
    };
    let same = ExternalMemoryHandleTypeFlags(if features == 0 { 0 } else { handle_type });
    ExternalMemoryProperties {
        external_memory_features: ExternalMemoryFeatureFlags(features),
        export_from_imported_handle_types: ExternalMemoryHandleTypeFlags(same.0 & file),
        compatible_handle_types: same,
    }
}

pub(crate) fn get_physical_device_external_buffer_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceExternalBufferPropertiesParams,
) {
    let handle_type = c.get(call.p_external_buffer_info).map_or(0, |it| it.handle_type.0);
    if let Some(out) = c.get_mut(call.p_external_buffer_properties) {
        out.external_memory_properties = memory_properties(handle_type);
    }
}

pub(crate) fn get_physical_device_external_fence_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceExternalFencePropertiesParams,
) {
    let handle_type = c.get(call.p_external_fence_info).map_or(0, |it| it.handle_type.0);
    let known = ExternalFenceHandleTypeFlags::OPAQUE_FD.0 | ExternalFenceHandleTypeFlags::SYNC_FD.0;
    let Some(out) = c.get_mut(call.p_external_fence_properties) else { return };
    let same = ExternalFenceHandleTypeFlags(handle_type & known);
    let both = ExternalFenceFeatureFlags::EXPORTABLE.0 | ExternalFenceFeatureFlags::IMPORTABLE.0;
    out.export_from_imported_handle_types = same;
    out.compatible_handle_types = same;
    out.external_fence_features = ExternalFenceFeatureFlags(if same.0 == 0 { 0 } else { both });
}

pub(crate) fn get_physical_device_external_semaphore_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceExternalSemaphorePropertiesParams,
) {
    let handle_type = c.get(call.p_external_semaphore_info).map_or(0, |it| it.handle_type.0);
    let known = ExternalSemaphoreHandleTypeFlags::OPAQUE_FD.0 | ExternalSemaphoreHandleTypeFlags::SYNC_FD.0;
    let Some(out) = c.get_mut(call.p_external_semaphore_properties) else { return };
    let same = ExternalSemaphoreHandleTypeFlags(handle_type & known);
    let both = ExternalSemaphoreFeatureFlags::EXPORTABLE.0 | ExternalSemaphoreFeatureFlags::IMPORTABLE.0;
    out.export_from_imported_handle_types = same;
    out.compatible_handle_types = same;
    out.external_semaphore_features = ExternalSemaphoreFeatureFlags(if same.0 == 0 { 0 } else { both });
}
