//! Which values of a function are surely equal, so that what was checked once is not checked again.
//!
//! Compilers that do not optimize load the same variable again and again. A load of a local variable equals the last
//! one of its block, if nothing was stored in between; inputs and push constants never change.

use lavascope_spirv::{Id, Instruction};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use crate::{context::Context, types::BlockKind};

type Key = SmallVec<[u32; 6]>;

#[derive(Default)]
pub(crate) struct Numbering {
    /// Values that equal an earlier one.
    equal: FxHashMap<u32, u32>,
    made: FxHashMap<Key, u32>,
    /// What local variables hold, in this block.
    locals: FxHashMap<u32, u32>,
}

impl Numbering {
    pub(crate) fn begin_block(&mut self) {
        self.locals.clear();
    }

    /// The first value that this one equals.
    pub(crate) fn of(&self, id: Id) -> u32 {
        self.equal.get(&id.0).copied().unwrap_or(id.0)
    }

    /// Learns from an instruction. It is called for each, in their order.
    pub(crate) fn see(&mut self, cx: &Context<'_>, it: Instruction<'_>, op: Op) {
        match op {
            Op::Load => self.load(cx, it),
            Op::Store => self.store(cx, it),
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
            | Op::ConvertUToPtr => self.pure(it, op),
            _ => {}
        }
    }

    fn pure(&mut self, it: Instruction<'_>, op: Op) {
        let mut key: Key = SmallVec::from_slice(&[op as u32, it.word(1)]);
        // A literal is not an id, but no id that equals another one is ever a literal's neighbor here: the index of
        // an extraction is kept as it is.
        let ids = if op == Op::CompositeExtract { 1 } else { usize::MAX };
        key.extend(it.from(3).iter().enumerate().map(|(at, word)| if at < ids { self.of(Id(*word)) } else { *word }));
        self.unify(key, it.word(2));
    }

    fn unify(&mut self, key: Key, id: u32) {
        let first = *self.made.entry(key).or_insert(id);
        if first != id {
            self.equal.insert(id, first);
        }
    }

    fn load(&mut self, cx: &Context<'_>, it: Instruction<'_>) {
        let pointer = it.id(3);
        // Volatile memory may change at any time.
        if it.word(4) & 1 != 0 {
            return;
        }
        match cx.types.pointer_value(pointer) {
            Some((StorageClass::Function | StorageClass::Private, _))
                if cx.module.made(pointer).is_some_and(|it| it.is(Op::Variable)) =>
            {
                let held = *self.locals.entry(pointer.0).or_insert(it.word(2));
                if held != it.word(2) {
                    self.equal.insert(it.word(2), held);
                }
            }
            Some((StorageClass::Input | StorageClass::PushConstant, _)) => {
                self.unify(SmallVec::from_slice(&[Op::Load as u32, self.of(pointer)]), it.word(2));
            }
            Some((StorageClass::Uniform, _)) if is_read_only(cx, pointer) => {
                self.unify(SmallVec::from_slice(&[Op::Load as u32, self.of(pointer)]), it.word(2));
            }
            _ => {}
        }
    }

    fn store(&mut self, cx: &Context<'_>, it: Instruction<'_>) {
        let mut pointer = it.id(1);
        let is_whole = cx.module.made(pointer).is_some_and(|it| it.is(Op::Variable));
        if is_whole {
            let value = self.of(it.id(2));
            self.locals.insert(pointer.0, value);
            return;
        }
        // A store to a part: the whole is no longer known.
        for _ in 0..16 {
            match cx.module.made(pointer) {
                Some(it) if it.is(Op::AccessChain) || it.is(Op::InBoundsAccessChain) => pointer = it.id(3),
                Some(it) if it.is(Op::Variable) => {
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
        match cx.module.made(pointer) {
            Some(it) if it.is(Op::AccessChain) || it.is(Op::InBoundsAccessChain) => pointer = it.id(3),
            Some(it) if it.is(Op::Variable) => {
                let block = cx.types.pointer_value(pointer).map(|it| cx.types.strip_arrays(it.1));
                let structure = block.and_then(|it| cx.types.structure(it));
                return structure.is_some_and(|it| it.kind == Some(BlockKind::Block));
            }
            _ => return false,
        }
    }
    false
}
