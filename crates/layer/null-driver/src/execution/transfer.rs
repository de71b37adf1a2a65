//! Copies, fills and updates that are really performed, with `execute=transfer`.
//!
//! Not performed, in silence: blits, resolves and other clears; anything with a resource without memory (sparse ones among them), with formats of
//! depth and stencil together, copies of multisampled images through buffers, and clears of formats that share
//! exponents or have small floats.

use std::sync::Arc;

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::capabilities::formats;
use crate::execution::clear_color::pack_color;
use crate::execution::commands::RecordedOp;
use crate::execution::queries::{QUERY_POOLS, QueryPoolData};
use crate::resources::buffers::{BUFFERS, BufferData};
use crate::resources::image_layout::{LevelLayout, Plane};
use crate::resources::images::{IMAGES, ImageData};
use crate::resources::memory::DeviceAllocation;

/// A recorded transfer.
pub(crate) enum Transfer {
    Copy {
        from: Arc<BufferData>,
        to: Arc<BufferData>,
        regions: Vec<BufferCopy>,
    },
    Write {
        to: Arc<BufferData>,
        offset: u64,
        bytes: Vec<u8>,
    },
    Fill {
        to: Arc<BufferData>,
        offset: u64,
        size: u64,
        word: u32,
    },
    BufferImage {
        direction: CopyDirection,
        buffer: Arc<BufferData>,
        image: Arc<ImageData>,
        regions: Vec<BufferImageCopy>,
    },
    Images {
        from: Arc<ImageData>,
        to: Arc<ImageData>,
        regions: Vec<ImageCopy>,
    },
    Clear {
        image: Arc<ImageData>,
        color: [u32; 4],
        ranges: Vec<ImageSubresourceRange>,
    },
    QueryResults(QueryResultCopy),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    ToImage,
    ToBuffer,
}

/// `vkCmdCopyQueryPoolResults`.
pub(crate) struct QueryResultCopy {
    pool: Arc<QueryPoolData>,
    queries: std::ops::Range<u32>,
    to: Arc<BufferData>,
    offset: u64,
    stride: u64,
    flags: QueryResultFlags,
}

impl Transfer {
    pub(crate) fn perform(&self) {
        match self {
            Transfer::Copy { from, to, regions } => copy_buffers(from, to, regions),
            Transfer::Write { to, offset, bytes } => write(to, *offset, bytes),
            Transfer::Fill { to, offset, size, word } => fill(to, *offset, *size, *word),
            Transfer::BufferImage { direction, buffer, image, regions } => {
                regions.iter().for_each(|it| copy_buffer_image(*direction, buffer, image, it));
            }
            Transfer::Images { from, to, regions } => regions.iter().for_each(|it| copy_images(from, to, it)),
            Transfer::Clear { image, color, ranges } => ranges.iter().for_each(|it| clear(image, *color, it)),
            Transfer::QueryResults(query_results) => {
                query_results.pool.results(
                    query_results.queries.clone(),
                    query_results.stride,
                    query_results.flags,
                    |at, bytes| write(&query_results.to, query_results.offset + at, bytes),
                );
            }
        }
    }
}

fn write(to: &BufferData, offset: u64, bytes: &[u8]) {
    if let Some(binding) = to.binding() {
        binding.memory.write(binding.offset + offset, bytes);
    }
}

fn fill(to: &BufferData, offset: u64, size: u64, word: u32) {
    let left = to.size().saturating_sub(offset);
    let size = if size == WHOLE_SIZE { left & !3 } else { size.min(left) };
    let bytes: Vec<u8> = word.to_le_bytes().into_iter().cycle().take(size as usize).collect();
    write(to, offset, &bytes);
}

fn copy_buffers(from: &BufferData, to: &BufferData, regions: &[BufferCopy]) {
    let (Some(source), Some(target)) = (from.binding(), to.binding()) else { return };
    for region in regions {
        let size = region.size.min(from.size().saturating_sub(region.src_offset));
        let (from, to) = (source.offset + region.src_offset, target.offset + region.dst_offset);
        copy(&source.memory, from, &target.memory, to, size);
    }
}

fn copy(source: &DeviceAllocation, from: u64, target: &DeviceAllocation, to: u64, size: u64) {
    let mut bytes = vec![0; size.min(source.size) as usize];
    source.read(from, &mut bytes);
    target.write(to, &bytes);
}

/// A box of texels in an image, as blocks.
struct BlockBox {
    first: [u64; 3],
    count: [u64; 3],
}

impl BlockBox {
    fn new(plane: &Plane, offset: Offset3D, extent: Extent3D) -> BlockBox {
        let [x, y, z] = plane.block_extent.map(u64::from);
        let up = |it: u32, block: u64| u64::from(it).div_ceil(block);
        let down = |it: i32, block: u64| it.max(0) as u64 / block;
        BlockBox {
            first: [down(offset.x, x), down(offset.y, y), down(offset.z, z)],
            count: [up(extent.width, x), up(extent.height, y), up(extent.depth, z)],
        }
    }

    /// The offset of a row in the image's memory, and whether it lies inside the level.
    fn row(&self, level: &LevelLayout, block_size: u64, y: u64, z: u64) -> Option<u64> {
        let (y, z) = (self.first[1] + y, self.first[2] + z);
        let is_in = self.first[0] + self.count[0] <= level.blocks[0] && y < level.blocks[1] && z < level.blocks[2];
        is_in.then(|| level.offset + z * level.slice_pitch + y * level.row_pitch + self.first[0] * block_size)
    }
}

/// Whether texels of a format can be copied as they lie.
fn is_simple(image: &ImageData) -> bool {
    let desc = formats::find(image.shape.format);
    desc.is_some_and(|it| !(formats::is_depth_stencil(it) && it.components.len() > 1))
}

/// Texels of an image and how they lie outside of it.
pub(crate) struct TexelRegion {
    pub(crate) at: ImageSubresourceLayers,
    pub(crate) offset: Offset3D,
    pub(crate) extent: Extent3D,
    /// Zero if rows and slices lie densely.
    pub(crate) row_length: u32,
    pub(crate) image_height: u32,
}

/// Visits each row of a region with its offset outside the image, its offset inside, and its size.
pub(crate) fn for_each_row(image: &ImageData, region: &TexelRegion, mut visit: impl FnMut(u64, u64, u64)) {
    if !is_simple(image) || image.shape.samples > 1 {
        return;
    }
    let plane = image.shape.plane(region.at.aspect_mask);
    let block_box = BlockBox::new(plane, region.offset, region.extent);
    let [x, y, _] = plane.block_extent;
    let or = |given: u32, block: u32, blocks: u64| if given == 0 { blocks } else { u64::from(given.div_ceil(block)) };
    let row_pitch = or(region.row_length, x, block_box.count[0]) * plane.block_size;
    let slice_pitch = or(region.image_height, y, block_box.count[1]) * row_pitch;
    let left = image.shape.array_layers.saturating_sub(region.at.base_array_layer);
    for layer in 0..region.at.layer_count.min(left) {
        let level = plane.level(region.at.mip_level, region.at.base_array_layer + layer);
        for (z, y) in (0..block_box.count[2]).flat_map(|z| (0..block_box.count[1]).map(move |y| (z, y))) {
            let slice = u64::from(layer) * block_box.count[2] + z;
            if let Some(inside) = block_box.row(&level, plane.block_size, y, z) {
                visit(slice * slice_pitch + y * row_pitch, inside, block_box.count[0] * plane.block_size);
            }
        }
    }
}

fn copy_buffer_image(direction: CopyDirection, buffer: &BufferData, image: &ImageData, image_copy: &BufferImageCopy) {
    let (Some(linear), Some(texels)) = (buffer.binding(), image.binding()) else { return };
    let region = TexelRegion {
        at: image_copy.image_subresource,
        offset: image_copy.image_offset,
        extent: image_copy.image_extent,
        row_length: image_copy.buffer_row_length,
        image_height: image_copy.buffer_image_height,
    };
    for_each_row(image, &region, |outside, inside, size| {
        let (in_buffer, in_image) = (linear.offset + image_copy.buffer_offset + outside, texels.offset + inside);
        match direction {
            CopyDirection::ToImage => copy(&linear.memory, in_buffer, &texels.memory, in_image, size),
            CopyDirection::ToBuffer => copy(&texels.memory, in_image, &linear.memory, in_buffer, size),
        }
    });
}

pub(crate) fn copy_images(from: &ImageData, to: &ImageData, region: &ImageCopy) {
    let (Some(source), Some(target)) = (from.binding(), to.binding()) else { return };
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    let (src_plane, dst_plane) = (from.shape.plane(src.aspect_mask), to.shape.plane(dst.aspect_mask));
    if src_plane.block_size != dst_plane.block_size {
        return;
    }
    let from_window = BlockBox::new(src_plane, region.src_offset, region.extent);
    let to_window = BlockBox { count: from_window.count, ..BlockBox::new(dst_plane, region.dst_offset, region.extent) };
    for layer in 0..src.layer_count.min(from.shape.array_layers) {
        let src_level = src_plane.level(src.mip_level, src.base_array_layer + layer);
        let dst_level = dst_plane.level(dst.mip_level, dst.base_array_layer + layer);
        for (z, y) in (0..from_window.count[2]).flat_map(|z| (0..from_window.count[1]).map(move |y| (z, y))) {
            let from_row = from_window.row(&src_level, src_plane.block_size, y, z);
            let to_row = to_window.row(&dst_level, dst_plane.block_size, y, z);
            if let (Some(from), Some(to)) = (from_row, to_row) {
                let size = from_window.count[0] * src_plane.block_size;
                copy(&source.memory, source.offset + from, &target.memory, target.offset + to, size);
            }
        }
    }
}

fn clear(image: &ImageData, color: [u32; 4], range: &ImageSubresourceRange) {
    let Some(binding) = image.binding() else { return };
    let Some(texel) = formats::find(image.shape.format).and_then(|it| pack_color(it, color)) else { return };
    let plane = image.shape.plane(range.aspect_mask);
    let (levels, layers) = (image.shape.mip_levels, image.shape.array_layers);
    let end = |first: u32, count: u32, all: u32| first.saturating_add(count).min(all);
    for layer in range.base_array_layer..end(range.base_array_layer, range.layer_count, layers) {
        for level in range.base_mip_level..end(range.base_mip_level, range.level_count, levels) {
            let level = plane.level(level, layer);
            let size = level.blocks[0] * plane.block_size;
            let row: Vec<u8> = texel.iter().copied().cycle().take(size as usize).collect();
            for y in 0..level.blocks[1] * level.blocks[2] {
                binding.memory.write(binding.offset + level.offset + y * level.row_pitch, &row);
            }
        }
    }
}

fn record(c: ApplicationMemory<'_>, buffer: CommandBuffer, transfer: Option<Transfer>) {
    if let Some(transfer) = transfer {
        c.command_buffer(buffer).record(RecordedOp::Transfer(Arc::new(transfer)));
    }
}

fn copy_of(from: Buffer, to: Buffer, regions: Vec<BufferCopy>) -> Option<Transfer> {
    Some(Transfer::Copy { from: BUFFERS.get(from.0)?, to: BUFFERS.get(to.0)?, regions })
}

pub(crate) fn cmd_copy_buffer(c: ApplicationMemory<'_>, call: &CmdCopyBufferParams) {
    let regions = c.slice(call.p_regions, call.region_count).to_vec();
    record(c, call.command_buffer, copy_of(call.src_buffer, call.dst_buffer, regions));
}

pub(crate) fn cmd_copy_buffer2(c: ApplicationMemory<'_>, call: &CmdCopyBuffer2Params) {
    let Some(info) = c.get(call.p_copy_buffer_info) else { return };
    let one = |it: &BufferCopy2| BufferCopy { src_offset: it.src_offset, dst_offset: it.dst_offset, size: it.size };
    let regions = c.slice(info.p_regions, info.region_count).iter().map(one).collect();
    record(c, call.command_buffer, copy_of(info.src_buffer, info.dst_buffer, regions));
}

pub(crate) fn cmd_fill_buffer(c: ApplicationMemory<'_>, call: &CmdFillBufferParams) {
    let (offset, size, word) = (call.dst_offset, call.size, call.data);
    let transfer = BUFFERS.get(call.dst_buffer.0).map(|to| Transfer::Fill { to, offset, size, word });
    record(c, call.command_buffer, transfer);
}

pub(crate) fn cmd_update_buffer(c: ApplicationMemory<'_>, call: &CmdUpdateBufferParams) {
    let bytes = c.slice(call.p_data.cast::<u8>(), call.data_size).to_vec();
    let offset = call.dst_offset;
    record(c, call.command_buffer, BUFFERS.get(call.dst_buffer.0).map(|to| Transfer::Write { to, offset, bytes }));
}

fn buffer_image(
    direction: CopyDirection,
    buffer: Buffer,
    image: Image,
    regions: Vec<BufferImageCopy>,
) -> Option<Transfer> {
    Some(Transfer::BufferImage { direction, buffer: BUFFERS.get(buffer.0)?, image: IMAGES.get(image.0)?, regions })
}

fn to_buffer_image_copy(image_copy: &BufferImageCopy2) -> BufferImageCopy {
    BufferImageCopy {
        buffer_offset: image_copy.buffer_offset,
        buffer_row_length: image_copy.buffer_row_length,
        buffer_image_height: image_copy.buffer_image_height,
        image_subresource: image_copy.image_subresource,
        image_offset: image_copy.image_offset,
        image_extent: image_copy.image_extent,
    }
}

pub(crate) fn cmd_copy_buffer_to_image(c: ApplicationMemory<'_>, call: &CmdCopyBufferToImageParams) {
    let regions = c.slice(call.p_regions, call.region_count).to_vec();
    record(c, call.command_buffer, buffer_image(CopyDirection::ToImage, call.src_buffer, call.dst_image, regions));
}

pub(crate) fn cmd_copy_buffer_to_image2(c: ApplicationMemory<'_>, call: &CmdCopyBufferToImage2Params) {
    let Some(info) = c.get(call.p_copy_buffer_to_image_info) else { return };
    let regions = c.slice(info.p_regions, info.region_count).iter().map(to_buffer_image_copy).collect();
    record(c, call.command_buffer, buffer_image(CopyDirection::ToImage, info.src_buffer, info.dst_image, regions));
}

pub(crate) fn cmd_copy_image_to_buffer(c: ApplicationMemory<'_>, call: &CmdCopyImageToBufferParams) {
    let regions = c.slice(call.p_regions, call.region_count).to_vec();
    record(c, call.command_buffer, buffer_image(CopyDirection::ToBuffer, call.dst_buffer, call.src_image, regions));
}

pub(crate) fn cmd_copy_image_to_buffer2(c: ApplicationMemory<'_>, call: &CmdCopyImageToBuffer2Params) {
    let Some(info) = c.get(call.p_copy_image_to_buffer_info) else { return };
    let regions = c.slice(info.p_regions, info.region_count).iter().map(to_buffer_image_copy).collect();
    record(c, call.command_buffer, buffer_image(CopyDirection::ToBuffer, info.dst_buffer, info.src_image, regions));
}

pub(crate) fn to_image_copy(image_copy: &ImageCopy2) -> ImageCopy {
    ImageCopy {
        src_subresource: image_copy.src_subresource,
        src_offset: image_copy.src_offset,
        dst_subresource: image_copy.dst_subresource,
        dst_offset: image_copy.dst_offset,
        extent: image_copy.extent,
    }
}

fn images(from: Image, to: Image, regions: Vec<ImageCopy>) -> Option<Transfer> {
    Some(Transfer::Images { from: IMAGES.get(from.0)?, to: IMAGES.get(to.0)?, regions })
}

pub(crate) fn cmd_copy_image(c: ApplicationMemory<'_>, call: &CmdCopyImageParams) {
    let regions = c.slice(call.p_regions, call.region_count).to_vec();
    record(c, call.command_buffer, images(call.src_image, call.dst_image, regions));
}

pub(crate) fn cmd_copy_image2(c: ApplicationMemory<'_>, call: &CmdCopyImage2Params) {
    let Some(info) = c.get(call.p_copy_image_info) else { return };
    let regions = c.slice(info.p_regions, info.region_count).iter().map(to_image_copy).collect();
    record(c, call.command_buffer, images(info.src_image, info.dst_image, regions));
}

pub(crate) fn cmd_clear_color_image(c: ApplicationMemory<'_>, call: &CmdClearColorImageParams) {
    let (Some(image), Some(color)) = (IMAGES.get(call.image.0), c.get(call.p_color)) else { return };
    let ranges = c.slice(call.p_ranges, call.range_count).to_vec();
    record(c, call.command_buffer, Some(Transfer::Clear { image, color: color.words, ranges }));
}

pub(crate) fn cmd_copy_query_pool_results(c: ApplicationMemory<'_>, call: &CmdCopyQueryPoolResultsParams) {
    let (Some(pool), Some(to)) = (QUERY_POOLS.get(call.query_pool.0), BUFFERS.get(call.dst_buffer.0)) else { return };
    let queries = call.first_query..call.first_query.saturating_add(call.query_count);
    let (offset, stride, flags) = (call.dst_offset, call.stride, call.flags);
    let results = QueryResultCopy { pool, queries, to, offset, stride, flags };
    record(c, call.command_buffer, Some(Transfer::QueryResults(results)));
}
