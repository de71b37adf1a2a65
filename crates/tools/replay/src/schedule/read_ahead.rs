//! Decodes blocks of the longest streams on separate threads, while earlier blocks are played.
//!
//! Each stream has two blocks in turn, so memory does not grow. In a file with an index, only the needed blocks are
//! read.

use std::cmp::Reverse;
use std::sync::mpsc::{channel, sync_channel};
use std::thread::Scope;

use lavascope_trace::{BlockFeed, StreamBlock, StreamBlocks, StreamReader, Tail, Trace, TraceError};

/// Shorter streams end before reading ahead helps.
const BLOCKS_MIN: usize = 4;
/// Each of them needs the memory of one more block.
const STREAMS_MAX: usize = 4;
/// A playing thread and its reading thread need a core each.
const CORES_EACH: usize = 2;

/// The readers of all streams.
pub(crate) fn stream_readers<'scope, 't: 'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    trace: &'t Trace<'a>,
    tail: Option<&Tail>,
    streams: &[u32],
) -> Vec<StreamReader<'t, 'a>> {
    let all: Vec<StreamBlocks<'t, 'a>> = streams.iter().map(|it| StreamBlocks::new(trace, tail, *it)).collect();
    let mut longest: Vec<usize> = (0..all.len()).filter(|it| all[*it].left() >= BLOCKS_MIN).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // If all cores are busy with playing, reading ahead would only use memory.
    if longest.len() * CORES_EACH > cores {
        longest.clear();
    }
    longest.sort_by_key(|it| Reverse(all[*it].left()));
    longest.truncate(STREAMS_MAX);
    let reader = |(index, mut blocks): (usize, StreamBlocks<'t, 'a>)| {
        let feed: BlockFeed<'t> = match longest.contains(&index) {
            true => spawn_block_reader(scope, blocks),
            false => Box::new(move |it| blocks.read_next(it)),
        };
        StreamReader::with_feed(trace, streams[index], feed)
    };
    all.into_iter().enumerate().map(reader).collect()
}

/// Starts a thread that decodes the next block in advance.
fn spawn_block_reader<'scope, 't: 'scope, 'a: 'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut blocks: StreamBlocks<'t, 'a>,
) -> BlockFeed<'t> {
    // The sender waits until the block is received, so there are two blocks: one is played, and one is decoded.
    let (give, take) = sync_channel::<Result<StreamBlock, TraceError>>(0);
    let (give_back, take_back) = channel::<StreamBlock>();
    scope.spawn(move || {
        loop {
            let mut block = take_back.try_recv().unwrap_or_default();
            let read = match blocks.read_next(&mut block) {
                Ok(true) => Ok(block),
                Ok(false) => return,
                Err(error) => Err(error),
            };
            let has_failed = read.is_err();
            // Fails if the replay has ended early.
            if give.send(read).is_err() || has_failed {
                return;
            }
        }
    });
    Box::new(move |stream_block| {
        // Fails if the thread has ended, and then the block is not needed.
        let _ = give_back.send(std::mem::take(stream_block));
        match take.recv() {
            Ok(read) => read.map(|next| *stream_block = next).map(|()| true),
            Err(_) => Ok(false),
        }
    })
}
