//! The calls that command buffers were recorded with. If a command buffer is recorded with the same calls again, while
//! all that they refer to is unchanged, then it has the same commands, and the calls are compared word by word and not
//! tracked.
//!
//! That is allowed where nothing was created, destroyed or written into descriptors since, which the tracker counts
//! (`Tracker::change_count`; what it does not understand counts too); where nothing was found; where nothing becomes
//! known later; and where only commands were recorded whose meaning follows from their parameters and from what was
//! recorded before them. At the first other call the tracker first gets those before it ([`NextCall::Different`]). A
//! test compares this with a validator that tracks all calls.
//!
//! Absent on purpose: secondary command buffers, and those that execute them, since what they do may become known
//! later.

use lavascope_abi::{ObjectId, cast};
use lavascope_record::encoding::{CALL_MAX, HEADER_SIZE};
use lavascope_record::{Omissions, Record};
use lavascope_sync_ir::CommandBufferId;
use rustc_hash::FxHashMap;

/// Words of a script, and of all scripts together; what is longer is not kept.
const WORDS_MAX: usize = 1 << 17;
const ALL_WORDS_MAX: usize = 1 << 22;
/// Words for which room is not worth giving back.
const ROOM_MIN: usize = 1024;
/// After so many recordings in a row that did not follow, the next ones are not written down.
const MISSES_MAX: u8 = 4;
const PAUSE: u8 = 32;

/// The scripts of all command buffers. The next call is for the same one as the last, in most cases.
#[derive(Default)]
pub(crate) struct CallSequenceCache {
    /// A command buffer, and its script.
    last: (u64, CallSequence),
    others: FxHashMap<u64, CallSequence>,
    /// Words of all that are whole.
    words: usize,
    /// The recording that was begun last, if it can have a script.
    pub(crate) begun: Option<BegunRecording>,
    /// Calls that were the same.
    pub(crate) same_calls: u64,
    /// Whether none are written down.
    pub(crate) is_disabled: bool,
}

/// A recording that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunRecording {
    pub(crate) buffer: DeviceCommandBuffer,
    /// Whether it may turn out to be what was recorded the last time.
    pub(crate) may_repeat: bool,
}

/// A command buffer of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceCommandBuffer {
    pub(crate) device: ObjectId,
    pub(crate) id: CommandBufferId,
}

/// What a call depends on, beside its parameters and its call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallContext {
    pub(crate) thread: u32,
    /// How often something changed that commands depend on.
    pub(crate) changes: u64,
}

/// What the next call of a command buffer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextCall {
    /// What it was the last time: there is nothing to look at.
    Same,
    /// Something else: those before it have to be looked at first.
    Different,
    Untracked,
}

/// Calls that were taken for a repetition.
pub(crate) struct SkippedCalls {
    /// Their records, one after the other.
    pub(crate) words: Vec<u64>,
    /// The call stack of each.
    pub(crate) stacks: Vec<u32>,
}

/// What a recording that ends was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SequenceEnd {
    Same(DeviceCommandBuffer),
    /// Less than the last time: all of it has to be looked at first.
    Different,
    Untracked,
}

#[derive(Default)]
struct CallSequence {
    /// The records of the calls from the beginning on, without touches; with the numbers that the calls had last.
    words: Vec<u64>,
    /// The call stack of each call; zero, if nobody captured it. Findings show it: the same call from another place is
    /// another call.
    stacks: Vec<u32>,
    state: SequenceState,
    /// Words and calls that were the same so far.
    matched_words: usize,
    matched_calls: usize,
    /// At its beginning.
    context: CallContext,
    buffer: Option<DeviceCommandBuffer>,
    /// Recordings in a row that did not follow, and how many are not written down because of that.
    misses: u8,
    pause: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SequenceState {
    #[default]
    Empty,
    /// It is being recorded, and written down.
    Recording,
    /// It is being recorded, with the same calls so far.
    Matching,
    Complete,
}

impl CallSequenceCache {
    /// A recording was begun by this call.
    pub(crate) fn begin(&mut self, record: Record<'_>, stack: u32, now: CallContext) {
        let begun = self.begun.take().filter(|_| !self.is_disabled);
        self.select(record);
        let sequence = &mut self.last.1;
        sequence.buffer = begun.map(|it| it.buffer);
        let is_whole = matches!(sequence.state, SequenceState::Complete | SequenceState::Matching);
        if is_whole && begun.is_some_and(|it| it.may_repeat) && sequence.context.changes == now.changes {
            (sequence.state, sequence.context) = (SequenceState::Matching, now);
            (sequence.matched_words, sequence.matched_calls) = (0, 0);
            if sequence.advance_if_same(record, stack) {
                return;
            }
        }
        if is_whole {
            self.words -= sequence.words.len();
        }
        sequence.clear();
        let pause = sequence.pause;
        sequence.pause = pause.saturating_sub(1);
        if pause == 0 && begun.is_some() && self.words < ALL_WORDS_MAX {
            (sequence.state, sequence.context) = (SequenceState::Recording, now);
            sequence.write(record, stack);
        }
    }

    /// The next call between the beginning and the end; `is_plain` if it may be in a script.
    #[inline]
    pub(crate) fn compare_next(
        &mut self,
        record: Record<'_>,
        stack: u32,
        now: CallContext,
        is_plain: bool,
    ) -> NextCall {
        self.select(record);
        let sequence = &mut self.last.1;
        match sequence.state {
            SequenceState::Empty | SequenceState::Complete => NextCall::Untracked,
            SequenceState::Matching => {
                let is_same = sequence.context == now && sequence.advance_if_same(record, stack);
                self.same_calls += u64::from(is_same);
                if is_same { NextCall::Same } else { NextCall::Different }
            }
            SequenceState::Recording => {
                if is_plain && sequence.context == now {
                    sequence.write(record, stack);
                } else {
                    sequence.clear();
                }
                NextCall::Untracked
            }
        }
    }

    /// This call ends the recording.
    pub(crate) fn compare_end(&mut self, record: Record<'_>, now: CallContext) -> SequenceEnd {
        self.select(record);
        let sequence = &self.last.1;
        let is_same = sequence.context == now && sequence.matched_words == sequence.words.len();
        match (sequence.state, sequence.buffer) {
            (SequenceState::Matching, Some(place)) if is_same => SequenceEnd::Same(place),
            (SequenceState::Matching, _) => SequenceEnd::Different,
            _ => SequenceEnd::Untracked,
        }
    }

    /// Nothing more is recorded.
    pub(crate) fn finish(&mut self, now: CallContext) {
        let sequence = &mut self.last.1;
        match sequence.state {
            SequenceState::Matching => (sequence.state, sequence.misses) = (SequenceState::Complete, 0),
            SequenceState::Recording if sequence.context == now => {
                sequence.state = SequenceState::Complete;
                sequence.shrink();
                self.words += sequence.words.len();
            }
            SequenceState::Recording => sequence.clear(),
            SequenceState::Empty | SequenceState::Complete => {}
        }
    }

    /// The calls that were the same so far, behind the first: they have to be looked at, and are written down with what
    /// comes behind them.
    pub(crate) fn stop_matching(&mut self, now: CallContext) -> SkippedCalls {
        let sequence = &mut self.last.1;
        self.words -= sequence.words.len();
        sequence.words.truncate(sequence.matched_words);
        sequence.stacks.truncate(sequence.matched_calls);
        (sequence.state, sequence.context) = (SequenceState::Recording, now);
        sequence.misses += 1;
        if sequence.misses >= MISSES_MAX {
            (sequence.misses, sequence.pause) = (0, PAUSE);
        }
        let first = sequence.words.first().map_or(0, |it| *it as u32 as usize);
        let stacks = sequence.stacks.get(1..).unwrap_or_default().to_vec();
        let calls = SkippedCalls { words: sequence.words[first..].to_vec(), stacks };
        if sequence.pause > 0 {
            sequence.clear();
        }
        calls
    }

    /// What was recorded last must be looked at each time.
    pub(crate) fn invalidate_last(&mut self) {
        if self.last.1.state == SequenceState::Recording {
            self.last.1.clear();
        }
    }

    /// Whether calls of a command buffer were not looked at.
    pub(crate) fn select_matching(&mut self, record: Record<'_>) -> bool {
        self.select(record);
        self.last.1.state == SequenceState::Matching
    }

    /// There is no such command buffer any more.
    pub(crate) fn remove(&mut self, buffer: ObjectId) {
        let gone = if self.last.0 == buffer.raw() {
            Some(std::mem::take(&mut self.last).1)
        } else {
            self.others.remove(&buffer.raw())
        };
        if let Some(gone) = gone.filter(|it| matches!(it.state, SequenceState::Complete | SequenceState::Matching)) {
            self.words -= gone.words.len();
        }
    }

    /// The script of the command buffer that a call is about is the last one from now on.
    #[inline]
    fn select(&mut self, record: Record<'_>) {
        let buffer = record.body().get(HEADER_SIZE..).and_then(cast::<u64>).copied().unwrap_or(0);
        if self.last.0 != buffer {
            self.change(buffer);
        }
    }

    fn change(&mut self, buffer: u64) {
        let own = self.others.remove(&buffer).unwrap_or_default();
        let (last, sequence) = std::mem::replace(&mut self.last, (buffer, own));
        if last != 0 {
            self.others.insert(last, sequence);
        }
    }
}

impl CallSequence {
    /// Whether a call is the next one; if so, that is behind.
    #[inline]
    fn advance_if_same(&mut self, record: Record<'_>, stack: u32) -> bool {
        let (own, at) = (body_of(record), self.matched_words);
        if self.stacks.get(self.matched_calls) != Some(&stack) {
            return false;
        }
        let Some(known) = self.words.get_mut(at..at + own.len()) else { return false };
        if known[0] != own[0] || known[2..] != own[2..] {
            return false;
        }
        known[1] = own[1] & CALL_MAX;
        self.matched_words += own.len();
        self.matched_calls += 1;
        true
    }

    fn write(&mut self, record: Record<'_>, stack: u32) {
        let own = body_of(record);
        if record.omissions() != Omissions::default() || self.words.len() + own.len() > WORDS_MAX {
            return self.clear();
        }
        self.words.extend([own[0], own[1] & CALL_MAX]);
        self.words.extend_from_slice(&own[2..]);
        self.stacks.push(stack);
    }

    fn clear(&mut self) {
        self.shrink();
        self.words.clear();
        self.stacks.clear();
        self.state = SequenceState::Empty;
    }

    /// What is kept for long takes no more room than it needs.
    fn shrink(&mut self) {
        if self.words.capacity() > 4 * self.words.len() + ROOM_MIN {
            self.words.shrink_to_fit();
            self.stacks.shrink_to_fit();
        }
    }
}

/// Head and image.
#[inline]
fn body_of(record: Record<'_>) -> &[u64] {
    let words = record.words();
    &words[..words[0] as u32 as usize]
}
