//! Two images in the same memory: compatible aliases, and images that share bytes.

mod common;

use common::*;
use lavascope_abi::{Command as Api, *};
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::HazardKind;

/// Two images at the same place. The second has these flags and layers; the requirements of the first were queried.
fn app(flags: ImageCreateFlags, layers: u32) -> App<Collector> {
    let mut app = App::collecting();
    for (serial, flags, array_layers) in [(1, ImageCreateFlags::ALIAS, 2), (2, flags, layers)] {
        let info = ImageCreateInfo {
            flags,
            image_type: ImageType::_2D,
            format: Format::R8G8B8A8_UNORM,
            extent: Extent3D { width: 16, height: 16, depth: 1 },
            mip_levels: 1,
            array_layers,
            samples: SampleCountFlags::_1,
            ..ImageCreateInfo::zeroed()
        };
        create!(app, CreateImage, CreateImageParams, info, p_image: image(serial));
        if serial == 1 {
            let needs = Ptr::to(&MemoryRequirements { size: 1 << 16, alignment: 256, memory_type_bits: 1 });
            let image = image(serial);
            let params =
                GetImageMemoryRequirementsParams { device: device(DEVICE), image, p_memory_requirements: needs };
            app.call(Api::GetImageMemoryRequirements, &params);
        }
        let (image, memory) = (image(serial), memory(MEMORY));
        call!(app, BindImageMemory, BindImageMemoryParams { image: image, memory: memory, memory_offset: 4096 });
    }
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

/// Clears a layer of each image.
fn hazards(mut app: App<Collector>, layers: [u32; 2]) -> Vec<HazardKind> {
    app.begin(2);
    for (serial, layer) in [1, 2].into_iter().zip(layers) {
        let range =
            ImageSubresourceRange { base_array_layer: layer, layer_count: 1, ..whole_range(ImageAspectFlags::COLOR) };
        app.call(
            Api::CmdClearColorImage,
            &CmdClearColorImageParams {
                command_buffer: command_buffer(2),
                image: image(serial),
                image_layout: ImageLayout::GENERAL,
                p_color: Ptr::to(&ClearColorValue { words: [0; 4] }),
                range_count: 1,
                p_ranges: Ptr::to(&range),
            },
        );
    }
    app.end(2);
    app.submit(0, 2, Fence(0));
    check(app.program()).iter().map(|it| it.kind).collect()
}

#[test]
fn identical_aliases_are_one_image_whichever_size_was_asked_for() {
    let alias = ImageCreateFlags::ALIAS;
    assert_eq!(hazards(app(alias, 2), [0, 1]), [], "other layers of the same image");
    assert_eq!(hazards(app(alias, 2), [1, 1]), [HazardKind::WriteAfterWrite]);
    // Without the flag, or with other parameters, the bytes of a layer are unknown.
    assert_eq!(hazards(app(ImageCreateFlags(0), 2), [0, 1]), [HazardKind::WriteAfterWrite]);
    assert_eq!(hazards(app(alias, 3), [0, 1]), [HazardKind::WriteAfterWrite]);
}
