//! Steps of the host.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{
    FenceId, HostStep, ImageRegion, QueueId, Region, ResourceId, SemaphoreId, SemaphorePoint, SparseBind, SparsePart,
    SubmitBatch,
};

use crate::error::LiveError;
use crate::objects::calls::{call, check, out};
use crate::objects::device::LiveDevice;
use crate::objects::resources::ResourceHandle;
use crate::plan::choose::image;
use crate::plan::formats::copy_boxes;
use crate::run::SubmitApi;

/// How long the host waits for what must come.
const TIMEOUT: u64 = 5_000_000_000;

impl LiveDevice<'_> {
    pub(crate) fn run_step(&self, step: &HostStep, submit: SubmitApi) -> Result<(), LiveError> {
        match step {
            HostStep::Submit { queue, batches, fence } => match submit {
                SubmitApi::One => self.submit_1(*queue, batches, *fence)?,
                SubmitApi::Two => self.submit_2(*queue, batches, *fence)?,
            },
            HostStep::WaitFences(all) => {
                let fences: Vec<vk::Fence> = all.iter().map(|it| self.fences[it.0 as usize]).collect();
                let (count, first) = (fences.len() as u32, Ptr::to_slice(&fences));
                let result = call!(self.vk, wait_for_fences(self.device, count, first, vk::Bool32::TRUE, TIMEOUT));
                check("vkWaitForFences", result)?;
            }
            HostStep::ResetFences(all) => {
                let fences: Vec<vk::Fence> = all.iter().map(|it| self.fences[it.0 as usize]).collect();
                let result = call!(self.vk, reset_fences(self.device, fences.len() as u32, Ptr::to_slice(&fences)));
                check("vkResetFences", result)?;
            }
            HostStep::QueueIdle(queue) => {
                check("vkQueueWaitIdle", call!(self.vk, queue_wait_idle(self.queues[queue.0 as usize])))?;
            }
            HostStep::DeviceIdle => check("vkDeviceWaitIdle", call!(self.vk, device_wait_idle(self.device)))?,
            HostStep::WaitSemaphores(points) => self.wait_semaphores(points)?,
            HostStep::SignalSemaphore(point) => {
                let info = vk::SemaphoreSignalInfo {
                    semaphore: self.semaphore(point.semaphore),
                    value: point.value.unwrap_or(0),
                    ..vk::SemaphoreSignalInfo::zeroed()
                };
                check("vkSignalSemaphore", call!(self.vk, signal_semaphore(self.device, Ptr::to(&info))))?;
            }
            HostStep::SetEvent(event) => {
                check("vkSetEvent", call!(self.vk, set_event(self.device, self.events[event.0 as usize])))?;
            }
            HostStep::ResetEvent(event) => {
                check("vkResetEvent", call!(self.vk, reset_event(self.device, self.events[event.0 as usize])))?;
            }
            HostStep::HostAccess { resource, region, is_write, .. } => {
                self.host_access(*resource, region, *is_write)?
            }
            HostStep::Acquire { image, semaphore, fence } => self.acquire(*image, *semaphore, *fence)?,
            HostStep::Present { queue, waits, images } => self.present(*queue, waits, images)?,
            HostStep::BindSparse { queue, waits, binds, signals, fence } => {
                self.bind_sparse(*queue, waits, binds, signals, *fence)?;
            }
            HostStep::Destroy(resource) => self.destroy_resource(*resource),
        }
        Ok(())
    }

    fn semaphore(&self, semaphore_id: SemaphoreId) -> vk::Semaphore {
        self.semaphores[semaphore_id.0 as usize]
    }

    fn fence(&self, fence_id: Option<FenceId>) -> vk::Fence {
        fence_id.map_or(vk::Fence(0), |it| self.fences[it.0 as usize])
    }

    fn buffers(&self, batch: &SubmitBatch) -> Vec<vk::CommandBuffer> {
        batch.command_buffers.iter().map(|it| self.command_buffers[it.0 as usize]).collect()
    }

    fn submit_2(&self, queue: QueueId, batches: &[SubmitBatch], fence: Option<FenceId>) -> Result<(), LiveError> {
        let info = |point: &SemaphorePoint, stages: u64| vk::SemaphoreSubmitInfo {
            semaphore: self.semaphore(point.semaphore),
            value: point.value.unwrap_or(0),
            stage_mask: vk::PipelineStageFlags2(stages),
            ..vk::SemaphoreSubmitInfo::zeroed()
        };
        let list = |batch: &SubmitBatch| {
            let waits: Vec<_> = batch.waits.iter().map(|it| info(&it.point, it.stages)).collect();
            let signals: Vec<_> = batch.signals.iter().map(|it| info(&it.point, it.stages)).collect();
            let buffer = |item: vk::CommandBuffer| vk::CommandBufferSubmitInfo {
                command_buffer: item,
                ..vk::CommandBufferSubmitInfo::zeroed()
            };
            let buffers: Vec<_> = self.buffers(batch).into_iter().map(buffer).collect();
            (waits, buffers, signals)
        };
        let lists: Vec<_> = batches.iter().map(list).collect();
        let submit = |(waits, buffers, signals): &(Vec<_>, Vec<_>, Vec<_>)| vk::SubmitInfo2 {
            wait_semaphore_info_count: waits.len() as u32,
            p_wait_semaphore_infos: Ptr::to_slice(waits),
            command_buffer_info_count: buffers.len() as u32,
            p_command_buffer_infos: Ptr::to_slice(buffers),
            signal_semaphore_info_count: signals.len() as u32,
            p_signal_semaphore_infos: Ptr::to_slice(signals),
            ..vk::SubmitInfo2::zeroed()
        };
        let submits: Vec<vk::SubmitInfo2> = lists.iter().map(submit).collect();
        let queue = self.queues[queue.0 as usize];
        let (count, first) = (submits.len() as u32, Ptr::to_slice(&submits));
        check("vkQueueSubmit2", call!(self.vk, queue_submit2(queue, count, first, self.fence(fence))))
    }

    fn submit_1(&self, queue: QueueId, batches: &[SubmitBatch], fence: Option<FenceId>) -> Result<(), LiveError> {
        let lists: Vec<Submit1> = batches.iter().map(|it| Submit1::of(self, it)).collect();
        let timelines: Vec<_> = lists.iter().map(Submit1::timeline).collect();
        let submits: Vec<_> = lists.iter().zip(&timelines).map(|(it, timeline)| it.info(timeline)).collect();
        let queue = self.queues[queue.0 as usize];
        let (count, first) = (submits.len() as u32, Ptr::to_slice(&submits));
        check("vkQueueSubmit", call!(self.vk, queue_submit(queue, count, first, self.fence(fence))))
    }

    fn wait_semaphores(&self, points: &[SemaphorePoint]) -> Result<(), LiveError> {
        let semaphores: Vec<vk::Semaphore> = points.iter().map(|it| self.semaphore(it.semaphore)).collect();
        let values: Vec<u64> = points.iter().map(|it| it.value.unwrap_or(0)).collect();
        let info = vk::SemaphoreWaitInfo {
            semaphore_count: semaphores.len() as u32,
            p_semaphores: Ptr::to_slice(&semaphores),
            p_values: Ptr::to_slice(&values),
            ..vk::SemaphoreWaitInfo::zeroed()
        };
        check("vkWaitSemaphores", call!(self.vk, wait_semaphores(self.device, Ptr::to(&info), TIMEOUT)))
    }

    /// A flush means a host write, an invalidation a host read that follows.
    fn host_access(&self, resource: ResourceId, region: &Region, is_write: bool) -> Result<(), LiveError> {
        let Some((memory, offset)) = self.resource(resource).memory else { return Ok(()) };
        let bytes = match region {
            Region::Buffer(bytes) => bytes.clone(),
            Region::Image(_) => 0..image(self.scenario.program, resource).map_or(0, crate::plan::formats::size),
        };
        let range = vk::MappedMemoryRange {
            memory,
            offset: offset + bytes.start,
            size: bytes.end - bytes.start,
            ..vk::MappedMemoryRange::zeroed()
        };
        let result = match is_write {
            true => call!(self.vk, flush_mapped_memory_ranges(self.device, 1, Ptr::to(&range))),
            false => call!(self.vk, invalidate_mapped_memory_ranges(self.device, 1, Ptr::to(&range))),
        };
        check("vkFlushMappedMemoryRanges", result)
    }

    fn acquire(
        &self,
        image: ResourceId,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) -> Result<(), LiveError> {
        let swapchain = self.resource(image).swapchain.unwrap_or_default();
        let semaphore = semaphore.map_or(vk::Semaphore(0), |it| self.semaphore(it));
        let mut index = 0;
        let fence = self.fence(fence);
        let result =
            call!(self.vk, acquire_next_image(self.device, swapchain, TIMEOUT, semaphore, fence, out(&mut index)));
        check("vkAcquireNextImageKHR", result)
    }

    fn present(&self, queue: QueueId, waits: &[SemaphoreId], images: &[ResourceId]) -> Result<(), LiveError> {
        let waits: Vec<vk::Semaphore> = waits.iter().map(|it| self.semaphore(*it)).collect();
        let swapchains: Vec<_> = images.iter().map(|it| self.resource(*it).swapchain.unwrap_or_default()).collect();
        let indices = vec![0; swapchains.len()];
        let info = vk::PresentInfoKHR {
            wait_semaphore_count: waits.len() as u32,
            p_wait_semaphores: Ptr::to_slice(&waits),
            swapchain_count: swapchains.len() as u32,
            p_swapchains: Ptr::to_slice(&swapchains),
            p_image_indices: Ptr::to_slice(&indices),
            ..vk::PresentInfoKHR::zeroed()
        };
        check("vkQueuePresentKHR", call!(self.vk, queue_present(self.queues[queue.0 as usize], Ptr::to(&info))))
    }

    fn bind_sparse(
        &self,
        queue: QueueId,
        waits: &[SemaphorePoint],
        binds: &[SparseBind],
        signals: &[SemaphorePoint],
        fence: Option<FenceId>,
    ) -> Result<(), LiveError> {
        let of = |points: &[SemaphorePoint]| -> (Vec<vk::Semaphore>, Vec<u64>) {
            let semaphores = points.iter().map(|it| self.semaphore(it.semaphore)).collect();
            (semaphores, points.iter().map(|it| it.value.unwrap_or(0)).collect())
        };
        let (waits, signals) = (of(waits), of(signals));
        let timeline = timeline(&waits.1, &signals.1);
        let sparse = SparseBindLists::of(self, binds);
        let lists = sparse.infos();
        let info = vk::BindSparseInfo {
            p_next: Ptr::to(&timeline).cast(),
            wait_semaphore_count: waits.0.len() as u32,
            p_wait_semaphores: Ptr::to_slice(&waits.0),
            buffer_bind_count: lists.0.len() as u32,
            p_buffer_binds: Ptr::to_slice(&lists.0),
            image_opaque_bind_count: lists.1.len() as u32,
            p_image_opaque_binds: Ptr::to_slice(&lists.1),
            image_bind_count: lists.2.len() as u32,
            p_image_binds: Ptr::to_slice(&lists.2),
            signal_semaphore_count: signals.0.len() as u32,
            p_signal_semaphores: Ptr::to_slice(&signals.0),
            ..vk::BindSparseInfo::zeroed()
        };
        let queue = self.queues[queue.0 as usize];
        check("vkQueueBindSparse", call!(self.vk, queue_bind_sparse(queue, 1, Ptr::to(&info), self.fence(fence))))
    }
}

/// A batch of `vkQueueSubmit`.
struct Submit1 {
    waits: Vec<vk::Semaphore>,
    stages: Vec<vk::PipelineStageFlags>,
    wait_values: Vec<u64>,
    buffers: Vec<vk::CommandBuffer>,
    signals: Vec<vk::Semaphore>,
    signal_values: Vec<u64>,
}

impl Submit1 {
    fn of(world: &LiveDevice<'_>, batch: &SubmitBatch) -> Submit1 {
        Submit1 {
            waits: batch.waits.iter().map(|it| world.semaphore(it.point.semaphore)).collect(),
            stages: batch.waits.iter().map(|it| vk::PipelineStageFlags(it.stages as u32)).collect(),
            wait_values: batch.waits.iter().map(|it| it.point.value.unwrap_or(0)).collect(),
            buffers: world.buffers(batch),
            signals: batch.signals.iter().map(|it| world.semaphore(it.point.semaphore)).collect(),
            signal_values: batch.signals.iter().map(|it| it.point.value.unwrap_or(0)).collect(),
        }
    }

    fn timeline(&self) -> vk::TimelineSemaphoreSubmitInfo {
        timeline(&self.wait_values, &self.signal_values)
    }

    fn info(&self, timeline: &vk::TimelineSemaphoreSubmitInfo) -> vk::SubmitInfo {
        vk::SubmitInfo {
            p_next: Ptr::to(timeline).cast(),
            wait_semaphore_count: self.waits.len() as u32,
            p_wait_semaphores: Ptr::to_slice(&self.waits),
            p_wait_dst_stage_mask: Ptr::to_slice(&self.stages),
            command_buffer_count: self.buffers.len() as u32,
            p_command_buffers: Ptr::to_slice(&self.buffers),
            signal_semaphore_count: self.signals.len() as u32,
            p_signal_semaphores: Ptr::to_slice(&self.signals),
            ..vk::SubmitInfo::zeroed()
        }
    }
}

fn timeline(waits: &[u64], signals: &[u64]) -> vk::TimelineSemaphoreSubmitInfo {
    vk::TimelineSemaphoreSubmitInfo {
        wait_semaphore_value_count: waits.len() as u32,
        p_wait_semaphore_values: Ptr::to_slice(waits),
        signal_semaphore_value_count: signals.len() as u32,
        p_signal_semaphore_values: Ptr::to_slice(signals),
        ..vk::TimelineSemaphoreSubmitInfo::zeroed()
    }
}

/// The three kinds of sparse binds, each with its resource.
#[derive(Default)]
struct SparseBindLists {
    buffers: Vec<(vk::Buffer, vk::SparseMemoryBind)>,
    opaque: Vec<(vk::Image, vk::SparseMemoryBind)>,
    images: Vec<(vk::Image, vk::SparseImageMemoryBind)>,
}

type SparseInfos =
    (Vec<vk::SparseBufferMemoryBindInfo>, Vec<vk::SparseImageOpaqueMemoryBindInfo>, Vec<vk::SparseImageMemoryBindInfo>);

impl SparseBindLists {
    fn of(world: &LiveDevice<'_>, binds: &[SparseBind]) -> SparseBindLists {
        let mut bind_lists = SparseBindLists::default();
        for bind in binds {
            let (memory, memory_offset) = match bind.memory {
                Some((memory, offset)) => (world.memories[memory.0 as usize], offset),
                None => (vk::DeviceMemory(0), 0),
            };
            match (&bind.part, world.resource(bind.resource).handle) {
                (SparsePart::Bytes(offset), handle) => {
                    let made = vk::SparseMemoryBind {
                        resource_offset: *offset,
                        size: bind.size,
                        memory,
                        memory_offset,
                        flags: vk::SparseMemoryBindFlags(0),
                    };
                    match handle {
                        ResourceHandle::Buffer(buffer) => bind_lists.buffers.push((buffer, made)),
                        ResourceHandle::Image(image) => bind_lists.opaque.push((image, made)),
                    }
                }
                (SparsePart::Texels(region), ResourceHandle::Image(handle)) => {
                    bind_lists.images.extend(sparse_block_regions(world, bind.resource, region).map(
                        |(subresource, offset, extent)| {
                            let flags = vk::SparseMemoryBindFlags(0);
                            (
                                handle,
                                vk::SparseImageMemoryBind { subresource, offset, extent, memory, memory_offset, flags },
                            )
                        },
                    ));
                }
                (SparsePart::Texels(_), ResourceHandle::Buffer(_)) => {}
            }
        }
        bind_lists
    }

    fn infos(&self) -> SparseInfos {
        let buffer = |(buffer, bind): &(vk::Buffer, vk::SparseMemoryBind)| vk::SparseBufferMemoryBindInfo {
            buffer: *buffer,
            bind_count: 1,
            p_binds: Ptr::to(bind),
        };
        let opaque = |(image, bind): &(vk::Image, vk::SparseMemoryBind)| vk::SparseImageOpaqueMemoryBindInfo {
            image: *image,
            bind_count: 1,
            p_binds: Ptr::to(bind),
        };
        let image = |(image, bind): &(vk::Image, vk::SparseImageMemoryBind)| vk::SparseImageMemoryBindInfo {
            image: *image,
            bind_count: 1,
            p_binds: Ptr::to(bind),
        };
        let images = self.images.iter().map(image).collect();
        (self.buffers.iter().map(buffer).collect(), self.opaque.iter().map(opaque).collect(), images)
    }
}

type SparseBlockRegion = (vk::ImageSubresource, vk::Offset3D, vk::Extent3D);

fn sparse_block_regions(
    world: &LiveDevice<'_>,
    resource: ResourceId,
    region: &ImageRegion,
) -> impl Iterator<Item = SparseBlockRegion> {
    let own = image(world.scenario.program, resource).map_or(Vec::new(), |it| copy_boxes(it, region));
    own.into_iter().map(|copy_box| {
        let subresource = vk::ImageSubresource {
            aspect_mask: vk::ImageAspectFlags(copy_box.aspect),
            mip_level: copy_box.mip,
            array_layer: copy_box.layers.start,
        };
        let [x, y, z] = copy_box.offset.map(|it| it as i32);
        let [width, height, depth] = copy_box.extent;
        (subresource, vk::Offset3D { x, y, z }, vk::Extent3D { width, height, depth })
    })
}
