//! Which instructions are checked, and how each is written again.

use lavascope_spirv::{AccessKind, Id, Instruction, image_use};
use smallvec::SmallVec;
use spirv::{Op, StorageClass};

use crate::{
    Check, Counted, Reason, Site, Verdict,
    body::{Body, is_atomic},
    buffers::{Guarded, Way},
    context::{ALIGNED, emit, emit_value},
    path::Base,
    touching::Does,
};

impl Body<'_, '_> {
    /// Writes an instruction with its checks, or as it is.
    pub(crate) fn access(&mut self, it: Instruction<'_>, op: Op) {
        let is_used = image_use(op).is_some_and(|it| it.1 != AccessKind::Trace);
        let is_image = is_used || matches!(op, Op::ArrayLength | Op::ImageTexelPointer);
        if is_image && !self.cx.options.checks.descriptors {
            return self.copy(it);
        }
        match op {
            Op::Load => self.load(it),
            Op::Store => self.store(it),
            Op::CopyMemory => self.copy_memory(it),
            Op::ArrayLength => self.array_length(it),
            Op::FunctionCall => self.call(it),
            Op::ExtInst if self.is_printing(it) => self.print(it),
            Op::SampledImage | Op::Image | Op::CopyObject => self.derived(it),
            Op::ImageTexelPointer => match self.cx.paths.path(&self.cx.types, it.id(3)) {
                Some(path) => self.texel_pointer(it, &path),
                None => self.copy(it),
            },
            Op::CopyMemorySized | Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR => {
                let place = if op == Op::CooperativeMatrixLoadKHR { 3 } else { 1 };
                if self.is_checked_memory(it.id(place)) {
                    self.unchecked(it, Reason::Instruction);
                }
                self.touch_blindly();
                self.copy(it);
            }
            _ if is_atomic(op) => self.atomic(it, op),
            _ => match image_use(op) {
                Some((_, AccessKind::Trace, _)) => {
                    self.use_values(it, 1);
                    // Other shaders run in the meantime, but they have variables of their own.
                    self.copy(it);
                }
                Some((place, ..)) => self.use_image(it, op, place),
                None => {
                    self.touch_unknown(it);
                    self.copy(it);
                }
            },
        }
    }

    fn load(&mut self, it: Instruction<'_>) {
        let pointer = it.id(3);
        match self.checked_base(pointer) {
            Base::Own => self.copy(it),
            Base::Unknown => self.load_unknown(it, pointer),
            Base::Address(base) => {
                self.take_chain(pointer);
                let guarded = self.address(it.at, pointer, base, false);
                self.give_chain_back();
                self.touch_address(pointer, base, guarded, Does::READ);
                self.selected_load(guarded, it, &[(3, guarded.pointer)]);
            }
            Base::Descriptor(_) => {
                let Some(path) = self.cx.paths.path(&self.cx.types, pointer) else {
                    return self.load_unknown(it, pointer);
                };
                if self.cx.types.is_opaque(it.id(1)) {
                    return self.load_opaque(it, &path);
                }
                if path.class == StorageClass::UniformConstant {
                    return self.copy(it);
                }
                let can_skip = self.can_split && self.cx.types.has_null(it.id(1));
                let way = if self.cx.is_branching() && can_skip { Way::Branch } else { Way::Select };
                if way == Way::Select {
                    self.take_chain(pointer);
                }
                let guarded = self.buffer(it.at, pointer, &path, way);
                self.give_chain_back();
                self.touch_buffer(pointer, &path, guarded.ok, Does::READ);
                match way {
                    Way::Branch => self.under(guarded, it, &[]),
                    Way::Select => self.selected_load(guarded, it, &[(3, guarded.pointer)]),
                }
            }
        }
    }

    /// Writes an instruction that may be done either way. Where there are loops its result is nothing if it is wrong:
    /// whatever decides whether a loop ends must not be what another element has. So it is where the device promises it.
    pub(crate) fn selected_load(&mut self, guarded: Guarded, it: Instruction<'_>, changes: &[(usize, u32)]) {
        let Some(ok) = guarded.ok.filter(|_| self.cx.zeros) else { return self.copy_with(it, changes) };
        let ty = it.id(1);
        let Some(condition) = self.condition_for(ok, ty) else {
            let can_skip = self.can_split && self.cx.types.has_null(ty);
            return self.under(Guarded { ok: Some(ok).filter(|_| can_skip), ..guarded }, it, changes);
        };
        let inner = self.cx.fresh();
        let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::from_slice(changes);
        changes.push((2, inner));
        self.copy_with(it, &changes);
        let null = self.cx.null(ty);
        emit_value(&mut self.out, Op::Select, ty.0, it.word(2), &[condition, inner, null]);
    }

    /// A truth value as one selects by it, among scalars or vectors.
    fn condition_for(&mut self, ok: u32, ty: Id) -> Option<u32> {
        let it = self.cx.module.made(ty)?;
        match it.op()? {
            Op::TypeBool | Op::TypeInt | Op::TypeFloat => Some(ok),
            Op::TypeVector if self.cx.module.version() >= (1, 4) => Some(ok),
            Op::TypeVector => {
                let boolean = self.cx.ids.boolean;
                let all = self.cx.editor.ty(Op::TypeVector, &[boolean, it.word(3)]).0;
                Some(self.value(Op::CompositeConstruct, all, &vec![ok; it.word(3) as usize]))
            }
            _ => None,
        }
    }

    /// Takes back the chain that was written last, if it is only there for this pointer: one that is checked takes its
    /// place and its id.
    fn take_chain(&mut self, pointer: Id) {
        let Some(it) = self.cx.module.made(pointer) else { return };
        let is_chain = it.is(Op::AccessChain) || it.is(Op::InBoundsAccessChain);
        // Once where it is made, and once here.
        let is_single = self.cx.uses.get(pointer.0 as usize) == Some(&2);
        if is_chain && is_single && self.out.ends_with(it.words()) {
            self.out.truncate(self.out.len() - it.words().len());
            self.free_id = Some(pointer.0);
        }
    }

    /// Writes the chain again that was taken back, if nothing took its place.
    pub(crate) fn give_chain_back(&mut self) {
        if let Some(it) = self.free_id.take().and_then(|it| self.cx.module.made(Id(it))) {
            self.copy(it);
        }
    }

    fn store(&mut self, it: Instruction<'_>) {
        let guarded = self.written(it, it.id(1), Does::WRITE);
        self.under(guarded, it, &[(1, guarded.pointer)]);
    }

    /// Checks memory that is written, or read and written.
    fn written(&mut self, it: Instruction<'_>, pointer: Id, does: Does) -> Guarded {
        let as_is = Guarded { ok: None, pointer: pointer.0 };
        match self.checked_base(pointer) {
            Base::Own => as_is,
            Base::Unknown if self.is_checked_memory(pointer) => self.roomy(it, pointer),
            Base::Unknown => as_is,
            // It goes to scratch memory, so there is no need for a branch.
            Base::Address(base) => {
                let guarded = self.address(it.at, pointer, base, true);
                self.touch_address(pointer, base, guarded, does);
                Guarded { ok: None, ..guarded }
            }
            Base::Descriptor(_) => match self.cx.paths.path(&self.cx.types, pointer) {
                Some(path) => {
                    let guarded = self.buffer(it.at, pointer, &path, Way::Branch);
                    self.touch_buffer(pointer, &path, guarded.ok, does);
                    guarded
                }
                None => self.roomy(it, pointer),
            },
        }
    }

    /// Writes an instruction where its check says so.
    fn under(&mut self, guarded: Guarded, it: Instruction<'_>, changes: &[(usize, u32)]) {
        let Some(ok) = guarded.ok else { return self.copy_with(it, changes) };
        let result = it.result_type().zip(it.result()).map(|(ty, id)| (ty.0, id.0));
        self.guarded(ok, result, |body, inner| {
            let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::from_slice(changes);
            changes.extend(inner.map(|inner| (2, inner)));
            body.copy_with(it, &changes);
        });
    }

    fn atomic(&mut self, it: Instruction<'_>, op: Op) {
        let place = if it.result().is_some() { 3 } else { 1 };
        let pointer = it.id(place);
        let class = self.cx.types.pointer_value(pointer).map(|it| it.0);
        if class == Some(StorageClass::Image) {
            let ok = self.use_value(it.at, pointer.0).filter(|_| self.can_split);
            self.touch_handle(pointer.0, None, ok, Does::atomic(op));
            return self.under(Guarded { ok, pointer: pointer.0 }, it, &[]);
        }
        let guarded = self.written(it, pointer, Does::atomic(op));
        self.under(guarded, it, &[(place, guarded.pointer)]);
    }

    fn copy_memory(&mut self, it: Instruction<'_>) {
        let source = it.id(2);
        let as_is = Guarded { ok: None, pointer: source.0 };
        let from = match self.checked_base(source) {
            Base::Address(base) => {
                let guarded = self.address(it.at, source, base, false);
                self.touch_address(source, base, guarded, Does::READ);
                Guarded { ok: None, ..guarded }
            }
            Base::Descriptor(_) => match self.cx.paths.path(&self.cx.types, source) {
                Some(path) => {
                    let guarded = self.buffer(it.at, source, &path, Way::Select);
                    self.touch_buffer(source, &path, guarded.ok, Does::READ);
                    guarded
                }
                None => {
                    self.touch_blindly();
                    as_is
                }
            },
            Base::Unknown => {
                self.touch_blindly();
                as_is
            }
            Base::Own => as_is,
        };
        let to = self.written(it, it.id(1), Does::WRITE);
        let changes = [(1, to.pointer), (2, from.pointer)];
        match from.ok.filter(|_| self.cx.zeros && self.can_split).zip(self.cx.types.pointer_value(source)) {
            Some((ok, (_, ty))) if self.cx.types.has_null(ty) => self.copy_or_clear(it, (to, &changes), ok, ty),
            _ => self.under(to, it, &changes),
        }
    }

    /// Copies memory if what is read is right, and writes zeros else.
    fn copy_or_clear(&mut self, it: Instruction<'_>, (to, changes): (Guarded, &[(usize, u32)]), ok: u32, ty: Id) {
        let is_copied = self.both(to.ok, Some(ok));
        self.under(Guarded { ok: is_copied, ..to }, it, changes);
        let is_wrong = self.value(Op::LogicalNot, self.cx.ids.boolean, &[ok]);
        let Some(is_cleared) = self.both(to.ok, Some(is_wrong)) else { return };
        let mut operands: SmallVec<[u32; 4]> = SmallVec::from_slice(&[to.pointer, self.cx.null(ty)]);
        // Of how the copy accesses memory only the alignment is needed, which comes first.
        if let [access, alignment, ..] = *it.from(3)
            && access & ALIGNED != 0
        {
            operands.extend([ALIGNED, alignment]);
        }
        self.guarded(is_cleared, None, |body, _| emit(&mut body.out, Op::Store, &operands));
    }

    /// The length of what is bound to a descriptor: only the descriptor can be wrong.
    fn array_length(&mut self, it: Instruction<'_>) {
        let Some(path) = self.cx.paths.path(&self.cx.types, it.id(3)) else { return self.copy(it) };
        if path.element.is_some() {
            return self.copy(it);
        }
        let (pointer, fault) = self.choose(it.id(3), &path);
        if let Some(fault) = fault {
            self.fault(it.at, fault);
        }
        self.copy_with(it, &[(3, pointer)]);
    }

    /// A descriptor that is given to a function is chosen before the call.
    fn call(&mut self, it: Instruction<'_>) {
        let mut changes: SmallVec<[(usize, u32); 3]> = SmallVec::new();
        for (place, argument) in (4..).zip(it.from(4)) {
            self.use_value(it.at, *argument);
            let pointer = Id(*argument);
            if !matches!(self.checked_base(pointer), Base::Descriptor(_)) {
                continue;
            }
            let Some(path) = self.cx.paths.path(&self.cx.types, pointer) else { continue };
            if path.depth < path.arrays.len() || path.element.is_some() {
                continue;
            }
            let (made, fault) = self.choose(pointer, &path);
            if let Some(fault) = fault {
                self.fault(it.at, fault);
            }
            changes.push((place, made));
        }
        let rooms = self.rooms_of_arguments(it);
        self.may_have_ended = true;
        self.spill();
        self.is_fresh = false;
        let start = self.out.len();
        self.copy_with(it, &changes);
        self.out.extend_from_slice(&rooms);
        self.out[start] += (rooms.len() as u32) << 16;
    }

    fn load_unknown(&mut self, it: Instruction<'_>, pointer: Id) {
        // Descriptors that come as parameters were chosen by who calls.
        if !self.is_checked_memory(pointer) {
            return self.copy(it);
        }
        if !self.cx.types.has_null(it.id(1)) {
            self.touch_blindly();
            self.unchecked(it, Reason::Pointer);
            return self.copy(it);
        }
        let guarded = self.roomy(it, pointer);
        self.under(guarded, it, &[]);
    }

    /// What a pointer leads to; what is not to be checked counts as the invocation's own.
    fn checked_base(&self, pointer: Id) -> Base {
        let checks = self.cx.options.checks;
        match self.cx.paths.base(&self.cx.types, pointer) {
            Base::Address(_) if !checks.addresses => Base::Own,
            Base::Descriptor(_) if !checks.descriptors => Base::Own,
            Base::Unknown if !self.is_checked_memory(pointer) => Base::Own,
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

    fn unchecked(&mut self, it: Instruction<'_>, reason: Reason) {
        self.cx.note(Site {
            at: it.at,
            check: Check::Buffer,
            verdict: Verdict::Unchecked(reason),
            binding: None,
            element: None,
            bytes: 0,
            counted: Counted::Bytes,
        });
    }
}
