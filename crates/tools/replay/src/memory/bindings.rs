//! Which resources are bound where in the memories of the trace.
//!
//! A capture of mapped memory also has what the device was writing when it looked: half a picture. Into the texels of
//! an image whose layout is the driver's own the host cannot have written, so nothing is put there.

use std::ops::Range;
use std::sync::Mutex;

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Structure};
use lavascope_record::Call;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call::chain;
use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::device::ReplayDevice;
use crate::port::formats;
use crate::port::instance::out;
use crate::replay::lock;

/// A resource in a memory.
struct BoundRange {
    resource: ObjectId,
    bytes: Range<u64>,
    /// Whether only the driver knows what the bytes mean.
    is_opaque: bool,
    /// Whether the resource was destroyed. Its bytes are compared later, and messages name it.
    is_destroyed: bool,
}

impl BoundRange {
    fn new(resource: ObjectId, bytes: Range<u64>, is_opaque: bool) -> BoundRange {
        BoundRange { resource, bytes, is_opaque, is_destroyed: false }
    }

    fn overlaps(&self, other: &BoundRange) -> bool {
        self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end
    }
}

/// All resources that are bound.
#[derive(Default)]
pub(crate) struct MemoryBindings {
    /// By memory.
    bound: Mutex<FxHashMap<ObjectId, Vec<BoundRange>>>,
    /// The memory of each resource.
    memories: Mutex<FxHashMap<ObjectId, ObjectId>>,
    /// Images whose texels the host can find.
    linear: Mutex<FxHashSet<ObjectId>>,
}

impl MemoryBindings {
    fn add(&self, memory: ObjectId, bound_range: BoundRange) {
        lock(&self.memories).insert(bound_range.resource, memory);
        let mut bound = lock(&self.bound);
        let all = bound.entry(memory).or_default();
        all.retain(|it| !it.is_destroyed || !it.overlaps(&bound_range));
        all.push(bound_range);
    }

    fn remove(&self, resource: ObjectId) {
        lock(&self.linear).remove(&resource);
        let memory = lock(&self.memories).remove(&resource);
        let mut bound = lock(&self.bound);
        let all = memory.and_then(|it| bound.get_mut(&it)).into_iter().flatten();
        all.filter(|it| it.resource == resource).for_each(|it| it.is_destroyed = true);
    }

    pub(crate) fn remove_memory(&self, memory: ObjectId) {
        lock(&self.bound).remove(&memory);
    }

    /// The resource at a byte of a memory, and where it begins; the smallest one, if there are several.
    pub(crate) fn resource_at(&self, memory: ObjectId, offset: u64) -> Option<(ObjectId, u64)> {
        let bound = lock(&self.bound);
        let here = bound.get(&memory)?.iter().filter(|it| it.bytes.contains(&offset));
        let smallest = here.min_by_key(|it| (it.is_destroyed, it.bytes.end - it.bytes.start, it.resource.raw()))?;
        Some((smallest.resource, smallest.bytes.start))
    }

    /// Which bytes of a range the host cannot have written, if any.
    pub(crate) fn opaque_bytes(&self, memory: ObjectId, bytes: Range<u64>) -> Option<Vec<bool>> {
        let bound = lock(&self.bound);
        let all = bound.get(&memory)?;
        let part = |bound_range: &BoundRange| {
            let (first, end) = (bound_range.bytes.start.max(bytes.start), bound_range.bytes.end.min(bytes.end));
            (first < end).then(|| (first - bytes.start) as usize..(end - bytes.start) as usize)
        };
        let mut parts = all.iter().filter(|it| it.is_opaque && !it.is_destroyed).filter_map(part).peekable();
        parts.peek()?;
        let mut marks = vec![false; (bytes.end - bytes.start) as usize];
        parts.for_each(|it| marks[it].fill(true));
        // A range that also belongs to another resource may be accessed by the host.
        all.iter().filter(|it| !it.is_opaque && !it.is_destroyed).filter_map(part).for_each(|it| marks[it].fill(false));
        Some(marks)
    }
}

/// An image: whether the host can find its texels.
pub(crate) fn create_image(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. The structure that one of them leads to is not null;
    // it and its chain lie in the arena, and nobody else refers to them.
    unsafe {
        let info =
            performer.required(recorded_call, (*unpacked.image.cast::<vk::CreateImageParams>()).p_create_info)?;
        // Images of a swapchain are plain images here, and so are images that are bound to a swapchain.
        chain::retain(info, |it| Some(it) != vk::ImageSwapchainCreateInfoKHR::layout().s_type());
        let (there, here) = ((*info).format, performer.replay.formats.remap((*info).format));
        if there != here {
            let (there, here) = (formats::name(there), formats::name(here));
            performer.replay.remark(format!("this device has no {there}: {here} is used instead"));
        }
        (*info).format = performer.replay.formats.remap((*info).format);
    }
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)?;
    let Some(Call::CreateImage(call)) = Call::of(recorded_call.enter) else { return Ok(()) };
    performer.replay.host_copies.add(recorded_call);
    let is_linear = call.p_create_info().is_some_and(|it| it.tiling != vk::ImageTiling::OPTIMAL);
    if let Some(lavascope_record::Outcome::CreateImage(outputs)) =
        recorded_call.leave.and_then(lavascope_record::Outcome::of)
        && let Some(id) = outputs.p_image().and_then(|it| ObjectId::from_raw(it.0))
        && is_linear
    {
        lock(&performer.replay.bindings.linear).insert(id);
        if performer.device(recorded_call)?.is_other_device {
            performer.replay.linear.add(id, call.p_create_info().map_or(vk::ImageType(1), |it| it.image_type));
        }
    }
    Ok(())
}

/// A buffer or image ends.
pub(crate) fn destroy(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let raw = match Call::of(recorded_call.enter) {
        Some(Call::DestroyBuffer(params)) => params.buffer.0,
        Some(Call::DestroyImage(params)) => params.image.0,
        _ => 0,
    };
    if let Some(id) = ObjectId::from_raw(raw) {
        performer.replay.bindings.remove(id);
        performer.replay.linear.remove(id);
        performer.replay.host_copies.remove(id);
    }
    performer.perform_unchanged(recorded_call)
}

impl Performer<'_> {
    /// Stores a binding.
    pub(crate) fn record_bindings(&self, device: &ReplayDevice, recorded_call: &RecordedCall<'_>) {
        let buffer = |buffer: u64, memory: u64, offset: u64| {
            let (Some(id), Some(memory)) = (ObjectId::from_raw(buffer), ObjectId::from_raw(memory)) else { return };
            let size = self.replay.addresses.size_of(id).unwrap_or(0);
            let bytes = offset..offset.saturating_add(size);
            self.replay.bindings.add(memory, BoundRange::new(id, bytes, false));
        };
        let image = |image: u64, memory: u64, offset: u64| {
            let (Some(id), Some(memory)) = (ObjectId::from_raw(image), ObjectId::from_raw(memory)) else { return };
            let bytes = offset..offset.saturating_add(self.image_size(device, id));
            let is_opaque = !lock(&self.replay.bindings.linear).contains(&id);
            self.replay.bindings.add(memory, BoundRange::new(id, bytes, is_opaque));
        };
        match Call::of(recorded_call.enter) {
            Some(Call::BindBufferMemory(params)) => buffer(params.buffer.0, params.memory.0, params.memory_offset),
            Some(Call::BindBufferMemory2(params)) => {
                params.p_bind_infos().iter().for_each(|it| buffer(it.buffer.0, it.memory.0, it.memory_offset));
            }
            Some(Call::BindImageMemory(params)) => image(params.image.0, params.memory.0, params.memory_offset),
            Some(Call::BindImageMemory2(params)) => {
                params.p_bind_infos().iter().for_each(|it| image(it.image.0, it.memory.0, it.memory_offset));
            }
            _ => {}
        }
    }

    fn image_size(&self, device: &ReplayDevice, id: ObjectId) -> u64 {
        let Some(object) = self.replay.objects.find(id) else { return 0 };
        let mut needs: vk::MemoryRequirements = Structure::zeroed();
        driver!(
            device.functions,
            GetImageMemoryRequirements,
            FnGetImageMemoryRequirements(device.handle, vk::Image(object.handle), out(&mut needs))
        );
        needs.size
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::HandleType;

    use super::*;

    #[test]
    fn texels_of_images_are_not_the_hosts_unless_a_buffer_shares_them() {
        let id = |ty, serial| ObjectId::new(ty, serial).expect("a small number");
        let memory = id(HandleType::DeviceMemory, 1);
        let (image, buffer) = (id(HandleType::Image, 1), id(HandleType::Buffer, 1));
        let bindings = MemoryBindings::default();
        assert_eq!(bindings.opaque_bytes(memory, 0..10), None);
        bindings.add(memory, BoundRange::new(image, 2..8, true));
        assert_eq!(bindings.opaque_bytes(memory, 0..4), Some(vec![false, false, true, true]));
        assert_eq!(bindings.opaque_bytes(memory, 8..12), None);
        bindings.add(memory, BoundRange::new(buffer, 3..6, false));
        assert_eq!(bindings.opaque_bytes(memory, 2..7), Some(vec![true, false, false, false, true]));
        assert_eq!([1, 2, 4].map(|it| bindings.resource_at(memory, it)), [None, Some((image, 2)), Some((buffer, 3))]);
        bindings.remove(image);
        assert_eq!(bindings.opaque_bytes(memory, 0..10), None);
        assert_eq!(bindings.resource_at(memory, 2), Some((image, 2)), "what it was before is still known");
        bindings.remove(buffer);
        bindings.remove_memory(memory);
    }
}
