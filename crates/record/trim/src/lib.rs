//! Cuts a part out of a trace, together with everything that the part needs.
//!
//! A part begins in the middle of a program, where hundreds of objects exist and have contents. The calls that created
//! them are the only description that covers all of Vulkan, so the trim keeps those calls. It skips *spans*: frames
//! after which fences, semaphores and acquired images are as they were before (`sync_state`), and whose contents
//! nothing reads later (`skipped_spans`). Inside of a span it keeps only the calls whose objects live on
//! (`kept_calls`). The waits are skipped with the span, so one wait for the whole device takes their place. The trim
//! keeps everything that it cannot prove to be unneeded: sparse memory, events of the host, ray tracing and addresses
//! in descriptor buffers keep everything. A program that makes each frame out of the one before keeps all frames: that
//! is large, but correct.
//!
//! [`trim`] goes through the trace twice: it learns (`scan`), decides, and writes (`write`).

#![forbid(unsafe_code)]

mod call_role;
mod command_effects;
mod content_tracker;
mod kept_calls;
mod order_edges;
mod resources;
mod scan;
mod skipped_spans;
mod sync_state;
mod write;

use std::io::{self, Write};
use std::ops::Range;

use lavascope_trace::{PartNumbers, Tail, Trace, TraceError};

use scan::Scan;

/// Which part of a trace is wanted. The end is not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrimRange {
    /// From the end of the frame before to the end of the last.
    Frames(Range<u64>),
    /// From the end of the submission before to the beginning of the one behind.
    Submits(Range<u64>),
}

impl TrimRange {
    /// The same part of a trace that is a part itself, in which frames and submissions keep their numbers.
    fn indices(&self, trace: &Trace<'_>) -> TrimRange {
        match self {
            TrimRange::Frames(range) => TrimRange::Frames(PartNumbers::of_frames(trace).indices(range)),
            TrimRange::Submits(range) => TrimRange::Submits(PartNumbers::of_submits(trace).indices(range)),
        }
    }
}

/// The result of a trim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrimSummary {
    pub calls: u64,
    pub calls_before: u64,
    /// Frames that stand before the part, since it needs them, and those of the part.
    pub frames_before: u64,
    pub frames: u64,
    /// The same of submissions.
    pub submits_before: u64,
    pub submits: u64,
    /// Frames and submissions that were skipped.
    pub frames_left_out: u64,
    pub submits_left_out: u64,
    /// If nothing was skipped, the reason.
    pub reason: Option<&'static str>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrimError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("the trace has {count} {what}, so there is no part that begins with number {first}")]
    Empty { what: &'static str, first: u64, count: u64 },
}

/// Writes a part of a trace. It reads the whole trace, and then again up to the end of the part. `watch` gets the
/// number of records that were read so far, and the number of all, from time to time.
pub fn trim(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    part: &TrimRange,
    to: impl Write,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<TrimSummary, TrimError> {
    let scan = Scan::of(trace, tail, &mut |done, all| watch(done, 2 * all))?;
    let bounds = scan.bounds(&part.indices(trace))?;
    let left_out = skipped_spans::find_skipped_spans(&scan, bounds);
    let kept = kept_calls::decide(&scan, bounds, &left_out.spans);
    let plan = write::TrimPlan { scan: &scan, bounds, spans: &left_out, kept: &kept, part };
    write::write(trace, tail, &plan, to, &mut |done, all| watch(all + done, 2 * all))
}

/// The number of records between two calls of `watch`.
const PROGRESS_INTERVAL: usize = 4096;
