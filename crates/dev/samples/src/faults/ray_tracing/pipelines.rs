//! Rays: traced in a scene that may still be built, and led to shaders that access more than is bound.

use ash::{khr, vk};

use super::acceleration_structures::{
    AccelerationStructure, AccelerationStructureType, BUILT, NEEDS, READ, StructureBuilder, address, buffer, instance,
};
use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, Shader, scope, shader, words_of_bytes};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    traced: "trace-rays", "rays are traced in a scene that may still be built.",
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
const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::RAY_TRACING_SHADER_KHR;
/// The bytes of a handle, on all devices.
const HANDLE: usize = 32;
/// The bytes of a record of a table: what devices ask for at most.
const RECORD: u64 = 64;
/// In front of where rays come from.
const BOX: [f32; 6] = [-1.0, -1.0, 1.0, 1.0, 1.0, 2.0];

fn laboratory<'a>(options: &'a SampleOptions) -> Result<FaultContext<'a>, Failure> {
    let features = [NEEDS.features, &[Feature::RayTracingPipeline]].concat();
    let extensions = [NEEDS.extensions, &[khr::ray_tracing_pipeline::NAME]].concat();
    FaultContext::new(options, &Needs { features: &features, extensions: &extensions, ..NEEDS })
}

fn traced(options: &SampleOptions) -> Result<(), Failure> {
    let lab = laboratory(options)?;
    let builder = StructureBuilder::new(&lab)?;
    let scene = builder.structure("scene", AccelerationStructureType::TOP_LEVEL)?;
    let rays = RayTracer::new(&lab, &[], &scene, &[shader!("shoot.rgen")], &[general(0)])?;
    lab.run_once("build and trace", |commands| {
        builder.build(commands, &scene, AccelerationStructureType::TOP_LEVEL);
        lab.barrier_if_fixed(commands, BUILT, BarrierScope { stages: STAGES, access: READ });
        // The record behind the last is one of nothing, for rays that hit nothing.
        rays.trace(&lab, commands, [Some(0), Some(1), None, None], 1);
    })
}

fn stages(options: &SampleOptions) -> Result<(), Failure> {
    let lab = laboratory(options)?;
    let [target] = lab.word_buffers(["target"])?;
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let source_size = lab.planted_or_fixed(SIZE / 2, SIZE);
    let source = lab.buffer("source", source_size, usage, MemoryPlacement::Device)?;
    let builder = StructureBuilder::new(&lab)?;
    let bottom = builder.structure("bottom", AccelerationStructureType::BOTTOM_LEVEL)?;
    let scene = builder.structure("scene", AccelerationStructureType::TOP_LEVEL)?;
    build(&lab, &builder, &bottom, &scene)?;
    let hit = unused().ty(vk::RayTracingShaderGroupTypeKHR::PROCEDURAL_HIT_GROUP);
    let hit = hit.closest_hit_shader(3).any_hit_shader(4).intersection_shader(5);
    let groups = [general(0), general(1), general(2), hit];
    let rays = RayTracer::new(&lab, &[source, target], &scene, &SHADERS, &groups)?;
    lab.run_once("trace", |commands| {
        lab.fill_buffer(commands, &source, (0, source_size), 7);
        let read = BarrierScope { stages: STAGES, access: vk::AccessFlags::SHADER_READ };
        lab.memory_barrier(commands, scope::COPY_WRITE, read);
        rays.trace(&lab, commands, [Some(0), Some(1), Some(3), Some(2)], WORDS as u32);
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
    })?;
    lab.expect(&target, scope::ALL, &[14; WORDS])
}

/// A scene of one box.
fn build(
    lab: &FaultContext,
    builder: &StructureBuilder,
    bottom: &AccelerationStructure,
    scene: &AccelerationStructure,
) -> Result<(), Failure> {
    let usage = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR;
    let instances = buffer(lab, "instances", usage | vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Device)?;
    let words = instance(builder.reference(bottom));
    lab.run_once("build", |commands| {
        lab.update(commands, &builder.boxes, &BOX.map(f32::to_bits));
        lab.update(commands, &instances, &words);
        lab.memory_barrier(commands, scope::COPY_WRITE, BarrierScope { access: vk::AccessFlags::SHADER_READ, ..BUILT });
        builder.build(commands, bottom, AccelerationStructureType::BOTTOM_LEVEL);
        lab.memory_barrier(commands, BUILT, BarrierScope { access: READ | BUILT.access, ..BUILT });
        builder.build_of(commands, scene, AccelerationStructureType::TOP_LEVEL, (&instances, 1), None);
        lab.memory_barrier(commands, BUILT, scope::ALL);
    })
}

type ShaderGroup = vk::RayTracingShaderGroupCreateInfoKHR<'static>;

fn unused() -> ShaderGroup {
    vk::RayTracingShaderGroupCreateInfoKHR::default()
        .general_shader(vk::SHADER_UNUSED_KHR)
        .closest_hit_shader(vk::SHADER_UNUSED_KHR)
        .any_hit_shader(vk::SHADER_UNUSED_KHR)
        .intersection_shader(vk::SHADER_UNUSED_KHR)
}

/// A group of one shader that generates rays, is missed, or is called.
fn general(shader: u32) -> ShaderGroup {
    unused().ty(vk::RayTracingShaderGroupTypeKHR::GENERAL).general_shader(shader)
}

/// A pipeline, and the table that names its groups in their order.
struct RayTracer {
    tracing: khr::ray_tracing_pipeline::Device,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
    table: Buffer,
}

impl RayTracer {
    /// The scene is bound behind the buffers.
    fn new(
        lab: &FaultContext,
        buffers: &[Buffer],
        scene: &AccelerationStructure,
        shaders: &[Shader],
        groups: &[ShaderGroup],
    ) -> Result<RayTracer, Failure> {
        let (set_layout, set) = described(lab, buffers, scene)?;
        let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
        let layout = lab.pipeline_layout(&[set_layout], None)?;
        let pipeline = lab.with_stages(shaders, shaders[0].name, |stages| {
            let info = vk::RayTracingPipelineCreateInfoKHR::default().stages(stages).groups(groups);
            let info = [info.max_pipeline_ray_recursion_depth(1).layout(layout)];
            let (deferred, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
            // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
            unsafe { tracing.create_ray_tracing_pipelines(deferred, cache, &info, None) }
        })?;
        let table = buffer(lab, "table", vk::BufferUsageFlags::SHADER_BINDING_TABLE_KHR, MemoryPlacement::Host)?;
        let (count, size) = (groups.len(), HANDLE * groups.len());
        // SAFETY: the pipeline has as many groups, whose handles are as long (feature).
        let handles = unsafe { tracing.get_ray_tracing_shader_group_handles(pipeline, 0, count as u32, size) }?;
        let mut words = vec![0; (count + 1) * RECORD as usize / 4];
        for (record, handle) in words.chunks_mut(RECORD as usize / 4).zip(handles.chunks(HANDLE)) {
            record[..HANDLE / 4].copy_from_slice(&words_of_bytes(handle));
        }
        lab.write(&table, &words)?;
        Ok(RayTracer { tracing, pipeline, layout, set, table })
    }

    /// The records for ray generation, misses, hits and callables.
    fn trace(&self, lab: &FaultContext, commands: vk::CommandBuffer, records: [Option<u64>; 4], width: u32) {
        let point = vk::PipelineBindPoint::RAY_TRACING_KHR;
        let record = |at: u64| vk::StridedDeviceAddressRegionKHR {
            device_address: address(lab, &self.table) + at * RECORD,
            stride: RECORD,
            size: RECORD,
        };
        let [first, miss, hit, called] = records.map(|it| it.map(record).unwrap_or_default());
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, point, self.pipeline);
            lab.device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]);
            self.tracing.cmd_trace_rays(commands, &first, &miss, &hit, &called, width, 1, 1);
        }
    }
}

/// A set with storage buffers, and the scene behind them.
fn described(
    lab: &FaultContext,
    buffers: &[Buffer],
    scene: &AccelerationStructure,
) -> Result<(vk::DescriptorSetLayout, vk::DescriptorSet), Failure> {
    let (words, kind) = (vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::ACCELERATION_STRUCTURE_KHR);
    let count = buffers.len() as u32;
    let kinds: Vec<_> = buffers.iter().map(|_| words).chain([kind]).collect();
    let set_layout = lab.set_layout(&kinds, vk::ShaderStageFlags::ALL)?;
    let sizes: Vec<_> = [(words, count), (kind, 1)].into_iter().filter(|it| it.1 > 0).collect();
    let set = lab.descriptor_set(lab.descriptor_pool(1, &sizes)?, set_layout)?;
    (0..).zip(buffers).for_each(|(at, it)| lab.write_buffers(set, (at, 0), words, &[*it]));
    let scenes = [scene.handle];
    let mut written = vk::WriteDescriptorSetAccelerationStructureKHR::default().acceleration_structures(&scenes);
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(count).descriptor_type(kind);
    lab.write_descriptors(&[write.descriptor_count(1).push_next(&mut written)]);
    Ok((set_layout, set))
}
