//! An application in C memory: its calls become records for a tracker.

#![allow(dead_code, reason = "each test uses some of it")]

use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer, outputs_image};
use lavascope_record::check;
use lavascope_sim::SyntheticObjects;
use lavascope_state::{Collector, Reflect, ShaderCode, ShaderInterface, Tracker, TrackerListener};
use lavascope_sync_ir::Program;

mod descriptor_sets;
mod fixture;

#[allow(unused_imports, reason = "each test uses some of it")]
pub(crate) use {descriptor_sets::*, fixture::*};

/// Makes a device call: the command, the type of its parameters, and all parameters except the device.
macro_rules! call {
    ($app:expr, $command:ident, $params:ident { $($field:ident: $value:expr),* $(,)? }) => {
        $app.call(lavascope_abi::Command::$command, &$params { device: device(DEVICE), $($field: $value),* })
    };
}

/// Creates an object with a create info.
macro_rules! create {
    ($app:expr, $command:ident, $params:ident, $info:expr, $made:ident: $handle:expr) => {
        call!(
            $app,
            $command,
            $params { p_create_info: Ptr::to(&$info), p_allocator: Ptr::NULL, $made: Ptr::to(&$handle) }
        )
    };
}

/// Records a command into command buffer 2.
#[allow(unused_macros, reason = "each test uses some of it")]
macro_rules! record {
    ($app:expr, $command:ident, $params:ident { $($field:ident: $value:expr),* $(,)? }) => {
        $app.call(lavascope_abi::Command::$command, &$params {
            command_buffer: command_buffer(2),
            $($field: $value),*
        })
    };
}

#[allow(unused_imports, reason = "each test uses some of it")]
pub(crate) use {call, create, record};

/// Four bytes per texel, with linear tiling.
pub(crate) fn linear_image(extent: [u32; 2]) -> ImageCreateInfo {
    ImageCreateInfo {
        image_type: ImageType::_2D,
        format: Format::R8G8B8A8_UNORM,
        extent: Extent3D { width: extent[0], height: extent[1], depth: 1 },
        mip_levels: 1,
        array_layers: 1,
        tiling: ImageTiling::LINEAR,
        ..ImageCreateInfo::zeroed()
    }
}

/// The handle of an object.
pub(crate) fn handle(ty: HandleType, serial: u64) -> u64 {
    SyntheticObjects::handle_of(ty, serial)
}

macro_rules! handles {
    ($($name:ident, $ty:ident;)*) => { $(
        pub(crate) fn $name(serial: u64) -> $ty {
            $ty(handle(HandleType::$ty, serial))
        }
    )* };
}

handles! {
    device, Device;
    physical_device, PhysicalDevice;
    queue, Queue;
    memory, DeviceMemory;
    buffer, Buffer;
    image, Image;
    image_view, ImageView;
    command_pool, CommandPool;
    command_buffer, CommandBuffer;
    fence, Fence;
    semaphore, Semaphore;
    event, Event;
    swapchain, SwapchainKHR;
    render_pass, RenderPass;
    framebuffer, Framebuffer;
    pipeline, Pipeline;
    pipeline_layout, PipelineLayout;
    shader_module, ShaderModule;
    set_layout, DescriptorSetLayout;
    descriptor_pool, DescriptorPool;
    descriptor_set, DescriptorSet;
    template, DescriptorUpdateTemplate;
    query_pool, QueryPool;
    acceleration_structure, AccelerationStructureKHR;
    structure_nv, AccelerationStructureNV;
    micromap, MicromapEXT;
    tensor, TensorARM;
    flow_session, OpticalFlowSessionNV;
    commands_layout, IndirectCommandsLayoutEXT;
    execution_set, IndirectExecutionSetEXT;
}

/// An application with one device, two queues, a memory and a command pool.
pub(crate) struct App<L> {
    pub(crate) tracker: Tracker<L>,
    /// Whether each command is recorded, cancelled, and recorded again.
    pub(crate) cancels_commands: bool,
    calls: u64,
}

pub(crate) const DEVICE: u64 = 1;
/// The only memory; all resources have places in it.
pub(crate) const MEMORY: u64 = 1;
const GRAPHICS: u32 = 7;

impl App<Collector> {
    pub(crate) fn collecting() -> App<Collector> {
        App::new(Collector::default())
    }

    pub(crate) fn program(&self) -> &Program {
        let id = SyntheticObjects::id_of(HandleType::Device, device(DEVICE).0);
        &self.tracker.listener.devices[&id].program
    }
}

impl<L: TrackerListener> App<L> {
    pub(crate) fn new(listener: L) -> App<L> {
        App::with_tracker(Tracker::new(listener))
    }

    pub(crate) fn with_tracker(tracker: Tracker<L>) -> App<L> {
        App::with_features(tracker, Ptr::NULL)
    }

    /// With feature structures chained to the device create info.
    pub(crate) fn with_features(tracker: Tracker<L>, features: Ptr<Opaque>) -> App<L> {
        let mut app = App { tracker, cancels_commands: true, calls: 0 };
        app.make_device(features);
        app.make_memory();
        let info = CommandPoolCreateInfo::zeroed();
        create!(app, CreateCommandPool, CreateCommandPoolParams, info, p_command_pool: command_pool(1));
        app
    }

    /// Makes a call that succeeds.
    pub(crate) fn call<P: Structure>(&mut self, command: Command, params: &P) {
        self.call_with(command, params, 0);
    }

    /// Makes a call that returns `result`.
    pub(crate) fn call_with<P: Structure>(&mut self, command: Command, params: &P, result: u64) {
        let desc = command.desc();
        assert!(std::ptr::eq(desc.parameters, P::layout()), "the parameters are of another command");
        self.calls += 1;
        let params: *const u8 = std::ptr::from_ref(params).cast();
        let mut packer = Packer::new(&SyntheticObjects, &SyntheticObjects);
        let mut stream = RecordBuffer::default();
        // SAFETY: the assertion checks that the parameters belong to this command. The borrow keeps them alive, and
        // tests keep what they point to.
        match check(unsafe { packer.pack_parameters(&mut stream, command, params, self.calls) }) {
            Ok(record) => {
                assert!(self.tracker.track_parameters(1, record), "nobody takes {command:?}");
                // A cancelled command has no effect: every test checks only the state after the second recording.
                if desc.name.starts_with("vkCmd") && self.cancels_commands {
                    self.tracker.cancel_command(1, record);
                    assert!(self.tracker.track_parameters(1, record), "nobody takes {command:?}");
                }
            }
            Err(error) => panic!("{error}"),
        }
        let (mut image, mut stream) = (Vec::new(), RecordBuffer::default());
        // SAFETY: the parameters belong to this command, which returned `result`.
        if unsafe { outputs_image(desc, params, result, &mut image) } {
            // SAFETY: `outputs_image` gathered the outputs of this command from parameters that are still borrowed.
            let words = unsafe { packer.pack_outputs(&mut stream, command, image.as_ptr().cast(), self.calls) };
            match check(words.unwrap_or_default()) {
                Ok(record) => assert!(self.tracker.track_outputs(1, record), "nobody takes {command:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn make_device(&mut self, features: Ptr<Opaque>) {
        let family = QueueFamilyProperties { queue_flags: QueueFlags(GRAPHICS), ..QueueFamilyProperties::zeroed() };
        self.call(
            Command::GetPhysicalDeviceQueueFamilyProperties,
            &GetPhysicalDeviceQueueFamilyPropertiesParams {
                physical_device: physical_device(1),
                p_queue_family_property_count: Ptr::to(&1),
                p_queue_family_properties: Ptr::to(&family),
            },
        );
        let priorities = [1.0, 1.0];
        let queues = DeviceQueueCreateInfo {
            queue_count: 2,
            p_queue_priorities: Ptr::to_slice(&priorities),
            ..DeviceQueueCreateInfo::zeroed()
        };
        let info = DeviceCreateInfo {
            p_next: features,
            queue_create_info_count: 1,
            p_queue_create_infos: Ptr::to(&queues),
            ..DeviceCreateInfo::zeroed()
        };
        self.call(
            Command::CreateDevice,
            &CreateDeviceParams {
                physical_device: physical_device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_device: Ptr::to(&device(DEVICE)),
            },
        );
        for index in 0..2 {
            self.call(
                Command::GetDeviceQueue,
                &GetDeviceQueueParams {
                    device: device(DEVICE),
                    queue_family_index: 0,
                    queue_index: index,
                    p_queue: Ptr::to(&queue(u64::from(index))),
                },
            );
        }
    }

    fn make_memory(&mut self) {
        let info = MemoryAllocateInfo { allocation_size: 1 << 30, ..MemoryAllocateInfo::zeroed() };
        self.call(
            Command::AllocateMemory,
            &AllocateMemoryParams {
                device: device(DEVICE),
                p_allocate_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_memory: Ptr::to(&memory(MEMORY)),
            },
        );
    }

    pub(crate) fn make_buffer(&mut self, serial: u64, size: u64, offset: u64) {
        let info = BufferCreateInfo { size, ..BufferCreateInfo::zeroed() };
        self.call(
            Command::CreateBuffer,
            &CreateBufferParams {
                device: device(DEVICE),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_buffer: Ptr::to(&buffer(serial)),
            },
        );
        self.call(
            Command::BindBufferMemory,
            &BindBufferMemoryParams {
                device: device(DEVICE),
                buffer: buffer(serial),
                memory: memory(MEMORY),
                memory_offset: offset,
            },
        );
    }

    /// A 2D image, and a view of all of it with the same serial number.
    pub(crate) fn make_image(&mut self, serial: u64, format: Format, extent: [u32; 2], layers: u32, offset: u64) {
        let info = ImageCreateInfo {
            image_type: ImageType::_2D,
            format,
            extent: Extent3D { width: extent[0], height: extent[1], depth: 1 },
            mip_levels: 1,
            array_layers: layers,
            ..ImageCreateInfo::zeroed()
        };
        self.call(
            Command::CreateImage,
            &CreateImageParams {
                device: device(DEVICE),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_image: Ptr::to(&image(serial)),
            },
        );
        self.call(
            Command::BindImageMemory,
            &BindImageMemoryParams {
                device: device(DEVICE),
                image: image(serial),
                memory: memory(MEMORY),
                memory_offset: offset,
            },
        );
        self.make_view(serial, serial, format, aspects(format));
    }

    /// A view of a whole image.
    pub(crate) fn make_view(&mut self, serial: u64, of: u64, format: Format, aspects: ImageAspectFlags) {
        let info = ImageViewCreateInfo {
            image: image(of),
            view_type: ImageViewType::_2D_ARRAY,
            format,
            subresource_range: whole_range(aspects),
            ..ImageViewCreateInfo::zeroed()
        };
        self.call(
            Command::CreateImageView,
            &CreateImageViewParams {
                device: device(DEVICE),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_view: Ptr::to(&image_view(serial)),
            },
        );
    }

    pub(crate) fn make_command_buffer(&mut self, serial: u64, level: CommandBufferLevel) {
        let info = CommandBufferAllocateInfo {
            command_pool: command_pool(1),
            level,
            command_buffer_count: 1,
            ..CommandBufferAllocateInfo::zeroed()
        };
        self.call(
            Command::AllocateCommandBuffers,
            &AllocateCommandBuffersParams {
                device: device(DEVICE),
                p_allocate_info: Ptr::to(&info),
                p_command_buffers: Ptr::to(&command_buffer(serial)),
            },
        );
    }

    /// Begins a primary command buffer. Allocates it if it does not exist.
    pub(crate) fn begin(&mut self, serial: u64) {
        self.call(
            Command::BeginCommandBuffer,
            &BeginCommandBufferParams {
                command_buffer: command_buffer(serial),
                p_begin_info: Ptr::to(&CommandBufferBeginInfo::zeroed()),
            },
        );
    }

    pub(crate) fn end(&mut self, serial: u64) {
        self.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer: command_buffer(serial) });
    }

    pub(crate) fn submit(&mut self, queue_index: u64, serial: u64, signaled: Fence) {
        let buffers = [command_buffer(serial)];
        let info =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to_slice(&buffers), ..SubmitInfo::zeroed() };
        self.call(
            Command::QueueSubmit,
            &QueueSubmitParams {
                queue: queue(queue_index),
                submit_count: 1,
                p_submits: Ptr::to(&info),
                fence: signaled,
            },
        );
    }

    pub(crate) fn copy_buffer(&mut self, commands: u64, src: u64, dst: u64, size: u64) {
        let region = BufferCopy { src_offset: 0, dst_offset: 0, size };
        self.call(
            Command::CmdCopyBuffer,
            &CmdCopyBufferParams {
                command_buffer: command_buffer(commands),
                src_buffer: buffer(src),
                dst_buffer: buffer(dst),
                region_count: 1,
                p_regions: Ptr::to(&region),
            },
        );
    }

    pub(crate) fn make_shader(&mut self, serial: u64, code: u32) {
        self.make_module(serial, &[code]);
    }

    pub(crate) fn make_module(&mut self, serial: u64, words: &[u32]) {
        let info = ShaderModuleCreateInfo {
            code_size: words.len() as u64 * 4,
            p_code: Ptr::to_slice(words),
            ..ShaderModuleCreateInfo::zeroed()
        };
        create!(self, CreateShaderModule, CreateShaderModuleParams, info, p_shader_module: shader_module(serial));
    }

    /// Reports the device address of a buffer.
    pub(crate) fn set_buffer_address(&mut self, serial: u64, address: u64) {
        let info = BufferDeviceAddressInfo { buffer: buffer(serial), ..BufferDeviceAddressInfo::zeroed() };
        let params = GetBufferDeviceAddressParams { device: device(DEVICE), p_info: Ptr::to(&info) };
        self.call_with(Command::GetBufferDeviceAddress, &params, address);
    }

    pub(crate) fn make_compute_pipeline(&mut self, serial: u64, module: u64) {
        let stage = stage(ShaderStageFlagBits::COMPUTE, module);
        let info = ComputePipelineCreateInfo { stage, ..ComputePipelineCreateInfo::zeroed() };
        self.call(
            Command::CreateComputePipelines,
            &CreateComputePipelinesParams {
                device: device(DEVICE),
                pipeline_cache: PipelineCache(0),
                create_info_count: 1,
                p_create_infos: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_pipelines: Ptr::to(&pipeline(serial)),
            },
        );
    }

    pub(crate) fn make_graphics_pipeline(&mut self, serial: u64, info: &GraphicsPipelineCreateInfo) {
        self.call(
            Command::CreateGraphicsPipelines,
            &CreateGraphicsPipelinesParams {
                device: device(DEVICE),
                pipeline_cache: PipelineCache(0),
                create_info_count: 1,
                p_create_infos: Ptr::to(info),
                p_allocator: Ptr::NULL,
                p_pipelines: Ptr::to(&pipeline(serial)),
            },
        );
    }

    pub(crate) fn bind_pipeline(&mut self, commands: u64, point: PipelineBindPoint, serial: u64) {
        self.call(
            Command::CmdBindPipeline,
            &CmdBindPipelineParams {
                command_buffer: command_buffer(commands),
                pipeline_bind_point: point,
                pipeline: pipeline(serial),
            },
        );
    }

    pub(crate) fn draw(&mut self, commands: u64, vertex_count: u32, first_vertex: u32) {
        self.call(
            Command::CmdDraw,
            &CmdDrawParams {
                command_buffer: command_buffer(commands),
                vertex_count,
                instance_count: 1,
                first_vertex,
                first_instance: 0,
            },
        );
    }

    pub(crate) fn memory_barrier2(&mut self, commands: u64, barrier: MemoryBarrier2) {
        let info = DependencyInfo {
            memory_barrier_count: 1,
            p_memory_barriers: Ptr::to(&barrier),
            ..DependencyInfo::zeroed()
        };
        self.call(
            Command::CmdPipelineBarrier2,
            &CmdPipelineBarrier2Params { command_buffer: command_buffer(commands), p_dependency_info: Ptr::to(&info) },
        );
    }
}

pub(crate) fn aspects(format: Format) -> ImageAspectFlags {
    match format {
        Format::D32_SFLOAT => ImageAspectFlags::DEPTH,
        Format::D24_UNORM_S8_UINT => ImageAspectFlags(ImageAspectFlags::DEPTH.0 | ImageAspectFlags::STENCIL.0),
        _ => ImageAspectFlags::COLOR,
    }
}

pub(crate) fn whole_range(aspect_mask: ImageAspectFlags) -> ImageSubresourceRange {
    ImageSubresourceRange {
        aspect_mask,
        base_mip_level: 0,
        level_count: REMAINING_MIP_LEVELS,
        base_array_layer: 0,
        layer_count: REMAINING_ARRAY_LAYERS,
    }
}

/// One layer of the first mip level.
pub(crate) fn one_layer() -> ImageSubresourceLayers {
    ImageSubresourceLayers { aspect_mask: ImageAspectFlags::COLOR, mip_level: 0, base_array_layer: 0, layer_count: 1 }
}

/// A pipeline stage with the entry point `main`.
pub(crate) fn stage(stage: ShaderStageFlagBits, module: u64) -> PipelineShaderStageCreateInfo {
    PipelineShaderStageCreateInfo {
        stage,
        module: shader_module(module),
        p_name: Ptr::new(c"main".as_ptr().expose_provenance() as u64),
        ..PipelineShaderStageCreateInfo::zeroed()
    }
}

/// The shaders of the tests. The first word of a shader's code is its position in the list.
pub(crate) struct TestShaders(pub(crate) Vec<ShaderInterface>);

impl Reflect for TestShaders {
    fn reflect(&self, code: &ShaderCode<'_>) -> Option<ShaderInterface> {
        assert_eq!(code.entry_point, "main");
        self.0.get(*code.words.first()? as usize).cloned()
    }
}

/// The words of a shader in `spirv/tests/shaders`.
pub(crate) fn words_of(name: &str) -> Vec<u32> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/spirv/tests/shaders");
    let bytes = std::fs::read(folder.join(name)).expect("a shader");
    bytes.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect()
}

/// The accesses of a recorded action command.
pub(crate) fn accesses(program: &Program, buffer: usize, index: usize) -> &[lavascope_sync_ir::Access] {
    match &program.command_buffers[buffer].commands[index] {
        lavascope_sync_ir::Command::Action(all) => all,
        other => panic!("{other:?}"),
    }
}

/// Accesses in short form: resource, stage and access.
pub(crate) fn access_summaries(all: &[lavascope_sync_ir::Access]) -> Vec<(u32, u64, u64)> {
    all.iter().map(|it| (it.resource.0, it.stage, it.access)).collect()
}
