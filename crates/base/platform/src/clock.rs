//! Clocks: the time of a record, and the time that a thread or a process spent on a processor.

use crate::system;

/// The time now, in steps of some nanoseconds, counted from some moment. Cheap enough for every call.
#[inline(always)]
pub fn ticks() -> u64 {
    /// Ticks of the processor's clock in one tick of ours: the remaining resolution is finer than the duration of a
    /// call.
    const SHIFT: u32 = 5;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction, which reads no memory.
    let now = unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let now = {
        static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        BEGIN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
    };
    now >> SHIFT
}

/// Nanoseconds that the calling thread was on a processor.
pub fn thread_nanoseconds() -> u64 {
    system::clock::thread_nanoseconds()
}

/// Nanoseconds that all threads of the process were on a processor, together.
pub fn process_nanoseconds() -> u64 {
    system::clock::process_nanoseconds()
}
