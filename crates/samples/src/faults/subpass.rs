//! A subpass reads what the one before drew as its input attachment, without a dependency between the two.

use ash::vk;

use crate::Sample;
use crate::arguments::{Fault, Options};
use crate::common::{Gpu, GraphicsPipeline, Needs, Target, after_drawing, before_drawing, shader};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "fault-subpass",
    about: "Fault: a subpass reads the attachment that the one before wrote, without a dependency between them.",
    run,
};

const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
const INPUT: vk::DescriptorType = vk::DescriptorType::INPUT_ATTACHMENT;
const DRAWN: vk::ImageLayout = vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL;
const READ: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;

fn run(options: &Options) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let color = vk::ImageUsageFlags::COLOR_ATTACHMENT;
    let first = gpu.image("first", FORMAT, EXTENT, 1, color | vk::ImageUsageFlags::INPUT_ATTACHMENT)?;
    let second = gpu.image("second", FORMAT, EXTENT, 1, color | vk::ImageUsageFlags::TRANSFER_SRC)?;
    let render_pass = render_pass(&gpu, options.fault)?;
    let framebuffer = gpu.framebuffer(render_pass, &[first, second])?;
    let set_layout = gpu.set_layout(&[INPUT], vk::ShaderStageFlags::FRAGMENT)?;
    let set = gpu.descriptor_set(gpu.descriptor_pool(1, &[(INPUT, 1)])?, set_layout)?;
    gpu.write_image(set, 0, INPUT, vk::DescriptorImageInfo::default().image_view(first.view).image_layout(READ));
    let layout = gpu.pipeline_layout(&[set_layout], None)?;
    let pipeline = gpu.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("screen.vert"),
        fragment: shader!("invert.frag"),
        layout,
        bindings: &[],
        attributes: &[],
        target: Target::Subpass(render_pass, 1),
    })?;
    gpu.run_once("two subpasses", |commands| {
        let clear = [color_of([0.2, 0.4, 1.0, 1.0]), color_of([0.0; 4])];
        let begin = vk::RenderPassBeginInfo::default().render_pass(render_pass).framebuffer(framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        gpu.set_area(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let (graphics, inline) = (vk::PipelineBindPoint::GRAPHICS, vk::SubpassContents::INLINE);
            gpu.device.cmd_begin_render_pass(commands, &begin, inline);
            gpu.device.cmd_next_subpass(commands, inline);
            gpu.device.cmd_bind_pipeline(commands, graphics, pipeline);
            gpu.device.cmd_bind_descriptor_sets(commands, graphics, layout, 0, &[set], &[]);
            gpu.device.cmd_draw(commands, 6, 1, 0, 0);
            gpu.device.cmd_end_render_pass(commands);
        }
    })?;
    let picture = gpu.picture(&second)?;
    picture.save(options)?;
    match options.fault {
        Fault::Planted => Ok(()),
        Fault::Mended => options.check.picture(&picture, 1, |_, _| [204, 153, 0, 255]),
    }
}

fn color_of(float32: [f32; 4]) -> vk::ClearValue {
    vk::ClearValue { color: vk::ClearColorValue { float32 } }
}

/// The first subpass only clears; the second reads that and draws into another attachment.
fn render_pass(gpu: &Gpu, fault: Fault) -> Result<vk::RenderPass, Failure> {
    let attachment = vk::AttachmentDescription::default()
        .format(FORMAT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
        .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE);
    let attachments = [
        attachment.store_op(vk::AttachmentStoreOp::DONT_CARE).final_layout(READ),
        attachment.store_op(vk::AttachmentStoreOp::STORE).final_layout(vk::ImageLayout::TRANSFER_SRC_OPTIMAL),
    ];
    let first = [vk::AttachmentReference { attachment: 0, layout: DRAWN }];
    let input = [vk::AttachmentReference { attachment: 0, layout: READ }];
    let second = [vk::AttachmentReference { attachment: 1, layout: DRAWN }];
    let subpasses = [
        vk::SubpassDescription::default().color_attachments(&first),
        vk::SubpassDescription::default().input_attachments(&input).color_attachments(&second),
    ];
    let between = vk::SubpassDependency::default()
        .src_subpass(0)
        .dst_subpass(1)
        .src_stage_mask(vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT)
        .src_access_mask(vk::AccessFlags::COLOR_ATTACHMENT_WRITE)
        .dst_stage_mask(vk::PipelineStageFlags::FRAGMENT_SHADER)
        .dst_access_mask(vk::AccessFlags::INPUT_ATTACHMENT_READ)
        .dependency_flags(vk::DependencyFlags::BY_REGION);
    let mut dependencies = vec![before_drawing(), before_drawing().dst_subpass(1), after_drawing(1)];
    if fault == Fault::Mended {
        dependencies.push(between);
    }
    let info =
        vk::RenderPassCreateInfo::default().attachments(&attachments).subpasses(&subpasses).dependencies(&dependencies);
    // SAFETY: `info` lives until the call returns.
    Ok(gpu.keep(unsafe { gpu.device.create_render_pass(&info, None) }?))
}
