//! What shaders really touch: which descriptors of arrays, and which bytes of buffers.
//!
//! Each kind of access to a binding has words in an area that every draw has for itself. What is touched is kept in two
//! ways: all that *may* have been touched, and some that *surely* was. Of a few kilobytes both are the same. Of more, a
//! block of 4 KiB has a bit for any of its words, and a bit for one of them that a number decides: two accesses that
//! share such a word do overlap, and those that share no block do not.
//!
//! What is not followed makes its binding, or all of the module, *blind*: nothing is said about it.

use std::ops::Range;

use lavascope_spirv::{AccessKind, Id, Instruction, Mode, Section, image_use};
use rustc_hash::FxHashSet;
use spirv::{Op, StorageClass};

use crate::{
    Root,
    body::Body,
    context::{Context, emit, special},
    helpers::{begin, when},
    path::Path,
    types::BlockKind,
};

/// Where the root table has the address of the area: two words, zero where there is none.
pub const ROOT_TOUCHES: u32 = 10;
/// The words before the first site of an area; nothing is kept in them.
pub const TOUCH_HEAD: u32 = 8;

/// Words of a site before its bits: whether anything, the complement of the first byte, the end, the complement of the
/// smallest element, the largest one plus one.
const SITE_HEAD: u32 = 8;
/// Bits of one kind.
const BITS: u64 = 4096;
const BITS_WORDS: u32 = (BITS / 32) as u32;
/// Words of a block, as a power of two.
const BLOCK_SHIFT: u32 = 10;
const BLOCK_WORDS: u64 = 1 << BLOCK_SHIFT;
/// Which word of a block decides: its number times this one, the highest bits.
const SPREAD: u32 = 0x9e37_79b1;
/// In larger spans it is not looked at single words.
const WORDS_MAX: u64 = 1 << 20;

/// What a module keeps of what it touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    pub sites: Vec<TouchSite>,
    /// The words that they take.
    pub words: u32,
    /// Bindings that are accessed in other ways, too.
    pub blind: Vec<(u32, u32)>,
    /// Whether there are accesses of which not even the binding is known.
    pub is_blind: bool,
}

impl Touches {
    /// Whether all accesses to a binding are followed.
    pub fn covers(&self, set: u32, binding: u32) -> bool {
        let is_it = |it: &TouchSite| (it.set, it.binding) == (set, binding);
        !self.is_blind && !self.blind.contains(&(set, binding)) && self.sites.iter().any(is_it)
    }
}

/// One kind of access to a binding, by all instructions together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchSite {
    pub set: u32,
    pub binding: u32,
    /// None where it is known only at run time.
    pub element: Option<u32>,
    pub reads: bool,
    pub writes: bool,
    pub is_atomic: bool,
    /// Where its words begin; none where it has no code.
    pub place: Option<u32>,
    pub kind: TouchKind,
    /// Bytes of accesses that every invocation makes: where they begin, and how many.
    pub fixed: Vec<(u32, u32)>,
    /// Whether every invocation uses the descriptor.
    pub is_always: bool,
}

/// How much is kept of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    /// That the descriptor was used.
    Descriptor,
    /// The first byte and the last one.
    Span { is_exact: bool },
    /// Bits for words and blocks.
    Bits { is_exact: bool },
}

/// What was touched through a site, in bytes from the beginning of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// In their order; nothing where the descriptor was not used.
    pub elements: Vec<u32>,
    /// Not all elements could be kept.
    pub is_lost: bool,
    /// All that may have been touched of any of them, in order. For what is no buffer, nothing.
    pub may: Vec<Range<u64>>,
    /// What surely was, if there is one element only.
    pub must: Vec<Range<u64>>,
}

impl Touches {
    /// Whether all sites have their words.
    pub(crate) fn is_sound(&self) -> bool {
        let is_inside =
            |it: &TouchSite| it.place.is_none_or(|at| u64::from(at) + u64::from(it.words()) <= u64::from(self.words));
        self.sites.iter().all(is_inside)
    }
}

impl TouchSite {
    /// The word of a site that is zero unless something was touched.
    pub const END_WORD: u32 = 2;

    /// The words that it takes.
    pub fn words(&self) -> u32 {
        let bits = match self.kind {
            TouchKind::Bits { .. } => 3 * BITS_WORDS,
            TouchKind::Span { .. } | TouchKind::Descriptor => 0,
        };
        SITE_HEAD + bits + if self.element.is_none() { BITS_WORDS } else { 0 }
    }

    /// What a stage's words say of it.
    pub fn read(&self, area: &[u32]) -> Touched {
        let words = self.place.and_then(|it| area.get(it as usize..)?.get(..self.words() as usize)).unwrap_or(&[]);
        let mut touched = Touched::default();
        let is_touched = words.get(2).is_some_and(|it| *it != 0);
        self.read_elements(words, is_touched, &mut touched);
        if let TouchKind::Span { is_exact } | TouchKind::Bits { is_exact } = self.kind {
            if is_touched {
                let span = u64::from(!words[1])..u64::from(words[2]);
                match self.kind {
                    TouchKind::Bits { .. } => read_bits(&words[SITE_HEAD as usize..], span, is_exact, &mut touched),
                    _ => {
                        touched.must = if is_exact { ends(&span) } else { Vec::new() };
                        touched.may = vec![span];
                    }
                }
            }
            let fixed = || self.fixed.iter().map(|it| u64::from(it.0)..u64::from(it.0) + u64::from(it.1));
            touched.may = joined(touched.may.drain(..).chain(fixed()).collect());
            touched.must = joined(touched.must.drain(..).chain(fixed()).collect());
        }
        touched
    }

    fn read_elements(&self, words: &[u32], is_touched: bool, touched: &mut Touched) {
        match self.element {
            Some(element) if is_touched || self.is_always || !self.fixed.is_empty() => touched.elements.push(element),
            Some(_) => {}
            None if is_touched => {
                let bits = &words[words.len() - BITS_WORDS as usize..];
                let all = (0..BITS as u32).filter(|it| bits[*it as usize / 32] & 1 << (it % 32) != 0);
                touched.elements.extend(all);
                touched.is_lost = u64::from(words[4]) > BITS || touched.elements.is_empty();
            }
            None => {}
        }
    }
}

/// The first word and the last one of a span.
fn ends(span: &Range<u64>) -> Vec<Range<u64>> {
    joined(vec![span.start..span.start + 4, span.end.saturating_sub(4)..span.end])
}

fn read_bits(bits: &[u32], span: Range<u64>, is_exact: bool, touched: &mut Touched) {
    let is_set = |kind: u32, at: u64| {
        let at = at % BITS;
        bits[(kind * BITS_WORDS) as usize + at as usize / 32] & 1 << (at % 32) != 0
    };
    let words = span.start / 4..span.end.div_ceil(4);
    let bytes = |it: Range<u64>| it.start * 4..it.end * 4;
    if words.end - words.start <= BITS {
        touched.may = joined(words.filter(|it| is_set(0, *it)).map(|it| bytes(it..it + 1)).collect());
        touched.must = if is_exact { touched.may.clone() } else { Vec::new() };
        return;
    }
    let blocks = words.start / BLOCK_WORDS..words.end.div_ceil(BLOCK_WORDS);
    let is_small = words.end - words.start <= WORDS_MAX;
    let has_own_bits = blocks.end - blocks.start <= BITS;
    touched.must = if is_exact { ends(&span) } else { Vec::new() };
    for block in blocks.filter(|it| is_set(1, *it)) {
        let own = (block * BLOCK_WORDS).max(words.start)..((block + 1) * BLOCK_WORDS).min(words.end);
        match is_small {
            true => touched.may.extend(own.filter(|it| is_set(0, *it)).map(|it| bytes(it..it + 1))),
            false => touched.may.push(bytes(own)),
        }
        if is_exact && has_own_bits && is_set(2, block) {
            let word = block * BLOCK_WORDS + u64::from(decisive(block as u32));
            touched.must.push(bytes(word..word + 1));
        }
    }
    touched.may = joined(std::mem::take(&mut touched.may));
    touched.must = joined(std::mem::take(&mut touched.must));
}

/// The word of a block that decides.
fn decisive(block: u32) -> u32 {
    block.wrapping_mul(SPREAD) >> (32 - BLOCK_SHIFT)
}

/// In order, what touches as one.
fn joined(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|it| it.start);
    let mut made: Vec<Range<u64>> = Vec::new();
    for it in all {
        match made.last_mut() {
            Some(last) if it.start <= last.end => last.end = last.end.max(it.end),
            _ => made.push(it),
        }
    }
    made
}

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
}

/// What is kept while a module is written.
pub(crate) struct Touching {
    made: Touches,
    blind: FxHashSet<(u32, u32)>,
    /// The specialization constant that says where the words of the stage are.
    base: u32,
    /// Functions: a span, a span with bits, an element.
    functions: [u32; 3],
    used: [bool; 3],
}

const SPAN: usize = 0;
const WORDS: usize = 1;
const ELEMENT: usize = 2;

impl Context<'_> {
    /// From now on it is kept what is touched, where the root can say where.
    pub(crate) fn begin_touching(&mut self) {
        let can = matches!(self.options.root, Root::PushConstant { .. }) && self.options.checks.descriptors;
        if self.options.touches && can {
            let base = special(&mut self.editor, Id(self.ids.uint), self.ids.constants_from.wrapping_add(4));
            let functions = [0; 3].map(|_| self.fresh());
            let (made, blind) = (Touches::default(), FxHashSet::default());
            self.touching = Some(Touching { made, blind, base, functions, used: [false; 3] });
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
            | (TouchKind::Bits { is_exact }, TouchKind::Bits { is_exact: more }) => *is_exact &= more,
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
        self.touch(function, ok, place, [first, how_much]);
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
        let is_whole = size % 4 == 0 && path.offset % 4 == 0 && path.terms.iter().all(|it| it.stride % 4 == 0);
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
        self.is_entry && !self.may_have_ended && function.is_some_and(|it| it.blocks.start as usize == self.block)
    }

    /// Calls a function that keeps something, where `ok` holds. No site is at the place zero.
    fn touch(&mut self, function: usize, ok: Option<u32>, place: u32, [a, b]: [u32; 2]) {
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
        self.value(Op::FunctionCall, void, &[function, place, a, b]);
    }

    fn touch_element(&mut self, ok: Option<u32>, place: u32, index: u32, kind: TouchKind) {
        let bits = if let TouchKind::Bits { .. } = kind { 3 * BITS_WORDS } else { 0 };
        let bits = self.cx.number(SITE_HEAD + bits);
        self.touch(ELEMENT, ok, place, [index, bits]);
    }

    /// A descriptor was loaded: what it is leads from its value to where it is used.
    pub(crate) fn keep_handle(&mut self, value: u32, path: &Path, index: Option<u32>) {
        if self.cx.touching.is_some() {
            let handle = Handle { binding: (path.set, path.binding), element: path.element, index };
            self.handles.insert(value, handle);
        }
    }

    /// A value that is made of another one.
    pub(crate) fn pass_handle(&mut self, value: u32, from: u32) {
        if let Some(handle) = self.handles.get(&from).copied() {
            self.handles.insert(value, handle);
        }
    }

    /// An instruction that uses an image.
    pub(crate) fn touch_image(&mut self, op: Op, image: u32, ok: Option<u32>) {
        let Some((_, kind, mode)) = image_use(op).filter(|_| self.cx.touching.is_some()) else { return };
        if lavascope_spirv::second_image(op).is_some() {
            return self.cx.blind(None);
        }
        if kind != AccessKind::Query && mode != Mode::None {
            let does = Does { reads: mode.reads(), writes: mode.writes(), is_atomic: false };
            self.touch_handle(image, ok, does);
        }
    }

    pub(crate) fn touch_handle(&mut self, value: u32, ok: Option<u32>, does: Does) {
        let is_always = self.is_always_here();
        let Some(touching) = &mut self.cx.touching else { return };
        let Some(handle) = self.handles.get(&value).copied() else { return self.cx.blind(None) };
        let Handle { binding, element, index } = handle;
        match (element, index) {
            (Some(_), _) if is_always && ok.is_none() => {
                touching.site(binding, element, does, TouchKind::Descriptor).is_always = true;
            }
            (Some(_), _) => {
                let place = touching.place(binding, element, does, TouchKind::Descriptor);
                let ends = [self.cx.number(0), self.cx.number(1)];
                self.touch(SPAN, ok, place, ends);
            }
            (None, Some(index)) => {
                let place = touching.place(binding, None, does, TouchKind::Descriptor);
                let ends = [self.cx.number(0), self.cx.number(1)];
                self.touch(SPAN, ok, place, ends);
                self.touch_element(ok, place, index, TouchKind::Descriptor);
            }
            (None, None) => self.cx.blind(Some(binding)),
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
        if self.cx.touching.is_some() && !is_known && it.from(1).iter().any(|it| self.is_descriptor(Id(*it))) {
            self.cx.blind(None);
        }
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
        let parameters = begin(cx, &mut code, function, cx.ids.void, 3);
        let [place, a, b] = parameters[..] else { unreachable!("three parameters were asked for") };
        with_area(cx, &mut code, (place, base), |cx, code, area, place| match at {
            SPAN => {
                let end = cx.value(code, Op::IAdd, cx.ids.uint, &[a, b]);
                keep_span(cx, code, (area, place), a, end);
            }
            WORDS => keep_words(cx, code, (area, place), a, b),
            _ => keep_element(cx, code, (area, place), a, b),
        });
        emit(&mut code, Op::Return, &[]);
        emit(&mut code, Op::FunctionEnd, &[]);
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
    let root = cx.root(code);
    let halves = [0, 1].map(|half| {
        let at = cx.number(ROOT_TOUCHES + half);
        cx.word(code, root, at)
    });
    let both = cx.value(code, Op::BitwiseOr, uint, &halves);
    let has_area = cx.value(code, Op::INotEqual, boolean, &[both, zero]);
    let is_place = cx.value(code, Op::INotEqual, boolean, &[place, zero]);
    let is_on = cx.value(code, Op::LogicalAnd, boolean, &[has_area, is_place]);
    when(cx, code, is_on, |cx, code| {
        let pair = cx.value(code, Op::CompositeConstruct, cx.ids.uint_pair, &halves);
        let area = cx.value(code, Op::Bitcast, cx.ids.table_pointer, &[pair]);
        let place = cx.value(code, Op::ISub, uint, &[place, one]);
        let place = cx.value(code, Op::IAdd, uint, &[place, base]);
        inside(cx, code, area, place);
    });
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
fn keep_words(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): At, first: u32, count: u32) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one, two] = [0, 1, 2].map(|it| cx.number(it));
    let bytes = cx.value(code, Op::ShiftLeftLogical, uint, &[count, two]);
    let end = cx.value(code, Op::IAdd, uint, &[first, bytes]);
    keep_span(cx, code, (area, place), first, end);
    let start = cx.value(code, Op::ShiftRightLogical, uint, &[first, two]);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn site(kind: TouchKind, element: Option<u32>) -> TouchSite {
        let (place, fixed) = (Some(0), Vec::new());
        let (set, binding, reads, writes) = (0, 0, false, true);
        TouchSite { set, binding, element, reads, writes, is_atomic: false, place, kind, fixed, is_always: false }
    }

    /// What a shader keeps of words that it touches.
    fn kept(site: &TouchSite, words: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut area = vec![0; site.words() as usize];
        for word in words {
            area[1] = area[1].max(!(word * 4));
            area[2] = area[2].max(word * 4 + 4);
            let block = word >> BLOCK_SHIFT;
            let mut set = |kind: u32, bit: u32| {
                let bit = bit % BITS as u32;
                area[(SITE_HEAD + kind * BITS_WORDS + bit / 32) as usize] |= 1 << (bit % 32);
            };
            set(0, word);
            set(1, block);
            if word % BLOCK_WORDS as u32 == decisive(block) {
                set(2, block);
            }
        }
        area
    }

    const EXACT: TouchKind = TouchKind::Bits { is_exact: true };

    #[test]
    fn of_a_few_kilobytes_each_word_is_known_wherever_they_are() {
        let site = site(EXACT, Some(3));
        for base in [0, 1000, 5_000_000] {
            let touched = site.read(&kept(&site, [base, base + 1, base + 7, base + 4095]));
            let at = u64::from(base) * 4;
            assert_eq!(touched.may, [at..at + 8, at + 28..at + 32, at + 4095 * 4..at + 4096 * 4]);
            assert_eq!((touched.must, touched.elements), (touched.may, vec![3]));
        }
    }

    #[test]
    fn what_was_not_used_has_nothing() {
        let site = site(EXACT, Some(0));
        assert_eq!(site.read(&kept(&site, [])), Touched::default());
        assert_eq!(site.read(&[]), Touched::default(), "there is no area");
    }

    #[test]
    fn of_more_what_may_have_been_touched_has_all_and_what_must_have_been_only_that() {
        let site = site(EXACT, Some(0));
        for (base, step, count) in [(0u32, 1u32, 100_000u32), (77, 4, 100_000), (5, 3000, 5000), (9, 100_000, 300)] {
            let words: Vec<u32> = (0..count).map(|it| base + it * step).collect();
            let touched = site.read(&kept(&site, words.iter().copied()));
            let has = |all: &[Range<u64>], word: u32| all.iter().any(|it| it.contains(&(u64::from(word) * 4)));
            assert!(words.iter().all(|it| has(&touched.may, *it)), "{base} {step}");
            let surely: Vec<u64> = touched.must.iter().flat_map(|it| (it.start..it.end).step_by(4)).collect();
            assert!(surely.len() >= 2, "the first one and the last one");
            let is_one = |it: &u64| {
                (it / 4 - u64::from(base)).is_multiple_of(step.into()) && it / 4 <= words[words.len() - 1].into()
            };
            assert!(surely.iter().all(is_one), "{base} {step}");
        }
    }

    #[test]
    fn rows_that_take_turns_share_no_word_and_those_that_are_the_same_share_some() {
        let site = site(EXACT, Some(0));
        let row = |first: u32| site.read(&kept(&site, (first..400_000).step_by(4)));
        let (one, other) = (row(0), row(1));
        let overlaps =
            |a: &[Range<u64>], b: &[Range<u64>]| a.iter().any(|a| b.iter().any(|b| a.start < b.end && b.start < a.end));
        assert!(!overlaps(&one.may, &other.may));
        let again = row(2000);
        assert!(overlaps(&one.must, &again.must), "they share every fourth word");
    }

    #[test]
    fn what_is_not_whole_words_is_never_sure() {
        let site = site(TouchKind::Bits { is_exact: false }, Some(0));
        let touched = site.read(&kept(&site, [1, 2]));
        assert_eq!((touched.may, touched.must), (vec![4..12], Vec::new()));
    }

    #[test]
    fn fixed_bytes_and_elements_are_told_with_the_rest() {
        let mut fixed = site(EXACT, Some(1));
        fixed.fixed = vec![(0, 4), (16, 16)];
        let touched = fixed.read(&kept(&fixed, [1]));
        assert_eq!((touched.may, touched.must), (vec![0..8, 16..32], vec![0..8, 16..32]));
        let any = site(TouchKind::Descriptor, None);
        let mut area = vec![0; any.words() as usize];
        (area[1], area[2], area[3], area[4]) = (!0, 1, !2, 41);
        area[SITE_HEAD as usize] = 1 << 2;
        area[SITE_HEAD as usize + 1] = 1 << 8;
        assert_eq!(any.read(&area).elements, [2, 40]);
        assert!(!any.read(&area).is_lost);
        area[4] = 5000;
        assert!(any.read(&area).is_lost, "there are no bits for so many");
        let mut always = site(TouchKind::Descriptor, Some(7));
        (always.place, always.is_always) = (None, true);
        assert_eq!(always.read(&[]).elements, [7]);
    }
}
