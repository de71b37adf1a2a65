//! With `maintenance9`, the layers of a barrier on a 3D image are slices, and buffers and linear images need no
//! ownership transfers.

mod common;

use common::*;
use lavascope_abi::{Command as Api, *};
use lavascope_state::{Collector, Tracker};
use lavascope_sync_ir::{Area, Barrier, Command, DependencyTarget, ImageRegion, Region, ResourceKind};

const VOLUME: u64 = 1;
const DEPTH: u32 = 8;
const SLICED: ImageCreateFlags = ImageCreateFlags::_2D_ARRAY_COMPATIBLE;

fn app(maintenance9: bool, flags: ImageCreateFlags) -> App<Collector> {
    let features = PhysicalDeviceMaintenance9FeaturesKHR {
        maintenance9: Bool32(maintenance9.into()),
        ..PhysicalDeviceMaintenance9FeaturesKHR::zeroed()
    };
    let mut app = App::with_features(Tracker::new(Collector::default()), Ptr::to(&features).cast());
    let info = ImageCreateInfo {
        flags,
        image_type: ImageType::_3D,
        format: Format::R8G8B8A8_UNORM,
        extent: Extent3D { width: 16, height: 16, depth: DEPTH },
        mip_levels: 2,
        array_layers: 1,
        samples: SampleCountFlags::_1,
        ..ImageCreateInfo::zeroed()
    };
    create!(app, CreateImage, CreateImageParams, info, p_image: image(VOLUME));
    let (image, memory) = (image(VOLUME), memory(MEMORY));
    call!(app, BindImageMemory, BindImageMemoryParams { image: image, memory: memory, memory_offset: 0 });
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

/// The region of the image that a barrier covers.
fn part(app: &mut App<Collector>, mip: u32, [first, count]: [u32; 2], version: u32) -> ImageRegion {
    let range = ImageSubresourceRange {
        aspect_mask: ImageAspectFlags::COLOR,
        base_mip_level: mip,
        level_count: 1,
        base_array_layer: first,
        layer_count: count,
    };
    app.begin(2);
    let command_buffer = command_buffer(2);
    if version == 1 {
        let barrier =
            ImageMemoryBarrier { image: image(VOLUME), subresource_range: range, ..ImageMemoryBarrier::zeroed() };
        app.call(
            Api::CmdPipelineBarrier,
            &CmdPipelineBarrierParams {
                command_buffer,
                src_stage_mask: PipelineStageFlags::TRANSFER,
                dst_stage_mask: PipelineStageFlags::TRANSFER,
                image_memory_barrier_count: 1,
                p_image_memory_barriers: Ptr::to(&barrier),
                ..CmdPipelineBarrierParams::zeroed()
            },
        );
    } else {
        let barrier =
            ImageMemoryBarrier2 { image: image(VOLUME), subresource_range: range, ..ImageMemoryBarrier2::zeroed() };
        let info = DependencyInfo {
            image_memory_barrier_count: 1,
            p_image_memory_barriers: Ptr::to(&barrier),
            ..DependencyInfo::zeroed()
        };
        let p_dependency_info = Ptr::to(&info);
        app.call(Api::CmdPipelineBarrier2, &CmdPipelineBarrier2Params { command_buffer, p_dependency_info });
    }
    let last = app.program().command_buffers.last().expect("one").commands.last().expect("one");
    let Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) = last else {
        panic!("{last:?}")
    };
    match &dependencies[..] {
        [dependency] => match &dependency.target {
            DependencyTarget::Resource { region: Region::Image(region), .. } => region.clone(),
            other => panic!("{other:?}"),
        },
        all => panic!("{all:?}"),
    }
}

#[test]
fn layers_are_slices_with_the_feature() {
    for version in [1, 2] {
        let mut app = app(true, SLICED);
        let slices = |first, count, size| Some(Area { offset: [0, 0, first], extent: [size, size, count] });
        assert_eq!(part(&mut app, 0, [2, 3], version).area, slices(2, 3, 16));
        assert_eq!(part(&mut app, 0, [0, 1], version).area, slices(0, 1, 16), "no longer all of it");
        assert_eq!(part(&mut app, 0, [6, REMAINING_ARRAY_LAYERS], version).area, slices(6, 2, 16));
        assert_eq!(part(&mut app, 1, [1, 2], version).area, slices(1, 2, 8), "of half as many");
        for (mip, all) in [(0, DEPTH), (1, DEPTH / 2), (0, REMAINING_ARRAY_LAYERS)] {
            let region = part(&mut app, mip, [0, all], version);
            assert_eq!((region.area, region.layers), (None, 0..1), "{mip} {all}");
        }
    }
}

#[test]
fn layers_are_layers_without_it() {
    for (feature, flags) in [(false, SLICED), (true, ImageCreateFlags(0))] {
        let mut app = app(feature, flags);
        let region = part(&mut app, 0, [0, 1], 2);
        assert_eq!((region.area, region.layers), (None, 0..1), "{feature} {flags:?}");
    }
}

#[test]
fn only_optimal_images_belong_to_a_family() {
    for feature in [false, true] {
        let mut app = app(feature, SLICED);
        app.make_buffer(1, 256, 1 << 20);
        create!(app, CreateImage, CreateImageParams, linear_image([4, 4]), p_image: image(2));
        let (image, memory) = (image(2), memory(MEMORY));
        call!(app, BindImageMemory, BindImageMemoryParams { image: image, memory: memory, memory_offset: 1 << 21 });
        let exclusive = |resource: &lavascope_sync_ir::Resource| {
            let is_buffer = matches!(resource.kind, ResourceKind::Buffer { .. });
            (is_buffer, resource.is_exclusive)
        };
        let all: Vec<(bool, bool)> = app.program().resources.iter().map(exclusive).collect();
        assert_eq!(all, [(false, true), (true, !feature), (false, !feature)]);
    }
}
