//! Acceleration structures and rays of the extension that came before those of all vendors.

use ash::{nv, vk};

use super::acceleration_structures::{BUILT, instance};
use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, MemoryPlacement, Needs, scope, shader, words_of_bytes};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    referred: "bounds-instances-nv", "an instance of a scene refers to no structure, in the older way of tracing rays.",
    rays: "bounds-rays-nv", "a shader that generates rays in the older way reads behind a buffer.",
}

const NEEDS: Needs = Needs { extensions: &[nv::ray_tracing::NAME], ..Needs::NOTHING };
/// Usage of all buffers for ray tracing.
const FOR_RAYS: vk::BufferUsageFlags = vk::BufferUsageFlags::RAY_TRACING_NV;
const BYTES: u64 = 1 << 16;

type AccelerationStructureTypeNv = vk::AccelerationStructureTypeNV;

struct AccelerationStructureNv<'a> {
    lab: &'a FaultContext<'a>,
    tracing: &'a nv::ray_tracing::Device,
    handle: vk::AccelerationStructureNV,
    info: vk::AccelerationStructureInfoNV<'a>,
    scratch: Buffer,
}

impl<'a> AccelerationStructureNv<'a> {
    /// A structure with memory of its own.
    fn new(
        lab: &'a FaultContext<'a>,
        tracing: &'a nv::ray_tracing::Device,
        name: &str,
        info: vk::AccelerationStructureInfoNV<'a>,
    ) -> Result<AccelerationStructureNv<'a>, Failure> {
        let create = vk::AccelerationStructureCreateInfoNV::default().info(info);
        // SAFETY: `create` lives until the call returns, and the extension is enabled (lifetime, feature).
        let handle = lab.name(unsafe { tracing.create_acceleration_structure(&create, None) }?, name);
        let needs = |ty| {
            let info = vk::AccelerationStructureMemoryRequirementsInfoNV::default();
            let info = info.acceleration_structure(handle).ty(ty);
            // SAFETY: a live structure (lifetime).
            unsafe { tracing.get_acceleration_structure_memory_requirements(&info) }.memory_requirements
        };
        let own = needs(vk::AccelerationStructureMemoryRequirementsTypeNV::OBJECT);
        let scratch = needs(vk::AccelerationStructureMemoryRequirementsTypeNV::BUILD_SCRATCH).size.max(BYTES);
        let memory = lab.destroy_at_end(lab.allocate(name, own, MemoryPlacement::Device)?);
        let bind = vk::BindAccelerationStructureMemoryInfoNV::default().acceleration_structure(handle).memory(memory);
        // SAFETY: both are new, and the memory was allocated for the structure.
        unsafe { tracing.bind_acceleration_structure_memory(&[bind]) }?;
        let scratch = lab.buffer("scratch", scratch, FOR_RAYS, MemoryPlacement::Device)?;
        Ok(AccelerationStructureNv { lab, tracing, handle, info, scratch })
    }

    /// Builds it, of instances in a buffer if it has any.
    fn build(&self, commands: vk::CommandBuffer, instances: Option<&Buffer>) {
        let (none, instances) = (vk::AccelerationStructureNV::null(), instances.map(|it| it.handle));
        // SAFETY: live objects, recorded by this thread, and the extension is enabled (lifetime, owner, feature).
        unsafe {
            let instances = instances.unwrap_or_default();
            let scratch = self.scratch.handle;
            let info = &self.info;
            self.tracing.cmd_build_acceleration_structure(
                commands,
                info,
                instances,
                0,
                false,
                self.handle,
                none,
                scratch,
                0,
            );
        }
    }
}

impl Drop for AccelerationStructureNv<'_> {
    fn drop(&mut self) {
        // SAFETY: the device is idle after waiting, and the memory goes later (lifetime).
        unsafe {
            let _ = self.lab.device.device_wait_idle();
            self.tracing.destroy_acceleration_structure(self.handle, None);
        }
    }
}

/// The second of three instances refers to something else.
fn referred(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let tracing = nv::ray_tracing::Device::new(&lab.instance.handle, &lab.device);
    let usage = FOR_RAYS | vk::BufferUsageFlags::TRANSFER_DST;
    let boxes = lab.buffer("boxes", BYTES, usage, MemoryPlacement::Device)?;
    let instances = lab.buffer("instances", BYTES, usage, MemoryPlacement::Device)?;
    let aabbs = vk::GeometryAABBNV::default().aabb_data(boxes.handle).num_aab_bs(1).stride(24);
    let geometry = vk::GeometryNV::default().geometry_type(vk::GeometryTypeNV::AABBS);
    let geometries = [geometry.geometry(vk::GeometryDataNV::default().aabbs(aabbs))];
    let info = vk::AccelerationStructureInfoNV::default()
        .ty(AccelerationStructureTypeNv::BOTTOM_LEVEL)
        .geometries(&geometries);
    let bottom = AccelerationStructureNv::new(&lab, &tracing, "bottom", info)?;
    let info = vk::AccelerationStructureInfoNV::default().ty(AccelerationStructureTypeNv::TOP_LEVEL).instance_count(3);
    let scene = AccelerationStructureNv::new(&lab, &tracing, "scene", info)?;
    // SAFETY: a live structure that `AccelerationStructureNv::new` bound to memory, and the extension is enabled (lifetime, feature).
    let reference = unsafe { tracing.get_acceleration_structure_handle(bottom.handle) }?;
    let wrong = lab.planted_or_fixed(reference ^ 0x5500_0000_0000, reference);
    let words: Vec<u32> = [reference, wrong, reference].iter().flat_map(|it| instance(*it)).collect();
    let read = vk::AccessFlags::ACCELERATION_STRUCTURE_READ_KHR;
    lab.run_once("build", |commands| {
        lab.update(commands, &boxes, &[0; 6]);
        lab.update(commands, &instances, &words);
        lab.memory_barrier(commands, scope::COPY_WRITE, BarrierScope { access: vk::AccessFlags::SHADER_READ, ..BUILT });
        bottom.build(commands, None);
        lab.memory_barrier(commands, BUILT, BarrierScope { access: read | BUILT.access, ..BUILT });
        scene.build(commands, Some(&instances));
    })
}

/// Half of the source is bound.
fn rays(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let tracing = nv::ray_tracing::Device::new(&lab.instance.handle, &lab.device);
    let [source, target] = lab.word_buffers(["source", "target"])?;
    let kind = vk::DescriptorType::STORAGE_BUFFER;
    let set_layout = lab.set_layout(&[kind, kind], vk::ShaderStageFlags::RAYGEN_NV)?;
    let set = lab.descriptor_set(lab.descriptor_pool(1, &[(kind, 2)])?, set_layout)?;
    let halved = [vk::DescriptorBufferInfo { range: lab.planted_or_fixed(SIZE / 2, SIZE), ..source.descriptor() }];
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(0).descriptor_type(kind);
    lab.write_descriptors(&[write.buffer_info(&halved)]);
    lab.write_buffers(set, (1, 0), kind, &[target]);
    let layout = lab.pipeline_layout(&[set_layout], None)?;
    let pipeline = lab.with_stage(shader!("shoot_nv.rgen"), |stage| {
        let (stages, none) = ([stage], vk::SHADER_UNUSED_NV);
        let group = vk::RayTracingShaderGroupCreateInfoNV::default().ty(vk::RayTracingShaderGroupTypeNV::GENERAL);
        let groups = [group.closest_hit_shader(none).any_hit_shader(none).intersection_shader(none)];
        let info = vk::RayTracingPipelineCreateInfoNV::default().stages(&stages).groups(&groups);
        let infos = [info.max_recursion_depth(1).layout(layout)];
        // SAFETY: the infos live until the call returns, and the extension is enabled (lifetime, feature).
        unsafe { tracing.create_ray_tracing_pipelines(vk::PipelineCache::null(), &infos, None) }
    })?;
    let table = lab.buffer("table", BYTES, FOR_RAYS, MemoryPlacement::Host)?;
    let mut handle = [0; 32];
    // SAFETY: a live pipeline with one group; no device with this extension has handles of more than 32 bytes
    // (VUID-vkGetRayTracingShaderGroupHandlesKHR-dataSize-02420; lifetime, feature).
    unsafe { tracing.get_ray_tracing_shader_group_handles(pipeline, 0, 1, &mut handle) }?;
    lab.write(&table, &words_of_bytes(&handle))?;
    let traced = vk::PipelineStageFlags::RAY_TRACING_SHADER_NV;
    lab.run_once("trace", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(
            commands,
            scope::COPY_WRITE,
            BarrierScope { stages: traced, access: vk::AccessFlags::SHADER_READ },
        );
        let (point, none) = (vk::PipelineBindPoint::RAY_TRACING_NV, vk::Buffer::null());
        // SAFETY: live objects, recorded by this thread, and the extension is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, point, pipeline);
            lab.device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
            let (first, width) = (table.handle, WORDS as u32);
            tracing.cmd_trace_rays(commands, first, 0, none, 0, 0, none, 0, 0, none, 0, 0, width, 1, 1);
        }
    })?;
    lab.expect(&target, BarrierScope { stages: traced, access: vk::AccessFlags::SHADER_WRITE }, &[7; WORDS])
}
