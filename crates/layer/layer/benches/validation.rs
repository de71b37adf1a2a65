//! What the validation adds to recorded commands and submissions, inline and off the application's thread.
//!
//! On the null driver, through the real loader: 1,000 copies with 64 barriers over some live buffers, and frames of 1,000
//! draws. Bare and validated batches take turns, and batches under the Khronos layer with nothing but synchronization
//! validation on, where that is installed. `overhead` measures the layer without validation.
//!
//! What the Khronos layer adds here is its synchronization validation: without it the layer adds 10 ns, and with its core
//! checks 26,000 ns. With 65,536 buffers each frame uses other buffers, and cache and TLB misses decide: a copy reads about
//! eight cache lines that only the last-level cache has.

#[path = "setup/khronos.rs"]
mod khronos;
mod setup;

use std::ffi::{CStr, c_char};

use ash::vk;
use khronos::write_settings;
use lavascope_bench::{Bench, Peer, Suite};
use lavascope_test_support::{set_driver, write_null_driver_manifest};
use setup::{layer_folder, switch_validation_off};

const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
/// Set in the process that measures: the loader reads the environment once.
const CHILD: &str = "LAVASCOPE_BENCH_CHILD";
/// Commands of a frame, and how many of them go between two barriers.
const FRAME: u64 = 1000;
const BETWEEN_BARRIERS: u64 = 16;
const BUFFER_BYTES: u64 = 256;
const VERTEX_BYTES: u64 = 8;
/// Nanoseconds that may be added to a recorded command.
const INLINE_MAX: f64 = 300.0;
const ASYNC_MAX: f64 = 100.0;
/// The part that may be added of what the Khronos layer adds.
const SHARE_MAX: f64 = 1.0 / 8.0;

const KHRONOS: &CStr = c"VK_LAYER_KHRONOS_validation";
/// Of the layer since 1.4: synchronization validation alone, of submissions too. Its checks of command buffers stay on, since
/// it finds nothing without them.
const KHRONOS_NEW_SETTINGS: &str = "\
khronos_validation.validate_sync = true
khronos_validation.syncval_submit_time_validation = true
";
/// Of the version that Debian 12 has, 1.3.239.
const KHRONOS_SETTINGS: &str = "\
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT
khronos_validation.disables = VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT,VK_VALIDATION_FEATURE_DISABLE_OBJECT_LIFETIMES_EXT,VK_VALIDATION_FEATURE_DISABLE_API_PARAMETERS_EXT,VK_VALIDATION_FEATURE_DISABLE_THREAD_SAFETY_EXT,VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT,VK_VALIDATION_FEATURE_DISABLE_SHADERS_EXT
khronos_validation.report_flags = error
";

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return suite().main();
    }
    let exe = std::env::current_exe().expect("a program knows where it is");
    let folder = exe.parent().expect("a program lies in a folder");
    let mut command = std::process::Command::new(&exe);
    command.args(std::env::args().skip(1)).env(CHILD, "1").env_remove("VK_LAYER_PATH");
    let layer = layer_folder(folder, "bench_layer_for_validation");
    write_settings(&layer, KHRONOS_NEW_SETTINGS, KHRONOS_SETTINGS);
    command.env("VK_ADD_LAYER_PATH", &layer).env("VK_LAYER_SETTINGS_PATH", &layer);
    set_driver(&mut command, write_null_driver_manifest(&layer)).env_remove("VK_INSTANCE_LAYERS");
    switch_validation_off(&mut command);
    // Valgrind counts in this process, so the measuring one takes its place.
    use std::os::unix::process::CommandExt;
    panic!("{}", command.exec());
}

/// Where hazards are looked for.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nowhere,
    Inline,
    Async,
    /// By the Khronos layer.
    Khronos,
}

const MODES: [(Mode, &str, f64); 2] = [(Mode::Inline, "inline", INLINE_MAX), (Mode::Async, "async", ASYNC_MAX)];

fn suite() -> Suite<'static> {
    let mut suite = Suite::default();
    for (mode, label, limit) in MODES {
        for count in [100, 65_536] {
            add(
                &mut suite,
                mode,
                format!("recorded copy, {count} buffers, {label}"),
                Some(limit),
                move |program, times| {
                    program.copies(count, times);
                },
            );
        }
        add(&mut suite, mode, format!("recorded draw, {label}"), Some(limit), Program::draws);
        for count in [100, 65_536] {
            let limit = (mode == Mode::Inline).then_some(20_000.0);
            add(&mut suite, mode, format!("empty submit, {count} buffers, {label}"), limit, move |program, times| {
                program.submits(count, 0, times);
            });
            let limit = (mode == Mode::Inline).then_some(200_000.0);
            let name = format!("submit of 1,000 copies, {count} buffers, {label}");
            add(&mut suite, mode, name, limit, move |it, times| it.submits(count, FRAME, times));
        }
    }
    suite
}

/// Programs are made when they are first needed: valgrind counts one entry at a time.
fn add(
    suite: &mut Suite<'static>,
    mode: Mode,
    name: String,
    limit: Option<f64>,
    run: impl Fn(&mut Program, u64) + Clone + 'static,
) {
    let bench = |mode: Mode| -> Box<dyn FnMut(u64)> {
        let (mut program, run) = (None, run.clone());
        Box::new(move |times| run(program.get_or_insert_with(|| Program::new(mode)), times))
    };
    let is_compared = mode == Mode::Inline && name.starts_with("recorded") && has_khronos();
    let bench_of_ours = Bench { name, limit, run: bench(mode), bare: Some(bench(Mode::Nowhere)) };
    match is_compared {
        true => suite.add_with_peer(bench_of_ours, Peer { run: bench(Mode::Khronos), share_limit: SHARE_MAX }),
        false => suite.add(bench_of_ours),
    }
}

fn has_khronos() -> bool {
    // SAFETY: the initializers of the loader have no preconditions, and a global command takes no handle.
    let layers = unsafe { ash::Entry::load().map(|it| it.enumerate_instance_layer_properties()) };
    let layers = layers.expect("there is a loader").expect("layers can be listed");
    let has = layers.iter().any(|it| it.layer_name_as_c_str() == Ok(KHRONOS));
    if !has {
        eprintln!("not compared with the Khronos layer: `apt-get install vulkan-validationlayers`");
    }
    has
}

/// A device with buffers, and a command buffer to record into.
struct Program {
    device: ash::Device,
    queue: vk::Queue,
    commands: vk::CommandBuffer,
    buffers: Vec<vk::Buffer>,
    scene: Option<DrawScene>,
    /// How many copies are in the command buffer that is submitted, and of how many buffers.
    recorded: Option<(usize, u64)>,
}

#[derive(Clone, Copy)]
struct DrawScene {
    view: vk::ImageView,
    pipeline: vk::Pipeline,
    vertices: vk::Buffer,
}

impl Program {
    fn new(mode: Mode) -> Program {
        // SAFETY: the structures live until their calls return, each object is made of those before it, and all of them
        // are kept to the end of the process; the queue and family exist on every device.
        unsafe {
            let entry = Box::leak(Box::new(ash::Entry::load().expect("there is a loader")));
            let instance = instance(entry, mode).expect("the null driver makes instances");
            let physical = instance.enumerate_physical_devices().expect("the null driver has a device")[0];
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let mut features = vk::PhysicalDeviceVulkan13Features::default().dynamic_rendering(true);
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
            let device = instance.create_device(physical, &info, None).expect("the null driver makes devices");
            let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
            let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default().flags(flags), None);
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(pool.expect("the null driver makes pools"))
                .command_buffer_count(1);
            let commands = device.allocate_command_buffers(&info).expect("the null driver makes command buffers")[0];
            let queue = device.get_device_queue(0, 0);
            Program { device, queue, commands, buffers: Vec::new(), scene: None, recorded: None }
        }
    }

    /// There are at least so many buffers, side by side in memory: drivers have few allocations.
    fn ensure_buffers(&mut self, count: usize) {
        let Some(more) = count.checked_sub(self.buffers.len()).filter(|it| *it > 0) else { return };
        let info = vk::BufferCreateInfo::default().size(BUFFER_BYTES).usage(vk::BufferUsageFlags::TRANSFER_DST);
        let size = vk::MemoryAllocateInfo::default().allocation_size(BUFFER_BYTES * more as u64);
        // SAFETY: the structure lives until the call returns; the null driver has memory of type 0.
        let memory = unsafe { self.device.allocate_memory(&size, None) }.expect("the null driver has memory");
        for at in 0..more as u64 {
            // SAFETY: the structure lives until the call returns; the buffer is new, and has a part of the memory of
            // its own (VUID-vkBindBufferMemory-size-01037).
            unsafe {
                let buffer = self.device.create_buffer(&info, None).expect("the null driver makes buffers");
                self.device.bind_buffer_memory(buffer, memory, at * BUFFER_BYTES).expect("it can be bound");
                self.buffers.push(buffer);
            }
        }
    }

    fn begin(&self) {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        // SAFETY: the queue was waited for, so that the command buffer is not pending
        // (VUID-vkBeginCommandBuffer-commandBuffer-00049), and its pool lets it be begun again
        // (VUID-vkBeginCommandBuffer-commandBuffer-00050). Only this thread uses it.
        unsafe { self.device.begin_command_buffer(self.commands, &info) }.expect("the null driver records");
    }

    fn end(&self) {
        // SAFETY: `begin` put the command buffer into the recording state
        // (VUID-vkEndCommandBuffer-commandBuffer-00059).
        unsafe { self.device.end_command_buffer(self.commands) }.expect("the null driver records");
    }

    fn barrier(&self) {
        let (read, write) = (vk::AccessFlags::MEMORY_READ, vk::AccessFlags::MEMORY_WRITE);
        let barrier = [vk::MemoryBarrier::default().src_access_mask(write).dst_access_mask(read | write)];
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses, and the barrier
        // lives until the call returns.
        unsafe {
            let flags = vk::DependencyFlags::empty();
            self.device.cmd_pipeline_barrier(self.commands, stages, stages, flags, &barrier, &[], &[]);
        }
    }

    /// Each from one buffer to the next, round and round.
    fn record_copies(&self, count: usize, copies: u64, first: u64) {
        let region = [vk::BufferCopy::default().size(BUFFER_BYTES)];
        for value in 0..copies {
            if value % BETWEEN_BARRIERS == 0 {
                self.barrier();
            }
            let at = ((first + value) * 2) as usize % count;
            // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses, and the
            // buffers are kept to the end, are as large as the region, and do not overlap.
            unsafe {
                self.device.cmd_copy_buffer(self.commands, self.buffers[at], self.buffers[at + 1], &region);
            }
        }
    }

    fn copies(&mut self, count: usize, times: u64) {
        self.ensure_buffers(count);
        self.recorded = None;
        let mut done = 0;
        while done < times {
            self.begin();
            self.record_copies(count, FRAME.min(times - done), done);
            self.end();
            done += FRAME;
        }
    }

    fn draws(&mut self, times: u64) {
        self.recorded = None;
        let scene = *self.scene.get_or_insert_with(|| scene(&self.device));
        let mut left = times;
        while left > 0 {
            self.begin();
            let color = [vk::RenderingAttachmentInfo::default()
                .image_view(scene.view)
                .image_layout(vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL)
                .load_op(vk::AttachmentLoadOp::CLEAR)
                .store_op(vk::AttachmentStoreOp::STORE)];
            let area = vk::Rect2D { extent: vk::Extent2D { width: 256, height: 256 }, ..vk::Rect2D::default() };
            let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&color);
            let device = &self.device;
            // SAFETY: `begin` put the command buffer into the recording state, which only this thread uses, and all
            // objects are kept to the end. It is never submitted, so that no draw reads the vertices.
            unsafe {
                device.cmd_begin_rendering(self.commands, &info);
                device.cmd_bind_pipeline(self.commands, vk::PipelineBindPoint::GRAPHICS, scene.pipeline);
                device.cmd_bind_vertex_buffers(self.commands, 0, &[scene.vertices], &[0]);
                for value in 0..left.min(FRAME) {
                    device.cmd_draw(self.commands, 3, 1, value as u32 * 3, 0);
                }
                device.cmd_end_rendering(self.commands);
            }
            self.end();
            left = left.saturating_sub(FRAME);
        }
    }

    /// Submits what was recorded once again and again.
    fn submits(&mut self, count: usize, copies: u64, times: u64) {
        self.ensure_buffers(count);
        if self.recorded != Some((count, copies)) {
            self.begin();
            self.record_copies(count, copies, 0);
            self.barrier();
            self.end();
            self.recorded = Some((count, copies));
        }
        let buffers = [self.commands];
        let submit = vk::SubmitInfo::default().command_buffers(&buffers);
        for _ in 0..times {
            // SAFETY: only this thread uses the queue; the command buffer was recorded for simultaneous use, so that it
            // may be pending already (VUID-vkQueueSubmit-pCommandBuffers-00071).
            unsafe { self.device.queue_submit(self.queue, &[submit], vk::Fence::null()) }.expect("it is submitted");
        }
        // SAFETY: a live queue that only this thread uses.
        unsafe { self.device.queue_wait_idle(self.queue) }.expect("the null driver waits");
    }
}

/// An instance, with the layer's settings in its chain.
fn instance(entry: &ash::Entry, mode: Mode) -> Result<ash::Instance, vk::Result> {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let layers: &[*const c_char] = match mode {
        Mode::Nowhere => &[],
        Mode::Inline | Mode::Async => &[LAYER.as_ptr()],
        Mode::Khronos => &[KHRONOS.as_ptr()],
    };
    let values = [c"on", if mode == Mode::Async { c"async" } else { c"inline" }].map(CStr::as_ptr);
    let setting = |(at, name): (usize, &'static CStr)| vk::LayerSettingEXT {
        value_count: 1,
        p_values: (&raw const values[at]).cast(),
        ..vk::LayerSettingEXT::default().layer_name(LAYER).setting_name(name).ty(vk::LayerSettingTypeEXT::STRING)
    };
    let settings: Vec<_> = [c"sync", c"sync_mode"].into_iter().enumerate().map(setting).collect();
    let mut chained = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
    let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_layer_names(layers);
    // SAFETY: the structures above live until the call returns, and the names of layers end with a zero.
    unsafe { entry.create_instance(&info.push_next(&mut chained), None) }
}

/// A color attachment, and a pipeline that draws into it.
fn scene(device: &ash::Device) -> DrawScene {
    let format = vk::Format::R8G8B8A8_UNORM;
    let stage = |code: &[u8], stage| {
        let words = ash::util::read_spv(&mut std::io::Cursor::new(code)).expect("a module");
        let info = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: `words` is what the compiler made of a shader, and lives until the call returns.
        let module = unsafe { device.create_shader_module(&info, None) }.expect("the null driver makes modules");
        vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(c"main")
    };
    let stages = [
        stage(include_bytes!("../../../dev/samples/shaders/corner.vert.spv"), vk::ShaderStageFlags::VERTEX),
        stage(include_bytes!("../../../dev/samples/shaders/green.frag.spv"), vk::ShaderStageFlags::FRAGMENT),
    ];
    let image = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: 256, height: 256, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let range =
        vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR).level_count(1).layer_count(1);
    // SAFETY: the structures live until their calls return, image and buffer are new, and their memory is larger than
    // they need and kept to the end of the process.
    unsafe {
        let image = device.create_image(&image, None).expect("the null driver makes images");
        let size = vk::MemoryAllocateInfo::default().allocation_size(1 << 20);
        let memory = device.allocate_memory(&size, None).expect("the null driver has memory");
        device.bind_image_memory(image, memory, 0).expect("it can be bound");
        let view = vk::ImageViewCreateInfo::default().image(image).view_type(vk::ImageViewType::TYPE_2D);
        let view = device.create_image_view(&view.format(format).subresource_range(range), None);
        let info = vk::BufferCreateInfo::default().size(FRAME * 3 * VERTEX_BYTES);
        let vertices = device.create_buffer(&info.usage(vk::BufferUsageFlags::VERTEX_BUFFER), None);
        let vertices = vertices.expect("the null driver makes buffers");
        device.bind_buffer_memory(vertices, memory, 1 << 19).expect("it can be bound");
        let pipeline = pipeline(device, &stages, format);
        DrawScene { view: view.expect("the null driver makes views"), pipeline, vertices }
    }
}

fn pipeline(
    device: &ash::Device,
    stages: &[vk::PipelineShaderStageCreateInfo<'_>],
    format: vk::Format,
) -> vk::Pipeline {
    let bindings = [vk::VertexInputBindingDescription::default().stride(VERTEX_BYTES as u32)];
    let attributes = [vk::VertexInputAttributeDescription::default().format(vk::Format::R32G32_SFLOAT)];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default()
        .vertex_binding_descriptions(&bindings)
        .vertex_attribute_descriptions(&attributes);
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
    // SAFETY: the structures above live until their calls return, and the modules to the end of the process.
    unsafe {
        let layout = device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default(), None);
        let info = vk::GraphicsPipelineCreateInfo::default()
            .stages(stages)
            .vertex_input_state(&vertices)
            .input_assembly_state(&assembly)
            .viewport_state(&viewports)
            .rasterization_state(&raster)
            .multisample_state(&samples)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .layout(layout.expect("the null driver makes layouts"))
            .push_next(&mut rendering);
        let made = device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None);
        made.unwrap_or_else(|it| panic!("{:?}", it.1))[0]
    }
}
