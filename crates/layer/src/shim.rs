//! What the generated shims call: the way on, and what happens around a call.

use lavascope_abi::{Bool32, FnPtr, Result};

use crate::device::DeviceData;
use crate::dispatch::dispatch_key;
use crate::entry::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::instance::InstanceData;

pub(crate) use crate::calls::{enter, enter_walking, leave, leave_silently};
pub(crate) use crate::order::Order;
pub(crate) use lavascope_marshal::straight;

/// # Safety
///
/// `handle` must be an instance or physical device that is alive.
#[inline(always)]
pub(crate) unsafe fn instance_of(handle: u64) -> Option<&'static InstanceData> {
    // SAFETY: the caller says so.
    WATCHED_INSTANCES.get(unsafe { dispatch_key(handle) })
}

/// # Safety
///
/// `handle` must be a device, queue or command buffer that is alive.
#[inline(always)]
pub(crate) unsafe fn device_of(handle: u64) -> Option<&'static DeviceData> {
    // SAFETY: the caller says so.
    WATCHED_DEVICES.get(unsafe { dispatch_key(handle) })
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
