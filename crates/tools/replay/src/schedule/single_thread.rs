//! All threads of a trace, played by one: the same order each time.
//!
//! Only calls that the order of the trace allows may come next; among those, the oldest one. A call that waits counts
//! from when it returned: what it waited for had begun before.

use lavascope_abi::Command;
use lavascope_record::OrderEdge;
use lavascope_record::encoding::{RecordHeader, RecordPhase};
use lavascope_trace::NextRecord;
use lavascope_trace::StreamReader;

use crate::call::handlers::is_wait;
use crate::error::{ReplayError, ThreadWait, ThreadWaits};
use crate::replay::Replay;
use crate::schedule::player::StreamPlayer;

/// A stream, as far as it was played.
pub(crate) struct ScheduledStream<'r, 't, 'a> {
    pub(crate) player: StreamPlayer<'r>,
    pub(crate) reader: StreamReader<'t, 'a>,
    pub(crate) is_finished: bool,
}

/// The stream whose turn it is.
pub(crate) struct NextTurn {
    pub(crate) at: usize,
    /// The time of the oldest next record of the other streams, whether that can be played now or not.
    pub(crate) until: u64,
    /// Whether the next record is the end of a call that may block until another thread makes progress.
    pub(crate) may_block: bool,
}

/// Plays all streams to their ends.
pub(crate) fn play_streams(replay: &Replay, parts: &mut [ScheduledStream<'_, '_, '_>]) -> Result<(), ReplayError> {
    let mut turn = 0;
    while let Some(next) = next_turn(replay, parts, turn)? {
        turn = next.at;
        play_turn(replay, &mut parts[turn], (next.until, true), || false)?;
    }
    match parts.iter().find(|it| !it.is_finished) {
        None => Ok(()),
        Some(_) => Err(ReplayError::OrderCycle(describe_deadlock(replay, parts)?)),
    }
}

/// Plays a stream as long as no other stream has an older call, or until `is_over`, which is asked after each record. If
/// not all streams are there, a call that may block ends the turn before.
#[inline]
pub(crate) fn play_turn(
    replay: &Replay,
    part: &mut ScheduledStream<'_, '_, '_>,
    (until, is_complete): (u64, bool),
    mut is_over: impl FnMut() -> bool,
) -> Result<(), ReplayError> {
    let ScheduledStream { player, reader, .. } = part;
    loop {
        if let Some(record_mut) = reader.take_next()? {
            player.play_record(record_mut)?;
        }
        let goes_on = match reader.peek()? {
            Some(NextRecord { time, mut edges, head }) => {
                (time < until || player.is_in_call())
                    && (is_complete || !may_block(head))
                    && edges.all(|it| replay.progress.is_complete(it))
            }
            None => false,
        };
        if !goes_on || is_over() {
            return Ok(());
        }
    }
}

/// The stream whose turn it is; none if no stream can continue. `turn` is the stream that was played last.
pub(crate) fn next_turn(
    replay: &Replay,
    parts: &mut [ScheduledStream<'_, '_, '_>],
    turn: usize,
) -> Result<Option<NextTurn>, ReplayError> {
    let mut first: Option<(u64, usize, bool)> = None;
    // Including streams that are not first and cannot continue now.
    let mut until = u64::MAX;
    for (at, part) in parts.iter_mut().enumerate().filter(|it| !it.1.is_finished) {
        let Some(NextRecord { time, mut edges, head, .. }) = part.reader.peek()? else {
            part.is_finished = true;
            part.player.end();
            continue;
        };
        if !edges.all(|it| replay.progress.is_complete(it)) {
            until = until.min(time);
            continue;
        }
        let may_block = may_block(head);
        if at == turn && part.player.is_in_call() {
            return Ok(Some(NextTurn { at, until: 0, may_block }));
        }
        // A call that has begun may be what a call waited for that returned before it.
        let time = part.player.begin_of_call().map_or(time, |it| time.min(it));
        match first {
            Some((first_time, ..)) if first_time <= time => until = until.min(time),
            _ => {
                until = first.map_or(until, |it| until.min(it.0));
                first = Some((time, at, may_block));
            }
        }
    }
    // The end of one stream may allow another to continue.
    match first {
        None if parts.iter().any(|it| !it.is_finished) && any_ready(replay, parts)? => next_turn(replay, parts, turn),
        first => Ok(first.map(|(_, at, may_block)| NextTurn { at, until, may_block })),
    }
}

/// Whether the next record ends a call that the driver may hold up until another thread makes progress.
fn may_block(head: RecordHeader) -> bool {
    let command = Command::from_number(head.command).filter(|_| head.kind == RecordPhase::Leave as u8);
    command.is_some_and(|it| is_wait(it) || it.desc().name.starts_with("vkQueue"))
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
        if let Some(NextRecord { head, mut edges, .. }) = part.reader.peek()?
            && let Some(order_edge) = edges.find(|it| !replay.progress.is_complete(*it))
        {
            let OrderEdge { thread: other, call: until } = order_edge;
            waits.push(ThreadWait::Call { stream: part.player.stream(), call: head.call, other, until });
        }
    }
    Ok(ThreadWaits(waits))
}
