//! Which values of a function are certainly equal, so that a check is not repeated.
//!
//! Compilers that do not optimize load the same variable again and again. A load of a local variable equals the last
//! one of its block, if nothing was stored in between; inputs and push constants never change.

use lavascope_spirv::{Id, Instruction, Module};
use rustc_hash::FxHashMap;
use spirv::{Op, StorageClass};

use crate::analysis::types::BlockKind;
use crate::rewrite::context::Context;

#[derive(Default)]
pub(crate) struct ValueNumbering {
    /// By value: an earlier one that it equals, or zero.
    equal: Vec<u32>,
    /// The first values of their kind, by hash; zero is a free slot. The instructions themselves are compared.
    firsts: Vec<u32>,
    count: usize,
    /// The values of local variables in this block.
    locals: FxHashMap<u32, u32>,
}

impl ValueNumbering {
    /// `equal` has a place for each id of the module.
    pub(crate) fn new(equal: Vec<u32>) -> ValueNumbering {
        ValueNumbering { equal, ..ValueNumbering::default() }
    }

    /// Forgets the numbers of values; those of another function differ.
    pub(crate) fn into_equal(self) -> Vec<u32> {
        self.equal
    }

    pub(crate) fn begin_block(&mut self) {
        self.locals.clear();
    }

    /// The first value that this one equals.
    pub(crate) fn number_of(&self, id: Id) -> u32 {
        self.equal.get(id.0 as usize).copied().filter(|it| *it != 0).unwrap_or(id.0)
    }

    /// Learns from an instruction. It is called for each, in their order.
    pub(crate) fn visit(&mut self, cx: &Context<'_>, instruction: Instruction<'_>, op: Op) {
        match op {
            Op::Load => self.load(cx, instruction),
            Op::Store => self.store(cx, instruction),
            Op::FunctionCall | Op::CopyMemory | Op::CopyMemorySized => self.locals.clear(),
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::CompositeExtract
            | Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::BitwiseAnd
            | Op::ShiftLeftLogical
            | Op::ShiftRightLogical
            | Op::UConvert
            | Op::SConvert
            | Op::Bitcast
            | Op::ConvertUToPtr => self.unify(cx.module, instruction),
            _ => {}
        }
    }

    /// Looks for an earlier instruction that makes the same.
    fn unify(&mut self, module: &Module, instruction: Instruction<'_>) {
        if self.count * 2 >= self.firsts.len() {
            self.grow(module);
        }
        let mask = self.firsts.len() - 1;
        let mut at = self.hash(instruction) as usize & mask;
        loop {
            let first = self.firsts[at];
            if first == 0 {
                self.firsts[at] = instruction.word(2);
                self.count += 1;
                return;
            }
            if module.definition(Id(first)).is_some_and(|first| self.is_same(first, instruction)) {
                return self.set_equal(instruction.word(2), first);
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self, module: &Module) {
        let size = (self.firsts.len() * 2).max(64);
        let before = std::mem::replace(&mut self.firsts, vec![0; size]);
        for first in before.into_iter().filter(|it| *it != 0) {
            let Some(other) = module.definition(Id(first)) else { continue };
            let mut at = self.hash(other) as usize & (size - 1);
            while self.firsts[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.firsts[at] = first;
        }
    }

    fn hash(&self, instruction: Instruction<'_>) -> u32 {
        let mut hash = u64::from(instruction.words()[0]) << 32 | u64::from(instruction.word(1));
        for place in 3..instruction.words().len() {
            hash =
                (hash.rotate_left(5) ^ u64::from(self.operand(instruction, place))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (hash >> 32) as u32
    }

    fn is_same(&self, left: Instruction<'_>, right: Instruction<'_>) -> bool {
        let (count, operands) = (left.words().len(), 3..left.words().len());
        left.words()[0] == right.words()[0]
            && left.word(1) == right.word(1)
            && count == right.words().len()
            && operands.into_iter().all(|it| self.operand(left, it) == self.operand(right, it))
    }

    /// An operand by the first value that it equals. What is extracted from a composite is named by literals.
    fn operand(&self, instruction: Instruction<'_>, place: usize) -> u32 {
        let is_literal = place > 3 && (instruction.is(Op::CompositeExtract) || instruction.is(Op::Load));
        if is_literal { instruction.word(place) } else { self.number_of(instruction.id(place)) }
    }

    fn set_equal(&mut self, id: u32, first: u32) {
        if let Some(place) = self.equal.get_mut(id as usize) {
            *place = first;
        }
    }

    fn load(&mut self, cx: &Context<'_>, instruction: Instruction<'_>) {
        let pointer = instruction.id(3);
        // Volatile memory may change at any time.
        if instruction.word(4) & 1 != 0 {
            return;
        }
        match cx.types.pointer_value(pointer) {
            Some((StorageClass::Function | StorageClass::Private, _))
                if cx.module.definition(pointer).is_some_and(|it| it.is(Op::Variable)) =>
            {
                let held = *self.locals.entry(pointer.0).or_insert(instruction.word(2));
                if held != instruction.word(2) {
                    self.set_equal(instruction.word(2), held);
                }
            }
            Some((StorageClass::Input | StorageClass::PushConstant, _)) => {
                self.unify(cx.module, instruction);
            }
            Some((StorageClass::Uniform, _)) if is_read_only(cx, pointer) => {
                self.unify(cx.module, instruction);
            }
            _ => {}
        }
    }

    fn store(&mut self, cx: &Context<'_>, instruction: Instruction<'_>) {
        let mut pointer = instruction.id(1);
        let is_whole = cx.module.definition(pointer).is_some_and(|it| it.is(Op::Variable));
        if is_whole {
            let value = self.number_of(instruction.id(2));
            self.locals.insert(pointer.0, value);
            return;
        }
        // A store to a part: the whole is no longer known.
        for _ in 0..16 {
            match cx.module.definition(pointer) {
                Some(instruction) if instruction.is(Op::AccessChain) || instruction.is(Op::InBoundsAccessChain) => {
                    pointer = instruction.id(3)
                }
                Some(instruction) if instruction.is(Op::Variable) => {
                    self.locals.remove(&pointer.0);
                    return;
                }
                _ => break,
            }
        }
        self.locals.clear();
    }
}

/// Whether a pointer of the class `Uniform` is into a uniform block.
fn is_read_only(cx: &Context<'_>, mut pointer: Id) -> bool {
    for _ in 0..16 {
        match cx.module.definition(pointer) {
            Some(instruction) if instruction.is(Op::AccessChain) || instruction.is(Op::InBoundsAccessChain) => {
                pointer = instruction.id(3)
            }
            Some(instruction) if instruction.is(Op::Variable) => {
                let block = cx.types.pointer_value(pointer).map(|it| cx.types.strip_arrays(it.1));
                let structure = block.and_then(|it| cx.types.structure(it));
                return structure.is_some_and(|it| it.kind == Some(BlockKind::Block));
            }
            _ => return false,
        }
    }
    false
}
