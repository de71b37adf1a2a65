//! Finds hazards of load, store and resolve operations outside of the render area.
//!
//! Outside of the render area, an implementation may read the texels and write them back unchanged,
//! or not access them (`renderpass-load-operations`, `renderpass-store-operations`).

use lavascope_sync_ir::{Command, Hazard, ImageRegion, Region, RenderPass, RenderPassId, Subpass};

use super::certainty::overlaps;

/// Whether a hazard is caused by a load, store or resolve operation, and its region lies outside of
/// the render area.
///
/// `command` returns the command with an index in the command buffer, unless it is an action
/// command. `index` is the index of the accessing command.
pub fn is_beside_render_area<'c>(
    command: impl Fn(usize) -> Option<&'c Command>,
    index: usize,
    pass: impl Fn(RenderPassId) -> Option<&'c RenderPass>,
    found: &Hazard,
) -> bool {
    let is_of_pass = |command: &Command| {
        matches!(
            command,
            Command::BeginRenderPass { .. }
                | Command::NextSubpass
                | Command::EndRenderPass
                | Command::BeginRendering(_)
                | Command::EndRendering
        )
    };
    if !command(index).is_some_and(is_of_pass) {
        return false;
    }
    let is_begin = |it: &&Command| matches!(it, Command::BeginRenderPass { .. } | Command::BeginRendering(_));
    let begin = (0..=index).rev().filter_map(command).find(is_begin);
    let (views, area) = match begin {
        Some(Command::BeginRendering(rendering)) => {
            let resolves = rendering.attachments.iter().filter_map(|it| it.resolve.as_ref()).map(|it| &it.view);
            (rendering.attachments.iter().map(|it| &it.view).chain(resolves).collect::<Vec<_>>(), rendering.area)
        }
        // Layout transitions access whole attachments.
        Some(Command::BeginRenderPass { pass: id, views, area }) => {
            let own = pass(*id);
            let is_changed = |index: usize| own.is_none_or(|it| changes_layout(it, index));
            if views.iter().enumerate().any(|(index, it)| it.resource == found.resource && is_changed(index)) {
                return false;
            }
            (views.iter().collect(), *area)
        }
        _ => return false,
    };
    let mut own = views.into_iter().filter(|it| it.resource == found.resource).peekable();
    own.peek().is_some()
        && own.all(|view| {
            let inside = ImageRegion { area: Some(view.area_in_attachment(area)), ..view.region.clone() };
            !overlaps(&Region::Image(inside), &found.region)
        })
}

/// Whether a render pass changes the layout of an attachment.
fn changes_layout(pass: &RenderPass, attachment: usize) -> bool {
    let Some(own) = pass.attachments.get(attachment) else { return false };
    let uses = |subpass: &Subpass| {
        let resolves = subpass.resolves.iter().map(|it| (it.target, it.layout));
        let all = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
        let all = all.chain(&subpass.depth_stencil_resolve).copied().chain(resolves);
        all.filter(|it| it.0 as usize == attachment).map(|it| it.1).collect::<Vec<_>>()
    };
    let is_other = |layout: i32| layout != own.initial_layout;
    is_other(own.final_layout) || pass.subpasses.iter().flat_map(uses).any(is_other)
}
