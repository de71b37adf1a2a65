//! Shader modules, pipelines with libraries, and shader objects.

use std::ffi::CStr;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::GraphicsPipelineLibraryFlagsEXT as Parts;
use lavascope_record::{Call, Outcome, View, Views};

use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::raster_state::{ColorState, DynamicStates, RasterState, StencilFace};
use crate::draw::vertex_input::VertexInput;
use crate::listener::TrackerOutput;
use crate::shader::interface::{Shader, ShaderCode};

/// A pipeline of any type, or a pipeline library.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedPipeline {
    pub(crate) shaders: Vec<Shader>,
    pub(crate) raster: RasterState,
    pub(crate) dynamic: DynamicStates,
    pub(crate) vertex: VertexInput,
    /// Shader groups, which can be bound in its place.
    pub(crate) groups: Vec<Arc<TrackedPipeline>>,
    /// Address and size of the pipeline's metadata for device-generated commands.
    pub(crate) indirect: Option<(u64, u64)>,
}

const ALL_PARTS: u32 = Parts::VERTEX_INPUT_INTERFACE_EXT.0
    | Parts::PRE_RASTERIZATION_SHADERS_EXT.0
    | Parts::FRAGMENT_SHADER_EXT.0
    | Parts::FRAGMENT_OUTPUT_INTERFACE_EXT.0;

impl TrackedDevice {
    pub(crate) fn track_pipelines(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateShaderModule(params), Some(Outcome::CreateShaderModule(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_shader_module()) {
                    self.shader_modules.insert(handle.0, Arc::from(info.p_code()));
                }
            }
            (Call::CreateGraphicsPipelines(params), Some(Outcome::CreateGraphicsPipelines(made))) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_pipelines()) {
                    let pipeline = self.graphics_pipeline(info, out);
                    self.pipelines.insert(handle.0, Arc::new(pipeline));
                }
            }
            (Call::CreateComputePipelines(params), Some(Outcome::CreateComputePipelines(made))) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_pipelines()) {
                    let shader = self.stage(info.inner(&info.get().stage), out);
                    let indirect = info.chained::<vk::ComputePipelineIndirectBufferInfoNV>();
                    let indirect = indirect.map(|it| (it.device_address, it.size));
                    let pipeline = TrackedPipeline { shaders: vec![shader], indirect, ..TrackedPipeline::default() };
                    self.pipelines.insert(handle.0, Arc::new(pipeline));
                }
            }
            (Call::CreateRayTracingPipelinesKHR(params), Some(Outcome::CreateRayTracingPipelinesKHR(made))) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_pipelines()) {
                    let mut shaders = self.stages(info.p_stages(), out);
                    let libraries = info.p_library_info();
                    for library in libraries.iter().flat_map(|it| it.p_libraries()) {
                        shaders.extend(self.pipelines.get(library.0).iter().flat_map(|it| it.shaders.clone()));
                    }
                    self.pipelines
                        .insert(handle.0, Arc::new(TrackedPipeline { shaders, ..TrackedPipeline::default() }));
                }
            }
            (Call::CreateRayTracingPipelinesNV(params), Some(Outcome::CreateRayTracingPipelinesNV(made))) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_pipelines()) {
                    let shaders = self.stages(info.p_stages(), out);
                    self.pipelines
                        .insert(handle.0, Arc::new(TrackedPipeline { shaders, ..TrackedPipeline::default() }));
                }
            }
            (
                Call::CreateExecutionGraphPipelinesAMDX(params),
                Some(Outcome::CreateExecutionGraphPipelinesAMDX(made)),
            ) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_pipelines()) {
                    let mut shaders = self.stages(info.p_stages(), out);
                    let libraries = info.p_library_info();
                    for library in libraries.iter().flat_map(|it| it.p_libraries()) {
                        shaders.extend(self.pipelines.get(library.0).iter().flat_map(|it| it.shaders.clone()));
                    }
                    self.pipelines
                        .insert(handle.0, Arc::new(TrackedPipeline { shaders, ..TrackedPipeline::default() }));
                }
            }
            (Call::CreateShadersEXT(params), Some(Outcome::CreateShadersEXT(made))) => {
                for (info, handle) in params.p_create_infos().iter().zip(made.p_shaders()) {
                    let shader = shader_object(info, out);
                    self.shaders.insert(handle.0, shader);
                }
            }
            (Call::DestroyShaderModule(params), None) => drop(self.shader_modules.remove(params.shader_module.0)),
            (Call::DestroyPipeline(params), None) => drop(self.pipelines.remove(params.pipeline.0)),
            (Call::DestroyShaderEXT(params), None) => drop(self.shaders.remove(params.shader.0)),
            _ => return false,
        }
        true
    }

    fn graphics_pipeline(
        &self,
        info: View<'_, vk::GraphicsPipelineCreateInfo>,
        out: &mut TrackerOutput<'_>,
    ) -> TrackedPipeline {
        let linked = info.chained::<vk::PipelineLibraryCreateInfoKHR>();
        let parts = match info.chained::<vk::GraphicsPipelineLibraryCreateInfoEXT>() {
            Some(create_info) => create_info.flags.0,
            // Linked libraries already contain this state.
            None if linked.is_some() => 0,
            None => ALL_PARTS,
        };
        let mut pipeline = TrackedPipeline::default();
        for library in linked.iter().flat_map(|it| it.p_libraries()) {
            match self.pipelines.get(library.0) {
                Some(library) => pipeline.link_library(library),
                None => out.report_untracked("a pipeline library that nobody created"),
            }
        }
        pipeline.shaders.extend(self.stages(info.p_stages(), out));
        let dynamic = info.p_dynamic_state();
        pipeline.dynamic.0 |= dynamic.map_or(0, |it| DynamicStates::of(it.p_dynamic_states()).0);
        let has = |part: Parts| parts & part.0 != 0;
        if let Some(create_info) = info.p_vertex_input_state().filter(|_| has(Parts::VERTEX_INPUT_INTERFACE_EXT)) {
            pipeline.vertex = VertexInput::from_create_info(create_info);
        }
        if let Some(create_info) = info.p_input_assembly_state().filter(|_| has(Parts::VERTEX_INPUT_INTERFACE_EXT)) {
            pipeline.raster.topology = Some(create_info.topology);
        }
        if let Some(create_info) = info.p_rasterization_state().filter(|_| has(Parts::PRE_RASTERIZATION_SHADERS_EXT)) {
            pipeline.raster.is_discarded = create_info.rasterizer_discard_enable.is_true();
            pipeline.raster.cull_mode = create_info.cull_mode.0;
        }
        if let Some(create_info) = info.p_viewport_state().filter(|_| has(Parts::PRE_RASTERIZATION_SHADERS_EXT)) {
            let image = create_info.chained::<vk::PipelineViewportShadingRateImageStateCreateInfoNV>();
            pipeline.raster.has_rate_image = image.is_some_and(|it| it.shading_rate_image_enable.is_true());
        }
        if let Some(create_info) = info.p_depth_stencil_state().filter(|_| has(Parts::FRAGMENT_SHADER_EXT)) {
            pipeline.raster.set_depth_stencil(create_info.get());
        }
        if let Some(create_info) = info.p_color_blend_state().filter(|_| has(Parts::FRAGMENT_OUTPUT_INTERFACE_EXT)) {
            pipeline.raster.set_blending(create_info);
        }
        if let Some(create_info) = info.chained::<vk::GraphicsPipelineShaderGroupsCreateInfoNV>() {
            pipeline.groups = self.groups(create_info, &pipeline, out);
        }
        pipeline
    }

    /// The shader groups of a pipeline, which share its state: first its own, then those of other pipelines.
    fn groups(
        &self,
        info: View<'_, vk::GraphicsPipelineShaderGroupsCreateInfoNV>,
        pipeline: &TrackedPipeline,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Arc<TrackedPipeline>> {
        let group =
            |create_info: View<'_, vk::GraphicsShaderGroupCreateInfoNV>, out: &mut TrackerOutput<'_>| TrackedPipeline {
                shaders: self.stages(create_info.p_stages(), out),
                vertex: create_info
                    .p_vertex_input_state()
                    .map_or_else(VertexInput::default, VertexInput::from_create_info),
                ..pipeline.clone()
            };
        let own = info.p_groups().iter().map(|it| Arc::new(group(it, out))).collect::<Vec<_>>();
        let others = info.p_pipelines().iter().filter_map(|it| self.pipelines.get(it.0));
        own.into_iter().chain(others.flat_map(|it| it.bindable_pipelines())).collect()
    }

    fn stages(&self, stages: Views<'_, vk::PipelineShaderStageCreateInfo>, out: &mut TrackerOutput<'_>) -> Vec<Shader> {
        stages.iter().map(|it| self.stage(it, out)).collect()
    }

    fn stage(&self, create_info: View<'_, vk::PipelineShaderStageCreateInfo>, out: &mut TrackerOutput<'_>) -> Shader {
        let module = self.shader_modules.get(create_info.module.0).cloned();
        let chained = create_info.chained::<vk::ShaderModuleCreateInfo>();
        let words = chained.map(|it| it.p_code()).or(module.as_deref()).unwrap_or_default();
        reflect(words, create_info.p_name(), create_info.stage, create_info.p_specialization_info(), out)
    }
}

fn shader_object(info: View<'_, vk::ShaderCreateInfoEXT>, out: &mut TrackerOutput<'_>) -> Shader {
    if info.code_type != vk::ShaderCodeTypeEXT::SPIRV_EXT {
        out.report_untracked("shaders that are not SPIR-V");
        return Shader { stage: info.stage, interface: None };
    }
    let bytes = info.p_code();
    let words: Vec<u32> = bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect();
    reflect(&words, info.p_name(), info.stage, info.p_specialization_info(), out)
}

fn reflect(
    words: &[u32],
    name: Option<&CStr>,
    stage: vk::ShaderStageFlagBits,
    specialization: Option<View<'_, vk::SpecializationInfo>>,
    out: &mut TrackerOutput<'_>,
) -> Shader {
    let mut constants = Vec::new();
    if let Some(info) = specialization {
        let data = info.p_data();
        for p_map_entry in info.p_map_entries().iter() {
            let start = p_map_entry.offset as usize;
            let end = start.saturating_add(usize::try_from(p_map_entry.size).unwrap_or(usize::MAX));
            constants.extend(data.get(start..end).map(|bytes| (p_map_entry.constant_id, bytes)));
        }
    }
    let entry_point = name.and_then(|it| it.to_str().ok()).unwrap_or("main");
    let interface = out.reflect.reflect(&ShaderCode { words, entry_point, stage, constants });
    match &interface {
        None => out.report_untracked("what a shader accesses"),
        Some(shader_interface) if shader_interface.is_partial => {
            out.report_untracked("some of what a shader accesses: it could not be followed to the end")
        }
        Some(_) => {}
    }
    Shader { stage, interface: interface.map(Arc::new) }
}

impl TrackedPipeline {
    /// All that can be bound: its groups, or the pipeline itself if it has none.
    pub(crate) fn bindable_pipelines(self: &Arc<TrackedPipeline>) -> Vec<Arc<TrackedPipeline>> {
        if self.groups.is_empty() { vec![Arc::clone(self)] } else { self.groups.clone() }
    }

    /// Adds the state of a library. State that the library does not have keeps its default.
    fn link_library(&mut self, library: &TrackedPipeline) {
        self.shaders.extend(library.shaders.iter().cloned());
        self.dynamic.0 |= library.dynamic.0;
        if !library.vertex.is_empty() {
            self.vertex = library.vertex.clone();
        }
        let (own, other) = (&mut self.raster, &library.raster);
        own.is_discarded |= other.is_discarded;
        own.cull_mode |= other.cull_mode;
        own.topology = other.topology.or(own.topology);
        own.has_depth_test |= other.has_depth_test;
        own.has_depth_write |= other.has_depth_write;
        own.has_depth_bounds |= other.has_depth_bounds;
        own.has_rate_image |= other.has_rate_image;
        own.ordered.color |= other.ordered.color;
        own.ordered.depth_stencil |= other.ordered.depth_stencil;
        own.has_logic_op |= other.has_logic_op;
        if other.has_logic_op {
            own.logic_op = other.logic_op;
        }
        if other.has_stencil_test || other.front.write_mask != 0 || other.back.write_mask != 0 {
            own.has_stencil_test |= other.has_stencil_test;
            (own.front, own.back) = (other.front, other.back);
        }
        if !other.colors.is_empty() {
            own.colors.clone_from(&other.colors);
        }
    }
}

impl RasterState {
    fn set_depth_stencil(&mut self, create_info: &vk::PipelineDepthStencilStateCreateInfo) {
        use vk::PipelineDepthStencilStateCreateFlags as Flags;
        let in_order = Flags::RASTERIZATION_ORDER_ATTACHMENT_DEPTH_ACCESS_EXT.0
            | Flags::RASTERIZATION_ORDER_ATTACHMENT_STENCIL_ACCESS_EXT.0;
        self.ordered.depth_stencil = create_info.flags.0 & in_order != 0;
        self.has_depth_test = create_info.depth_test_enable.is_true();
        self.has_depth_write = create_info.depth_write_enable.is_true();
        self.has_depth_bounds = create_info.depth_bounds_test_enable.is_true();
        self.has_stencil_test = create_info.stencil_test_enable.is_true();
        self.front = StencilFace::of(&create_info.front);
        self.back = StencilFace::of(&create_info.back);
    }

    fn set_blending(&mut self, create_info: View<'_, vk::PipelineColorBlendStateCreateInfo>) {
        let in_order = vk::PipelineColorBlendStateCreateFlags::RASTERIZATION_ORDER_ATTACHMENT_ACCESS_EXT;
        self.ordered.color = create_info.flags.0 & in_order.0 != 0;
        self.has_logic_op = create_info.logic_op_enable.is_true();
        self.logic_op = create_info.logic_op;
        let enables = create_info.chained::<vk::PipelineColorWriteCreateInfoEXT>();
        let enables = enables.map_or(&[][..], |it| it.p_color_write_enables());
        let color = |(at, attachment_state): (usize, View<'_, vk::PipelineColorBlendAttachmentState>)| ColorState {
            is_blended: attachment_state.blend_enable.is_true(),
            write_mask: attachment_state.color_write_mask.0 as u8,
            is_enabled: enables.get(at).is_none_or(|it| it.is_true()),
        };
        self.colors = create_info.p_attachments().iter().enumerate().map(color).collect();
    }
}
