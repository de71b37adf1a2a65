//! The threads that wait for the device, and whether the device makes progress.
//!
//! A wait with a time limit is repeated, and ends with an error if nothing makes progress for some time. A wait without
//! a limit cannot be ended, because the thread is inside the driver. The caller of the replay is informed of such
//! waits.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lavascope_trace::CallNumbers;

use crate::call::perform::{Performer, RecordedCall};
use crate::error::{ReplayError, ThreadWait, ThreadWaits};
use crate::replay::{Replay, lock};
use crate::schedule::patience::{StallClock, device_patience};
use crate::schedule::progress::StallWatch;

/// All threads that wait for the device.
#[derive(Default)]
pub(crate) struct DeviceWaits(Mutex<Vec<DeviceWait>>);

struct DeviceWait {
    stream: u32,
    call: u64,
    command: &'static str,
    what: &'static str,
    limit: WaitLimit,
    patience: Duration,
}

/// Whether the driver returns from a wait early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// From time to time.
    Sliced,
    /// Only when the wait is over.
    Unlimited,
}

/// A thread waits as long as this exists.
pub(crate) struct DeviceWaitGuard<'a> {
    replay: &'a Replay,
    stream: u32,
    watch: StallWatch<'a>,
}

impl<'a> Performer<'a> {
    /// Marks that the thread waits in a call, as long as the result exists.
    pub(crate) fn begin_wait(
        &self,
        recorded_call: &RecordedCall<'_>,
        what: &'static str,
        limit: WaitLimit,
    ) -> DeviceWaitGuard<'a> {
        let (replay, stream) = (self.replay, self.stream);
        let (call, command) = (recorded_call.enter.call_number(), recorded_call.command().desc().name);
        let patience = device_patience(replay.options.patience, self.recorded_wait());
        lock(&replay.device_waits.0).push(DeviceWait { stream, call, command, what, limit, patience });
        DeviceWaitGuard { replay, stream, watch: replay.progress.watch() }
    }
}

impl DeviceWaitGuard<'_> {
    /// Returns an error if the replay was stopped, or nothing makes progress.
    pub(crate) fn check(&mut self) -> Result<(), ReplayError> {
        let replay = self.replay;
        let patience = replay.device_patience(|_| true);
        self.watch.check(patience, || replay.thread_waits())
    }
}

impl Drop for DeviceWaitGuard<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.replay.device_waits.0);
        if let Some(at) = all.iter().rposition(|it| it.stream == self.stream) {
            all.remove(at);
        }
    }
}

impl Replay {
    /// All waits: first those for the device, then those between threads.
    fn thread_waits(&self) -> ThreadWaits {
        let one = |device_wait: &DeviceWait| {
            let DeviceWait { stream, call, command, what, .. } = *device_wait;
            ThreadWait::Device { stream, call, command, what }
        };
        let all: Vec<ThreadWait> = lock(&self.device_waits.0).iter().map(one).collect();
        ThreadWaits(all.into_iter().chain(self.progress.thread_waits()).collect())
    }

    /// How long nothing may happen: the time of the wait that may take longest.
    fn device_patience(&self, is_meant: impl Fn(WaitLimit) -> bool) -> Duration {
        let waits = lock(&self.device_waits.0);
        let longest = waits.iter().filter(|it| is_meant(it.limit)).map(|it| it.patience).max();
        longest.unwrap_or(self.options.patience)
    }

    /// Whether a thread is in a wait that only the device can end.
    fn is_blocked_in_driver(&self) -> bool {
        lock(&self.device_waits.0).iter().any(|it| it.limit == WaitLimit::Unlimited)
    }
}

/// Detects that a wait without a limit takes too long.
pub(crate) struct HangDetector<'a> {
    replay: &'a Replay,
    seen: u64,
    clock: StallClock,
    is_reported: bool,
}

impl<'a> HangDetector<'a> {
    pub(crate) fn new(replay: &'a Replay) -> HangDetector<'a> {
        HangDetector { replay, seen: 0, clock: StallClock::start(), is_reported: false }
    }

    /// Checks once, and reports at most once. `numbers` gives the numbers of calls.
    pub(crate) fn check(&mut self, numbers: impl FnOnce() -> CallNumbers) {
        let Replay { progress, options, .. } = self.replay;
        let seen = progress.total_progress();
        let is_paused = progress.is_paused.load(Ordering::Relaxed);
        if seen != self.seen || is_paused || !self.replay.is_blocked_in_driver() {
            (self.seen, self.clock) = (seen, StallClock::start());
        }
        let patience = self.replay.device_patience(|it| it == WaitLimit::Unlimited);
        if self.is_reported || !self.clock.is_over(patience) {
            return;
        }
        self.is_reported = true;
        let seconds = self.clock.since().elapsed().as_secs();
        let error = ReplayError::Stuck { seconds, what: self.replay.thread_waits() };
        if let Some(hung) = &options.on_hang {
            hung(&error.with_numbers(&numbers()));
        }
    }
}

/// Ends the process at once. Exit handlers of libraries might wait for a driver that never answers.
pub fn end_process(code: i32) -> ! {
    lavascope_platform::process::exit_immediately(code)
}

/// The interval of the checks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
