//! Host writes, into a file and out of it again.

use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{HostWrite, HostWriteBuilder};
use lavascope_trace::{BlockKind, BlockWriter, Codec, MergedReader, StreamRecord, Trace, TraceHeader, TraceRecorder};

const HEADER: TraceHeader =
    TraceHeader { version: lavascope_trace::VERSION, id: 7, began: 5, ticks_per_second: 1_000_000_000 };

/// A file with host writes: the memory, the offset, and the bytes.
fn file(all: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    let (mut recorder, mut blocks, mut writing) = (TraceRecorder::default(), Vec::new(), HostWriteBuilder::default());
    let mut end = 0;
    for (at, (memory, first, bytes)) in all.iter().enumerate() {
        writing.begin(ObjectId::new(HandleType::DeviceMemory, *memory).expect("a small number"), *first);
        writing.add_run(3, bytes);
        let record = writing.finish(at as u64 + 1, &[]);
        let span = end..end + record.len() as u64 + 1;
        end = span.end;
        recorder.add_record(StreamRecord { stream: 1, span, time: at as u64, record }, &mut |raw_block| {
            blocks.push(raw_block)
        });
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for block in blocks {
        writer.write(block.compress(Codec::None)).expect("memory takes everything");
    }
    writer.finish(&[]).expect("memory takes everything")
}

#[test]
fn what_was_written_comes_back_and_equal_bytes_are_stored_once() {
    let large: Vec<u8> = (0..16_000u32).map(|it| (it * 7 % 251) as u8).collect();
    let mut all: Vec<(u64, u64, Vec<u8>)> = (0..50).map(|it| (it % 3, it * 20_000, large.clone())).collect();
    all.push((1, 5, b"little".to_vec()));
    let file = file(&all);
    let trace = Trace::open(&file).expect("our own");
    let (stored, _) = trace.sizes()[&BlockKind::Contents];
    assert!(stored < 16_000 + 50 * 100, "{stored} bytes for 50 times the same");
    let mut merged = MergedReader::new(&trace, None);
    for (memory, first, bytes) in &all {
        let item = merged.take_next().expect("whole").expect("there is one");
        let written = HostWrite::parse(item.record).expect("our own");
        assert_eq!(written.memory().serial(), *memory);
        assert_eq!(written.runs().collect::<Vec<_>>(), [(first + 3, &bytes[..])]);
    }
    assert!(merged.take_next().expect("whole").is_none());
}
