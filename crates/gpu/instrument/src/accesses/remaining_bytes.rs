//! Pointers to buffers that come out of phis, selections and parameters: each gets a number beside it.
//!
//! The number is how many bytes *remain* from the pointer to the end of the buffer. It follows the pointer: a phi
//! beside the phi, one more parameter for a parameter, a private variable beside a variable that holds a pointer, and
//! one for the result of a function. An access through such a pointer is always branched around if it does not fit.
//!
//! If a pointer moves backward, the beginning of the buffer is not checked. A pointer that is loaded as a part of a
//! larger value counts as in bounds. One whose origin is not known is listed as unchecked.

use lavascope_spirv::{Function, Id, Instruction, Module};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use spirv::{Decoration, Op, StorageClass};

use crate::accesses::buffers::{GuardedPointer, divided};
use crate::analysis::access_path::{AccessPath, AccessPaths};
use crate::analysis::types::Types;
use crate::rewrite::context::{Context, emit, emit_value};
use crate::rewrite::function::FunctionRewriter;
use crate::{Check, CheckDecision, CheckSite, IndexUnit, UncheckedReason};

/// The ids of the remaining bytes of a function's pointers.
#[derive(Default)]
pub(crate) struct RemainingBytes {
    /// By pointer; pointers that a phi names get theirs before they are made.
    known: FxHashMap<u32, u32>,
    wanted: FxHashSet<u32>,
}

/// By function: the parameters whose remaining bytes are passed as one more parameter.
pub(crate) fn parameters_with_remaining(
    module: &Module,
    types: &Types<'_>,
    paths: &AccessPaths<'_>,
) -> FxHashMap<Id, Vec<usize>> {
    let mut all = FxHashMap::default();
    for function in module.functions() {
        let has_remaining = |at: &usize| {
            let item = module.instruction(function.parameters[*at]);
            item.result().is_some_and(|id| is_buffer_pointer(types, item.id(1)) && !paths.is_constant_parameter(id))
        };
        let places: Vec<usize> = (0..function.parameters.len()).filter(has_remaining).collect();
        if !places.is_empty() && !module.entries().iter().any(|it| it.function == function.id) {
            all.insert(function.id, places);
        }
    }
    all
}

fn is_buffer_pointer(types: &Types<'_>, ty: Id) -> bool {
    let class = types.pointer(ty).map(|it| it.0);
    matches!(class, Some(StorageClass::Uniform | StorageClass::StorageBuffer))
}

impl RemainingBytes {
    /// Finds the pointers that phis and selections name: their remaining bytes need an id before they are computed.
    pub(crate) fn new(cx: &mut Context<'_>, function: &Function) -> RemainingBytes {
        let mut found = RemainingBytes::default();
        if !cx.options.checks.descriptors {
            return found;
        }
        let module = cx.module;
        // Without it, no phi and no selection can be a pointer to a buffer.
        if !cx.has_variable_pointers {
            return found;
        }
        for instruction in module.instructions(function.instructions.clone()) {
            match instruction.op() {
                Some(Op::Phi) if is_buffer_pointer(&cx.types, instruction.id(1)) => {
                    found.wanted.insert(instruction.word(2));
                    found.wanted.extend(instruction.words_from(3).iter().step_by(2));
                }
                Some(Op::Select) if is_buffer_pointer(&cx.types, instruction.id(1)) => {
                    found.wanted.extend(&instruction.words_from(4)[..instruction.words_from(4).len().min(2)]);
                }
                _ => {}
            }
        }
        let made: Vec<u32> = found.wanted.iter().copied().collect();
        let is_local =
            |it: &&u32| module.definition_index(Id(**it)).is_some_and(|it| function.instructions.contains(&it.0));
        let mut made: Vec<u32> = made.iter().filter(is_local).copied().collect();
        made.sort_unstable();
        for pointer in made {
            let remaining = cx.fresh();
            found.known.insert(pointer, remaining);
        }
        found
    }
}

impl FunctionRewriter<'_, '_> {
    /// The function instruction, with a type that has parameters for remaining bytes.
    pub(crate) fn begin_function(&mut self, instruction: Instruction<'_>) {
        let Some(places) = self.cx.parameters_with_remaining.get(&instruction.id(2)).cloned() else {
            return self.copy(instruction);
        };
        let Some(ty) = self.cx.module.definition(instruction.id(4)).filter(|it| it.is(Op::TypeFunction)) else {
            return self.copy(instruction);
        };
        let mut operands = ty.words_from(2).to_vec();
        operands.extend(std::iter::repeat_n(self.cx.ids.uint, places.len()));
        let ty = self.cx.editor.find_or_add_type(Op::TypeFunction, &operands).0;
        self.copy_with(instruction, &[(4, ty)]);
    }

    /// The parameters for remaining bytes, behind the last one.
    pub(crate) fn add_remaining_parameters(&mut self, function: &Function) {
        let Some(places) = self.cx.parameters_with_remaining.get(&function.id).cloned() else { return };
        for place in places {
            let remaining = self.emit_result(Op::FunctionParameter, self.cx.ids.uint, &[]);
            let parameter = function.parameters.get(place).and_then(|it| self.cx.module.instruction(*it).result());
            if let Some(parameter) = parameter {
                self.remaining.known.insert(parameter.0, remaining);
            }
        }
    }

    /// The remaining bytes that a call passes beside its arguments.
    pub(crate) fn remaining_of_arguments(&mut self, instruction: Instruction<'_>) -> SmallVec<[u32; 4]> {
        let Some(places) = self.cx.parameters_with_remaining.get(&instruction.id(3)).cloned() else {
            return SmallVec::new();
        };
        places.iter().map(|place| self.remaining_of(instruction.id(4 + place))).collect()
    }

    /// An instruction that makes a pointer: the code for its remaining bytes is added behind it, if an access needs
    /// them.
    pub(crate) fn emit_remaining(&mut self, instruction: Instruction<'_>, op: Op) {
        if !self.cx.options.checks.descriptors || !is_buffer_pointer(&self.cx.types, instruction.id(1)) {
            return;
        }
        let uint = self.cx.ids.uint;
        let reserved = self.remaining.known.get(&instruction.word(2)).copied();
        let remaining = match op {
            Op::Phi => {
                let mut operands: SmallVec<[u32; 8]> = SmallVec::new();
                for pair in instruction.words_from(3).chunks_exact(2) {
                    operands.extend([self.reserved_remaining(Id(pair[0])), pair[1]]);
                }
                if let Some(reserved) = reserved {
                    self.note_phi();
                    emit_value(&mut self.out, Op::Phi, uint, reserved, &operands);
                }
                return;
            }
            Op::Select => {
                let (left, right) = (self.remaining_of(instruction.id(4)), self.remaining_of(instruction.id(5)));
                self.emit_result(Op::Select, uint, &[instruction.word(3), left, right])
            }
            Op::Load => match self.remaining_variable(instruction.id(3)) {
                Some(variable) => self.emit_result(Op::Load, uint, &[variable]),
                None => self.cx.uint_constant(u32::MAX),
            },
            Op::FunctionCall => {
                let variable = self.cx.shadow(Id(0));
                self.emit_result(Op::Load, uint, &[variable])
            }
            Op::PtrAccessChain => match self.remaining_behind_ptr_chain(instruction) {
                Some(remaining) => remaining,
                None => self.cx.uint_constant(u32::MAX),
            },
            _ if reserved.is_some() => {
                self.compute_remaining(instruction.id(2)).unwrap_or_else(|| self.cx.uint_constant(u32::MAX))
            }
            _ => return,
        };
        match reserved {
            Some(reserved) => emit_value(&mut self.out, Op::CopyObject, uint, reserved, &[remaining]),
            None => drop(self.remaining.known.insert(instruction.word(2), remaining)),
        }
    }

    /// Stores the remaining bytes of a pointer that is stored into a variable.
    pub(crate) fn store_remaining(&mut self, instruction: Instruction<'_>) {
        let is_pointer =
            self.cx.types.of_value(instruction.id(2)).is_some_and(|it| is_buffer_pointer(&self.cx.types, it));
        if !is_pointer || !self.cx.options.checks.descriptors {
            return;
        }
        let Some(variable) = self.remaining_variable(instruction.id(1)) else { return };
        let remaining = self.remaining_of(instruction.id(2));
        emit(&mut self.out, Op::Store, &[variable, remaining]);
    }

    /// Stores the remaining bytes of a pointer that is returned where the caller reads them.
    pub(crate) fn return_remaining(&mut self, pointer: Id) {
        let is_pointer = self.cx.types.of_value(pointer).is_some_and(|it| is_buffer_pointer(&self.cx.types, it));
        if is_pointer && self.cx.options.checks.descriptors {
            let (variable, remaining) = (self.cx.shadow(Id(0)), self.remaining_of(pointer));
            emit(&mut self.out, Op::Store, &[variable, remaining]);
        }
    }

    /// The variable beside one that holds a pointer, as a whole.
    fn remaining_variable(&mut self, variable: Id) -> Option<u32> {
        let is_variable = self.cx.module.definition(variable).is_some_and(|it| it.is(Op::Variable));
        let class = self.cx.types.pointer_value(variable)?.0;
        let is_own = matches!(class, StorageClass::Function | StorageClass::Private);
        (is_variable && is_own).then(|| self.cx.shadow(variable))
    }

    /// The id of remaining bytes for a phi, which may be computed later.
    fn reserved_remaining(&mut self, pointer: Id) -> u32 {
        match self.remaining.known.get(&pointer.0) {
            Some(remaining) => *remaining,
            None if self.cx.module.definition(pointer).is_some_and(|it| it.is(Op::Variable)) => {
                self.remaining_of(pointer)
            }
            None => self.cx.uint_constant(u32::MAX),
        }
    }

    /// The remaining bytes of a pointer; the largest number if nothing is known.
    fn remaining_of(&mut self, pointer: Id) -> u32 {
        if let Some(remaining) = self.remaining.known.get(&pointer.0) {
            return *remaining;
        }
        self.compute_remaining(pointer).unwrap_or_else(|| self.cx.uint_constant(u32::MAX))
    }

    /// The size of the buffer, less the bytes before the pointer.
    fn compute_remaining(&mut self, pointer: Id) -> Option<u32> {
        if let Some(path) = self.cx.paths.path(&self.cx.types, pointer) {
            let element = path.element?;
            let state = self.state_word(path.set, path.binding, element);
            return self.remaining_behind_path(state, &path);
        }
        let base = self.cx.paths.chain_base(pointer);
        let remaining = *self.remaining.known.get(&base.0)?;
        let path = self.cx.paths.path_from_address(&self.cx.types, pointer, base)?;
        self.remaining_behind_path(remaining, &path)
    }

    /// The remaining bytes behind the offset and the indices of a path.
    fn remaining_behind_path(&mut self, bytes: u32, path: &AccessPath) -> Option<u32> {
        let (uint, zero) = (self.cx.ids.uint, self.cx.uint_constant(0));
        let mut left = bytes;
        if path.offset > 0 {
            let offset = self.cx.uint_constant(u32::try_from(path.offset).ok()?);
            let is_enough = self.emit_bool(Op::UGreaterThanEqual, &[left, offset]);
            let rest = self.emit_result(Op::ISub, uint, &[left, offset]);
            left = self.emit_result(Op::Select, uint, &[is_enough, rest, zero]);
        }
        for term in &path.terms {
            let number = self.as_uint(path.indices[term.position])?;
            let most = divided(self.cx, &mut self.out, left, term.stride);
            let is_in = self.emit_bool(Op::ULessThanEqual, &[number, most]);
            let stride = self.cx.uint_constant(term.stride as u32);
            let taken = self.emit_result(Op::IMul, uint, &[number, stride]);
            let rest = self.emit_result(Op::ISub, uint, &[left, taken]);
            left = self.emit_result(Op::Select, uint, &[is_in, rest, zero]);
        }
        Some(left)
    }

    /// The remaining bytes of an `OpPtrAccessChain`, whose first index moves the pointer by elements, maybe backward.
    fn remaining_behind_ptr_chain(&mut self, instruction: Instruction<'_>) -> Option<u32> {
        let (uint, boolean, zero) = (self.cx.ids.uint, self.cx.ids.boolean, self.cx.uint_constant(0));
        let remaining = self.remaining_of(instruction.id(3));
        let ty = self.cx.types.of_value(instruction.id(3))?;
        let stride = self.cx.module.decoration_operand(ty, None, Decoration::ArrayStride)?;
        let number = self.as_uint(instruction.id(4))?;
        let most = divided(self.cx, &mut self.out, remaining, u64::from(stride));
        let fits = self.emit_bool(Op::ULessThanEqual, &[number, most]);
        let is_back = self.emit_result(Op::SLessThan, boolean, &[number, zero]);
        let is_fine = self.emit_bool(Op::LogicalOr, &[fits, is_back]);
        let stride = self.cx.uint_constant(stride);
        let taken = self.emit_result(Op::IMul, uint, &[number, stride]);
        let rest = self.emit_result(Op::ISub, uint, &[remaining, taken]);
        let rest = self.emit_result(Op::Select, uint, &[is_fine, rest, zero]);
        let path = self.cx.paths.path_from_indices(
            &self.cx.types,
            instruction.id(3),
            instruction.words_from(5).iter().map(|it| Id(*it)).collect(),
        )?;
        self.remaining_behind_path(rest, &path)
    }

    /// Checks an access through a pointer whose remaining bytes are known.
    pub(crate) fn check_by_remaining(&mut self, instruction: Instruction<'_>, pointer: Id) -> GuardedPointer {
        let as_is = GuardedPointer { ok: None, pointer: pointer.0 };
        self.touch_untracked();
        let base = self.cx.paths.chain_base(pointer);
        let remaining = self.remaining.known.get(&base.0).copied();
        let path = self.cx.paths.path_from_address(&self.cx.types, pointer, base);
        let mut site = CheckSite {
            at: instruction.at,
            check: Check::Buffer,
            decision: CheckDecision::Unchecked(UncheckedReason::Pointer),
            binding: None,
            element: None,
            bytes: path.as_ref().and_then(|it| it.size).unwrap_or(0),
            index_unit: IndexUnit::Bytes,
        };
        let (Some(remaining), Some(path)) = (remaining, path) else {
            self.cx.add_site(site);
            return as_is;
        };
        let Some(size) = path.size.filter(|_| self.can_split) else {
            let reason = if self.can_split { UncheckedReason::Size } else { UncheckedReason::Loop };
            self.cx.add_site(CheckSite { decision: CheckDecision::Unchecked(reason), ..site });
            return as_is;
        };
        site.index_unit = crate::accesses::buffers::index_unit_of(&path);
        let (ok, index) = self.fits(&path, remaining, path.offset.saturating_add(size));
        let zero = self.cx.uint_constant(0);
        self.check_new(site, ok, [Some(index.unwrap_or(zero)), Some(zero), Some(remaining)]);
        GuardedPointer { ok: Some(ok), pointer: pointer.0 }
    }
}
