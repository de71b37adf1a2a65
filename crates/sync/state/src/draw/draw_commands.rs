//! Draws and dispatches.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Certainty};

use crate::command::bound_state::{BindPoint, BoundState};
use crate::command::stage_access::{
    COUNTER_INDIRECT_READ, FEEDBACK_WRITE, INDIRECT_READ, INVOCATION_MASK_READ, SHADING_RATE_READ,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::attachment;
use crate::draw::attachment::{AttachmentSet, AttachmentUses};
use crate::draw::index_values::IndexedVertices;
use crate::draw::raster_state::DynamicStates;
use crate::draw::rendering::CurrentAttachments;
use crate::draw::vertex_input::{FetchedElements, StrideSource, VertexInput};
use crate::listener::TrackerOutput;
use crate::shader::accesses::{ShaderUses, SubmitTimeUse};
use crate::shader::launch::Launch;
use crate::shader::pipeline::TrackedPipeline;

/// What a draw takes of its vertices.
pub(crate) struct DrawParameters {
    vertices: FetchedElements,
    instances: FetchedElements,
    /// None where vertices are not indexed.
    indices: Option<FetchedElements>,
    /// What is added to each index, if it is the same for all.
    vertex_offset: Option<i32>,
    /// What it reads besides: parameters in buffers.
    reads: Vec<Access>,
    has_vertices: bool,
    /// Workgroups of mesh or task shaders.
    groups: Option<[u32; 3]>,
}

/// What the last draw of a command buffer did to its attachments. The next one does the same, unless something came
/// between that decides about it.
#[derive(Default)]
pub(crate) struct LastDraw {
    /// Zero for none.
    buffer: u64,
    attachment_uses: AttachmentUses,
    accesses: Vec<Access>,
    /// Where the touches are kept, if they are.
    stored_uses: Option<Range<usize>>,
}

impl LastDraw {
    pub(crate) fn invalidate(&mut self) {
        self.buffer = 0;
    }

    fn is_for(&self, buffer: vk::CommandBuffer) -> bool {
        self.buffer == buffer.0 && buffer.0 != 0
    }

    fn set(&mut self, buffer: vk::CommandBuffer, targets: Option<&AttachmentSet>, touches: AttachmentUses) {
        (self.buffer, self.stored_uses) = (buffer.0, None);
        self.accesses.clear();
        if let Some(targets) = targets {
            targets.add_accesses(&touches, &mut self.accesses);
        }
        self.attachment_uses = touches;
    }

    pub(crate) fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Where the touches are kept: once, for all draws that have the same.
    pub(crate) fn stored_uses(&mut self, keep: impl FnOnce(&AttachmentUses) -> Range<usize>) -> Range<usize> {
        let touches = &self.attachment_uses;
        self.stored_uses.get_or_insert_with(|| keep(touches)).clone()
    }
}

/// Bytes of indirect parameters.
pub(crate) const DRAW: u64 = 16;
pub(crate) const DRAW_INDEXED: u64 = 20;
pub(crate) const DISPATCH: u64 = 12;
const DRAW_MESH_NV: u64 = 8;
pub(crate) const COUNT: u64 = 4;
/// Structures with gaps between them are ranges of their own up to this many.
const STRUCTURES_MAX: u32 = 256;

impl DrawParameters {
    fn new(vertices: FetchedElements, instances: FetchedElements) -> DrawParameters {
        DrawParameters {
            vertices,
            instances,
            indices: None,
            vertex_offset: None,
            reads: Vec::new(),
            has_vertices: true,
            groups: None,
        }
    }

    fn indexed(indices: FetchedElements, instances: FetchedElements) -> DrawParameters {
        // Which vertices are meant stands in memory.
        DrawParameters { indices: Some(indices), ..DrawParameters::new(FetchedElements::Unknown, instances) }
    }

    pub(crate) fn indirect(reads: Vec<Access>) -> DrawParameters {
        DrawParameters { reads, ..DrawParameters::new(FetchedElements::Unknown, FetchedElements::Unknown) }
    }

    pub(crate) fn indexed_indirect(reads: Vec<Access>) -> DrawParameters {
        DrawParameters { reads, ..DrawParameters::indexed(FetchedElements::Unknown, FetchedElements::Unknown) }
    }

    /// How many vertices there are stands in memory, how many instances does not.
    pub(crate) fn counted_in_bytes(read: Option<Access>, instances: FetchedElements) -> DrawParameters {
        DrawParameters { reads: read.into_iter().collect(), ..DrawParameters::new(FetchedElements::Unknown, instances) }
    }

    pub(crate) fn mesh(reads: Vec<Access>) -> DrawParameters {
        DrawParameters { has_vertices: false, ..DrawParameters::indirect(reads) }
    }

    fn tasks(groups: [u32; 3]) -> DrawParameters {
        DrawParameters { groups: Some(groups), ..DrawParameters::mesh(Vec::new()) }
    }

    fn is_empty(&self) -> bool {
        let nothing = self.indices.as_ref().unwrap_or(&self.vertices).is_empty() || self.instances.is_empty();
        nothing && self.has_vertices || self.groups.is_some_and(|it| it.contains(&0))
    }

    fn launch(&self) -> Launch {
        match self.groups {
            Some(groups) => Launch::groups([0; 3], groups),
            None if !self.has_vertices => Launch::Unknown,
            None => Launch::Vertices {
                vertices: self.vertices.single_range().filter(|_| self.indices.is_none()),
                instances: self.instances.single_range(),
            },
        }
    }
}

/// Both generations of indirect draws with a count name their parameters alike.
macro_rules! counted {
    ($device:expr, $params:expr, $size:expr, $out:expr) => {{
        let params = $params;
        let reads = $device.indirect_parameter_reads(
            params.buffer,
            params.offset,
            params.max_draw_count,
            params.stride,
            $size,
            $out,
        );
        let mut reads: Vec<Access> = reads.into_iter().map(with_certainty_somewhere).collect();
        reads.extend($device.buffer_access(
            params.count_buffer,
            params.count_buffer_offset,
            COUNT,
            INDIRECT_READ,
            $out,
        ));
        reads
    }};
}

impl TrackedDevice {
    pub(crate) fn track_draws(&mut self, event: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (buffer, draw) = match event.call {
            // The common draws do not move `draw`: copying it would cause a store-forwarding stall.
            Call::CmdDraw(params) => {
                let vertices = FetchedElements::from_first_and_count(params.first_vertex, params.vertex_count);
                let draw = DrawParameters::new(
                    vertices,
                    FetchedElements::from_first_and_count(params.first_instance, params.instance_count),
                );
                self.record_draw(params.command_buffer, &draw, out);
                return true;
            }
            Call::CmdDrawIndexed(params) => {
                let indices = FetchedElements::from_first_and_count(params.first_index, params.index_count);
                let instances = FetchedElements::from_first_and_count(params.first_instance, params.instance_count);
                let draw = DrawParameters {
                    vertex_offset: Some(params.vertex_offset),
                    ..DrawParameters::indexed(indices, instances)
                };
                self.record_draw(params.command_buffer, &draw, out);
                return true;
            }
            Call::CmdDrawMultiEXT(params) => (params.command_buffer, draw_multi(*params)),
            Call::CmdDrawMultiIndexedEXT(params) => (params.command_buffer, draw_multi_indexed(*params)),
            Call::CmdDrawIndirect(params) => {
                let reads = self.indirect_parameter_reads(
                    params.buffer,
                    params.offset,
                    params.draw_count,
                    params.stride,
                    DRAW,
                    out,
                );
                (params.command_buffer, DrawParameters::indirect(reads))
            }
            Call::CmdDrawIndexedIndirect(params) => {
                let reads = self.indirect_parameter_reads(
                    params.buffer,
                    params.offset,
                    params.draw_count,
                    params.stride,
                    DRAW_INDEXED,
                    out,
                );
                (params.command_buffer, DrawParameters::indexed_indirect(reads))
            }
            Call::CmdDrawIndirectCount(params) => {
                (params.command_buffer, DrawParameters::indirect(counted!(self, params, DRAW, out)))
            }
            Call::CmdDrawIndexedIndirectCount(params) => {
                (params.command_buffer, DrawParameters::indexed_indirect(counted!(self, params, DRAW_INDEXED, out)))
            }
            Call::CmdDrawIndirectByteCountEXT(params) => {
                let read = self.buffer_access(
                    params.counter_buffer,
                    params.counter_buffer_offset,
                    COUNT,
                    COUNTER_INDIRECT_READ,
                    out,
                );
                let instances = FetchedElements::from_first_and_count(params.first_instance, params.instance_count);
                (params.command_buffer, DrawParameters::counted_in_bytes(read, instances))
            }
            _ => return self.track_mesh_draws(event.call, out) || self.track_dispatches(event.call, out),
        };
        self.record_draw(buffer, &draw, out);
        true
    }

    fn track_mesh_draws(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (buffer, draw) = match call {
            Call::CmdDrawMeshTasksEXT(params) => (
                params.command_buffer,
                DrawParameters::tasks([params.group_count_x, params.group_count_y, params.group_count_z]),
            ),
            // Its first task counts as the number of a workgroup does.
            Call::CmdDrawMeshTasksNV(params) if params.first_task == 0 => {
                (params.command_buffer, DrawParameters::tasks([params.task_count, 1, 1]))
            }
            Call::CmdDrawMeshTasksNV(params) => (params.command_buffer, DrawParameters::mesh(Vec::new())),
            Call::CmdDrawClusterHUAWEI(params) => (
                params.command_buffer,
                DrawParameters::tasks([params.group_count_x, params.group_count_y, params.group_count_z]),
            ),
            Call::CmdDrawClusterIndirectHUAWEI(params) => {
                let read = self.buffer_access(params.buffer, params.offset, DISPATCH, INDIRECT_READ, out);
                (params.command_buffer, DrawParameters::mesh(read.into_iter().collect()))
            }
            Call::CmdDrawMeshTasksIndirectEXT(params) => {
                let reads = self.indirect_parameter_reads(
                    params.buffer,
                    params.offset,
                    params.draw_count,
                    params.stride,
                    DISPATCH,
                    out,
                );
                (params.command_buffer, DrawParameters::mesh(reads))
            }
            Call::CmdDrawMeshTasksIndirectNV(params) => {
                let reads = self.indirect_parameter_reads(
                    params.buffer,
                    params.offset,
                    params.draw_count,
                    params.stride,
                    DRAW_MESH_NV,
                    out,
                );
                (params.command_buffer, DrawParameters::mesh(reads))
            }
            Call::CmdDrawMeshTasksIndirectCountEXT(params) => {
                (params.command_buffer, DrawParameters::mesh(counted!(self, params, DISPATCH, out)))
            }
            Call::CmdDrawMeshTasksIndirectCountNV(params) => {
                (params.command_buffer, DrawParameters::mesh(counted!(self, params, DRAW_MESH_NV, out)))
            }
            _ => return false,
        };
        self.record_draw(buffer, &draw, out);
        true
    }

    fn track_dispatches(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdDispatch(params) => {
                let groups = [params.group_count_x, params.group_count_y, params.group_count_z];
                self.dispatch(params.command_buffer, [0; 3], groups, out);
            }
            Call::CmdDispatchBase(params) => {
                let groups = [params.group_count_x, params.group_count_y, params.group_count_z];
                self.dispatch(
                    params.command_buffer,
                    [params.base_group_x, params.base_group_y, params.base_group_z],
                    groups,
                    out,
                );
            }
            Call::CmdDispatchIndirect(params) => {
                let read = self.buffer_access(params.buffer, params.offset, DISPATCH, INDIRECT_READ, out);
                self.record_launch(
                    params.command_buffer,
                    BindPoint::Compute,
                    read.into_iter().collect(),
                    &Launch::Unknown,
                    out,
                );
            }
            Call::CmdSubpassShadingHUAWEI(params) => {
                self.record_launch(params.command_buffer, BindPoint::SubpassShading, Vec::new(), &Launch::Unknown, out);
            }
            // One for each tile of the render area.
            Call::CmdDispatchTileQCOM(params) => {
                self.record_launch(params.command_buffer, BindPoint::Compute, Vec::new(), &Launch::Unknown, out);
            }
            _ => return false,
        }
        true
    }

    fn dispatch(&mut self, buffer: vk::CommandBuffer, first: [u32; 3], groups: [u32; 3], out: &mut TrackerOutput<'_>) {
        if groups.contains(&0) {
            self.add_possible_launch(buffer, BindPoint::Compute, out);
            self.record_action(buffer, Vec::new(), out);
            return;
        }
        let room = self.take_spare_accesses();
        self.record_launch(buffer, BindPoint::Compute, room, &Launch::groups(first, groups), out);
    }

    /// Runs the shaders of a pipeline that draws nothing.
    pub(crate) fn record_launch(
        &mut self,
        buffer: vk::CommandBuffer,
        kind: BindPoint,
        fixed: Vec<Access>,
        launch: &Launch,
        out: &mut TrackerOutput<'_>,
    ) {
        self.record_launch_with(buffer, kind, fixed, launch, None, out);
    }

    /// The same with one of some pipelines instead of what is bound.
    pub(crate) fn record_launch_with(
        &mut self,
        buffer: vk::CommandBuffer,
        kind: BindPoint,
        mut fixed: Vec<Access>,
        launch: &Launch,
        chosen: Option<Vec<Arc<TrackedPipeline>>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let bound = own.state.bind_point(kind).pipeline.as_slice();
        let pipelines = chosen.as_deref().unwrap_or(bound);
        if pipelines.is_empty() {
            out.report_untracked("no pipeline that is known");
        }
        if let Some(view) = own.state.invocation_mask.as_ref().filter(|_| kind == BindPoint::RayTracing) {
            fixed.push(view.read(INVOCATION_MASK_READ));
        }
        let mut uses = ShaderUses { fixed, submit_time: Vec::new() };
        for pipeline in pipelines {
            let (known, ordered) = (uses.len(), pipeline.raster.ordered);
            self.add_shader_uses(&own.state, kind, &pipeline.shaders, launch, ordered, &mut uses, out);
            if pipelines.len() > 1 || own.state.is_conditional {
                uses.mark_possible_from(known);
            }
        }
        self.record_incomplete_action(buffer, uses.fixed, &[], uses.submit_time, out);
    }

    pub(crate) fn record_draw(
        &mut self,
        buffer: vk::CommandBuffer,
        draw: &DrawParameters,
        out: &mut TrackerOutput<'_>,
    ) {
        self.record_draw_with(buffer, draw, None, out);
    }

    /// Draws with one of some pipelines, or with the one that is bound.
    pub(crate) fn record_draw_with(
        &mut self,
        buffer: vk::CommandBuffer,
        draw: &DrawParameters,
        chosen: Option<Vec<Arc<TrackedPipeline>>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let mut fixed = self.take_spare_accesses();
        fixed.extend_from_slice(&draw.reads);
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let bound = own.state.bind_point(BindPoint::Graphics).pipeline.as_slice();
        let pipelines = if draw.is_empty() { &[] } else { chosen.as_deref().unwrap_or(bound) };
        if pipelines.is_empty() {
            match draw.is_empty() {
                true => self.add_possible_draw(buffer, draw, out),
                false => out.report_untracked("no pipeline that is known"),
            }
            self.record_action(buffer, fixed, out);
            return;
        }
        let mut uses = ShaderUses { fixed, submit_time: Vec::new() };
        for pipeline in pipelines {
            let known = uses.len();
            self.add_draw_accesses(&own.state, pipeline, draw, &mut uses, out);
            if pipelines.len() > 1 || own.state.is_conditional {
                uses.mark_possible_from(known);
            }
        }
        let touches = || {
            let mut touches = AttachmentUses::new();
            pipelines.iter().for_each(|it| add_attachment_uses(&own.state, it, &mut touches));
            touches
        };
        let (targets, is_inherited) = match &own.state.attachments {
            CurrentAttachments::None => (None, false),
            CurrentAttachments::Known(targets) => (Some(&**targets), false),
            CurrentAttachments::Inherited { .. } => (own.incomplete.attachments(), true),
        };
        if chosen.is_some() || !uses.submit_time.is_empty() {
            return self.record_incomplete_action(buffer, uses.fixed, &touches(), uses.submit_time, out);
        }
        if !self.last_draw.is_for(buffer) {
            self.last_draw.set(buffer, targets, touches());
        }
        if is_inherited {
            return self.record_inherited_draw(buffer, uses.fixed, out);
        }
        uses.fixed.extend_from_slice(&self.last_draw.accesses);
        self.record_action(buffer, uses.fixed, out);
    }

    /// What a draw without vertices or instances would read. The next one may draw something, and a program that is
    /// synchronized for it is right.
    #[cold]
    fn add_possible_draw(&self, buffer: vk::CommandBuffer, draw: &DrawParameters, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let draw = DrawParameters {
            has_vertices: draw.has_vertices,
            indices: draw.indices.as_ref().map(|_| FetchedElements::Unknown),
            ..DrawParameters::indirect(Vec::new())
        };
        let (mut uses, mut touches) = (ShaderUses::default(), AttachmentUses::new());
        for pipeline in own.state.bind_point(BindPoint::Graphics).pipeline.as_slice() {
            self.add_draw_accesses(&own.state, pipeline, &draw, &mut uses, out);
            add_attachment_uses(&own.state, pipeline, &mut touches);
        }
        if let CurrentAttachments::Known(targets) = &own.state.attachments {
            targets.add_accesses(&touches, &mut uses.fixed);
        }
        out.add_possible_reads(uses.fixed);
    }

    /// The same for a dispatch without workgroups.
    #[cold]
    fn add_possible_launch(&self, buffer: vk::CommandBuffer, kind: BindPoint, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let mut uses = ShaderUses::default();
        for pipeline in own.state.bind_point(kind).pipeline.as_slice() {
            let ordered = pipeline.raster.ordered;
            self.add_shader_uses(&own.state, kind, &pipeline.shaders, &Launch::Unknown, ordered, &mut uses, out);
        }
        out.add_possible_reads(uses.fixed);
    }

    fn add_draw_accesses(
        &self,
        state: &BoundState,
        pipeline: &TrackedPipeline,
        draw: &DrawParameters,
        uses: &mut ShaderUses,
        out: &mut TrackerOutput<'_>,
    ) {
        if self.has_shader_uses(state, BindPoint::Graphics, &pipeline.shaders) {
            let (launch, ordered) = (draw.launch(), pipeline.raster.ordered);
            self.add_shader_uses(state, BindPoint::Graphics, &pipeline.shaders, &launch, ordered, uses, out);
        }
        if draw.has_vertices {
            let late = self.add_vertices_read(state, pipeline, draw, &mut uses.fixed);
            uses.submit_time.extend(late.map(SubmitTimeUse::Indexed));
            if let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) {
                bound.add_accesses(indices, &mut uses.fixed);
            }
        }
        if state.is_transform_feedback_active {
            uses.fixed
                .extend(state.feedback_buffers.values().map(|it| FEEDBACK_WRITE.access_to_bytes(it.0, it.1.clone())));
        }
        if let Some(view) = &state.rate_image {
            let raster = pipeline.raster.with_dynamic(pipeline.dynamic, &state.raster);
            uses.fixed.extend((raster.has_rate_image && !raster.is_discarded).then(|| view.read(SHADING_RATE_READ)));
        }
    }

    /// Adds what a draw reads of its vertex buffers; gives what the submission will tell.
    fn add_vertices_read(
        &self,
        state: &BoundState,
        pipeline: &TrackedPipeline,
        draw: &DrawParameters,
        found: &mut Vec<Access>,
    ) -> Option<Box<IndexedVertices>> {
        let is_set = pipeline.dynamic.has(DynamicStates::VERTEX_INPUT);
        let input: &VertexInput = if is_set { &state.vertex } else { &pipeline.vertex };
        let vertex = pipeline.shaders.iter().find(|it| it.stage == vk::ShaderStageFlagBits::VERTEX);
        let inputs = vertex.and_then(|it| it.interface.as_ref()).map_or(u64::MAX, |it| it.inputs);
        let is_bound = is_set || pipeline.dynamic.has(DynamicStates::STRIDE);
        let strides = if is_bound { StrideSource::Bound } else { StrideSource::Input };
        let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) else {
            input.add_accesses(&state.vertices, strides, inputs, (&draw.vertices, &draw.instances), found);
            return None;
        };
        let read = input.fetches(&state.vertices, strides, inputs).filter(|it| it.0.is_none()).map(|it| it.1);
        let late = self.host_indexed_vertices(bound, indices, draw.vertex_offset, read).map(Box::new);
        let vertices = match late {
            Some(_) => FetchedElements::Single(0..0),
            None => self
                .vertices_from_updates(&state.index_updates, bound, indices, draw.vertex_offset)
                .unwrap_or(FetchedElements::Unknown),
        };
        input.add_accesses(&state.vertices, strides, inputs, (&vertices, &draw.instances), found);
        late
    }

    /// Indirect parameters, one structure behind the other.
    fn indirect_parameter_reads(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        count: u32,
        stride: u32,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        if count == 0 {
            return Vec::new();
        }
        let stride = u64::from(stride);
        if count > STRUCTURES_MAX || stride <= size {
            let bytes = u64::from(count - 1).saturating_mul(stride).saturating_add(size);
            return self.buffer_access(buffer, offset, bytes, INDIRECT_READ, out).into_iter().collect();
        }
        let place = |at: u32| offset.saturating_add(u64::from(at) * stride);
        (0..count).filter_map(|at| self.buffer_access(buffer, place(at), size, INDIRECT_READ, out)).collect()
    }
}

/// How many there are stands in memory.
pub(crate) fn with_certainty_somewhere(access: Access) -> Access {
    Access { certainty: Certainty::Somewhere, ..access }
}

fn add_attachment_uses(state: &BoundState, pipeline: &TrackedPipeline, touches: &mut AttachmentUses) {
    let raster = pipeline.raster.with_dynamic(pipeline.dynamic, &state.raster);
    let colors = state.attachments.colors();
    attachment::add_draw_uses(touches, &raster, &pipeline.shaders, state.locations.as_deref(), colors);
}

/// Several draws in one.
fn draw_multi(ext_params: View<'_, vk::CmdDrawMultiEXTParams>) -> DrawParameters {
    let vertices =
        FetchedElements::from_ranges(ext_params.p_vertex_info().iter().map(|it| (it.first_vertex, it.vertex_count)));
    DrawParameters::new(
        vertices,
        FetchedElements::from_first_and_count(ext_params.first_instance, ext_params.instance_count),
    )
}

fn draw_multi_indexed(ext_params: View<'_, vk::CmdDrawMultiIndexedEXTParams>) -> DrawParameters {
    let indices =
        FetchedElements::from_ranges(ext_params.p_index_info().iter().map(|it| (it.first_index, it.index_count)));
    DrawParameters::indexed(
        indices,
        FetchedElements::from_first_and_count(ext_params.first_instance, ext_params.instance_count),
    )
}
