//! Device memory: anonymous mappings that cost nothing until they are touched.

use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lavascope_abi::*;
use lavascope_platform::pages::{self, page_size};
use lavascope_platform::shared_memory::SharedMemory;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::capabilities::physical_device::heap_of;
use crate::resources::address_space::DeviceAddressRange;

pub(crate) static MEMORIES: DriverObjectTable<DeviceAllocation> = DriverObjectTable::new(HandleType::DeviceMemory);

/// Memory of a device.
pub(crate) struct DeviceAllocation {
    addresses: DeviceAddressRange,
    host: u64,
    pub(crate) size: u64,
    kind: AllocationKind,
    /// None for memory that no application allocated.
    heap: Option<usize>,
    /// Where it is mapped at the application's wish, and how many bytes of it.
    placed: Mutex<Option<(u64, usize)>>,
}

enum AllocationKind {
    /// Ours, to be unmapped.
    Mapped,
    /// The application's own, imported.
    Imported,
    /// Shared through a file.
    Shared(SharedMemory),
}

impl DeviceAllocation {
    /// Fresh memory, of zeros; none if the system has no room.
    pub(crate) fn new(size: u64) -> Option<DeviceAllocation> {
        let addresses = DeviceAddressRange::allocate(size)?;
        let host = map(addresses.first(), size, None)?;
        Some(DeviceAllocation {
            addresses,
            host,
            size,
            kind: AllocationKind::Mapped,
            heap: None,
            placed: Mutex::default(),
        })
    }

    /// The device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.addresses.first()
    }

    /// The host address of a byte.
    pub(crate) fn host(&self, offset: u64) -> u64 {
        self.host + offset
    }

    /// Reads bytes; nothing where they do not all lie inside.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) {
        if self.has(offset, out.len()) {
            let from = std::ptr::with_exposed_provenance::<u8>(self.host(offset) as usize);
            // SAFETY: the range lies in a mapping that lives as long as `self`; the application synchronizes access.
            unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        }
    }

    /// Writes bytes; nothing where they do not all lie inside.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        if self.has(offset, bytes.len()) {
            let to = std::ptr::with_exposed_provenance_mut::<u8>(self.host(offset) as usize);
            // SAFETY: as above, and device memory is ours to write when a command says so.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }

    /// The application's addresses are its own again: as a mapping of nothing, where they stay reserved. False if that
    /// cannot be.
    fn unmap_placed(&self, is_reserved: bool) -> bool {
        let mut placed = self.placed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, size)) = placed.take() else { return true };
        if !is_reserved {
            // SAFETY: what `map_placed` mapped; the application unmaps or frees it, and uses it no more.
            return unsafe { pages::unmap(at, size) };
        }
        // SAFETY: what `map_placed` mapped; the application unmaps it, and uses it no more.
        let is_done = unsafe { pages::unmap_and_reserve(at, size) };
        if !is_done {
            *placed = Some((at, size));
        }
        is_done
    }

    fn has(&self, offset: u64, size: usize) -> bool {
        offset.checked_add(size as u64).is_some_and(|end| end <= self.size)
    }
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        self.unmap_placed(false);
        if !matches!(self.kind, AllocationKind::Imported) {
            // SAFETY: our own mapping of this size, which nobody can reach any more.
            unsafe { pages::unmap(self.host, mapped_size(self.size)) };
        }
    }
}

fn mapped_size(size: u64) -> usize {
    size.next_multiple_of(page_size()) as usize
}

/// Maps fresh or shared memory, at the wished address if that is free.
fn map(wanted: u64, size: u64, file: Option<&SharedMemory>) -> Option<u64> {
    match file {
        Some(file) => file.map(wanted, mapped_size(size)).ok(),
        None => pages::map(wanted, mapped_size(size)),
    }
}

pub(crate) fn allocate_memory(c: ApplicationMemory<'_>, call: &AllocateMemoryParams) -> Result {
    let Some(info) = c.get(call.p_allocate_info) else { return Result::ERROR_UNKNOWN };
    let device = c.device(call.device);
    let Some(heap) = heap_of(info.memory_type_index) else { return Result::ERROR_UNKNOWN };
    let used = &device.heap_used[heap];
    let before = used.fetch_add(info.allocation_size, Ordering::Relaxed);
    let memory = match before.checked_add(info.allocation_size) {
        Some(after) if after <= device.settings.heap_bytes => allocate(c, info, can_be_placed(&device.enabled)),
        _ => Err(Result::ERROR_OUT_OF_DEVICE_MEMORY),
    };
    match memory {
        Ok(memory) => {
            c.write(call.p_memory, DeviceMemory(MEMORIES.add(memory)));
            Result::SUCCESS
        }
        Err(result) => {
            used.fetch_sub(info.allocation_size, Ordering::Relaxed);
            result
        }
    }
}

fn allocate(
    c: ApplicationMemory<'_>,
    info: &MemoryAllocateInfo,
    is_placed: bool,
) -> std::result::Result<DeviceAllocation, Result> {
    let (size, heap) = (info.allocation_size, heap_of(info.memory_type_index));
    let wanted =
        c.find::<MemoryOpaqueCaptureAddressAllocateInfo>(info.p_next).map_or(0, |it| it.opaque_capture_address);
    let addresses = match wanted {
        0 => DeviceAddressRange::allocate(size).ok_or(Result::ERROR_OUT_OF_DEVICE_MEMORY)?,
        wanted => DeviceAddressRange::allocate_at(wanted, size).ok_or(Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)?,
    };
    if let Some(pointer_info) = c.find::<ImportMemoryHostPointerInfoEXT>(info.p_next).filter(|it| it.handle_type.0 != 0)
    {
        let host = pointer_info.p_host_pointer.0;
        return Ok(DeviceAllocation {
            addresses,
            host,
            size,
            kind: AllocationKind::Imported,
            heap,
            placed: Mutex::default(),
        });
    }
    let imported = c.find::<ImportMemoryFdInfoKHR>(info.p_next).filter(|it| it.handle_type.0 != 0);
    let is_exported = c.find::<ExportMemoryAllocateInfo>(info.p_next).is_some_and(|it| it.handle_types.0 != 0);
    let file = match imported {
        Some(fd_info) if fd_info.fd < 0 => return Err(Result::ERROR_INVALID_EXTERNAL_HANDLE),
        // SAFETY: the application gives the descriptor away with the import, by the extension's rules.
        Some(fd_info) => Some(unsafe { SharedMemory::from_handle(fd_info.fd.into()) }),
        // Memory that is mapped at several places must be in a file.
        None if is_exported || is_placed => Some(new_file(size)?),
        None => None,
    };
    let Some(host) = map(addresses.first(), size, file.as_ref()) else {
        return Err(Result::ERROR_OUT_OF_DEVICE_MEMORY);
    };
    let kind = file.map_or(AllocationKind::Mapped, AllocationKind::Shared);
    Ok(DeviceAllocation { addresses, host, size, kind, heap, placed: Mutex::default() })
}

/// Whether the application may say where memory is mapped.
fn can_be_placed(enabled: &[CString]) -> bool {
    enabled.iter().any(|it| it.to_bytes() == EXT_MAP_MEMORY_PLACED_EXTENSION_NAME.as_bytes())
}

fn new_file(size: u64) -> std::result::Result<SharedMemory, Result> {
    SharedMemory::new(mapped_size(size) as u64).map_err(|_| Result::ERROR_OUT_OF_DEVICE_MEMORY)
}

pub(crate) fn free_memory(c: ApplicationMemory<'_>, call: &FreeMemoryParams) {
    let Some(memory) = MEMORIES.remove(call.memory.0) else { return };
    if let Some(heap) = memory.heap {
        c.device(call.device).heap_used[heap].fetch_sub(memory.size, Ordering::Relaxed);
    }
}

pub(crate) fn map_memory(c: ApplicationMemory<'_>, call: &MapMemoryParams) -> Result {
    map_at(c, call.memory, call.offset, call.pp_data.cast())
}

pub(crate) fn map_memory2(c: ApplicationMemory<'_>, call: &MapMemory2Params) -> Result {
    let Some(info) = c.get(call.p_memory_map_info) else { return Result::ERROR_UNKNOWN };
    let placed = c.find::<MemoryMapPlacedInfoEXT>(info.p_next);
    match placed.filter(|_| info.flags.0 & MemoryMapFlags::PLACED_EXT.0 != 0) {
        Some(placed_info) => map_placed(c, info, placed_info.p_placed_address.0, call.pp_data.cast()),
        None => map_at(c, info.memory, info.offset, call.pp_data.cast()),
    }
}

/// Maps a part at an address of the application's.
fn map_placed(c: ApplicationMemory<'_>, info: &MemoryMapInfo, at: u64, to: Ptr<u64>) -> Result {
    let Some(memory) = MEMORIES.get(info.memory.0) else { return Result::ERROR_MEMORY_MAP_FAILED };
    let AllocationKind::Shared(file) = &memory.kind else { return Result::ERROR_MEMORY_MAP_FAILED };
    let left = memory.size.saturating_sub(info.offset);
    let size = if info.size == WHOLE_SIZE { left } else { info.size };
    if at == 0 || size == 0 || mapped_size(size) > mapped_size(left) {
        return Result::ERROR_MEMORY_MAP_FAILED;
    }
    let size = mapped_size(size);
    // SAFETY: VK_EXT_map_memory_placed: the application gives these addresses away for the mapping.
    if unsafe { file.map_at(at, size, info.offset) }.is_err() {
        return Result::ERROR_MEMORY_MAP_FAILED;
    }
    *memory.placed.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, size));
    c.write(to, at);
    Result::SUCCESS
}

pub(crate) fn unmap_memory(_: ApplicationMemory<'_>, call: &UnmapMemoryParams) {
    if let Some(memory) = MEMORIES.get(call.memory.0) {
        memory.unmap_placed(false);
    }
}

pub(crate) fn unmap_memory2(c: ApplicationMemory<'_>, call: &UnmapMemory2Params) -> Result {
    let Some(info) = c.get(call.p_memory_unmap_info) else { return Result::ERROR_UNKNOWN };
    match MEMORIES.get(info.memory.0) {
        Some(memory) if !memory.unmap_placed(info.flags.0 & MemoryUnmapFlags::RESERVE_EXT.0 != 0) => {
            Result::ERROR_MEMORY_MAP_FAILED
        }
        _ => Result::SUCCESS,
    }
}

fn map_at(c: ApplicationMemory<'_>, memory: DeviceMemory, offset: u64, to: Ptr<u64>) -> Result {
    match MEMORIES.get(memory.0) {
        Some(device_allocation) => c.write(to, device_allocation.host(offset)),
        None => return Result::ERROR_MEMORY_MAP_FAILED,
    }
    Result::SUCCESS
}

pub(crate) fn get_device_memory_commitment(c: ApplicationMemory<'_>, call: &GetDeviceMemoryCommitmentParams) {
    c.write(call.p_committed_memory_in_bytes, 0);
}

pub(crate) fn get_device_memory_opaque_capture_address(
    c: ApplicationMemory<'_>,
    call: &GetDeviceMemoryOpaqueCaptureAddressParams,
) -> u64 {
    let memory = c.get(call.p_info).and_then(|it| MEMORIES.get(it.memory.0));
    memory.map_or(0, |it| it.address())
}

pub(crate) fn get_memory_fd_khr(c: ApplicationMemory<'_>, call: &GetMemoryFdKHRParams) -> Result {
    let memory = c.get(call.p_get_fd_info).and_then(|it| MEMORIES.get(it.memory.0));
    let Some(AllocationKind::Shared(file)) = memory.as_deref().map(|it| &it.kind) else {
        return Result::ERROR_OUT_OF_HOST_MEMORY;
    };
    match file.to_handle() {
        Ok(handle) => c.write(call.p_fd, handle as i32),
        Err(_) => return Result::ERROR_TOO_MANY_OBJECTS,
    }
    Result::SUCCESS
}

pub(crate) fn get_memory_fd_properties_khr(c: ApplicationMemory<'_>, call: &GetMemoryFdPropertiesKHRParams) -> Result {
    let Some(out) = c.get_mut(call.p_memory_fd_properties) else { return Result::ERROR_UNKNOWN };
    out.memory_type_bits = crate::capabilities::physical_device::ORDINARY_TYPES;
    Result::SUCCESS
}

pub(crate) fn get_memory_host_pointer_properties_ext(
    c: ApplicationMemory<'_>,
    call: &GetMemoryHostPointerPropertiesEXTParams,
) -> Result {
    let Some(out) = c.get_mut(call.p_memory_host_pointer_properties) else { return Result::ERROR_UNKNOWN };
    out.memory_type_bits = crate::capabilities::physical_device::IMPORTED_TYPES;
    Result::SUCCESS
}

/// Where a resource lies.
#[derive(Clone)]
pub(crate) struct AllocationBinding {
    pub(crate) memory: Arc<DeviceAllocation>,
    pub(crate) offset: u64,
}

impl AllocationBinding {
    pub(crate) fn of(memory: DeviceMemory, offset: u64) -> Option<AllocationBinding> {
        Some(AllocationBinding { memory: MEMORIES.get(memory.0)?, offset })
    }

    /// A resource does not keep its memory alive: the application may free it first.
    pub(crate) fn downgrade(&self) -> WeakAllocationBinding {
        WeakAllocationBinding {
            memory: Arc::downgrade(&self.memory),
            offset: self.offset,
            address: self.memory.address(),
        }
    }
}

/// A binding as a resource keeps it.
#[derive(Clone)]
pub(crate) struct WeakAllocationBinding {
    memory: Weak<DeviceAllocation>,
    offset: u64,
    address: u64,
}

impl WeakAllocationBinding {
    pub(crate) fn upgrade(&self) -> Option<AllocationBinding> {
        Some(AllocationBinding { memory: self.memory.upgrade()?, offset: self.offset })
    }

    pub(crate) fn device_address(&self) -> u64 {
        self.address + self.offset
    }
}
