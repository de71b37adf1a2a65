//! Ray tracing pipelines in the place of the driver's: their shaders check themselves.
//!
//! The handles of a pipeline's shaders go into tables of the application, so such a pipeline has one form, which
//! expects nothing of what is bound. What could be made by and by is made at once: what the driver reads meanwhile
//! is ours.

use lavascope_abi::*;

use super::pipelines::Plan;
use super::{Gpu, gpu_of, slice};
use crate::DeviceTable;
use crate::fence::fence;

/// Puts our functions into a table.
pub(super) fn install(table: &mut DeviceTable) {
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
    // SAFETY: a device that is alive.
    let Some(gpu) = (unsafe { gpu_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_ray_tracing_pipelines_khr else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the application's own parameters, valid as the specification demands, here and below.
    let infos = unsafe { slice(p_infos, count) };
    let plan = |it: &RayTracingPipelineCreateInfoKHR| gpu.plan_khr(it);
    let plans = || infos.iter().map(plan).collect::<Vec<_>>();
    let plans = fence("vkCreateRayTracingPipelinesKHR", plans, || infos.iter().map(|_| None).collect());
    let change = |(info, plan): (&RayTracingPipelineCreateInfoKHR, &Option<Plan>)| {
        let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
        RayTracingPipelineCreateInfoKHR { p_stages: stages, ..*info }
    };
    let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
    if plans.iter().all(Option::is_none) {
        // SAFETY: as above.
        return unsafe { next(device, deferred, cache, count, p_infos, p_allocator, p_made) };
    }
    let none = DeferredOperationKHR::default();
    // SAFETY: as above.
    let create = |cache, infos| unsafe { next(device, none, cache, count, infos, p_allocator, p_made) };
    // SAFETY: as above.
    let result = unsafe { gpu.create_planned((p_infos, &changed), cache, plans, p_made, create) };
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
    // SAFETY: a device that is alive.
    let Some(gpu) = (unsafe { gpu_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_ray_tracing_pipelines_nv else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the application's own parameters, valid as the specification demands, here and below.
    let infos = unsafe { slice(p_infos, count) };
    let plan = |it: &RayTracingPipelineCreateInfoNV| {
        // SAFETY: as above.
        unsafe { gpu.plan_rays(it.layout, (it.flags, it.p_next), slice(it.p_stages, it.stage_count), &[]) }
    };
    let plans = || infos.iter().map(plan).collect::<Vec<_>>();
    let plans = fence("vkCreateRayTracingPipelinesNV", plans, || infos.iter().map(|_| None).collect());
    let change = |(info, plan): (&RayTracingPipelineCreateInfoNV, &Option<Plan>)| {
        let stages = plan.as_ref().map_or(info.p_stages, |it| Ptr::to_slice(&it.infos));
        RayTracingPipelineCreateInfoNV { p_stages: stages, ..*info }
    };
    let changed: Vec<_> = infos.iter().zip(&plans).map(change).collect();
    // SAFETY: as above.
    let create = |cache, infos| unsafe { next(device, cache, count, infos, p_allocator, p_made) };
    // SAFETY: as above.
    unsafe { gpu.create_planned((p_infos, &changed), cache, plans, p_made, create) }
}

impl Gpu {
    fn plan_khr(&self, info: &RayTracingPipelineCreateInfoKHR) -> Option<Plan> {
        // SAFETY: a valid info.
        unsafe {
            let libraries = info.p_library_info.as_ptr().as_ref();
            let libraries = libraries.map_or(&[][..], |it| slice(it.p_libraries, it.library_count));
            let stages = slice(info.p_stages, info.stage_count);
            self.plan_rays(info.layout, (info.flags, info.p_next), stages, libraries)
        }
    }
}
