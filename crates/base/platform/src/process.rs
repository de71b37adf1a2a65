//! Processes: how they end, how one is started and waited for, and the end of this one.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use crate::system;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// By itself, with a code.
    Exit(i32),
    /// By a crash, or by a signal of another process.
    Killed(TerminationCause),
}

/// The signal that ended a process, as the system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminationCause(i32);

impl TerminationCause {
    /// The cause of a number: that of a signal, here.
    pub fn from_number(number: i32) -> TerminationCause {
        TerminationCause(number)
    }

    pub fn number(self) -> i32 {
        self.0
    }

    /// Whether it is what an error in the process itself leads to, and not a wish of somebody else.
    pub fn is_crash(self) -> bool {
        system::process::is_crash(self.0)
    }

    /// The exit code that a shell returns for it.
    pub fn shell_code(self) -> u8 {
        system::process::shell_code(self.0)
    }
}

impl fmt::Display for TerminationCause {
    /// As the C headers call it, such as `SIGSEGV`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match system::process::name_of_cause(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl ProcessEnd {
    pub fn of(status: ExitStatus) -> ProcessEnd {
        match system::process::cause_of(status) {
            Some(number) => ProcessEnd::Killed(TerminationCause(number)),
            None => ProcessEnd::Exit(status.code().unwrap_or(0)),
        }
    }
}

/// Signals that end this process are passed on to a child instead, from before the child starts.
///
/// A signal of the terminal (Ctrl-C) reaches the child by itself: this process only outlives it. A signal to this
/// process alone is passed on. Ignored signals stay ignored, in both processes.
pub struct SignalRelay(system::process::SignalRelay);

impl SignalRelay {
    pub fn new() -> io::Result<SignalRelay> {
        system::process::SignalRelay::new().map(SignalRelay)
    }

    /// Waits for the end of the child.
    pub fn wait(self, child: &mut Child) -> io::Result<ExitStatus> {
        self.0.wait(child)
    }
}

/// Whether a process still runs, as far as the system reports.
pub fn is_running(process: u32) -> bool {
    system::process::is_running(process)
}

/// A process and all that came from it, as far as they run.
pub fn with_descendants(process: u32) -> Vec<u32> {
    system::process::with_descendants(process)
}

/// The files that a process has mapped to run, each once; none if the process does not let us see them.
pub fn mapped_libraries(process: u32) -> Vec<PathBuf> {
    system::process::mapped_libraries(process)
}

/// Whether a program could not be started because the system does not know how to run such a file.
pub fn is_not_executable(error: &io::Error) -> bool {
    system::process::is_not_executable(error)
}

/// Ends this process at once, without anything that libraries want to do at its end.
pub fn exit_immediately(code: i32) -> ! {
    system::process::exit_immediately(code)
}

/// Calls a function when this process ends by itself, or when the library that this code is in is unloaded. The last one
/// is called first. False if the system has no room for it.
pub fn at_exit(function: extern "C" fn()) -> bool {
    system::process::at_exit(function)
}

/// Stops a debugger in the function that has this; without a debugger, ends the process.
///
/// The instruction is that function's own, so a debugger shows it without frames of ours or of the C library.
#[macro_export]
macro_rules! break_into_debugger {
    () => {{
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction changes nothing; the signal comes to this thread.
        unsafe {
            ::std::arch::asm!("int3")
        };
        #[cfg(not(target_arch = "x86_64"))]
        $crate::process::raise_trap();
    }};
}

/// The same by a call.
pub fn raise_trap() {
    system::process::raise_trap();
}

/// Whether a debugger is attached to this process.
pub fn has_debugger() -> bool {
    system::process::has_debugger()
}

/// Calls a function before `main`, and before an allocator that is linked in begins, with the first argument of the
/// program. Systems that cannot do it do not call it.
///
/// The function is a `fn(&CStr)`; the standard library may not be ready for more than plain memory.
#[macro_export]
macro_rules! before_allocator {
    ($function:path) => {
        const _: fn(&::std::ffi::CStr) = $function;
        /// The C library calls functions in this section with the arguments of `main`; those of lower numbers come first,
        /// and an allocator's own has 101.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        #[used]
        #[unsafe(link_section = ".init_array.00100")]
        static BEFORE_ALLOCATOR: unsafe extern "C" fn(::std::ffi::c_int, *const *const ::std::ffi::c_char) = {
            unsafe extern "C" fn call(count: ::std::ffi::c_int, arguments: *const *const ::std::ffi::c_char) {
                if count >= 2 {
                    // SAFETY: the C library gives so many arguments, and each is a text that stays.
                    $function(unsafe { ::std::ffi::CStr::from_ptr(arguments.add(1).read()) });
                }
            }
            call
        };
    };
}

/// Calls a function when the process exits, or when the library of this code is unloaded, after all functions of
/// [`at_exit`]. It allocates nothing and cannot fail. On systems without support it is never called.
///
/// The function is an `extern "C" fn()`.
#[macro_export]
macro_rules! at_unload {
    ($function:path) => {
        /// The C library calls functions in this section.
        #[cfg(target_os = "linux")]
        #[used]
        #[unsafe(link_section = ".fini_array")]
        static AT_UNLOAD: extern "C" fn() = $function;
    };
}

/// Sets a variable of the environment, unless it is set.
///
/// # Safety
///
/// No other thread may exist.
pub unsafe fn set_default_variable(name: &std::ffi::CStr, value: &std::ffi::CStr) {
    // SAFETY: the same contract.
    unsafe { system::process::set_default_variable(name, value) };
}
