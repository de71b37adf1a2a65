//! A dispatch for any compute shader of the corpus: everything that it uses is bound, and large enough.
//!
//! All words that shaders find are below seven, so that they may be used as indices.

use ash::vk;
use lavascope_spirv::{DescriptorKind, Id, Module, Specialization, reflect};
use spirv::{Capability, Dim, ImageFormat, Op};

use super::vulkan::{BoundBinding, Dispatch, Gpu};

/// Words of each storage buffer: enough for 512 of the largest elements.
const STORAGE_WORDS: usize = 24_000;
const UNIFORM_WORDS: usize = 4096;
const TEXELS: usize = 1024;
/// How long arrays without a length are here.
const OPEN_COUNT: u32 = 4;

fn words(count: usize) -> Vec<u32> {
    (0..count as u32).map(|it| it % 7).collect()
}

/// The bindings of an entry point, the first one.
pub(crate) fn dispatch(module: &Module) -> Dispatch {
    let found = reflect(module, 0, &Specialization::default()).expect("an entry point");
    let mut dispatch = Dispatch { push: words(24), groups: 1, ..Dispatch::default() };
    for descriptor in &found.descriptors {
        use DescriptorKind as Kind;
        assert_eq!(descriptor.set, 0, "the corpus has one set");
        if dispatch.bound.iter().any(|it| it.binding == descriptor.binding) {
            continue;
        }
        let (kind, count) = match descriptor.kind {
            Kind::Sampler => (vk::DescriptorType::SAMPLER, 1),
            Kind::CombinedImageSampler => (vk::DescriptorType::COMBINED_IMAGE_SAMPLER, 16),
            Kind::SampledImage => (vk::DescriptorType::SAMPLED_IMAGE, 16),
            Kind::StorageImage => (vk::DescriptorType::STORAGE_IMAGE, 16),
            Kind::UniformTexelBuffer => (vk::DescriptorType::UNIFORM_TEXEL_BUFFER, TEXELS),
            Kind::StorageTexelBuffer => (vk::DescriptorType::STORAGE_TEXEL_BUFFER, TEXELS),
            Kind::UniformBuffer => (vk::DescriptorType::UNIFORM_BUFFER, UNIFORM_WORDS),
            Kind::StorageBuffer => (vk::DescriptorType::STORAGE_BUFFER, STORAGE_WORDS),
            other => panic!("the corpus has no {other:?}"),
        };
        let element = Some((words(count), count as u64 * 4));
        let elements = vec![element; descriptor.count.unwrap_or(OPEN_COUNT) as usize];
        dispatch.bound.push(BoundBinding { binding: descriptor.binding, kind, elements });
        dispatch
            .formats
            .extend(format(module, descriptor.id).map(|(format, samples)| (descriptor.binding, format, samples)));
    }
    dispatch
}

/// The format and the samples of an image that fits to a variable's type.
pub(crate) fn format(module: &Module, variable: Id) -> Option<(vk::Format, u32)> {
    let mut ty = module.definition(module.definition(module.definition(variable)?.id(1))?.id(3))?;
    while !ty.is(Op::TypeImage) {
        let inner = match ty.op()? {
            Op::TypeArray | Op::TypeRuntimeArray | Op::TypeSampledImage => ty.id(2),
            _ => return None,
        };
        ty = module.definition(inner)?;
    }
    let number = module.definition(ty.id(2))?;
    let is_depth = ty.word(4) == 1;
    let is_buffer = ty.word(3) == Dim::DimBuffer as u32;
    let samples = if ty.word(6) == 1 { 4 } else { 1 };
    let format = match (ImageFormat::from_u32(ty.word(8))?, number.op()?) {
        (ImageFormat::Rgba8, _) => vk::Format::R8G8B8A8_UNORM,
        (ImageFormat::Rgba32f, _) => vk::Format::R32G32B32A32_SFLOAT,
        (_, Op::TypeInt) if number.word(3) == 1 => vk::Format::R32_SINT,
        (_, Op::TypeInt) => vk::Format::R32_UINT,
        _ if is_depth => vk::Format::D32_SFLOAT,
        (ImageFormat::R32f, _) => vk::Format::R32_SFLOAT,
        _ if is_buffer => vk::Format::R32_SFLOAT,
        _ => vk::Format::R8G8B8A8_UNORM,
    };
    Some((format, samples))
}

/// Features of a module that a device lacks.
pub(crate) fn missing(gpu: &Gpu, module: &Module) -> Option<Capability> {
    let capabilities = module.instructions(module.globals()).filter(|it| it.is(Op::Capability));
    let mut capabilities = capabilities.filter_map(|it| Capability::from_u32(it.word(1)));
    capabilities.find(|it| !has(gpu, *it))
}

fn has(gpu: &Gpu, capability: Capability) -> bool {
    let (core, one, two) = (&gpu.features.core, &gpu.features.core_1_1, &gpu.features.core_1_2);
    let feature = match capability {
        Capability::Int64 => core.shader_int64,
        Capability::Int16 => core.shader_int16,
        Capability::Float64 => core.shader_float64,
        Capability::Int8 => two.shader_int8,
        Capability::Float16 => two.shader_float16,
        Capability::StorageBuffer8BitAccess => two.storage_buffer8_bit_access,
        Capability::UniformAndStorageBuffer8BitAccess => two.uniform_and_storage_buffer8_bit_access,
        Capability::StorageBuffer16BitAccess => one.storage_buffer16_bit_access,
        Capability::UniformAndStorageBuffer16BitAccess => one.uniform_and_storage_buffer16_bit_access,
        Capability::VariablePointers => one.variable_pointers,
        Capability::VariablePointersStorageBuffer => one.variable_pointers_storage_buffer,
        Capability::RuntimeDescriptorArray => two.runtime_descriptor_array,
        Capability::ShaderNonUniform | Capability::StorageBufferArrayNonUniformIndexing => {
            two.shader_storage_buffer_array_non_uniform_indexing
        }
        Capability::SampledImageArrayNonUniformIndexing => two.shader_sampled_image_array_non_uniform_indexing,
        Capability::SampledImageArrayDynamicIndexing => core.shader_sampled_image_array_dynamic_indexing,
        Capability::StorageImageArrayDynamicIndexing => core.shader_storage_image_array_dynamic_indexing,
        Capability::UniformTexelBufferArrayDynamicIndexing => two.shader_uniform_texel_buffer_array_dynamic_indexing,
        Capability::StorageTexelBufferArrayDynamicIndexing => two.shader_storage_texel_buffer_array_dynamic_indexing,
        Capability::UniformBufferArrayDynamicIndexing => core.shader_uniform_buffer_array_dynamic_indexing,
        Capability::StorageBufferArrayDynamicIndexing => core.shader_storage_buffer_array_dynamic_indexing,
        Capability::StorageImageMultisample => core.shader_storage_image_multisample,
        Capability::StorageImageReadWithoutFormat => core.shader_storage_image_read_without_format,
        Capability::StorageImageWriteWithoutFormat => core.shader_storage_image_write_without_format,
        Capability::SparseResidency => core.shader_resource_residency,
        Capability::PhysicalStorageBufferAddresses => two.buffer_device_address,
        Capability::ImageGatherExtended => core.shader_image_gather_extended,
        Capability::VulkanMemoryModel => two.vulkan_memory_model,
        Capability::Geometry => core.geometry_shader,
        Capability::Tessellation => core.tessellation_shader,
        Capability::RayQueryKHR | Capability::RayTracingKHR | Capability::MeshShadingEXT => vk::FALSE,
        _ => vk::TRUE,
    };
    feature == vk::TRUE
}
