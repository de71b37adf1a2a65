//! Calls a Vulkan function with parameters in memory.

use lavascope_abi::{Bool32, FnPtr, Result};

/// A return value, widened to 64 bits.
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

/// Calls a function with the parameters at an image, and gives what it returns.
///
/// # Safety
///
/// The function must be that of the command. The image must be aligned to eight and hold the parameters of the command,
/// for a call that the specification allows at this point.
pub(crate) type Caller = unsafe fn(*const (), *const u8) -> u64;

/// Defines a function that calls each command, and the names under which drivers may know it.
macro_rules! calls {
    ($($command:ident, $image:ident, $function:ident, [$($name:literal),*] = fn($($parameter:ident),*);)*) => {
        /// The function that calls a command.
        pub(crate) fn caller(command: Command) -> Caller {
            match command {
                $(Command::$command => {
                    unsafe fn call(function: *const (), image: *const u8) -> u64 {
                        let params = image.cast::<$image>();
                        // SAFETY: the function of this command has this type, by the contract of `Caller`.
                        let function = unsafe { std::mem::transmute::<*const (), $function>(function) };
                        // SAFETY: by the contract of `Caller`, `params` is aligned and holds the parameters of a call that
                        // the specification allows.
                        Bits::bits(unsafe { function($((*params).$parameter),*) })
                    }
                    call
                })*
            }
        }

        /// The names of a command, newest first.
        pub(crate) fn names(command: Command) -> &'static [&'static std::ffi::CStr] {
            match command {
                $(Command::$command => &[$($name),*],)*
            }
        }
    };
}
pub(crate) use calls;
