//! Hooks for layouts, shader modules, render passes, pipelines, memory and buffers.

use std::sync::Arc;

use lavascope_abi::*;

use super::{deref_param, hooks, read_output};
use crate::DeviceTable;
use crate::gpu::pipeline::layouts::SetLayoutState;
use crate::gpu::pipeline::plan::{PipelinePlan, read_words};
use crate::gpu::pipeline::recipe::PipelineRecipe;
use crate::gpu::pipeline::recipe_context::{subpasses_of, subpasses_of_2};
use crate::gpu::pipeline::selection;
use crate::gpu::{checks_of, slice};
use crate::process::catch_panic::{catch_panic, run_if_enabled};

hooks! {
    create_descriptor_set_layout = fn(device: Device, p_info: Ptr<DescriptorSetLayoutCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DescriptorSetLayout>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateDescriptorSetLayout-pSetLayout-parameter: a place for the handle, which the call has written.
            let (info, made) = unsafe { (deref_param(p_info), read_output(p_made)) };
            let keep = || {
                // SAFETY: VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter: valid, with its bindings and its chain.
                let mut layout = unsafe { SetLayoutState::read(info) };
                gpu.query_binding_offsets(made, &mut layout);
                gpu.state().set_layouts.insert(made.0, Arc::new(layout));
            };
            // Runs even if the layer is disabled, because the sets decide how a pipeline layout is changed.
            catch_panic("vkCreateDescriptorSetLayout", keep, || ());
        }
        result
    }
    destroy_descriptor_set_layout = fn(device: Device, set_layout: DescriptorSetLayout, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        let is_kept = || {
            let mut state = gpu.state();
            state.set_layouts.remove(&set_layout.0);
            state.shader_objects.retain_set_layout(set_layout, p_allocator)
        };
        if !catch_panic("vkDestroyDescriptorSetLayout", is_kept, || false) {
            forward();
        }
    }
    create_pipeline_layout = fn(device: Device, p_info: Ptr<PipelineLayoutCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<PipelineLayout>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_pipeline_layout else { return forward() };
        // SAFETY: the driver's function; VUID-vkCreatePipelineLayout-pCreateInfo-parameter: a valid structure until the
        // call returns; VUID-vkCreatePipelineLayout-pPipelineLayout-parameter: a place for the handle.
        let create = || unsafe { gpu.create_layout(next, p_info, p_allocator, p_made) };
        // Runs even if the layer is disabled: the layout may have to be compatible with layouts that were changed before,
        // so it is changed by the same rule.
        catch_panic("vkCreatePipelineLayout", create, || None).unwrap_or_else(forward)
    }
    destroy_pipeline_layout = fn(device: Device, pipeline_layout: PipelineLayout, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        let forget = || {
            gpu.state().pipeline_layouts.remove(&pipeline_layout.0);
            gpu.invalidate_choices();
        };
        catch_panic("vkDestroyPipelineLayout", forget, || ());
        forward();
        catch_panic("vkDestroyPipelineLayout", || gpu.destroy_unused_layouts(), || ());
    }
    create_shader_module = fn(device: Device, p_info: Ptr<ShaderModuleCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<ShaderModule>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateShaderModule-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateShaderModule-pShaderModule-parameter: a place for the handle, which the call has written.
            let (info, made) = unsafe { (deref_param(p_info), read_output(p_made)) };
            let keep = || {
                // SAFETY: VUID-vkCreateShaderModule-pCreateInfo-parameter: valid, with its code and its chain.
                let (words, is_requested) = unsafe { (read_words(info), selection::requests_checks(info.p_next)) };
                let mut state = gpu.state();
                let name = state.names.share(ObjectType::SHADER_MODULE, made.0);
                state.modules.insert(made.0, (words, name));
                if is_requested {
                    state.requested_modules.insert(made.0);
                }
            };
            run_if_enabled("vkCreateShaderModule", keep, || ());
        }
        result
    }
    destroy_shader_module = fn(device: Device, shader_module: ShaderModule, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        let forget = || {
            let mut state = gpu.state();
            state.modules.remove(&shader_module.0);
            state.names.remove(ObjectType::SHADER_MODULE, shader_module.0);
            state.requested_modules.remove(&shader_module.0);
        };
        catch_panic("vkDestroyShaderModule", forget, || ());
        forward();
    }
    create_render_pass = fn(device: Device, p_info: Ptr<RenderPassCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<RenderPass>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateRenderPass-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateRenderPass-pRenderPass-parameter: a place for the handle, which the call has written.
            let (info, made) = unsafe { (deref_param(p_info), read_output(p_made)) };
            let keep = || {
                // SAFETY: the info of this call.
                let subpasses = unsafe { subpasses_of(info) };
                gpu.state().render_passes.add(made, subpasses);
            };
            run_if_enabled("vkCreateRenderPass", keep, || ());
        }
        result
    }
    create_render_pass2 = fn(device: Device, p_info: Ptr<RenderPassCreateInfo2>, p_allocator: Ptr<Opaque>, p_made: Ptr<RenderPass>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateRenderPass2-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateRenderPass2-pRenderPass-parameter: a place for the handle, which the call has written.
            let (info, made) = unsafe { (deref_param(p_info), read_output(p_made)) };
            let keep = || {
                // SAFETY: the info of this call.
                let subpasses = unsafe { subpasses_of_2(info) };
                gpu.state().render_passes.add(made, subpasses);
            };
            run_if_enabled("vkCreateRenderPass2", keep, || ());
        }
        result
    }
    destroy_render_pass = fn(device: Device, render_pass: RenderPass, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        if !catch_panic("vkDestroyRenderPass", || gpu.retain_render_pass(render_pass, p_allocator), || false) {
            forward();
        }
    }
    create_compute_pipelines = fn(device: Device, cache: PipelineCache, count: u32, p_infos: Ptr<ComputePipelineCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Pipeline>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_compute_pipelines else { return forward() };
        // SAFETY: VUID-vkCreateComputePipelines-pCreateInfos-parameter: an array of so many until the call returns.
        let infos = unsafe { slice(p_infos, count) };
        let plan = |create_info: &ComputePipelineCreateInfo| {
            // SAFETY: VUID-vkCreateComputePipelines-pCreateInfos-parameter: each is valid, with its chain and its stage;
            // VUID-vkCreateComputePipelines-device-parameter: the device is alive until the call returns.
            unsafe {
                let mut plan = gpu.plan_pipeline(create_info.layout, (create_info.flags, create_info.p_next), std::slice::from_ref(&create_info.stage))?;
                if plan.needs_recipe(gpu.config.selection.is_limited()) {
                    plan.recipe = PipelineRecipe::compute(create_info, plan.layout_and_sources());
                }
                Some(plan)
            }
        };
        let plans = run_if_enabled("vkCreateComputePipelines", || infos.iter().map(plan).collect::<Vec<_>>(), Vec::new);
        let change = |(info, plan): (&ComputePipelineCreateInfo, &Option<PipelinePlan>)| {
            let stage = plan.as_ref().and_then(|it| it.infos.first()).copied().unwrap_or(info.stage);
            ComputePipelineCreateInfo { stage, ..*info }
        };
        let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
        // SAFETY: the driver's function, with the application's parameters, but for a cache of the device and infos that
        // have code of ours, whose modules and constants live in `plans`.
        let create = |cache, infos| unsafe { next(device, cache, count, infos, p_allocator, p_made) };
        // SAFETY: VUID-vkCreateComputePipelines-pPipelines-parameter: places for `count` handles, which is as many as
        // there are infos and plans; they are made with `p_allocator`.
        unsafe { gpu.create_pipelines((p_infos, &changed), cache, plans, (p_made, p_allocator), create) }
    }
    create_graphics_pipelines = fn(device: Device, cache: PipelineCache, count: u32, p_infos: Ptr<GraphicsPipelineCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Pipeline>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_graphics_pipelines else { return forward() };
        // SAFETY: VUID-vkCreateGraphicsPipelines-pCreateInfos-parameter: an array of so many until the call returns.
        let infos = unsafe { slice(p_infos, count) };
        let plan = |create_info: &GraphicsPipelineCreateInfo| {
            // SAFETY: VUID-vkCreateGraphicsPipelines-pCreateInfos-parameter: each is valid, with its chain and its
            // stages (VUID-VkGraphicsPipelineCreateInfo-pStages-06600, or there are none of them);
            // VUID-vkCreateGraphicsPipelines-device-parameter: the device is alive until the call returns.
            unsafe {
                let mut plan = gpu.plan_pipeline(create_info.layout, (create_info.flags, create_info.p_next), slice(create_info.p_stages, create_info.stage_count))?;
                let pass = gpu.state().render_passes.get(create_info.render_pass);
                if plan.is_whole() && plan.needs_recipe(gpu.config.selection.is_limited()) {
                    plan.recipe = PipelineRecipe::graphics(create_info, plan.layout_and_sources(), pass);
                }
                Some(plan)
            }
        };
        // Runs even when checks are off: a pipeline linked from instrumented libraries still needs tables.
        let plans = catch_panic("vkCreateGraphicsPipelines", || infos.iter().map(plan).collect::<Vec<_>>(), Vec::new);
        let change = |(info, plan): (&GraphicsPipelineCreateInfo, &Option<PipelinePlan>)| {
            let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
            GraphicsPipelineCreateInfo { p_stages: stages, ..*info }
        };
        let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
        // SAFETY: the driver's function, with the application's parameters, but for a cache of the device and infos that
        // have code of ours, whose stages, modules and constants live in `plans`.
        let create = |cache, infos| unsafe { next(device, cache, count, infos, p_allocator, p_made) };
        // SAFETY: VUID-vkCreateGraphicsPipelines-pPipelines-parameter: places for `count` handles, which is as many as
        // there are infos and plans; they are made with `p_allocator`.
        unsafe { gpu.create_pipelines((p_infos, &changed), cache, plans, (p_made, p_allocator), create) }
    }
    destroy_pipeline = fn(device: Device, pipeline: Pipeline, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        let forget = || {
            let mut state = gpu.state();
            state.libraries.remove(&pipeline.0);
            let removed = state.pipelines.remove(&pipeline.0);
            drop(state);
            if let Some(checked) = removed {
                gpu.invalidate_choices();
                gpu.retire_pipeline(&checked);
                drop(checked);
                gpu.destroy_unused_passes();
            }
            gpu.state().names.remove(ObjectType::PIPELINE, pipeline.0);
        };
        catch_panic("vkDestroyPipeline", forget, || ());
        forward();
    }
    allocate_memory = fn(device: Device, p_info: Ptr<MemoryAllocateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<DeviceMemory>) -> Result, |gpu, forward| {
        let mut result = forward();
        // Our unused memory is freed for the application.
        if OUT_OF_MEMORY_RESULTS.contains(&result) && catch_panic("vkAllocateMemory", || gpu.release_spares(), || false) {
            result = forward();
        }
        if result == Result::SUCCESS {
            gpu.allocations.add();
        }
        result
    }
    free_memory = fn(device: Device, device_memory: DeviceMemory, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        if device_memory.0 != 0 {
            gpu.allocations.remove();
            catch_panic("vkFreeMemory", || gpu.forget_mapping(device_memory), || ());
        }
        forward();
    }
    get_buffer_device_address = fn(device: Device, p_info: Ptr<BufferDeviceAddressInfo>) -> u64, |gpu, forward| {
        let address = forward();
        // SAFETY: VUID-vkGetBufferDeviceAddress-pInfo-parameter: a valid structure until the call returns.
        let buffer = unsafe { deref_param(p_info) }.buffer;
        let note = || {
            let mut state = gpu.state();
            if let Some(bytes) = state.buffer_sizes.get(&buffer.0).copied() {
                state.addresses.add(buffer.0, address, bytes);
            }
        };
        run_if_enabled("vkGetBufferDeviceAddress", note, || ());
        address
    }
    create_buffer = fn(device: Device, p_info: Ptr<BufferCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<Buffer>) -> Result, |gpu, forward| {
        let Some(next) = gpu.next.create_buffer else { return forward() };
        // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter: a valid structure until the call returns.
        let info = unsafe { deref_param(p_info) };
        // SAFETY: VUID-vkCreateBuffer-pCreateInfo-parameter: valid, with its chain.
        let usage = run_if_enabled("vkCreateBuffer", || unsafe { gpu.buffer_usage(info) }, || info.usage);
        let changed = BufferCreateInfo { usage, ..*info };
        // SAFETY: the driver's function, with the application's parameters, but for a use more, which is of a feature
        // that every device has.
        let result = unsafe { next(device, Ptr::to(&changed), p_allocator, p_made) };
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateBuffer-pBuffer-parameter: a place for the handle, which the call has written.
            let made = unsafe { read_output(p_made) };
            let keep = || {
                gpu.state().buffer_sizes.insert(made.0, info.size);
                gpu.track_bindable_buffer(made, usage);
            };
            run_if_enabled("vkCreateBuffer", keep, || ());
        }
        result
    }
    destroy_buffer = fn(device: Device, item: Buffer, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        let forget = || {
            let mut state = gpu.state();
            state.buffer_sizes.remove(&item.0);
            state.bindable.remove(&item.0);
            state.descriptor_buffers.forget(item);
            let name = state.names.remove(ObjectType::BUFFER, item.0);
            state.addresses.remove(item.0, name);
        };
        catch_panic("vkDestroyBuffer", forget, || ());
        forward();
    }
    create_buffer_view = fn(device: Device, p_info: Ptr<BufferViewCreateInfo>, p_allocator: Ptr<Opaque>, p_made: Ptr<BufferView>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkCreateBufferView-pCreateInfo-parameter: a valid structure until the call returns;
            // VUID-vkCreateBufferView-pView-parameter: a place for the handle, which the call has written.
            let (info, made) = unsafe { (deref_param(p_info), read_output(p_made)) };
            let keep = || {
                let mut state = gpu.state();
                let texels = state.texels(info);
                state.view_texels.insert(made.0, texels);
            };
            run_if_enabled("vkCreateBufferView", keep, || ());
        }
        result
    }
    destroy_buffer_view = fn(device: Device, buffer_view: BufferView, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        catch_panic("vkDestroyBufferView", || _ = gpu.state().view_texels.remove(&buffer_view.0), || ());
        forward();
    }
    set_debug_utils_object_name_ext = fn(device: Device, p_info: Ptr<DebugUtilsObjectNameInfoEXT>) -> Result, |gpu, forward| {
        let note = || {
            // SAFETY: VUID-vkSetDebugUtilsObjectNameEXT-pNameInfo-parameter: a valid structure until the call returns;
            // VUID-VkDebugUtilsObjectNameInfoEXT-pObjectName-parameter: null, or a string that ends with a zero.
            let (name_info, name) = unsafe {
                let debug_utils_object_name_info = deref_param(p_info);
                (debug_utils_object_name_info, crate::loader::proc_addr::c_str(debug_utils_object_name_info.p_object_name))
            };
            let name = name.map(|it| it.to_string_lossy().into_owned());
            gpu.state().names.set(name_info.object_type, name_info.object_handle, name.clone());
            name.iter().for_each(|it| gpu.select_by_name(name_info.object_type, name_info.object_handle, it));
        };
        run_if_enabled("vkSetDebugUtilsObjectNameEXT", note, || ());
        forward()
    }
}

/// Results of calls that ran out of memory.
const OUT_OF_MEMORY_RESULTS: [Result; 3] =
    [Result::ERROR_OUT_OF_DEVICE_MEMORY, Result::ERROR_OUT_OF_HOST_MEMORY, Result::ERROR_TOO_MANY_OBJECTS];
