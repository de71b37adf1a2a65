//! The objects that travel, and the work at a stop.

use ash::vk;

use super::Operation;
use crate::common::{BarrierScope, Buffer, Gpu, MemoryPlacement, scope, shader};
use crate::failure::Failure;

pub(super) const WORDS: u32 = 256;
const SIZE: u64 = WORDS as u64 * 4;
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;

/// Shared by all threads and constant.
pub(super) struct HandoffPipeline<'a> {
    pub(super) gpu: &'a Gpu,
    set_layout: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
}

/// Objects that belong to whichever thread has the parcel.
pub(super) struct Parcel {
    pub(super) index: usize,
    /// How many stops lie behind it.
    pub(super) visits: usize,
    parcel_buffer: ParcelBuffer,
    /// Used in turn, so that a thread rarely has to wait for the device.
    recorders: [ParcelRecorder; 2],
}

/// A buffer, and the descriptor set that names it.
struct ParcelBuffer {
    buffer: Buffer,
    pool: vk::DescriptorPool,
    set: vk::DescriptorSet,
}

struct ParcelRecorder {
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    /// Objects that the last recording replaced, to be destroyed once the fence is signaled.
    replaced: Vec<ParcelBuffer>,
}

impl<'a> HandoffPipeline<'a> {
    pub(super) fn new(gpu: &'a Gpu) -> Result<HandoffPipeline<'a>, Failure> {
        let set_layout = gpu.set_layout(&[STORAGE], vk::ShaderStageFlags::COMPUTE)?;
        let constants = vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 4 };
        let layout = gpu.pipeline_layout(&[set_layout], Some(constants))?;
        let pipeline = gpu.compute_pipeline(shader!("scramble.comp"), layout, &[])?;
        Ok(HandoffPipeline { gpu, set_layout, layout, pipeline })
    }

    /// Reads all parcels into one list of words and ends them.
    pub(super) fn collect(&self, parcels: Vec<Parcel>) -> Result<Vec<u32>, Failure> {
        let gpu = self.gpu;
        let size = SIZE * parcels.len() as u64;
        let target = gpu.buffer("arrived", size, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
        gpu.run_once("collect", |commands| {
            for (at, parcel) in parcels.iter().enumerate() {
                let source = &parcel.parcel_buffer.buffer;
                gpu.buffer_barrier(commands, source, any_write(), scope::COPY_READ);
                let region = vk::BufferCopy::default().dst_offset(SIZE * at as u64).size(SIZE);
                // SAFETY: live objects, recorded by this thread (lifetime, owner).
                unsafe { gpu.device.cmd_copy_buffer(commands, source.handle, target.handle, &[region]) };
            }
            gpu.buffer_barrier(commands, &target, scope::COPY_WRITE, scope::HOST_READ);
        })?;
        for parcel in parcels {
            parcel.end(gpu)?;
        }
        gpu.read(&target)
    }
}

impl Parcel {
    pub(super) fn new(machine: &HandoffPipeline, index: usize) -> Result<Parcel, Failure> {
        let recorders = [ParcelRecorder::new(machine.gpu)?, ParcelRecorder::new(machine.gpu)?];
        Ok(Parcel { index, visits: 0, parcel_buffer: ParcelBuffer::new(machine, index)?, recorders })
    }

    /// The command buffers to submit for this stop.
    pub(super) fn record(
        &mut self,
        machine: &HandoffPipeline,
        operation: &Operation,
    ) -> Result<(vk::CommandBuffer, vk::Fence), Failure> {
        let gpu = machine.gpu;
        let at = self.visits % self.recorders.len();
        self.recorders[at].recycle(gpu)?;
        let new = matches!(operation, Operation::Move).then(|| ParcelBuffer::new(machine, self.index)).transpose()?;
        let (commands, is_first) = (self.recorders[at].commands, self.visits == 0);
        gpu.record(commands, || {
            let buffer = &self.parcel_buffer.buffer;
            if is_first {
                gpu.fill_buffer(commands, buffer, (0, SIZE), 0);
            }
            gpu.buffer_barrier(commands, buffer, any_write().union(any_read()), any_write().union(any_read()));
            self.parcel_buffer.record(machine, commands, operation, new.as_ref());
        })?;
        if let Some(new) = new {
            let old = std::mem::replace(&mut self.parcel_buffer, new);
            self.recorders[at].replaced.push(old);
        }
        self.visits += 1;
        Ok((commands, self.recorders[at].fence))
    }

    fn end(self, gpu: &Gpu) -> Result<(), Failure> {
        for mut recorder in self.recorders {
            recorder.recycle(gpu)?;
            // SAFETY: the fence was waited for, and all are this thread's (lifetime, owner).
            unsafe {
                gpu.device.destroy_command_pool(recorder.pool, None);
                gpu.device.destroy_fence(recorder.fence, None);
            }
        }
        self.parcel_buffer.end(gpu);
        Ok(())
    }
}

impl ParcelBuffer {
    fn new(machine: &HandoffPipeline, index: usize) -> Result<ParcelBuffer, Failure> {
        let gpu = machine.gpu;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = gpu.unowned_buffer(&format!("parcel {index}"), SIZE, usage, MemoryPlacement::Device)?;
        let pool = gpu.unowned_descriptor_pool(1, &[(STORAGE, 1)], vk::DescriptorPoolCreateFlags::empty())?;
        let set = gpu.descriptor_set(pool, machine.set_layout)?;
        gpu.write_buffers(set, (0, 0), STORAGE, &[buffer]);
        Ok(ParcelBuffer { buffer, pool, set })
    }

    fn record(
        &self,
        machine: &HandoffPipeline,
        commands: vk::CommandBuffer,
        operation: &Operation,
        new: Option<&ParcelBuffer>,
    ) {
        let (gpu, handle) = (machine.gpu, self.buffer.handle);
        let bytes = |words: u32| u64::from(words) * 4;
        match operation {
            Operation::Fill { at, count, value } => {
                gpu.fill_buffer(commands, &self.buffer, (bytes(*at), bytes(*count)), *value);
            }
            Operation::Update { at, words } => {
                let data: Vec<u8> = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
                // SAFETY: live objects, recorded by this thread (lifetime, owner).
                unsafe { gpu.device.cmd_update_buffer(commands, handle, bytes(*at), &data) };
            }
            Operation::Copy { from, to, count } => {
                let region = vk::BufferCopy { src_offset: bytes(*from), dst_offset: bytes(*to), size: bytes(*count) };
                // SAFETY: live objects, recorded by this thread; the two ranges lie in different halves of the buffer
                // (VUID-vkCmdCopyBuffer-pRegions-00117; lifetime, owner).
                unsafe { gpu.device.cmd_copy_buffer(commands, handle, handle, &[region]) };
            }
            Operation::Scramble { key } => {
                let (compute, stages) = (vk::PipelineBindPoint::COMPUTE, vk::ShaderStageFlags::COMPUTE);
                // SAFETY: live objects, recorded by this thread (lifetime, owner).
                unsafe {
                    gpu.device.cmd_bind_pipeline(commands, compute, machine.pipeline);
                    gpu.device.cmd_bind_descriptor_sets(commands, compute, machine.layout, 0, &[self.set], &[]);
                    gpu.device.cmd_push_constants(commands, machine.layout, stages, 0, &key.to_ne_bytes());
                    gpu.device.cmd_dispatch(commands, WORDS / 64, 1, 1);
                }
            }
            Operation::Move => {
                new.into_iter().for_each(|it| gpu.copy_buffer(commands, &self.buffer, &it.buffer));
            }
        }
    }

    /// Its last use is over.
    fn end(self, gpu: &Gpu) {
        gpu.destroy_buffer(self.buffer);
        // SAFETY: the pool is this thread's, and its set is in use no more (lifetime, owner).
        unsafe { gpu.device.destroy_descriptor_pool(self.pool, None) };
    }
}

impl ParcelRecorder {
    fn new(gpu: &Gpu) -> Result<ParcelRecorder, Failure> {
        let pool = gpu.unowned_command_pool(gpu.main)?;
        let commands = gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?;
        Ok(ParcelRecorder {
            pool,
            commands,
            fence: gpu.unowned_fence(vk::FenceCreateFlags::SIGNALED)?,
            replaced: Vec::new(),
        })
    }

    /// Waits for the last use, and makes the recorder as good as new.
    fn recycle(&mut self, gpu: &Gpu) -> Result<(), Failure> {
        // SAFETY: the fence is alive (lifetime). Asking first is what many programs do; the answer may be either.
        if !unsafe { gpu.device.get_fence_status(self.fence) }? {
            gpu.wait(self.fence)?;
        }
        self.replaced.drain(..).for_each(|it| it.end(gpu));
        // SAFETY: the fence was waited for, and all are this thread's (lifetime, owner).
        unsafe {
            gpu.device.reset_fences(&[self.fence])?;
            gpu.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())?;
        }
        Ok(())
    }
}

fn any_read() -> BarrierScope {
    scope::COPY_READ.union(scope::COMPUTE_READ)
}

fn any_write() -> BarrierScope {
    scope::COPY_WRITE.union(scope::COMPUTE_WRITE)
}
