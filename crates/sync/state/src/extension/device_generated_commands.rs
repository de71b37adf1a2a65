//! Device-generated commands, as far as their layouts and the bound state determine them.
//!
//! The draws and dispatches themselves are in memory. What a draw can access follows from the pipelines that it may
//! use, as for an indirect draw.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::IndirectCommandsTokenTypeEXT as Token;
use lavascope_abi::IndirectCommandsTokenTypeNV as TokenNv;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{Access, Certainty};

use crate::command::bound_state::BindPoint;
use crate::command::stage_access::{COPY_WRITE, INDIRECT_READ, PREPROCESS_READ, PREPROCESS_WRITE, StageAccess};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::draw_commands::DrawParameters;
use crate::listener::TrackerOutput;
use crate::shader::interface::Shader;
use crate::shader::launch::Launch;
use crate::shader::pipeline::TrackedPipeline;

/// The effects of each generated sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneratedCommandsLayout {
    action: GeneratedAction,
    pushes: bool,
    /// Vertex bindings that are set from memory.
    vertices: Vec<u32>,
    has_indices: bool,
    chooses_pipeline: bool,
    /// The strides of the streams of `VK_NV_device_generated_commands`.
    strides: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GeneratedAction {
    #[default]
    Unknown,
    Draw,
    DrawIndexed,
    DrawMesh,
    Dispatch,
    TraceRays,
}

/// An indirect execution set: the pipelines or shaders that commands may choose.
#[derive(Clone, Debug)]
pub(crate) enum ExecutionSet {
    Pipelines(Vec<Option<Arc<TrackedPipeline>>>),
    Shaders(Vec<Option<Shader>>),
}

/// More pipelines than any execution set has.
const CHOICES_MAX: u32 = 1 << 16;
const COUNT: u64 = 4;
const BUFFERS: &str = "buffers that generated commands name";

impl TrackedDevice {
    pub(crate) fn track_generated_commands(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateIndirectCommandsLayoutEXT(params), Some(Outcome::CreateIndirectCommandsLayoutEXT(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_indirect_commands_layout()) {
                    self.command_layouts.insert(handle.0, GeneratedCommandsLayout::of(info));
                }
            }
            (Call::CreateIndirectCommandsLayoutNV(params), Some(Outcome::CreateIndirectCommandsLayoutNV(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_indirect_commands_layout()) {
                    self.command_layouts_nv.insert(handle.0, GeneratedCommandsLayout::of_nv(info));
                }
            }
            (Call::CreateIndirectExecutionSetEXT(params), Some(Outcome::CreateIndirectExecutionSetEXT(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_indirect_execution_set()) {
                    let set = self.execution_set(info);
                    self.execution_sets.insert(handle.0, set);
                }
            }
            (Call::DestroyIndirectCommandsLayoutEXT(params), None) => {
                self.command_layouts.remove(params.indirect_commands_layout.0);
            }
            (Call::DestroyIndirectCommandsLayoutNV(params), None) => {
                self.command_layouts_nv.remove(params.indirect_commands_layout.0);
            }
            (Call::DestroyIndirectExecutionSetEXT(params), None) => {
                self.execution_sets.remove(params.indirect_execution_set.0);
            }
            _ => {
                return self.track_execution_set_updates(tracked.call)
                    || self.track_generated_execution(tracked.call, out);
            }
        }
        true
    }

    fn track_execution_set_updates(&mut self, call: &Call<'_>) -> bool {
        match call {
            Call::UpdateIndirectExecutionSetPipelineEXT(params) => {
                for write in params.p_execution_set_writes().iter().filter(|it| it.index < CHOICES_MAX) {
                    let pipeline = self.pipelines.get(write.pipeline.0).cloned();
                    let set = self.execution_sets.get_mut(params.indirect_execution_set.0);
                    if let Some(ExecutionSet::Pipelines(all)) = set {
                        put(all, write.index, pipeline);
                    }
                }
            }
            Call::UpdateIndirectExecutionSetShaderEXT(params) => {
                for write in params.p_execution_set_writes().iter().filter(|it| it.index < CHOICES_MAX) {
                    let shader = self.shaders.get(write.shader.0).cloned();
                    let set = self.execution_sets.get_mut(params.indirect_execution_set.0);
                    if let Some(ExecutionSet::Shaders(all)) = set {
                        put(all, write.index, shader);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    fn track_generated_execution(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdPreprocessGeneratedCommandsEXT(params) => {
                let Some(info) = params.p_generated_commands_info() else { return true };
                let mut accesses = self.sequence_reads(info, PREPROCESS_READ, out);
                accesses.extend(self.address_access(
                    info.preprocess_address,
                    info.preprocess_size,
                    PREPROCESS_WRITE,
                    out,
                ));
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdPreprocessGeneratedCommandsNV(params) => {
                let Some(info) = params.p_generated_commands_info() else { return true };
                let mut accesses = self.stream_reads(info, PREPROCESS_READ, out);
                accesses.extend(self.preprocess_access_nv(info, PREPROCESS_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdExecuteGeneratedCommandsEXT(params) => {
                let Some(info) = params.p_generated_commands_info() else { return true };
                self.execute_generated(params.command_buffer, info, params.is_preprocessed.is_true(), out);
            }
            Call::CmdExecuteGeneratedCommandsNV(params) => {
                let Some(info) = params.p_generated_commands_info() else { return true };
                self.execute_generated_nv(params.command_buffer, info, params.is_preprocessed.is_true(), out);
            }
            Call::CmdUpdatePipelineIndirectBufferNV(params) => {
                let place = self.pipelines.get(params.pipeline.0).and_then(|it| it.indirect);
                let write = place.and_then(|(at, size)| self.address_access(at, size, COPY_WRITE, out));
                self.record_action(params.command_buffer, write.into_iter().collect(), out);
            }
            _ => return false,
        }
        true
    }

    fn execution_set(&self, info: View<'_, vk::IndirectExecutionSetCreateInfoEXT>) -> ExecutionSet {
        let inner = info.inner(&info.get().info);
        if info.type_ == vk::IndirectExecutionSetInfoTypeEXT::PIPELINES_EXT {
            let first = inner.p_pipeline_info().and_then(|it| self.pipelines.get(it.initial_pipeline.0).cloned());
            return ExecutionSet::Pipelines(vec![first]);
        }
        let shaders = inner.p_shader_info().map_or(&[][..], |it| it.p_initial_shaders());
        ExecutionSet::Shaders(shaders.iter().map(|it| self.shaders.get(it.0).cloned()).collect())
    }

    /// The reads of the parameters of all sequences, and of their count.
    fn sequence_reads(
        &self,
        info: View<'_, vk::GeneratedCommandsInfoEXT>,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let read = self.address_access(info.indirect_address, info.indirect_address_size, usage, out);
        // The number of sequences may be in memory.
        let is_counted = info.sequence_count_address != 0;
        let read = read.map(|it| if is_counted { Access { certainty: Certainty::Anywhere, ..it } } else { it });
        let count = self.address_access(info.sequence_count_address, COUNT, usage, out);
        read.into_iter().chain(count).collect()
    }

    fn stream_reads(
        &self,
        info: View<'_, vk::GeneratedCommandsInfoNV>,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let layout = self.command_layouts_nv.get(info.indirect_commands_layout.0);
        let count = u64::from(info.sequences_count);
        let mut found: Vec<Access> = Vec::new();
        for (at, p_stream) in info.p_streams().iter().enumerate() {
            let stride = layout.and_then(|it| it.strides.get(at)).map_or(0, |it| u64::from(*it));
            found.extend(self.buffer_access(
                p_stream.buffer,
                p_stream.offset,
                count.saturating_mul(stride),
                usage,
                out,
            ));
        }
        if info.sequences_count_buffer.0 != 0 {
            found.iter_mut().for_each(|it| it.certainty = Certainty::Anywhere);
        }
        let counts = [
            (info.sequences_count_buffer, info.sequences_count_offset, COUNT),
            (info.sequences_index_buffer, info.sequences_index_offset, count.saturating_mul(COUNT)),
        ];
        let given = counts.into_iter().filter(|it| it.0.0 != 0);
        found.extend(given.filter_map(|(buffer, at, size)| self.buffer_access(buffer, at, size, usage, out)));
        found
    }

    fn preprocess_access_nv(
        &self,
        info: View<'_, vk::GeneratedCommandsInfoNV>,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Option<Access> {
        let given = Some(info).filter(|it| it.preprocess_buffer.0 != 0)?;
        self.buffer_access(given.preprocess_buffer, given.preprocess_offset, given.preprocess_size, usage, out)
    }

    fn execute_generated(
        &mut self,
        buffer: vk::CommandBuffer,
        info: View<'_, vk::GeneratedCommandsInfoEXT>,
        is_preprocessed: bool,
        out: &mut TrackerOutput<'_>,
    ) {
        let place = (info.preprocess_address, info.preprocess_size);
        let reads = if is_preprocessed {
            self.address_access(place.0, place.1, INDIRECT_READ, out).into_iter().collect()
        } else {
            let mut found = self.sequence_reads(info, INDIRECT_READ, out);
            found.extend(self.address_access(place.0, place.1, PREPROCESS_WRITE, out).map(with_certainty_maybe));
            found
        };
        let Some(layout) = self.command_layouts.get(info.indirect_commands_layout.0).cloned() else {
            out.report_untracked("a layout that nobody created");
            return;
        };
        let set = layout.chooses_pipeline.then(|| self.execution_sets.get(info.indirect_execution_set.0).cloned());
        let pipelines = set.flatten().map(|it| self.candidate_pipelines(it, buffer));
        self.record_generated(buffer, &layout, pipelines, reads, out);
    }

    fn execute_generated_nv(
        &mut self,
        buffer: vk::CommandBuffer,
        info: View<'_, vk::GeneratedCommandsInfoNV>,
        is_preprocessed: bool,
        out: &mut TrackerOutput<'_>,
    ) {
        let reads = if is_preprocessed {
            self.preprocess_access_nv(info, INDIRECT_READ, out).into_iter().collect()
        } else {
            let mut found = self.stream_reads(info, INDIRECT_READ, out);
            found.extend(self.preprocess_access_nv(info, PREPROCESS_WRITE, out).map(with_certainty_maybe));
            found
        };
        let Some(layout) = self.command_layouts_nv.get(info.indirect_commands_layout.0).cloned() else {
            out.report_untracked("a layout that nobody created");
            return;
        };
        let own = self.pipelines.get(info.pipeline.0).cloned();
        let pipelines = own.map(|own| if layout.chooses_pipeline { own.bindable_pipelines() } else { vec![own] });
        if layout.chooses_pipeline && layout.action == GeneratedAction::Dispatch {
            out.report_untracked("pipelines that generated commands name");
        }
        self.record_generated(buffer, &layout, pipelines, reads, out);
    }

    /// The pipelines of a set. For a set of shaders: one pipeline, made of these and the bound ones.
    fn candidate_pipelines(&self, set: ExecutionSet, buffer: vk::CommandBuffer) -> Vec<Arc<TrackedPipeline>> {
        match set {
            ExecutionSet::Pipelines(all) => all.into_iter().flatten().collect(),
            ExecutionSet::Shaders(all) => {
                let own = self.command_buffers.get(buffer.0);
                let bound = own.and_then(|it| it.state.bind_point(BindPoint::Graphics).pipeline.clone());
                let shaders = all.into_iter().flatten().collect();
                vec![Arc::new(TrackedPipeline { shaders, ..bound.as_deref().cloned().unwrap_or_default() })]
            }
        }
    }

    /// Records the generated commands. State that they may set counts as unknown meanwhile.
    fn record_generated(
        &mut self,
        buffer: vk::CommandBuffer,
        layout: &GeneratedCommandsLayout,
        pipelines: Option<Vec<Arc<TrackedPipeline>>>,
        reads: Vec<Access>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffer_mut(buffer) else { return };
        let kept = (own.state.push_constants.clone(), own.state.vertices.clone(), own.state.indices.clone());
        if layout.pushes {
            own.state.push_constants = Default::default();
        }
        own.state.vertices.retain(|it, _| !layout.vertices.contains(it));
        if layout.has_indices {
            own.state.indices = None;
        }
        if layout.has_indices || !layout.vertices.is_empty() {
            out.report_untracked(BUFFERS);
        }
        match layout.action {
            GeneratedAction::Unknown => {
                out.report_untracked("what generated commands do");
                self.record_action(buffer, reads, out);
            }
            GeneratedAction::Draw => self.record_draw_with(buffer, &DrawParameters::indirect(reads), pipelines, out),
            GeneratedAction::DrawIndexed => {
                self.record_draw_with(buffer, &DrawParameters::indexed_indirect(reads), pipelines, out)
            }
            GeneratedAction::DrawMesh => self.record_draw_with(buffer, &DrawParameters::mesh(reads), pipelines, out),
            GeneratedAction::Dispatch => {
                self.record_launch_with(buffer, BindPoint::Compute, reads, &Launch::Unknown, pipelines, out)
            }
            GeneratedAction::TraceRays => {
                self.record_launch_with(buffer, BindPoint::RayTracing, reads, &Launch::Unknown, pipelines, out)
            }
        }
        if let Some(own) = self.command_buffer_mut(buffer) {
            (own.state.push_constants, own.state.vertices, own.state.indices) = kept;
        }
    }
}

impl GeneratedCommandsLayout {
    fn of(info: View<'_, vk::IndirectCommandsLayoutCreateInfoEXT>) -> GeneratedCommandsLayout {
        let mut layout = GeneratedCommandsLayout::default();
        for p_token in info.p_tokens().iter() {
            match p_token.type_ {
                Token::EXECUTION_SET_EXT => layout.chooses_pipeline = true,
                Token::PUSH_CONSTANT_EXT | Token::SEQUENCE_INDEX_EXT => layout.pushes = true,
                Token::PUSH_DATA_EXT | Token::PUSH_DATA_SEQUENCE_INDEX_EXT => layout.pushes = true,
                Token::INDEX_BUFFER_EXT => layout.has_indices = true,
                Token::VERTEX_BUFFER_EXT => {
                    let unit = p_token.inner(&p_token.get().data).p_vertex_buffer().map(|it| it.vertex_binding_unit);
                    layout.vertices.extend(unit);
                }
                Token::DRAW_EXT | Token::DRAW_COUNT_EXT => layout.action = GeneratedAction::Draw,
                Token::DRAW_INDEXED_EXT | Token::DRAW_INDEXED_COUNT_EXT => layout.action = GeneratedAction::DrawIndexed,
                Token::DISPATCH_EXT => layout.action = GeneratedAction::Dispatch,
                Token::DRAW_MESH_TASKS_EXT
                | Token::DRAW_MESH_TASKS_COUNT_EXT
                | Token::DRAW_MESH_TASKS_NV_EXT
                | Token::DRAW_MESH_TASKS_COUNT_NV_EXT => layout.action = GeneratedAction::DrawMesh,
                Token::TRACE_RAYS2_EXT => layout.action = GeneratedAction::TraceRays,
                _ => {}
            }
        }
        layout
    }

    fn of_nv(info: View<'_, vk::IndirectCommandsLayoutCreateInfoNV>) -> GeneratedCommandsLayout {
        let mut layout =
            GeneratedCommandsLayout { strides: info.p_stream_strides().to_vec(), ..GeneratedCommandsLayout::default() };
        for p_token in info.p_tokens().iter() {
            match p_token.token_type {
                TokenNv::SHADER_GROUP_NV | TokenNv::PIPELINE_NV => layout.chooses_pipeline = true,
                TokenNv::PUSH_CONSTANT_NV | TokenNv::PUSH_DATA_NV => layout.pushes = true,
                TokenNv::INDEX_BUFFER_NV => layout.has_indices = true,
                TokenNv::VERTEX_BUFFER_NV => layout.vertices.push(p_token.vertex_binding_unit),
                TokenNv::DRAW_NV => layout.action = GeneratedAction::Draw,
                TokenNv::DRAW_INDEXED_NV => layout.action = GeneratedAction::DrawIndexed,
                TokenNv::DRAW_TASKS_NV | TokenNv::DRAW_MESH_TASKS_NV => layout.action = GeneratedAction::DrawMesh,
                TokenNv::DISPATCH_NV => layout.action = GeneratedAction::Dispatch,
                _ => {}
            }
        }
        layout
    }
}

fn put<T>(all: &mut Vec<Option<T>>, index: u32, value: Option<T>) {
    let index = index as usize;
    if all.len() <= index {
        all.resize_with(index + 1, || None);
    }
    all[index] = value;
}

/// The driver may or may not make this access.
fn with_certainty_maybe(access: Access) -> Access {
    Access { certainty: Certainty::Maybe, ..access }
}
