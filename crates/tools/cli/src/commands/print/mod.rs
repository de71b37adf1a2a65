//! `lavascope print`: the calls of a trace, as text or JSON.

mod call_filter;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use lavascope_record::print::print_with;
use lavascope_record::{CheckError, HostBytes, HostWrite, ObjectNames, Record, RecordHeader, RecordPhase};
use lavascope_trace::{PartNumbers, SeekPointKind, streams};
use rustc_hash::FxHashSet;
use serde_json::json;

use self::call_filter::{CallFilter, CallRange, FoundContents, ObjectFilter};
use super::CommandOutcome;
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::record_reader::{TraceRecord, each_record};
use crate::trace::trace_file::TraceFile;

/// Print the calls of a trace, in one of the orders in which they may have happened
#[derive(clap::Args)]
pub(crate) struct PrintArguments {
    /// The trace
    file: PathBuf,
    /// Only these calls, numbered as in messages: A..B without B, or one; with a thread other than the first and a colon
    /// before it, as in `2:17`
    #[arg(value_name = "[THREAD:]CALL", value_parser = call_filter::parse_calls)]
    calls: Vec<CallRange>,
    /// Only calls of this thread
    #[arg(long, value_name = "NUMBER")]
    thread: Option<u32>,
    /// Only these frames, counted from 0: A..B without B, or one
    #[arg(long, value_name = "A..B", value_parser = range)]
    frame: Option<Range<u64>>,
    /// Only calls that use an object: its debug name, or its id, as in `VkBuffer#3`
    #[arg(long, value_name = "NAME")]
    object: Vec<String>,
    /// Only calls of this command; `*` stands for any text, and `vk` may be left out
    #[arg(long, value_name = "NAME")]
    command: Vec<String>,
    /// Only calls whose text has this text
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// `A..B`, `A..`, `..B` or one number.
pub(crate) fn range(text: &str) -> Result<Range<u64>, String> {
    let number = |value: &str, missing| match value {
        "" => Ok(missing),
        value => value.parse().map_err(|_| format!("`{value}` is not a number; use A..B, A.., ..B or one number")),
    };
    match text.split_once("..") {
        Some((first, end)) => Ok(number(first, 0)?..number(end, u64::MAX)?),
        None => number(text, 0).map(|it: u64| it..it.saturating_add(1)),
    }
}

pub(crate) fn run(arguments: &PrintArguments) -> anyhow::Result<CommandOutcome> {
    let file = TraceFile::read(&arguments.file)?;
    let trace = file.open()?;
    let first_stream = streams(&trace, file.tail()).first().copied();
    let filter = CallFilter {
        calls: arguments.calls.iter().map(|it| it.with_thread(first_stream.unwrap_or(0))).collect(),
        thread: arguments.thread,
        frames: arguments.frame.clone(),
        objects: ObjectFilter::of(&arguments.object, &file, &trace)?,
        commands: call_filter::commands(&arguments.command)?,
        text: arguments.grep.clone(),
    };
    let speed = trace.metadata().iter().rev().find_map(|it| it["ticks_per_second"].as_u64());
    let speed = speed.unwrap_or(trace.header().ticks_per_second).max(1);
    let mut printer = CallPrinter {
        filter,
        is_json: arguments.json,
        ticks_per_second: speed,
        frames: PartNumbers::of_frames(&trace),
        presents: 0,
        last: (0, 0),
        object_names: ObjectNames::default(),
        threads: BTreeMap::new(),
        open_calls: FxHashSet::default(),
        held_calls: BTreeMap::new(),
    };
    let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
    let mut has_reader = true;
    let outcome = each_record(&file, &trace, &TerminalProgress::new(file.size()), |trace_record| {
        let text = printer.render_record(trace_record);
        // A reader that went away has seen enough.
        has_reader = text.is_empty() || out.write_all(text.as_bytes()).is_ok();
        has_reader
    });
    let _ = out.write_all(printer.rest().as_bytes()).and_then(|()| out.flush());
    if !has_reader {
        return Ok(CommandOutcome::Success);
    }
    for value in &outcome.damage {
        text::emit_stderr(&format!("lavascope: {}: {value}\n", file.path.display()));
    }
    if let Some(missing) = printer.filter.missing_call(&printer.threads) {
        anyhow::bail!("{}: {missing}", file.path.display());
    }
    Ok(if outcome.damage.is_empty() { CommandOutcome::Success } else { CommandOutcome::Findings })
}

/// A call of which the results decide as well whether it is printed.
struct HeldCall {
    text: String,
    found: FoundContents,
}

struct CallPrinter {
    filter: CallFilter,
    is_json: bool,
    ticks_per_second: u64,
    frames: PartNumbers,
    /// Number of frames so far.
    presents: u64,
    /// The thread and the number of the call that was printed last.
    last: (u32, u64),
    object_names: ObjectNames,
    /// The numbers of the first and the last call of each thread.
    threads: BTreeMap<u32, (u64, u64)>,
    /// Calls that were printed and have not returned.
    open_calls: FxHashSet<(u32, u64)>,
    held_calls: BTreeMap<(u32, u64), HeldCall>,
}

impl CallPrinter {
    /// A record as it is printed; nothing if it is not wanted.
    fn render_record(&mut self, trace_record: &TraceRecord<'_>) -> String {
        let head = RecordHeader::from_words(trace_record.words[0], trace_record.words[1]);
        let (thread, frame) = (trace_record.stream, self.frames.original(self.presents));
        let own = HostWrite::parse(trace_record.words).filter(|it| it.is_after_wait());
        // What is new in memory belongs to the call behind it, and what was found after a wait to the wait.
        let call = head.call + u64::from(!head.is_call() && own.is_none());
        if let Some(written) = HostWrite::parse(trace_record.words) {
            let is_wanted =
                self.filter.accepts_write(written.memory()) && self.filter.accepts_place(thread, call, frame);
            return if is_wanted { self.render_write(trace_record, call, written) } else { String::new() };
        }
        let is_plain = self.filter.commands.is_none() && !self.filter.needs_contents();
        if let Some(bytes) = HostBytes::parse(trace_record.words) {
            let is_wanted = is_plain && self.filter.accepts_place(thread, call, frame);
            return if is_wanted { self.render_host_bytes(trace_record, call, bytes) } else { String::new() };
        }
        match &trace_record.record {
            Ok(record) if record.phase() == RecordPhase::Enter => self.render_enter(trace_record, *record, frame),
            Ok(record) => self.render_leave(trace_record, *record),
            Err(why) if is_plain && self.filter.accepts_place(thread, call, frame) => {
                self.render_unknown(trace_record, why)
            }
            Err(_) => String::new(),
        }
    }

    /// Calls that never returned, as far as they are wanted.
    fn rest(&mut self) -> String {
        std::mem::take(&mut self.held_calls).into_values().filter(|it| it.found.are_all()).map(|it| it.text).collect()
    }

    fn render_enter(&mut self, trace_record: &TraceRecord<'_>, record: Record<'_>, frame: u64) -> String {
        self.object_names.apply(record);
        let place = (trace_record.stream, record.call_number());
        self.threads.entry(place.0).or_insert((place.1, place.1)).1 = place.1;
        self.presents += u64::from(SeekPointKind::of(record.command()) == Some(SeekPointKind::Frame));
        if !self.filter.accepts_place(place.0, place.1, frame) || !self.filter.accepts_command(record.command()) {
            return String::new();
        }
        let body = print_with(record, &self.object_names);
        let found = self.filter.contents(record, &body);
        let text = self.render_call(trace_record, record, frame, &body);
        match record.command().desc().outputs {
            Some(_) if self.filter.needs_contents() => {
                self.held_calls.insert(place, HeldCall { text, found });
                String::new()
            }
            has_leave => {
                if has_leave.is_some() {
                    self.open_calls.insert(place);
                }
                if found.are_all() { text } else { String::new() }
            }
        }
    }

    fn render_leave(&mut self, trace_record: &TraceRecord<'_>, record: Record<'_>) -> String {
        let place = (trace_record.stream, record.call_number());
        let held = self.held_calls.remove(&place);
        if held.is_none() && !self.open_calls.remove(&place) {
            return String::new();
        }
        let frame = self.frames.original(self.presents);
        let body = print_with(record, &self.object_names);
        match held {
            None => self.render_call(trace_record, record, frame, &body),
            Some(HeldCall { text, found }) if found.with(self.filter.contents(record, &body)).are_all() => {
                self.last = place;
                text + &self.render_call(trace_record, record, frame, &body)
            }
            Some(_) => String::new(),
        }
    }

    fn seconds(&self, trace_record: &TraceRecord<'_>) -> f64 {
        trace_record.time as f64 / self.ticks_per_second as f64
    }

    /// One record of a call.
    fn render_call(&mut self, trace_record: &TraceRecord<'_>, record: Record<'_>, frame: u64, body: &str) -> String {
        let (thread, call, seconds) = (trace_record.stream, record.call_number(), self.seconds(trace_record));
        let is_enter = record.phase() == RecordPhase::Enter;
        if self.is_json {
            let after: Vec<_> =
                record.order_edges().map(|it| json!({ "thread": it.thread, "call": it.call })).collect();
            let line = json!({
                "frame": frame,
                "thread": thread,
                "call": call,
                "seconds": seconds,
                "kind": if is_enter { "enter" } else { "leave" },
                "command": record.command().desc().name,
                "after": after,
                "text": body,
            });
            return format!("{line}\n");
        }
        let mut text = match is_enter {
            true => format!("// call {call} of thread {thread}: frame {frame}, {seconds:.9} s\n"),
            false if self.last == (thread, call) => String::new(),
            false => format!("// call {call} of thread {thread} returns\n"),
        };
        self.last = (thread, call);
        text.extend(record.order_edges().map(|it| format!("// after call {} of thread {}\n", it.call, it.thread)));
        text + body
    }

    /// What is new in mapped memory before a call, or after a wait.
    fn render_write(&mut self, trace_record: &TraceRecord<'_>, call: u64, written: HostWrite<'_>) -> String {
        let (memory, thread) = (written.memory().to_string(), trace_record.stream);
        let when = if written.is_after_wait() { "after" } else { "before" };
        if self.is_json {
            let run = |it: Range<u64>| json!({ "offset": it.start, "bytes": it.end - it.start });
            let runs: Vec<_> = written.ranges().map(run).collect();
            let line = json!({
                "thread": thread,
                "call": call,
                "found": when,
                "seconds": self.seconds(trace_record),
                "kind": "memory",
                "memory": memory,
                "has_contents": written.has_bytes(),
                "runs": runs,
            });
            return format!("{line}\n");
        }
        self.last = (0, 0);
        // Without bytes, they come with the next submission.
        let what = if written.has_bytes() { "new" } else { "written" };
        let line = |range: Range<u64>| {
            let (size, offset) = (range.end - range.start, range.start);
            format!("// {what} {when} call {call} of thread {thread}: {size} bytes at {offset} of {memory}\n")
        };
        written.ranges().map(line).collect()
    }

    /// What the call behind it reads from memory of the program.
    fn render_host_bytes(
        &self,
        trace_record: &TraceRecord<'_>,
        call: u64,
        HostBytes { region, first, bytes }: HostBytes<'_>,
    ) -> String {
        let (thread, size) = (trace_record.stream, bytes.len());
        if self.is_json {
            let line = json!({ "thread": thread, "call": call, "kind": "host", "region": region, "first": first, "bytes": size });
            return format!("{line}\n");
        }
        format!("// region {region} of call {call} of thread {thread} reads {size} bytes from byte {first} on\n")
    }

    fn render_unknown(&self, trace_record: &TraceRecord<'_>, why: &CheckError) -> String {
        match self.is_json {
            true => {
                format!("{}\n", json!({ "thread": trace_record.stream, "kind": "unknown", "text": why.to_string() }))
            }
            false => format!("// no call that this version knows: {why}\n"),
        }
    }
}
