//! All threads of a trace, played by one: the same order each time.
//!
//! What may come next is what the order of the trace allows; of that, what came first when the trace was made. A call
//! that waits counts from when it returned: what it waited for had begun before.

use lavascope_record::OrderEdge;
use lavascope_trace::StreamReader;

use crate::error::ReplayError;
use crate::play::Player;
use crate::replay::Replay;

/// A stream, as far as it was played.
pub(crate) struct Part<'r, 't, 'a> {
    pub(crate) stream: u32,
    pub(crate) player: Player<'r>,
    pub(crate) reader: StreamReader<'t, 'a>,
    pub(crate) is_over: bool,
}

/// Plays all streams to their ends.
pub(crate) fn play(replay: &Replay, parts: &mut [Part<'_, '_, '_>]) -> Result<(), ReplayError> {
    let mut turn = 0;
    while let Some((next, until)) = choose(replay, parts, turn)? {
        turn = next;
        let Part { player, reader, .. } = &mut parts[turn];
        // For as long as nobody else has anything older to do.
        loop {
            if let Some(it) = reader.take_next()? {
                player.step(it)?;
            }
            let goes_on = match reader.look()? {
                Some((time, _, mut touches)) => {
                    (time < until || player.is_inside()) && touches.all(|it| replay.positions.is_done(it))
                }
                None => false,
            };
            if !goes_on {
                break;
            }
        }
    }
    match parts.iter().find(|it| !it.is_over) {
        None => Ok(()),
        Some(_) => Err(ReplayError::Circle(stuck(replay, parts)?)),
    }
}

/// The stream whose turn it is, and until when; none where none can go on.
fn choose(replay: &Replay, parts: &mut [Part<'_, '_, '_>], turn: usize) -> Result<Option<(usize, u64)>, ReplayError> {
    let mut first: Option<(u64, usize)> = None;
    // Of those that are not first, also such as cannot go on now.
    let mut until = u64::MAX;
    for (at, part) in parts.iter_mut().enumerate().filter(|it| !it.1.is_over) {
        let Some((time, _, mut touches)) = part.reader.look()? else {
            part.is_over = true;
            part.player.end();
            continue;
        };
        if !touches.all(|it| replay.positions.is_done(it)) {
            until = until.min(time);
            continue;
        }
        if at == turn && part.player.is_inside() {
            return Ok(Some((at, 0)));
        }
        match first {
            Some(it) if it < (time, at) => until = until.min(time),
            _ => {
                until = first.map_or(until, |it| until.min(it.0));
                first = Some((time, at));
            }
        }
    }
    // The end of one stream may let another go on.
    match first {
        None if parts.iter().any(|it| !it.is_over) && has_ready(replay, parts)? => choose(replay, parts, turn),
        first => Ok(first.map(|it| (it.1, until))),
    }
}

fn has_ready(replay: &Replay, parts: &mut [Part<'_, '_, '_>]) -> Result<bool, ReplayError> {
    for part in parts.iter_mut().filter(|it| !it.is_over) {
        if part.reader.look()?.is_some_and(|mut it| it.2.all(|it| replay.positions.is_done(it))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What everybody waits for.
fn stuck(replay: &Replay, parts: &mut [Part<'_, '_, '_>]) -> Result<String, ReplayError> {
    let mut texts = Vec::new();
    for part in parts.iter_mut().filter(|it| !it.is_over) {
        if let Some((_, call, mut touches)) = part.reader.look()?
            && let Some(it) = touches.find(|it| !replay.positions.is_done(*it))
        {
            let OrderEdge { thread, call: until } = it;
            texts.push(format!("call {call} of thread {} waits for call {until} of thread {thread}", part.stream));
        }
    }
    Ok(texts.join(", "))
}
