//! Draws inside and outside of render passes: attachments from the graphics state, vertices from the parameters.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::{Collector, ShaderInterface, Tracker};
use lavascope_sync_ir::{Access, Area, Certainty, Command, HazardKind, LoadOp, RasterOrder, Region, StoreOp};

const COLOR_IMAGE: u64 = 1;
const DEPTH_IMAGE: u64 = 2;
const COLOR: u32 = 1;
const DEPTH: u32 = 2;
const COLOR_WRITE: (u32, u64, u64) = (COLOR, Stage::COLOR_ATTACHMENT_OUTPUT.0, Bits::COLOR_ATTACHMENT_WRITE.0);
const COLOR_READ: (u32, u64, u64) = (COLOR, Stage::COLOR_ATTACHMENT_OUTPUT.0, Bits::COLOR_ATTACHMENT_READ.0);
const LATE_WRITE: (u32, u64, u64) = (DEPTH, Stage::LATE_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE.0);
const LATE_READ: (u32, u64, u64) = (DEPTH, Stage::LATE_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_READ.0);
const EARLY_READ: (u32, u64, u64) = (DEPTH, Stage::EARLY_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_READ.0);
const VERTEX_READ: (u32, u64, u64) = (0, Stage::VERTEX_ATTRIBUTE_INPUT.0, Bits::VERTEX_ATTRIBUTE_READ.0);

/// Shader 0 is a vertex shader. Shader 1 writes color 0. Shader 2 has early tests and writes nothing.
fn app() -> App<Collector> {
    let vertex = ShaderInterface { inputs: 1, ..ShaderInterface::default() };
    let fragment = ShaderInterface { outputs: 1, ..ShaderInterface::default() };
    let early = ShaderInterface { has_early_tests: true, ..ShaderInterface::default() };
    let shaders = TestShaders(vec![vertex, fragment, early]);
    let mut app = App::with_tracker(Tracker::with_reflection(Collector::default(), Box::new(shaders)));
    app.make_buffer(1, 4096, 0);
    app.make_image(COLOR_IMAGE, Format::R8G8B8A8_UNORM, [64, 64], 1, 1 << 20);
    app.make_image(DEPTH_IMAGE, Format::D24_UNORM_S8_UINT, [64, 64], 1, 1 << 21);
    for module in 0..3 {
        app.make_shader(module, module as u32);
    }
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

#[derive(Clone, Copy)]
struct PipelineOptions {
    fragment: u64,
    is_blended: bool,
    depth_write: bool,
    write_mask: u32,
    is_depth_write_dynamic: bool,
    has_depth_test: bool,
    is_discarded: bool,
    cull_mode: CullModeFlags,
    topology: PrimitiveTopology,
    has_stencil_test: bool,
    stencil: StencilOp,
}

const PLAIN: PipelineOptions = PipelineOptions {
    fragment: 1,
    is_blended: false,
    depth_write: true,
    write_mask: 0xf,
    is_depth_write_dynamic: false,
    has_depth_test: true,
    is_discarded: false,
    cull_mode: CullModeFlags(0),
    topology: PrimitiveTopology::TRIANGLE_LIST,
    has_stencil_test: false,
    stencil: StencilOp::KEEP,
};

fn make_pipeline(app: &mut App<Collector>, serial: u64, options: PipelineOptions) {
    let stages = [stage(ShaderStageFlagBits::VERTEX, 0), stage(ShaderStageFlagBits::FRAGMENT, options.fragment)];
    let binding = VertexInputBindingDescription { binding: 0, stride: 16, input_rate: VertexInputRate::VERTEX };
    let attribute = |location, offset| VertexInputAttributeDescription {
        location,
        binding: 0,
        format: Format::R32G32_SFLOAT,
        offset,
    };
    // The shader does not read the second attribute.
    let attributes = [attribute(0, 4), attribute(1, 0)];
    let vertex = PipelineVertexInputStateCreateInfo {
        vertex_binding_description_count: 1,
        p_vertex_binding_descriptions: Ptr::to(&binding),
        vertex_attribute_description_count: 2,
        p_vertex_attribute_descriptions: Ptr::to_slice(&attributes),
        ..PipelineVertexInputStateCreateInfo::zeroed()
    };
    let blend = PipelineColorBlendAttachmentState {
        blend_enable: Bool32(u32::from(options.is_blended)),
        color_write_mask: ColorComponentFlags(options.write_mask),
        ..PipelineColorBlendAttachmentState::zeroed()
    };
    let blending = PipelineColorBlendStateCreateInfo {
        attachment_count: 1,
        p_attachments: Ptr::to(&blend),
        ..PipelineColorBlendStateCreateInfo::zeroed()
    };
    let depth = depth_state(options);
    let states = [DynamicState::DEPTH_WRITE_ENABLE];
    let dynamic = PipelineDynamicStateCreateInfo {
        dynamic_state_count: u32::from(options.is_depth_write_dynamic),
        p_dynamic_states: Ptr::to_slice(&states),
        ..PipelineDynamicStateCreateInfo::zeroed()
    };
    let raster = PipelineRasterizationStateCreateInfo {
        rasterizer_discard_enable: Bool32(u32::from(options.is_discarded)),
        cull_mode: options.cull_mode,
        ..PipelineRasterizationStateCreateInfo::zeroed()
    };
    let multisample = PipelineMultisampleStateCreateInfo::zeroed();
    let assembly = PipelineInputAssemblyStateCreateInfo {
        topology: options.topology,
        ..PipelineInputAssemblyStateCreateInfo::zeroed()
    };
    let viewport = PipelineViewportStateCreateInfo::zeroed();
    // In the model of `sim`, subpass 0 of render pass 3 uses color and depth.
    app.make_graphics_pipeline(
        serial,
        &GraphicsPipelineCreateInfo {
            stage_count: 2,
            p_stages: Ptr::to_slice(&stages),
            p_vertex_input_state: Ptr::to(&vertex),
            p_input_assembly_state: Ptr::to(&assembly),
            p_viewport_state: Ptr::to(&viewport),
            p_rasterization_state: Ptr::to(&raster),
            p_multisample_state: Ptr::to(&multisample),
            p_depth_stencil_state: Ptr::to(&depth),
            p_color_blend_state: Ptr::to(&blending),
            p_dynamic_state: Ptr::to(&dynamic),
            render_pass: render_pass(3),
            ..GraphicsPipelineCreateInfo::zeroed()
        },
    );
}

fn depth_state(options: PipelineOptions) -> PipelineDepthStencilStateCreateInfo {
    PipelineDepthStencilStateCreateInfo {
        depth_test_enable: Bool32(u32::from(options.has_depth_test)),
        stencil_test_enable: Bool32(u32::from(options.has_stencil_test)),
        front: StencilOpState {
            pass_op: options.stencil,
            compare_op: CompareOp::ALWAYS,
            write_mask: 1,
            ..StencilOpState::zeroed()
        },
        depth_write_enable: Bool32(u32::from(options.depth_write)),
        ..PipelineDepthStencilStateCreateInfo::zeroed()
    }
}

fn make_pass(app: &mut App<Collector>) {
    let attachment = |format, layout| AttachmentDescription {
        format,
        load_op: AttachmentLoadOp::CLEAR,
        store_op: AttachmentStoreOp::STORE,
        stencil_load_op: AttachmentLoadOp::NONE,
        stencil_store_op: AttachmentStoreOp::NONE,
        final_layout: layout,
        ..AttachmentDescription::zeroed()
    };
    let (color, depth) = (ImageLayout::COLOR_ATTACHMENT_OPTIMAL, ImageLayout::DEPTH_STENCIL_ATTACHMENT_OPTIMAL);
    let attachments = [attachment(Format::R8G8B8A8_UNORM, color), attachment(Format::D24_UNORM_S8_UINT, depth)];
    let colors = [
        AttachmentReference { attachment: ATTACHMENT_UNUSED, layout: ImageLayout::UNDEFINED },
        AttachmentReference { attachment: 0, layout: color },
    ];
    let depth = AttachmentReference { attachment: 1, layout: depth };
    let subpass = SubpassDescription {
        color_attachment_count: 2,
        p_color_attachments: Ptr::to_slice(&colors),
        p_depth_stencil_attachment: Ptr::to(&depth),
        ..SubpassDescription::zeroed()
    };
    let info = RenderPassCreateInfo {
        attachment_count: 2,
        p_attachments: Ptr::to_slice(&attachments),
        subpass_count: 1,
        p_subpasses: Ptr::to(&subpass),
        ..RenderPassCreateInfo::zeroed()
    };
    app.call(
        Api::CreateRenderPass,
        &CreateRenderPassParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_render_pass: Ptr::to(&render_pass(3)),
        },
    );
    let views = [image_view(COLOR_IMAGE), image_view(DEPTH_IMAGE)];
    let info = FramebufferCreateInfo {
        render_pass: render_pass(3),
        attachment_count: 2,
        p_attachments: Ptr::to_slice(&views),
        width: 64,
        height: 64,
        layers: 1,
        ..FramebufferCreateInfo::zeroed()
    };
    app.call(
        Api::CreateFramebuffer,
        &CreateFramebufferParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_framebuffer: Ptr::to(&framebuffer(1)),
        },
    );
}

fn area() -> Rect2D {
    Rect2D { offset: Offset2D { x: 8, y: 0 }, extent: Extent2D { width: 32, height: 16 } }
}

const AREA: Area = Area { offset: [8, 0, 0], extent: [32, 16, 1] };

fn begin_pass(app: &mut App<Collector>, commands: u64) {
    let info = RenderPassBeginInfo {
        render_pass: render_pass(3),
        framebuffer: framebuffer(1),
        render_area: area(),
        ..RenderPassBeginInfo::zeroed()
    };
    app.call(
        Api::CmdBeginRenderPass,
        &CmdBeginRenderPassParams {
            command_buffer: command_buffer(commands),
            p_render_pass_begin: Ptr::to(&info),
            contents: SubpassContents::INLINE,
        },
    );
}

fn begin_rendering(app: &mut App<Collector>, commands: u64) {
    begin_rendering_to(app, commands, COLOR_IMAGE, Some(DEPTH_IMAGE));
}

fn begin_rendering_to(app: &mut App<Collector>, commands: u64, color: u64, depth: Option<u64>) {
    let attachment = |view| RenderingAttachmentInfo {
        image_view: image_view(view),
        load_op: AttachmentLoadOp::LOAD,
        store_op: AttachmentStoreOp::STORE,
        ..RenderingAttachmentInfo::zeroed()
    };
    let (color, depth) = (attachment(color), depth.map(attachment));
    let p_depth = depth.as_ref().map_or(Ptr::NULL, Ptr::to);
    let info = RenderingInfo {
        render_area: area(),
        layer_count: 1,
        color_attachment_count: 1,
        p_color_attachments: Ptr::to(&color),
        p_depth_attachment: p_depth,
        p_stencil_attachment: p_depth,
        ..RenderingInfo::zeroed()
    };
    app.call(
        Api::CmdBeginRendering,
        &CmdBeginRenderingParams { command_buffer: command_buffer(commands), p_rendering_info: Ptr::to(&info) },
    );
}

fn end_rendering(app: &mut App<Collector>, commands: u64) {
    app.call(Api::CmdEndRendering, &CmdEndRenderingParams { command_buffer: command_buffer(commands) });
}

fn bind_vertices(app: &mut App<Collector>, commands: u64, offset: u64) {
    app.call(
        Api::CmdBindVertexBuffers,
        &CmdBindVertexBuffersParams {
            command_buffer: command_buffer(commands),
            first_binding: 0,
            binding_count: 1,
            p_buffers: Ptr::to(&buffer(1)),
            p_offsets: Ptr::to(&offset),
        },
    );
}

/// The accesses of one draw inside rendering.
fn drawn(options: PipelineOptions, before: impl Fn(&mut App<Collector>)) -> Vec<(u32, u64, u64)> {
    let mut app = app();
    make_pipeline(&mut app, 1, options);
    app.begin(2);
    begin_rendering(&mut app, 2);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    before(&mut app);
    app.draw(2, 3, 0);
    access_summaries(accesses(app.program(), 0, 1))
}

#[test]
fn a_draw_touches_attachments_as_its_state_says() {
    assert_eq!(drawn(PLAIN, |_| ()), [LATE_WRITE, COLOR_WRITE]);
    assert_eq!(drawn(PipelineOptions { is_blended: true, ..PLAIN }, |_| ()), [LATE_WRITE, COLOR_READ, COLOR_WRITE]);
    assert_eq!(drawn(PipelineOptions { depth_write: false, ..PLAIN }, |_| ()), [LATE_READ, COLOR_WRITE]);
    assert_eq!(drawn(PipelineOptions { write_mask: 0, ..PLAIN }, |_| ()), [LATE_WRITE]);
    assert_eq!(drawn(PipelineOptions { fragment: 2, depth_write: false, ..PLAIN }, |_| ()), [EARLY_READ]);
}

#[test]
fn early_tests_discarding_and_disabled_tests_count() {
    let early = PipelineOptions { fragment: 2, ..PLAIN };
    let early_write = (DEPTH, Stage::EARLY_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE.0);
    assert_eq!(drawn(early, |_| ()), [early_write]);
    assert_eq!(drawn(PipelineOptions { is_discarded: true, ..PLAIN }, |_| ()), []);
    assert_eq!(drawn(PipelineOptions { has_depth_test: false, ..PLAIN }, |_| ()), [COLOR_WRITE]);
}

#[test]
fn stencil_is_read_or_written_by_its_operations() {
    let only = PipelineOptions { has_depth_test: false, write_mask: 0, has_stencil_test: true, ..PLAIN };
    assert_eq!(drawn(only, |_| ()), [LATE_READ]);
    assert_eq!(drawn(PipelineOptions { stencil: StencilOp::REPLACE, ..only }, |_| ()), [LATE_WRITE]);
}

#[test]
fn polygons_that_are_all_culled_touch_nothing() {
    let culled = PipelineOptions { cull_mode: CullModeFlags::FRONT_AND_BACK, ..PLAIN };
    assert_eq!(drawn(culled, |_| ()), []);
    let lines = PipelineOptions { topology: PrimitiveTopology::LINE_LIST, ..culled };
    assert_eq!(drawn(lines, |_| ()), [LATE_WRITE, COLOR_WRITE]);
}

#[test]
fn masked_components_are_not_written() {
    let mut app = app();
    make_pipeline(&mut app, 1, PipelineOptions { write_mask: 5, ..PLAIN });
    app.begin(2);
    begin_rendering(&mut app, 2);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.draw(2, 3, 0);
    let Region::Image(region) = &accesses(app.program(), 0, 1)[1].region else { panic!("no image") };
    assert_eq!(region.components, lavascope_sync_ir::Components(5));
}

/// The writes of a draw through a view.
fn written_through(app: &mut App<Collector>, view: u64, write_mask: u32) -> Vec<Access> {
    make_pipeline(app, 1, PipelineOptions { write_mask, ..PLAIN });
    app.begin(2);
    begin_rendering_to(app, 2, view, None);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.draw(2, 3, 0);
    end_rendering(app, 2);
    app.end(2);
    accesses(app.program(), 0, 1).iter().filter(|it| it.access == COLOR_WRITE.2).cloned().collect()
}

fn components(all: &[Access]) -> Vec<(u8, Certainty)> {
    let of = |access: &Access| match &access.region {
        Region::Image(region) => (region.components.0, access.certainty),
        Region::Buffer(_) => panic!("no image"),
    };
    all.iter().map(of).collect()
}

/// A write mask refers to the components of the view, for every format of the image.
#[test]
fn masked_components_of_a_view_are_those_of_its_format() {
    use Certainty::{Certain, Somewhere};
    let written = |format, mask| {
        let mut app = app();
        app.make_view(9, COLOR_IMAGE, format, ImageAspectFlags::COLOR);
        components(&written_through(&mut app, 9, mask))
    };
    assert_eq!(written(Format::R8G8B8A8_SRGB, 5), [(5, Certain)]);
    assert_eq!(written(Format::B8G8R8A8_UNORM, 9), [(12, Certain)]);
    assert_eq!(written(Format::R32_UINT, 1), [(15, Certain)]);
    assert_eq!(written(Format::R32_UINT, 14), []);
    assert_eq!(written(Format::A2R10G10B10_UNORM_PACK32, 4), [(3, Somewhere)]);
}

/// Components of a linear image are not tracked separately.
#[test]
fn masked_components_of_bytes_are_somewhere() {
    let written = |mask| {
        let mut app = app();
        let info = linear_image([64, 64]);
        create!(app, CreateImage, CreateImageParams, info, p_image: image(9));
        let params = BindImageMemoryParams {
            device: device(DEVICE),
            image: image(9),
            memory: memory(MEMORY),
            memory_offset: 1 << 22,
        };
        app.call(Api::BindImageMemory, &params);
        app.make_view(9, 9, Format::R8G8B8A8_UNORM, ImageAspectFlags::COLOR);
        components(&written_through(&mut app, 9, mask))
    };
    assert_eq!(written(5), [(15, Certainty::Somewhere)]);
    assert_eq!(written(15), [(15, Certainty::Certain)]);
}

/// Each plane of an image can be an attachment.
#[test]
fn planes_are_drawn_to_one_by_one() {
    let mut app = app();
    app.make_image(9, Format::G8_B8R8_2PLANE_420_UNORM, [64, 64], 1, 1 << 22);
    app.make_view(10, 9, Format::R8_UNORM, ImageAspectFlags::PLANE_0);
    app.make_view(11, 9, Format::R8G8_UNORM, ImageAspectFlags::PLANE_1);
    make_pipeline(&mut app, 1, PLAIN);
    app.begin(2);
    for view in [10, 11] {
        begin_rendering_to(&mut app, 2, view, None);
        app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
        app.draw(2, 3, 0);
        end_rendering(&mut app, 2);
    }
    app.end(2);
    app.submit(0, 2, Fence(0));
    let aspect = |at: usize| match &accesses(app.program(), 0, at)[0].region {
        Region::Image(region) => region.aspects,
        Region::Buffer(_) => panic!("no image"),
    };
    assert_eq!([1, 4].map(aspect), [ImageAspectFlags::PLANE_0.0, ImageAspectFlags::PLANE_1.0]);
    assert_eq!(check(app.program()), []);
}

/// The render area is in blocks. As texels of the image it would be another region.
#[test]
fn blocks_that_are_rendered_to_are_reported_as_missing() {
    let mut app = app();
    app.make_image(9, Format::BC7_UNORM_BLOCK, [64, 64], 1, 1 << 22);
    app.make_view(10, 9, Format::R32G32B32A32_UINT, ImageAspectFlags::COLOR);
    make_pipeline(&mut app, 1, PLAIN);
    app.begin(2);
    begin_rendering_to(&mut app, 2, 10, None);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.draw(2, 3, 0);
    end_rendering(&mut app, 2);
    app.end(2);
    app.submit(0, 2, Fence(0));
    let reasons: Vec<_> = app.tracker.untracked().map(|it| it.0.reason).collect();
    assert_eq!(reasons, ["an attachment whose texels are blocks of a compressed image"]);
    let is_drawn = |at: usize| accesses(app.program(), 0, at).iter().any(|it| matches!(it.region, Region::Image(_)));
    assert!(!is_drawn(1));
    assert_eq!(check(app.program()), []);
}

#[test]
fn dynamic_state_counts_where_the_pipeline_says_so() {
    let disable = |app: &mut App<Collector>| {
        app.call(
            Api::CmdSetDepthWriteEnable,
            &CmdSetDepthWriteEnableParams { command_buffer: command_buffer(2), depth_write_enable: Bool32::FALSE },
        );
    };
    assert_eq!(drawn(PLAIN, disable), [LATE_WRITE, COLOR_WRITE]);
    let dynamic = PipelineOptions { is_depth_write_dynamic: true, ..PLAIN };
    assert_eq!(drawn(dynamic, disable), [LATE_READ, COLOR_WRITE]);
}

#[test]
fn a_render_pass_is_reported_with_its_views_and_unused_colors_are_left_out() {
    let mut app = app();
    make_pass(&mut app);
    make_pipeline(&mut app, 1, PLAIN);
    app.begin(2);
    begin_pass(&mut app, 2);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    bind_vertices(&mut app, 2, 64);
    app.draw(2, 3, 10);
    let program = app.program();
    let pass = &program.render_passes[0];
    assert_eq!((pass.attachments[0].load, pass.attachments[0].store), (LoadOp::Clear, StoreOp::Store));
    assert_eq!((pass.attachments[1].stencil_load, pass.attachments[1].stencil_store), (LoadOp::None, StoreOp::None));
    assert_eq!(pass.subpasses[0].colors, [(0, ImageLayout::COLOR_ATTACHMENT_OPTIMAL.0)]);
    let Command::BeginRenderPass { views, area, .. } = &program.command_buffers[0].commands[0] else {
        panic!("no render pass")
    };
    assert_eq!((views.len(), *area), (2, AREA));
    // Color 0 is unused, and the shader writes no other output.
    let all = accesses(program, 0, 1);
    assert_eq!(access_summaries(all), [VERTEX_READ, LATE_WRITE]);
    // Vertices 10 to 12: for each, the attribute that the shader reads.
    assert_eq!(all[0].region, Region::Buffer(64 + 160 + 4..64 + 192 + 12));
    let Region::Image(region) = &all[1].region else { panic!("no image") };
    assert_eq!((region.area, region.aspects), (Some(AREA), ImageAspectFlags::DEPTH.0));
    assert_eq!(all[1].order, RasterOrder::DepthStencil);
}

#[test]
fn indices_and_parameters_in_memory_are_read() {
    let mut app = app();
    make_pipeline(&mut app, 1, PLAIN);
    app.begin(2);
    begin_rendering(&mut app, 2);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    bind_vertices(&mut app, 2, 1024);
    app.call(
        Api::CmdBindIndexBuffer,
        &CmdBindIndexBufferParams {
            command_buffer: command_buffer(2),
            buffer: buffer(1),
            offset: 16,
            index_type: IndexType::UINT16,
        },
    );
    app.call(
        Api::CmdDrawIndexed,
        &CmdDrawIndexedParams {
            command_buffer: command_buffer(2),
            index_count: 6,
            instance_count: 1,
            first_index: 3,
            vertex_offset: 0,
            first_instance: 0,
        },
    );
    app.call(
        Api::CmdDrawIndirect,
        &CmdDrawIndirectParams {
            command_buffer: command_buffer(2),
            buffer: buffer(1),
            offset: 256,
            draw_count: 2,
            stride: 32,
        },
    );
    app.draw(2, 0, 0);
    let regions = |index: usize, access: Bits| -> Vec<Region> {
        let all: Vec<&Access> = accesses(app.program(), 0, index).iter().filter(|it| it.access == access.0).collect();
        all.into_iter().map(|it| it.region.clone()).collect()
    };
    assert_eq!(regions(1, Bits::INDEX_READ), [Region::Buffer(22..34)]);
    assert_eq!(regions(1, Bits::VERTEX_ATTRIBUTE_READ), [Region::Buffer(1024..4096)]);
    assert_eq!(regions(2, Bits::INDIRECT_COMMAND_READ), [Region::Buffer(256..272), Region::Buffer(288..304)]);
    // A draw without vertices accesses nothing, but its possible reads may lie between two writes.
    let possible = accesses(app.program(), 0, 3);
    assert_eq!(access_summaries(possible), [VERTEX_READ]);
    assert!(possible.iter().all(|it| it.certainty == Certainty::Unreported));
}

#[test]
fn counts_in_memory_are_read_too() {
    let mut app = app();
    make_pipeline(&mut app, 1, PLAIN);
    app.begin(2);
    begin_rendering(&mut app, 2);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.call(
        Api::CmdDrawIndexedIndirectCount,
        &CmdDrawIndexedIndirectCountParams {
            command_buffer: command_buffer(2),
            buffer: buffer(1),
            offset: 64,
            count_buffer: buffer(1),
            count_buffer_offset: 512,
            max_draw_count: 3,
            stride: 20,
        },
    );
    end_rendering(&mut app, 2);
    app.call(
        Api::CmdDispatchIndirect,
        &CmdDispatchIndirectParams { command_buffer: command_buffer(2), buffer: buffer(1), offset: 1024 },
    );
    let read = |index: usize| -> Vec<Region> {
        let all = accesses(app.program(), 0, index).iter();
        all.filter(|it| it.stage == Stage::DRAW_INDIRECT.0).map(|it| it.region.clone()).collect()
    };
    assert_eq!(read(1), [Region::Buffer(64..124), Region::Buffer(512..516)]);
    assert_eq!(read(3), [Region::Buffer(1024..1036)]);
}

/// Records a draw in secondary command buffer 1, which continues rendering.
fn record_secondary(app: &mut App<Collector>) {
    let formats = [Format::R8G8B8A8_UNORM];
    let rendering = CommandBufferInheritanceRenderingInfo {
        color_attachment_count: 1,
        p_color_attachment_formats: Ptr::to_slice(&formats),
        depth_attachment_format: Format::D24_UNORM_S8_UINT,
        ..CommandBufferInheritanceRenderingInfo::zeroed()
    };
    let inherited =
        CommandBufferInheritanceInfo { p_next: Ptr::to(&rendering).cast(), ..CommandBufferInheritanceInfo::zeroed() };
    let info = CommandBufferBeginInfo {
        flags: CommandBufferUsageFlags::RENDER_PASS_CONTINUE,
        p_inheritance_info: Ptr::to(&inherited),
        ..CommandBufferBeginInfo::zeroed()
    };
    app.call(
        Api::BeginCommandBuffer,
        &BeginCommandBufferParams { command_buffer: command_buffer(1), p_begin_info: Ptr::to(&info) },
    );
    app.bind_pipeline(1, PipelineBindPoint::GRAPHICS, 1);
    app.draw(1, 3, 0);
    app.draw(1, 3, 3);
    app.end(1);
}

fn execute_secondary(app: &mut App<Collector>) {
    app.call(
        Api::CmdExecuteCommands,
        &CmdExecuteCommandsParams {
            command_buffer: command_buffer(2),
            command_buffer_count: 1,
            p_command_buffers: Ptr::to(&command_buffer(1)),
        },
    );
}

/// The accesses of each of the two draws of a command buffer.
fn two_draws(app: &App<Collector>, buffer: usize) -> [Vec<(u32, u64, u64)>; 2] {
    [0, 1].map(|it| access_summaries(accesses(app.program(), buffer, it)))
}

fn secondaries() -> App<Collector> {
    let mut app = app();
    make_pipeline(&mut app, 1, PLAIN);
    // In the model of `sim`, command buffers with odd numbers are secondary.
    app.make_command_buffer(1, CommandBufferLevel::SECONDARY);
    app
}

#[test]
fn a_secondary_command_buffer_gets_its_attachments_from_who_executes_it() {
    let mut app = secondaries();
    record_secondary(&mut app);
    assert_eq!(two_draws(&app, 0), [vec![], vec![]]);
    app.begin(2);
    begin_rendering(&mut app, 2);
    execute_secondary(&mut app);
    end_rendering(&mut app, 2);
    assert_eq!(two_draws(&app, 0), [vec![LATE_WRITE, COLOR_WRITE], vec![LATE_WRITE, COLOR_WRITE]]);
    assert_eq!(app.program().command_buffers[1].commands.len(), 3);
}

/// A secondary command buffer that is recorded again is first reported with the attachments of the last time. The
/// primary command buffer that executes it decides.
#[test]
fn attachments_that_are_foreseen_count_only_if_they_come() {
    let mut app = secondaries();
    app.make_image(3, Format::R8G8B8A8_UNORM, [64, 64], 1, 1 << 22);
    let both = [LATE_WRITE, COLOR_WRITE];
    let execute_in_rendering = |app: &mut App<Collector>| {
        app.begin(2);
        begin_rendering(app, 2);
        execute_secondary(app);
        end_rendering(app, 2);
    };
    record_secondary(&mut app);
    execute_in_rendering(&mut app);
    record_secondary(&mut app);
    assert_eq!(two_draws(&app, 2), [both, both], "foreseen");
    execute_in_rendering(&mut app);
    assert_eq!(two_draws(&app, 2), [both, both]);
    // The attachments differ from the last time.
    record_secondary(&mut app);
    app.begin(2);
    begin_rendering_to(&mut app, 2, 3, None);
    execute_secondary(&mut app);
    assert_eq!(two_draws(&app, 4), [[(3, COLOR_WRITE.1, COLOR_WRITE.2)]; 2]);
    // The attachments are unknown.
    record_secondary(&mut app);
    app.begin(2);
    execute_secondary(&mut app);
    assert_eq!(two_draws(&app, 6), [vec![], vec![]]);
    assert_eq!(app.tracker.untracked().count(), 0);
}

#[test]
fn clears_of_attachments_stay_inside_of_their_rectangles() {
    let mut app = app();
    app.begin(2);
    begin_rendering(&mut app, 2);
    let clears = [
        ClearAttachment { aspect_mask: ImageAspectFlags::COLOR, ..ClearAttachment::zeroed() },
        ClearAttachment { aspect_mask: ImageAspectFlags::DEPTH, ..ClearAttachment::zeroed() },
    ];
    let rect = ClearRect {
        rect: Rect2D { offset: Offset2D { x: 0, y: 4 }, extent: Extent2D { width: 16, height: 4 } },
        base_array_layer: 0,
        layer_count: 1,
    };
    app.call(
        Api::CmdClearAttachments,
        &CmdClearAttachmentsParams {
            command_buffer: command_buffer(2),
            attachment_count: 2,
            p_attachments: Ptr::to_slice(&clears),
            rect_count: 1,
            p_rects: Ptr::to(&rect),
        },
    );
    let all = accesses(app.program(), 0, 1);
    let early = (DEPTH, Stage::EARLY_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE.0);
    assert_eq!(access_summaries(all), [COLOR_WRITE, early]);
    let Region::Image(region) = &all[0].region else { panic!("no image") };
    assert_eq!(region.area, Some(Area { offset: [8, 4, 0], extent: [8, 4, 1] }));
}

#[test]
fn a_copy_of_what_was_drawn_needs_a_barrier() {
    for has_barrier in [false, true] {
        let mut app = app();
        make_pipeline(&mut app, 1, PLAIN);
        app.begin(2);
        begin_rendering(&mut app, 2);
        app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
        app.draw(2, 3, 0);
        end_rendering(&mut app, 2);
        if has_barrier {
            app.memory_barrier2(
                2,
                MemoryBarrier2 {
                    src_stage_mask: Stage::COLOR_ATTACHMENT_OUTPUT,
                    src_access_mask: Bits::COLOR_ATTACHMENT_WRITE,
                    dst_stage_mask: Stage::COPY,
                    dst_access_mask: Bits::TRANSFER_READ,
                    ..MemoryBarrier2::zeroed()
                },
            );
        }
        let region = BufferImageCopy {
            image_subresource: one_layer(),
            image_extent: Extent3D { width: 16, height: 16, depth: 1 },
            ..BufferImageCopy::zeroed()
        };
        app.call(
            Api::CmdCopyImageToBuffer,
            &CmdCopyImageToBufferParams {
                command_buffer: command_buffer(2),
                src_image: image(COLOR_IMAGE),
                src_image_layout: ImageLayout::GENERAL,
                dst_buffer: buffer(1),
                region_count: 1,
                p_regions: Ptr::to(&region),
            },
        );
        app.end(2);
        app.submit(0, 2, Fence(0));
        let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
        if has_barrier {
            assert_eq!(kinds, []);
        } else {
            assert!(!kinds.is_empty() && kinds.iter().all(|it| *it == HazardKind::ReadAfterWrite), "{kinds:?}");
        }
    }
}
