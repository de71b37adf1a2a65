//! Whole files: a reader gets what the writer wrote, whatever happens to the file.

use lavascope_test_support::TestRng;
use std::collections::{BTreeMap, HashSet};

use lavascope_abi::{Command, bytes_of_slice};
use lavascope_record::encoding::{OrderEdge, RecordHeader, RecordPhase, beside};
use lavascope_trace::repair;
use lavascope_trace::{
    BlockWriter, Codec, MergedReader, RawBlock, SeekPointKind, StreamRecord, Tail, TailHeader, TailSlot, Trace,
    TraceHeader, TraceRecorder,
};

const HEADER: TraceHeader =
    TraceHeader { version: lavascope_trace::VERSION, id: 0x1234, began: 5, ticks_per_second: 1_000_000_000 };

#[derive(Clone, Debug, PartialEq)]
struct TestRecord {
    stream: u32,
    time: u64,
    record: Vec<u64>,
}

/// Calls of three threads in a possible order: each record comes after those that its order edges name.
fn calls(count: usize, seed: u64) -> Vec<TestRecord> {
    let commands = [Command::CmdDraw, Command::CmdSetViewport, Command::CmdPushConstants, Command::QueueSubmit2];
    let mut random = TestRng::new(seed);
    let mut done: BTreeMap<u32, u64> = BTreeMap::new();
    let mut known: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut all = Vec::new();
    for index in 0..count as u64 {
        let stream = 1 + random.below(3) as u32;
        let call = done.get(&stream).copied().unwrap_or(0) + 1;
        let command = commands[random.below(4) as usize];
        // Now and then something large, sometimes the same again.
        let body: Vec<u64> = match index % 97 {
            _ if index == 1000 => (0..70_000).collect(),
            96 => (0..200 + random.below(3) * 2000).collect(),
            _ => (0..3 + command as u64 % 3)
                .map(|it| [0x500_0000_0000_0001, random.below(500), index][it as usize % 3])
                .collect(),
        };
        let mut order_edges = Vec::new();
        for other in (1..=3).filter(|it| *it != stream) {
            let call = done.get(&other).copied().unwrap_or(0);
            if random.below(20) == 0 && known.get(&(stream, other)).is_none_or(|it| *it < call) && call > 0 {
                known.insert((stream, other), call);
                order_edges.push(OrderEdge { thread: other, call }.to_word());
            }
        }
        let head = |kind, body: usize, order_edges: usize| RecordHeader {
            body_words: 2 + body as u32,
            command: command as u16,
            kind,
            omissions: 0,
            call,
            order_edge_count: order_edges as u32,
        };
        let mut record = head(RecordPhase::Enter as u8, body.len(), order_edges.len()).to_words().to_vec();
        record.extend(body.iter().chain(&order_edges));
        all.push(TestRecord { stream, time: 1000 + index * 3, record });
        if command.desc().outputs.is_some() {
            let mut record = head(RecordPhase::Leave as u8, 1, 0).to_words().to_vec();
            record.push(0);
            all.push(TestRecord { stream, time: 1001 + index * 3, record });
        }
        done.insert(stream, call);
    }
    all
}

/// The blocks of some calls.
fn blocks(calls: &[TestRecord]) -> (Vec<RawBlock>, TraceRecorder) {
    let (mut recorder, mut all) = (TraceRecorder::default(), Vec::new());
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for TestRecord { stream, time, record } in calls {
        let end = ends.entry(*stream).or_default();
        let span = *end..*end + record.len() as u64 + 1;
        *end = span.end;
        recorder.add_record(StreamRecord { stream: *stream, span, time: *time, record }, &mut |raw_block| {
            all.push(raw_block)
        });
    }
    recorder.flush(&mut |raw_block| all.push(raw_block));
    (all, recorder)
}

fn file(calls: &[TestRecord], codec: Codec, is_finished: bool) -> Vec<u8> {
    let (blocks, recorder) = blocks(calls);
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for block in blocks {
        writer.write(block.compress(codec)).expect("memory takes everything");
    }
    match is_finished {
        true => writer.finish(recorder.seek_points()).expect("memory takes everything"),
        false => std::mem::take(writer.get_mut()),
    }
}

fn merged(trace: &Trace<'_>, tail: Option<&Tail>) -> (Vec<TestRecord>, u64, usize) {
    let mut merged = MergedReader::new(trace, tail);
    let mut all = Vec::new();
    while let Some(merged_record) = merged.take_next().expect("whole") {
        all.push(TestRecord {
            stream: merged_record.stream,
            time: merged_record.time,
            record: merged_record.record.to_vec(),
        });
    }
    (all, merged.out_of_order(), merged.damages().len())
}

fn of(calls: &[TestRecord], stream: u32) -> Vec<&TestRecord> {
    calls.iter().filter(|it| it.stream == stream).collect()
}

/// Whether every record stands behind the calls that it names.
fn is_ordered(calls: &[TestRecord]) -> bool {
    let mut done: BTreeMap<u32, u64> = BTreeMap::new();
    calls.iter().all(|test_record| {
        let head = RecordHeader::from_words(test_record.record[0], test_record.record[1]);
        let mut order_edges = test_record.record[head.body_words as usize..].iter().map(|it| OrderEdge::from_word(*it));
        let is_fine = order_edges.all(|it| done.get(&it.thread).is_some_and(|done| *done >= it.call));
        if let Some(call) = head.completed_call() {
            done.insert(test_record.stream, call);
        }
        is_fine
    })
}

#[test]
fn what_goes_in_comes_out_in_a_true_order() {
    let made = calls(20_000, 1);
    for codec in [Codec::Zstd, Codec::Lz4, Codec::None] {
        let bytes = file(&made, codec, true);
        let trace = Trace::open(&bytes).expect("whole");
        assert!(trace.is_complete() && trace.damages().is_empty());
        assert_eq!((trace.streams(), *trace.header()), (vec![1, 2, 3], HEADER));
        let (found, forced, damages) = merged(&trace, None);
        assert_eq!((found.len(), forced, damages), (made.len(), 0, 0));
        assert!(is_ordered(&found));
        assert!([1, 2, 3].into_iter().all(|it| of(&found, it) == of(&made, it)));
    }
}

#[test]
fn without_an_index_everything_is_found_by_looking() {
    let made = calls(20_000, 2);
    let (whole, cut) = (file(&made, Codec::Zstd, true), file(&made, Codec::Zstd, false));
    let (whole, cut) = (Trace::open(&whole).expect("whole"), Trace::open(&cut).expect("whole"));
    assert!(!cut.is_complete() && cut.damages().is_empty());
    assert_eq!(whole.seek_points(), cut.seek_points());
    let submits =
        made.iter().filter(|it| RecordHeader::from_words(it.record[0], 0).command == Command::QueueSubmit2 as u16);
    let found = whole.seek_points().expect("whole");
    assert_eq!(found.iter().filter(|it| it.kind == SeekPointKind::Submit).count(), submits.count() / 2);
    assert!(merged(&whole, None).0 == merged(&cut, None).0);
}

/// Large things are in the file once, and alike calls take a few bytes.
#[test]
fn a_file_is_small() {
    let made = calls(20_000, 3);
    let large: Vec<&TestRecord> = made.iter().filter(|it| it.record.len() > 100).collect();
    let bytes = file(&made, Codec::Zstd, true);
    let small = made.len() - large.len();
    // Three different large ones, of numbers that count up.
    assert!(bytes.len() < small * 6 + 200_000, "{} bytes for {} calls", bytes.len(), made.len());
    let raw: usize = made.iter().map(|it| it.record.len() * 8).sum();
    assert!(bytes.len() * 20 < raw, "{} of {raw}", bytes.len());
}

#[test]
fn a_cut_file_gives_what_is_whole() {
    let made = calls(8000, 4);
    let bytes = file(&made, Codec::Zstd, true);
    let mut random = TestRng::new(5);
    let mut last = usize::MAX;
    for _ in 0..30 {
        let cut = random.below(bytes.len() as u64) as usize;
        let Ok(trace) = Trace::open(&bytes[..cut]) else {
            assert!(cut < 64, "only the header is needed");
            continue;
        };
        let (found, ..) = merged(&trace, None);
        assert!([1, 2, 3].into_iter().all(|value| {
            let (found, made) = (of(&found, value), of(&made, value));
            made.starts_with(&found)
        }));
        last = last.min(found.len());
    }
    assert!(last < made.len());
}

#[test]
fn any_damage_is_an_error_or_left_out() {
    let made = calls(3000, 6);
    let good = file(&made, Codec::Zstd, true);
    let known: HashSet<(u32, &[u64])> = made.iter().map(|it| (it.stream, &*it.record)).collect();
    let mut random = TestRng::new(7);
    for round in 0..200 {
        let mut bad = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bad.len() as u64) as usize;
            bad[at] ^= 1 << random.below(8);
        }
        if round % 3 == 0 {
            bad.truncate(random.below(bad.len() as u64) as usize);
        }
        let Ok(trace) = Trace::open(&bad) else { continue };
        let mut all = MergedReader::new(&trace, None);
        // A record whose contents are lost is an error; what comes behind it is not.
        let mut errors = 0;
        loop {
            match all.take_next() {
                Ok(None) => break,
                Ok(Some(merged_record)) => assert!(known.contains(&(merged_record.stream, merged_record.record))),
                Err(_) => errors += 1,
            }
            assert!(errors < 100_000);
        }
    }
}

/// The tail of a trace with some calls in it.
fn tail_of(trace: &Trace<'_>, rest: &[TestRecord]) -> Tail {
    // One slot for each stream, with some words before that are in the file already.
    let mut words = Vec::new();
    for stream in 1..=3u32 {
        let timed = |it: &&TestRecord| [vec![u64::from(beside::TIME) << 48 | it.time], it.record.clone()].concat();
        let own: Vec<u64> = of(rest, stream).iter().flat_map(timed).collect();
        let slot =
            TailSlot { stream, word_offset: trace.stored_words(stream), committed: own.len() as u64, size: 1 << 21 };
        words.extend(slot.to_words());
        words.extend(&own);
        words.resize(stream as usize * ((1 << 21) + 4), 0);
    }
    let header = TailHeader { id: HEADER.id, slot_words: (1 << 21) + 4, began: 0 };
    let tail: Vec<u8> = header.to_bytes().iter().chain(bytes_of_slice(&words)).copied().collect();
    Tail::read(&tail).expect("it is one")
}

#[test]
fn the_tail_of_a_killed_capture_is_read_behind_the_file() {
    let made = calls(5000, 8);
    let (written, rest) = made.split_at(3500);
    let bytes = file(written, Codec::Zstd, false);
    let trace = Trace::open(&bytes).expect("whole");
    let tail = tail_of(&trace, rest);
    let (found, forced, damages) = merged(&trace, Some(&tail));
    assert_eq!((found.len(), forced, damages), (made.len(), 0, 0));
    assert!(is_ordered(&found) && [1, 2, 3].into_iter().all(|it| of(&found, it) == of(&made, it)));
}

#[test]
fn a_cut_file_and_its_tail_become_one_whole_file() {
    let made = calls(5000, 8);
    let (written, rest) = made.split_at(3500);
    let mut bytes = file(written, Codec::Zstd, false);
    let tail = tail_of(&Trace::open(&bytes).expect("whole"), rest);
    // Half a block, as a kill leaves it.
    bytes.extend([0x55; 300]);
    let cut = Trace::open(&bytes).expect("the header is whole");
    assert_eq!(cut.damages().len(), 1);
    let repair = repair(&cut, Some(&tail)).expect("it can be made whole");
    assert_eq!(repair.records, rest.len() as u64);
    let whole: Vec<u8> = bytes[..repair.keep as usize].iter().chain(&repair.append).copied().collect();
    let whole = Trace::open(&whole).expect("whole");
    assert!(whole.is_complete() && whole.damages().is_empty());
    let (found, forced, damages) = merged(&whole, None);
    assert_eq!((found.len(), forced, damages), (made.len(), 0, 0));
    assert!(is_ordered(&found) && [1, 2, 3].into_iter().all(|it| of(&found, it) == of(&made, it)));
}

#[test]
fn calls_that_wait_for_each_other_are_reported() {
    let mut made = calls(100, 9);
    // The first call of stream 1 comes after the last of stream 2, and that one after the last of stream 1.
    let last = |stream: u32| of(&calls(100, 9), stream).last().map(|it| it.record[1] & 0xff_ffff_ffff).unwrap_or(0);
    let (one, two) = (last(1), last(2));
    for (stream, other, call) in [(1, 2, two), (2, 1, one)] {
        let first = made.iter_mut().find(|it| it.stream == stream).expect("there are some");
        let mut head = RecordHeader::from_words(first.record[0], first.record[1]);
        head.order_edge_count += 1;
        first.record[1] = head.to_words()[1];
        first.record.push(OrderEdge { thread: other, call }.to_word());
    }
    let bytes = file(&made, Codec::Zstd, true);
    let (found, forced, _) = merged(&Trace::open(&bytes).expect("whole"), None);
    assert_eq!(found.len(), made.len(), "nothing is lost");
    assert!(forced > 0);
}

#[test]
fn facts_about_the_capture_are_kept() {
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    writer
        .write(RawBlock::metadata(&serde_json::json!({ "application": "cube" })).compress(Codec::Zstd))
        .expect("memory");
    let bytes = writer.finish(&[]).expect("memory");
    assert_eq!(Trace::open(&bytes).expect("whole").metadata(), [serde_json::json!({ "application": "cube" })]);
}
