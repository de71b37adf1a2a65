//! Reads the records of a trace. A reader thread decodes, orders and checks them ahead of the
//! consumer.
//!
//! Calls have the numbers of messages, in the records and in their order edges: see [`CallNumbers`].

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use lavascope_record::{CheckError, OrderEdge, Record, RecordCheckCache, RecordHeader, check, from_trusted};
use lavascope_trace::{CallNumbers, MergedReader, Trace};

use crate::text::progress::TerminalProgress;
use crate::trace::trace_file::TraceFile;

/// The number of words in a batch. A batch is small enough to stay in the cache until the consumer
/// takes it, and large enough that the threads rarely wait for each other.
const BATCH_WORDS: usize = 1 << 15;
/// The maximum number of batches between the two threads.
const BATCHES: usize = 4;

/// A record, with its stream and its time.
pub(crate) struct TraceRecord<'a> {
    pub(crate) stream: u32,
    pub(crate) time: u64,
    pub(crate) words: &'a [u64],
    /// The record, or the reason why this version cannot decode it.
    pub(crate) record: Result<Record<'a>, CheckError>,
}

/// What the reader found out about the whole trace.
#[derive(Default)]
pub(crate) struct ReadOutcome {
    pub(crate) damage: Vec<String>,
    /// Whether the calls of all threads can be ordered.
    pub(crate) is_ordered: bool,
    /// The numbers of the calls that were read.
    pub(crate) numbers: CallNumbers,
}

/// Passes all records of a trace to `take`, in a possible order of the calls. `take` returns false
/// to stop.
pub(crate) fn each_record(
    file: &TraceFile,
    trace: &Trace<'_>,
    progress: &TerminalProgress,
    mut take: impl FnMut(&TraceRecord<'_>) -> bool,
) -> ReadOutcome {
    let (full, batches) = sync_channel(BATCHES);
    let (empty, used) = channel();
    std::thread::scope(|scope| {
        let numbers = CallNumbers::new(trace);
        let reader = scope.spawn(move || read_batches(file.merged(trace), numbers, &full, &used));
        let is_through = deliver_batches(&batches, &empty, file.size(), progress, &mut take);
        // The reader thread stops when the channel is closed.
        drop(batches);
        let mut outcome = match reader.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if is_through {
            outcome.damage.splice(0..0, trace.damages().iter().map(ToString::to_string));
        }
        outcome
    })
}

#[derive(Default)]
struct RecordBatch {
    words: Vec<u64>,
    records: Vec<BatchRecord>,
    /// The progress after this batch: the number of records that were read, and the number of all
    /// records.
    progress: (u64, u64),
}

/// A record of a batch.
struct BatchRecord {
    time: u64,
    stream: u32,
    /// The number of words in the record.
    words: u32,
    fault: Option<Box<CheckError>>,
}

/// Runs on the reader thread.
fn read_batches(
    mut merged: MergedReader<'_, '_>,
    numbers: CallNumbers,
    full: &SyncSender<RecordBatch>,
    used: &Receiver<RecordBatch>,
) -> ReadOutcome {
    let mut outcome = ReadOutcome { numbers, ..ReadOutcome::default() };
    let (mut alike, mut batch) = (RecordCheckCache::default(), RecordBatch::default());
    loop {
        match merged.take_next() {
            Ok(Some(merged_record)) => {
                let first = batch.words.len();
                batch.words.extend_from_slice(merged_record.record);
                number_calls(merged_record.stream, &mut batch.words[first..], &mut outcome.numbers);
                let (words, fault) =
                    (merged_record.record.len() as u32, alike.check(merged_record.record).err().map(Box::new));
                batch.records.push(BatchRecord {
                    time: merged_record.time,
                    stream: merged_record.stream,
                    words,
                    fault,
                });
            }
            Ok(None) => break,
            // Only the damaged record is lost.
            Err(error) => outcome.damage.push(error.with_numbers(&outcome.numbers).to_string()),
        }
        if batch.words.len() >= BATCH_WORDS {
            batch.progress = merged.progress();
            if full.send(batch).is_err() {
                return outcome;
            }
            batch = used.try_recv().unwrap_or_default();
        }
    }
    batch.progress = merged.progress();
    let _ = full.send(batch);
    outcome.damage.extend(merged.damages().iter().map(ToString::to_string));
    outcome.is_ordered = merged.out_of_order() == 0;
    outcome
}

/// Replaces positions in streams by the numbers of calls.
fn number_calls(stream: u32, words: &mut [u64], numbers: &mut CallNumbers) {
    let head = RecordHeader::from_words(words[0], words[1]);
    numbers.read(stream, head);
    words[1] = RecordHeader { call: numbers.number(stream, head.call), ..head }.to_words()[1];
    for word in &mut words[head.body_words as usize..] {
        let edge = OrderEdge::from_word(*word);
        *word = OrderEdge { call: numbers.number(edge.thread, edge.call), ..edge }.to_word();
    }
}

/// Passes the records of all batches to `take`. Returns false if `take` stopped.
fn deliver_batches(
    batches: &Receiver<RecordBatch>,
    empty: &Sender<RecordBatch>,
    size: u64,
    progress: &TerminalProgress,
    take: &mut impl FnMut(&TraceRecord<'_>) -> bool,
) -> bool {
    let mut advanced = 0;
    for mut batch in batches {
        let mut rest = &batch.words[..];
        for batch_record in &batch.records {
            let words;
            (words, rest) = rest.split_at(batch_record.words as usize);
            // The reader thread has checked the record.
            let record = match &batch_record.fault {
                None => from_trusted(words).map_or_else(|| check(words), Ok),
                Some(fault) => Err((**fault).clone()),
            };
            if !take(&TraceRecord { stream: batch_record.stream, time: batch_record.time, words, record }) {
                return false;
            }
        }
        let (given, total) = batch.progress;
        let done = (u128::from(size) * u128::from(given) / u128::from(total.max(1))) as u64;
        progress.advance(done.saturating_sub(advanced));
        advanced = advanced.max(done);
        batch.words.clear();
        batch.records.clear();
        // The send fails if the reader thread has already finished.
        let _ = empty.send(batch);
    }
    true
}
