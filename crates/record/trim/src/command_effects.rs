//! The effects of recorded commands on contents.
//!
//! Commands that are not understood are reported as unknown, and then no call is skipped. For a known command, each
//! resource that it names counts as changed, unless the command certainly only reads it.

use lavascope_abi as vk;
use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_record::{Call, View};

use crate::resources::{Effect, Resources, id};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandMeaning {
    Unknown,
    /// Sets state that matters to other commands.
    SetState,
    /// Binds descriptor sets.
    BindSets,
    Execute,
    /// Reads and writes what it names.
    Access,
    /// The same, and runs shaders.
    RunShaders,
}

/// Commands by their names, without prefix, version and vendor.
const SET_STATE: [&str; 14] = [
    "BindPipeline",
    "PushConstants",
    "NextSubpass",
    "EndRenderPass",
    "EndRendering",
    "BeginDebugUtilsLabel",
    "EndDebugUtilsLabel",
    "InsertDebugUtilsLabel",
    "DebugMarkerBegin",
    "DebugMarkerEnd",
    "DebugMarkerInsert",
    "EndConditionalRendering",
    "BindShaders",
    "SetDeviceMask",
];
const ACCESS: [&str; 32] = [
    "BindVertexBuffers",
    "BindIndexBuffer",
    "CopyBuffer",
    "CopyImage",
    "BlitImage",
    "CopyBufferToImage",
    "CopyImageToBuffer",
    "ResolveImage",
    "ClearColorImage",
    "ClearDepthStencilImage",
    "ClearAttachments",
    "FillBuffer",
    "UpdateBuffer",
    "PipelineBarrier",
    "BeginRenderPass",
    "BeginRendering",
    "BeginQuery",
    "EndQuery",
    "BeginQueryIndexed",
    "EndQueryIndexed",
    "ResetQueryPool",
    "WriteTimestamp",
    "CopyQueryPoolResults",
    "SetEvent",
    "ResetEvent",
    "WaitEvents",
    "PushDescriptorSet",
    "PushDescriptorSetWithTemplate",
    "BeginConditionalRendering",
    "BindTransformFeedbackBuffers",
    "BeginTransformFeedback",
    "EndTransformFeedback",
];
const RUN_SHADERS: [&str; 14] = [
    "Draw",
    "DrawIndexed",
    "DrawIndirect",
    "DrawIndexedIndirect",
    "DrawIndirectCount",
    "DrawIndexedIndirectCount",
    "DrawMulti",
    "DrawMultiIndexed",
    "DrawMeshTasks",
    "DrawMeshTasksIndirect",
    "DrawMeshTasksIndirectCount",
    "Dispatch",
    "DispatchBase",
    "DispatchIndirect",
];

pub(crate) fn meaning(command: Command) -> CommandMeaning {
    let name = command.desc().name;
    let short = name.strip_prefix("vkCmd").unwrap_or("");
    let short = short.trim_end_matches(|it: char| it.is_ascii_uppercase()).trim_end_matches('2');
    match command {
        Command::BeginCommandBuffer | Command::EndCommandBuffer => CommandMeaning::SetState,
        Command::CmdExecuteCommands => CommandMeaning::Execute,
        Command::CmdBindDescriptorSets | Command::CmdBindDescriptorSets2 => CommandMeaning::BindSets,
        _ if ACCESS.contains(&short) => CommandMeaning::Access,
        _ if RUN_SHADERS.contains(&short) => CommandMeaning::RunShaders,
        _ if SET_STATE.contains(&short) => CommandMeaning::SetState,
        _ if short.starts_with("Set") && !short.contains("Descriptor") => CommandMeaning::SetState,
        _ => CommandMeaning::Unknown,
    }
}

/// Lists the effects of a command, resource by resource, in the order in which they happen.
pub(crate) fn effects(
    command: Command,
    call: Call<'_>,
    refs: &[ObjectId],
    resources: &Resources,
    add_effect: &mut impl FnMut(ObjectId, Effect),
) {
    match call {
        Call::CmdPipelineBarrier(params) => {
            barrier_effects(params.p_image_memory_barriers().iter(), resources, add_effect)
        }
        Call::CmdPipelineBarrier2(params) => {
            params.p_dependency_info().iter().for_each(|it| barrier2_effects(*it, resources, add_effect))
        }
        Call::CmdWaitEvents(params) => {
            params.p_events().iter().for_each(|it| add_effect(id(it.0), Effect::ReadWrite));
            barrier_effects(params.p_image_memory_barriers().iter(), resources, add_effect);
        }
        Call::CmdWaitEvents2(params) => {
            params.p_events().iter().for_each(|it| add_effect(id(it.0), Effect::ReadWrite));
            params.p_dependency_infos().iter().for_each(|it| barrier2_effects(it, resources, add_effect));
        }
        Call::CmdSetEvent2(params) => add_effect(id(params.event.0), Effect::ReadWrite),
        Call::CmdBeginRenderPass(params) => render_pass_effects(params.p_render_pass_begin(), resources, add_effect),
        Call::CmdBeginRenderPass2(params) => render_pass_effects(params.p_render_pass_begin(), resources, add_effect),
        Call::CmdResetQueryPool(params) => {
            let all = resources.queries(id(params.query_pool.0));
            let is_all = params.first_query == 0 && all.is_some_and(|all| params.query_count >= all);
            add_effect(id(params.query_pool.0), if is_all { Effect::Discard } else { Effect::ReadWrite });
        }
        Call::CmdFillBuffer(params) => {
            // All that is left is filled word by word.
            let is_all = params.size == vk::WHOLE_SIZE
                && resources.size(id(params.dst_buffer.0)).is_some_and(|all| all % 4 == 0);
            let size = if is_all { u64::MAX } else { params.size };
            add_effect(id(params.dst_buffer.0), overwrite(params.dst_buffer, [(params.dst_offset, size)], resources));
        }
        Call::CmdUpdateBuffer(params) => {
            add_effect(
                id(params.dst_buffer.0),
                overwrite(params.dst_buffer, [(params.dst_offset, params.data_size)], resources),
            );
        }
        Call::CmdCopyBuffer(params) if params.src_buffer != params.dst_buffer => {
            add_effect(id(params.src_buffer.0), Effect::Read);
            let parts = params.p_regions().iter().map(|it| (it.dst_offset, it.size));
            add_effect(id(params.dst_buffer.0), overwrite(params.dst_buffer, parts, resources));
        }
        _ => default_effects(command, refs, resources, add_effect),
    }
}

/// The effect of a write to some parts of a buffer: nothing of the old contents is left if one part is the whole
/// buffer.
fn overwrite(buffer: vk::Buffer, parts: impl IntoIterator<Item = (u64, u64)>, resources: &Resources) -> Effect {
    let all = resources.size(id(buffer.0));
    let is_all = |(offset, size): (u64, u64)| offset == 0 && all.is_some_and(|all| size >= all);
    if parts.into_iter().any(is_all) { Effect::Discard } else { Effect::Write }
}

/// The resources of a command are changed, or read if the command does no more.
fn default_effects(
    command: Command,
    refs: &[ObjectId],
    resources: &Resources,
    add_effect: &mut impl FnMut(ObjectId, Effect),
) {
    use Command as C;
    let name = command.desc().name;
    let only_reads = ["vkCmdBindVertexBuffers", "vkCmdBindIndexBuffer", "vkCmdDraw", "vkCmdDispatch"];
    let only_reads = only_reads.iter().any(|it| name.starts_with(it)) || command == C::CmdBeginConditionalRenderingEXT;
    let copies = ["vkCmdCopy", "vkCmdBlit", "vkCmdResolve"].iter().any(|it| name.starts_with(it));
    let only_writes = copies || matches!(command, C::CmdFillBuffer | C::CmdUpdateBuffer);
    for (at, reference) in refs.iter().filter_map(|it| resources.resource_of(*it)).enumerate() {
        // An image must also be in the layout that it was brought into before.
        let is_buffer = reference.ty() == Some(HandleType::Buffer);
        let effect = match (only_reads || (copies && at == 0), only_writes && is_buffer) {
            (true, _) => Effect::Read,
            (false, true) => Effect::Write,
            (false, false) => Effect::ReadWrite,
        };
        add_effect(reference, effect);
    }
}

fn render_pass_effects(
    info: Option<View<'_, vk::RenderPassBeginInfo>>,
    resources: &Resources,
    add_effect: &mut impl FnMut(ObjectId, Effect),
) {
    let Some(info) = info else { return };
    let given = info.chained::<vk::RenderPassAttachmentBeginInfo>();
    let given = given.map(|it| it.p_attachments().iter().map(|it| id(it.0)).collect());
    for (attachment, effect) in resources.attachments(id(info.render_pass.0), id(info.framebuffer.0), given) {
        add_effect(attachment, effect);
    }
}

/// Both versions name these alike.
macro_rules! barrier {
    ($barrier:expr, $resources:expr, $add_effect:expr) => {{
        let barrier = $barrier;
        let image = id(barrier.image.0);
        let is_kept = barrier.old_layout == barrier.new_layout
            && barrier.src_queue_family_index == barrier.dst_queue_family_index;
        if barrier.old_layout == vk::ImageLayout::UNDEFINED && $resources.is_whole(image, &barrier.subresource_range) {
            $add_effect(image, Effect::Discard);
        } else if !is_kept {
            $add_effect(image, Effect::ReadWrite);
        }
    }};
}

fn barrier_effects<'a>(
    all: impl Iterator<Item = View<'a, vk::ImageMemoryBarrier>>,
    resources: &Resources,
    add_effect: &mut impl FnMut(ObjectId, Effect),
) {
    all.for_each(|it| barrier!(it, resources, add_effect));
}

fn barrier2_effects(
    info: View<'_, vk::DependencyInfo>,
    resources: &Resources,
    add_effect: &mut impl FnMut(ObjectId, Effect),
) {
    info.p_image_memory_barriers().iter().for_each(|it| barrier!(it, resources, add_effect));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_nobody_knows_are_called_so() {
        for command in [Command::CmdDraw, Command::CmdDispatchIndirect, Command::CmdDrawMeshTasksEXT] {
            assert_eq!(meaning(command), CommandMeaning::RunShaders, "{}", command.desc().name);
        }
        for command in [Command::CmdCopyBuffer2, Command::CmdPipelineBarrier2, Command::CmdBeginRendering] {
            assert_eq!(meaning(command), CommandMeaning::Access, "{}", command.desc().name);
        }
        for command in [Command::CmdSetViewport, Command::CmdSetCullMode, Command::CmdPushConstants] {
            assert_eq!(meaning(command), CommandMeaning::SetState, "{}", command.desc().name);
        }
        for command in [Command::CmdTraceRaysKHR, Command::CmdSetDescriptorBufferOffsetsEXT, Command::CmdDecodeVideoKHR]
        {
            assert_eq!(meaning(command), CommandMeaning::Unknown, "{}", command.desc().name);
        }
        // All names of the lists are those of commands.
        let names: Vec<&str> = Command::ALL.iter().map(|it| it.desc().name).collect();
        for text in SET_STATE.iter().chain(&ACCESS).chain(&RUN_SHADERS) {
            assert!(names.iter().any(|name| name.starts_with(&format!("vkCmd{text}"))), "{text}");
        }
    }
}
