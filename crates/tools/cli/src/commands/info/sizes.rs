//! What makes a trace large: by kind, by frame, and the resources and shaders with the most bytes.
//!
//! The sizes are those of records before compression. Equal contents count each time, although the file has them once.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::ObjectId;
use lavascope_record::{Call, HostBytes, HostWrite, ObjectNames, Outcome, Record, RecordPhase};
use lavascope_trace::{PartNumbers, SeekPointKind};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::trace::record_reader::TraceRecord;

/// The number of frames and of resources in the text, and of resources in the JSON.
const TEXT_FRAMES_MAX: usize = 5;
const TEXT_RESOURCES_MAX: usize = 8;
const RESOURCES_MAX: usize = 100;

/// The sizes, as the JSON has them.
#[derive(Debug, Default, Serialize)]
pub(super) struct TraceSizes {
    by_kind: BTreeMap<&'static str, u64>,
    by_frame: Vec<FrameSize>,
    largest: Vec<ResourceSize>,
}

/// A frame, from the present before it to its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct FrameSize {
    frame: u64,
    calls: u64,
    submissions: u64,
    bytes: u64,
    /// The part of the bytes that is contents of mapped memory.
    memory_bytes: u64,
}

/// A resource, memory without a known resource, or a shader, with the bytes that the trace has for it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ResourceSize {
    object: String,
    name: Option<String>,
    bytes: u64,
}

/// Adds up sizes, record by record.
pub(super) struct SizeCounter {
    numbers: PartNumbers,
    sizes: TraceSizes,
    frame: FrameSize,
    names: ObjectNames,
    /// Of each object with bytes.
    bytes: FxHashMap<ObjectId, u64>,
    /// The size of a buffer or of the code of a shader that is being created, by thread and call.
    creating: FxHashMap<(u32, u64), u64>,
    buffers: FxHashMap<ObjectId, u64>,
    bindings: FxHashMap<ObjectId, Vec<(Range<u64>, ObjectId)>>,
}

impl SizeCounter {
    pub(super) fn new(numbers: PartNumbers) -> SizeCounter {
        SizeCounter {
            numbers,
            sizes: TraceSizes::default(),
            frame: FrameSize::default(),
            names: ObjectNames::default(),
            bytes: FxHashMap::default(),
            creating: FxHashMap::default(),
            buffers: FxHashMap::default(),
            bindings: FxHashMap::default(),
        }
    }

    pub(super) fn add(&mut self, trace_record: &TraceRecord<'_>) {
        let size = trace_record.words.len() as u64 * 8;
        self.frame.bytes += size;
        let kind = if let Some(written) = HostWrite::parse(trace_record.words) {
            self.frame.memory_bytes += size;
            self.add_write(written);
            if written.is_after_wait() { "memory after waits" } else { "memory before calls" }
        } else if HostBytes::parse(trace_record.words).is_some() {
            "memory for copies to images"
        } else if let Ok(record) = trace_record.record {
            self.add_call(trace_record.stream, record)
        } else {
            "unknown"
        };
        *self.sizes.by_kind.entry(kind).or_default() += size;
    }

    fn add_write(&mut self, written: HostWrite<'_>) {
        let memory = written.memory();
        for (offset, bytes) in written.runs() {
            let mut rest = bytes.len() as u64;
            let end = offset + rest;
            for (range, resource) in self.bindings.get(&memory).into_iter().flatten() {
                let part = range.end.min(end).saturating_sub(range.start.max(offset)).min(rest);
                if part > 0 {
                    rest -= part;
                    *self.bytes.entry(*resource).or_default() += part;
                }
            }
            *self.bytes.entry(memory).or_default() += rest;
        }
    }

    fn add_call(&mut self, stream: u32, record: Record<'_>) -> &'static str {
        self.names.apply(record);
        let place = (stream, record.call_number());
        if record.phase() == RecordPhase::Leave {
            self.add_outcome(place, record);
            return "calls";
        }
        self.frame.calls += 1;
        match SeekPointKind::of(record.command()) {
            Some(SeekPointKind::Submit) => self.frame.submissions += 1,
            Some(SeekPointKind::Frame) => self.end_frame(),
            None => {}
        }
        let Some(call) = Call::of(record) else { return "calls" };
        match call {
            Call::CreateBuffer(params) => {
                self.creating.extend(params.p_create_info().map(|it| (place, it.size)));
            }
            Call::CreateShaderModule(params) => {
                self.creating.extend(params.p_create_info().map(|it| (place, it.code_size)));
                return "shaders";
            }
            Call::BindBufferMemory(params) => self.bind(params.memory.0, params.buffer.0, params.memory_offset),
            Call::BindBufferMemory2(params) => {
                params.p_bind_infos().iter().for_each(|it| self.bind(it.memory.0, it.buffer.0, it.memory_offset));
            }
            Call::FreeMemory(params) => {
                ObjectId::from_raw(params.memory.0).map(|it| self.bindings.remove(&it));
            }
            _ => {}
        }
        "calls"
    }

    /// A created object has an id.
    fn add_outcome(&mut self, place: (u32, u64), record: Record<'_>) {
        let Some(size) = self.creating.remove(&place) else { return };
        let id = |raw: Option<u64>| raw.and_then(ObjectId::from_raw).filter(|it| *it != ObjectId::NULL);
        match Outcome::of(record) {
            Some(Outcome::CreateBuffer(outputs)) => {
                self.buffers.extend(id(outputs.p_buffer().map(|it| it.0)).map(|it| (it, size)));
            }
            Some(Outcome::CreateShaderModule(outputs)) => {
                self.bytes.extend(id(outputs.p_shader_module().map(|it| it.0)).map(|it| (it, size)));
            }
            _ => {}
        }
    }

    fn bind(&mut self, memory: u64, buffer: u64, offset: u64) {
        let (Some(memory), Some(buffer)) = (ObjectId::from_raw(memory), ObjectId::from_raw(buffer)) else { return };
        let Some(size) = self.buffers.get(&buffer) else { return };
        let range = offset..offset.saturating_add(*size);
        let bindings = self.bindings.entry(memory).or_default();
        // What was there before is gone.
        bindings.retain(|it| it.0.end <= range.start || range.end <= it.0.start);
        bindings.push((range, buffer));
    }

    fn end_frame(&mut self) {
        let frame = self.numbers.original(self.sizes.by_frame.len() as u64);
        self.sizes.by_frame.push(FrameSize { frame, ..std::mem::take(&mut self.frame) });
    }

    pub(super) fn finish(self) -> TraceSizes {
        let SizeCounter { mut sizes, bytes, names, .. } = self;
        let mut all: Vec<(ObjectId, u64)> = bytes.into_iter().filter(|it| it.1 > 0).collect();
        all.sort_unstable_by_key(|it| (std::cmp::Reverse(it.1), it.0.raw()));
        let resource = |(id, bytes): (ObjectId, u64)| ResourceSize {
            object: id.to_string(),
            name: names.name(id).map(str::to_owned),
            bytes,
        };
        sizes.largest = all.into_iter().take(RESOURCES_MAX).map(resource).collect();
        sizes
    }
}

impl TraceSizes {
    /// The rows of the text.
    pub(super) fn rows(&self) -> Vec<[String; 2]> {
        let mut rows: Vec<[String; 2]> =
            self.by_kind.iter().map(|it| [format!("size of {}", it.0), format!("{} bytes", it.1)]).collect();
        let mut frames: Vec<&FrameSize> = self.by_frame.iter().collect();
        frames.sort_by_key(|it| std::cmp::Reverse(it.bytes));
        for frame in frames.into_iter().take(TEXT_FRAMES_MAX) {
            let FrameSize { frame, calls, bytes, memory_bytes, .. } = frame;
            let text = format!("{bytes} bytes, {memory_bytes} of them memory, {calls} calls");
            rows.push([format!("size of frame {frame}"), text]);
        }
        for ResourceSize { object, name, bytes } in self.largest.iter().take(TEXT_RESOURCES_MAX) {
            let name = name.as_ref().map(|it| format!(" {it:?}")).unwrap_or_default();
            rows.push([format!("size of {object}{name}"), format!("{bytes} bytes")]);
        }
        rows
    }
}
