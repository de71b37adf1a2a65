//! An error in a module's words, and its position.

/// A fault in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("word {word} (instruction {instruction}): {kind}")]
pub struct ParseError {
    /// Counted from the first word of the header.
    pub word: usize,
    /// Counted from the first instruction behind the header.
    pub instruction: usize,
    pub kind: ParseErrorKind,
}

/// The kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    #[error("a module has a header of five words")]
    Header,
    #[error("{0:#010x} is not SPIR-V's magic number 0x07230203")]
    Magic(u32),
    #[error("the words are in the other byte order: swap the bytes of each")]
    ByteOrder,
    #[error("an instruction of no words")]
    Empty,
    #[error("an instruction of {words} words where {left} are left")]
    PastEnd { words: usize, left: usize },
    #[error("opcode {opcode} has {words} words, and needs at least {least}")]
    Short { opcode: u16, words: usize, least: usize },
    #[error("id {id} is not below the bound {bound}")]
    Bound { id: u32, bound: u32 },
    #[error("the bound {0} is above 4194303, the limit of SPIR-V")]
    BoundLimit(u32),
    #[error("id {0} is made twice")]
    DefinedTwice(u32),
    #[error("a function begins inside another one")]
    Nested,
    #[error("a block, a parameter or the end of a function outside of any function")]
    OutsideFunction,
    #[error("an instruction in a function, but in none of its blocks")]
    NoBlock,
    #[error("the last function has no end")]
    Unfinished,
    #[error("decoration groups that expand to more than 1048576 decorations")]
    Groups,
}
