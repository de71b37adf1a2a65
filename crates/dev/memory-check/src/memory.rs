//! The memories of a device: zeros in the beginning, a hash in the end.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use crate::device::Device;
use crate::lock;

/// How an allocation is used.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) size: u64,
    pub(crate) flags: vk::MemoryPropertyFlags,
    /// Whether its bytes exist already.
    pub(crate) is_import: bool,
}

struct Memory {
    number: u64,
    usage: Usage,
    is_mapped: bool,
}

/// All that are alive, by their handles.
#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<u64, Memory>>);

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Memories {
    /// # Safety
    ///
    /// The memory must be new, and of this device.
    pub(crate) unsafe fn begin(&self, device: &Device, memory: vk::DeviceMemory, usage: Usage) {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if !usage.is_import {
            // SAFETY: by the contract of this function nobody else has the memory.
            unsafe { with_bytes(device, memory, usage, |bytes| bytes.fill(0)) };
        }
        lock(&self.0).insert(vk::Handle::as_raw(memory), Memory { number, usage, is_mapped: false });
    }

    /// # Safety
    ///
    /// The memory must be of this device, or null, and not be in use any more.
    pub(crate) unsafe fn end(&self, device: &Device, memory: vk::DeviceMemory) {
        let known = lock(&self.0).remove(&vk::Handle::as_raw(memory));
        if let Some(known) = known {
            // SAFETY: the memory is of this device and not in use any more, by the contract of this function.
            unsafe { report(device, memory, &known) };
        }
    }

    /// Reports memories that the application did not free.
    ///
    /// # Safety
    ///
    /// Nothing of the device may be in use any more.
    pub(crate) unsafe fn report_rest(&self, device: &Device) {
        let all = std::mem::take(&mut *lock(&self.0));
        for (raw, memory) in all {
            // SAFETY: the memory is of this device and not in use any more, by the contract of this function.
            unsafe { report(device, vk::Handle::from_raw(raw), &memory) };
        }
    }

    pub(crate) fn set_mapped(&self, memory: vk::DeviceMemory, is_mapped: bool) {
        if let Some(known) = lock(&self.0).get_mut(&vk::Handle::as_raw(memory)) {
            known.is_mapped = is_mapped;
        }
    }
}

/// Maps a memory whole, if the host can see it, and acts on its bytes.
///
/// # Safety
///
/// The memory must be of this device, not be mapped, and nobody may use its bytes meanwhile.
unsafe fn with_bytes<T>(
    device: &Device,
    memory: vk::DeviceMemory,
    usage: Usage,
    act: impl FnOnce(&mut [u8]) -> T,
) -> Option<T> {
    if !usage.flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE) {
        return None;
    }
    // SAFETY: by the contract of this function; a mapping of the whole has as many bytes as were allocated, and lasts
    // until it is unmapped.
    unsafe {
        let map = device.function::<vk::PFN_vkMapMemory>(c"vkMapMemory")?;
        let unmap = device.function::<vk::PFN_vkUnmapMemory>(c"vkUnmapMemory")?;
        let mut data: *mut c_void = std::ptr::null_mut();
        let result = map(device.handle, memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty(), &raw mut data);
        if result != vk::Result::SUCCESS {
            return None;
        }
        let range = vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE);
        let is_coherent = usage.flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        let invalidate = device.function::<vk::PFN_vkInvalidateMappedMemoryRanges>(c"vkInvalidateMappedMemoryRanges");
        let flush = device.function::<vk::PFN_vkFlushMappedMemoryRanges>(c"vkFlushMappedMemoryRanges");
        if let Some(invalidate) = invalidate.filter(|_| !is_coherent) {
            let _ = invalidate(device.handle, 1, &raw const range);
        }
        let made = act(std::slice::from_raw_parts_mut(data.cast(), usage.size as usize));
        if let Some(flush) = flush.filter(|_| !is_coherent) {
            let _ = flush(device.handle, 1, &raw const range);
        }
        unmap(device.handle, memory);
        Some(made)
    }
}

/// # Safety
///
/// The memory must be of this device, and not be in use any more; if it is marked as mapped, it must be.
unsafe fn report(device: &Device, memory: vk::DeviceMemory, known: &Memory) {
    let folder = std::env::var_os("LAVASCOPE_MEMORY_CHECK").filter(|it| !it.is_empty());
    let Some(path) = folder else { return };
    // SAFETY: by the contract of this function: whoever frees memory does not use its mapping any more.
    let hash = unsafe {
        if let Some(unmap) = device.function::<vk::PFN_vkUnmapMemory>(c"vkUnmapMemory").filter(|_| known.is_mapped) {
            unmap(device.handle, memory);
        }
        with_bytes(device, memory, known.usage, |bytes| hash(bytes))
    };
    let hash = hash.map_or_else(|| "hidden".to_owned(), |it| format!("{it:016x}"));
    let line = format!("{} {} {hash}\n", known.number, known.usage.size);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // One write, so that lines of threads do not mix. A test without its lines fails.
    let _ = file.and_then(|mut it| it.write_all(line.as_bytes()));
}

/// FNV-1a over words, with the size.
fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut value = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    for word in words {
        // The rotation brings the upper bits down, which multiplications alone do not.
        value = (value ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
    }
    rest.iter().fold(value, |value, byte| (value ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn every_byte_and_the_size_count() {
        let zeros = [0; 4099];
        let first = hash(&zeros);
        assert_ne!(first, hash(&zeros[1..]));
        for at in [0, 7, 8, 2047, 4095, 4096, 4098] {
            let mut other = zeros;
            other[at] = 0x80;
            assert_ne!(first, hash(&other), "byte {at}");
        }
    }
}
