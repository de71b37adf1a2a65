//! Calls a function of Vulkan with the parameters that lie in an image.

use lavascope_abi::{Bool32, FnPtr, Result};

/// A return value, widened.
pub(crate) trait Bits {
    fn bits(self) -> u64;
}

impl Bits for () {
    fn bits(self) -> u64 {
        0
    }
}

impl Bits for Result {
    fn bits(self) -> u64 {
        u64::from(self.0 as u32)
    }
}

impl Bits for Bool32 {
    fn bits(self) -> u64 {
        u64::from(self.0)
    }
}

impl Bits for FnPtr {
    fn bits(self) -> u64 {
        self.0
    }
}

impl Bits for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

/// One way to call each command, and the names that a driver may know it by.
macro_rules! calls {
    ($($command:ident, $image:ident, $function:ident, [$($name:literal),*] = fn($($parameter:ident),*);)*) => {
        /// Calls `function` with the parameters at `image`, and gives what it returns.
        ///
        /// # Safety
        ///
        /// `function` must be the function of this command, and `image` the parameters of a call that the
        /// specification allows now.
        pub(crate) unsafe fn call(command: Command, function: *const (), image: *const u8) -> u64 {
            match command {
                $(Command::$command => {
                    // SAFETY: the caller's word; images are aligned to eight, as the arena gives them.
                    unsafe {
                        let it = image.cast::<$image>();
                        let function = std::mem::transmute::<*const (), $function>(function);
                        Bits::bits(function($((*it).$parameter),*))
                    }
                })*
            }
        }

        /// The names of a command, the newest first.
        pub(crate) fn names(command: Command) -> &'static [&'static std::ffi::CStr] {
            match command {
                $(Command::$command => &[$($name),*],)*
            }
        }
    };
}
pub(crate) use calls;
