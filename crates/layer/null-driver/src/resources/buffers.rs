//! Buffers: their memory requirements, bindings and device addresses.

use std::sync::{PoisonError, RwLock};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::capabilities::physical_device::{ORDINARY_TYPES, PROTECTED};
use crate::resources::address_space::DeviceAddressRange;
use crate::resources::memory::{AllocationBinding, WeakAllocationBinding};

pub(crate) static BUFFERS: DriverObjectTable<BufferData> = DriverObjectTable::new(HandleType::Buffer);
/// As large as any alignment that a usage asks for.
const ALIGNMENT: u64 = 256;

/// A buffer.
pub(crate) struct BufferData {
    size: u64,
    is_protected: bool,
    binding: RwLock<Option<WeakAllocationBinding>>,
    /// For a sparse buffer, which has an address without memory.
    addresses: Option<DeviceAddressRange>,
}

impl BufferData {
    /// The bound memory and the offset of the buffer in it.
    pub(crate) fn binding(&self) -> Option<AllocationBinding> {
        self.binding.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn bind(&self, memory: DeviceMemory, offset: u64) -> Result {
        let Some(binding) = AllocationBinding::of(memory, offset) else { return Result::ERROR_UNKNOWN };
        *self.binding.write().unwrap_or_else(PoisonError::into_inner) = Some(binding.downgrade());
        Result::SUCCESS
    }

    pub(crate) fn address(&self) -> u64 {
        let binding = self.binding.read().unwrap_or_else(PoisonError::into_inner);
        let sparse = self.addresses.as_ref().map(DeviceAddressRange::first);
        sparse.or(binding.as_ref().map(WeakAllocationBinding::device_address)).unwrap_or_default()
    }

    fn requirements(&self) -> MemoryRequirements {
        requirements(self.size, self.is_protected)
    }
}

fn requirements(size: u64, is_protected: bool) -> MemoryRequirements {
    MemoryRequirements {
        size: size.max(1).checked_next_multiple_of(ALIGNMENT).unwrap_or(size),
        alignment: ALIGNMENT,
        memory_type_bits: if is_protected { 1 << PROTECTED } else { ORDINARY_TYPES },
    }
}

pub(crate) fn create_buffer(c: ApplicationMemory<'_>, call: &CreateBufferParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let has = |flag: BufferCreateFlags| info.flags.0 & flag.0 != 0;
    let wanted = c.find::<BufferOpaqueCaptureAddressCreateInfo>(info.p_next).map_or(0, |it| it.opaque_capture_address);
    let addresses = match (has(BufferCreateFlags::SPARSE_BINDING), wanted) {
        (false, _) => None,
        (true, 0) => DeviceAddressRange::allocate(info.size),
        (true, wanted) => match DeviceAddressRange::allocate_at(wanted, info.size) {
            Some(address_range) => Some(address_range),
            None => return Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS,
        },
    };
    let is_protected = has(BufferCreateFlags::PROTECTED);
    let buffer = BufferData { size: info.size, is_protected, binding: RwLock::default(), addresses };
    c.write(call.p_buffer, Buffer(BUFFERS.add(buffer)));
    Result::SUCCESS
}

pub(crate) fn destroy_buffer(_: ApplicationMemory<'_>, call: &DestroyBufferParams) {
    BUFFERS.remove(call.buffer.0);
}

pub(crate) fn get_buffer_memory_requirements(c: ApplicationMemory<'_>, call: &GetBufferMemoryRequirementsParams) {
    let found = BUFFERS.get(call.buffer.0).map(|it| it.requirements());
    c.write(call.p_memory_requirements, found.unwrap_or_else(MemoryRequirements::zeroed));
}

pub(crate) fn get_buffer_memory_requirements2(c: ApplicationMemory<'_>, call: &GetBufferMemoryRequirements2Params) {
    let found = c.get(call.p_info).and_then(|it| BUFFERS.get(it.buffer.0)).map(|it| it.requirements());
    put_requirements(c, call.p_memory_requirements, found);
}

pub(crate) fn get_device_buffer_memory_requirements(
    c: ApplicationMemory<'_>,
    call: &GetDeviceBufferMemoryRequirementsParams,
) {
    let info = c.get(call.p_info).and_then(|it| c.get(it.p_create_info));
    let found = info.map(|it| requirements(it.size, it.flags.0 & BufferCreateFlags::PROTECTED.0 != 0));
    put_requirements(c, call.p_memory_requirements, found);
}

/// Requirements with their chain: nothing prefers memory of its own.
pub(crate) fn put_requirements(
    c: ApplicationMemory<'_>,
    to: Ptr<MemoryRequirements2>,
    found: Option<MemoryRequirements>,
) {
    let Some(out) = c.get_mut(to) else { return };
    out.memory_requirements = found.unwrap_or_else(MemoryRequirements::zeroed);
    if let Some(value) = c.find_mut::<MemoryDedicatedRequirements>(out.p_next) {
        value.prefers_dedicated_allocation = Bool32::FALSE;
        value.requires_dedicated_allocation = Bool32::FALSE;
    }
}

pub(crate) fn bind_buffer_memory(_: ApplicationMemory<'_>, call: &BindBufferMemoryParams) -> Result {
    match BUFFERS.get(call.buffer.0) {
        Some(buffer_data) => buffer_data.bind(call.memory, call.memory_offset),
        None => Result::ERROR_UNKNOWN,
    }
}

pub(crate) fn bind_buffer_memory2(c: ApplicationMemory<'_>, call: &BindBufferMemory2Params) -> Result {
    let mut all = Result::SUCCESS;
    for memory_info in c.slice(call.p_bind_infos, call.bind_info_count) {
        let buffer = BUFFERS.get(memory_info.buffer.0);
        let result =
            buffer.map_or(Result::ERROR_UNKNOWN, |buffer| buffer.bind(memory_info.memory, memory_info.memory_offset));
        put_status(c, memory_info.p_next, result);
        if result != Result::SUCCESS {
            all = result;
        }
    }
    all
}

/// Where the application wants to know how each binding went.
pub(crate) fn put_status(c: ApplicationMemory<'_>, chain: Ptr<Opaque>, result: Result) {
    if let Some(memory_status) = c.find::<BindMemoryStatus>(chain) {
        c.write(memory_status.p_result, result);
    }
}

pub(crate) fn get_buffer_device_address(c: ApplicationMemory<'_>, call: &GetBufferDeviceAddressParams) -> u64 {
    address(c, call.p_info)
}

pub(crate) fn get_buffer_opaque_capture_address(
    c: ApplicationMemory<'_>,
    call: &GetBufferOpaqueCaptureAddressParams,
) -> u64 {
    address(c, call.p_info)
}

fn address(c: ApplicationMemory<'_>, info: Ptr<BufferDeviceAddressInfo>) -> u64 {
    c.get(info).and_then(|it| BUFFERS.get(it.buffer.0)).map_or(0, |it| it.address())
}
