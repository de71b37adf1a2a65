//! Checks of device addresses: bytes at an address must be inside of the buffer that the base pointer is in.
//!
//! The buffer of each base pointer is looked up once: how many bytes there are from it to the end, and how many before
//! it. A pointer that a loop uses and does not make is looked up where it is made. An access with one index is then
//! checked like one of a buffer that begins there; any other access looks up its own address. Addresses are pairs of
//! words, since not every device has 64-bit integers.
//!
//! The base pointer may be anywhere: an access that is not in the buffer of its base is checked by its own address
//! (`elsewhere`). A buffer of more than 4 GiB counts as if it had no end.

use crate::checks::check_cache::{AddressKey, DerivedValue};
use std::num::NonZeroU32;

use lavascope_spirv::{Id, InstructionIndex};
use smallvec::SmallVec;
use spirv::Op;

use crate::accesses::buffers::{GuardedPointer, divided};
use crate::analysis::access_path::AccessPath;
use crate::analysis::types::MatrixLayout;
use crate::checks::check_cache::CachedCheck;
use crate::interface::address_table::SCRATCH;
use crate::rewrite::function::{FunctionRewriter, Hoisted};
use crate::{Check, CheckDecision, CheckSite, IndexUnit, ShaderTable, UncheckedReason};

/// Where a base pointer is in its buffer.
#[derive(Clone, Copy)]
pub(crate) struct AddressBounds {
    /// The two words of the address.
    pub(crate) low: u32,
    pub(crate) high: u32,
    /// Bytes up to the end of the buffer, and bytes before: none of either, where there is no buffer.
    remaining: u32,
    preceding: u32,
    /// Whether it is null because a load of it was wrong, if that can be.
    is_excused: Option<u32>,
}

/// The values that the check of an access computes.
struct AddressCheck {
    ok: u32,
    /// Whether a fault has a cause that was reported.
    is_excused: Option<u32>,
    details: [Option<u32>; 3],
    index_unit: IndexUnit,
}

impl FunctionRewriter<'_, '_> {
    /// Checks an access at a device address. A wrong one goes to scratch memory.
    pub(crate) fn check_address(
        &mut self,
        at: InstructionIndex,
        pointer: Id,
        base: Id,
        is_written: bool,
    ) -> GuardedPointer {
        let as_is = GuardedPointer { ok: None, pointer: pointer.0 };
        let path = self.cx.paths.path_from_address(&self.cx.types, pointer, base);
        let size = path.as_ref().and_then(|it| it.size).or_else(|| {
            let (_, ty) = self.cx.types.pointer_value(pointer)?;
            self.cx.types.size(ty, MatrixLayout::default())
        });
        let site = CheckSite {
            at,
            check: Check::Address,
            decision: CheckDecision::Unchecked(UncheckedReason::Size),
            binding: None,
            element: None,
            bytes: size.unwrap_or(0),
            index_unit: IndexUnit::Constant { offset: 0 },
        };
        let Some(size) = size.filter(|it| *it <= 1 << 30) else {
            self.cx.add_site(site);
            return as_is;
        };
        if let Some(done) =
            self.known_address(AddressKey { pointer: self.numbering.number_of(pointer), size, is_written })
        {
            self.cx.add_site(CheckSite { decision: CheckDecision::Repeated, ..site });
            return GuardedPointer { ok: Some(done.ok), pointer: done.pointer.map_or(pointer.0, NonZeroU32::get) };
        }
        self.cx.scratch_bytes = self.cx.scratch_bytes.max(size);
        let simple = path.filter(|it| self.is_simple(it, size));
        let other = self.known_address(AddressKey {
            pointer: self.numbering.number_of(pointer),
            size,
            is_written: !is_written,
        });
        let found = match (&simple, other) {
            (Some(path), _) => self.check_relative_address(base, path, size),
            (None, _) => self.check_whole_address(pointer, size),
        };
        match other {
            Some(_) => self.cx.add_site(CheckSite { decision: CheckDecision::Repeated, ..site }),
            None => {
                let ok = match found.is_excused {
                    Some(excused) => self.emit_bool(Op::LogicalOr, &[found.ok, excused]),
                    None => found.ok,
                };
                self.check(CheckSite { index_unit: found.index_unit, ..site }, ok, found.details, false);
            }
        }
        let made = match &simple {
            Some(path) => self.redirected(pointer, base, path, size, found.ok),
            None => self.scratch_unless(pointer, found.details[1].zip(found.details[2]), found.ok),
        };
        let made = made.unwrap_or(pointer.0);
        let done = CachedCheck { block: self.block as u32, ok: found.ok, pointer: NonZeroU32::new(made) };
        let key = AddressKey { pointer: self.numbering.number_of(pointer), size, is_written };
        self.check_cache.addresses.insert(key, done);
        GuardedPointer { ok: Some(found.ok), pointer: made }
    }

    fn known_address(&mut self, key: AddressKey) -> Option<CachedCheck> {
        let done = self.check_cache.addresses.get(&key).copied()?;
        self.dominators.dominates(self.cx.module, done.block as usize, self.block).then_some(done)
    }

    /// Whether an access has at most one index, of 32 bits, and small numbers.
    fn is_simple(&self, path: &AccessPath, size: u64) -> bool {
        let is_small = path.offset.checked_add(size).is_some_and(|it| it < 1 << 30);
        let is_plain = |id: Id| {
            let ty = self.cx.types.of_value(id).and_then(|it| self.cx.types.integer(it));
            ty.is_some_and(|it| it.0 == 32)
        };
        match path.terms[..] {
            [] => is_small,
            [term] => is_small && (1..1 << 30).contains(&term.stride) && is_plain(path.indices[term.position]),
            _ => false,
        }
    }

    /// An access relative to its base.
    fn check_relative_address(&mut self, base: Id, path: &AccessPath, size: u64) -> AddressCheck {
        let bounds = self.address_bounds(base);
        let least = path.offset + size;
        let (low, high) = (Some(bounds.low), Some(bounds.high));
        let [term] = path.terms[..] else {
            let ok = self.emit_has_bytes(bounds, least);
            let ok = self.check_elsewhere(ok, bounds, path, size);
            let details = [Some(self.cx.uint_constant(0)), low, high];
            let index_unit = IndexUnit::Constant { offset: path.offset };
            return AddressCheck { ok, is_excused: bounds.is_excused, details, index_unit };
        };
        let uint = self.cx.ids.uint;
        let index = path.indices[term.position];
        let number = self.as_uint(index).unwrap_or(index.0);
        let count = self.emit_address_fitting_count(bounds, least, term.stride);
        let ok = if self.is_signed(index) {
            // An index may lead backward, as far as the buffer goes.
            self.cx.needs_preceding_bytes = true;
            let before = self.cached_value(
                DerivedValue::PrecedingCount { preceding: bounds.preceding, offset: path.offset, stride: term.stride },
                |body| {
                    let offset = body.cx.uint_constant(path.offset as u32);
                    let bytes = body.emit_result(Op::IAdd, uint, &[bounds.preceding, offset]);
                    divided(body.cx, &mut body.out, bytes, term.stride)
                },
            );
            let all = self.cached_value(DerivedValue::SignedCount { count, before }, |body| {
                // The sum must not wrap around.
                let most = body.cx.uint_constant(0xbfff_ffff);
                let is_less = body.emit_bool(Op::ULessThan, &[count, most]);
                let count = body.emit_result(Op::Select, uint, &[is_less, count, most]);
                body.emit_result(Op::IAdd, uint, &[count, before])
            });
            let moved = self.emit_result(Op::IAdd, uint, &[number, before]);
            self.emit_bool(Op::ULessThan, &[moved, all])
        } else {
            self.emit_bool(Op::ULessThan, &[number, count])
        };
        let ok = self.check_elsewhere(ok, bounds, path, size);
        let index_unit =
            IndexUnit::Elements { offset: path.offset, stride: term.stride, is_signed: self.is_signed(index) };
        AddressCheck { ok, is_excused: bounds.is_excused, details: [Some(number), low, high], index_unit }
    }

    pub(crate) fn is_signed(&self, index: Id) -> bool {
        let ty = self.cx.types.of_value(index).and_then(|it| self.cx.types.integer(it));
        ty.is_some_and(|it| it.1)
    }

    /// Whether bytes up to here are behind a base.
    fn emit_has_bytes(&mut self, bounds: AddressBounds, least: u64) -> u32 {
        self.cached_value(DerivedValue::HasBytes { remaining: bounds.remaining, least }, |body| {
            let least = body.cx.uint_constant(least as u32);
            body.emit_bool(Op::UGreaterThanEqual, &[bounds.remaining, least])
        })
    }

    /// The last element that fits behind a base, if one does.
    fn emit_last_fitting(&mut self, bounds: AddressBounds, least: u64, stride: u64) -> u32 {
        self.cached_value(DerivedValue::LastFitting { remaining: bounds.remaining, least, stride }, |body| {
            let less = body.cx.uint_constant((least as u32).wrapping_neg());
            let more = body.emit_result(Op::IAdd, body.cx.ids.uint, &[bounds.remaining, less]);
            let last = divided(body.cx, &mut body.out, more, stride);
            // The size of more than 4 GiB is unknown: all bytes count.
            let [none, most] = [u32::MAX, u32::MAX - 1].map(|it| body.cx.uint_constant(it));
            let is_huge = body.emit_bool(Op::IEqual, &[bounds.remaining, none]);
            body.emit_result(Op::Select, body.cx.ids.uint, &[is_huge, most, last])
        })
    }

    /// How many elements fit behind a base.
    fn emit_address_fitting_count(&mut self, bounds: AddressBounds, least: u64, stride: u64) -> u32 {
        let (last, is_enough) = (self.emit_last_fitting(bounds, least, stride), self.emit_has_bytes(bounds, least));
        self.cached_value(DerivedValue::FittingCount { remaining: bounds.remaining, least, stride }, |body| {
            let [zero, one] = [0, 1].map(|it| body.cx.uint_constant(it));
            let count = body.emit_result(Op::IAdd, body.cx.ids.uint, &[last, one]);
            body.emit_result(Op::Select, body.cx.ids.uint, &[is_enough, count, zero])
        })
    }

    /// Any other access: its own address is looked up.
    fn check_whole_address(&mut self, pointer: Id, size: u64) -> AddressCheck {
        self.restore_chain();
        let AddressBounds { low, high, remaining, is_excused, .. } = self.look_up(pointer);
        let size = self.cx.uint_constant(size as u32);
        let ok = self.emit_bool(Op::UGreaterThanEqual, &[remaining, size]);
        let details = [Some(self.cx.uint_constant(0)), Some(low), Some(high)];
        AddressCheck { ok, is_excused, details, index_unit: IndexUnit::Constant { offset: 0 } }
    }

    /// The pointer of a simple access that may be used.
    fn redirected(&mut self, pointer: Id, base: Id, path: &AccessPath, size: u64, ok: u32) -> Option<u32> {
        let bounds = self.address_bounds(base);
        let start = self.cached_value(DerivedValue::PointerOrScratch { ok, base: base.0 }, |body| {
            body.scratch_unless(base, Some((bounds.low, bounds.high)), ok).unwrap_or(base.0)
        });
        self.cx.scratch_bytes = self.cx.scratch_bytes.max(path.offset + size);
        if path.indices.is_empty() {
            return Some(start);
        }
        let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[start]);
        for (place, index) in path.indices.iter().enumerate() {
            let is_term = path.terms.iter().any(|it| it.position == place);
            operands.push(if is_term { self.select_index(*index, ok, None, true)? } else { index.0 });
        }
        let ty = self.cx.types.of_value(pointer)?;
        Some(self.chain(ty.0, &operands))
    }

    /// A pointer where a condition holds, else scratch memory.
    fn scratch_unless(&mut self, pointer: Id, halves: Option<(u32, u32)>, condition: u32) -> Option<u32> {
        let (low, high) = halves?;
        let ty = self.cx.types.of_value(pointer)?;
        let scratch = [0, 1].map(|half| self.scratch(half));
        let (uint, pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let low = self.emit_result(Op::Select, uint, &[condition, low, scratch[0]]);
        let high = self.emit_result(Op::Select, uint, &[condition, high, scratch[1]]);
        let address = self.emit_result(Op::CompositeConstruct, pair, &[low, high]);
        Some(self.emit_result(Op::Bitcast, ty.0, &[address]))
    }

    /// Where a base pointer is, looked up once.
    fn address_bounds(&mut self, base: Id) -> AddressBounds {
        let key = self.numbering.number_of(base);
        if let Some((block, bounds)) = self.check_cache.address_bounds.get(&key).copied()
            && self.dominators.dominates(self.cx.module, block, self.block)
        {
            return bounds;
        }
        let (bounds, block) = match self.place_before_loop(base) {
            Some((place, block)) => {
                let (mut code, mut bounds) = (Vec::new(), None);
                self.emit_elsewhere(&mut code, |body| bounds = Some(body.look_up(base)));
                self.insertions.push((place, code));
                (bounds, block)
            }
            None => (None, self.block),
        };
        let bounds = bounds.unwrap_or_else(|| self.look_up(base));
        self.check_cache.address_bounds.insert(key, (block, bounds));
        bounds
    }

    /// Where an address is made that is used in a loop and does not come out of it: place in the words, and block.
    fn place_before_loop(&mut self, base: Id) -> Option<(usize, usize)> {
        let place = self.address_code_offsets.get(&base.0).copied()?;
        let block = self.cx.module.block_containing(self.cx.module.definition_index(base)?)?;
        let (module, heads) = (self.cx.module, std::mem::take(&mut self.loop_heads));
        let is_in = heads.iter().any(|(head, after)| {
            self.dominators.dominates(module, *head, self.block)
                && !self.dominators.dominates(module, *head, block)
                && !self.dominators.dominates(module, *after, self.block)
        });
        self.loop_heads = heads;
        is_in.then_some((place, block))
    }

    /// The words of an address, the bytes from it to the end of its buffer, and those before it.
    fn look_up(&mut self, pointer: Id) -> AddressBounds {
        self.cx.tables_used[ShaderTable::Addresses as usize] = true;
        let (uint, pair, find) = (self.cx.ids.uint, self.cx.ids.uint_pair, self.cx.ids.find);
        let address = self.emit_result(Op::Bitcast, pair, &[pointer.0]);
        let low = self.emit_result(Op::CompositeExtract, uint, &[address, 0]);
        let high = self.emit_result(Op::CompositeExtract, uint, &[address, 1]);
        let mut operands: SmallVec<[u32; 4]> = SmallVec::from_slice(&[find]);
        operands.extend(self.cx.table_parameter().map(|_| self.table(ShaderTable::Addresses)));
        operands.extend([low, high]);
        let found = self.emit_result(Op::FunctionCall, pair, &operands);
        let remaining = self.emit_result(Op::CompositeExtract, uint, &[found, 0]);
        let preceding = self.emit_result(Op::CompositeExtract, uint, &[found, 1]);
        let is_excused = self.emit_null_of_wrong_load([low, high]);
        AddressBounds { low, high, remaining, preceding, is_excused }
    }

    /// A value that is made once, where that is on every way to here.
    pub(crate) fn cached_value(&mut self, key: DerivedValue, make: impl FnOnce(&mut Self) -> u32) -> u32 {
        if let Some((block, id)) = self.check_cache.derived_values.get(&key).copied()
            && self.dominators.dominates(self.cx.module, block, self.block)
        {
            return id;
        }
        let id = make(self);
        self.check_cache.derived_values.insert(key, (self.block, id));
        id
    }

    /// Half of the address of the scratch memory.
    fn scratch(&mut self, half: u8) -> u32 {
        let key = Hoisted::Scratch(half);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let table = self.table(ShaderTable::Addresses);
        let [low, high, ..] = self.cx.address_head(&mut self.entry_code, table, SCRATCH);
        self.hoisted.insert(Hoisted::Scratch(0), low);
        self.hoisted.insert(Hoisted::Scratch(1), high);
        if half == 0 { low } else { high }
    }
}
