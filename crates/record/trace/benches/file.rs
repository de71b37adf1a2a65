//! The cost of adding a record to a trace, and of reading it back.

use lavascope_abi::Command;
use lavascope_bench::{Bench, Suite};
use lavascope_record::encoding::{OrderEdge, RecordHeader, RecordPhase};
use lavascope_test_support::TestRng;
use lavascope_trace::{
    BlockWriter, Codec, MergedReader, RawBlock, StreamRecord, Trace, TraceHeader, TraceRecorder, VERSION,
};

/// Records of the file that is read again and again: of several blocks.
const RECORDS: u64 = 50_000;
const HEADER: TraceHeader = TraceHeader { version: VERSION, id: 1, began: 0, ticks_per_second: 1_000_000_000 };

/// A stream of commands that set state and draw, in the proportions of a frame, with arguments that vary.
struct CallGenerator {
    rng: TestRng,
    /// The number for each thread.
    calls: [u64; 2],
    ends: [u64; 2],
    time: u64,
}

impl CallGenerator {
    fn new() -> CallGenerator {
        CallGenerator { rng: TestRng::new(1), calls: [0; 2], ends: [0; 2], time: 0 }
    }

    /// Returns the next record of one of two threads, which hand things over now and then.
    fn record(&mut self, index: u64, recorder: &mut TraceRecorder, give: &mut impl FnMut(RawBlock)) {
        let thread = (index / 1000 % 2) as usize;
        let (command, width) = match index % 8 {
            0 => (Command::CmdBindDescriptorSets, 9),
            1 => (Command::CmdBindVertexBuffers, 7),
            2 => (Command::CmdSetViewport, 6),
            3 => (Command::CmdPushConstants, 7),
            4 => (Command::CmdBindPipeline, 3),
            _ => (Command::CmdDraw, 3),
        };
        let is_handed_over = index.is_multiple_of(1000) && index > 0;
        let edge_count = u32::from(is_handed_over);
        self.calls[thread] += 1;
        let head = RecordHeader {
            body_words: 2 + width,
            command: command as u16,
            kind: RecordPhase::Enter as u8,
            omissions: 0,
            call: self.calls[thread],
            order_edge_count: edge_count,
        };
        let mut words = [0u64; 16];
        words[..2].copy_from_slice(&head.to_words());
        words[2] = 0x0600_0000_0000_0001 + thread as u64;
        for word in &mut words[3..2 + width as usize] {
            *word = (self.rng.next_u64() >> 33) % 1000;
        }
        let other = OrderEdge { thread: 2 - thread as u32, call: self.calls[1 - thread] };
        words[2 + width as usize] = other.to_word();
        let record = &words[..(2 + width + edge_count) as usize];
        let span = self.ends[thread]..self.ends[thread] + record.len() as u64 + 1;
        self.ends[thread] = span.end;
        self.time += 20 + (self.rng.next_u64() >> 33) % 30;
        recorder.add_record(StreamRecord { stream: 1 + thread as u32, span, time: self.time, record }, give);
    }
}

fn file(codec: Codec) -> Vec<u8> {
    let (mut made, mut recorder) = (CallGenerator::new(), TraceRecorder::default());
    let mut blocks = Vec::new();
    (0..RECORDS).for_each(|it| made.record(it, &mut recorder, &mut |it| blocks.push(it)));
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    let mut writer = BlockWriter::new(Vec::new(), HEADER).expect("memory takes everything");
    for block in blocks {
        writer.write(block.compress(codec)).expect("memory takes everything");
    }
    writer.finish(recorder.seek_points()).expect("memory takes everything")
}

/// Reads a whole file, `count` times.
fn read(file: &[u8], times: u64) {
    for _ in 0..times {
        let trace = Trace::open(file).expect("it is whole");
        let mut merged = MergedReader::new(&trace, None);
        let mut count = 0;
        while merged.take_next().expect("it is whole").is_some() {
            count += 1;
        }
        assert_eq!(count, RECORDS);
    }
}

fn main() {
    let mut suite = Suite::default();
    let (mut made, mut recorder, mut index) = (CallGenerator::new(), TraceRecorder::default(), 0);
    suite.add(Bench {
        name: "a record into a block, not packed".to_owned(),
        limit: Some(100.0),
        run: Box::new(move |times| {
            for _ in 0..times {
                made.record(index, &mut recorder, &mut |raw_block| drop(std::hint::black_box(raw_block)));
                index += 1;
            }
        }),
        bare: None,
    });
    for (codec, name) in [(Codec::Zstd, "zstd"), (Codec::Lz4, "lz4"), (Codec::None, "none")] {
        let file = file(codec);
        suite.add(Bench {
            name: format!("{RECORDS} records out of a file and into order, {name}"),
            // For each a fifth of what a command may cost in all.
            limit: Some(100.0 * RECORDS as f64),
            run: Box::new(move |times| read(&file, times)),
            bare: None,
        });
    }
    suite.main();
}
