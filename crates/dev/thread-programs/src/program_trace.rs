//! Finds the calls of programs in a trace.
//!
//! Each thread makes one buffer whose size names program and thread. A stream has the calls of one thread after the
//! other; how many these are, and which of them makes the buffer, is known from the run.

use std::collections::HashMap;

use lavascope_abi::Command;
use lavascope_record::encoding::{RecordHeader, RecordPhase};
use lavascope_record::{Call, OrderEdge, check};
use lavascope_trace::{StreamReader, Trace};

use crate::generate::{CallPlace, Program, THREADS_MAX};
use crate::operation::Operation;
use crate::perform::CallCounts;

/// Larger than any other buffer.
const MARK_MIN: u64 = 1 << 24;

/// The size of the buffer that a thread makes.
pub(crate) fn mark_size(program: usize, thread: usize) -> u64 {
    MARK_MIN + (program * THREADS_MAX + thread) as u64
}

/// A call in a stream.
pub(crate) struct TracedCall {
    pub(crate) number: u64,
    pub(crate) edges: Vec<OrderEdge>,
    mark: Option<(usize, usize)>,
}

#[cfg(test)]
impl TracedCall {
    pub(crate) fn new(number: u64, edges: Vec<OrderEdge>) -> TracedCall {
        TracedCall { number, edges, mark: None }
    }
}

/// The calls of all streams. An order edge names a stream by its number.
pub(crate) struct TracedStreams {
    pub(crate) numbers: Vec<u32>,
    pub(crate) calls: Vec<Vec<TracedCall>>,
}

/// Where an operation is in a trace: the index of the stream, and of its first and last call there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedPlace {
    pub(crate) stream: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl TracedStreams {
    pub(crate) fn read(trace: &Trace<'_>) -> Result<TracedStreams, String> {
        let numbers = trace.streams();
        let calls = numbers.iter().map(|it| read_stream(trace, *it)).collect::<Result<_, _>>()?;
        Ok(TracedStreams { numbers, calls })
    }

    pub(crate) fn index_of(&self, stream: u32) -> Option<usize> {
        self.numbers.iter().position(|it| *it == stream)
    }
}

fn read_stream(trace: &Trace<'_>, stream: u32) -> Result<Vec<TracedCall>, String> {
    let mut reader = StreamReader::new(trace, None, stream);
    let mut calls = Vec::new();
    while let Some(next) = reader.take_next().map_err(|it| it.to_string())? {
        let words = &*next.record;
        let header = RecordHeader::from_words(words[0], words[1]);
        if header.kind != RecordPhase::Enter as u8 {
            continue;
        }
        let edges = words[words.len() - header.order_edge_count as usize..].iter();
        let edges = edges.map(|it| OrderEdge::from_word(*it)).collect();
        let mark = if header.command == Command::CreateBuffer as u16 { mark_of(words)? } else { None };
        calls.push(TracedCall { number: header.call, edges, mark });
    }
    Ok(calls)
}

fn mark_of(words: &[u64]) -> Result<Option<(usize, usize)>, String> {
    let record = check(words).map_err(|it| it.to_string())?;
    let size = match Call::of(record) {
        Some(Call::CreateBuffer(call)) => call.p_create_info().map_or(0, |it| it.size),
        _ => 0,
    };
    let mark = size.checked_sub(MARK_MIN).map(|it| it as usize);
    Ok(mark.map(|it| (it / THREADS_MAX, it % THREADS_MAX)))
}

/// Where the operations of each program are: by program and place.
pub(crate) fn find_operations(
    streams: &TracedStreams,
    programs: &[Program],
    counts: &CallCounts,
) -> Result<Vec<HashMap<CallPlace, TracedPlace>>, String> {
    let mut found: Vec<HashMap<CallPlace, TracedPlace>> = programs.iter().map(|_| HashMap::new()).collect();
    for (stream, calls) in streams.calls.iter().enumerate() {
        let mut at = 0;
        while let Some(mark) = (at..calls.len()).find(|it| calls[*it].mark.is_some()) {
            let (number, thread) = calls[mark].mark.unwrap_or_default();
            let operations = programs.get(number).and_then(|it| it.threads.get(thread));
            let operations = operations.ok_or_else(|| format!("there is no thread {thread} of program {number}"))?;
            let counts = &counts[number][thread];
            let own = operations.operations().position(|it| matches!(it, Operation::Mark(_)));
            let before: u64 = counts[..own.ok_or("a thread has no mark")?].iter().sum();
            let mut first = mark.checked_sub(before as usize).filter(|it| *it >= at).ok_or("calls are missing")?;
            for (call, count) in counts.iter().enumerate() {
                let place = TracedPlace { stream, first, last: first + *count as usize - 1 };
                found[number].insert(CallPlace { thread, call }, place);
                first += *count as usize;
            }
            at = first;
        }
    }
    for (number, program) in programs.iter().enumerate() {
        let expected: usize = program.threads.iter().map(|it| it.operations().count()).sum();
        if found[number].len() != expected {
            return Err(format!(
                "{} of {expected} operations of program {number} are in the trace",
                found[number].len()
            ));
        }
    }
    Ok(found)
}
