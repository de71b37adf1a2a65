//! The functions that the generated shims call.

use lavascope_abi::{Bool32, FnPtr, Result};

pub(crate) use crate::intercept::calls::{
    device_of, device_of_command_buffer, enter_by_desc, enter_call, instance_of, leave_call, leave_without_outputs,
};
pub(crate) use crate::intercept::order::{CommandOrdering, delivers_messages};
pub(crate) use crate::report::debugger::lavascope_break_here;
pub(crate) use lavascope_marshal::fast_pack;

/// A return value, widened.
pub(crate) trait ReturnBits: Sized + Default {
    fn bits(&self) -> u64;

    /// Whether the device is lost.
    #[inline(always)]
    fn is_device_lost(&self) -> bool {
        false
    }

    /// The result of a call that a messenger callback cancelled.
    fn skipped_result() -> Self {
        Self::default()
    }
}

impl ReturnBits for () {
    fn bits(&self) -> u64 {
        0
    }
}

impl ReturnBits for Result {
    fn bits(&self) -> u64 {
        u64::from(self.0 as u32)
    }

    #[inline(always)]
    fn is_device_lost(&self) -> bool {
        *self == Result::ERROR_DEVICE_LOST
    }

    fn skipped_result() -> Result {
        Result::ERROR_VALIDATION_FAILED
    }
}

impl ReturnBits for Bool32 {
    fn bits(&self) -> u64 {
        u64::from(self.0)
    }
}

impl ReturnBits for FnPtr {
    fn bits(&self) -> u64 {
        self.0
    }
}

impl ReturnBits for u32 {
    fn bits(&self) -> u64 {
        u64::from(*self)
    }
}

impl ReturnBits for u64 {
    fn bits(&self) -> u64 {
        *self
    }
}
