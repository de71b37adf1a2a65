//! Shared by the tests and the fuzzer of the reader: traces, all ways to read one, and how much memory that takes.

use lavascope_test_support::TestRng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use lavascope_abi::Command;
use lavascope_record::encoding::{OrderEdge, RecordHeader, RecordPhase};
use lavascope_record::{HostWrite, check};
use lavascope_trace::repair;
use lavascope_trace::{
    BlockWriter, Codec, MergedReader, RawBlock, StreamRecord, Tail, Trace, TraceHeader, TraceRecorder, VERSION,
};

/// Counts the memory that is in use, and the most that was.
pub(crate) struct Counting;

// Relaxed: one thread is measured.
static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the memory is that of `System`, which keeps the contract of `GlobalAlloc`; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: `layout` has a size that is not zero, by the contract of `alloc`, and `System` asks for no more.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: by the contract of `dealloc`, `alloc` gave `memory` for this layout, and that was `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

pub(crate) const HEADER: TraceHeader =
    TraceHeader { version: VERSION, id: 9, began: 0, ticks_per_second: 1_000_000_000 };
/// The memory that a reader may use beside four times the size of the file.
const ROOM: usize = 64 << 20;

/// A trace of two threads with calls of many shapes, large bodies among them.
pub(crate) fn file(codec: Codec, calls: u64) -> Vec<u8> {
    let (mut recorder, mut blocks) = (TraceRecorder::default(), Vec::new());
    let commands = [Command::CmdDraw, Command::CmdPushConstants, Command::QueueSubmit, Command::CreateShaderModule];
    let (mut random, mut ends, mut numbers) = (TestRng::new(3), [0u64; 2], [0u64; 2]);
    for index in 0..calls {
        let thread = random.below(2);
        numbers[thread] += 1;
        let order_edges: Vec<u64> = match index % 50 {
            49 => vec![OrderEdge { thread: 2 - thread as u32, call: numbers[1 - thread] }.to_word()],
            _ => Vec::new(),
        };
        let width = if index % 200 == 7 { 3000 } else { 2 + random.below(6) };
        let head = RecordHeader {
            body_words: 2 + width as u32,
            command: commands[index as usize % 4] as u16,
            kind: RecordPhase::Enter as u8,
            omissions: 0,
            call: numbers[thread],
            order_edge_count: order_edges.len() as u32,
        };
        let body = (0..width as u64).map(|it| it * index % 977);
        let record: Vec<u64> = head.to_words().into_iter().chain(body).chain(order_edges).collect();
        let span = ends[thread]..ends[thread] + record.len() as u64 + 1;
        ends[thread] = span.end;
        let stream_record = StreamRecord { stream: 1 + thread as u32, span, time: index * 9, record: &record };
        recorder.add_record(stream_record, &mut |raw_block| blocks.push(raw_block));
        if index % 700 == 699 {
            recorder.flush(&mut |raw_block| blocks.push(raw_block));
        }
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for block in blocks.into_iter().chain([RawBlock::metadata(&serde_json::json!({ "program": "none" }))]) {
        writer.write(block.compress(codec)).expect("memory takes everything");
    }
    writer.finish(recorder.seek_points()).expect("memory takes everything")
}

/// Reads a whole file with its tail. Returns the number of records, the number of errors, and the memory that reading
/// took, which is limited by the size of the file.
pub(crate) fn read_all(file: &[u8], tail: &[u8]) -> (u64, u64, usize) {
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let (records, errors) = read(file, tail);
    let used = MOST.load(Ordering::Relaxed) - before;
    let size = file.len() + tail.len();
    assert!(used <= ROOM + 4 * size, "{used} bytes of memory for a file of {size}");
    (records, errors, used)
}

fn read(file: &[u8], tail: &[u8]) -> (u64, u64) {
    let Ok(trace) = Trace::open(file) else { return (0, 1) };
    let tail = Tail::read(tail);
    let (mut records, mut errors) = (0, 0);
    let _ = (trace.metadata(), trace.sizes(), trace.seek_points(), trace.streams());
    let mut merged = MergedReader::new(&trace, tail.as_ref());
    loop {
        match merged.take_next() {
            Ok(Some(merged_record)) => {
                records += 1;
                let _ = (check(merged_record.record).is_ok(), HostWrite::parse(merged_record.record).is_some());
            }
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    let _ = repair(&trace, tail.as_ref());
    (records, errors + merged.damages().len() as u64 + trace.damages().len() as u64)
}
