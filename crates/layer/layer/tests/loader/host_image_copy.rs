//! Copies between host memory and images, which no queue makes.

use ash::vk;
use lavascope_abi::Command;
use lavascope_record::{HostBytes, check};
use lavascope_trace::{MergedReader, Trace};

use crate::child::child;
use crate::world::{Setup, entry};

/// The host memory that a copy to an image reads is in the trace, also if rows are longer than the copied part.
#[test]
fn what_a_host_copy_reads_is_recorded() {
    let name = "host_image_copy::what_a_host_copy_reads_is_recorded";
    let environment = [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];
    // 100 texels of 4 bytes and 60 rows in the second region, more than one record holds.
    let sources = || [vec![7u8; 16], (0..(128 * 59 + 100) * 4).map(|it: usize| (it * 31) as u8).collect::<Vec<u8>>()];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let extensions = [c"VK_EXT_host_image_copy", c"VK_KHR_copy_commands2", c"VK_KHR_format_feature_flags2"];
        let world = Setup { device_extensions: &extensions, ..Setup::OFF }.world(&entry);
        let copies = ash::ext::host_image_copy::Device::new(&world.instance, &world.device);
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 128, height: 64, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::HOST_TRANSFER_EXT);
        let layers = vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR).layer_count(1);
        let sources = sources();
        let region = |value: usize, row: u32, width: u32, height: u32| {
            let region = vk::MemoryToImageCopyEXT::default().image_subresource(layers).memory_row_length(row);
            let region = region.image_extent(vk::Extent3D { width, height, depth: 1 });
            vk::MemoryToImageCopyEXT { p_host_pointer: sources[value].as_ptr().cast(), ..region }
        };
        let regions = [region(0, 0, 2, 2), region(1, 128, 100, 60)];
        // SAFETY: a new image, and `sources` has as many bytes as each region reads; both live until the copy returns
        // (lifetime). The image has no memory (null driver).
        unsafe {
            let image = world.device.create_image(&info, None).expect("made");
            let copy = vk::CopyMemoryToImageInfoEXT::default().dst_image(image).regions(&regions);
            copies.copy_memory_to_image(&copy).expect("copied");
            world.device.destroy_image(image, None);
        }
        world.destroy();
    }) else {
        return;
    };
    let file = outcome.bytes("trace.lava");
    let trace = Trace::open(&file).expect("a trace");
    let (mut merged, mut found) = (MergedReader::new(&trace, None), [Vec::new(), Vec::new()]);
    let mut is_before = true;
    while let Some(merged_record) = merged.take_next().expect("whole") {
        if let Some(HostBytes { region, first, bytes }) = HostBytes::parse(merged_record.record) {
            assert!(is_before && first as usize == found[region as usize].len());
            found[region as usize].extend_from_slice(bytes);
        } else {
            is_before &= check(merged_record.record).expect("a call").command() != Command::CopyMemoryToImage;
        }
    }
    assert!(!is_before && found == sources());
}
