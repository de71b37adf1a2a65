//! One queue uploads, hands the resources over to the other's family, and the other computes with them.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Gpu, MemoryPlacement, Needs, SampleImage, scope, shader};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "multi-queue-upload",
    about: "Uploads on a transfer queue, hands ownership over, and computes on the main queue.",
    run,
};

const SIDE: u32 = 16;
const WORDS: u32 = SIDE * SIDE;
const SIZE: u64 = WORDS as u64 * 4;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs { second_queue: true, ..Needs::NOTHING })?;
    let mut random = TestRng::new(options.seed);
    let words: Vec<u32> = (0..WORDS).map(|_| random.next_u32()).collect();
    let texels: Vec<u32> = (0..WORDS).map(|_| random.next_u32()).collect();
    let upload = Upload::new(&gpu, &words, &texels)?;
    let sums = gpu.buffer(
        "sums",
        SIZE,
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC,
        MemoryPlacement::Device,
    )?;
    let compute = Compute::new(&gpu, &upload, &sums)?;
    let uploaded = gpu.record_new(gpu.second, "upload", |commands| upload.record(&gpu, commands))?;
    let computed = gpu.record_new(gpu.main, "compute", |commands| {
        upload.acquire(&gpu, commands);
        compute.record(&gpu, commands);
    })?;

    let semaphores = [gpu.semaphore("uploaded")?];
    let fence = gpu.fence(vk::FenceCreateFlags::empty())?;
    let first = vk::SubmitInfo::default();
    gpu.submit(gpu.second, &first.command_buffers(&[uploaded]).signal_semaphores(&semaphores), vk::Fence::null())?;
    let second = vk::SubmitInfo::default().wait_dst_stage_mask(&[vk::PipelineStageFlags::COMPUTE_SHADER]);
    gpu.submit(gpu.main, &second.command_buffers(&[computed]).wait_semaphores(&semaphores), fence)?;
    gpu.wait(fence)?;
    let want: Vec<u32> = words.iter().zip(&texels).map(|(a, b)| a.wrapping_add(*b)).collect();
    options.check.words("the sums", &gpu.download(&sums, scope::COMPUTE_WRITE)?, &want)
}

/// The uploaded data.
struct Upload {
    staging: Buffer,
    buffer: Buffer,
    image: SampleImage,
}

impl Upload {
    fn new(gpu: &Gpu, words: &[u32], texels: &[u32]) -> Result<Upload, Failure> {
        let staging = gpu.buffer("staging", SIZE * 2, vk::BufferUsageFlags::TRANSFER_SRC, MemoryPlacement::Host)?;
        gpu.write(&staging, &[words, texels].concat())?;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = gpu.buffer("words", SIZE, usage, MemoryPlacement::Device)?;
        let extent = vk::Extent2D { width: SIDE, height: SIDE };
        let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
        let image = gpu.image("texels", vk::Format::R32_UINT, extent, 1, usage)?;
        Ok(Upload { staging, buffer, image })
    }

    /// The uploading queue's part, with the release at its end.
    fn record(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        let layout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
        let (before, during) = ((scope::NOTHING, vk::ImageLayout::UNDEFINED), (scope::COPY_WRITE, layout));
        gpu.image_barrier(commands, &self.image, before, during);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let source = self.staging.handle;
            let region = vk::BufferCopy::default().size(SIZE);
            gpu.device.cmd_copy_buffer(commands, source, self.buffer.handle, &[region]);
            let region = self.image.buffer_copy_region(0, SIZE);
            gpu.device.cmd_copy_buffer_to_image(commands, source, self.image.handle, layout, &[region]);
        }
        // The second half is the other queue's, after the semaphore.
        let nobody = BarrierScope { stages: vk::PipelineStageFlags::BOTTOM_OF_PIPE, access: vk::AccessFlags::empty() };
        self.hand_over(gpu, commands, scope::COPY_WRITE, nobody);
    }

    /// The computing queue's part. Within one family there is nothing to hand over, and the release did it all but
    /// for the visibility that the semaphore brings.
    fn acquire(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        if !gpu.families().is_empty() {
            // The stage of the semaphore's wait, so that the acquire happens after it.
            let waited =
                BarrierScope { stages: vk::PipelineStageFlags::COMPUTE_SHADER, access: vk::AccessFlags::empty() };
            self.hand_over(gpu, commands, waited, scope::COMPUTE_READ);
        }
    }

    /// Both halves name the same families and the same change of layout.
    fn hand_over(&self, gpu: &Gpu, commands: vk::CommandBuffer, from: BarrierScope, to: BarrierScope) {
        let (source, target) = match gpu.families().is_empty() {
            true => (vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED),
            false => (gpu.second.family, gpu.main.family),
        };
        let buffer = self.buffer.barrier(from, to).src_queue_family_index(source).dst_queue_family_index(target);
        let image = self.image.barrier(from, to).src_queue_family_index(source).dst_queue_family_index(target);
        let image = image
            .old_layout(vk::ImageLayout::TRANSFER_DST_OPTIMAL)
            .new_layout(vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
        gpu.barriers(commands, from, to, &[buffer], &[image]);
    }
}

/// The work of the main queue.
struct Compute {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
}

impl Compute {
    fn new(gpu: &Gpu, upload: &Upload, sums: &Buffer) -> Result<Compute, Failure> {
        let (storage, sampled) = (vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::SAMPLED_IMAGE);
        let set_layout = gpu.set_layout(&[storage, sampled, storage], vk::ShaderStageFlags::COMPUTE)?;
        let set = gpu.descriptor_set(gpu.descriptor_pool(1, &[(storage, 2), (sampled, 1)])?, set_layout)?;
        gpu.write_buffers(set, (0, 0), storage, &[upload.buffer]);
        let image = vk::DescriptorImageInfo::default().image_view(upload.image.view);
        gpu.write_image(set, 1, sampled, image.image_layout(vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL));
        gpu.write_buffers(set, (2, 0), storage, &[*sums]);
        let layout = gpu.pipeline_layout(&[set_layout], None)?;
        Ok(Compute { pipeline: gpu.compute_pipeline(shader!("upload.comp"), layout, &[])?, layout, set })
    }

    fn record(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let compute = vk::PipelineBindPoint::COMPUTE;
            gpu.device.cmd_bind_pipeline(commands, compute, self.pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, compute, self.layout, 0, &[self.set], &[]);
            gpu.device.cmd_dispatch(commands, WORDS / 64, 1, 1);
        }
    }
}
