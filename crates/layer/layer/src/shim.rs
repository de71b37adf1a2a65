//! What the generated shims call: the way on, and what happens around a call.

use lavascope_abi::{Bool32, FnPtr, Result};

pub(crate) use crate::calls::{device_of, enter, enter_walking, instance_of, leave, leave_silently, recorder_of};
pub(crate) use crate::order::{Order, tells};
pub(crate) use lavascope_marshal::straight;

/// A return value, widened.
pub(crate) trait Bits: Sized + Default {
    fn bits(&self) -> u64;

    /// Whether the device is lost.
    #[inline(always)]
    fn is_lost(&self) -> bool {
        false
    }

    /// What a call returns that the application did not let reach the driver.
    fn given_up() -> Self {
        Self::default()
    }
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

    #[inline(always)]
    fn is_lost(&self) -> bool {
        *self == Result::ERROR_DEVICE_LOST
    }

    fn given_up() -> Result {
        Result::ERROR_VALIDATION_FAILED
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
