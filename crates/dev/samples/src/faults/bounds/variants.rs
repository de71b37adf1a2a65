//! Accesses out of bounds in pipelines that are made, and command buffers that run, in less usual ways.

use crate::faults::bound_pipeline::DrawShaders;
use ash::{khr, nv, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, scope, shader, words_of_bytes};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, ShaderResource, described_set};
use crate::faults::commands::draws::picture;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    labels: "bounds-labels", "a dispatch of a secondary command buffer, which is executed under a label, reads behind a buffer.",
    released: "bounds-released", "a dispatch that waits for the host, which lets it go once it is submitted, reads behind a buffer.",
    families: "bounds-families", "dispatches on queues of two families read behind a buffer.",
    chained: "bounds-chained-module", "a shader whose words are in the chain of its stage reads behind a buffer.",
    library: "bounds-rays-library", "a ray generation shader out of a library reads behind a buffer.",
    generated: "bounds-generated", "a vertex shader of a draw that the device generates reads behind a buffer.",
}

/// Half of the source may be there.
fn storage(lab: &FaultContext, name: &str, bytes: u64) -> Result<Buffer, Failure> {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    lab.buffer(name, bytes, usage, MemoryPlacement::Device)
}

fn fill(lab: &FaultContext, source: &Buffer) -> Result<(), Failure> {
    lab.run_once("fill", |commands| {
        lab.fill_buffer(commands, source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })
}

fn labels(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [target] = lab.word_buffers(["target"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    fill(&lab, &source)?;
    let secondary = lab.record_secondary("inside", &Default::default(), |commands| program.dispatch(&lab, commands))?;
    lab.run_once("frame", |commands| {
        lab.labeled(commands, "around", || {
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { lab.device.cmd_execute_commands(commands, &[secondary]) };
        });
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// Work waits for a semaphore that the host signals after the submission, and for an event of the host: waiting for the
/// queue in between would never end.
fn released(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::TimelineSemaphore], ..Needs::NOTHING })?;
    let [target] = lab.word_buffers(["target"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    fill(&lab, &source)?;
    let (event, semaphores) = (lab.event("ready")?, [lab.timeline("released")?]);
    let (host, compute) = (vk::PipelineStageFlags::HOST, [vk::PipelineStageFlags::COMPUTE_SHADER]);
    let commands = [lab.record_new(lab.main, "double", |commands| {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_wait_events(commands, &[event], host, compute[0], &[], &[], &[]) };
        program.dispatch(&lab, commands);
    })?];
    // SAFETY: a live event that no other thread uses, and that nothing waits for yet (lifetime, owner).
    unsafe { lab.device.set_event(event) }?;
    let mut wait = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&[1]);
    let submit = vk::SubmitInfo::default().command_buffers(&commands).wait_semaphores(&semaphores);
    let submit = submit.wait_dst_stage_mask(&compute).push_next(&mut wait);
    let fence = lab.fence(vk::FenceCreateFlags::empty())?;
    lab.submit(lab.main, &submit, fence)?;
    let signal = vk::SemaphoreSignalInfo::default().semaphore(semaphores[0]).value(1);
    // SAFETY: a live semaphore, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.signal_semaphore(&signal) }?;
    lab.wait(fence)?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// On a device with one family both dispatches are on one queue.
fn families(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { second_queue: true, second_computes: true, ..Needs::NOTHING })?;
    let usage =
        vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let source = lab.shared_buffer("source", lab.planted_or_fixed(SIZE / 2, SIZE), usage, MemoryPlacement::Device)?;
    let target = lab.shared_buffer("target", SIZE, usage, MemoryPlacement::Device)?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let program = BoundPipeline::compute(&lab, shader!("double.comp"), &[], &bound)?;
    fill(&lab, &source)?;
    for queue in [lab.second, lab.main] {
        let commands = [lab.record_new(queue, "double", |commands| program.dispatch(&lab, commands))?];
        let fence = lab.fence(vk::FenceCreateFlags::empty())?;
        lab.submit(queue, &vk::SubmitInfo::default().command_buffers(&commands), fence)?;
        lab.wait(fence)?;
    }
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// The words are behind a name in the chain, and the flags of the pipeline are in its own.
fn chained(options: &SampleOptions) -> Result<(), Failure> {
    let (features, extensions) = (&[Feature::Maintenance5], &[khr::maintenance5::NAME]);
    let lab = FaultContext::new(options, &Needs { features, extensions, ..Needs::NOTHING })?;
    let [target] = lab.word_buffers(["target"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let (set_layout, set) =
        described_set(&lab, &[ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])])?;
    let layout = lab.pipeline_layout(&[set_layout], None)?;
    let code = words_of_bytes(shader!("double.comp").code);
    let mut module = vk::ShaderModuleCreateInfo::default().code(&code);
    let mut name = vk::DebugUtilsObjectNameInfoEXT::default().object_name(c"double");
    name.object_type = vk::ObjectType::SHADER_MODULE;
    let mut flags =
        vk::PipelineCreateFlags2CreateInfoKHR::default().flags(vk::PipelineCreateFlags2KHR::DISABLE_OPTIMIZATION);
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).name(c"main");
    let stage = stage.push_next(&mut module).push_next(&mut name);
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).push_next(&mut flags);
    // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
    let made = unsafe { lab.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
    let pipeline = lab.destroy_at_end(made.map_err(|it| it.1)?[0]);
    fill(&lab, &source)?;
    let program = BoundPipeline::of(pipeline, layout, set);
    lab.run_once("double", |commands| program.dispatch(&lab, commands))?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

/// For pipelines of rays, out of libraries too.
pub(crate) const RAYS: Needs = Needs {
    features: &[Feature::AccelerationStructure, Feature::RayTracingPipeline, Feature::BufferDeviceAddress],
    extensions: &[
        khr::acceleration_structure::NAME,
        khr::deferred_host_operations::NAME,
        khr::ray_tracing_pipeline::NAME,
        khr::pipeline_library::NAME,
    ],
    ..Needs::NOTHING
};

/// A pipeline out of a library with one shader, which may be linked by and by.
fn linked_rays(lab: &FaultContext, layout: vk::PipelineLayout) -> Result<vk::Pipeline, Failure> {
    let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
    let interface = vk::RayTracingPipelineInterfaceCreateInfoKHR::default()
        .max_pipeline_ray_payload_size(4)
        .max_pipeline_ray_hit_attribute_size(8);
    let info = vk::RayTracingPipelineCreateInfoKHR::default().library_interface(&interface);
    let info = info.max_pipeline_ray_recursion_depth(1).layout(layout);
    let library = lab.with_stage(shader!("double.rgen"), |stage| {
        let (stages, unused) = ([stage], vk::SHADER_UNUSED_KHR);
        let groups = [vk::RayTracingShaderGroupCreateInfoKHR::default()
            .ty(vk::RayTracingShaderGroupTypeKHR::GENERAL)
            .closest_hit_shader(unused)
            .any_hit_shader(unused)
            .intersection_shader(unused)];
        let info = [info.flags(vk::PipelineCreateFlags::LIBRARY_KHR).stages(&stages).groups(&groups)];
        let (deferred, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
        // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
        unsafe { tracing.create_ray_tracing_pipelines(deferred, cache, &info, None) }
    })?;
    let operations = khr::deferred_host_operations::Device::new(&lab.instance.handle, &lab.device);
    let libraries = [library];
    let libraries = vk::PipelineLibraryCreateInfoKHR::default().libraries(&libraries);
    let (info, mut made) = (info.library_info(&libraries), vk::Pipeline::null());
    // SAFETY: `info` and the place of the pipeline live until the operation is done (lifetime, feature).
    let result = unsafe {
        let operation = operations.create_deferred_operation(None)?;
        let create = tracing.fp().create_ray_tracing_pipelines_khr;
        let cache = vk::PipelineCache::null();
        let mut result = create(lab.device.handle(), operation, cache, 1, &info, std::ptr::null(), &mut made);
        if result == vk::Result::OPERATION_DEFERRED_KHR {
            while operations.deferred_operation_join(operation) == Err(vk::Result::THREAD_IDLE_KHR) {}
            // A thread that has nothing more to do may be done before the operation is.
            let ask =
                || operations.get_deferred_operation_result(operation).map_or_else(|it| it, |()| vk::Result::SUCCESS);
            result = ask();
            while result == vk::Result::NOT_READY {
                std::thread::yield_now();
                result = ask();
            }
        }
        operations.destroy_deferred_operation(operation, None);
        result
    };
    match result {
        vk::Result::SUCCESS | vk::Result::OPERATION_NOT_DEFERRED_KHR => Ok(lab.destroy_at_end(made)),
        other => Err(other.into()),
    }
}

fn library(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RAYS)?;
    let [target] = lab.word_buffers(["target"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let (set_layout, set) =
        described_set(&lab, &[ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])])?;
    let layout = lab.pipeline_layout(&[set_layout], None)?;
    let pipeline = linked_rays(&lab, layout)?;
    let tracing = khr::ray_tracing_pipeline::Device::new(&lab.instance.handle, &lab.device);
    let usage = vk::BufferUsageFlags::SHADER_BINDING_TABLE_KHR | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let table = lab.buffer("table", 256, usage, MemoryPlacement::Host)?;
    // SAFETY: a live pipeline with one group, whose handle has 32 bytes on every device
    // (VUID-vkGetRayTracingShaderGroupHandlesKHR-dataSize-02420; lifetime, feature).
    let handle = unsafe { tracing.get_ray_tracing_shader_group_handles(pipeline, 0, 1, 32) }?;
    lab.write(&table, &words_of_bytes(&handle))?;
    let info = vk::BufferDeviceAddressInfo::default().buffer(table.handle);
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    let address = unsafe { lab.device.get_buffer_device_address(&info) };
    fill(&lab, &source)?;
    lab.run_once("trace", |commands| {
        let point = vk::PipelineBindPoint::RAY_TRACING_KHR;
        let first = vk::StridedDeviceAddressRegionKHR { device_address: address, stride: 64, size: 64 };
        let none = vk::StridedDeviceAddressRegionKHR::default();
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, point, pipeline);
            lab.device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
            tracing.cmd_trace_rays(commands, &first, &none, &none, &none, WORDS as u32, 1, 1);
        }
        lab.memory_barrier(commands, scope::ALL, scope::ALL);
    })?;
    lab.expect(&target, scope::ALL, &[14; WORDS])
}

/// The two triangles of the picture.
const CORNERS: [f32; 12] = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0];
const VERTEX_READ: BarrierScope =
    BarrierScope { stages: vk::PipelineStageFlags::VERTEX_SHADER, access: vk::AccessFlags::SHADER_READ };

/// The objects that generate one draw from a buffer.
struct GeneratedDraw<'a> {
    lab: &'a FaultContext<'a>,
    functions: nv::device_generated_commands::Device,
    layout: vk::IndirectCommandsLayoutNV,
    stream: Buffer,
    pipeline: vk::Pipeline,
    scratch: Buffer,
}

impl<'a> GeneratedDraw<'a> {
    fn new(lab: &'a FaultContext, pipeline: vk::Pipeline) -> Result<GeneratedDraw<'a>, Failure> {
        let functions = nv::device_generated_commands::Device::new(&lab.instance.handle, &lab.device);
        let token = vk::IndirectCommandsLayoutTokenNV::default().token_type(vk::IndirectCommandsTokenTypeNV::DRAW);
        let (tokens, strides) = ([token], [16]);
        let point = vk::PipelineBindPoint::GRAPHICS;
        let info = vk::IndirectCommandsLayoutCreateInfoNV::default().pipeline_bind_point(point);
        let info = info.tokens(&tokens).stream_strides(&strides);
        let mut layout = vk::IndirectCommandsLayoutNV::null();
        let mut needs = vk::MemoryRequirements2::default();
        // SAFETY: structures that live until the calls return, and the feature is enabled (lifetime, feature).
        unsafe {
            let create = functions.fp().create_indirect_commands_layout_nv;
            create(lab.device.handle(), &info, std::ptr::null(), &mut layout).result()?;
            let info = vk::GeneratedCommandsMemoryRequirementsInfoNV::default()
                .pipeline_bind_point(point)
                .pipeline(pipeline)
                .indirect_commands_layout(layout)
                .max_sequences_count(1);
            let ask = functions.fp().get_generated_commands_memory_requirements_nv;
            ask(lab.device.handle(), &info, &mut needs);
        }
        let usage = vk::BufferUsageFlags::INDIRECT_BUFFER;
        let stream = lab.buffer("stream", 16, usage, MemoryPlacement::Host)?;
        lab.write(&stream, &[6, 1, 0, 0])?;
        let scratch = lab.buffer("scratch", needs.memory_requirements.size.max(256), usage, MemoryPlacement::Device)?;
        Ok(GeneratedDraw { lab, functions, layout, stream, pipeline, scratch })
    }

    fn execute(&self, commands: vk::CommandBuffer) {
        let streams = [vk::IndirectCommandsStreamNV { buffer: self.stream.handle, offset: 0 }];
        let info = vk::GeneratedCommandsInfoNV::default()
            .pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS)
            .pipeline(self.pipeline)
            .indirect_commands_layout(self.layout)
            .streams(&streams)
            .sequences_count(1)
            .preprocess_buffer(self.scratch.handle)
            .preprocess_size(self.scratch.size);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { (self.functions.fp().cmd_execute_generated_commands_nv)(commands, vk::FALSE, &info) };
    }
}

impl Drop for GeneratedDraw<'_> {
    fn drop(&mut self) {
        // SAFETY: the device is idle after waiting, so no submitted command uses the object (lifetime).
        unsafe {
            let _ = self.lab.device.device_wait_idle();
            let destroy = self.functions.fp().destroy_indirect_commands_layout_nv;
            destroy(self.lab.device.handle(), self.layout, std::ptr::null());
        }
    }
}

fn generated(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::DeviceGeneratedCommands];
    let extensions = &[nv::device_generated_commands::NAME];
    let lab = FaultContext::new(options, &Needs { features, extensions, ..Needs::NOTHING })?;
    let count = lab.planted_or_fixed(6, 12);
    let corners = storage(&lab, "corners", count as u64 * 4)?;
    let shaders = DrawShaders { vertex: shader!("corners.vert"), middle: &[], fragment: shader!("green.frag") };
    let program = BoundPipeline::of_shaders(&lab, DYNAMIC, shaders, &[ShaderResource::Storage(&[corners])])?;
    let generator = GeneratedDraw::new(&lab, program.pipeline())?;
    let write = |commands| {
        let words: Vec<u32> = CORNERS[..count].iter().map(|it| it.to_bits()).collect();
        lab.update(commands, &corners, &words);
        lab.memory_barrier(commands, scope::COPY_WRITE, VERTEX_READ);
    };
    picture(&lab, (scope::COPY_WRITE, VERTEX_READ), write, |commands| {
        program.bind(&lab, commands, &[]);
        generator.execute(commands);
    })
}
