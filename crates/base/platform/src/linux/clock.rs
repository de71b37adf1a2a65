//! Processor time, by the clocks of the system.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub(crate) fn thread_nanoseconds() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

pub(crate) fn process_nanoseconds() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
