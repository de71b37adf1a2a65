//! `lavascope info`: what is in a trace.

mod sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::path::PathBuf;

use lavascope_abi::Command;
use lavascope_record::{Call, HostBytes, HostWrite, Record, RecordPhase, version_text};
use lavascope_trace::{BlockKind, CallNumbers, PartNumbers, SeekPointKind, Trace};
use serde::Serialize;
use serde_json::Value;

use self::sizes::{SizeCounter, TraceSizes};
use super::CommandOutcome;
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::enabled_features;
use crate::trace::record_reader::each_record;
use crate::trace::trace_file::TraceFile;

/// Describe a trace: the program, its threads, frames and calls, and whether the file is complete
#[derive(clap::Args)]
pub(crate) struct InfoArguments {
    /// The trace
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &InfoArguments) -> anyhow::Result<CommandOutcome> {
    let file = TraceFile::read(&arguments.file)?;
    let trace = file.open()?;
    let info = TraceInfo::of(&file, &trace);
    if arguments.json {
        text::emit_json(&info)?;
    } else {
        text::emit(&info.render())?;
    }
    Ok(if info.damage.is_empty() && info.order.is_acyclic { CommandOutcome::Success } else { CommandOutcome::Findings })
}

#[derive(Debug, Default, Serialize)]
struct TraceInfo {
    file: String,
    bytes: u64,
    /// Whether the capture came to its end.
    is_complete: bool,
    program: Option<String>,
    /// Which part of another trace it is.
    part_of: Option<String>,
    began: u64,
    seconds: f64,
    frames: usize,
    submissions: usize,
    threads: BTreeMap<u32, Thread>,
    calls: u64,
    commands: BTreeMap<&'static str, u64>,
    /// Of records that no command of this version has.
    unknown_records: u64,
    /// Bytes of the file by what they hold.
    stored: BTreeMap<&'static str, Stored>,
    application: Option<String>,
    api_version: Option<String>,
    /// What the driver says about each device that was made.
    devices: Vec<Value>,
    /// How host writes were found in each type of memory.
    memory_detection: Vec<Value>,
    instance_extensions: BTreeSet<String>,
    device_extensions: BTreeSet<String>,
    /// That devices were made with.
    features: BTreeSet<String>,
    /// Memory that was allocated, by the number of its type.
    memory: BTreeMap<u32, MemoryTypeInfo>,
    /// What was written into mapped memory.
    memory_written: MemoryWritten,
    /// What copies to images read from memory of the program.
    host_bytes: u64,
    /// What makes the trace large, before compression.
    sizes: TraceSizes,
    order: OrderInfo,
    /// Objects that two threads used at once, although they must not.
    broken_synchronization: Vec<Value>,
    /// Commands that the application asked for and this version did not know: calls of them are not in the file.
    unknown_commands: BTreeSet<String>,
    damage: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct Thread {
    calls: u64,
    /// The numbers of its first and its last call.
    first_call: u64,
    last_call: u64,
    /// The call in which it was when the capture ended, and its number.
    did_not_return: Option<&'static str>,
    open_call: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct MemoryTypeInfo {
    allocations: u64,
    bytes: u64,
}

#[derive(Debug, Default, Serialize)]
struct Stored {
    bytes: u64,
    unpacked: u64,
}

#[derive(Debug, Default, Serialize)]
struct MemoryWritten {
    /// By the host before calls, or by the device where the capture could not tell.
    bytes: u64,
    /// The part that was found after waits for the device.
    bytes_after_waits: u64,
    /// Pieces of bytes in a row.
    runs: u64,
    memories: BTreeSet<String>,
}

#[derive(Debug, Default, Serialize)]
struct OrderInfo {
    /// Whether the calls of all threads can be put into one order.
    is_acyclic: bool,
    /// Calls that must come after one of another thread.
    hand_overs: u64,
}

impl TraceInfo {
    fn of(file: &TraceFile, trace: &Trace<'_>) -> TraceInfo {
        let mut info = TraceInfo {
            file: file.path.display().to_string(),
            bytes: trace.size() as u64,
            is_complete: trace.is_complete() && !file.has_tail(),
            began: trace.header().began,
            ..TraceInfo::default()
        };
        let mut speed = trace.header().ticks_per_second;
        for facts in trace.metadata() {
            info.program = facts["program"].as_str().map(str::to_owned).or(info.program);
            speed = facts["ticks_per_second"].as_u64().unwrap_or(speed);
            info.devices.extend(facts.get("device").cloned());
            info.memory_detection.extend(facts["memory_detection"].as_array().into_iter().flatten().cloned());
            info.broken_synchronization.extend(facts.get("broken_synchronization").cloned());
            info.unknown_commands.extend(facts["unknown_command"].as_str().map(str::to_owned));
            info.part_of = part_of(&facts["trimmed"]).or(info.part_of);
        }
        for (kind, (bytes, unpacked)) in trace.sizes() {
            info.stored.insert(name_of(kind), Stored { bytes, unpacked });
        }
        let last = info.read(file, trace);
        info.seconds = last as f64 / speed.max(1) as f64;
        info
    }

    /// Goes through all records; gives the time of the last.
    fn read(&mut self, file: &TraceFile, trace: &Trace<'_>) -> u64 {
        let mut last = 0;
        let mut sizes = SizeCounter::new(PartNumbers::of_frames(trace));
        let outcome = each_record(file, trace, &TerminalProgress::new(file.size()), |trace_record| {
            last = last.max(trace_record.time);
            sizes.add(trace_record);
            match (&trace_record.record, HostWrite::parse(trace_record.words), HostBytes::parse(trace_record.words)) {
                (Ok(record), ..) => self.add(trace_record.stream, *record),
                (_, Some(written), _) => self.memory_written.add(written),
                (_, _, Some(read)) => self.host_bytes += read.bytes.len() as u64,
                (Err(_), None, None) => self.unknown_records += 1,
            }
            true
        });
        self.sizes = sizes.finish();
        for facts in &mut self.broken_synchronization {
            number_calls(facts, &outcome.numbers);
        }
        self.damage = outcome.damage;
        self.order.is_acyclic = outcome.is_ordered;
        last
    }

    fn add(&mut self, stream: u32, record: Record<'_>) {
        let (thread, name) = (self.threads.entry(stream).or_default(), record.command().desc().name);
        self.order.hand_overs += u64::from(record.order_edges().len() > 0);
        if record.phase() == RecordPhase::Leave {
            (thread.did_not_return, thread.open_call) = (None, None);
            return;
        }
        let number = record.call_number();
        if thread.calls == 0 {
            thread.first_call = number;
        }
        thread.last_call = number;
        thread.calls += 1;
        thread.did_not_return = record.command().desc().outputs.map(|_| name);
        thread.open_call = thread.did_not_return.map(|_| number);
        self.calls += 1;
        *self.commands.entry(name).or_default() += 1;
        match SeekPointKind::of(record.command()) {
            Some(SeekPointKind::Frame) => self.frames += 1,
            Some(SeekPointKind::Submit) => self.submissions += 1,
            None => {}
        }
        self.read_call(record);
    }

    fn read_call(&mut self, record: Record<'_>) {
        match (record.command(), Call::of(record)) {
            (Command::CreateInstance, Some(Call::CreateInstance(call))) => {
                let Some(info) = call.p_create_info() else { return };
                self.instance_extensions.extend(info.pp_enabled_extension_names().flatten().map(lossy));
                if let Some(application_info) = info.p_application_info() {
                    self.application = application_info.p_application_name().map(lossy);
                    let version = application_info.api_version;
                    self.api_version = Some(version_text(version));
                }
            }
            (Command::CreateDevice, Some(Call::CreateDevice(call))) => {
                let Some(info) = call.p_create_info() else { return };
                self.device_extensions.extend(info.pp_enabled_extension_names().flatten().map(lossy));
                self.features.extend(enabled_features::of(info));
            }
            (Command::AllocateMemory, Some(Call::AllocateMemory(call))) => {
                let Some(info) = call.p_allocate_info() else { return };
                let memory = self.memory.entry(info.memory_type_index).or_default();
                memory.allocations += 1;
                memory.bytes = memory.bytes.saturating_add(info.allocation_size);
            }
            _ => {}
        }
    }

    fn render(&self) -> String {
        let mut rows = vec![
            row("program", self.program.as_deref().unwrap_or("unknown")),
            row("application", self.application.as_deref().unwrap_or("did not say")),
            row("Vulkan", self.api_version.as_deref().unwrap_or("1.0.0")),
            row("duration", &format!("{:.3} s", self.seconds)),
            row("frames", &self.frames.to_string()),
            row("submissions", &self.submissions.to_string()),
            row("calls", &self.calls.to_string()),
            row("threads", &self.threads.len().to_string()),
            row("memory written", &self.memory_written.text()),
            row("file", &format!("{} bytes, {:.2} a call", self.bytes, self.bytes as f64 / self.calls.max(1) as f64)),
        ];
        rows.extend(self.part_of.iter().map(|it| row("begins in the middle", it)));
        for (name, stored_item) in &self.stored {
            rows.push(row(
                &format!("  {name}"),
                &format!("{} bytes, unpacked {}", stored_item.bytes, stored_item.unpacked),
            ));
        }
        rows.extend(self.sizes.rows().iter().map(|[name, value]| row(name, value)));
        rows.push(row("order", self.order_text()));
        for (number, thread) in &self.threads {
            let open = thread.did_not_return.zip(thread.open_call);
            let open = open.map(|(it, call)| format!(", did not return from {it}, call {call}"));
            let calls = format!("{} calls, {} to {}", thread.calls, thread.first_call, thread.last_call);
            rows.push(row(&format!("thread {number}"), &(calls + &open.unwrap_or_default())));
        }
        rows.extend(self.devices.iter().map(|it| row("device", &device_text(it))));
        for (ty, type_info) in &self.memory {
            let text = format!(
                "{} bytes in {} allocations{}{}",
                type_info.bytes,
                type_info.allocations,
                self.memory_type_text(*ty),
                self.detection_text(*ty)
            );
            rows.push(row(&format!("memory of type {ty}"), &text));
        }
        for (name, all) in [("instance", &self.instance_extensions), ("device", &self.device_extensions)] {
            rows.extend(all.iter().map(|it| row(&format!("{name} extension"), it)));
        }
        rows.extend(self.features.iter().map(|it| row("feature", it)));
        let mut commands: Vec<(&&str, &u64)> = self.commands.iter().collect();
        commands.sort_by_key(|it| std::cmp::Reverse(it.1));
        rows.extend(commands.into_iter().map(|it| row(it.0, &it.1.to_string())));
        let mut out = format!("{}\n{}", self.file, text::columns(&rows));
        if !self.is_complete {
            out += "  the capture did not come to its end; what was recorded is here\n";
        }
        for broken_synchronization_item in &self.broken_synchronization {
            let text = |key: &str| broken_synchronization_item[key].as_str().unwrap_or("something").to_owned();
            out += &format!(
                "  {} was used by two threads at once ({}, call {} of thread {}; call {} of thread {}): the order means nothing there\n",
                text("object"),
                text("command"),
                broken_synchronization_item["call"],
                broken_synchronization_item["thread"],
                broken_synchronization_item["other_call"],
                broken_synchronization_item["other_thread"],
            );
        }
        for unknown_command in &self.unknown_commands {
            out += &format!("  {unknown_command} was newer than the version that captured: calls of it are not here\n");
        }
        if self.unknown_records > 0 {
            out += &format!("  {} records are of no command that this version knows\n", self.unknown_records);
        }
        out + &self.damage.iter().map(|it| format!("  damaged: {it}\n")).collect::<String>()
    }

    /// What the first device says about a type of memory.
    fn memory_type_text(&self, ty: u32) -> String {
        let Some(flags) = self.devices.first().and_then(|it| it["memory_types"][ty as usize]["propertyFlags"].as_u64())
        else {
            return String::new();
        };
        let words = ["device local", "host visible", "host coherent", "host cached", "lazily allocated", "protected"];
        let set: Vec<&str> = words.iter().enumerate().filter(|it| flags >> it.0 & 1 != 0).map(|it| *it.1).collect();
        if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) }
    }

    /// How host writes to a type of memory were found, if the driver did not import memory of the layer.
    fn detection_text(&self, ty: u32) -> String {
        let Some(detection) = self.memory_detection.iter().find(|it| it["type"].as_u64() == Some(ty.into())) else {
            return String::new();
        };
        let (method, reason) = (detection["method"].as_str(), detection["reason"].as_str().unwrap_or("unknown"));
        match method {
            None | Some("userfaultfd") => String::new(),
            Some(method) => format!("; host writes are found by \"{method}\": {reason}"),
        }
    }

    fn order_text(&self) -> &'static str {
        match self.order.is_acyclic {
            true => "the calls of all threads fit into one order",
            false => "broken: calls wait for each other, or what they wait for is missing",
        }
    }
}

fn device_text(value: &Value) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or("unknown").to_owned();
    let driver =
        value["driver"].as_str().map(|name| format!(", {name} {}", value["driver_info"].as_str().unwrap_or_default()));
    format!(
        "{} ({}), Vulkan {}{}",
        text("name"),
        text("type"),
        text("api_version"),
        driver.unwrap_or_default().trim_end()
    )
}

impl MemoryWritten {
    fn add(&mut self, host_write: HostWrite<'_>) {
        self.bytes += host_write.size() as u64;
        if host_write.is_after_wait() {
            self.bytes_after_waits += host_write.size() as u64;
        }
        self.runs += host_write.runs().len() as u64;
        let memory = host_write.memory().to_string();
        if !self.memories.contains(&memory) {
            self.memories.insert(memory);
        }
    }

    fn text(&self) -> String {
        let MemoryWritten { bytes, bytes_after_waits, runs, memories } = self;
        let after = match bytes_after_waits {
            0 => String::new(),
            after => format!(", {after} of them found after waits for the device"),
        };
        format!("{bytes} bytes in {runs} pieces, in {} memories{after}", memories.len())
    }
}

/// Replaces positions in streams by the numbers of calls.
fn number_calls(facts: &mut Value, numbers: &CallNumbers) {
    for (thread, call) in [("thread", "call"), ("other_thread", "other_call")] {
        let thread = facts[thread].as_u64().and_then(|it| u32::try_from(it).ok());
        if let (Some(thread), Some(position)) = (thread, facts[call].as_u64()) {
            facts[call] = numbers.number(thread, position).into();
        }
    }
}

/// Which part of another trace this one is.
fn part_of(facts: &serde_json::Value) -> Option<String> {
    let (of, first) = (facts["of"].as_str()?, facts["first"].as_u64()?);
    let end = facts["end"].as_u64().map(|it| it.to_string()).unwrap_or_default();
    let (frames, submits) = (facts["frames_before"].as_u64()?, facts["submits_before"].as_u64()?);
    let before = format!("behind {frames} frames and {submits} submissions that it needs");
    Some(format!("{of} {first}..{end} of another trace, {before}"))
}

/// Texts of a program need not be UTF-8.
fn lossy(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}

fn row(name: &str, value: &str) -> Vec<String> {
    vec![name.to_owned(), value.to_owned()]
}

fn name_of(kind: BlockKind) -> &'static str {
    match kind {
        BlockKind::Schema => "schema",
        BlockKind::Metadata => "facts",
        BlockKind::Contents => "contents",
        BlockKind::Calls => "calls",
        BlockKind::Index => "index",
        BlockKind::Results => "results",
    }
}
