//! Functions that replace those of the driver.
//!
//! Pipelines with checks are created with a pipeline cache of ours. The application's caches get nothing of ours and
//! keep their contents. So an empty cache stays empty, and a pipeline that is in such a cache is compiled again. If the
//! driver rejects a pipeline with checks, the layer creates it as the application requested.

mod commands;
pub(crate) mod device_request;
pub(crate) mod draws;
pub(crate) mod generated_commands;
pub(crate) mod host_visibility;
pub(crate) mod labels;
mod objects;
pub(crate) mod push_descriptors;
mod queues;
pub(crate) mod ray_tracing;
mod sets;

use lavascope_abi::*;

use super::{DeviceChecks, slice};
use crate::DeviceTable;
use crate::gpu::pipeline::plan::{PipelinePlan, REFUSED};
use crate::process::catch_panic::catch_panic;
use crate::report::coverage;

/// Defines a hook for each command, and a function that installs all of them. A body has the checks of the device, and
/// a function that passes the call on unchanged. To pass other parameters, it takes the driver's function from
/// `gpu.next`.
macro_rules! hooks {
    ($($name:ident = fn($first:ident: $first_ty:ty $(, $parameter:ident: $ty:ty)*) -> $result:ty, |$gpu:ident, $forward:ident| $body:block)*) => {
        $(unsafe extern "system" fn $name($first: $first_ty $(, $parameter: $ty)*) -> $result {
            // SAFETY: the loader calls this with the parameters of the application, whose first one is a dispatchable handle
            // that is alive until the call returns: every command has a rule `VUID-…-parameter` that says so of it.
            let Some($gpu) = (unsafe { checks_of($first.0) }) else { return Default::default() };
            let Some(next) = $gpu.next.$name else { return Default::default() };
            // SAFETY: the driver's function of this name, with the parameters that the application called ours with.
            let $forward = || unsafe { next($first $(, $parameter)*) };
            $body
        })*

        pub(crate) fn install(device_table: &mut DeviceTable) {
            $(if device_table.$name.is_some() {
                device_table.$name = Some($name);
            })*
        }
    };
}

pub(super) use hooks;

/// Installs all hooks.
pub(super) fn install(device_table: &mut DeviceTable) {
    objects::install(device_table);
    sets::install(device_table);
    commands::install(device_table);
    queues::install(device_table);
}

/// The value behind a pointer parameter of the application.
///
/// # Safety
///
/// It must lead to a `T` that is valid and that is not written until the application's call returns, and the result
/// must not be used longer than that.
pub(super) unsafe fn deref_param<'a, T>(parameter: Ptr<T>) -> &'a T {
    // SAFETY: the contract of this function: it leads to a valid `T` that is not written for as long as `'a`.
    unsafe { &*parameter.as_ptr() }
}

/// A value that the driver wrote for the application.
///
/// # Safety
///
/// The parameter must lead to a place that a call of the driver has filled with a `T`.
pub(super) unsafe fn read_output<T: Copy>(parameter: Ptr<T>) -> T {
    // SAFETY: the contract of this function: the driver has written a `T` there.
    unsafe { *parameter.as_ptr() }
}

/// The stages of ray tracing.
pub(crate) const RAY_TRACING_STAGES: u32 = ShaderStageFlags::RAYGEN_KHR.0
    | ShaderStageFlags::ANY_HIT_KHR.0
    | ShaderStageFlags::CLOSEST_HIT_KHR.0
    | ShaderStageFlags::MISS_KHR.0
    | ShaderStageFlags::INTERSECTION_KHR.0
    | ShaderStageFlags::CALLABLE_KHR.0;

/// The bind points of some stages.
pub(super) fn bind_points_of_stages(stages: ShaderStageFlags) -> impl Iterator<Item = usize> + Clone {
    let compute = ShaderStageFlags::COMPUTE.0;
    let graphics = ShaderStageFlags::ALL_GRAPHICS.0 | ShaderStageFlags::TASK_EXT.0 | ShaderStageFlags::MESH_EXT.0;
    [graphics, compute, RAY_TRACING_STAGES]
        .into_iter()
        .enumerate()
        .filter(move |it| it.1 & stages.0 != 0)
        .map(|it| it.0)
}

impl DeviceChecks {
    /// Reports shaders that the driver took only without checks, and that count as checked so far.
    pub(crate) fn report_rejected(&self, count: usize, why: &str) {
        coverage::retract_shaders(count);
        coverage::count_unchecked_shaders(count, why);
        self.warn_unchecked(why);
    }

    /// Makes pipelines with checks, or without them where the driver does not want them.
    ///
    /// # Safety
    ///
    /// `create` must call the driver for as many pipelines as there are plans, with the cache and the infos that it
    /// gets, with the callbacks `p_allocator`, into the array `p_made`. `p_infos` must be the infos of the application,
    /// and `changed` the same with the changes of the plans; there may be no plans at all.
    pub(super) unsafe fn create_pipelines<T>(
        &self,
        (p_infos, changed): (Ptr<T>, &[T]),
        cache: PipelineCache,
        plans: Vec<Option<PipelinePlan>>,
        (p_made, p_allocator): (Ptr<Pipeline>, Ptr<Opaque>),
        create: impl Fn(PipelineCache, Ptr<T>) -> Result,
    ) -> Result {
        if plans.iter().all(Option::is_none) {
            return create(cache, p_infos);
        }
        let is_bare = plans.iter().flatten().all(PipelinePlan::is_uninstrumented);
        // Not with the application's cache, which would fill with shaders that the application never requests.
        let mark = catch_panic("pipelines", || self.mark_compilation(plans.iter().flatten()), || None);
        let mut result =
            if is_bare { create(cache, p_infos) } else { create(self.pipeline_cache, Ptr::to_slice(changed)) };
        drop(mark);
        let is_planned = result.0 >= 0;
        if !is_planned && !is_bare {
            result = create(cache, p_infos);
            let count = plans.iter().flatten().map(PipelinePlan::instrumented_count).sum();
            if result.0 >= 0 {
                catch_panic("pipelines", || self.report_rejected(count, REFUSED), || ());
            } else {
                coverage::retract_shaders(count);
            }
        }
        // SAFETY: the contract of this function: `create` wrote as many as there are plans, null where it made none.
        let made = unsafe { slice(p_made, plans.len() as u32) }.to_vec();
        let finish = || {
            self.keep_pipelines(plans, &made, is_planned);
            true
        };
        if !catch_panic("pipelines", finish, || false) && is_planned {
            // The application gets these pipelines without our code, so they need no tables.
            catch_panic("pipelines", || self.forget_pipelines(&made), || ());
            if let Some(destroy) = self.next.destroy_pipeline {
                // SAFETY: made above with `p_allocator`, and the application does not have them yet.
                made.iter().for_each(|it| unsafe { destroy(self.device, *it, p_allocator) });
            }
            result = create(cache, p_infos);
        }
        result
    }

    fn forget_pipelines(&self, made: &[Pipeline]) {
        let mut state = self.state();
        for pipeline in made {
            state.libraries.remove(&pipeline.0);
            state.pipelines.remove(&pipeline.0);
        }
    }
}
