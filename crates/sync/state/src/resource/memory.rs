//! Memory, the resources bound to it, and host accesses to it.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::{Call, HostWrite, Outcome, View};
use lavascope_sync_ir::{
    Certainty, HostStep, MemoryBinding, MemoryId, Region, Resource, ResourceId, SubresourceLayout, Tiling,
};

use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::index_values::READ_USAGES;
use crate::listener::{TrackerOutput, object};
use crate::resource::format;
use crate::resource::host_contents::HostContents;
use crate::resource::image::{SIZE_MAX, TrackedBuffer, TrackedImage};
use crate::resource::region;
use crate::resource::region::extent_of;

pub(crate) struct TrackedMemory {
    id: MemoryId,
    size: u64,
    /// The resources that are bound to it now.
    residents: Vec<Resident>,
    mapped: Option<MappedRange>,
    contents: HostContents,
}

/// A mapped range, from `vkMapMemory` to `vkUnmapMemory`.
struct MappedRange {
    bytes: Range<u64>,
    /// The number of submissions when it was mapped.
    submitted: u64,
}

#[derive(Clone)]
struct Resident {
    resource: ResourceId,
    bytes: Range<u64>,
    /// The whole image; for a buffer none, since its region is the accessed bytes.
    whole: Option<Region>,
    /// Only the host can write its contents.
    is_input: bool,
    /// Only the host can write its contents, unless a shader does by an address.
    is_addressed_input: bool,
    /// It may contain indices or indirect parameters.
    is_read_at_submission: bool,
    /// The host cannot know where texels lie.
    is_opaque: bool,
}

/// The tracker stores at most this many pages of host writes for a device: 64 MiB.
const HOST_PAGES_MAX: usize = 1 << 14;

impl TrackedDevice {
    pub(crate) fn track_memory(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::AllocateMemory(params), Some(Outcome::AllocateMemory(made))) => {
                if let (Some(info), Some(memory)) = (params.p_allocate_info(), made.p_memory()) {
                    self.allocate_memory(info, memory.0, out);
                }
            }
            (Call::FreeMemory(params), None) => {
                let freed = self.memories.remove(params.memory.0);
                self.host_pages -= freed.map_or(0, |it| it.contents.pages());
            }
            (Call::BindBufferMemory(params), Some(Outcome::BindBufferMemory(done))) => {
                if is_success(done.result) {
                    self.bind_buffer(params.buffer.0, params.memory.0, params.memory_offset, out);
                }
            }
            (Call::BindBufferMemory2(params), Some(Outcome::BindBufferMemory2(done))) => {
                for info in params.p_bind_infos().iter().filter(|_| is_success(done.result)) {
                    self.bind_buffer(info.buffer.0, info.memory.0, info.memory_offset, out);
                }
            }
            (Call::BindImageMemory(params), Some(Outcome::BindImageMemory(done))) => {
                if is_success(done.result) {
                    self.bind_image(params.image.0, params.memory.0, params.memory_offset, out);
                }
            }
            (Call::BindImageMemory2(params), Some(Outcome::BindImageMemory2(done))) => {
                for info in params.p_bind_infos().iter().filter(|_| is_success(done.result)) {
                    self.bind_image_info(info, out);
                }
            }
            _ => {
                return self.track_requirements(tracked)
                    || self.track_subresource_layouts(tracked, out)
                    || self.track_mapping(tracked, out);
            }
        }
        true
    }

    /// Memory requirements, and the sizes of sparse blocks.
    fn track_requirements(&mut self, tracked: TrackedCall<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::GetImageMemoryRequirements(params), Some(Outcome::GetImageMemoryRequirements(done))) => {
                if let (Some(image), Some(requirements)) =
                    (self.images.get_mut(params.image.0), done.p_memory_requirements())
                {
                    (image.size, image.block_size) = (Some(requirements.size), Some(requirements.alignment));
                }
            }
            (Call::GetImageMemoryRequirements2(params), Some(Outcome::GetImageMemoryRequirements2(done))) => {
                let image = self.images.get_mut(params.p_info().map_or(0, |it| it.image.0));
                if let (Some(image), Some(requirements)) = (image, done.p_memory_requirements()) {
                    let memory_requirement = &requirements.memory_requirements;
                    (image.size, image.block_size) =
                        (Some(memory_requirement.size), Some(memory_requirement.alignment));
                }
            }
            (Call::GetImageSparseMemoryRequirements(params), Some(Outcome::GetImageSparseMemoryRequirements(done))) => {
                let first = done.p_sparse_memory_requirements().iter().next();
                let granularity = first.map(|it| extent_of(it.format_properties.image_granularity));
                self.set_granularity(params.image.0, granularity);
            }
            (
                Call::GetImageSparseMemoryRequirements2(params),
                Some(Outcome::GetImageSparseMemoryRequirements2(done)),
            ) => {
                let first = done.p_sparse_memory_requirements().iter().next();
                let granularity = first.map(|it| extent_of(it.memory_requirements.format_properties.image_granularity));
                self.set_granularity(params.p_info().map_or(0, |it| it.image.0), granularity);
            }
            _ => return false,
        }
        true
    }

    fn track_mapping(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::MapMemory(params), Some(Outcome::MapMemory(done))) => {
                self.map(params.memory.0, params.offset, params.size, done.result);
            }
            (Call::MapMemory2(params), Some(Outcome::MapMemory2(done))) => {
                if let Some(info) = params.p_memory_map_info() {
                    self.map(info.memory.0, info.offset, info.size, done.result);
                }
            }
            (Call::UnmapMemory(params), None) => self.unmap(params.memory.0, out),
            (Call::UnmapMemory2(params), None) => {
                if let Some(info) = params.p_memory_unmap_info() {
                    self.unmap(info.memory.0, out);
                }
            }
            (Call::FlushMappedMemoryRanges(params), None) => {
                for range in params.p_memory_ranges().iter() {
                    self.host_access(range.get(), HostAccessKind::Writes, out);
                }
            }
            (Call::InvalidateMappedMemoryRanges(params), None) => {
                for range in params.p_memory_ranges().iter() {
                    self.host_access(range.get(), HostAccessKind::Reads, out);
                }
            }
            _ => return false,
        }
        true
    }

    fn allocate_memory(&mut self, info: View<'_, vk::MemoryAllocateInfo>, handle: u64, out: &mut TrackerOutput<'_>) {
        if info.chain().any(|it| it.layout.name.starts_with("VkImport")) {
            out.report_untracked("who else uses imported memory is not known");
        }
        // Contents that others can write are unknown.
        let is_shared =
            info.chain().any(|it| it.layout.name.starts_with("VkImport") || it.layout.name.starts_with("VkExport"));
        let contents = if is_shared { HostContents::Unknown } else { HostContents::NotReported };
        let (id, size) = (MemoryId(self.ids.memories.next_id()), info.allocation_size);
        self.memories.insert(handle, TrackedMemory { id, size, residents: Vec::new(), mapped: None, contents });
    }

    fn bind_buffer(&mut self, handle: u64, memory: u64, offset: u64, out: &mut TrackerOutput<'_>) {
        let Some(buffer) = self.buffers.get(handle).filter(|it| it.resource.is_none()) else { return };
        let size = buffer.size;
        let binding = self.binding(memory, offset, size, out);
        let resource = buffer.to_resource(binding);
        let id = self.add_resource(handle, &resource, out);
        let bytes = offset..offset.saturating_add(size);
        let own = self.buffers.get(handle);
        let (is_input, is_opaque) = (is_host_input_buffer(own, 0), false);
        let is_addressed_input = is_host_input_buffer(own, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS.0.into());
        let is_read = |it: &TrackedBuffer| it.usage & READ_USAGES != 0;
        let is_read_at_submission = is_input && self.buffers.get(handle).is_some_and(is_read);
        self.add_resident(
            memory,
            Resident {
                resource: id,
                bytes,
                whole: None,
                is_input,
                is_addressed_input,
                is_read_at_submission,
                is_opaque,
            },
        );
        self.set_buffer_memory(handle, id, memory);
    }

    fn bind_image_info(&mut self, info: View<'_, vk::BindImageMemoryInfo>, out: &mut TrackerOutput<'_>) {
        if let Some(chained) = info.chained::<vk::BindImageMemorySwapchainInfoKHR>() {
            // An alias of a swapchain image.
            let resource = self.swapchain_image(chained.swapchain.0, chained.image_index);
            if let Some(image) = self.images.get_mut(info.image.0) {
                image.resource = resource;
            }
            return;
        }
        self.bind_image(info.image.0, info.memory.0, info.memory_offset, out);
    }

    fn bind_image(&mut self, handle: u64, memory: u64, offset: u64, out: &mut TrackerOutput<'_>) {
        let Some(image) = self.images.get(handle).filter(|it| it.resource.is_none()) else { return };
        let size = image.bytes();
        let whole = Region::Image(image.whole_region());
        let is_opaque = !image.info.is_linear();
        let mut binding = self.binding(memory, offset, size, out);
        if image.is_disjoint {
            out.report_untracked("memory that the planes of a disjoint image share with others is not followed");
            binding = None;
        }
        let resource = image.to_resource(binding);
        let id = self.add_resource(handle, &resource, out);
        let bytes = offset..offset.saturating_add(size);
        let resident = Resident {
            resource: id,
            bytes,
            whole: Some(whole),
            is_input: false,
            is_addressed_input: false,
            is_read_at_submission: false,
            is_opaque,
        };
        self.add_resident(memory, resident);
        if let Some(image) = self.images.get_mut(handle) {
            (image.resource, image.memory) = (Some(id), memory);
        }
    }

    /// The binding of a resource, if it lies within the memory.
    pub(crate) fn binding(
        &self,
        memory: u64,
        offset: u64,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Option<MemoryBinding> {
        let own = self.memories.get(memory);
        let is_inside = |it: &&TrackedMemory| offset.checked_add(size).is_some_and(|end| end <= it.size.min(SIZE_MAX));
        let Some(own) = own.filter(is_inside) else {
            out.report_untracked("memory that nobody allocated, or not as much of it");
            return None;
        };
        Some(MemoryBinding { memory: own.id, offset, size })
    }

    pub(crate) fn add_resource(&mut self, handle: u64, resource: &Resource, out: &mut TrackerOutput<'_>) -> ResourceId {
        let id = ResourceId(self.ids.resources.next_id());
        out.listener.resource(out.at, id, object(handle), resource);
        id
    }

    fn add_resident(&mut self, memory: u64, resident: Resident) {
        if let Some(memory) = self.memories.get_mut(memory) {
            memory.residents.push(resident);
        }
    }

    /// Destroys a buffer or an image, with or without memory.
    pub(crate) fn destroy_bound(
        &mut self,
        handle: u64,
        resource: Option<ResourceId>,
        memory: u64,
        out: &mut TrackerOutput<'_>,
    ) {
        if resource.is_none() {
            out.listener.unbound_destroyed(out.at, object(handle));
        }
        self.destroy_resource(resource, memory, out);
    }

    pub(crate) fn destroy_resource(&mut self, resource: Option<ResourceId>, memory: u64, out: &mut TrackerOutput<'_>) {
        let Some(resource) = resource else { return };
        if let Some(memory) = self.memories.get_mut(memory) {
            memory.residents.retain(|it| it.resource != resource);
        }
        out.step(HostStep::Destroy(resource));
    }

    fn set_granularity(&mut self, handle: u64, granularity: Option<[u32; 3]>) {
        if let Some(image) = self.images.get_mut(handle) {
            image.granularity = granularity.or(image.granularity);
        }
    }

    fn map(&mut self, memory: u64, offset: u64, size: u64, result: vk::Result) {
        let submitted = self.submission_count;
        if let Some(memory) = self.memories.get_mut(memory).filter(|_| is_success(result)) {
            memory.mapped = Some(MappedRange { bytes: region::clamped_bytes(offset, size, memory.size), submitted });
        }
    }

    /// If nothing is submitted between map and unmap, the host has probably accessed the memory. If only the host can
    /// write the resource, this is a write. Otherwise it counts as a read, which needs only that device writes are
    /// complete.
    fn unmap(&mut self, memory: u64, out: &mut TrackerOutput<'_>) {
        let submitted = self.submission_count;
        let Some(memory) = self.memories.get_mut(memory) else { return };
        let Some(mapped) = memory.mapped.take().filter(|it| it.submitted == submitted) else { return };
        if let Some((resident, region)) = memory.only_resource_in(&mapped.bytes) {
            out.host_access(resident.resource, region, resident.is_input, Certainty::Maybe);
        }
    }

    /// A flush means that the host has written, an invalidation that it will read. Ranges are rounded, and some
    /// applications flush a whole memory. So the range counts only if a single resource lies in it; images with an
    /// unknown layout count only if nothing else lies there.
    fn host_access(&mut self, range: &vk::MappedMemoryRange, host: HostAccessKind, out: &mut TrackerOutput<'_>) {
        let Some(memory) = self.memories.get(range.memory.0) else { return };
        let end = memory.mapped.as_ref().map_or(memory.size, |it| it.bytes.end);
        let bytes = region::clamped_bytes(range.offset, range.size, end);
        match memory.only_resource_in(&bytes) {
            Some((resident, region)) => {
                out.host_access(resident.resource, region, host == HostAccessKind::Writes, Certainty::Certain)
            }
            None => {
                out.report_untracked(
                    "the range covers no resource or several: what the host accesses in it is not checked",
                );
            }
        }
    }
}

impl TrackedDevice {
    /// Stores what the host wrote, if indices or parameters may be there and the limit is not reached. Returns whether
    /// recorded commands may depend on it.
    pub(crate) fn store_host_write(&mut self, written: HostWrite<'_>) -> bool {
        let Some(own) = self.memories.get_mut(written.memory().raw()) else { return false };
        let before = own.contents.pages();
        let is_read = own.residents.iter().any(|it| it.is_read_at_submission);
        // A resource that is bound later would have only some of its contents.
        if written.has_bytes() && (own.residents.is_empty() || is_read) {
            own.contents.write(written);
        } else {
            own.contents = HostContents::Unknown;
        }
        if self.host_pages + own.contents.pages() - before > HOST_PAGES_MAX {
            own.contents = HostContents::Unknown;
        }
        self.host_pages = self.host_pages + own.contents.pages() - before;
        is_read
    }

    /// What the host wrote into each buffer that the device cannot have written: on a device that runs on the host, both
    /// look the same. `is_of_interest` decides about each buffer, by the bytes of it that may have been written.
    pub(crate) fn host_written(
        &self,
        written: HostWrite<'_>,
        mut is_of_interest: impl FnMut(ResourceId, Range<u64>) -> bool,
    ) -> Vec<HostWritten> {
        // After a wait, the device may have written.
        let is_host = !written.is_after_wait() && !self.has_external_waits;
        let Some(own) = self.memories.get(written.memory().raw()).filter(|_| is_host) else { return Vec::new() };
        let hull = written.hull();
        // A program may write much that nothing uses, in very many runs.
        let mut all_runs: Option<Vec<Range<u64>>> = None;
        let part = |resident: &Resident| {
            let certainty = own.certainty_of_writes(resident)?;
            let clamp = |at: u64| at.clamp(resident.bytes.start, resident.bytes.end) - resident.bytes.start;
            if !is_of_interest(resident.resource, clamp(hull.start)..clamp(hull.end)) {
                return None;
            }
            let runs = all_runs.get_or_insert_with(|| written.ranges().collect());
            let first = runs.partition_point(|it| it.end <= resident.bytes.start);
            let inside = runs[first..].iter().take_while(|it| it.start < resident.bytes.end);
            let bytes: Vec<Range<u64>> = inside.map(|it| clamp(it.start)..clamp(it.end)).collect();
            (!bytes.is_empty()).then_some(HostWritten { resource: resident.resource, bytes, certainty })
        };
        let meets = |it: &&Resident| it.bytes.start < hull.end && hull.start < it.bytes.end;
        own.residents.iter().filter(meets).filter_map(part).collect()
    }
}

/// What the host wrote into a buffer.
pub(crate) struct HostWritten {
    pub(crate) resource: ResourceId,
    pub(crate) bytes: Vec<Range<u64>>,
    pub(crate) certainty: Certainty,
}

impl TrackedMemory {
    /// Whether a resource shares no memory with others.
    pub(crate) fn is_unaliased(&self, resource: ResourceId) -> bool {
        let Some(own) = self.residents.iter().find(|it| it.resource == resource) else { return false };
        let overlaps = |it: &&Resident| it.bytes.start < own.bytes.end && own.bytes.start < it.bytes.end;
        self.residents.iter().filter(overlaps).count() == 1
    }

    /// Whether only the host can have written a resource.
    pub(crate) fn is_filled_by_host(&self, resource: ResourceId) -> bool {
        let own = self.residents.iter().find(|it| it.resource == resource);
        own.is_some_and(|own| self.is_input(&own.bytes)) && self.contents != HostContents::Unknown
    }

    /// Whether a host write has been reported.
    pub(crate) fn has_reported_contents(&self) -> bool {
        matches!(self.contents, HostContents::Known(_))
    }

    /// Bytes of a resource as the host wrote them; none if the device may have written them.
    pub(crate) fn host_bytes(&self, resource: ResourceId, bytes: Range<u64>) -> Option<Vec<u8>> {
        let HostContents::Known(pages) = &self.contents else { return None };
        let start = self.start_of(resource).filter(|_| self.is_filled_by_host(resource))?;
        Some(pages.read(start.checked_add(bytes.start)?..start.checked_add(bytes.end)?))
    }

    /// Whether the device cannot write to these bytes.
    fn is_input(&self, bytes: &Range<u64>) -> bool {
        let overlaps = |it: &&Resident| it.bytes.start < bytes.end && bytes.start < it.bytes.end;
        self.residents.iter().filter(overlaps).all(|it| it.is_input)
    }

    /// How sure it is that the host made writes to a resource; none if the device may have made them.
    fn certainty_of_writes(&self, resident: &Resident) -> Option<Certainty> {
        let overlaps = |it: &&Resident| it.bytes.start < resident.bytes.end && resident.bytes.start < it.bytes.end;
        let all = || self.residents.iter().filter(overlaps);
        if resident.is_input && all().all(|it| it.is_input) {
            return Some(Certainty::Certain);
        }
        all().all(|it| it.is_addressed_input).then_some(Certainty::Maybe)
    }

    /// The offset of a resource in the memory.
    pub(crate) fn start_of(&self, resource: ResourceId) -> Option<u64> {
        self.residents.iter().find(|it| it.resource == resource).map(|it| it.bytes.start)
    }

    /// Replaces the resource that is bound to these bytes.
    pub(crate) fn replace(&mut self, old: ResourceId, new: ResourceId, bytes: Range<u64>) {
        if let Some(resident) = self.residents.iter_mut().find(|it| it.resource == old) {
            (resident.resource, resident.bytes) = (new, bytes);
        }
    }

    /// The resource in a range and the accessed part of it; none if there is not exactly one.
    fn only_resource_in(&self, bytes: &Range<u64>) -> Option<(&Resident, Region)> {
        let meant = |it: &&Resident| it.bytes.start < bytes.end && bytes.start < it.bytes.end;
        let mut found: Vec<&Resident> = self.residents.iter().filter(meant).collect();
        if found.len() > 1 {
            found.retain(|it| !it.is_opaque);
        }
        let [resident] = found[..] else { return None };
        let inside = |at: u64| at.clamp(resident.bytes.start, resident.bytes.end) - resident.bytes.start;
        let region = resident.whole.clone().unwrap_or(Region::Buffer(inside(bytes.start)..inside(bytes.end)));
        Some((resident, region))
    }
}

/// Whether the device cannot write to a buffer, as far as other usages than these tell.
fn is_host_input_buffer(buffer: Option<&TrackedBuffer>, ignored: u64) -> bool {
    use vk::BufferUsageFlags2 as Usage;
    const INPUTS: u64 = Usage::TRANSFER_SRC.0
        | Usage::UNIFORM_TEXEL_BUFFER.0
        | Usage::UNIFORM_BUFFER.0
        | Usage::INDEX_BUFFER.0
        | Usage::VERTEX_BUFFER.0
        | Usage::INDIRECT_BUFFER.0
        | Usage::CONDITIONAL_RENDERING_EXT.0
        | Usage::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR.0
        | Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT.0
        | Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT.0;
    let is_input = |usage: u64| usage != 0 && usage & !INPUTS == 0;
    buffer.is_some_and(|it| is_input(it.usage & !ignored))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HostAccessKind {
    Reads,
    Writes,
}

pub(crate) fn is_success(result: vk::Result) -> bool {
    result == vk::Result::SUCCESS
}

impl TrackedImage {
    /// Size in bytes of its memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.size.unwrap_or_else(|| estimate(&self.info))
    }
}

/// Estimated size of an image whose requirements were not queried.
fn estimate(image: &lavascope_sync_ir::ImageDesc) -> u64 {
    if let Tiling::Pitched(layouts) = &image.tiling {
        let end = |(plane, subresource_layout): (usize, &SubresourceLayout)| {
            let [row, rows, slices] = format::plane_extent(image.format, plane, image.extent);
            let steps = [
                (image.layers.saturating_sub(1).into(), subresource_layout.array_pitch),
                (slices - 1, subresource_layout.depth_pitch),
                (rows - 1, subresource_layout.row_pitch),
            ];
            let inside = steps
                .into_iter()
                .fold(row, |all, (count, pitch): (u64, u64)| all.saturating_add(count.saturating_mul(pitch)));
            subresource_layout.offset.saturating_add(inside)
        };
        return layouts.iter().enumerate().map(end).max().unwrap_or(0);
    }
    let block = format::block_extent(image.format);
    let blocks = |mip: u32| -> u64 {
        let extent = image.extent_of_mip(mip);
        (0..3).map(|it| u64::from(extent[it].div_ceil(block[it]))).product()
    };
    let all: u64 = (0..image.mips.min(32)).map(blocks).sum();
    all.saturating_mul(u64::from(image.layers)).saturating_mul(format::block_size(image.format))
}
