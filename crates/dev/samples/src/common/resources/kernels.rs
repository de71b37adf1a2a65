//! A compute pipeline over storage buffers, with one descriptor set for each choice of buffers.

use ash::vk;

use crate::common::{Buffer, Gpu, Shader};
use crate::failure::Failure;

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;

pub(crate) struct ComputeKernel {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    sets: Vec<vk::DescriptorSet>,
}

impl ComputeKernel {
    /// Every choice has the same number of buffers, for the bindings from 0 on.
    pub(crate) fn new<const N: usize>(
        gpu: &Gpu,
        shader: Shader,
        choices: &[[Buffer; N]],
        constants_bytes: u32,
    ) -> Result<ComputeKernel, Failure> {
        let set_layout = gpu.set_layout(&[STORAGE; N], COMPUTE)?;
        let constants = vk::PushConstantRange { stage_flags: COMPUTE, offset: 0, size: constants_bytes };
        let layout = gpu.pipeline_layout(&[set_layout], Some(constants))?;
        let pipeline = gpu.compute_pipeline(shader, layout, &[])?;
        let count = choices.len() as u32;
        let pool = gpu.descriptor_pool(count, &[(STORAGE, count * N as u32)])?;
        let mut sets = Vec::new();
        for buffers in choices {
            let set = gpu.descriptor_set(pool, set_layout)?;
            for (binding, buffer) in (0..).zip(buffers) {
                gpu.write_buffers(set, (binding, 0), STORAGE, &[*buffer]);
            }
            sets.push(set);
        }
        Ok(ComputeKernel { pipeline, layout, sets })
    }

    /// Runs one invocation per word on a choice of buffers, in groups of 64.
    pub(crate) fn dispatch(
        &self,
        gpu: &Gpu,
        commands: vk::CommandBuffer,
        choice: usize,
        constants: &[u32],
        words: u32,
    ) {
        let constants: Vec<u8> = constants.iter().flat_map(|it| it.to_ne_bytes()).collect();
        let bind_point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            gpu.device.cmd_bind_pipeline(commands, bind_point, self.pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, bind_point, self.layout, 0, &[self.sets[choice]], &[]);
            gpu.device.cmd_push_constants(commands, self.layout, COMPUTE, 0, &constants);
            gpu.device.cmd_dispatch(commands, words.div_ceil(64), 1, 1);
        }
    }
}
