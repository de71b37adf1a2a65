//! Checks of device addresses: bytes at an address must be inside of the buffer that the pointer began in.
//!
//! Without integers of 64 bits, which not every device has: addresses are pairs of words.

use lavascope_spirv::{At, Id};
use spirv::Op;

use crate::{
    Check, Counted, Reason, Site, Table, Verdict,
    body::{Body, Hoisted},
    buffers::Guarded,
    known::Done,
    types::Matrix,
};

impl Body<'_, '_> {
    /// Checks an access at a device address. A wrong one goes to scratch memory.
    pub(crate) fn address(&mut self, at: At, pointer: Id, base: Id) -> Guarded {
        let as_is = Guarded { ok: None, pointer: pointer.0 };
        let size = self.cx.types.pointer_value(pointer).and_then(|it| self.cx.types.size(it.1, Matrix::default()));
        let site = Site {
            at,
            check: Check::Address,
            verdict: Verdict::Unchecked(Reason::Size),
            binding: None,
            bytes: size.unwrap_or(0),
            counted: Counted::Bytes,
        };
        let Some(size) = size.filter(|it| *it <= 1 << 30) else {
            self.cx.note(site);
            return as_is;
        };
        let Some(ty) = self.cx.types.of_value(pointer) else { return as_is };
        let key = (self.numbering.of(pointer), size);
        if let Some(done) = self.known.addresses.get(&key).copied() {
            if self.flow.dominates(self.cx.module, done.block, self.block) {
                self.cx.note(Site { verdict: Verdict::Repeated, ..site });
                return Guarded { ok: Some(done.ok), pointer: done.pointer.unwrap_or(pointer.0) };
            }
        }
        self.cx.scratch_bytes = self.cx.scratch_bytes.max(size);
        let range = self.range(base);
        let (low, high) = self.halves(pointer.0);
        let ok = self.is_inside(range, low, high, size);
        self.check(site, ok, [Some(low), Some(high), None], false);
        let scratch = [0, 1].map(|half| self.scratch(half));
        let uint = self.cx.ids.uint;
        let low = self.value(Op::Select, uint, &[ok, low, scratch[0]]);
        let high = self.value(Op::Select, uint, &[ok, high, scratch[1]]);
        let pair = self.value(Op::CompositeConstruct, self.cx.ids.uint_pair, &[low, high]);
        let made = self.value(Op::Bitcast, ty.0, &[pair]);
        self.known.addresses.insert(key, Done { block: self.block, ok, pointer: Some(made) });
        Guarded { ok: Some(ok), pointer: made }
    }

    /// The two words of an address.
    fn halves(&mut self, pointer: u32) -> (u32, u32) {
        let (uint, uint_pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let pair = self.value(Op::Bitcast, uint_pair, &[pointer]);
        let low = self.value(Op::CompositeExtract, uint, &[pair, 0]);
        let high = self.value(Op::CompositeExtract, uint, &[pair, 1]);
        (low, high)
    }

    /// The range that a base pointer is in, looked up once.
    fn range(&mut self, base: Id) -> u32 {
        let key = self.numbering.of(base);
        if let Some((block, range)) = self.known.ranges.get(&key).copied() {
            if self.flow.dominates(self.cx.module, block, self.block) {
                return range;
            }
        }
        self.cx.tables_used[Table::Addresses as usize] = true;
        let (low, high) = self.halves(base.0);
        let (four, find) = (self.cx.ids.uint_four, self.cx.ids.find);
        let range = self.value(Op::FunctionCall, four, &[find, low, high]);
        self.known.ranges.insert(key, (self.block, range));
        range
    }

    /// Whether so many bytes at an address are inside of a range.
    fn is_inside(&mut self, range: u32, low: u32, high: u32, size: u64) -> u32 {
        let uint = self.cx.ids.uint;
        let [last_low, last_high, is_large] = self.last(range, size);
        let start_low = self.value(Op::CompositeExtract, uint, &[range, 0]);
        let start_high = self.value(Op::CompositeExtract, uint, &[range, 1]);
        let (one, zero) = (self.cx.number(1), self.cx.number(0));
        let offset_low = self.value(Op::ISub, uint, &[low, start_low]);
        let borrows = self.test(Op::ULessThan, &[low, start_low]);
        let borrow = self.value(Op::Select, uint, &[borrows, one, zero]);
        let offset_high = self.value(Op::ISub, uint, &[high, start_high]);
        let offset_high = self.value(Op::ISub, uint, &[offset_high, borrow]);
        let is_below = self.test(Op::ULessThan, &[offset_high, last_high]);
        let is_equal = self.test(Op::IEqual, &[offset_high, last_high]);
        let is_low = self.test(Op::ULessThanEqual, &[offset_low, last_low]);
        let is_at_end = self.test(Op::LogicalAnd, &[is_equal, is_low]);
        let is_in = self.test(Op::LogicalOr, &[is_below, is_at_end]);
        self.test(Op::LogicalAnd, &[is_large, is_in])
    }

    /// Where in a range the last access of a size may begin, and whether it is large enough for one.
    fn last(&mut self, range: u32, size: u64) -> [u32; 3] {
        if let Some((block, last)) = self.known.lasts.get(&(range, size)).copied() {
            if self.flow.dominates(self.cx.module, block, self.block) {
                return last;
            }
        }
        let uint = self.cx.ids.uint;
        let (bytes, one, zero) = (self.cx.number(size as u32), self.cx.number(1), self.cx.number(0));
        let length_low = self.value(Op::CompositeExtract, uint, &[range, 2]);
        let length_high = self.value(Op::CompositeExtract, uint, &[range, 3]);
        let borrows = self.test(Op::ULessThan, &[length_low, bytes]);
        let borrow = self.value(Op::Select, uint, &[borrows, one, zero]);
        let low = self.value(Op::ISub, uint, &[length_low, bytes]);
        let high = self.value(Op::ISub, uint, &[length_high, borrow]);
        let has_low = self.test(Op::LogicalNot, &[borrows]);
        let has_high = self.test(Op::INotEqual, &[length_high, zero]);
        let is_large = self.test(Op::LogicalOr, &[has_low, has_high]);
        let last = [low, high, is_large];
        self.known.lasts.insert((range, size), (self.block, last));
        last
    }

    /// Half of the address of the scratch memory.
    fn scratch(&mut self, half: u8) -> u32 {
        let key = Hoisted::Scratch(half);
        if let Some(id) = self.hoisted.get(&key) {
            return *id;
        }
        let table = self.table(Table::Addresses);
        let place = self.cx.number(2 + u32::from(half));
        let id = self.cx.word(&mut self.head, table, place);
        self.hoisted.insert(key, id);
        id
    }
}
