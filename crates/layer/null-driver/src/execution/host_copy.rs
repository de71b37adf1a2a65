//! Copies between the host's memory and images. They are no recorded commands, so they are always performed.

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::execution::transfer::{TexelRegion, copy_images, for_each_row, to_image_copy};
use crate::resources::images::{IMAGES, ImageData};

/// With the flag for plain copies, memory has the rows as the driver lays them out.
fn region(
    image: &ImageData,
    flags: HostImageCopyFlags,
    (at, offset, extent): (ImageSubresourceLayers, Offset3D, Extent3D),
    (row_length, image_height): (u32, u32),
) -> TexelRegion {
    if flags.0 & HostImageCopyFlags::MEMCPY.0 == 0 {
        return TexelRegion { at, offset, extent, row_length, image_height };
    }
    let plane = image.shape.plane(at.aspect_mask);
    let level = plane.level(at.mip_level, at.base_array_layer);
    let row_length = (level.row_pitch / plane.block_size) as u32 * plane.block_extent[0];
    let image_height = level.blocks[1] as u32 * plane.block_extent[1];
    TexelRegion { at, offset, extent, row_length, image_height }
}

pub(crate) fn copy_memory_to_image(c: ApplicationMemory<'_>, call: &CopyMemoryToImageParams) -> Result {
    let Some(info) = c.get(call.p_copy_memory_to_image_info) else { return Result::ERROR_UNKNOWN };
    let image = IMAGES.get(info.dst_image.0);
    let Some((image, texels)) = image.and_then(|it| Some((it.clone(), it.binding()?))) else { return Result::SUCCESS };
    for image_copy in c.slice(info.p_regions, info.region_count) {
        let place = (image_copy.image_subresource, image_copy.image_offset, image_copy.image_extent);
        let region = region(&image, info.flags, place, (image_copy.memory_row_length, image_copy.memory_image_height));
        for_each_row(&image, &region, |outside, inside, size| {
            let row = c.slice(Ptr::<u8>::new(image_copy.p_host_pointer.0 + outside), size);
            texels.memory.write(texels.offset + inside, row);
        });
    }
    Result::SUCCESS
}

pub(crate) fn copy_image_to_memory(c: ApplicationMemory<'_>, call: &CopyImageToMemoryParams) -> Result {
    let Some(info) = c.get(call.p_copy_image_to_memory_info) else { return Result::ERROR_UNKNOWN };
    let image = IMAGES.get(info.src_image.0);
    let Some((image, texels)) = image.and_then(|it| Some((it.clone(), it.binding()?))) else { return Result::SUCCESS };
    for memory_copy in c.slice(info.p_regions, info.region_count) {
        let place = (memory_copy.image_subresource, memory_copy.image_offset, memory_copy.image_extent);
        let region =
            region(&image, info.flags, place, (memory_copy.memory_row_length, memory_copy.memory_image_height));
        for_each_row(&image, &region, |outside, inside, size| {
            let row = c.slice_mut(Ptr::<u8>::new(memory_copy.p_host_pointer.0 + outside), size);
            texels.memory.read(texels.offset + inside, row);
        });
    }
    Result::SUCCESS
}

pub(crate) fn copy_image_to_image(c: ApplicationMemory<'_>, call: &CopyImageToImageParams) -> Result {
    let Some(info) = c.get(call.p_copy_image_to_image_info) else { return Result::ERROR_UNKNOWN };
    if let (Some(from), Some(to)) = (IMAGES.get(info.src_image.0), IMAGES.get(info.dst_image.0)) {
        for image_copy in c.slice(info.p_regions, info.region_count) {
            copy_images(&from, &to, &to_image_copy(image_copy));
        }
    }
    Result::SUCCESS
}
