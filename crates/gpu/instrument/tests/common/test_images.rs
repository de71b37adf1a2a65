//! Images for descriptors and for drawing, filled before and read afterward.

use ash::vk;

use super::vulkan::{Buffer, Gpu};

/// Width and height of the images behind descriptors.
pub(crate) const SIDE: u32 = 4;

/// An image that is always in the general layout.
#[derive(Clone, Copy)]
pub(crate) struct TestImage {
    pub(crate) image: vk::Image,
    pub(crate) view: vk::ImageView,
    side: u32,
    words: usize,
    aspect: vk::ImageAspectFlags,
    samples: vk::SampleCountFlags,
}

impl TestImage {
    pub(crate) fn new(gpu: &Gpu, format: vk::Format, side: u32, samples: u32) -> TestImage {
        let is_depth = format == vk::Format::D32_SFLOAT;
        let samples = vk::SampleCountFlags::from_raw(samples);
        let mut usage = vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
        usage |= match (side == SIDE, is_depth || samples != vk::SampleCountFlags::TYPE_1) {
            (false, _) => vk::ImageUsageFlags::COLOR_ATTACHMENT,
            (true, true) => vk::ImageUsageFlags::SAMPLED,
            (true, false) => vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE,
        };
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(vk::Extent3D { width: side, height: side, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(samples)
            .usage(usage);
        let aspect = if is_depth { vk::ImageAspectFlags::DEPTH } else { vk::ImageAspectFlags::COLOR };
        let range = vk::ImageSubresourceRange::default().aspect_mask(aspect).level_count(1).layer_count(1);
        let texel = if format == vk::Format::R32G32B32A32_SFLOAT { 4 } else { 1 };
        // SAFETY: the structures live until their calls return; image and memory are new and kept to the end, and the
        // memory has the size and a type that the image needs.
        unsafe {
            let image = gpu.device.create_image(&info, None).expect("an image");
            let needs = gpu.device.get_image_memory_requirements(image);
            let kind = needs.memory_type_bits.trailing_zeros();
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
            let memory = gpu.device.allocate_memory(&info, None).expect("memory");
            gpu.device.bind_image_memory(image, memory, 0).expect("memory that fits");
            let info = vk::ImageViewCreateInfo::default()
                .image(image)
                .view_type(vk::ImageViewType::TYPE_2D)
                .format(format)
                .subresource_range(range);
            let view = gpu.device.create_image_view(&info, None).expect("a view");
            TestImage { image, view, side, words: (side * side * texel) as usize, aspect, samples }
        }
    }

    /// Fills it; a multisampled one with zeros.
    pub(crate) fn fill(&self, gpu: &Gpu, words: &[u32]) {
        let mut all = words.to_vec();
        all.resize(self.words, 0);
        let source = gpu.buffer(&all);
        gpu.execute(|commands| {
            self.transition(gpu, commands, vk::ImageLayout::UNDEFINED);
            // SAFETY: `execute` gives a command buffer in the recording state. Image and buffer are kept to the end,
            // `region` is the whole image, and `source` has as many words (VUID-vkCmdCopyBufferToImage-pRegions-00171).
            unsafe {
                if self.samples == vk::SampleCountFlags::TYPE_1 {
                    let layout = vk::ImageLayout::GENERAL;
                    gpu.device.cmd_copy_buffer_to_image(commands, source.handle, self.image, layout, &[self.region()]);
                } else {
                    let color = vk::ClearColorValue::default();
                    let range = self.range();
                    gpu.device.cmd_clear_color_image(commands, self.image, vk::ImageLayout::GENERAL, &color, &[range]);
                }
            }
            self.transition(gpu, commands, vk::ImageLayout::GENERAL);
        });
    }

    /// The contents of the image; zeros if it is multisampled.
    pub(crate) fn read(&self, gpu: &Gpu) -> Vec<u32> {
        let target: Buffer = gpu.buffer(&vec![0; self.words]);
        if self.samples == vk::SampleCountFlags::TYPE_1 {
            gpu.execute(|commands| {
                self.transition(gpu, commands, vk::ImageLayout::GENERAL);
                let layout = vk::ImageLayout::GENERAL;
                // SAFETY: `execute` gives a command buffer in the recording state. Image and buffer are kept to the
                // end, `region` is the whole image, and `target` has as many words
                // (VUID-vkCmdCopyImageToBuffer-pRegions-00183).
                unsafe {
                    gpu.device.cmd_copy_image_to_buffer(commands, self.image, layout, target.handle, &[self.region()]);
                }
            });
        }
        gpu.read(target)
    }

    fn range(&self) -> vk::ImageSubresourceRange {
        vk::ImageSubresourceRange::default().aspect_mask(self.aspect).level_count(1).layer_count(1)
    }

    fn region(&self) -> vk::BufferImageCopy {
        vk::BufferImageCopy::default()
            .image_subresource(vk::ImageSubresourceLayers::default().aspect_mask(self.aspect).layer_count(1))
            .image_extent(vk::Extent3D { width: self.side, height: self.side, depth: 1 })
    }

    fn transition(&self, gpu: &Gpu, commands: vk::CommandBuffer, from: vk::ImageLayout) {
        let barrier = vk::ImageMemoryBarrier::default()
            .old_layout(from)
            .new_layout(vk::ImageLayout::GENERAL)
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
            .image(self.image)
            .subresource_range(self.range());
        let all = vk::PipelineStageFlags::ALL_COMMANDS;
        // SAFETY: callers record here, outside of rendering; the image is kept to the end, and the barrier lives until
        // the call returns.
        unsafe {
            let flags = vk::DependencyFlags::empty();
            gpu.device.cmd_pipeline_barrier(commands, all, all, flags, &[], &[], &[barrier]);
        }
    }
}

/// Nearest texels, and comparison where it is asked for.
pub(crate) fn sampler(gpu: &Gpu, compares: bool) -> vk::Sampler {
    let info = vk::SamplerCreateInfo::default().compare_enable(compares).compare_op(vk::CompareOp::LESS);
    // SAFETY: `info` lives until the call returns, and the sampler is kept to the end.
    unsafe { gpu.device.create_sampler(&info, None) }.expect("a sampler")
}
