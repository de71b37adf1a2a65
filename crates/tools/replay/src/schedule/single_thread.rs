//! All threads of a trace, played by one: the same order each time.
//!
//! Only calls that the order of the trace allows may come next; among those, the oldest one. A call that waits counts
//! from when it returned: what it waited for had begun before.

use lavascope_record::OrderEdge;
use lavascope_trace::NextRecord;
use lavascope_trace::StreamReader;

use crate::error::{ReplayError, ThreadWait, ThreadWaits};
use crate::replay::Replay;
use crate::schedule::player::StreamPlayer;

/// A stream, as far as it was played.
pub(crate) struct ScheduledStream<'r, 't, 'a> {
    pub(crate) stream: u32,
    pub(crate) player: StreamPlayer<'r>,
    pub(crate) reader: StreamReader<'t, 'a>,
    pub(crate) is_finished: bool,
}

/// Plays all streams to their ends.
pub(crate) fn play_streams(replay: &Replay, parts: &mut [ScheduledStream<'_, '_, '_>]) -> Result<(), ReplayError> {
    let mut turn = 0;
    while let Some((next, until)) = next_stream(replay, parts, turn)? {
        turn = next;
        let ScheduledStream { player, reader, .. } = &mut parts[turn];
        // As long as no other stream has an older call.
        loop {
            if let Some(record_mut) = reader.take_next()? {
                player.play_record(record_mut)?;
            }
            let goes_on = match reader.peek()? {
                Some(NextRecord { time, mut edges, .. }) => {
                    (time < until || player.is_in_call()) && edges.all(|it| replay.progress.is_complete(it))
                }
                None => false,
            };
            if !goes_on {
                break;
            }
        }
    }
    match parts.iter().find(|it| !it.is_finished) {
        None => Ok(()),
        Some(_) => Err(ReplayError::OrderCycle(describe_deadlock(replay, parts)?)),
    }
}

/// The stream whose turn it is, and until when; none if no stream can continue.
fn next_stream(
    replay: &Replay,
    parts: &mut [ScheduledStream<'_, '_, '_>],
    turn: usize,
) -> Result<Option<(usize, u64)>, ReplayError> {
    let mut first: Option<(u64, usize)> = None;
    // Including streams that are not first and cannot continue now.
    let mut until = u64::MAX;
    for (at, part) in parts.iter_mut().enumerate().filter(|it| !it.1.is_finished) {
        let Some(NextRecord { time, mut edges, .. }) = part.reader.peek()? else {
            part.is_finished = true;
            part.player.end();
            continue;
        };
        if !edges.all(|it| replay.progress.is_complete(it)) {
            until = until.min(time);
            continue;
        }
        if at == turn && part.player.is_in_call() {
            return Ok(Some((at, 0)));
        }
        match first {
            Some(pair) if pair < (time, at) => until = until.min(time),
            _ => {
                until = first.map_or(until, |it| until.min(it.0));
                first = Some((time, at));
            }
        }
    }
    // The end of one stream may allow another to continue.
    match first {
        None if parts.iter().any(|it| !it.is_finished) && any_ready(replay, parts)? => next_stream(replay, parts, turn),
        first => Ok(first.map(|it| (it.1, until))),
    }
}

fn any_ready(replay: &Replay, parts: &mut [ScheduledStream<'_, '_, '_>]) -> Result<bool, ReplayError> {
    for part in parts.iter_mut().filter(|it| !it.is_finished) {
        if part.reader.peek()?.is_some_and(|mut it| it.edges.all(|it| replay.progress.is_complete(it))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The call that all streams wait for.
fn describe_deadlock(replay: &Replay, parts: &mut [ScheduledStream<'_, '_, '_>]) -> Result<ThreadWaits, ReplayError> {
    let mut waits = Vec::new();
    for part in parts.iter_mut().filter(|it| !it.is_finished) {
        if let Some(NextRecord { call, mut edges, .. }) = part.reader.peek()?
            && let Some(order_edge) = edges.find(|it| !replay.progress.is_complete(*it))
        {
            let OrderEdge { thread: other, call: until } = order_edge;
            waits.push(ThreadWait::Call { stream: part.stream, call, other, until });
        }
    }
    Ok(ThreadWaits(waits))
}
