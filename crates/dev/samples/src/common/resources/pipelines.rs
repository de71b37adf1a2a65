//! Pipelines and what they draw into.

use std::ffi::CStr;

use ash::vk;

use crate::common::{Gpu, SampleImage, Shader, shader};
use crate::failure::Failure;

/// The options of the samples' graphics pipelines; viewport and scissor are dynamic.
pub(crate) struct GraphicsPipeline<'a> {
    /// Or a task or mesh shader, which takes no vertices.
    pub(crate) vertex: Shader,
    pub(crate) fragment: Shader,
    /// The stages between the two.
    pub(crate) middle_stages: &'a [Shader],
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) bindings: &'a [vk::VertexInputBindingDescription],
    pub(crate) attributes: &'a [vk::VertexInputAttributeDescription],
    pub(crate) target: RenderTarget,
}

#[derive(Clone, Copy)]
pub(crate) enum RenderTarget {
    Subpass(vk::RenderPass, u32),
    /// Dynamic rendering into one color attachment.
    Format(vk::Format),
}

/// The result of a call that creates pipelines.
type PipelineResult = Result<Vec<vk::Pipeline>, (Vec<vk::Pipeline>, vk::Result)>;

impl Gpu {
    pub(crate) fn pipeline_layout(
        &self,
        sets: &[vk::DescriptorSetLayout],
        push_constants: Option<vk::PushConstantRange>,
    ) -> Result<vk::PipelineLayout, Failure> {
        let info =
            vk::PipelineLayoutCreateInfo::default().set_layouts(sets).push_constant_ranges(push_constants.as_slice());
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(self.destroy_at_end(unsafe { self.device.create_pipeline_layout(&info, None) }?))
    }

    /// The constants specialize the shader: the first has id 0.
    pub(crate) fn compute_pipeline(
        &self,
        shader: Shader,
        layout: vk::PipelineLayout,
        constants: &[u32],
    ) -> Result<vk::Pipeline, Failure> {
        self.compute_pipeline_of(shader, c"main", layout, constants)
    }

    /// As above, of one of the entry points of a shader.
    pub(crate) fn compute_pipeline_of(
        &self,
        shader: Shader,
        entry_point: &CStr,
        layout: vk::PipelineLayout,
        constants: &[u32],
    ) -> Result<vk::Pipeline, Failure> {
        let entry = |id: u32| vk::SpecializationMapEntry { constant_id: id, offset: id * 4, size: 4 };
        let entries: Vec<_> = (0..constants.len() as u32).map(entry).collect();
        let bytes: Vec<u8> = constants.iter().flat_map(|it| it.to_ne_bytes()).collect();
        let special = vk::SpecializationInfo::default().map_entries(&entries).data(&bytes);
        self.with_stage(shader, |stage| {
            let stage = stage.name(entry_point);
            let stage = if constants.is_empty() { stage } else { stage.specialization_info(&special) };
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
            // SAFETY: `info` lives until the call returns (lifetime).
            unsafe { self.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) }
        })
    }

    /// A kept pipeline of one shader, which has its name.
    pub(crate) fn with_stage(
        &self,
        shader: Shader,
        create: impl FnOnce(vk::PipelineShaderStageCreateInfo) -> PipelineResult,
    ) -> Result<vk::Pipeline, Failure> {
        self.with_stages(&[shader], shader.name, |stages| create(stages[0]))
    }

    /// The same of several shaders.
    pub(crate) fn with_stages(
        &self,
        shaders: &[Shader],
        name: &str,
        create: impl FnOnce(&[vk::PipelineShaderStageCreateInfo]) -> PipelineResult,
    ) -> Result<vk::Pipeline, Failure> {
        let modules = shaders.iter().map(|it| self.shader_module(*it)).collect::<Result<Vec<_>, Failure>>()?;
        let stages: Vec<_> = shaders.iter().zip(&modules).map(|(shader, module)| stage_of(*shader, *module)).collect();
        let created = create(&stages);
        // SAFETY: `create` has returned, and a pipeline does not need its modules afterwards; nobody kept them
        // (lifetime).
        modules.into_iter().for_each(|it| unsafe { self.device.destroy_shader_module(it, None) });
        self.created(created, name)
    }

    pub(crate) fn graphics_pipeline(&self, pipeline: &GraphicsPipeline) -> Result<vk::Pipeline, Failure> {
        self.with_graphics(pipeline, |info, _| {
            // SAFETY: `info` lives until the call returns (lifetime).
            unsafe { self.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) }
        })
    }

    /// The same, linked out of its four parts.
    pub(crate) fn pipeline_from_libraries(
        &self,
        graphics_pipeline: &GraphicsPipeline,
    ) -> Result<vk::Pipeline, Failure> {
        use vk::GraphicsPipelineLibraryFlagsEXT as Part;
        self.with_graphics(graphics_pipeline, |info, stages| {
            let parts = [
                Part::VERTEX_INPUT_INTERFACE,
                Part::PRE_RASTERIZATION_SHADERS,
                Part::FRAGMENT_SHADER,
                Part::FRAGMENT_OUTPUT_INTERFACE,
            ];
            let depth = vk::PipelineDepthStencilStateCreateInfo::default();
            let info = info.depth_stencil_state(&depth);
            let mut made = Vec::new();
            for part in parts {
                let is_own = |create_info: &&vk::PipelineShaderStageCreateInfo| match part {
                    Part::PRE_RASTERIZATION_SHADERS => create_info.stage != vk::ShaderStageFlags::FRAGMENT,
                    Part::FRAGMENT_SHADER => create_info.stage == vk::ShaderStageFlags::FRAGMENT,
                    _ => false,
                };
                let own: Vec<_> = stages.iter().filter(is_own).copied().collect();
                let mut kind = vk::GraphicsPipelineLibraryCreateInfoEXT::default().flags(part);
                let info = info.stages(&own).flags(vk::PipelineCreateFlags::LIBRARY_KHR).push_next(&mut kind);
                // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
                let part = unsafe { self.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) }?;
                made.extend(part.into_iter().map(|it| self.destroy_at_end(it)));
            }
            let mut libraries = vk::PipelineLibraryCreateInfoKHR::default().libraries(&made);
            let info =
                vk::GraphicsPipelineCreateInfo::default().layout(graphics_pipeline.layout).push_next(&mut libraries);
            // SAFETY: `info` and the kept libraries live until the call returns, and the feature is enabled (lifetime,
            // feature).
            unsafe { self.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) }
        })
    }

    fn with_graphics(
        &self,
        graphics_pipeline: &GraphicsPipeline,
        create: impl FnOnce(vk::GraphicsPipelineCreateInfo, &[vk::PipelineShaderStageCreateInfo]) -> PipelineResult,
    ) -> Result<vk::Pipeline, Failure> {
        let shaders: Vec<Shader> = [graphics_pipeline.vertex]
            .into_iter()
            .chain(graphics_pipeline.middle_stages.iter().copied())
            .chain([graphics_pipeline.fragment])
            .collect();
        let modules = shaders.iter().map(|it| self.shader_module(*it)).collect::<Result<Vec<_>, _>>()?;
        let stages: Vec<_> = shaders.iter().zip(&modules).map(|(shader, module)| stage_of(*shader, *module)).collect();
        let is_patch = shaders.iter().any(|it| it.stage() == vk::ShaderStageFlags::TESSELLATION_CONTROL);
        let patches = vk::PipelineTessellationStateCreateInfo::default().patch_control_points(3);
        let vertex_input = vk::PipelineVertexInputStateCreateInfo::default()
            .vertex_binding_descriptions(graphics_pipeline.bindings)
            .vertex_attribute_descriptions(graphics_pipeline.attributes);
        let topology = if is_patch { vk::PrimitiveTopology::PATCH_LIST } else { vk::PrimitiveTopology::TRIANGLE_LIST };
        let assembly = vk::PipelineInputAssemblyStateCreateInfo::default().topology(topology);
        let viewport = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
        let rasterization = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
        let multisample =
            vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
        let attachment =
            [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
        let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&attachment);
        let dynamic = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];
        let dynamic = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&dynamic);
        let info = vk::GraphicsPipelineCreateInfo::default()
            .stages(&stages)
            .vertex_input_state(&vertex_input)
            .input_assembly_state(&assembly)
            .viewport_state(&viewport)
            .rasterization_state(&rasterization)
            .multisample_state(&multisample)
            .color_blend_state(&blend)
            .dynamic_state(&dynamic)
            .layout(graphics_pipeline.layout);
        let info = if is_patch { info.tessellation_state(&patches) } else { info };
        let formats =
            [if let RenderTarget::Format(format) = graphics_pipeline.target { format } else { vk::Format::UNDEFINED }];
        let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
        let info = match graphics_pipeline.target {
            RenderTarget::Subpass(render_pass, subpass) => info.render_pass(render_pass).subpass(subpass),
            RenderTarget::Format(_) => info.push_next(&mut rendering),
        };
        let created = create(info, &stages);
        // SAFETY: `create` has returned, and a pipeline does not need its modules afterwards; nobody kept them
        // (lifetime).
        modules.iter().for_each(|it| unsafe { self.device.destroy_shader_module(*it, None) });
        self.created(created, graphics_pipeline.fragment.name)
    }

    fn created(&self, created: PipelineResult, name: &str) -> Result<vk::Pipeline, Failure> {
        let pipelines = created.map_err(|(_, error)| error)?;
        Ok(self.name(self.destroy_at_end(pipelines[0]), name))
    }

    /// Draws corners of two numbers each in the color of its push constants.
    pub(crate) fn tile_pipeline(&self, pass: vk::RenderPass) -> Result<(vk::PipelineLayout, vk::Pipeline), Failure> {
        let constants = vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::VERTEX, offset: 0, size: 16 };
        let layout = self.pipeline_layout(&[], Some(constants))?;
        let pipeline = self.graphics_pipeline(&GraphicsPipeline {
            vertex: shader!("tile.vert"),
            fragment: shader!("color.frag"),
            middle_stages: &[],
            layout,
            bindings: &[vk::VertexInputBindingDescription::default().stride(8)],
            attributes: &[vk::VertexInputAttributeDescription::default().format(vk::Format::R32G32_SFLOAT)],
            target: RenderTarget::Subpass(pass, 0),
        })?;
        Ok((layout, pipeline))
    }

    pub(crate) fn framebuffer(&self, pass: vk::RenderPass, images: &[SampleImage]) -> Result<vk::Framebuffer, Failure> {
        let views: Vec<_> = images.iter().map(|it| it.view).collect();
        let vk::Extent2D { width, height } = images[0].extent;
        let info = vk::FramebufferCreateInfo::default().render_pass(pass).attachments(&views);
        let info = info.width(width).height(height).layers(1);
        // SAFETY: `info` lives until the call returns, the views until the end (lifetime).
        Ok(self.destroy_at_end(unsafe { self.device.create_framebuffer(&info, None) }?))
    }

    /// One subpass that clears a color attachment, draws into it, and leaves it for a copy.
    pub(crate) fn render_pass(&self, format: vk::Format) -> Result<vk::RenderPass, Failure> {
        let attachments = [vk::AttachmentDescription::default()
            .format(format)
            .samples(vk::SampleCountFlags::TYPE_1)
            .load_op(vk::AttachmentLoadOp::CLEAR)
            .store_op(vk::AttachmentStoreOp::STORE)
            .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
            .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE)
            .final_layout(vk::ImageLayout::TRANSFER_SRC_OPTIMAL)];
        let colors = [vk::AttachmentReference { attachment: 0, layout: vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL }];
        let subpasses = [vk::SubpassDescription::default().color_attachments(&colors)];
        let dependencies = [before_drawing(), after_drawing(0)];
        let info = vk::RenderPassCreateInfo::default()
            .attachments(&attachments)
            .subpasses(&subpasses)
            .dependencies(&dependencies);
        // SAFETY: `info` lives until the call returns (lifetime).
        Ok(self.destroy_at_end(unsafe { self.device.create_render_pass(&info, None) }?))
    }

    /// Sets the viewport and the scissor to the whole picture.
    pub(crate) fn set_viewport_and_scissor(&self, commands: vk::CommandBuffer, extent: vk::Extent2D) {
        let (width, height) = (extent.width as f32, extent.height as f32);
        let viewport = vk::Viewport { x: 0.0, y: 0.0, width, height, min_depth: 0.0, max_depth: 1.0 };
        // SAFETY: recorded by this thread (owner).
        unsafe {
            self.device.cmd_set_viewport(commands, 0, &[viewport]);
            self.device.cmd_set_scissor(commands, 0, &[extent.into()]);
        }
    }
}

/// An earlier picture was drawn and read before this one begins.
pub(crate) fn before_drawing() -> vk::SubpassDependency {
    vk::SubpassDependency::default()
        .src_subpass(vk::SUBPASS_EXTERNAL)
        .src_stage_mask(vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT | vk::PipelineStageFlags::TRANSFER)
        .src_access_mask(vk::AccessFlags::COLOR_ATTACHMENT_WRITE)
        .dst_stage_mask(vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT)
        .dst_access_mask(vk::AccessFlags::COLOR_ATTACHMENT_WRITE)
}

/// The picture is drawn before a copy reads it.
pub(crate) fn after_drawing(last_subpass: u32) -> vk::SubpassDependency {
    vk::SubpassDependency::default()
        .src_subpass(last_subpass)
        .dst_subpass(vk::SUBPASS_EXTERNAL)
        .src_stage_mask(vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT)
        .src_access_mask(vk::AccessFlags::COLOR_ATTACHMENT_WRITE)
        .dst_stage_mask(vk::PipelineStageFlags::TRANSFER)
        .dst_access_mask(vk::AccessFlags::TRANSFER_READ)
}

fn stage_of(shader: Shader, module: vk::ShaderModule) -> vk::PipelineShaderStageCreateInfo<'static> {
    vk::PipelineShaderStageCreateInfo::default().stage(shader.stage()).module(module).name(c"main")
}
