//! Checks of device addresses: bytes at an address must be inside of the buffer that the pointer began in.
//!
//! Once for each base pointer its buffer is looked up: how many bytes there are from it to the end, and before it.
//! Accesses with one index are then checked as those of a buffer that begins there. Addresses are pairs of words, since
//! not every device has integers of 64 bits.

use std::num::NonZeroU32;

use lavascope_spirv::{At, Id};
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op};

use crate::{
    Check, Counted, Reason, Site, Table, Verdict,
    body::{Body, Hoisted},
    buffers::{Guarded, divided},
    find::SCRATCH,
    known::Done,
    path::Path,
    types::Matrix,
};

/// Where a base pointer is in its buffer.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// The two words of the address.
    low: u32,
    high: u32,
    /// Bytes up to the end of the buffer, and bytes before: none of either, where there is no buffer.
    left: u32,
    before: u32,
}

/// What is found out about an access.
struct Found {
    ok: u32,
    details: [Option<u32>; 3],
    counted: Counted,
}

impl Body<'_, '_> {
    /// Checks an access at a device address. A wrong one goes to scratch memory, or to the first element if it reads.
    pub(crate) fn address(&mut self, at: At, pointer: Id, base: Id, is_written: bool) -> Guarded {
        let as_is = Guarded { ok: None, pointer: pointer.0 };
        let path = self.cx.paths.behind_address(&self.cx.types, pointer, base);
        let size = path.as_ref().and_then(|it| it.size).or_else(|| {
            let (_, ty) = self.cx.types.pointer_value(pointer)?;
            self.cx.types.size(ty, Matrix::default())
        });
        let site = Site {
            at,
            check: Check::Address,
            verdict: Verdict::Unchecked(Reason::Size),
            binding: None,
            element: None,
            bytes: size.unwrap_or(0),
            counted: Counted::Constant { offset: 0 },
        };
        let Some(size) = size.filter(|it| *it <= 1 << 30) else {
            self.cx.note(site);
            return as_is;
        };
        if let Some(done) = self.known_address((self.numbering.of(pointer), size, is_written)) {
            self.cx.note(Site { verdict: Verdict::Repeated, ..site });
            return Guarded { ok: Some(done.ok), pointer: done.pointer.map_or(pointer.0, NonZeroU32::get) };
        }
        self.cx.scratch_bytes = self.cx.scratch_bytes.max(size);
        let simple = path.filter(|it| self.is_simple(it, size));
        let other = self.known_address((self.numbering.of(pointer), size, !is_written));
        let found = match (&simple, other) {
            (Some(path), _) => self.simple_address(base, path, size),
            (None, _) => self.any_address(pointer, size),
        };
        match other {
            Some(_) => self.cx.note(Site { verdict: Verdict::Repeated, ..site }),
            None => self.check(Site { counted: found.counted, ..site }, found.ok, found.details, false),
        }
        let made = match &simple {
            Some(path) => self.redirected(pointer, base, path, size, found.ok, is_written),
            None => self.scratch_unless(pointer, found.details[1].zip(found.details[2]), found.ok),
        };
        let made = made.unwrap_or(pointer.0);
        let done = Done { block: self.block as u32, ok: found.ok, pointer: NonZeroU32::new(made) };
        self.known.addresses.insert((self.numbering.of(pointer), size, is_written), done);
        Guarded { ok: Some(found.ok), pointer: made }
    }

    fn known_address(&mut self, key: (u32, u64, bool)) -> Option<Done> {
        let done = self.known.addresses.get(&key).copied()?;
        self.flow.dominates(self.cx.module, done.block as usize, self.block).then_some(done)
    }

    /// Whether an access has at most one index, of 32 bits, and small numbers.
    fn is_simple(&self, path: &Path, size: u64) -> bool {
        let is_small = path.offset.checked_add(size).is_some_and(|it| it < 1 << 30);
        let is_plain = |id: Id| {
            let ty = self.cx.types.of_value(id).and_then(|it| self.cx.types.integer(it));
            ty.is_some_and(|it| it.0 == 32)
        };
        match path.terms[..] {
            [] => is_small,
            [term] => is_small && (1..1 << 30).contains(&term.stride) && is_plain(path.indices[term.place]),
            _ => false,
        }
    }

    /// An access relative to its base.
    fn simple_address(&mut self, base: Id, path: &Path, size: u64) -> Found {
        let room = self.room(base);
        let least = path.offset + size;
        let (low, high) = (Some(room.low), Some(room.high));
        let [term] = path.terms[..] else {
            let ok = self.is_enough(room, least);
            let details = [Some(self.cx.number(0)), low, high];
            return Found { ok, details, counted: Counted::Constant { offset: path.offset } };
        };
        let uint = self.cx.ids.uint;
        let index = path.indices[term.place];
        let number = self.as_uint(index).unwrap_or(index.0);
        let count = self.count_of(room, least, term.stride);
        let ok = if self.is_signed(index) {
            // An index may lead backward, as far as the buffer goes.
            self.cx.goes_back = true;
            let before = self.sum((2, room.before, path.offset, term.stride), |body| {
                let offset = body.cx.number(path.offset as u32);
                let bytes = body.value(Op::IAdd, uint, &[room.before, offset]);
                divided(body.cx, &mut body.out, bytes, term.stride)
            });
            let all = self.sum((5, count, u64::from(before), 0), |body| {
                // The sum must not wrap around.
                let most = body.cx.number(0xbfff_ffff);
                let is_less = body.test(Op::ULessThan, &[count, most]);
                let count = body.value(Op::Select, uint, &[is_less, count, most]);
                body.value(Op::IAdd, uint, &[count, before])
            });
            let moved = self.value(Op::IAdd, uint, &[number, before]);
            self.test(Op::ULessThan, &[moved, all])
        } else {
            self.test(Op::ULessThan, &[number, count])
        };
        let counted = Counted::Elements { offset: path.offset, stride: term.stride };
        Found { ok, details: [Some(number), low, high], counted }
    }

    fn is_signed(&self, index: Id) -> bool {
        let ty = self.cx.types.of_value(index).and_then(|it| self.cx.types.integer(it));
        ty.is_some_and(|it| it.1)
    }

    /// Whether bytes up to here are behind a base.
    fn is_enough(&mut self, room: Room, least: u64) -> u32 {
        self.sum((0, room.left, least, 0), |body| {
            let least = body.cx.number(least as u32);
            body.test(Op::UGreaterThanEqual, &[room.left, least])
        })
    }

    /// The last element that fits behind a base, if one does.
    fn any_last(&mut self, room: Room, least: u64, stride: u64) -> u32 {
        self.sum((7, room.left, least, stride), |body| {
            let less = body.cx.number((least as u32).wrapping_neg());
            let more = body.value(Op::IAdd, body.cx.ids.uint, &[room.left, less]);
            let last = divided(body.cx, &mut body.out, more, stride);
            // Of more than 4 GiB nobody knows how many: all of them.
            let [none, most] = [u32::MAX, u32::MAX - 1].map(|it| body.cx.number(it));
            let is_huge = body.test(Op::IEqual, &[room.left, none]);
            body.value(Op::Select, body.cx.ids.uint, &[is_huge, most, last])
        })
    }

    /// How many elements fit behind a base.
    fn count_of(&mut self, room: Room, least: u64, stride: u64) -> u32 {
        let (last, is_enough) = (self.any_last(room, least, stride), self.is_enough(room, least));
        self.sum((1, room.left, least, stride), |body| {
            let [zero, one] = [0, 1].map(|it| body.cx.number(it));
            let count = body.value(Op::IAdd, body.cx.ids.uint, &[last, one]);
            body.value(Op::Select, body.cx.ids.uint, &[is_enough, count, zero])
        })
    }

    /// The last element that fits behind a base; the first one, if none does.
    fn last_of(&mut self, room: Room, least: u64, stride: u64) -> u32 {
        let (last, is_enough) = (self.any_last(room, least, stride), self.is_enough(room, least));
        self.sum((6, room.left, least, stride), |body| {
            let zero = body.cx.number(0);
            body.value(Op::Select, body.cx.ids.uint, &[is_enough, last, zero])
        })
    }

    /// Any other access: its own address is looked up.
    fn any_address(&mut self, pointer: Id, size: u64) -> Found {
        self.give_chain_back();
        let (low, high, left, _) = self.look_up(pointer);
        let size = self.cx.number(size as u32);
        let ok = self.test(Op::UGreaterThanEqual, &[left, size]);
        let details = [Some(self.cx.number(0)), Some(low), Some(high)];
        Found { ok, details, counted: Counted::Constant { offset: 0 } }
    }

    /// The pointer of a simple access that may be used.
    fn redirected(&mut self, pointer: Id, base: Id, path: &Path, size: u64, ok: u32, is_written: bool) -> Option<u32> {
        let room = self.room(base);
        let halves = Some((room.low, room.high));
        let start = match path.terms[..] {
            [] => {
                self.sum((3, ok, 0, u64::from(base.0)), |body| body.scratch_unless(base, halves, ok).unwrap_or(base.0))
            }
            // The first element is there, or there is no buffer at all.
            [term] if !is_written && !self.is_signed(path.indices[term.place]) => {
                let is_any = self.is_enough(room, path.offset + size);
                self.sum((4, is_any, 0, u64::from(base.0)), |body| {
                    body.scratch_unless(base, halves, is_any).unwrap_or(base.0)
                })
            }
            _ => self.scratch_unless(base, halves, ok)?,
        };
        self.cx.scratch_bytes = self.cx.scratch_bytes.max(path.offset + size);
        if path.indices.is_empty() {
            return Some(start);
        }
        let mut operands: SmallVec<[u32; 8]> = SmallVec::from_slice(&[start]);
        for (place, index) in path.indices.iter().enumerate() {
            let is_term = path.terms.iter().any(|it| it.place == place);
            let can_cut = !is_written && !self.is_signed(*index);
            operands.push(match is_term {
                true if can_cut => {
                    let number = self.as_uint(*index)?;
                    let last = self.last_of(room, path.offset + size, path.terms[0].stride);
                    self.cx.glsl(&mut self.out, GlslStd450Op::UMin, &[number, last])
                }
                true => self.clamp(*index, ok, None, true)?,
                false => index.0,
            });
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
        let low = self.value(Op::Select, uint, &[condition, low, scratch[0]]);
        let high = self.value(Op::Select, uint, &[condition, high, scratch[1]]);
        let address = self.value(Op::CompositeConstruct, pair, &[low, high]);
        Some(self.value(Op::Bitcast, ty.0, &[address]))
    }

    /// Where a base pointer is, looked up once.
    fn room(&mut self, base: Id) -> Room {
        let key = self.numbering.of(base);
        if let Some((block, room)) = self.known.rooms.get(&key).copied()
            && self.flow.dominates(self.cx.module, block, self.block)
        {
            return room;
        }
        let (room, block) = match self.place_before_loop(base) {
            Some((place, block)) => {
                let (mut code, mut room) = (Vec::new(), None);
                self.elsewhere(&mut code, |body| room = Some(body.look_up(base)));
                self.insertions.push((place, code));
                (room, block)
            }
            None => (None, self.block),
        };
        let (low, high, left, before) = room.unwrap_or_else(|| self.look_up(base));
        let room = Room { low, high, left, before };
        self.known.rooms.insert(key, (block, room));
        room
    }

    /// Where an address is made that is used in a loop and does not come out of it: place in the words, and block.
    fn place_before_loop(&mut self, base: Id) -> Option<(usize, usize)> {
        let place = self.made_at.get(&base.0).copied()?;
        let block = self.cx.module.block_around(self.cx.module.place_of(base)?)?;
        let (module, heads) = (self.cx.module, std::mem::take(&mut self.loop_heads));
        let is_in = heads.iter().any(|(head, after)| {
            self.flow.dominates(module, *head, self.block)
                && !self.flow.dominates(module, *head, block)
                && !self.flow.dominates(module, *after, self.block)
        });
        self.loop_heads = heads;
        is_in.then_some((place, block))
    }

    /// The words of an address, the bytes from it to the end of its buffer, and those before it.
    fn look_up(&mut self, pointer: Id) -> (u32, u32, u32, u32) {
        self.cx.tables_used[Table::Addresses as usize] = true;
        let (uint, pair, find) = (self.cx.ids.uint, self.cx.ids.uint_pair, self.cx.ids.find);
        let address = self.value(Op::Bitcast, pair, &[pointer.0]);
        let low = self.value(Op::CompositeExtract, uint, &[address, 0]);
        let high = self.value(Op::CompositeExtract, uint, &[address, 1]);
        let mut operands: SmallVec<[u32; 4]> = SmallVec::from_slice(&[find]);
        operands.extend(self.cx.table_parameter().map(|_| self.table(Table::Addresses)));
        operands.extend([low, high]);
        let found = self.value(Op::FunctionCall, pair, &operands);
        let left = self.value(Op::CompositeExtract, uint, &[found, 0]);
        let before = self.value(Op::CompositeExtract, uint, &[found, 1]);
        (low, high, left, before)
    }

    /// A value that is made once, where that is on every way to here.
    fn sum(&mut self, key: (u8, u32, u64, u64), make: impl FnOnce(&mut Self) -> u32) -> u32 {
        if let Some((block, id)) = self.known.sums.get(&key).copied()
            && self.flow.dominates(self.cx.module, block, self.block)
        {
            return id;
        }
        let id = make(self);
        self.known.sums.insert(key, (self.block, id));
        id
    }

    /// Half of the address of the scratch memory.
    fn scratch(&mut self, half: u8) -> u32 {
        let key = Hoisted::Scratch(half);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let table = self.table(Table::Addresses);
        let [low, high, ..] = self.cx.address_head(&mut self.head, table, SCRATCH);
        self.hoisted.insert(Hoisted::Scratch(0), low);
        self.hoisted.insert(Hoisted::Scratch(1), high);
        if half == 0 { low } else { high }
    }
}
