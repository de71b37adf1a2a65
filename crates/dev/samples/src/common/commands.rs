//! Command buffers, barriers and submissions.

use ash::vk;

use crate::common::{Buffer, Gpu, Queue, SampleImage};
use crate::failure::Failure;

/// Stages and accesses on one side of a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BarrierScope {
    pub(crate) stages: vk::PipelineStageFlags,
    pub(crate) access: vk::AccessFlags,
}

/// The scopes that samples use by name.
pub(crate) mod scope {
    use ash::vk::{AccessFlags as Access, PipelineStageFlags as Stage};

    use super::BarrierScope;

    pub(crate) const NOTHING: BarrierScope = BarrierScope { stages: Stage::TOP_OF_PIPE, access: Access::empty() };
    pub(crate) const ALL: BarrierScope = BarrierScope {
        stages: Stage::ALL_COMMANDS,
        access: Access::from_raw(Access::MEMORY_READ.as_raw() | Access::MEMORY_WRITE.as_raw()),
    };
    pub(crate) const PRESENTED: BarrierScope = BarrierScope { stages: Stage::BOTTOM_OF_PIPE, access: Access::empty() };
    pub(crate) const COPY_READ: BarrierScope = BarrierScope { stages: Stage::TRANSFER, access: Access::TRANSFER_READ };
    pub(crate) const COPY_WRITE: BarrierScope =
        BarrierScope { stages: Stage::TRANSFER, access: Access::TRANSFER_WRITE };
    pub(crate) const HOST_READ: BarrierScope = BarrierScope { stages: Stage::HOST, access: Access::HOST_READ };
    pub(crate) const COMPUTE_READ: BarrierScope =
        BarrierScope { stages: Stage::COMPUTE_SHADER, access: Access::SHADER_READ };
    pub(crate) const COMPUTE_WRITE: BarrierScope =
        BarrierScope { stages: Stage::COMPUTE_SHADER, access: Access::SHADER_WRITE };
    pub(crate) const FRAGMENT_READ: BarrierScope =
        BarrierScope { stages: Stage::FRAGMENT_SHADER, access: Access::SHADER_READ };
    pub(crate) const FRAGMENT_WRITE: BarrierScope =
        BarrierScope { stages: Stage::FRAGMENT_SHADER, access: Access::SHADER_WRITE };
    pub(crate) const UNIFORM_READ: BarrierScope =
        BarrierScope { stages: Stage::FRAGMENT_SHADER, access: Access::UNIFORM_READ };
    pub(crate) const INDIRECT_READ: BarrierScope =
        BarrierScope { stages: Stage::DRAW_INDIRECT, access: Access::INDIRECT_COMMAND_READ };
    pub(crate) const VERTEX_READ: BarrierScope =
        BarrierScope { stages: Stage::VERTEX_INPUT, access: Access::VERTEX_ATTRIBUTE_READ };
    pub(crate) const INDEX_READ: BarrierScope =
        BarrierScope { stages: Stage::VERTEX_INPUT, access: Access::INDEX_READ };
    pub(crate) const COLOR_READ: BarrierScope =
        BarrierScope { stages: Stage::COLOR_ATTACHMENT_OUTPUT, access: Access::COLOR_ATTACHMENT_READ };
    pub(crate) const COLOR_WRITE: BarrierScope =
        BarrierScope { stages: Stage::COLOR_ATTACHMENT_OUTPUT, access: Access::COLOR_ATTACHMENT_WRITE };
    pub(crate) const DEPTH_READ: BarrierScope =
        BarrierScope { stages: Stage::EARLY_FRAGMENT_TESTS, access: Access::DEPTH_STENCIL_ATTACHMENT_READ };
    pub(crate) const DEPTH_WRITE: BarrierScope =
        BarrierScope { stages: Stage::LATE_FRAGMENT_TESTS, access: Access::DEPTH_STENCIL_ATTACHMENT_WRITE };
}

impl BarrierScope {
    pub(crate) fn union(self, other: BarrierScope) -> BarrierScope {
        BarrierScope { stages: self.stages | other.stages, access: self.access | other.access }
    }
}

impl Buffer {
    /// For all bytes, on one queue.
    pub(crate) fn barrier(&self, from: BarrierScope, to: BarrierScope) -> vk::BufferMemoryBarrier<'static> {
        vk::BufferMemoryBarrier::default()
            .src_access_mask(from.access)
            .dst_access_mask(to.access)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .buffer(self.handle)
            .size(vk::WHOLE_SIZE)
    }
}

impl SampleImage {
    /// For all texels, on one queue; the caller sets the layouts.
    pub(crate) fn barrier(&self, from: BarrierScope, to: BarrierScope) -> vk::ImageMemoryBarrier<'static> {
        vk::ImageMemoryBarrier::default()
            .src_access_mask(from.access)
            .dst_access_mask(to.access)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .image(self.handle)
            .subresource_range(self.range())
    }
}

impl Gpu {
    /// A kept pool of one thread.
    pub(crate) fn command_pool(&self, queue: Queue) -> Result<vk::CommandPool, Failure> {
        Ok(self.destroy_at_end(self.unowned_command_pool(queue)?))
    }

    /// A pool that the caller destroys.
    pub(crate) fn unowned_command_pool(&self, queue: Queue) -> Result<vk::CommandPool, Failure> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(queue.family);
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(unsafe { self.device.create_command_pool(&info, None) }?)
    }

    pub(crate) fn command_buffer(
        &self,
        pool: vk::CommandPool,
        level: vk::CommandBufferLevel,
    ) -> Result<vk::CommandBuffer, Failure> {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).level(level).command_buffer_count(1);
        // SAFETY: a live pool that only this thread uses; `info` lives until the call returns (lifetime, owner).
        let buffers = unsafe { self.device.allocate_command_buffers(&info) }?;
        Ok(buffers[0])
    }

    /// Begins, records and ends a primary command buffer that will be submitted once.
    pub(crate) fn record(&self, commands: vk::CommandBuffer, record: impl FnOnce()) -> Result<(), Failure> {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is new or its pool was reset, so it is in the initial state
        // (VUID-vkBeginCommandBuffer-commandBuffer-00050); only this thread uses it and its pool (lifetime, owner).
        unsafe { self.device.begin_command_buffer(commands, &info) }?;
        record();
        // SAFETY: `begin_command_buffer` above put it into the recording state
        // (VUID-vkEndCommandBuffer-commandBuffer-00059), and only this thread uses it and its pool (owner).
        unsafe { self.device.end_command_buffer(commands) }?;
        Ok(())
    }

    /// Records into a fresh command buffer of `queue`'s family, under a label.
    pub(crate) fn record_new(
        &self,
        queue: Queue,
        label: &str,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> Result<vk::CommandBuffer, Failure> {
        let pool = self.command_pool(queue)?;
        let commands = self.name(self.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?, label);
        self.record(commands, || self.labeled(commands, label, || record(commands)))?;
        Ok(commands)
    }

    /// Records a secondary command buffer of a pool of its own, under a label.
    pub(crate) fn record_secondary(
        &self,
        label: &str,
        inheritance: &vk::CommandBufferInheritanceInfo,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> Result<vk::CommandBuffer, Failure> {
        let pool = self.command_pool(self.main)?;
        let commands = self.name(self.command_buffer(pool, vk::CommandBufferLevel::SECONDARY)?, label);
        let once = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        let continues = !inheritance.p_next.is_null() || inheritance.render_pass != vk::RenderPass::null();
        let flags = if continues { once | vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE } else { once };
        let begin = vk::CommandBufferBeginInfo::default().flags(flags).inheritance_info(inheritance);
        // SAFETY: the command buffer is new, so it is in the initial state
        // (VUID-vkBeginCommandBuffer-commandBuffer-00050), and its new pool is this thread's; `inheritance` lives until
        // the call returns (lifetime, owner).
        unsafe { self.device.begin_command_buffer(commands, &begin) }?;
        self.labeled(commands, label, || record(commands));
        // SAFETY: `begin_command_buffer` above put it into the recording state
        // (VUID-vkEndCommandBuffer-commandBuffer-00059), and its pool is this thread's (owner).
        unsafe { self.device.end_command_buffer(commands) }?;
        Ok(commands)
    }

    /// Records, submits to the main queue, and waits until the device is done.
    pub(crate) fn run_once(&self, label: &str, record: impl FnOnce(vk::CommandBuffer)) -> Result<(), Failure> {
        let commands = self.record_new(self.main, label, record)?;
        self.submit_and_wait(&[commands])
    }

    /// Submits in one batch to the main queue, and waits until the device is done.
    pub(crate) fn submit_and_wait(&self, commands: &[vk::CommandBuffer]) -> Result<(), Failure> {
        let fence = self.fence(vk::FenceCreateFlags::empty())?;
        self.submit(self.main, &vk::SubmitInfo::default().command_buffers(commands), fence)?;
        self.wait(fence)
    }

    /// The queue is this thread's for the time of the call.
    pub(crate) fn submit(&self, queue: Queue, submit: &vk::SubmitInfo, fence: vk::Fence) -> Result<(), Failure> {
        // SAFETY: the command buffers are recorded (VUID-vkQueueSubmit-pCommandBuffers-00070), the fence is unsignaled
        // (VUID-vkQueueSubmit-fence-00063), all of them stay until it is signaled, and the queue is this thread's
        // (lifetime, owner).
        Ok(unsafe { self.device.queue_submit(queue.handle, std::slice::from_ref(submit), fence) }?)
    }

    pub(crate) fn wait(&self, fence: vk::Fence) -> Result<(), Failure> {
        // SAFETY: the fence is alive (lifetime).
        Ok(unsafe { self.device.wait_for_fences(&[fence], true, u64::MAX) }?)
    }

    pub(crate) fn fence(&self, flags: vk::FenceCreateFlags) -> Result<vk::Fence, Failure> {
        Ok(self.destroy_at_end(self.unowned_fence(flags)?))
    }

    /// A fence that the caller destroys.
    pub(crate) fn unowned_fence(&self, flags: vk::FenceCreateFlags) -> Result<vk::Fence, Failure> {
        // SAFETY: the structure lives until the call returns (lifetime).
        Ok(unsafe { self.device.create_fence(&vk::FenceCreateInfo::default().flags(flags), None) }?)
    }

    pub(crate) fn semaphore(&self, name: &str) -> Result<vk::Semaphore, Failure> {
        // SAFETY: the structure lives until the call returns (lifetime).
        let semaphore = unsafe { self.device.create_semaphore(&vk::SemaphoreCreateInfo::default(), None) }?;
        Ok(self.name(self.destroy_at_end(semaphore), name))
    }

    /// A semaphore with a counter, at 0.
    pub(crate) fn timeline(&self, name: &str) -> Result<vk::Semaphore, Failure> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
        let semaphore = unsafe { self.device.create_semaphore(&info, None) }?;
        Ok(self.name(self.destroy_at_end(semaphore), name))
    }

    pub(crate) fn event(&self, name: &str) -> Result<vk::Event, Failure> {
        // SAFETY: the structure lives until the call returns (lifetime).
        let event = unsafe { self.device.create_event(&vk::EventCreateInfo::default(), None) }?;
        Ok(self.name(self.destroy_at_end(event), name))
    }

    pub(crate) fn query_pool(&self, kind: vk::QueryType, count: u32) -> Result<vk::QueryPool, Failure> {
        let info = vk::QueryPoolCreateInfo::default().query_type(kind).query_count(count);
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(self.destroy_at_end(unsafe { self.device.create_query_pool(&info, None) }?))
    }

    /// Orders all uses on one queue.
    pub(crate) fn memory_barrier(&self, commands: vk::CommandBuffer, from: BarrierScope, to: BarrierScope) {
        let flags = vk::DependencyFlags::empty();
        let barrier = vk::MemoryBarrier::default().src_access_mask(from.access).dst_access_mask(to.access);
        // SAFETY: recorded by this thread (owner).
        unsafe { self.device.cmd_pipeline_barrier(commands, from.stages, to.stages, flags, &[barrier], &[], &[]) };
    }

    /// Orders two uses of a whole buffer on one queue.
    pub(crate) fn buffer_barrier(
        &self,
        commands: vk::CommandBuffer,
        buffer: &Buffer,
        from: BarrierScope,
        to: BarrierScope,
    ) {
        self.barriers(commands, from, to, &[buffer.barrier(from, to)], &[]);
    }

    /// Orders two uses of a whole image on one queue, and changes its layout.
    pub(crate) fn image_barrier(
        &self,
        commands: vk::CommandBuffer,
        image: &SampleImage,
        (from, old): (BarrierScope, vk::ImageLayout),
        (to, new): (BarrierScope, vk::ImageLayout),
    ) {
        let barrier = image.barrier(from, to).old_layout(old).new_layout(new);
        self.barriers(commands, from, to, &[], &[barrier]);
    }

    pub(crate) fn barriers(
        &self,
        commands: vk::CommandBuffer,
        from: BarrierScope,
        to: BarrierScope,
        buffers: &[vk::BufferMemoryBarrier],
        images: &[vk::ImageMemoryBarrier],
    ) {
        let flags = vk::DependencyFlags::empty();
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_pipeline_barrier(commands, from.stages, to.stages, flags, &[], buffers, images) };
    }

    /// Copies all of one buffer to the beginning of another.
    pub(crate) fn copy_buffer(&self, commands: vk::CommandBuffer, source: &Buffer, target: &Buffer) {
        let region = vk::BufferCopy::default().size(source.size);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.device.cmd_copy_buffer(commands, source.handle, target.handle, &[region]) };
    }

    /// Sets all words of a range to one value.
    pub(crate) fn fill_buffer(&self, commands: vk::CommandBuffer, buffer: &Buffer, bytes: (u64, u64), value: u32) {
        // SAFETY: live objects, recorded by this thread (lifetime, owner); offset and size are multiples of four
        // (VUID-vkCmdFillBuffer-dstOffset-00025, VUID-vkCmdFillBuffer-size-00028).
        unsafe { self.device.cmd_fill_buffer(commands, buffer.handle, bytes.0, bytes.1, value) };
    }
}
