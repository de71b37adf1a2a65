//! A program on lavapipe: bare, with checked shaders, or under the Khronos layer.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::time::Instant;

use ash::vk;

use crate::shaders::{CONSTANT_BYTES, ShaderWork, compute};

const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
const KHRONOS: &CStr = c"VK_LAYER_KHRONOS_validation";
/// Commands that are recorded between two beginnings.
const FRAME: u64 = 1000;
/// As many descriptor sets as there are commands.
const SETS: usize = FRAME as usize;
/// Invocations of a dispatch that is timed by itself.
const GROUPS: u32 = 64;
/// Enough for all of its accesses.
const BUFFER_BYTES: u64 = 1 << 20;
/// Buffers with addresses in one allocation.
const SMALL_BYTES: u64 = 256;

/// Who checks shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Bare,
    Checked,
    /// The layer finds hazards as well, and shaders keep what they touch for it.
    Observed,
    Khronos,
}

pub(crate) fn has_khronos() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        // SAFETY: the initializers of the loader have no preconditions, and a global command takes no handle.
        let layers = unsafe { ash::Entry::load().map(|it| it.enumerate_instance_layer_properties()) };
        let layers = layers.expect("there is a loader").expect("layers can be listed");
        let has = layers.iter().any(|it| it.layer_name_as_c_str() == Ok(KHRONOS));
        if !has {
            eprintln!("not compared with the Khronos layer: `apt-get install vulkan-validationlayers`");
        }
        has
    })
}

/// A device, a pipeline whose shader accesses a buffer and an address, and a command buffer to record into.
pub(crate) struct Program {
    device: ash::Device,
    queue: vk::Queue,
    fence: vk::Fence,
    commands: vk::CommandBuffer,
    memory_types: vk::PhysicalDeviceMemoryProperties,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    sets: Vec<vk::DescriptorSet>,
    address: u64,
    /// Others that have addresses.
    small: usize,
    scene: Option<DrawScene>,
    /// The pipeline of the dispatches that are timed.
    timed: Option<vk::Pipeline>,
    salt: u32,
}

#[derive(Clone, Copy)]
struct DrawScene {
    view: vk::ImageView,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    set: vk::DescriptorSet,
}

impl Program {
    pub(crate) fn new(mode: Mode) -> Program {
        // SAFETY: the structures live until their calls return, each object is made of those before it, and all of them
        // are kept to the end of the process; lavapipe has the features that are enabled, and a queue of family 0.
        unsafe {
            let entry = Box::leak(Box::new(ash::Entry::load().expect("there is a loader")));
            let instance = instance(entry, mode).expect("lavapipe makes instances");
            let physical = instance.enumerate_physical_devices().expect("lavapipe has a device")[0];
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let mut addresses = vk::PhysicalDeviceVulkan12Features::default().buffer_device_address(true);
            let mut rendering = vk::PhysicalDeviceVulkan13Features::default().dynamic_rendering(true);
            let features = vk::PhysicalDeviceFeatures::default()
                .fragment_stores_and_atomics(true)
                .vertex_pipeline_stores_and_atomics(true);
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_features(&features);
            let info = info.push_next(&mut addresses).push_next(&mut rendering);
            let device = instance.create_device(physical, &info, None).expect("lavapipe makes devices");
            let memory_types = instance.get_physical_device_memory_properties(physical);
            let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
            let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default().flags(flags), None);
            let info = vk::CommandBufferAllocateInfo::default().command_buffer_count(1);
            let info = info.command_pool(pool.expect("lavapipe makes pools"));
            let commands = device.allocate_command_buffers(&info).expect("lavapipe makes command buffers")[0];
            let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("lavapipe makes fences");
            let mut program = Program {
                queue: device.get_device_queue(0, 0),
                device,
                fence,
                commands,
                memory_types,
                layout: vk::PipelineLayout::null(),
                pipeline: vk::Pipeline::null(),
                sets: Vec::new(),
                address: 0,
                small: 0,
                scene: None,
                timed: None,
                salt: 1,
            };
            program.create_descriptor_sets();
            program.pipeline = program.make_pipeline(ShaderWork { accesses: 1, rounds: 1, salt: 0 }).0;
            program
        }
    }

    /// Buffers, sets of them and the layout.
    fn create_descriptor_sets(&mut self) {
        let stage = vk::ShaderStageFlags::COMPUTE;
        let binding = |at| {
            let binding = vk::DescriptorSetLayoutBinding::default().binding(at).descriptor_count(1).stage_flags(stage);
            binding.descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
        };
        let bindings = [binding(0), binding(1)];
        // SAFETY: the structures live until their calls return, each object is made of those before it, and all of them
        // are kept to the end of the process; lavapipe has the features that are enabled, and a queue of family 0.
        unsafe {
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let set_layout = self.device.create_descriptor_set_layout(&info, None).expect("lavapipe makes layouts");
            let ranges = [vk::PushConstantRange { stage_flags: stage, offset: 0, size: CONSTANT_BYTES }];
            let layouts = [set_layout; SETS];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts[..1]).push_constant_ranges(&ranges);
            self.layout = self.device.create_pipeline_layout(&info, None).expect("lavapipe makes layouts");
            let (source, address) = self.buffer(BUFFER_BYTES);
            let targets = [self.buffer(BUFFER_BYTES).0, self.buffer(BUFFER_BYTES).0];
            self.address = address;
            let count = 2 * SETS as u32;
            let size = [vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: count }];
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(SETS as u32).pool_sizes(&size);
            let pool = self.device.create_descriptor_pool(&info, None).expect("lavapipe makes pools");
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            self.sets = self.device.allocate_descriptor_sets(&info).expect("lavapipe makes sets");
            for (at, set) in self.sets.iter().enumerate() {
                self.write(*set, 0, source, vk::WHOLE_SIZE);
                // No two sets are alike.
                self.write(*set, 1, targets[at % 2], BUFFER_BYTES - 4 * (at as u64 / 2));
            }
        }
    }

    fn write(&self, set: vk::DescriptorSet, binding: u32, buffer: vk::Buffer, range: u64) {
        let info = [vk::DescriptorBufferInfo { buffer, offset: 0, range }];
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).buffer_info(&info);
        // SAFETY: the set and the buffer are kept to the end of the process, and `submit` waits for the fence, so that
        // no pending command uses the set (VUID-vkUpdateDescriptorSets-None-03047).
        unsafe {
            self.device.update_descriptor_sets(&[write.descriptor_type(vk::DescriptorType::STORAGE_BUFFER)], &[]);
        }
    }

    fn allocate(&self, bytes: u64) -> vk::DeviceMemory {
        let types = &self.memory_types.memory_types;
        let is_it = |it: &vk::MemoryType| it.property_flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
        let memory_type = types.iter().position(is_it).unwrap_or(0) as u32;
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default().allocation_size(bytes).memory_type_index(memory_type);
        // SAFETY: the structures live until the call returns, the type is one of the device, and the feature for
        // addresses is enabled.
        unsafe { self.device.allocate_memory(&info.push_next(&mut flags), None) }.expect("there is memory")
    }

    fn buffer(&self, bytes: u64) -> (vk::Buffer, u64) {
        let memory = self.allocate(bytes);
        self.buffer_in(memory, 0, bytes)
    }

    /// A buffer, and its address.
    fn buffer_in(&self, memory: vk::DeviceMemory, offset: u64, bytes: u64) -> (vk::Buffer, u64) {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: the structures live until their calls return; the buffer is new and of this size, lavapipe has one
        // type of memory, and callers give each buffer a part of the memory of its own, which they keep.
        unsafe {
            let buffer = self.device.create_buffer(&info, None).expect("lavapipe makes buffers");
            self.device.bind_buffer_memory(buffer, memory, offset).expect("it can be bound");
            let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
            (buffer, self.device.get_buffer_device_address(&info))
        }
    }

    /// A pipeline, and how long it took to make it.
    fn make_pipeline(&self, work: ShaderWork) -> (vk::Pipeline, f64) {
        let words = compute(work);
        // SAFETY: `compute` makes valid words; they and the structures live until their calls return, and the module
        // may end when the pipeline is made.
        unsafe {
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = self.device.create_shader_module(&info, None).expect("lavapipe makes modules");
            let stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE);
            let stage = stage.module(module).name(c"main");
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
            let start = Instant::now();
            let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &info, None);
            let took = start.elapsed().as_secs_f64();
            self.device.destroy_shader_module(module, None);
            (made.unwrap_or_else(|it| panic!("{:?}", it.1))[0], took)
        }
    }

    fn begin(&self) {
        let info = vk::CommandBufferBeginInfo::default();
        // SAFETY: `submit` waited for its fence, so that the command buffer is not pending
        // (VUID-vkBeginCommandBuffer-commandBuffer-00049), and its pool lets it be begun again. Only this thread uses
        // it.
        unsafe { self.device.begin_command_buffer(self.commands, &info) }.expect("lavapipe records");
    }

    fn end(&self) {
        // SAFETY: `begin` put the command buffer into the recording state
        // (VUID-vkEndCommandBuffer-commandBuffer-00059).
        unsafe { self.device.end_command_buffer(self.commands) }.expect("lavapipe records");
    }

    fn bind(&self, pipeline: vk::Pipeline, set: vk::DescriptorSet) {
        let point = vk::PipelineBindPoint::COMPUTE;
        let bytes = self.address.to_ne_bytes();
        // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its pipelines,
        // sets and buffers are kept to the end.
        unsafe {
            self.device.cmd_bind_pipeline(self.commands, point, pipeline);
            self.device.cmd_bind_descriptor_sets(self.commands, point, self.layout, 0, &[set], &[]);
            let stage = vk::ShaderStageFlags::COMPUTE;
            self.device.cmd_push_constants(self.commands, self.layout, stage, 0, &bytes);
        }
    }

    pub(crate) fn dispatches(&mut self, times: u64) {
        self.frames(times, |program, count| {
            program.bind(program.pipeline, program.sets[0]);
            // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its
            // pipelines, sets and buffers are kept to the end.
            (0..count).for_each(|_| unsafe { program.device.cmd_dispatch(program.commands, 1, 1, 1) });
        });
    }

    /// In front of each a barrier: they write to the same buffer.
    pub(crate) fn ordered_dispatches(&mut self, times: u64) {
        self.frames(times, |program, count| {
            program.bind(program.pipeline, program.sets[0]);
            let access = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
            let barrier = [vk::MemoryBarrier::default().src_access_mask(access).dst_access_mask(access)];
            let (stage, flags) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::DependencyFlags::empty());
            for _ in 0..count {
                // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its
                // pipelines, sets and buffers are kept to the end.
                unsafe {
                    program.device.cmd_pipeline_barrier(program.commands, stage, stage, flags, &barrier, &[], &[]);
                    program.device.cmd_dispatch(program.commands, 1, 1, 1);
                }
            }
        });
    }

    pub(crate) fn dispatches_with_sets(&mut self, times: u64) {
        self.dispatches_with(2, times);
    }

    pub(crate) fn dispatches_with_many_sets(&mut self, times: u64) {
        self.dispatches_with(SETS, times);
    }

    fn dispatches_with(&mut self, sets: usize, times: u64) {
        self.frames(times, |program, count| {
            program.bind(program.pipeline, program.sets[0]);
            let point = vk::PipelineBindPoint::COMPUTE;
            for at in 0..count {
                let set = [program.sets[at as usize % sets]];
                // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its
                // pipelines, sets and buffers are kept to the end.
                unsafe {
                    program.device.cmd_bind_descriptor_sets(program.commands, point, program.layout, 0, &set, &[]);
                    program.device.cmd_dispatch(program.commands, 1, 1, 1);
                }
            }
        });
    }

    pub(crate) fn draws(&mut self, times: u64) {
        let scene = *self.scene.get_or_insert_with(|| scene(&self.device));
        let (buffer, _) = self.buffer(SMALL_BYTES);
        self.write(scene.set, 0, buffer, vk::WHOLE_SIZE);
        self.frames(times, |program, count| {
            let color = [vk::RenderingAttachmentInfo::default()
                .image_view(scene.view)
                .image_layout(vk::ImageLayout::GENERAL)
                .load_op(vk::AttachmentLoadOp::DONT_CARE)
                .store_op(vk::AttachmentStoreOp::STORE)];
            let area = vk::Rect2D { extent: vk::Extent2D { width: 16, height: 16 }, ..vk::Rect2D::default() };
            let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&color);
            let point = vk::PipelineBindPoint::GRAPHICS;
            // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; the scene
            // is kept to the end. It is never submitted, so that the layout of the image does not matter.
            unsafe {
                program.device.cmd_begin_rendering(program.commands, &info);
                program.device.cmd_bind_pipeline(program.commands, point, scene.pipeline);
                program.device.cmd_bind_descriptor_sets(program.commands, point, scene.layout, 0, &[scene.set], &[]);
                (0..count).for_each(|_| program.device.cmd_draw(program.commands, 3, 1, 0, 0));
                program.device.cmd_end_rendering(program.commands);
            }
        });
    }

    /// Records so many commands, in command buffers that begin anew.
    fn frames(&mut self, times: u64, record: impl Fn(&Program, u64)) {
        let mut left = times;
        while left > 0 {
            self.begin();
            record(self, left.min(FRAME));
            self.end();
            left = left.saturating_sub(FRAME);
        }
    }

    /// One dispatch, submitted and waited for, again and again.
    pub(crate) fn submits(&mut self, times: u64) {
        for _ in 0..times {
            self.begin();
            self.bind(self.pipeline, self.sets[0]);
            // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its
            // pipelines, sets and buffers are kept to the end.
            unsafe { self.device.cmd_dispatch(self.commands, 1, 1, 1) };
            self.end();
            self.submit();
        }
    }

    fn submit(&self) {
        let commands = [self.commands];
        let info = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: only this thread uses the queue, the command buffer was recorded and is not pending, and the fence is
        // unsignaled (VUID-vkQueueSubmit-fence-00063): it is reset after each wait.
        unsafe {
            self.device.queue_submit(self.queue, &info, self.fence).expect("it is submitted");
            self.device.wait_for_fences(&[self.fence], true, u64::MAX).expect("it is done");
            self.device.reset_fences(&[self.fence]).expect("it is not in use");
        }
    }

    /// How long a dispatch takes where so many buffers have addresses.
    pub(crate) fn addressed(&mut self, count: usize) -> f64 {
        self.ensure_buffers(count);
        if self.timed.is_none() {
            self.timed = Some(self.make_pipeline(ShaderWork { accesses: 4, rounds: 16, salt: 7 }).0);
        }
        let Some(pipeline) = self.timed else { return 0.0 };
        self.begin();
        self.bind(pipeline, self.sets[0]);
        // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses; its pipelines,
        // sets and buffers are kept to the end.
        unsafe { self.device.cmd_dispatch(self.commands, GROUPS, 1, 1) };
        self.end();
        // What is done once is not counted.
        self.submit();
        let start = Instant::now();
        self.submit();
        start.elapsed().as_secs_f64()
    }

    /// There are at least so many buffers with addresses, side by side in memory: drivers have few allocations.
    fn ensure_buffers(&mut self, count: usize) {
        // Those of the sets have addresses as well.
        let Some(more) = count.checked_sub(self.small + 3).filter(|it| *it > 0) else { return };
        let memory = self.allocate(SMALL_BYTES * more as u64);
        for at in 0..more as u64 {
            self.buffer_in(memory, at * SMALL_BYTES, SMALL_BYTES);
        }
        self.small += more;
    }

    /// How long it takes to make a pipeline with so many accesses of each kind. lavapipe compiles a compute pipeline at its
    /// first dispatch; creation is the translation of the shader and the rounds of its optimizer.
    pub(crate) fn pipeline_of(&mut self, accesses: u32) -> f64 {
        self.salt += 1;
        let (pipeline, took) = self.make_pipeline(ShaderWork { accesses, rounds: 1, salt: self.salt });
        // SAFETY: the pipeline was never bound, and nobody has the handle afterwards
        // (VUID-vkDestroyPipeline-pipeline-00765).
        unsafe { self.device.destroy_pipeline(pipeline, None) };
        took
    }
}

/// An instance, with the layer's settings in its chain.
fn instance(entry: &ash::Entry, mode: Mode) -> Result<ash::Instance, vk::Result> {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let layers: &[*const c_char] = match mode {
        Mode::Bare => &[],
        Mode::Checked | Mode::Observed => &[LAYER.as_ptr()],
        Mode::Khronos => &[KHRONOS.as_ptr()],
    };
    let values = [c"on".as_ptr()];
    let setting = |name| vk::LayerSettingEXT {
        value_count: 1,
        p_values: values.as_ptr().cast(),
        ..vk::LayerSettingEXT::default().layer_name(LAYER).setting_name(name).ty(vk::LayerSettingTypeEXT::STRING)
    };
    let settings = [setting(c"gpu"), setting(c"sync")];
    let count = if mode == Mode::Observed { 2 } else { 1 };
    let mut chained = vk::LayerSettingsCreateInfoEXT::default().settings(&settings[..count]);
    let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_layer_names(layers);
    // SAFETY: the structures above live until the call returns, and the names of layers end with a zero.
    unsafe { entry.create_instance(&info.push_next(&mut chained), None) }
}

/// A color attachment, and a pipeline that draws into it and reads its corners out of a buffer.
fn scene(device: &ash::Device) -> DrawScene {
    let format = vk::Format::R8G8B8A8_UNORM;
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let binding = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(storage)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::VERTEX)];
    let image = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: 16, height: 16, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let range =
        vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR).level_count(1).layer_count(1);
    // SAFETY: the structures live until their calls return; image and memory are new, lavapipe has one type of memory,
    // and all of it is kept to the end of the process.
    unsafe {
        let image = device.create_image(&image, None).expect("lavapipe makes images");
        let size = device.get_image_memory_requirements(image).size;
        let info = vk::MemoryAllocateInfo::default().allocation_size(size);
        let memory = device.allocate_memory(&info, None).expect("there is memory");
        device.bind_image_memory(image, memory, 0).expect("it can be bound");
        let view = vk::ImageViewCreateInfo::default().image(image).view_type(vk::ImageViewType::TYPE_2D);
        let view = device.create_image_view(&view.format(format).subresource_range(range), None);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&binding);
        let layouts = [device.create_descriptor_set_layout(&info, None).expect("lavapipe makes layouts")];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let layout = device.create_pipeline_layout(&info, None).expect("lavapipe makes layouts");
        let size = [vk::DescriptorPoolSize { ty: storage, descriptor_count: 1 }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&size);
        let pool = device.create_descriptor_pool(&info, None).expect("lavapipe makes pools");
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = device.allocate_descriptor_sets(&info).expect("lavapipe makes sets")[0];
        DrawScene {
            view: view.expect("lavapipe makes views"),
            layout,
            pipeline: graphics_pipeline(device, layout, format),
            set,
        }
    }
}

fn graphics_pipeline(device: &ash::Device, layout: vk::PipelineLayout, format: vk::Format) -> vk::Pipeline {
    let stage = |code: &[u8], stage| {
        let words = ash::util::read_spv(&mut std::io::Cursor::new(code)).expect("a module");
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: `words` is what the compiler made of a shader, and lives until the call returns.
        let module = unsafe { device.create_shader_module(&info, None) }.expect("lavapipe makes modules");
        vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(c"main")
    };
    let stages = [
        stage(include_bytes!("../../../../dev/samples/shaders/corners.vert.spv"), vk::ShaderStageFlags::VERTEX),
        stage(include_bytes!("../../../../dev/samples/shaders/green.frag.spv"), vk::ShaderStageFlags::FRAGMENT),
    ];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default();
    let assembly = vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let viewports = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples = vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let blend = [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blend);
    let dynamic = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];
    let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&dynamic);
    let formats = [format];
    let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
    let info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&assembly)
        .viewport_state(&viewports)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .color_blend_state(&blend)
        .dynamic_state(&dynamic)
        .layout(layout)
        .push_next(&mut rendering);
    // SAFETY: the structures above live until the call returns, and the modules to the end of the process.
    let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
    made.unwrap_or_else(|it| panic!("{:?}", it.1))[0]
}
