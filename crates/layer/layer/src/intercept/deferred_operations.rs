//! Pipelines that a deferred operation makes: their handles are written by the time it is complete.
//!
//! The first thread that joins a complete operation, or queries its result, adds the pipelines to the handle table. The
//! application may free the memory of the handles as soon as it knows that the operation is complete. So other threads
//! that learn it wait until the handles were read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

/// Where handles will be, by the operation that writes them.
#[derive(Default)]
pub(crate) struct DeferredPipelines(Mutex<HashMap<u64, DeferredHandles>>);

struct DeferredHandles {
    first: Ptr<Pipeline>,
    count: u32,
}

impl DeferredPipelines {
    /// A creation was deferred.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a `vkCreateRayTracingPipelinesKHR` that returned `VK_OPERATION_DEFERRED_KHR`.
    pub(crate) unsafe fn begin(&self, params: &CreateRayTracingPipelinesKHRParams) {
        let place = DeferredHandles { first: params.p_pipelines, count: params.create_info_count };
        self.lock().insert(params.deferred_operation.0, place);
    }

    /// An operation is complete: gives the handles to `learn`, once.
    ///
    /// # Safety
    ///
    /// It must be complete, and the application must not know that from a call that did not come here.
    pub(crate) unsafe fn complete(&self, operation: u64, mut learn: impl FnMut(u64)) {
        let mut places = self.lock();
        let Some(place) = places.remove(&operation) else { return };
        for value in 0..place.count as usize {
            // SAFETY: VUID-vkCreateRayTracingPipelinesKHR-pPipelines-parameter by the contract of `begin`: there is a
            // handle for each info. The memory of a deferred command must stay until its operation is complete, so by
            // the contract of this function it is still there, and written.
            learn(unsafe { place.first.as_ptr().add(value).read() }.0);
        }
    }

    /// The operation was destroyed.
    pub(crate) fn remove(&self, operation: u64) {
        self.lock().remove(&operation);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, DeferredHandles>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call that returned means for a deferred operation.
pub(crate) enum DeferredStatus {
    Unrelated,
    /// A creation was deferred.
    Begun,
    /// This operation is complete.
    Complete(DeferredOperationKHR),
}

/// # Safety
///
/// `params` must point to the parameters of a call of `command` that returned `result`.
pub(crate) unsafe fn deferred_status(command: Command, params: *const u8, result: u64) -> DeferredStatus {
    let result = Result(result as u32 as i32);
    match command {
        Command::CreateRayTracingPipelinesKHR if result == Result::OPERATION_DEFERRED_KHR => DeferredStatus::Begun,
        Command::DeferredOperationJoinKHR if result == Result::SUCCESS => {
            // SAFETY: the contract of this function: the parameters are those of `vkDeferredOperationJoinKHR`.
            DeferredStatus::Complete(unsafe { (*params.cast::<DeferredOperationJoinKHRParams>()).operation })
        }
        Command::GetDeferredOperationResultKHR if result != Result::NOT_READY => {
            // SAFETY: the contract of this function: the parameters are those of `vkGetDeferredOperationResultKHR`.
            DeferredStatus::Complete(unsafe { (*params.cast::<GetDeferredOperationResultKHRParams>()).operation })
        }
        _ => DeferredStatus::Unrelated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_learned_once_when_the_operation_is_complete() {
        let mut pipelines = [Pipeline(0), Pipeline(0)];
        let mut params = CreateRayTracingPipelinesKHRParams::zeroed();
        params.deferred_operation = DeferredOperationKHR(9);
        params.create_info_count = 2;
        params.p_pipelines = Ptr::new((&raw mut pipelines).expose_provenance() as u64);
        let (deferred, mut learned) = (DeferredPipelines::default(), Vec::new());
        // SAFETY: the parameters have a place for as many handles as they say, which outlives the operation.
        unsafe { deferred.begin(&params) };
        pipelines = [Pipeline(21), Pipeline(22)];
        std::hint::black_box(&mut pipelines);
        // SAFETY: the place above is still there, and written.
        unsafe {
            deferred.complete(8, |it| learned.push(it));
            deferred.complete(9, |it| learned.push(it));
            deferred.complete(9, |it| learned.push(it));
        }
        assert_eq!(learned, [21, 22]);
        // SAFETY: as for the first operation; the handles are not read.
        unsafe { deferred.begin(&params) };
        deferred.remove(9);
        assert!(deferred.lock().is_empty());
    }

    #[test]
    fn polling_is_no_completion() {
        let mut params = GetDeferredOperationResultKHRParams::zeroed();
        params.operation = DeferredOperationKHR(9);
        let of = |result: Result| {
            let result = u64::from(result.0 as u32);
            // SAFETY: the parameters above are those of this command.
            unsafe { deferred_status(Command::GetDeferredOperationResultKHR, (&raw const params).cast(), result) }
        };
        assert!(matches!(of(Result::NOT_READY), DeferredStatus::Unrelated));
        assert!(matches!(of(Result::SUCCESS), DeferredStatus::Complete(DeferredOperationKHR(9))));
        assert!(matches!(of(Result::ERROR_OUT_OF_HOST_MEMORY), DeferredStatus::Complete(DeferredOperationKHR(9))));
    }
}
