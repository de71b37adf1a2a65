//! Code that keeps what is touched: a call for each access, and the functions that are called.
//!
//! A call splits no block. Where an access is guarded, the call gets the place of no site unless the access happens.

use lavascope_spirv::{AccessKind, Id, Instruction, Mode, Section, image_use};
use rustc_hash::FxHashSet;
use spirv::{Op, StorageClass};

use crate::{
    Root, TOUCH_HEAD, TOUCH_SLOT, TouchKind, TouchSite, Touches,
    body::Body,
    buffers::Guarded,
    context::{Context, emit, special},
    helpers::{begin, end, when},
    path::Path,
    touch::{BITS, BITS_WORDS, BLOCK_SHIFT, BLOCK_WORDS, SITE_HEAD, SPREAD},
    types::BlockKind,
};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Does {
    reads: bool,
    writes: bool,
    is_atomic: bool,
}

impl Does {
    pub(crate) const READ: Does = Does { reads: true, writes: false, is_atomic: false };
    pub(crate) const WRITE: Does = Does { reads: false, writes: true, is_atomic: false };

    pub(crate) fn atomic(op: Op) -> Does {
        let (reads, writes) = (!matches!(op, Op::AtomicStore | Op::AtomicFlagClear), op != Op::AtomicLoad);
        Does { reads, writes, is_atomic: true }
    }
}

/// A descriptor that was loaded.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    binding: (u32, u32),
    element: Option<u32>,
    /// Its number at run time.
    index: Option<u32>,
    /// The number of a texel of a texel buffer, where it is a pointer to one.
    texel: Option<u32>,
}

/// What is kept while a module is written.
pub(crate) struct Touching {
    made: Touches,
    blind: FxHashSet<(u32, u32)>,
    /// The specialization constant that says where the words of the stage are.
    base: u32,
    /// Functions: a span, a span with bits, an element, an address.
    functions: [u32; 4],
    used: [bool; 4],
    /// Where addresses come from: a variable, and which part of it.
    origins: Vec<Vec<u32>>,
}

const SPAN: usize = 0;
const WORDS: usize = 1;
const ELEMENT: usize = 2;
const ADDRESS: usize = 3;

/// Addresses that come from more places share their words with those of which nobody knows where they come from.
const ORIGINS_MAX: usize = 15;

impl Context<'_> {
    /// From now on it is kept what is touched, where the root can say where.
    pub(crate) fn begin_touching(&mut self) {
        let can = matches!(self.options.root, Root::PushConstant { .. }) && self.options.checks.descriptors;
        if self.options.touches && can {
            let base = special(&mut self.editor, Id(self.ids.uint), self.ids.constants_from.wrapping_add(4));
            let functions = [0; 4].map(|_| self.fresh());
            let is_blind_to_addresses = !self.options.checks.addresses;
            let (made, blind) = (Touches { is_blind_to_addresses, ..Touches::default() }, FxHashSet::default());
            self.touching = Some(Touching { made, blind, base, functions, used: [false; 4], origins: Vec::new() });
        }
    }

    pub(crate) fn has_touches(&self) -> bool {
        self.touching.as_ref().is_some_and(|it| it.made.words > 0)
    }

    /// All that was kept, for the host.
    pub(crate) fn take_touches(&mut self) -> Touches {
        let Some(Touching { mut made, blind, .. }) = self.touching.take() else { return Touches::default() };
        made.blind = blind.into_iter().collect();
        made.blind.sort_unstable();
        made
    }

    fn blind(&mut self, binding: Option<(u32, u32)>) {
        let Some(touching) = &mut self.touching else { return };
        match binding {
            Some(binding) => drop(touching.blind.insert(binding)),
            None => touching.made.is_blind = true,
        }
    }

    fn blind_to_addresses(&mut self) {
        if let Some(touching) = &mut self.touching {
            touching.made.is_blind_to_addresses = true;
        }
    }
}

impl Touching {
    /// The site of an access.
    fn site(
        &mut self,
        (set, binding): (u32, u32),
        element: Option<u32>,
        does: Does,
        kind: TouchKind,
    ) -> &mut TouchSite {
        let Does { reads, writes, is_atomic } = does;
        let is_it = |it: &TouchSite| {
            (it.set, it.binding, it.element) == (set, binding, element)
                && (it.reads, it.writes, it.is_atomic) == (reads, writes, is_atomic)
                && std::mem::discriminant(&it.kind) == std::mem::discriminant(&kind)
        };
        let sites = &mut self.made.sites;
        let at = sites.iter().position(is_it).unwrap_or_else(|| {
            let (place, fixed, is_always) = (None, Vec::new(), false);
            sites.push(TouchSite { set, binding, element, reads, writes, is_atomic, place, kind, fixed, is_always });
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
    fn place(&mut self, binding: (u32, u32), element: Option<u32>, does: Does, kind: TouchKind) -> u32 {
        let next = self.made.words;
        let site = self.site(binding, element, does, kind);
        let (place, words) = (*site.place.get_or_insert(next), site.words());
        self.made.words = next.max(place + words);
        place
    }
}

impl Body<'_, '_> {
    /// An access to bytes of a descriptor's buffer, where `ok` holds.
    pub(crate) fn touch_buffer(&mut self, pointer: Id, path: &Path, ok: Option<u32>, does: Does) {
        if self.cx.touching.is_none() {
            return;
        }
        let binding = (path.set, path.binding);
        let size = path.size.and_then(|it| u32::try_from(it).ok()).filter(|it| (1..1 << 20).contains(it));
        let (Some(size), Ok(offset)) = (size, u32::try_from(path.offset)) else { return self.cx.blind(Some(binding)) };
        let index = match path.element {
            Some(_) => None,
            None => match self.chosen(path) {
                Some(chosen) => Some(chosen.index),
                None => return self.cx.blind(Some(binding)),
            },
        };
        let kind = self.touch_kind(pointer, path, size);
        if let (TouchKind::Span { .. }, Some(_)) = (kind, path.element) {
            // Uniform buffers are read often, and rarely written: only which one of an array it is is worth its cost.
            return self.cx.blind(Some(binding));
        }
        if let (Some(element), Some(first), None) = (path.element, self.fixed_offset(path, offset), ok)
            && self.is_always_here()
            && let Some(touching) = &mut self.cx.touching
        {
            let fixed = &mut touching.site(binding, Some(element), does, kind).fixed;
            if !fixed.contains(&(first, size)) {
                fixed.push((first, size));
            }
            return;
        }
        let Some(first) = self.first_byte(path, offset) else { return self.cx.blind(Some(binding)) };
        let Some(touching) = &mut self.cx.touching else { return };
        let place = touching.place(binding, path.element, does, kind);
        let is_aligned = offset % 4 == 0 && path.terms.iter().all(|it| it.stride % 4 == 0);
        let (function, how_much) = match kind {
            TouchKind::Bits { .. } if is_aligned => (WORDS, size.div_ceil(4)),
            TouchKind::Bits { .. } => (WORDS, (size + 3).div_ceil(4)),
            _ => (SPAN, size),
        };
        let how_much = self.cx.number(how_much);
        self.touch(function, ok, place, &[first, how_much]);
        if let Some(index) = index {
            self.touch_element(ok, place, index, kind);
        }
    }

    /// How much is kept of an access to a buffer: only numbers and vectors have no bytes between their bytes.
    fn touch_kind(&self, pointer: Id, path: &Path, size: u32) -> TouchKind {
        let types = &self.cx.types;
        let pointee = types.pointer_value(pointer).map(|it| it.1);
        let op = pointee.and_then(|it| self.cx.module.made(it)).and_then(|it| it.op());
        let is_plain = matches!(op, Some(Op::TypeInt | Op::TypeFloat | Op::TypeVector));
        let own = pointee.and_then(|it| types.size(it, crate::types::Matrix::default()));
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

    /// The first byte, where the module says it.
    fn fixed_offset(&self, path: &Path, offset: u32) -> Option<u32> {
        path.terms.iter().try_fold(offset, |all, it| {
            let index = self.cx.types.literal(path.indices[it.place])?;
            all.checked_add(u32::try_from(index.checked_mul(it.stride)?).ok()?)
        })
    }

    fn first_byte(&mut self, path: &Path, offset: u32) -> Option<u32> {
        if let Some(known) = self.fixed_offset(path, offset) {
            return Some(self.cx.number(known));
        }
        let uint = self.cx.ids.uint;
        let mut sum = None;
        for term in &path.terms {
            let number = self.as_uint(path.indices[term.place])?;
            let stride = self.cx.number(u32::try_from(term.stride).ok()?);
            let bytes = self.value(Op::IMul, uint, &[number, stride]);
            sum = Some(sum.map_or(bytes, |it| self.value(Op::IAdd, uint, &[it, bytes])));
        }
        let offset = self.cx.number(offset);
        Some(sum.map_or(offset, |it| self.value(Op::IAdd, uint, &[it, offset])))
    }

    /// Whether what stands here is executed by every invocation.
    fn is_always_here(&self) -> bool {
        let function = self.cx.module.functions().get(self.function);
        // Of several entry points one runs, and nobody knows which.
        let is_only = self.cx.module.entries().len() == 1;
        is_only
            && self.is_entry
            && !self.may_have_ended
            && function.is_some_and(|it| it.blocks.start as usize == self.block)
    }

    /// Calls a function that keeps something, where `ok` holds. No site is at the place zero.
    fn touch(&mut self, function: usize, ok: Option<u32>, place: u32, what: &[u32]) {
        let (void, uint) = (self.cx.ids.void, self.cx.ids.uint);
        let place = self.cx.number(place + 1);
        let place = match ok {
            Some(ok) => {
                let zero = self.cx.number(0);
                self.value(Op::Select, uint, &[ok, place, zero])
            }
            None => place,
        };
        let Some(touching) = &mut self.cx.touching else { return };
        touching.used[function] = true;
        let function = touching.functions[function];
        self.cx.call(&mut self.out, void, function, &[&[place], what].concat());
    }

    fn touch_element(&mut self, ok: Option<u32>, place: u32, index: u32, kind: TouchKind) {
        let bits = self.cx.number(SITE_HEAD + kind.bits_words());
        self.touch(ELEMENT, ok, place, &[index, bits]);
    }

    /// A descriptor was loaded: what it is leads from its value to where it is used.
    pub(crate) fn keep_handle(&mut self, value: u32, path: &Path, index: Option<u32>) {
        if self.cx.touching.is_some() {
            let handle = Handle { binding: (path.set, path.binding), element: path.element, index, texel: None };
            self.handles.insert(value, handle);
        }
    }

    /// A pointer to a texel of a texel buffer was made.
    pub(crate) fn keep_texel(&mut self, value: u32, texel: Option<u32>) {
        if let Some(handle) = self.handles.get_mut(&value) {
            handle.texel = texel;
        }
    }

    /// A value that is made of another one.
    pub(crate) fn pass_handle(&mut self, value: u32, from: u32) {
        if let Some(handle) = self.handles.get(&from).copied() {
            self.handles.insert(value, handle);
        }
    }

    /// An instruction that uses an image, or a texel of a texel buffer.
    pub(crate) fn touch_image(&mut self, op: Op, image: u32, texel: Option<u32>, ok: Option<u32>) {
        let Some((_, kind, mode)) = image_use(op).filter(|_| self.cx.touching.is_some()) else { return };
        if lavascope_spirv::second_image(op).is_some() {
            return self.cx.blind(None);
        }
        if kind != AccessKind::Query && mode != Mode::None {
            let does = Does { reads: mode.reads(), writes: mode.writes(), is_atomic: false };
            self.touch_handle(image, texel, ok, does);
        }
    }

    /// The texel that a pointer leads to is known from where it was made.
    pub(crate) fn touch_handle(&mut self, value: u32, texel: Option<u32>, ok: Option<u32>, does: Does) {
        let is_always = self.is_always_here();
        let Some(touching) = &mut self.cx.touching else { return };
        let Some(handle) = self.handles.get(&value).copied() else { return self.cx.blind(None) };
        let Handle { binding, element, index, .. } = handle;
        let texel = texel.or(handle.texel);
        let kind = if texel.is_some() { TouchKind::Texels } else { TouchKind::Descriptor };
        if element.is_some() && is_always && ok.is_none() && texel.is_none() {
            touching.site(binding, element, does, kind).is_always = true;
            return;
        }
        let index = match (element, index) {
            (Some(_), _) => None,
            (None, Some(index)) => Some(index),
            (None, None) => return self.cx.blind(Some(binding)),
        };
        let place = touching.place(binding, element, does, kind);
        match texel {
            Some(texel) => {
                let [one, two] = [1, 2].map(|it| self.cx.number(it));
                let first = self.value(Op::ShiftLeftLogical, self.cx.ids.uint, &[texel, two]);
                self.touch(WORDS, ok, place, &[first, one]);
            }
            None => {
                let ends = [0, 1].map(|it| self.cx.number(it));
                self.touch(SPAN, ok, place, &ends);
            }
        }
        if let Some(index) = index {
            self.touch_element(ok, place, index, kind);
        }
    }

    /// An access at a device address, where `ok` holds. The pointer that is used then leads where this one does.
    pub(crate) fn touch_address(&mut self, pointer: Id, base: Id, guarded: Guarded, does: Does) {
        if self.cx.touching.is_none() {
            return;
        }
        let types = &self.cx.types;
        let pointee = types.pointer_value(pointer).map(|it| it.1);
        let size = self.cx.paths.behind_address(types, pointer, base).and_then(|it| it.size);
        let own = pointee.and_then(|it| types.size(it, crate::types::Matrix::default()));
        let size = size.or(own).and_then(|it| u32::try_from(it).ok()).filter(|it| (1..1 << 20).contains(it));
        let Some(size) = size else { return self.cx.blind_to_addresses() };
        // Numbers of 32 bits and more are aligned to words.
        let is_exact = own == Some(u64::from(size)) && pointee.is_some_and(|it| self.has_whole_words(it));
        let origin = self.origin_of(base);
        let Some(touching) = &mut self.cx.touching else { return };
        let kind = TouchKind::Addresses { is_exact };
        let place = touching.place((TouchSite::ADDRESSES, origin), Some(0), does, kind);
        let count = self.cx.number(if is_exact { size / 4 } else { (size + 3).div_ceil(4) });
        let (uint, pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let address = self.value(Op::Bitcast, pair, &[guarded.pointer]);
        let [low, high] = [0, 1].map(|half| self.value(Op::CompositeExtract, uint, &[address, half]));
        self.touch(ADDRESS, guarded.ok, place, &[low, high, count]);
    }

    /// Whether a type is a number, or a vector of numbers, of whole words.
    fn has_whole_words(&self, ty: Id) -> bool {
        let module = self.cx.module;
        let number = module.made(ty).filter(|it| it.is(Op::TypeVector)).map_or(ty, |it| it.id(2));
        let is_whole =
            |it: Instruction<'_>| (it.is(Op::TypeInt) || it.is(Op::TypeFloat)) && it.word(2).is_multiple_of(32);
        module.made(number).is_some_and(is_whole)
    }

    /// The number of where an address was read: zero where that is not known, or there are too many.
    fn origin_of(&mut self, base: Id) -> u32 {
        let Some(way) = self.way_to(base) else { return 0 };
        let Some(touching) = &mut self.cx.touching else { return 0 };
        let origins = &mut touching.origins;
        let at = origins.iter().position(|it| *it == way).unwrap_or_else(|| {
            origins.push(way);
            origins.len() - 1
        });
        if at < ORIGINS_MAX { at as u32 + 1 } else { 0 }
    }

    /// The part of a variable that a pointer was loaded from.
    fn way_to(&self, base: Id) -> Option<Vec<u32>> {
        let module = self.cx.module;
        let mut pointer = module.made(base).filter(|it| it.is(Op::Load))?.id(3);
        let mut way = Vec::new();
        loop {
            let it = module.made(pointer)?;
            match it.op()? {
                Op::AccessChain | Op::InBoundsAccessChain => {
                    // Whatever an index is at run time, it is the same place.
                    let index = |it: &u32| self.cx.types.literal(Id(*it)).map_or(u32::MAX, |it| it as u32);
                    way.extend(it.from(4).iter().rev().map(index));
                    pointer = it.id(3);
                }
                Op::Variable => {
                    way.push(pointer.0);
                    return Some(way);
                }
                _ => return None,
            }
        }
    }

    /// Memory of descriptors is accessed in a way that is not followed.
    pub(crate) fn touch_blindly(&mut self) {
        self.cx.blind(None);
    }

    /// An instruction that is copied: if it has to do with descriptors, nobody knows what.
    pub(crate) fn touch_unknown(&mut self, it: Instruction<'_>) {
        let makes_pointer = matches!(
            it.op(),
            Some(Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::Phi | Op::Select | Op::Variable)
        );
        let is_known = makes_pointer || it.op().is_some_and(|it| image_use(it).is_some());
        if self.cx.touching.is_none() || is_known {
            return;
        }
        if it.from(1).iter().any(|it| self.is_descriptor(Id(*it))) {
            self.cx.blind(None);
        }
        let only_carries = it.op().is_some_and(|it| CARRIERS.contains(&it));
        if !only_carries && it.from(1).iter().any(|it| self.is_address(Id(*it))) {
            self.cx.blind_to_addresses();
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
        let is_new = || self.cx.module.made(ty).is_some_and(|it| it.op().is_none_or(|it| it as u32 >= FIRST_NEW));
        types.is_opaque(ty)
            || match class {
                Some(class) => DESCRIBED.contains(&class),
                None => is_new(),
            }
    }
}

/// Instructions that take a device address somewhere, and access nothing there.
const CARRIERS: [Op; 8] = [
    Op::Bitcast,
    Op::ConvertPtrToU,
    Op::CompositeConstruct,
    Op::CompositeExtract,
    Op::CompositeInsert,
    Op::PtrEqual,
    Op::PtrNotEqual,
    Op::PtrDiff,
];
/// Types from here on came with extensions: nothing is known of what is behind them.
const FIRST_NEW: u32 = 4096;
/// Where the memory of descriptors is.
const DESCRIBED: [StorageClass; 4] =
    [StorageClass::Uniform, StorageClass::StorageBuffer, StorageClass::UniformConstant, StorageClass::Image];

/// Adds the functions that are called. All sites are known by now.
pub(crate) fn add(cx: &mut Context<'_>) {
    let Some(Touching { base, functions, used, .. }) = cx.touching else { return };
    for (at, function) in functions.into_iter().enumerate().filter(|it| used[it.0]) {
        let mut code = Vec::new();
        let parameters = begin(cx, &mut code, function, cx.ids.void, if at == ADDRESS { 4 } else { 3 });
        let (place, a, b) = (parameters[0], parameters[1], parameters[2]);
        with_area(cx, &mut code, (place, base), |cx, code, area, place| match at {
            SPAN => {
                let end = cx.value(code, Op::IAdd, cx.ids.uint, &[a, b]);
                keep_span(cx, code, (area, place), a, end);
            }
            WORDS => keep_words(cx, code, (area, place), a, b),
            ADDRESS => keep_address(cx, code, (area, place), [a, b, parameters[3]]),
            _ => keep_element(cx, code, (area, place), a, b),
        });
        let code = end(cx, &mut code, None);
        cx.editor.add(Section::Functions, code);
    }
}

/// Where something is kept: the area, and the first word of a site.
type At = (u32, u32);

/// Runs `inside` where the draw has an area and the place is one: the place of the site, plus one.
fn with_area(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    (place, base): (u32, u32),
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, u32, u32),
) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let halves = cx.touches(code);
    let both = cx.value(code, Op::BitwiseOr, uint, &halves);
    let has_area = cx.value(code, Op::INotEqual, boolean, &[both, zero]);
    let is_place = cx.value(code, Op::INotEqual, boolean, &[place, zero]);
    let is_on = cx.value(code, Op::LogicalAnd, boolean, &[has_area, is_place]);
    when(cx, code, is_on, |cx, code| {
        let pair = cx.value(code, Op::CompositeConstruct, cx.ids.uint_pair, &halves);
        let area = cx.value(code, Op::Bitcast, cx.ids.pointers.words, &[pair]);
        let place = cx.value(code, Op::ISub, uint, &[place, one]);
        let base = begin_of(cx, code, area, base);
        let place = cx.value(code, Op::IAdd, uint, &[place, base]);
        inside(cx, code, area, place);
    });
}

/// Where the words of the stage begin: what the constant says, or what is in its slot. One of the two is left when the
/// constant is known.
fn begin_of(cx: &mut Context<'_>, code: &mut Vec<u32>, area: u32, base: u32) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [slots, first] = [TOUCH_HEAD - 1, TOUCH_SLOT].map(|it| cx.number(it));
    let slot = cx.value(code, Op::BitwiseAnd, uint, &[base, slots]);
    let word = cx.word(code, area, slot);
    let is_slot = cx.value(code, Op::UGreaterThanEqual, boolean, &[base, first]);
    cx.value(code, Op::Select, uint, &[is_slot, word, base])
}

/// A word of the site becomes at least so large. Most invocations find it so, and have no need for an atomic operation.
fn raise(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): At, word: u32, value: u32) {
    let (uint, boolean, scope, zero) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope, cx.number(0));
    let word = cx.number(word);
    let at = cx.value(code, Op::IAdd, uint, &[place, word]);
    let old = cx.word(code, area, at);
    let is_less = cx.value(code, Op::ULessThan, boolean, &[old, value]);
    when(cx, code, is_less, |cx, code| {
        let pointer = cx.word_at(code, area, at);
        cx.value(code, Op::AtomicUMax, uint, &[pointer, scope, zero, value]);
    });
}

fn keep_span(cx: &mut Context<'_>, code: &mut Vec<u32>, at: At, first: u32, end: u32) {
    let complement = cx.value(code, Op::Not, cx.ids.uint, &[first]);
    raise(cx, code, at, 1, complement);
    raise(cx, code, at, 2, end);
}

fn keep_element(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): At, element: u32, bits: u32) {
    let uint = cx.ids.uint;
    let one = cx.number(1);
    let complement = cx.value(code, Op::Not, uint, &[element]);
    raise(cx, code, (area, place), 3, complement);
    let behind = cx.value(code, Op::IAdd, uint, &[element, one]);
    raise(cx, code, (area, place), 4, behind);
    let bits = cx.value(code, Op::IAdd, uint, &[place, bits]);
    set_bit(cx, code, (area, bits), element);
}

/// Keeps a number of words from a byte on.
fn keep_words(cx: &mut Context<'_>, code: &mut Vec<u32>, at: At, first: u32, count: u32) {
    let (uint, two) = (cx.ids.uint, cx.number(2));
    let bytes = cx.value(code, Op::ShiftLeftLogical, uint, &[count, two]);
    let end = cx.value(code, Op::IAdd, uint, &[first, bytes]);
    keep_span(cx, code, at, first, end);
    let start = cx.value(code, Op::ShiftRightLogical, uint, &[first, two]);
    keep_each(cx, code, at, start, count);
}

/// Keeps a number of words from an address on. Its span is in words: the end of one of bytes might be zero.
fn keep_address(cx: &mut Context<'_>, code: &mut Vec<u32>, at: At, [low, high, count]: [u32; 3]) {
    let uint = cx.ids.uint;
    let [one, two, thirty] = [1, 2, 30].map(|it| cx.number(it));
    let first = cx.value(code, Op::ShiftRightLogical, uint, &[low, two]);
    let end = cx.value(code, Op::IAdd, uint, &[first, count]);
    keep_span(cx, code, at, first, end);
    let complement = cx.value(code, Op::Not, uint, &[high]);
    raise(cx, code, at, 3, complement);
    let behind = cx.value(code, Op::IAdd, uint, &[high, one]);
    raise(cx, code, at, 4, behind);
    let above = cx.value(code, Op::ShiftLeftLogical, uint, &[high, thirty]);
    let start = cx.value(code, Op::BitwiseOr, uint, &[first, above]);
    keep_each(cx, code, at, start, count);
}

/// Keeps words one by one.
fn keep_each(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): At, start: u32, count: u32) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let kinds = [0, 1, 2].map(|kind| {
        let bits = cx.number(SITE_HEAD + kind * BITS_WORDS);
        cx.value(code, Op::IAdd, uint, &[place, bits])
    });
    let [before, head, body, next, merge] = [0; 5].map(|_| cx.fresh());
    let (number, more) = (cx.fresh(), cx.fresh());
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[head]);
    emit(code, Op::Phi, &[uint, number, zero, before, more, next]);
    let is_one_more = cx.value(code, Op::ULessThan, boolean, &[number, count]);
    emit(code, Op::LoopMerge, &[merge, next, 0]);
    emit(code, Op::BranchConditional, &[is_one_more, body, merge]);
    emit(code, Op::Label, &[body]);
    let word = cx.value(code, Op::IAdd, uint, &[start, number]);
    keep_word(cx, code, area, kinds, word);
    emit(code, Op::Branch, &[next]);
    emit(code, Op::Label, &[next]);
    emit(code, Op::IAdd, &[uint, more, number, one]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[merge]);
}

fn keep_word(cx: &mut Context<'_>, code: &mut Vec<u32>, area: u32, [words, blocks, chosen]: [u32; 3], word: u32) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    set_bit(cx, code, (area, words), word);
    let shift = cx.number(BLOCK_SHIFT);
    let block = cx.value(code, Op::ShiftRightLogical, uint, &[word, shift]);
    set_bit(cx, code, (area, blocks), block);
    let mask = cx.number(BLOCK_WORDS as u32 - 1);
    let inside = cx.value(code, Op::BitwiseAnd, uint, &[word, mask]);
    let (spread, rest) = (cx.number(SPREAD), cx.number(32 - BLOCK_SHIFT));
    let product = cx.value(code, Op::IMul, uint, &[block, spread]);
    let wanted = cx.value(code, Op::ShiftRightLogical, uint, &[product, rest]);
    let decides = cx.value(code, Op::IEqual, boolean, &[inside, wanted]);
    when(cx, code, decides, |cx, code| set_bit(cx, code, (area, chosen), block));
}

/// Sets a bit, by its number modulo all of them.
fn set_bit(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, bits): At, number: u32) {
    let (uint, boolean, scope) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope);
    let [zero, one, five] = [0, 1, 5].map(|it| cx.number(it));
    let (all, low) = (cx.number(BITS as u32 - 1), cx.number(31));
    let number = cx.value(code, Op::BitwiseAnd, uint, &[number, all]);
    let word = cx.value(code, Op::ShiftRightLogical, uint, &[number, five]);
    let word = cx.value(code, Op::IAdd, uint, &[bits, word]);
    let number = cx.value(code, Op::BitwiseAnd, uint, &[number, low]);
    let bit = cx.value(code, Op::ShiftLeftLogical, uint, &[one, number]);
    let old = cx.word(code, area, word);
    let own = cx.value(code, Op::BitwiseAnd, uint, &[old, bit]);
    let is_new = cx.value(code, Op::IEqual, boolean, &[own, zero]);
    when(cx, code, is_new, |cx, code| {
        let pointer = cx.word_at(code, area, word);
        cx.value(code, Op::AtomicOr, uint, &[pointer, scope, zero, bit]);
    });
}
