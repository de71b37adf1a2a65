//! An array of buffers in one binding, indexed by the shader; written after binding where the device allows it.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, Gpu, MemoryPlacement, Needs, binding_of, scope, shader};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "descriptors",
    about: "Indexes an array of buffers, updated after it was bound where the device allows it.",
    run,
};

const NEEDS: Needs = Needs {
    features: &[Feature::ShaderStorageBufferArrayDynamicIndexing],
    features_optional: &[Feature::DescriptorBindingStorageBufferUpdateAfterBind],
    ..Needs::NOTHING
};
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
const BUFFERS: usize = 8;
const HALF: usize = BUFFERS / 2;
const WORDS: u32 = 128;
const SIZE: u64 = WORDS as u64 * 4;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    let mut random = TestRng::new(options.seed);
    let inputs: Vec<Vec<u32>> = (0..BUFFERS).map(|_| (0..WORDS).map(|_| random.next_u32()).collect()).collect();
    let buffers = inputs.iter().map(|it| input(&gpu, it)).collect::<Result<Vec<_>, Failure>>()?;
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let sums = gpu.buffer("sums", SIZE, usage, MemoryPlacement::Device)?;
    let gather = Gather::new(&gpu, &sums)?;
    let is_late = gpu.has(Feature::DescriptorBindingStorageBufferUpdateAfterBind);
    gpu.write_buffers(gather.sets[0], (0, 0), STORAGE, &buffers[..HALF]);
    if !is_late {
        gpu.write_buffers(gather.sets[0], (0, HALF as u32), STORAGE, &buffers[HALF..]);
    }
    let commands = gpu.record_new(gpu.main, "gather", |commands| {
        gpu.fill_buffer(commands, &sums, (0, SIZE), 0);
        let used = scope::COMPUTE_READ.union(scope::COMPUTE_WRITE);
        gpu.buffer_barrier(commands, &sums, scope::COPY_WRITE, used);
        gather.dispatch(&gpu, commands, 0);
        gpu.buffer_barrier(commands, &sums, scope::COMPUTE_WRITE, used);
        gather.dispatch(&gpu, commands, HALF as u32);
    })?;
    if is_late {
        gpu.write_buffers(gather.sets[0], (0, HALF as u32), STORAGE, &buffers[HALF..]);
    }
    let fence = gpu.fence(vk::FenceCreateFlags::empty())?;
    gpu.submit(gpu.main, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)?;
    gpu.wait(fence)?;
    let sum = |at: usize| inputs.iter().fold(0u32, |sum, it| sum.wrapping_mul(31).wrapping_add(it[at]));
    let want: Vec<u32> = (0..WORDS as usize).map(sum).collect();
    options.check.words("the sums", &gpu.download(&sums, scope::COMPUTE_WRITE)?, &want)
}

fn input(gpu: &Gpu, words: &[u32]) -> Result<Buffer, Failure> {
    let buffer = gpu.buffer("input", SIZE, vk::BufferUsageFlags::STORAGE_BUFFER, MemoryPlacement::Host)?;
    gpu.write(&buffer, words)?;
    Ok(buffer)
}

/// The pipeline, and its sets: the array, and the sums.
struct Gather {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    sets: [vk::DescriptorSet; 2],
}

impl Gather {
    fn new(gpu: &Gpu, sums: &Buffer) -> Result<Gather, Failure> {
        let is_late = gpu.has(Feature::DescriptorBindingStorageBufferUpdateAfterBind);
        let bindings = [binding_of(0, STORAGE, BUFFERS as u32, COMPUTE)];
        let flags = [vk::DescriptorBindingFlags::UPDATE_AFTER_BIND];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let array = if is_late {
            let info = info.flags(vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL);
            gpu.set_layout_of(&info.push_next(&mut flags))?
        } else {
            gpu.set_layout_of(&info)?
        };
        let pool_flags = match is_late {
            true => vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND,
            false => vk::DescriptorPoolCreateFlags::empty(),
        };
        let single = gpu.set_layout(&[STORAGE], COMPUTE)?;
        let array_pool =
            gpu.destroy_at_end(gpu.unowned_descriptor_pool(1, &[(STORAGE, BUFFERS as u32)], pool_flags)?);
        let single_pool = gpu.descriptor_pool(1, &[(STORAGE, 1)])?;
        let sets = [gpu.descriptor_set(array_pool, array)?, gpu.descriptor_set(single_pool, single)?];
        gpu.write_buffers(sets[1], (0, 0), STORAGE, &[*sums]);
        let constants = vk::PushConstantRange { stage_flags: COMPUTE, offset: 0, size: 8 };
        let layout = gpu.pipeline_layout(&[array, single], Some(constants))?;
        Ok(Gather { pipeline: gpu.compute_pipeline(shader!("gather.comp"), layout, &[])?, layout, sets })
    }

    /// Adds half of the buffers.
    fn dispatch(&self, gpu: &Gpu, commands: vk::CommandBuffer, first: u32) {
        let constants: Vec<u8> = [first, HALF as u32].into_iter().flat_map(u32::to_ne_bytes).collect();
        // SAFETY: live objects, recorded by this thread; what is not written yet will be before the submission
        // (lifetime, owner, feature).
        unsafe {
            let compute = vk::PipelineBindPoint::COMPUTE;
            gpu.device.cmd_bind_pipeline(commands, compute, self.pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, compute, self.layout, 0, &self.sets, &[]);
            gpu.device.cmd_push_constants(commands, self.layout, COMPUTE, 0, &constants);
            gpu.device.cmd_dispatch(commands, WORDS / 64, 1, 1);
        }
    }
}
