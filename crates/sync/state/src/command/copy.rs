//! Copies, blits, resolves, fills, updates and clears, in both generations of the API.

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Origin, Region};

use crate::command::stage_access::{
    BLIT_READ, BLIT_WRITE, CLEAR_WRITE, COPY_READ, COPY_WRITE, RESOLVE_READ, RESOLVE_WRITE, StageAccess,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::resource::image::TrackedImage;
use crate::resource::region::{BufferTexelLayout, TexelBox, extent_of, offset_of};

/// The source and the destination box of a command.
type TexelBoxPair = (TexelBox, TexelBox);

/// Both generations use the same field names.
macro_rules! buffer_image {
    ($region:expr) => {{
        let region = $region;
        let rows = BufferTexelLayout {
            offset: region.buffer_offset,
            row_length: region.buffer_row_length,
            image_height: region.buffer_image_height,
        };
        let offset = offset_of(region.image_offset);
        (TexelBox { layers: region.image_subresource, offset, extent: extent_of(region.image_extent) }, rows)
    }};
}

macro_rules! image_image {
    ($region:expr) => {{
        let region = $region;
        let extent = extent_of(region.extent);
        let src = TexelBox { layers: region.src_subresource, offset: offset_of(region.src_offset), extent };
        (src, TexelBox { layers: region.dst_subresource, offset: offset_of(region.dst_offset), extent })
    }};
}

macro_rules! blit {
    ($region:expr) => {{
        let region = $region;
        (
            box_between_corners(region.src_subresource, region.src_offsets),
            box_between_corners(region.dst_subresource, region.dst_offsets),
        )
    }};
}

macro_rules! buffer_buffer {
    ($region:expr) => {{
        let region = $region;
        (region.src_offset, region.dst_offset, region.size)
    }};
}

impl TrackedDevice {
    pub(crate) fn track_copies(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdCopyBuffer(params) => {
                let regions = params.p_regions().iter().map(|it| buffer_buffer!(it));
                self.copy_buffer(params.command_buffer, params.src_buffer, params.dst_buffer, regions, out);
            }
            Call::CmdCopyBuffer2(params) => {
                let Some(info) = params.p_copy_buffer_info() else { return true };
                let regions = info.p_regions().iter().map(|it| buffer_buffer!(it));
                self.copy_buffer(params.command_buffer, info.src_buffer, info.dst_buffer, regions, out);
            }
            Call::CmdCopyImage(params) => {
                let boxes = params.p_regions().iter().map(|it| image_image!(it)).collect();
                self.copy_image(params.command_buffer, params.src_image, params.dst_image, boxes, out);
            }
            Call::CmdCopyImage2(params) => {
                let Some(info) = params.p_copy_image_info() else { return true };
                let boxes = info.p_regions().iter().map(|it| image_image!(it)).collect();
                self.copy_image(params.command_buffer, info.src_image, info.dst_image, boxes, out);
            }
            Call::CmdBlitImage(params) => {
                let boxes: Vec<TexelBoxPair> = params.p_regions().iter().map(|it| blit!(it)).collect();
                let accesses =
                    self.image_pair_accesses(params.src_image, params.dst_image, &boxes, BLIT_READ, BLIT_WRITE, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdBlitImage2(params) => {
                let Some(info) = params.p_blit_image_info() else { return true };
                let boxes: Vec<TexelBoxPair> = info.p_regions().iter().map(|it| blit!(it)).collect();
                let accesses =
                    self.image_pair_accesses(info.src_image, info.dst_image, &boxes, BLIT_READ, BLIT_WRITE, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdResolveImage(params) => {
                let boxes: Vec<TexelBoxPair> = params.p_regions().iter().map(|it| image_image!(it)).collect();
                let accesses = self.image_pair_accesses(
                    params.src_image,
                    params.dst_image,
                    &boxes,
                    RESOLVE_READ,
                    RESOLVE_WRITE,
                    out,
                );
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdResolveImage2(params) => {
                let Some(info) = params.p_resolve_image_info() else { return true };
                let boxes: Vec<TexelBoxPair> = info.p_regions().iter().map(|it| image_image!(it)).collect();
                let accesses =
                    self.image_pair_accesses(info.src_image, info.dst_image, &boxes, RESOLVE_READ, RESOLVE_WRITE, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return self.track_buffer_image_copies(tracked.call, out) || self.track_clears(tracked.call, out),
        }
        true
    }

    fn track_buffer_image_copies(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdCopyBufferToImage(params) => {
                let regions = params.p_regions().iter().map(|it| buffer_image!(it)).collect::<Vec<_>>();
                let accesses = self.buffer_image_accesses(
                    params.src_buffer,
                    COPY_READ,
                    params.dst_image,
                    COPY_WRITE,
                    &regions,
                    out,
                );
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyBufferToImage2(params) => {
                let Some(info) = params.p_copy_buffer_to_image_info() else { return true };
                let regions = info.p_regions().iter().map(|it| buffer_image!(it)).collect::<Vec<_>>();
                let (buffer, image) = (info.src_buffer, info.dst_image);
                let accesses = self.buffer_image_accesses(buffer, COPY_READ, image, COPY_WRITE, &regions, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyImageToBuffer(params) => {
                let regions = params.p_regions().iter().map(|it| buffer_image!(it)).collect::<Vec<_>>();
                let accesses = self.buffer_image_accesses(
                    params.dst_buffer,
                    COPY_WRITE,
                    params.src_image,
                    COPY_READ,
                    &regions,
                    out,
                );
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyImageToBuffer2(params) => {
                let Some(info) = params.p_copy_image_to_buffer_info() else { return true };
                let regions = info.p_regions().iter().map(|it| buffer_image!(it)).collect::<Vec<_>>();
                let (buffer, image) = (info.dst_buffer, info.src_image);
                let accesses = self.buffer_image_accesses(buffer, COPY_WRITE, image, COPY_READ, &regions, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    fn track_clears(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdFillBuffer(params) => {
                let write = self.buffer_access(params.dst_buffer, params.dst_offset, params.size, CLEAR_WRITE, out);
                let is_whole = params.size == vk::WHOLE_SIZE;
                let accesses = write.and_then(|it| if is_whole { whole_words(it) } else { Some(it) });
                self.record_action(params.command_buffer, accesses.into_iter().collect(), out);
            }
            Call::CmdUpdateBuffer(params) => {
                let accesses = self
                    .buffer_access(params.dst_buffer, params.dst_offset, params.data_size, CLEAR_WRITE, out)
                    .into_iter()
                    .collect();
                self.record_action(params.command_buffer, accesses, out);
                self.record_index_update(
                    params.command_buffer,
                    params.dst_buffer.0,
                    params.dst_offset,
                    params.p_data(),
                );
            }
            Call::CmdClearColorImage(params) => {
                self.clear_image(params.command_buffer, params.image, params.p_ranges().iter(), out)
            }
            Call::CmdClearDepthStencilImage(params) => {
                self.clear_image(params.command_buffer, params.image, params.p_ranges().iter(), out);
            }
            Call::CmdWriteBufferMarkerAMD(params) => {
                let write = StageAccess::for_marker(u64::from(params.pipeline_stage.0));
                let accesses =
                    self.buffer_access(params.dst_buffer, params.dst_offset, 4, write, out).into_iter().collect();
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdWriteBufferMarker2AMD(params) => {
                let write = StageAccess::for_marker(params.stage.0);
                let accesses =
                    self.buffer_access(params.dst_buffer, params.dst_offset, 4, write, out).into_iter().collect();
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    fn copy_buffer(
        &mut self,
        commands: vk::CommandBuffer,
        src: vk::Buffer,
        dst: vk::Buffer,
        regions: impl ExactSizeIterator<Item = (u64, u64, u64)>,
        out: &mut TrackerOutput<'_>,
    ) {
        let mut accesses = self.take_spare_accesses();
        accesses.reserve(2 * regions.len());
        for (index, (src_offset, dst_offset, size)) in (0..).zip(regions) {
            let origin = Origin::region(index);
            let read = self.buffer_access(src, src_offset, size, COPY_READ, out);
            accesses.extend(read.map(|it| it.with_origin(origin)));
            let write = self.buffer_access(dst, dst_offset, size, COPY_WRITE, out);
            accesses.extend(write.map(|it| it.with_origin(origin)));
        }
        self.record_action(commands, accesses, out);
    }

    fn copy_image(
        &mut self,
        commands: vk::CommandBuffer,
        src: vk::Image,
        dst: vk::Image,
        mut boxes: Vec<TexelBoxPair>,
        out: &mut TrackerOutput<'_>,
    ) {
        if let (Some((_, from)), Some((_, to))) = (self.image(src), self.image(dst)) {
            for (src, dst) in &mut boxes {
                dst.extent = destination_extent(from, src, to, dst);
            }
        }
        let accesses = self.image_pair_accesses(src, dst, &boxes, COPY_READ, COPY_WRITE, out);
        self.record_action(commands, accesses, out);
    }

    fn image_pair_accesses(
        &self,
        src: vk::Image,
        dst: vk::Image,
        boxes: &[TexelBoxPair],
        read: StageAccess,
        write: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let (Some((src, from)), Some((dst, to))) = (self.image(src), self.image(dst)) else {
            out.report_untracked("an image whose memory is not known");
            return Vec::new();
        };
        let both = |(index, (one, two)): (usize, &TexelBoxPair)| {
            let both = [read.access_to(src, from.texel_region(one)), write.access_to(dst, to.texel_region(two))];
            both.map(|it| it.with_origin(Origin::region(index as u32)))
        };
        boxes.iter().enumerate().flat_map(both).collect()
    }

    fn buffer_image_accesses(
        &self,
        buffer: vk::Buffer,
        buffer_usage: StageAccess,
        image: vk::Image,
        image_usage: StageAccess,
        regions: &[(TexelBox, BufferTexelLayout)],
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let (Some((resource, image)), Some((bytes, _))) = (self.image(image), self.buffer_range(buffer, 0, 0)) else {
            out.report_untracked("a buffer or an image whose memory is not known");
            return Vec::new();
        };
        let mut accesses = Vec::new();
        for (index, (texels, rows)) in regions.iter().enumerate() {
            let origin = Origin::region(index as u32);
            let ranges = image.buffer_ranges(texels, *rows);
            accesses.extend(ranges.into_iter().map(|it| buffer_usage.access_to_bytes(bytes, it).with_origin(origin)));
            accesses.push(image_usage.access_to(resource, image.texel_region(texels)).with_origin(origin));
        }
        accesses
    }

    fn clear_image<'a>(
        &mut self,
        commands: vk::CommandBuffer,
        image: vk::Image,
        ranges: impl Iterator<Item = View<'a, vk::ImageSubresourceRange>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let accesses = match self.image(image) {
            Some((resource, image)) => {
                let cleared = |(index, subresource_range): (usize, View<'a, vk::ImageSubresourceRange>)| {
                    let region = Region::Image(image.subresource_region(subresource_range.get()));
                    CLEAR_WRITE.access_to(resource, region).with_origin(Origin::region(index as u32))
                };
                ranges.enumerate().map(cleared).collect()
            }
            None => {
                out.report_untracked("an image whose memory is not known");
                Vec::new()
            }
        };
        self.record_action(commands, accesses, out);
    }

    /// An access to a range of a buffer; none if the range is empty.
    pub(crate) fn buffer_access(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        size: u64,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Option<Access> {
        let Some((resource, bytes)) = self.buffer_range(buffer, offset, size) else {
            out.report_untracked("a buffer whose memory is not known");
            return None;
        };
        (!bytes.is_empty()).then(|| usage.access_to_bytes(resource, bytes))
    }
}

/// The box between two corners in any order.
fn box_between_corners(layers: vk::ImageSubresourceLayers, corners: [vk::Offset3D; 2]) -> TexelBox {
    let [one, two] = corners.map(offset_of);
    let offset = std::array::from_fn(|it| one[it].min(two[it]));
    TexelBox { layers, offset, extent: std::array::from_fn(|it| one[it].abs_diff(two[it])) }
}

/// The extent of a copy in texels of the destination. The block sizes of the two images may differ.
fn destination_extent(from: &TrackedImage, src: &TexelBox, to: &TrackedImage, dst: &TexelBox) -> [u32; 3] {
    let block = |image: &TrackedImage, texels: &TexelBox| {
        format::block_extent(format::of_aspect(image.info.format, texels.layers.aspect_mask.0))
    };
    let (one, two) = (block(from, src), block(to, dst));
    let mut extent: [u32; 3] = std::array::from_fn(|it| src.extent[it].div_ceil(one[it]).saturating_mul(two[it]));
    if one == two {
        extent = src.extent;
    }
    // Layers of one image correspond to slices of the other.
    if to.ty == vk::ImageType::_3D {
        extent[2] = extent[2].max(src.layers.layer_count.min(from.info.layers));
    }
    extent
}

/// A fill up to the end of a buffer writes whole words.
fn whole_words(write: Access) -> Option<Access> {
    let Region::Buffer(bytes) = &write.region else { return Some(write) };
    let words = bytes.start..bytes.start + (bytes.end - bytes.start) / 4 * 4;
    (!words.is_empty()).then(|| Access { region: Region::Buffer(words), ..write.clone() })
}
