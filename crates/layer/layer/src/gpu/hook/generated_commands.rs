//! Commands that the device generates (`VK_EXT_device_generated_commands`, `VK_NV_device_generated_commands`).
//!
//! Shaders that are bound for them get their tables as before a draw, in the variant with the application's handle.
//! Pipelines and shader objects that the device binds itself stay unchanged.
//!
//! Preprocessed commands must have the same state when they are executed. They get permissive tables, which stay, and
//! are not checked.
//!
//! With the older extension, a token that pushes constants is for all stages of its ranges, so it gets the stages that
//! the address of the root table adds to the layout. With the newer one the stages of a token do not count, and tokens
//! stay as they are.

use lavascope_abi::*;

use crate::DeviceTable;
use crate::gpu::draw::command_buffer::bind_point_index;
use crate::gpu::draw::record::StateToRestore;
use crate::gpu::hook::{bind_points_of_stages, deref_param, hooks};
use crate::gpu::pipeline::layouts::PipelineLayoutState;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::process::catch_panic::{catch_panic, run_if_enabled};

hooks! {
    create_indirect_commands_layout_ext = fn(device: Device, p_info: Ptr<IndirectCommandsLayoutCreateInfoEXT>, p_allocator: Ptr<Opaque>, p_made: Ptr<IndirectCommandsLayoutEXT>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_indirect_commands_layout_ext else { return forward() };
        // SAFETY: VUID-vkCreateIndirectCommandsLayoutEXT-pCreateInfo-parameter: a valid structure until the call returns.
        let info = unsafe { deref_param(p_info) };
        // SAFETY: VUID-vkCreateIndirectCommandsLayoutEXT-pCreateInfo-parameter: valid, with its chain.
        let layout = || unsafe { gpu.chained_layout(info) };
        // Runs even if the layer is disabled, because the sets of these commands have a layout that was changed.
        let layout = catch_panic("vkCreateIndirectCommandsLayoutEXT", layout, || None);
        let pipeline_layout = layout.as_ref().and_then(|it| it.own_handle).unwrap_or(info.pipeline_layout);
        let changed = IndirectCommandsLayoutCreateInfoEXT { pipeline_layout, ..*info };
        // SAFETY: the driver's function, with the application's parameters, but for a layout of ours, which `layout` keeps
        // until the call returns: what is made out of a pipeline layout does not need it any more after that.
        unsafe { next(device, Ptr::to(&changed), p_allocator, p_made) }
    }
    create_indirect_commands_layout_nv = fn(device: Device, p_info: Ptr<IndirectCommandsLayoutCreateInfoNV>, p_allocator: Ptr<Opaque>, p_made: Ptr<IndirectCommandsLayoutNV>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_indirect_commands_layout_nv else { return forward() };
        // SAFETY: VUID-vkCreateIndirectCommandsLayoutNV-pCreateInfo-parameter: a valid structure until the call returns;
        // VUID-VkIndirectCommandsLayoutCreateInfoNV-pTokens-parameter: an array of as many tokens as it says.
        let (info, own) = unsafe {
            let info = deref_param(p_info);
            (info, slice(info.p_tokens, info.token_count))
        };
        let tokens = || own.iter().map(|it| gpu.with_layout_stages(it)).collect::<Vec<_>>();
        let tokens = catch_panic("vkCreateIndirectCommandsLayoutNV", tokens, || own.to_vec());
        let changed = IndirectCommandsLayoutCreateInfoNV { p_tokens: Ptr::to_slice(&tokens), ..*info };
        // SAFETY: the driver's function, with the application's parameters, but for stages of push constants that their
        // layout has besides.
        unsafe { next(device, Ptr::to(&changed), p_allocator, p_made) }
    }
    cmd_preprocess_generated_commands_ext = fn(commands: CommandBuffer, p_info: Ptr<GeneratedCommandsInfoEXT>, state: CommandBuffer) -> (), |gpu, forward| {
        // SAFETY: VUID-vkCmdPreprocessGeneratedCommandsEXT-pGeneratedCommandsInfo-parameter: a valid structure until the
        // call returns.
        let points = bind_points_of_stages(unsafe { deref_param(p_info) }.shader_stages);
        // The commands are generated for the state of the other command buffer.
        let after = gpu.before_generated_commands(state, points, Command::CmdPreprocessGeneratedCommandsEXT, true);
        forward();
        gpu.after_generated_commands(state, &after);
    }
    cmd_execute_generated_commands_ext = fn(commands: CommandBuffer, is_preprocessed: Bool32, p_info: Ptr<GeneratedCommandsInfoEXT>) -> (), |gpu, forward| {
        // SAFETY: VUID-vkCmdExecuteGeneratedCommandsEXT-pGeneratedCommandsInfo-parameter: a valid structure until the
        // call returns.
        let points = bind_points_of_stages(unsafe { deref_param(p_info) }.shader_stages);
        let command = Command::CmdExecuteGeneratedCommandsEXT;
        let after = gpu.before_generated_commands(commands, points, command, is_preprocessed.is_true());
        forward();
        gpu.after_generated_commands(commands, &after);
    }
    cmd_preprocess_generated_commands_nv = fn(commands: CommandBuffer, p_info: Ptr<GeneratedCommandsInfoNV>) -> (), |gpu, forward| {
        // SAFETY: VUID-vkCmdPreprocessGeneratedCommandsNV-pGeneratedCommandsInfo-parameter: a valid structure until the
        // call returns.
        let points = bind_point_index(unsafe { deref_param(p_info) }.pipeline_bind_point).into_iter();
        let after = gpu.before_generated_commands(commands, points, Command::CmdPreprocessGeneratedCommandsNV, true);
        forward();
        gpu.after_generated_commands(commands, &after);
    }
    cmd_execute_generated_commands_nv = fn(commands: CommandBuffer, is_preprocessed: Bool32, p_info: Ptr<GeneratedCommandsInfoNV>) -> (), |gpu, forward| {
        // SAFETY: VUID-vkCmdExecuteGeneratedCommandsNV-pGeneratedCommandsInfo-parameter: a valid structure until the
        // call returns.
        let points = bind_point_index(unsafe { deref_param(p_info) }.pipeline_bind_point).into_iter();
        let command = Command::CmdExecuteGeneratedCommandsNV;
        let after = gpu.before_generated_commands(commands, points, command, is_preprocessed.is_true());
        forward();
        gpu.after_generated_commands(commands, &after);
    }
    cmd_bind_pipeline_shader_group_nv = fn(commands: CommandBuffer, bind_point: PipelineBindPoint, pipeline: Pipeline, group: u32) -> (), |gpu, forward| {
        forward();
        let note = || {
            if let Some(bind_point) = bind_point_index(bind_point) {
                gpu.with_commands(commands, |it| it.bind_pipeline(bind_point, pipeline, None));
            }
        };
        catch_panic("vkCmdBindPipelineShaderGroupNV", note, || ());
    }
}

impl DeviceChecks {
    fn before_generated_commands(
        &self,
        handle: CommandBuffer,
        points: impl Iterator<Item = usize>,
        command: Command,
        is_preprocessed: bool,
    ) -> Vec<(usize, StateToRestore)> {
        let before = |bind_point| {
            // A shader with our code must not run without tables.
            let permit =
                || catch_panic(command, || self.record_permissive_draw(handle, bind_point), StateToRestore::default);
            (
                bind_point,
                run_if_enabled(command, || self.before_generated(handle, bind_point, command, is_preprocessed), permit),
            )
        };
        points.map(before).collect()
    }

    fn after_generated_commands(&self, handle: CommandBuffer, after: &[(usize, StateToRestore)]) {
        for (bind_point, after) in after.iter().filter(|it| !it.1.is_empty()) {
            catch_panic("generated commands", || self.restore_state(handle, *bind_point, after), || ());
        }
    }

    /// A layout in the chain instead of a handle: it is changed by the same rule as all others.
    ///
    /// # Safety
    ///
    /// The info must be valid, with its chain.
    unsafe fn chained_layout(&self, info: &IndirectCommandsLayoutCreateInfoEXT) -> Option<PipelineLayoutState> {
        if info.pipeline_layout.0 != 0 {
            return None;
        }
        let ty = StructureType::PIPELINE_LAYOUT_CREATE_INFO;
        // SAFETY: the contract of this function: the chain is valid, and this is the structure of this type; it leads to
        // arrays of as many as it says (VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter and
        // VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-parameter).
        let (sets, ranges) = unsafe {
            let layout = &*find_in_chain::<PipelineLayoutCreateInfo>(info.p_next, ty)?.as_ptr();
            let ranges = slice(layout.p_push_constant_ranges, layout.push_constant_range_count);
            (slice(layout.p_set_layouts, layout.set_layout_count), ranges)
        };
        self.create_own_layout(sets, ranges)
    }

    /// Push constants are for all stages whose ranges they are in.
    fn with_layout_stages(&self, layout_token: &IndirectCommandsLayoutTokenNV) -> IndirectCommandsLayoutTokenNV {
        let mut token = *layout_token;
        if token.token_type == IndirectCommandsTokenTypeNV::PUSH_CONSTANT_NV
            && let Some(layout) = self.state().pipeline_layouts.get(&token.pushconstant_pipeline_layout.0)
        {
            let more = layout.stages_of_push(token.pushconstant_offset, token.pushconstant_size);
            token.pushconstant_shader_stage_flags.0 |= more;
        }
        token
    }
}
