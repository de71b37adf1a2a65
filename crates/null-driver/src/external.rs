//! File descriptors of fences and semaphores.
//!
//! The driver says that it cannot share payloads between processes. Who asks all the same gets a descriptor: none at
//! all for a sync file, which means "signaled already", or one that leads nowhere.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use lavascope_abi::*;

use crate::c::C;
use crate::engine;
use crate::sync::{FENCES, SEMAPHORES};

pub(crate) fn get_fence_fd_khr(c: C<'_>, call: &GetFenceFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_get_fd_info) else { return Result::ERROR_UNKNOWN };
    if info.handle_type.0 == ExternalFenceHandleTypeFlags::SYNC_FD.0 {
        if let Some(it) = FENCES.get(info.fence.0) {
            it.is_signaled.store(false, Ordering::Release);
        }
        c.put(call.p_fd, -1);
        return Result::SUCCESS;
    }
    give_fd(c, call.p_fd)
}

pub(crate) fn get_semaphore_fd_khr(c: C<'_>, call: &GetSemaphoreFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_get_fd_info) else { return Result::ERROR_UNKNOWN };
    if info.handle_type.0 == ExternalSemaphoreHandleTypeFlags::SYNC_FD.0 {
        if let Some(it) = SEMAPHORES.get(info.semaphore.0).filter(|it| !it.is_timeline) {
            it.value.store(0, Ordering::Release);
        }
        c.put(call.p_fd, -1);
        return Result::SUCCESS;
    }
    give_fd(c, call.p_fd)
}

fn give_fd(c: C<'_>, to: Ptr<i32>) -> Result {
    match rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) {
        Ok(fd) => c.put(to, fd.into_raw_fd()),
        Err(_) => return Result::ERROR_TOO_MANY_OBJECTS,
    }
    Result::SUCCESS
}

pub(crate) fn import_fence_fd_khr(c: C<'_>, call: &ImportFenceFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_import_fence_fd_info) else { return Result::ERROR_UNKNOWN };
    if let Some(fence) = FENCES.get(info.fence.0) {
        let is_sync = info.handle_type.0 == ExternalFenceHandleTypeFlags::SYNC_FD.0;
        engine::change(|| fence.is_signaled.store(is_sync, Ordering::Release));
    }
    take_fd(info.fd);
    Result::SUCCESS
}

pub(crate) fn import_semaphore_fd_khr(c: C<'_>, call: &ImportSemaphoreFdKHRParams) -> Result {
    let Some(info) = c.get(call.p_import_semaphore_fd_info) else { return Result::ERROR_UNKNOWN };
    let is_sync = info.handle_type.0 == ExternalSemaphoreHandleTypeFlags::SYNC_FD.0;
    if let Some(semaphore) = SEMAPHORES.get(info.semaphore.0).filter(|_| is_sync) {
        engine::signal(&semaphore, 1);
    }
    take_fd(info.fd);
    Result::SUCCESS
}

/// An imported descriptor belongs to the driver.
pub(crate) fn take_fd(fd: i32) {
    if fd >= 0 {
        // SAFETY: the application gives the descriptor away with the import, by the extension's rules.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}
