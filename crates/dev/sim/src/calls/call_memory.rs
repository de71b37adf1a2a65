//! Random values for any layout: every field, every pointer, chains of known and unknown structures.

use lavascope_abi::desc::{Field, Fixup, IntegerLocation, Layout, Len, Pointee, Pointer, Ty};
use lavascope_abi::{HandleType, STRUCTURE_TYPES};
use lavascope_record::check::{handle_type, target_size};

use crate::calls::synthetic_objects::SyntheticObjects;
use lavascope_test_support::TestRng;

/// How large and how wild.
#[derive(Clone, Copy)]
pub struct CallOptions {
    /// Pointers deeper than this are null.
    pub pointer_depth_max: u32,
    /// Arrays are shorter than this.
    pub count_end: u64,
    /// Whether chains hold structures that no registry knows.
    pub has_unknown: bool,
    /// What chains are made of; empty means every structure.
    pub chain_layouts: &'static [&'static Layout],
    /// Numbers that arrays of integers often hold, such as enum values that matter.
    pub likely_values: &'static [u32],
}

impl CallOptions {
    /// Anything goes.
    pub const UNRESTRICTED: CallOptions =
        CallOptions { pointer_depth_max: 4, count_end: 4, has_unknown: true, chain_layouts: &[], likely_values: &[] };
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

    fn allocate(&mut self, size: usize) -> usize {
        self.blocks.push(vec![0; size.div_ceil(8).max(1)].into_boxed_slice());
        self.blocks.len() - 1
    }

    fn write(&mut self, at: BlockOffset, value: u64, width: u32) {
        for byte in 0..width as usize {
            let offset = at.offset + byte;
            let word = &mut self.blocks[at.block][offset / 8];
            let shift = offset % 8 * 8;
            *word = *word & !(0xff << shift) | (value >> (byte * 8) & 0xff) << shift;
        }
    }

    fn read(&self, at: BlockOffset, width: u32) -> u64 {
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
    pub fn overwrite_pointer(&mut self, address: u64, value: u64) -> bool {
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
struct BlockOffset {
    block: usize,
    offset: usize,
}

impl BlockOffset {
    fn plus(self, by: u32) -> BlockOffset {
        BlockOffset { offset: self.offset + by as usize, ..self }
    }
}

/// A random image of a layout. The image is block zero.
pub fn random_call_memory(layout: &'static Layout, random: &mut TestRng, options: CallOptions) -> CallMemory {
    let mut memory = CallMemory::default();
    let block = memory.allocate(layout.size as usize);
    let mut maker = CallGenerator { memory: &mut memory, random, options };
    maker.fill_structure(layout, BlockOffset { block, offset: 0 }, 0);
    memory
}

struct CallGenerator<'a> {
    memory: &'a mut CallMemory,
    random: &'a mut TestRng,
    options: CallOptions,
}

impl CallGenerator<'_> {
    fn fill_structure(&mut self, layout: &'static Layout, at: BlockOffset, depth: u32) {
        // Everything is noise first, the padding too.
        for byte in 0..layout.size {
            let noise = self.random.next_u64();
            self.memory.write(at.plus(byte), noise, 1);
        }
        for field in layout.fields {
            self.fill_scalar(&field.ty, at.plus(field.at));
            self.fill_count(field, at.plus(field.at));
        }
        if let Some(s_type) = layout.s_type() {
            self.memory.write(at, u64::from(s_type as u32), 4);
        }
        self.apply_fixups(layout.fixups, at, depth);
    }

    /// Integers that a rule by hand may take as a length.
    fn fill_count(&mut self, field: &Field, at: BlockOffset) {
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
    fn fill_scalar(&mut self, ty: &Ty, at: BlockOffset) {
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
                    self.fill_scalar(&field.ty, at.plus(field.at));
                }
            }
            _ => {}
        }
    }

    fn apply_fixups(&mut self, work: &'static [Fixup], at: BlockOffset, depth: u32) {
        let mut counts = Vec::new();
        self.choose_counts(work, at, &mut counts);
        for fixup in work {
            let slot = at.plus(fixup.at());
            match fixup {
                Fixup::Chain { .. } => self.fill_chain(slot, depth),
                Fixup::Handles { count, ty, .. } => (0..*count).for_each(|it| self.fill_handle(*ty, slot.plus(it * 8))),
                Fixup::TypedHandle { ty, numbering, .. } => {
                    let number = self.memory.read(at.plus(ty.at), 4) as i32;
                    match handle_type(number, *numbering) {
                        Some(ty) => self.fill_handle(ty, slot),
                        None => self.memory.write(slot, 0, 8),
                    }
                }
                Fixup::Pointer { pointer, .. } => self.fill_pointer(pointer, slot, at, depth),
                Fixup::Opaque { .. } | Fixup::DeviceOrHost { .. } => {
                    let value = self.random.below(2) * 0xbad;
                    self.memory.write(slot, value, 8);
                }
                Fixup::Tail { array, element, count } => {
                    let value = self.random.below(u64::from(array.size / element) + 1);
                    self.memory.write(at.plus(count.at), value, u32::from(count.width));
                }
                Fixup::Text { size, .. } => {
                    let end = self.random.below(u64::from(*size)) as u32;
                    self.memory.write(slot.plus(end), 0, 1);
                }
                Fixup::Select { selector, cases, .. } => {
                    if !self.random.one_in(5) {
                        let case = &cases[self.random.below(cases.len() as u64) as usize];
                        if let Some(value) = case.values.first() {
                            self.memory.write(at.plus(selector.at), *value as u64, u32::from(selector.width));
                        }
                    }
                    let value = self.memory.read(at.plus(selector.at), u32::from(selector.width)) as i32;
                    let case = cases.iter().find(|it| it.values.contains(&i64::from(value)));
                    if let Some(case) = case {
                        self.apply_fixups(case.fixups, at, depth);
                    }
                }
            }
        }
    }

    /// Counts are chosen before any array, since several arrays may share one.
    fn choose_counts(&mut self, work: &'static [Fixup], at: BlockOffset, settled: &mut Vec<u32>) {
        for fixup in work {
            match fixup {
                Fixup::Pointer { pointer, .. } => self.choose_count(pointer, at, settled),
                Fixup::Select { cases, .. } => {
                    cases.iter().for_each(|case| self.choose_counts(case.fixups, at, settled));
                }
                _ => {}
            }
        }
    }

    fn choose_count(&mut self, pointer: &Pointer, at: BlockOffset, settled: &mut Vec<u32>) {
        let (place, factor) = match pointer.len {
            Len::At(place) => (place, 1),
            Len::Scaled { of, divide: 4, .. } => (of, 4),
            Len::Scaled { of, .. } => (of, 8),
            _ => return self.choose_inner_count(pointer, at, settled),
        };
        if place.through == IntegerLocation::HERE && !settled.contains(&place.at) {
            settled.push(place.at);
            let count = self.random.below(self.options.count_end) * factor;
            self.memory.write(at.plus(place.at), count, u32::from(place.width));
        }
        if let Some(stride) = pointer.stride {
            let size = target_size(&pointer.to);
            let value = size + self.random.below(3) * 4;
            self.memory.write(at.plus(stride.at), value, u32::from(stride.width));
        }
        self.choose_inner_count(pointer, at, settled);
    }

    fn choose_inner_count(&mut self, pointer: &Pointer, at: BlockOffset, settled: &mut Vec<u32>) {
        if let Pointee::Pointer(inner) = &pointer.to {
            self.choose_count(inner, at, settled);
        }
    }

    fn fill_handle(&mut self, ty: HandleType, at: BlockOffset) {
        let value = match self.random.below(8) {
            0 => 0,
            1 => 0xdead,
            _ => SyntheticObjects::handle_of(ty, self.random.below(1000)),
        };
        self.memory.write(at, value, 8);
    }

    fn fill_chain(&mut self, slot: BlockOffset, depth: u32) {
        if depth >= self.options.pointer_depth_max || self.random.below(3) != 0 {
            return self.memory.write(slot, 0, 8);
        }
        if self.options.has_unknown && self.random.one_in(6) {
            let block = self.memory.allocate(16);
            let next = BlockOffset { block, offset: 0 };
            self.memory.write(next, 0x7fff_0001, 4);
            let address = self.memory.address(block);
            self.memory.write(slot, address, 8);
            return self.fill_chain(next.plus(8), depth);
        }
        let layout = self.any_structure();
        let block = self.memory.allocate(layout.size as usize);
        self.fill_structure(layout, BlockOffset { block, offset: 0 }, depth + 1);
        let address = self.memory.address(block);
        self.memory.write(slot, address, 8);
    }

    fn any_structure(&mut self) -> &'static Layout {
        match self.options.chain_layouts {
            [] => STRUCTURE_TYPES[self.random.below(STRUCTURE_TYPES.len() as u64) as usize].1,
            some => some[self.random.below(some.len() as u64) as usize],
        }
    }

    fn fill_pointer(&mut self, pointer: &'static Pointer, slot: BlockOffset, owner: BlockOffset, depth: u32) {
        if depth >= self.options.pointer_depth_max || self.random.one_in(6) {
            return self.memory.write(slot, 0, 8);
        }
        let address = match &pointer.to {
            Pointee::Text => self.allocate_text(),
            Pointee::AnyStruct => {
                let layout = self.any_structure();
                let block = self.memory.allocate(layout.size as usize);
                self.fill_structure(layout, BlockOffset { block, offset: 0 }, depth + 1);
                self.memory.address(block)
            }
            Pointee::Blob(_) | Pointee::Template => {
                let block = self.memory.allocate(1024);
                for word in 0..128 {
                    let noise = self.random.next_u64();
                    self.memory.write(BlockOffset { block, offset: word * 8 }, noise, 8);
                }
                self.memory.address(block)
            }
            target => self.allocate_array(pointer, target, owner, depth),
        };
        self.memory.write(slot, address, 8);
    }

    fn allocate_text(&mut self) -> u64 {
        let size = self.random.below(20) as usize;
        let block = self.memory.allocate(size + 1);
        for offset in 0..size {
            let letter = 0x41 + self.random.below(26);
            self.memory.write(BlockOffset { block, offset }, letter, 1);
        }
        self.memory.address(block)
    }

    fn allocate_array(
        &mut self,
        pointer: &'static Pointer,
        target: &'static Pointee,
        owner: BlockOffset,
        depth: u32,
    ) -> u64 {
        // Room for the largest count that any rule can come to, so that lengths by hand are covered too.
        let by_rule = match pointer.len {
            Len::Rule(_) => 300,
            _ => 0,
        };
        self.choose_count_behind_pointer(pointer.len, owner);
        let count = self.element_count(pointer.len, owner).max(by_rule);
        let size = target_size(target);
        let step = pointer.stride.map_or(size, |it| self.memory.read(owner.plus(it.at), u32::from(it.width)));
        let block = self.memory.allocate((count * step.max(size) + size) as usize);
        for index in 0..count {
            let at = BlockOffset { block, offset: (index * step) as usize };
            match target {
                Pointee::Values(ty) => {
                    let noise = self.random_value(ty.size());
                    self.memory.write(at, noise, ty.size());
                }
                Pointee::Struct(layout) => self.fill_structure(layout, at, depth + 1),
                Pointee::Handle(ty) => self.fill_handle(*ty, at),
                Pointee::Pointer(inner) => self.fill_pointer(inner, at, owner, depth + 1),
                Pointee::Opaque => {
                    let value = self.random.below(2) * 0xbad;
                    self.memory.write(at, value, 8);
                }
                Pointee::Text | Pointee::AnyStruct | Pointee::Blob(_) | Pointee::Template => {}
            }
        }
        self.memory.address(block)
    }

    /// A length that lies in another structure was made as noise there.
    fn choose_count_behind_pointer(&mut self, len: Len, owner: BlockOffset) {
        let Len::At(place) = len else { return };
        if place.through != IntegerLocation::HERE && self.element_count(len, owner) >= self.options.count_end {
            let target = self.memory.read(owner.plus(place.through), 8) + u64::from(place.at);
            if let Some(at) = self.find_address(target) {
                let count = self.random.below(self.options.count_end);
                self.memory.write(at, count, u32::from(place.width));
            }
        }
    }

    /// A single integer behind a pointer may be the length of another parameter: it is kept small.
    fn random_value(&mut self, size: u32) -> u64 {
        match self.options.likely_values {
            some if size == 4 && !some.is_empty() && !self.random.one_in(3) => {
                u64::from(some[self.random.below(some.len() as u64) as usize])
            }
            _ if size >= 4 => self.random.below(self.options.count_end),
            _ => self.random.next_u64(),
        }
    }

    fn element_count(&self, len: Len, owner: BlockOffset) -> u64 {
        let at = |place: IntegerLocation| {
            if place.through == IntegerLocation::HERE {
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

    fn find_address(&self, address: u64) -> Option<BlockOffset> {
        self.memory.blocks.iter().enumerate().find_map(|(block, words)| {
            let start = words.as_ptr().expose_provenance() as u64;
            let is_inside = (start..start + words.len() as u64 * 8).contains(&address);
            is_inside.then(|| BlockOffset { block, offset: (address - start) as usize })
        })
    }
}
