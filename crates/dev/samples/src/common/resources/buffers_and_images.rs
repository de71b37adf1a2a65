//! Buffers and images, each with memory of its own, and how the host reads and writes them.

use ash::vk;

use crate::common::commands::{BarrierScope, scope};
use crate::common::{Feature, Gpu, Picture};
use crate::failure::Failure;

/// Where the memory of a resource lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryPlacement {
    Device,
    /// Visible to the host, and coherent.
    Host,
}

#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) handle: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) size: u64,
}

/// An image of one layer and one aspect with a view of all of it.
#[derive(Clone, Copy)]
pub(crate) struct SampleImage {
    pub(crate) handle: vk::Image,
    pub(crate) view: vk::ImageView,
    pub(crate) extent: vk::Extent2D,
    pub(crate) levels: u32,
    aspect: vk::ImageAspectFlags,
}

impl SampleImage {
    pub(crate) fn color(handle: vk::Image, view: vk::ImageView, extent: vk::Extent2D, levels: u32) -> SampleImage {
        SampleImage { handle, view, extent, levels, aspect: vk::ImageAspectFlags::COLOR }
    }

    /// Every level of the image.
    pub(crate) fn range(&self) -> vk::ImageSubresourceRange {
        range_of(self.aspect, self.levels)
    }

    /// All texels of a level.
    pub(crate) fn layers(&self, level: u32) -> vk::ImageSubresourceLayers {
        vk::ImageSubresourceLayers::default().aspect_mask(self.aspect).layer_count(1).mip_level(level)
    }

    pub(crate) fn extent_of(&self, level: u32) -> vk::Extent3D {
        vk::Extent3D { width: self.extent.width >> level, height: self.extent.height >> level, depth: 1 }
    }

    /// One level as a whole, tightly packed at an offset of a buffer.
    pub(crate) fn buffer_copy_region(&self, level: u32, buffer_offset: u64) -> vk::BufferImageCopy {
        vk::BufferImageCopy::default()
            .buffer_offset(buffer_offset)
            .image_subresource(self.layers(level))
            .image_extent(self.extent_of(level))
    }
}

impl Gpu {
    /// A buffer that is kept to the end.
    pub(crate) fn buffer(
        &self,
        name: &str,
        size: u64,
        usage: vk::BufferUsageFlags,
        place: MemoryPlacement,
    ) -> Result<Buffer, Failure> {
        let buffer = self.unowned_buffer(name, size, usage, place)?;
        self.destroy_at_end(buffer.memory);
        self.destroy_at_end(buffer.handle);
        Ok(buffer)
    }

    /// A buffer that the caller destroys with `destroy_buffer`.
    pub(crate) fn unowned_buffer(
        &self,
        name: &str,
        size: u64,
        usage: vk::BufferUsageFlags,
        place: MemoryPlacement,
    ) -> Result<Buffer, Failure> {
        self.bound_buffer(name, &vk::BufferCreateInfo::default().size(size).usage(usage), place)
    }

    /// A kept buffer that both queues use without handing it over.
    pub(crate) fn shared_buffer(
        &self,
        name: &str,
        size: u64,
        usage: vk::BufferUsageFlags,
        place: MemoryPlacement,
    ) -> Result<Buffer, Failure> {
        let families = self.families();
        let mut info = vk::BufferCreateInfo::default().size(size).usage(usage);
        if !families.is_empty() {
            info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&families);
        }
        let buffer = self.bound_buffer(name, &info, place)?;
        self.destroy_at_end(buffer.memory);
        self.destroy_at_end(buffer.handle);
        Ok(buffer)
    }

    fn bound_buffer(&self, name: &str, info: &vk::BufferCreateInfo, place: MemoryPlacement) -> Result<Buffer, Failure> {
        // SAFETY: `info` lives until the call returns; the buffer is new, and this thread alone has it (lifetime,
        // owner).
        let (handle, requirements) = unsafe {
            let handle = self.device.create_buffer(info, None)?;
            (handle, self.device.get_buffer_memory_requirements(handle))
        };
        let memory = self.allocate(name, requirements, place)?;
        // SAFETY: both are new, so the buffer is not bound (VUID-vkBindBufferMemory-buffer-07459), and `allocate`
        // followed its requirements for size and type (VUID-vkBindBufferMemory-memory-01035, -size-01037; lifetime,
        // owner).
        unsafe { self.device.bind_buffer_memory(handle, memory, 0) }?;
        Ok(Buffer { handle: self.name(handle, name), memory, size: info.size })
    }

    /// Ends a loose buffer whose last use is over.
    pub(crate) fn destroy_buffer(&self, buffer: Buffer) {
        // SAFETY: the sample made the buffer with `unowned_buffer`, waited for the fence of its last use, and has no
        // other copy of the handles that it uses later (VUID-vkDestroyBuffer-buffer-00922; lifetime, owner).
        unsafe {
            self.device.destroy_buffer(buffer.handle, None);
            self.device.free_memory(buffer.memory, None);
        }
    }

    /// A kept image in device memory.
    pub(crate) fn image(
        &self,
        name: &str,
        format: vk::Format,
        extent: vk::Extent2D,
        levels: u32,
        usage: vk::ImageUsageFlags,
    ) -> Result<SampleImage, Failure> {
        self.image_of(name, &image_info(format, extent).mip_levels(levels).usage(usage))
    }

    /// As `image`, with further options.
    pub(crate) fn image_of(&self, name: &str, info: &vk::ImageCreateInfo) -> Result<SampleImage, Failure> {
        // SAFETY: `info` lives until the call returns; the image is new, and this thread alone has it (lifetime,
        // owner). Every device supports the formats of the samples for their usage ("Required Format Support").
        let (handle, requirements) = unsafe {
            let handle = self.device.create_image(info, None)?;
            (handle, self.device.get_image_memory_requirements(handle))
        };
        let memory = self.destroy_at_end(self.allocate(name, requirements, MemoryPlacement::Device)?);
        self.destroy_at_end(handle);
        // SAFETY: both are new, so the image is not bound (VUID-vkBindImageMemory-image-07460), and `allocate` followed
        // its requirements for size and type (VUID-vkBindImageMemory-memory-01047, -size-01049; lifetime, owner).
        unsafe { self.device.bind_image_memory(handle, memory, 0) }?;
        self.image_with_view(name, handle, info)
    }

    /// An image that has its memory, with a view.
    pub(crate) fn image_with_view(
        &self,
        name: &str,
        handle: vk::Image,
        info: &vk::ImageCreateInfo,
    ) -> Result<SampleImage, Failure> {
        let is_depth = info.usage.contains(vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT);
        let aspect = if is_depth { vk::ImageAspectFlags::DEPTH } else { vk::ImageAspectFlags::COLOR };
        let view = vk::ImageViewCreateInfo::default()
            .image(handle)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(info.format)
            .subresource_range(range_of(aspect, info.mip_levels));
        // SAFETY: a live image that is bound to memory (VUID-VkImageViewCreateInfo-image-01020), with the format and
        // the levels that it was created with (lifetime).
        let view = self.name(self.destroy_at_end(unsafe { self.device.create_image_view(&view, None) }?), name);
        let extent = vk::Extent2D { width: info.extent.width, height: info.extent.height };
        Ok(SampleImage { aspect, ..SampleImage::color(self.name(handle, name), view, extent, info.mip_levels) })
    }

    /// Memory that the caller frees or keeps.
    pub(crate) fn allocate(
        &self,
        name: &str,
        requirements: vk::MemoryRequirements,
        place: MemoryPlacement,
    ) -> Result<vk::DeviceMemory, Failure> {
        let flags = match place {
            MemoryPlacement::Device => vk::MemoryPropertyFlags::DEVICE_LOCAL,
            MemoryPlacement::Host => vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT,
        };
        let types = self.memory.memory_types_as_slice();
        let allowed = |it: &usize| requirements.memory_type_bits & (1 << it) != 0;
        // Device memory is a wish, which some resources cannot have; what the host maps is guaranteed.
        let fits = |it: &usize| allowed(it) && types[*it].property_flags.contains(flags);
        let found = (0..types.len()).find(fits).or_else(|| match place {
            MemoryPlacement::Device => (0..types.len()).find(allowed),
            MemoryPlacement::Host => None,
        });
        let index = found.ok_or_else(|| Failure::Unsupported(format!("the device has no memory for the {name}")))?;
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default().allocation_size(requirements.size).memory_type_index(index as u32);
        let info = if self.has(Feature::BufferDeviceAddress) { info.push_next(&mut flags) } else { info };
        // SAFETY: `index` is one of the device's memory types (VUID-vkAllocateMemory-pAllocateInfo-01714), and `info`
        // lives until the call returns (lifetime).
        let memory = unsafe { self.device.allocate_memory(&info, None) }?;
        Ok(self.name(memory, name))
    }

    /// Copies words into a buffer in host memory that the device does not use now.
    pub(crate) fn write(&self, buffer: &Buffer, words: &[u32]) -> Result<(), Failure> {
        self.write_at(buffer, 0, words)
    }

    pub(crate) fn write_at(&self, buffer: &Buffer, offset: u64, words: &[u32]) -> Result<(), Failure> {
        let size = size_of_val(words) as u64;
        assert!(offset + size <= buffer.size, "the words fit into the buffer");
        // SAFETY: the memory is of this buffer alone and visible to the host (`MemoryPlacement::Host`), and each mapping ends
        // where it began, so it is not mapped (VUID-vkMapMemory-memory-00678). The range lies in it, by the assertion,
        // and is as long as what is copied. The sample waited for the device before it wrote (lifetime, owner).
        unsafe {
            let flags = vk::MemoryMapFlags::empty();
            let address = self.device.map_memory(buffer.memory, offset, size, flags)?.cast::<u32>();
            address.copy_from_nonoverlapping(words.as_ptr(), words.len());
            self.device.unmap_memory(buffer.memory);
        }
        Ok(())
    }

    /// Copies floats into a buffer, as `write` does.
    pub(crate) fn write_floats(&self, buffer: &Buffer, floats: &[f32]) -> Result<(), Failure> {
        self.write(buffer, &floats.iter().map(|it| it.to_bits()).collect::<Vec<_>>())
    }

    /// The contents of a buffer in host memory, after the device has finished writing it.
    pub(crate) fn read(&self, buffer: &Buffer) -> Result<Vec<u32>, Failure> {
        let mut words = vec![0; (buffer.size / 4) as usize];
        // SAFETY: the memory is of this buffer alone and visible to the host (`MemoryPlacement::Host`), and each mapping ends
        // where it began, so it is not mapped (VUID-vkMapMemory-memory-00678). The range is the buffer's, as long as
        // `words`. The sample waited for the fence of what wrote it (lifetime, owner).
        unsafe {
            let size = size_of_val(words.as_slice()) as u64;
            let address = self.device.map_memory(buffer.memory, 0, size, vk::MemoryMapFlags::empty())?.cast::<u32>();
            address.copy_to_nonoverlapping(words.as_mut_ptr(), words.len());
            self.device.unmap_memory(buffer.memory);
        }
        Ok(words)
    }

    /// The contents of a buffer in device memory, after it was written in scope `before`.
    pub(crate) fn download(&self, buffer: &Buffer, before: BarrierScope) -> Result<Vec<u32>, Failure> {
        let target = self.buffer("download", buffer.size, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
        self.run_once("download", |commands| {
            self.buffer_barrier(commands, buffer, before, scope::COPY_READ);
            self.copy_buffer(commands, buffer, &target);
            self.buffer_barrier(commands, &target, scope::COPY_WRITE, scope::HOST_READ);
        })?;
        self.read(&target)
    }

    /// The contents of an image in layout `TRANSFER_SRC_OPTIMAL`, after it was drawn and made readable by copies.
    pub(crate) fn picture(&self, image: &SampleImage) -> Result<Picture, Failure> {
        let vk::Extent2D { width, height } = image.extent;
        let size = u64::from(width * height * 4);
        let target = self.buffer("picture", size, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
        self.run_once("read the picture", |commands| {
            let layout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                let region = [image.buffer_copy_region(0, 0)];
                self.device.cmd_copy_image_to_buffer(commands, image.handle, layout, target.handle, &region);
            }
            self.buffer_barrier(commands, &target, scope::COPY_WRITE, scope::HOST_READ);
        })?;
        let bytes = self.read(&target)?.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(Picture::new(width, height, bytes))
    }
}

/// Words as the device reads them; the length is a multiple of four.
pub(crate) fn words_of_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

/// An image of one layer, level and sample; the caller adds its usage.
pub(crate) fn image_info(format: vk::Format, extent: vk::Extent2D) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: extent.width, height: extent.height, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
}

fn range_of(aspect: vk::ImageAspectFlags, levels: u32) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange::default().aspect_mask(aspect).level_count(levels).layer_count(1)
}
