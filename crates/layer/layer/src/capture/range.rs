//! The part of a capture that the user wants: by frames, by submissions, or by a signal.
//!
//! The part depends on earlier calls, so a capture always begins with the first call; it ends with the part. The file
//! stores which part is wanted, for `lavascope trim`.

use lavascope_abi::Command;
use lavascope_platform::signals::{self, Trigger};
use lavascope_record::encoding::{RecordHeader, RecordPhase};
use lavascope_settings::{CaptureTrigger, FrameRange, Settings};
use lavascope_trace::SeekPointKind;
use serde_json::{Value, json};

pub(crate) struct CaptureRange {
    selection: RangeSelection,
    /// Number of complete frames and submissions.
    frames: u64,
    submits: u64,
    /// Number of signals that were processed.
    signals_seen: u32,
}

enum RangeSelection {
    All,
    Frames(FrameRange),
    Submits(FrameRange),
    /// The frames and submissions at the first and at the second signal.
    Triggered(Option<(u64, u64)>, Option<(u64, u64)>),
}

impl CaptureRange {
    pub(crate) fn new(settings: &Settings) -> CaptureRange {
        let signal = match settings.capture_trigger {
            CaptureTrigger::Off => None,
            CaptureTrigger::Usr1 => Some(Trigger::First),
            CaptureTrigger::Usr2 => Some(Trigger::Second),
        };
        let wanted = match (settings.capture_frames, settings.capture_submits, signal) {
            (Some(frame_range), _, _) => RangeSelection::Frames(frame_range),
            (None, Some(frame_range), _) => RangeSelection::Submits(frame_range),
            (None, None, Some(signal)) => {
                signals::count_triggers(signal);
                RangeSelection::Triggered(None, None)
            }
            (None, None, None) => RangeSelection::All,
        };
        CaptureRange { selection: wanted, frames: 0, submits: 0, signals_seen: signals::trigger_count() }
    }

    /// Counts a record.
    pub(crate) fn count_record(&mut self, record: &[u64]) {
        let head = RecordHeader::from_words(record[0], record[1]);
        if head.kind != RecordPhase::Leave as u8 {
            return;
        }
        match Command::from_number(head.command).and_then(SeekPointKind::of) {
            Some(SeekPointKind::Frame) => self.frames += 1,
            Some(SeekPointKind::Submit) => self.submits += 1,
            None => {}
        }
    }

    /// Whether a signal has arrived since the last call, so that the metadata have changed.
    pub(crate) fn take_trigger(&mut self) -> bool {
        let (now, before) = ((self.frames, self.submits), self.signals_seen);
        let RangeSelection::Triggered(first, end) = &mut self.selection else { return false };
        self.signals_seen = signals::trigger_count();
        for _ in 0..self.signals_seen.wrapping_sub(before).min(2) {
            match (&*first, &*end) {
                (None, _) => *first = Some(now),
                // A second signal in the same frame would give an empty part.
                (Some(pair), None) if *pair != now => *end = Some(now),
                _ => {}
            }
        }
        self.signals_seen != before
    }

    /// Whether the part is complete.
    pub(crate) fn is_over(&self) -> bool {
        match &self.selection {
            RangeSelection::All => false,
            RangeSelection::Frames(frame_range) => frame_range.end.is_some_and(|end| self.frames >= end),
            // The effects of the last submission are complete only when the next one begins.
            RangeSelection::Submits(frame_range) => frame_range.end.is_some_and(|end| self.submits > end),
            RangeSelection::Triggered(_, end) => end.is_some(),
        }
    }

    /// The metadata that describe the part.
    pub(crate) fn metadata(&self) -> Option<Value> {
        let (of, first, end) = match &self.selection {
            RangeSelection::Frames(frame_range) => ("frames", frame_range.first, frame_range.end),
            RangeSelection::Submits(submits) => ("submits", submits.first, submits.end),
            RangeSelection::Triggered(Some(first), None) if self.frames > 0 => ("frames", first.0, None),
            RangeSelection::Triggered(Some(first), None) => ("submits", first.1, None),
            RangeSelection::Triggered(Some(first), Some(end)) if end.0 > first.0 => ("frames", first.0, Some(end.0)),
            RangeSelection::Triggered(Some(first), Some(end)) => ("submits", first.1, Some(end.1)),
            RangeSelection::All | RangeSelection::Triggered(None, _) => return None,
        };
        Some(json!({ "wanted": { "of": of, "first": first, "end": end } }))
    }
}
