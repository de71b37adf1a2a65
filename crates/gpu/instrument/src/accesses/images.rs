//! Checks of what descriptors give besides buffers: which one of an array it is, and texels of texel buffers.
//!
//! A descriptor is chosen where it is loaded, and the fault is remembered where it is used: that is the instruction
//! that a record names.

use lavascope_spirv::{Id, Instruction, InstructionIndex, second_image};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use spirv::{Capability, Decoration, Op};

use crate::accesses::buffers::{ChosenDescriptor, FallbackIndex, GuardedPointer};
use crate::analysis::access_path::AccessPath;
use crate::rewrite::function::{FunctionRewriter, Hoisted};
use crate::{Check, CheckDecision, CheckSite, IndexUnit};

/// An array with no more descriptors is expected to be bound whole.
const SHORT_ARRAY_MAX: u32 = 32;

/// The images, samplers and texel pointers of a function.
#[derive(Default)]
pub(crate) struct ImageFaults {
    /// By value: what must hold before it is used.
    pub(crate) faults: FxHashMap<u32, SmallVec<[ValueFault; 2]>>,
    /// By value: a descriptor that the host makes sure of.
    required_bindings: FxHashMap<u32, (u32, u32)>,
    /// By sampled image: the block that it was made in.
    sampled: FxHashMap<u32, u32>,
    has_query: bool,
}

/// Something that may be wrong with a value.
#[derive(Clone, Copy)]
pub(crate) struct ValueFault {
    check: Check,
    ok: u32,
    details: [Option<u32>; 3],
    binding: Option<(u32, u32)>,
    /// The element of the binding, if the module defines it.
    element: Option<u32>,
    is_hoisted: bool,
}

impl FunctionRewriter<'_, '_> {
    /// A load of an image, a sampler or an acceleration structure.
    pub(crate) fn load_opaque(&mut self, instruction: Instruction<'_>, path: &AccessPath) {
        self.retract_chain(instruction.id(3));
        let (pointer, fault) = self.choose(instruction.id(3), path);
        self.restore_chain();
        self.copy_with(instruction, &[(3, pointer)]);
        self.track_descriptor(instruction.word(2), path, fault.and_then(|it| it.details[0]));
        match fault {
            Some(fault) => drop(self.images.faults.insert(instruction.word(2), SmallVec::from_slice(&[fault]))),
            None => drop(self.images.required_bindings.insert(instruction.word(2), (path.set, path.binding))),
        }
    }

    /// A pointer to a descriptor that may be used, and what may be wrong with it.
    pub(crate) fn choose(&mut self, pointer: Id, path: &AccessPath) -> (u32, Option<ValueFault>) {
        let binding = Some((path.set, path.binding));
        if let Some(element) = path.element {
            if !self.cx.guards_by_branch() {
                self.cx.require(path.set, path.binding, Some(element), 1);
                return (pointer.0, None);
            }
            let state = self.state_word(path.set, path.binding, element);
            let key = Hoisted::Fits(state, 1, 0, 0);
            let ok = self.hoist(key, |cx, code| {
                let zero = cx.uint_constant(0);
                cx.emit_result(code, Op::INotEqual, cx.ids.boolean, &[state, zero])
            });
            let details =
                [Some(self.cx.uint_constant(element)), Some(self.cx.uint_constant(element.saturating_add(1))), None];
            return (
                pointer.0,
                Some(ValueFault {
                    check: Check::Descriptor,
                    ok,
                    details,
                    binding,
                    element: Some(element),
                    is_hoisted: true,
                }),
            );
        }
        let Some(chosen) = self.chosen(path) else { return (pointer.0, None) };
        let details = [Some(chosen.index), Some(chosen.length), None];
        let fault =
            |ok| ValueFault { check: Check::Descriptor, ok, details, binding, element: None, is_hoisted: false };
        if let Some(count) = self.short_array_length(path) {
            let (made, ok) = self.choose_of_short_array(pointer, path, chosen, count);
            return (made, ok.map(fault));
        }
        let safe = self.binding_word(path.set, path.binding, 2);
        let (_, ok) = self.state_of(path, chosen, safe);
        let made = self
            .emit_selected_chain(pointer, path, ok, FallbackIndex { safe_element: Some(safe), clamped_index: None })
            .unwrap_or(pointer.0);
        self.cx.require(path.set, path.binding, None, 1);
        (made, Some(fault(ok)))
    }

    /// The length of an array of descriptors, if the module defines it and it is small.
    fn short_array_length(&self, path: &AccessPath) -> Option<u32> {
        let mut all = 1_u32;
        for array in path.arrays.get(..path.descriptor_depth)? {
            let length = self.cx.types.literal(self.cx.types.array(*array)?.1?)?;
            all = all.checked_mul(u32::try_from(length).ok().filter(|it| *it > 0)?)?;
        }
        Some(all).filter(|it| *it <= SHORT_ARRAY_MAX)
    }

    /// A pointer to an element of a short array, and what must hold besides what the host makes sure of.
    ///
    /// The index is limited by the length alone, and by nothing that is loaded. So if the driver finds that the index
    /// of the application is a constant, or uniform, ours is that too: lavapipe samples in another way where it is not,
    /// with other results, and it crashes for the size of a storage image.
    fn choose_of_short_array(
        &mut self,
        pointer: Id,
        path: &AccessPath,
        chosen: ChosenDescriptor,
        count: u32,
    ) -> (u32, Option<u32>) {
        let ok = if self.cx.guards_by_branch() {
            let safe = self.binding_word(path.set, path.binding, 2);
            Some(self.state_of(path, chosen, safe).1)
        } else {
            (0..count).for_each(|it| self.cx.require(path.set, path.binding, Some(it), 1));
            chosen.in_bounds
        };
        let limited = chosen.in_bounds.and_then(|_| self.emit_limited_chain(pointer, path));
        (limited.unwrap_or(pointer.0), ok)
    }

    /// A value that is made of others and shares their faults.
    pub(crate) fn derived(&mut self, instruction: Instruction<'_>) {
        let faults: SmallVec<[ValueFault; 2]> =
            instruction.words_from(3).iter().flat_map(|it| self.faults_of(*it)).collect();
        if let Some(binding) = self.images.required_bindings.get(&instruction.word(3)).copied() {
            self.images.required_bindings.insert(instruction.word(2), binding);
        }
        self.propagate_descriptor(instruction.word(2), instruction.word(3));
        if instruction.is(Op::SampledImage) {
            self.images.sampled.insert(instruction.word(2), self.label);
            self.copy(instruction);
        } else {
            let source = self.rebuild_sampled_image(instruction.word(3));
            self.copy_with(instruction, &[(3, source)]);
        }
        if !faults.is_empty() {
            self.images.faults.insert(instruction.word(2), faults);
        }
    }

    fn faults_of(&self, id: u32) -> SmallVec<[ValueFault; 2]> {
        self.images.faults.get(&id).cloned().unwrap_or_default()
    }

    /// A sampled image must be made in the block that uses it.
    fn rebuild_sampled_image(&mut self, id: u32) -> u32 {
        if self.images.sampled.get(&id).is_none_or(|it| *it == self.label) {
            return id;
        }
        let Some(other) = self.cx.module.definition(Id(id)) else { return id };
        let made = self.emit_result(Op::SampledImage, other.word(1), other.words_from(3));
        if self.is_non_uniform(Id(id)) {
            self.cx.editor.decorate(Id(made), Decoration::NonUniform, &[]);
        }
        made
    }

    /// An instruction that uses the image at a place of its words, and a texel of it at the next one.
    pub(crate) fn use_image(&mut self, instruction: Instruction<'_>, op: Op, place: usize) {
        let image = instruction.id(place);
        let mut faults = self.faults_of(image.0);
        faults.extend(second_image(op).into_iter().flat_map(|place| self.faults_of(instruction.word(place))));
        let texel = self.texel(instruction, op, place);
        let writes = op == Op::ImageWrite;
        if let Some(binding) = self.images.required_bindings.get(&image.0).copied().filter(|_| faults.is_empty()) {
            self.cx.add_site(CheckSite { binding: Some(binding), ..bare_site(instruction.at) });
        }
        let mut ok = None;
        for fault in faults.iter().chain(&texel.map(|it| it.0)) {
            self.check_fault(instruction.at, *fault);
            ok = self.emit_and(ok, Some(fault.ok));
        }
        let number = texel.and_then(|it| it.0.details[0]);
        self.touch_image(op, image.0, number, ok);
        let result = instruction.result_type().zip(instruction.result()).map(|(ty, id)| (ty.0, id.0));
        let can_skip = self.can_split && result.is_none_or(|it| self.cx.types.has_null(Id(it.0)));
        if let Some(ok) = ok.filter(|_| (writes || self.cx.guards_by_branch()) && can_skip) {
            self.emit_guarded(ok, result, |body, inner| {
                let mut changes = body.rebuild_sampled_images(instruction, op, place);
                changes.extend(inner.map(|it| (2, it)));
                body.copy_with(instruction, &changes);
            });
            return;
        }
        let mut changes = self.rebuild_sampled_images(instruction, op, place);
        changes.extend(texel.map(|it| (place + 1, it.1)));
        match result {
            Some(_) => self.selected_load(GuardedPointer { ok, pointer: image.0 }, instruction, &changes),
            None => self.copy_with(instruction, &changes),
        }
    }

    /// The images of an instruction, made in this block if they must be.
    fn rebuild_sampled_images(
        &mut self,
        instruction: Instruction<'_>,
        op: Op,
        place: usize,
    ) -> SmallVec<[(usize, u32); 3]> {
        let places = std::iter::once(place).chain(second_image(op));
        places.map(|place| (place, self.rebuild_sampled_image(instruction.word(place)))).collect()
    }

    /// An instruction that uses values with faults besides images, at any of its places.
    pub(crate) fn check_operand_faults(&mut self, instruction: Instruction<'_>, from: usize) {
        for operand in instruction.words_from(from) {
            for fault in self.faults_of(*operand) {
                self.check_fault(instruction.at, fault);
            }
        }
    }

    /// Remembers a fault where it matters.
    pub(crate) fn check_fault(&mut self, at: InstructionIndex, fault: ValueFault) {
        let site = CheckSite { check: fault.check, binding: fault.binding, element: fault.element, ..bare_site(at) };
        self.check(site, fault.ok, fault.details, fault.is_hoisted);
    }

    /// The check of a texel's number, and a number that may be used.
    fn texel(&mut self, instruction: Instruction<'_>, op: Op, place: usize) -> Option<(ValueFault, u32)> {
        let has_texel =
            matches!(op, Op::ImageFetch | Op::ImageRead | Op::ImageWrite | Op::ImageSparseFetch | Op::ImageSparseRead);
        if !has_texel || !self.cx.types.is_texel_buffer(instruction.id(place)) {
            return None;
        }
        self.texel_of(instruction.word(place), instruction.id(place + 1))
    }

    fn texel_of(&mut self, image: u32, texel: Id) -> Option<(ValueFault, u32)> {
        let number = self.as_uint(texel)?;
        if !std::mem::replace(&mut self.images.has_query, true) {
            self.cx.editor.add_capability(Capability::ImageQuery);
        }
        let length = self.emit_result(Op::ImageQuerySize, self.cx.ids.uint, &[image]);
        let ok = self.emit_bool(Op::ULessThan, &[number, length]);
        let clamped = self.select_index(texel, ok, None, true)?;
        let details = [Some(number), Some(length), None];
        Some((
            ValueFault { check: Check::Texel, ok, details, binding: None, element: None, is_hoisted: false },
            clamped,
        ))
    }

    /// A pointer to a texel, for atomics.
    pub(crate) fn texel_pointer(&mut self, instruction: Instruction<'_>, path: &AccessPath) {
        let (pointer, fault) = self.choose(instruction.id(3), path);
        self.track_descriptor(instruction.word(2), path, fault.and_then(|it| it.details[0]));
        let mut changes: SmallVec<[(usize, u32); 2]> = SmallVec::from_slice(&[(3, pointer)]);
        let mut faults: SmallVec<[ValueFault; 2]> = fault.into_iter().collect();
        let image = self.cx.types.pointer_value(instruction.id(3)).map(|it| it.1);
        let is_buffer = |ty: Id| {
            let image = self.cx.module.definition(ty);
            image.is_some_and(|it| it.is(Op::TypeImage) && it.word(3) == spirv::Dim::DimBuffer as u32)
        };
        if let Some(ty) = image.filter(|it| is_buffer(*it)) {
            let image = self.emit_result(Op::Load, ty.0, &[pointer]);
            if let Some((fault, texel)) = self.texel_of(image, instruction.id(4)) {
                self.track_texel(instruction.word(2), fault.details[0]);
                faults.push(fault);
                changes.push((4, texel));
            }
        }
        self.copy_with(instruction, &changes);
        if !faults.is_empty() {
            self.images.faults.insert(instruction.word(2), faults);
        }
    }

    /// Whether all is well with a value, remembered for an instruction that uses it.
    pub(crate) fn check_value_faults(&mut self, at: InstructionIndex, id: u32) -> Option<u32> {
        let mut ok = None;
        for fault in self.faults_of(id) {
            self.check_fault(at, fault);
            ok = self.emit_and(ok, Some(fault.ok));
        }
        ok
    }
}

/// The use of a descriptor that cannot go wrong.
fn bare_site(at: InstructionIndex) -> CheckSite {
    CheckSite {
        at,
        check: Check::Descriptor,
        decision: CheckDecision::Proven,
        binding: None,
        element: None,
        bytes: 0,
        index_unit: IndexUnit::Constant { offset: 0 },
    }
}
