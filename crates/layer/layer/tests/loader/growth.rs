//! A program may create and destroy objects for days: the layer's memory must not grow.

use std::ffi::CStr;

use ash::{ext, khr, vk};

use crate::child::child;
use crate::gpu::{Compute, FRAGMENT, SHADER, VERTEX};
use crate::world::{Setup, World, entry};

/// Reads one buffer and writes another, once for each ray.
const RAYS: &[u8] = include_bytes!("../../../../dev/samples/shaders/double.rgen.spv");

const SYNC: &[(&CStr, &CStr)] = &[(c"sync", c"on")];
const BOTH: &[(&CStr, &CStr)] = &[(c"sync", c"on"), (c"gpu", c"on")];

const ROUNDS: usize = 1000;
/// Memory that may vary: finished work is freed from time to time, and not at once.
const GROWTH_BYTES_MAX: usize = 64 << 10;
/// More than the limits of remembered objects: steps of the host, memories, and objects with addresses.
const LIMIT: usize = 4200;

/// A device, and what names its objects.
struct GrowthTest {
    world: World,
    utils: ext::debug_utils::Device,
    pool: vk::CommandPool,
    compute: Compute,
    memory: vk::DeviceMemory,
    /// How often something was named.
    named: std::cell::Cell<u64>,
}

/// Makes things and destroys them.
type Round = fn(&GrowthTest);

const KINDS: &[(&str, Round)] = &[
    ("buffers", buffers),
    ("images", images),
    ("samplers", samplers),
    ("shader modules", modules),
    ("compute pipelines", compute_pipelines),
    ("graphics pipelines", graphics_pipelines),
    ("parts of pipelines", libraries),
    ("pipelines of rays", rays),
    ("shader objects", shaders),
    ("descriptor sets", descriptor_sets),
    ("command buffers", command_buffers),
    ("secondary command buffers", secondaries),
    ("dispatches", dispatches),
    ("signals", signals),
    ("what has addresses", addressed),
    ("micromaps", micromaps),
    ("swapchains", swapchains),
    ("other objects", others),
];

const EXTENSIONS: &[&CStr] = &[
    khr::acceleration_structure::NAME,
    khr::deferred_host_operations::NAME,
    khr::pipeline_library::NAME,
    khr::ray_tracing_pipeline::NAME,
    khr::swapchain::NAME,
    ext::graphics_pipeline_library::NAME,
    ext::opacity_micromap::NAME,
    ext::shader_object::NAME,
];

impl GrowthTest {
    fn new(entry: &ash::Entry, settings: &[(&CStr, &CStr)]) -> GrowthTest {
        let extensions = &[ext::debug_utils::NAME, khr::surface::NAME, ext::headless_surface::NAME];
        let world = Setup { settings, extensions, device_extensions: EXTENSIONS, ..Setup::OFF }.world(entry);
        let utils = ext::debug_utils::Device::new(&world.instance, &world.device);
        let (memory, pool, compute) = (world.allocate(1 << 20), world.command_pool(), Compute::new(&world, 1));
        GrowthTest { world, utils, pool, compute, memory, named: std::cell::Cell::new(0) }
    }

    fn destroy(self) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe {
            self.world.device.free_memory(self.memory, None);
            self.world.device.destroy_command_pool(self.pool, None);
        }
        self.compute.destroy(&self.world);
        self.world.destroy();
    }

    /// Gives an object a name of its own, and returns it.
    fn name<T: vk::Handle + Copy>(&self, value: T) -> T {
        self.named.set(self.named.get() + 1);
        let name = format!("an object {:->100} {:08}\0", "with a name of its own", self.named.get());
        let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a zero is at the end alone");
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(value).object_name(name);
        // SAFETY: `it` is an object of the device that its caller has just made and not destroyed; the name lives here
        // and ends with a zero (lifetime, owner).
        unsafe { self.utils.set_debug_utils_object_name(&info) }.expect("a name can be given");
        value
    }

    /// Records something into a new command buffer, submits it, waits, and frees it.
    fn run(&self, record: impl FnOnce(vk::CommandBuffer)) {
        let device = &self.world.device;
        let commands = self.name(self.world.command_buffers(self.pool, 1)[0]);
        // SAFETY: a new command buffer of a pool that only this thread uses; `submit` waits for it before it is freed
        // (lifetime, owner).
        unsafe {
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            record(commands);
            device.end_command_buffer(commands).expect("it ends");
            self.world.submit(commands);
            device.free_command_buffers(self.pool, &[commands]);
        }
    }

    /// Bytes that this process has from the allocator, when nothing is remembered of what happened before.
    fn settled_heap(&self) -> usize {
        // SAFETY: only this thread uses the device and its queue (owner); `mallinfo2` may be called at any time.
        let value = unsafe {
            (0..LIMIT).for_each(|_| self.world.device.device_wait_idle().expect("it is waited for"));
            libc::mallinfo2()
        };
        value.uordblks + value.hblkhd
    }

    fn module(&self, bytes: &[u8]) -> vk::ShaderModule {
        let words = ash::util::read_spv(&mut std::io::Cursor::new(bytes)).expect("a shader");
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        self.name(unsafe { self.world.device.create_shader_module(&info, None) }.expect("a module"))
    }

    fn buffer(&self, usage: vk::BufferUsageFlags) -> vk::Buffer {
        self.buffer_in(self.memory, usage)
    }

    fn buffer_in(&self, memory: vk::DeviceMemory, usage: vk::BufferUsageFlags) -> vk::Buffer {
        let info = vk::BufferCreateInfo::default().size(256).usage(usage);
        // SAFETY: the structure lives until the call returns; the buffer is new, and the memory is alive and larger
        // (lifetime).
        unsafe {
            let buffer = self.world.device.create_buffer(&info, None).expect("a buffer");
            self.world.device.bind_buffer_memory(buffer, memory, 0).expect("it is bound");
            self.name(buffer)
        }
    }
}

/// With views; some have no memory.
fn buffers(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let usage = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let (buffer, unbound) = (growth_test.buffer(usage), growth_test.name(growth_test.world.create_buffer()));
        let info = vk::BufferViewCreateInfo::default().buffer(buffer).format(vk::Format::R32_UINT).range(256);
        let view = growth_test.name(device.create_buffer_view(&info, None).expect("a view"));
        growth_test.run(|commands| device.cmd_fill_buffer(commands, buffer, 0, 256, 7));
        device.destroy_buffer_view(view, None);
        [buffer, unbound].into_iter().for_each(|it| device.destroy_buffer(it, None));
    }
}

fn images(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let info = vk::ImageCreateInfo::default().image_type(vk::ImageType::TYPE_2D).format(vk::Format::R8G8B8A8_UNORM);
    let info = info.extent(vk::Extent3D { width: 16, height: 16, depth: 1 }).mip_levels(1).array_layers(1);
    let info = info.samples(vk::SampleCountFlags::TYPE_1).usage(vk::ImageUsageFlags::SAMPLED);
    let all =
        vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR).level_count(1).layer_count(1);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let image = growth_test.name(device.create_image(&info, None).expect("an image"));
        let unbound = growth_test.name(device.create_image(&info, None).expect("an image"));
        let memory = growth_test.name(growth_test.world.allocate(4096));
        device.bind_image_memory(image, memory, 0).expect("it is bound");
        let info = vk::ImageViewCreateInfo::default().image(image).view_type(vk::ImageViewType::TYPE_2D);
        let info = info.format(vk::Format::R8G8B8A8_UNORM).subresource_range(all);
        let view = growth_test.name(device.create_image_view(&info, None).expect("a view"));
        let barrier = vk::ImageMemoryBarrier::default().image(image).subresource_range(all);
        let barrier = [barrier.new_layout(vk::ImageLayout::GENERAL)];
        let (none, stage) = (vk::DependencyFlags::empty(), vk::PipelineStageFlags::ALL_COMMANDS);
        growth_test.run(|commands| device.cmd_pipeline_barrier(commands, stage, stage, none, &[], &[], &barrier));
        device.destroy_image_view(view, None);
        [image, unbound].into_iter().for_each(|it| device.destroy_image(it, None));
        device.free_memory(memory, None);
    }
}

fn samplers(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let info = vk::SamplerYcbcrConversionCreateInfo::default().format(vk::Format::G8_B8_R8_3PLANE_420_UNORM);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let conversion = growth_test.name(device.create_sampler_ycbcr_conversion(&info, None).expect("a conversion"));
        let sampler =
            growth_test.name(device.create_sampler(&vk::SamplerCreateInfo::default(), None).expect("a sampler"));
        device.destroy_sampler(sampler, None);
        device.destroy_sampler_ycbcr_conversion(conversion, None);
    }
}

fn modules(growth_test: &GrowthTest) {
    let module = growth_test.module(SHADER);
    // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
    unsafe { growth_test.world.device.destroy_shader_module(module, None) };
}

/// A pipeline of the usual layout, whose module ends first.
fn compute_pipeline(growth_test: &GrowthTest) -> vk::Pipeline {
    let (device, module) = (&growth_test.world.device, growth_test.module(SHADER));
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE);
    let stage = stage.module(module).name(c"main");
    let infos = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(growth_test.compute.layout)];
    // SAFETY: the structures live until the call returns, and a module may end when its pipeline is made (lifetime).
    unsafe {
        let made = device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None).expect("a pipeline")[0];
        device.destroy_shader_module(module, None);
        growth_test.name(made)
    }
}

fn compute_pipelines(growth_test: &GrowthTest) {
    let pipeline = compute_pipeline(growth_test);
    // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
    unsafe { growth_test.world.device.destroy_pipeline(pipeline, None) };
    Compute::new(&growth_test.world, 1).destroy(&growth_test.world);
}

/// With a render pass and a framebuffer of their own.
fn graphics_pipelines(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let subpasses = [vk::SubpassDescription::default().pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS)];
    let info = vk::RenderPassCreateInfo::default().subpasses(&subpasses);
    // SAFETY: each object is created, used and destroyed in this order in this block; `run` waits for the commands,
    // which only this thread records (lifetime, owner). Fixed functions are not described (null driver).
    unsafe {
        let pass = growth_test.name(device.create_render_pass(&info, None).expect("a render pass"));
        let info = vk::FramebufferCreateInfo::default().render_pass(pass).width(16).height(16).layers(1);
        let framebuffer = growth_test.name(device.create_framebuffer(&info, None).expect("a framebuffer"));
        let pipeline = graphics_pipeline(growth_test, pass, vk::PipelineCreateFlags::empty(), &[]);
        let area = vk::Extent2D { width: 16, height: 16 }.into();
        let begin = vk::RenderPassBeginInfo::default().render_pass(pass).framebuffer(framebuffer).render_area(area);
        growth_test.run(|commands| {
            device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
            device.cmd_draw(commands, 3, 1, 0, 0);
            device.cmd_end_render_pass(commands);
        });
        device.destroy_pipeline(pipeline, None);
        device.destroy_framebuffer(framebuffer, None);
        device.destroy_render_pass(pass, None);
    }
}

/// Out of shaders, or of parts.
fn graphics_pipeline(
    growth_test: &GrowthTest,
    pass: vk::RenderPass,
    flags: vk::PipelineCreateFlags,
    parts: &[vk::Pipeline],
) -> vk::Pipeline {
    let device = &growth_test.world.device;
    let stages = [(vk::ShaderStageFlags::VERTEX, VERTEX), (vk::ShaderStageFlags::FRAGMENT, FRAGMENT)];
    let stages = if parts.is_empty() { &stages[..] } else { &[] };
    let stage = |(stage, bytes): &(_, &[u8])| {
        vk::PipelineShaderStageCreateInfo::default().stage(*stage).module(growth_test.module(bytes)).name(c"main")
    };
    let stages: Vec<_> = stages.iter().map(stage).collect();
    let mut libraries = vk::PipelineLibraryCreateInfoKHR::default().libraries(parts);
    let kinds = vk::GraphicsPipelineLibraryFlagsEXT::PRE_RASTERIZATION_SHADERS
        | vk::GraphicsPipelineLibraryFlagsEXT::FRAGMENT_SHADER;
    let mut kinds = vk::GraphicsPipelineLibraryCreateInfoEXT::default().flags(kinds);
    let info = vk::GraphicsPipelineCreateInfo::default().stages(&stages).layout(growth_test.compute.layout);
    let info = info.render_pass(pass).flags(flags);
    let info = match (parts.is_empty(), flags.contains(vk::PipelineCreateFlags::LIBRARY_KHR)) {
        (true, true) => info.push_next(&mut kinds),
        (true, false) => info,
        (false, _) => info.push_next(&mut libraries),
    };
    // SAFETY: the structures live until the call returns, and modules may end when their pipeline is made (lifetime).
    // Fixed functions are not described (null driver).
    unsafe {
        let made = device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None).expect("a pipeline")[0];
        stages.iter().for_each(|it| device.destroy_shader_module(it.module, None));
        growth_test.name(made)
    }
}

fn libraries(growth_test: &GrowthTest) {
    let pass = vk::RenderPass::null();
    let part = graphics_pipeline(growth_test, pass, vk::PipelineCreateFlags::LIBRARY_KHR, &[]);
    let linked = graphics_pipeline(growth_test, pass, vk::PipelineCreateFlags::empty(), &[part]);
    // SAFETY: nothing is pending that uses them, and nobody has the handles afterwards (lifetime).
    unsafe {
        [part, linked].into_iter().for_each(|pipeline| growth_test.world.device.destroy_pipeline(pipeline, None))
    };
}

fn rays(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let functions = khr::ray_tracing_pipeline::Device::new(&growth_test.world.instance, device);
    let module = growth_test.module(RAYS);
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::RAYGEN_KHR);
    let stages = [stage.module(module).name(c"main")];
    let unused = vk::SHADER_UNUSED_KHR;
    let group = vk::RayTracingShaderGroupCreateInfoKHR::default().general_shader(0).closest_hit_shader(unused);
    let groups = [group.any_hit_shader(unused).intersection_shader(unused)];
    let info = vk::RayTracingPipelineCreateInfoKHR::default().stages(&stages).groups(&groups);
    let infos = [info.layout(growth_test.compute.layout).max_pipeline_ray_recursion_depth(1)];
    let (none, cache) = (vk::DeferredOperationKHR::null(), vk::PipelineCache::null());
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let made = functions.create_ray_tracing_pipelines(none, cache, &infos, None).expect("a pipeline")[0];
        device.destroy_shader_module(module, None);
        device.destroy_pipeline(growth_test.name(made), None);
    }
}

/// One stays for a round: the forms of both together do not.
fn shaders(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let functions = ext::shader_object::Device::new(&growth_test.world.instance, device);
    let shader = |stage, bytes: &[u8]| {
        let sets = [growth_test.compute.set_layouts[0]];
        let info = vk::ShaderCreateInfoEXT::default().stage(stage).code_type(vk::ShaderCodeTypeEXT::SPIRV);
        let words = ash::util::read_spv(&mut std::io::Cursor::new(bytes)).expect("a shader");
        let info = info.name(c"main").set_layouts(&sets);
        let infos = [vk::ShaderCreateInfoEXT { p_code: words.as_ptr().cast(), code_size: bytes.len(), ..info }];
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        growth_test.name(unsafe { functions.create_shaders(&infos, None) }.expect("a shader object")[0])
    };
    let stages = [vk::ShaderStageFlags::VERTEX, vk::ShaderStageFlags::FRAGMENT];
    let all = [shader(stages[0], VERTEX), shader(stages[1], FRAGMENT)];
    // SAFETY: live shader objects; `run` waits for the commands, which only this thread records, before they end
    // (lifetime, owner). Dynamic state is not set (null driver).
    unsafe {
        growth_test.run(|commands| {
            device.cmd_begin_rendering(commands, &vk::RenderingInfo::default().layer_count(1));
            functions.cmd_bind_shaders(commands, &stages, &all);
            device.cmd_draw(commands, 3, 1, 0, 0);
            device.cmd_end_rendering(commands);
        });
        all.into_iter().for_each(|it| functions.destroy_shader(it, None));
    }
}

/// Sets that are freed, that end with a reset, and that end with their pool; with their layout, and a template.
fn descriptor_sets(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let ty = vk::DescriptorType::STORAGE_BUFFER;
    let (sizes, sets) = ([vk::DescriptorPoolSize { ty, descriptor_count: 8 }], 4);
    let binding = vk::DescriptorSetLayoutBinding::default().descriptor_count(2).descriptor_type(ty);
    let bindings = [binding.stage_flags(vk::ShaderStageFlags::COMPUTE)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let layout = growth_test.name(device.create_descriptor_set_layout(&info, None).expect("a layout"));
        let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes).flags(flags);
        let pool = growth_test.name(device.create_descriptor_pool(&info, None).expect("a pool"));
        let entry = vk::DescriptorUpdateTemplateEntry::default().descriptor_type(ty).descriptor_count(2).stride(24);
        let entries = [entry];
        let info = vk::DescriptorUpdateTemplateCreateInfo::default().descriptor_set_layout(layout);
        let info = info.descriptor_update_entries(&entries);
        let template = growth_test.name(device.create_descriptor_update_template(&info, None).expect("a template"));
        let buffer = growth_test.buffer(vk::BufferUsageFlags::STORAGE_BUFFER);
        let buffers = [vk::DescriptorBufferInfo { buffer, offset: 0, range: 64 }; 2];
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        for end in 0..3 {
            let made = device.allocate_descriptor_sets(&info).expect("a set");
            let set = growth_test.name(made[0]);
            let write = vk::WriteDescriptorSet::default().dst_set(set).descriptor_type(ty).buffer_info(&buffers);
            device.update_descriptor_sets(&[write], &[]);
            device.update_descriptor_set_with_template(set, template, buffers.as_ptr().cast());
            match end {
                0 => device.free_descriptor_sets(pool, &made).expect("it is freed"),
                1 => device.reset_descriptor_pool(pool, vk::DescriptorPoolResetFlags::empty()).expect("it is reset"),
                _ => device.destroy_descriptor_pool(pool, None),
            }
        }
        device.destroy_descriptor_update_template(template, None);
        device.destroy_descriptor_set_layout(layout, None);
        device.destroy_buffer(buffer, None);
    }
}

/// Some are never begun, some never submitted; all but one end with their pool.
fn command_buffers(growth_test: &GrowthTest) {
    let pool = growth_test.name(growth_test.world.command_pool());
    let all = growth_test.world.command_buffers(pool, 4);
    all.iter().for_each(|buffer| _ = growth_test.name(*buffer));
    growth_test.world.record(all[1], 2);
    growth_test.world.record(all[2], 2);
    growth_test.world.submit(all[2]);
    // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
    unsafe {
        growth_test.world.device.free_command_buffers(pool, &all[3..]);
        growth_test.world.device.destroy_command_pool(pool, None);
    }
}

fn secondaries(growth_test: &GrowthTest) {
    let (device, pool) = (&growth_test.world.device, growth_test.name(growth_test.world.command_pool()));
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let info = info.level(vk::CommandBufferLevel::SECONDARY);
    let inherited = vk::CommandBufferInheritanceInfo::default();
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let made = device.allocate_command_buffers(&info).expect("a command buffer");
        let begin = vk::CommandBufferBeginInfo::default().inheritance_info(&inherited);
        device.begin_command_buffer(growth_test.name(made[0]), &begin).expect("it begins");
        device.cmd_bind_pipeline(made[0], vk::PipelineBindPoint::COMPUTE, growth_test.compute.pipeline);
        device.cmd_dispatch(made[0], 1, 1, 1);
        device.end_command_buffer(made[0]).expect("it ends");
        growth_test.run(|commands| device.cmd_execute_commands(commands, &made));
        device.destroy_command_pool(pool, None);
    }
}

/// Dispatches with new pipelines, with sets of new buffers, under labels.
fn dispatches(growth_test: &GrowthTest) {
    let (device, ty) = (&growth_test.world.device, vk::DescriptorType::STORAGE_BUFFER);
    let (pipeline, label) = (compute_pipeline(growth_test), vk::DebugUtilsLabelEXT::default().label_name(c"a label"));
    let buffers = [vk::BufferUsageFlags::STORAGE_BUFFER; 2].map(|usage| growth_test.buffer(usage));
    let sizes = [vk::DescriptorPoolSize { ty, descriptor_count: 2 }];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let pool = growth_test.name(device.create_descriptor_pool(&info, None).expect("a pool"));
        let info = vk::DescriptorSetAllocateInfo::default()
            .descriptor_pool(pool)
            .set_layouts(&growth_test.compute.set_layouts);
        let sets = device.allocate_descriptor_sets(&info).expect("a set");
        for (at, buffer) in buffers.iter().enumerate() {
            let infos = [vk::DescriptorBufferInfo { buffer: *buffer, offset: 0, range: 64 }];
            let write = vk::WriteDescriptorSet::default().dst_set(sets[0]).dst_binding(at as u32).descriptor_type(ty);
            device.update_descriptor_sets(&[write.buffer_info(&infos)], &[]);
        }
        growth_test.utils.queue_begin_debug_utils_label(growth_test.world.queue, &label);
        growth_test.run(|commands| {
            let point = vk::PipelineBindPoint::COMPUTE;
            growth_test.utils.cmd_begin_debug_utils_label(commands, &label);
            device.cmd_bind_pipeline(commands, point, pipeline);
            device.cmd_bind_descriptor_sets(commands, point, growth_test.compute.layout, 0, &sets, &[]);
            device.cmd_dispatch(commands, 1, 1, 1);
            growth_test.utils.cmd_end_debug_utils_label(commands);
        });
        growth_test.utils.queue_end_debug_utils_label(growth_test.world.queue);
        device.destroy_pipeline(pipeline, None);
        device.destroy_descriptor_pool(pool, None);
        buffers.into_iter().for_each(|it| device.destroy_buffer(it, None));
    }
}

/// Fences, semaphores of both kinds, and events.
fn signals(growth_test: &GrowthTest) {
    let (device, queue) = (&growth_test.world.device, growth_test.world.queue);
    let mut timeline = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default();
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let fence = growth_test.name(device.create_fence(&vk::FenceCreateInfo::default(), None).expect("a fence"));
        let event = growth_test.name(device.create_event(&vk::EventCreateInfo::default(), None).expect("an event"));
        let binary = growth_test.name(device.create_semaphore(&info, None).expect("a semaphore"));
        let counter =
            growth_test.name(device.create_semaphore(&info.push_next(&mut timeline), None).expect("a semaphore"));
        let (signaled, values) = ([binary, counter], [0, 1]);
        let mut signals = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let signal = vk::SubmitInfo::default().signal_semaphores(&signaled).push_next(&mut signals);
        let (waited, stages) = ([binary], [vk::PipelineStageFlags::ALL_COMMANDS]);
        let wait = vk::SubmitInfo::default().wait_semaphores(&waited).wait_dst_stage_mask(&stages);
        device.queue_submit(queue, &[signal, wait], fence).expect("it is submitted");
        device.wait_for_fences(&[fence], true, u64::MAX).expect("it is waited for");
        growth_test.run(|commands| device.cmd_set_event(commands, event, vk::PipelineStageFlags::TRANSFER));
        device.destroy_event(event, None);
        signaled.into_iter().for_each(|it| device.destroy_semaphore(it, None));
        device.destroy_fence(fence, None);
    }
}

/// A buffer whose address is known, in memory of its own, and an acceleration structure in it.
fn addressed(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let functions = khr::acceleration_structure::Device::new(&growth_test.world.instance, device);
    let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS | vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR;
    let (memory, ty) =
        (growth_test.name(growth_test.world.allocate(4096)), vk::AccelerationStructureTypeKHR::BOTTOM_LEVEL);
    let buffer = growth_test.buffer_in(memory, usage);
    let info = vk::AccelerationStructureCreateInfoKHR::default().buffer(buffer).size(256).ty(ty);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        device.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(buffer));
        let structure = growth_test.name(functions.create_acceleration_structure(&info, None).expect("a structure"));
        let info = vk::AccelerationStructureDeviceAddressInfoKHR::default().acceleration_structure(structure);
        functions.get_acceleration_structure_device_address(&info);
        functions.destroy_acceleration_structure(structure, None);
        device.destroy_buffer(buffer, None);
        device.free_memory(memory, None);
    }
}

fn micromaps(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let functions = ext::opacity_micromap::Device::new(&growth_test.world.instance, device);
    let buffer = growth_test.buffer(vk::BufferUsageFlags::MICROMAP_STORAGE_EXT);
    let info = vk::MicromapCreateInfoEXT::default().buffer(buffer).size(256);
    let mut micromap = vk::MicromapEXT::null();
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let made = (functions.fp().create_micromap_ext)(device.handle(), &info, std::ptr::null(), &mut micromap);
        made.result().expect("a micromap");
        (functions.fp().destroy_micromap_ext)(device.handle(), growth_test.name(micromap), std::ptr::null());
        device.destroy_buffer(buffer, None);
    }
}

fn swapchains(growth_test: &GrowthTest) {
    let functions = khr::swapchain::Device::new(&growth_test.world.instance, &growth_test.world.device);
    let info = vk::HeadlessSurfaceCreateInfoEXT::default();
    let entry = entry();
    let headless = ext::headless_surface::Instance::new(&entry, &growth_test.world.instance);
    let surfaces = khr::surface::Instance::new(&entry, &growth_test.world.instance);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let surface = headless.create_headless_surface(&info, None).expect("a surface");
        let info = vk::SwapchainCreateInfoKHR::default().surface(surface).min_image_count(2).image_array_layers(1);
        let info = info.image_extent(vk::Extent2D { width: 16, height: 16 }).image_format(vk::Format::B8G8R8A8_UNORM);
        let info = info.image_usage(vk::ImageUsageFlags::TRANSFER_DST);
        let swapchain = growth_test.name(functions.create_swapchain(&info, None).expect("a swapchain"));
        let images = functions.get_swapchain_images(swapchain).expect("images");
        images.iter().for_each(|image| _ = growth_test.name(*image));
        let fence = growth_test.world.device.create_fence(&vk::FenceCreateInfo::default(), None).expect("a fence");
        let (at, _) =
            functions.acquire_next_image(swapchain, u64::MAX, vk::Semaphore::null(), fence).expect("an image");
        growth_test.world.device.wait_for_fences(&[fence], true, u64::MAX).expect("it is waited for");
        let (swapchains, indices) = ([swapchain], [at]);
        let info = vk::PresentInfoKHR::default().swapchains(&swapchains).image_indices(&indices);
        functions.queue_present(growth_test.world.queue, &info).expect("it is presented");
        growth_test.world.device.queue_wait_idle(growth_test.world.queue).expect("it is waited for");
        growth_test.world.device.destroy_fence(fence, None);
        functions.destroy_swapchain(swapchain, None);
        surfaces.destroy_surface(surface, None);
    }
}

/// Commands that the layer only counts.
fn others(growth_test: &GrowthTest) {
    let device = &growth_test.world.device;
    let deferred = khr::deferred_host_operations::Device::new(&growth_test.world.instance, device);
    let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::OCCLUSION).query_count(4);
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let queries = growth_test.name(device.create_query_pool(&info, None).expect("a pool"));
        let cache =
            growth_test.name(device.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None).expect("one"));
        let slot = device.create_private_data_slot(&vk::PrivateDataSlotCreateInfo::default(), None).expect("a slot");
        device.set_private_data(queries, slot, 7).expect("it is set");
        let mut operation = vk::DeferredOperationKHR::null();
        let made = (deferred.fp().create_deferred_operation_khr)(device.handle(), std::ptr::null(), &mut operation);
        made.result().expect("an operation");
        (deferred.fp().destroy_deferred_operation_khr)(device.handle(), growth_test.name(operation), std::ptr::null());
        device.destroy_private_data_slot(growth_test.name(slot), None);
        device.destroy_pipeline_cache(cache, None);
        device.destroy_query_pool(queries, None);
    }
}

/// Makes and destroys things of each kind many times.
fn expect_no_growth(settings: &[(&CStr, &CStr)]) {
    let entry = entry();
    let test = GrowthTest::new(&entry, settings);
    // The addresses of some destroyed objects are remembered.
    (0..LIMIT).for_each(|_| addressed(&test));
    let mut grown = Vec::new();
    for (kind, round) in KINDS {
        // Containers that have grown keep their capacity.
        (0..ROUNDS).for_each(|_| round(&test));
        // The history of steps may need more capacity a few times; a leak grows each time.
        let grows = |_| {
            let before = test.settled_heap();
            (0..ROUNDS).for_each(|_| round(&test));
            let more = test.settled_heap().saturating_sub(before);
            eprintln!("{kind}: {more} bytes more");
            more > GROWTH_BYTES_MAX
        };
        if (0..4).all(grows) {
            grown.push(format!("{kind}: more than {GROWTH_BYTES_MAX} bytes in {ROUNDS} rounds, again and again"));
        }
    }
    test.destroy();
    assert!(grown.is_empty(), "{grown:#?}");
}

#[test]
fn objects_that_come_and_go_leave_nothing_behind_with_sync() {
    child("growth::objects_that_come_and_go_leave_nothing_behind_with_sync", &[], || expect_no_growth(SYNC));
}

#[test]
fn objects_that_come_and_go_leave_nothing_behind_with_both() {
    child("growth::objects_that_come_and_go_leave_nothing_behind_with_both", &[], || expect_no_growth(BOTH));
}
