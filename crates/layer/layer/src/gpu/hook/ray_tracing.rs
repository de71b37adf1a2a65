//! Hooks for the creation of ray tracing pipelines.
//!
//! The application copies the handles of a pipeline's shaders into its shader binding tables. Such a pipeline therefore
//! has one variant, which expects nothing of what is bound. Creation is never deferred
//! (`VK_KHR_deferred_host_operations`), because the driver would read memory of ours later: the call returns
//! `VK_OPERATION_NOT_DEFERRED_KHR`.

use lavascope_abi::*;

use crate::DeviceTable;
use crate::gpu::pipeline::plan::PipelinePlan;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::catch_panic;

/// Installs the hooks.
pub(crate) fn install(table: &mut DeviceTable) {
    let create: FnCreateRayTracingPipelinesKHR = create;
    let create_nv: FnCreateRayTracingPipelinesNV = create_nv;
    table.create_ray_tracing_pipelines_khr = table.create_ray_tracing_pipelines_khr.map(|_| create);
    table.create_ray_tracing_pipelines_nv = table.create_ray_tracing_pipelines_nv.map(|_| create_nv);
}

unsafe extern "system" fn create(
    device: Device,
    deferred: DeferredOperationKHR,
    cache: PipelineCache,
    count: u32,
    p_infos: Ptr<RayTracingPipelineCreateInfoKHR>,
    p_allocator: Ptr<Opaque>,
    p_made: Ptr<Pipeline>,
) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkCreateRayTracingPipelinesKHR-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_ray_tracing_pipelines_khr else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: VUID-vkCreateRayTracingPipelinesKHR-pCreateInfos-parameter: an array of so many until the call returns.
    let infos = unsafe { slice(p_infos, count) };
    // SAFETY: VUID-vkCreateRayTracingPipelinesKHR-pCreateInfos-parameter: each is valid, with its chain and its arrays.
    let plan = |it: &RayTracingPipelineCreateInfoKHR| unsafe { gpu.plan_ray_tracing_khr(it) };
    let plans = || infos.iter().map(plan).collect::<Vec<_>>();
    // Runs even if the layer is disabled, because a pipeline made of libraries with our code needs tables.
    let plans = catch_panic("vkCreateRayTracingPipelinesKHR", plans, || infos.iter().map(|_| None).collect());
    let change = |(info, plan): (&RayTracingPipelineCreateInfoKHR, &Option<PipelinePlan>)| {
        let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
        RayTracingPipelineCreateInfoKHR { p_stages: stages, ..*info }
    };
    let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
    if plans.iter().all(Option::is_none) {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        return unsafe { next(device, deferred, cache, count, p_infos, p_allocator, p_made) };
    }
    let none = DeferredOperationKHR::default();
    // SAFETY: the driver's function, with the application's parameters, but for a cache of the device, nothing that is
    // deferred, and infos that have code of ours, whose stages, modules and constants live in `plans`.
    let create = |cache, infos| unsafe { next(device, none, cache, count, infos, p_allocator, p_made) };
    // SAFETY: VUID-vkCreateRayTracingPipelinesKHR-pPipelines-parameter: places for `count` handles, which is as many as
    // there are infos and plans; they are made with `p_allocator`.
    let result = unsafe { gpu.create_pipelines((p_infos, &changed), cache, plans, (p_made, p_allocator), create) };
    match result {
        Result::SUCCESS if deferred.0 != 0 => Result::OPERATION_NOT_DEFERRED_KHR,
        _ => result,
    }
}

unsafe extern "system" fn create_nv(
    device: Device,
    cache: PipelineCache,
    count: u32,
    p_infos: Ptr<RayTracingPipelineCreateInfoNV>,
    p_allocator: Ptr<Opaque>,
    p_made: Ptr<Pipeline>,
) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkCreateRayTracingPipelinesNV-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_ray_tracing_pipelines_nv else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: VUID-vkCreateRayTracingPipelinesNV-pCreateInfos-parameter: an array of so many until the call returns.
    let infos = unsafe { slice(p_infos, count) };
    let plan = |create_info: &RayTracingPipelineCreateInfoNV| {
        // SAFETY: VUID-vkCreateRayTracingPipelinesNV-pCreateInfos-parameter: each is valid, with its chain and its stages.
        unsafe {
            gpu.plan_ray_tracing(
                create_info.layout,
                (create_info.flags, create_info.p_next),
                slice(create_info.p_stages, create_info.stage_count),
                &[],
            )
        }
    };
    let plans = || infos.iter().map(plan).collect::<Vec<_>>();
    // Runs even if the layer is disabled, because a pipeline made of libraries with our code needs tables.
    let plans = catch_panic("vkCreateRayTracingPipelinesNV", plans, || infos.iter().map(|_| None).collect());
    let change = |(info, plan): (&RayTracingPipelineCreateInfoNV, &Option<PipelinePlan>)| {
        let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
        RayTracingPipelineCreateInfoNV { p_stages: stages, ..*info }
    };
    let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
    // SAFETY: the driver's function, with the application's parameters, but for a cache of the device and infos that have
    // code of ours, whose stages, modules and constants live in `plans`.
    let create = |cache, infos| unsafe { next(device, cache, count, infos, p_allocator, p_made) };
    // SAFETY: VUID-vkCreateRayTracingPipelinesNV-pPipelines-parameter: places for `count` handles, which is as many as
    // there are infos and plans; they are made with `p_allocator`.
    unsafe { gpu.create_pipelines((p_infos, &changed), cache, plans, (p_made, p_allocator), create) }
}

impl DeviceChecks {
    /// # Safety
    ///
    /// The info must be valid, with its chain and its arrays.
    unsafe fn plan_ray_tracing_khr(&self, info: &RayTracingPipelineCreateInfoKHR) -> Option<PipelinePlan> {
        // SAFETY: the contract of this function: the info leads to an array of as many stages as it says, and to null or
        // to a valid list of libraries (VUID-VkRayTracingPipelineCreateInfoKHR-pLibraryInfo-parameter).
        unsafe {
            let libraries = info.p_library_info.as_ptr().as_ref();
            let libraries = libraries.map_or(&[][..], |it| slice(it.p_libraries, it.library_count));
            let stages = slice(info.p_stages, info.stage_count);
            self.plan_ray_tracing(info.layout, (info.flags, info.p_next), stages, libraries)
        }
    }
}
