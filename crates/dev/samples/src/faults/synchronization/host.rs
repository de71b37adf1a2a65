//! The host reads and writes memory that the device may still use.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Buffer, MemoryPlacement, Needs, scope};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    fence: "fence", "the host reads a buffer before it has waited for the fence of the copy into it.",
    write: "host-write", "the host overwrites a buffer that a submitted copy may still read.",
    barrier: "host-barrier", "the host reads a buffer after its fence, but no barrier made it visible to the host.",
}

pub(super) fn host_buffer(lab: &FaultContext, name: &str) -> Result<Buffer, Failure> {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    lab.buffer(name, SIZE, usage, MemoryPlacement::Host)
}

/// Maps a buffer, lets the host use it, and flushes or invalidates it as if the memory were not coherent.
fn mapped<T>(
    lab: &FaultContext,
    buffer: &Buffer,
    what: impl FnOnce(*mut u32) -> T,
    access: MappedAccess,
) -> Result<T, Failure> {
    let range = [vk::MappedMemoryRange::default().memory(buffer.memory).size(vk::WHOLE_SIZE)];
    // SAFETY: the memory is the buffer's own, and each mapping ends here (VUID-vkMapMemory-memory-00678); the range
    // is the whole mapping (VUID-VkMappedMemoryRange-memory-00684). This thread alone uses it (lifetime, owner).
    unsafe {
        let address = lab.device.map_memory(buffer.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
        if access == MappedAccess::Read {
            lab.device.invalidate_mapped_memory_ranges(&range)?;
        }
        let result = what(address.cast());
        if access == MappedAccess::Write {
            lab.device.flush_mapped_memory_ranges(&range)?;
        }
        lab.device.unmap_memory(buffer.memory);
        Ok(result)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MappedAccess {
    Read,
    Write,
}

fn read(lab: &FaultContext, buffer: &Buffer) -> Result<Vec<u32>, Failure> {
    // SAFETY: `host_buffer` made the buffer of `SIZE` bytes, so the mapping has as many words. With the fault the
    // device writes them meanwhile: a volatile read of a plain word gives any of its values.
    let words = |from: *mut u32| (0..WORDS).map(|at| unsafe { from.add(at).read_volatile() }).collect();
    mapped(lab, buffer, words, MappedAccess::Read)
}

pub(super) fn overwrite(lab: &FaultContext, buffer: &Buffer, value: u32) -> Result<(), Failure> {
    // SAFETY: `host_buffer` made the buffer of `SIZE` bytes, so the mapping has as many words. With the fault the
    // device reads them meanwhile, and any value is a valid word for it.
    let words = |to: *mut u32| (0..WORDS).for_each(|at| unsafe { to.add(at).write_volatile(value) });
    mapped(lab, buffer, words, MappedAccess::Write)
}

fn fence(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let result = host_buffer(&lab, "result")?;
    let commands = lab.record_new(lab.main, "fill for the host", |commands| {
        lab.fill(commands, &result, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::HOST_READ);
    })?;
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
    if lab.is_fixed() {
        lab.wait(fence)?;
    }
    let words = read(&lab, &result)?;
    lab.wait(fence)?;
    lab.expect_words(&words, &[7; WORDS])
}

fn write(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (upload, [target]) = (host_buffer(&lab, "upload")?, lab.word_buffers(["target"])?);
    overwrite(&lab, &upload, 7)?;
    let commands = lab.record_new(lab.main, "copy", |commands| lab.copy_buffer(commands, &upload, &target))?;
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
    if lab.is_fixed() {
        lab.wait(fence)?;
    }
    overwrite(&lab, &upload, 8)?;
    lab.wait(fence)?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn barrier(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let result = host_buffer(&lab, "result")?;
    lab.run_once("fill for the host", |commands| {
        lab.fill(commands, &result, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::HOST_READ);
    })?;
    lab.expect_words(&read(&lab, &result)?, &[7; WORDS])
}
