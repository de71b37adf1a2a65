//! Gathers from arrays of images: a pipeline for each kind of index, whose module is named after it. A driver that fails
//! at one of them is named with the kind.

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, Gpu, MemoryPlacement, Needs, SampleImage, Shader, binding_of, scope, shader};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample =
    Sample { name: "gathers", about: "Gathers texels from arrays of images, by every kind of index.", run };

const NEEDS: Needs = Needs {
    features: &[Feature::ShaderImageGatherExtended],
    features_optional: &[
        Feature::RuntimeDescriptorArray,
        Feature::ShaderSampledImageArrayDynamicIndexing,
        Feature::ShaderSampledImageArrayNonUniformIndexing,
    ],
    ..Needs::NOTHING
};

/// How an invocation picks an image.
#[derive(Clone, Copy)]
enum Index {
    /// The second image, for all.
    Second,
    /// The only one of an array.
    Only,
    /// The number of the invocation, modulo all.
    Own,
    /// All of them, one after the other.
    All,
}

/// The kinds of a shader, by their number: the name of the module, the index, and the component.
type GatherKinds = &'static [(&'static str, Index, usize)];

const CONSTANT: GatherKinds = &[
    ("gathers_constant.comp, combined", Index::Second, 1),
    ("gathers_constant.comp, separate sampler", Index::Second, 3),
    ("gathers_constant.comp, offset", Index::Second, 1),
    ("gathers_constant.comp, four offsets", Index::Second, 1),
];
const UNIFORM: GatherKinds = &[
    ("gathers.comp, constant index", Index::Second, 1),
    ("gathers.comp, masked index", Index::Second, 1),
    ("gathers.comp, uniform index", Index::Second, 2),
    ("gathers.comp, separate sampler", Index::Second, 3),
    ("gathers.comp, offset", Index::Second, 1),
    ("gathers.comp, four offsets", Index::Second, 1),
    ("gathers.comp, array of one", Index::Only, 1),
    ("gathers.comp, loop", Index::All, 1),
];
const NON_UNIFORM: GatherKinds = &[
    ("gathers_nonuniform.comp, combined", Index::Own, 0),
    ("gathers_nonuniform.comp, separate sampler", Index::Own, 3),
    ("gathers_nonuniform.comp, four offsets", Index::Own, 1),
    ("gathers_nonuniform.comp, runtime array, uniform index", Index::Second, 1),
    ("gathers_nonuniform.comp, runtime array", Index::Own, 1),
];

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const IMAGES: u32 = 4;
const INVOCATIONS: u32 = 64;
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;
const COMBINED: vk::DescriptorType = vk::DescriptorType::COMBINED_IMAGE_SAMPLER;
const READ: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
const WRITE: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
/// The image that all invocations pick, and how many there are.
const PICKED: [u32; 2] = [1, IMAGES];

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    let images = (0..IMAGES).map(|_| picture(&gpu)).collect::<Result<Vec<_>, Failure>>()?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC;
    let sums = gpu.buffer("sums", u64::from(INVOCATIONS * 4), usage, MemoryPlacement::Device)?;
    let (set_layout, set) = descriptors(&gpu, &images, &sums)?;
    let range = vk::PushConstantRange::default().stage_flags(COMPUTE).size(8);
    let layout = gpu.pipeline_layout(&[set_layout], Some(range))?;
    gpu.run_once("clear", |commands| {
        for (number, image) in images.iter().enumerate() {
            let color = vk::ClearColorValue { float32: color(number) };
            gpu.image_barrier(
                commands,
                image,
                (scope::NOTHING, vk::ImageLayout::UNDEFINED),
                (scope::COPY_WRITE, WRITE),
            );
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { gpu.device.cmd_clear_color_image(commands, image.handle, WRITE, &color, &[image.range()]) };
            gpu.image_barrier(commands, image, (scope::COPY_WRITE, WRITE), (scope::COMPUTE_READ, READ));
        }
    })?;
    let constants: Vec<u8> = PICKED.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let has_dynamic = gpu.has(Feature::ShaderSampledImageArrayDynamicIndexing);
    let has_indexing =
        gpu.has(Feature::RuntimeDescriptorArray) && gpu.has(Feature::ShaderSampledImageArrayNonUniformIndexing);
    let constant = (0..).zip(CONSTANT).map(|it| (shader!("gathers_constant.comp"), it));
    let uniform = (0..).zip(UNIFORM).map(|it| (shader!("gathers.comp"), it)).filter(|_| has_dynamic);
    let other = (0..).zip(NON_UNIFORM).map(|it| (shader!("gathers_nonuniform.comp"), it)).filter(|_| has_indexing);
    for (shader, (number, &(name, index, component))) in constant.chain(uniform).chain(other) {
        let shader = Shader { name, ..shader };
        let pipeline = gpu.compute_pipeline(shader, layout, &[number])?;
        gpu.run_once(name, |commands| {
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                let compute = vk::PipelineBindPoint::COMPUTE;
                gpu.device.cmd_bind_pipeline(commands, compute, pipeline);
                gpu.device.cmd_bind_descriptor_sets(commands, compute, layout, 0, &[set], &[]);
                gpu.device.cmd_push_constants(commands, layout, COMPUTE, 0, &constants);
                gpu.device.cmd_dispatch(commands, 1, 1, 1);
            }
        })?;
        let want: Vec<u32> = (0..INVOCATIONS as usize).map(|it| sum(it, index, component)).collect();
        options.check.words(name, &gpu.download(&sums, scope::COMPUTE_WRITE)?, &want)?;
    }
    Ok(())
}

/// The color of an image: zeros and ones, which every format has exactly.
fn color(image: usize) -> [f32; 4] {
    let (first, second) = ((image & 1) as f32, (image >> 1 & 1) as f32);
    [first, second, 1.0 - first, 1.0 - second]
}

/// The sum of the four texels that an invocation gathers.
fn sum(invocation: usize, index: Index, component: usize) -> u32 {
    let all = match index {
        Index::Second => 1..2,
        Index::Only => 0..1,
        Index::Own => invocation % 4..invocation % 4 + 1,
        Index::All => 0..IMAGES as usize,
    };
    all.map(|image| color(image)[component] as u32 * 4).sum()
}

fn picture(gpu: &Gpu) -> Result<SampleImage, Failure> {
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    gpu.image("picture", FORMAT, vk::Extent2D { width: 8, height: 8 }, 1, usage)
}

/// The set of the shader, and its layout.
fn descriptors(
    gpu: &Gpu,
    images: &[SampleImage],
    sums: &Buffer,
) -> Result<(vk::DescriptorSetLayout, vk::DescriptorSet), Failure> {
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let kinds = [
        (COMBINED, IMAGES),
        (vk::DescriptorType::SAMPLED_IMAGE, IMAGES),
        (vk::DescriptorType::SAMPLER, 2),
        (COMBINED, 1),
        (COMBINED, IMAGES),
        (storage, 1),
    ];
    let bindings: Vec<_> = (0..).zip(kinds).map(|(at, (kind, count))| binding_of(at, kind, count, COMPUTE)).collect();
    let layout = gpu.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings))?;
    let set = gpu.descriptor_set(gpu.descriptor_pool(1, &kinds)?, layout)?;
    let edge = vk::SamplerAddressMode::CLAMP_TO_EDGE;
    let info = vk::SamplerCreateInfo::default().address_mode_u(edge).address_mode_v(edge).address_mode_w(edge);
    // SAFETY: `info` lives until the call returns (lifetime).
    let sampler = gpu.destroy_at_end(unsafe { gpu.device.create_sampler(&info, None) }?);
    for (binding, (kind, count)) in (0..).zip(kinds).filter(|it| it.1.0 != storage) {
        let infos: Vec<_> = images[..(count as usize).min(images.len())]
            .iter()
            .map(|it| vk::DescriptorImageInfo::default().sampler(sampler).image_view(it.view).image_layout(READ))
            .collect();
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(kind);
        gpu.write_descriptors(&[write.image_info(&infos)]);
    }
    gpu.write_buffers(set, (5, 0), storage, std::slice::from_ref(sums));
    Ok((layout, set))
}
