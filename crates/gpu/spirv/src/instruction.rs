//! One instruction as it stands among the words of its module.

use std::borrow::Cow;

use spirv::Op;

use crate::{
    Id, InstructionIndex,
    grammar::{InstructionForm, instruction_form},
};

/// A view of an instruction. The first of its words holds opcode and length.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    pub at: InstructionIndex,
    words: &'a [u32],
}

impl<'a> Instruction<'a> {
    /// `words` has at least one word.
    #[inline]
    pub(crate) fn new(at: InstructionIndex, words: &'a [u32]) -> Instruction<'a> {
        Instruction { at, words }
    }

    #[inline]
    pub fn words(self) -> &'a [u32] {
        self.words
    }

    #[inline]
    pub fn opcode(self) -> u16 {
        (self.words[0] & 0xffff) as u16
    }

    /// The name of the opcode, if it has one that is known.
    #[inline]
    pub fn op(self) -> Option<Op> {
        Op::from_u32(self.words[0] & 0xffff)
    }

    #[inline]
    pub fn is(self, op: Op) -> bool {
        u32::from(self.opcode()) == op as u32
    }

    /// A word by its place in the instruction, or zero behind its end: optional operands are absent, and zero is no id.
    #[inline]
    pub fn word(self, place: usize) -> u32 {
        self.words.get(place).copied().unwrap_or(0)
    }

    #[inline]
    pub fn id(self, place: usize) -> Id {
        Id(self.word(place))
    }

    /// The words from a place on.
    #[inline]
    pub fn words_from(self, place: usize) -> &'a [u32] {
        self.words.get(place..).unwrap_or(&[])
    }

    #[inline]
    pub fn result(self) -> Option<Id> {
        match instruction_form(self.opcode())?.0 {
            InstructionForm::Plain => None,
            InstructionForm::Result => Some(self.id(1)),
            InstructionForm::Typed => Some(self.id(2)),
        }
    }

    #[inline]
    pub fn result_type(self) -> Option<Id> {
        (instruction_form(self.opcode())?.0 == InstructionForm::Typed).then(|| self.id(1))
    }

    /// The string that begins at a place.
    pub fn text(self, place: usize) -> Cow<'a, str> {
        decode_string(self.words_from(place)).0
    }
}

/// A literal string and the number of words it takes.
pub fn decode_string(words: &[u32]) -> (Cow<'static, str>, usize) {
    let mut bytes = Vec::with_capacity(words.len() * 4);
    for (at, word) in words.iter().enumerate() {
        let four = word.to_le_bytes();
        if let Some(end) = four.iter().position(|it| *it == 0) {
            bytes.extend_from_slice(&four[..end]);
            return (lossy(bytes), at + 1);
        }
        bytes.extend_from_slice(&four);
    }
    (lossy(bytes), words.len())
}

fn lossy(bytes: Vec<u8>) -> Cow<'static, str> {
    Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()))
}
