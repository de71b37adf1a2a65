//! What packing the create info of a pipeline must know of its render pass.
//!
//! It is read when the application creates the render pass: no call is recorded if the checks of shaders are the only
//! listener, so the context of recorded calls (`intercept::handle_table`) may be empty.

use lavascope_abi::*;
use lavascope_record::pack_context::{PackContext, SubpassUse};

use super::recipe::KeptRenderPass;
use crate::gpu::slice;

/// The context of one create info: the subpasses of its render pass. A create info that is kept has no libraries, and
/// no template.
pub(super) struct RecipeContext<'a>(pub(super) Option<&'a KeptRenderPass>);

impl PackContext for RecipeContext<'_> {
    fn subpass(&self, _: u64, subpass: u32) -> Option<SubpassUse> {
        self.0?.subpasses.get(subpass as usize).copied()
    }
}

fn is_used(attachment: u32) -> bool {
    attachment != ATTACHMENT_UNUSED
}

/// # Safety
///
/// The info must be that of a valid `vkCreateRenderPass` that has not returned.
pub(crate) unsafe fn subpasses_of(info: &RenderPassCreateInfo) -> Vec<SubpassUse> {
    // SAFETY: VUID-VkRenderPassCreateInfo-pSubpasses-parameter, by the contract of this function.
    let all = unsafe { slice(info.p_subpasses, info.subpass_count) };
    let uses = |subpass: &SubpassDescription| {
        // SAFETY: VUID-VkSubpassDescription-pColorAttachments-parameter and
        // VUID-VkSubpassDescription-pDepthStencilAttachment-parameter: arrays of so many; null is none.
        let (colors, depth) = unsafe {
            let depth = slice(subpass.p_depth_stencil_attachment, 1);
            (slice(subpass.p_color_attachments, subpass.color_attachment_count), depth)
        };
        SubpassUse {
            color: colors.iter().any(|it| is_used(it.attachment)),
            depth_stencil: depth.iter().any(|it| is_used(it.attachment)),
        }
    };
    all.iter().map(uses).collect()
}

/// # Safety
///
/// The info must be that of a valid `vkCreateRenderPass2` that has not returned.
pub(crate) unsafe fn subpasses_of_2(info: &RenderPassCreateInfo2) -> Vec<SubpassUse> {
    // SAFETY: VUID-VkRenderPassCreateInfo2-pSubpasses-parameter, by the contract of this function.
    let all = unsafe { slice(info.p_subpasses, info.subpass_count) };
    let uses = |subpass: &SubpassDescription2| {
        // SAFETY: VUID-VkSubpassDescription2-pColorAttachments-parameter and
        // VUID-VkSubpassDescription2-pDepthStencilAttachment-parameter: arrays of so many; null is none.
        let (colors, depth) = unsafe {
            let depth = slice(subpass.p_depth_stencil_attachment, 1);
            (slice(subpass.p_color_attachments, subpass.color_attachment_count), depth)
        };
        SubpassUse {
            color: colors.iter().any(|it| is_used(it.attachment)),
            depth_stencil: depth.iter().any(|it| is_used(it.attachment)),
        }
    };
    all.iter().map(uses).collect()
}
