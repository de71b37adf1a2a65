//! Draws and dispatches.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Certainty, Region, ResourceId};

use crate::command::bound_state::{BindPoint, BoundState};
use crate::command::incomplete::{CommandLaunch, mark_if_launched};
use crate::command::stage_access::{
    COUNTER_INDIRECT_READ, FEEDBACK_WRITE, INDIRECT_READ, INVOCATION_MASK_READ, SHADING_RATE_READ,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::attachment;
use crate::draw::attachment::{AttachmentSet, AttachmentUses};
use crate::draw::index_values::IndexedVertices;
use crate::draw::indirect_arguments::{
    ArgumentKind, DrawList, DrawListSource, DrawRange, IndirectArguments, LaunchCertainty, ListedDraws,
    ListedDrawsOutcome,
};
use crate::draw::raster_state::DynamicStates;
use crate::draw::rendering::CurrentAttachments;
use crate::draw::vertex_input::{FetchedElements, StrideSource, VertexFetch, VertexInput};
use crate::listener::TrackerOutput;
use crate::shader::accesses::{ShaderUses, SubmitTimeUse};
use crate::shader::launch::Launch;
use crate::shader::pipeline::TrackedPipeline;

/// The parameters of a draw, as far as they are known.
pub(crate) struct DrawParameters {
    vertices: FetchedElements,
    instances: FetchedElements,
    /// None if the draw is not indexed.
    indices: Option<FetchedElements>,
    /// The value added to each index, if it is the same for all draws of the command.
    vertex_offset: Option<i32>,
    /// Other reads of the command: its parameters in buffers.
    reads: Vec<Access>,
    has_vertices: bool,
    /// Workgroups of mesh or task shaders.
    groups: Option<[u32; 3]>,
    /// Set if the command has several draws, or if its parameters are in memory.
    list: Option<DrawListSource>,
    /// Whether memory decides how much is drawn, if anything.
    is_indirect: bool,
}

/// The attachment accesses of the last draw of a command buffer. The next draw has the same, unless a command in
/// between changes state that decides them. `docs/caches.md` describes this cache.
#[derive(Default)]
pub(crate) struct LastDraw {
    /// Zero if there is no last draw.
    buffer: u64,
    attachment_uses: AttachmentUses,
    accesses: Vec<Access>,
    /// The range of the stored attachment uses, if they are stored.
    stored_uses: Option<Range<usize>>,
}

impl LastDraw {
    pub(crate) fn invalidate(&mut self) {
        self.buffer = 0;
    }

    fn is_for(&self, buffer: vk::CommandBuffer) -> bool {
        self.buffer == buffer.0 && buffer.0 != 0
    }

    fn set(&mut self, buffer: vk::CommandBuffer, targets: Option<&AttachmentSet>, attachment_uses: AttachmentUses) {
        (self.buffer, self.stored_uses) = (buffer.0, None);
        self.accesses.clear();
        if let Some(targets) = targets {
            targets.add_accesses(&attachment_uses, &mut self.accesses);
        }
        self.attachment_uses = attachment_uses;
    }

    pub(crate) fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The range of the stored attachment uses. Draws with the same uses share one range.
    pub(crate) fn stored_uses(&mut self, keep: impl FnOnce(&AttachmentUses) -> Range<usize>) -> Range<usize> {
        let attachment_uses = &self.attachment_uses;
        self.stored_uses.get_or_insert_with(|| keep(attachment_uses)).clone()
    }
}

/// Size in bytes of the parameters of an indirect draw.
pub(crate) const DRAW: u64 = 16;
pub(crate) const DRAW_INDEXED: u64 = 20;
pub(crate) const DISPATCH: u64 = 12;
pub(crate) const COUNT: u64 = 4;
/// If structures have gaps between them, each is a range of its own, up to this many.
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
            list: None,
            is_indirect: false,
        }
    }

    fn indexed(indices: FetchedElements, instances: FetchedElements) -> DrawParameters {
        // The indices are in memory, so the vertices are not known.
        DrawParameters { indices: Some(indices), ..DrawParameters::new(FetchedElements::Unknown, instances) }
    }

    pub(crate) fn indirect(reads: Vec<Access>) -> DrawParameters {
        let draw = DrawParameters::new(FetchedElements::Unknown, FetchedElements::Unknown);
        DrawParameters { reads, is_indirect: true, ..draw }
    }

    pub(crate) fn indexed_indirect(reads: Vec<Access>) -> DrawParameters {
        let draw = DrawParameters::indexed(FetchedElements::Unknown, FetchedElements::Unknown);
        DrawParameters { reads, is_indirect: true, ..draw }
    }

    /// The number of vertices is computed from a counter in memory. The number of instances is known.
    pub(crate) fn counted_in_bytes(read: Option<Access>, instances: FetchedElements) -> DrawParameters {
        let draw = DrawParameters::new(FetchedElements::Unknown, instances);
        DrawParameters { reads: read.into_iter().collect(), is_indirect: true, ..draw }
    }

    pub(crate) fn mesh(reads: Vec<Access>) -> DrawParameters {
        DrawParameters { has_vertices: false, ..DrawParameters::indirect(reads) }
    }

    /// Sets the place of indirect parameters.
    fn with_arguments(self, arguments: IndirectArguments) -> DrawParameters {
        DrawParameters { list: Some(DrawListSource::Memory(arguments)), ..self }
    }

    /// The number of draws, if it is known: without any, nothing is launched.
    pub(crate) fn with_draw_count(self, count: u32) -> DrawParameters {
        if count == 0 { DrawParameters { groups: Some([0; 3]), ..self } } else { self }
    }

    fn tasks(groups: [u32; 3]) -> DrawParameters {
        DrawParameters { groups: Some(groups), ..DrawParameters::base_tasks() }
    }

    /// Tasks of which the first has another number than zero.
    fn base_tasks() -> DrawParameters {
        DrawParameters { is_indirect: false, ..DrawParameters::mesh(Vec::new()) }
    }

    fn is_empty(&self) -> bool {
        let nothing = self.indices.as_ref().unwrap_or(&self.vertices).is_empty() || self.instances.is_empty();
        nothing && self.has_vertices || self.groups.is_some_and(|it| it.contains(&0))
    }

    fn launch_certainty(&self, device: &TrackedDevice, state: &BoundState) -> LaunchCertainty {
        match &self.list {
            _ if self.is_empty() => LaunchCertainty::Never,
            Some(DrawListSource::Memory(arguments)) => device.launch_certainty(&state.index_updates, arguments),
            _ if self.is_indirect => LaunchCertainty::Unknown,
            _ => LaunchCertainty::Certain,
        }
    }

    fn launch(&self, device: &TrackedDevice, state: &BoundState) -> Launch {
        match self.groups {
            Some(groups) => Launch::groups([0; 3], groups),
            None if let Some(DrawListSource::Memory(arguments)) = &self.list => device
                .updated_launch(&state.index_updates, arguments)
                .unwrap_or_else(|| Launch::Memory(arguments.clone())),
            None if !self.has_vertices => Launch::Unknown,
            None => Launch::Vertices {
                vertices: self.vertices.single_range().filter(|_| self.indices.is_none()),
                instances: self.instances.single_range(),
            },
        }
    }
}

/// Indirect draws whose number is in the command.
macro_rules! indirect {
    ($device:expr, $params:expr, $kind:expr, $out:expr) => {{
        let arguments = IndirectArguments {
            kind: $kind,
            buffer: $params.buffer.0,
            offset: $params.offset,
            count: $params.draw_count,
            stride: $params.stride.into(),
            count_in: None,
        };
        ($device.indirect_parameter_reads(&arguments, $out), arguments)
    }};
}

/// Both generations of indirect draws with a count use the same parameter names.
macro_rules! counted {
    ($device:expr, $params:expr, $kind:expr, $out:expr) => {{
        let params = $params;
        let arguments = IndirectArguments {
            kind: $kind,
            buffer: params.buffer.0,
            offset: params.offset,
            count: params.max_draw_count,
            stride: params.stride.into(),
            count_in: Some((params.count_buffer.0, params.count_buffer_offset)),
        };
        let mut reads = counted_reads($device.indirect_parameter_reads(&arguments, $out));
        reads.extend($device.buffer_access(
            params.count_buffer,
            params.count_buffer_offset,
            COUNT,
            INDIRECT_READ,
            $out,
        ));
        (reads, arguments)
    }};
}

impl TrackedDevice {
    pub(crate) fn track_draws(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (buffer, draw) = match tracked.call {
            // The two common draws are recorded here, by reference: to give `draw` out of the match would copy it, with a
            // store-forwarding stall.
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
                let (reads, arguments) = indirect!(self, params, ArgumentKind::Draw, out);
                (params.command_buffer, DrawParameters::indirect(reads).with_arguments(arguments))
            }
            Call::CmdDrawIndexedIndirect(params) => {
                let (reads, arguments) = indirect!(self, params, ArgumentKind::DrawIndexed, out);
                (params.command_buffer, DrawParameters::indexed_indirect(reads).with_arguments(arguments))
            }
            Call::CmdDrawIndirectCount(params) => {
                let (reads, arguments) = counted!(self, params, ArgumentKind::Draw, out);
                (params.command_buffer, DrawParameters::indirect(reads).with_arguments(arguments))
            }
            Call::CmdDrawIndexedIndirectCount(params) => {
                let (reads, arguments) = counted!(self, params, ArgumentKind::DrawIndexed, out);
                (params.command_buffer, DrawParameters::indexed_indirect(reads).with_arguments(arguments))
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
            _ => return self.track_mesh_draws(tracked.call, out) || self.track_dispatches(tracked.call, out),
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
            // The first task works like the number of the first workgroup.
            Call::CmdDrawMeshTasksNV(params) if params.first_task == 0 || params.task_count == 0 => {
                (params.command_buffer, DrawParameters::tasks([params.task_count, 1, 1]))
            }
            Call::CmdDrawMeshTasksNV(params) => (params.command_buffer, DrawParameters::base_tasks()),
            Call::CmdDrawClusterHUAWEI(params) => (
                params.command_buffer,
                DrawParameters::tasks([params.group_count_x, params.group_count_y, params.group_count_z]),
            ),
            Call::CmdDrawClusterIndirectHUAWEI(params) => {
                let read = self.buffer_access(params.buffer, params.offset, DISPATCH, INDIRECT_READ, out);
                let arguments = IndirectArguments::groups(params.buffer, params.offset);
                (params.command_buffer, DrawParameters::mesh(read.into_iter().collect()).with_arguments(arguments))
            }
            Call::CmdDrawMeshTasksIndirectEXT(params) => {
                let (reads, arguments) = indirect!(self, params, ArgumentKind::Groups, out);
                (params.command_buffer, DrawParameters::mesh(reads).with_arguments(arguments))
            }
            Call::CmdDrawMeshTasksIndirectNV(params) => {
                let (reads, arguments) = indirect!(self, params, ArgumentKind::Tasks, out);
                (params.command_buffer, DrawParameters::mesh(reads).with_arguments(arguments))
            }
            Call::CmdDrawMeshTasksIndirectCountEXT(params) => {
                let (reads, arguments) = counted!(self, params, ArgumentKind::Groups, out);
                (params.command_buffer, DrawParameters::mesh(reads).with_arguments(arguments))
            }
            Call::CmdDrawMeshTasksIndirectCountNV(params) => {
                let (reads, arguments) = counted!(self, params, ArgumentKind::Tasks, out);
                (params.command_buffer, DrawParameters::mesh(reads).with_arguments(arguments))
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
                let arguments = IndirectArguments::groups(params.buffer, params.offset);
                let own = self.command_buffers.get(params.command_buffer.0);
                let updated = own.and_then(|it| self.updated_launch(&it.state.index_updates, &arguments));
                let launch = updated.unwrap_or(Launch::Memory(arguments));
                let read = read.into_iter().collect();
                self.record_launch(params.command_buffer, BindPoint::Compute, read, &launch, out);
            }
            Call::CmdSubpassShadingHUAWEI(params) => {
                self.record_launch(params.command_buffer, BindPoint::SubpassShading, Vec::new(), &Launch::Tiles, out);
            }
            // One workgroup for each tile of the render area.
            Call::CmdDispatchTileQCOM(params) => {
                self.record_launch(params.command_buffer, BindPoint::Compute, Vec::new(), &Launch::Tiles, out);
            }
            _ => return false,
        }
        true
    }

    fn dispatch(&mut self, buffer: vk::CommandBuffer, first: [u32; 3], groups: [u32; 3], out: &mut TrackerOutput<'_>) {
        let accesses = self.take_spare_accesses();
        self.record_launch(buffer, BindPoint::Compute, accesses, &Launch::groups(first, groups), out);
    }

    /// Records the accesses of a dispatch or a trace. Those in `fixed` happen even if nothing is launched.
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

    /// Like `record_launch`. If `chosen` is set, the command may run each of these pipelines instead of the bound one.
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
        if launch.is_empty() {
            self.add_possible_launch(buffer, kind, out);
            self.record_action(buffer, fixed, out);
            return;
        }
        let certainty = match launch {
            Launch::Unknown => LaunchCertainty::Unknown,
            Launch::Memory(arguments) => self.launch_certainty(&own.state.index_updates, arguments),
            _ => LaunchCertainty::Certain,
        };
        let unconditional = fixed.len();
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
        self.record_incomplete_action(buffer, uses, &[], &CommandLaunch { unconditional, certainty }, out);
    }

    pub(crate) fn record_draw(
        &mut self,
        buffer: vk::CommandBuffer,
        draw: &DrawParameters,
        out: &mut TrackerOutput<'_>,
    ) {
        self.record_draw_with(buffer, draw, None, out);
    }

    /// Records a draw. If `chosen` is set, the command may run each of these pipelines instead of the bound one.
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
        let certainty = draw.launch_certainty(self, &own.state);
        let is_nothing = matches!(certainty, LaunchCertainty::Never);
        let pipelines = if is_nothing { &[] } else { chosen.as_deref().unwrap_or(bound) };
        if pipelines.is_empty() {
            match is_nothing {
                true => self.add_possible_draw(buffer, draw, out),
                false => out.report_untracked("no pipeline that is known"),
            }
            self.record_action(buffer, fixed, out);
            return;
        }
        let unconditional = fixed.len();
        let mut uses = ShaderUses { fixed, submit_time: Vec::new() };
        for pipeline in pipelines {
            let known = uses.len();
            self.add_draw_accesses(&own.state, pipeline, draw, &mut uses, out);
            if pipelines.len() > 1 || own.state.is_conditional {
                uses.mark_possible_from(known);
            }
        }
        let attachment_uses = || {
            let mut attachment_uses = AttachmentUses::new();
            pipelines.iter().for_each(|it| add_attachment_uses(&own.state, it, &mut attachment_uses));
            attachment_uses
        };
        let (targets, is_inherited) = match &own.state.attachments {
            CurrentAttachments::None => (None, false),
            CurrentAttachments::Known(targets) => (Some(&**targets), false),
            CurrentAttachments::Inherited { .. } => (own.incomplete.attachments(), true),
        };
        // Some accesses become known later, for example by descriptors that may be updated until the submission. The
        // command is recorded with those that are known, and replaced then.
        let is_known = match certainty {
            LaunchCertainty::Certain => true,
            LaunchCertainty::Unknown => !is_inherited,
            LaunchCertainty::Never | LaunchCertainty::AtSubmission(_) => false,
        };
        if chosen.is_some() || !uses.submit_time.is_empty() || !is_known {
            let launch = CommandLaunch { unconditional, certainty };
            return self.record_incomplete_action(buffer, uses, &attachment_uses(), &launch, out);
        }
        if !self.last_draw.is_for(buffer) {
            self.last_draw.set(buffer, targets, attachment_uses());
        }
        // In a secondary command buffer, with the attachments of its last recording until it is executed.
        if is_inherited {
            return self.record_inherited_draw(buffer, uses.fixed, out);
        }
        uses.fixed.extend_from_slice(&self.last_draw.accesses);
        if matches!(certainty, LaunchCertainty::Unknown) {
            mark_if_launched(&mut uses.fixed[unconditional..]);
        }
        self.record_action(buffer, uses.fixed, out);
    }

    /// For a draw without vertices or instances: adds the reads that it would make with some. They are possible reads,
    /// so the barriers that a program has for them count.
    #[cold]
    fn add_possible_draw(&self, buffer: vk::CommandBuffer, draw: &DrawParameters, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let draw = DrawParameters {
            has_vertices: draw.has_vertices,
            indices: draw.indices.as_ref().map(|_| FetchedElements::Unknown),
            ..DrawParameters::indirect(Vec::new())
        };
        let (mut uses, mut attachment_uses) = (ShaderUses::default(), AttachmentUses::new());
        if let Some(pipeline) = &own.state.bind_point(BindPoint::Graphics).pipeline {
            self.add_draw_accesses(&own.state, pipeline, &draw, &mut uses, out);
            add_attachment_uses(&own.state, pipeline, &mut attachment_uses);
        }
        if let CurrentAttachments::Known(targets) = &own.state.attachments {
            targets.add_accesses(&attachment_uses, &mut uses.fixed);
        }
        out.add_possible_reads(uses.fixed);
    }

    /// Adds the reads that a dispatch without workgroups would make with some, as possible reads.
    #[cold]
    fn add_possible_launch(&self, buffer: vk::CommandBuffer, kind: BindPoint, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let mut uses = ShaderUses::default();
        if let Some(pipeline) = &own.state.bind_point(kind).pipeline {
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
            let (launch, ordered) = (draw.launch(self, state), pipeline.raster.ordered);
            self.add_shader_uses(state, BindPoint::Graphics, &pipeline.shaders, &launch, ordered, uses, out);
        }
        if draw.has_vertices && !self.add_drawn(state, pipeline, draw, uses) {
            let at_submission = self.add_vertices_read(state, pipeline, draw, &mut uses.fixed);
            uses.submit_time.extend(at_submission.map(SubmitTimeUse::Indexed));
            if let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) {
                bound.add_accesses(indices, &mut uses.fixed);
            }
        }
        if state.is_transform_feedback_active {
            // The shaders decide how many bytes they write.
            let write = |it: &(ResourceId, Range<u64>)| FEEDBACK_WRITE.access_to_bytes(it.0, it.1.clone());
            let writes = state.feedback_buffers.values().map(write);
            uses.fixed.extend(writes.map(|it| Access { certainty: Certainty::Anywhere, ..it }));
        }
        if let Some(view) = &state.rate_image {
            let raster = pipeline.raster.with_dynamic(pipeline.dynamic, &state.raster);
            uses.fixed.extend((raster.has_rate_image && !raster.is_discarded).then(|| view.read(SHADING_RATE_READ)));
        }
    }

    /// Adds the vertex and index reads of a command with several draws, or with parameters in memory. Returns false if
    /// they are not known, neither now nor at submission.
    fn add_drawn(
        &self,
        state: &BoundState,
        pipeline: &TrackedPipeline,
        draw: &DrawParameters,
        uses: &mut ShaderUses,
    ) -> bool {
        let Some(source) = draw.list.clone() else { return false };
        let indices = state.indices.clone().filter(|_| draw.indices.is_some());
        if draw.indices.is_some() && indices.is_none() {
            return false;
        }
        let reads = bound_vertex_fetches(state, pipeline);
        let listed = ListedDraws { source, indices, reads, is_conditional: false };
        match self.add_listed_draws(state, listed, &mut uses.fixed) {
            ListedDrawsOutcome::Known => true,
            ListedDrawsOutcome::AtSubmission(listed) => {
                uses.submit_time.push(SubmitTimeUse::Drawn(Box::new(listed)));
                true
            }
            ListedDrawsOutcome::Unknown => false,
        }
    }

    /// Adds the vertex reads of a draw. Returns the reads that become known at submission.
    fn add_vertices_read(
        &self,
        state: &BoundState,
        pipeline: &TrackedPipeline,
        draw: &DrawParameters,
        found: &mut Vec<Access>,
    ) -> Option<Box<IndexedVertices>> {
        let (input, strides, inputs) = vertex_input(state, pipeline);
        let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) else {
            input.add_accesses(&state.vertices, strides, inputs, (&draw.vertices, &draw.instances), found);
            return None;
        };
        let read = input.fetches(&state.vertices, strides, inputs).filter(|it| it.0.is_none()).map(|it| it.1);
        let at_submission = self.host_indexed_vertices(bound, indices, draw.vertex_offset, read).map(Box::new);
        let vertices = match at_submission {
            Some(_) => FetchedElements::Single(0..0),
            None => self
                .vertices_from_updates(&state.index_updates, bound, indices, draw.vertex_offset)
                .unwrap_or(FetchedElements::Unknown),
        };
        input.add_accesses(&state.vertices, strides, inputs, (&vertices, &draw.instances), found);
        at_submission
    }

    /// The reads of indirect parameters: structures that lie `stride` bytes apart.
    fn indirect_parameter_reads(&self, arguments: &IndirectArguments, out: &mut TrackerOutput<'_>) -> Vec<Access> {
        let IndirectArguments { offset, count, stride, .. } = *arguments;
        let (buffer, size) = (vk::Buffer(arguments.buffer), arguments.kind.size());
        if count == 0 {
            return Vec::new();
        }
        if count > STRUCTURES_MAX || stride <= size {
            let bytes = u64::from(count - 1).saturating_mul(stride).saturating_add(size);
            let read = self.buffer_access(buffer, offset, bytes, INDIRECT_READ, out);
            // With gaps, the bytes between the structures are not read.
            let certainty = if stride <= size { Certainty::Certain } else { Certainty::Anywhere };
            return read.into_iter().map(|it| Access { certainty, ..it }).collect();
        }
        let place = |at: u32| offset.saturating_add(u64::from(at) * stride);
        (0..count).filter_map(|at| self.buffer_access(buffer, place(at), size, INDIRECT_READ, out)).collect()
    }
}

/// Reads of an array of structures with a count in memory: some bytes from the first to the last structure.
pub(crate) fn counted_reads(reads: Vec<Access>) -> Vec<Access> {
    let last = reads.last().map(|it| it.region.clone());
    let mut first = reads.into_iter().take(1).collect::<Vec<_>>();
    if let (Some(Access { region: Region::Buffer(own), certainty, .. }), Some(Region::Buffer(last))) =
        (first.first_mut(), last)
    {
        (own.end, *certainty) = (last.end, Certainty::Anywhere);
    }
    first
}

/// The vertex input state of a draw, where its strides come from, and the inputs that the shader reads.
fn vertex_input<'a>(state: &'a BoundState, pipeline: &'a TrackedPipeline) -> (&'a VertexInput, StrideSource, u64) {
    let is_set = pipeline.dynamic.has(DynamicStates::VERTEX_INPUT);
    let input: &VertexInput = if is_set { &state.vertex } else { &pipeline.vertex };
    let vertex = pipeline.shaders.iter().find(|it| it.stage == vk::ShaderStageFlagBits::VERTEX);
    let inputs = vertex.and_then(|it| it.interface.as_ref()).map_or(u64::MAX, |it| it.inputs);
    let is_bound = is_set || pipeline.dynamic.has(DynamicStates::STRIDE);
    (input, if is_bound { StrideSource::Bound } else { StrideSource::Input }, inputs)
}

fn bound_vertex_fetches(state: &BoundState, pipeline: &TrackedPipeline) -> Vec<(Option<u32>, VertexFetch)> {
    let (input, strides, inputs) = vertex_input(state, pipeline);
    input.fetches(&state.vertices, strides, inputs).collect()
}

fn add_attachment_uses(state: &BoundState, pipeline: &TrackedPipeline, attachment_uses: &mut AttachmentUses) {
    let raster = pipeline.raster.with_dynamic(pipeline.dynamic, &state.raster);
    let colors = state.attachments.colors();
    attachment::add_draw_uses(attachment_uses, &raster, &pipeline.shaders, state.locations.as_deref(), colors);
}

/// The draws of `vkCmdDrawMultiEXT`.
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
    let common = ext_params.value(ext_params.p_vertex_offset).copied();
    let draw = |info: View<'_, vk::MultiDrawIndexedInfoEXT>| DrawRange {
        elements: [info.first_index, info.index_count],
        vertex_offset: common.unwrap_or(info.vertex_offset),
        instances: [ext_params.first_instance, ext_params.instance_count],
    };
    let list = DrawList { draws: ext_params.p_index_info().iter().map(draw).collect(), is_count_known: true };
    let instances = FetchedElements::from_first_and_count(ext_params.first_instance, ext_params.instance_count);
    DrawParameters { list: Some(DrawListSource::Command(list)), ..DrawParameters::indexed(indices, instances) }
}
