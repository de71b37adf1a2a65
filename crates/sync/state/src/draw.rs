//! Draws and dispatches.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Certainty};

use crate::attachment::{self, Targets, Touches};
use crate::bind::{Kind, State};
use crate::device::{Device, Event};
use crate::indices::Indexed;
use crate::launch::Launch;
use crate::listener::Out;
use crate::pipeline::Pipeline;
use crate::raster::Dynamic;
use crate::rendering::Scene;
use crate::shader_use::{LateUse, Uses};
use crate::usage::{COUNTER_INDIRECT_READ, FEEDBACK_WRITE, INDIRECT_READ, INVOCATION_MASK_READ, SHADING_RATE_READ};
use crate::vertex::{Strides, Taken, VertexInput};

/// What a draw takes of its vertices.
pub(crate) struct Draw {
    vertices: Taken,
    instances: Taken,
    /// None where vertices are not indexed.
    indices: Option<Taken>,
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
pub(crate) struct Drawn {
    /// Zero for none.
    buffer: u64,
    touches: Touches,
    accesses: Vec<Access>,
    /// Where the touches are kept, if they are.
    kept: Option<Range<usize>>,
}

impl Drawn {
    pub(crate) fn forget(&mut self) {
        self.buffer = 0;
    }

    fn is_of(&self, buffer: vk::CommandBuffer) -> bool {
        self.buffer == buffer.0 && buffer.0 != 0
    }

    fn set(&mut self, buffer: vk::CommandBuffer, targets: Option<&Targets>, touches: Touches) {
        (self.buffer, self.kept) = (buffer.0, None);
        self.accesses.clear();
        if let Some(targets) = targets {
            targets.add_accesses(&touches, &mut self.accesses);
        }
        self.touches = touches;
    }

    pub(crate) fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Where the touches are kept: once, for all draws that have the same.
    pub(crate) fn kept_touches(&mut self, keep: impl FnOnce(&Touches) -> Range<usize>) -> Range<usize> {
        let touches = &self.touches;
        self.kept.get_or_insert_with(|| keep(touches)).clone()
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

impl Draw {
    fn new(vertices: Taken, instances: Taken) -> Draw {
        Draw {
            vertices,
            instances,
            indices: None,
            vertex_offset: None,
            reads: Vec::new(),
            has_vertices: true,
            groups: None,
        }
    }

    fn indexed(indices: Taken, instances: Taken) -> Draw {
        // Which vertices are meant stands in memory.
        Draw { indices: Some(indices), ..Draw::new(Taken::Any, instances) }
    }

    pub(crate) fn indirect(reads: Vec<Access>) -> Draw {
        Draw { reads, ..Draw::new(Taken::Any, Taken::Any) }
    }

    pub(crate) fn indexed_indirect(reads: Vec<Access>) -> Draw {
        Draw { reads, ..Draw::indexed(Taken::Any, Taken::Any) }
    }

    /// How many vertices there are stands in memory, how many instances does not.
    pub(crate) fn counted_in_bytes(read: Option<Access>, instances: Taken) -> Draw {
        Draw { reads: read.into_iter().collect(), ..Draw::new(Taken::Any, instances) }
    }

    pub(crate) fn mesh(reads: Vec<Access>) -> Draw {
        Draw { has_vertices: false, ..Draw::indirect(reads) }
    }

    fn tasks(groups: [u32; 3]) -> Draw {
        Draw { groups: Some(groups), ..Draw::mesh(Vec::new()) }
    }

    fn is_nothing(&self) -> bool {
        let nothing = self.indices.as_ref().unwrap_or(&self.vertices).is_nothing() || self.instances.is_nothing();
        nothing && self.has_vertices || self.groups.is_some_and(|it| it.contains(&0))
    }

    fn launch(&self) -> Launch {
        match self.groups {
            Some(groups) => Launch::groups([0; 3], groups),
            None if !self.has_vertices => Launch::Unknown,
            None => Launch::Vertices {
                vertices: self.vertices.known().filter(|_| self.indices.is_none()),
                instances: self.instances.known(),
            },
        }
    }
}

/// Both generations of indirect draws with a count name their parameters alike.
macro_rules! counted {
    ($device:expr, $it:expr, $size:expr, $out:expr) => {{
        let it = $it;
        let reads = $device.structures(it.buffer, it.offset, it.max_draw_count, it.stride, $size, $out);
        let mut reads: Vec<Access> = reads.into_iter().map(somewhere).collect();
        reads.extend($device.buffer_access(it.count_buffer, it.count_buffer_offset, COUNT, INDIRECT_READ, $out));
        reads
    }};
}

impl Device {
    pub(crate) fn draws(&mut self, event: Event<'_>, out: &mut Out<'_>) -> bool {
        let (buffer, draw) = match event.call {
            // The common ones stay where they are made: reading at once what was written in pieces takes long.
            Call::CmdDraw(it) => {
                let vertices = Taken::part(it.first_vertex, it.vertex_count);
                let draw = Draw::new(vertices, Taken::part(it.first_instance, it.instance_count));
                self.draw(it.command_buffer, &draw, out);
                return true;
            }
            Call::CmdDrawIndexed(it) => {
                let indices = Taken::part(it.first_index, it.index_count);
                let instances = Taken::part(it.first_instance, it.instance_count);
                let draw = Draw { vertex_offset: Some(it.vertex_offset), ..Draw::indexed(indices, instances) };
                self.draw(it.command_buffer, &draw, out);
                return true;
            }
            Call::CmdDrawMultiEXT(it) => (it.command_buffer, draw_multi(*it)),
            Call::CmdDrawMultiIndexedEXT(it) => (it.command_buffer, draw_multi_indexed(*it)),
            Call::CmdDrawIndirect(it) => {
                let reads = self.structures(it.buffer, it.offset, it.draw_count, it.stride, DRAW, out);
                (it.command_buffer, Draw::indirect(reads))
            }
            Call::CmdDrawIndexedIndirect(it) => {
                let reads = self.structures(it.buffer, it.offset, it.draw_count, it.stride, DRAW_INDEXED, out);
                (it.command_buffer, Draw::indexed_indirect(reads))
            }
            Call::CmdDrawIndirectCount(it) => (it.command_buffer, Draw::indirect(counted!(self, it, DRAW, out))),
            Call::CmdDrawIndexedIndirectCount(it) => {
                (it.command_buffer, Draw::indexed_indirect(counted!(self, it, DRAW_INDEXED, out)))
            }
            Call::CmdDrawIndirectByteCountEXT(it) => {
                let read =
                    self.buffer_access(it.counter_buffer, it.counter_buffer_offset, COUNT, COUNTER_INDIRECT_READ, out);
                let instances = Taken::part(it.first_instance, it.instance_count);
                (it.command_buffer, Draw::counted_in_bytes(read, instances))
            }
            _ => return self.mesh_draws(event.call, out) || self.dispatches(event.call, out),
        };
        self.draw(buffer, &draw, out);
        true
    }

    fn mesh_draws(&mut self, call: &Call<'_>, out: &mut Out<'_>) -> bool {
        let (buffer, draw) = match call {
            Call::CmdDrawMeshTasksEXT(it) => {
                (it.command_buffer, Draw::tasks([it.group_count_x, it.group_count_y, it.group_count_z]))
            }
            // Its first task counts as the number of a workgroup does.
            Call::CmdDrawMeshTasksNV(it) if it.first_task == 0 => {
                (it.command_buffer, Draw::tasks([it.task_count, 1, 1]))
            }
            Call::CmdDrawMeshTasksNV(it) => (it.command_buffer, Draw::mesh(Vec::new())),
            Call::CmdDrawClusterHUAWEI(it) => {
                (it.command_buffer, Draw::tasks([it.group_count_x, it.group_count_y, it.group_count_z]))
            }
            Call::CmdDrawClusterIndirectHUAWEI(it) => {
                let read = self.buffer_access(it.buffer, it.offset, DISPATCH, INDIRECT_READ, out);
                (it.command_buffer, Draw::mesh(read.into_iter().collect()))
            }
            Call::CmdDrawMeshTasksIndirectEXT(it) => {
                let reads = self.structures(it.buffer, it.offset, it.draw_count, it.stride, DISPATCH, out);
                (it.command_buffer, Draw::mesh(reads))
            }
            Call::CmdDrawMeshTasksIndirectNV(it) => {
                let reads = self.structures(it.buffer, it.offset, it.draw_count, it.stride, DRAW_MESH_NV, out);
                (it.command_buffer, Draw::mesh(reads))
            }
            Call::CmdDrawMeshTasksIndirectCountEXT(it) => {
                (it.command_buffer, Draw::mesh(counted!(self, it, DISPATCH, out)))
            }
            Call::CmdDrawMeshTasksIndirectCountNV(it) => {
                (it.command_buffer, Draw::mesh(counted!(self, it, DRAW_MESH_NV, out)))
            }
            _ => return false,
        };
        self.draw(buffer, &draw, out);
        true
    }

    fn dispatches(&mut self, call: &Call<'_>, out: &mut Out<'_>) -> bool {
        match call {
            Call::CmdDispatch(it) => {
                let groups = [it.group_count_x, it.group_count_y, it.group_count_z];
                self.dispatch(it.command_buffer, [0; 3], groups, out);
            }
            Call::CmdDispatchBase(it) => {
                let groups = [it.group_count_x, it.group_count_y, it.group_count_z];
                self.dispatch(it.command_buffer, [it.base_group_x, it.base_group_y, it.base_group_z], groups, out);
            }
            Call::CmdDispatchIndirect(it) => {
                let read = self.buffer_access(it.buffer, it.offset, DISPATCH, INDIRECT_READ, out);
                self.run(it.command_buffer, Kind::Compute, read.into_iter().collect(), &Launch::Unknown, out);
            }
            Call::CmdSubpassShadingHUAWEI(it) => {
                self.run(it.command_buffer, Kind::SubpassShading, Vec::new(), &Launch::Unknown, out);
            }
            // One for each tile of the render area.
            Call::CmdDispatchTileQCOM(it) => {
                self.run(it.command_buffer, Kind::Compute, Vec::new(), &Launch::Unknown, out);
            }
            _ => return false,
        }
        true
    }

    fn dispatch(&mut self, buffer: vk::CommandBuffer, first: [u32; 3], groups: [u32; 3], out: &mut Out<'_>) {
        if groups.contains(&0) {
            self.act(buffer, Vec::new(), out);
            return;
        }
        let room = self.room();
        self.run(buffer, Kind::Compute, room, &Launch::groups(first, groups), out);
    }

    /// Runs the shaders of a pipeline that draws nothing.
    pub(crate) fn run(
        &mut self,
        buffer: vk::CommandBuffer,
        kind: Kind,
        fixed: Vec<Access>,
        launch: &Launch,
        out: &mut Out<'_>,
    ) {
        self.run_by(buffer, kind, fixed, launch, None, out);
    }

    /// The same with one of some pipelines instead of what is bound.
    pub(crate) fn run_by(
        &mut self,
        buffer: vk::CommandBuffer,
        kind: Kind,
        mut fixed: Vec<Access>,
        launch: &Launch,
        chosen: Option<Vec<Arc<Pipeline>>>,
        out: &mut Out<'_>,
    ) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let bound = own.state.point(kind).pipeline.as_slice();
        let pipelines = chosen.as_deref().unwrap_or(bound);
        if pipelines.is_empty() {
            out.missing("no pipeline that is known");
        }
        if let Some(view) = own.state.invocation_mask.as_ref().filter(|_| kind == Kind::RayTracing) {
            fixed.push(view.read(INVOCATION_MASK_READ));
        }
        let mut uses = Uses { fixed, late: Vec::new() };
        for pipeline in pipelines {
            let (known, ordered) = (uses.len(), pipeline.raster.ordered);
            self.add_shader_uses(&own.state, kind, &pipeline.shaders, launch, ordered, &mut uses, out);
            if pipelines.len() > 1 || own.state.is_conditional {
                uses.weaken_from(known);
            }
        }
        self.act_on(buffer, uses.fixed, &[], uses.late, out);
    }

    pub(crate) fn draw(&mut self, buffer: vk::CommandBuffer, draw: &Draw, out: &mut Out<'_>) {
        self.draw_by(buffer, draw, None, out);
    }

    /// Draws with one of some pipelines, or with the one that is bound.
    pub(crate) fn draw_by(
        &mut self,
        buffer: vk::CommandBuffer,
        draw: &Draw,
        chosen: Option<Vec<Arc<Pipeline>>>,
        out: &mut Out<'_>,
    ) {
        let mut fixed = self.room();
        fixed.extend_from_slice(&draw.reads);
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let bound = own.state.point(Kind::Graphics).pipeline.as_slice();
        let pipelines = if draw.is_nothing() { &[] } else { chosen.as_deref().unwrap_or(bound) };
        if pipelines.is_empty() {
            if !draw.is_nothing() {
                out.missing("no pipeline that is known");
            }
            self.act(buffer, fixed, out);
            return;
        }
        let mut uses = Uses { fixed, late: Vec::new() };
        for pipeline in pipelines {
            let known = uses.len();
            self.add_drawn(&own.state, pipeline, draw, &mut uses, out);
            if pipelines.len() > 1 || own.state.is_conditional {
                uses.weaken_from(known);
            }
        }
        let touches = || {
            let mut touches = Touches::new();
            pipelines.iter().for_each(|it| add_touches(&own.state, it, &mut touches));
            touches
        };
        let (targets, is_inherited) = match &own.state.scene {
            Scene::None => (None, false),
            Scene::Known(targets) => (Some(&**targets), false),
            Scene::Inherited { .. } => (own.waiting.targets(), true),
        };
        if chosen.is_some() || !uses.late.is_empty() {
            return self.act_on(buffer, uses.fixed, &touches(), uses.late, out);
        }
        if !self.drawn.is_of(buffer) {
            self.drawn.set(buffer, targets, touches());
        }
        if is_inherited {
            return self.act_inherited(buffer, uses.fixed, out);
        }
        uses.fixed.extend_from_slice(&self.drawn.accesses);
        self.act(buffer, uses.fixed, out);
    }

    fn add_drawn(&self, state: &State, pipeline: &Pipeline, draw: &Draw, uses: &mut Uses, out: &mut Out<'_>) {
        if self.has_shader_uses(state, Kind::Graphics, &pipeline.shaders) {
            let (launch, ordered) = (draw.launch(), pipeline.raster.ordered);
            self.add_shader_uses(state, Kind::Graphics, &pipeline.shaders, &launch, ordered, uses, out);
        }
        if draw.has_vertices {
            let late = self.add_vertices_read(state, pipeline, draw, &mut uses.fixed);
            uses.late.extend(late.map(LateUse::Indexed));
            if let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) {
                bound.add_accesses(indices, &mut uses.fixed);
            }
        }
        if state.is_feeding_back {
            uses.fixed.extend(state.feedback.values().map(|it| FEEDBACK_WRITE.on_bytes(it.0, it.1.clone())));
        }
        if let Some(view) = &state.rate_image {
            let raster = pipeline.raster.with(pipeline.dynamic, &state.raster);
            uses.fixed.extend((raster.has_rate_image && !raster.is_discarded).then(|| view.read(SHADING_RATE_READ)));
        }
    }

    /// Adds what a draw reads of its vertex buffers; gives what the submission will tell.
    fn add_vertices_read(
        &self,
        state: &State,
        pipeline: &Pipeline,
        draw: &Draw,
        found: &mut Vec<Access>,
    ) -> Option<Box<Indexed>> {
        let is_set = pipeline.dynamic.has(Dynamic::VERTEX_INPUT);
        let input: &VertexInput = if is_set { &state.vertex } else { &pipeline.vertex };
        let vertex = pipeline.shaders.iter().find(|it| it.stage == vk::ShaderStageFlagBits::VERTEX);
        let inputs = vertex.and_then(|it| it.interface.as_ref()).map_or(u64::MAX, |it| it.inputs);
        let is_bound = is_set || pipeline.dynamic.has(Dynamic::STRIDE);
        let strides = if is_bound { Strides::Bound } else { Strides::Input };
        let (Some(indices), Some(bound)) = (&draw.indices, &state.indices) else {
            input.add_accesses(&state.vertices, strides, inputs, (&draw.vertices, &draw.instances), found);
            return None;
        };
        let read = input.reads(&state.vertices, strides, inputs).filter(|it| it.0.is_none()).map(|it| it.1);
        let late = self.indexed(bound, indices, draw.vertex_offset, read).map(Box::new);
        let vertices = match late {
            Some(_) => Taken::Part(0..0),
            None => self.updated(&state.updates, bound, indices, draw.vertex_offset).unwrap_or(Taken::Any),
        };
        input.add_accesses(&state.vertices, strides, inputs, (&vertices, &draw.instances), found);
        late
    }

    /// Indirect parameters, one structure behind the other.
    fn structures(
        &self,
        buffer: vk::Buffer,
        offset: u64,
        count: u32,
        stride: u32,
        size: u64,
        out: &mut Out<'_>,
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
pub(crate) fn somewhere(it: Access) -> Access {
    Access { certainty: Certainty::Somewhere, ..it }
}

fn add_touches(state: &State, pipeline: &Pipeline, touches: &mut Touches) {
    let raster = pipeline.raster.with(pipeline.dynamic, &state.raster);
    let colors = state.scene.colors();
    attachment::add_of_draw(touches, &raster, &pipeline.shaders, state.locations.as_deref(), colors);
}

/// Several draws in one.
fn draw_multi(it: View<'_, vk::CmdDrawMultiEXTParams>) -> Draw {
    let vertices = Taken::of_many(it.p_vertex_info().iter().map(|it| (it.first_vertex, it.vertex_count)));
    Draw::new(vertices, Taken::part(it.first_instance, it.instance_count))
}

fn draw_multi_indexed(it: View<'_, vk::CmdDrawMultiIndexedEXTParams>) -> Draw {
    let indices = Taken::of_many(it.p_index_info().iter().map(|it| (it.first_index, it.index_count)));
    Draw::indexed(indices, Taken::part(it.first_instance, it.instance_count))
}
