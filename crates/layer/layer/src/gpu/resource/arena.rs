//! Memory that host and device see, in blocks, of which regions are given out.
//!
//! The driver is called without a lock of ours. Allocations of the application and of ours are counted against
//! `maxMemoryAllocationCount`. If one of ours fails, that is reported once, and nothing more is checked: draws with
//! instrumented pipelines get permissive tables, which each pipeline has from its creation. If an allocation of the
//! application fails, our spare blocks are freed, and it is tried again.
//!
//! `LAVASCOPE_GPU_ALLOCATIONS=N` lets all but the first N allocations of ours fail, for tests.

use std::sync::atomic::{AtomicU32, Ordering};

use lavascope_abi::*;
use lavascope_instrument::interface::tables;

use crate::gpu::hook::device_request::AddressExtension;
use crate::gpu::{DeviceChecks, out_ptr};

/// The bytes of a block, unless a piece is larger.
const BLOCK_BYTES: u64 = 256 << 10;
/// No device asks for more between storage buffers.
const ALIGNMENT: u64 = 256;
/// For regions that are found by their addresses: they share no cache line with others.
const CACHE_LINE_BYTES: u64 = 64;
/// Number of our sets in one pool.
pub(crate) const POOL_SETS: u32 = 64;
/// For tests: how many allocations of ours may succeed.
const ALLOCATIONS_VARIABLE: &str = "LAVASCOPE_GPU_ALLOCATIONS";

/// A buffer with memory of its own, mapped. `create_block` makes it, and `destroy_block` takes it back; in between it
/// has one owner: an arena, the table of addresses, or the spares.
pub(crate) struct ArenaBlock {
    buffer: Buffer,
    memory: DeviceMemory,
    /// Where it is mapped.
    host_address: u64,
    /// Where shaders find it; zero if buffers have no addresses.
    device_address: u64,
    bytes: u64,
}

/// A piece of a block, or nothing. Its words are mapped for as long as the device lives: blocks are unmapped when it is
/// destroyed, after everything that reads and writes regions (`DeviceChecks::end`). A region of another kind must never
/// be read or written by the host; its creator guarantees that.
#[derive(Clone, Copy, Default)]
pub(crate) struct ArenaRegion {
    pub(crate) buffer: Buffer,
    pub(crate) offset: u64,
    pub(crate) words: u32,
    host_address: u64,
    pub(crate) device_address: u64,
}

/// Blocks, of which the last one has room. They are zero if nothing was given out.
#[derive(Default)]
pub(crate) struct DeviceArena {
    pub(crate) blocks: Vec<ArenaBlock>,
    used: u64,
}

/// Blocks and pools that can be reused.
#[derive(Default)]
pub(crate) struct SpareResources {
    /// Zeros.
    pub(crate) blocks: Vec<ArenaBlock>,
    pub(crate) pools: Vec<DescriptorPool>,
}

/// The number of allocations, and how many of ours are still allowed.
pub(crate) struct AllocationBudget {
    /// The application's and ours. Relaxed, as the other: they order nothing.
    live: AtomicU32,
    left: AtomicU32,
}

impl AllocationBudget {
    pub(crate) fn new() -> AllocationBudget {
        let left = std::env::var(ALLOCATIONS_VARIABLE).ok().and_then(|it| it.parse().ok());
        AllocationBudget { live: AtomicU32::new(0), left: AtomicU32::new(left.unwrap_or(u32::MAX)) }
    }

    pub(crate) fn add(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        // The count cannot become negative, unless the application frees memory that it did not allocate.
        _ = self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| it.checked_sub(1));
    }

    /// Whether one more allocation of ours is allowed, beside those of the application.
    fn take_allowed(&self, most: u32) -> bool {
        let take = |it: u32| if it == u32::MAX { Some(it) } else { it.checked_sub(1) };
        let is_left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        is_left && self.live.load(Ordering::Relaxed) < most
    }
}

impl ArenaRegion {
    /// A piece of a buffer of the application, of which the host sees nothing.
    ///
    /// # Safety
    ///
    /// The host must not read or write its words: the region is only bound.
    pub(crate) unsafe fn of_application_buffer(buffer: Buffer, offset: u64, words: u32) -> ArenaRegion {
        ArenaRegion { buffer, offset, words, ..ArenaRegion::default() }
    }

    /// Words that the host sees there.
    ///
    /// # Safety
    ///
    /// This many words must be mapped at the address for as long as the region is used, or the host must not read or
    /// write them.
    #[inline(always)]
    pub(crate) unsafe fn mapped(address: u64, words: u32) -> ArenaRegion {
        ArenaRegion { words, host_address: address, ..ArenaRegion::default() }
    }

    /// Whether it can be bound as a storage buffer.
    pub(crate) fn is_aligned(self) -> bool {
        self.offset.is_multiple_of(ALIGNMENT)
    }

    /// Where the host sees it.
    pub(crate) fn host_address(self) -> u64 {
        self.host_address
    }

    /// Words of a test.
    #[cfg(test)]
    pub(crate) fn of_words(words: &mut [u32]) -> ArenaRegion {
        let address = words.as_mut_ptr().expose_provenance() as u64;
        ArenaRegion { words: words.len() as u32, host_address: address, ..ArenaRegion::default() }
    }

    #[inline(always)]
    pub(crate) fn write(self, words: &[u32]) {
        self.write_at(0, words);
    }

    /// The device does not use it, and nor does anybody else.
    #[inline(always)]
    pub(crate) fn zero(self) {
        let first = std::ptr::with_exposed_provenance_mut::<u32>(self.host_address as usize);
        // SAFETY: by the invariant of `ArenaRegion` so many words are mapped there, and aligned; of none, nothing is
        // written. The caller knows that neither the device nor another thread uses them.
        unsafe { first.write_bytes(0, self.words as usize) };
    }

    /// The same for the host, elsewhere for shaders.
    pub(crate) fn with_device_address(self, device_address: u64) -> ArenaRegion {
        ArenaRegion { device_address, ..self }
    }

    #[inline(always)]
    fn write_at(self, at: u32, words: &[u32]) {
        let count = words.len().min(self.words.saturating_sub(at) as usize);
        let target = std::ptr::with_exposed_provenance_mut::<u32>(self.host_address as usize + at as usize * 4);
        // SAFETY: by the invariant of `ArenaRegion` its words are mapped, and aligned, and `count` is not more than
        // those behind `at`. The caller gives the device the region afterwards, or when no work that reads it is
        // submitted; the words of the slice are of the host, so that the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), target, count) };
    }

    /// A word that the device may read meanwhile.
    pub(crate) fn write_word(self, at: u32, word: u32) {
        if at < self.words {
            let first = std::ptr::with_exposed_provenance_mut::<u32>(self.host_address as usize);
            // SAFETY: one of the words that by the invariant of `ArenaRegion` are mapped, and aligned. The device may read
            // it meanwhile, so it is written as it is.
            unsafe { first.add(at as usize).write_volatile(word) };
        }
    }

    /// A table of descriptors, by which all is right from now on. The device may read it meanwhile.
    #[cold]
    pub(crate) fn make_permissive(self) {
        let before = self.read();
        let mut after = before.clone();
        tables::make_permissive(&mut after);
        for (at, (_, word)) in (0..).zip(before.iter().zip(&after)).filter(|it| it.1.0 != it.1.1) {
            self.write_word(at, *word);
        }
    }

    /// Two words at once, where they are aligned to both.
    pub(crate) fn write_word_pair(self, at: u32, [low, high]: [u32; 2]) {
        if at + 1 < self.words && self.host_address.is_multiple_of(8) && at.is_multiple_of(2) {
            let first = std::ptr::with_exposed_provenance_mut::<u64>(self.host_address as usize + at as usize * 4);
            // SAFETY: two of the words that by the invariant of `ArenaRegion` are mapped, and were just found aligned to
            // both. The device may read them meanwhile, so they are written at once.
            unsafe { first.write_volatile(u64::from(low) | u64::from(high) << 32) };
        }
    }

    /// A word as the device wrote it.
    #[inline(always)]
    pub(crate) fn read_word(self, at: u32) -> u32 {
        if at >= self.words {
            return 0;
        }
        let first = std::ptr::with_exposed_provenance::<u32>(self.host_address as usize);
        // SAFETY: one of the words that by the invariant of `ArenaRegion` are mapped, and aligned. The device may write it
        // meanwhile, so it is read as it is.
        unsafe { first.add(at as usize).read_volatile() }
    }

    pub(crate) fn read(self) -> Vec<u32> {
        (0..self.words).map(|at| self.read_word(at)).collect()
    }

    /// The words from one on.
    pub(crate) fn skip_words(self, at: u32) -> ArenaRegion {
        let at = at.min(self.words);
        let bytes = u64::from(at) * 4;
        ArenaRegion {
            offset: self.offset + bytes,
            words: self.words - at,
            host_address: self.host_address + bytes,
            device_address: self.device_address + bytes,
            ..self
        }
    }

    /// At most this many words.
    pub(crate) fn first_words(self, words: u32) -> ArenaRegion {
        ArenaRegion { words: self.words.min(words), ..self }
    }

    pub(crate) fn info(self) -> DescriptorBufferInfo {
        DescriptorBufferInfo { buffer: self.buffer, offset: self.offset, range: u64::from(self.words) * 4 }
    }
}

/// The size of the region that is used for a request of this size.
pub(crate) fn padded_words(words: u32) -> u32 {
    words.max(1).next_multiple_of(ALIGNMENT as u32 / 4)
}

impl DeviceArena {
    /// Zeros, at least one word.
    pub(crate) fn allocate(&mut self, gpu: &DeviceChecks, words: u32) -> Option<ArenaRegion> {
        self.used = self.used.next_multiple_of(ALIGNMENT);
        self.take(gpu, words, u64::from(padded_words(words)) * 4)
    }

    /// The same for regions that are found by their addresses alone.
    #[inline(always)]
    pub(crate) fn allocate_cache_lines(&mut self, gpu: &DeviceChecks, words: u32) -> Option<ArenaRegion> {
        self.take(gpu, words, (u64::from(words.max(1)) * 4).next_multiple_of(CACHE_LINE_BYTES))
    }

    #[inline(always)]
    fn take(&mut self, gpu: &DeviceChecks, words: u32, bytes: u64) -> Option<ArenaRegion> {
        if self.blocks.last().is_none_or(|it| it.bytes < self.used + bytes) {
            self.add_block(gpu, bytes)?;
        }
        let region = self.blocks.last()?.region(self.used, words.max(1));
        self.used += bytes;
        Some(region)
    }

    #[cold]
    fn add_block(&mut self, gpu: &DeviceChecks, bytes: u64) -> Option<()> {
        self.blocks.push(gpu.take_block(bytes)?);
        self.used = 0;
        Some(())
    }
}

impl ArenaBlock {
    #[inline(always)]
    fn region(&self, offset: u64, words: u32) -> ArenaRegion {
        let device_address = if self.device_address == 0 { 0 } else { self.device_address + offset };
        ArenaRegion { buffer: self.buffer, offset, words, host_address: self.host_address + offset, device_address }
    }

    /// All of it.
    pub(crate) fn whole(&self) -> ArenaRegion {
        self.region(0, (self.bytes / 4) as u32)
    }
}

impl DeviceChecks {
    /// A block of zeros, with at least this many bytes.
    pub(crate) fn take_block(&self, bytes: u64) -> Option<ArenaBlock> {
        let mut spares = self.spares();
        let at = spares.blocks.iter().rposition(|it| it.bytes >= bytes);
        let spare = at.map(|it| spares.blocks.swap_remove(it));
        drop(spares);
        spare.or_else(|| self.create_block(bytes.max(BLOCK_BYTES)))
    }

    fn create_block(&self, bytes: u64) -> Option<ArenaBlock> {
        if !self.allocations.take_allowed(self.limits.max_memory_allocation_count) {
            return None;
        }
        let mut info = BufferCreateInfo::zeroed();
        info.s_type = StructureType::BUFFER_CREATE_INFO;
        info.size = bytes;
        info.usage = BufferUsageFlags::STORAGE_BUFFER;
        if self.has_addresses {
            info.usage.0 |= BufferUsageFlags::SHADER_DEVICE_ADDRESS.0;
        }
        if self.families.len() > 1 {
            info.sharing_mode = SharingMode::CONCURRENT;
            info.queue_family_index_count = self.families.len() as u32;
            info.p_queue_family_indices = Ptr::to_slice(&self.families);
        }
        let mut block = ArenaBlock {
            buffer: Buffer::default(),
            memory: DeviceMemory::default(),
            host_address: 0,
            device_address: 0,
            bytes,
        };
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; the info and the place are ours, and the
        // families are those that the device was made with.
        let result =
            unsafe { (self.next.create_buffer?)(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut block.buffer)) };
        if result == Result::SUCCESS && self.allocate_block_memory(&mut block).is_some() {
            block.whole().zero();
            return Some(block);
        }
        self.destroy_block(block);
        None
    }

    fn allocate_block_memory(&self, block: &mut ArenaBlock) -> Option<()> {
        let mut needs = MemoryRequirements::zeroed();
        let mut info = MemoryAllocateInfo::zeroed();
        info.s_type = StructureType::MEMORY_ALLOCATE_INFO;
        let mut flags = MemoryAllocateFlagsInfo::zeroed();
        flags.s_type = StructureType::MEMORY_ALLOCATE_FLAGS_INFO;
        flags.flags = MemoryAllocateFlags::DEVICE_ADDRESS;
        // The older extension wants nothing of memory.
        if self.has_addresses && self.extension == AddressExtension::Khr {
            info.p_next = Ptr::to(&flags).cast();
        }
        // SAFETY: the buffer was just made on this device; the place is ours.
        unsafe { (self.next.get_buffer_memory_requirements?)(self.device, block.buffer, out_ptr(&mut needs)) };
        info.memory_type_index = self.memory_type(needs.memory_type_bits)?;
        info.allocation_size = needs.size;
        let allocate = self.next.allocate_memory?;
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; the info, its chain and the place are ours.
        // The type is one that the device has, and the size is not zero.
        check_success(unsafe { allocate(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut block.memory)) })?;
        self.allocations.add();
        self.memory_use.add(block.bytes);
        // SAFETY: both were just made: the buffer has no memory yet, which is as large as it needs and of a type that
        // it allows.
        check_success(unsafe { (self.next.bind_buffer_memory?)(self.device, block.buffer, block.memory, 0) })?;
        let (map, flags) = (self.next.map_memory?, MemoryMapFlags::default());
        // SAFETY: `memory_type` gives memory that the host sees, which is not mapped yet; the place is ours.
        check_success(unsafe {
            map(self.device, block.memory, 0, WHOLE_SIZE, flags, out_ptr(&mut block.host_address).cast())
        })?;
        if self.has_addresses {
            block.device_address = self.query_device_address(block.buffer)?;
        }
        Some(())
    }

    /// A type of memory that both sides see, best one that the host reads through its caches.
    fn memory_type(&self, allowed: u32) -> Option<u32> {
        let wanted = MemoryPropertyFlags::HOST_VISIBLE.0 | MemoryPropertyFlags::HOST_COHERENT.0;
        let flags = |it: u32| self.memory_properties.memory_types[it as usize].property_flags.0;
        let fits = |it: &u32| allowed & 1 << it != 0 && flags(*it) & wanted == wanted;
        let all = || (0..self.memory_properties.memory_type_count.min(32)).filter(fits);
        let cached = all().find(|it| flags(*it) & MemoryPropertyFlags::HOST_CACHED.0 != 0);
        cached.or_else(|| all().next())
    }

    fn query_device_address(&self, buffer: Buffer) -> Option<u64> {
        let mut info = BufferDeviceAddressInfo::zeroed();
        info.s_type = StructureType::BUFFER_DEVICE_ADDRESS_INFO;
        info.buffer = buffer;
        // SAFETY: a buffer of ours, with memory and with the usage for it
        // (VUID-VkBufferDeviceAddressInfo-buffer-02601), on a device that has addresses.
        let address = unsafe { (self.next.get_buffer_device_address?)(self.device, Ptr::to(&info)) };
        Some(address).filter(|it| *it != 0)
    }

    pub(crate) fn destroy_block(&self, block: ArenaBlock) {
        if let Some(destroy) = self.next.destroy_buffer {
            // SAFETY: a buffer that `create_block` made on this device, or null. Its one owner gives it away, a spare
            // or when the device ends, so that no work and no region in use has it.
            unsafe { destroy(self.device, block.buffer, Ptr::NULL) };
        }
        if block.memory.0 != 0 {
            self.allocations.remove();
            self.memory_use.remove(block.bytes);
        }
        if let Some(free) = self.next.free_memory {
            // SAFETY: the memory of that buffer, or null. Freeing it unmaps it.
            unsafe { free(self.device, block.memory, Ptr::NULL) };
        }
    }

    /// The application's allocation failed: frees our unused memory. Returns whether there was any.
    pub(crate) fn release_spares(&self) -> bool {
        let blocks = std::mem::take(&mut self.spares().blocks);
        let has_any = !blocks.is_empty();
        blocks.into_iter().for_each(|it| self.destroy_block(it));
        has_any
    }

    /// A pool for sets of ours.
    pub(crate) fn take_descriptor_pool(&self) -> Option<DescriptorPool> {
        let spare = self.spares().pools.pop();
        if spare.is_some() {
            return spare;
        }
        if !self.allocations.take_allowed(u32::MAX) {
            return None;
        }
        let count = POOL_SETS * crate::gpu::TABLE_COUNT as u32;
        let size = DescriptorPoolSize { type_: DescriptorType::STORAGE_BUFFER, descriptor_count: count };
        let mut info = DescriptorPoolCreateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_POOL_CREATE_INFO;
        info.max_sets = POOL_SETS;
        info.pool_size_count = 1;
        info.p_pool_sizes = Ptr::to(&size);
        let mut pool = DescriptorPool::default();
        let create = self.next.create_descriptor_pool?;
        // SAFETY: a device that is alive by the contract of `DeviceChecks::begin`; the info, its sizes and the place are ours.
        check_success(unsafe { create(self.device, Ptr::to(&info), Ptr::NULL, out_ptr(&mut pool)) })?;
        Some(pool)
    }

    /// The memory of a command buffer is free. The blocks are zero.
    pub(crate) fn recycle(&self, blocks: Vec<ArenaBlock>, pools: Vec<DescriptorPool>) {
        for pool in &pools {
            let reset = self.next.reset_descriptor_pool;
            // SAFETY: a pool of ours, which its command buffer has just given away: the device uses no set of it
            // (VUID-vkResetDescriptorPool-descriptorPool-00313), since the application records that anew or frees it.
            _ = reset.map(|it| unsafe { it(self.device, *pool, DescriptorPoolResetFlags::default()) });
        }
        let mut spares = self.spares();
        spares.blocks.extend(blocks);
        spares.pools.extend(pools);
    }
}

pub(crate) fn check_success(result: Result) -> Option<()> {
    (result == Result::SUCCESS).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_stay_below_the_limit() {
        let all = AllocationBudget { live: AtomicU32::new(2), left: AtomicU32::new(u32::MAX) };
        assert!(all.take_allowed(3));
        all.add();
        assert!(!all.take_allowed(3), "three of three are there");
        all.remove();
        assert!(all.take_allowed(3));
        let few = AllocationBudget { live: AtomicU32::new(0), left: AtomicU32::new(1) };
        assert!(few.take_allowed(9));
        assert!(!few.take_allowed(9), "one was allowed");
    }
}
