//! Shaders of all stages of ray tracing that access more than is bound.

use ash::{khr, vk};

use super::faults;
use super::lab::{Lab, SIZE, WORDS};
use super::structures::{BUILT, Builder, NEEDS, READ, Structure, Type, address, buffer, instance};
use crate::arguments::Options;
use crate::common::{Buffer, Feature, Needs, Place, Scope, Shader, scope, shader, words_of_bytes};
use crate::failure::Failure;

faults! {
    stages: "bounds-rays", "the shaders that rays lead to read behind the end of a storage buffer.",
}

const SHADERS: [Shader; 6] = [
    shader!("stages.rgen"),
    shader!("stages.rmiss"),
    shader!("stages.rcall"),
    shader!("stages.rchit"),
    shader!("stages.rahit"),
    shader!("stages.rint"),
];
/// Three general ones, and one for hits.
const GROUPS: u32 = 4;
const HANDLE: usize = 32;
/// The bytes of a record of a table: what devices ask for at most.
const RECORD: u64 = 64;
/// In front of where rays come from.
const BOX: [f32; 6] = [-1.0, -1.0, 1.0, 1.0, 1.0, 2.0];

fn stages(options: &Options) -> Result<(), Failure> {
    let features = [NEEDS.features, &[Feature::RayTracingPipeline]].concat();
    let extensions = [NEEDS.extensions, &[khr::ray_tracing_pipeline::NAME]].concat();
    let lab = Lab::new(options, &Needs { features: &features, extensions: &extensions, ..NEEDS })?;
    let [target] = lab.words(["target"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source_size = lab.choose(SIZE / 2, SIZE);
    let source = lab.buffer("source", source_size, usage, Place::Device)?;
    let builder = Builder::new(&lab)?;
    let bottom = builder.structure("bottom", Type::BOTTOM_LEVEL)?;
    let scene = builder.structure("scene", Type::TOP_LEVEL)?;
    build(&lab, &builder, &bottom, &scene)?;
    let rays = Rays::new(&lab, &source, &target, &scene)?;
    lab.run_once("trace", |commands| {
        lab.fill_buffer(commands, &source, (0, source_size), 7);
        let stages = vk::PipelineStageFlags::RAY_TRACING_SHADER_KHR;
        lab.memory_barrier(commands, scope::COPY_WRITE, Scope { stages, access: vk::AccessFlags::SHADER_READ });
        rays.trace(&lab, commands);
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
    })?;
    lab.expect(&target, scope::ALL, &[14; WORDS])
}

/// A scene of one box.
fn build(lab: &Lab, builder: &Builder, bottom: &Structure, scene: &Structure) -> Result<(), Failure> {
    let usage = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR;
    let instances = buffer(lab, "instances", usage | vk::BufferUsageFlags::TRANSFER_DST, Place::Device)?;
    let words = instance(builder.reference(bottom));
    lab.run_once("build", |commands| {
        lab.update(commands, &builder.boxes, &BOX.map(f32::to_bits));
        lab.update(commands, &instances, &words);
        lab.memory_barrier(commands, scope::COPY_WRITE, Scope { access: vk::AccessFlags::SHADER_READ, ..BUILT });
        builder.build(commands, bottom, Type::BOTTOM_LEVEL);
        lab.memory_barrier(commands, BUILT, Scope { access: READ | BUILT.access, ..BUILT });
        builder.build_of(commands, scene, Type::TOP_LEVEL, (&instances, 1), None);
        lab.memory_barrier(commands, BUILT, scope::ALL);
    })
}

/// A pipeline with shaders of all stages, and the table that names them.
struct Rays {
    tracing: khr::ray_tracing_pipeline::Device,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
    table: Buffer,
}

impl Rays {
    fn new(lab: &Lab, source: &Buffer, target: &Buffer, scene: &Structure) -> Result<Rays, Failure> {
        let (words, kind) = (vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::ACCELERATION_STRUCTURE_KHR);
        let set_layout = lab.set_layout(&[words, words, kind], vk::ShaderStageFlags::ALL)?;
        let set = lab.descriptor_set(lab.descriptor_pool(1, &[(words, 2), (kind, 1)])?, set_layout)?;
        let scenes = [scene.handle];
        let mut written = vk::WriteDescriptorSetAccelerationStructureKHR::default().acceleration_structures(&scenes);
        let buffers = [source, target].map(|it| [it.descriptor()]);
        let write = |at| vk::WriteDescriptorSet::default().dst_set(set).dst_binding(at).descriptor_count(1);
        let write_words = |at: u32| write(at).descriptor_type(words).buffer_info(&buffers[at as usize]);
        let write_scene = write(2).descriptor_type(kind).push_next(&mut written);
        lab.write_descriptors(&[write_words(0), write_words(1), write_scene]);
        let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
        let layout = lab.pipeline_layout(&[set_layout], None)?;
        let pipeline = lab.with_stages(&SHADERS, "stages of rays", |stages| {
            let groups = groups();
            let info = vk::RayTracingPipelineCreateInfoKHR::default().stages(stages).groups(&groups);
            let info = [info.max_pipeline_ray_recursion_depth(1).layout(layout)];
            let (deferred, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
            // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
            unsafe { tracing.create_ray_tracing_pipelines(deferred, cache, &info, None) }
        })?;
        let table = buffer(lab, "table", vk::BufferUsageFlags::SHADER_BINDING_TABLE_KHR, Place::Host)?;
        let size = HANDLE * GROUPS as usize;
        // SAFETY: the pipeline has as many groups, whose handles are as long on all devices (feature).
        let handles = unsafe { tracing.get_ray_tracing_shader_group_handles(pipeline, 0, GROUPS, size) }?;
        let record = |it: &[u8]| {
            let mut words = words_of_bytes(it);
            words.resize(RECORD as usize / 4, 0);
            words
        };
        lab.write(&table, &handles.chunks(HANDLE).flat_map(record).collect::<Vec<u32>>())?;
        Ok(Rays { tracing, pipeline, layout, set, table })
    }

    fn trace(&self, lab: &Lab, commands: vk::CommandBuffer) {
        let point = vk::PipelineBindPoint::RAY_TRACING_KHR;
        let record = |at: u64| vk::StridedDeviceAddressRegionKHR {
            device_address: address(lab, &self.table) + at * RECORD,
            stride: RECORD,
            size: RECORD,
        };
        let [first, miss, called, hit] = [0, 1, 2, 3].map(record);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, point, self.pipeline);
            lab.device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]);
            self.tracing.cmd_trace_rays(commands, &first, &miss, &hit, &called, WORDS as u32, 1, 1);
        }
    }
}

/// The first three shaders, and a group with the others.
fn groups() -> [vk::RayTracingShaderGroupCreateInfoKHR<'static>; GROUPS as usize] {
    let none = vk::RayTracingShaderGroupCreateInfoKHR::default()
        .general_shader(vk::SHADER_UNUSED_KHR)
        .closest_hit_shader(vk::SHADER_UNUSED_KHR)
        .any_hit_shader(vk::SHADER_UNUSED_KHR)
        .intersection_shader(vk::SHADER_UNUSED_KHR);
    let general = |at| none.ty(vk::RayTracingShaderGroupTypeKHR::GENERAL).general_shader(at);
    let hit = none.ty(vk::RayTracingShaderGroupTypeKHR::PROCEDURAL_HIT_GROUP);
    let hit = hit.closest_hit_shader(3).any_hit_shader(4).intersection_shader(5);
    [general(0), general(1), general(2), hit]
}
