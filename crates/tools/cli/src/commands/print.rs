//! `lavascope print`: the calls of a trace, as text or JSON.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use lavascope_record::{CheckError, HostBytes, HostWrite, ObjectNames, RecordPhase, print::print_with};
use lavascope_trace::SeekPointKind;
use serde_json::json;

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
    /// Only calls of this thread
    #[arg(long, value_name = "NUMBER")]
    thread: Option<u32>,
    /// Only these frames, counted from 0: A..B without B, or one
    #[arg(long, value_name = "A..B", value_parser = range)]
    frame: Option<Range<u64>>,
    /// Only these calls, counted from 0 in the order in which they are printed: A..B without B, or one
    #[arg(long, value_name = "A..B", value_parser = range)]
    range: Option<Range<u64>>,
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
    let speed = trace.metadata().iter().rev().find_map(|it| it["ticks_per_second"].as_u64());
    let speed = speed.unwrap_or(trace.header().ticks_per_second).max(1);
    let mut state = CallPrinter {
        arguments,
        ticks_per_second: speed,
        call: 0,
        frame: 0,
        thread: 0,
        object_names: ObjectNames::default(),
    };
    let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
    let mut has_reader = true;
    let outcome = each_record(&file, &trace, &TerminalProgress::new(file.size()), |trace_record| {
        let text = state.render_record(trace_record);
        // A reader that went away has seen enough.
        has_reader = text.is_empty() || out.write_all(text.as_bytes()).is_ok();
        has_reader
    });
    let _ = out.flush();
    if !has_reader {
        return Ok(CommandOutcome::Success);
    }
    for value in &outcome.damage {
        text::emit_stderr(&format!("lavascope: {}: {value}\n", file.path.display()));
    }
    Ok(if outcome.damage.is_empty() { CommandOutcome::Success } else { CommandOutcome::Findings })
}

struct CallPrinter<'a> {
    arguments: &'a PrintArguments,
    ticks_per_second: u64,
    /// Calls and frames so far.
    call: u64,
    frame: u64,
    /// The thread whose call was printed last.
    thread: u32,
    object_names: ObjectNames,
}

impl CallPrinter<'_> {
    /// A record as it is printed; nothing if it is not wanted.
    fn render_record(&mut self, trace_record: &TraceRecord<'_>) -> String {
        if let Some(written) = HostWrite::parse(trace_record.words) {
            return if self.is_wanted(trace_record) { self.render_write(trace_record, written) } else { String::new() };
        }
        if let Some(bytes) = HostBytes::parse(trace_record.words) {
            return if self.is_wanted(trace_record) {
                self.render_host_bytes(trace_record, bytes)
            } else {
                String::new()
            };
        }
        let record = match &trace_record.record {
            Ok(record) => *record,
            Err(why) if self.is_wanted(trace_record) => return self.render_unknown(trace_record, why),
            Err(_) => return String::new(),
        };
        self.object_names.apply(record);
        let is_wanted = self.is_wanted(trace_record);
        let (call, frame) = (self.call, self.frame);
        if record.phase() == RecordPhase::Enter {
            self.call += 1;
            self.frame += u64::from(SeekPointKind::of(record.command()) == Some(SeekPointKind::Frame));
        }
        if !is_wanted {
            return String::new();
        }
        let body = print_with(record, &self.object_names);
        let seconds = trace_record.time as f64 / self.ticks_per_second as f64;
        if self.arguments.json {
            let after: Vec<_> =
                record.order_edges().map(|it| json!({ "thread": it.thread, "call": it.call })).collect();
            let kind = if record.phase() == RecordPhase::Enter { "enter" } else { "leave" };
            let line = json!({
                "index": call,
                "frame": frame,
                "thread": trace_record.stream,
                "call": record.call_number(),
                "seconds": seconds,
                "kind": kind,
                "command": record.command().desc().name,
                "after": after,
                "text": body,
            });
            return format!("{line}\n");
        }
        let mut text = String::new();
        if trace_record.stream != self.thread {
            self.thread = trace_record.stream;
            text += &format!("// thread {}\n", trace_record.stream);
        }
        if record.phase() == RecordPhase::Enter {
            text += &format!("// {call}: frame {frame}, {seconds:.9} s\n");
        }
        text.extend(record.order_edges().map(|it| format!("// after call {} of thread {}\n", it.call, it.thread)));
        text + &body
    }

    fn is_wanted(&self, trace_record: &TraceRecord<'_>) -> bool {
        let is_in = |range: &Option<Range<u64>>, at: u64| range.as_ref().is_none_or(|it| it.contains(&at));
        // What a call returns belongs to it.
        let is_leave = (trace_record.words[0] >> 48) as u8 == RecordPhase::Leave as u8;
        let call = self.call.saturating_sub(u64::from(is_leave));
        self.arguments.thread.is_none_or(|thread| thread == trace_record.stream)
            && is_in(&self.arguments.frame, self.frame)
            && is_in(&self.arguments.range, call)
    }

    /// What the host wrote before the call behind it.
    fn render_write(&self, trace_record: &TraceRecord<'_>, written: HostWrite<'_>) -> String {
        let (memory, seconds) = (written.memory().to_string(), trace_record.time as f64 / self.ticks_per_second as f64);
        if self.arguments.json {
            let runs: Vec<_> = written.runs().map(|it| json!({ "offset": it.0, "bytes": it.1.len() })).collect();
            let line = json!({ "thread": trace_record.stream, "seconds": seconds, "kind": "memory", "memory": memory, "runs": runs });
            return format!("{line}\n");
        }
        let line = |it: (u64, &[u8])| format!("// the host wrote {} bytes at {} of {memory}\n", it.1.len(), it.0);
        written.runs().map(line).collect()
    }

    /// What the call behind it reads from memory of the program.
    fn render_host_bytes(
        &self,
        trace_record: &TraceRecord<'_>,
        HostBytes { region, first, bytes }: HostBytes<'_>,
    ) -> String {
        if self.arguments.json {
            let size = bytes.len();
            let line = json!({ "thread": trace_record.stream, "kind": "host", "region": region, "first": first, "bytes": size });
            return format!("{line}\n");
        }
        format!("// region {region} reads {} bytes from byte {first} on\n", bytes.len())
    }

    fn render_unknown(&self, trace_record: &TraceRecord<'_>, why: &CheckError) -> String {
        match self.arguments.json {
            true => {
                format!("{}\n", json!({ "thread": trace_record.stream, "kind": "unknown", "text": why.to_string() }))
            }
            false => format!("// no call that this version knows: {why}\n"),
        }
    }
}
