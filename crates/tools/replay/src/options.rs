//! What somebody wants of a replay.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lavascope_picture::Picture;

use crate::error::ReplayError;

/// Who gets the pictures of frames, with the number of the frame, and of the window where one frame has several.
pub type Frames = Arc<dyn Fn(u64, usize, Picture) + Send + Sync>;

/// A call before which a replay waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pause {
    /// The thread; none for the first.
    pub stream: Option<u32>,
    pub call: u64,
}

/// Where a thread waits until somebody has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub stream: u32,
    pub call: u64,
    pub command: &'static str,
}

/// Returns when the thread may go on.
pub type Paused = Arc<dyn Fn(&Stopped) + Send + Sync>;

/// Who is told how far a replay is, several times a second: calls that are complete, and frames.
pub type Watcher = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Who is told that the driver does not return from a wait. The replay does not return then either: whoever is told ends
/// the process, with [`end_process`](crate::end_process).
pub type Hung = Arc<dyn Fn(&ReplayError) + Send + Sync>;

/// Where frames are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Nowhere.
    #[default]
    Nothing,
    /// In a window on the display of the environment.
    Window,
    /// On a surface that nobody sees, where the driver has such: a layer underneath sees that there are frames.
    Unseen,
}

/// Where the part begins whose time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// When so many frames are over.
    Frame(u64),
    /// When so many submissions were made.
    Submit(u64),
}

impl Begin {
    pub(crate) fn is_at_once(self) -> bool {
        matches!(self, Begin::Frame(0) | Begin::Submit(0))
    }
}

/// How a trace is played.
#[derive(Clone)]
pub struct Options {
    /// Which GPU of this machine, by its place in the loader's list; none for those in the places of the trace.
    pub gpu: Option<usize>,
    /// Whether one thread plays all of them, in the same order each time.
    pub one_thread: bool,
    /// Holds threads up at random, by a seed.
    pub chaos: Option<u64>,
    /// How long nothing may happen.
    pub patience: Duration,
    /// Whether what the device writes into memory is compared with what the trace has of it.
    pub verify: bool,
    /// Whether calls that cannot be made here are left out.
    pub force: bool,
    /// Where the part begins whose time counts, and whose speed may be that of the original.
    pub begin: Begin,
    /// Whether nothing comes earlier than it did in the original.
    pub is_original_speed: bool,
    /// A call to wait before, and who is told then.
    pub pause: Option<Pause>,
    pub paused: Option<Paused>,
    pub show: Show,
    /// Which frames somebody wants to see.
    pub pictures: Vec<Range<u64>>,
    pub frames: Option<Frames>,
    /// Who is told how far it is.
    pub watcher: Option<Watcher>,
    pub hung: Option<Hung>,
    /// Set by somebody who does not want any more.
    pub interrupt: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            gpu: None,
            one_thread: false,
            chaos: None,
            patience: Duration::from_secs(20),
            verify: false,
            force: false,
            begin: Begin::Frame(0),
            is_original_speed: false,
            pause: None,
            paused: None,
            show: Show::Nothing,
            pictures: Vec::new(),
            frames: None,
            watcher: None,
            hung: None,
            interrupt: Arc::default(),
        }
    }
}

impl Options {
    pub(crate) fn wants_frame(&self, frame: u64) -> bool {
        self.frames.is_some() && self.pictures.iter().any(|it| it.contains(&frame))
    }

    pub(crate) fn give_frame(&self, frame: u64, window: usize, picture: Picture) {
        if let Some(frames) = &self.frames {
            frames(frame, window, picture);
        }
    }

    pub(crate) fn tell_pause(&self, it: &Stopped) {
        if let Some(paused) = &self.paused {
            paused(it);
        }
    }
}
