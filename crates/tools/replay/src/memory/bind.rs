//! Binding on another device than the trace was made on: resources need other sizes, alignments and types of memory.
//!
//! A resource that fits at its place in the trace is bound there. One that does not fit gets memory of its own, and
//! host writes to the memory of the trace are written there, too.

use crate::memory::device_memory::Allocation;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Ptr, Structure};
use lavascope_record::Call;

use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::memory::device_memory::{RelocatedLayout, RelocatedResource, ReplayMemory, clear};
use crate::memory::linear_images::LinearLayout;
use crate::port::device::ReplayDevice;
use crate::port::instance::out;
use crate::present::virtual_swapchain::check;

/// The resource that is bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

/// Binds one resource or several, wherever they fit.
pub(crate) fn bind(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    if recorded_call.has_failed() {
        return Ok(());
    }
    performer.record_bindings(&device, recorded_call);
    if !device.is_other_device {
        return performer.perform_unchanged(recorded_call);
    }
    let mut linear = linear_images(performer, recorded_call).into_iter();
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image;
    let mut place = |resource: Resource, memory: &mut vk::DeviceMemory, offset: &mut u64| {
        let pitches = linear.next().flatten();
        let placed = performer
            .choose_memory(&device, (resource, pitches), *memory, *offset)
            .map_err(|it| performer.error(recorded_call, it))?;
        (*memory, *offset) = placed;
        Ok::<(), ReplayError>(())
    };
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and `elements` gives structures in the arena that
    // nobody else refers to; each reference ends before the next begins.
    unsafe {
        match recorded_call.command() {
            vk::Command::BindBufferMemory => {
                let memory_params = &mut *image.cast::<vk::BindBufferMemoryParams>();
                place(
                    Resource::Buffer(memory_params.buffer),
                    &mut memory_params.memory,
                    &mut memory_params.memory_offset,
                )?;
            }
            vk::Command::BindImageMemory => {
                let memory_params = &mut *image.cast::<vk::BindImageMemoryParams>();
                place(
                    Resource::Image(memory_params.image),
                    &mut memory_params.memory,
                    &mut memory_params.memory_offset,
                )?;
            }
            vk::Command::BindBufferMemory2 => {
                let memory2_params = &*image.cast::<vk::BindBufferMemory2Params>();
                for info in
                    performer.elements(recorded_call, (memory2_params.p_bind_infos, memory2_params.bind_info_count))?
                {
                    let info = &mut *info;
                    place(Resource::Buffer(info.buffer), &mut info.memory, &mut info.memory_offset)?;
                }
            }
            vk::Command::BindImageMemory2 => {
                let memory2_params = &*image.cast::<vk::BindImageMemory2Params>();
                for info in
                    performer.elements(recorded_call, (memory2_params.p_bind_infos, memory2_params.bind_info_count))?
                {
                    let info = &mut *info;
                    place(Resource::Image(info.image), &mut info.memory, &mut info.memory_offset)?;
                }
            }
            _ => {}
        }
    }
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

/// For each image that is bound, where its texels are, if it is linear.
fn linear_images(performer: &Performer<'_>, recorded_call: &RecordedCall<'_>) -> Vec<Option<Arc<LinearLayout>>> {
    let find = |raw: u64| ObjectId::from_raw(raw).and_then(|it| performer.replay.linear.find(it));
    match Call::of(recorded_call.enter) {
        Some(Call::BindImageMemory(params)) => vec![find(params.image.0)],
        Some(Call::BindImageMemory2(params)) => params.p_bind_infos().iter().map(|it| find(it.image.0)).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn memory_requirements(device: &ReplayDevice, resource: Resource) -> vk::MemoryRequirements {
    let mut needs = vk::MemoryRequirements::zeroed();
    let (functions, handle) = (&device.functions, device.handle);
    match resource {
        Resource::Buffer(buffer) => {
            driver!(
                functions,
                GetBufferMemoryRequirements,
                FnGetBufferMemoryRequirements(handle, buffer, out(&mut needs))
            )
        }
        Resource::Image(image) => {
            driver!(functions, GetImageMemoryRequirements, FnGetImageMemoryRequirements(handle, image, out(&mut needs)))
        }
    };
    needs
}

/// Whether a resource can be at an offset of a memory of a type and size.
pub(crate) fn fits_in_memory(needs: &vk::MemoryRequirements, (ty, size): (u32, u64), offset: u64) -> bool {
    let is_allowed = needs.memory_type_bits >> ty & 1 == 1;
    let is_aligned = offset.is_multiple_of(needs.alignment.max(1));
    is_allowed && is_aligned && offset.checked_add(needs.size).is_some_and(|it| it <= size)
}

impl Performer<'_> {
    /// Where a resource is bound here.
    fn choose_memory(
        &self,
        device: &Arc<ReplayDevice>,
        (resource, pitches): (Resource, Option<Arc<LinearLayout>>),
        memory: vk::DeviceMemory,
        offset: u64,
    ) -> Result<(vk::DeviceMemory, u64), String> {
        let needs = memory_requirements(device, resource);
        let Some(owner) = self.replay.memories.find_by_handle(memory) else { return Ok((memory, offset)) };
        // Rows of a linear image may be elsewhere, and nothing else may be where they are.
        let is_moved = pitches.is_some() && owner.is_visible;
        if !is_moved && fits_in_memory(&needs, (owner.ty, owner.size), offset) {
            return Ok((memory, offset));
        }
        let shape = match (resource, pitches) {
            (Resource::Buffer(_), _) => RelocatedLayout::Same,
            (Resource::Image(_), Some(pitches)) => RelocatedLayout::Rows(pitches),
            (Resource::Image(_), None) => RelocatedLayout::Opaque,
        };
        let own = allocate_relocated(device, &needs, &owner, &shape)?;
        let handle = own.handle;
        owner.add_relocated(RelocatedResource { recorded_offset: offset, memory: own, layout: shape });
        Ok((handle, 0))
    }
}

/// Memory for one resource that does not fit where it was.
fn allocate_relocated(
    device: &Arc<ReplayDevice>,
    needs: &vk::MemoryRequirements,
    owner: &ReplayMemory,
    shape: &RelocatedLayout,
) -> Result<ReplayMemory, String> {
    let host = vk::MemoryPropertyFlags::HOST_VISIBLE.0 | vk::MemoryPropertyFlags::HOST_COHERENT.0;
    let local = vk::MemoryPropertyFlags::DEVICE_LOCAL.0;
    let is_host = owner.is_visible && !matches!(shape, RelocatedLayout::Opaque);
    let wanted = if is_host { [host | local, host] } else { [local, 0] };
    let bits = needs.memory_type_bits;
    let ty =
        wanted.iter().find_map(|it| device.find_memory_type(bits, *it)).ok_or("this device has no suitable memory")?;
    let flags = vk::MemoryAllocateFlagsInfo {
        flags: vk::MemoryAllocateFlags(vk::MemoryAllocateFlags::DEVICE_ADDRESS.0),
        ..vk::MemoryAllocateFlagsInfo::zeroed()
    };
    let needs_address = device.has_addresses && matches!(shape, RelocatedLayout::Same);
    let info = vk::MemoryAllocateInfo {
        p_next: if needs_address { Ptr::to(&flags).cast() } else { Ptr::NULL },
        allocation_size: needs.size,
        memory_type_index: ty,
        ..vk::MemoryAllocateInfo::zeroed()
    };
    let mut handle = vk::DeviceMemory(0);
    let made = driver!(
        device.functions,
        AllocateMemory,
        FnAllocateMemory(device.handle, Ptr::to(&info), Ptr::NULL, out(&mut handle))
    );
    check("memory of its own", made)?;
    let memory =
        ReplayMemory::new(device.clone(), owner.id, Allocation { handle, size: needs.size, ty }, (false, false));
    if is_host {
        clear(&memory)?;
    }
    Ok(memory)
}
