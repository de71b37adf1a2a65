//! The constants of a module under one specialization.

use std::collections::BTreeMap;

use spirv::{Decoration, Op};

use crate::{
    Id, Instruction, Module,
    reflect::{
        fold::{Widths, compute},
        value::Value,
    },
};

/// The contents of `VkSpecializationInfo`: the bytes of each constant by its id in the shader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Specialization {
    constants: BTreeMap<u32, Vec<u8>>,
}

impl Specialization {
    /// Pairs of `VkSpecializationMapEntry::constantID` and the bytes of the entry.
    pub fn new(constants: impl IntoIterator<Item = (u32, Vec<u8>)>) -> Specialization {
        Specialization { constants: constants.into_iter().collect() }
    }

    fn number(&self, constant: u32) -> Option<u64> {
        let bytes = self.constants.get(&constant).filter(|it| it.len() <= 8)?;
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

/// By the place of the instruction that makes it.
pub(super) struct Constants<'a> {
    module: &'a Module,
    all: Vec<Value>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(module: &'a Module, specialization: &Specialization) -> Constants<'a> {
        let mut constants = Constants { module, all: Vec::with_capacity(module.globals().len()) };
        for instruction in module.instructions(module.globals()) {
            let value = constants.read(instruction, specialization);
            constants.all.push(value);
        }
        constants
    }

    pub(super) fn get(&self, place: u32) -> &Value {
        self.all.get(place as usize).unwrap_or(&Value::Unknown)
    }

    pub(super) fn of(&self, id: Id) -> &Value {
        self.module.definition_index(id).map_or(&Value::Unknown, |it| self.get(it.0))
    }

    pub(super) fn number(&self, id: Id) -> Option<u64> {
        self.of(id).number()
    }

    fn read(&self, instruction: Instruction<'_>, specialization: &Specialization) -> Value {
        let chosen =
            || instruction.result().and_then(|id| self.module.decoration_operand(id, None, Decoration::SpecId));
        let special = || chosen().and_then(|id| specialization.number(id));
        match instruction.op() {
            Some(Op::ConstantTrue) => Value::Const(1),
            Some(Op::ConstantFalse) => Value::Const(0),
            Some(Op::SpecConstantTrue) => Value::Const(special().map_or(1, |it| u64::from(it != 0))),
            Some(Op::SpecConstantFalse) => Value::Const(special().map_or(0, |it| u64::from(it != 0))),
            Some(Op::Constant) => Value::Const(self.literal(instruction)),
            Some(Op::SpecConstant) => Value::Const(
                special().map_or_else(|| self.literal(instruction), |number| self.narrow(instruction.id(1), number)),
            ),
            Some(Op::ConstantComposite | Op::SpecConstantComposite) => {
                Value::composite(instruction.words_from(3).iter().map(|it| self.of(Id(*it)).clone()).collect())
            }
            Some(Op::ConstantNull) => self.null(instruction.id(1)),
            Some(Op::SpecConstantOp) => self.operation(instruction),
            _ => Value::Unknown,
        }
    }

    /// The words of a number, without the copies of its sign that fill them.
    fn literal(&self, instruction: Instruction<'_>) -> u64 {
        self.narrow(instruction.id(1), u64::from(instruction.word(3)) | u64::from(instruction.word(4)) << 32)
    }

    /// A number with zeros above the width of its type.
    fn narrow(&self, ty: Id, number: u64) -> u64 {
        let unused = 64 - self.width(ty).clamp(1, 64);
        number << unused >> unused
    }

    fn null(&self, ty: Id) -> Value {
        let Some(ty) = self.module.definition(ty) else { return Value::Unknown };
        match ty.op() {
            Some(Op::TypeInt | Op::TypeFloat | Op::TypeBool) => Value::Const(0),
            Some(Op::TypeVector) if ty.word(3) <= 4 => Value::composite(vec![Value::Const(0); ty.word(3) as usize]),
            _ => Value::Unknown,
        }
    }

    fn operation(&self, instruction: Instruction<'_>) -> Value {
        let Some(op) = Op::from_u32(instruction.word(3)) else { return Value::Unknown };
        let first = self.of(instruction.id(4));
        match op {
            Op::CompositeExtract => extract(first, instruction.words_from(5)).cloned().unwrap_or(Value::Unknown),
            Op::VectorShuffle => shuffle(first, self.of(instruction.id(5)), instruction.words_from(6)),
            Op::CompositeInsert => {
                let path: Vec<Option<u32>> = instruction.words_from(6).iter().copied().map(Some).collect();
                self.of(instruction.id(5)).with_part(&path, &[], first.clone())
            }
            Op::Select => match first.number() {
                Some(0) => self.of(instruction.id(6)).clone(),
                Some(_) => self.of(instruction.id(5)).clone(),
                None => Value::Unknown,
            },
            _ => {
                let operand = self.module.definition(instruction.id(4)).and_then(|it| it.result_type());
                let widths =
                    Widths { result: self.width(instruction.id(1)), operand: operand.map_or(32, |it| self.width(it)) };
                let values: Vec<Value> = instruction.words_from(4).iter().map(|it| self.of(Id(*it)).clone()).collect();
                compute(op, widths, &values)
            }
        }
    }

    /// Bits of a scalar type or of the components of a vector.
    fn width(&self, ty: Id) -> u32 {
        match self.module.definition(ty) {
            Some(instruction) if instruction.is(Op::TypeInt) || instruction.is(Op::TypeFloat) => instruction.word(2),
            Some(instruction) if instruction.is(Op::TypeBool) => 1,
            Some(instruction) if instruction.is(Op::TypeVector) => match self.module.definition(instruction.id(2)) {
                Some(instruction) if instruction.is(Op::TypeInt) || instruction.is(Op::TypeFloat) => {
                    instruction.word(2)
                }
                Some(instruction) if instruction.is(Op::TypeBool) => 1,
                _ => 32,
            },
            _ => 32,
        }
    }
}

/// The part of a composite at a path of literals.
pub(super) fn extract<'a>(value: &'a Value, path: &[u32]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, it| value.parts()?.get(*it as usize))
}

/// The components of two vectors in another order.
pub(super) fn shuffle(left: &Value, right: &Value, order: &[u32]) -> Value {
    let (Some(left), Some(right)) = (left.parts(), right.parts()) else { return Value::Unknown };
    let pick = |it: &u32| left.iter().chain(right).nth(*it as usize).cloned().unwrap_or(Value::Unknown);
    Value::composite(order.iter().take(16).map(pick).collect())
}
