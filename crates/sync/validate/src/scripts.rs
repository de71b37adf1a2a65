//! The calls that command buffers were recorded with: one that is recorded with the same calls again, while all that
//! those speak of is as it was, has the same commands in it, and nobody need look at them.
//!
//! As long as a command buffer follows its script, its calls are compared and nothing else. With the first call that is
//! another one, those before it are made up for ([`Next::Other`]).

use lavascope_abi::{ObjectId, cast};
use lavascope_record::record::{CALL_MAX, HEADER_SIZE};
use lavascope_record::{Record, Omissions};
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
pub(crate) struct Scripts {
    /// A command buffer, and its script.
    last: (u64, Script),
    others: FxHashMap<u64, Script>,
    /// Words of all that are whole.
    words: usize,
    /// The recording that was begun last, if it can have a script.
    pub(crate) begun: Option<Begun>,
    /// Calls that were the same.
    pub(crate) same: u64,
    /// Whether none are written down.
    pub(crate) is_off: bool,
}

/// A recording that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) place: Place,
    /// Whether it may turn out to be what was recorded the last time.
    pub(crate) may_repeat: bool,
}

/// A command buffer of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) device: ObjectId,
    pub(crate) id: CommandBufferId,
}

/// What a call depends on, beside its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) thread: u32,
    /// Of its call stack; zero, if nobody captured it.
    pub(crate) stack: u32,
    /// How often something changed that commands depend on.
    pub(crate) changes: u64,
}

/// What the next call of a command buffer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// What it was the last time: there is nothing to look at.
    Same,
    /// Something else: those before it have to be looked at first.
    Other,
    New,
}

/// What a recording that ends was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Same(Place),
    /// Less than the last time: all of it has to be looked at first.
    Other,
    New,
}

#[derive(Default)]
struct Script {
    /// The records of the calls from the beginning on, without touches; with the numbers that the calls had last.
    words: Vec<u64>,
    stage: Stage,
    /// Words that were the same so far.
    at: usize,
    /// At its beginning.
    moment: Moment,
    place: Option<Place>,
    /// Recordings in a row that did not follow, and how many are not written down because of that.
    misses: u8,
    pause: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Nothing,
    /// It is being recorded, and written down.
    Writing,
    /// It is being recorded, with the same calls so far.
    Following,
    Whole,
}

impl Scripts {
    /// A recording was begun by this call.
    pub(crate) fn begin(&mut self, record: Record<'_>, now: Moment) {
        let begun = self.begun.take().filter(|_| now.stack == 0 && !self.is_off);
        self.of(record);
        let script = &mut self.last.1;
        script.place = begun.map(|it| it.place);
        let is_whole = matches!(script.stage, Stage::Whole | Stage::Following);
        if is_whole && begun.is_some_and(|it| it.may_repeat) && script.moment.changes == now.changes {
            (script.stage, script.moment, script.at) = (Stage::Following, now, 0);
            if script.follow(record) {
                return;
            }
        }
        if is_whole {
            self.words -= script.words.len();
        }
        script.clear();
        let pause = script.pause;
        script.pause = pause.saturating_sub(1);
        if pause == 0 && begun.is_some() && self.words < ALL_WORDS_MAX {
            (script.stage, script.moment) = (Stage::Writing, now);
            script.write(record);
        }
    }

    /// The next call between the beginning and the end; `is_plain` if it may be in a script.
    #[inline]
    pub(crate) fn next(&mut self, record: Record<'_>, now: Moment, is_plain: bool) -> Next {
        self.of(record);
        let script = &mut self.last.1;
        match script.stage {
            Stage::Nothing | Stage::Whole => Next::New,
            Stage::Following => {
                let is_same = script.moment == now && script.follow(record);
                self.same += u64::from(is_same);
                if is_same { Next::Same } else { Next::Other }
            }
            Stage::Writing => {
                if is_plain && script.moment == now {
                    script.write(record);
                } else {
                    script.clear();
                }
                Next::New
            }
        }
    }

    /// This call ends the recording.
    pub(crate) fn end(&mut self, record: Record<'_>, now: Moment) -> End {
        self.of(record);
        let script = &self.last.1;
        let is_same = script.moment == now && script.at == script.words.len();
        match (script.stage, script.place) {
            (Stage::Following, Some(place)) if is_same => End::Same(place),
            (Stage::Following, _) => End::Other,
            _ => End::New,
        }
    }

    /// Nothing more is recorded.
    pub(crate) fn finish(&mut self, now: Moment) {
        let script = &mut self.last.1;
        match script.stage {
            Stage::Following => (script.stage, script.misses) = (Stage::Whole, 0),
            Stage::Writing if script.moment == now => {
                script.stage = Stage::Whole;
                script.give_room_back();
                self.words += script.words.len();
            }
            Stage::Writing => script.clear(),
            Stage::Nothing | Stage::Whole => {}
        }
    }

    /// The calls that were the same so far, behind the first: they have to be looked at, and are written down with what
    /// comes behind them.
    pub(crate) fn turn_away(&mut self, now: Moment) -> Vec<u64> {
        let script = &mut self.last.1;
        self.words -= script.words.len();
        script.words.truncate(script.at);
        (script.stage, script.moment) = (Stage::Writing, now);
        script.misses += 1;
        if script.misses >= MISSES_MAX {
            (script.misses, script.pause) = (0, PAUSE);
        }
        let first = script.words.first().map_or(0, |it| *it as u32 as usize);
        let calls = script.words[first..].to_vec();
        // One that has a call stack may have another one the next time.
        if script.pause > 0 || now.stack != 0 {
            script.clear();
        }
        calls
    }

    /// What was recorded last must be looked at each time.
    pub(crate) fn spoil(&mut self) {
        if self.last.1.stage == Stage::Writing {
            self.last.1.clear();
        }
    }

    /// Whether calls of a command buffer were not looked at.
    pub(crate) fn is_following(&mut self, record: Record<'_>) -> bool {
        self.of(record);
        self.last.1.stage == Stage::Following
    }

    /// There is no such command buffer any more.
    pub(crate) fn remove(&mut self, buffer: ObjectId) {
        let gone = if self.last.0 == buffer.raw() {
            Some(std::mem::take(&mut self.last).1)
        } else {
            self.others.remove(&buffer.raw())
        };
        if let Some(gone) = gone.filter(|it| matches!(it.stage, Stage::Whole | Stage::Following)) {
            self.words -= gone.words.len();
        }
    }

    /// The script of the command buffer that a call is about is the last one from now on.
    #[inline]
    fn of(&mut self, record: Record<'_>) {
        let buffer = record.body().get(HEADER_SIZE..).and_then(cast::<u64>).copied().unwrap_or(0);
        if self.last.0 != buffer {
            self.change(buffer);
        }
    }

    fn change(&mut self, buffer: u64) {
        let own = self.others.remove(&buffer).unwrap_or_default();
        let (last, script) = std::mem::replace(&mut self.last, (buffer, own));
        if last != 0 {
            self.others.insert(last, script);
        }
    }
}

impl Script {
    /// Whether a call is the next one; if so, that is behind.
    #[inline]
    fn follow(&mut self, record: Record<'_>) -> bool {
        let (own, at) = (body_of(record), self.at);
        let Some(known) = self.words.get_mut(at..at + own.len()) else { return false };
        if known[0] != own[0] || known[2..] != own[2..] {
            return false;
        }
        known[1] = own[1] & CALL_MAX;
        self.at += own.len();
        true
    }

    fn write(&mut self, record: Record<'_>) {
        let own = body_of(record);
        if record.omissions() != Omissions::default() || self.words.len() + own.len() > WORDS_MAX {
            return self.clear();
        }
        self.words.extend([own[0], own[1] & CALL_MAX]);
        self.words.extend_from_slice(&own[2..]);
    }

    fn clear(&mut self) {
        self.give_room_back();
        self.words.clear();
        self.stage = Stage::Nothing;
    }

    /// What is kept for long takes no more room than it needs.
    fn give_room_back(&mut self) {
        if self.words.capacity() > 4 * self.words.len() + ROOM_MIN {
            self.words.shrink_to_fit();
        }
    }
}

/// Head and image.
#[inline]
fn body_of(record: Record<'_>) -> &[u64] {
    let words = record.words();
    &words[..words[0] as u32 as usize]
}
