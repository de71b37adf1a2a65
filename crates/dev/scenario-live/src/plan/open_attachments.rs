//! Among which attachments each command stands: those of the render pass instance that is open there, also if
//! another command buffer opened it.

use lavascope_sync_ir::{AttachmentKind, AttachmentView, Command, CommandBufferId, Program, RenderPass, Rendering};

use crate::error::UnsupportedProgram;
use crate::plan::live_command::LiveAttachments;
use crate::recording::render_pass::{SubpassContentsKind, inherited_flags};

/// For each command of a command buffer the attachments before it, and those behind the last one; none outside of
/// everything.
pub(crate) type CommandAttachments = Vec<Option<LiveAttachments>>;

/// The scenes of all command buffers. The command buffer that executes a secondary one defines where that begins.
pub(crate) fn open_attachments(program: &Program) -> Result<Vec<CommandAttachments>, UnsupportedProgram> {
    let mut begins: Vec<Option<Option<LiveAttachments>>> =
        program.command_buffers.iter().map(|it| (!it.is_secondary).then_some(None)).collect();
    let mut found: Vec<CommandAttachments> = vec![Vec::new(); program.command_buffers.len()];
    // One after the other: a command buffer comes before those that it executes.
    let mut open: Vec<usize> = (0..begins.len()).filter(|it| begins[*it].is_some()).collect();
    while let Some(at) = open.pop() {
        let begin = begins[at].clone().flatten();
        found[at] = walk_commands(program, at, begin);
        for (command, scene) in program.command_buffers[at].commands.iter().zip(&found[at]) {
            let Command::Execute(all) = command else { continue };
            for CommandBufferId(executed) in all {
                let known = &mut begins[*executed as usize];
                match known {
                    None => {
                        *known = Some(scene.clone());
                        open.push(*executed as usize);
                    }
                    Some(known) if known == scene => {}
                    Some(_) => {
                        return UnsupportedProgram::error("one secondary command buffer among different attachments");
                    }
                }
            }
        }
    }
    // Command buffers that are never executed are recorded nevertheless.
    for at in 0..found.len() {
        if begins[at].is_none() {
            found[at] = walk_commands(program, at, None);
        }
    }
    Ok(found)
}

fn walk_commands(program: &Program, buffer: usize, begin: Option<LiveAttachments>) -> CommandAttachments {
    let mut scenes = Vec::new();
    let mut now = begin;
    let mut views: Vec<AttachmentView> = Vec::new();
    let commands = &program.command_buffers[buffer].commands;
    for (at, command) in commands.iter().enumerate() {
        scenes.push(now.clone());
        match command {
            Command::BeginRenderPass { pass, views: given, area } => {
                views.clone_from(given);
                let own = &program.render_passes[pass.0 as usize];
                let targets = subpass_attachments(own, 0, &views);
                now = Some(LiveAttachments { pass: Some((*pass, 0)), area: Some(*area), ..targets });
            }
            Command::NextSubpass => {
                let Some(LiveAttachments { pass: Some((pass, subpass)), area, .. }) = now else { continue };
                let own = &program.render_passes[pass.0 as usize];
                let targets = subpass_attachments(own, subpass + 1, &views);
                now = Some(LiveAttachments { pass: Some((pass, subpass + 1)), area, ..targets });
            }
            Command::BeginRendering(rendering) => {
                let rendering_flags = inherited_flags(rendering, SubpassContentsKind::of(&commands[at + 1..]));
                now = Some(LiveAttachments { rendering_flags, ..rendering_attachments(rendering) });
            }
            Command::EndRenderPass | Command::EndRendering => now = None,
            _ => {}
        }
    }
    // What the last command left; of an empty command buffer, where it begins.
    scenes.push(now);
    scenes
}

fn subpass_attachments(pass: &RenderPass, subpass: u32, views: &[AttachmentView]) -> LiveAttachments {
    let Some(subpass) = pass.subpasses.get(subpass as usize) else { return LiveAttachments::default() };
    let view = |(at, _): &(u32, i32)| views.get(*at as usize).cloned();
    let of_aspect = |has: fn(AttachmentKind) -> bool| {
        let own = subpass.depth_stencil.as_ref()?;
        let kind = pass.attachments.get(own.0 as usize)?.kind;
        if has(kind) { view(own) } else { None }
    };
    LiveAttachments {
        colors: subpass.colors.iter().filter_map(view).collect(),
        depth: of_aspect(|it| matches!(it, AttachmentKind::Depth | AttachmentKind::DepthStencil)),
        stencil: of_aspect(|it| matches!(it, AttachmentKind::Stencil | AttachmentKind::DepthStencil)),
        inputs: subpass.inputs.iter().filter_map(view).collect(),
        view_mask: subpass.view_mask,
        ..LiveAttachments::default()
    }
}

fn rendering_attachments(rendering: &Rendering) -> LiveAttachments {
    let of = |kind: AttachmentKind| {
        rendering
            .attachments
            .iter()
            .filter(move |rendering_attachment| rendering_attachment.kind == kind)
            .map(|rendering_attachment| rendering_attachment.view.clone())
    };
    LiveAttachments {
        colors: of(AttachmentKind::Color).collect(),
        depth: of(AttachmentKind::Depth).chain(of(AttachmentKind::DepthStencil)).next(),
        stencil: of(AttachmentKind::Stencil).chain(of(AttachmentKind::DepthStencil)).next(),
        area: Some(rendering.area),
        view_mask: rendering.view_mask,
        ..LiveAttachments::default()
    }
}
