//! Sparse binding: memory is bound to and unbound from sparse resources on a queue.

use lavascope_abi as vk;
use lavascope_record::View;
use lavascope_sync_ir::{
    Area, Components, HostStep, ImageRegion, MemoryId, QueueId, SemaphorePoint, SparseBind, SparsePart,
};

use crate::device::TrackedDevice;
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::resource::image::{SIZE_MAX, TrackedImage};
use crate::resource::region::{extent_of, offset_of};

/// Size in bytes of a sparse block, if it was not queried.
const BLOCK: u64 = 1 << 16;

impl TrackedDevice {
    /// `vkQueueBindSparse`: each `VkBindSparseInfo` has its own waits and signals.
    pub(crate) fn bind_sparse(
        &mut self,
        queue: QueueId,
        sparse_params: View<'_, vk::QueueBindSparseParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let fence = self.signaled_fence(sparse_params.fence, out);
        let last = sparse_params.bind_info_count.saturating_sub(1) as usize;
        if sparse_params.bind_info_count == 0 {
            let step = HostStep::Submit { queue, batches: Vec::new(), fence };
            return out.step(step);
        }
        for (at, info) in sparse_params.p_bind_info().iter().enumerate() {
            let timeline = info.chained::<vk::TimelineSemaphoreSubmitInfo>();
            let wait_values = timeline.map_or(&[][..], |it| it.p_wait_semaphore_values());
            let signal_values = timeline.map_or(&[][..], |it| it.p_signal_semaphore_values());
            let waits = self.points(info.p_wait_semaphores(), wait_values, out);
            let signals = self.points(info.p_signal_semaphores(), signal_values, out);
            let binds = self.sparse_binds(info, out);
            self.wait_external(&waits, out);
            self.signal_external(signals.iter().copied());
            out.step(HostStep::BindSparse { queue, waits, binds, signals, fence: fence.filter(|_| at == last) });
        }
    }

    fn points(&self, semaphores: &[vk::Semaphore], values: &[u64], out: &mut TrackerOutput<'_>) -> Vec<SemaphorePoint> {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        let points = semaphores.iter().enumerate().filter_map(|(at, it)| self.semaphore_point(*it, value(at)));
        let points: Vec<SemaphorePoint> = points.collect();
        if points.len() != semaphores.len() {
            out.report_untracked("a semaphore that nobody created");
        }
        points
    }

    fn sparse_binds(&self, info: View<'_, vk::BindSparseInfo>, out: &mut TrackerOutput<'_>) -> Vec<SparseBind> {
        let mut found = Vec::new();
        for p_buffer_bind in info.p_buffer_binds().iter() {
            let Some((resource, whole)) = self.buffer_range(p_buffer_bind.buffer, 0, vk::WHOLE_SIZE) else {
                out.report_untracked("a buffer that nobody created");
                continue;
            };
            for p_bind in p_buffer_bind.p_binds().iter() {
                let size = p_bind.size.min(whole.end.saturating_sub(p_bind.resource_offset));
                let part = SparsePart::Bytes(p_bind.resource_offset);
                let memory = self.sparse_memory(p_bind.memory, p_bind.memory_offset, size, out);
                found.extend((size > 0).then_some(SparseBind { resource, part, size, memory }));
            }
        }
        for p_image_opaque_bind in info.p_image_opaque_binds().iter() {
            let Some((resource, _)) = self.sparse_image(p_image_opaque_bind.image, out) else { continue };
            for p_bind in p_image_opaque_bind.p_binds().iter().filter(|it| !is_metadata(it.flags)) {
                let size = p_bind.size.min(SIZE_MAX.saturating_sub(p_bind.resource_offset));
                let part = SparsePart::Bytes(p_bind.resource_offset);
                let memory = self.sparse_memory(p_bind.memory, p_bind.memory_offset, size, out);
                found.extend((size > 0).then_some(SparseBind { resource, part, size, memory }));
            }
        }
        for p_image_bind in info.p_image_binds().iter() {
            let Some((resource, image)) = self.sparse_image(p_image_bind.image, out) else { continue };
            for p_bind in p_image_bind.p_binds().iter().filter(|it| !is_metadata(it.flags)) {
                let (part, size) = image.blocks(p_bind.get());
                let memory = self.sparse_memory(p_bind.memory, p_bind.memory_offset, size, out);
                found.push(SparseBind { resource, part: SparsePart::Texels(part), size, memory });
            }
        }
        found
    }

    fn sparse_image(
        &self,
        image: vk::Image,
        out: &mut TrackerOutput<'_>,
    ) -> Option<(lavascope_sync_ir::ResourceId, &TrackedImage)> {
        let found = self.image(image);
        if found.is_none() {
            out.report_untracked("an image that nobody created");
        }
        found
    }

    /// The memory of a bind; none for an unbind.
    fn sparse_memory(
        &self,
        memory: vk::DeviceMemory,
        offset: u64,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Option<(MemoryId, u64)> {
        (memory.0 != 0).then(|| self.binding(memory.0, offset, size, out)).flatten().map(|it| (it.memory, it.offset))
    }
}

/// Whether the bind is for metadata of the driver.
fn is_metadata(flags: vk::SparseMemoryBindFlags) -> bool {
    flags.0 & vk::SparseMemoryBindFlags::METADATA.0 != 0
}

impl TrackedImage {
    /// The texels of the sparse blocks, and their size in memory.
    fn blocks(&self, memory_bind: &vk::SparseImageMemoryBind) -> (ImageRegion, u64) {
        let extent = extent_of(memory_bind.extent);
        let block = self.block_size.unwrap_or(BLOCK).max(1);
        let size = match self.granularity {
            Some(texels) => {
                let blocks = (0..3).map(|at| u64::from(extent[at].div_ceil(texels[at].max(1))));
                blocks.fold(block, u64::saturating_mul)
            }
            None => {
                let texel = format::of_aspect(self.info.format, memory_bind.subresource.aspect_mask.0);
                let texels = format::block_extent(texel);
                let counts = (0..3).map(|at| u64::from(extent[at].div_ceil(texels[at])));
                let bytes = counts.fold(format::block_size(texel), u64::saturating_mul);
                bytes.div_ceil(block).saturating_mul(block)
            }
        };
        let region = ImageRegion {
            aspects: memory_bind.subresource.aspect_mask.0,
            mips: one(memory_bind.subresource.mip_level),
            layers: one(memory_bind.subresource.array_layer),
            area: Some(Area { offset: offset_of(memory_bind.offset).map(|it| it.max(0) as u32), extent }),
            components: Components::ALL,
        };
        (region, size)
    }
}

fn one(at: u32) -> std::ops::Range<u32> {
    at..at.saturating_add(1)
}
