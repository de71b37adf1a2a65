//! A shader that prints; what it prints is for tools, and changes nothing.

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{ComputeKernel, Feature, Gpu, MemoryPlacement, Needs, scope, shader};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample =
    Sample { name: "printf", about: "Squares numbers in a shader that prints some of them.", run };
pub(crate) const AGAIN: Sample =
    Sample { name: "printf-again", about: "The same in a command buffer that is submitted twice.", run: again };

pub(crate) const FORMATS: Sample =
    Sample { name: "printf-formats", about: "Prints numbers of many types in many formats.", run: formats };

const COUNT: u32 = 64;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    square(options, |gpu, kernel| gpu.run_once("square", |commands| kernel.dispatch(gpu, commands, 0, &[0], COUNT)))
}

fn again(options: &SampleOptions) -> Result<(), Failure> {
    square(options, |gpu, kernel| {
        let commands = gpu.command_buffer(gpu.command_pool(gpu.main)?, vk::CommandBufferLevel::PRIMARY)?;
        // SAFETY: live objects, recorded by this thread; each submission is waited for (lifetime, owner).
        unsafe {
            gpu.device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default())?;
            kernel.dispatch(gpu, commands, 0, &[0], COUNT);
            gpu.device.end_command_buffer(commands)?;
        }
        gpu.submit_and_wait(&[commands])?;
        gpu.submit_and_wait(&[commands])
    })
}

fn formats(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs {
        features: &[Feature::ShaderInt64, Feature::ShaderFloat64],
        extensions_optional: &[ash::khr::shader_non_semantic_info::NAME],
        ..Needs::NOTHING
    })?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let numbers = gpu.buffer("numbers", 8, usage, MemoryPlacement::Host)?;
    gpu.write(&numbers, &[7, 0])?;
    let kernel = ComputeKernel::new(&gpu, shader!("formats.comp"), &[[numbers]], 4)?;
    gpu.run_once("print", |commands| {
        kernel.dispatch(&gpu, commands, 0, &[0], COUNT);
        gpu.buffer_barrier(commands, &numbers, scope::COMPUTE_WRITE, scope::HOST_READ);
    })?;
    options.check.words("the number", &gpu.read(&numbers)?, &[7, COUNT])
}

fn square(
    options: &SampleOptions,
    work: impl FnOnce(&Gpu, &ComputeKernel) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs { extensions_optional: &[ash::khr::shader_non_semantic_info::NAME], ..Needs::NOTHING })?;
    let size = u64::from(COUNT) * 4;
    let numbers: Vec<u32> = (0..COUNT).map(|it| it + 10).collect();
    let source = gpu.buffer("numbers", size, vk::BufferUsageFlags::STORAGE_BUFFER, MemoryPlacement::Host)?;
    gpu.write(&source, &numbers)?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let target = gpu.buffer("squares", size, usage, MemoryPlacement::Device)?;
    let kernel = ComputeKernel::new(&gpu, shader!("printf.comp"), &[[source, target]], 4)?;
    work(&gpu, &kernel)?;
    let squares: Vec<u32> = numbers.iter().map(|it| it * it).collect();
    options.check.words("the squares", &gpu.download(&target, scope::COMPUTE_WRITE)?, &squares)
}
