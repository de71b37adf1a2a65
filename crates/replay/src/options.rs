//! What somebody wants of a replay.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::picture::Picture;

/// Who gets the pictures of frames, with the number of the frame.
pub type Frames = Arc<dyn Fn(u64, Picture) + Send + Sync>;

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
    /// Which frames somebody wants to see.
    pub pictures: Vec<Range<u64>>,
    pub frames: Option<Frames>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            gpu: None,
            one_thread: false,
            chaos: None,
            patience: Duration::from_secs(20),
            verify: false,
            pictures: Vec::new(),
            frames: None,
        }
    }
}

impl Options {
    pub(crate) fn wants_frame(&self, frame: u64) -> bool {
        self.frames.is_some() && self.pictures.iter().any(|it| it.contains(&frame))
    }

    pub(crate) fn give_frame(&self, frame: u64, picture: Picture) {
        if let Some(frames) = &self.frames {
            frames(frame, picture);
        }
    }
}
