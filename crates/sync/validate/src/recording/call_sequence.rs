//! Skips calls that repeat the last recording of a command buffer.
//!
//! A [`CallSequence`] has the calls with which a command buffer was recorded. If the application records the command
//! buffer again with the same calls, and nothing that they refer to has changed, the commands are the same. The calls
//! are then compared word by word, and not tracked. At the first different call, the tracker gets the skipped calls
//! ([`NextCall::Different`]). A test compares this with a validator that tracks all calls.
//!
//! A recording is skipped only if
//!
//! - nothing was created, destroyed or written into descriptors since (`Tracker::change_count`, which also counts
//!   unsupported calls),
//! - it had no findings,
//! - none of its accesses become known later,
//! - it has only commands whose meaning follows from their parameters and from the commands before them.
//!
//! Secondary command buffers, and command buffers that execute them, are never skipped, because their accesses may
//! become known later.

use lavascope_abi::{ObjectId, cast};
use lavascope_record::encoding::{CALL_MAX, HEADER_SIZE};
use lavascope_record::{Omissions, Record};
use lavascope_sync_ir::CommandBufferId;
use rustc_hash::FxHashMap;

/// Largest number of words of a sequence, and of all sequences together. Longer sequences are not kept.
const WORDS_MAX: usize = 1 << 17;
const ALL_WORDS_MAX: usize = 1 << 22;
/// Unused capacity in words that is not worth freeing.
const SPARE_WORDS_MIN: usize = 1024;
/// After this many different recordings in a row, the next `PAUSE` recordings are not stored.
const MISSES_MAX: u8 = 4;
const PAUSE: u8 = 32;

/// The call sequences of all command buffers.
#[derive(Default)]
pub(crate) struct CallSequenceCache {
    /// The command buffer of the last call, and its sequence. The next call is mostly for the same command buffer.
    last: (u64, CallSequence),
    others: FxHashMap<u64, CallSequence>,
    /// Number of words of all complete sequences.
    words: usize,
    /// The recording that was begun last, if it may be skipped the next time.
    pub(crate) begun: Option<BegunRecording>,
    /// Number of skipped calls.
    pub(crate) same_calls: u64,
    /// Whether no sequences are stored.
    pub(crate) is_disabled: bool,
}

/// A recording that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunRecording {
    pub(crate) buffer: DeviceCommandBuffer,
    /// Whether it may repeat the last recording.
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

/// The next call of a command buffer, compared with the last recording.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextCall {
    /// The same call: it is skipped.
    Same,
    /// A different call: the tracker needs the skipped calls before it.
    Different,
    /// Nothing is compared: the tracker gets the call.
    NotCompared,
}

/// The calls that were skipped so far.
pub(crate) struct SkippedCalls {
    /// Their records, one after the other.
    pub(crate) words: Vec<u64>,
    /// The call stack of each.
    pub(crate) stacks: Vec<u32>,
}

/// A recording that ends, compared with the last recording.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SequenceEnd {
    Same(DeviceCommandBuffer),
    /// It has fewer calls than the last recording: the tracker needs the skipped calls.
    Different,
    /// Nothing was compared: the tracker has got all calls.
    NotCompared,
}

#[derive(Default)]
struct CallSequence {
    /// The records of the calls, without order edges. Their call numbers are those of the last recording.
    words: Vec<u64>,
    /// The call stack of each call; zero if it was not captured. Findings show the stack, so the same call with another
    /// stack is a different call.
    stacks: Vec<u32>,
    state: SequenceState,
    /// Number of words and calls that were the same so far.
    matched_words: usize,
    matched_calls: usize,
    /// The context when the recording began.
    context: CallContext,
    buffer: Option<DeviceCommandBuffer>,
    /// Number of different recordings in a row, and number of recordings that are not stored because of that.
    misses: u8,
    pause: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SequenceState {
    #[default]
    Empty,
    /// The command buffer is being recorded, and its calls are stored.
    Storing,
    /// The command buffer is being recorded, so far with the stored calls.
    Matching,
    Complete,
}

impl CallSequenceCache {
    /// Begins a recording with this call.
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
            (sequence.state, sequence.context) = (SequenceState::Storing, now);
            sequence.store(record, stack);
        }
    }

    /// Compares or stores a call between the begin and the end of a recording. `is_repeatable`: whether a recording with
    /// this call may be skipped.
    #[inline]
    pub(crate) fn compare_next(
        &mut self,
        record: Record<'_>,
        stack: u32,
        now: CallContext,
        is_repeatable: bool,
    ) -> NextCall {
        self.select(record);
        let sequence = &mut self.last.1;
        match sequence.state {
            SequenceState::Empty | SequenceState::Complete => NextCall::NotCompared,
            SequenceState::Matching => {
                let is_same = sequence.context == now && sequence.advance_if_same(record, stack);
                self.same_calls += u64::from(is_same);
                if is_same { NextCall::Same } else { NextCall::Different }
            }
            SequenceState::Storing => {
                if is_repeatable && sequence.context == now {
                    sequence.store(record, stack);
                } else {
                    sequence.clear();
                }
                NextCall::NotCompared
            }
        }
    }

    /// Compares the end of a recording.
    pub(crate) fn compare_end(&mut self, record: Record<'_>, now: CallContext) -> SequenceEnd {
        self.select(record);
        let sequence = &self.last.1;
        let is_same = sequence.context == now && sequence.matched_words == sequence.words.len();
        match (sequence.state, sequence.buffer) {
            (SequenceState::Matching, Some(place)) if is_same => SequenceEnd::Same(place),
            (SequenceState::Matching, _) => SequenceEnd::Different,
            _ => SequenceEnd::NotCompared,
        }
    }

    /// Completes the recording.
    pub(crate) fn finish(&mut self, now: CallContext) {
        let sequence = &mut self.last.1;
        match sequence.state {
            SequenceState::Matching => (sequence.state, sequence.misses) = (SequenceState::Complete, 0),
            SequenceState::Storing if sequence.context == now => {
                sequence.state = SequenceState::Complete;
                sequence.shrink();
                self.words += sequence.words.len();
            }
            SequenceState::Storing => sequence.clear(),
            SequenceState::Empty | SequenceState::Complete => {}
        }
    }

    /// Stops skipping. Returns the skipped calls, without the first one, which the tracker has got. They stay stored, and
    /// the following calls are stored after them.
    pub(crate) fn stop_matching(&mut self, now: CallContext) -> SkippedCalls {
        let sequence = &mut self.last.1;
        self.words -= sequence.words.len();
        sequence.words.truncate(sequence.matched_words);
        sequence.stacks.truncate(sequence.matched_calls);
        (sequence.state, sequence.context) = (SequenceState::Storing, now);
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

    /// Forgets the recording that is being stored, so it will not be skipped.
    pub(crate) fn invalidate_last(&mut self) {
        if self.last.1.state == SequenceState::Storing {
            self.last.1.clear();
        }
    }

    /// Whether calls of the command buffer of a record were skipped in this recording.
    pub(crate) fn select_matching(&mut self, record: Record<'_>) -> bool {
        self.select(record);
        self.last.1.state == SequenceState::Matching
    }

    /// Forgets a command buffer that was freed.
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

    /// Makes the command buffer of a record the last one.
    #[inline]
    fn select(&mut self, record: Record<'_>) {
        let buffer = record.body().get(HEADER_SIZE..).and_then(cast::<u64>).copied().unwrap_or(0);
        if self.last.0 != buffer {
            self.select_other(buffer);
        }
    }

    fn select_other(&mut self, buffer: u64) {
        let own = self.others.remove(&buffer).unwrap_or_default();
        let (last, sequence) = std::mem::replace(&mut self.last, (buffer, own));
        if last != 0 {
            self.others.insert(last, sequence);
        }
    }
}

impl CallSequence {
    /// Whether a call equals the next stored one. If so, advances to the one after it.
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

    fn store(&mut self, record: Record<'_>, stack: u32) {
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

    /// Frees unused capacity, because the sequence is kept for long.
    fn shrink(&mut self) {
        if self.words.capacity() > 4 * self.words.len() + SPARE_WORDS_MIN {
            self.words.shrink_to_fit();
            self.stacks.shrink_to_fit();
        }
    }
}

/// The header and the parameters of a record.
#[inline]
fn body_of(record: Record<'_>) -> &[u64] {
    let words = record.words();
    &words[..words[0] as u32 as usize]
}
