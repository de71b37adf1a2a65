//! Finds the calls of programs in a trace.
//!
//! Each thread makes one buffer whose size names program and thread. A stream has the calls of one thread after the
//! other; how many these are, and which of them makes the buffer, is known from the run.

use std::collections::HashMap;

use lavascope_abi::Command;
use lavascope_record::encoding::{RecordHeader, RecordPhase, beside};
use lavascope_record::{Call, HostWrite, OrderEdge, check};
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

/// What the host writes to mapped memory: no byte of it is zero, so all of them change.
pub(crate) fn host_word(program: usize, bytes: usize) -> u64 {
    let digits = [program % 255, program / 255, bytes % 255, bytes / 255, 0x41, 0x42, 0x43, 0x44];
    u64::from_le_bytes(digits.map(|it| (it % 255) as u8 + 1))
}

/// A call in a stream, or a record of host writes.
pub(crate) struct TracedCall {
    pub(crate) number: u64,
    pub(crate) edges: Vec<OrderEdge>,
    mark: Option<(usize, usize)>,
    /// The words that the host wrote, if it is no call.
    host_words: Option<Vec<u64>>,
}

#[cfg(test)]
impl TracedCall {
    pub(crate) fn new(number: u64, edges: Vec<OrderEdge>) -> TracedCall {
        TracedCall { number, edges, mark: None, host_words: None }
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
        let is_write = header.kind == beside::HOST_WRITE;
        if header.kind != RecordPhase::Enter as u8 && !is_write {
            continue;
        }
        let edges = words[words.len() - header.order_edge_count as usize..].iter();
        let edges = edges.map(|it| OrderEdge::from_word(*it)).collect();
        let is_create = !is_write && header.command == Command::CreateBuffer as u16;
        let mark = if is_create { mark_of(words)? } else { None };
        let host_words = if is_write { Some(written_words(words)?) } else { None };
        calls.push(TracedCall { number: header.call, edges, mark, host_words });
    }
    Ok(calls)
}

fn written_words(words: &[u64]) -> Result<Vec<u64>, String> {
    let write = HostWrite::parse(words).ok_or("the record of a host write is invalid")?;
    let words_of = |(_, bytes): (u64, &[u8])| {
        bytes.chunks_exact(8).map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default())).collect::<Vec<_>>()
    };
    Ok(write.runs().flat_map(words_of).collect())
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
    for stream in 0..streams.calls.len() {
        find_calls(streams, stream, programs, counts, &mut found)?;
    }
    find_host_writes(streams, programs, &mut found);
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

/// Finds the operations of all threads whose calls are in a stream.
fn find_calls(
    streams: &TracedStreams,
    stream: usize,
    programs: &[Program],
    counts: &CallCounts,
    found: &mut [HashMap<CallPlace, TracedPlace>],
) -> Result<(), String> {
    let all = &streams.calls[stream];
    let calls: Vec<usize> = (0..all.len()).filter(|it| all[*it].host_words.is_none()).collect();
    let mut at = 0;
    while let Some(mark) = (at..calls.len()).find(|it| all[calls[*it]].mark.is_some()) {
        let (number, thread) = all[calls[mark]].mark.unwrap_or_default();
        let operations = programs.get(number).and_then(|it| it.threads.get(thread));
        let operations = operations.ok_or_else(|| format!("there is no thread {thread} of program {number}"))?;
        let counts = &counts[number][thread];
        let own = operations.operations().position(|it| matches!(it, Operation::Mark(_)));
        let before: u64 = counts[..own.ok_or("a thread has no mark")?].iter().sum();
        let mut first = mark.checked_sub(before as usize).filter(|it| *it >= at).ok_or("calls are missing")?;
        for (call, count) in counts.iter().enumerate().filter(|it| *it.1 > 0) {
            let end = first + *count as usize;
            let last = *calls.get(end - 1).ok_or("calls are missing")?;
            found[number].insert(CallPlace { thread, call }, TracedPlace { stream, first: calls[first], last });
            first = end;
        }
        at = first;
    }
    Ok(())
}

/// Finds the records of what the host wrote. Any thread may have made them.
fn find_host_writes(streams: &TracedStreams, programs: &[Program], found: &mut [HashMap<CallPlace, TracedPlace>]) {
    let mut places = HashMap::new();
    for (stream, calls) in streams.calls.iter().enumerate() {
        for (index, call) in calls.iter().enumerate() {
            let words = call.host_words.iter().flatten();
            places.extend(words.map(|it| (*it, TracedPlace { stream, first: index, last: index })));
        }
    }
    for (number, program) in programs.iter().enumerate() {
        for (thread, own) in program.threads.iter().enumerate() {
            for (call, operation) in own.operations().enumerate() {
                if let Operation::WriteMemory(bytes) = operation
                    && let Some(place) = places.get(&host_word(number, *bytes))
                {
                    found[number].insert(CallPlace { thread, call }, *place);
                }
            }
        }
    }
}
