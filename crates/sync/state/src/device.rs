//! A device, and all that was made from it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, EventId, FenceId, Queue, QueueId, ResourceId, SemaphoreId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::command_buffer::{Pool, Recording};
use crate::descriptor::{DescriptorPool, Set, SetLayout};
use crate::draw::Drawn;
use crate::external::External;
use crate::generated_commands::{CommandsLayout, ExecutionSet};
use crate::image::{Buffer, BufferPart, BufferView, Image, ImageView};
use crate::indices::{HostWrites, WaitsForHost};
use crate::memory::Memory;
use crate::opaque::Opaque;
use crate::optical_flow::FlowSession;
use crate::pipeline::Pipeline;
use crate::query::QueryPool;
use crate::ray::Structure;
use crate::render_pass::{Framebuffer, Pass};
use crate::shader::Shader;
use crate::slab::{Life, Slab};
use crate::submit::Semaphore;
use crate::swapchain::Swapchain;

/// A call that is looked at: before the driver sees it, or after it returned.
///
/// Where it lies, and not the call itself: reading at once what was written in pieces takes long.
#[derive(Clone, Copy)]
pub(crate) struct Event<'a> {
    pub(crate) call: &'a Call<'a>,
    /// None before the driver sees the call.
    pub(crate) outcome: Option<&'a Outcome<'a>>,
}

#[derive(Default)]
pub(crate) struct Device {
    pub(crate) ids: Ids,
    pub(crate) queues: Queues,
    pub(crate) memories: Slab<Memory>,
    pub(crate) buffers: Slab<Buffer>,
    /// Of buffers that are resources: what is asked for all the time, in little room.
    pub(crate) buffer_parts: Slab<BufferPart>,
    pub(crate) images: Slab<Image>,
    pub(crate) image_views: Slab<ImageView>,
    pub(crate) buffer_views: Slab<BufferView>,
    pub(crate) command_pools: Slab<Pool>,
    pub(crate) command_buffers: Slab<Recording>,
    pub(crate) semaphores: Slab<Semaphore>,
    pub(crate) fences: Slab<FenceId>,
    /// What others share of them.
    pub(crate) externals: FxHashMap<SemaphoreId, External>,
    pub(crate) foreign_fences: FxHashSet<FenceId>,
    /// Fences that a submission signals: its queue, and its number.
    pub(crate) submitted_fences: FxHashMap<FenceId, (QueueId, u64)>,
    pub(crate) events: Slab<EventId>,
    pub(crate) swapchains: Slab<Swapchain>,
    pub(crate) passes: Slab<Arc<Pass>>,
    pub(crate) framebuffers: Slab<Framebuffer>,
    pub(crate) shader_modules: Slab<Arc<[u32]>>,
    pub(crate) pipelines: Slab<Arc<Pipeline>>,
    pub(crate) shaders: Slab<Shader>,
    pub(crate) set_layouts: Slab<Arc<SetLayout>>,
    pub(crate) pipeline_layouts: Slab<Vec<Option<Arc<SetLayout>>>>,
    pub(crate) descriptor_pools: Slab<DescriptorPool>,
    pub(crate) sets: Slab<Set>,
    /// The bind point of each template that is pushed.
    pub(crate) templates: Slab<vk::PipelineBindPoint>,
    pub(crate) query_pools: Slab<QueryPool>,
    pub(crate) structures: Slab<Structure>,
    pub(crate) structure_addresses: FxHashMap<u64, u64>,
    pub(crate) structures_nv: Slab<Opaque>,
    pub(crate) tensors: Slab<Opaque>,
    /// The tensor of each view.
    pub(crate) tensor_views: Slab<u64>,
    pub(crate) sessions: Slab<FlowSession>,
    pub(crate) command_layouts: Slab<CommandsLayout>,
    pub(crate) command_layouts_nv: Slab<CommandsLayout>,
    /// The pipelines, or the shaders, that generated commands may choose.
    pub(crate) execution_sets: Slab<ExecutionSet>,
    /// Parts of buffers.
    pub(crate) micromaps: Slab<(ResourceId, Range<u64>)>,
    /// Buffers whose device address is known: resource and size by address.
    pub(crate) addresses: BTreeMap<u64, (ResourceId, u64)>,
    pub(crate) drawn: Drawn,
    /// Whether somebody tells what the host writes into memory.
    pub(crate) hears_host_writes: HostWrites,
    /// What lets the host write after a submission what that reads: it waits for events that the host sets, has barriers
    /// behind the host, and waits for timelines that the host may signal. Said of all that was ever recorded.
    pub(crate) waits_for_host: WaitsForHost,
    /// Pages that are kept of what it wrote.
    pub(crate) host_pages: usize,
    /// Room for the accesses of the next command.
    pub(crate) room: Vec<Access>,
    /// How often something was submitted to any queue.
    pub(crate) submitted: u64,
    /// Command buffers that came and went during this call.
    pub(crate) born: Vec<u64>,
    pub(crate) freed: Vec<u64>,
}

/// The next ids of `program`.
#[derive(Default)]
pub(crate) struct Ids {
    pub(crate) resources: Counter,
    pub(crate) memories: Counter,
    pub(crate) command_buffers: Counter,
    pub(crate) events: Counter,
    pub(crate) semaphores: Counter,
    pub(crate) fences: Counter,
    pub(crate) render_passes: Counter,
}

#[derive(Default)]
pub(crate) struct Counter(u32);

impl Counter {
    pub(crate) fn take(&mut self) -> u32 {
        self.0 += 1;
        self.0 - 1
    }
}

/// The queues that a device was made with, in the order of its create info.
#[derive(Default)]
pub(crate) struct Queues {
    all: Vec<Queue>,
    /// The index of each in its family.
    indices: Vec<u32>,
}

impl Queues {
    pub(crate) fn add(&mut self, family: u32, count: u32, flags: u32) {
        // A family has few queues; a record may say anything.
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

impl Device {
    /// The handles of all command buffers.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = u64> {
        self.command_pools.iter().flat_map(|it| it.buffers.iter().copied())
    }

    /// Whether an object of this device is alive, was, or never was.
    pub(crate) fn life(&self, object: ObjectId) -> Life {
        let handle = object.raw();
        match object.ty() {
            Some(HandleType::DeviceMemory) => self.memories.life(handle),
            Some(HandleType::Buffer) => self.buffers.life(handle),
            Some(HandleType::Image) => self.images.life(handle),
            Some(HandleType::ImageView) => self.image_views.life(handle),
            Some(HandleType::BufferView) => self.buffer_views.life(handle),
            Some(HandleType::CommandPool) => self.command_pools.life(handle),
            Some(HandleType::Semaphore) => self.semaphores.life(handle),
            Some(HandleType::Fence) => self.fences.life(handle),
            Some(HandleType::Event) => self.events.life(handle),
            Some(HandleType::SwapchainKHR) => self.swapchains.life(handle),
            Some(HandleType::RenderPass) => self.passes.life(handle),
            Some(HandleType::Framebuffer) => self.framebuffers.life(handle),
            Some(HandleType::ShaderModule) => self.shader_modules.life(handle),
            Some(HandleType::ShaderEXT) => self.shaders.life(handle),
            Some(HandleType::Pipeline) => self.pipelines.life(handle),
            Some(HandleType::PipelineLayout) => self.pipeline_layouts.life(handle),
            Some(HandleType::DescriptorSetLayout) => self.set_layouts.life(handle),
            Some(HandleType::DescriptorPool) => self.descriptor_pools.life(handle),
            Some(HandleType::DescriptorSet) => self.sets.life(handle),
            Some(HandleType::DescriptorUpdateTemplate) => self.templates.life(handle),
            Some(HandleType::QueryPool) => self.query_pools.life(handle),
            Some(HandleType::AccelerationStructureKHR) => self.structures.life(handle),
            Some(HandleType::AccelerationStructureNV) => self.structures_nv.life(handle),
            Some(HandleType::MicromapEXT) => self.micromaps.life(handle),
            Some(HandleType::TensorARM) => self.tensors.life(handle),
            Some(HandleType::TensorViewARM) => self.tensor_views.life(handle),
            // Others are not followed.
            _ => Life::Never,
        }
    }

    pub(crate) fn recording(&mut self, buffer: vk::CommandBuffer) -> Option<&mut Recording> {
        self.command_buffers.get_mut(buffer.0)
    }
}
