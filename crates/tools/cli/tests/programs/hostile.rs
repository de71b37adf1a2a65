//! Traces that nobody captured: what is wrong in them is an error with its place, before a driver sees it.

use std::path::Path;

use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_record::{OrderEdge, RecordHeader, RecordPhase};
use lavascope_trace::{BlockWriter, Codec, RawBlock, StreamReader, StreamRecord, Trace, TraceRecorder};

use crate::common::{output, text};
use crate::replay_options::capture_on_null;
use crate::test_environment::TestEnvironment;

/// A record of a stream.
pub(crate) struct TestRecord {
    stream: u32,
    time: u64,
    pub(crate) words: Vec<u64>,
}

impl TestRecord {
    pub(crate) fn head(&self) -> RecordHeader {
        RecordHeader::from_words(self.words[0], self.words[1])
    }

    fn is(&self, command: Command) -> bool {
        let head = self.head();
        head.kind == RecordPhase::Enter as u8 && head.command == command as u16
    }

    /// One more call of another thread that it comes after.
    fn add_edge(&mut self, thread: u32, call: u64) {
        let head = self.head();
        let words = RecordHeader { order_edge_count: head.order_edge_count + 1, ..head }.to_words();
        self.words[..2].copy_from_slice(&words);
        self.words.push(OrderEdge { thread, call }.to_word());
    }
}

fn read(name: &str) -> Vec<TestRecord> {
    read_from(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/other-gpu").join(name))
}

pub(crate) fn read_from(path: &Path) -> Vec<TestRecord> {
    let bytes = std::fs::read(path).expect("the trace is here");
    let trace = Trace::open(&bytes).expect("it is whole");
    let mut all = Vec::new();
    for stream in trace.streams() {
        let mut reader = StreamReader::new(&trace, None, stream);
        while let Some(record_mut) = reader.take_next().expect("it is whole") {
            all.push(TestRecord { stream, time: record_mut.time, words: record_mut.record.to_vec() });
        }
    }
    all
}

fn write(stage: &TestEnvironment, pieces: &[TestRecord]) {
    let (mut recorder, mut blocks) = (TraceRecorder::default(), Vec::new());
    let mut ends = std::collections::BTreeMap::<u32, u64>::new();
    for piece in pieces {
        let end = ends.entry(piece.stream).or_default();
        let span = *end..*end + piece.words.len() as u64 + 1;
        *end = span.end;
        let recorded = StreamRecord { stream: piece.stream, span, time: piece.time, record: &piece.words };
        recorder.add_record(recorded, &mut |raw_block: RawBlock| blocks.push(raw_block));
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    let header = lavascope_trace::TraceHeader {
        version: lavascope_trace::VERSION,
        id: 7,
        began: 0,
        ticks_per_second: 1_000_000_000,
    };
    let mut writer = BlockWriter::new(Vec::new(), header).expect("memory takes everything");
    for block in blocks {
        writer.write(block.compress(Codec::None)).expect("memory takes everything");
    }
    let bytes = writer.finish(recorder.seek_points()).expect("memory takes everything");
    std::fs::write(stage.folder.join("trace.lava"), bytes).expect("it can be written");
}

/// How a replay on the null driver ends, and what it says.
fn replay(stage: &TestEnvironment, options: &[&str]) -> (Option<i32>, String) {
    let result = output(stage.lavascope().args(["replay", "--null", "trace.lava", "--patience", "2"]).args(options));
    (result.status.code(), text(&result.stderr).to_string())
}

fn assert_fails(stage: &TestEnvironment, pieces: &[TestRecord], expected: &str) {
    write(stage, pieces);
    for options in [&[][..], &["--threads", "1"]] {
        let (code, said) = replay(stage, options);
        assert!(code == Some(2) && said.contains(expected), "{options:?}: {code:?}: {said}");
    }
}

#[test]
fn what_is_wrong_in_a_trace_is_reported_before_a_driver_sees_it() {
    let stage = TestEnvironment::new("hostile");
    write(&stage, &read("compute.lava"));
    assert_eq!(replay(&stage, &[]).0, Some(0), "it is right as it is");
    // A buffer where a command buffer is needed.
    let mut pieces = read("compute.lava");
    let dispatch = pieces.iter().position(|it| it.is(Command::CmdDispatch)).expect("it computes");
    pieces[dispatch].words[2] = ObjectId::new(HandleType::Buffer, 1).expect("a small number").raw();
    assert_fails(&stage, &pieces, "vkCmdDispatch");
    // One that nobody made.
    pieces[dispatch].words[2] = ObjectId::new(HandleType::CommandBuffer, 999).expect("a small number").raw();
    assert_fails(&stage, &pieces, "VkCommandBuffer#999 does not exist at this point");
    pieces[dispatch].words[2] = ObjectId::new(HandleType::CommandBuffer, 1 << 50).expect("a number").raw();
    assert_fails(&stage, &pieces, "does not exist at this point");
    // Destroyed twice.
    let mut pieces = read("compute.lava");
    let end = pieces.iter().position(|it| it.is(Command::DestroyBuffer)).expect("it cleans up");
    let again = TestRecord { words: pieces[end].words.clone(), ..pieces[end] };
    pieces.insert(end + 1, again);
    assert_fails(&stage, &pieces, "vkDestroyBuffer: VkBuffer#");
    // A call that returns without having begun.
    let mut pieces = read("compute.lava");
    let begun = pieces.iter().position(|it| it.is(Command::CreateBuffer)).expect("it has buffers");
    pieces.remove(begun);
    assert_fails(&stage, &pieces, "returns without having begun");
}

/// What a thread has performed before is looked up no more, and yet its objects are.
#[test]
fn a_command_that_is_performed_again_is_checked_again() {
    let stage = TestEnvironment::new("hostile-again");
    let mut pieces = read("compute.lava");
    let bind = pieces.iter().position(|it| it.is(Command::CmdBindPipeline)).expect("it computes");
    for _ in 0..3 {
        let again = TestRecord { words: pieces[bind].words.clone(), ..pieces[bind] };
        pieces.insert(bind + 1, again);
    }
    write(&stage, &pieces);
    assert_eq!(replay(&stage, &[]).0, Some(0), "again and again is right");
    pieces[bind + 3].words[4] = ObjectId::new(HandleType::Pipeline, 999).expect("a small number").raw();
    assert_fails(&stage, &pieces, "vkCmdBindPipeline: VkPipeline#999 does not exist at this point");
    let (code, said) = replay(&stage, &["--force"]);
    assert!(code == Some(0), "it can be left out: {code:?}: {said}");
    pieces[bind + 3].words[4] = ObjectId::new(HandleType::Buffer, 1).expect("a small number").raw();
    assert_fails(&stage, &pieces, "vkCmdBindPipeline");
    pieces[bind + 3].words[4] = pieces[bind].words[4];
    pieces[bind + 3].words[2] = ObjectId::new(HandleType::CommandBuffer, 999).expect("a small number").raw();
    assert_fails(&stage, &pieces, "VkCommandBuffer#999 does not exist at this point");
}

#[test]
fn a_circle_of_threads_is_reported_with_its_calls() {
    let stage = TestEnvironment::new("hostile-circle");
    let mut pieces = read("threads.lava");
    let streams: Vec<u32> = pieces.iter().map(|it| it.stream).collect();
    let (one, other) = (streams[streams.len() - 1], streams[streams.len() / 2]);
    assert_ne!(one, other);
    for (stream, thread) in [(one, other), (other, one)] {
        let own = pieces.iter_mut().filter(|it| it.stream == stream);
        let piece = own.last().expect("it has records");
        let call = piece.head().call;
        piece.add_edge(thread, call.max(1_000_000));
    }
    // The last call of each waits for the other to be past its last.
    write(&stage, &pieces);
    let (code, said) = replay(&stage, &[]);
    assert!(code == Some(2) && said.contains("the order of the trace has a circle"), "{code:?}: {said}");
    // Host writes of the other thread have positions and no numbers.
    let writes = pieces.iter().filter(|it| it.stream == other && !it.head().is_call()).count();
    let call = 1_000_000 - writes;
    assert!(said.contains(&format!("of thread {one} waits for call {call} of thread {other}")), "{said}");
    let (code, said) = replay(&stage, &["--threads", "1"]);
    assert!(code == Some(2) && said.contains("the order of the trace has a circle"), "{code:?}: {said}");
}

/// The driver has the thread, and does not give it back: the host waits for work that waits for the host.
#[test]
fn a_wait_that_never_ends_is_reported_with_its_call() {
    let stage = TestEnvironment::new("hostile-hang");
    capture_on_null(&stage, &["timeline"]);
    let asked = [Command::SignalSemaphore, Command::WaitSemaphores, Command::GetSemaphoreCounterValue];
    let gone =
        |it: &TestRecord| asked.iter().chain([&Command::WaitForFences]).any(|own| it.head().command == *own as u16);
    let mut pieces = read_from(&stage.folder.join("trace.lava"));
    pieces.retain(|it| !gone(it));
    assert!(pieces.iter().any(|it| it.is(Command::DeviceWaitIdle)), "it waits for the device in the end");
    assert_fails(&stage, &pieces, "nothing has happened for 2 seconds: call ");
    let (_, said) = replay(&stage, &[]);
    assert!(said.contains(" of thread 1, vkDeviceWaitIdle, waits for the device"), "{said}");
}

/// Bits are turned over in records that are whole otherwise: the worst is an error.
#[test]
fn bits_that_are_wrong_never_crash_a_replay() {
    let stage = TestEnvironment::new("hostile-bits");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |max: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % max
    };
    let mut failed = 0;
    for round in 0..60 {
        let mut pieces = read(["compute.lava", "threads.lava", "descriptors.lava"][round % 3]);
        let at = below(pieces.len());
        let word = below(pieces[at].words.len().max(3) - 2) + 2;
        let bit = below(64);
        let Some(other) = pieces[at].words.get_mut(word) else { continue };
        *other ^= 1 << bit;
        write(&stage, &pieces);
        let (code, said) = replay(&stage, &[]);
        assert!(matches!(code, Some(0..=2)) && !said.contains("was ended by"), "round {round}: {code:?}: {said}");
        failed += u32::from(code == Some(2));
    }
    assert!(failed > 10, "only {failed} were noticed");
}
