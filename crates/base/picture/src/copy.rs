//! The structures of the commands that copy a presented image, without the calls.

use lavascope_abi::{
    AccessFlags, BufferImageCopy, Extent2D, Extent3D, Image, ImageAspectFlags, ImageLayout, ImageMemoryBarrier,
    ImageSubresourceLayers, ImageSubresourceRange, QUEUE_FAMILY_IGNORED, REMAINING_ARRAY_LAYERS, REMAINING_MIP_LEVELS,
    Structure,
};

/// All of the first layer of an image, one row behind the other.
pub fn copy_region(extent: Extent2D) -> BufferImageCopy {
    BufferImageCopy {
        image_subresource: ImageSubresourceLayers {
            aspect_mask: ImageAspectFlags::COLOR,
            layer_count: 1,
            ..ImageSubresourceLayers::zeroed()
        },
        image_extent: Extent3D { width: extent.width, height: extent.height, depth: 1 },
        ..BufferImageCopy::zeroed()
    }
}

/// Changes the layout of an image, after all earlier accesses and before all later ones.
pub fn layout_barrier(image: Image, (from, to): (ImageLayout, ImageLayout)) -> ImageMemoryBarrier {
    let all = AccessFlags(AccessFlags::MEMORY_READ.0 | AccessFlags::MEMORY_WRITE.0);
    ImageMemoryBarrier {
        src_access_mask: all,
        dst_access_mask: all,
        old_layout: from,
        new_layout: to,
        src_queue_family_index: QUEUE_FAMILY_IGNORED,
        dst_queue_family_index: QUEUE_FAMILY_IGNORED,
        image,
        subresource_range: ImageSubresourceRange {
            aspect_mask: ImageAspectFlags::COLOR,
            level_count: REMAINING_MIP_LEVELS,
            layer_count: REMAINING_ARRAY_LAYERS,
            ..ImageSubresourceRange::zeroed()
        },
        ..ImageMemoryBarrier::zeroed()
    }
}
