//! Memory that both sides see, in blocks, of which pieces are given out.

use lavascope_abi::*;

use super::{Gpu, State, place};

/// The bytes of a block, unless a piece is larger.
const BLOCK_BYTES: u64 = 256 << 10;
/// No device asks for more between storage buffers.
const ALIGNMENT: u64 = 256;

/// A buffer with memory of its own, mapped.
pub(super) struct Block {
    buffer: Buffer,
    memory: DeviceMemory,
    /// Where it is mapped.
    address: u64,
    bytes: u64,
}

/// A piece of a block.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) buffer: Buffer,
    pub(super) offset: u64,
    pub(super) words: u32,
    address: u64,
}

/// Blocks, of which the last one has room.
#[derive(Default)]
pub(super) struct Arena {
    pub(super) blocks: Vec<Block>,
    used: u64,
}

impl Region {
    pub(super) fn write(self, words: &[u32]) {
        let count = words.len().min(self.words as usize);
        let target = std::ptr::with_exposed_provenance_mut::<u32>(self.address as usize);
        // SAFETY: the region is mapped, has that many words, and the device does not use it yet.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), target, count) };
    }

    /// A word as the device wrote it.
    pub(super) fn word(self, at: u32) -> u32 {
        if at >= self.words {
            return 0;
        }
        let first = std::ptr::with_exposed_provenance::<u32>(self.address as usize);
        // SAFETY: as above; the device may write meanwhile, so it is read as it is.
        unsafe { first.add(at as usize).read_volatile() }
    }

    pub(super) fn read(self) -> Vec<u32> {
        (0..self.words).map(|at| self.word(at)).collect()
    }

    pub(super) fn info(self) -> DescriptorBufferInfo {
        DescriptorBufferInfo { buffer: self.buffer, offset: self.offset, range: u64::from(self.words) * 4 }
    }
}

impl Arena {
    /// Zeros, at least one word.
    pub(super) fn allocate(&mut self, gpu: &Gpu, free: &mut Vec<Block>, words: u32) -> Option<Region> {
        let bytes = (u64::from(words.max(1)) * 4).next_multiple_of(ALIGNMENT);
        if self.blocks.last().is_none_or(|it| it.bytes - self.used < bytes) {
            let at = free.iter().rposition(|it| it.bytes >= bytes);
            let block = at.map(|it| free.swap_remove(it)).or_else(|| gpu.create_block(bytes.max(BLOCK_BYTES)))?;
            block.clear();
            self.blocks.push(block);
            self.used = 0;
        }
        let block = self.blocks.last()?;
        let offset = self.used;
        self.used += bytes;
        Some(Region { buffer: block.buffer, offset, words: words.max(1), address: block.address + offset })
    }
}

impl Block {
    fn clear(&self) {
        let first = std::ptr::with_exposed_provenance_mut::<u8>(self.address as usize);
        // SAFETY: mapped, and nobody uses it.
        unsafe { first.write_bytes(0, self.bytes as usize) };
    }
}

impl Gpu {
    fn create_block(&self, bytes: u64) -> Option<Block> {
        let mut info = BufferCreateInfo::zeroed();
        info.s_type = StructureType::BUFFER_CREATE_INFO;
        info.size = bytes;
        info.usage = BufferUsageFlags::STORAGE_BUFFER;
        let mut block = Block { buffer: Buffer::default(), memory: DeviceMemory::default(), address: 0, bytes };
        // SAFETY: a device that is alive, infos and places of ours.
        let result =
            unsafe { (self.next.create_buffer?)(self.device, Ptr::to(&info), Ptr::NULL, place(&mut block.buffer)) };
        if result == Result::SUCCESS && self.give_memory(&mut block).is_some() {
            return Some(block);
        }
        self.destroy_block(block);
        None
    }

    fn give_memory(&self, block: &mut Block) -> Option<()> {
        let mut needs = MemoryRequirements::zeroed();
        let wanted = MemoryPropertyFlags::HOST_VISIBLE.0 | MemoryPropertyFlags::HOST_COHERENT.0;
        let mut info = MemoryAllocateInfo::zeroed();
        info.s_type = StructureType::MEMORY_ALLOCATE_INFO;
        // SAFETY: a buffer of ours on a device that is alive, and places of ours.
        unsafe {
            (self.next.get_buffer_memory_requirements?)(self.device, block.buffer, place(&mut needs));
            let fits = |it: &u32| {
                let flags = self.memory.memory_types[*it as usize].property_flags.0;
                needs.memory_type_bits & 1 << it != 0 && flags & wanted == wanted
            };
            info.memory_type_index = (0..self.memory.memory_type_count.min(32)).find(fits)?;
            info.allocation_size = needs.size;
            let allocate = self.next.allocate_memory?;
            is_fine(allocate(self.device, Ptr::to(&info), Ptr::NULL, place(&mut block.memory)))?;
            is_fine((self.next.bind_buffer_memory?)(self.device, block.buffer, block.memory, 0))?;
            let (map, flags) = (self.next.map_memory?, MemoryMapFlags::default());
            is_fine(map(self.device, block.memory, 0, WHOLE_SIZE, flags, place(&mut block.address).cast()))
        }
    }

    pub(super) fn destroy_block(&self, block: Block) {
        // SAFETY: objects of ours that nobody uses; freeing memory unmaps it.
        unsafe {
            if let Some(destroy) = self.next.destroy_buffer {
                destroy(self.device, block.buffer, Ptr::NULL);
            }
            if let Some(free) = self.next.free_memory {
                free(self.device, block.memory, Ptr::NULL);
            }
        }
    }

    /// A pool for sets of ours.
    pub(super) fn take_pool(&self, state: &mut State) -> Option<DescriptorPool> {
        if let Some(pool) = state.free_pools.pop() {
            return Some(pool);
        }
        let count = super::commands::POOL_SETS * super::TABLES as u32;
        let size = DescriptorPoolSize { type_: DescriptorType::STORAGE_BUFFER, descriptor_count: count };
        let mut info = DescriptorPoolCreateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_POOL_CREATE_INFO;
        info.max_sets = super::commands::POOL_SETS;
        info.pool_size_count = 1;
        info.p_pool_sizes = Ptr::to(&size);
        let mut pool = DescriptorPool::default();
        let create = self.next.create_descriptor_pool?;
        // SAFETY: a device that is alive, and places of ours.
        is_fine(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, place(&mut pool)) })?;
        Some(pool)
    }
}

pub(super) fn is_fine(result: Result) -> Option<()> {
    (result == Result::SUCCESS).then_some(())
}
