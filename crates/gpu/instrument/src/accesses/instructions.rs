//! Chooses the check of each instruction, and writes the instruction with it.

use lavascope_spirv::ImageUse;
use lavascope_spirv::{AccessKind, Id, Instruction, image_use};
use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use crate::accesses::buffers::{AccessGuard, GuardedPointer};
use crate::accesses::touches::TouchMode;
use crate::analysis::access_path::PointerBase;
use crate::rewrite::context::{ALIGNED, emit, emit_value};
use crate::rewrite::function::{FunctionRewriter, is_atomic};
use crate::{Check, CheckDecision, CheckSite, IndexUnit, UncheckedReason};

impl FunctionRewriter<'_, '_> {
    /// Writes an instruction with its checks, or unchanged.
    pub(crate) fn access(&mut self, instruction: Instruction<'_>, op: Op) {
        let is_used = image_use(op).is_some_and(|it| it.kind != AccessKind::Trace);
        let is_image = is_used || matches!(op, Op::ArrayLength | Op::ImageTexelPointer);
        if is_image && !self.cx.options.checks.descriptors {
            return self.copy(instruction);
        }
        match op {
            Op::Load => self.load(instruction),
            Op::Store => self.store(instruction),
            Op::CopyMemory => self.copy_memory(instruction),
            Op::ArrayLength => self.array_length(instruction),
            Op::FunctionCall => self.function_call(instruction),
            Op::ExtInst if self.is_printing(instruction) => self.print(instruction),
            Op::SampledImage | Op::Image | Op::CopyObject => self.derived(instruction),
            Op::ImageTexelPointer => match self.cx.paths.path(&self.cx.types, instruction.id(3)) {
                Some(path) => self.texel_pointer(instruction, &path),
                None => self.copy(instruction),
            },
            Op::CopyMemorySized | Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR => {
                let place = if op == Op::CooperativeMatrixLoadKHR { 3 } else { 1 };
                if self.is_checked_memory(instruction.id(place)) {
                    self.add_unchecked_site(instruction, UncheckedReason::Instruction);
                }
                self.touch_untracked();
                self.copy(instruction);
            }
            _ if is_atomic(op) => self.atomic(instruction, op),
            _ => match image_use(op) {
                Some(ImageUse { kind: AccessKind::Trace, .. }) => {
                    self.check_operand_faults(instruction, 1);
                    // Other shaders run in the meantime, but they have variables of their own.
                    self.copy(instruction);
                }
                Some(ImageUse { operand, .. }) => self.use_image(instruction, op, operand),
                None => {
                    self.touch_unknown(instruction);
                    self.copy(instruction);
                }
            },
        }
    }

    fn load(&mut self, instruction: Instruction<'_>) {
        let pointer = instruction.id(3);
        match self.checked_base(pointer) {
            PointerBase::Untracked => self.copy(instruction),
            PointerBase::Unknown => self.load_unknown(instruction, pointer),
            PointerBase::Address(base) => {
                self.retract_chain(pointer);
                let guarded = self.check_address(instruction.at, pointer, base, false);
                self.restore_chain();
                self.touch_address(pointer, base, guarded, TouchMode::READ);
                self.selected_load(guarded, instruction, &[(3, guarded.pointer)]);
            }
            PointerBase::Descriptor(_) => {
                let Some(path) = self.cx.paths.path(&self.cx.types, pointer) else {
                    return self.load_unknown(instruction, pointer);
                };
                if self.cx.types.is_opaque(instruction.id(1)) {
                    return self.load_opaque(instruction, &path);
                }
                if path.class == StorageClass::UniformConstant {
                    return self.copy(instruction);
                }
                let can_skip = self.can_split && self.cx.types.has_null(instruction.id(1));
                let guard =
                    if self.cx.guards_by_branch() && can_skip { AccessGuard::Branch } else { AccessGuard::Select };
                if guard == AccessGuard::Select {
                    self.retract_chain(pointer);
                }
                let guarded = self.check_buffer(instruction.at, pointer, &path, guard);
                self.restore_chain();
                self.touch_buffer(pointer, &path, guarded.ok, TouchMode::READ);
                match guard {
                    AccessGuard::Branch => {
                        self.note_pointer_load(instruction.id(1), guarded.ok);
                        self.emit_under_guard(guarded, instruction, &[]);
                    }
                    AccessGuard::Select => self.selected_load(guarded, instruction, &[(3, guarded.pointer)]),
                }
            }
        }
    }

    /// Writes a load with either guard. In a module with loops, the result of a wrong load is zero: the value of
    /// another element must not decide whether a loop ends. The same holds if the device promises zeros, and for
    /// pointers.
    pub(crate) fn selected_load(
        &mut self,
        guarded: GuardedPointer,
        instruction: Instruction<'_>,
        changes: &[(usize, u32)],
    ) {
        let ty = instruction.id(1);
        let is_zeroed = self.cx.zero_faulty_loads || self.clears_pointers(ty);
        let Some(ok) = guarded.ok.filter(|_| is_zeroed) else {
            return self.copy_with(instruction, changes);
        };
        self.note_pointer_load(ty, Some(ok));
        if self.is_address_type(ty) {
            return self.load_pointer_or_null(ok, instruction, changes);
        }
        let Some(condition) = self.condition_for(ok, ty) else {
            let can_skip = self.can_split && self.cx.types.has_null(ty);
            return self.emit_under_guard(
                GuardedPointer { ok: Some(ok).filter(|_| can_skip), ..guarded },
                instruction,
                changes,
            );
        };
        let inner = self.cx.fresh();
        let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::from_slice(changes);
        changes.push((2, inner));
        self.copy_with(instruction, &changes);
        let null = self.cx.null(ty);
        emit_value(&mut self.out, Op::Select, ty.0, instruction.word(2), &[condition, inner, null]);
    }

    /// The condition for an `OpSelect` with this result type: for vectors before SPIR-V 1.4, a vector of conditions.
    fn condition_for(&mut self, ok: u32, ty: Id) -> Option<u32> {
        let instruction = self.cx.module.definition(ty)?;
        match instruction.op()? {
            Op::TypeBool | Op::TypeInt | Op::TypeFloat => Some(ok),
            Op::TypeVector if self.cx.module.version() >= (1, 4) => Some(ok),
            Op::TypeVector => {
                let boolean = self.cx.ids.boolean;
                let all = self.cx.editor.find_or_add_type(Op::TypeVector, &[boolean, instruction.word(3)]).0;
                Some(self.emit_result(Op::CompositeConstruct, all, &vec![ok; instruction.word(3) as usize]))
            }
            _ => None,
        }
    }

    /// Removes the access chain that was written last, if only this access uses it. The checked chain gets its id.
    pub(crate) fn retract_chain(&mut self, pointer: Id) {
        let Some(other) = self.cx.module.definition(pointer) else { return };
        let is_chain = other.is(Op::AccessChain) || other.is(Op::InBoundsAccessChain);
        // One use is its definition, the other one is this access.
        let is_single = self.cx.uses.get(pointer.0 as usize) == Some(&2);
        if is_chain && is_single && self.out.ends_with(other.words()) {
            self.out.truncate(self.out.len() - other.words().len());
            self.reusable_chain_id = Some(pointer.0);
        }
    }

    /// Writes the removed access chain again, if no checked chain has replaced it.
    pub(crate) fn restore_chain(&mut self) {
        if let Some(instruction) = self.reusable_chain_id.take().and_then(|it| self.cx.module.definition(Id(it))) {
            self.copy(instruction);
        }
    }

    fn store(&mut self, instruction: Instruction<'_>) {
        let guarded = self.check_written(instruction, instruction.id(1), TouchMode::WRITE);
        self.emit_under_guard(guarded, instruction, &[(1, guarded.pointer)]);
    }

    /// Checks memory that is written, or read and written.
    fn check_written(&mut self, instruction: Instruction<'_>, pointer: Id, mode: TouchMode) -> GuardedPointer {
        let as_is = GuardedPointer { ok: None, pointer: pointer.0 };
        match self.checked_base(pointer) {
            PointerBase::Untracked => as_is,
            PointerBase::Unknown if self.is_checked_memory(pointer) => self.check_by_remaining(instruction, pointer),
            PointerBase::Unknown => as_is,
            // An access out of bounds goes to scratch memory, so it needs no branch.
            PointerBase::Address(base) => {
                let guarded = self.check_address(instruction.at, pointer, base, true);
                self.touch_address(pointer, base, guarded, mode);
                GuardedPointer { ok: None, ..guarded }
            }
            PointerBase::Descriptor(_) => match self.cx.paths.path(&self.cx.types, pointer) {
                Some(path) => {
                    let guarded = self.check_buffer(instruction.at, pointer, &path, AccessGuard::Branch);
                    self.touch_buffer(pointer, &path, guarded.ok, mode);
                    guarded
                }
                None => self.check_by_remaining(instruction, pointer),
            },
        }
    }

    /// Writes an instruction: after a branch if it has a condition, or else as it is with the changed operands.
    fn emit_under_guard(&mut self, guarded: GuardedPointer, instruction: Instruction<'_>, changes: &[(usize, u32)]) {
        let Some(ok) = guarded.ok else { return self.copy_with(instruction, changes) };
        let result = instruction.result_type().zip(instruction.result()).map(|(ty, id)| (ty.0, id.0));
        self.emit_guarded(ok, result, |body, inner| {
            let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::from_slice(changes);
            changes.extend(inner.map(|inner| (2, inner)));
            body.copy_with(instruction, &changes);
        });
    }

    fn atomic(&mut self, instruction: Instruction<'_>, op: Op) {
        let place = if instruction.result().is_some() { 3 } else { 1 };
        let pointer = instruction.id(place);
        let class = self.cx.types.pointer_value(pointer).map(|it| it.0);
        if class == Some(StorageClass::Image) {
            let ok = self.check_value_faults(instruction.at, pointer.0).filter(|_| self.can_split);
            self.touch_descriptor(pointer.0, None, ok, TouchMode::atomic(op));
            return self.emit_under_guard(GuardedPointer { ok, pointer: pointer.0 }, instruction, &[]);
        }
        let guarded = self.check_written(instruction, pointer, TouchMode::atomic(op));
        self.emit_under_guard(guarded, instruction, &[(place, guarded.pointer)]);
    }

    fn copy_memory(&mut self, instruction: Instruction<'_>) {
        let source = instruction.id(2);
        let as_is = GuardedPointer { ok: None, pointer: source.0 };
        let from = match self.checked_base(source) {
            PointerBase::Address(base) => {
                let guarded = self.check_address(instruction.at, source, base, false);
                self.touch_address(source, base, guarded, TouchMode::READ);
                GuardedPointer { ok: None, ..guarded }
            }
            PointerBase::Descriptor(_) => match self.cx.paths.path(&self.cx.types, source) {
                Some(path) => {
                    let guarded = self.check_buffer(instruction.at, source, &path, AccessGuard::Select);
                    self.touch_buffer(source, &path, guarded.ok, TouchMode::READ);
                    guarded
                }
                None => {
                    self.touch_untracked();
                    as_is
                }
            },
            PointerBase::Unknown => {
                self.touch_untracked();
                as_is
            }
            PointerBase::Untracked => as_is,
        };
        let to = self.check_written(instruction, instruction.id(1), TouchMode::WRITE);
        let changes = [(1, to.pointer), (2, from.pointer)];
        match from.ok.filter(|_| self.cx.zero_faulty_loads && self.can_split).zip(self.cx.types.pointer_value(source)) {
            Some((ok, (_, ty))) if self.cx.types.has_null(ty) => {
                self.copy_or_clear(instruction, (to, &changes), ok, ty)
            }
            _ => self.emit_under_guard(to, instruction, &changes),
        }
    }

    /// Copies memory if the read is in bounds, and writes zeros otherwise.
    fn copy_or_clear(
        &mut self,
        instruction: Instruction<'_>,
        (to, changes): (GuardedPointer, &[(usize, u32)]),
        ok: u32,
        ty: Id,
    ) {
        let is_copied = self.emit_and(to.ok, Some(ok));
        self.emit_under_guard(GuardedPointer { ok: is_copied, ..to }, instruction, changes);
        let is_wrong = self.emit_result(Op::LogicalNot, self.cx.ids.boolean, &[ok]);
        let Some(is_cleared) = self.emit_and(to.ok, Some(is_wrong)) else { return };
        let mut operands: SmallVec<[u32; 4]> = SmallVec::from_slice(&[to.pointer, self.cx.null(ty)]);
        // Of the memory operands only the alignment is needed, which comes first.
        if let [access, alignment, ..] = *instruction.words_from(3)
            && access & ALIGNED != 0
        {
            operands.extend([ALIGNED, alignment]);
        }
        self.emit_guarded(is_cleared, None, |body, _| emit(&mut body.out, Op::Store, &operands));
    }

    /// The length of a runtime array: only the descriptor can be wrong.
    fn array_length(&mut self, instruction: Instruction<'_>) {
        let Some(path) = self.cx.paths.path(&self.cx.types, instruction.id(3)) else { return self.copy(instruction) };
        if path.element.is_some() {
            return self.copy(instruction);
        }
        let (pointer, fault) = self.choose(instruction.id(3), &path);
        if let Some(fault) = fault {
            self.check_fault(instruction.at, fault);
        }
        self.copy_with(instruction, &[(3, pointer)]);
    }

    /// A descriptor that is given to a function is chosen before the call.
    fn function_call(&mut self, instruction: Instruction<'_>) {
        let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::new();
        for (place, argument) in (4..).zip(instruction.words_from(4)) {
            self.check_value_faults(instruction.at, *argument);
            let pointer = Id(*argument);
            if !matches!(self.checked_base(pointer), PointerBase::Descriptor(_)) {
                continue;
            }
            let Some(path) = self.cx.paths.path(&self.cx.types, pointer) else { continue };
            if path.descriptor_depth < path.arrays.len() || path.element.is_some() {
                continue;
            }
            let (made, fault) = self.choose(pointer, &path);
            if let Some(fault) = fault {
                self.check_fault(instruction.at, fault);
            }
            changes.push((place, made));
        }
        let remaining = self.remaining_of_arguments(instruction);
        self.may_have_ended = true;
        // The function may end the invocation.
        self.record_touches();
        self.spill();
        self.is_fault_state_clear = false;
        let start = self.out.len();
        self.copy_with(instruction, &changes);
        self.out.extend_from_slice(&remaining);
        self.out[start] += (remaining.len() as u32) << 16;
    }

    fn load_unknown(&mut self, instruction: Instruction<'_>, pointer: Id) {
        // Descriptors that come as parameters were chosen by who calls.
        if !self.is_checked_memory(pointer) {
            return self.copy(instruction);
        }
        if !self.cx.types.has_null(instruction.id(1)) {
            self.touch_untracked();
            self.add_unchecked_site(instruction, UncheckedReason::Pointer);
            return self.copy(instruction);
        }
        let guarded = self.check_by_remaining(instruction, pointer);
        self.emit_under_guard(guarded, instruction, &[]);
    }

    /// The object that a pointer leads to. An object that needs no check counts as the invocation's own.
    fn checked_base(&self, pointer: Id) -> PointerBase {
        let checks = self.cx.options.checks;
        match self.cx.paths.base(&self.cx.types, pointer) {
            PointerBase::Address(_) if !checks.addresses => PointerBase::Untracked,
            PointerBase::Descriptor(_) if !checks.descriptors => PointerBase::Untracked,
            PointerBase::Unknown if !self.is_checked_memory(pointer) => PointerBase::Untracked,
            base => base,
        }
    }

    fn is_checked_memory(&self, pointer: Id) -> bool {
        let checks = self.cx.options.checks;
        match self.cx.types.pointer_value(pointer).map(|it| it.0) {
            Some(StorageClass::Uniform | StorageClass::StorageBuffer) => checks.descriptors,
            Some(StorageClass::PhysicalStorageBuffer) => checks.addresses,
            _ => false,
        }
    }

    fn add_unchecked_site(&mut self, instruction: Instruction<'_>, reason: UncheckedReason) {
        self.cx.add_site(CheckSite {
            at: instruction.at,
            check: Check::Buffer,
            decision: CheckDecision::Unchecked(reason),
            binding: None,
            element: None,
            bytes: 0,
            index_unit: IndexUnit::Bytes,
        });
    }
}
