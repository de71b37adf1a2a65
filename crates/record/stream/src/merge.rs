//! Merges all streams into one: every record comes after the calls that its order edges name.

use std::sync::Arc;

use lavascope_record::encoding::{HEADER_SIZE, OrderEdge, RecordHeader, beside};

use crate::chunk_queue::Consumer;
use crate::thread::{StreamThreads, ThreadShared};
use crate::time::TIME_MASK;

/// Reads the streams of all threads.
///
/// An order edge only names a call whose record is already in its stream. All committed records can therefore be
/// returned in some valid order, and the merger never waits for a thread.
#[derive(Default)]
pub struct Merger {
    streams: Vec<MergedStream>,
}

struct MergedStream {
    shared: Arc<ThreadShared>,
    consumer: Consumer,
    /// The last call of the stream that is complete in the merged order.
    completed: u64,
}

/// Largest number of records that one call of `drain` returns.
const ROUND_MAX: usize = 1 << 16;

/// A record, and where it stands in its stream.
#[derive(Clone, Copy)]
pub struct OrderedRecord<'a> {
    pub thread: u32,
    /// The words of the stream before and after the record; the word with its time belongs to it.
    pub first: u64,
    pub end: u64,
    /// The time in [`ticks`](crate::ticks), modulo [`TIME_MASK`](crate::TIME_MASK).
    pub time: Option<u64>,
    pub record: &'a [u64],
}

impl Merger {
    /// Passes all available records to `give`, up to a limit. Returns their number.
    pub fn drain(&mut self, threads: &StreamThreads, mut give: impl FnMut(OrderedRecord<'_>)) -> usize {
        let mut given = 0;
        loop {
            // In each round, because a record may come after one of a thread that has just begun.
            self.add_new_streams(threads);
            let before = given;
            for index in 0..self.streams.len() {
                given += self.drain_stream(index, &mut give);
            }
            if given == before || given > ROUND_MAX {
                return given;
            }
        }
    }

    /// Releases the words of a thread before an offset, which are saved elsewhere.
    pub fn release(&mut self, thread: u32, word_offset: u64) {
        if let Some(merged_stream) = self.streams.get_mut((thread as usize).wrapping_sub(1)) {
            merged_stream.consumer.release(word_offset);
        }
    }

    /// Releases all words that were read.
    pub fn release_all(&mut self) {
        self.streams.iter_mut().for_each(|it| it.consumer.release(u64::MAX));
    }

    fn add_new_streams(&mut self, threads: &StreamThreads) {
        for shared in threads.registered_since(self.streams.len()) {
            let Some(consumer) = shared.take_consumer() else { continue };
            self.streams.push(MergedStream { shared, consumer, completed: 0 });
        }
    }

    /// Passes records of one stream to `give` until one has to wait for another stream.
    fn drain_stream(&mut self, index: usize, give: &mut impl FnMut(OrderedRecord<'_>)) -> usize {
        let mut given = 0;
        loop {
            let done: Vec<u64> = self.streams.iter().map(|it| it.completed).collect();
            let stream = &mut self.streams[index];
            let (mut taken, mut last) = (0, stream.completed);
            let thread = stream.shared.number();
            // `peek` may move to the next chunk; the offset stays the same.
            stream.consumer.peek();
            let before = stream.consumer.word_offset();
            let words = stream.consumer.peek();
            while let Some((time, head, record)) = first_record(&words[taken..])
                && is_ready(&done, head, record)
                && given <= ROUND_MAX
            {
                let first = before + taken as u64;
                taken += record.len() + usize::from(time.is_some());
                give(OrderedRecord { thread, first, end: before + taken as u64, time, record });
                // A call inside another call is complete before the outer one.
                last = head.completed_call().map_or(last, |it| it.max(last));
                given += 1;
            }
            stream.completed = last;
            stream.consumer.take(taken);
            if taken == 0 {
                return given;
            }
        }
    }
}

fn first_record(words: &[u64]) -> Option<(Option<u64>, RecordHeader, &[u64])> {
    let mark = words.first().filter(|it| (**it >> 48) as u8 == beside::TIME).map(|it| *it & TIME_MASK);
    let words = &words[usize::from(mark.is_some())..];
    let head = RecordHeader::from_words(*words.first()?, *words.get(HEADER_SIZE / 8 - 1)?);
    Some((mark, head, words.get(..head.size() / 8)?))
}

fn is_ready(done: &[u64], head: RecordHeader, record: &[u64]) -> bool {
    let order_edges = record[head.body_words as usize..].iter().map(|it| OrderEdge::from_word(*it));
    // Threads are numbered from one, in the order in which the merger found them.
    order_edges.into_iter().all(|it| done.get(it.thread as usize - 1).is_some_and(|done| *done >= it.call))
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Command;
    use lavascope_record::RecordPhase;

    use super::*;
    use crate::chunk_queue::StreamControl;
    use crate::thread::StreamThread;

    /// A record with an empty body.
    fn record(command: Command, kind: RecordPhase, call: u64, order_edges: &[(u32, u64)]) -> Vec<u64> {
        let head = RecordHeader {
            body_words: 2,
            command: command as u16,
            kind: kind as u8,
            omissions: 0,
            call,
            order_edge_count: order_edges.len() as u32,
        };
        let order_edges = order_edges.iter().map(|(thread, call)| OrderEdge { thread: *thread, call: *call }.to_word());
        head.to_words().into_iter().chain(order_edges).collect()
    }

    fn drained(merger: &mut Merger, threads: &StreamThreads) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        merger.drain(threads, |it| all.push((it.thread, RecordHeader::from_words(it.record[0], it.record[1]).call)));
        all
    }

    fn two() -> (StreamThreads, StreamThread, StreamThread) {
        let (threads, wake) = (StreamThreads::new(), StreamControl::new(usize::MAX));
        let (a, b) = (threads.register(&wake), threads.register(&wake));
        (threads, a, b)
    }

    #[test]
    fn a_record_waits_for_the_calls_it_names() {
        let (threads, mut a, mut b) = two();
        let mut merger = Merger::default();
        a.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[(2, 2)]));
        b.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[]));
        assert_eq!(drained(&mut merger, &threads), [(2, 1)]);
        b.append(&record(Command::CmdDraw, RecordPhase::Enter, 2, &[]));
        b.append(&record(Command::CmdDraw, RecordPhase::Enter, 3, &[(1, 1)]));
        assert_eq!(drained(&mut merger, &threads), [(2, 2), (1, 1), (2, 3)]);
    }

    #[test]
    fn a_call_with_outputs_is_complete_when_it_left() {
        let (threads, mut a, mut b) = two();
        let mut merger = Merger::default();
        a.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[(2, 1)]));
        b.append(&record(Command::CreateBuffer, RecordPhase::Enter, 1, &[]));
        assert_eq!(drained(&mut merger, &threads), [(2, 1)]);
        b.append(&record(Command::CreateBuffer, RecordPhase::Leave, 1, &[]));
        assert_eq!(drained(&mut merger, &threads), [(2, 1), (1, 1)]);
    }

    #[test]
    fn a_call_inside_another_is_not_forgotten_when_that_one_leaves() {
        let (threads, mut a, mut b) = two();
        let mut merger = Merger::default();
        for (call, kind) in
            [(1, RecordPhase::Enter), (2, RecordPhase::Enter), (2, RecordPhase::Leave), (1, RecordPhase::Leave)]
        {
            b.append(&record(Command::CreateBuffer, kind, call, &[]));
        }
        a.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[(2, 2)]));
        assert_eq!(drained(&mut merger, &threads), [(2, 1), (2, 2), (2, 2), (2, 1), (1, 1)]);
    }

    #[test]
    fn a_thread_met_late_is_waited_for() {
        let (threads, mut a, b) = two();
        let mut merger = Merger::default();
        a.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[(3, 1)]));
        assert!(drained(&mut merger, &threads).is_empty());
        let mut c = threads.register(&StreamControl::new(usize::MAX));
        c.append(&record(Command::CmdDraw, RecordPhase::Enter, 1, &[]));
        assert_eq!(drained(&mut merger, &threads), [(3, 1), (1, 1)]);
        drop(b);
    }
}
