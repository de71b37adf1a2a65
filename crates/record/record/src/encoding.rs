//! The bytes of a record: a head of two words, the image of the call, the order edges.
//!
//! ```text
//! word 0   bits  0..32  words of head and image together
//!          bits 32..48  command
//!          bits 48..56  kind: enter or leave
//!          bits 56..64  omissions
//! word 1   bits  0..40  call number within the thread
//!          bits 40..64  number of order edges
//! image    parameters (enter) or outputs (leave), then every block they lead to, depth first
//! edges    one word for each call of another thread that must be complete first: thread (24 bits), call (40 bits)
//! ```
//!
//! A record is relocatable: offsets count from its first byte. Everything is little-endian. An order edge is one word,
//! so a thread has a number of 24 bits, which a later thread may take over, and 2^40 calls, which last for days.

use lavascope_abi::{Command, bytes_of_slice};

/// Bytes before the image.
pub const HEADER_SIZE: usize = 16;

/// Calls of one thread are counted up to this.
pub const CALL_MAX: u64 = (1 << 40) - 1;
/// Where the number of order edges begins in the second word.
pub const ORDER_EDGES_SHIFT: u32 = 40;
/// A record holds at most this many touches.
pub const ORDER_EDGES_MAX: u32 = (1 << 24) - 1;

/// Which half of a call a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordPhase {
    /// The parameters, complete before the driver sees the call.
    Enter = 0,
    /// The result and the outputs, after the driver returned.
    Leave = 1,
}

/// What stands between records in a stream: see [`RecordHeader::kind`]. Not the half of a call, and nothing that
/// `check` knows.
pub mod beside {
    /// When the record behind it was made: the low 48 bits of the word are the time, and there is no second word.
    pub const TIME: u8 = 2;
    /// What the host wrote into mapped memory: see [`HostWrite`](crate::HostWrite).
    pub const HOST_WRITE: u8 = 3;
    /// Something that a capture has to say, as JSON: how many bytes, and the bytes.
    pub const METADATA: u8 = 4;
    /// What the call behind it reads from the host's own memory: see [`HostBytes`](crate::HostBytes).
    pub const HOST_BYTES: u8 = 5;

    /// Whether such a record has a call number of its own.
    pub fn has_own_number(kind: u8) -> bool {
        matches!(kind, HOST_WRITE | HOST_BYTES)
    }
}

/// What a record could not hold. Nothing is lost in silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Omissions(pub u8);

impl Omissions {
    /// A chain has structures that this registry does not know; they are stubs here.
    pub const UNKNOWN_STRUCTURES: Omissions = Omissions(1);
    /// Data whose size nobody knew, or host memory: present, but not in the record.
    pub const CONTENTS_MISSING: Omissions = Omissions(2);
    /// A chain or nesting deeper than any sane one was cut.
    pub const TRUNCATED: Omissions = Omissions(4);
    const ALL: u8 = 7;

    pub fn has(self, remark: Omissions) -> bool {
        self.0 & remark.0 != 0
    }

    pub fn add(&mut self, remark: Omissions) {
        self.0 |= remark.0;
    }

    /// Only remarks that exist.
    pub fn from_bits(raw: u8) -> Option<Omissions> {
        (raw & !Self::ALL == 0).then_some(Omissions(raw))
    }
}

/// The head of a record, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Words of head and image together.
    pub body_words: u32,
    pub command: u16,
    pub kind: u8,
    pub omissions: u8,
    pub call: u64,
    pub order_edge_count: u32,
}

impl RecordHeader {
    pub fn from_words(first: u64, second: u64) -> RecordHeader {
        RecordHeader {
            body_words: first as u32,
            command: (first >> 32) as u16,
            kind: (first >> 48) as u8,
            omissions: (first >> 56) as u8,
            call: second & CALL_MAX,
            order_edge_count: (second >> ORDER_EDGES_SHIFT) as u32,
        }
    }

    pub fn to_words(self) -> [u64; 2] {
        let first = u64::from(self.body_words)
            | u64::from(self.command) << 32
            | u64::from(self.kind) << 48
            | u64::from(self.omissions) << 56;
        [first, self.call & CALL_MAX | u64::from(self.order_edge_count) << ORDER_EDGES_SHIFT]
    }

    /// The call that a record completes: its leave, or its enter where there is no leave. What the host wrote has a
    /// number of its own.
    pub fn completed_call(self) -> Option<u64> {
        let has_leave = Command::from_number(self.command).is_some_and(|it| it.desc().outputs.is_some());
        let is_complete = match self.kind {
            kind if beside::has_own_number(kind) => true,
            kind => kind == RecordPhase::Leave as u8 || (kind == RecordPhase::Enter as u8 && !has_leave),
        };
        is_complete.then_some(self.call)
    }

    /// Whether this is half of a call, and not something [beside](beside) calls.
    pub fn is_call(self) -> bool {
        self.kind <= RecordPhase::Leave as u8
    }

    /// Bytes of the whole record, the touches included.
    pub fn size(self) -> usize {
        (self.body_words as usize + self.order_edge_count as usize) * 8
    }
}

/// A record that passed `check`: its offsets, counts and selectors may be relied on.
///
/// No more than its words, so that it goes from function to function in registers: the head is read where it is asked
/// for.
/// A structure that one function writes field by field and the next one reads as a whole costs a store-forwarding stall,
/// some 20 ns each time.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    words: &'a [u64],
}

impl<'a> Record<'a> {
    /// For `check` alone: there is a whole head, of a command that exists.
    pub(crate) fn from_checked(words: &'a [u64]) -> Record<'a> {
        Record { words }
    }

    #[inline]
    pub fn command(self) -> Command {
        Command::ALL[usize::from((self.words[0] >> 32) as u16)]
    }

    #[inline]
    pub fn phase(self) -> RecordPhase {
        if (self.words[0] >> 48) as u8 == RecordPhase::Enter as u8 { RecordPhase::Enter } else { RecordPhase::Leave }
    }

    #[inline]
    pub fn call_number(self) -> u64 {
        self.words[1] & CALL_MAX
    }

    pub fn omissions(self) -> Omissions {
        Omissions((self.words[0] >> 56) as u8)
    }

    /// The whole record.
    pub fn words(self) -> &'a [u64] {
        self.words
    }

    /// Head and image, which offsets count from.
    #[inline]
    pub fn body(self) -> &'a [u8] {
        bytes_of_slice(&self.words[..self.body_words()])
    }

    /// What stands behind the head: parameters or outputs, and all that they lead to.
    #[inline]
    pub fn image(self) -> &'a [u64] {
        &self.words[HEADER_SIZE / 8..self.body_words()]
    }

    #[inline]
    fn body_words(self) -> usize {
        self.words[0] as u32 as usize
    }

    pub fn order_edges(self) -> impl ExactSizeIterator<Item = OrderEdge> + 'a {
        self.words[self.body_words()..].iter().map(|it| OrderEdge::from_word(*it))
    }
}

/// A call of another thread that comes before: it changed an object that this one uses, or a barrier asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderEdge {
    pub thread: u32,
    pub call: u64,
}

impl OrderEdge {
    pub fn from_word(word: u64) -> OrderEdge {
        OrderEdge { thread: (word >> 40) as u32, call: word & CALL_MAX }
    }

    pub fn to_word(self) -> u64 {
        u64::from(self.thread) << 40 | self.call & CALL_MAX
    }
}
