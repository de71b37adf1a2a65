//! Host writes, into a file and out of it again.

use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{HostWrite, HostWriteBuilder};
use lavascope_test_support::TestRng;
use lavascope_trace::{
    BlockKind, BlockWriter, Codec, MergedReader, StreamReader, StreamRecord, Trace, TraceError, TraceHeader,
    TraceRecorder,
};

const HEADER: TraceHeader =
    TraceHeader { version: lavascope_trace::VERSION, id: 7, began: 5, ticks_per_second: 1_000_000_000 };

/// A file with host writes: the memory, the offset, and the bytes.
fn file(all: &[(u64, u64, Vec<u8>)], codec: Codec) -> Vec<u8> {
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
        writer.write_compressed(block, codec).expect("memory takes everything");
    }
    writer.finish(&[]).expect("memory takes everything")
}

#[test]
fn what_was_written_comes_back_and_equal_bytes_are_stored_once() {
    let large: Vec<u8> = (0..16_000u32).map(|it| (it * 7 % 251) as u8).collect();
    let mut all: Vec<(u64, u64, Vec<u8>)> = (0..50).map(|it| (it % 3, it * 20_000, large.clone())).collect();
    all.push((1, 5, b"little".to_vec()));
    let file = file(&all, Codec::None);
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

/// Data that come again a little moved, over more than a block.
fn moved_data() -> Vec<(u64, u64, Vec<u8>)> {
    let mut rng = TestRng::new(8);
    let data: Vec<u8> = (0..60_000).map(|_| rng.next_u64() as u8).collect();
    (0..200).map(|it| (it % 3, it * 100, data[it as usize * 40..it as usize * 40 + 40_000].to_vec())).collect()
}

#[test]
fn contents_refer_to_earlier_contents() {
    let all = moved_data();
    let file = file(&all, Codec::Zstd);
    assert!(file.len() < 200_000, "{} bytes for eight million", file.len());
    let trace = Trace::open(&file).expect("our own");
    let mut merged = MergedReader::new(&trace, None);
    for (_, first, bytes) in &all {
        let item = merged.take_next().expect("whole").expect("there is one");
        let written = HostWrite::parse(item.record).expect("our own");
        assert_eq!(written.runs().collect::<Vec<_>>(), [(first + 3, &bytes[..])]);
    }
}

/// The blocks behind a damaged one continue it: their records are errors that name a block, and the others are whole.
#[test]
fn damaged_contents_cost_the_rest_of_their_group() {
    let all = moved_data();
    let whole = file(&all, Codec::Zstd);
    let heads: Vec<usize> =
        (0..whole.len() - 8).step_by(8).filter(|it| whole[*it..].starts_with(b"LBLK\x03")).collect();
    assert!(heads.len() > 10, "{} blocks of contents", heads.len());
    for damaged in [0, heads.len() / 2, heads.len() - 1] {
        let mut file = whole.clone();
        file[heads[damaged] + 100] ^= 1;
        let trace = Trace::open(&file).expect("the rest is whole");
        let mut stream = StreamReader::new(&trace, None, 1);
        let (mut good, mut bad) = (0, 0);
        loop {
            match stream.take_next() {
                Ok(None) => break,
                Ok(Some(item)) => good += u32::from(HostWrite::parse(item.record).is_some()),
                Err(error) => {
                    assert!(matches!(error, TraceError::MissingContent { .. } | TraceError::Block { .. }), "{error}");
                    bad += 1;
                }
            }
        }
        assert_eq!(good + bad, 200);
        assert!(bad > 0 && (damaged == 0 || good > 0), "block {damaged}: {good} good, {bad} bad");
    }
}

/// What the device wrote lies apart: without it, everything else is read.
#[test]
fn results_are_a_part_of_their_own() {
    let (mut recorder, mut blocks, mut writing) = (TraceRecorder::default(), Vec::new(), HostWriteBuilder::default());
    let memory = ObjectId::new(HandleType::DeviceMemory, 4).expect("a small number");
    let mut end = 0;
    for at in 0..40_u64 {
        writing.set_device_write(at % 2 == 1);
        writing.begin(memory, at * 10);
        writing.add_run(0, &vec![at as u8; if at % 4 < 2 { 20 } else { 5000 }]);
        let record = writing.finish(at + 1, &[]);
        let span = end..end + record.len() as u64 + 1;
        end = span.end;
        recorder
            .add_record(StreamRecord { stream: 1, span, time: at, record }, &mut |raw_block| blocks.push(raw_block));
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for block in blocks {
        writer.write_compressed(block, Codec::Zstd).expect("memory takes everything");
    }
    let whole = writer.finish(&[]).expect("memory takes everything");
    let read = |trace: &Trace<'_>| {
        let (mut stream, mut found) = (StreamReader::new(trace, None, 1), Vec::new());
        loop {
            match stream.take_next() {
                Ok(None) => return found,
                Ok(Some(item)) => found.push(HostWrite::parse(item.record).map(|it| (it.is_device_write(), it.size()))),
                Err(error) => {
                    assert!(matches!(error, TraceError::MissingContent { .. }), "{error}");
                    found.push(Some((true, 0)));
                }
            }
        }
    };
    let size = |at: u64| if at % 4 < 2 { 20 } else { 5000 };
    let all = |result: fn(usize) -> Option<(bool, usize)>| {
        let each = |at| if at % 2 == 1 { result(size(at)) } else { Some((false, size(at))) };
        (0..40).map(each).collect::<Vec<_>>()
    };
    assert_eq!(read(&Trace::open(&whole).expect("our own")), all(|it| Some((true, it))));
    let mut damaged = whole.clone();
    for at in (0..whole.len() - 8).step_by(8).filter(|it| whole[*it..].starts_with(b"LBLK\x06")) {
        damaged[at + 80] ^= 1;
    }
    let mut trace = Trace::open(&damaged).expect("the rest is whole");
    assert_eq!(read(&trace), all(|_| Some((true, 0))), "they are missing");
    trace.skip_results();
    assert_eq!(read(&trace), all(|_| None), "they have no body");
}
