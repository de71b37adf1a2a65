//! Render passes of version 2, imageless framebuffers, multiview, shading rates, libraries and shader objects.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, PipelineStageFlags2 as Stage, *};
use lavascope_state::{Collector, ShaderInterface, Tracker};
use lavascope_sync_ir::ColorResolve;
use lavascope_sync_ir::{Area, Command, Region, SyncScope};

const COLOR: u64 = 1;
const RESOLVED: u64 = 2;
const RATES: u64 = 3;
const COLOR_WRITE: u64 = Bits::COLOR_ATTACHMENT_WRITE.0;
const RATE_READ: u64 = Bits::FRAGMENT_SHADING_RATE_ATTACHMENT_READ_KHR.0;

/// Shader 0 accesses nothing, shader 1 writes color 0, shader 2 writes `Layer`.
fn app() -> App<Collector> {
    let shaders = TestShaders(vec![
        ShaderInterface::default(),
        ShaderInterface { outputs: 1, ..ShaderInterface::default() },
        ShaderInterface { writes_layer: true, ..ShaderInterface::default() },
    ]);
    let mut app = App::with_tracker(Tracker::with_reflection(Collector::default(), Box::new(shaders)));
    app.make_image(COLOR, Format::R8G8B8A8_UNORM, [64, 64], 4, 1 << 20);
    app.make_image(RESOLVED, Format::R8G8B8A8_UNORM, [64, 64], 4, 1 << 21);
    app.make_image(RATES, Format::R8_UINT, [8, 8], 1, 1 << 22);
    for module in 0..3 {
        app.make_shader(module, module as u32);
    }
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app
}

fn area() -> Rect2D {
    Rect2D { offset: Offset2D { x: 12, y: 0 }, extent: Extent2D { width: 20, height: 8 } }
}

/// A pipeline of two shaders with one color attachment.
fn make_pipeline(app: &mut App<Collector>, serial: u64, vertex: u64) {
    let stages = [stage(ShaderStageFlagBits::VERTEX, vertex), stage(ShaderStageFlagBits::FRAGMENT, 1)];
    let blend = PipelineColorBlendAttachmentState {
        color_write_mask: ColorComponentFlags(0xf),
        ..PipelineColorBlendAttachmentState::zeroed()
    };
    let blending = PipelineColorBlendStateCreateInfo {
        attachment_count: 1,
        p_attachments: Ptr::to(&blend),
        ..PipelineColorBlendStateCreateInfo::zeroed()
    };
    let raster = PipelineRasterizationStateCreateInfo::zeroed();
    app.make_graphics_pipeline(
        serial,
        &GraphicsPipelineCreateInfo {
            stage_count: 2,
            p_stages: Ptr::to_slice(&stages),
            p_rasterization_state: Ptr::to(&raster),
            p_color_blend_state: Ptr::to(&blending),
            render_pass: render_pass(1),
            ..GraphicsPipelineCreateInfo::zeroed()
        },
    );
}

/// Begins rendering to one color attachment.
fn begin_rendering(app: &mut App<Collector>, view_mask: u32, layer_count: u32) {
    let color = RenderingAttachmentInfo { image_view: image_view(COLOR), ..RenderingAttachmentInfo::zeroed() };
    let rates = RenderingFragmentShadingRateAttachmentInfoKHR {
        image_view: image_view(RATES),
        shading_rate_attachment_texel_size: Extent2D { width: 8, height: 8 },
        ..RenderingFragmentShadingRateAttachmentInfoKHR::zeroed()
    };
    let info = RenderingInfo {
        p_next: Ptr::to(&rates).cast(),
        render_area: area(),
        layer_count,
        view_mask,
        color_attachment_count: 1,
        p_color_attachments: Ptr::to(&color),
        ..RenderingInfo::zeroed()
    };
    app.call(
        Api::CmdBeginRendering,
        &CmdBeginRenderingParams { command_buffer: command_buffer(2), p_rendering_info: Ptr::to(&info) },
    );
}

/// The ranges of layers that the last draw writes.
fn layers_written(app: &App<Collector>, index: usize) -> Vec<std::ops::Range<u32>> {
    let all = accesses(app.program(), 0, index).iter().filter(|it| it.access == COLOR_WRITE);
    all.map(|item| match &item.region {
        Region::Image(region) => region.layers.clone(),
        Region::Buffer(_) => panic!("no image"),
    })
    .collect()
}

#[test]
fn draws_go_to_the_layers_that_shader_and_views_say() {
    let mut app = app();
    make_pipeline(&mut app, 1, 0);
    make_pipeline(&mut app, 2, 2);
    for (view_mask, layer_count, pipeline) in [(0, 3, 1), (0, 3, 2), (0b101, 1, 1)] {
        begin_rendering(&mut app, view_mask, layer_count);
        app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, pipeline);
        app.draw(2, 3, 0);
        app.call(Api::CmdEndRendering, &CmdEndRenderingParams { command_buffer: command_buffer(2) });
    }
    assert_eq!(layers_written(&app, 1), vec![0..1], "no shader chooses another layer");
    assert_eq!(layers_written(&app, 4), vec![0..3]);
    assert_eq!(layers_written(&app, 7), vec![0..1, 2..3], "one layer for each view");
}

#[test]
fn shading_rates_are_read_where_fragments_are() {
    let mut app = app();
    make_pipeline(&mut app, 1, 0);
    begin_rendering(&mut app, 0, 1);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.draw(2, 3, 0);
    let all = accesses(app.program(), 0, 1);
    let Some(read) = all.iter().find(|it| it.access == RATE_READ) else { panic!("no rates are read") };
    assert_eq!(read.stage, Stage::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR.0);
    let Region::Image(region) = &read.region else { panic!("no image") };
    // Texels 12 to 32 of the render area are the second to the fourth block of eight.
    assert_eq!(region.area, Some(Area { offset: [1, 0, 0], extent: [3, 1, 1] }));
}

fn make_pass_2(app: &mut App<Collector>) {
    let attachment = AttachmentDescription2 {
        format: Format::R8G8B8A8_UNORM,
        load_op: AttachmentLoadOp::DONT_CARE,
        store_op: AttachmentStoreOp::NONE,
        ..AttachmentDescription2::zeroed()
    };
    let attachments = [attachment, attachment];
    let reference = |attachment| AttachmentReference2 {
        attachment,
        layout: ImageLayout::GENERAL,
        ..AttachmentReference2::zeroed()
    };
    let (color, resolve) = (reference(0), reference(1));
    let subpass = SubpassDescription2 {
        color_attachment_count: 1,
        p_color_attachments: Ptr::to(&color),
        p_resolve_attachments: Ptr::to(&resolve),
        ..SubpassDescription2::zeroed()
    };
    let barrier = MemoryBarrier2 {
        src_stage_mask: Stage::COPY,
        src_access_mask: Bits::TRANSFER_WRITE,
        dst_stage_mask: Stage::COLOR_ATTACHMENT_OUTPUT,
        dst_access_mask: Bits::COLOR_ATTACHMENT_WRITE,
        ..MemoryBarrier2::zeroed()
    };
    let dependency = SubpassDependency2 {
        p_next: Ptr::to(&barrier).cast(),
        src_subpass: SUBPASS_EXTERNAL,
        ..SubpassDependency2::zeroed()
    };
    let info = RenderPassCreateInfo2 {
        attachment_count: 2,
        p_attachments: Ptr::to_slice(&attachments),
        subpass_count: 1,
        p_subpasses: Ptr::to(&subpass),
        dependency_count: 1,
        p_dependencies: Ptr::to(&dependency),
        ..RenderPassCreateInfo2::zeroed()
    };
    app.call(
        Api::CreateRenderPass2,
        &CreateRenderPass2Params {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_render_pass: Ptr::to(&render_pass(1)),
        },
    );
    let info = FramebufferCreateInfo {
        flags: FramebufferCreateFlags::IMAGELESS,
        render_pass: render_pass(1),
        attachment_count: 2,
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

#[test]
fn version_2_takes_its_stages_from_the_chain_and_its_views_from_the_begin() {
    let mut app = app();
    make_pass_2(&mut app);
    let views = [image_view(COLOR), image_view(RESOLVED)];
    let given = RenderPassAttachmentBeginInfo {
        attachment_count: 2,
        p_attachments: Ptr::to_slice(&views),
        ..RenderPassAttachmentBeginInfo::zeroed()
    };
    let info = RenderPassBeginInfo {
        p_next: Ptr::to(&given).cast(),
        render_pass: render_pass(1),
        framebuffer: framebuffer(1),
        render_area: area(),
        ..RenderPassBeginInfo::zeroed()
    };
    app.call(
        Api::CmdBeginRenderPass2,
        &CmdBeginRenderPass2Params {
            command_buffer: command_buffer(2),
            p_render_pass_begin: Ptr::to(&info),
            p_subpass_begin_info: Ptr::to(&SubpassBeginInfo::zeroed()),
        },
    );
    let program = app.program();
    let pass = &program.render_passes[0];
    assert_eq!(pass.subpasses[0].resolves, [ColorResolve { source: 0, target: 1, layout: ImageLayout::GENERAL.0 }]);
    let scope = SyncScope {
        src_stages: Stage::COPY.0,
        src_access: Bits::TRANSFER_WRITE.0,
        dst_stages: Stage::COLOR_ATTACHMENT_OUTPUT.0,
        dst_access: COLOR_WRITE,
    };
    assert_eq!(
        (pass.dependencies[0].src, pass.dependencies[0].dst, pass.dependencies[0].scope),
        (None, Some(0), scope)
    );
    let Command::BeginRenderPass { views, .. } = &program.command_buffers[0].commands[0] else {
        panic!("no render pass")
    };
    let layers: Vec<_> = views.iter().map(|it| (it.resource.0, it.region.layers.clone())).collect();
    assert_eq!(layers, [(0, 0..1), (1, 0..1)], "the framebuffer has one layer");
}

#[test]
fn a_pipeline_has_what_its_libraries_have() {
    let mut app = app();
    let fragment = [stage(ShaderStageFlagBits::FRAGMENT, 1)];
    let depth = PipelineDepthStencilStateCreateInfo::zeroed();
    let part = GraphicsPipelineLibraryCreateInfoEXT {
        flags: GraphicsPipelineLibraryFlagsEXT::FRAGMENT_SHADER_EXT,
        ..GraphicsPipelineLibraryCreateInfoEXT::zeroed()
    };
    let info = GraphicsPipelineCreateInfo {
        p_next: Ptr::to(&part).cast(),
        flags: PipelineCreateFlags::LIBRARY_KHR,
        stage_count: 1,
        p_stages: Ptr::to_slice(&fragment),
        p_depth_stencil_state: Ptr::to(&depth),
        ..GraphicsPipelineCreateInfo::zeroed()
    };
    app.make_graphics_pipeline(1, &info);
    let libraries = [pipeline(1)];
    let linked = PipelineLibraryCreateInfoKHR {
        library_count: 1,
        p_libraries: Ptr::to_slice(&libraries),
        ..PipelineLibraryCreateInfoKHR::zeroed()
    };
    let info = GraphicsPipelineCreateInfo { p_next: Ptr::to(&linked).cast(), ..GraphicsPipelineCreateInfo::zeroed() };
    app.make_graphics_pipeline(2, &info);
    begin_rendering(&mut app, 0, 1);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 2);
    app.draw(2, 3, 0);
    assert_eq!(layers_written(&app, 1), vec![0..1], "the fragment shader of the library writes color");
}

#[test]
fn shader_objects_draw_with_the_state_of_the_command_buffer() {
    let mut app = app();
    let code = [1_u32];
    let info = ShaderCreateInfoEXT {
        stage: ShaderStageFlagBits::FRAGMENT,
        code_type: ShaderCodeTypeEXT::SPIRV_EXT,
        code_size: 4,
        p_code: Ptr::to_slice(&code).cast(),
        p_name: Ptr::new(c"main".as_ptr().expose_provenance() as u64),
        ..ShaderCreateInfoEXT::zeroed()
    };
    let shader = ShaderEXT(handle(HandleType::ShaderEXT, 1));
    app.call(
        Api::CreateShadersEXT,
        &CreateShadersEXTParams {
            device: device(DEVICE),
            create_info_count: 1,
            p_create_infos: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_shaders: Ptr::to(&shader),
        },
    );
    begin_rendering(&mut app, 0, 1);
    app.call(
        Api::CmdBindShadersEXT,
        &CmdBindShadersEXTParams {
            command_buffer: command_buffer(2),
            stage_count: 1,
            p_stages: Ptr::to(&ShaderStageFlagBits::FRAGMENT),
            p_shaders: Ptr::to(&shader),
        },
    );
    app.draw(2, 3, 0);
    app.call(
        Api::CmdSetColorWriteMaskEXT,
        &CmdSetColorWriteMaskEXTParams {
            command_buffer: command_buffer(2),
            first_attachment: 0,
            attachment_count: 1,
            p_color_write_masks: Ptr::to(&ColorComponentFlags(0)),
        },
    );
    app.draw(2, 3, 0);
    assert_eq!(layers_written(&app, 1).len(), 1);
    assert_eq!(layers_written(&app, 2).len(), 0, "no component is written");
}

/// Each draw writes one slice of a 3D image.
#[test]
fn slices_of_an_image_are_attachments_by_themselves() {
    let mut app = app();
    let info = ImageCreateInfo {
        flags: ImageCreateFlags::_2D_ARRAY_COMPATIBLE,
        image_type: ImageType::_3D,
        format: Format::R8G8B8A8_UNORM,
        extent: Extent3D { width: 16, height: 16, depth: 4 },
        mip_levels: 1,
        array_layers: 1,
        ..ImageCreateInfo::zeroed()
    };
    create!(app, CreateImage, CreateImageParams, info, p_image: image(9));
    call!(
        app,
        BindImageMemory,
        BindImageMemoryParams { image: image(9), memory: memory(MEMORY), memory_offset: 1 << 24 }
    );
    for slice in [1, 2] {
        let mut range = whole_range(ImageAspectFlags::COLOR);
        (range.base_array_layer, range.layer_count) = (slice, 1);
        let info = ImageViewCreateInfo {
            image: image(9),
            view_type: ImageViewType::_2D,
            format: Format::R8G8B8A8_UNORM,
            subresource_range: range,
            ..ImageViewCreateInfo::zeroed()
        };
        create!(app, CreateImageView, CreateImageViewParams, info, p_view: image_view(20 + u64::from(slice)));
    }
    make_pipeline(&mut app, 1, 0);
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    for serial in [21, 22] {
        let color = RenderingAttachmentInfo {
            image_view: image_view(serial),
            load_op: AttachmentLoadOp::CLEAR,
            ..RenderingAttachmentInfo::zeroed()
        };
        let info = RenderingInfo {
            render_area: area(),
            layer_count: 1,
            color_attachment_count: 1,
            p_color_attachments: Ptr::to(&color),
            ..RenderingInfo::zeroed()
        };
        record!(app, CmdBeginRendering, CmdBeginRenderingParams { p_rendering_info: Ptr::to(&info) });
        app.draw(2, 3, 0);
        record!(app, CmdEndRendering, CmdEndRenderingParams {});
    }
    app.end(2);
    app.submit(0, 2, Fence(0));
    assert_eq!(lavascope_engine::check(app.program()), [], "they are different slices");
    let slices = |index| {
        let write = accesses(app.program(), 0, index).iter().find(|it| it.access == Bits::COLOR_ATTACHMENT_WRITE.0);
        match write.map(|it| &it.region) {
            Some(Region::Image(region)) => region.area.map(|it| (it.offset[2], it.extent[2])),
            _ => None,
        }
    };
    assert_eq!((slices(1), slices(4)), (Some((1, 1)), Some((2, 1))));
    assert_eq!(app.tracker.untracked().filter(|it| it.0.command == Api::CmdBeginRendering).count(), 0);
}
