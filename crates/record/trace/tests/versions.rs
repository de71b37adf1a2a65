//! Traces of every version of the format that there was are read.
//!
//! `data/version-1.lava` is the sample `threads` (two frames, two threads) on the null driver, captured by the first
//! version that wrote traces. `data/version-2.lava` is the sample `compute` on the null driver, captured with results.

use std::collections::BTreeMap;

use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_record::{HostWrite, RecordHeader, RecordPhase, check};
use lavascope_trace::{
    BlockWriter, Codec, MergedReader, RawBlock, Repair, SeekPointKind, StreamReader, StreamRecord, Trace,
    TraceRecorder, repair,
};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

const VERSION_1: &[u8] = include_bytes!("data/version-1.lava");
const VERSION_2: &[u8] = include_bytes!("data/version-2.lava");

/// The calls of a trace by their commands, and how often something was not understood.
fn calls(trace: &Trace<'_>) -> (BTreeMap<&'static str, u64>, u64) {
    let mut merged = MergedReader::new(trace, None);
    let (mut all, mut odd) = (BTreeMap::new(), 0);
    while let Some(merged_record) = merged.take_next().expect("it is whole") {
        match check(merged_record.record) {
            Ok(record) if record.phase() == RecordPhase::Enter => {
                *all.entry(record.command().desc().name).or_insert(0) += 1;
            }
            Ok(_) => {}
            Err(_) => odd += u64::from(HostWrite::parse(merged_record.record).is_none()),
        }
    }
    assert_eq!((merged.out_of_order(), merged.damages()), (0, &[][..]), "the order is whole");
    (all, odd)
}

#[test]
fn the_first_version_is_read() {
    let trace = Trace::open(VERSION_1).expect("it is whole");
    assert_eq!(trace.header().version, 1);
    assert!(trace.is_complete() && trace.damages().is_empty());
    let (calls, odd) = calls(&trace);
    assert_eq!(odd, 0, "every record is one that this version knows");
    assert_eq!((calls["vkCreateInstance"], calls["vkCreateDevice"], calls["vkDestroyInstance"]), (1, 1, 1));
    assert_eq!((calls["vkCmdDraw"], calls["vkCmdPushConstants"]), (128, 128));
    let submits =
        trace.seek_points().expect("they are there").iter().filter(|it| it.kind == SeekPointKind::Submit).count();
    assert_eq!(submits as u64, calls["vkQueueSubmit"]);
    let program = trace.metadata().iter().find_map(|it| it["program"].as_str().map(str::to_owned));
    assert_eq!(program.as_deref(), Some("lavascope-samples"));
    assert!(trace.metadata().iter().any(|it| it["device"]["queue_families"].is_array()));
}

#[test]
fn the_second_version_is_read() {
    let mut trace = Trace::open(VERSION_2).expect("it is whole");
    assert_eq!(trace.header().version, 2);
    assert!(trace.is_complete() && trace.damages().is_empty());
    let (calls_found, odd) = calls(&trace);
    assert_eq!((odd, calls_found["vkCreateDevice"], calls_found["vkCmdDispatch"]), (0, 1, 10));
    let sizes = |trace: &Trace<'_>| {
        let (mut stream, mut all) = (StreamReader::new(trace, None, 1), Vec::new());
        while let Some(item) = stream.take_next().expect("it is whole") {
            all.extend(HostWrite::parse(item.record).map(|it| (it.is_device_write(), it.size())));
        }
        all
    };
    assert_eq!(sizes(&trace), [(false, 4000), (true, 4000)]);
    trace.skip_results();
    assert_eq!(sizes(&trace), [(false, 4000)]);
}

/// What completes an interrupted file is in the form of its version.
#[test]
fn an_interrupted_file_keeps_its_version() {
    for whole in [VERSION_1, VERSION_2] {
        let cut = &whole[..whole.len() - 8];
        let trace = Trace::open(cut).expect("the blocks are whole");
        assert!(!trace.is_complete());
        let Repair { keep, append, .. } = repair(&trace, None).expect("memory");
        let completed = [&cut[..keep as usize], &append[..]].concat();
        let again = Trace::open(&completed).expect("it is whole");
        assert!(again.is_complete() && again.header().version == trace.header().version);
        let first = Trace::open(whole).expect("it is whole");
        assert_eq!(calls(&again), calls(&first));
        assert_eq!(again.seek_points().expect("an index"), first.seek_points().expect("an index"));
    }
}

/// A file of a version that numbers commands and types of objects in another way is read by their names.
#[test]
fn numbers_of_another_time_are_read_by_names() {
    const HANDLES: u64 = 40;
    let mut writer = BlockWriter::new(Vec::new(), *Trace::open(VERSION_1).expect("whole").header()).expect("memory");
    let (mut recorder, mut blocks) = (TraceRecorder::default(), Vec::<RawBlock>::new());
    let head = |call| RecordHeader {
        body_words: 5,
        command: Command::CmdDraw as u16,
        kind: 0,
        omissions: 0,
        call,
        order_edge_count: 0,
    };
    let id = ObjectId::new(HandleType::CommandBuffer, 7).expect("a small number").raw();
    let own = |call: u64| [head(call).to_words().to_vec(), vec![id, 1 << 32 | 3, call << 32]].concat();
    for call in 1..=100 {
        let mut record = own(call);
        record[0] += 1 << 32;
        record[2] += HANDLES << 56;
        let span = (call - 1) * 6..call * 6;
        recorder.add_record(StreamRecord { stream: 1, span, time: call, record: &record }, &mut |raw_block| {
            blocks.push(raw_block)
        });
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    blocks.into_iter().for_each(|it| _ = writer.write(it.compress(Codec::Zstd)).expect("memory"));
    let file = with_other_schema(writer.get_mut(), HANDLES);
    let trace = Trace::open(&file).expect("whole");
    assert_eq!(trace.damages(), []);
    let mut merged = MergedReader::new(&trace, None);
    for call in 1..=100 {
        let merged_record = merged.take_next().expect("whole").expect("as many as there were");
        assert_eq!(merged_record.record, own(call));
        assert!(check(merged_record.record).is_ok());
    }
    assert!(merged.take_next().expect("whole").is_none());
}

/// A file whose schema has one command more at the front, and other numbers for all types of objects.
fn with_other_schema(file: &[u8], handles: u64) -> Vec<u8> {
    const HEADER: usize = 64;
    const HEAD: usize = 72;
    let size = |at: usize| u32::from_le_bytes(std::array::from_fn(|it| file[HEADER + at + it])) as usize;
    let (raw, stored) = (size(52), size(56));
    let packed = &file[HEADER + HEAD..HEADER + HEAD + stored];
    let text = zstd::bulk::decompress(packed, raw).expect("the schema is packed");
    let mut schema: Value = serde_json::from_slice(&text).expect("JSON");
    schema["commands"].as_array_mut().expect("a list").insert(0, "vkOfAnotherTime".into());
    for array_mut_item in schema["handles"].as_array_mut().expect("a list") {
        array_mut_item[1] = (array_mut_item[1].as_u64().expect("a number") + handles).into();
    }
    let text = schema.to_string();
    let mut head = file[HEADER..HEADER + HEAD - 8].to_vec();
    head[5] = 0;
    head[52..56].copy_from_slice(&(text.len() as u32).to_le_bytes());
    head[56..60].copy_from_slice(&(text.len() as u32).to_le_bytes());
    let sum = xxh3_64(&[&head, text.as_bytes()].concat());
    let mut all = [&file[..HEADER], &head, &sum.to_le_bytes(), text.as_bytes()].concat();
    all.resize(all.len().next_multiple_of(8), 0);
    all.extend(&file[(HEADER + HEAD + stored).next_multiple_of(8)..]);
    all
}
