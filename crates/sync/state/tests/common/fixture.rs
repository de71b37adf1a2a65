//! An application in which every command has objects to access: buffers 1 to 6, images 1 to 3, depth image 4,
//! pipelines.
//!
//! [`unsynchronized_resources`] writes to all of them before the command, with and without a barrier between.

use std::collections::BTreeSet;

use lavascope_abi::*;
use lavascope_state::{Collector, DescriptorUse, ShaderInterface, Tracker};
use lavascope_sync_ir::{Command as Recorded, ProgramLocation};

use super::*;

pub(crate) const BUFFER: u64 = 4096;
pub(crate) const EXTENT: [u32; 2] = [16, 16];
/// The resources of images. The resource of a buffer is its serial number minus one.
pub(crate) const IMAGES: [u32; 3] = [6, 7, 8];
pub(crate) const DEPTH: u32 = 9;

pub(crate) fn fixture() -> App<Collector> {
    fixture_with(ShaderInterface { outputs: 1, ..ShaderInterface::default() })
}

/// The application with another fragment shader.
pub(crate) fn fixture_with(fragment: ShaderInterface) -> App<Collector> {
    let storage = DescriptorUse { writes: true, ..DescriptorUse::new(0, 0) };
    let shaders = TestShaders(vec![
        ShaderInterface { inputs: 1, ..ShaderInterface::default() },
        fragment,
        ShaderInterface { descriptors: vec![storage], ..ShaderInterface::default() },
    ]);
    let mut app = App::with_tracker(Tracker::with_reflection(Collector::default(), Box::new(shaders)));
    for serial in 1..7 {
        app.make_buffer(serial, BUFFER, serial * BUFFER);
    }
    for serial in 1..4 {
        app.make_image(serial, Format::R8G8B8A8_UNORM, EXTENT, 1, (1 << 20) + serial * 4096);
    }
    app.make_image(4, Format::D32_SFLOAT, EXTENT, 1, 1 << 21);
    (0..3).for_each(|it| app.make_shader(it, it as u32));
    app.make_compute_pipeline(2, 2);
    make_drawing_pipeline(&mut app, 1, BlendOptions::default());
    make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS)]);
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(4, 0, WHOLE_SIZE)]);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

/// How a pipeline uses its color attachment.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlendOptions {
    pub(crate) is_blended: bool,
    /// Input attachments are read in rasterization order.
    pub(crate) is_ordered: bool,
}

/// A pipeline with one color attachment, depth, and a vertex binding with a stride of 16 bytes.
pub(crate) fn make_drawing_pipeline(app: &mut App<Collector>, serial: u64, how: BlendOptions) {
    let stages = [stage(ShaderStageFlagBits::VERTEX, 0), stage(ShaderStageFlagBits::FRAGMENT, 1)];
    let binding = VertexInputBindingDescription { binding: 0, stride: 16, input_rate: VertexInputRate::VERTEX };
    let attribute = VertexInputAttributeDescription {
        format: Format::R32G32B32A32_SFLOAT,
        ..VertexInputAttributeDescription::zeroed()
    };
    let vertex = PipelineVertexInputStateCreateInfo {
        vertex_binding_description_count: 1,
        p_vertex_binding_descriptions: Ptr::to(&binding),
        vertex_attribute_description_count: 1,
        p_vertex_attribute_descriptions: Ptr::to(&attribute),
        ..PipelineVertexInputStateCreateInfo::zeroed()
    };
    let blend = PipelineColorBlendAttachmentState {
        blend_enable: Bool32(u32::from(how.is_blended)),
        color_write_mask: ColorComponentFlags(0xf),
        ..PipelineColorBlendAttachmentState::zeroed()
    };
    let blending = PipelineColorBlendStateCreateInfo {
        flags: PipelineColorBlendStateCreateFlags(u32::from(how.is_ordered)),
        attachment_count: 1,
        p_attachments: Ptr::to(&blend),
        ..PipelineColorBlendStateCreateInfo::zeroed()
    };
    let depth = PipelineDepthStencilStateCreateInfo {
        depth_test_enable: Bool32(1),
        ..PipelineDepthStencilStateCreateInfo::zeroed()
    };
    let assembly = PipelineInputAssemblyStateCreateInfo {
        topology: PrimitiveTopology::TRIANGLE_LIST,
        ..PipelineInputAssemblyStateCreateInfo::zeroed()
    };
    let dynamic = PipelineDynamicStateCreateInfo::zeroed();
    app.make_graphics_pipeline(
        serial,
        &GraphicsPipelineCreateInfo {
            stage_count: 2,
            p_stages: Ptr::to_slice(&stages),
            p_vertex_input_state: Ptr::to(&vertex),
            p_input_assembly_state: Ptr::to(&assembly),
            p_viewport_state: Ptr::to(&PipelineViewportStateCreateInfo::zeroed()),
            p_rasterization_state: Ptr::to(&PipelineRasterizationStateCreateInfo::zeroed()),
            p_multisample_state: Ptr::to(&PipelineMultisampleStateCreateInfo::zeroed()),
            p_depth_stencil_state: Ptr::to(&depth),
            p_color_blend_state: Ptr::to(&blending),
            p_dynamic_state: Ptr::to(&dynamic),
            render_pass: render_pass(3),
            ..GraphicsPipelineCreateInfo::zeroed()
        },
    );
}

/// Begins rendering to color image 1 and depth image 4, with vertices from buffer 2 and indices from buffer 3.
pub(crate) fn begin_drawing(app: &mut App<Collector>, pipeline: u64) {
    let color = RenderingAttachmentInfo {
        image_view: image_view(1),
        load_op: AttachmentLoadOp::LOAD,
        ..RenderingAttachmentInfo::zeroed()
    };
    let depth = RenderingAttachmentInfo { image_view: image_view(4), ..color };
    let render_area = Rect2D { extent: Extent2D { width: EXTENT[0], height: EXTENT[1] }, ..Rect2D::zeroed() };
    let info = RenderingInfo {
        render_area,
        layer_count: 1,
        color_attachment_count: 1,
        p_color_attachments: Ptr::to(&color),
        p_depth_attachment: Ptr::to(&depth),
        ..RenderingInfo::zeroed()
    };
    record!(app, CmdBeginRendering, CmdBeginRenderingParams { p_rendering_info: Ptr::to(&info) });
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, pipeline);
    record!(
        app,
        CmdBindVertexBuffers,
        CmdBindVertexBuffersParams {
            first_binding: 0,
            binding_count: 1,
            p_buffers: Ptr::to(&buffer(2)),
            p_offsets: Ptr::to(&0),
        }
    );
    record!(
        app,
        CmdBindIndexBuffer,
        CmdBindIndexBufferParams { buffer: buffer(3), offset: 0, index_type: IndexType::UINT16 }
    );
}

pub(crate) fn end_drawing(app: &mut App<Collector>) {
    record!(app, CmdEndRendering, CmdEndRenderingParams {});
}

/// Writes to every buffer and every image.
pub(crate) fn write_all(app: &mut App<Collector>) {
    for serial in 1..7 {
        record!(
            app,
            CmdFillBuffer,
            CmdFillBufferParams { dst_buffer: buffer(serial), dst_offset: 0, size: WHOLE_SIZE, data: 0 }
        );
    }
    for serial in 1..4 {
        record!(
            app,
            CmdClearColorImage,
            CmdClearColorImageParams {
                image: image(serial),
                image_layout: ImageLayout::GENERAL,
                p_color: Ptr::to(&ClearColorValue::zeroed()),
                range_count: 1,
                p_ranges: Ptr::to(&whole_range(ImageAspectFlags::COLOR)),
            }
        );
    }
    record!(
        app,
        CmdClearDepthStencilImage,
        CmdClearDepthStencilImageParams {
            image: image(4),
            image_layout: ImageLayout::GENERAL,
            p_depth_stencil: Ptr::to(&ClearDepthStencilValue::zeroed()),
            range_count: 1,
            p_ranges: Ptr::to(&whole_range(ImageAspectFlags::DEPTH)),
        }
    );
}

/// The resources with hazards after writes to everything. Checks that a barrier between prevents all of them.
pub(crate) fn unsynchronized_resources(
    make: impl Fn() -> App<Collector>,
    commands: impl Fn(&mut App<Collector>),
) -> Vec<u32> {
    let run = |has_barrier: bool| {
        let mut app = make();
        app.begin(2);
        write_all(&mut app);
        if has_barrier {
            let (stages, access) = (PipelineStageFlags2::ALL_COMMANDS, AccessFlags2(0x18000));
            app.memory_barrier2(
                2,
                MemoryBarrier2 {
                    src_stage_mask: stages,
                    src_access_mask: access,
                    dst_stage_mask: stages,
                    dst_access_mask: access,
                    ..MemoryBarrier2::zeroed()
                },
            );
        }
        commands(&mut app);
        app.end(2);
        app.submit(0, 2, Fence(0));
        app
    };
    let with = run(true);
    assert_eq!(lavascope_engine::check(with.program()), [], "a barrier orders everything");
    let without = run(false);
    let program = without.program();
    let is_action = |at: &ProgramLocation| match at {
        ProgramLocation::Command(at) => {
            let command = &program.command_buffers[0].commands[at.path[0] as usize];
            matches!(command, Recorded::Action(_))
        }
        ProgramLocation::Step(_) => false,
    };
    let found = lavascope_engine::check(program).into_iter().filter(|it| is_action(&it.at)).map(|it| it.resource.0);
    found.collect::<BTreeSet<_>>().into_iter().collect()
}
