//! Which part of a capture is wanted: by frames, by submissions, or by a signal.
//!
//! The part needs what came before it, so a capture always begins at the beginning; it ends with the part. Which part is
//! wanted is told in the file, for `lavascope trim`.

use lavascope_abi::Command;
use lavascope_platform::signals::{self, Trigger};
use lavascope_record::record::{RecordHeader, RecordPhase};
use lavascope_settings::{CaptureTrigger, Frames, Settings};
use lavascope_trace::MomentKind;
use serde_json::{Value, json};

pub(crate) struct Range {
    wanted: Wanted,
    /// Frames and submissions that are complete.
    frames: u64,
    submits: u64,
    /// How often the signal came, as far as somebody looked.
    triggered: u32,
}

enum Wanted {
    All,
    Frames(Frames),
    Submits(Frames),
    /// What there was when the signal came, and when it came again.
    Triggered(Option<(u64, u64)>, Option<(u64, u64)>),
}

impl Range {
    pub(crate) fn new(settings: &Settings) -> Range {
        let signal = match settings.capture_trigger {
            CaptureTrigger::Off => None,
            CaptureTrigger::Usr1 => Some(Trigger::First),
            CaptureTrigger::Usr2 => Some(Trigger::Second),
        };
        let wanted = match (settings.capture_frames, settings.capture_submits, signal) {
            (Some(it), _, _) => Wanted::Frames(it),
            (None, Some(it), _) => Wanted::Submits(it),
            (None, None, Some(signal)) => {
                signals::listen(signal);
                Wanted::Triggered(None, None)
            }
            (None, None, None) => Wanted::All,
        };
        Range { wanted, frames: 0, submits: 0, triggered: signals::count() }
    }

    /// Counts a record.
    pub(crate) fn follow(&mut self, record: &[u64]) {
        let head = RecordHeader::from_words(record[0], record[1]);
        if head.kind != RecordPhase::Leave as u8 {
            return;
        }
        match Command::from_number(head.command).and_then(MomentKind::of) {
            Some(MomentKind::Frame) => self.frames += 1,
            Some(MomentKind::Submit) => self.submits += 1,
            None => {}
        }
    }

    /// Whether the signal came, so that there is something new to say.
    pub(crate) fn look_at_trigger(&mut self) -> bool {
        let (now, before) = ((self.frames, self.submits), self.triggered);
        let Wanted::Triggered(first, end) = &mut self.wanted else { return false };
        self.triggered = signals::count();
        for _ in 0..self.triggered.wrapping_sub(before).min(2) {
            match (&*first, &*end) {
                (None, _) => *first = Some(now),
                // An empty part is no part.
                (Some(it), None) if *it != now => *end = Some(now),
                _ => {}
            }
        }
        self.triggered != before
    }

    /// Whether nothing more is wanted.
    pub(crate) fn is_over(&self) -> bool {
        match &self.wanted {
            Wanted::All => false,
            Wanted::Frames(it) => it.end.is_some_and(|end| self.frames >= end),
            // What the last one did is known when there is another.
            Wanted::Submits(it) => it.end.is_some_and(|end| self.submits > end),
            Wanted::Triggered(_, end) => end.is_some(),
        }
    }

    /// What the file tells about it.
    pub(crate) fn facts(&self) -> Option<Value> {
        let (of, first, end) = match &self.wanted {
            Wanted::Frames(it) => ("frames", it.first, it.end),
            Wanted::Submits(it) => ("submits", it.first, it.end),
            Wanted::Triggered(Some(first), None) if self.frames > 0 => ("frames", first.0, None),
            Wanted::Triggered(Some(first), None) => ("submits", first.1, None),
            Wanted::Triggered(Some(first), Some(end)) if end.0 > first.0 => ("frames", first.0, Some(end.0)),
            Wanted::Triggered(Some(first), Some(end)) => ("submits", first.1, Some(end.1)),
            Wanted::All | Wanted::Triggered(None, _) => return None,
        };
        Some(json!({ "wanted": { "of": of, "first": first, "end": end } }))
    }
}
