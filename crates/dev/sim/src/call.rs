//! Random values for any layout: every field, every pointer, chains of known and unknown structures.

use lavascope_abi::desc::{Field, Layout, Len, Place, Pointer, Target, Ty, Work};
use lavascope_abi::{HandleType, STRUCTURE_TYPES};
use lavascope_record::check::{handle_type, target_size};

use crate::random::Random;
use crate::world::World;

/// How large and how wild.
#[derive(Clone, Copy)]
pub struct Options {
    /// Pointers deeper than this are null.
    pub depth_max: u32,
    /// Arrays are shorter than this.
    pub count_end: u64,
    /// Whether chains hold structures that no registry knows.
    pub has_unknown: bool,
    /// What chains are made of; empty means every structure.
    pub chained: &'static [&'static Layout],
    /// Numbers that arrays of integers often hold, such as enum values that matter.
    pub numbers: &'static [u32],
}

impl Options {
    /// Anything goes.
    pub const WILD: Options = Options { depth_max: 4, count_end: 4, has_unknown: true, chained: &[], numbers: &[] };
}

/// The memory of one call. Addresses in it are valid while it lives.
#[derive(Default)]
pub struct CallMemory {
    blocks: Vec<Box<[u64]>>,
}

impl CallMemory {
    /// The address of a block's first byte.
    pub fn address(&self, block: usize) -> u64 {
        self.blocks[block].as_ptr().expose_provenance() as u64
    }

    fn claim(&mut self, size: usize) -> usize {
        self.blocks.push(vec![0; size.div_ceil(8).max(1)].into_boxed_slice());
        self.blocks.len() - 1
    }

    fn write(&mut self, at: At, value: u64, width: u32) {
        for byte in 0..width as usize {
            let offset = at.offset + byte;
            let word = &mut self.blocks[at.block][offset / 8];
            let shift = offset % 8 * 8;
            *word = *word & !(0xff << shift) | (value >> (byte * 8) & 0xff) << shift;
        }
    }

    fn read(&self, at: At, width: u32) -> u64 {
        (0..width as usize).fold(0, |value, byte| {
            let offset = at.offset + byte;
            value | (self.blocks[at.block][offset / 8] >> (offset % 8 * 8) & 0xff) << (byte * 8)
        })
    }

    /// How far into its block an address lies.
    pub fn offset_in_block(&self, address: u64) -> Option<u64> {
        self.blocks.iter().find_map(|block| {
            let start = block.as_ptr().expose_provenance() as u64;
            (start..start + block.len() as u64 * 8).contains(&address).then(|| address - start)
        })
    }

    /// Overwrites the pointer at an address, wherever it lies in this memory.
    pub fn poke(&mut self, address: u64, value: u64) -> bool {
        for block in &mut self.blocks {
            let start = block.as_ptr().expose_provenance() as u64;
            if (start..start + block.len() as u64 * 8).contains(&address) {
                block[(address - start) as usize / 8] = value;
                return true;
            }
        }
        false
    }
}

/// A byte of a block.
#[derive(Clone, Copy)]
struct At {
    block: usize,
    offset: usize,
}

impl At {
    fn plus(self, by: u32) -> At {
        At { offset: self.offset + by as usize, ..self }
    }
}

/// A random image of a layout. The image is block zero.
pub fn random_image(layout: &'static Layout, random: &mut Random, options: Options) -> CallMemory {
    let mut memory = CallMemory::default();
    let block = memory.claim(layout.size as usize);
    let mut maker = Maker { memory: &mut memory, random, options };
    maker.structure(layout, At { block, offset: 0 }, 0);
    memory
}

struct Maker<'a> {
    memory: &'a mut CallMemory,
    random: &'a mut Random,
    options: Options,
}

impl Maker<'_> {
    fn structure(&mut self, layout: &'static Layout, at: At, depth: u32) {
        // Everything is noise first, the padding too.
        for byte in 0..layout.size {
            let noise = self.random.word();
            self.memory.write(at.plus(byte), noise, 1);
        }
        for field in layout.fields {
            self.scalar(&field.ty, at.plus(field.at));
            self.small_if_count(field, at.plus(field.at));
        }
        if let Some(s_type) = layout.s_type() {
            self.memory.write(at, u64::from(s_type as u32), 4);
        }
        self.work(layout.work, at, depth);
    }

    /// Integers that a rule by hand may take as a length.
    fn small_if_count(&mut self, field: &Field, at: At) {
        let is_count = ["Count", "Size", "minus1"].iter().any(|it| field.name.ends_with(it));
        let width = match field.ty {
            Ty::U8 => 1,
            Ty::U32 => 4,
            Ty::U64 | Ty::Size => 8,
            _ => return,
        };
        if is_count {
            let count = self.random.below(self.options.count_end);
            self.memory.write(at, count, width);
        }
    }

    /// Values that must be sensible: small counts come with the pointers, selectors are often valid.
    fn scalar(&mut self, ty: &Ty, at: At) {
        match ty {
            Ty::Enum(desc) if !desc.values.is_empty() && !self.random.one_in(4) => {
                let value = desc.values[self.random.below(desc.values.len() as u64) as usize].0;
                self.memory.write(at, value as u64, 4);
            }
            Ty::Bool32 => {
                let value = self.random.below(2);
                self.memory.write(at, value, 4);
            }
            Ty::Struct(layout) if !layout.is_union => {
                for field in layout.fields {
                    self.scalar(&field.ty, at.plus(field.at));
                }
            }
            _ => {}
        }
    }

    fn work(&mut self, work: &'static [Work], at: At, depth: u32) {
        let mut counts = Vec::new();
        self.settle_counts(work, at, &mut counts);
        for it in work {
            let slot = at.plus(it.at());
            match it {
                Work::Chain { .. } => self.chain(slot, depth),
                Work::Handles { count, ty, .. } => (0..*count).for_each(|it| self.handle(*ty, slot.plus(it * 8))),
                Work::TypedHandle { ty, numbering, .. } => {
                    let number = self.memory.read(at.plus(ty.at), 4) as i32;
                    match handle_type(number, *numbering) {
                        Some(ty) => self.handle(ty, slot),
                        None => self.memory.write(slot, 0, 8),
                    }
                }
                Work::Pointer { pointer, .. } => self.pointer(pointer, slot, at, depth),
                Work::Opaque { .. } | Work::DeviceOrHost { .. } => {
                    let value = self.random.below(2) * 0xbad;
                    self.memory.write(slot, value, 8);
                }
                Work::Tail { array, element, count } => {
                    let value = self.random.below(u64::from(array.size / element) + 1);
                    self.memory.write(at.plus(count.at), value, u32::from(count.width));
                }
                Work::Text { size, .. } => {
                    let end = self.random.below(u64::from(*size)) as u32;
                    self.memory.write(slot.plus(end), 0, 1);
                }
                Work::Select { selector, cases, .. } => {
                    if !self.random.one_in(5) {
                        let case = &cases[self.random.below(cases.len() as u64) as usize];
                        if let Some(value) = case.values.first() {
                            self.memory.write(at.plus(selector.at), *value as u64, u32::from(selector.width));
                        }
                    }
                    let value = self.memory.read(at.plus(selector.at), u32::from(selector.width)) as i32;
                    let case = cases.iter().find(|it| it.values.contains(&i64::from(value)));
                    if let Some(case) = case {
                        self.work(case.work, at, depth);
                    }
                }
            }
        }
    }

    /// Counts are chosen before any array, since several arrays may share one.
    fn settle_counts(&mut self, work: &'static [Work], at: At, settled: &mut Vec<u32>) {
        for it in work {
            match it {
                Work::Pointer { pointer, .. } => self.settle_count(pointer, at, settled),
                Work::Select { cases, .. } => {
                    cases.iter().for_each(|case| self.settle_counts(case.work, at, settled));
                }
                _ => {}
            }
        }
    }

    fn settle_count(&mut self, pointer: &Pointer, at: At, settled: &mut Vec<u32>) {
        let (place, factor) = match pointer.len {
            Len::At(place) => (place, 1),
            Len::Scaled { of, divide: 4, .. } => (of, 4),
            Len::Scaled { of, .. } => (of, 8),
            _ => return self.settle_inner(pointer, at, settled),
        };
        if place.through == Place::HERE && !settled.contains(&place.at) {
            settled.push(place.at);
            let count = self.random.below(self.options.count_end) * factor;
            self.memory.write(at.plus(place.at), count, u32::from(place.width));
        }
        if let Some(stride) = pointer.stride {
            let size = target_size(&pointer.to);
            let value = size + self.random.below(3) * 4;
            self.memory.write(at.plus(stride.at), value, u32::from(stride.width));
        }
        self.settle_inner(pointer, at, settled);
    }

    fn settle_inner(&mut self, pointer: &Pointer, at: At, settled: &mut Vec<u32>) {
        if let Target::Pointer(inner) = &pointer.to {
            self.settle_count(inner, at, settled);
        }
    }

    fn handle(&mut self, ty: HandleType, at: At) {
        let value = match self.random.below(8) {
            0 => 0,
            1 => 0xdead,
            _ => World::handle_of(ty, self.random.below(1000)),
        };
        self.memory.write(at, value, 8);
    }

    fn chain(&mut self, slot: At, depth: u32) {
        if depth >= self.options.depth_max || self.random.below(3) != 0 {
            return self.memory.write(slot, 0, 8);
        }
        if self.options.has_unknown && self.random.one_in(6) {
            let block = self.memory.claim(16);
            let next = At { block, offset: 0 };
            self.memory.write(next, 0x7fff_0001, 4);
            let address = self.memory.address(block);
            self.memory.write(slot, address, 8);
            return self.chain(next.plus(8), depth);
        }
        let layout = self.any_structure();
        let block = self.memory.claim(layout.size as usize);
        self.structure(layout, At { block, offset: 0 }, depth + 1);
        let address = self.memory.address(block);
        self.memory.write(slot, address, 8);
    }

    fn any_structure(&mut self) -> &'static Layout {
        match self.options.chained {
            [] => STRUCTURE_TYPES[self.random.below(STRUCTURE_TYPES.len() as u64) as usize].1,
            some => some[self.random.below(some.len() as u64) as usize],
        }
    }

    fn pointer(&mut self, pointer: &'static Pointer, slot: At, owner: At, depth: u32) {
        if depth >= self.options.depth_max || self.random.one_in(6) {
            return self.memory.write(slot, 0, 8);
        }
        let address = match &pointer.to {
            Target::Text => self.text(),
            Target::AnyStruct => {
                let layout = self.any_structure();
                let block = self.memory.claim(layout.size as usize);
                self.structure(layout, At { block, offset: 0 }, depth + 1);
                self.memory.address(block)
            }
            Target::Blob(_) | Target::Template => {
                let block = self.memory.claim(1024);
                for word in 0..128 {
                    let noise = self.random.word();
                    self.memory.write(At { block, offset: word * 8 }, noise, 8);
                }
                self.memory.address(block)
            }
            target => self.array(pointer, target, owner, depth),
        };
        self.memory.write(slot, address, 8);
    }

    fn text(&mut self) -> u64 {
        let size = self.random.below(20) as usize;
        let block = self.memory.claim(size + 1);
        for offset in 0..size {
            let letter = 0x41 + self.random.below(26);
            self.memory.write(At { block, offset }, letter, 1);
        }
        self.memory.address(block)
    }

    fn array(&mut self, pointer: &'static Pointer, target: &'static Target, owner: At, depth: u32) -> u64 {
        // Room for the largest count that any rule can come to, so that lengths by hand are covered too.
        let by_rule = match pointer.len {
            Len::Rule(_) => 300,
            _ => 0,
        };
        self.settle_count_elsewhere(pointer.len, owner);
        let count = self.count(pointer.len, owner).max(by_rule);
        let size = target_size(target);
        let step = pointer.stride.map_or(size, |it| self.memory.read(owner.plus(it.at), u32::from(it.width)));
        let block = self.memory.claim((count * step.max(size) + size) as usize);
        for index in 0..count {
            let at = At { block, offset: (index * step) as usize };
            match target {
                Target::Values(ty) => {
                    let noise = self.number(ty.size());
                    self.memory.write(at, noise, ty.size());
                }
                Target::Struct(layout) => self.structure(layout, at, depth + 1),
                Target::Handle(ty) => self.handle(*ty, at),
                Target::Pointer(inner) => self.pointer(inner, at, owner, depth + 1),
                Target::Opaque => {
                    let value = self.random.below(2) * 0xbad;
                    self.memory.write(at, value, 8);
                }
                Target::Text | Target::AnyStruct | Target::Blob(_) | Target::Template => {}
            }
        }
        self.memory.address(block)
    }

    /// A length that lies in another structure was made as noise there.
    fn settle_count_elsewhere(&mut self, len: Len, owner: At) {
        let Len::At(place) = len else { return };
        if place.through != Place::HERE && self.count(len, owner) >= self.options.count_end {
            let target = self.memory.read(owner.plus(place.through), 8) + u64::from(place.at);
            if let Some(at) = self.find_address(target) {
                let count = self.random.below(self.options.count_end);
                self.memory.write(at, count, u32::from(place.width));
            }
        }
    }

    /// A single integer behind a pointer may be the length of another parameter: it is kept small.
    fn number(&mut self, size: u32) -> u64 {
        match self.options.numbers {
            some if size == 4 && !some.is_empty() && !self.random.one_in(3) => {
                u64::from(some[self.random.below(some.len() as u64) as usize])
            }
            _ if size >= 4 => self.random.below(self.options.count_end),
            _ => self.random.word(),
        }
    }

    fn count(&self, len: Len, owner: At) -> u64 {
        let at = |place: Place| {
            if place.through == Place::HERE {
                return self.memory.read(owner.plus(place.at), u32::from(place.width));
            }
            let target = self.memory.read(owner.plus(place.through), 8);
            self.read_address(target + u64::from(place.at), u32::from(place.width))
        };
        match len {
            Len::Fixed(count) => u64::from(count),
            Len::At(place) => at(place),
            Len::Scaled { of, add, divide } => (at(of) + u64::from(add)) / u64::from(divide),
            Len::Terminated | Len::Rule(_) => 0,
        }
    }

    /// Reads an integer of this call's memory by address.
    fn read_address(&self, address: u64, width: u32) -> u64 {
        self.find_address(address).map_or(0, |at| self.memory.read(at, width))
    }

    fn find_address(&self, address: u64) -> Option<At> {
        self.memory.blocks.iter().enumerate().find_map(|(block, words)| {
            let start = words.as_ptr().expose_provenance() as u64;
            let is_inside = (start..start + words.len() as u64 * 8).contains(&address);
            is_inside.then(|| At { block, offset: (address - start) as usize })
        })
    }
}
