//! Shaders that read attachments they draw to, as input attachments and as tile images.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::{Collector, DescriptorUse, ShaderInterface, TileReads};
use lavascope_sync_ir::{HazardKind, RasterOrder};

/// Two draws to one color attachment with a fragment shader that reads it.
fn drawn(fragment: ShaderInterface, is_ordered: bool) -> App<Collector> {
    let mut app = fixture_with(fragment);
    make_drawing_pipeline(&mut app, 1, BlendOptions { is_ordered, ..BlendOptions::default() });
    make_set(&mut app, &[(DescriptorType::INPUT_ATTACHMENT, 1, NO_FLAGS)]);
    let image = DescriptorImageInfo { image_view: image_view(1), ..DescriptorImageInfo::zeroed() };
    let write = WriteDescriptorSet {
        dst_set: descriptor_set(1),
        descriptor_count: 1,
        descriptor_type: DescriptorType::INPUT_ATTACHMENT,
        p_image_info: Ptr::to(&image),
        ..WriteDescriptorSet::zeroed()
    };
    update_sets(&mut app, &[write], &[]);
    app.begin(2);
    begin_drawing(&mut app, 1);
    record!(
        app,
        CmdBindDescriptorSets,
        CmdBindDescriptorSetsParams {
            pipeline_bind_point: PipelineBindPoint::GRAPHICS,
            layout: pipeline_layout(1),
            first_set: 0,
            descriptor_set_count: 1,
            p_descriptor_sets: Ptr::to(&descriptor_set(1)),
            dynamic_offset_count: 0,
            p_dynamic_offsets: Ptr::NULL,
        }
    );
    app.draw(2, 3, 0);
    app.draw(2, 3, 0);
    end_drawing(&mut app);
    app.end(2);
    app.submit(0, 2, Fence(0));
    app
}

fn kinds(app: &App<Collector>) -> Vec<HazardKind> {
    check(app.program()).iter().map(|it| it.kind).collect()
}

fn reads_of(app: &App<Collector>, access: Bits) -> Vec<(u32, u64, RasterOrder)> {
    let all = accesses(app.program(), 0, 1).iter().filter(|it| it.access == access.0);
    all.map(|it| (it.resource.0, it.stage, it.order)).collect()
}

#[test]
fn an_input_attachment_is_read_in_order_where_the_pipeline_says_so() {
    let input = DescriptorUse { reads: true, ..DescriptorUse::new(0, 0) };
    let fragment = ShaderInterface { outputs: 1, descriptors: vec![input], ..ShaderInterface::default() };
    let app = drawn(fragment.clone(), true);
    let stage = Stage::FRAGMENT_SHADER.0;
    assert_eq!(reads_of(&app, Bits::INPUT_ATTACHMENT_READ), [(IMAGES[0], stage, RasterOrder::Color)]);
    assert_eq!(kinds(&app), []);
    let app = drawn(fragment, false);
    assert_eq!(reads_of(&app, Bits::INPUT_ATTACHMENT_READ), [(IMAGES[0], stage, RasterOrder::None)]);
    assert!(kinds(&app).contains(&HazardKind::ReadAfterWrite), "{:?}", kinds(&app));
}

#[test]
fn tile_images_are_read_in_order_unless_the_shader_says_otherwise() {
    for unordered in [false, true] {
        let tile = TileReads { colors: 1, depth: true, unordered: [unordered; 3], ..TileReads::default() };
        let app = drawn(ShaderInterface { outputs: 1, tile, ..ShaderInterface::default() }, false);
        let (color, depth) = match unordered {
            true => (RasterOrder::None, RasterOrder::None),
            false => (RasterOrder::Color, RasterOrder::DepthStencil),
        };
        let stage = Stage::FRAGMENT_SHADER.0;
        assert_eq!(reads_of(&app, Bits::COLOR_ATTACHMENT_READ), [(IMAGES[0], stage, color)]);
        assert!(reads_of(&app, Bits::DEPTH_STENCIL_ATTACHMENT_READ).contains(&(DEPTH, stage, depth)));
        assert_eq!(kinds(&app).is_empty(), !unordered);
    }
}
