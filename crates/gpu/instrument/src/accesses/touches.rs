//! What is recorded of each access: its site, and the values that say what it touches.
//!
//! Recording splits no block (`touch_functions`). Where an access is guarded, the place of its site is that of no site
//! unless the access happens.

use lavascope_spirv::ImageUse;
use lavascope_spirv::{AccessKind, AccessMode, Id, Instruction, image_use};
use rustc_hash::FxHashSet;
use spirv::{Op, StorageClass};

use crate::accesses::buffers::GuardedPointer;
use crate::accesses::touch_functions::{TouchFunction, TouchFunctions};
use crate::analysis::access_path::AccessPath;
use crate::analysis::types::BlockKind;
use crate::interface::touch_area::SITE_HEAD;
use crate::rewrite::context::{Context, spec_constant};
use crate::rewrite::function::FunctionRewriter;
use crate::{ModuleTouches, RootLocation, TouchKind, TouchSite};

/// Whether an access reads, writes, or is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TouchMode {
    reads: bool,
    writes: bool,
    is_atomic: bool,
}

impl TouchMode {
    pub(crate) const READ: TouchMode = TouchMode { reads: true, writes: false, is_atomic: false };
    pub(crate) const WRITE: TouchMode = TouchMode { reads: false, writes: true, is_atomic: false };

    pub(crate) fn atomic(op: Op) -> TouchMode {
        let (reads, writes) = (!matches!(op, Op::AtomicStore | Op::AtomicFlagClear), op != Op::AtomicLoad);
        TouchMode { reads, writes, is_atomic: true }
    }
}

/// A descriptor that was loaded.
#[derive(Clone, Copy)]
pub(crate) struct LoadedDescriptor {
    binding: (u32, u32),
    element: Option<u32>,
    /// Its number at run time.
    index: Option<u32>,
    /// The number of a texel of a texel buffer, where it is a pointer to one.
    texel: Option<u32>,
}

/// State while a module is written.
pub(crate) struct TouchBuilder {
    made: ModuleTouches,
    untracked_bindings: FxHashSet<(u32, u32)>,
    pub(crate) functions: TouchFunctions,
    /// Where addresses come from: a variable, and which part of it.
    origins: Vec<Vec<u32>>,
}

/// Addresses beyond this number of origins share their words with addresses of unknown origin.
const ORIGINS_MAX: usize = 15;

impl Context<'_> {
    /// Enables the recording of touches, if the root can lead to the area.
    pub(crate) fn enable_touches(&mut self) {
        let can = matches!(self.options.root, RootLocation::PushConstant { .. }) && self.options.checks.descriptors;
        if self.options.touches && can {
            let base = spec_constant(&mut self.editor, Id(self.ids.uint), self.ids.first_spec_id.wrapping_add(4));
            let functions = TouchFunctions::new(base, self.fresh());
            let is_blind_to_addresses = !self.options.checks.addresses;
            let (made, blind) = (
                ModuleTouches { has_untracked_addresses: is_blind_to_addresses, ..ModuleTouches::default() },
                FxHashSet::default(),
            );
            self.touch_builder = Some(TouchBuilder { made, untracked_bindings: blind, functions, origins: Vec::new() });
        }
    }

    pub(crate) fn has_touches(&self) -> bool {
        self.touch_builder.as_ref().is_some_and(|it| it.made.words > 0)
    }

    /// All that was kept, for the host.
    pub(crate) fn take_touches(&mut self) -> ModuleTouches {
        let Some(TouchBuilder { mut made, untracked_bindings: blind, .. }) = self.touch_builder.take() else {
            return ModuleTouches::default();
        };
        made.untracked_bindings = blind.into_iter().collect();
        made.untracked_bindings.sort_unstable();
        made
    }

    fn mark_untracked(&mut self, binding: Option<(u32, u32)>) {
        let Some(touching) = &mut self.touch_builder else { return };
        match binding {
            Some(binding) => drop(touching.untracked_bindings.insert(binding)),
            None => touching.made.has_untracked_access = true,
        }
    }

    fn mark_untracked_addresses(&mut self) {
        if let Some(touching) = &mut self.touch_builder {
            touching.made.has_untracked_addresses = true;
        }
    }
}

impl TouchBuilder {
    /// The site of an access.
    fn site(
        &mut self,
        (set, binding): (u32, u32),
        element: Option<u32>,
        does: TouchMode,
        kind: TouchKind,
    ) -> &mut TouchSite {
        let TouchMode { reads, writes, is_atomic } = does;
        let is_it = |touch_site: &TouchSite| {
            (touch_site.set, touch_site.binding, touch_site.element) == (set, binding, element)
                && (touch_site.reads, touch_site.writes, touch_site.is_atomic) == (reads, writes, is_atomic)
                && std::mem::discriminant(&touch_site.kind) == std::mem::discriminant(&kind)
        };
        let sites = &mut self.made.sites;
        let at = sites.iter().position(is_it).unwrap_or_else(|| {
            let (place, fixed, is_always) = (None, Vec::new(), false);
            sites.push(TouchSite {
                set,
                binding,
                element,
                reads,
                writes,
                is_atomic,
                word_offset: place,
                kind,
                fixed_ranges: fixed,
                is_unconditional: is_always,
            });
            sites.len() - 1
        });
        let site = &mut sites[at];
        match (&mut site.kind, kind) {
            (TouchKind::Span { is_exact }, TouchKind::Span { is_exact: more })
            | (TouchKind::Bits { is_exact }, TouchKind::Bits { is_exact: more })
            | (TouchKind::Addresses { is_exact }, TouchKind::Addresses { is_exact: more }) => *is_exact &= more,
            _ => {}
        }
        site
    }

    /// Where a site has its words; from now on it has some.
    fn reserve_words(&mut self, binding: (u32, u32), element: Option<u32>, does: TouchMode, kind: TouchKind) -> u32 {
        let next = self.made.words;
        let site = self.site(binding, element, does, kind);
        let (place, words) = (*site.word_offset.get_or_insert(next), site.words());
        self.made.words = next.max(place + words);
        place
    }
}

impl FunctionRewriter<'_, '_> {
    /// An access to bytes of a descriptor's buffer, where `ok` holds.
    pub(crate) fn touch_buffer(&mut self, pointer: Id, path: &AccessPath, ok: Option<u32>, does: TouchMode) {
        if self.cx.touch_builder.is_none() {
            return;
        }
        let binding = (path.set, path.binding);
        let size = path.size.and_then(|it| u32::try_from(it).ok()).filter(|it| (1..1 << 20).contains(it));
        let (Some(size), Ok(offset)) = (size, u32::try_from(path.offset)) else {
            return self.cx.mark_untracked(Some(binding));
        };
        let index = match path.element {
            Some(_) => None,
            None => match self.chosen(path) {
                Some(chosen) => Some(chosen.index),
                None => return self.cx.mark_untracked(Some(binding)),
            },
        };
        let kind = self.touch_kind(pointer, path, size);
        if let (TouchKind::Span { .. }, Some(_)) = (kind, path.element) {
            // Uniform buffers are read often, and rarely written: only which one of an array it is is worth its cost.
            return self.cx.mark_untracked(Some(binding));
        }
        if let (Some(element), Some(first), None) = (path.element, self.fixed_offset(path, offset), ok)
            && self.is_unconditional()
            && let Some(touching) = &mut self.cx.touch_builder
        {
            let fixed = &mut touching.site(binding, Some(element), does, kind).fixed_ranges;
            if !fixed.contains(&(first, size)) {
                fixed.push((first, size));
            }
            return;
        }
        let Some(first) = self.first_byte(path, offset) else { return self.cx.mark_untracked(Some(binding)) };
        let Some(touching) = &mut self.cx.touch_builder else { return };
        let place = touching.reserve_words(binding, path.element, does, kind);
        let is_aligned = offset % 4 == 0 && path.terms.iter().all(|it| it.stride % 4 == 0);
        let (function, how_much) = match kind {
            TouchKind::Bits { .. } if is_aligned => (TouchFunction::Words, size.div_ceil(4)),
            TouchKind::Bits { .. } => (TouchFunction::Words, (size + 3).div_ceil(4)),
            _ => (TouchFunction::Span, size),
        };
        let how_much = self.cx.uint_constant(how_much);
        self.add_touch(function, ok, place, &[first, how_much]);
        if let Some(index) = index {
            self.touch_element(ok, place, index, kind);
        }
    }

    /// The precision with which an access to a buffer is recorded: only numbers and vectors have no gaps between their
    /// bytes.
    fn touch_kind(&self, pointer: Id, path: &AccessPath, size: u32) -> TouchKind {
        let types = &self.cx.types;
        let pointee = types.pointer_value(pointer).map(|it| it.1);
        let op = pointee.and_then(|it| self.cx.module.definition(it)).and_then(|it| it.op());
        let is_plain = matches!(op, Some(Op::TypeInt | Op::TypeFloat | Op::TypeVector));
        let own = pointee.and_then(|it| types.size(it, crate::analysis::types::MatrixLayout::default()));
        let is_whole = size.is_multiple_of(4)
            && path.offset.is_multiple_of(4)
            && path.terms.iter().all(|it| it.stride.is_multiple_of(4));
        let is_exact = is_plain && is_whole && own == Some(u64::from(size));
        let block = types.pointer_value(path.variable).map(|it| types.strip_arrays(it.1));
        let is_written =
            block.and_then(|it| types.structure(it)).is_some_and(|it| it.kind == Some(BlockKind::BufferBlock));
        match path.class == StorageClass::StorageBuffer || is_written {
            true => TouchKind::Bits { is_exact },
            false => TouchKind::Span { is_exact },
        }
    }

    /// The first byte, if the module defines it.
    fn fixed_offset(&self, path: &AccessPath, offset: u32) -> Option<u32> {
        path.terms.iter().try_fold(offset, |all, term| {
            let index = self.cx.types.literal(path.indices[term.position])?;
            all.checked_add(u32::try_from(index.checked_mul(term.stride)?).ok()?)
        })
    }

    fn first_byte(&mut self, path: &AccessPath, offset: u32) -> Option<u32> {
        if let Some(known) = self.fixed_offset(path, offset) {
            return Some(self.cx.uint_constant(known));
        }
        let uint = self.cx.ids.uint;
        let mut sum = None;
        for term in &path.terms {
            let number = self.as_uint(path.indices[term.position])?;
            let stride = self.cx.uint_constant(u32::try_from(term.stride).ok()?);
            let bytes = self.emit_result(Op::IMul, uint, &[number, stride]);
            sum = Some(sum.map_or(bytes, |it| self.emit_result(Op::IAdd, uint, &[it, bytes])));
        }
        let offset = self.cx.uint_constant(offset);
        Some(sum.map_or(offset, |it| self.emit_result(Op::IAdd, uint, &[it, offset])))
    }

    /// Whether what stands here is executed by every invocation.
    fn is_unconditional(&self) -> bool {
        let function = self.cx.module.functions().get(self.function);
        // One of several entry points runs, and the module cannot know which.
        let is_only = self.cx.module.entries().len() == 1;
        is_only
            && self.is_entry
            && !self.may_have_ended
            && function.is_some_and(|it| it.blocks.start as usize == self.block)
    }

    fn touch_element(&mut self, ok: Option<u32>, place: u32, index: u32, kind: TouchKind) {
        let bits = self.cx.uint_constant(SITE_HEAD + kind.bits_words());
        self.add_touch(TouchFunction::Element, ok, place, &[index, bits]);
    }

    /// A descriptor was loaded: what it is leads from its value to where it is used.
    pub(crate) fn track_descriptor(&mut self, value: u32, path: &AccessPath, index: Option<u32>) {
        if self.cx.touch_builder.is_some() {
            let handle =
                LoadedDescriptor { binding: (path.set, path.binding), element: path.element, index, texel: None };
            self.loaded_descriptors.insert(value, handle);
        }
    }

    /// A pointer to a texel of a texel buffer was made.
    pub(crate) fn track_texel(&mut self, value: u32, texel: Option<u32>) {
        if let Some(handle) = self.loaded_descriptors.get_mut(&value) {
            handle.texel = texel;
        }
    }

    /// A value that is made of another one.
    pub(crate) fn propagate_descriptor(&mut self, value: u32, from: u32) {
        if let Some(handle) = self.loaded_descriptors.get(&from).copied() {
            self.loaded_descriptors.insert(value, handle);
        }
    }

    /// An instruction that uses an image, or a texel of a texel buffer.
    pub(crate) fn touch_image(&mut self, op: Op, image: u32, texel: Option<u32>, ok: Option<u32>) {
        let Some(ImageUse { kind, mode, .. }) = image_use(op).filter(|_| self.cx.touch_builder.is_some()) else {
            return;
        };
        if lavascope_spirv::second_image(op).is_some() {
            return self.cx.mark_untracked(None);
        }
        if kind != AccessKind::Query && mode != AccessMode::None {
            let does = TouchMode { reads: mode.reads(), writes: mode.writes(), is_atomic: false };
            self.touch_descriptor(image, texel, ok, does);
        }
    }

    /// The texel that a pointer leads to is known from where it was made.
    pub(crate) fn touch_descriptor(&mut self, value: u32, texel: Option<u32>, ok: Option<u32>, does: TouchMode) {
        let is_always = self.is_unconditional();
        let Some(touching) = &mut self.cx.touch_builder else { return };
        let Some(handle) = self.loaded_descriptors.get(&value).copied() else { return self.cx.mark_untracked(None) };
        let LoadedDescriptor { binding, element, index, .. } = handle;
        let texel = texel.or(handle.texel);
        let kind = if texel.is_some() { TouchKind::Texels } else { TouchKind::Descriptor };
        if element.is_some() && is_always && ok.is_none() && texel.is_none() {
            touching.site(binding, element, does, kind).is_unconditional = true;
            return;
        }
        let index = match (element, index) {
            (Some(_), _) => None,
            (None, Some(index)) => Some(index),
            (None, None) => return self.cx.mark_untracked(Some(binding)),
        };
        let place = touching.reserve_words(binding, element, does, kind);
        match texel {
            Some(texel) => {
                let [one, two] = [1, 2].map(|it| self.cx.uint_constant(it));
                let first = self.emit_result(Op::ShiftLeftLogical, self.cx.ids.uint, &[texel, two]);
                self.add_touch(TouchFunction::Words, ok, place, &[first, one]);
            }
            None => {
                let ends = [0, 1].map(|it| self.cx.uint_constant(it));
                self.add_touch(TouchFunction::Span, ok, place, &ends);
            }
        }
        if let Some(index) = index {
            self.touch_element(ok, place, index, kind);
        }
    }

    /// An access at a device address, where `ok` holds. The pointer that is used then leads where this one does.
    pub(crate) fn touch_address(&mut self, pointer: Id, base: Id, guarded: GuardedPointer, does: TouchMode) {
        if self.cx.touch_builder.is_none() {
            return;
        }
        let types = &self.cx.types;
        let pointee = types.pointer_value(pointer).map(|it| it.1);
        let size = self.cx.paths.path_from_address(types, pointer, base).and_then(|it| it.size);
        let own = pointee.and_then(|it| types.size(it, crate::analysis::types::MatrixLayout::default()));
        let size = size.or(own).and_then(|it| u32::try_from(it).ok()).filter(|it| (1..1 << 20).contains(it));
        let Some(size) = size else { return self.cx.mark_untracked_addresses() };
        // Numbers of 32 bits and more are aligned to words.
        let is_exact = own == Some(u64::from(size)) && pointee.is_some_and(|it| self.has_whole_words(it));
        let origin = self.origin_of(base);
        let Some(touching) = &mut self.cx.touch_builder else { return };
        let kind = TouchKind::Addresses { is_exact };
        let place = touching.reserve_words((TouchSite::ADDRESSES, origin), Some(0), does, kind);
        let count = self.cx.uint_constant(if is_exact { size / 4 } else { (size + 3).div_ceil(4) });
        let (uint, pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let address = self.emit_result(Op::Bitcast, pair, &[guarded.pointer]);
        let [low, high] = [0, 1].map(|half| self.emit_result(Op::CompositeExtract, uint, &[address, half]));
        self.add_touch(TouchFunction::Address, guarded.ok, place, &[low, high, count]);
    }

    /// Whether a type is a number, or a vector of numbers, of whole words.
    fn has_whole_words(&self, ty: Id) -> bool {
        let module = self.cx.module;
        let number = module.definition(ty).filter(|it| it.is(Op::TypeVector)).map_or(ty, |it| it.id(2));
        let is_whole =
            |it: Instruction<'_>| (it.is(Op::TypeInt) || it.is(Op::TypeFloat)) && it.word(2).is_multiple_of(32);
        module.definition(number).is_some_and(is_whole)
    }

    /// The number of where an address was read: zero if that is not known, or there are too many.
    fn origin_of(&mut self, base: Id) -> u32 {
        let Some(load_path) = self.load_path(base) else { return 0 };
        let Some(touching) = &mut self.cx.touch_builder else { return 0 };
        let origins = &mut touching.origins;
        let at = origins.iter().position(|it| *it == load_path).unwrap_or_else(|| {
            origins.push(load_path);
            origins.len() - 1
        });
        if at < ORIGINS_MAX { at as u32 + 1 } else { 0 }
    }

    /// The part of a variable that a pointer was loaded from.
    fn load_path(&self, base: Id) -> Option<Vec<u32>> {
        let module = self.cx.module;
        let mut pointer = module.definition(base).filter(|it| it.is(Op::Load))?.id(3);
        let mut load_path = Vec::new();
        loop {
            let instruction = module.definition(pointer)?;
            match instruction.op()? {
                Op::AccessChain | Op::InBoundsAccessChain => {
                    // The same place for every value of the index.
                    let index = |it: &u32| self.cx.types.literal(Id(*it)).map_or(u32::MAX, |it| it as u32);
                    load_path.extend(instruction.words_from(4).iter().rev().map(index));
                    pointer = instruction.id(3);
                }
                Op::Variable => {
                    load_path.push(pointer.0);
                    return Some(load_path);
                }
                _ => return None,
            }
        }
    }

    /// Memory of descriptors is accessed in a way that is not followed.
    pub(crate) fn touch_untracked(&mut self) {
        self.cx.mark_untracked(None);
    }

    /// An instruction that is copied: its use of descriptors is unknown.
    pub(crate) fn touch_unknown(&mut self, instruction: Instruction<'_>) {
        let makes_pointer = matches!(
            instruction.op(),
            Some(Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::Phi | Op::Select | Op::Variable)
        );
        let is_known = makes_pointer || instruction.op().is_some_and(|item| image_use(item).is_some());
        if self.cx.touch_builder.is_none() || is_known {
            return;
        }
        if instruction.words_from(1).iter().any(|it| self.is_descriptor(Id(*it))) {
            self.cx.mark_untracked(None);
        }
        let only_carries = instruction.op().is_some_and(|it| ADDRESS_MOVES.contains(&it));
        if !only_carries && instruction.words_from(1).iter().any(|it| self.is_address(Id(*it))) {
            self.cx.mark_untracked_addresses();
        }
    }

    fn is_address(&self, value: Id) -> bool {
        let class = self.cx.types.of_value(value).and_then(|it| self.cx.types.pointer(it)).map(|it| it.0);
        class == Some(StorageClass::PhysicalStorageBuffer)
    }

    fn is_descriptor(&self, value: Id) -> bool {
        let types = &self.cx.types;
        let Some(ty) = types.of_value(value) else { return false };
        let class = types.pointer(ty).map(|it| it.0);
        let is_new = || self.cx.module.definition(ty).is_some_and(|it| it.op().is_none_or(|it| it as u32 >= FIRST_NEW));
        types.is_opaque(ty)
            || match class {
                Some(class) => DESCRIPTOR_CLASSES.contains(&class),
                None => is_new(),
            }
    }
}

/// Instructions that take a device address somewhere, and access nothing there.
const ADDRESS_MOVES: [Op; 8] = [
    Op::Bitcast,
    Op::ConvertPtrToU,
    Op::CompositeConstruct,
    Op::CompositeExtract,
    Op::CompositeInsert,
    Op::PtrEqual,
    Op::PtrNotEqual,
    Op::PtrDiff,
];
/// Types from here on came with extensions: the size of their objects is unknown.
const FIRST_NEW: u32 = 4096;
/// Where the memory of descriptors is.
const DESCRIPTOR_CLASSES: [StorageClass; 4] =
    [StorageClass::Uniform, StorageClass::StorageBuffer, StorageClass::UniformConstant, StorageClass::Image];
