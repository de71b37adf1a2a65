//! Pipelines with one descriptor set, and rendering into images.

use std::ffi::CStr;

use ash::vk;

use super::classic_pass::classic_target;
use super::context::{EXTENT, FORMAT, FaultContext, GREEN, LAYOUT, WORDS};
use crate::common::{
    Buffer, Feature, Gpu, GraphicsPipeline, Needs, RenderTarget, SampleImage, Shader, binding_of, shader,
};
use crate::failure::Failure;

/// The structures for dynamic rendering.
pub(super) const RENDERING: Needs = Needs { features: &[Feature::DynamicRendering], ..Needs::NOTHING };
/// Dynamic rendering into one image.
pub(super) const DYNAMIC: RenderTarget = RenderTarget::Format(FORMAT);
/// Fills the picture without a vertex buffer, by the numbers 0 to 5 of its vertices.
pub(super) const SCREEN: Shader = shader!("screen.vert");

/// The resource of a binding, the first at binding 0.
pub(super) enum ShaderResource<'a> {
    Uniform(&'a Buffer),
    /// An array of buffers.
    Storage(&'a [Buffer]),
    /// A buffer with a dynamic offset.
    Dynamic(&'a Buffer, vk::DeviceSize),
    Sampled(&'a SampleImage),
    Texels(&'a SampleImage),
    /// An array of buffers of which some are not there.
    PartlyWritten(&'a [Option<Buffer>]),
    /// Words of a buffer as texels, which are read.
    TexelsRead(&'a Buffer, vk::DeviceSize),
    /// The same, which are written.
    TexelsWritten(&'a Buffer, vk::DeviceSize),
    /// An array of images of which the first ones are there.
    Pictures(&'a SampleImage, u32, u32),
}

impl ShaderResource<'_> {
    fn kind(&self) -> vk::DescriptorType {
        match self {
            ShaderResource::Uniform(_) => vk::DescriptorType::UNIFORM_BUFFER,
            ShaderResource::Storage(_) | ShaderResource::PartlyWritten(_) => vk::DescriptorType::STORAGE_BUFFER,
            ShaderResource::Dynamic(..) => vk::DescriptorType::STORAGE_BUFFER_DYNAMIC,
            ShaderResource::Sampled(_) | ShaderResource::Pictures(..) => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
            ShaderResource::Texels(_) => vk::DescriptorType::STORAGE_IMAGE,
            ShaderResource::TexelsRead(..) => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
            ShaderResource::TexelsWritten(..) => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
        }
    }

    fn count(&self) -> u32 {
        match self {
            ShaderResource::Storage(buffers) => buffers.len() as u32,
            ShaderResource::PartlyWritten(buffers) => buffers.len() as u32,
            ShaderResource::Pictures(_, _, count) => *count,
            _ => 1,
        }
    }
}

/// A pipeline and what its shaders use.
pub(super) struct BoundPipeline {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
    bind_point: vk::PipelineBindPoint,
}

/// The stages of a graphics pipeline: the first one, those between, and the fragment shader.
#[derive(Clone, Copy)]
pub(super) struct DrawShaders<'a> {
    pub(super) vertex: Shader,
    pub(super) middle: &'a [Shader],
    pub(super) fragment: Shader,
}

impl BoundPipeline {
    /// The constants specialize the shader.
    pub(super) fn compute(
        lab: &FaultContext,
        shader: Shader,
        constants: &[u32],
        bound: &[ShaderResource],
    ) -> Result<BoundPipeline, Failure> {
        let (layout, set) = create_set(lab, bound)?;
        let pipeline = lab.compute_pipeline(shader, layout, constants)?;
        Ok(BoundPipeline { pipeline, layout, set, bind_point: vk::PipelineBindPoint::COMPUTE })
    }

    /// As [`BoundPipeline::compute`], of one of the entry points of a shader.
    pub(super) fn entry(
        lab: &FaultContext,
        shader: Shader,
        entry_point: &CStr,
        bound: &[ShaderResource],
    ) -> Result<BoundPipeline, Failure> {
        let (layout, set) = create_set(lab, bound)?;
        let pipeline = lab.compute_pipeline_of(shader, entry_point, layout, &[])?;
        Ok(BoundPipeline { pipeline, layout, set, bind_point: vk::PipelineBindPoint::COMPUTE })
    }

    /// For a compute pipeline that was created elsewhere.
    pub(super) fn of(pipeline: vk::Pipeline, layout: vk::PipelineLayout, set: vk::DescriptorSet) -> BoundPipeline {
        BoundPipeline { pipeline, layout, set, bind_point: vk::PipelineBindPoint::COMPUTE }
    }

    pub(super) fn graphics(
        lab: &FaultContext,
        target: RenderTarget,
        fragment: Shader,
        bound: &[ShaderResource],
    ) -> Result<BoundPipeline, Failure> {
        BoundPipeline::of_shaders(lab, target, DrawShaders { vertex: SCREEN, middle: &[], fragment }, bound)
    }

    pub(super) fn of_shaders(
        lab: &FaultContext,
        target: RenderTarget,
        shaders: DrawShaders<'_>,
        bound: &[ShaderResource],
    ) -> Result<BoundPipeline, Failure> {
        BoundPipeline::drawing(lab, target, shaders, bound, Gpu::graphics_pipeline)
    }

    /// The same, linked out of parts.
    pub(super) fn linked(
        lab: &FaultContext,
        target: RenderTarget,
        shaders: DrawShaders<'_>,
        bound: &[ShaderResource],
    ) -> Result<BoundPipeline, Failure> {
        BoundPipeline::drawing(lab, target, shaders, bound, Gpu::pipeline_from_libraries)
    }

    fn drawing(
        lab: &FaultContext,
        target: RenderTarget,
        shaders: DrawShaders<'_>,
        bound: &[ShaderResource],
        make: fn(&Gpu, &GraphicsPipeline) -> Result<vk::Pipeline, Failure>,
    ) -> Result<BoundPipeline, Failure> {
        let (layout, set) = create_set(lab, bound)?;
        let (bindings, attributes) = (&[], &[]);
        let target = if lab.uses_render_pass() { classic_target(lab)? } else { target };
        let DrawShaders { vertex, middle, fragment } = shaders;
        let pipeline = make(
            lab,
            &GraphicsPipeline { vertex, fragment, middle_stages: middle, layout, bindings, attributes, target },
        )?;
        Ok(BoundPipeline { pipeline, layout, set, bind_point: vk::PipelineBindPoint::GRAPHICS })
    }

    pub(super) fn pipeline(&self) -> vk::Pipeline {
        self.pipeline
    }

    /// Binds pipeline and set; the offsets are for dynamic buffers.
    pub(super) fn bind(&self, lab: &FaultContext, commands: vk::CommandBuffer, offsets: &[u32]) {
        if self.bind_point == vk::PipelineBindPoint::GRAPHICS {
            lab.set_viewport_and_scissor(commands, EXTENT);
        }
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_bind_pipeline(commands, self.bind_point, self.pipeline);
            lab.device.cmd_bind_descriptor_sets(commands, self.bind_point, self.layout, 0, &[self.set], offsets);
        }
    }

    /// One invocation per word, in groups of 64.
    pub(super) fn dispatch(&self, lab: &FaultContext, commands: vk::CommandBuffer) {
        self.bind(lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1) };
    }

    /// Draws the whole picture.
    pub(super) fn draw(&self, lab: &FaultContext, commands: vk::CommandBuffer) {
        self.bind(lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread, inside of rendering (lifetime, owner).
        unsafe { lab.device.cmd_draw(commands, 6, 1, 0, 0) };
    }
}

fn create_set(
    lab: &FaultContext,
    bound: &[ShaderResource],
) -> Result<(vk::PipelineLayout, vk::DescriptorSet), Failure> {
    let (set_layout, set) = described_set(lab, bound)?;
    Ok((lab.pipeline_layout(&[set_layout], None)?, set))
}

/// A set with its resources, and its layout.
pub(super) fn described_set(
    lab: &FaultContext,
    bound: &[ShaderResource],
) -> Result<(vk::DescriptorSetLayout, vk::DescriptorSet), Failure> {
    let binding = |(at, it): (u32, &ShaderResource)| binding_of(at, it.kind(), it.count(), vk::ShaderStageFlags::ALL);
    let bindings: Vec<_> = (0..).zip(bound).map(binding).collect();
    // Nothing has to be written that is not used, where there is a feature for it.
    let is_partial = |shader_resource: &ShaderResource| {
        matches!(shader_resource, ShaderResource::Pictures(..)) && lab.has(Feature::DescriptorBindingPartiallyBound)
    };
    let flags = |shader_resource: &ShaderResource| match is_partial(shader_resource) {
        true => vk::DescriptorBindingFlags::PARTIALLY_BOUND,
        false => vk::DescriptorBindingFlags::empty(),
    };
    let flags: Vec<_> = bound.iter().map(flags).collect();
    let mut more = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    let info = if bound.iter().any(is_partial) { info.push_next(&mut more) } else { info };
    let set_layout = lab.set_layout_of(&info)?;
    // A pool cannot be empty.
    let one = (vk::DescriptorType::STORAGE_BUFFER, 1);
    let sizes: Vec<_> = bound.iter().map(|it| (it.kind(), it.count())).chain([one]).collect();
    let set = lab.descriptor_set(lab.descriptor_pool(1, &sizes)?, set_layout)?;
    for (at, shader_resource) in (0..).zip(bound) {
        write(lab, set, at, shader_resource)?;
    }
    Ok((set_layout, set))
}

fn write(lab: &FaultContext, set: vk::DescriptorSet, at: u32, shader_resource: &ShaderResource) -> Result<(), Failure> {
    let image = |image: &SampleImage| vk::DescriptorImageInfo::default().image_view(image.view).image_layout(LAYOUT);
    match shader_resource {
        ShaderResource::Uniform(buffer) => lab.write_buffers(set, (at, 0), shader_resource.kind(), &[**buffer]),
        ShaderResource::Storage(buffers) => lab.write_buffers(set, (at, 0), shader_resource.kind(), buffers),
        ShaderResource::Dynamic(buffer, size) => {
            let info = [vk::DescriptorBufferInfo { range: *size, ..buffer.descriptor() }];
            let write =
                vk::WriteDescriptorSet::default().dst_set(set).dst_binding(at).descriptor_type(shader_resource.kind());
            lab.write_descriptors(&[write.buffer_info(&info)]);
        }
        ShaderResource::PartlyWritten(buffers) => {
            for (element, buffer) in (0..).zip(*buffers).filter_map(|(at, it)| Some((at, (*it)?))) {
                lab.write_buffers(set, (at, element), shader_resource.kind(), &[buffer]);
            }
        }
        ShaderResource::TexelsRead(buffer, size) | ShaderResource::TexelsWritten(buffer, size) => {
            let info = vk::BufferViewCreateInfo::default().buffer(buffer.handle).format(vk::Format::R32_UINT);
            // SAFETY: the structure lives until the call returns (lifetime).
            let view = [lab.destroy_at_end(unsafe { lab.device.create_buffer_view(&info.range(*size), None) }?)];
            let write =
                vk::WriteDescriptorSet::default().dst_set(set).dst_binding(at).descriptor_type(shader_resource.kind());
            lab.write_descriptors(&[write.texel_buffer_view(&view)]);
        }
        ShaderResource::Pictures(source, written, _) => {
            // SAFETY: the structure lives until the call returns (lifetime).
            let sampler = unsafe { lab.device.create_sampler(&vk::SamplerCreateInfo::default(), None) }?;
            let infos = vec![image(source).sampler(lab.destroy_at_end(sampler)); *written as usize];
            let write =
                vk::WriteDescriptorSet::default().dst_set(set).dst_binding(at).descriptor_type(shader_resource.kind());
            lab.write_descriptors(&[write.image_info(&infos)]);
        }
        ShaderResource::Sampled(source) => {
            // SAFETY: the structure lives until the call returns (lifetime).
            let sampler = unsafe { lab.device.create_sampler(&vk::SamplerCreateInfo::default(), None) }?;
            lab.write_image(set, at, shader_resource.kind(), image(source).sampler(lab.destroy_at_end(sampler)));
        }
        ShaderResource::Texels(source) => lab.write_image(set, at, shader_resource.kind(), image(source)),
    }
    Ok(())
}

impl FaultContext<'_> {
    /// Renders into color attachments.
    pub(super) fn render(
        &self,
        commands: vk::CommandBuffer,
        colors: &[vk::RenderingAttachmentInfo],
        record: impl FnOnce(),
    ) {
        self.render_with(commands, &rendering().color_attachments(colors), record);
    }

    pub(super) fn render_with(&self, commands: vk::CommandBuffer, info: &vk::RenderingInfo, record: impl FnOnce()) {
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { self.device.cmd_begin_rendering(commands, info) };
        record();
        // SAFETY: recorded by this thread, after rendering has begun, and the feature is enabled (owner, feature).
        unsafe { self.device.cmd_end_rendering(commands) };
    }
}

/// The whole picture.
pub(super) fn rendering() -> vk::RenderingInfo<'static> {
    vk::RenderingInfo::default()
        .render_area(vk::Rect2D { offset: vk::Offset2D::default(), extent: EXTENT })
        .layer_count(1)
}

/// An attachment that is stored; it is cleared to green where it is cleared.
pub(super) fn attachment(image: &SampleImage, load_op: vk::AttachmentLoadOp) -> vk::RenderingAttachmentInfo<'static> {
    vk::RenderingAttachmentInfo::default()
        .image_view(image.view)
        .image_layout(LAYOUT)
        .load_op(load_op)
        .store_op(vk::AttachmentStoreOp::STORE)
        .clear_value(vk::ClearValue { color: GREEN })
}
