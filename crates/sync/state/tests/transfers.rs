//! Copies, blits, resolves, clears: both generations of the API give the same accesses, each in its own stages.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, PipelineStageFlags2 as Stage, *};
use lavascope_state::Collector;
use lavascope_sync_ir::{Area, MarkerStage, RasterOrder, Region};

const READ: u64 = Bits::TRANSFER_READ.0;
const WRITE: u64 = Bits::TRANSFER_WRITE.0;
const EXTENT: Extent3D = Extent3D { width: 8, height: 4, depth: 1 };

/// Two buffers, two images, and command buffer 2 in recording.
fn app() -> App<Collector> {
    let mut app = App::collecting();
    app.make_buffer(1, 4096, 0);
    app.make_buffer(2, 4096, 4096);
    app.make_image(1, Format::R8G8B8A8_UNORM, [64, 64], 1, 1 << 20);
    app.make_image(2, Format::R8G8B8A8_UNORM, [64, 64], 1, 1 << 21);
    app.make_image(3, Format::BC1_RGB_UNORM_BLOCK, [64, 64], 1, 1 << 22);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app
}

/// Resource, stage and access of the last command.
fn last(app: &App<Collector>) -> Vec<(u32, u64, u64)> {
    let count = app.program().command_buffers[0].commands.len();
    access_summaries(accesses(app.program(), 0, count - 1))
}

/// Checks that the last two commands have the same accesses.
fn assert_twins(app: &App<Collector>) {
    let commands = &app.program().command_buffers[0].commands;
    assert_eq!(commands[commands.len() - 2], commands[commands.len() - 1]);
}

#[test]
fn copies_of_images_are_copies() {
    let mut app = app();
    let region = ImageCopy {
        src_subresource: one_layer(),
        dst_subresource: one_layer(),
        dst_offset: Offset3D { x: 2, y: 3, z: 0 },
        extent: EXTENT,
        ..ImageCopy::zeroed()
    };
    app.call(
        Api::CmdCopyImage,
        &CmdCopyImageParams {
            command_buffer: command_buffer(2),
            src_image: image(1),
            src_image_layout: ImageLayout::GENERAL,
            dst_image: image(2),
            dst_image_layout: ImageLayout::GENERAL,
            region_count: 1,
            p_regions: Ptr::to(&region),
        },
    );
    assert_eq!(last(&app), [(2, Stage::COPY.0, READ), (3, Stage::COPY.0, WRITE)]);
    let region = ImageCopy2 {
        src_subresource: one_layer(),
        dst_subresource: one_layer(),
        dst_offset: Offset3D { x: 2, y: 3, z: 0 },
        extent: EXTENT,
        ..ImageCopy2::zeroed()
    };
    let info = CopyImageInfo2 {
        src_image: image(1),
        dst_image: image(2),
        region_count: 1,
        p_regions: Ptr::to(&region),
        ..CopyImageInfo2::zeroed()
    };
    app.call(
        Api::CmdCopyImage2,
        &CmdCopyImage2Params { command_buffer: command_buffer(2), p_copy_image_info: Ptr::to(&info) },
    );
    assert_twins(&app);
}

#[test]
fn a_copy_to_blocks_is_as_large_as_its_blocks() {
    let mut app = app();
    let region =
        ImageCopy { src_subresource: one_layer(), dst_subresource: one_layer(), extent: EXTENT, ..ImageCopy::zeroed() };
    app.call(
        Api::CmdCopyImage,
        &CmdCopyImageParams {
            command_buffer: command_buffer(2),
            src_image: image(1),
            src_image_layout: ImageLayout::GENERAL,
            dst_image: image(3),
            dst_image_layout: ImageLayout::GENERAL,
            region_count: 1,
            p_regions: Ptr::to(&region),
        },
    );
    let Region::Image(region) = &accesses(app.program(), 0, 0)[1].region else { panic!("no image") };
    assert_eq!(region.area, Some(Area { offset: [0; 3], extent: [32, 16, 1] }));
}

#[test]
fn blits_are_blits_whichever_way_they_go() {
    let mut app = app();
    let corners = [Offset3D { x: 16, y: 16, z: 0 }, Offset3D { x: 8, y: 0, z: 1 }];
    let region = ImageBlit {
        src_subresource: one_layer(),
        src_offsets: corners,
        dst_subresource: one_layer(),
        dst_offsets: corners,
    };
    app.call(
        Api::CmdBlitImage,
        &CmdBlitImageParams {
            command_buffer: command_buffer(2),
            src_image: image(1),
            src_image_layout: ImageLayout::GENERAL,
            dst_image: image(2),
            dst_image_layout: ImageLayout::GENERAL,
            region_count: 1,
            p_regions: Ptr::to(&region),
            filter: Filter::NEAREST,
        },
    );
    assert_eq!(last(&app), [(2, Stage::BLIT.0, READ), (3, Stage::BLIT.0, WRITE)]);
    let Region::Image(region) = &accesses(app.program(), 0, 0)[0].region else { panic!("no image") };
    assert_eq!(region.area, Some(Area { offset: [8, 0, 0], extent: [8, 16, 1] }));
    let region = ImageBlit2 {
        src_subresource: one_layer(),
        src_offsets: corners,
        dst_subresource: one_layer(),
        dst_offsets: corners,
        ..ImageBlit2::zeroed()
    };
    let info = BlitImageInfo2 {
        src_image: image(1),
        dst_image: image(2),
        region_count: 1,
        p_regions: Ptr::to(&region),
        ..BlitImageInfo2::zeroed()
    };
    app.call(
        Api::CmdBlitImage2,
        &CmdBlitImage2Params { command_buffer: command_buffer(2), p_blit_image_info: Ptr::to(&info) },
    );
    assert_twins(&app);
}

#[test]
fn resolves_are_resolves() {
    let mut app = app();
    let region = ImageResolve2 {
        src_subresource: one_layer(),
        dst_subresource: one_layer(),
        extent: EXTENT,
        ..ImageResolve2::zeroed()
    };
    let info = ResolveImageInfo2 {
        src_image: image(1),
        dst_image: image(2),
        region_count: 1,
        p_regions: Ptr::to(&region),
        ..ResolveImageInfo2::zeroed()
    };
    app.call(
        Api::CmdResolveImage2,
        &CmdResolveImage2Params { command_buffer: command_buffer(2), p_resolve_image_info: Ptr::to(&info) },
    );
    let region = ImageResolve {
        src_subresource: one_layer(),
        dst_subresource: one_layer(),
        extent: EXTENT,
        ..ImageResolve::zeroed()
    };
    app.call(
        Api::CmdResolveImage,
        &CmdResolveImageParams {
            command_buffer: command_buffer(2),
            src_image: image(1),
            src_image_layout: ImageLayout::GENERAL,
            dst_image: image(2),
            dst_image_layout: ImageLayout::GENERAL,
            region_count: 1,
            p_regions: Ptr::to(&region),
        },
    );
    assert_eq!(last(&app), [(2, Stage::RESOLVE.0, READ), (3, Stage::RESOLVE.0, WRITE)]);
    assert_twins(&app);
}

#[test]
fn a_fill_to_the_end_of_a_buffer_writes_whole_words() {
    let mut app = app();
    app.make_buffer(5, 4094, 1 << 19);
    for (dst_offset, expected) in [(4, Some(4..4092)), (4092, None)] {
        let (command_buffer, dst_buffer) = (command_buffer(2), buffer(5));
        let fill = CmdFillBufferParams { command_buffer, dst_buffer, dst_offset, size: WHOLE_SIZE, data: 0 };
        app.call(Api::CmdFillBuffer, &fill);
        let last = app.program().command_buffers[0].commands.len() - 1;
        let written: Vec<Region> = accesses(app.program(), 0, last).iter().map(|it| it.region.clone()).collect();
        assert_eq!(written, expected.map(Region::Buffer).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn fills_updates_and_clears_are_clears() {
    let mut app = app();
    app.call(
        Api::CmdFillBuffer,
        &CmdFillBufferParams {
            command_buffer: command_buffer(2),
            dst_buffer: buffer(1),
            dst_offset: 64,
            size: WHOLE_SIZE,
            data: 0,
        },
    );
    assert_eq!(last(&app), [(0, Stage::CLEAR.0, WRITE)]);
    assert_eq!(accesses(app.program(), 0, 0)[0].region, Region::Buffer(64..4096));
    let data = [0_u64; 4];
    app.call(
        Api::CmdUpdateBuffer,
        &CmdUpdateBufferParams {
            command_buffer: command_buffer(2),
            dst_buffer: buffer(2),
            dst_offset: 16,
            data_size: 32,
            p_data: Ptr::to_slice(&data).cast(),
        },
    );
    assert_eq!(last(&app), [(1, Stage::CLEAR.0, WRITE)]);
    assert_eq!(accesses(app.program(), 0, 1)[0].region, Region::Buffer(16..48));
    let range = whole_range(ImageAspectFlags::COLOR);
    app.call(
        Api::CmdClearColorImage,
        &CmdClearColorImageParams {
            command_buffer: command_buffer(2),
            image: image(1),
            image_layout: ImageLayout::GENERAL,
            p_color: Ptr::to(&ClearColorValue::zeroed()),
            range_count: 1,
            p_ranges: Ptr::to(&range),
        },
    );
    assert_eq!(last(&app), [(2, Stage::CLEAR.0, WRITE)]);
    app.make_image(4, Format::D32_SFLOAT, [16, 16], 1, 1 << 23);
    let range = whole_range(ImageAspectFlags::DEPTH);
    app.call(
        Api::CmdClearDepthStencilImage,
        &CmdClearDepthStencilImageParams {
            command_buffer: command_buffer(2),
            image: image(4),
            image_layout: ImageLayout::GENERAL,
            p_depth_stencil: Ptr::to(&ClearDepthStencilValue::zeroed()),
            range_count: 1,
            p_ranges: Ptr::to(&range),
        },
    );
    assert_eq!(last(&app), [(5, Stage::CLEAR.0, WRITE)]);
}

#[test]
fn a_marker_is_four_bytes() {
    let mut app = app();
    app.call(
        Api::CmdWriteBufferMarkerAMD,
        &CmdWriteBufferMarkerAMDParams {
            command_buffer: command_buffer(2),
            pipeline_stage: PipelineStageFlags(1),
            dst_buffer: buffer(1),
            dst_offset: 8,
            marker: 7,
        },
    );
    assert_eq!(last(&app), [(0, Stage::COPY.0, WRITE)]);
    let marker = &accesses(app.program(), 0, 0)[0];
    assert_eq!((&marker.region, marker.order), (&Region::Buffer(8..12), RasterOrder::marker(MarkerStage::from_bit(0))));
}

/// The stage of a marker decides which earlier markers it comes after.
#[test]
fn a_marker_has_the_bit_of_its_stage() {
    for stage in [Stage::BOTTOM_OF_PIPE, Stage::CLEAR] {
        let mut app = app();
        app.call(
            Api::CmdWriteBufferMarker2AMD,
            &CmdWriteBufferMarker2AMDParams {
                command_buffer: command_buffer(2),
                stage,
                dst_buffer: buffer(1),
                dst_offset: 8,
                marker: 7,
            },
        );
        let marker = &accesses(app.program(), 0, 0)[0];
        assert_eq!(marker.order, RasterOrder::marker(MarkerStage::from_stages(stage.0)));
    }
}
