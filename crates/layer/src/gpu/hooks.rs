//! Functions in the place of the driver's.

use std::sync::Arc;

use lavascope_abi::*;

use super::commands::{BindCall, Commands, point_of};
use super::harvest::Batch;
use super::layouts::SetLayout;
use super::pipelines::{Plan, read_words};
use super::recipe::Recipe;
use super::{Gpu, facts_of, gpu_of, scope, slice};
use crate::DeviceTable;
use crate::fence::fence;

/// Defines a function for each, and one that puts them into a table. `gpu` and the driver's function are at hand.
macro_rules! hooks {
    ($($name:ident = fn($first:ident: $first_ty:ty $(, $parameter:ident: $ty:ty)*) -> $result:ty, |$gpu:ident, $next:ident| $body:block)*) => {
        $(unsafe extern "system" fn $name($first: $first_ty $(, $parameter: $ty)*) -> $result {
            // SAFETY: a dispatchable handle that is alive.
            let Some($gpu) = (unsafe { gpu_of($first.0) }) else { return Default::default() };
            let Some($next) = $gpu.next.$name else { return Default::default() };
            // SAFETY: the application's own parameters, valid as the specification demands, here and in the blocks.
            unsafe { $body }
        })*

        pub(super) fn install(table: &mut DeviceTable) {
            $(if table.$name.is_some() {
                table.$name = Some($name);
            })*
        }
    };
}

pub(super) use hooks;

hooks! {
    create_descriptor_set_layout = fn(device: Device, p_info: Ptr<DescriptorSetLayoutCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DescriptorSetLayout>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                let mut layout = SetLayout::read(&*p_info.as_ptr());
                gpu.ask_offsets(*p_made.as_ptr(), &mut layout);
                gpu.state().set_layouts.insert((*p_made.as_ptr()).0, Arc::new(layout));
            };
            fence("vkCreateDescriptorSetLayout", keep, || ());
        }
        result
    }
    destroy_descriptor_set_layout = fn(device: Device, it: DescriptorSetLayout, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        let is_kept = || {
            let mut state = gpu.state();
            state.set_layouts.remove(&it.0);
            state.objects.keeps_set_layout(it, p_allocator)
        };
        if !fence("vkDestroyDescriptorSetLayout", is_kept, || false) {
            next(device, it, p_allocator);
        }
    }
    create_pipeline_layout = fn(device: Device, p_info: Ptr<PipelineLayoutCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<PipelineLayout>) -> Result, |gpu, next| {
        let create = || gpu.create_layout(next, p_info, p_allocator, p_made);
        match fence("vkCreatePipelineLayout", create, || None) {
            Some(result) => result,
            None => next(device, p_info, p_allocator, p_made),
        }
    }
    destroy_pipeline_layout = fn(device: Device, it: PipelineLayout, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        let forget = || {
            gpu.state().layouts.remove(&it.0);
            gpu.sets_changed();
        };
        fence("vkDestroyPipelineLayout", forget, || ());
        next(device, it, p_allocator);
        fence("vkDestroyPipelineLayout", || gpu.sweep_layouts(), || ());
    }
    create_shader_module = fn(device: Device, p_info: Ptr<ShaderModuleCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<ShaderModule>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                let (words, handle) = (read_words(&*p_info.as_ptr()), (*p_made.as_ptr()).0);
                let mut state = gpu.state();
                let name = state.names.share(ObjectType::SHADER_MODULE, handle);
                state.modules.insert(handle, (words, name));
                if scope::is_marked((*p_info.as_ptr()).p_next) {
                    state.marked_modules.insert(handle);
                }
            };
            fence("vkCreateShaderModule", keep, || ());
        }
        result
    }
    destroy_shader_module = fn(device: Device, it: ShaderModule, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        let forget = || {
            let mut state = gpu.state();
            state.modules.remove(&it.0);
            state.names.end(ObjectType::SHADER_MODULE, it.0);
            state.marked_modules.remove(&it.0);
        };
        fence("vkDestroyShaderModule", forget, || ());
        next(device, it, p_allocator);
    }
    create_render_pass = fn(device: Device, p_info: Ptr<RenderPassCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<RenderPass>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            fence("vkCreateRenderPass", || gpu.state().passes.add(*p_made.as_ptr()), || ());
        }
        result
    }
    create_render_pass2 = fn(device: Device, p_info: Ptr<RenderPassCreateInfo2>, p_allocator: Ptr<Opaque>, p_made: Ptr<RenderPass>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            fence("vkCreateRenderPass2", || gpu.state().passes.add(*p_made.as_ptr()), || ());
        }
        result
    }
    destroy_render_pass = fn(device: Device, it: RenderPass, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        if !fence("vkDestroyRenderPass", || gpu.keeps_pass(it, p_allocator), || false) {
            next(device, it, p_allocator);
        }
    }
    create_compute_pipelines = fn(device: Device, cache: PipelineCache, count: u32, p_infos: Ptr<ComputePipelineCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Pipeline>) -> Result, |gpu, next| {
        let plan = |it: &ComputePipelineCreateInfo| {
            let mut plan = gpu.plan(it.layout, (it.flags, it.p_next), std::slice::from_ref(&it.stage))?;
            plan.recipe = facts_of(device).and_then(|facts| Recipe::compute(it, facts, plan.origin()));
            Some(plan)
        };
        let plans = || slice(p_infos, count).iter().map(plan).collect::<Vec<_>>();
        let plans = fence("vkCreateComputePipelines", plans, Vec::new);
        let change = |(info, plan): (&ComputePipelineCreateInfo, &Option<Plan>)| {
            let stage = plan.as_ref().and_then(|it| it.infos.first()).copied().unwrap_or(info.stage);
            ComputePipelineCreateInfo { stage, ..*info }
        };
        let infos: Vec<_> = slice(p_infos, count).iter().zip(&plans).map(change).collect();
        let create = |cache, infos| next(device, cache, count, infos, p_allocator, p_made);
        gpu.create_planned((p_infos, &infos), cache, plans, p_made, create)
    }
    create_graphics_pipelines = fn(device: Device, cache: PipelineCache, count: u32, p_infos: Ptr<GraphicsPipelineCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Pipeline>) -> Result, |gpu, next| {
        let plan = |it: &GraphicsPipelineCreateInfo| {
            let mut plan = gpu.plan(it.layout, (it.flags, it.p_next), slice(it.p_stages, it.stage_count))?;
            let pass = gpu.state().passes.get(it.render_pass);
            let facts = facts_of(device).filter(|_| plan.is_whole());
            plan.recipe = facts.and_then(|facts| Recipe::graphics(it, facts, plan.origin(), pass));
            Some(plan)
        };
        let plans = || slice(p_infos, count).iter().map(plan).collect::<Vec<_>>();
        let plans = fence("vkCreateGraphicsPipelines", plans, Vec::new);
        let change = |(info, plan): (&GraphicsPipelineCreateInfo, &Option<Plan>)| {
            let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
            GraphicsPipelineCreateInfo { p_stages: stages, ..*info }
        };
        let infos: Vec<_> = slice(p_infos, count).iter().zip(&plans).map(change).collect();
        let create = |cache, infos| next(device, cache, count, infos, p_allocator, p_made);
        gpu.create_planned((p_infos, &infos), cache, plans, p_made, create)
    }
    destroy_pipeline = fn(device: Device, it: Pipeline, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        let forget = || {
            let mut state = gpu.state();
            state.libraries.remove(&it.0);
            let removed = state.pipelines.remove(&it.0);
            drop(state);
            if let Some(checked) = removed {
                gpu.sets_changed();
                gpu.pipeline_ends(&checked);
                drop(checked);
                gpu.sweep_passes();
            }
            gpu.state().names.end(ObjectType::PIPELINE, it.0);
        };
        fence("vkDestroyPipeline", forget, || ());
        next(device, it, p_allocator);
    }
    allocate_memory = fn(device: Device, p_info: Ptr<MemoryAllocateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DeviceMemory>) -> Result, |gpu, next| {
        let mut result = next(device, p_info, p_allocator, p_made);
        // What of ours nobody uses at the moment is the application's if it needs it.
        if LACKS.contains(&result) && fence("vkAllocateMemory", || gpu.release_spares(), || false) {
            result = next(device, p_info, p_allocator, p_made);
        }
        if result == Result::SUCCESS {
            gpu.allocations.add();
        }
        result
    }
    free_memory = fn(device: Device, it: DeviceMemory, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        if it.0 != 0 {
            gpu.allocations.remove();
            fence("vkFreeMemory", || gpu.unmapped(it), || ());
        }
        next(device, it, p_allocator);
    }
    get_buffer_device_address = fn(device: Device, p_info: Ptr<BufferDeviceAddressInfo>) -> u64, |gpu, next| {
        let address = next(device, p_info);
        let note = || {
            let (buffer, mut state) = ((*p_info.as_ptr()).buffer, gpu.state());
            if let Some(bytes) = state.buffers.get(&buffer.0).copied() {
                state.addresses.add(buffer.0, address, bytes);
            }
        };
        fence("vkGetBufferDeviceAddress", note, || ());
        address
    }
    create_buffer = fn(device: Device, p_info: Ptr<BufferCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Buffer>) -> Result, |gpu, next| {
        let info = &*p_info.as_ptr();
        let usage = fence("vkCreateBuffer", || gpu.buffer_usage(info), || info.usage);
        let result = next(device, Ptr::to(&BufferCreateInfo { usage, ..*info }), p_allocator, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                gpu.state().buffers.insert((*p_made.as_ptr()).0, info.size);
                gpu.note_bindable(*p_made.as_ptr(), usage);
            };
            fence("vkCreateBuffer", keep, || ());
        }
        result
    }
    destroy_buffer = fn(device: Device, it: Buffer, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        let forget = || {
            let mut state = gpu.state();
            state.buffers.remove(&it.0);
            state.bindable.remove(&it.0);
            state.buffered.forget(it);
            let name = state.names.end(ObjectType::BUFFER, it.0);
            state.addresses.remove(it.0, name);
        };
        fence("vkDestroyBuffer", forget, || ());
        next(device, it, p_allocator);
    }
    create_buffer_view = fn(device: Device, p_info: Ptr<BufferViewCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<BufferView>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                let mut state = gpu.state();
                let texels = state.texels(&*p_info.as_ptr());
                state.views.insert((*p_made.as_ptr()).0, texels);
            };
            fence("vkCreateBufferView", keep, || ());
        }
        result
    }
    destroy_buffer_view = fn(device: Device, it: BufferView, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        fence("vkDestroyBufferView", || _ = gpu.state().views.remove(&it.0), || ());
        next(device, it, p_allocator);
    }
    allocate_descriptor_sets = fn(device: Device, p_info: Ptr<DescriptorSetAllocateInfo>, p_made: Ptr<DescriptorSet>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_made);
        if result == Result::SUCCESS {
            fence("vkAllocateDescriptorSets", || gpu.state().add_sets(&*p_info.as_ptr(), p_made), || ());
        }
        result
    }
    free_descriptor_sets = fn(device: Device, pool: DescriptorPool, count: u32, p_sets: Ptr<DescriptorSet>) -> Result, |gpu, next| {
        let forget = || {
            let mut state = gpu.state();
            slice(p_sets, count).iter().for_each(|it| drop(state.sets.remove(&it.0)));
            gpu.sets_changed();
        };
        fence("vkFreeDescriptorSets", forget, || ());
        next(device, pool, count, p_sets)
    }
    reset_descriptor_pool = fn(device: Device, pool: DescriptorPool, flags: DescriptorPoolResetFlags) -> Result, |gpu, next| {
        fence("vkResetDescriptorPool", || gpu.forget_pool(pool), || ());
        next(device, pool, flags)
    }
    destroy_descriptor_pool = fn(device: Device, pool: DescriptorPool, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        fence("vkDestroyDescriptorPool", || gpu.forget_pool(pool), || ());
        next(device, pool, p_allocator);
    }
    update_descriptor_sets = fn(device: Device, write_count: u32, p_writes: Ptr<WriteDescriptorSet>, copy_count: u32, p_copies: Ptr<CopyDescriptorSet>) -> (), |gpu, next| {
        next(device, write_count, p_writes, copy_count, p_copies);
        let note = || {
            let mut state = gpu.state();
            slice(p_writes, write_count).iter().for_each(|it| state.write(it));
            slice(p_copies, copy_count).iter().for_each(|it| state.copy(it));
            gpu.sets_changed();
        };
        fence("vkUpdateDescriptorSets", note, || ());
    }
    allocate_command_buffers = fn(device: Device, p_info: Ptr<CommandBufferAllocateInfo>, p_made: Ptr<CommandBuffer>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_made);
        if result == Result::SUCCESS {
            let keep = || {
                let info = &*p_info.as_ptr();
                let made = slice(p_made, info.command_buffer_count);
                let is_primary = info.level == CommandBufferLevel::PRIMARY;
                made.iter().for_each(|it| gpu.add_commands(it.0, info.command_pool.0, is_primary));
            };
            fence("vkAllocateCommandBuffers", keep, || ());
        }
        result
    }
    begin_command_buffer = fn(commands: CommandBuffer, p_info: Ptr<CommandBufferBeginInfo>) -> Result, |gpu, next| {
        fence("vkBeginCommandBuffer", || gpu.commands_end(&[commands.0], false), || ());
        next(commands, p_info)
    }
    reset_command_buffer = fn(commands: CommandBuffer, flags: CommandBufferResetFlags) -> Result, |gpu, next| {
        fence("vkResetCommandBuffer", || gpu.commands_end(&[commands.0], false), || ());
        next(commands, flags)
    }
    free_command_buffers = fn(device: Device, pool: CommandPool, count: u32, p_commands: Ptr<CommandBuffer>) -> (), |gpu, next| {
        let end = || {
            let handles: Vec<u64> = slice(p_commands, count).iter().map(|it| it.0).collect();
            gpu.commands_end(&handles, true);
        };
        fence("vkFreeCommandBuffers", end, || ());
        next(device, pool, count, p_commands);
    }
    create_command_pool = fn(device: Device, p_info: Ptr<CommandPoolCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<CommandPool>) -> Result, |gpu, next| {
        let result = next(device, p_info, p_allocator, p_made);
        if result == Result::SUCCESS && (*p_info.as_ptr()).flags.0 & CommandPoolCreateFlags::PROTECTED.0 != 0 {
            let keep = || _ = gpu.state().protected_pools.insert((*p_made.as_ptr()).0);
            fence("vkCreateCommandPool", keep, || ());
        }
        result
    }
    reset_command_pool = fn(device: Device, pool: CommandPool, flags: CommandPoolResetFlags) -> Result, |gpu, next| {
        fence("vkResetCommandPool", || gpu.pool_ends(pool, false), || ());
        next(device, pool, flags)
    }
    destroy_command_pool = fn(device: Device, pool: CommandPool, p_allocator: Ptr<Opaque>) -> (), |gpu, next| {
        fence("vkDestroyCommandPool", || gpu.pool_ends(pool, true), || ());
        next(device, pool, p_allocator);
    }
    cmd_bind_pipeline = fn(commands: CommandBuffer, point: PipelineBindPoint, pipeline: Pipeline) -> (), |gpu, next| {
        next(commands, point, pipeline);
        let note = || {
            let checked = gpu.state().pipelines.get(&pipeline.0).cloned();
            if let Some(point) = point_of(point) {
                gpu.with_commands(commands, |it| it.bind_pipeline(point, pipeline, checked));
            }
        };
        fence("vkCmdBindPipeline", note, || ());
    }
    cmd_bind_descriptor_sets = fn(commands: CommandBuffer, point: PipelineBindPoint, layout: PipelineLayout, first: u32, count: u32, p_sets: Ptr<DescriptorSet>, offset_count: u32, p_offsets: Ptr<u32>) -> (), |gpu, next| {
        next(commands, point, layout, first, count, p_sets, offset_count, p_offsets);
        let bind = BindCall { layout, first, sets: slice(p_sets, count), offsets: slice(p_offsets, offset_count) };
        fence("vkCmdBindDescriptorSets", || gpu.bound(commands, point_of(point).into_iter(), &bind), || ());
    }
    cmd_bind_descriptor_sets2 = fn(commands: CommandBuffer, p_info: Ptr<BindDescriptorSetsInfo>) -> (), |gpu, next| {
        next(commands, p_info);
        let note = || {
            let it = &*p_info.as_ptr();
            let sets = slice(it.p_descriptor_sets, it.descriptor_set_count);
            let offsets = slice(it.p_dynamic_offsets, it.dynamic_offset_count);
            let bind = BindCall { layout: it.layout, first: it.first_set, sets, offsets };
            gpu.bound(commands, points_of(it.stage_flags), &bind);
        };
        fence("vkCmdBindDescriptorSets2", note, || ());
    }
    cmd_push_constants = fn(commands: CommandBuffer, layout: PipelineLayout, stages: ShaderStageFlags, offset: u32, size: u32, p_values: Ptr<u8>) -> (), |gpu, next| {
        let all = || gpu.pushed(commands, layout, (stages, offset), (p_values, size));
        let all = fence("vkCmdPushConstants", all, || stages);
        next(commands, layout, all, offset, size, p_values);
    }
    cmd_push_constants2 = fn(commands: CommandBuffer, p_info: Ptr<PushConstantsInfo>) -> (), |gpu, next| {
        let it = &*p_info.as_ptr();
        let all = || gpu.pushed(commands, it.layout, (it.stage_flags, it.offset), (it.p_values, it.size));
        let all = fence("vkCmdPushConstants2", all, || it.stage_flags);
        next(commands, Ptr::to(&PushConstantsInfo { stage_flags: all, ..*it }));
    }
    cmd_execute_commands = fn(commands: CommandBuffer, count: u32, p_secondaries: Ptr<CommandBuffer>) -> (), |gpu, next| {
        next(commands, count, p_secondaries);
        let secondaries = || slice(p_secondaries, count).iter().map(|it| it.0);
        fence("vkCmdExecuteCommands", || gpu.with_commands(commands, |it| it.execute(secondaries())), || ());
    }
    queue_submit = fn(queue: Queue, count: u32, p_submits: Ptr<SubmitInfo>, signaled: Fence) -> Result, |gpu, next| {
        let note = || {
            let mut batch = Batch::default();
            slice(p_submits, count).iter().for_each(|it| batch.add(it));
            gpu.submit(queue, signaled, batch);
        };
        // Before the call: another thread may wait for the fence at once.
        fence("vkQueueSubmit", note, || ());
        gpu.after_call(next(queue, count, p_submits, signaled))
    }
    queue_submit2 = fn(queue: Queue, count: u32, p_submits: Ptr<SubmitInfo2>, signaled: Fence) -> Result, |gpu, next| {
        let note = || {
            let mut batch = Batch::default();
            slice(p_submits, count).iter().for_each(|it| batch.add2(it));
            gpu.submit(queue, signaled, batch);
        };
        fence("vkQueueSubmit2", note, || ());
        gpu.after_call(next(queue, count, p_submits, signaled))
    }
    signal_semaphore = fn(device: Device, p_info: Ptr<SemaphoreSignalInfo>) -> Result, |gpu, next| {
        fence("vkSignalSemaphore", || gpu.host_signals(), || ());
        next(device, p_info)
    }
    set_event = fn(device: Device, it: Event) -> Result, |gpu, next| {
        fence("vkSetEvent", || gpu.host_signals(), || ());
        next(device, it)
    }
    wait_semaphores = fn(device: Device, p_info: Ptr<SemaphoreWaitInfo>, timeout: u64) -> Result, |gpu, next| {
        let result = gpu.after_call(next(device, p_info, timeout));
        if result == Result::SUCCESS {
            fence("vkWaitSemaphores", || gpu.semaphores_waited(&*p_info.as_ptr()), || ());
        }
        result
    }
    get_semaphore_counter_value = fn(device: Device, it: Semaphore, p_value: Ptr<u64>) -> Result, |gpu, next| {
        let result = gpu.after_call(next(device, it, p_value));
        if result == Result::SUCCESS {
            fence("vkGetSemaphoreCounterValue", || gpu.counter_reached(it, *p_value.as_ptr()), || ());
        }
        result
    }
    wait_for_fences = fn(device: Device, count: u32, p_fences: Ptr<Fence>, wait_all: Bool32, timeout: u64) -> Result, |gpu, next| {
        let result = gpu.after_call(next(device, count, p_fences, wait_all, timeout));
        if result == Result::SUCCESS {
            fence("vkWaitForFences", || gpu.fences_waited(count, p_fences, wait_all.0 != 0), || ());
        }
        result
    }
    get_fence_status = fn(device: Device, it: Fence) -> Result, |gpu, next| {
        let result = gpu.after_call(next(device, it));
        if result == Result::SUCCESS {
            fence("vkGetFenceStatus", || gpu.fence_signaled(it), || ());
        }
        result
    }
    queue_wait_idle = fn(queue: Queue) -> Result, |gpu, next| {
        let result = gpu.after_call(next(queue));
        if result == Result::SUCCESS {
            fence("vkQueueWaitIdle", || gpu.queue_idle(queue), || ());
        }
        result
    }
    device_wait_idle = fn(device: Device) -> Result, |gpu, next| {
        let result = gpu.after_call(next(device));
        if result == Result::SUCCESS {
            fence("vkDeviceWaitIdle", || gpu.device_idle(), || ());
        }
        result
    }
    set_debug_utils_object_name_ext = fn(device: Device, p_info: Ptr<DebugUtilsObjectNameInfoEXT>) -> Result, |gpu, next| {
        let note = || {
            let it = &*p_info.as_ptr();
            let name = crate::entry::text(it.p_object_name).map(|it| it.to_string_lossy().into_owned());
            gpu.state().names.set(it.object_type, it.object_handle, name);
        };
        fence("vkSetDebugUtilsObjectNameEXT", note, || ());
        next(device, p_info)
    }
}

/// What a call says that finds no memory.
const LACKS: [Result; 3] =
    [Result::ERROR_OUT_OF_DEVICE_MEMORY, Result::ERROR_OUT_OF_HOST_MEMORY, Result::ERROR_TOO_MANY_OBJECTS];

/// The stages of ray tracing.
pub(super) const RAYS: u32 = ShaderStageFlags::RAYGEN_KHR.0
    | ShaderStageFlags::ANY_HIT_KHR.0
    | ShaderStageFlags::CLOSEST_HIT_KHR.0
    | ShaderStageFlags::MISS_KHR.0
    | ShaderStageFlags::INTERSECTION_KHR.0
    | ShaderStageFlags::CALLABLE_KHR.0;

/// The bind points that stages belong to.
pub(super) fn points_of(stages: ShaderStageFlags) -> impl Iterator<Item = usize> + Clone {
    let compute = ShaderStageFlags::COMPUTE.0;
    let graphics = ShaderStageFlags::ALL_GRAPHICS.0 | ShaderStageFlags::TASK_EXT.0 | ShaderStageFlags::MESH_EXT.0;
    [graphics, compute, RAYS].into_iter().enumerate().filter(move |it| it.1 & stages.0 != 0).map(|it| it.0)
}

impl Gpu {
    fn forget_pool(&self, pool: DescriptorPool) {
        self.state().forget_pool(pool);
        self.sets_changed();
    }

    pub(super) fn with_commands(&self, handle: CommandBuffer, work: impl FnOnce(&mut Commands)) {
        if let Some(slot) = self.slot(handle.0) {
            slot.with(work);
        }
    }

    /// Sets were bound.
    #[inline(always)]
    fn bound(&self, handle: CommandBuffer, points: impl Iterator<Item = usize> + Clone, bind: &BindCall<'_>) {
        let Some(slot) = self.slot(handle.0) else { return };
        if slot.with(|it| it.bind_known(points.clone(), bind)) == Some(false) {
            let Some(layout) = self.state().layouts.get(&bind.layout.0).cloned() else { return };
            slot.with(|it| it.bind_new(points, layout, bind));
        }
    }

    /// What became of a call: if the device is lost, what was recorded until then is told.
    fn after_call(&'static self, result: Result) -> Result {
        if result.0 < 0 {
            // What was submitted may not have been executed.
            self.stop_feedback();
        }
        if result == Result::ERROR_DEVICE_LOST {
            fence("a lost device", || self.device_idle(), || ());
        }
        result
    }

    /// Makes pipelines with checks, or without them where the driver does not want them.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid call, and `create` the driver's function for them.
    pub(super) unsafe fn create_planned<T>(
        &self,
        (p_infos, changed): (Ptr<T>, &[T]),
        cache: PipelineCache,
        plans: Vec<Option<Plan>>,
        p_made: Ptr<Pipeline>,
        create: impl Fn(PipelineCache, Ptr<T>) -> Result,
    ) -> Result {
        if plans.iter().all(Option::is_none) {
            return create(cache, p_infos);
        }
        let is_bare = plans.iter().flatten().all(Plan::is_bare);
        // Not through the application's cache: it would fill with shaders that it never asks for again.
        let mut result = if is_bare { create(cache, p_infos) } else { create(self.cache, Ptr::to_slice(changed)) };
        let is_planned = result.0 >= 0;
        if !is_planned && !is_bare {
            result = create(cache, p_infos);
        }
        let finish = || {
            // SAFETY: the call wrote as many as there are plans.
            let made = unsafe { slice(p_made, plans.len() as u32) }.to_vec();
            self.finish(plans, &made, is_planned);
        };
        fence("pipelines", finish, || ());
        result
    }
}
