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

/// Number of bytes before the body.
pub const HEADER_SIZE: usize = 16;

/// The largest call number of a thread.
pub const CALL_MAX: u64 = (1 << 40) - 1;
/// The first bit of the number of order edges in the second word.
pub const ORDER_EDGES_SHIFT: u32 = 40;
/// Largest number of order edges of a record.
pub const ORDER_EDGES_MAX: u32 = (1 << 24) - 1;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordPhase {
    /// The parameters, complete before the driver sees the call.
    Enter = 0,
    /// The result and the outputs, after the driver returned.
    Leave = 1,
}

/// Entries between the records of a stream: see [`RecordHeader::kind`]. They are not calls, and `check` does not know
/// them.
pub mod beside {
    /// The time of the next record: the low 48 bits of the word. There is no second word.
    pub const TIME: u8 = 2;
    /// Host writes to mapped memory: see [`HostWrite`](crate::HostWrite).
    pub const HOST_WRITE: u8 = 3;
    /// Metadata of a capture: the number of bytes, and JSON.
    pub const METADATA: u8 = 4;
    /// Host memory that the next call reads: see [`HostBytes`](crate::HostBytes).
    pub const HOST_BYTES: u8 = 5;

    /// Whether an entry has a call number of its own.
    pub fn has_own_number(kind: u8) -> bool {
        matches!(kind, HOST_WRITE | HOST_BYTES)
    }
}

/// What a record omits. The header names every omission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Omissions(pub u8);

impl Omissions {
    /// A chain has unknown structures, which are stubs in the record.
    pub const UNKNOWN_STRUCTURES: Omissions = Omissions(1);
    /// Data of unknown size, or host memory: not null, but not in the record.
    pub const CONTENTS_MISSING: Omissions = Omissions(2);
    /// A chain or nesting was cut because it is deeper than any valid one.
    pub const TRUNCATED: Omissions = Omissions(4);
    const ALL: u8 = 7;

    pub fn has(self, remark: Omissions) -> bool {
        self.0 & remark.0 != 0
    }

    pub fn add(&mut self, remark: Omissions) {
        self.0 |= remark.0;
    }

    /// None if a bit is unknown.
    pub fn from_bits(raw: u8) -> Option<Omissions> {
        (raw & !Self::ALL == 0).then_some(Omissions(raw))
    }
}

/// The decoded header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Number of words of header and body together.
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

    /// The call that is complete with a record: the record of its outputs, or of its parameters if it has no outputs. A
    /// host write has a number of its own.
    pub fn completed_call(self) -> Option<u64> {
        let has_leave = Command::from_number(self.command).is_some_and(|it| it.desc().outputs.is_some());
        let is_complete = match self.kind {
            kind if beside::has_own_number(kind) => true,
            kind => kind == RecordPhase::Leave as u8 || (kind == RecordPhase::Enter as u8 && !has_leave),
        };
        is_complete.then_some(self.call)
    }

    /// Whether this is a record of a call, and not an entry [beside](beside) calls.
    pub fn is_call(self) -> bool {
        self.kind <= RecordPhase::Leave as u8
    }

    /// Size of the whole record in bytes, including its order edges.
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
    /// For `check` only: the header is complete, and the command exists.
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

    /// Header and body. Offsets are relative to it.
    #[inline]
    pub fn body(self) -> &'a [u8] {
        bytes_of_slice(&self.words[..self.body_words()])
    }

    /// The body: parameters or outputs, and everything to which they point.
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

/// A call of another thread that comes before this one, because it changed an object that this one uses, or because of
/// a barrier.
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
