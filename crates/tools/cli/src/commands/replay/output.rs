//! The output of `lavascope replay`: the plan and the summary, as text and as JSON.

use std::fmt::Write;
use std::time::Duration;

use lavascope_replay::{DEVICE_ADDRESS_REMARK, PlannedDevice, ReplayPlan};
use serde::Serialize;
use serde_json::{Value, json};

use super::verification::{DifferenceDocument, PresentedComparison};
use crate::commands::replay::ReplayArguments;
use crate::text;

/// A picture of a frame, and the result of its comparison.
#[derive(Clone, Serialize)]
pub(crate) struct Screenshot {
    pub(crate) frame: u64,
    /// The index of the window among those presented together.
    pub(crate) window: usize,
    pub(crate) file: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The largest difference of a color channel from the expected picture. None if there is no
    /// expected picture.
    pub(crate) difference: Option<u8>,
    /// The similarity of the two pictures, from 0 to 1.
    pub(crate) similarity: Option<f64>,
    /// The files with the picture of the replay and with the difference, if the pictures differ.
    pub(crate) differing: Vec<String>,
    /// The error, if the picture could not be compared or written.
    pub(crate) problem: Option<String>,
}

impl Screenshot {
    /// Whether the picture differs more than the arguments allow, or has an error.
    pub(crate) fn is_mismatch(&self, arguments: &ReplayArguments) -> bool {
        let is_other = match arguments.similarity {
            Some(least) => self.similarity.is_some_and(|it| it < least),
            None => self.difference.is_some_and(|it| it > arguments.tolerance),
        };
        self.problem.is_some() || is_other
    }
}

/// The distribution of frame times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct FrameTimes {
    pub(crate) mean: f64,
    pub(crate) best: f64,
    pub(crate) median: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) worst: f64,
}

impl FrameTimes {
    /// The distribution of some frame times. None if there are none.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<FrameTimes> {
        times.sort_unstable();
        let milliseconds = |it: &Duration| it.as_secs_f64() * 1000.0;
        // The shortest time that this percentage of the frames does not exceed.
        let part = |percent: usize| {
            let at = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(at).map(milliseconds)
        };
        Some(FrameTimes {
            mean: times.iter().map(milliseconds).sum::<f64>() / times.len() as f64,
            best: milliseconds(times.first()?),
            median: part(50)?,
            p90: part(90)?,
            p95: part(95)?,
            p99: part(99)?,
            worst: milliseconds(times.last()?),
        })
    }
}

/// If there are more rounds than this, the summary combines them in one line.
const ROUNDS_MAX: usize = 8;

/// The document of `--json`.
#[derive(Serialize)]
pub(crate) struct ReplayDocument {
    pub(crate) file: String,
    pub(crate) threads: usize,
    pub(crate) calls: u64,
    pub(crate) frames: u64,
    pub(crate) calls_per_second: f64,
    /// The frame times of all rounds. None if there are no frames.
    pub(crate) frame_milliseconds: Option<FrameTimes>,
    /// The number of bytes that the device wrote as in the trace. None without `--verify`.
    pub(crate) equal_bytes: Option<u64>,
    pub(crate) different_bytes: Option<u64>,
    pub(crate) first_difference: Option<DifferenceDocument>,
    /// The comparison with what the program presented. None without `--verify`.
    pub(crate) presented: Option<PresentedComparison>,
    /// The reason if `--verify` had nothing to compare.
    pub(crate) not_compared: Option<String>,
    /// The number of bytes, pictures and frames that differ.
    pub(crate) differences: u64,
    /// The duration of each round, in seconds.
    pub(crate) seconds: Vec<f64>,
    /// The processor time of each round, in seconds.
    pub(crate) processor_seconds: Vec<f64>,
    pub(crate) interrupted: bool,
    pub(crate) remarks: Vec<String>,
    pub(crate) pictures: Vec<Screenshot>,
    /// The frames whose pictures have different hashes. None without `--compare-hashes`.
    pub(crate) different_frames: Option<Vec<u64>>,
}

/// The results of `--verify` beside the number of bytes.
pub(crate) struct VerifiedResults {
    pub(crate) presented: Option<PresentedComparison>,
    pub(crate) difference: Option<DifferenceDocument>,
    /// Whether the trace has what the device wrote.
    pub(crate) has_results: bool,
}

impl ReplayDocument {
    pub(crate) fn add_verification(&mut self, results: VerifiedResults) {
        let VerifiedResults { presented, difference, has_results } = results;
        self.differences += presented.as_ref().map_or(0, |it| it.different.len() as u64);
        let is_any_frame = presented.as_ref().is_some_and(|it| it.equal > 0 || !it.different.is_empty());
        let has_bytes = self.equal_bytes.unwrap_or(0) + self.different_bytes.unwrap_or(0) > 0;
        if self.equal_bytes.is_some() && !has_bytes && !is_any_frame && !self.interrupted {
            self.not_compared = Some(match has_results {
                true => {
                    "the device wrote nothing into mapped memory here, and the trace has no presented frames".to_owned()
                }
                false => "the trace has no results of the device; `capture --results` records them".to_owned(),
            });
        }
        (self.presented, self.first_difference) = (presented, difference);
    }

    /// Whether the user asked for a comparison, and there was nothing to compare.
    pub(crate) fn is_nothing_compared(&self) -> bool {
        self.not_compared.is_some()
    }

    pub(crate) fn print(&self, arguments: &ReplayArguments) -> anyhow::Result<()> {
        if arguments.json {
            return text::emit_json(self);
        }
        for remark in &self.remarks {
            text::emit_stderr(&format!("lavascope: {remark}\n"));
        }
        for picture in &self.pictures {
            let said = match (&picture.problem, picture.difference, picture.similarity) {
                (Some(problem), ..) => problem.clone(),
                (None, Some(0), _) => "equal".to_owned(),
                (None, Some(worst), Some(similarity)) => {
                    format!("differs by up to {worst} of 255; similarity {similarity:.4}")
                }
                _ => format!("{} x {}", picture.width, picture.height),
            };
            let files = picture.differing.join(", ");
            let files = if files.is_empty() { files } else { format!("; see {files}") };
            text::emit_stderr(&format!("lavascope: {}: {said}{files}\n", picture.file));
        }
        text::emit(&self.render())
    }

    fn render(&self) -> String {
        let (file, mut words) = (&self.file, String::new());
        if let (Some(equal), Some(different)) = (self.equal_bytes, self.different_bytes) {
            let first = self.first_difference.as_ref().map(|it| format!(", the first in {it}")).unwrap_or_default();
            let _ =
                writeln!(words, "{file}: the device wrote {equal} bytes as in the trace; {different} differ{first}");
        }
        if let Some(presented) = self.presented.as_ref().filter(|it| !it.is_empty()) {
            let _ = writeln!(words, "{file}: {presented}");
        }
        if let Some(reason) = &self.not_compared {
            let _ = writeln!(words, "{file}: nothing was compared: {reason}");
        }
        let (calls, threads, frames) = (self.calls, self.threads, self.frames);
        let number = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (calls_text, threads) = (number(calls, "call"), number(threads as u64, "thread"));
        let each = format!("{file}: {calls_text} of {threads}, {}", number(frames, "frame"));
        match self.seconds.len() {
            0..=ROUNDS_MAX => self.seconds.iter().for_each(|seconds| {
                let speed = calls as f64 / seconds.max(1e-9);
                let _ = writeln!(words, "{each}, {seconds:.3} s, {speed:.0} calls/s");
            }),
            count => {
                let mean = self.seconds.iter().sum::<f64>() / count as f64;
                let _ =
                    writeln!(words, "{each}, {count} times, {mean:.3} s each, {:.0} calls/s", self.calls_per_second);
            }
        }
        words + &text::columns(&self.rows())
    }

    /// The rows about all rounds together.
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let mut rows = Vec::new();
        if let Some(frame_times) = &self.frame_milliseconds {
            let FrameTimes { mean, best, median, p95, p99, worst, .. } = frame_times;
            rows.push(row("frames per second", format!("{:.1}", 1000.0 / mean.max(1e-6))));
            let times = format!("{mean:.2} mean, {best:.2} best, {median:.2} median, {p95:.2} 95 %, {p99:.2} 99 %");
            rows.push(row("frame times in ms", format!("{times}, {worst:.2} worst")));
        }
        let processor: f64 = self.processor_seconds.iter().sum();
        rows.push(row("processor time", format!("{processor:.3} s")));
        if let Some(first) = self.different_frames.as_ref().and_then(|it| it.first()) {
            rows.push(row("first other frame", first.to_string()));
        }
        if self.different_bytes.is_some()
            || self.different_frames.is_some()
            || self.pictures.iter().any(|it| it.difference.is_some() || it.problem.is_some())
        {
            rows.push(row("differences", self.differences.to_string()));
        }
        if self.interrupted {
            rows.push(row("end", "interrupted".to_owned()));
        }
        rows
    }
}

/// Prints the plan of `--dry-run`.
pub(crate) fn print_plan(file: &str, plan: &ReplayPlan, is_json: bool) -> anyhow::Result<()> {
    match is_json {
        true => text::emit_json(&plan_json(file, plan)),
        false => text::emit(&render_plan(file, plan)),
    }
}

fn plan_json(file: &str, plan: &ReplayPlan) -> Value {
    let pairs =
        |all: &[(u32, u32)]| -> Vec<Value> { all.iter().map(|it| json!({ "trace": it.0, "here": it.1 })).collect() };
    let device = |planned_device: &PlannedDevice| {
        json!({
            "trace": planned_device.recorded_name,
            "here": planned_device.replay_name,
            "is_same": planned_device.is_same,
            "missing_extensions": planned_device.missing_extensions,
            "missing_features": planned_device.missing_features,
            "queue_families": pairs(&planned_device.families),
            "memory_types": pairs(&planned_device.memory_types),
            "formats": planned_device.formats.iter().map(|it| json!({ "trace": it.0, "here": it.1 })).collect::<Vec<_>>(),
            "shares_queues": planned_device.shares_queues,
            "resources_with_own_memory": planned_device.relocated.0,
            "own_memory_bytes": planned_device.relocated.1,
        })
    };
    let refused = plan.unsupported.iter().map(|unsupported_call| {
        json!({
            "thread": unsupported_call.stream,
            "call": unsupported_call.call,
            "command": unsupported_call.command,
            "reason": unsupported_call.what,
            "times": unsupported_call.times,
        })
    });
    json!({
        "file": file,
        "calls": plan.calls,
        "frames": plan.frames,
        "submissions": plan.submits,
        "devices": plan.devices.iter().map(device).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
        "remarks": plan.remarks,
    })
}

fn render_plan(file: &str, plan: &ReplayPlan) -> String {
    let (calls, frames, submits) = (plan.calls, plan.frames, plan.submits);
    let mut words = format!("{file}: {calls} calls, {frames} frames, {submits} submissions\n");
    for device in &plan.devices {
        words += &render_device(device);
    }
    if plan.remarks.iter().any(|it| it == DEVICE_ADDRESS_REMARK) {
        words += &format!("note: {DEVICE_ADDRESS_REMARK}\n");
    }
    match plan.unsupported.is_empty() {
        true => words += "This machine supports all of it.\n",
        false => {
            words += "This machine does not support these calls; --force skips them:\n";
            plan.describe_unsupported().lines().for_each(|it| words += &format!("  {it}\n"));
        }
    }
    words
}

fn render_device(planned_device: &PlannedDevice) -> String {
    let there = if planned_device.recorded_name.is_empty() {
        "a device that the trace does not name"
    } else {
        &planned_device.recorded_name
    };
    let mut words = match planned_device.is_same {
        true => format!("device: {}, as in the trace\n", planned_device.replay_name),
        false => format!("device: {} in place of {there}\n", planned_device.replay_name),
    };
    let names = |all: &[String]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    // Only entries that differ on this device.
    let pairs = |all: &[(u32, u32)]| {
        let changed: Vec<String> =
            all.iter().filter(|it| it.0 != it.1).map(|it| format!("{} becomes {}", it.0, it.1)).collect();
        if changed.is_empty() { "as in the trace".to_owned() } else { changed.join(", ") }
    };
    let mut queues = pairs(&planned_device.families);
    if planned_device.shares_queues {
        queues += "; several queues of the trace are one here";
    }
    let formats: Vec<String> = planned_device.formats.iter().map(|it| format!("{} becomes {}", it.0, it.1)).collect();
    let formats = if formats.is_empty() { "as in the trace".to_owned() } else { formats.join(", ") };
    let (count, bytes) = planned_device.relocated;
    let own = if count == 0 { "none".to_owned() } else { format!("{count}, {bytes} bytes") };
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    words += &text::columns(&[
        row("missing extensions", names(&planned_device.missing_extensions)),
        row("missing features", names(&planned_device.missing_features)),
        row("queue families", queues),
        row("memory types", pairs(&planned_device.memory_types)),
        row("formats", formats),
        row("resources with memory of their own", own),
    ]);
    words
}

#[cfg(test)]
mod tests {
    use lavascope_replay::UnsupportedCall;

    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let frame_times = FrameTimes::of(times).expect("there are frames");
        assert_eq!(
            (
                frame_times.best,
                frame_times.median,
                frame_times.p90,
                frame_times.p95,
                frame_times.p99,
                frame_times.worst
            ),
            (1.0, 100.0, 180.0, 190.0, 198.0, 200.0)
        );
        assert!((frame_times.mean - 100.5).abs() < 1e-9);
        assert_eq!(FrameTimes::of(vec![Duration::from_millis(3)]).map(|it| (it.median, it.p99)), Some((3.0, 3.0)));
        assert_eq!(FrameTimes::of(Vec::new()), None);
    }

    #[test]
    fn a_plan_names_what_is_missing_and_what_is_refused() {
        let device = PlannedDevice {
            recorded_name: "one".into(),
            replay_name: "another".into(),
            missing_features: vec!["wideLines".into()],
            memory_types: vec![(0, 0), (1, 0)],
            relocated: (2, 100),
            ..PlannedDevice::default()
        };
        let what = "this driver does not have it".to_owned();
        let refused = vec![UnsupportedCall { stream: 1, call: 7, command: "vkCmdX", what, times: 3 }];
        let plan = ReplayPlan { devices: vec![device], unsupported: refused, ..ReplayPlan::default() };
        let words = render_plan("a.lava", &plan);
        let parts = ["device: another in place of one", "wideLines", "1 becomes 0\n", "2, 100 bytes"];
        assert!(parts.iter().all(|it| words.contains(it)), "{words}");
        assert!(words.contains("  thread 1, call 7, vkCmdX: this driver does not have it (3 times)\n"), "{words}");
        assert_eq!(plan_json("a.lava", &plan)["refused"][0]["times"], 3);
    }
}
