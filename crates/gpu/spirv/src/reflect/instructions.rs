//! The effects of single instructions on values and memory.

use std::rc::Rc;

use spirv::{GlslStd450Op as Glsl, Op};

use crate::{
    AccessKind, AccessMode, Id, Instruction, InstructionIndex, OffsetTerm, Quantity,
    reflect::{
        access::AccessSize,
        constants::{extract, shuffle},
        fold::{Widths, compute},
        interpreter::CallFrame,
        pointer::{Pointer, PointerRoot, add_terms, forget_offset, shift},
        types::{Type, TypeRef, is_address},
        value::{Sum, Value, join, one_of},
    },
};

/// If one access chain may lead to more pointers than these, they are merged.
const CHAINS_MAX: usize = 64;

impl CallFrame<'_, '_> {
    pub(super) fn visit_instruction(&mut self, instruction: Instruction<'_>) {
        let Some(op) = instruction.op() else { return self.machine.traits.is_incomplete = true };
        let value = match op {
            Op::Variable | Op::UntypedVariableKHR => self.new_variable(instruction),
            Op::Load => self.load(instruction),
            Op::Store => return self.store(instruction),
            Op::CopyMemory | Op::CopyMemorySized => return self.copy(instruction),
            Op::AccessChain | Op::InBoundsAccessChain => self.chain(instruction, 3, 4),
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.ptr_access_chain(instruction),
            Op::UntypedAccessChainKHR | Op::UntypedInBoundsAccessChainKHR => self.untyped_chain(instruction, None),
            Op::UntypedPtrAccessChainKHR | Op::UntypedInBoundsPtrAccessChainKHR => {
                self.untyped_chain(instruction, Some(5))
            }
            Op::RawAccessChainNV => self.raw_chain(instruction),
            Op::FunctionCall => self.call(instruction),
            Op::Phi => self.phi(instruction),
            Op::Select => self.select(instruction),
            Op::CopyObject | Op::CopyLogical | Op::ExpectKHR => self.value(instruction.id(3)),
            Op::CompositeConstruct => self.construct(instruction),
            Op::CompositeExtract => self.extract(&self.value(instruction.id(3)), instruction.words_from(4)),
            Op::CompositeInsert => {
                let path: Vec<Option<u32>> = instruction.words_from(5).iter().copied().map(Some).collect();
                self.value(instruction.id(4)).with_part(&path, &[], self.value(instruction.id(3)))
            }
            Op::VectorShuffle => self.shuffle(instruction),
            Op::ConvertUToPtr | Op::ConvertPtrToU => self.convert(instruction),
            Op::ExtInst => self.extended(instruction),
            Op::DemoteToHelperInvocation => {
                self.machine.traits.may_demote = true;
                return self.mark_may_terminate();
            }
            _ if is_arithmetic(op) => self.arithmetic(op, instruction),
            _ => match self.resource(op, instruction) {
                Some(value) => value,
                None => return,
            },
        };
        self.set(instruction.at, value);
    }

    /// The type of an instruction's result.
    pub(super) fn result_type(&self, instruction: Instruction<'_>) -> TypeRef {
        self.machine.types.type_ref(instruction.id(1))
    }

    fn load(&mut self, instruction: Instruction<'_>) -> Value {
        let pointer = self.value(instruction.id(3));
        let ty = self.result_type(instruction);
        if !self.is_opaque(ty) {
            self.record_access(
                instruction,
                instruction.id(3),
                AccessSize::Type(ty),
                AccessKind::Load,
                AccessMode::Read,
            );
        }
        let load = |one: &Value| match one {
            Value::Pointer(one) => self.load_result(one, ty),
            _ => Value::Unknown,
        };
        match &pointer {
            Value::OneOf(all) => one_of(all.iter().map(load).collect()),
            one => load(one),
        }
    }

    /// The result of a load through a pointer.
    fn load_result(&self, pointer: &Rc<Pointer>, ty: TypeRef) -> Value {
        match &pointer.root {
            PointerRoot::Local(..) => self.load_local(pointer),
            PointerRoot::ConstantPrivate(place, path) => {
                let first = self.value(self.module.instruction(InstructionIndex(*place)).id(4));
                path.iter().fold(first, |value, index| self.part(&value, *index))
            }
            _ if self.is_opaque(ty) => Value::Handle(pointer.clone()),
            PointerRoot::Variable(place) => self.built_in(*place, pointer, ty),
            _ if pointer.is_texel => Value::Unknown,
            PointerRoot::Descriptor(_) | PointerRoot::PushConstant | PointerRoot::Address(_) => {
                let mut from = Pointer::clone(pointer);
                from.ty = ty;
                self.value_in_memory(from)
            }
        }
    }

    /// The number of an invocation, a vertex or the like.
    fn built_in(&self, place: u32, pointer: &Pointer, ty: TypeRef) -> Value {
        let types = &self.machine.types;
        let Some(built_in) = self.machine.variables.built_in(place).filter(|_| pointer.max_extra_offset == Some(0))
        else {
            return Value::Unknown;
        };
        let term = |component: u64| {
            let of = Quantity::BuiltIn { built_in, component: component as u32 };
            Value::Sum(Rc::new(Sum { terms: vec![OffsetTerm { quantity: of, factor: 1 }], plus: 0 }))
        };
        match types.get(ty) {
            Type::Int { width: 32, .. } => term(pointer.offset / 4),
            Type::Vector { of, count } if matches!(types.get(*of), Type::Int { width: 32, .. }) => {
                Value::composite((0..u64::from(*count).min(4)).map(term).collect())
            }
            _ => Value::Unknown,
        }
    }

    /// A value that stands in memory: a pointer, where it is an address.
    fn value_in_memory(&self, from: Pointer) -> Value {
        let types = &self.machine.types;
        let (pointer_type, loaded) = (from.ty, Value::loaded(Rc::new(from)));
        match (&loaded, types.class(pointer_type)) {
            (Value::Loaded(item), Some(class)) if is_address(class) => {
                Value::Pointer(Rc::new(types.address(&self.machine.variables, item, types.pointee(pointer_type))))
            }
            _ => loaded,
        }
    }

    fn is_opaque(&self, ty: TypeRef) -> bool {
        matches!(
            self.machine.types.get(ty),
            Type::Image { .. } | Type::Sampler | Type::SampledImage { .. } | Type::AccelerationStructure | Type::Tensor
        )
    }

    fn store(&mut self, instruction: Instruction<'_>) {
        let value = self.value(instruction.id(2));
        let ty = self.machine.types.of_value(instruction.id(2));
        self.record_access(instruction, instruction.id(1), AccessSize::Type(ty), AccessKind::Store, AccessMode::Write);
        self.store_local(&self.value(instruction.id(1)), &value);
    }

    fn copy(&mut self, instruction: Instruction<'_>) {
        let types = &self.machine.types;
        let pointee = |id| types.pointee(types.of_value(id));
        let reach = match instruction.op() {
            Some(Op::CopyMemorySized) => AccessSize::Bytes(self.value(instruction.id(3)).number()),
            _ => match pointee(instruction.id(1)) {
                TypeRef::MAX => AccessSize::Type(pointee(instruction.id(2))),
                ty => AccessSize::Type(ty),
            },
        };
        self.record_access(instruction, instruction.id(2), reach, AccessKind::Load, AccessMode::Read);
        self.record_access(instruction, instruction.id(1), reach, AccessKind::Store, AccessMode::Write);
        let source = self.value(instruction.id(2));
        let value = match (&source, reach) {
            (Value::Pointer(source), AccessSize::Type(ty)) => self.load_result(source, ty),
            _ => Value::Unknown,
        };
        self.store_local(&self.value(instruction.id(1)), &value);
    }

    fn chain(&self, instruction: Instruction<'_>, base: usize, first: usize) -> Value {
        let base = self.value(instruction.id(base));
        if let Value::Pointer(one) = &base
            && let Some(one) = self.follow_one(one, instruction.words_from(first))
        {
            return Value::Pointer(Rc::new(one));
        }
        self.follow(&base, pointers(&base), instruction.words_from(first))
    }

    /// The usual case: one pointer, and no index that is one of several.
    fn follow_one(&self, pointer: &Pointer, indices: &[u32]) -> Option<Pointer> {
        let machine = &*self.machine;
        let mut pointer = pointer.clone();
        for index in indices {
            let index = self.value(Id(*index));
            if matches!(index, Value::OneOf(_)) {
                return None;
            }
            machine.types.index_into(&machine.variables, &mut pointer, &index);
        }
        Some(pointer)
    }

    /// Goes along the indices from each of the pointers that a base may be.
    fn follow(&self, base: &Value, mut pointers: Vec<Pointer>, indices: &[u32]) -> Value {
        let machine = &*self.machine;
        for index in indices {
            let index = self.value(Id(*index));
            let all = index.alternatives().len() * pointers.len();
            let choices = if all > CHAINS_MAX { &[Value::Unknown][..] } else { index.alternatives() };
            let mut next = Vec::with_capacity(pointers.len());
            for pointer in &pointers {
                for choice in choices {
                    let mut pointer = pointer.clone();
                    machine.types.index_into(&machine.variables, &mut pointer, choice);
                    next.push(pointer);
                }
            }
            pointers = next;
        }
        one_of_pointers(base, pointers)
    }

    fn ptr_access_chain(&self, instruction: Instruction<'_>) -> Value {
        let types = &self.machine.types;
        let stride = match types.get(types.of_value(instruction.id(3))) {
            Type::Pointer { stride, .. } => *stride,
            _ => 0,
        };
        let index = self.value(instruction.id(4));
        let base = self.value(instruction.id(3));
        let mut pointers = pointers(&base);
        pointers.iter_mut().for_each(|pointer| types.advance_element(&self.machine.variables, pointer, &index, stride));
        self.follow(&base, pointers, instruction.words_from(5))
    }

    /// An untyped access chain, which names its base type. An element may come first.
    fn untyped_chain(&self, instruction: Instruction<'_>, element: Option<usize>) -> Value {
        let types = &self.machine.types;
        let ty = types.type_ref(instruction.id(3));
        let base = self.value(instruction.id(4));
        let mut pointers = pointers(&base);
        for pointer in &mut pointers {
            pointer.ty = ty;
            if let Some(element) = element {
                types.advance_element(&self.machine.variables, pointer, &self.value(instruction.id(element)), 0);
            }
        }
        self.follow(&base, pointers, instruction.words_from(if element.is_some() { 6 } else { 5 }))
    }

    fn raw_chain(&self, instruction: Instruction<'_>) -> Value {
        let types = &self.machine.types;
        let number = |place| self.value(instruction.id(place)).number();
        let offset = number(4).zip(number(5)).map(|(stride, index)| stride.saturating_mul(index));
        let offset = offset.zip(number(6)).map(|(all, more)| all.saturating_add(more));
        let ty = types.pointee(self.result_type(instruction));
        let base = self.value(instruction.id(3));
        let mut pointers = pointers(&base);
        for pointer in &mut pointers {
            match offset {
                Some(offset) => shift(pointer, offset),
                None => forget_offset(pointer),
            }
            pointer.ty = ty;
        }
        one_of_pointers(&base, pointers)
    }

    fn select(&self, instruction: Instruction<'_>) -> Value {
        match self.value(instruction.id(3)).number() {
            Some(0) => self.value(instruction.id(5)),
            Some(_) => self.value(instruction.id(4)),
            None => join(&self.value(instruction.id(4)), &self.value(instruction.id(5))),
        }
    }

    fn construct(&self, instruction: Instruction<'_>) -> Value {
        let is_vector = matches!(self.machine.types.get(self.result_type(instruction)), Type::Vector { .. });
        let mut parts = Vec::new();
        for part in instruction.words_from(3) {
            match self.value(Id(*part)) {
                // A vector made of vectors is flat.
                Value::Composite(item) if is_vector => {
                    parts.extend(Value::Composite(item).parts().unwrap_or(&[]).to_vec())
                }
                Value::Loaded(_) | Value::Unknown if is_vector => {
                    let count = self.machine.types.parts(self.machine.types.of_value(Id(*part))).unwrap_or(1);
                    let whole = self.value(Id(*part));
                    if count == 1 {
                        parts.push(whole);
                    } else {
                        parts.extend((0..count.min(4)).map(|at| self.extract(&whole, &[at as u32])));
                    }
                }
                other => parts.push(other),
            }
        }
        Value::composite(parts)
    }

    /// A part of a value at a constant index, or any of them.
    pub(super) fn part(&self, value: &Value, index: Option<u32>) -> Value {
        match (index, value.parts()) {
            (Some(index), _) => self.extract(value, &[index]),
            (None, Some(parts)) => one_of(parts.to_vec()),
            (None, None) => Value::Unknown,
        }
    }

    fn extract(&self, value: &Value, path: &[u32]) -> Value {
        match value {
            Value::Composite(_) => match path.split_first() {
                Some((first, rest)) => match extract(value, &[*first]) {
                    Some(part) => self.extract(part, rest),
                    None => Value::Unknown,
                },
                None => value.clone(),
            },
            _ if path.is_empty() => value.clone(),
            Value::Loaded(loaded) if loaded.plus == 0 && !loaded.has_unknown_addend => {
                let mut from = Pointer::clone(&loaded.from);
                for index in path {
                    let machine = &*self.machine;
                    machine.types.index_into(&machine.variables, &mut from, &Value::Const(u64::from(*index)));
                }
                self.value_in_memory(from)
            }
            _ => Value::Unknown,
        }
    }

    fn shuffle(&self, instruction: Instruction<'_>) -> Value {
        let (left, right) = (self.value(instruction.id(3)), self.value(instruction.id(4)));
        let order = instruction.words_from(5);
        let is_run = order.windows(2).all(|it| it[1] == it[0].wrapping_add(1));
        match (&left, order.first()) {
            // For example the first two of four numbers: an address.
            (Value::Loaded(_), Some(first)) if is_run => match self.extract(&left, &[*first]) {
                Value::Loaded(part) => {
                    let mut from = Pointer::clone(&part.from);
                    from.ty = self.result_type(instruction);
                    Value::loaded(Rc::new(from))
                }
                _ => Value::Unknown,
            },
            _ => shuffle(&left, &right, order),
        }
    }

    /// Between addresses and pointers, which are the same here.
    fn convert(&self, instruction: Instruction<'_>) -> Value {
        let types = &self.machine.types;
        let to = types.pointee(self.result_type(instruction));
        let is_pointer = types.class(self.result_type(instruction)).is_some();
        let value = self.value(instruction.id(3));
        let converted = value.alternatives().iter().map(|one| match one {
            Value::Loaded(one) if is_pointer => {
                Value::Pointer(Rc::new(types.address(&self.machine.variables, one, to)))
            }
            Value::Pointer(one) if is_pointer => Value::Pointer(Rc::new(Pointer { ty: to, ..Pointer::clone(one) })),
            other => other.clone(),
        });
        one_of(converted.collect())
    }

    fn arithmetic(&self, op: Op, instruction: Instruction<'_>) -> Value {
        let types = &self.machine.types;
        let operand = types.of_value(instruction.id(3));
        let is_address = |ty| types.class(ty).is_some();
        if op == Op::Bitcast {
            let value = self.value(instruction.id(3));
            let is_number = matches!(types.get(operand), Type::Int { .. } | Type::Float { .. });
            if is_address(self.result_type(instruction)) || is_address(operand) || !is_number {
                return self.convert(instruction);
            }
            return if types.width(self.result_type(instruction)) == types.width(operand) {
                value
            } else {
                Value::Unknown
            };
        }
        let mut values: Vec<Value> = instruction.words_from(3).iter().map(|it| self.value(Id(*it))).collect();
        if let [Value::Pointer(base), by] | [by, Value::Pointer(base)] = &values[..]
            && op == Op::IAdd
        {
            return self.offset_address(base, by);
        }
        if op == Op::Select {
            return self.select(instruction);
        }
        let width = |ty| if matches!(types.get(ty), Type::Bool) { 1 } else { types.width(ty).unwrap_or(32) };
        let widths = Widths { result: width(self.result_type(instruction)), operand: width(operand) };
        for value in values.iter_mut().filter(|it| matches!(it, Value::Loaded(_))) {
            if let Some(sum) = types.sum(&self.machine.variables, value) {
                *value = Value::Sum(Rc::new(sum));
            }
        }
        compute(op, widths, &values)
    }

    /// An address that was a pointer, and something added.
    fn offset_address(&self, base: &Pointer, by: &Value) -> Value {
        let mut pointer = base.clone();
        match (by.number(), self.machine.types.sum(&self.machine.variables, by)) {
            (Some(by), _) => {
                pointer.offset = pointer.offset.wrapping_add(by);
                pointer.constant_offset = pointer.constant_offset.wrapping_add(by as i64);
            }
            (None, Some(sum)) => {
                add_terms(&mut pointer, &sum, 1);
                (pointer.offset, pointer.max_extra_offset) = (0, None);
            }
            (None, None) => {
                forget_offset(&mut pointer);
                pointer.offset = 0;
            }
        }
        Value::Pointer(Rc::new(pointer))
    }

    fn extended(&mut self, instruction: Instruction<'_>) -> Value {
        let set = self.module.definition(instruction.id(3)).filter(|it| it.is(Op::ExtInstImport));
        if set.is_none_or(|it| it.text(2) != "GLSL.std.450") {
            return Value::Unknown;
        }
        let number = instruction.word(4);
        if number == Glsl::Modf as u32 || number == Glsl::Frexp as u32 {
            let ty = self.machine.types.pointee(self.machine.types.of_value(instruction.id(6)));
            self.record_access(
                instruction,
                instruction.id(6),
                AccessSize::Type(ty),
                AccessKind::Store,
                AccessMode::Write,
            );
            self.store_local(&self.value(instruction.id(6)), &Value::Unknown);
        } else if (Glsl::InterpolateAtCentroid as u32..=Glsl::InterpolateAtOffset as u32).contains(&number) {
            self.record_access(
                instruction,
                instruction.id(5),
                AccessSize::Bytes(None),
                AccessKind::Load,
                AccessMode::Read,
            );
        }
        Value::Unknown
    }
}

/// The pointers that a value may be.
fn pointers(value: &Value) -> Vec<Pointer> {
    let pointers = value.alternatives().iter().filter_map(|alternative| match alternative {
        Value::Pointer(pointer) => Some(Pointer::clone(pointer)),
        _ => None,
    });
    pointers.collect()
}

/// One of the pointers that came from those of a base, or unknown where the base may be.
fn one_of_pointers(base: &Value, pointers: Vec<Pointer>) -> Value {
    let lost = base.alternatives().iter().filter(|it| !matches!(it, Value::Pointer(_))).map(|_| Value::Unknown);
    one_of(pointers.into_iter().map(|it| Value::Pointer(Rc::new(it))).chain(lost).collect())
}

/// Whether an operation is worth computing.
fn is_arithmetic(op: Op) -> bool {
    matches!(
        op,
        Op::Bitcast
            | Op::UConvert
            | Op::SConvert
            | Op::SNegate
            | Op::Not
            | Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::UDiv
            | Op::SDiv
            | Op::UMod
            | Op::SMod
            | Op::SRem
            | Op::ShiftLeftLogical
            | Op::ShiftRightLogical
            | Op::ShiftRightArithmetic
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalNot
            | Op::LogicalEqual
            | Op::LogicalNotEqual
            | Op::IEqual
            | Op::INotEqual
            | Op::ULessThan
            | Op::ULessThanEqual
            | Op::UGreaterThan
            | Op::UGreaterThanEqual
            | Op::SLessThan
            | Op::SLessThanEqual
            | Op::SGreaterThan
            | Op::SGreaterThanEqual
    )
}
