//! The sites of a module: each access that may be wrong, and how it is checked.

use lavascope_spirv::InstructionIndex;

/// An access, or the use of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSite {
    /// Where it is in the module that was instrumented.
    pub at: InstructionIndex,
    pub check: Check,
    pub decision: CheckDecision,
    /// The descriptor's set and binding, where one is accessed.
    pub binding: Option<(u32, u32)>,
    /// The element of the binding, if the module defines it.
    pub element: Option<u32>,
    /// Bytes of one access.
    pub bytes: u64,
    /// How `index` of a [`crate::RecordedFault::BufferOutOfBounds`] counts.
    pub index_unit: IndexUnit,
}

/// The kinds of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The index into an array of descriptors is in bounds, and the descriptor was written.
    Descriptor = 0,
    /// The bytes at an address belong to a buffer.
    Address = 2,
    /// The bytes are inside of the bound range.
    Buffer = 3,
    /// The texel is inside of the texel buffer.
    Texel = 4,
}

/// The decision about a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckDecision {
    /// It cannot go wrong, or only if a requirement is not met, which the host checks.
    Proven,
    /// The same was checked on every way to it.
    Repeated,
    /// It is checked once: where the function begins, if it depends on no invocation, or before the loop that counts
    /// its index. In the loop only its guard is left.
    Hoisted { number: u32 },
    /// It is checked where it is.
    Checked { number: u32 },
    /// It is left as it was.
    Unchecked(UncheckedReason),
}

impl CheckDecision {
    /// The number that its bit and its cell have.
    pub fn number(self) -> Option<u32> {
        match self {
            CheckDecision::Hoisted { number } | CheckDecision::Checked { number } => Some(number),
            CheckDecision::Proven | CheckDecision::Repeated | CheckDecision::Unchecked(_) => None,
        }
    }
}

/// Why a site is left as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UncheckedReason {
    /// The pointer comes out of a phi, a selection, a parameter or memory.
    Pointer,
    /// The size of the access is not known.
    Size,
    /// The block is the head of a loop that cannot be split.
    Loop,
    /// The instruction is copied unchanged.
    Instruction,
}

/// The unit of the index in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexUnit {
    /// Nothing: all is constant, and the first byte is this one.
    Constant { offset: u64 },
    /// Elements: the first byte is at `offset` plus the index times the stride.
    /// The index may have a sign where it counts from an address.
    Elements { offset: u64, stride: u64, is_signed: bool },
    /// Bytes, the lower 32 bits of where the first one is.
    Bytes,
}

impl IndexUnit {
    /// Where the first byte of an access is, by the index in its record.
    pub fn first_byte(self, index: u32) -> u64 {
        match self {
            IndexUnit::Constant { offset } => offset,
            IndexUnit::Elements { offset, stride, .. } => {
                offset.saturating_add(u64::from(index).saturating_mul(stride))
            }
            IndexUnit::Bytes => u64::from(index),
        }
    }
}

/// The condition under which the host may use a module whose loads are selected; otherwise it uses the one that
/// branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindingRequirement {
    pub set: u32,
    pub binding: u32,
    /// This element, or the safe one of the binding where it is not known which.
    pub element: Option<u32>,
    /// At least so much is bound to it: bytes of a buffer; one where it only has to be written.
    pub min_size: u32,
}
