//! Which bytes of a memory the device may write to: those of resources that are made for it.
//!
//! Absent on purpose: what commands and descriptors do with a resource.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_abi::*;

use super::WatchedMemory;
use crate::loader::pnext_chain::find_in_chain;

/// The usages of a buffer by which the device only reads. Any other, also one that is not known yet, may be a write.
const READ_ONLY_USAGE: u64 = BufferUsageFlags2::TRANSFER_SRC.0
    | BufferUsageFlags2::UNIFORM_TEXEL_BUFFER.0
    | BufferUsageFlags2::UNIFORM_BUFFER.0
    | BufferUsageFlags2::INDEX_BUFFER.0
    | BufferUsageFlags2::VERTEX_BUFFER.0
    | BufferUsageFlags2::INDIRECT_BUFFER.0
    | BufferUsageFlags2::CONDITIONAL_RENDERING_EXT.0
    | BufferUsageFlags2::SHADER_BINDING_TABLE_KHR.0
    | BufferUsageFlags2::VIDEO_DECODE_SRC_KHR.0
    | BufferUsageFlags2::VIDEO_ENCODE_SRC_KHR.0
    | BufferUsageFlags2::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR.0
    | BufferUsageFlags2::MICROMAP_BUILD_INPUT_READ_ONLY_EXT.0
    | BufferUsageFlags2::SAMPLER_DESCRIPTOR_BUFFER_EXT.0
    | BufferUsageFlags2::RESOURCE_DESCRIPTOR_BUFFER_EXT.0;

/// A buffer or an image, by its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BoundResource {
    Buffer(u64),
    Image(u64),
    /// Anything.
    Unknown,
}

/// Where a resource lies.
pub(super) struct ResourceBinding {
    pub(super) resource: BoundResource,
    pub(super) memory: DeviceMemory,
    pub(super) offset: u64,
    /// Whether it is not just one of its planes.
    pub(super) is_whole: bool,
}

/// The resources of a device.
#[derive(Default)]
pub(super) struct DeviceResources {
    /// The sizes of buffers that the device may write to.
    buffers: HashMap<u64, u64>,
    bound: HashMap<BoundResource, Arc<WatchedMemory>>,
}

/// What the device may write to in a memory.
#[derive(Default)]
pub(super) struct WritableBytes {
    resources: Vec<(BoundResource, Range<u64>)>,
    /// Of resources that are gone, and whose results were not read yet.
    former: Vec<Range<u64>>,
    /// All of these, once somebody has asked: in their order, and apart.
    merged: Option<Vec<Range<u64>>>,
}

impl WritableBytes {
    /// Ranges in their order, which do not touch.
    pub(super) fn ranges(&mut self) -> &[Range<u64>] {
        let WritableBytes { resources, former, merged: known } = self;
        known.get_or_insert_with(|| merged(resources.iter().map(|it| it.1.clone()).chain(former.clone()).collect()))
    }

    /// Splits a range into those parts to which the device may write, and the others.
    pub(super) fn split(&mut self, bytes: Range<u64>) -> impl Iterator<Item = (Range<u64>, bool)> {
        let all = self.ranges();
        let first = all.partition_point(|it| it.end <= bytes.start);
        let own = all[first..].iter().take_while(move |it| it.start < bytes.end);
        let mut at = bytes.start;
        let writable = own.map(move |it| it.start.max(bytes.start)..it.end.min(bytes.end));
        let parts = writable.chain(std::iter::once(bytes.end..bytes.end)).flat_map(move |part| {
            let between = at..part.start;
            at = part.end;
            [(between, false), (part, true)]
        });
        parts.filter(|it| !it.0.is_empty())
    }

    /// All results were read.
    pub(super) fn forget_former(&mut self) {
        if !self.former.is_empty() {
            self.former.clear();
            self.merged = None;
        }
    }

    pub(super) fn add(&mut self, resource: BoundResource, bytes: Range<u64>) {
        self.resources.push((resource, bytes));
        self.merged = None;
    }

    pub(super) fn add_former(&mut self, bytes: Range<u64>) {
        self.former.push(bytes);
        self.merged = None;
    }

    /// The resource is gone. What it has of written bytes stays until it is read.
    pub(super) fn remove(&mut self, resource: BoundResource) {
        let WritableBytes { resources, former, .. } = self;
        former.extend(resources.iter().filter(|it| it.0 == resource).map(|it| it.1.clone()));
        resources.retain(|it| it.0 != resource);
        if former.len() > FORMER_MAX {
            *former = merged(std::mem::take(former));
        }
    }
}

/// Ranges of former resources from which on they are merged: a program may make and destroy many at one place.
const FORMER_MAX: usize = 64;

pub(super) fn merged(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.sort_unstable_by_key(|it| it.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in all {
        match merged.last_mut().filter(|it| range.start <= it.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

impl DeviceResources {
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateBuffer` that succeeded.
    pub(super) unsafe fn add_buffer(&mut self, params: &CreateBufferParams) {
        // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter; a call that succeeded wrote the buffer.
        let (info, buffer) = unsafe { (&*params.p_create_info.as_ptr(), params.p_buffer.as_ptr().read()) };
        let ty = StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO;
        // SAFETY: VUID-VkBufferCreateInfo-pNext-pNext: a valid chain, in which a structure of this type is such a one.
        let chained = unsafe { find_in_chain::<BufferUsageFlags2CreateInfo>(info.p_next, ty).map(|it| &*it.as_ptr()) };
        let usage = chained.map_or(u64::from(info.usage.0), |it| it.usage.0);
        if usage & !READ_ONLY_USAGE != 0 {
            self.buffers.insert(buffer.0, info.size);
        }
    }

    /// The bytes of a resource in its memory; none if the device only reads it. The size of an image is given if the
    /// driver knows.
    pub(super) fn bytes_of(
        &self,
        binding: &ResourceBinding,
        image_size: Option<u64>,
        memory_size: u64,
    ) -> Option<Range<u64>> {
        let size = match binding.resource {
            BoundResource::Buffer(buffer) => *self.buffers.get(&buffer)?,
            BoundResource::Image(_) | BoundResource::Unknown => image_size.unwrap_or(memory_size),
        };
        let end = binding.offset.saturating_add(size).min(memory_size);
        (binding.offset < end).then_some(binding.offset..end)
    }

    pub(super) fn bind(&mut self, resource: BoundResource, memory: Arc<WatchedMemory>) {
        self.bound.insert(resource, memory);
    }

    /// A resource is about to be destroyed. Returns its memory.
    pub(super) fn remove(&mut self, resource: BoundResource) -> Option<Arc<WatchedMemory>> {
        if let BoundResource::Buffer(buffer) = resource {
            self.buffers.remove(&buffer);
        }
        self.bound.remove(&resource)
    }
}

/// Calls `each` with what was bound.
///
/// # Safety
///
/// The parameters must be those of the command, a valid call.
pub(super) unsafe fn for_each_binding(command: Command, params: *const u8, mut each: impl FnMut(ResourceBinding)) {
    let whole = |resource, memory, offset| ResourceBinding { resource, memory, offset, is_whole: true };
    match command {
        Command::BindBufferMemory => {
            // SAFETY: the contract of this function: the parameters are those of a `vkBindBufferMemory`.
            let params = unsafe { &*params.cast::<BindBufferMemoryParams>() };
            each(whole(BoundResource::Buffer(params.buffer.0), params.memory, params.memory_offset));
        }
        Command::BindImageMemory => {
            // SAFETY: the contract of this function: the parameters are those of a `vkBindImageMemory`.
            let params = unsafe { &*params.cast::<BindImageMemoryParams>() };
            each(whole(BoundResource::Image(params.image.0), params.memory, params.memory_offset));
        }
        Command::BindBufferMemory2 => {
            // SAFETY: the contract of this function: the parameters are those of a `vkBindBufferMemory2`.
            let params = unsafe { &*params.cast::<BindBufferMemory2Params>() };
            for at in 0..params.bind_info_count as usize {
                // SAFETY: VUID-vkBindBufferMemory2-pBindInfos-parameter: as many as the count says.
                let info = unsafe { &*params.p_bind_infos.as_ptr().add(at) };
                each(whole(BoundResource::Buffer(info.buffer.0), info.memory, info.memory_offset));
            }
        }
        Command::BindImageMemory2 => {
            // SAFETY: the contract of this function: the parameters are those of a `vkBindImageMemory2`.
            let params = unsafe { &*params.cast::<BindImageMemory2Params>() };
            for at in 0..params.bind_info_count as usize {
                // SAFETY: VUID-vkBindImageMemory2-pBindInfos-parameter: as many as the count says.
                let info = unsafe { &*params.p_bind_infos.as_ptr().add(at) };
                let ty = StructureType::BIND_IMAGE_PLANE_MEMORY_INFO;
                // SAFETY: VUID-VkBindImageMemoryInfo-pNext-pNext: a valid chain.
                let is_plane = unsafe { find_in_chain::<BindImagePlaneMemoryInfo>(info.p_next, ty) }.is_some();
                let binding = whole(BoundResource::Image(info.image.0), info.memory, info.memory_offset);
                each(ResourceBinding { is_whole: !is_plane, ..binding });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_where_the_device_may_write() {
        let mut writable = WritableBytes::default();
        let split = |it: &mut WritableBytes, bytes: Range<u64>| it.split(bytes).collect::<Vec<_>>();
        assert_eq!(split(&mut writable, 0..10), [(0..10, false)]);
        writable.add(BoundResource::Buffer(1), 4..6);
        writable.add(BoundResource::Buffer(2), 5..8);
        writable.add(BoundResource::Image(3), 20..30);
        assert_eq!(split(&mut writable, 0..25), [(0..4, false), (4..8, true), (8..20, false), (20..25, true)]);
        assert_eq!(split(&mut writable, 5..7), [(5..7, true)]);
        assert_eq!(split(&mut writable, 8..20), [(8..20, false)]);
        writable.remove(BoundResource::Image(3));
        assert_eq!(split(&mut writable, 29..31), [(29..30, true), (30..31, false)], "its results were not read yet");
        writable.forget_former();
        assert_eq!(split(&mut writable, 29..31), [(29..31, false)]);
        assert_eq!(split(&mut writable, 3..3), []);
    }
}
