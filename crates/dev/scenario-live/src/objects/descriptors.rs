//! Descriptor sets that lead to exactly the parts that bindings name.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{ImageRegion, Region, ResourceId};

use crate::error::{LiveError, UnsupportedProgram};
use crate::objects::calls::{call, check, out};
use crate::objects::device::{LiveDevice, create};
use crate::objects::resources::samples;
use crate::objects::shader::{DescriptorShape, ImageDim, ShaderDescriptor};
use crate::plan::choose::image;
use crate::plan::formats;
use crate::plan::live_command::{BindingKind, ShaderBinding};

/// A set with one descriptor for each binding, and the layout of pipelines that use it.
pub(crate) struct BoundDescriptors {
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) set: DescriptorLocation,
}

/// Where descriptors are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DescriptorLocation {
    Pool(vk::DescriptorSet),
    /// An address, and this many bytes behind it.
    Memory(u64, u64),
}

/// The value of a descriptor.
enum LiveDescriptorContent {
    Buffer(vk::DescriptorBufferInfo),
    Image(vk::DescriptorImageInfo),
    Texels(vk::BufferView),
    Structure(vk::AccelerationStructureKHR),
}

impl LiveDevice<'_> {
    /// The bindings are numbered in their order.
    pub(crate) fn create_descriptors(&self, bindings: &[&ShaderBinding]) -> Result<BoundDescriptors, LiveError> {
        let binding = |(at, shader_binding): (usize, &&ShaderBinding)| vk::DescriptorSetLayoutBinding {
            binding: at as u32,
            descriptor_type: descriptor_type(shader_binding.kind),
            descriptor_count: 1,
            stage_flags: match shader_binding.kind {
                BindingKind::Input(_) => vk::ShaderStageFlags::FRAGMENT,
                _ => vk::ShaderStageFlags::ALL,
            },
            ..vk::DescriptorSetLayoutBinding::zeroed()
        };
        let made: Vec<_> = bindings.iter().enumerate().map(binding).collect();
        let in_memory = bindings.iter().find(|it| it.kind == BindingKind::Descriptors);
        use vk::DescriptorSetLayoutCreateFlags as Flags;
        let info = vk::DescriptorSetLayoutCreateInfo {
            flags: if in_memory.is_some() { Flags::DESCRIPTOR_BUFFER_EXT } else { Flags(0) },
            binding_count: made.len() as u32,
            p_bindings: Ptr::to_slice(&made),
            ..vk::DescriptorSetLayoutCreateInfo::zeroed()
        };
        let set_layout = create!(self, create_descriptor_set_layout, info, DescriptorSetLayout);
        let info = vk::PipelineLayoutCreateInfo {
            set_layout_count: 1,
            p_set_layouts: Ptr::to(&set_layout),
            ..vk::PipelineLayoutCreateInfo::zeroed()
        };
        let layout = create!(self, create_pipeline_layout, info, PipelineLayout);
        if let Some(ShaderBinding { resource, region: Region::Buffer(bytes), .. }) = in_memory {
            let set = DescriptorLocation::Memory(self.address(self.resource(*resource).buffer()), bytes.start);
            return Ok(BoundDescriptors { layout, set });
        }
        let set = self.allocate_set(bindings, set_layout)?;
        for (at, shader_binding) in bindings.iter().enumerate() {
            let content = self.content(shader_binding)?;
            self.write(set, at as u32, descriptor_type(shader_binding.kind), &content);
        }
        Ok(BoundDescriptors { layout, set: DescriptorLocation::Pool(set) })
    }

    fn allocate_set(
        &self,
        bindings: &[&ShaderBinding],
        layout: vk::DescriptorSetLayout,
    ) -> Result<vk::DescriptorSet, LiveError> {
        let size =
            |it: &&ShaderBinding| vk::DescriptorPoolSize { type_: descriptor_type(it.kind), descriptor_count: 1 };
        let mut sizes: Vec<vk::DescriptorPoolSize> = bindings.iter().map(size).collect();
        if sizes.is_empty() {
            sizes.push(vk::DescriptorPoolSize { type_: vk::DescriptorType::SAMPLER, descriptor_count: 1 });
        }
        let info = vk::DescriptorPoolCreateInfo {
            max_sets: 1,
            pool_size_count: sizes.len() as u32,
            p_pool_sizes: Ptr::to_slice(&sizes),
            ..vk::DescriptorPoolCreateInfo::zeroed()
        };
        let pool = create!(self, create_descriptor_pool, info, DescriptorPool);
        let info = vk::DescriptorSetAllocateInfo {
            descriptor_pool: pool,
            descriptor_set_count: 1,
            p_set_layouts: Ptr::to(&layout),
            ..vk::DescriptorSetAllocateInfo::zeroed()
        };
        let mut set = vk::DescriptorSet(0);
        let result = call!(self.vk, allocate_descriptor_sets(self.device, Ptr::to(&info), out(&mut set)));
        check("vkAllocateDescriptorSets", result)?;
        Ok(set)
    }

    fn write(&self, set: vk::DescriptorSet, binding: u32, ty: vk::DescriptorType, content: &LiveDescriptorContent) {
        let mut structures = vk::WriteDescriptorSetAccelerationStructureKHR::zeroed();
        let mut write = vk::WriteDescriptorSet {
            dst_set: set,
            dst_binding: binding,
            descriptor_count: 1,
            descriptor_type: ty,
            ..vk::WriteDescriptorSet::zeroed()
        };
        match content {
            LiveDescriptorContent::Buffer(buffer) => write.p_buffer_info = Ptr::to(buffer),
            LiveDescriptorContent::Image(image) => write.p_image_info = Ptr::to(image),
            LiveDescriptorContent::Texels(texels) => write.p_texel_buffer_view = Ptr::to(texels),
            LiveDescriptorContent::Structure(structure) => {
                structures.acceleration_structure_count = 1;
                structures.p_acceleration_structures = Ptr::to(structure);
                write.p_next = Ptr::to(&structures).cast();
            }
        }
        call!(self.vk, update_descriptor_sets(self.device, 1, Ptr::to(&write), 0, Ptr::NULL));
    }

    fn content(&self, shader_binding: &ShaderBinding) -> Result<LiveDescriptorContent, LiveError> {
        let buffer = self.resource(shader_binding.resource).buffer();
        Ok(match (&shader_binding.region, shader_binding.kind) {
            (Region::Image(region), _) => LiveDescriptorContent::Image(vk::DescriptorImageInfo {
                sampler: vk::Sampler(0),
                image_view: self.view(shader_binding.resource, region)?,
                image_layout: vk::ImageLayout::GENERAL,
            }),
            (Region::Buffer(bytes), BindingKind::TexelBuffer) => {
                let (offset, range) = (bytes.start, bytes.end - bytes.start);
                let format = if range.is_multiple_of(4) { vk::Format::R32_UINT } else { vk::Format::R8_UINT };
                let info =
                    vk::BufferViewCreateInfo { buffer, format, offset, range, ..vk::BufferViewCreateInfo::zeroed() };
                LiveDescriptorContent::Texels(create!(self, create_buffer_view, info, BufferView))
            }
            (Region::Buffer(bytes), BindingKind::Structure) => LiveDescriptorContent::Structure(
                self.create_acceleration_structure(buffer, bytes.start, bytes.end - bytes.start)?,
            ),
            (Region::Buffer(bytes), _) => {
                let (offset, range) = (bytes.start, bytes.end - bytes.start);
                LiveDescriptorContent::Buffer(vk::DescriptorBufferInfo { buffer, offset, range })
            }
        })
    }

    /// An acceleration structure in a part of a buffer.
    pub(crate) fn create_acceleration_structure(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        size: u64,
    ) -> Result<vk::AccelerationStructureKHR, LiveError> {
        let info = vk::AccelerationStructureCreateInfoKHR {
            buffer,
            offset,
            size,
            type_: vk::AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR,
            ..vk::AccelerationStructureCreateInfoKHR::zeroed()
        };
        Ok(create!(self, create_acceleration_structure, info, AccelerationStructureKHR))
    }

    /// What a shader needs to know of a binding.
    pub(crate) fn shader_descriptor(
        &self,
        binding: u32,
        shader_binding: &ShaderBinding,
    ) -> Result<ShaderDescriptor, LiveError> {
        let kind = match (&shader_binding.region, shader_binding.kind) {
            (Region::Buffer(bytes), BindingKind::StorageBuffer) => {
                DescriptorShape::Storage { bytes: bytes.end - bytes.start }
            }
            (Region::Buffer(bytes), BindingKind::Counter) if bytes.end - bytes.start == 4 => DescriptorShape::Counter,
            (Region::Buffer(bytes), BindingKind::UniformBuffer) => {
                DescriptorShape::Uniform { bytes: bytes.end - bytes.start }
            }
            (Region::Buffer(_), BindingKind::TexelBuffer) => DescriptorShape::Texels,
            (Region::Buffer(_), BindingKind::Structure) => DescriptorShape::Structure,
            (Region::Buffer(_), BindingKind::Descriptors) => DescriptorShape::Storage { bytes: 4 },
            (Region::Image(region), BindingKind::Input(index)) => {
                let number = self.image_component_type(shader_binding.resource, region);
                DescriptorShape::Input { index, number, is_multisampled: self.is_multisampled(shader_binding.resource) }
            }
            (Region::Image(region), BindingKind::SampledImage | BindingKind::StorageImage) => DescriptorShape::Image {
                is_sampled: shader_binding.kind == BindingKind::SampledImage,
                dim: self.dim(shader_binding.resource, region),
                number: self.image_component_type(shader_binding.resource, region),
            },
            _ => return Err(UnsupportedProgram("a descriptor of another kind than its resource".to_owned()).into()),
        };
        Ok(ShaderDescriptor { binding, kind, reads: shader_binding.reads, writes: shader_binding.writes })
    }

    fn image_component_type(&self, resource: ResourceId, region: &ImageRegion) -> formats::ComponentType {
        let format = image(self.scenario.program, resource).map_or(vk::Format(0), |it| it.format);
        formats::component_type(format, region.aspects)
    }

    fn dim(&self, resource: ResourceId, region: &ImageRegion) -> ImageDim {
        let is_3d = image(self.scenario.program, resource).is_some_and(|it| it.extent[2] > 1);
        let is_array = !is_3d && region.layers.len() > 1;
        ImageDim { is_3d, is_array, is_multisampled: self.is_multisampled(resource) }
    }

    fn is_multisampled(&self, resource: ResourceId) -> bool {
        samples(self.scenario.program, resource) > 1
    }
}

fn descriptor_type(kind: BindingKind) -> vk::DescriptorType {
    match kind {
        BindingKind::StorageBuffer | BindingKind::Counter | BindingKind::Descriptors => {
            vk::DescriptorType::STORAGE_BUFFER
        }
        BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        BindingKind::TexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        BindingKind::Input(_) => vk::DescriptorType::INPUT_ATTACHMENT,
        BindingKind::Structure => vk::DescriptorType::ACCELERATION_STRUCTURE_KHR,
    }
}
