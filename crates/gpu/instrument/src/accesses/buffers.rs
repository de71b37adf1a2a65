//! Checks of descriptors: the index into an array of descriptors, and the bytes of a buffer.
//!
//! Bytes are counted from the end. An access of `size` bytes at `offset + index * stride` fits if `index < (bound -
//! offset - size) / stride + 1`. If the buffer is the same for all invocations, the right side is computed at the
//! beginning of the function, and no product can wrap around for any index. With several indices, the rest is divided
//! again after each.
//!
//! If the host promises that one element fits, the load uses the smaller of the index and the last one that fits: it
//! was in bounds if the two are equal.

use std::num::NonZeroU32;

use lavascope_spirv::{Id, InstructionIndex};
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op};

use crate::analysis::access_path::AccessPath;
use crate::checks::check_cache::{AccessKey, CachedCheck};
use crate::rewrite::context::emit_value;
use crate::rewrite::function::{FunctionRewriter, Hoisted};
use crate::{Check, CheckDecision, CheckSite, IndexUnit, ShaderTable, UncheckedReason};

/// The pointer of an access after its check.
#[derive(Clone, Copy)]
pub(crate) struct GuardedPointer {
    /// The condition under which the access is in bounds; none if it always is.
    pub(crate) ok: Option<u32>,
    pub(crate) pointer: u32,
}

/// An element of an array of descriptors that is chosen at run time.
#[derive(Clone, Copy)]
pub(crate) struct ChosenDescriptor {
    pub(crate) index: u32,
    pub(crate) length: u32,
    /// The condition under which the index is in bounds; none if it always is.
    pub(crate) in_bounds: Option<u32>,
}

/// The index that an access uses instead of one that is out of bounds.
#[derive(Clone, Copy)]
pub(crate) struct FallbackIndex {
    /// The safe element of the binding.
    pub(crate) safe_element: Option<u32>,
    /// The minimum of the index and the last one that fits.
    pub(crate) clamped_index: Option<u32>,
}

/// How an access is made safe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessGuard {
    /// A selection replaces an index that is out of bounds.
    Select,
    /// A branch skips the access if it is out of bounds.
    Branch,
}

impl FunctionRewriter<'_, '_> {
    /// Checks an access to bytes of a descriptor's buffer.
    pub(crate) fn check_buffer(
        &mut self,
        at: InstructionIndex,
        pointer: Id,
        path: &AccessPath,
        guard: AccessGuard,
    ) -> GuardedPointer {
        let as_is = GuardedPointer { ok: None, pointer: pointer.0 };
        let mut site = CheckSite {
            at,
            check: Check::Buffer,
            decision: CheckDecision::Proven,
            binding: Some((path.set, path.binding)),
            element: None,
            bytes: path.size.unwrap_or(0),
            index_unit: index_unit_of(path),
        };
        let bare = site;
        let unchecked = |reason| CheckSite { decision: CheckDecision::Unchecked(reason), ..bare };
        let Some(size) = path.size else {
            self.cx.add_site(unchecked(UncheckedReason::Size));
            return as_is;
        };
        if guard == AccessGuard::Branch && !self.can_split {
            self.cx.add_site(unchecked(UncheckedReason::Loop));
            return as_is;
        }
        let min_size = path.offset.saturating_add(size);
        let Some(element) = path.element else {
            let Some(key) = self.key(path) else {
                self.cx.add_site(unchecked(UncheckedReason::Pointer));
                return as_is;
            };
            return self.check_chosen_buffer(site, pointer, path, min_size, key, guard);
        };
        site.element = Some(element);
        if let Some(max_end) = self.max_end(path, min_size).filter(|_| !self.cx.guards_by_branch()) {
            // A requirement on what is bound, which the host checks at the draw: the shader needs no check.
            self.cx.require(path.set, path.binding, Some(element), max_end);
            site.index_unit = index_unit_of(path);
            self.cx.add_site(site);
            return as_is;
        }
        let Some(key) = self.key(path) else {
            self.cx.add_site(unchecked(UncheckedReason::Pointer));
            return as_is;
        };
        self.check_known_buffer(site, pointer, path, element, min_size, key, guard)
    }

    /// Checks an access to a buffer that is the same for all invocations.
    #[expect(clippy::too_many_arguments, reason = "one call, of what was found out so far")]
    fn check_known_buffer(
        &mut self,
        site: CheckSite,
        pointer: Id,
        path: &AccessPath,
        element: u32,
        min_size: u64,
        key: AccessKey,
        guard: AccessGuard,
    ) -> GuardedPointer {
        let repeated = self.repeated(&key);
        let mut cut = None;
        let cached = match repeated {
            Some(cached) => {
                self.cx.add_site(CheckSite { decision: CheckDecision::Repeated, ..site });
                cached
            }
            None => {
                let state = self.state_word(path.set, path.binding, element);
                let fits = self.fits_known(path, state, min_size, guard);
                cut = fits.clamped_index;
                // The report function looks up the descriptor and the bound size itself, so they are not passed.
                let index = fits.index.unwrap_or(self.cx.uint_constant(0));
                let details = [Some(index), None, None];
                let is_done =
                    fits.hoistable_index.is_some_and(|(index, count)| self.check_before_loop(site, index, count));
                match fits.is_hoisted {
                    _ if is_done => {}
                    true => self.check(site, fits.ok, details, true),
                    false => self.check_new(site, fits.ok, details),
                }
                CachedCheck { block: self.block as u32, ok: fits.ok, pointer: None }
            }
        };
        if guard == AccessGuard::Select {
            // The host checks at the draw that so much is bound; else it takes the variant with branches.
            self.cx.require(path.set, path.binding, Some(element), min_size);
        }
        self.guard(
            pointer,
            path,
            key,
            (cached, repeated.is_none()),
            FallbackIndex { safe_element: None, clamped_index: cut },
            guard,
        )
    }

    /// The number of the last element that fits, if the host guarantees that one does (`Context::require`).
    fn last_fitting(&mut self, state: u32, min_size: u64, stride: u64) -> u32 {
        self.hoist(Hoisted::Last(state, min_size, stride), |cx, code| {
            let less = cx.uint_constant(u32::try_from(min_size).unwrap_or(u32::MAX).wrapping_neg());
            let left = cx.emit_result(code, Op::IAdd, cx.ids.uint, &[state, less]);
            divided(cx, code, left, stride)
        })
    }

    /// Checks an access to a buffer that an index chooses.
    fn check_chosen_buffer(
        &mut self,
        site: CheckSite,
        pointer: Id,
        path: &AccessPath,
        min_size: u64,
        key: AccessKey,
        guard: AccessGuard,
    ) -> GuardedPointer {
        let safe = self.binding_word(path.set, path.binding, 2);
        let repeated = self.repeated(&key);
        let cached = match repeated {
            Some(cached) => {
                self.cx.add_site(CheckSite { decision: CheckDecision::Repeated, ..site });
                cached
            }
            None => {
                let Some(chosen) = self.chosen(path) else {
                    self.cx
                        .add_site(CheckSite { decision: CheckDecision::Unchecked(UncheckedReason::Pointer), ..site });
                    return GuardedPointer { ok: None, pointer: pointer.0 };
                };
                let (state, is_there) = self.state_of(path, chosen, safe);
                let descriptor = CheckSite { check: Check::Descriptor, ..site };
                self.check_new(descriptor, is_there, [Some(chosen.index), Some(chosen.length), None]);
                let (fits, index) = self.fits(path, state, min_size);
                let is_missing = self.emit_bool(Op::LogicalNot, &[is_there]);
                let is_fine = self.emit_bool(Op::LogicalOr, &[is_missing, fits]);
                let index = index.unwrap_or(self.cx.uint_constant(0));
                self.check_new(site, is_fine, [Some(index), Some(chosen.index), Some(state)]);
                let ok = self.emit_bool(Op::LogicalAnd, &[is_there, fits]);
                CachedCheck { block: self.block as u32, ok, pointer: None }
            }
        };
        if guard == AccessGuard::Select {
            self.cx.require(path.set, path.binding, None, min_size);
        }
        self.guard(
            pointer,
            path,
            key,
            (cached, repeated.is_none()),
            FallbackIndex { safe_element: Some(safe), clamped_index: None },
            guard,
        )
    }

    /// Guards an access by the result of a check. Stores a new check, so that later accesses can repeat it.
    fn guard(
        &mut self,
        pointer: Id,
        path: &AccessPath,
        key: AccessKey,
        (cached, is_new): (CachedCheck, bool),
        fallback: FallbackIndex,
        guard: AccessGuard,
    ) -> GuardedPointer {
        let made = match (guard, cached.pointer) {
            (AccessGuard::Branch, non_zero) => non_zero,
            (AccessGuard::Select, Some(made)) => Some(made),
            (AccessGuard::Select, None) => {
                NonZeroU32::new(self.emit_selected_chain(pointer, path, cached.ok, fallback).unwrap_or(pointer.0))
            }
        };
        if is_new || cached.block as usize == self.block && made != cached.pointer {
            self.check_cache.buffers.insert(key, CachedCheck { pointer: made, ..cached });
        }
        let made = made.filter(|_| guard == AccessGuard::Select).map_or(pointer.0, NonZeroU32::get);
        GuardedPointer { ok: Some(cached.ok), pointer: made }
    }

    /// The check of the same access, if it is on every path to the current block.
    fn repeated(&mut self, key: &AccessKey) -> Option<CachedCheck> {
        let cached = self.check_cache.buffers.get(key).copied()?;
        let is_above = self.dominators.dominates(self.cx.module, cached.block as usize, self.block);
        if !is_above {
            self.check_cache.buffers.remove(key);
        }
        is_above.then_some(cached)
    }

    /// The properties that make two accesses equal.
    fn key(&mut self, path: &AccessPath) -> Option<AccessKey> {
        let mut values: SmallVec<[u32; 4]> = SmallVec::new();
        let globals = self.cx.module.globals().end;
        for index in &path.indices {
            if self.cx.module.definition_index(*index).is_none_or(|it| it.0 >= globals) {
                values.push(self.numbering.number_of(*index));
            }
        }
        path.has_integer_indices.then(|| self.check_cache.access_key(path.number, values))
    }

    /// Writes a pointer that equals `pointer` if `ok` holds, and else leads to the fallback index.
    pub(crate) fn emit_selected_chain(
        &mut self,
        pointer: Id,
        path: &AccessPath,
        ok: u32,
        fallback: FallbackIndex,
    ) -> Option<u32> {
        let FallbackIndex { safe_element: safe, clamped_index: cut } = fallback;
        let is_uniform = !self.is_non_uniform(pointer) && !path.indices.iter().any(|it| self.is_non_uniform(*it));
        let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[path.variable.0]);
        for (place, index) in path.indices.iter().enumerate() {
            let is_term = path.terms.iter().any(|it| it.position == place);
            operands.push(match (safe.filter(|_| place < path.descriptor_depth), is_term) {
                (Some(safe), _) => {
                    let safe = self.array_index_at(path, place, safe)?;
                    self.select_index(*index, ok, Some(safe), is_uniform)?
                }
                (None, true) => match cut {
                    Some(cut) => cut,
                    None => self.select_index(*index, ok, None, true)?,
                },
                (None, false) => index.0,
            });
        }
        let ty = self.cx.types.of_value(pointer)?;
        Some(self.decorated_chain(pointer, ty.0, &operands, is_uniform))
    }

    /// The pointer of a path into arrays of descriptors with known lengths: no index is behind the last element.
    pub(crate) fn emit_limited_chain(&mut self, pointer: Id, path: &AccessPath) -> Option<u32> {
        let is_uniform = !self.is_non_uniform(pointer) && !path.indices.iter().any(|it| self.is_non_uniform(*it));
        let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[path.variable.0]);
        for (place, index) in path.indices.iter().enumerate() {
            operands.push(if place < path.descriptor_depth { self.limited_index(path, place)? } else { index.0 });
        }
        let ty = self.cx.types.of_value(pointer)?;
        Some(self.decorated_chain(pointer, ty.0, &operands, is_uniform))
    }

    /// An index into an array of descriptors, or the last one if that is less.
    fn limited_index(&mut self, path: &AccessPath, place: usize) -> Option<u32> {
        let index = path.indices[place];
        let length = self.cx.types.literal(self.cx.types.array(path.arrays[place])?.1?)?;
        let last = u32::try_from(length.checked_sub(1)?).ok()?;
        if last == 0 {
            return Some(self.cx.uint_constant(0));
        }
        let is_sure = self.cx.bounds.upper_bound(&self.cx.types, index).is_some_and(|most| most < length);
        if is_sure {
            return Some(index.0);
        }
        let (number, last) = (self.as_uint(index)?, self.cx.uint_constant(last));
        let limited = self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last]);
        if self.is_non_uniform(index) {
            self.cx.editor.decorate(Id(limited), spirv::Decoration::NonUniform, &[]);
        }
        Some(limited)
    }

    /// Writes an access chain, and decorates it as non-uniform like the one that it replaces.
    fn decorated_chain(&mut self, pointer: Id, ty: u32, operands: &[u32], is_uniform: bool) -> u32 {
        let id = self.chain(ty, operands);
        let has_decoration = id == pointer.0 && self.is_non_uniform(pointer);
        if !is_uniform && !has_decoration {
            self.cx.editor.decorate(Id(id), spirv::Decoration::NonUniform, &[]);
        }
        id
    }

    /// A chain, with the id of the removed one, if there is one.
    pub(crate) fn chain(&mut self, ty: u32, operands: &[u32]) -> u32 {
        let id = match self.reusable_chain_id.take() {
            Some(id) => id,
            None => self.cx.fresh(),
        };
        emit_value(&mut self.out, Op::AccessChain, ty, id, operands);
        id
    }

    /// The index at one place of an array of arrays, for an element of the whole.
    fn array_index_at(&mut self, path: &AccessPath, place: usize, element: u32) -> Option<u32> {
        let uint = self.cx.ids.uint;
        let mut part = element;
        for inner in (place + 1..path.descriptor_depth).rev() {
            let length = self.length_of(path, inner)?;
            part = self.emit_result(Op::UDiv, uint, &[part, length]);
        }
        if place > 0 {
            let length = self.length_of(path, place)?;
            part = self.emit_result(Op::UMod, uint, &[part, length]);
        }
        Some(part)
    }

    fn length_of(&mut self, path: &AccessPath, place: usize) -> Option<u32> {
        let length = self.cx.types.array(path.arrays[place])?.1?;
        match self.cx.types.literal(length) {
            Some(known) => Some(self.cx.uint_constant(u32::try_from(known).ok().filter(|it| *it > 0)?)),
            None => self.as_uint(length),
        }
    }

    /// The element, as an expression.
    pub(crate) fn chosen(&mut self, path: &AccessPath) -> Option<ChosenDescriptor> {
        if path.descriptor_depth == 0 || path.descriptor_depth < path.arrays.len() {
            return None;
        }
        let uint = self.cx.ids.uint;
        let mut all: Option<ChosenDescriptor> = None;
        for place in 0..path.descriptor_depth {
            let index = path.indices[place];
            let length = self.cx.types.array(path.arrays[place])?.1;
            let known = length.and_then(|it| self.cx.types.literal(it));
            let is_sure =
                self.cx.bounds.upper_bound(&self.cx.types, index).zip(known).is_some_and(|(most, it)| most < it);
            let number = self.as_uint(index)?;
            let length = match (known, length) {
                (Some(known), _) => self.cx.uint_constant(u32::try_from(known).ok()?),
                (None, Some(length)) => self.as_uint(length)?,
                (None, None) => self.binding_word(path.set, path.binding, 0),
            };
            let in_bounds = if is_sure { None } else { Some(self.emit_bool(Op::ULessThan, &[number, length])) };
            all = Some(match all {
                None => ChosenDescriptor { index: number, length, in_bounds },
                Some(before) => {
                    let row = self.emit_result(Op::IMul, uint, &[before.index, length]);
                    ChosenDescriptor {
                        index: self.emit_result(Op::IAdd, uint, &[row, number]),
                        length: self.emit_result(Op::IMul, uint, &[before.length, length]),
                        in_bounds: self.emit_and(before.in_bounds, in_bounds),
                    }
                }
            });
        }
        all
    }

    /// The size that is bound to a chosen element, and whether the element exists and is written.
    pub(crate) fn state_of(&mut self, path: &AccessPath, chosen: ChosenDescriptor, safe: u32) -> (u32, u32) {
        let uint = self.cx.ids.uint;
        let first = self.binding_word(path.set, path.binding, 1);
        let element = match chosen.in_bounds {
            Some(ok) => self.emit_result(Op::Select, uint, &[ok, chosen.index, safe]),
            None => chosen.index,
        };
        let table = self.table(ShaderTable::Descriptors);
        let place = self.emit_result(Op::IAdd, uint, &[first, element]);
        let state = self.cx.load_word(&mut self.out, table, place);
        let zero = self.cx.uint_constant(0);
        let is_written = self.emit_bool(Op::INotEqual, &[state, zero]);
        let is_there = match chosen.in_bounds {
            Some(ok) => self.emit_bool(Op::LogicalAnd, &[ok, is_written]),
            None => is_written,
        };
        (state, is_there)
    }

    /// The last byte that may be accessed plus one, where that is known and inside of what the shader declares.
    fn max_end(&self, path: &AccessPath, min_size: u64) -> Option<u64> {
        if path.terms.is_empty() {
            return Some(min_size);
        }
        let mut most = min_size;
        for term in &path.terms {
            let index = self.cx.bounds.upper_bound(&self.cx.types, path.indices[term.position])?;
            most = most.checked_add(index.checked_mul(term.stride)?)?;
        }
        path.block_size.filter(|it| most <= *it && !path.indexes_runtime_array).map(|_| most)
    }

    /// Whether an access fits into the buffer of a known element, whose size is loaded at the beginning of the
    /// function.
    fn fits_known(&mut self, path: &AccessPath, state: u32, min_size: u64, guard: AccessGuard) -> Fits {
        if path.terms.len() > 1 {
            let (ok, index) = self.fits(path, state, min_size);
            return Fits { ok, index, is_hoisted: false, hoistable_index: None, clamped_index: None };
        }
        let Some(term) = path.terms.first() else {
            let key = Hoisted::Fits(state, min_size, 0, 0);
            let ok = self.hoist(key, |cx, code| {
                let min_size = cx.uint_constant(u32::try_from(min_size).unwrap_or(u32::MAX));
                cx.emit_result(code, Op::UGreaterThanEqual, cx.ids.boolean, &[state, min_size])
            });
            return Fits { ok, index: None, is_hoisted: true, hoistable_index: None, clamped_index: None };
        };
        let stride = term.stride;
        let index = path.indices[term.position];
        let is_known = self.cx.types.literal(index).is_some();
        let last = (guard == AccessGuard::Select && !is_known).then(|| self.last_fitting(state, min_size, stride));
        if let Some(last) = last.filter(|_| self.loops.is_empty()) {
            // The host guarantees that one element fits, so an index that is not clamped is in bounds.
            let number = self.as_uint(index).unwrap_or(index.0);
            let cut = self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last]);
            let ok = self.emit_bool(Op::IEqual, &[number, cut]);
            return Fits {
                ok,
                index: Some(number),
                is_hoisted: false,
                hoistable_index: None,
                clamped_index: Some(cut),
            };
        }
        let count = self
            .hoist(Hoisted::Fitting(state, min_size, stride), |cx, code| fitting(cx, code, state, min_size, stride));
        if let Some(known) = self.cx.types.literal(index) {
            let known = u32::try_from(known).unwrap_or(u32::MAX);
            let ok = self.hoist(Hoisted::Fits(state, min_size, stride, known), |cx, code| {
                let known = cx.uint_constant(known);
                cx.emit_result(code, Op::ULessThan, cx.ids.boolean, &[known, count])
            });
            let index = self.cx.uint_constant(known);
            return Fits { ok, index: Some(index), is_hoisted: true, hoistable_index: None, clamped_index: None };
        }
        let number = self.as_uint(index).unwrap_or(index.0);
        let ok = self.emit_bool(Op::ULessThan, &[number, count]);
        let cut = last.map(|last| self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last]));
        Fits { ok, index: Some(number), is_hoisted: false, hoistable_index: Some((index, count)), clamped_index: cut }
    }

    /// The result of a check, and the details for its record.
    pub(crate) fn fits(&mut self, path: &AccessPath, state: u32, min_size: u64) -> (u32, Option<u32>) {
        let uint = self.cx.ids.uint;
        if let [term] = path.terms[..] {
            let count = fitting(self.cx, &mut self.out, state, min_size, term.stride);
            let index = path.indices[term.position];
            let number = self.as_uint(index).unwrap_or(index.0);
            return (self.emit_bool(Op::ULessThan, &[number, count]), Some(number));
        }
        let end = self.cx.uint_constant(u32::try_from(min_size).unwrap_or(u32::MAX));
        let mut ok = self.emit_bool(Op::UGreaterThanEqual, &[state, end]);
        let mut left = self.emit_result(Op::ISub, uint, &[state, end]);
        let mut place = self.cx.uint_constant(path.offset as u32);
        for term in &path.terms {
            let index = path.indices[term.position];
            let number = self.as_uint(index).unwrap_or(index.0);
            let most = divided(self.cx, &mut self.out, left, term.stride);
            let is_in = self.emit_bool(Op::ULessThanEqual, &[number, most]);
            ok = self.emit_bool(Op::LogicalAnd, &[ok, is_in]);
            let stride = self.cx.uint_constant(term.stride as u32);
            let bytes = self.emit_result(Op::IMul, uint, &[number, stride]);
            left = self.emit_result(Op::ISub, uint, &[left, bytes]);
            place = self.emit_result(Op::IAdd, uint, &[place, bytes]);
        }
        (ok, Some(place).filter(|_| !path.terms.is_empty()))
    }

    pub(crate) fn hoist(
        &mut self,
        key: Hoisted,
        make: impl FnOnce(&mut crate::rewrite::context::Context<'_>, &mut Vec<u32>) -> u32,
    ) -> u32 {
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let id = make(self.cx, &mut self.entry_code);
        self.hoisted.insert(key, id);
        id
    }
}

struct Fits {
    ok: u32,
    index: Option<u32>,
    is_hoisted: bool,
    /// One index, and how many elements there are.
    hoistable_index: Option<(Id, u32)>,
    /// The index, or the last one if that is less.
    clamped_index: Option<u32>,
}

pub(crate) fn index_unit_of(path: &AccessPath) -> IndexUnit {
    match path.terms[..] {
        [] => IndexUnit::Constant { offset: path.offset },
        [term] => IndexUnit::Elements { offset: path.offset, stride: term.stride, is_signed: false },
        _ => IndexUnit::Bytes,
    }
}

/// How many elements fit into `state` bytes, where the first one ends at `min_size`.
pub(crate) fn fitting(
    cx: &mut crate::rewrite::context::Context<'_>,
    code: &mut Vec<u32>,
    state: u32,
    min_size: u64,
    stride: u64,
) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let (zero, one) = (cx.uint_constant(0), cx.uint_constant(1));
    let Ok(min_size) = u32::try_from(min_size) else { return zero };
    let (min_size, less) = (cx.uint_constant(min_size), cx.uint_constant(min_size.wrapping_neg()));
    let is_enough = cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[state, min_size]);
    let left = cx.emit_result(code, Op::IAdd, uint, &[state, less]);
    let more = divided(cx, code, left, stride);
    let count = cx.emit_result(code, Op::IAdd, uint, &[more, one]);
    cx.emit_result(code, Op::Select, uint, &[is_enough, count, zero])
}

/// A number divided by a constant. What lies no bytes apart fits as often as one likes.
pub(crate) fn divided(cx: &mut crate::rewrite::context::Context<'_>, code: &mut Vec<u32>, number: u32, by: u64) -> u32 {
    let uint = cx.ids.uint;
    match by {
        0 => cx.uint_constant(u32::MAX - 1),
        1 => number,
        by if by.is_power_of_two() && by < 1 << 32 => {
            let shift = cx.uint_constant(by.trailing_zeros());
            cx.emit_result(code, Op::ShiftRightLogical, uint, &[number, shift])
        }
        by => {
            let by = cx.uint_constant(u32::try_from(by).unwrap_or(u32::MAX));
            cx.emit_result(code, Op::UDiv, uint, &[number, by])
        }
    }
}
