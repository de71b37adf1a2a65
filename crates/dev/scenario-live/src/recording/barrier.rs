//! Barriers and events, in both versions.
//!
//! Images are in the general layout; a transition is from the undefined one, which every image may be in.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{Dependency, DependencyTarget, QueueFamilyTransfer, Region, ResourceId};

use crate::objects::device::LiveDevice;
use crate::objects::resources::{ResourceHandle, subresource_range};

/// The three arrays of version 1.
#[derive(Default)]
pub(crate) struct BarrierLists1 {
    pub(crate) memory: Vec<vk::MemoryBarrier>,
    pub(crate) buffers: Vec<vk::BufferMemoryBarrier>,
    pub(crate) images: Vec<vk::ImageMemoryBarrier>,
}

/// The barriers of version 2.
#[derive(Default)]
pub(crate) struct BarrierLists2 {
    memory: Vec<vk::MemoryBarrier2>,
    buffers: Vec<vk::BufferMemoryBarrier2>,
    images: Vec<vk::ImageMemoryBarrier2>,
}

/// The target of a barrier on a resource.
struct ResourceBarrier<'a> {
    resource: ResourceId,
    region: &'a Region,
    layouts: [vk::ImageLayout; 2],
    families: [u32; 2],
}

impl LiveDevice<'_> {
    fn resource_barrier<'a>(&self, what: &'a DependencyTarget) -> Option<ResourceBarrier<'a>> {
        let general = vk::ImageLayout::GENERAL;
        let ignored = [vk::QUEUE_FAMILY_IGNORED; 2];
        let changed = [vk::ImageLayout::UNDEFINED, general];
        Some(match what {
            DependencyTarget::Global => return None,
            DependencyTarget::Resource { resource, region } => {
                ResourceBarrier { resource: *resource, region, layouts: [general; 2], families: ignored }
            }
            DependencyTarget::Transition { resource, region } => {
                ResourceBarrier { resource: *resource, region, layouts: changed, families: ignored }
            }
            DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
                let QueueFamilyTransfer { src_family, dst_family, is_transition } = *ownership;
                let families = [src_family, dst_family].map(|it| self.families.barrier_family(it));
                let layouts = if is_transition { changed } else { [general; 2] };
                ResourceBarrier { resource: *resource, region, layouts, families }
            }
        })
    }

    pub(crate) fn barriers_1(&self, dependencies: &[Dependency]) -> BarrierLists1 {
        let mut lists = BarrierLists1::default();
        for dependency in dependencies {
            let (src, dst) = (
                vk::AccessFlags(dependency.scope.src_access as u32),
                vk::AccessFlags(dependency.scope.dst_access as u32),
            );
            let Some(about) = self.resource_barrier(&dependency.target) else {
                let barrier =
                    vk::MemoryBarrier { src_access_mask: src, dst_access_mask: dst, ..vk::MemoryBarrier::zeroed() };
                lists.memory.push(barrier);
                continue;
            };
            match (self.resource(about.resource).handle, about.region) {
                (ResourceHandle::Buffer(buffer), Region::Buffer(bytes)) => {
                    lists.buffers.push(vk::BufferMemoryBarrier {
                        src_access_mask: src,
                        dst_access_mask: dst,
                        src_queue_family_index: about.families[0],
                        dst_queue_family_index: about.families[1],
                        buffer,
                        offset: bytes.start,
                        size: bytes.end - bytes.start,
                        ..vk::BufferMemoryBarrier::zeroed()
                    })
                }
                (ResourceHandle::Image(image), Region::Image(region)) => lists.images.push(vk::ImageMemoryBarrier {
                    src_access_mask: src,
                    dst_access_mask: dst,
                    old_layout: about.layouts[0],
                    new_layout: about.layouts[1],
                    src_queue_family_index: about.families[0],
                    dst_queue_family_index: about.families[1],
                    image,
                    subresource_range: subresource_range(region),
                    ..vk::ImageMemoryBarrier::zeroed()
                }),
                _ => {}
            }
        }
        lists
    }

    pub(crate) fn barriers_2(&self, dependencies: &[Dependency]) -> BarrierLists2 {
        let mut lists = BarrierLists2::default();
        for dependency in dependencies {
            let masks = crate::recording::render_pass::memory_barrier(&dependency.scope);
            let Some(about) = self.resource_barrier(&dependency.target) else {
                lists.memory.push(masks);
                continue;
            };
            match (self.resource(about.resource).handle, about.region) {
                (ResourceHandle::Buffer(buffer), Region::Buffer(bytes)) => {
                    lists.buffers.push(vk::BufferMemoryBarrier2 {
                        src_stage_mask: masks.src_stage_mask,
                        src_access_mask: masks.src_access_mask,
                        dst_stage_mask: masks.dst_stage_mask,
                        dst_access_mask: masks.dst_access_mask,
                        src_queue_family_index: about.families[0],
                        dst_queue_family_index: about.families[1],
                        buffer,
                        offset: bytes.start,
                        size: bytes.end - bytes.start,
                        ..vk::BufferMemoryBarrier2::zeroed()
                    })
                }
                (ResourceHandle::Image(image), Region::Image(region)) => lists.images.push(vk::ImageMemoryBarrier2 {
                    src_stage_mask: masks.src_stage_mask,
                    src_access_mask: masks.src_access_mask,
                    dst_stage_mask: masks.dst_stage_mask,
                    dst_access_mask: masks.dst_access_mask,
                    old_layout: about.layouts[0],
                    new_layout: about.layouts[1],
                    src_queue_family_index: about.families[0],
                    dst_queue_family_index: about.families[1],
                    image,
                    subresource_range: subresource_range(region),
                    ..vk::ImageMemoryBarrier2::zeroed()
                }),
                _ => {}
            }
        }
        lists
    }
}

impl BarrierLists2 {
    pub(crate) fn info(&self) -> vk::DependencyInfo {
        vk::DependencyInfo {
            memory_barrier_count: self.memory.len() as u32,
            p_memory_barriers: Ptr::to_slice(&self.memory),
            buffer_memory_barrier_count: self.buffers.len() as u32,
            p_buffer_memory_barriers: Ptr::to_slice(&self.buffers),
            image_memory_barrier_count: self.images.len() as u32,
            p_image_memory_barriers: Ptr::to_slice(&self.images),
            ..vk::DependencyInfo::zeroed()
        }
    }
}
