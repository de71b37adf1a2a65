//! What the generated shims call: the way on, and the watcher.

use std::sync::Arc;

use lavascope_abi::{Bool32, Command, FnPtr, Result, Structure};

use crate::entry::CHAINS;
use crate::fence::fence;
use crate::objects::{DeviceData, InstanceData, dispatch_key};
use crate::watch;

/// # Safety
///
/// `handle` must be an instance or physical device that is alive.
pub(crate) unsafe fn instance_of<const CHAIN: usize>(handle: u64) -> Option<Arc<InstanceData>> {
    // SAFETY: the caller says so.
    CHAINS[CHAIN].instances.get(unsafe { dispatch_key(handle) })
}

/// # Safety
///
/// `handle` must be a device, queue or command buffer that is alive.
pub(crate) unsafe fn device_of<const CHAIN: usize>(handle: u64) -> Option<Arc<DeviceData>> {
    // SAFETY: the caller says so.
    CHAINS[CHAIN].devices.get(unsafe { dispatch_key(handle) })
}

/// Shows the watcher a call that is about to be passed on.
///
/// # Safety
///
/// `params` must be valid parameters of `command`.
pub(crate) unsafe fn enter<T: Structure>(command: Command, params: &T) {
    // SAFETY: the caller says so.
    fence(command.desc().name, || unsafe { watch::enter(command, std::ptr::from_ref(params).cast()) }, || ());
}

/// Shows the watcher a call that returned.
///
/// # Safety
///
/// As for [`enter`], and the call must have returned `result`.
pub(crate) unsafe fn leave<T: Structure>(command: Command, params: &T, result: u64) {
    // SAFETY: the caller says so.
    fence(command.desc().name, || unsafe { watch::leave(command, std::ptr::from_ref(params).cast(), result) }, || ());
}

/// A return value, widened.
pub(crate) trait Bits {
    fn bits(&self) -> u64;
}

impl Bits for () {
    fn bits(&self) -> u64 {
        0
    }
}

impl Bits for Result {
    fn bits(&self) -> u64 {
        u64::from(self.0 as u32)
    }
}

impl Bits for Bool32 {
    fn bits(&self) -> u64 {
        u64::from(self.0)
    }
}

impl Bits for FnPtr {
    fn bits(&self) -> u64 {
        self.0
    }
}

impl Bits for u32 {
    fn bits(&self) -> u64 {
        u64::from(*self)
    }
}

impl Bits for u64 {
    fn bits(&self) -> u64 {
        *self
    }
}
