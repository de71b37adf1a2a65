//! Actions: the commands that access something.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::ResourceId;

use crate::error::LiveError;
use crate::objects::calls::call;
use crate::objects::descriptors::DescriptorLocation;
use crate::objects::device::{LiveDevice, create};
use crate::objects::pipeline::{LivePipeline, element_size};
use crate::objects::resources::{SCRATCH_BYTES, subresource_range};
use crate::plan::choose::AABB_BYTES;
use crate::plan::formats::{DEPTH, STENCIL};
use crate::plan::live_command::{
    BufferBytes, CopyBox, CopyRegion, Dispatch, DrawAttachments, DrawCommand, DrawSource, ImageCopy, LiveAttachments,
    LiveCommand, StructureBuild, TraceRays,
};
use crate::recording::render_pass::rect;
use crate::run::DrawsOutsidePass;

const GENERAL: vk::ImageLayout = vk::ImageLayout::GENERAL;

impl LiveDevice<'_> {
    pub(crate) fn record_live_command(&self, buffer: vk::CommandBuffer, deed: &LiveCommand) -> Result<(), LiveError> {
        match deed {
            LiveCommand::CopyBuffer { src, dst, regions } => self.copy_buffer(buffer, *src, *dst, regions)?,
            LiveCommand::CopyToImage { src, dst, parts } => {
                let regions: Vec<_> = parts.iter().map(buffer_image).collect();
                let (src, dst) = (self.source_buffer(*src), self.resource(*dst).image());
                let count = regions.len() as u32;
                call!(self.vk, cmd_copy_buffer_to_image(buffer, src, dst, GENERAL, count, Ptr::to_slice(&regions)));
            }
            LiveCommand::CopyFromImage { src, dst, parts } => {
                let regions: Vec<_> = parts.iter().map(buffer_image).collect();
                let (src, dst) = (self.resource(*src).image(), self.target_buffer(*dst)?);
                let count = regions.len() as u32;
                call!(self.vk, cmd_copy_image_to_buffer(buffer, src, GENERAL, dst, count, Ptr::to_slice(&regions)));
            }
            LiveCommand::CopyImage { how, src, dst, parts } => self.copy_image(buffer, *how, *src, *dst, parts),
            LiveCommand::Fill { dst, bytes } => {
                let (offset, size) = (bytes.start, bytes.end - bytes.start);
                call!(self.vk, cmd_fill_buffer(buffer, self.resource(*dst).buffer(), offset, size, 0));
            }
            LiveCommand::Marker { dst, offset, stage } => {
                let (stage, dst) = (vk::PipelineStageFlags2(*stage), self.resource(*dst).buffer());
                call!(self.vk, cmd_write_buffer_marker(buffer, stage, dst, *offset, 0));
            }
            LiveCommand::Clear { image, regions } => {
                let ranges: Vec<_> = regions.iter().map(subresource_range).collect();
                self.clear(buffer, *image, &ranges);
            }
            LiveCommand::Dispatch(dispatch) => self.dispatch(buffer, dispatch)?,
            LiveCommand::Draw(draw) => self.draw(buffer, draw)?,
            LiveCommand::ClearAttachment { index, area, layers } => {
                let attachment = vk::ClearAttachment {
                    aspect_mask: vk::ImageAspectFlags::COLOR,
                    color_attachment: *index,
                    clear_value: vk::ClearValue { words: [0; 4] },
                };
                let (base_array_layer, layer_count) = (layers.start, layers.len() as u32);
                let part = vk::ClearRect { rect: rect(*area), base_array_layer, layer_count };
                call!(self.vk, cmd_clear_attachments(buffer, 1, Ptr::to(&attachment), 1, Ptr::to(&part)));
            }
            LiveCommand::Trace(trace) => self.trace(buffer, trace)?,
            LiveCommand::Build(build) => self.build(buffer, build)?,
            LiveCommand::CopyStructure { src, dst } => {
                let info = vk::CopyAccelerationStructureInfoKHR {
                    src: self.acceleration_structure_in(src.as_ref())?,
                    dst: self.acceleration_structure_in(dst.as_ref())?,
                    mode: vk::CopyAccelerationStructureModeKHR::CLONE_KHR,
                    ..vk::CopyAccelerationStructureInfoKHR::zeroed()
                };
                call!(self.vk, cmd_copy_acceleration_structure(buffer, Ptr::to(&info)));
            }
            LiveCommand::Preprocess(source) => self.preprocess(buffer, source)?,
            LiveCommand::Encode { src, region } => {
                let extent = crate::plan::choose::image(self.scenario.program, *src).map_or([1; 3], |it| it.extent);
                let picture = vk::VideoPictureResourceInfoKHR {
                    coded_extent: vk::Extent2D { width: extent[0], height: extent[1] },
                    image_view_binding: self.view(*src, region)?,
                    ..vk::VideoPictureResourceInfoKHR::zeroed()
                };
                let info = vk::VideoEncodeInfoKHR {
                    dst_buffer: self.scratch()?,
                    dst_buffer_range: SCRATCH_BYTES,
                    src_picture_resource: picture,
                    ..vk::VideoEncodeInfoKHR::zeroed()
                };
                call!(self.vk, cmd_encode_video(buffer, Ptr::to(&info)));
            }
        }
        Ok(())
    }

    /// A buffer to read from: one of the program, or one that is never written.
    fn source_buffer(&self, resource_id: Option<ResourceId>) -> vk::Buffer {
        resource_id.map_or(self.zero_buffer, |it| self.resource(it).buffer())
    }

    /// A buffer to write to: of the program, or a new one.
    fn target_buffer(&self, resource_id: Option<ResourceId>) -> Result<vk::Buffer, LiveError> {
        resource_id.map_or_else(|| self.scratch(), |it| Ok(self.resource(it).buffer()))
    }

    fn copy_buffer(
        &self,
        buffer: vk::CommandBuffer,
        src: Option<ResourceId>,
        dst: Option<ResourceId>,
        regions: &[CopyRegion],
    ) -> Result<(), LiveError> {
        let region = |it: &CopyRegion| vk::BufferCopy { src_offset: it.src, dst_offset: it.dst, size: it.size };
        let regions: Vec<vk::BufferCopy> = regions.iter().map(region).collect();
        let (src, dst) = (self.source_buffer(src), self.target_buffer(dst)?);
        call!(self.vk, cmd_copy_buffer(buffer, src, dst, regions.len() as u32, Ptr::to_slice(&regions)));
        Ok(())
    }

    fn copy_image(
        &self,
        buffer: vk::CommandBuffer,
        how: ImageCopy,
        src: ResourceId,
        dst: ResourceId,
        parts: &[(CopyBox, CopyBox)],
    ) {
        let (src, dst) = (self.resource(src).image(), self.resource(dst).image());
        let count = parts.len() as u32;
        match how {
            ImageCopy::Copy => {
                let copy = |(one, two): &(CopyBox, CopyBox)| vk::ImageCopy {
                    src_subresource: layers(one),
                    src_offset: offset(one.offset),
                    dst_subresource: layers(two),
                    dst_offset: offset(two.offset),
                    extent: extent(one.extent),
                };
                let regions: Vec<_> = parts.iter().map(copy).collect();
                call!(self.vk, cmd_copy_image(buffer, src, GENERAL, dst, GENERAL, count, Ptr::to_slice(&regions)));
            }
            ImageCopy::Blit => {
                let blit = |(one, two): &(CopyBox, CopyBox)| vk::ImageBlit {
                    src_subresource: layers(one),
                    src_offsets: corners(one),
                    dst_subresource: layers(two),
                    dst_offsets: corners(two),
                };
                let regions: Vec<_> = parts.iter().map(blit).collect();
                let (first, filter) = (Ptr::to_slice(&regions), vk::Filter::NEAREST);
                call!(self.vk, cmd_blit_image(buffer, src, GENERAL, dst, GENERAL, count, first, filter));
            }
            ImageCopy::Resolve => {
                let resolve = |(one, two): &(CopyBox, CopyBox)| vk::ImageResolve {
                    src_subresource: layers(one),
                    src_offset: offset(one.offset),
                    dst_subresource: layers(two),
                    dst_offset: offset(two.offset),
                    extent: extent(one.extent),
                };
                let regions: Vec<_> = parts.iter().map(resolve).collect();
                call!(self.vk, cmd_resolve_image(buffer, src, GENERAL, dst, GENERAL, count, Ptr::to_slice(&regions)));
            }
        }
    }

    fn clear(&self, buffer: vk::CommandBuffer, id: ResourceId, ranges: &[vk::ImageSubresourceRange]) {
        let image = self.resource(id).image();
        let count = ranges.len() as u32;
        if ranges.iter().all(|it| it.aspect_mask.0 & (DEPTH | STENCIL) == 0) {
            let value = vk::ClearColorValue { words: [0; 4] };
            let (value, ranges) = (Ptr::to(&value), Ptr::to_slice(ranges));
            call!(self.vk, cmd_clear_color_image(buffer, image, GENERAL, value, count, ranges));
        } else {
            let value = vk::ClearDepthStencilValue { depth: 0.0, stencil: 0 };
            let (value, ranges) = (Ptr::to(&value), Ptr::to_slice(ranges));
            call!(self.vk, cmd_clear_depth_stencil_image(buffer, image, GENERAL, value, count, ranges));
        }
    }

    fn bind(&self, buffer: vk::CommandBuffer, point: vk::PipelineBindPoint, ready: &LivePipeline) {
        call!(self.vk, cmd_bind_pipeline(buffer, point, ready.pipeline));
        let layout = ready.descriptors.layout;
        match ready.descriptors.set {
            DescriptorLocation::Pool(set) => {
                call!(self.vk, cmd_bind_descriptor_sets(buffer, point, layout, 0, 1, Ptr::to(&set), 0, Ptr::NULL));
            }
            DescriptorLocation::Memory(address, offset) => {
                let info = vk::DescriptorBufferBindingInfoEXT {
                    address,
                    usage: vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT,
                    ..vk::DescriptorBufferBindingInfoEXT::zeroed()
                };
                call!(self.vk, cmd_bind_descriptor_buffers(buffer, 1, Ptr::to(&info)));
                let (index, offset) = (Ptr::to(&0), Ptr::to(&offset));
                call!(self.vk, cmd_set_descriptor_buffer_offsets(buffer, point, layout, 0, 1, index, offset));
            }
        }
    }

    fn dispatch(&self, buffer: vk::CommandBuffer, item: &Dispatch) -> Result<(), LiveError> {
        let ready = self.create_compute_pipeline(&item.bindings)?;
        self.bind(buffer, vk::PipelineBindPoint::COMPUTE, &ready);
        match &item.indirect {
            Some((from, bytes)) => {
                call!(self.vk, cmd_dispatch_indirect(buffer, self.resource(*from).buffer(), bytes.start));
            }
            None => call!(self.vk, cmd_dispatch(buffer, 1, 1, 1)),
        }
        Ok(())
    }

    fn draw(&self, buffer: vk::CommandBuffer, draw: &DrawCommand) -> Result<(), LiveError> {
        let ready = self.create_graphics_pipeline(draw)?;
        let own: Option<&LiveAttachments> = match &draw.attachments {
            DrawAttachments::AroundDraw(targets)
                if self.draws_outside_pass == DrawsOutsidePass::LeaveOutside && targets.is_empty() =>
            {
                None
            }
            DrawAttachments::AroundDraw(targets) => Some(targets),
            DrawAttachments::Program(_) => None,
        };
        if let Some(targets) = own {
            self.begin_rendering_around_draw(buffer, targets)?;
        }
        self.bind(buffer, vk::PipelineBindPoint::GRAPHICS, &ready);
        self.bind_vertices(buffer, draw);
        if let Some((from, offset)) = draw.condition {
            let info = vk::ConditionalRenderingBeginInfoEXT {
                buffer: self.resource(from).buffer(),
                offset,
                ..vk::ConditionalRenderingBeginInfoEXT::zeroed()
            };
            call!(self.vk, cmd_begin_conditional(buffer, Ptr::to(&info)));
        }
        if !draw.feedback.is_empty() {
            self.bind_feedback(buffer, &draw.feedback);
            call!(self.vk, cmd_begin_feedback(buffer, 0, 0, Ptr::NULL, Ptr::NULL));
        }
        self.draw_call(buffer, draw);
        if !draw.feedback.is_empty() {
            call!(self.vk, cmd_end_feedback(buffer, 0, 0, Ptr::NULL, Ptr::NULL));
        }
        if draw.condition.is_some() {
            call!(self.vk, cmd_end_conditional(buffer));
        }
        if own.is_some() {
            call!(self.vk, cmd_end_rendering(buffer));
        }
        Ok(())
    }

    fn bind_vertices(&self, buffer: vk::CommandBuffer, draw: &DrawCommand) {
        let (buffers, offsets, sizes) = self.buffer_ranges(&draw.vertices);
        if !buffers.is_empty() {
            let count = buffers.len() as u32;
            let (buffers, offsets) = (Ptr::to_slice(&buffers), Ptr::to_slice(&offsets));
            let sizes = Ptr::to_slice(&sizes);
            call!(self.vk, cmd_bind_vertex_buffers2(buffer, 0, count, buffers, offsets, sizes, Ptr::NULL));
        }
        if let Some((from, bytes)) = &draw.indices {
            let size = bytes.end - bytes.start;
            let ty = if element_size(size) == 4 { vk::IndexType::UINT32 } else { vk::IndexType::UINT8 };
            call!(self.vk, cmd_bind_index_buffer2(buffer, self.resource(*from).buffer(), bytes.start, size, ty));
        }
    }

    fn bind_feedback(&self, buffer: vk::CommandBuffer, feedback: &[BufferBytes]) {
        let (buffers, offsets, sizes) = self.buffer_ranges(feedback);
        let count = buffers.len() as u32;
        let (buffers, offsets, sizes) = (Ptr::to_slice(&buffers), Ptr::to_slice(&offsets), Ptr::to_slice(&sizes));
        call!(self.vk, cmd_bind_feedback_buffers(buffer, 0, count, buffers, offsets, sizes));
    }

    fn buffer_ranges(&self, all: &[BufferBytes]) -> (Vec<vk::Buffer>, Vec<u64>, Vec<u64>) {
        let buffers = all.iter().map(|it| self.resource(it.0).buffer()).collect();
        (buffers, all.iter().map(|it| it.1.start).collect(), all.iter().map(|it| it.1.end - it.1.start).collect())
    }

    fn draw_call(&self, buffer: vk::CommandBuffer, draw: &DrawCommand) {
        let elements = |buffer_bytes: &BufferBytes| {
            let size = buffer_bytes.1.end - buffer_bytes.1.start;
            match draw.attributes {
                Some(attributes) => size.div_ceil(attributes.stride()) as u32,
                None => (size / element_size(size)) as u32,
            }
        };
        const VERTICES: u32 = 3;
        match (&draw.source, &draw.indices) {
            (DrawSource::Direct, _) if draw.is_mesh() => call!(self.vk, cmd_draw_mesh_tasks(buffer, 1, 1, 1)),
            (DrawSource::Direct, Some(indices)) => {
                call!(self.vk, cmd_draw_indexed(buffer, elements(indices), 1, 0, 0, 0));
            }
            (DrawSource::Direct, None) => {
                let count = draw.vertices.first().map_or(VERTICES, elements);
                call!(self.vk, cmd_draw(buffer, count, 1, 0, 0));
            }
            (DrawSource::Indirect((from, bytes)), indices) => {
                let size = if indices.is_some() { 20 } else { 16 };
                let count = ((bytes.end - bytes.start) / size) as u32;
                let (from, stride) = (self.resource(*from).buffer(), size as u32);
                match indices {
                    Some(_) => call!(self.vk, cmd_draw_indexed_indirect(buffer, from, bytes.start, count, stride)),
                    None => call!(self.vk, cmd_draw_indirect(buffer, from, bytes.start, count, stride)),
                }
            }
            (DrawSource::Count(from, offset), _) => {
                let (parameters, counts) = (self.zero_buffer, self.resource(*from).buffer());
                call!(self.vk, cmd_draw_indirect_count(buffer, parameters, 0, counts, *offset, 1, 16));
            }
            (DrawSource::ByteCount(from, offset), _) => {
                let from = self.resource(*from).buffer();
                call!(self.vk, cmd_draw_indirect_byte_count(buffer, 1, 0, from, *offset, 0, 4));
            }
        }
    }

    fn trace(&self, buffer: vk::CommandBuffer, trace_rays: &TraceRays) -> Result<(), LiveError> {
        let ready = self.create_ray_tracing_pipeline(&trace_rays.bindings)?;
        self.bind(buffer, vk::PipelineBindPoint::RAY_TRACING_KHR, &ready);
        let table = |at: usize| match trace_rays.tables.get(at) {
            Some((from, bytes)) => {
                let address = self.address(self.resource(*from).buffer()) + bytes.start;
                let size = bytes.end - bytes.start;
                vk::StridedDeviceAddressRegionKHR { device_address: address, stride: size, size }
            }
            None => vk::StridedDeviceAddressRegionKHR { device_address: 0, stride: 0, size: 0 },
        };
        const GROUP: u64 = 64;
        let raygen = vk::StridedDeviceAddressRegionKHR {
            device_address: self.address(self.zero_buffer),
            stride: GROUP,
            size: GROUP,
        };
        let [miss, hit, callable] = [table(0), table(1), table(2)];
        let (raygen, miss, hit, callable) = (Ptr::to(&raygen), Ptr::to(&miss), Ptr::to(&hit), Ptr::to(&callable));
        call!(self.vk, cmd_trace_rays(buffer, raygen, miss, hit, callable, 1, 1, 1));
        Ok(())
    }

    /// Prepares dispatches whose parameters are these bytes.
    fn preprocess(&self, buffer: vk::CommandBuffer, (from, bytes): &BufferBytes) -> Result<(), LiveError> {
        const DISPATCH: u32 = 12;
        let mut token = vk::IndirectCommandsLayoutTokenEXT::zeroed();
        token.type_ = vk::IndirectCommandsTokenTypeEXT::DISPATCH_EXT;
        let info = vk::IndirectCommandsLayoutCreateInfoEXT {
            shader_stages: vk::ShaderStageFlags::COMPUTE,
            indirect_stride: DISPATCH,
            token_count: 1,
            p_tokens: Ptr::to(&token),
            ..vk::IndirectCommandsLayoutCreateInfoEXT::zeroed()
        };
        let layout = create!(self, create_indirect_commands_layout, info, IndirectCommandsLayoutEXT);
        let size = bytes.end - bytes.start;
        let info = vk::GeneratedCommandsInfoEXT {
            shader_stages: vk::ShaderStageFlags::COMPUTE,
            indirect_commands_layout: layout,
            indirect_address: self.address(self.resource(*from).buffer()) + bytes.start,
            indirect_address_size: size,
            preprocess_address: self.address(self.scratch()?),
            preprocess_size: SCRATCH_BYTES,
            max_sequence_count: size as u32 / DISPATCH,
            ..vk::GeneratedCommandsInfoEXT::zeroed()
        };
        call!(self.vk, cmd_preprocess_generated_commands(buffer, Ptr::to(&info), buffer));
        Ok(())
    }

    /// An acceleration structure in a buffer of the program, or in a new one.
    fn acceleration_structure_in(
        &self,
        buffer_bytes: Option<&BufferBytes>,
    ) -> Result<vk::AccelerationStructureKHR, LiveError> {
        match buffer_bytes {
            Some((buffer, bytes)) => self.create_acceleration_structure(
                self.resource(*buffer).buffer(),
                bytes.start,
                bytes.end - bytes.start,
            ),
            None => self.create_acceleration_structure(self.scratch()?, 0, SCRATCH_BYTES),
        }
    }

    /// Boxes that overlap, so that their number and stride fit any size.
    fn build(&self, buffer: vk::CommandBuffer, structure_build: &StructureBuild) -> Result<(), LiveError> {
        const STRIDE: u64 = 8;
        let geometry = |(from, bytes): &BufferBytes| {
            let mut boxes = vk::AccelerationStructureGeometryAabbsDataKHR::zeroed();
            boxes.data.words = [self.address(self.resource(*from).buffer()) + bytes.start];
            boxes.stride = STRIDE;
            let mut made = vk::AccelerationStructureGeometryKHR::zeroed();
            made.geometry_type = vk::GeometryTypeKHR::AABBS_KHR;
            made.geometry = aabbs_geometry(boxes);
            made
        };
        let geometries: Vec<_> = structure_build.inputs.iter().map(geometry).collect();
        let range = |(_, bytes): &BufferBytes| vk::AccelerationStructureBuildRangeInfoKHR {
            primitive_count: ((bytes.end - bytes.start - AABB_BYTES) / STRIDE) as u32 + 1,
            primitive_offset: 0,
            first_vertex: 0,
            transform_offset: 0,
        };
        let ranges: Vec<_> = structure_build.inputs.iter().map(range).collect();
        let mut info = vk::AccelerationStructureBuildGeometryInfoKHR {
            type_: vk::AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR,
            mode: match structure_build.source {
                Some(_) => vk::BuildAccelerationStructureModeKHR::UPDATE_KHR,
                None => vk::BuildAccelerationStructureModeKHR::BUILD_KHR,
            },
            dst_acceleration_structure: self.acceleration_structure_in(structure_build.target.as_ref())?,
            geometry_count: geometries.len() as u32,
            p_geometries: Ptr::to_slice(&geometries),
            ..vk::AccelerationStructureBuildGeometryInfoKHR::zeroed()
        };
        if structure_build.source.is_some() {
            info.src_acceleration_structure = self.acceleration_structure_in(structure_build.source.as_ref())?;
        }
        info.scratch_data.words = [self.address(self.scratch()?)];
        let lists = [Ptr::to_slice(&ranges)];
        call!(self.vk, cmd_build_acceleration_structures(buffer, 1, Ptr::to(&info), Ptr::to_slice(&lists)));
        Ok(())
    }
}

/// The union with boxes in it: its first words are theirs.
fn aabbs_geometry(boxes: vk::AccelerationStructureGeometryAabbsDataKHR) -> vk::AccelerationStructureGeometryDataKHR {
    let mut made = vk::AccelerationStructureGeometryDataKHR::zeroed();
    made.words[0] = boxes.s_type.0 as u64;
    made.words[1] = boxes.p_next.0;
    made.words[2] = boxes.data.words[0];
    made.words[3] = boxes.stride;
    made
}

fn buffer_image((at, copy_box): &(u64, CopyBox)) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        buffer_offset: *at,
        buffer_row_length: 0,
        buffer_image_height: 0,
        image_subresource: layers(copy_box),
        image_offset: offset(copy_box.offset),
        image_extent: extent(copy_box.extent),
    }
}

fn layers(copy_box: &CopyBox) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers {
        aspect_mask: vk::ImageAspectFlags(copy_box.aspect),
        mip_level: copy_box.mip,
        base_array_layer: copy_box.layers.start,
        layer_count: copy_box.layers.len() as u32,
    }
}

fn offset([x, y, z]: [u32; 3]) -> vk::Offset3D {
    vk::Offset3D { x: x as i32, y: y as i32, z: z as i32 }
}

fn extent([width, height, depth]: [u32; 3]) -> vk::Extent3D {
    vk::Extent3D { width, height, depth }
}

fn corners(copy_box: &CopyBox) -> [vk::Offset3D; 2] {
    [offset(copy_box.offset), offset(std::array::from_fn(|axis| copy_box.offset[axis] + copy_box.extent[axis]))]
}
