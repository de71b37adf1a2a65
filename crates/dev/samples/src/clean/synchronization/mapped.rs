//! Memory that stays mapped: the host writes and reads it between submissions, and Vulkan sees no call of it.
//!
//! Two buffers lie in one allocation. It is flushed and invalidated as if it were not coherent, in whole atoms.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Gpu, Needs, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "mapped",
    about: "Writes and reads memory that stays mapped, between submissions that copy within it.",
    run,
};

const WORDS: usize = 256;
const SIZE: u64 = WORDS as u64 * 4;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let block = MappedBuffers::new(&gpu)?;
    let mut random = TestRng::new(options.seed);
    let mut sent = vec![0; WORDS];
    let fence = gpu.fence(vk::FenceCreateFlags::empty())?;
    for frame in 0..options.frames.unwrap_or(5) {
        // The first frame writes all words, later ones only a few.
        let count = if frame == 0 { WORDS as u32 } else { 10 };
        for at in 0..count {
            let at = if frame == 0 { at } else { random.below(WORDS as u32) } as usize;
            sent[at] = random.next_u32();
            block.write(at, sent[at]);
        }
        block.flush(&gpu)?;
        let commands = gpu.record_new(gpu.main, &format!("frame {frame}"), |commands| block.copy(&gpu, commands))?;
        gpu.submit(gpu.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
        gpu.wait(fence)?;
        // SAFETY: the fence was waited for, so no queue uses it (VUID-vkResetFences-pFences-01123; owner).
        unsafe { gpu.device.reset_fences(&[fence]) }?;
        block.invalidate(&gpu)?;
        options.check.words(&format!("frame {frame}"), &block.read(), &sent)?;
    }
    Ok(())
}

/// One allocation, mapped to the end, with two buffers in it.
struct MappedBuffers {
    memory: vk::DeviceMemory,
    sent: vk::Buffer,
    received: vk::Buffer,
    /// Where the second buffer begins.
    offset: u64,
    address: *mut u32,
}

impl MappedBuffers {
    fn new(gpu: &Gpu) -> Result<MappedBuffers, Failure> {
        let create = |name, usage| {
            let info = vk::BufferCreateInfo::default().size(SIZE).usage(usage);
            // SAFETY: `info` lives until the call returns, and the buffer to the end (lifetime).
            unsafe {
                let buffer = gpu.device.create_buffer(&info, None)?;
                let requirements = gpu.device.get_buffer_memory_requirements(buffer);
                Ok::<_, Failure>((gpu.name(buffer, name), requirements))
            }
        };
        let (sent, first) = create("sent", vk::BufferUsageFlags::TRANSFER_SRC)?;
        let (received, second) = create("received", vk::BufferUsageFlags::TRANSFER_DST)?;
        // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
        let limits = unsafe { gpu.instance.handle.get_physical_device_properties(gpu.physical_device) }.limits;
        // The host writes one buffer while it reads the other: they must not share an atom.
        let offset = first.size.next_multiple_of(second.alignment.max(limits.non_coherent_atom_size));
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE;
        let bits = first.memory_type_bits & second.memory_type_bits;
        let mut types = (0..).zip(gpu.memory.memory_types_as_slice());
        let found = types.find(|(at, it)| bits & (1 << at) != 0 && it.property_flags.contains(visible));
        let (index, _) = found.ok_or_else(|| Failure::Unsupported("no memory is visible to the host".to_owned()))?;
        let info = vk::MemoryAllocateInfo::default().allocation_size(offset + second.size).memory_type_index(index);
        // SAFETY: `info` lives until the call returns. Memory and buffers are new, `offset` is a multiple of the
        // alignment of the second buffer, and the size holds both (VUID-vkBindBufferMemory-memoryOffset-01036,
        // -size-01037; lifetime).
        let (memory, address) = unsafe {
            let memory = gpu.name(gpu.destroy_at_end(gpu.device.allocate_memory(&info, None)?), "mapped");
            gpu.device.bind_buffer_memory(gpu.destroy_at_end(sent), memory, 0)?;
            gpu.device.bind_buffer_memory(gpu.destroy_at_end(received), memory, offset)?;
            (memory, gpu.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?.cast())
        };
        Ok(MappedBuffers { memory, sent, received, offset, address })
    }

    fn write(&self, at: usize, word: u32) {
        assert!(at < WORDS, "the word lies in the buffer");
        // SAFETY: the memory stays mapped as a whole and begins with the first buffer, which has `WORDS` words. The
        // fence of the last copy was waited for, and only this thread writes (lifetime, owner).
        unsafe { self.address.add(at).write(word) };
    }

    fn read(&self) -> Vec<u32> {
        let first = self.offset as usize / 4;
        // SAFETY: the memory stays mapped as a whole, and the second buffer has `WORDS` words from `offset` on, a
        // multiple of an alignment of at least four. The fence of the last copy was waited for (lifetime, owner).
        (0..WORDS).map(|at| unsafe { self.address.add(first + at).read() }).collect()
    }

    fn range(&self) -> [vk::MappedMemoryRange<'static>; 1] {
        [vk::MappedMemoryRange::default().memory(self.memory).size(vk::WHOLE_SIZE)]
    }

    fn flush(&self, gpu: &Gpu) -> Result<(), Failure> {
        // SAFETY: the memory is mapped as a whole (VUID-VkMappedMemoryRange-memory-00684; lifetime).
        Ok(unsafe { gpu.device.flush_mapped_memory_ranges(&self.range()) }?)
    }

    fn invalidate(&self, gpu: &Gpu) -> Result<(), Failure> {
        // SAFETY: the memory is mapped as a whole (VUID-VkMappedMemoryRange-memory-00684), and the host flushed what it
        // wrote before the submission, so that nothing of it is lost (lifetime).
        Ok(unsafe { gpu.device.invalidate_mapped_memory_ranges(&self.range()) }?)
    }

    fn copy(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        let region = vk::BufferCopy::default().size(SIZE);
        let barrier = vk::BufferMemoryBarrier::default()
            .src_access_mask(scope::COPY_WRITE.access)
            .dst_access_mask(scope::HOST_READ.access)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .buffer(self.received)
            .size(vk::WHOLE_SIZE);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_copy_buffer(commands, self.sent, self.received, &[region]) };
        gpu.barriers(commands, scope::COPY_WRITE, scope::HOST_READ, &[barrier], &[]);
    }
}
