//! Hooks for command buffers, and for what is bound and pushed in them.

use lavascope_abi::*;

use super::{bind_points_of_stages, deref_param, hooks, read_output};
use crate::DeviceTable;
use crate::gpu::draw::command_buffer::{BindSetsCall, CommandBufferState, bind_point_index};
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::{catch_panic, catch_panic_and_retry};

hooks! {
    allocate_command_buffers = fn(device: Device, p_info: Ptr<CommandBufferAllocateInfo>, p_made: Ptr<CommandBuffer>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter: a valid structure until the call returns;
            // VUID-vkAllocateCommandBuffers-pCommandBuffers-parameter: places for as many handles as it says, which the
            // call has written.
            let (info, made) = unsafe {
                let info = deref_param(p_info);
                (info, slice(p_made, info.command_buffer_count))
            };
            let is_primary = info.level == CommandBufferLevel::PRIMARY;
            let keep = || made.iter().for_each(|it| gpu.track_command_buffer(it.0, info.command_pool.0, is_primary));
            catch_panic_and_retry("vkAllocateCommandBuffers", keep, || ());
        }
        result
    }
    begin_command_buffer = fn(commands: CommandBuffer, p_info: Ptr<CommandBufferBeginInfo>) -> Result, |gpu, forward| {
        catch_panic("vkBeginCommandBuffer", || gpu.retire_command_buffers(&[commands.0], false), || ());
        forward()
    }
    reset_command_buffer = fn(commands: CommandBuffer, flags: CommandBufferResetFlags) -> Result, |gpu, forward| {
        catch_panic("vkResetCommandBuffer", || gpu.retire_command_buffers(&[commands.0], false), || ());
        forward()
    }
    free_command_buffers = fn(device: Device, pool: CommandPool, count: u32, p_commands: Ptr<CommandBuffer>) -> (), |gpu, forward| {
        // SAFETY: VUID-vkFreeCommandBuffers-pCommandBuffers-00048: an array of so many handles until the call returns.
        let freed = unsafe { slice(p_commands, count) };
        let end = || {
            let handles: Vec<u64> = freed.iter().map(|it| it.0).collect();
            gpu.retire_command_buffers(&handles, true);
        };
        catch_panic("vkFreeCommandBuffers", end, || ());
        forward();
    }
    create_command_pool = fn(device: Device, p_info: Ptr<CommandPoolCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<CommandPool>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateCommandPool-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateCommandPool-pCommandPool-parameter: a place for the handle, which the call has written.
            let (flags, made) = unsafe { (deref_param(p_info).flags.0, read_output(p_made)) };
            if flags & CommandPoolCreateFlags::PROTECTED.0 != 0 {
                catch_panic("vkCreateCommandPool", || _ = gpu.state().protected_pools.insert(made.0), || ());
            }
        }
        result
    }
    reset_command_pool = fn(device: Device, pool: CommandPool, flags: CommandPoolResetFlags) -> Result, |gpu, forward| {
        catch_panic("vkResetCommandPool", || gpu.retire_command_pool(pool, false), || ());
        forward()
    }
    destroy_command_pool = fn(device: Device, pool: CommandPool, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        catch_panic("vkDestroyCommandPool", || gpu.retire_command_pool(pool, true), || ());
        forward();
    }
    cmd_bind_pipeline = fn(commands: CommandBuffer, bind_point: PipelineBindPoint, pipeline: Pipeline) -> (), |gpu, forward| {
        forward();
        let note = || {
            let checked = gpu.state().pipelines.get(&pipeline.0).cloned();
            if let Some(bind_point) = bind_point_index(bind_point) {
                gpu.with_commands(commands, |it| it.bind_pipeline(bind_point, pipeline, checked));
            }
        };
        catch_panic_and_retry("vkCmdBindPipeline", note, || ());
    }
    cmd_bind_descriptor_sets = fn(commands: CommandBuffer, bind_point: PipelineBindPoint, layout: PipelineLayout, first: u32, count: u32, p_sets: Ptr<DescriptorSet>, offset_count: u32, p_offsets: Ptr<u32>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdBindDescriptorSets-pDescriptorSets-parameter and
        // VUID-vkCmdBindDescriptorSets-pDynamicOffsets-parameter: arrays of so many until the call returns.
        let (sets, offsets) = unsafe { (slice(p_sets, count), slice(p_offsets, offset_count)) };
        let bind = BindSetsCall { layout, first, sets, offsets };
        catch_panic_and_retry("vkCmdBindDescriptorSets", || gpu.record_bound_sets(commands, bind_point_index(bind_point).into_iter(), &bind), || ());
    }
    cmd_bind_descriptor_sets2 = fn(commands: CommandBuffer, p_info: Ptr<BindDescriptorSetsInfo>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdBindDescriptorSets2-pBindDescriptorSetsInfo-parameter: a valid structure until the call
        // returns; VUID-VkBindDescriptorSetsInfo-pDescriptorSets-parameter and
        // VUID-VkBindDescriptorSetsInfo-pDynamicOffsets-parameter: arrays of as many as it says.
        let (sets_info, sets, offsets) = unsafe {
            let info = deref_param(p_info);
            let sets = slice(info.p_descriptor_sets, info.descriptor_set_count);
            (info, sets, slice(info.p_dynamic_offsets, info.dynamic_offset_count))
        };
        let bind = BindSetsCall { layout: sets_info.layout, first: sets_info.first_set, sets, offsets };
        catch_panic_and_retry("vkCmdBindDescriptorSets2", || gpu.record_bound_sets(commands, bind_points_of_stages(sets_info.stage_flags), &bind), || ());
    }
    cmd_push_constants = fn(commands: CommandBuffer, layout: PipelineLayout, stages: ShaderStageFlags, offset: u32, size: u32, p_values: Ptr<u8>) -> (), |gpu, forward| {
        let Some(next) = gpu.next.cmd_push_constants else { return forward() };
        // SAFETY: VUID-vkCmdPushConstants-pValues-parameter: an array of `size` bytes until the call returns.
        let all = || unsafe { gpu.record_push_constants(commands, layout, (stages, offset), (p_values, size)) };
        let all = catch_panic_and_retry("vkCmdPushConstants", all, || stages);
        // SAFETY: the driver's function, with the application's parameters, but for stages that the layout has besides
        // (VUID-vkCmdPushConstants-offset-01796 wants them).
        unsafe { next(commands, layout, all, offset, size, p_values) };
    }
    cmd_push_constants2 = fn(commands: CommandBuffer, p_info: Ptr<PushConstantsInfo>) -> (), |gpu, forward| {
        let Some(next) = gpu.next.cmd_push_constants2 else { return forward() };
        // SAFETY: VUID-vkCmdPushConstants2-pPushConstantsInfo-parameter: a valid structure until the call returns.
        let constants_info = unsafe { deref_param(p_info) };
        // SAFETY: VUID-VkPushConstantsInfo-pValues-parameter: an array of `size` bytes until the call returns.
        let all = || unsafe { gpu.record_push_constants(commands, constants_info.layout, (constants_info.stage_flags, constants_info.offset), (constants_info.p_values, constants_info.size)) };
        let changed = PushConstantsInfo { stage_flags: catch_panic_and_retry("vkCmdPushConstants2", all, || constants_info.stage_flags), ..*constants_info };
        // SAFETY: the driver's function, with the application's parameters, but for stages that the layout has besides
        // (VUID-VkPushConstantsInfo-offset-01796 wants them).
        unsafe { next(commands, Ptr::to(&changed)) };
    }
    cmd_execute_commands = fn(commands: CommandBuffer, count: u32, p_secondaries: Ptr<CommandBuffer>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdExecuteCommands-pCommandBuffers-parameter: an array of so many until the call returns.
        let secondaries = unsafe { slice(p_secondaries, count) }.iter().map(|it| it.0);
        catch_panic_and_retry("vkCmdExecuteCommands", || gpu.with_commands(commands, |it| it.execute_secondaries(secondaries.clone())), || ());
    }
}

impl DeviceChecks {
    pub(in crate::gpu) fn with_commands(&self, handle: CommandBuffer, work: impl FnOnce(&mut CommandBufferState)) {
        if let Some(slot) = self.slot(handle.0) {
            slot.with(work);
        }
    }

    /// Records that sets were bound.
    #[inline(always)]
    fn record_bound_sets(
        &self,
        handle: CommandBuffer,
        points: impl Iterator<Item = usize> + Clone,
        bind: &BindSetsCall<'_>,
    ) {
        let Some(slot) = self.slot(handle.0) else { return };
        if slot.with(|it| it.bind_with_last_layout(points.clone(), bind)) == Some(false) {
            let Some(layout) = self.state().pipeline_layouts.get(&bind.layout.0).cloned() else { return };
            slot.with(|it| it.bind_with_layout(points, layout, bind));
        }
    }
}
