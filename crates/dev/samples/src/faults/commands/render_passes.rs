//! Render passes that lack a dependency: between subpasses, before the first, behind the last, within one.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{
    BarrierScope, Feature, GraphicsPipeline, Needs, RenderTarget, SampleImage, after_drawing, before_drawing, scope,
    shader,
};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, ShaderResource};
use crate::faults::context::{EXTENT, FORMAT, FaultContext, GREEN, GREEN_WORD, LAYOUT, WORDS};
use crate::faults::faults;

faults! {
    subpass: "subpass", "a subpass reads the attachment that the one before wrote, without a dependency between them.",
    external: "external-dependency", "a render pass loads an attachment that may still be written.",
    initial: "initial-layout", "a render pass changes the layout of an image that a copy may still read.",
    last: "final-layout", "an image is copied while a render pass may still change its layout.",
    within: "self-dependency", "a draw reads the storage buffer that the draw before it in the subpass writes.",
}

const COLOR: vk::ImageLayout = vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL;
const READ: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
const SOURCE: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;

/// How a render pass of one subpass treats its attachment.
struct PassLayouts {
    initial: vk::ImageLayout,
    during: vk::ImageLayout,
    last: vk::ImageLayout,
    load: vk::AttachmentLoadOp,
}

const UNCHANGED_LAYOUT: PassLayouts =
    PassLayouts { initial: LAYOUT, during: LAYOUT, last: LAYOUT, load: vk::AttachmentLoadOp::CLEAR };

impl PassLayouts {
    fn create(&self, lab: &FaultContext, dependencies: &[vk::SubpassDependency]) -> Result<vk::RenderPass, Failure> {
        let attachments = [stored(self.load).initial_layout(self.initial).final_layout(self.last)];
        let colors = [vk::AttachmentReference { attachment: 0, layout: self.during }];
        let subpasses = [vk::SubpassDescription::default().color_attachments(&colors)];
        create(lab, &attachments, &subpasses, dependencies)
    }
}

fn stored(load: vk::AttachmentLoadOp) -> vk::AttachmentDescription {
    vk::AttachmentDescription::default()
        .format(FORMAT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(load)
        .store_op(vk::AttachmentStoreOp::STORE)
        .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
        .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE)
}

fn create(
    lab: &FaultContext,
    attachments: &[vk::AttachmentDescription],
    subpasses: &[vk::SubpassDescription],
    dependencies: &[vk::SubpassDependency],
) -> Result<vk::RenderPass, Failure> {
    let info = vk::RenderPassCreateInfo::default().attachments(attachments);
    let info = info.subpasses(subpasses).dependencies(dependencies);
    // SAFETY: `info` lives until the call returns (lifetime).
    Ok(lab.destroy_at_end(unsafe { lab.device.create_render_pass(&info, None) }?))
}

fn dependency((source, from): (u32, BarrierScope), (target, to): (u32, BarrierScope)) -> vk::SubpassDependency {
    vk::SubpassDependency::default()
        .src_subpass(source)
        .src_stage_mask(from.stages)
        .src_access_mask(from.access)
        .dst_subpass(target)
        .dst_stage_mask(to.stages)
        .dst_access_mask(to.access)
}

/// Clears an attachment to green.
fn render(
    lab: &FaultContext,
    commands: vk::CommandBuffer,
    pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
    record: impl FnOnce(),
) {
    let clear = [vk::ClearValue { color: GREEN }; 2];
    let begin = vk::RenderPassBeginInfo::default().render_pass(pass).framebuffer(framebuffer);
    let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
    // SAFETY: live objects, recorded by this thread (lifetime, owner).
    unsafe { lab.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE) };
    record();
    // SAFETY: recorded by this thread, in the last subpass of the pass that began above (owner).
    unsafe { lab.device.cmd_end_render_pass(commands) };
}

fn external(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [canvas] = lab.color_images(["canvas"])?;
    let loads = (0, scope::COLOR_READ.union(scope::COLOR_WRITE));
    let wait = [dependency((vk::SUBPASS_EXTERNAL, scope::COPY_WRITE), loads)];
    let pass = PassLayouts { load: vk::AttachmentLoadOp::LOAD, ..UNCHANGED_LAYOUT }
        .create(&lab, lab.planted_or_fixed(&[][..], &wait))?;
    let framebuffer = lab.framebuffer(pass, &[canvas])?;
    lab.run_once("clear and load", |commands| {
        lab.clear(commands, &canvas);
        render(&lab, commands, pass, framebuffer, || {});
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

fn initial(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    let wait = [dependency((vk::SUBPASS_EXTERNAL, scope::COPY_READ), (0, scope::COLOR_WRITE))];
    let pass = PassLayouts { during: COLOR, ..UNCHANGED_LAYOUT }.create(&lab, lab.planted_or_fixed(&[][..], &wait))?;
    let framebuffer = lab.framebuffer(pass, &[canvas])?;
    lab.run_once("copy and change the layout", |commands| {
        lab.clear(commands, &canvas);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &canvas, &target);
        render(&lab, commands, pass, framebuffer, || {});
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}

fn last(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([target], [canvas]) = (lab.word_buffers(["target"])?, lab.color_images(["canvas"])?);
    let wait = [dependency((0, scope::COLOR_WRITE), (vk::SUBPASS_EXTERNAL, scope::COPY_READ))];
    let pass = PassLayouts { last: SOURCE, ..UNCHANGED_LAYOUT }.create(&lab, lab.planted_or_fixed(&[][..], &wait))?;
    let framebuffer = lab.framebuffer(pass, &[canvas])?;
    lab.run_once("change the layout and copy", |commands| {
        render(&lab, commands, pass, framebuffer, || {});
        let region = [canvas.buffer_copy_region(0, 0)];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_copy_image_to_buffer(commands, canvas.handle, SOURCE, target.handle, &region) };
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[GREEN_WORD; WORDS])
}

/// The dependency exists; the missing barrier is the one that it allows.
fn within(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs { features: &[Feature::FragmentStoresAndAtomics], ..Needs::NOTHING })?;
    let ([paint], [canvas]) = (lab.word_buffers(["paint"])?, lab.color_images(["canvas"])?);
    let (from, to) = (scope::FRAGMENT_WRITE, scope::FRAGMENT_READ);
    let own = dependency((0, from), (0, to)).dependency_flags(vk::DependencyFlags::BY_REGION);
    let pass = UNCHANGED_LAYOUT.create(&lab, &[own])?;
    let framebuffer = lab.framebuffer(pass, &[canvas])?;
    let bound = [ShaderResource::Storage(&[paint])];
    let target = RenderTarget::Subpass(pass, 0);
    let write = BoundPipeline::graphics(&lab, target, shader!("record.frag"), &bound)?;
    let read = BoundPipeline::graphics(&lab, target, shader!("storage.frag"), &bound)?;
    lab.run_once("two draws", |commands| {
        render(&lab, commands, pass, framebuffer, || {
            write.draw(&lab, commands);
            if lab.is_fixed() {
                let barrier = [vk::MemoryBarrier::default().src_access_mask(from.access).dst_access_mask(to.access)];
                let region = vk::DependencyFlags::BY_REGION;
                let (first, second) = (from.stages, to.stages);
                // SAFETY: recorded by this thread, in a subpass that has the dependency (owner).
                unsafe { lab.device.cmd_pipeline_barrier(commands, first, second, region, &barrier, &[], &[]) };
            }
            read.draw(&lab, commands);
        });
    })?;
    lab.expect_texels(&canvas, scope::COLOR_WRITE, GREEN_WORD)
}

/// The first subpass only clears; the second reads that and draws into another attachment.
fn subpass(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [first, second] = lab.color_images(["first", "second"])?;
    let pass = two_subpasses(&lab)?;
    let framebuffer = lab.framebuffer(pass, &[first, second])?;
    let (pipeline, layout, set) = inverter(&lab, &first, RenderTarget::Subpass(pass, 1))?;
    lab.run_once("two subpasses", |commands| {
        lab.set_viewport_and_scissor(commands, EXTENT);
        render(&lab, commands, pass, framebuffer, || {
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe {
                let (graphics, inline) = (vk::PipelineBindPoint::GRAPHICS, vk::SubpassContents::INLINE);
                lab.device.cmd_next_subpass(commands, inline);
                lab.device.cmd_bind_pipeline(commands, graphics, pipeline);
                lab.device.cmd_bind_descriptor_sets(commands, graphics, layout, 0, &[set], &[]);
                lab.device.cmd_draw(commands, 6, 1, 0, 0);
            }
        });
    })?;
    lab.expect_texels(&second, scope::COLOR_WRITE, 0xFFFF_00FF)
}

fn inverter(
    lab: &FaultContext,
    image: &SampleImage,
    target: RenderTarget,
) -> Result<(vk::Pipeline, vk::PipelineLayout, vk::DescriptorSet), Failure> {
    let input = vk::DescriptorType::INPUT_ATTACHMENT;
    let set_layout = lab.set_layout(&[input], vk::ShaderStageFlags::FRAGMENT)?;
    let set = lab.descriptor_set(lab.descriptor_pool(1, &[(input, 1)])?, set_layout)?;
    lab.write_image(set, 0, input, vk::DescriptorImageInfo::default().image_view(image.view).image_layout(READ));
    let layout = lab.pipeline_layout(&[set_layout], None)?;
    let pipeline = lab.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("screen.vert"),
        fragment: shader!("invert.frag"),
        middle_stages: &[],
        layout,
        bindings: &[],
        attributes: &[],
        target,
    })?;
    Ok((pipeline, layout, set))
}

fn two_subpasses(lab: &FaultContext) -> Result<vk::RenderPass, Failure> {
    let attachment = stored(vk::AttachmentLoadOp::CLEAR);
    let attachments =
        [attachment.store_op(vk::AttachmentStoreOp::DONT_CARE).final_layout(READ), attachment.final_layout(LAYOUT)];
    let first = [vk::AttachmentReference { attachment: 0, layout: COLOR }];
    let input = [vk::AttachmentReference { attachment: 0, layout: READ }];
    let second = [vk::AttachmentReference { attachment: 1, layout: COLOR }];
    let subpasses = [
        vk::SubpassDescription::default().color_attachments(&first),
        vk::SubpassDescription::default().input_attachments(&input).color_attachments(&second),
    ];
    let reads = BarrierScope { access: vk::AccessFlags::INPUT_ATTACHMENT_READ, ..scope::FRAGMENT_READ };
    let between = dependency((0, scope::COLOR_WRITE), (1, reads)).dependency_flags(vk::DependencyFlags::BY_REGION);
    let dependencies = [before_drawing(), before_drawing().dst_subpass(1), after_drawing(1), between];
    create(lab, &attachments, &subpasses, &dependencies[..lab.planted_or_fixed(3, 4)])
}
