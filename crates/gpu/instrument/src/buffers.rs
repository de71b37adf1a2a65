//! Checks of what is behind descriptors: which one of an array, and which bytes of a buffer.
//!
//! Bytes are counted from the end: how many elements fit behind the first one is a division of what is left, so no
//! product can wrap around, whatever the index.

use std::num::NonZeroU32;

use lavascope_spirv::{At, Id};
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op};

use crate::{
    Check, Counted, Reason, Site, Table, Verdict,
    body::{Body, Hoisted},
    context::emit_value,
    known::{Done, Key},
    path::Path,
};

/// Where an access goes, and whether it may.
#[derive(Clone, Copy)]
pub(crate) struct Guarded {
    /// Nothing where it cannot go wrong.
    pub(crate) ok: Option<u32>,
    pub(crate) pointer: u32,
}

/// An element that is chosen at run time.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    pub(crate) index: u32,
    pub(crate) length: u32,
    /// Whether the index is in bounds; nothing where it must be.
    pub(crate) in_bounds: Option<u32>,
}

/// Where an access that is wrong goes: to this element of a binding, or to the last one that an index may have.
#[derive(Clone, Copy)]
pub(crate) struct Elsewhere {
    pub(crate) safe: Option<u32>,
    /// The index, or the last one if that is less.
    pub(crate) cut: Option<u32>,
}

/// How an access is made safe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The pointer is changed so that it may be used.
    Select,
    /// The access is branched around, and the pointer stays.
    Branch,
}

impl Body<'_, '_> {
    /// Checks an access to bytes of a descriptor's buffer.
    pub(crate) fn buffer(&mut self, at: At, pointer: Id, path: &Path, way: Way) -> Guarded {
        let as_is = Guarded { ok: None, pointer: pointer.0 };
        let mut site = Site {
            at,
            check: Check::Buffer,
            verdict: Verdict::Proven,
            binding: Some((path.set, path.binding)),
            element: None,
            bytes: path.size.unwrap_or(0),
            counted: counted(path),
        };
        let bare = site;
        let unchecked = |reason| Site { verdict: Verdict::Unchecked(reason), ..bare };
        let Some(size) = path.size else {
            self.cx.note(unchecked(Reason::Size));
            return as_is;
        };
        if way == Way::Branch && !self.can_split {
            self.cx.note(unchecked(Reason::Loop));
            return as_is;
        }
        let least = path.offset.saturating_add(size);
        let Some(element) = path.element else {
            let Some(key) = self.key(path) else {
                self.cx.note(unchecked(Reason::Pointer));
                return as_is;
            };
            return self.chosen_buffer(site, pointer, path, least, key, way);
        };
        site.element = Some(element);
        if let Some(most) = self.most(path, least).filter(|_| !self.cx.is_branching()) {
            self.cx.require(path.set, path.binding, Some(element), most);
            site.counted = counted(path);
            self.cx.note(site);
            return as_is;
        }
        let Some(key) = self.key(path) else {
            self.cx.note(unchecked(Reason::Pointer));
            return as_is;
        };
        self.known_buffer(site, pointer, path, element, least, key, way)
    }

    /// A buffer that is the same for all invocations.
    #[expect(clippy::too_many_arguments, reason = "one call, of what was found out so far")]
    fn known_buffer(
        &mut self,
        site: Site,
        pointer: Id,
        path: &Path,
        element: u32,
        least: u64,
        key: Key,
        way: Way,
    ) -> Guarded {
        let repeated = self.repeated(&key);
        let mut cut = None;
        let done = match repeated {
            Some(done) => {
                self.cx.note(Site { verdict: Verdict::Repeated, ..site });
                done
            }
            None => {
                let state = self.state_word(path.set, path.binding, element);
                let fits = self.fits_known(path, state, least, way);
                cut = fits.cut;
                // Which descriptor it is and what is bound to it is found out again if it must be told.
                let index = fits.index.unwrap_or(self.cx.number(0));
                let details = [Some(index), None, None];
                let is_done = fits.counted.is_some_and(|(index, count)| self.check_before_loop(site, index, count));
                match fits.is_hoisted {
                    _ if is_done => {}
                    true => self.check(site, fits.ok, details, true),
                    false => self.check_new(site, fits.ok, details),
                }
                Done { block: self.block as u32, ok: fits.ok, pointer: None }
            }
        };
        if way == Way::Select {
            self.cx.require(path.set, path.binding, Some(element), least);
        }
        self.guard(pointer, path, key, (done, repeated.is_none()), Elsewhere { safe: None, cut }, way)
    }

    /// The number of the last element that fits, where the host sees to it that one does.
    fn last_fitting(&mut self, state: u32, least: u64, stride: u64) -> u32 {
        self.hoist(Hoisted::Last(state, least, stride), |cx, code| {
            let less = cx.number(u32::try_from(least).unwrap_or(u32::MAX).wrapping_neg());
            let left = cx.value(code, Op::IAdd, cx.ids.uint, &[state, less]);
            divided(cx, code, left, stride)
        })
    }

    /// A buffer that is chosen by an index.
    fn chosen_buffer(&mut self, site: Site, pointer: Id, path: &Path, least: u64, key: Key, way: Way) -> Guarded {
        let safe = self.binding_word(path.set, path.binding, 2);
        let repeated = self.repeated(&key);
        let done = match repeated {
            Some(done) => {
                self.cx.note(Site { verdict: Verdict::Repeated, ..site });
                done
            }
            None => {
                let Some(chosen) = self.chosen(path) else {
                    self.cx.note(Site { verdict: Verdict::Unchecked(Reason::Pointer), ..site });
                    return Guarded { ok: None, pointer: pointer.0 };
                };
                let (state, is_there) = self.state_of(path, chosen, safe);
                let descriptor = Site { check: Check::Descriptor, ..site };
                self.check_new(descriptor, is_there, [Some(chosen.index), Some(chosen.length), None]);
                let (fits, index) = self.fits(path, state, least);
                let is_missing = self.test(Op::LogicalNot, &[is_there]);
                let is_fine = self.test(Op::LogicalOr, &[is_missing, fits]);
                let index = index.unwrap_or(self.cx.number(0));
                self.check_new(site, is_fine, [Some(index), Some(chosen.index), Some(state)]);
                let ok = self.test(Op::LogicalAnd, &[is_there, fits]);
                Done { block: self.block as u32, ok, pointer: None }
            }
        };
        if way == Way::Select {
            self.cx.require(path.set, path.binding, None, least);
        }
        self.guard(pointer, path, key, (done, repeated.is_none()), Elsewhere { safe: Some(safe), cut: None }, way)
    }

    /// What to do with an access whose check is known, which is remembered where that is new.
    fn guard(
        &mut self,
        pointer: Id,
        path: &Path,
        key: Key,
        (done, is_new): (Done, bool),
        elsewhere: Elsewhere,
        way: Way,
    ) -> Guarded {
        let made = match (way, done.pointer) {
            (Way::Branch, it) => it,
            (Way::Select, Some(made)) => Some(made),
            (Way::Select, None) => {
                NonZeroU32::new(self.selected(pointer, path, done.ok, elsewhere).unwrap_or(pointer.0))
            }
        };
        if is_new || done.block as usize == self.block && made != done.pointer {
            self.known.buffers.insert(key, Done { pointer: made, ..done });
        }
        let made = made.filter(|_| way == Way::Select).map_or(pointer.0, NonZeroU32::get);
        Guarded { ok: Some(done.ok), pointer: made }
    }

    /// The check of the same access, if it is on every way to here.
    fn repeated(&mut self, key: &Key) -> Option<Done> {
        let done = self.known.buffers.get(key).copied()?;
        let is_above = self.flow.dominates(self.cx.module, done.block as usize, self.block);
        if !is_above {
            self.known.buffers.remove(key);
        }
        is_above.then_some(done)
    }

    /// What makes an access the same as another one.
    fn key(&mut self, path: &Path) -> Option<Key> {
        let mut values: SmallVec<[u32; 4]> = SmallVec::new();
        let globals = self.cx.module.globals().end;
        for index in &path.indices {
            if self.cx.module.place_of(*index).is_none_or(|it| it.0 >= globals) {
                values.push(self.numbering.of(*index));
            }
        }
        path.is_plain.then(|| self.known.key(path.number, values))
    }

    /// The same pointer where `ok` holds, else one that may be used.
    pub(crate) fn selected(&mut self, pointer: Id, path: &Path, ok: u32, elsewhere: Elsewhere) -> Option<u32> {
        let Elsewhere { safe, cut } = elsewhere;
        let is_uniform = !self.is_non_uniform(pointer) && !path.indices.iter().any(|it| self.is_non_uniform(*it));
        let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[path.variable.0]);
        for (place, index) in path.indices.iter().enumerate() {
            let is_term = path.terms.iter().any(|it| it.place == place);
            operands.push(match (safe.filter(|_| place < path.depth), is_term) {
                (Some(safe), _) => {
                    let safe = self.part_of(path, place, safe)?;
                    self.clamp(*index, ok, Some(safe), is_uniform)?
                }
                (None, true) => match cut {
                    Some(cut) => cut,
                    None => self.clamp(*index, ok, None, true)?,
                },
                (None, false) => index.0,
            });
        }
        let ty = self.cx.types.of_value(pointer)?;
        let id = self.chain(ty.0, &operands);
        let is_marked = id == pointer.0 && self.is_non_uniform(pointer);
        if !is_uniform && !is_marked {
            self.cx.editor.decorate(Id(id), spirv::Decoration::NonUniform, &[]);
        }
        Some(id)
    }

    /// A chain, in the place of the one that was taken back if there is one.
    pub(crate) fn chain(&mut self, ty: u32, operands: &[u32]) -> u32 {
        let id = match self.free_id.take() {
            Some(id) => id,
            None => self.cx.fresh(),
        };
        emit_value(&mut self.out, Op::AccessChain, ty, id, operands);
        id
    }

    /// The index at one place of an array of arrays, for an element of the whole.
    fn part_of(&mut self, path: &Path, place: usize, element: u32) -> Option<u32> {
        let uint = self.cx.ids.uint;
        let mut part = element;
        for inner in (place + 1..path.depth).rev() {
            let length = self.length_of(path, inner)?;
            part = self.value(Op::UDiv, uint, &[part, length]);
        }
        if place > 0 {
            let length = self.length_of(path, place)?;
            part = self.value(Op::UMod, uint, &[part, length]);
        }
        Some(part)
    }

    fn length_of(&mut self, path: &Path, place: usize) -> Option<u32> {
        let length = self.cx.types.array(path.arrays[place])?.1?;
        match self.cx.types.literal(length) {
            Some(known) => Some(self.cx.number(u32::try_from(known).ok().filter(|it| *it > 0)?)),
            None => self.as_uint(length),
        }
    }

    /// The element, as an expression.
    pub(crate) fn chosen(&mut self, path: &Path) -> Option<Chosen> {
        if path.depth == 0 || path.depth < path.arrays.len() {
            return None;
        }
        let uint = self.cx.ids.uint;
        let mut all: Option<Chosen> = None;
        for place in 0..path.depth {
            let index = path.indices[place];
            let length = self.cx.types.array(path.arrays[place])?.1;
            let known = length.and_then(|it| self.cx.types.literal(it));
            let is_sure = self.cx.bounds.most(&self.cx.types, index).zip(known).is_some_and(|(most, it)| most < it);
            let number = self.as_uint(index)?;
            let length = match (known, length) {
                (Some(known), _) => self.cx.number(u32::try_from(known).ok()?),
                (None, Some(length)) => self.as_uint(length)?,
                (None, None) => self.binding_word(path.set, path.binding, 0),
            };
            let in_bounds = if is_sure { None } else { Some(self.test(Op::ULessThan, &[number, length])) };
            all = Some(match all {
                None => Chosen { index: number, length, in_bounds },
                Some(before) => {
                    let row = self.value(Op::IMul, uint, &[before.index, length]);
                    Chosen {
                        index: self.value(Op::IAdd, uint, &[row, number]),
                        length: self.value(Op::IMul, uint, &[before.length, length]),
                        in_bounds: self.both(before.in_bounds, in_bounds),
                    }
                }
            });
        }
        all
    }

    /// What is bound to a chosen element, and whether there is such an element and something is.
    pub(crate) fn state_of(&mut self, path: &Path, chosen: Chosen, safe: u32) -> (u32, u32) {
        let uint = self.cx.ids.uint;
        let first = self.binding_word(path.set, path.binding, 1);
        let element = match chosen.in_bounds {
            Some(ok) => self.value(Op::Select, uint, &[ok, chosen.index, safe]),
            None => chosen.index,
        };
        let table = self.table(Table::Descriptors);
        let place = self.value(Op::IAdd, uint, &[first, element]);
        let state = self.cx.word(&mut self.out, table, place);
        let zero = self.cx.number(0);
        let is_written = self.test(Op::INotEqual, &[state, zero]);
        let is_there = match chosen.in_bounds {
            Some(ok) => self.test(Op::LogicalAnd, &[ok, is_written]),
            None => is_written,
        };
        (state, is_there)
    }

    /// The last byte that may be accessed plus one, where that is known and inside of what the shader declares.
    fn most(&self, path: &Path, least: u64) -> Option<u64> {
        if path.terms.is_empty() {
            return Some(least);
        }
        let mut most = least;
        for term in &path.terms {
            let index = self.cx.bounds.most(&self.cx.types, path.indices[term.place])?;
            most = most.checked_add(index.checked_mul(term.stride)?)?;
        }
        path.block_size.filter(|it| most <= *it && !path.is_open).map(|_| most)
    }

    /// Whether an access fits into what is bound to an element that is known, looked up where the function begins.
    fn fits_known(&mut self, path: &Path, state: u32, least: u64, way: Way) -> Fits {
        if path.terms.len() > 1 {
            let (ok, index) = self.fits(path, state, least);
            return Fits { ok, index, is_hoisted: false, counted: None, cut: None };
        }
        let Some(term) = path.terms.first() else {
            let key = Hoisted::Fits(state, least, 0, 0);
            let ok = self.hoist(key, |cx, code| {
                let least = cx.number(u32::try_from(least).unwrap_or(u32::MAX));
                cx.value(code, Op::UGreaterThanEqual, cx.ids.boolean, &[state, least])
            });
            return Fits { ok, index: None, is_hoisted: true, counted: None, cut: None };
        };
        let stride = term.stride;
        let index = path.indices[term.place];
        let is_known = self.cx.types.literal(index).is_some();
        let last = (way == Way::Select && !is_known).then(|| self.last_fitting(state, least, stride));
        if let Some(last) = last.filter(|_| self.loops.is_empty()) {
            // The host sees to it that one fits, so what is not cut is in bounds.
            let number = self.as_uint(index).unwrap_or(index.0);
            let cut = self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last]);
            let ok = self.test(Op::IEqual, &[number, cut]);
            return Fits { ok, index: Some(number), is_hoisted: false, counted: None, cut: Some(cut) };
        }
        let count =
            self.hoist(Hoisted::Fitting(state, least, stride), |cx, code| fitting(cx, code, state, least, stride));
        if let Some(known) = self.cx.types.literal(index) {
            let known = u32::try_from(known).unwrap_or(u32::MAX);
            let ok = self.hoist(Hoisted::Fits(state, least, stride, known), |cx, code| {
                let known = cx.number(known);
                cx.value(code, Op::ULessThan, cx.ids.boolean, &[known, count])
            });
            let index = self.cx.number(known);
            return Fits { ok, index: Some(index), is_hoisted: true, counted: None, cut: None };
        }
        let number = self.as_uint(index).unwrap_or(index.0);
        let ok = self.test(Op::ULessThan, &[number, count]);
        let cut = last.map(|last| self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last]));
        Fits { ok, index: Some(number), is_hoisted: false, counted: Some((index, count)), cut }
    }

    /// Whether an access fits, found out here, and what its record says of where it is.
    pub(crate) fn fits(&mut self, path: &Path, state: u32, least: u64) -> (u32, Option<u32>) {
        let uint = self.cx.ids.uint;
        if let [term] = path.terms[..] {
            let count = fitting(self.cx, &mut self.out, state, least, term.stride);
            let index = path.indices[term.place];
            let number = self.as_uint(index).unwrap_or(index.0);
            return (self.test(Op::ULessThan, &[number, count]), Some(number));
        }
        let end = self.cx.number(u32::try_from(least).unwrap_or(u32::MAX));
        let mut ok = self.test(Op::UGreaterThanEqual, &[state, end]);
        let mut left = self.value(Op::ISub, uint, &[state, end]);
        let mut place = self.cx.number(path.offset as u32);
        for term in &path.terms {
            let index = path.indices[term.place];
            let number = self.as_uint(index).unwrap_or(index.0);
            let most = divided(self.cx, &mut self.out, left, term.stride);
            let is_in = self.test(Op::ULessThanEqual, &[number, most]);
            ok = self.test(Op::LogicalAnd, &[ok, is_in]);
            let stride = self.cx.number(term.stride as u32);
            let bytes = self.value(Op::IMul, uint, &[number, stride]);
            left = self.value(Op::ISub, uint, &[left, bytes]);
            place = self.value(Op::IAdd, uint, &[place, bytes]);
        }
        (ok, Some(place).filter(|_| !path.terms.is_empty()))
    }

    pub(crate) fn hoist(
        &mut self,
        key: Hoisted,
        make: impl FnOnce(&mut crate::context::Context<'_>, &mut Vec<u32>) -> u32,
    ) -> u32 {
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let id = make(self.cx, &mut self.head);
        self.hoisted.insert(key, id);
        id
    }
}

struct Fits {
    ok: u32,
    index: Option<u32>,
    is_hoisted: bool,
    /// One index, and how many elements there are.
    counted: Option<(Id, u32)>,
    /// The index, or the last one if that is less.
    cut: Option<u32>,
}

pub(crate) fn counted(path: &Path) -> Counted {
    match path.terms[..] {
        [] => Counted::Constant { offset: path.offset },
        [term] => Counted::Elements { offset: path.offset, stride: term.stride },
        _ => Counted::Bytes,
    }
}

/// How many elements fit into `state` bytes, where the first one ends at `least`.
pub(crate) fn fitting(
    cx: &mut crate::context::Context<'_>,
    code: &mut Vec<u32>,
    state: u32,
    least: u64,
    stride: u64,
) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let (zero, one) = (cx.number(0), cx.number(1));
    let Ok(least) = u32::try_from(least) else { return zero };
    let (least, less) = (cx.number(least), cx.number(least.wrapping_neg()));
    let is_enough = cx.value(code, Op::UGreaterThanEqual, boolean, &[state, least]);
    let left = cx.value(code, Op::IAdd, uint, &[state, less]);
    let more = divided(cx, code, left, stride);
    let count = cx.value(code, Op::IAdd, uint, &[more, one]);
    cx.value(code, Op::Select, uint, &[is_enough, count, zero])
}

/// A number divided by a constant. What lies no bytes apart fits as often as one likes.
pub(crate) fn divided(cx: &mut crate::context::Context<'_>, code: &mut Vec<u32>, number: u32, by: u64) -> u32 {
    let uint = cx.ids.uint;
    match by {
        0 => cx.number(u32::MAX - 1),
        1 => number,
        by if by.is_power_of_two() && by < 1 << 32 => {
            let shift = cx.number(by.trailing_zeros());
            cx.value(code, Op::ShiftRightLogical, uint, &[number, shift])
        }
        by => {
            let by = cx.number(u32::try_from(by).unwrap_or(u32::MAX));
            cx.value(code, Op::UDiv, uint, &[number, by])
        }
    }
}
