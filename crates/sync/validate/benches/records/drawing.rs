//! What it takes to draw: shaders, a pipeline, descriptor sets, and rendering.

use lavascope_abi::*;

use crate::app::*;

/// Two uniform buffers by descriptor sets, two vertex bindings, indices, color and depth.
pub(crate) const UNIFORMS: u64 = 1;
pub(crate) const VERTICES: u64 = 2;
pub(crate) const INSTANCES: u64 = 3;
pub(crate) const INDICES: u64 = 4;
const COLOR: u64 = 1;
const DEPTH: u64 = 2;
/// Bytes of what a draw has of the uniform buffers.
const UNIFORM: u64 = 64;

impl RecordedApp {
    pub(crate) fn make_drawing(&mut self) {
        self.make_device();
        (UNIFORMS..=INDICES).for_each(|it| self.make_buffer(it));
        self.make_image(COLOR, Format::R8G8B8A8_UNORM, ImageAspectFlags::COLOR);
        self.make_image(DEPTH, Format::D32_SFLOAT, ImageAspectFlags::DEPTH);
        for (serial, name) in [(1, "indirect.vert.spv"), (2, "color.frag.spv")] {
            self.make_shader(serial, name);
        }
        self.make_sets();
        self.make_pipeline();
    }

    fn make_shader(&mut self, serial: u64, name: &str) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/samples/shaders");
        let bytes = std::fs::read(folder.join(name)).expect("a shader");
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect();
        let info = ShaderModuleCreateInfo {
            code_size: bytes.len() as u64,
            p_code: Ptr::to_slice(&words),
            ..ShaderModuleCreateInfo::zeroed()
        };
        self.call(
            Command::CreateShaderModule,
            &CreateShaderModuleParams {
                device: device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_shader_module: Ptr::to(&shader_module(serial)),
            },
        );
    }

    /// Two sets with a uniform buffer each, whose offset is given when they are bound.
    fn make_sets(&mut self) {
        let (ty, layouts) = (DescriptorType::UNIFORM_BUFFER_DYNAMIC, [set_layout(1); 2]);
        let binding = DescriptorSetLayoutBinding {
            descriptor_type: ty,
            descriptor_count: 1,
            stage_flags: ShaderStageFlags::VERTEX,
            ..DescriptorSetLayoutBinding::zeroed()
        };
        let info = DescriptorSetLayoutCreateInfo {
            binding_count: 1,
            p_bindings: Ptr::to(&binding),
            ..DescriptorSetLayoutCreateInfo::zeroed()
        };
        self.make_layouts(&info, &layouts);
        self.call(
            Command::CreateDescriptorPool,
            &CreateDescriptorPoolParams {
                device: device(1),
                p_create_info: Ptr::to(&DescriptorPoolCreateInfo::zeroed()),
                p_allocator: Ptr::NULL,
                p_descriptor_pool: Ptr::to(&descriptor_pool(1)),
            },
        );
        self.fill_sets(ty, &layouts);
    }

    fn make_layouts(&mut self, info: &DescriptorSetLayoutCreateInfo, layouts: &[DescriptorSetLayout]) {
        let (device, p_allocator) = (device(1), Ptr::NULL);
        self.call(
            Command::CreateDescriptorSetLayout,
            &CreateDescriptorSetLayoutParams {
                device,
                p_create_info: Ptr::to(info),
                p_allocator,
                p_set_layout: Ptr::to(&set_layout(1)),
            },
        );
        let info = PipelineLayoutCreateInfo {
            set_layout_count: layouts.len() as u32,
            p_set_layouts: Ptr::to_slice(layouts),
            ..PipelineLayoutCreateInfo::zeroed()
        };
        self.call(
            Command::CreatePipelineLayout,
            &CreatePipelineLayoutParams {
                device,
                p_create_info: Ptr::to(&info),
                p_allocator,
                p_pipeline_layout: Ptr::to(&pipeline_layout(1)),
            },
        );
    }

    fn fill_sets(&mut self, ty: DescriptorType, layouts: &[DescriptorSetLayout]) {
        let device = device(1);
        let info = DescriptorSetAllocateInfo {
            descriptor_pool: descriptor_pool(1),
            descriptor_set_count: layouts.len() as u32,
            p_set_layouts: Ptr::to_slice(layouts),
            ..DescriptorSetAllocateInfo::zeroed()
        };
        let sets = [descriptor_set(1), descriptor_set(2)];
        self.call(
            Command::AllocateDescriptorSets,
            &AllocateDescriptorSetsParams {
                device,
                p_allocate_info: Ptr::to(&info),
                p_descriptor_sets: Ptr::to_slice(&sets),
            },
        );
        self.write_sets(sets, ty, UNIFORMS);
    }

    pub(crate) fn write_sets(&mut self, sets: [DescriptorSet; 2], ty: DescriptorType, uniforms: u64) {
        let info = DescriptorBufferInfo { buffer: buffer(uniforms), offset: 0, range: UNIFORM };
        let write = |dst_set| WriteDescriptorSet {
            dst_set,
            descriptor_count: 1,
            descriptor_type: ty,
            p_buffer_info: Ptr::to(&info),
            ..WriteDescriptorSet::zeroed()
        };
        self.call(
            Command::UpdateDescriptorSets,
            &UpdateDescriptorSetsParams {
                device: device(1),
                descriptor_write_count: 2,
                p_descriptor_writes: Ptr::to_slice(&sets.map(write)),
                descriptor_copy_count: 0,
                p_descriptor_copies: Ptr::NULL,
            },
        );
    }

    fn make_pipeline(&mut self) {
        let stage = |stage, module| PipelineShaderStageCreateInfo {
            stage,
            module: shader_module(module),
            p_name: Ptr::new(c"main".as_ptr().expose_provenance() as u64),
            ..PipelineShaderStageCreateInfo::zeroed()
        };
        let stages = [stage(ShaderStageFlagBits::VERTEX, 1), stage(ShaderStageFlagBits::FRAGMENT, 2)];
        let binding = |binding, input_rate| VertexInputBindingDescription { binding, stride: 8, input_rate };
        let bindings = [binding(0, VertexInputRate::VERTEX), binding(1, VertexInputRate::INSTANCE)];
        let attribute = |value| VertexInputAttributeDescription {
            location: value,
            binding: value,
            format: Format::R32G32_SFLOAT,
            offset: 0,
        };
        let attributes = [attribute(0), attribute(1)];
        let vertex = PipelineVertexInputStateCreateInfo {
            vertex_binding_description_count: 2,
            p_vertex_binding_descriptions: Ptr::to_slice(&bindings),
            vertex_attribute_description_count: 2,
            p_vertex_attribute_descriptions: Ptr::to_slice(&attributes),
            ..PipelineVertexInputStateCreateInfo::zeroed()
        };
        let blend = PipelineColorBlendAttachmentState {
            color_write_mask: ColorComponentFlags(0xf),
            ..PipelineColorBlendAttachmentState::zeroed()
        };
        let blending = PipelineColorBlendStateCreateInfo {
            attachment_count: 1,
            p_attachments: Ptr::to(&blend),
            ..PipelineColorBlendStateCreateInfo::zeroed()
        };
        let depth = PipelineDepthStencilStateCreateInfo {
            depth_test_enable: Bool32(1),
            depth_write_enable: Bool32(1),
            ..PipelineDepthStencilStateCreateInfo::zeroed()
        };
        let assembly = PipelineInputAssemblyStateCreateInfo {
            topology: PrimitiveTopology::TRIANGLE_LIST,
            ..PipelineInputAssemblyStateCreateInfo::zeroed()
        };
        let (viewport, raster) =
            (PipelineViewportStateCreateInfo::zeroed(), PipelineRasterizationStateCreateInfo::zeroed());
        let (samples, dynamic) =
            (PipelineMultisampleStateCreateInfo::zeroed(), PipelineDynamicStateCreateInfo::zeroed());
        let info = GraphicsPipelineCreateInfo {
            stage_count: 2,
            p_stages: Ptr::to_slice(&stages),
            p_vertex_input_state: Ptr::to(&vertex),
            p_input_assembly_state: Ptr::to(&assembly),
            p_viewport_state: Ptr::to(&viewport),
            p_rasterization_state: Ptr::to(&raster),
            p_multisample_state: Ptr::to(&samples),
            p_depth_stencil_state: Ptr::to(&depth),
            p_color_blend_state: Ptr::to(&blending),
            p_dynamic_state: Ptr::to(&dynamic),
            layout: pipeline_layout(1),
            // The world of `sim` says that subpass 0 of render pass 3 uses color and depth.
            render_pass: render_pass(3),
            ..GraphicsPipelineCreateInfo::zeroed()
        };
        self.create_pipeline(&info);
    }

    fn create_pipeline(&mut self, info: &GraphicsPipelineCreateInfo) {
        self.call(
            Command::CreateGraphicsPipelines,
            &CreateGraphicsPipelinesParams {
                device: device(1),
                pipeline_cache: PipelineCache(0),
                create_info_count: 1,
                p_create_infos: Ptr::to(info),
                p_allocator: Ptr::NULL,
                p_pipelines: Ptr::to(&pipeline(1)),
            },
        );
    }

    /// Begins rendering, and binds everything.
    pub(crate) fn begin_drawing(&mut self) {
        let color = RenderingAttachmentInfo { image_view: image_view(COLOR), ..RenderingAttachmentInfo::zeroed() };
        let depth = RenderingAttachmentInfo { image_view: image_view(DEPTH), ..color };
        let render_area = Rect2D { extent: Extent2D { width: 1920, height: 1080 }, ..Rect2D::zeroed() };
        let info = RenderingInfo {
            render_area,
            layer_count: 1,
            color_attachment_count: 1,
            p_color_attachments: Ptr::to(&color),
            p_depth_attachment: Ptr::to(&depth),
            ..RenderingInfo::zeroed()
        };
        let commands = self.commands();
        self.call(
            Command::CmdBeginRendering,
            &CmdBeginRenderingParams { command_buffer: commands, p_rendering_info: Ptr::to(&info) },
        );
        self.call(
            Command::CmdBindPipeline,
            &CmdBindPipelineParams {
                command_buffer: commands,
                pipeline_bind_point: PipelineBindPoint::GRAPHICS,
                pipeline: pipeline(1),
            },
        );
        self.call(
            Command::CmdBindVertexBuffers,
            &CmdBindVertexBuffersParams {
                command_buffer: commands,
                first_binding: 0,
                binding_count: 2,
                p_buffers: Ptr::to_slice(&[buffer(VERTICES), buffer(INSTANCES)]),
                p_offsets: Ptr::to_slice(&[0, 0]),
            },
        );
        let (buffer, index_type) = (buffer(INDICES), IndexType::UINT16);
        self.call(
            Command::CmdBindIndexBuffer,
            &CmdBindIndexBufferParams { command_buffer: commands, buffer, offset: 0, index_type },
        );
    }

    /// What each draw has of its own: its part of the uniform buffer, and its indices.
    pub(crate) fn draw(&mut self, index: u32) {
        let commands = self.commands();
        let offset = index % 16 * UNIFORM as u32;
        self.call(
            Command::CmdBindDescriptorSets,
            &CmdBindDescriptorSetsParams {
                command_buffer: commands,
                pipeline_bind_point: PipelineBindPoint::GRAPHICS,
                layout: pipeline_layout(1),
                first_set: 0,
                descriptor_set_count: 2,
                p_descriptor_sets: Ptr::to_slice(&[descriptor_set(1), descriptor_set(2)]),
                dynamic_offset_count: 2,
                p_dynamic_offsets: Ptr::to_slice(&[offset, 0]),
            },
        );
        self.call(
            Command::CmdDrawIndexed,
            &CmdDrawIndexedParams {
                command_buffer: commands,
                index_count: 60,
                instance_count: 1,
                first_index: index % 20 * 60,
                vertex_offset: 0,
                first_instance: 0,
            },
        );
    }

    pub(crate) fn end_drawing(&mut self) {
        self.call(Command::CmdEndRendering, &CmdEndRenderingParams { command_buffer: self.commands() });
    }
}
