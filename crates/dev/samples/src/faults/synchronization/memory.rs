//! Resources that share memory, by aliasing or by sparse binding.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, MemoryPlacement, Needs, SampleImage, image_info, scope};
use crate::failure::Failure;
use crate::faults::context::{EXTENT, FORMAT, FaultContext, GREEN_WORD, SIZE, WORDS, any_image};
use crate::faults::faults;

faults! {
    buffers: "alias-buffer", "a buffer is copied while another one in the same memory may still be filled.",
    image: "alias-image", "an image is cleared while a copy may still read a buffer in the same memory.",
    sparse: "sparse-alias", "a sparse buffer is copied while another one with the same pages may still be filled.",
}

const TRANSFERS: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(
    vk::BufferUsageFlags::TRANSFER_SRC.as_raw() | vk::BufferUsageFlags::TRANSFER_DST.as_raw(),
);

/// A kept buffer without memory, and what it needs.
fn buffer(
    lab: &FaultContext,
    name: &str,
    flags: vk::BufferCreateFlags,
    size: u64,
) -> Result<(vk::Buffer, vk::MemoryRequirements), Failure> {
    let info = vk::BufferCreateInfo::default().flags(flags).size(size).usage(TRANSFERS);
    // SAFETY: `info` lives until the call returns (lifetime).
    unsafe {
        let handle = lab.name(lab.destroy_at_end(lab.device.create_buffer(&info, None)?), name);
        Ok((handle, lab.device.get_buffer_memory_requirements(handle)))
    }
}

/// Memory for both of them at its beginning.
fn memory(
    lab: &FaultContext,
    one: vk::MemoryRequirements,
    two: vk::MemoryRequirements,
) -> Result<vk::DeviceMemory, Failure> {
    let both = vk::MemoryRequirements {
        size: one.size.max(two.size),
        alignment: one.alignment.max(two.alignment),
        memory_type_bits: one.memory_type_bits & two.memory_type_bits,
    };
    Ok(lab.destroy_at_end(lab.allocate("shared memory", both, MemoryPlacement::Device)?))
}

/// Fills one buffer and copies the other, which is the same memory.
fn fill_and_copy(
    lab: &FaultContext,
    handles: [vk::Buffer; 2],
    memory: vk::DeviceMemory,
    size: u64,
) -> Result<(), Failure> {
    let [first, second] = handles.map(|handle| Buffer { handle, memory, size });
    let target = lab.buffer("target", size, TRANSFERS, MemoryPlacement::Device)?;
    lab.run_once("fill and copy", |commands| {
        lab.fill_buffer(commands, &first, (0, size), 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.copy_buffer(commands, &second, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &vec![7; (size / 4) as usize])
}

fn buffers(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (first, one) = buffer(&lab, "first", vk::BufferCreateFlags::empty(), SIZE)?;
    let (second, two) = buffer(&lab, "second", vk::BufferCreateFlags::empty(), SIZE)?;
    let memory = memory(&lab, one, two)?;
    for handle in [first, second] {
        // SAFETY: a new buffer that is not bound, and `memory` followed the requirements of both (lifetime).
        unsafe { lab.device.bind_buffer_memory(handle, memory, 0) }?;
    }
    fill_and_copy(&lab, [first, second], memory, SIZE)
}

fn image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (handle, one) = buffer(&lab, "buffer", vk::BufferCreateFlags::empty(), SIZE)?;
    let info = image_info(FORMAT, EXTENT).usage(any_image());
    // SAFETY: `info` lives until the call returns; `memory` followed the requirements of both, and each is bound once
    // (lifetime).
    let (memory, image) = unsafe {
        let image = lab.destroy_at_end(lab.device.create_image(&info, None)?);
        let memory = memory(&lab, one, lab.device.get_image_memory_requirements(image))?;
        lab.device.bind_buffer_memory(handle, memory, 0)?;
        lab.device.bind_image_memory(image, memory, 0)?;
        (memory, lab.image_with_view("image", image, &info)?)
    };
    let [target] = lab.word_buffers(["target"])?;
    copy_and_clear(&lab, &Buffer { handle, memory, size: SIZE }, &image, &target)
}

fn copy_and_clear(lab: &FaultContext, buffer: &Buffer, image: &SampleImage, target: &Buffer) -> Result<(), Failure> {
    lab.run_once("copy and clear", |commands| {
        lab.prepare(commands, image);
        // That dependency was for the image, and not for the buffer.
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
        lab.fill(commands, buffer, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.copy_buffer(commands, buffer, target);
        lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COPY_WRITE);
        lab.clear(commands, image);
    })?;
    lab.expect(target, scope::COPY_WRITE, &[7; WORDS])?;
    lab.expect_texels(image, scope::COPY_WRITE, GREEN_WORD)
}

fn sparse(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::SparseBinding, Feature::SparseResidencyAliased];
    let lab = FaultContext::new(options, &Needs { features, ..Needs::NOTHING })?;
    let flags = vk::BufferCreateFlags::SPARSE_BINDING | vk::BufferCreateFlags::SPARSE_ALIASED;
    // A page of a sparse buffer is as large as its alignment.
    let size = buffer(&lab, "page", flags, SIZE)?.1.alignment;
    let (first, one) = buffer(&lab, "first", flags, size)?;
    let (second, two) = buffer(&lab, "second", flags, size)?;
    let memory = memory(&lab, one, two)?;
    let binds = [vk::SparseMemoryBind::default().size(size).memory(memory)];
    let buffers = [first, second].map(|it| vk::SparseBufferMemoryBindInfo::default().buffer(it).binds(&binds));
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    // SAFETY: live objects; this thread owns the queue, which `Gpu` chose to bind sparse memory, since the feature is
    // needed (VUID-vkQueueBindSparse-queuetype; lifetime, owner, feature).
    unsafe {
        let info = [vk::BindSparseInfo::default().buffer_binds(&buffers)];
        lab.device.queue_bind_sparse(lab.main.handle, &info, fence)?;
    }
    lab.wait(fence)?;
    fill_and_copy(&lab, [first, second], memory, size)
}
