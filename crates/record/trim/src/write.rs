//! The second pass over a trace: writes the calls that are kept, in the order of their streams.

use std::io::{self, Write};

use lavascope_abi as vk;
use lavascope_abi::{Command, ObjectId, Structure};
use lavascope_record::encoding::{HEADER_SIZE, OrderEdge, RecordHeader, RecordPhase};
use lavascope_record::{HostWrite, host_write};
use lavascope_trace::{
    BlockWriter, Codec, MergedReader, MergedRecord, PartNumbers, RawBlock, SkippedRecords, StreamRecord, Tail, Trace,
    TraceHeader, TraceRecorder, VERSION,
};
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::kept_calls::{InsertedCall, KeptCalls};
use crate::order_edges::OrderEdges;
use crate::scan::{PartBounds, Scan, ScannedCall, ScannedKind};
use crate::skipped_spans::SkippedSpans;
use crate::{PROGRESS_INTERVAL, TrimError, TrimRange, TrimSummary};

/// What the first pass decided.
pub(crate) struct TrimPlan<'a> {
    pub(crate) scan: &'a Scan,
    pub(crate) bounds: PartBounds,
    pub(crate) spans: &'a SkippedSpans,
    pub(crate) kept: &'a KeptCalls,
    pub(crate) part: &'a TrimRange,
}

struct TrimOutput<W> {
    writer: BlockWriter<W>,
    recorder: TraceRecorder,
    edges: OrderEdges,
    word_offsets: FxHashMap<u32, u64>,
    failed: Option<io::Error>,
}

pub(crate) fn write(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    plan: &TrimPlan<'_>,
    to: impl Write,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<TrimSummary, TrimError> {
    let summary = plan.summary();
    let header = TraceHeader { version: VERSION, id: trace.header().id ^ 1 << 127, ..*trace.header() };
    let mut writer = BlockWriter::new(to, header)?;
    // The metadata about the requested part are written anew.
    for facts in trace.metadata().into_iter().filter(|it| it["wanted"].is_null()) {
        writer.write(RawBlock::metadata(&facts).compress(Codec::Zstd))?;
    }
    for facts in plan.skipped_records().metadata() {
        writer.write(RawBlock::metadata(&facts).compress(Codec::Zstd))?;
    }
    let kept = [(true, PartNumbers::of_frames(trace)), (false, PartNumbers::of_submits(trace))];
    let [frames, submits] = kept.map(|(is_frame, before)| plan.kept_numbers(is_frame, &before));
    writer.write(RawBlock::metadata(&plan.metadata(&summary, [frames, submits])).compress(Codec::Zstd))?;
    let mut output = TrimOutput {
        writer,
        recorder: TraceRecorder::default(),
        edges: OrderEdges::default(),
        word_offsets: FxHashMap::default(),
        failed: None,
    };
    let mut merged = MergedReader::new(trace, tail);
    let mut place = 0;
    while let Some(item) = merged.take_next()? {
        if place > plan.bounds.end {
            break;
        }
        plan.write_item(&item, &mut output);
        place += 1;
        if place.is_multiple_of(PROGRESS_INTERVAL) {
            let (done, all) = merged.progress();
            watch(done, all);
        }
    }
    output.finish()?;
    Ok(summary)
}

impl TrimPlan<'_> {
    fn write_item(&self, item: &MergedRecord<'_>, output: &mut TrimOutput<impl Write>) {
        let words = item.record;
        let head = RecordHeader::from_words(words[0], words[1]);
        let index = self.scan.by_number.get(&(item.stream, head.call)).copied();
        let order_edges = words[head.body_words as usize..].iter().map(|it| OrderEdge::from_word(*it));
        // A record without a number of its own is kept.
        if index.is_none_or(|it| self.kept.is_kept[it]) {
            let order_edges = output.edges.keep_record(item.stream, order_edges);
            let mut words = with_edges(&words[..head.body_words as usize], &order_edges);
            if HostWrite::has_device_write(head) {
                // The calls that wrote it may be missing in the part, so the replay has to put it there.
                let omissions = host_write::FOUND_AFTER_WAIT;
                let own = RecordHeader { omissions, order_edge_count: order_edges.len() as u32, ..head };
                words[..HEADER_SIZE / 8].copy_from_slice(&own.to_words());
            }
            output.record(item, &words);
        } else {
            output.edges.skip_record(item.stream, order_edges);
            let instead = index.and_then(|it| self.kept.inserted.get(&it));
            if let Some(instead) = instead.filter(|_| head.kind == RecordPhase::Enter as u8) {
                output.write_inserted(item, head.call, *instead);
            }
        }
    }

    fn summary(&self) -> TrimSummary {
        let mut summary = TrimSummary { reason: self.spans.reason, ..TrimSummary::default() };
        for (index, call) in self.scan.calls.iter().enumerate().filter(|it| it.1.first_record <= self.bounds.end) {
            let is_before = call.last_record < self.bounds.first;
            let is_kept = self.kept.is_kept[index];
            // Host writes have a place among the calls, but are not calls. Added calls are.
            let is_added = !is_kept && self.kept.inserted.contains_key(&index);
            let is_call = is_added || (is_kept && matches!(call.kind, ScannedKind::Command(_)));
            summary.calls += u64::from(is_call);
            summary.calls_before += u64::from(is_call && is_before);
            for (is_frame, before, own, out) in [
                (true, &mut summary.frames_before, &mut summary.frames, &mut summary.frames_left_out),
                (false, &mut summary.submits_before, &mut summary.submits, &mut summary.submits_left_out),
            ] {
                if call.is_boundary(is_frame) && call.last_record <= self.bounds.end {
                    *(if !is_kept {
                        out
                    } else if is_before {
                        before
                    } else {
                        own
                    }) += 1;
                }
            }
        }
        summary
    }

    /// The records beside calls that are skipped, so that calls keep their numbers.
    fn skipped_records(&self) -> SkippedRecords {
        let mut skipped = SkippedRecords::default();
        let is_read = |it: &&ScannedCall| it.first_record <= self.bounds.end;
        for (call, is_kept) in self.scan.calls.iter().take_while(is_read).zip(&self.kept.is_kept) {
            match call.kind {
                _ if *is_kept => skipped.keep(call.stream),
                ScannedKind::HostWrite | ScannedKind::HostRead => skipped.skip(call.stream, call.number),
                ScannedKind::Command(_) => {}
            }
        }
        skipped
    }

    /// The numbers of the frames or submissions that are kept, in the trace that was captured.
    fn kept_numbers(&self, is_frame: bool, before: &PartNumbers) -> PartNumbers {
        let is_right = |it: &(&ScannedCall, &bool)| it.0.is_boundary(is_frame);
        let all = self.scan.calls.iter().zip(&self.kept.is_kept).filter(is_right);
        let is_written = |it: &(usize, (&ScannedCall, &bool))| *it.1.1 && it.1.0.last_record <= self.bounds.end;
        PartNumbers::from_numbers(all.enumerate().filter(is_written).map(|it| before.original(it.0 as u64)))
    }

    fn metadata(&self, summary: &TrimSummary, [frames, submits]: [PartNumbers; 2]) -> serde_json::Value {
        let (what, range) = match self.part {
            TrimRange::Frames(range) => ("frames", range),
            TrimRange::Submits(range) => ("submits", range),
        };
        let end = (range.end != u64::MAX).then_some(range.end);
        json!({ "trimmed": {
            "of": what,
            "first": range.start,
            "end": end,
            "frames": frames.to_json(),
            "submits": submits.to_json(),
            "frames_before": summary.frames_before,
            "submits_before": summary.submits_before,
            "calls_before": summary.calls_before,
        }})
    }
}

impl<W: Write> TrimOutput<W> {
    fn record(&mut self, item: &MergedRecord<'_>, record: &[u64]) {
        let TrimOutput { writer, recorder, word_offsets, failed, .. } = self;
        let word_offset = word_offsets.entry(item.stream).or_default();
        let span = *word_offset..*word_offset + record.len() as u64 + 1;
        *word_offset = span.end;
        let recorded = StreamRecord { stream: item.stream, span, time: item.time, record };
        recorder.add_record(recorded, &mut |raw_block| {
            if let Err(error) = writer.write_compressed(raw_block, Codec::Zstd) {
                failed.get_or_insert(error);
            }
        });
        if let Some(call) = RecordHeader::from_words(record[0], record[1]).completed_call() {
            self.edges.complete(item.stream, call);
        }
    }

    /// An added call, with the number of the skipped call that it replaces.
    fn write_inserted(&mut self, item: &MergedRecord<'_>, call: u64, instead: InsertedCall) {
        let before = self.edges.edges_to_all(item.stream);
        let order_edges = self.edges.keep_record(item.stream, before.into_iter());
        let (enter, leave) = match instead {
            InsertedCall::WaitIdle(device) => wait_idle(device, call),
            InsertedCall::SignalSemaphore(semaphore, signal_semaphore) => {
                signal(signal_semaphore.device, semaphore, signal_semaphore.value, call)
            }
        };
        self.record(item, &with_edges(&enter, &order_edges));
        self.record(item, &leave);
        self.edges.order_all_after(item.stream, call);
    }

    fn finish(self) -> Result<(), TrimError> {
        let TrimOutput { mut writer, mut recorder, mut failed, .. } = self;
        recorder.flush(&mut |raw_block| {
            if let Err(error) = writer.write_compressed(raw_block, Codec::Zstd) {
                failed.get_or_insert(error);
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        writer.finish(recorder.seek_points())?;
        Ok(())
    }
}

/// The body of a record with other order edges.
fn with_edges(body: &[u64], order_edges: &[u64]) -> Vec<u64> {
    let head =
        RecordHeader { order_edge_count: order_edges.len() as u32, ..RecordHeader::from_words(body[0], body[1]) };
    head.to_words().iter().chain(&body[HEADER_SIZE / 8..]).chain(order_edges).copied().collect()
}

fn record(command: Command, kind: RecordPhase, call: u64, image: &[u64]) -> Vec<u64> {
    let head = RecordHeader {
        body_words: (HEADER_SIZE / 8 + image.len()) as u32,
        command: command as u16,
        kind: kind as u8,
        omissions: 0,
        call,
        order_edge_count: 0,
    };
    head.to_words().iter().chain(image).copied().collect()
}

fn wait_idle(device: ObjectId, call: u64) -> (Vec<u64>, Vec<u64>) {
    let command = Command::DeviceWaitIdle;
    (record(command, RecordPhase::Enter, call, &[device.raw()]), record(command, RecordPhase::Leave, call, &[0]))
}

fn signal(device: ObjectId, semaphore: ObjectId, value: u64, call: u64) -> (Vec<u64>, Vec<u64>) {
    let command = Command::SignalSemaphore;
    let s_type = vk::SemaphoreSignalInfo::layout().s_type().unwrap_or(0) as u32;
    let info = HEADER_SIZE as u64 + 16;
    let image = [device.raw(), info, s_type.into(), 0, semaphore.raw(), value];
    (record(command, RecordPhase::Enter, call, &image), record(command, RecordPhase::Leave, call, &[0]))
}

#[cfg(test)]
mod tests {
    use lavascope_abi::HandleType;
    use lavascope_record::{check, print::print};

    use super::*;

    #[test]
    fn calls_of_ours_are_what_they_seem() {
        let id = |ty| ObjectId::new(ty, 3).expect("a small number");
        let (device, semaphore) = (id(HandleType::Device), id(HandleType::Semaphore));
        for (enter, leave) in [wait_idle(device, 9), signal(device, semaphore, 77, 9)] {
            let enter = check(&enter).expect("a whole record");
            assert!(check(&leave).is_ok_and(|it| it.command() == enter.command() && it.call_number() == 9));
        }
        let text = print(check(&signal(device, semaphore, 77, 9).0).expect("a whole record"));
        assert!(text.contains("value = 77") && text.contains("VkSemaphore#3"), "{text}");
    }
}
