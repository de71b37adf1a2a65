//! Options of a replay.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lavascope_picture::Picture;

use crate::error::ReplayError;

/// Receives the pictures of frames, with the number of the frame, and that of the window if one frame has several.
pub type FrameCallback = Arc<dyn Fn(u64, usize, Picture) + Send + Sync>;

/// A call before which a replay waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PausePoint {
    /// The thread; none for the first.
    pub stream: Option<u32>,
    pub call: u64,
}

/// Where a thread waits for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PausedCall {
    pub stream: u32,
    pub call: u64,
    pub command: &'static str,
}

/// Returns when the thread may continue.
pub type PauseCallback = Arc<dyn Fn(&PausedCall) + Send + Sync>;

/// What happens to a call of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMoment {
    /// What it comes after is complete. Reported twice for a call with outputs; the driver sees it after the second.
    Begin,
    /// It has returned, and no other thread knows that yet.
    End,
}

/// Receives the stream and the number of each call that is performed on several threads.
pub type CallCallback = Arc<dyn Fn(u32, u64, CallMoment) + Send + Sync>;

/// Receives the progress of a replay several times a second: the number of complete calls, and of frames.
pub type ProgressCallback = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Called if the driver does not return from a wait. The replay does not return then either: the callback must end the
/// process, with [`end_process`](crate::end_process).
pub type HangCallback = Arc<dyn Fn(&ReplayError) + Send + Sync>;

/// Where frames are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameOutput {
    /// Nowhere.
    #[default]
    Nothing,
    /// Shows frames in a window on the display of the environment.
    Window,
    /// Presents to a headless surface, if the driver has such: a layer below then sees the frames.
    Headless,
}

/// Where the part begins whose time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureFrom {
    /// After this many frames.
    Frame(u64),
    /// After this many submissions.
    Submit(u64),
}

impl MeasureFrom {
    pub(crate) fn is_immediate(self) -> bool {
        matches!(self, MeasureFrom::Frame(0) | MeasureFrom::Submit(0))
    }
}

/// Whether one thread may play several streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadSharing {
    /// One thread plays all streams as long as that is faster: threads that hand over work very often mostly sleep.
    #[default]
    Adaptive,
    /// Each stream has a thread of its own.
    OnePerStream,
    /// Changes at random, by a seed: for tests.
    Random(u64),
}

/// How a trace is played.
#[derive(Clone)]
pub struct ReplayOptions {
    /// Which GPU of this machine, by its place in the loader's list; none for those in the places of the trace.
    pub gpu: Option<usize>,
    /// Whether one thread plays all of them, in the same order each time.
    pub one_thread: bool,
    /// Whether threads may share one. With random delays, the speed of the original, or a pause, the adaptive way is that
    /// of a thread for each stream.
    pub sharing: ThreadSharing,
    /// Holds threads up at random, by a seed.
    pub chaos: Option<u64>,
    /// How long nothing may happen.
    pub patience: Duration,
    /// Whether what the device writes into memory is compared with what the trace has of it.
    pub verify: bool,
    /// Whether calls that are not supported here are skipped.
    pub force: bool,
    /// Where the part begins whose time counts, and whose speed may be that of the original.
    pub measure_from: MeasureFrom,
    /// Whether nothing comes earlier than it did in the original.
    pub is_original_speed: bool,
    /// A call to wait before, and the callback that is called then.
    pub pause: Option<PausePoint>,
    pub on_pause: Option<PauseCallback>,
    /// For tests of the order of calls.
    pub on_call: Option<CallCallback>,
    pub frame_output: FrameOutput,
    /// Which frames are shown.
    pub screenshot_frames: Vec<Range<u64>>,
    pub on_frame: Option<FrameCallback>,
    /// The callback that receives the progress.
    pub on_progress: Option<ProgressCallback>,
    pub on_hang: Option<HangCallback>,
    /// Set by the caller to stop the replay.
    pub interrupt: Arc<AtomicBool>,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            gpu: None,
            one_thread: false,
            sharing: ThreadSharing::Adaptive,
            chaos: None,
            patience: Duration::from_secs(20),
            verify: false,
            force: false,
            measure_from: MeasureFrom::Frame(0),
            is_original_speed: false,
            pause: None,
            on_pause: None,
            on_call: None,
            frame_output: FrameOutput::Nothing,
            screenshot_frames: Vec::new(),
            on_frame: None,
            on_progress: None,
            on_hang: None,
            interrupt: Arc::default(),
        }
    }
}

impl ReplayOptions {
    /// Whether threads share one in this replay.
    pub(crate) fn thread_sharing(&self) -> ThreadSharing {
        let has_delays = self.chaos.is_some() || self.is_original_speed || self.pause.is_some();
        match self.sharing {
            _ if self.one_thread => ThreadSharing::OnePerStream,
            ThreadSharing::Adaptive if has_delays => ThreadSharing::OnePerStream,
            sharing => sharing,
        }
    }

    pub(crate) fn wants_frame(&self, frame: u64) -> bool {
        self.on_frame.is_some() && self.screenshot_frames.iter().any(|it| it.contains(&frame))
    }

    pub(crate) fn report_frame(&self, frame: u64, window: usize, picture: Picture) {
        if let Some(frames) = &self.on_frame {
            frames(frame, window, picture);
        }
    }

    pub(crate) fn report_call(&self, stream: u32, call: u64, moment: CallMoment) {
        if let Some(calls) = &self.on_call {
            calls(stream, call, moment);
        }
    }

    pub(crate) fn report_pause(&self, paused_call: &PausedCall) {
        if let Some(paused) = &self.on_pause {
            paused(paused_call);
        }
    }
}
