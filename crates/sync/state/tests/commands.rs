//! Each command that the seed lists: checked against earlier accesses, and ordered by a barrier.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{Certainty, Command as Recorded, Region};

fn found(commands: impl Fn(&mut App<Collector>)) -> Vec<u32> {
    unsynchronized_resources(fixture, commands)
}

/// The accesses of draws inside rendering.
fn drawn(draw: impl Fn(&mut App<Collector>)) -> Vec<u32> {
    found(|app| {
        begin_drawing(app, 1);
        draw(app);
        end_drawing(app);
    })
}

fn bind_compute(app: &mut App<Collector>) {
    bind_set(app, 1, &[]);
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 2);
}

#[test]
fn dispatches_are_validated() {
    let groups = [1, 1, 1];
    let dispatched = found(|app| {
        bind_compute(app);
        dispatch(app, groups[0]);
    });
    assert_eq!(dispatched, [3]);
    let with_base = found(|app| {
        bind_compute(app);
        record!(
            app,
            CmdDispatchBase,
            CmdDispatchBaseParams {
                base_group_x: 1,
                base_group_y: 0,
                base_group_z: 0,
                group_count_x: 1,
                group_count_y: 1,
                group_count_z: 1,
            }
        );
    });
    assert_eq!(with_base, [3]);
}

#[test]
fn dispatches_with_parameters_in_memory_are_validated() {
    let dispatched = found(|app| {
        bind_compute(app);
        record!(app, CmdDispatchIndirect, CmdDispatchIndirectParams { buffer: buffer(1), offset: 16 });
    });
    assert_eq!(dispatched, [0, 3]);
}

#[test]
fn draws_are_validated() {
    assert_eq!(drawn(|app| app.draw(2, 3, 0)), [1]);
}

#[test]
fn indexed_draws_are_validated() {
    let draw = |app: &mut App<Collector>| {
        record!(
            app,
            CmdDrawIndexed,
            CmdDrawIndexedParams {
                index_count: 3,
                instance_count: 1,
                first_index: 0,
                vertex_offset: 0,
                first_instance: 0,
            }
        );
    };
    assert_eq!(drawn(draw), [1, 2]);
}

#[test]
fn indirect_draws_are_validated() {
    let draw = |app: &mut App<Collector>| {
        let (buffer, draw_count, stride) = (buffer(1), 2, 16);
        record!(
            app,
            CmdDrawIndirect,
            CmdDrawIndirectParams { buffer: buffer, offset: 0, draw_count: draw_count, stride: stride }
        );
    };
    assert_eq!(drawn(draw), [0, 1]);
}

#[test]
fn indexed_indirect_draws_are_validated() {
    let draw = |app: &mut App<Collector>| {
        let (buffer, draw_count, stride) = (buffer(1), 2, 20);
        record!(
            app,
            CmdDrawIndexedIndirect,
            CmdDrawIndexedIndirectParams { buffer: buffer, offset: 0, draw_count: draw_count, stride: stride }
        );
    };
    assert_eq!(drawn(draw), [0, 1, 2]);
}

/// `vkCmdDrawIndirectCountKHR` and `vkCmdDrawIndirectCountAMD` are aliases of this command.
#[test]
fn indirect_draws_with_a_count_are_validated() {
    let draw = |app: &mut App<Collector>| {
        record!(
            app,
            CmdDrawIndirectCount,
            CmdDrawIndirectCountParams {
                buffer: buffer(1),
                offset: 0,
                count_buffer: buffer(5),
                count_buffer_offset: 8,
                max_draw_count: 2,
                stride: 16,
            }
        );
    };
    assert_eq!(drawn(draw), [0, 1, 4]);
}

/// `vkCmdDrawIndexedIndirectCountKHR` and `vkCmdDrawIndexedIndirectCountAMD` are aliases of this command.
#[test]
fn indexed_indirect_draws_with_a_count_are_validated() {
    let draw = |app: &mut App<Collector>| {
        record!(
            app,
            CmdDrawIndexedIndirectCount,
            CmdDrawIndexedIndirectCountParams {
                buffer: buffer(1),
                offset: 0,
                count_buffer: buffer(5),
                count_buffer_offset: 8,
                max_draw_count: 2,
                stride: 20,
            }
        );
    };
    assert_eq!(drawn(draw), [0, 1, 2, 4]);
}

#[test]
fn several_draws_in_one_read_the_vertices_of_each() {
    let mut app = fixture();
    app.begin(2);
    begin_drawing(&mut app, 1);
    let parts =
        [(0, 2), (100, 1), (2, 1)].map(|(first_vertex, vertex_count)| MultiDrawInfoEXT { first_vertex, vertex_count });
    record!(
        app,
        CmdDrawMultiEXT,
        CmdDrawMultiEXTParams {
            draw_count: 3,
            p_vertex_info: Ptr::to_slice(&parts),
            instance_count: 1,
            first_instance: 0,
            stride: 8,
        }
    );
    let reads: Vec<Region> = accesses(app.program(), 0, 1)
        .iter()
        .filter(|it| it.access == Bits::VERTEX_ATTRIBUTE_READ.0)
        .map(|it| it.region.clone())
        .collect();
    assert_eq!(reads, [Region::Buffer(0..48), Region::Buffer(1600..1616)]);
}

#[test]
fn clears_of_attachments_and_draws_of_one_rendering_need_no_barrier() {
    let mut app = fixture();
    app.begin(2);
    begin_drawing(&mut app, 1);
    let clears = [ImageAspectFlags::COLOR, ImageAspectFlags::DEPTH]
        .map(|aspect_mask| ClearAttachment { aspect_mask, ..ClearAttachment::zeroed() });
    let rect = ClearRect {
        rect: Rect2D { extent: Extent2D { width: 16, height: 16 }, ..Rect2D::zeroed() },
        layer_count: 1,
        ..ClearRect::zeroed()
    };
    for _ in 0..2 {
        app.draw(2, 3, 0);
        for _ in 0..2 {
            record!(
                app,
                CmdClearAttachments,
                CmdClearAttachmentsParams {
                    attachment_count: 2,
                    p_attachments: Ptr::to_slice(&clears),
                    rect_count: 1,
                    p_rects: Ptr::to(&rect),
                }
            );
        }
    }
    end_drawing(&mut app);
    app.end(2);
    app.submit(0, 2, Fence(0));
    assert_eq!(check(app.program()), []);
    let cleared = access_summaries(accesses(app.program(), 0, 2));
    assert_eq!(
        cleared,
        [
            (IMAGES[0], Stage::COLOR_ATTACHMENT_OUTPUT.0, Bits::COLOR_ATTACHMENT_WRITE.0),
            (DEPTH, Stage::EARLY_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
        ]
    );
}

#[test]
fn attachments_are_read_as_what_their_format_is() {
    let mut app = fixture();
    make_drawing_pipeline(&mut app, 3, BlendOptions { is_blended: true, ..BlendOptions::default() });
    app.begin(2);
    begin_drawing(&mut app, 3);
    app.draw(2, 3, 0);
    let reads: Vec<(u32, u64, u64)> = access_summaries(accesses(app.program(), 0, 1));
    assert!(reads.contains(&(IMAGES[0], Stage::COLOR_ATTACHMENT_OUTPUT.0, Bits::COLOR_ATTACHMENT_READ.0)));
    assert!(reads.contains(&(DEPTH, Stage::LATE_FRAGMENT_TESTS.0, Bits::DEPTH_STENCIL_ATTACHMENT_READ.0)));
}

fn blit() -> ImageBlit {
    let corners = [Offset3D::zeroed(), Offset3D { x: 8, y: 8, z: 1 }];
    ImageBlit { src_subresource: one_layer(), src_offsets: corners, dst_subresource: one_layer(), dst_offsets: corners }
}

#[test]
fn blits_are_validated() {
    let blitted = found(|app| {
        record!(
            app,
            CmdBlitImage,
            CmdBlitImageParams {
                src_image: image(1),
                src_image_layout: ImageLayout::GENERAL,
                dst_image: image(2),
                dst_image_layout: ImageLayout::GENERAL,
                region_count: 1,
                p_regions: Ptr::to(&blit()),
                filter: Filter::LINEAR,
            }
        );
    });
    assert_eq!(blitted, IMAGES[..2]);
}

#[test]
fn resolves_are_validated() {
    let resolved = found(|app| {
        let region = ImageResolve {
            src_subresource: one_layer(),
            dst_subresource: one_layer(),
            extent: Extent3D { width: 8, height: 8, depth: 1 },
            ..ImageResolve::zeroed()
        };
        record!(
            app,
            CmdResolveImage,
            CmdResolveImageParams {
                src_image: image(2),
                src_image_layout: ImageLayout::GENERAL,
                dst_image: image(3),
                dst_image_layout: ImageLayout::GENERAL,
                region_count: 1,
                p_regions: Ptr::to(&region),
            }
        );
    });
    assert_eq!(resolved, IMAGES[1..]);
}

#[test]
fn clears_of_images_are_validated() {
    let colors = found(|app| {
        record!(
            app,
            CmdClearColorImage,
            CmdClearColorImageParams {
                image: image(2),
                image_layout: ImageLayout::GENERAL,
                p_color: Ptr::to(&ClearColorValue::zeroed()),
                range_count: 1,
                p_ranges: Ptr::to(&whole_range(ImageAspectFlags::COLOR)),
            }
        );
    });
    let depth = found(|app| {
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
    });
    assert_eq!((colors, depth), (vec![IMAGES[1]], vec![DEPTH]));
}

#[test]
fn copies_are_validated() {
    let extent = Extent3D { width: 4, height: 4, depth: 1 };
    let buffers = found(|app| app.copy_buffer(2, 1, 2, 256));
    let images = found(|app| {
        let region =
            ImageCopy { src_subresource: one_layer(), dst_subresource: one_layer(), extent, ..ImageCopy::zeroed() };
        record!(
            app,
            CmdCopyImage,
            CmdCopyImageParams {
                src_image: image(1),
                src_image_layout: ImageLayout::GENERAL,
                dst_image: image(2),
                dst_image_layout: ImageLayout::GENERAL,
                region_count: 1,
                p_regions: Ptr::to(&region),
            }
        );
    });
    let region = BufferImageCopy { image_subresource: one_layer(), image_extent: extent, ..BufferImageCopy::zeroed() };
    let to_image = found(|app| {
        record!(
            app,
            CmdCopyBufferToImage,
            CmdCopyBufferToImageParams {
                src_buffer: buffer(1),
                dst_image: image(1),
                dst_image_layout: ImageLayout::GENERAL,
                region_count: 1,
                p_regions: Ptr::to(&region),
            }
        );
    });
    let to_buffer = found(|app| {
        record!(
            app,
            CmdCopyImageToBuffer,
            CmdCopyImageToBufferParams {
                src_image: image(1),
                src_image_layout: ImageLayout::GENERAL,
                dst_buffer: buffer(6),
                region_count: 1,
                p_regions: Ptr::to(&region),
            }
        );
    });
    assert_eq!((buffers, images), (vec![0, 1], vec![IMAGES[0], IMAGES[1]]));
    assert_eq!((to_image, to_buffer), (vec![0, IMAGES[0]], vec![5, IMAGES[0]]));
}

#[test]
fn fills_updates_and_markers_are_validated() {
    let filled = found(|app| {
        record!(app, CmdFillBuffer, CmdFillBufferParams { dst_buffer: buffer(1), dst_offset: 0, size: 16, data: 0 });
    });
    let data = [0_u8; 16];
    let updated = found(|app| {
        record!(
            app,
            CmdUpdateBuffer,
            CmdUpdateBufferParams { dst_buffer: buffer(2), dst_offset: 0, data_size: 16, p_data: Ptr::to_slice(&data) }
        );
    });
    let marked = found(|app| {
        record!(
            app,
            CmdWriteBufferMarkerAMD,
            CmdWriteBufferMarkerAMDParams {
                pipeline_stage: PipelineStageFlagBits::TOP_OF_PIPE,
                dst_buffer: buffer(3),
                dst_offset: 4,
                marker: 1,
            }
        );
    });
    assert_eq!((filled, updated, marked), (vec![0], vec![1], vec![2]));
}

fn with_queries() -> App<Collector> {
    let mut app = fixture();
    let info =
        QueryPoolCreateInfo { query_type: QueryType::TIMESTAMP, query_count: 4, ..QueryPoolCreateInfo::zeroed() };
    create!(app, CreateQueryPool, CreateQueryPoolParams, info, p_query_pool: query_pool(1));
    app
}

#[test]
fn copies_of_query_results_are_validated() {
    let copied = unsynchronized_resources(with_queries, |app| {
        record!(
            app,
            CmdCopyQueryPoolResults,
            CmdCopyQueryPoolResultsParams {
                query_pool: query_pool(1),
                first_query: 0,
                query_count: 2,
                dst_buffer: buffer(2),
                dst_offset: 0,
                stride: 8,
                flags: QueryResultFlags::_64,
            }
        );
    });
    assert_eq!(copied, [1]);
}

/// Query commands of a queue are ordered implicitly, and no barrier applies to the memory of a query.
#[test]
fn timestamps_and_other_queries_access_no_memory() {
    let mut app = with_queries();
    app.begin(2);
    for _ in 0..2 {
        record!(
            app,
            CmdResetQueryPool,
            CmdResetQueryPoolParams { query_pool: query_pool(1), first_query: 0, query_count: 4 }
        );
        record!(
            app,
            CmdWriteTimestamp,
            CmdWriteTimestampParams {
                pipeline_stage: PipelineStageFlagBits::BOTTOM_OF_PIPE,
                query_pool: query_pool(1),
                query: 1,
            }
        );
    }
    app.end(2);
    app.submit(0, 2, Fence(0));
    assert_eq!((check(app.program()), app.tracker.untracked().count()), (vec![], 0));
    assert_eq!(app.program().command_buffers[0].commands, []);
}

/// Binds and dynamic state access nothing; the next draw does.
#[test]
fn state_commands_count_where_a_draw_uses_their_state() {
    let mut app = fixture();
    app.begin(2);
    begin_drawing(&mut app, 1);
    record!(app, CmdSetCullMode, CmdSetCullModeParams { cull_mode: CullModeFlags::BACK });
    record!(app, CmdSetViewport, CmdSetViewportParams { first_viewport: 0, viewport_count: 0, p_viewports: Ptr::NULL });
    assert_eq!(app.program().command_buffers[0].commands.len(), 1, "only the begin of rendering");
    app.draw(2, 3, 0);
    end_drawing(&mut app);
    let is_action = |it: &Recorded| matches!(it, Recorded::Action(_));
    assert_eq!(app.program().command_buffers[0].commands.iter().filter(|it| is_action(it)).count(), 1);
}

#[test]
fn what_is_under_a_condition_is_not_certain() {
    let mut app = fixture();
    app.begin(2);
    bind_compute(&mut app);
    let info = ConditionalRenderingBeginInfoEXT { buffer: buffer(1), ..ConditionalRenderingBeginInfoEXT::zeroed() };
    record!(
        app,
        CmdBeginConditionalRenderingEXT,
        CmdBeginConditionalRenderingEXTParams { p_conditional_rendering_begin: Ptr::to(&info) }
    );
    dispatch(&mut app, 1);
    record!(app, CmdEndConditionalRenderingEXT, CmdEndConditionalRenderingEXTParams {});
    dispatch(&mut app, 1);
    let certainty = |index| accesses(app.program(), 0, index).iter().map(|it| it.certainty).collect::<Vec<_>>();
    assert_eq!([0, 1, 2].map(certainty), [[Certainty::Certain], [Certainty::Maybe], [Certainty::Certain]]);
}
