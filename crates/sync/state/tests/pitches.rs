//! Linear images have the layout that the driver returned, if the application queried it.

mod common;

use common::*;
use lavascope_abi::*;
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{HazardKind, ResourceKind, Tiling};

const PITCH: u64 = 256;

fn make_image(app: &mut App<Collector>) {
    let info = linear_image([16, 4]);
    create!(app, CreateImage, CreateImageParams, info, p_image: image(1));
}

fn bind(app: &mut App<Collector>) {
    call!(app, BindImageMemory, BindImageMemoryParams { image: image(1), memory: memory(MEMORY), memory_offset: 0 });
}

fn ask(app: &mut App<Collector>, row_pitch: u64) {
    let which = ImageSubresource { aspect_mask: ImageAspectFlags::COLOR, ..ImageSubresource::zeroed() };
    let layout = SubresourceLayout { size: 4 * row_pitch, row_pitch, ..SubresourceLayout::zeroed() };
    call!(
        app,
        GetImageSubresourceLayout,
        GetImageSubresourceLayoutParams { image: image(1), p_subresource: Ptr::to(&which), p_layout: Ptr::to(&layout) }
    );
}

fn ask_2(app: &mut App<Collector>) {
    let subresource = ImageSubresource { aspect_mask: ImageAspectFlags::COLOR, ..ImageSubresource::zeroed() };
    let which = ImageSubresource2 { image_subresource: subresource, ..ImageSubresource2::zeroed() };
    let layout = SubresourceLayout { size: 4 * PITCH, row_pitch: PITCH, ..SubresourceLayout::zeroed() };
    let layout = SubresourceLayout2 { subresource_layout: layout, ..SubresourceLayout2::zeroed() };
    call!(
        app,
        GetImageSubresourceLayout2,
        GetImageSubresourceLayout2Params {
            image: image(1),
            p_subresource: Ptr::to(&which),
            p_layout: Ptr::to(&layout)
        }
    );
}

/// Clears the image, and reads 64 bytes of the same memory at an offset, with no barrier between.
fn clear_and_copy(app: &mut App<Collector>, offset: u64) -> Vec<HazardKind> {
    app.make_buffer(1, 64, offset);
    app.make_buffer(2, 64, 1 << 20);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    let (color, range) = (ClearColorValue::zeroed(), whole_range(ImageAspectFlags::COLOR));
    app.call(
        Command::CmdClearColorImage,
        &CmdClearColorImageParams {
            command_buffer: command_buffer(2),
            image: image(1),
            image_layout: ImageLayout::GENERAL,
            p_color: Ptr::to(&color),
            range_count: 1,
            p_ranges: Ptr::to(&range),
        },
    );
    app.copy_buffer(2, 1, 2, 64);
    app.end(2);
    app.submit(0, 2, Fence(0));
    check(app.program()).iter().map(|it| it.kind).collect()
}

#[test]
fn rows_lie_as_far_apart_as_the_driver_says() {
    type Step = fn(&mut App<Collector>);
    let ask_1: Step = |app| ask(app, PITCH);
    let orders: [&[Step]; 5] = [&[bind], &[ask_1, bind], &[bind, ask_1], &[bind, ask_2], &[ask_2, bind, ask_1, ask_1]];
    for (at, order) in orders.iter().enumerate() {
        // The second row of a dense layout, a gap, and the second row of the queried layout.
        for (offset, is_dense_row, is_row) in [(64, true, false), (128, true, false), (PITCH, false, true)] {
            let mut app = App::collecting();
            make_image(&mut app);
            order.iter().for_each(|it| it(&mut app));
            let has_asked = at > 0;
            let is_hazard = if has_asked { is_row } else { is_dense_row };
            let found = clear_and_copy(&mut app, offset);
            assert_eq!(found, vec![HazardKind::ReadAfterWrite; usize::from(is_hazard)], "{at}: {offset}");
            assert_eq!(app.tracker.untracked().count(), 0);
        }
    }
}

#[test]
fn what_was_used_before_somebody_asked_is_counted() {
    for (row_pitch, missing) in [(64, 0), (PITCH, 1)] {
        let mut app = App::collecting();
        make_image(&mut app);
        bind(&mut app);
        clear_and_copy(&mut app, 512);
        ask(&mut app, row_pitch);
        assert_eq!(app.tracker.untracked().count(), missing);
        let is_image = |it: &&ResourceKind| matches!(it, ResourceKind::Image(_));
        let all: Vec<&ResourceKind> = app.program().resources.iter().map(|it| &it.kind).filter(is_image).collect();
        assert!(matches!(all[..], [ResourceKind::Image(image)] if image.tiling == Tiling::Linear));
    }
}
