//! A render pass object with one color attachment, in the place of dynamic rendering.

use ash::vk;

use super::context::{EXTENT, FORMAT, FaultContext, LAYOUT};
use crate::common::{RenderTarget, SampleImage};
use crate::failure::Failure;

/// A render pass for a picture, with its framebuffer.
pub(super) struct ClassicPass {
    pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
}

impl ClassicPass {
    pub(super) fn new(lab: &FaultContext, canvas: &SampleImage) -> Result<ClassicPass, Failure> {
        let pass = create_pass(lab)?;
        Ok(ClassicPass { pass, framebuffer: lab.framebuffer(pass, &[*canvas])? })
    }

    pub(super) fn render(&self, lab: &FaultContext, commands: vk::CommandBuffer, record: impl FnOnce()) {
        let begin = vk::RenderPassBeginInfo::default().render_pass(self.pass).framebuffer(self.framebuffer);
        let begin = begin.render_area(EXTENT.into());
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE) };
        record();
        // SAFETY: recorded by this thread, inside of the render pass that began above (owner).
        unsafe { lab.device.cmd_end_render_pass(commands) };
    }
}

/// A target for pipelines that draw in any [`ClassicPass`].
pub(super) fn classic_target(lab: &FaultContext) -> Result<RenderTarget, Failure> {
    Ok(RenderTarget::Subpass(create_pass(lab)?, 0))
}

/// The images of faults are always in one layout, and contents that nobody cares about.
fn create_pass(lab: &FaultContext) -> Result<vk::RenderPass, Failure> {
    let attachments = [vk::AttachmentDescription::default()
        .format(FORMAT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::DONT_CARE)
        .store_op(vk::AttachmentStoreOp::STORE)
        .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
        .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE)
        .initial_layout(LAYOUT)
        .final_layout(LAYOUT)];
    let colors = [vk::AttachmentReference { attachment: 0, layout: LAYOUT }];
    let subpasses = [vk::SubpassDescription::default().color_attachments(&colors)];
    let info = vk::RenderPassCreateInfo::default().attachments(&attachments).subpasses(&subpasses);
    // SAFETY: `info` lives until the call returns (lifetime).
    Ok(lab.destroy_at_end(unsafe { lab.device.create_render_pass(&info, None) }?))
}
