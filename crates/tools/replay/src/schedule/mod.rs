//! Decides when each thread performs its next call.

pub(crate) mod atomics;
pub(crate) mod chaos;
pub(crate) mod device_waits;
pub(crate) mod frame_clock;
#[cfg(test)]
pub(crate) mod loom_model;
pub(crate) mod patience;
pub(crate) mod phase_switch;
pub(crate) mod player;
pub(crate) mod progress;
pub(crate) mod progress_counter;
pub(crate) mod read_ahead;
pub(crate) mod serial_phase;
pub(crate) mod single_thread;
pub(crate) mod throttle;
