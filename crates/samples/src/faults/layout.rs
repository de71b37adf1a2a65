//! A shader reads an image that was just uploaded, without the barrier that orders them and changes its layout.

use ash::vk;

use super::check;
use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Buffer, Gpu, Image, Needs, Place, scope, shader};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-layout",
    about: "Fault: a shader reads an image in the layout of the upload, without the barrier between them.",
    run,
};

const SIDE: u32 = 16;
const WORDS: u32 = SIDE * SIDE;
const SIZE: u64 = WORDS as u64 * 4;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let words: Vec<u32> = (0..WORDS).collect();
    let input = gpu.buffer(
        "input",
        SIZE,
        vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::STORAGE_BUFFER,
        Place::Host,
    )?;
    gpu.write(&input, &words)?;
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    let extent = vk::Extent2D { width: SIDE, height: SIDE };
    let image = gpu.image("uploaded", vk::Format::R32_UINT, extent, 1, usage)?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let output = gpu.buffer("output", SIZE, usage, Place::Device)?;
    let reader = Reader::new(&gpu, &input, &image, &output)?;
    gpu.run_once("upload and read", |commands| {
        let during = (scope::COPY_WRITE, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        gpu.image_barrier(commands, &image, (scope::NOTHING, vk::ImageLayout::UNDEFINED), during);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let region = [image.region(0, 0)];
            gpu.device.cmd_copy_buffer_to_image(commands, input.handle, image.handle, during.1, &region);
        }
        if options.fault == Fault::Mended {
            let after = (scope::COMPUTE_READ, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
            gpu.image_barrier(commands, &image, during, after);
        }
        gpu.labeled(commands, "read", || reader.dispatch(&gpu, commands));
    })?;
    let want: Vec<u32> = words.iter().map(|it| it * 2).collect();
    check(options, "the sums", &gpu.download(&output, scope::COMPUTE_WRITE)?, &want)
}

struct Reader {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
}

impl Reader {
    fn new(gpu: &Gpu, words: &Buffer, image: &Image, sums: &Buffer) -> Result<Reader, Failure> {
        let (storage, sampled) = (vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::SAMPLED_IMAGE);
        let set_layout = gpu.set_layout(&[storage, sampled, storage], vk::ShaderStageFlags::COMPUTE)?;
        let set = gpu.descriptor_set(gpu.descriptor_pool(1, &[(storage, 2), (sampled, 1)])?, set_layout)?;
        gpu.write_buffers(set, (0, 0), storage, &[*words]);
        let info = vk::DescriptorImageInfo::default().image_view(image.view);
        gpu.write_image(set, 1, sampled, info.image_layout(vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL));
        gpu.write_buffers(set, (2, 0), storage, &[*sums]);
        let layout = gpu.pipeline_layout(&[set_layout], None)?;
        Ok(Reader { pipeline: gpu.compute_pipeline(shader!("upload.comp"), layout)?, layout, set })
    }

    fn dispatch(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let compute = vk::PipelineBindPoint::COMPUTE;
            gpu.device.cmd_bind_pipeline(commands, compute, self.pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, compute, self.layout, 0, &[self.set], &[]);
            gpu.device.cmd_dispatch(commands, WORDS / 64, 1, 1);
        }
    }
}
