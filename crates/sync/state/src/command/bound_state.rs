//! The bound state of a command buffer: pipelines, descriptor sets, buffers, dynamic state.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::ResourceId;

use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::index_values::IndexBufferUpdates;
use crate::draw::raster_state::{DynamicStates, RasterState};
use crate::draw::rendering::{CurrentAttachments, RecordingRenderPass};
use crate::draw::vertex_input::{BoundIndexBuffer, BoundVertexBuffer, VertexInput, index_size};
use crate::listener::TrackerOutput;
use crate::resource::image::ImageView;
use crate::shader::descriptor_buffer::DescriptorMemory;
use crate::shader::descriptor_set::{DescriptorWrite, TrackedDescriptorSet, writes_from_template};
use crate::shader::input_values::PushConstants;
use crate::shader::interface::Shader;
use crate::shader::pipeline::TrackedPipeline;

/// All recorded state that later commands depend on.
#[derive(Debug, Default)]
pub(crate) struct BoundState {
    pub(crate) bind_points: [BoundPipelineState; 5],
    pub(crate) vertices: BTreeMap<u32, BoundVertexBuffer>,
    pub(crate) indices: Option<BoundIndexBuffer>,
    pub(crate) index_updates: IndexBufferUpdates,
    /// Dynamic state that commands have set. The pipeline decides which of it is used.
    pub(crate) raster: RasterState,
    pub(crate) vertex: VertexInput,
    pub(crate) push_constants: PushConstants,
    pub(crate) memory: DescriptorMemory,
    /// The color attachment locations that commands have set.
    pub(crate) locations: Option<Vec<u32>>,
    /// Transform feedback buffers, while feedback is active.
    pub(crate) feedback_buffers: BTreeMap<u32, (ResourceId, Range<u64>)>,
    pub(crate) is_transform_feedback_active: bool,
    /// Conditional rendering is active: a value in memory decides whether draws and dispatches execute.
    pub(crate) is_conditional: bool,
    /// Views that are bound individually: the shading rate image and the invocation mask.
    pub(crate) rate_image: Option<ImageView>,
    pub(crate) invocation_mask: Option<ImageView>,
    pub(crate) recording_render_pass: Option<RecordingRenderPass>,
    pub(crate) attachments: CurrentAttachments,
}

/// The state of one bind point.
#[derive(Debug, Default)]
pub(crate) struct BoundPipelineState {
    pub(crate) pipeline: Option<Arc<TrackedPipeline>>,
    /// Shader objects by stage.
    objects: BTreeMap<u32, Shader>,
    pub(crate) sets: Vec<Option<BoundSet>>,
}

#[derive(Clone, Debug)]
pub(crate) struct BoundSet {
    pub(crate) set: SetRef,
    pub(crate) offsets: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum SetRef {
    /// A descriptor set by handle, with its contents at the time of use.
    Handle(u64),
    Pushed(Box<TrackedDescriptorSet>),
    /// A descriptor buffer: the descriptors are in this memory.
    InMemory(ResourceId, Range<u64>),
}

/// A pipeline bind point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindPoint {
    Graphics = 0,
    Compute = 1,
    RayTracing = 2,
    SubpassShading = 3,
    ExecutionGraph = 4,
}

/// More descriptor sets than any device supports.
const SETS_MAX: u32 = 256;

impl BoundState {
    /// Clears the bound state and returns it. After secondary command buffers have executed, all state is undefined.
    pub(crate) fn take_bound(&mut self) -> BoundState {
        let kept = BoundState {
            recording_render_pass: self.recording_render_pass.take(),
            attachments: std::mem::take(&mut self.attachments),
            ..BoundState::default()
        };
        std::mem::replace(self, kept)
    }

    pub(crate) fn bind_point(&self, kind: BindPoint) -> &BoundPipelineState {
        &self.bind_points[kind as usize]
    }

    fn bind_pipeline(&mut self, kind: BindPoint, pipeline: Option<Arc<TrackedPipeline>>) {
        let point = &mut self.bind_points[kind as usize];
        point.objects.clear();
        point.pipeline = pipeline;
    }

    fn bind_shader(&mut self, stage: vk::ShaderStageFlagBits, shader: Option<Shader>) {
        let kind = if stage == vk::ShaderStageFlagBits::COMPUTE { BindPoint::Compute } else { BindPoint::Graphics };
        let point = &mut self.bind_points[kind as usize];
        match shader {
            Some(shader) => drop(point.objects.insert(stage.0, shader)),
            None => drop(point.objects.remove(&stage.0)),
        }
        let shaders = point.objects.values().cloned().collect();
        point.pipeline =
            Some(Arc::new(TrackedPipeline { shaders, dynamic: DynamicStates::ALL, ..TrackedPipeline::default() }));
    }

    /// Binds a descriptor set. It reuses the memory of the set that was bound before.
    fn bind_handle(&mut self, kind: BindPoint, index: u32, handle: u64, offsets: &[u32]) {
        let slot = self.bind_points[kind as usize].sets.get_mut(index as usize);
        match slot.and_then(Option::as_mut) {
            Some(own) => {
                own.set = SetRef::Handle(handle);
                own.offsets.clear();
                own.offsets.extend_from_slice(offsets);
            }
            None => {
                let bound = BoundSet { set: SetRef::Handle(handle), offsets: offsets.to_vec() };
                self.bind_set(kind, index, Some(bound));
            }
        }
    }

    pub(crate) fn bind_set(&mut self, kind: BindPoint, index: u32, bound: Option<BoundSet>) {
        if index < SETS_MAX {
            let sets = &mut self.bind_points[kind as usize].sets;
            sets.resize(sets.len().max(index as usize + 1), None);
            sets[index as usize] = bound;
        }
    }
}

impl TrackedDevice {
    pub(crate) fn track_binds(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdBindDescriptorSets(params) => {
                let kinds = bind_point_of(params.pipeline_bind_point);
                let (sets, offsets) = (params.p_descriptor_sets(), params.p_dynamic_offsets());
                self.bind_sets(params.command_buffer, kinds.as_slice(), params.first_set, sets, offsets, out);
            }
            Call::CmdBindDescriptorSets2(params) => {
                let Some(info) = params.p_bind_descriptor_sets_info() else { return true };
                let kinds = bind_points_of(info.stage_flags);
                let (sets, offsets) = (info.p_descriptor_sets(), info.p_dynamic_offsets());
                self.bind_sets(params.command_buffer, &kinds, info.first_set, sets, offsets, out);
            }
            Call::CmdPushDescriptorSet(params) => {
                let kinds = bind_point_of(params.pipeline_bind_point).into_iter().collect::<Vec<_>>();
                let writes = DescriptorWrite::from_writes(params.p_descriptor_writes());
                self.push_descriptors(params.command_buffer, &kinds, params.layout, params.set, &writes, out);
            }
            Call::CmdPushDescriptorSet2(params) => {
                let Some(info) = params.p_push_descriptor_set_info() else { return true };
                let writes = DescriptorWrite::from_writes(info.p_descriptor_writes());
                let kinds = bind_points_of(info.stage_flags);
                self.push_descriptors(params.command_buffer, &kinds, info.layout, info.set, &writes, out);
            }
            Call::CmdPushDescriptorSetWithTemplate(params) => {
                let writes = writes_from_template(*params, params.p_data);
                self.push_by_template(
                    params.command_buffer,
                    params.descriptor_update_template,
                    params.layout,
                    params.set,
                    writes,
                    out,
                );
            }
            Call::CmdPushDescriptorSetWithTemplate2(params) => {
                let Some(info) = params.p_push_descriptor_set_with_template_info() else { return true };
                let writes = writes_from_template(info, info.p_data);
                self.push_by_template(
                    params.command_buffer,
                    info.descriptor_update_template,
                    info.layout,
                    info.set,
                    writes,
                    out,
                );
            }
            Call::CmdPushConstants(params) => {
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.push_constants.write(params.offset, params.p_values());
                }
            }
            Call::CmdPushConstants2(params) => {
                let Some(info) = params.p_push_constants_info() else { return true };
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.push_constants.write(info.offset, info.p_values());
                }
            }
            _ => return self.track_pipeline_binds(tracked.call, out) || self.track_buffer_binds(tracked.call, out),
        }
        true
    }

    fn track_pipeline_binds(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdBindPipeline(params) => {
                let pipeline = self.pipelines.get(params.pipeline.0).cloned();
                if pipeline.is_none() {
                    out.report_untracked("a pipeline that nobody created");
                }
                if let (Some(own), Some(kind)) =
                    (self.command_buffer_mut(params.command_buffer), bind_point_of(params.pipeline_bind_point))
                {
                    own.state.bind_pipeline(kind, pipeline);
                }
            }
            Call::CmdBindPipelineShaderGroupNV(params) => {
                let all = self.pipelines.get(params.pipeline.0).map_or(Vec::new(), |it| it.bindable_pipelines());
                let pipeline = all.get(params.group_index as usize).cloned();
                if pipeline.is_none() {
                    out.report_untracked("a pipeline that nobody created");
                }
                if let (Some(own), Some(kind)) =
                    (self.command_buffer_mut(params.command_buffer), bind_point_of(params.pipeline_bind_point))
                {
                    own.state.bind_pipeline(kind, pipeline);
                }
            }
            Call::CmdBindShadersEXT(params) => {
                let shaders = params.p_shaders();
                for (at, stage) in params.p_stages().iter().enumerate() {
                    let shader = shaders.get(at).and_then(|it| self.shaders.get(it.0)).cloned();
                    if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                        own.state.bind_shader(*stage, shader);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    fn track_buffer_binds(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdBindVertexBuffers(params) => {
                self.bind_vertices(
                    params.command_buffer,
                    params.first_binding,
                    params.p_buffers(),
                    params.p_offsets(),
                    &[],
                    &[],
                    out,
                );
            }
            Call::CmdBindVertexBuffers2(params) => {
                let (buffers, offsets) = (params.p_buffers(), params.p_offsets());
                let (sizes, strides) = (params.p_sizes(), params.p_strides());
                self.bind_vertices(params.command_buffer, params.first_binding, buffers, offsets, sizes, strides, out);
            }
            Call::CmdBindIndexBuffer(params) => {
                self.bind_indices(
                    params.command_buffer,
                    params.buffer,
                    [params.offset, vk::WHOLE_SIZE],
                    params.index_type,
                );
            }
            Call::CmdBindIndexBuffer2(params) => {
                self.bind_indices(
                    params.command_buffer,
                    params.buffer,
                    [params.offset, params.size],
                    params.index_type,
                );
            }
            Call::CmdBindShadingRateImageNV(params) => {
                let view = self.bound_view(params.image_view, out);
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.rate_image = view;
                }
            }
            Call::CmdBindInvocationMaskHUAWEI(params) => {
                let view = self.bound_view(params.image_view, out);
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.invocation_mask = view;
                }
            }
            Call::CmdSetVertexInputEXT(params) => {
                let vertex = VertexInput::from_command(*params);
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.vertex = vertex;
                }
            }
            _ => return self.track_dynamic_state(call),
        }
        true
    }

    fn bound_view(&self, view: vk::ImageView, out: &mut TrackerOutput<'_>) -> Option<ImageView> {
        let found = self.image_views.get(view.0).cloned();
        if found.is_none() && view.0 != 0 {
            out.report_untracked("a view that nobody created");
        }
        found
    }

    fn bind_sets(
        &mut self,
        buffer: vk::CommandBuffer,
        kinds: &[BindPoint],
        first: u32,
        sets: &[vk::DescriptorSet],
        offsets: &[u32],
        out: &mut TrackerOutput<'_>,
    ) {
        let mut offsets = offsets;
        for (at, set) in (first..).zip(sets) {
            let count = self.sets.get(set.0).map(|it| it.layout.dynamic_count);
            if count.is_none() && set.0 != 0 {
                out.report_untracked("a descriptor set that nobody allocated");
            }
            let (own_offsets, others) = offsets.split_at(offsets.len().min(count.unwrap_or(0) as usize));
            offsets = others;
            let Some(own) = self.command_buffer_mut(buffer) else { return };
            for kind in kinds {
                match set.0 {
                    0 => own.state.bind_set(*kind, at, None),
                    handle => own.state.bind_handle(*kind, at, handle, own_offsets),
                }
            }
        }
    }

    fn push_by_template(
        &mut self,
        buffer: vk::CommandBuffer,
        template: vk::DescriptorUpdateTemplate,
        layout: vk::PipelineLayout,
        set: u32,
        writes: Option<Vec<DescriptorWrite>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let point = self.templates.get(template.0).copied();
        let (Some(writes), Some(point)) = (writes, point) else {
            out.report_untracked("the data of a template");
            return;
        };
        let kinds = bind_point_of(point).into_iter().collect::<Vec<_>>();
        self.push_descriptors(buffer, &kinds, layout, set, &writes, out);
    }

    fn push_descriptors(
        &mut self,
        buffer: vk::CommandBuffer,
        kinds: &[BindPoint],
        layout: vk::PipelineLayout,
        index: u32,
        writes: &[DescriptorWrite],
        out: &mut TrackerOutput<'_>,
    ) {
        let layouts = self.pipeline_layouts.get(layout.0);
        let Some(layout) = layouts.and_then(|it| it.get(index as usize)?.clone()) else {
            out.report_untracked("a pipeline layout that nobody created");
            return;
        };
        let Some(own) = self.command_buffer_mut(buffer) else { return };
        for kind in kinds {
            // Pushed descriptors stay until they are pushed again.
            let before = own.state.bind_point(*kind).sets.get(index as usize).cloned().flatten();
            let mut set = match before.map(|it| it.set) {
                Some(SetRef::Pushed(set)) => set,
                _ => Box::new(TrackedDescriptorSet::new(Arc::clone(&layout), None)),
            };
            writes.iter().for_each(|it| set.write(it));
            let bound = BoundSet { set: SetRef::Pushed(set), offsets: Vec::new() };
            own.state.bind_set(*kind, index, Some(bound));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the arrays of the command")]
    fn bind_vertices(
        &mut self,
        commands: vk::CommandBuffer,
        first: u32,
        buffers: &[vk::Buffer],
        offsets: &[u64],
        sizes: &[u64],
        strides: &[u64],
        out: &mut TrackerOutput<'_>,
    ) {
        for (at, buffer) in buffers.iter().enumerate() {
            let offset = offsets.get(at).copied().unwrap_or(0);
            let size = sizes.get(at).copied().unwrap_or(vk::WHOLE_SIZE);
            let part = self.buffer_range(*buffer, offset, size);
            if part.is_none() && buffer.0 != 0 {
                out.report_untracked("a buffer whose memory is not known");
            }
            let Some(own) = self.command_buffer_mut(commands) else { return };
            let number = first.saturating_add(at as u32);
            own.state.vertices.remove(&number);
            if let Some((resource, bytes)) = part {
                let bound = BoundVertexBuffer { resource, bytes, stride: strides.get(at).copied() };
                own.state.vertices.insert(number, bound);
            }
        }
    }

    fn bind_indices(
        &mut self,
        commands: vk::CommandBuffer,
        buffer: vk::Buffer,
        [offset, size]: [u64; 2],
        ty: vk::IndexType,
    ) {
        let part = self.buffer_range(buffer, offset, size);
        let Some(own) = self.command_buffer_mut(commands) else { return };
        let bound = part.zip(index_size(ty));
        let bound = bound.map(|((resource, bytes), size)| BoundIndexBuffer { buffer: buffer.0, resource, bytes, size });
        own.state.indices = bound;
    }

    fn track_dynamic_state(&mut self, call: &Call<'_>) -> bool {
        let mut set = |buffer: vk::CommandBuffer, change: &dyn Fn(&mut RasterState)| {
            if let Some(own) = self.command_buffer_mut(buffer) {
                change(&mut own.state.raster);
            }
        };
        match call {
            Call::CmdSetRasterizerDiscardEnable(params) => {
                set(params.command_buffer, &|own| own.is_discarded = params.rasterizer_discard_enable.is_true());
            }
            Call::CmdSetCullMode(params) => set(params.command_buffer, &|own| own.cull_mode = params.cull_mode.0),
            Call::CmdSetPrimitiveTopology(params) => {
                set(params.command_buffer, &|own| own.topology = Some(params.primitive_topology));
            }
            Call::CmdSetDepthTestEnable(params) => {
                set(params.command_buffer, &|own| own.has_depth_test = params.depth_test_enable.is_true());
            }
            Call::CmdSetDepthWriteEnable(params) => {
                set(params.command_buffer, &|own| own.has_depth_write = params.depth_write_enable.is_true());
            }
            Call::CmdSetDepthBoundsTestEnable(params) => {
                set(params.command_buffer, &|own| own.has_depth_bounds = params.depth_bounds_test_enable.is_true());
            }
            Call::CmdSetStencilTestEnable(params) => {
                set(params.command_buffer, &|own| own.has_stencil_test = params.stencil_test_enable.is_true());
            }
            Call::CmdSetStencilOp(params) => set(params.command_buffer, &|own| set_stencil_op(own, *params)),
            Call::CmdSetStencilWriteMask(params) => {
                set(params.command_buffer, &|own| {
                    own.update_faces(params.face_mask, &|face| face.write_mask = params.write_mask)
                });
            }
            Call::CmdSetShadingRateImageEnableNV(params) => {
                set(params.command_buffer, &|own| own.has_rate_image = params.shading_rate_image_enable.is_true());
            }
            Call::CmdSetLogicOpEnableEXT(params) => {
                set(params.command_buffer, &|own| own.has_logic_op = params.logic_op_enable.is_true());
            }
            Call::CmdSetLogicOpEXT(params) => set(params.command_buffer, &|own| own.logic_op = params.logic_op),
            Call::CmdSetColorBlendEnableEXT(params) => set(params.command_buffer, &|own| {
                own.set_colors(params.first_attachment, params.p_color_blend_enables(), |own, item| {
                    own.is_blended = item.is_true()
                });
            }),
            Call::CmdSetColorWriteMaskEXT(params) => set(params.command_buffer, &|own| {
                own.set_colors(params.first_attachment, params.p_color_write_masks(), |own, mask| {
                    own.write_mask = mask.0 as u8
                });
            }),
            Call::CmdSetColorWriteEnableEXT(params) => set(params.command_buffer, &|own| {
                own.set_colors(0, params.p_color_write_enables(), |own, it| own.is_enabled = it.is_true());
            }),
            _ => return false,
        }
        true
    }
}

fn set_stencil_op(own: &mut RasterState, op_params: View<'_, vk::CmdSetStencilOpParams>) {
    own.update_faces(op_params.face_mask, &|face| {
        (face.fail_op, face.pass_op) = (op_params.fail_op, op_params.pass_op);
        (face.depth_fail_op, face.compare_op) = (op_params.depth_fail_op, op_params.compare_op);
    });
}

pub(crate) fn bind_point_of(point: vk::PipelineBindPoint) -> Option<BindPoint> {
    match point {
        vk::PipelineBindPoint::GRAPHICS => Some(BindPoint::Graphics),
        vk::PipelineBindPoint::COMPUTE => Some(BindPoint::Compute),
        vk::PipelineBindPoint::RAY_TRACING_KHR => Some(BindPoint::RayTracing),
        vk::PipelineBindPoint::SUBPASS_SHADING_HUAWEI => Some(BindPoint::SubpassShading),
        vk::PipelineBindPoint::EXECUTION_GRAPH_AMDX => Some(BindPoint::ExecutionGraph),
        _ => None,
    }
}

/// The bind points of some shader stages.
pub(crate) fn bind_points_of(stages: vk::ShaderStageFlags) -> Vec<BindPoint> {
    const GRAPHICS: u32 =
        vk::ShaderStageFlags::ALL_GRAPHICS.0 | vk::ShaderStageFlags::TASK_EXT.0 | vk::ShaderStageFlags::MESH_EXT.0;
    const RAYS: u32 = vk::ShaderStageFlags::RAYGEN_KHR.0
        | vk::ShaderStageFlags::ANY_HIT_KHR.0
        | vk::ShaderStageFlags::CLOSEST_HIT_KHR.0
        | vk::ShaderStageFlags::MISS_KHR.0
        | vk::ShaderStageFlags::INTERSECTION_KHR.0
        | vk::ShaderStageFlags::CALLABLE_KHR.0;
    let all = [
        (GRAPHICS, BindPoint::Graphics),
        (vk::ShaderStageFlags::COMPUTE.0, BindPoint::Compute),
        (RAYS, BindPoint::RayTracing),
    ];
    all.into_iter().filter(|it| stages.0 & it.0 != 0).map(|it| it.1).collect()
}
