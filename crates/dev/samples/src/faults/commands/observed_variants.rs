//! Hazards that only the device can decide, in shaders that are made or access memory in less usual ways.

use crate::faults::bound_pipeline::DrawShaders;
use ash::{ext, khr, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, scope, shader, words_of_bytes};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, ShaderResource, attachment, described_set};
use crate::faults::bounds::variants::RAYS;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    parts: "observed-parts", "two draws of pipelines out of parts write parts of a buffer that overlap; where stands in memory.",
    address: "observed-address", "two dispatches write, by its address, parts of a buffer that overlap; where stands in memory.",
    texels: "observed-texels", "two dispatches write texels of a texel buffer that overlap; which ones stands in memory.",
    rays: "observed-rays", "two ray generation shaders write parts of a buffer that overlap; where stands in memory.",
    rays_library: "observed-rays-library", "the same, of a shader out of a library.",
}

const HALF: usize = WORDS / 2;
/// The two triangles of the picture.
const CORNERS: [f32; 12] = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0];

/// Where the second one begins: in the middle of the first one, or behind it.
fn second_start(lab: &FaultContext, count: usize) -> u32 {
    lab.planted_or_fixed(count / 2, count) as u32
}

fn halves(count: usize) -> Vec<u32> {
    (0..2 * count).map(|at| if at < count { 1 } else { 2 }).collect()
}

fn buffer(lab: &FaultContext, name: &str, size: u64, usage: vk::BufferUsageFlags) -> Result<Buffer, Failure> {
    let copies = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    lab.buffer(name, size, usage | copies, MemoryPlacement::Device)
}

fn parts(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::GraphicsPipelineLibrary, Feature::FragmentStoresAndAtomics];
    let extensions = &[khr::pipeline_library::NAME, ext::graphics_pipeline_library::NAME];
    let lab = FaultContext::new(options, &Needs { features, extensions, ..Needs::NOTHING })?;
    let target = buffer(&lab, "target", 2 * SIZE, vk::BufferUsageFlags::STORAGE_BUFFER)?;
    let [first, second, corners] = lab.word_buffers(["first", "second", "corners"])?;
    let program = |place: Buffer| {
        let bound = [
            ShaderResource::Storage(&[target]),
            ShaderResource::Storage(&[place]),
            ShaderResource::Storage(&[corners]),
        ];
        BoundPipeline::linked(
            &lab,
            DYNAMIC,
            DrawShaders { vertex: shader!("placed.vert"), middle: &[], fragment: shader!("place.frag") },
            &bound,
        )
    };
    let programs = [program(first)?, program(second)?];
    let stages = vk::PipelineStageFlags::ALL_GRAPHICS;
    lab.run_once("where", |commands| {
        lab.update(commands, &first, &[0, 1, 0]);
        lab.update(commands, &second, &[second_start(&lab, WORDS), 2, 6]);
        lab.update(commands, &corners, &[CORNERS, CORNERS].concat().iter().map(|it| it.to_bits()).collect::<Vec<_>>());
        lab.memory_barrier(commands, scope::COPY_WRITE, BarrierScope { stages, access: vk::AccessFlags::SHADER_READ });
    })?;
    let [canvas] = lab.color_images(["canvas"])?;
    lab.run_once("draw twice", |commands| {
        let color = [attachment(&canvas, vk::AttachmentLoadOp::DONT_CARE)];
        lab.render(commands, &color, || programs.iter().for_each(|it| it.draw(&lab, commands)));
    })?;
    lab.expect(&target, scope::FRAGMENT_WRITE, &halves(WORDS))
}

fn address_of(lab: &FaultContext, buffer: &Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.handle);
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.get_buffer_device_address(&info) }
}

fn address(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::BufferDeviceAddress], ..Needs::NOTHING })?;
    let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let [target, first] = [buffer(&lab, "target", SIZE, usage)?, buffer(&lab, "first", SIZE, usage)?];
    let addresses = [target, first].map(|it| address_of(&lab, &it));
    let constants: Vec<u8> = addresses.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let stage_flags = vk::ShaderStageFlags::COMPUTE;
    let layout = lab.pipeline_layout(&[], Some(vk::PushConstantRange { stage_flags, offset: 0, size: 16 }))?;
    let pipeline = |turn| lab.compute_pipeline(shader!("place_address.comp"), layout, &[turn]);
    let pipelines = [pipeline(0)?, pipeline(1)?];
    lab.run_once("where", |commands| {
        lab.update(commands, &first, &[0, second_start(&lab, HALF)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    lab.run_once("write twice", |commands| {
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_push_constants(commands, layout, stage_flags, 0, &constants);
            for pipeline in pipelines {
                lab.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline);
                lab.device.cmd_dispatch(commands, HALF as u32 / 64, 1, 1);
            }
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &halves(HALF))
}

fn texels(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let target = buffer(&lab, "target", SIZE, vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER)?;
    let [first] = lab.word_buffers(["first"])?;
    let bound = [ShaderResource::TexelsWritten(&target, SIZE), ShaderResource::Storage(&[first])];
    let program = |turn| BoundPipeline::compute(&lab, shader!("place_texels.comp"), &[turn], &bound);
    let programs = [program(0)?, program(1)?];
    lab.run_once("which", |commands| {
        lab.update(commands, &first, &[0, second_start(&lab, HALF)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    lab.run_once("write twice", |commands| {
        for program in &programs {
            program.bind(&lab, commands, &[]);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { lab.device.cmd_dispatch(commands, HALF as u32 / 64, 1, 1) };
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &halves(HALF))
}

/// A pipeline with one shader, or a library with it.
fn ray_pipeline(
    lab: &FaultContext,
    layout: vk::PipelineLayout,
    flags: vk::PipelineCreateFlags,
) -> Result<vk::Pipeline, Failure> {
    let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
    let interface = interface();
    lab.with_stage(shader!("place.rgen"), |stage| {
        let (stages, unused) = ([stage], vk::SHADER_UNUSED_KHR);
        let groups = [vk::RayTracingShaderGroupCreateInfoKHR::default()
            .ty(vk::RayTracingShaderGroupTypeKHR::GENERAL)
            .closest_hit_shader(unused)
            .any_hit_shader(unused)
            .intersection_shader(unused)];
        let info = vk::RayTracingPipelineCreateInfoKHR::default().stages(&stages).groups(&groups);
        let info = info.max_pipeline_ray_recursion_depth(1).layout(layout).flags(flags);
        let is_library = flags.contains(vk::PipelineCreateFlags::LIBRARY_KHR);
        let info = [if is_library { info.library_interface(&interface) } else { info }];
        let (deferred, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
        // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
        unsafe { tracing.create_ray_tracing_pipelines(deferred, cache, &info, None) }
    })
}

fn interface() -> vk::RayTracingPipelineInterfaceCreateInfoKHR<'static> {
    vk::RayTracingPipelineInterfaceCreateInfoKHR::default()
        .max_pipeline_ray_payload_size(4)
        .max_pipeline_ray_hit_attribute_size(8)
}

/// A pipeline out of a library with one shader.
fn linked_rays(lab: &FaultContext, layout: vk::PipelineLayout) -> Result<vk::Pipeline, Failure> {
    let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
    let (libraries, interface) = ([ray_pipeline(lab, layout, vk::PipelineCreateFlags::LIBRARY_KHR)?], interface());
    let libraries = vk::PipelineLibraryCreateInfoKHR::default().libraries(&libraries);
    let info = vk::RayTracingPipelineCreateInfoKHR::default().library_info(&libraries).library_interface(&interface);
    let info = [info.max_pipeline_ray_recursion_depth(1).layout(layout)];
    let (deferred, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
    // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
    let made = unsafe { tracing.create_ray_tracing_pipelines(deferred, cache, &info, None) };
    Ok(lab.destroy_at_end(made.map_err(|it| it.1)?[0]))
}

fn rays(options: &SampleOptions) -> Result<(), Failure> {
    trace(options, |lab, layout| ray_pipeline(lab, layout, vk::PipelineCreateFlags::empty()))
}

fn rays_library(options: &SampleOptions) -> Result<(), Failure> {
    trace(options, linked_rays)
}

fn trace(
    options: &SampleOptions,
    make: fn(&FaultContext, vk::PipelineLayout) -> Result<vk::Pipeline, Failure>,
) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RAYS)?;
    let [target, first, second] = lab.word_buffers(["target", "first", "second"])?;
    let set_of =
        |place: Buffer| described_set(&lab, &[ShaderResource::Storage(&[target]), ShaderResource::Storage(&[place])]);
    let sets = [set_of(first)?, set_of(second)?];
    let layout = lab.pipeline_layout(&[sets[0].0], None)?;
    let pipeline = make(&lab, layout)?;
    let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
    let usage = vk::BufferUsageFlags::SHADER_BINDING_TABLE_KHR | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let table = lab.buffer("table", 256, usage, MemoryPlacement::Host)?;
    // SAFETY: a live pipeline with one group, whose handle has 32 bytes on every device
    // (VUID-vkGetRayTracingShaderGroupHandlesKHR-dataSize-02420; lifetime, feature).
    let handle = unsafe { tracing.get_ray_tracing_shader_group_handles(pipeline, 0, 1, 32) }?;
    lab.write(&table, &words_of_bytes(&handle))?;
    let region = vk::StridedDeviceAddressRegionKHR { device_address: address_of(&lab, &table), stride: 64, size: 64 };
    let (point, none) = (vk::PipelineBindPoint::RAY_TRACING_KHR, vk::StridedDeviceAddressRegionKHR::default());
    lab.run_once("where", |commands| {
        lab.update(commands, &first, &[0, 1]);
        lab.update(commands, &second, &[second_start(&lab, HALF), 2]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    lab.run_once("write twice", |commands| {
        for (_, set) in sets {
            // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
            unsafe {
                lab.device.cmd_bind_pipeline(commands, point, pipeline);
                lab.device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
                tracing.cmd_trace_rays(commands, &region, &none, &none, &none, HALF as u32, 1, 1);
            }
        }
    })?;
    lab.expect(&target, scope::ALL, &halves(HALF))
}
