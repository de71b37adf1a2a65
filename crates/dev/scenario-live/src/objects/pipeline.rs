//! Pipelines: shaders with the accesses of their bindings, and the state that decides how attachments are used.

use lavascope_abi as vk;
use lavascope_abi::{PipelineStageFlags2 as Stage, Ptr, Structure};
use lavascope_sync_ir::AttributeBytes;
use spirv::ExecutionModel as Model;

use crate::error::LiveError;
use crate::objects::calls::{call, check, out, text_ptr};
use crate::objects::descriptors::BoundDescriptors;
use crate::objects::device::{LiveDevice, create};
use crate::objects::resources::samples;
use crate::objects::shader::ShaderSpec;
use crate::plan::formats;
use crate::plan::formats::COLOR;
use crate::plan::live_command::{DepthStencilUse, DrawAttachments, DrawCommand, LiveAttachments, ShaderBinding};

/// A pipeline with the set that its shaders use.
pub(crate) struct LivePipeline {
    pub(crate) pipeline: vk::Pipeline,
    pub(crate) descriptors: BoundDescriptors,
}

/// The stages of drawing, as everybody calls them.
const STAGES: [(Stage, Model, vk::ShaderStageFlagBits); 7] = {
    use vk::ShaderStageFlagBits as Bit;
    [
        (Stage::VERTEX_SHADER, Model::Vertex, Bit::VERTEX),
        (Stage::TESSELLATION_CONTROL_SHADER, Model::TessellationControl, Bit::TESSELLATION_CONTROL),
        (Stage::TESSELLATION_EVALUATION_SHADER, Model::TessellationEvaluation, Bit::TESSELLATION_EVALUATION),
        (Stage::GEOMETRY_SHADER, Model::Geometry, Bit::GEOMETRY),
        (Stage::TASK_SHADER_EXT, Model::TaskEXT, Bit::TASK_EXT),
        (Stage::MESH_SHADER_EXT, Model::MeshEXT, Bit::MESH_EXT),
        (Stage::FRAGMENT_SHADER, Model::Fragment, Bit::FRAGMENT),
    ]
};

impl DrawCommand {
    pub(crate) fn targets(&self) -> &LiveAttachments {
        match &self.attachments {
            DrawAttachments::Program(targets) | DrawAttachments::AroundDraw(targets) => targets,
        }
    }

    fn has_stage(&self, stage: Stage) -> bool {
        self.bindings.iter().any(|it| it.0 == stage.0)
    }

    pub(crate) fn is_mesh(&self) -> bool {
        self.has_stage(Stage::TASK_SHADER_EXT) || self.has_stage(Stage::MESH_SHADER_EXT)
    }

    fn is_tessellated(&self) -> bool {
        self.has_stage(Stage::TESSELLATION_CONTROL_SHADER) || self.has_stage(Stage::TESSELLATION_EVALUATION_SHADER)
    }

    /// Whether anything comes behind the rasterizer.
    fn is_rasterized(&self) -> bool {
        let targets = self.targets();
        let has_maps = targets.shading_rate.is_some() || targets.density_map.is_some();
        let has_tests = self.depth.is_some() || self.stencil.is_some();
        self.has_stage(Stage::FRAGMENT_SHADER) || !self.colors.is_empty() || has_tests || has_maps
    }

    fn needs_stage(&self, stage: Stage) -> bool {
        match stage {
            Stage::VERTEX_SHADER => !self.is_mesh(),
            Stage::TESSELLATION_CONTROL_SHADER | Stage::TESSELLATION_EVALUATION_SHADER => self.is_tessellated(),
            Stage::MESH_SHADER_EXT => self.is_mesh(),
            Stage::FRAGMENT_SHADER => self.is_rasterized(),
            other => self.has_stage(other),
        }
    }

    /// The last stage before the rasterizer.
    fn last_vertex_stage(&self) -> Stage {
        let all = [Stage::MESH_SHADER_EXT, Stage::GEOMETRY_SHADER, Stage::TESSELLATION_EVALUATION_SHADER];
        all.into_iter().find(|it| self.needs_stage(*it)).unwrap_or(Stage::VERTEX_SHADER)
    }
}

impl LiveDevice<'_> {
    fn module(&self, shader: &ShaderSpec) -> Result<vk::ShaderModule, LiveError> {
        let words = shader.assemble();
        let info = vk::ShaderModuleCreateInfo {
            code_size: 4 * words.len() as u64,
            p_code: Ptr::to_slice(&words),
            ..vk::ShaderModuleCreateInfo::zeroed()
        };
        Ok(create!(self, create_shader_module, info, ShaderModule))
    }

    fn shader(&self, model: Model, bindings: &[(u32, &ShaderBinding)]) -> Result<ShaderSpec, LiveError> {
        let descriptors = bindings.iter().map(|(at, it)| self.shader_descriptor(*at, it)).collect::<Result<_, _>>()?;
        Ok(ShaderSpec { descriptors, ..ShaderSpec::new(model) })
    }

    /// A pipeline with one shader.
    pub(crate) fn create_compute_pipeline(&self, bindings: &[ShaderBinding]) -> Result<LivePipeline, LiveError> {
        let described = self.create_descriptors(&bindings.iter().collect::<Vec<_>>())?;
        let numbered: Vec<(u32, &ShaderBinding)> = (0..).zip(bindings).collect();
        let module = self.module(&self.shader(Model::GLCompute, &numbered)?)?;
        let info = vk::ComputePipelineCreateInfo {
            stage: stage_info(module, vk::ShaderStageFlagBits::COMPUTE),
            layout: described.layout,
            ..vk::ComputePipelineCreateInfo::zeroed()
        };
        let mut pipeline = vk::Pipeline(0);
        let result = call!(
            self.vk,
            create_compute_pipelines(
                self.device,
                vk::PipelineCache(0),
                1,
                Ptr::to(&info),
                Ptr::NULL,
                out(&mut pipeline)
            )
        );
        self.checked_pipeline(result, pipeline, described)
    }

    pub(crate) fn create_ray_tracing_pipeline(&self, bindings: &[ShaderBinding]) -> Result<LivePipeline, LiveError> {
        let described = self.create_descriptors(&bindings.iter().collect::<Vec<_>>())?;
        let numbered: Vec<(u32, &ShaderBinding)> = (0..).zip(bindings).collect();
        let module = self.module(&self.shader(Model::RayGenerationKHR, &numbered)?)?;
        let stage = stage_info(module, vk::ShaderStageFlagBits::RAYGEN_KHR);
        let group = vk::RayTracingShaderGroupCreateInfoKHR {
            type_: vk::RayTracingShaderGroupTypeKHR::GENERAL_KHR,
            general_shader: 0,
            closest_hit_shader: vk::SHADER_UNUSED_KHR,
            any_hit_shader: vk::SHADER_UNUSED_KHR,
            intersection_shader: vk::SHADER_UNUSED_KHR,
            ..vk::RayTracingShaderGroupCreateInfoKHR::zeroed()
        };
        let info = vk::RayTracingPipelineCreateInfoKHR {
            stage_count: 1,
            p_stages: Ptr::to(&stage),
            group_count: 1,
            p_groups: Ptr::to(&group),
            max_pipeline_ray_recursion_depth: 1,
            layout: described.layout,
            ..vk::RayTracingPipelineCreateInfoKHR::zeroed()
        };
        let (deferred, cache) = (vk::DeferredOperationKHR(0), vk::PipelineCache(0));
        let mut pipeline = vk::Pipeline(0);
        let result = call!(
            self.vk,
            create_ray_tracing_pipelines(
                self.device,
                deferred,
                cache,
                1,
                Ptr::to(&info),
                Ptr::NULL,
                out(&mut pipeline)
            )
        );
        self.checked_pipeline(result, pipeline, described)
    }

    fn checked_pipeline(
        &self,
        result: vk::Result,
        pipeline: vk::Pipeline,
        described: BoundDescriptors,
    ) -> Result<LivePipeline, LiveError> {
        check("vkCreate…Pipelines", result)?;
        self.destroy_at_end(crate::objects::device::OwnedObject::Pipeline(pipeline));
        Ok(LivePipeline { pipeline, descriptors: described })
    }

    /// The shaders of a draw, with their bindings numbered through.
    fn shaders(&self, draw: &DrawCommand) -> Result<Vec<(ShaderSpec, vk::ShaderStageFlagBits)>, LiveError> {
        let mut first = 0;
        let mut numbered: Vec<(u64, Vec<(u32, &ShaderBinding)>)> = Vec::new();
        for (stage, bindings) in &draw.bindings {
            numbered.push((*stage, (first..).zip(bindings).collect()));
            first += bindings.len() as u32;
        }
        let mut found = Vec::new();
        for (stage, model, bit) in STAGES.into_iter().filter(|it| draw.needs_stage(it.0)) {
            let own = numbered.iter().find(|it| it.0 == stage.0).map_or(&[][..], |it| &it.1);
            let mut shader = self.shader(model, own)?;
            if stage == Stage::VERTEX_SHADER {
                shader.inputs = VertexInputLists::of(draw).attributes.len() as u32;
            }
            if stage == draw.last_vertex_stage() {
                shader.writes_layer = draw.chooses_layer;
                shader.is_captured = !draw.feedback.is_empty();
            }
            if stage == Stage::FRAGMENT_SHADER {
                shader.is_early = draw.is_early;
                let formats = self.formats(draw.targets()).0;
                shader.outputs = draw
                    .colors
                    .iter()
                    .map(|it| (it.index, formats::component_type(formats[it.index as usize], COLOR)))
                    .collect();
            }
            found.push((shader, bit));
        }
        Ok(found)
    }

    pub(crate) fn create_graphics_pipeline(&self, draw: &DrawCommand) -> Result<LivePipeline, LiveError> {
        let all: Vec<&ShaderBinding> = draw.bindings.iter().flat_map(|it| &it.1).collect();
        let described = self.create_descriptors(&all)?;
        let mut stages = Vec::new();
        for (shader, bit) in self.shaders(draw)? {
            stages.push(stage_info(self.module(&shader)?, bit));
        }
        let states = PipelineStates::of(self, draw);
        let vertex = states.vertex.info();
        let (viewport, blend, rendering) =
            (states.viewport_info(), states.blend_info(draw), states.rendering_info(draw));
        let (pass, subpass) =
            draw.targets().pass.map_or((vk::RenderPass(0), 0), |it| (self.passes[it.0.0 as usize], it.1));
        let info = vk::GraphicsPipelineCreateInfo {
            p_next: if pass.0 == 0 { Ptr::to(&rendering).cast() } else { Ptr::NULL },
            stage_count: stages.len() as u32,
            p_stages: Ptr::to_slice(&stages),
            p_vertex_input_state: Ptr::to(&vertex),
            p_input_assembly_state: Ptr::to(&states.assembly),
            p_tessellation_state: Ptr::to(&states.tessellation),
            p_viewport_state: Ptr::to(&viewport),
            p_rasterization_state: Ptr::to(&states.rasterization),
            p_multisample_state: Ptr::to(&states.multisample),
            p_depth_stencil_state: Ptr::to(&states.depth),
            p_color_blend_state: Ptr::to(&blend),
            layout: described.layout,
            render_pass: pass,
            subpass,
            ..vk::GraphicsPipelineCreateInfo::zeroed()
        };
        let mut pipeline = vk::Pipeline(0);
        let result = call!(
            self.vk,
            create_graphics_pipelines(
                self.device,
                vk::PipelineCache(0),
                1,
                Ptr::to(&info),
                Ptr::NULL,
                out(&mut pipeline)
            )
        );
        self.checked_pipeline(result, pipeline, described)
    }
}

/// The states of a pipeline, where pointers can lead to them.
struct PipelineStates {
    vertex: VertexInputLists,
    assembly: vk::PipelineInputAssemblyStateCreateInfo,
    tessellation: vk::PipelineTessellationStateCreateInfo,
    area: vk::Rect2D,
    viewport: vk::Viewport,
    rasterization: vk::PipelineRasterizationStateCreateInfo,
    multisample: vk::PipelineMultisampleStateCreateInfo,
    depth: vk::PipelineDepthStencilStateCreateInfo,
    colors: Vec<vk::PipelineColorBlendAttachmentState>,
    formats: Vec<vk::Format>,
    depth_formats: [vk::Format; 2],
}

impl PipelineStates {
    fn of(world: &LiveDevice<'_>, draw: &DrawCommand) -> PipelineStates {
        let targets = draw.targets();
        let area = targets.area.map_or(vk::Rect2D::zeroed(), crate::recording::render_pass::rect);
        let first = targets.colors.iter().chain(&targets.depth).next();
        let samples = first.map_or(1, |it| samples(world.scenario.program, it.resource));
        let (formats, depth_formats) = world.formats(targets);
        use vk::PrimitiveTopology as Topology;
        PipelineStates {
            vertex: VertexInputLists::of(draw),
            assembly: vk::PipelineInputAssemblyStateCreateInfo {
                topology: if draw.is_tessellated() { Topology::PATCH_LIST } else { Topology::TRIANGLE_LIST },
                ..vk::PipelineInputAssemblyStateCreateInfo::zeroed()
            },
            tessellation: vk::PipelineTessellationStateCreateInfo {
                patch_control_points: 1,
                ..vk::PipelineTessellationStateCreateInfo::zeroed()
            },
            area,
            viewport: viewport(area),
            rasterization: vk::PipelineRasterizationStateCreateInfo {
                rasterizer_discard_enable: vk::Bool32(u32::from(!draw.is_rasterized())),
                line_width: 1.0,
                ..vk::PipelineRasterizationStateCreateInfo::zeroed()
            },
            multisample: vk::PipelineMultisampleStateCreateInfo {
                rasterization_samples: vk::SampleCountFlags(samples),
                ..vk::PipelineMultisampleStateCreateInfo::zeroed()
            },
            depth: depth_stencil(draw),
            colors: blend_states(draw),
            formats,
            depth_formats,
        }
    }

    fn viewport_info(&self) -> vk::PipelineViewportStateCreateInfo {
        vk::PipelineViewportStateCreateInfo {
            viewport_count: 1,
            p_viewports: Ptr::to(&self.viewport),
            scissor_count: 1,
            p_scissors: Ptr::to(&self.area),
            ..vk::PipelineViewportStateCreateInfo::zeroed()
        }
    }

    fn blend_info(&self, draw: &DrawCommand) -> vk::PipelineColorBlendStateCreateInfo {
        use vk::PipelineColorBlendStateCreateFlags as Flags;
        let ordered = Flags::RASTERIZATION_ORDER_ATTACHMENT_ACCESS_EXT;
        vk::PipelineColorBlendStateCreateInfo {
            flags: if draw.is_ordered { ordered } else { Flags(0) },
            attachment_count: self.colors.len() as u32,
            p_attachments: Ptr::to_slice(&self.colors),
            ..vk::PipelineColorBlendStateCreateInfo::zeroed()
        }
    }

    fn rendering_info(&self, draw: &DrawCommand) -> vk::PipelineRenderingCreateInfo {
        vk::PipelineRenderingCreateInfo {
            view_mask: draw.targets().view_mask,
            color_attachment_count: self.formats.len() as u32,
            p_color_attachment_formats: Ptr::to_slice(&self.formats),
            depth_attachment_format: self.depth_formats[0],
            stencil_attachment_format: self.depth_formats[1],
            ..vk::PipelineRenderingCreateInfo::zeroed()
        }
    }
}

/// Bytes of a word in the buffer that is read as words, or bytes if the size is no multiple.
pub(crate) fn element_size(bytes: u64) -> u64 {
    if bytes.is_multiple_of(4) { 4 } else { 1 }
}

/// Each vertex buffer is one binding with one attribute.
struct VertexInputLists {
    bindings: Vec<vk::VertexInputBindingDescription>,
    attributes: Vec<vk::VertexInputAttributeDescription>,
}

impl VertexInputLists {
    fn of(draw: &DrawCommand) -> VertexInputLists {
        if let Some(attributes) = draw.attributes {
            return VertexInputLists::of_words(attributes);
        }
        let numbered = || (0..).zip(&draw.vertices).map(|(at, it)| (at, element_size(it.1.end - it.1.start)));
        let binding = |(binding, size): (u32, u64)| vk::VertexInputBindingDescription {
            binding,
            stride: size as u32,
            input_rate: vk::VertexInputRate::VERTEX,
        };
        let attribute = |(at, size): (u32, u64)| vk::VertexInputAttributeDescription {
            location: at,
            binding: at,
            format: if size == 4 { vk::Format::R32_UINT } else { vk::Format::R8_UINT },
            offset: 0,
        };
        VertexInputLists {
            bindings: numbered().map(binding).collect(),
            attributes: numbered().map(attribute).collect(),
        }
    }

    /// One binding, with a word for each attribute.
    fn of_words(attributes: AttributeBytes) -> VertexInputLists {
        let binding = vk::VertexInputBindingDescription {
            binding: 0,
            stride: attributes.stride() as u32,
            input_rate: vk::VertexInputRate::VERTEX,
        };
        let attribute = |(location, bytes): (u32, std::ops::Range<u64>)| vk::VertexInputAttributeDescription {
            location,
            binding: 0,
            format: vk::Format::R32_UINT,
            offset: bytes.start as u32,
        };
        let attributes = (0..).zip(attributes.attributes()).map(attribute).collect();
        VertexInputLists { bindings: vec![binding], attributes }
    }

    fn info(&self) -> vk::PipelineVertexInputStateCreateInfo {
        vk::PipelineVertexInputStateCreateInfo {
            vertex_binding_description_count: self.bindings.len() as u32,
            p_vertex_binding_descriptions: Ptr::to_slice(&self.bindings),
            vertex_attribute_description_count: self.attributes.len() as u32,
            p_vertex_attribute_descriptions: Ptr::to_slice(&self.attributes),
            ..vk::PipelineVertexInputStateCreateInfo::zeroed()
        }
    }
}

fn viewport(area: vk::Rect2D) -> vk::Viewport {
    vk::Viewport {
        x: area.offset.x as f32,
        y: area.offset.y as f32,
        width: area.extent.width.max(1) as f32,
        height: area.extent.height.max(1) as f32,
        min_depth: 0.0,
        max_depth: 1.0,
    }
}

fn depth_stencil(draw: &DrawCommand) -> vk::PipelineDepthStencilStateCreateInfo {
    let on = |it: bool| vk::Bool32(u32::from(it));
    let pass_op =
        if draw.stencil == Some(DepthStencilUse::Writes) { vk::StencilOp::REPLACE } else { vk::StencilOp::KEEP };
    let face = vk::StencilOpState {
        pass_op,
        compare_op: vk::CompareOp::ALWAYS,
        compare_mask: 0xff,
        write_mask: 0xff,
        ..vk::StencilOpState::zeroed()
    };
    vk::PipelineDepthStencilStateCreateInfo {
        depth_test_enable: on(draw.depth.is_some()),
        depth_write_enable: on(draw.depth == Some(DepthStencilUse::Writes)),
        depth_compare_op: vk::CompareOp::LESS,
        stencil_test_enable: on(draw.stencil.is_some()),
        front: face,
        back: face,
        ..vk::PipelineDepthStencilStateCreateInfo::zeroed()
    }
}

/// Components outside of the access are masked.
fn blend_states(draw: &DrawCommand) -> Vec<vk::PipelineColorBlendAttachmentState> {
    let blend = |index: usize| {
        let own = draw.colors.iter().find(|it| it.index as usize == index);
        vk::PipelineColorBlendAttachmentState {
            blend_enable: vk::Bool32(u32::from(own.is_some_and(|it| it.is_blended))),
            src_color_blend_factor: vk::BlendFactor::ONE,
            dst_color_blend_factor: vk::BlendFactor::ONE,
            src_alpha_blend_factor: vk::BlendFactor::ONE,
            dst_alpha_blend_factor: vk::BlendFactor::ONE,
            color_write_mask: vk::ColorComponentFlags(own.map_or(0, |it| u32::from(it.mask))),
            ..vk::PipelineColorBlendAttachmentState::zeroed()
        }
    };
    (0..draw.targets().colors.len()).map(blend).collect()
}

fn stage_info(module: vk::ShaderModule, stage: vk::ShaderStageFlagBits) -> vk::PipelineShaderStageCreateInfo {
    vk::PipelineShaderStageCreateInfo {
        stage,
        module,
        p_name: text_ptr(c"main"),
        ..vk::PipelineShaderStageCreateInfo::zeroed()
    }
}
