//! A device, and all objects created from it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, EventId, FenceId, Queue, QueueId, ResourceId, SemaphoreId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::command::command_buffer::{TrackedCommandBuffer, TrackedCommandPool};
use crate::command::query::QueryPool;
use crate::draw::draw_commands::LastDraw;
use crate::draw::index_values::{HostWriteCoverage, WaitsForHost};
use crate::draw::render_pass::{Framebuffer, TrackedRenderPass};
use crate::extension::acceleration_structure::TrackedAccelerationStructure;
use crate::extension::device_generated_commands::{ExecutionSet, GeneratedCommandsLayout};
use crate::extension::optical_flow::TrackedOpticalFlowSession;
use crate::queue::external_sync::ExternalSemaphore;
use crate::queue::submit::TrackedSemaphore;
use crate::queue::swapchain::TrackedSwapchain;
use crate::resource::image::{BufferExtent, BufferView, ImageView, TrackedBuffer, TrackedImage};
use crate::resource::memory::TrackedMemory;
use crate::resource::opaque_object::OpaqueObject;
use crate::shader::descriptor_set::{DescriptorPool, SetLayout, TrackedDescriptorSet};
use crate::shader::interface::Shader;
use crate::shader::pipeline::TrackedPipeline;
use crate::slab::{ObjectLifetime, Slab};

/// A call that is being tracked, before the driver executes it or after it returned.
///
/// It refers to the record and does not copy the call: reading it at once, right after it was written in parts, would
/// cause a store-forwarding stall.
#[derive(Clone, Copy)]
pub(crate) struct TrackedCall<'a> {
    pub(crate) call: &'a Call<'a>,
    /// None before the driver executes the call.
    pub(crate) outcome: Option<&'a Outcome<'a>>,
}

#[derive(Default)]
pub(crate) struct TrackedDevice {
    pub(crate) handle: u64,
    /// Whether the host may learn without Vulkan that work is complete.
    pub(crate) has_external_waits: bool,
    pub(crate) ids: IdCounters,
    pub(crate) queues: Queues,
    pub(crate) memories: Slab<TrackedMemory>,
    pub(crate) buffers: Slab<TrackedBuffer>,
    /// The frequently used data of bound buffers, in little memory.
    pub(crate) buffer_extents: Slab<BufferExtent>,
    pub(crate) images: Slab<TrackedImage>,
    pub(crate) image_views: Slab<ImageView>,
    pub(crate) buffer_views: Slab<BufferView>,
    pub(crate) command_pools: Slab<TrackedCommandPool>,
    pub(crate) command_buffers: Slab<TrackedCommandBuffer>,
    pub(crate) semaphores: Slab<TrackedSemaphore>,
    pub(crate) fences: Slab<FenceId>,
    /// The shared payloads of semaphores.
    pub(crate) external_semaphores: FxHashMap<SemaphoreId, ExternalSemaphore>,
    pub(crate) imported_fences: FxHashSet<FenceId>,
    /// The queue and the submission number of each fence that a submission signals.
    pub(crate) submitted_fences: FxHashMap<FenceId, (QueueId, u64)>,
    pub(crate) events: Slab<EventId>,
    pub(crate) swapchains: Slab<TrackedSwapchain>,
    pub(crate) passes: Slab<Arc<TrackedRenderPass>>,
    pub(crate) framebuffers: Slab<Framebuffer>,
    pub(crate) shader_modules: Slab<Arc<[u32]>>,
    pub(crate) pipelines: Slab<Arc<TrackedPipeline>>,
    pub(crate) shaders: Slab<Shader>,
    pub(crate) set_layouts: Slab<Arc<SetLayout>>,
    pub(crate) pipeline_layouts: Slab<Vec<Option<Arc<SetLayout>>>>,
    pub(crate) descriptor_pools: Slab<DescriptorPool>,
    pub(crate) sets: Slab<TrackedDescriptorSet>,
    /// The bind point of each push descriptor template.
    pub(crate) templates: Slab<vk::PipelineBindPoint>,
    pub(crate) query_pools: Slab<QueryPool>,
    pub(crate) structures: Slab<TrackedAccelerationStructure>,
    pub(crate) structure_addresses: FxHashMap<u64, u64>,
    pub(crate) structures_nv: Slab<OpaqueObject>,
    pub(crate) tensors: Slab<OpaqueObject>,
    /// The tensor of each view.
    pub(crate) tensor_views: Slab<u64>,
    pub(crate) sessions: Slab<TrackedOpticalFlowSession>,
    pub(crate) command_layouts: Slab<GeneratedCommandsLayout>,
    pub(crate) command_layouts_nv: Slab<GeneratedCommandsLayout>,
    /// The pipelines or shaders of each indirect execution set.
    pub(crate) execution_sets: Slab<ExecutionSet>,
    /// The buffer ranges of micromaps.
    pub(crate) micromaps: Slab<(ResourceId, Range<u64>)>,
    /// Buffers with a known device address: resource and size by address.
    pub(crate) buffer_addresses: BTreeMap<u64, (ResourceId, u64)>,
    pub(crate) last_draw: LastDraw,
    /// Whether `maintenance9` is enabled.
    pub(crate) has_maintenance9: bool,
    /// Which host writes to mapped memory are reported.
    pub(crate) host_write_coverage: HostWriteCoverage,
    /// Ways in which the host may write after a submission what the submission reads: waits for events that the host
    /// sets, barriers from the host stage, and waits for timelines that the host may signal. Covers everything recorded
    /// so far.
    pub(crate) waits_for_host: WaitsForHost,
    /// The number of stored pages of host writes.
    pub(crate) host_pages: usize,
    /// Spare capacity for the accesses of the next command.
    pub(crate) spare_accesses: Vec<Access>,
    /// The number of submissions to all queues.
    pub(crate) submission_count: u64,
    /// Command buffers that were allocated or freed during this call.
    pub(crate) allocated_command_buffers: Vec<u64>,
    pub(crate) freed_command_buffers: Vec<u64>,
}

/// The next ids of the types of `sync-ir`.
#[derive(Default)]
pub(crate) struct IdCounters {
    pub(crate) resources: IdCounter,
    pub(crate) memories: IdCounter,
    pub(crate) command_buffers: IdCounter,
    pub(crate) events: IdCounter,
    pub(crate) semaphores: IdCounter,
    pub(crate) fences: IdCounter,
    pub(crate) render_passes: IdCounter,
}

#[derive(Default)]
pub(crate) struct IdCounter(u32);

impl IdCounter {
    pub(crate) fn next_id(&mut self) -> u32 {
        self.0 += 1;
        self.0 - 1
    }
}

/// The queues of a device, in the order of its create info.
#[derive(Default)]
pub(crate) struct Queues {
    all: Vec<Queue>,
    /// The index of each queue in its family.
    indices: Vec<u32>,
}

impl Queues {
    pub(crate) fn add(&mut self, family: u32, count: u32, flags: u32) {
        // Real families have few queues; a corrupt record may contain any number.
        for index in 0..count.min(1024) {
            self.all.push(Queue { family, flags });
            self.indices.push(index);
        }
    }

    pub(crate) fn all(&self) -> &[Queue] {
        &self.all
    }

    pub(crate) fn find(&self, family: u32, index: u32) -> Option<QueueId> {
        let is_it = |at: &usize| self.all[*at].family == family && self.indices[*at] == index;
        (0..self.all.len()).find(is_it).map(|it| QueueId(it as u32))
    }
}

impl TrackedDevice {
    /// The handles of all command buffers.
    pub(crate) fn command_buffer_handles(&self) -> impl Iterator<Item = u64> {
        self.command_pools.iter().flat_map(|it| it.buffers.iter().copied())
    }

    /// Whether an object of this device is alive, destroyed, or was never created.
    pub(crate) fn lifetime(&self, object: ObjectId) -> ObjectLifetime {
        let handle = object.raw();
        match object.ty() {
            Some(HandleType::DeviceMemory) => self.memories.lifetime(handle),
            Some(HandleType::Buffer) => self.buffers.lifetime(handle),
            Some(HandleType::Image) => self.images.lifetime(handle),
            Some(HandleType::ImageView) => self.image_views.lifetime(handle),
            Some(HandleType::BufferView) => self.buffer_views.lifetime(handle),
            Some(HandleType::CommandPool) => self.command_pools.lifetime(handle),
            Some(HandleType::Semaphore) => self.semaphores.lifetime(handle),
            Some(HandleType::Fence) => self.fences.lifetime(handle),
            Some(HandleType::Event) => self.events.lifetime(handle),
            Some(HandleType::SwapchainKHR) => self.swapchains.lifetime(handle),
            Some(HandleType::RenderPass) => self.passes.lifetime(handle),
            Some(HandleType::Framebuffer) => self.framebuffers.lifetime(handle),
            Some(HandleType::ShaderModule) => self.shader_modules.lifetime(handle),
            Some(HandleType::ShaderEXT) => self.shaders.lifetime(handle),
            Some(HandleType::Pipeline) => self.pipelines.lifetime(handle),
            Some(HandleType::PipelineLayout) => self.pipeline_layouts.lifetime(handle),
            Some(HandleType::DescriptorSetLayout) => self.set_layouts.lifetime(handle),
            Some(HandleType::DescriptorPool) => self.descriptor_pools.lifetime(handle),
            Some(HandleType::DescriptorSet) => self.sets.lifetime(handle),
            Some(HandleType::DescriptorUpdateTemplate) => self.templates.lifetime(handle),
            Some(HandleType::QueryPool) => self.query_pools.lifetime(handle),
            Some(HandleType::AccelerationStructureKHR) => self.structures.lifetime(handle),
            Some(HandleType::AccelerationStructureNV) => self.structures_nv.lifetime(handle),
            Some(HandleType::MicromapEXT) => self.micromaps.lifetime(handle),
            Some(HandleType::TensorARM) => self.tensors.lifetime(handle),
            Some(HandleType::TensorViewARM) => self.tensor_views.lifetime(handle),
            // Other types are not tracked.
            _ => ObjectLifetime::NeverCreated,
        }
    }

    pub(crate) fn command_buffer_mut(&mut self, buffer: vk::CommandBuffer) -> Option<&mut TrackedCommandBuffer> {
        self.command_buffers.get_mut(buffer.0)
    }
}
