//! Semaphores and fences whose payloads are shared with other processes, devices or APIs.
//!
//! Their signals and waits are not in the records. To avoid false hazards, the tracker assumes that they order
//! everything they can, and reports that it does so.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{FenceId, HostStep, QueueId, SemaphorePoint};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::{Destroyed, TrackerOutput, object};
use crate::resource::memory::is_success;

/// A semaphore with a shared payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExternalSemaphore {
    /// This device has signaled it, and not waited for it yet.
    is_signaled: bool,
    /// For a timeline: the largest value that this device signals.
    value: u64,
    /// A temporary import: the next wait restores the semaphore's own payload.
    is_temporary: bool,
}

const FOREIGN_SEMAPHORE: &str = "a semaphore that others signal is taken to wait for all that came before";
const FOREIGN_FENCE: &str = "a fence that others signal is taken to wait for all that came before";
const EXPORTED: &str = "whoever gets an exported payload is taken to wait for it at once";

/// The parameters of successful calls: all handle types use the same field names.
macro_rules! done {
    ($info:expr, $done:expr, $field:ident) => {
        $info.filter(|_| is_success($done.result)).map(|it| (it.$field, it.handle_type.0))
    };
}

impl TrackedDevice {
    pub(crate) fn track_external_sync(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        self.track_external_semaphores(tracked, out) || self.track_external_fences(tracked, out)
    }

    fn track_external_semaphores(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let exported = match (tracked.call, tracked.outcome) {
            (Call::GetSemaphoreFdKHR(params), Some(Outcome::GetSemaphoreFdKHR(done))) => {
                done!(params.p_get_fd_info(), done, semaphore)
            }
            (Call::GetSemaphoreWin32HandleKHR(params), Some(Outcome::GetSemaphoreWin32HandleKHR(done))) => {
                done!(params.p_get_win32_handle_info(), done, semaphore)
            }
            (Call::GetSemaphoreZirconHandleFUCHSIA(params), Some(Outcome::GetSemaphoreZirconHandleFUCHSIA(done))) => {
                done!(params.p_get_zircon_handle_info(), done, semaphore)
            }
            (Call::ImportSemaphoreFdKHR(params), Some(Outcome::ImportSemaphoreFdKHR(done))) => {
                let info = params.p_import_semaphore_fd_info().filter(|_| is_success(done.result));
                self.import_semaphore(info.map(|it| (it.semaphore, it.flags)), out);
                return true;
            }
            (Call::ImportSemaphoreWin32HandleKHR(params), Some(Outcome::ImportSemaphoreWin32HandleKHR(done))) => {
                let info = params.p_import_semaphore_win32_handle_info().filter(|_| is_success(done.result));
                self.import_semaphore(info.map(|it| (it.semaphore, it.flags)), out);
                return true;
            }
            (
                Call::ImportSemaphoreZirconHandleFUCHSIA(params),
                Some(Outcome::ImportSemaphoreZirconHandleFUCHSIA(done)),
            ) => {
                let info = params.p_import_semaphore_zircon_handle_info().filter(|_| is_success(done.result));
                self.import_semaphore(info.map(|it| (it.semaphore, it.flags)), out);
                return true;
            }
            _ => return false,
        };
        if let Some((semaphore, handle_type)) = exported {
            self.export_semaphore(semaphore, handle_type, out);
        }
        true
    }

    fn track_external_fences(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (fence, is_import) = match (tracked.call, tracked.outcome) {
            (Call::GetFenceFdKHR(params), Some(Outcome::GetFenceFdKHR(done))) => {
                (done!(params.p_get_fd_info(), done, fence), false)
            }
            (Call::GetFenceWin32HandleKHR(params), Some(Outcome::GetFenceWin32HandleKHR(done))) => {
                (done!(params.p_get_win32_handle_info(), done, fence), false)
            }
            (Call::ImportFenceFdKHR(params), Some(Outcome::ImportFenceFdKHR(done))) => {
                (done!(params.p_import_fence_fd_info(), done, fence), true)
            }
            (Call::ImportFenceWin32HandleKHR(params), Some(Outcome::ImportFenceWin32HandleKHR(done))) => {
                (done!(params.p_import_fence_win32_handle_info(), done, fence), true)
            }
            _ => return false,
        };
        let Some(id) = fence.and_then(|it| self.fences.get(it.0.0).copied()) else { return true };
        if is_import {
            out.report_untracked(FOREIGN_FENCE);
            self.imported_fences.insert(id);
        } else {
            out.report_untracked(EXPORTED);
            out.step(HostStep::WaitFences(vec![id]));
        }
        true
    }

    /// An export that copies the payload counts as a wait. Otherwise the payload is shared from here on.
    fn export_semaphore(&mut self, semaphore: vk::Semaphore, handle_type: u32, out: &mut TrackerOutput<'_>) {
        let Some(point) = self.semaphore_point(semaphore, 0) else { return };
        if handle_type != vk::ExternalSemaphoreHandleTypeFlagBits::SYNC_FD.0 {
            self.external_semaphores.entry(point.semaphore).or_default().is_temporary = false;
            return;
        }
        out.report_untracked(EXPORTED);
        self.wait_external(&[point], out);
        let fence = self.new_fence(out);
        self.forward_semaphores(QueueId(0), &[point], &[], fence, out);
        out.step(HostStep::WaitFences(vec![fence]));
        out.destroyed(Some(Destroyed::Fence(fence)));
    }

    fn import_semaphore(
        &mut self,
        info: Option<(vk::Semaphore, vk::SemaphoreImportFlags)>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some((semaphore, flags)) = info else { return };
        let Some(own) = self.semaphores.get(semaphore.0) else {
            out.report_untracked("a semaphore that nobody created");
            return;
        };
        let is_temporary = flags.0 & vk::SemaphoreImportFlags::TEMPORARY.0 != 0;
        let known = self.external_semaphores.get(&own.id).is_some_and(|it| !it.is_temporary);
        let external = ExternalSemaphore { is_temporary: is_temporary && !known, ..ExternalSemaphore::default() };
        self.external_semaphores.insert(own.id, external);
    }

    /// Called before a wait: adds the external signal, ordered after everything before.
    pub(crate) fn wait_external(&mut self, waits: &[SemaphorePoint], out: &mut TrackerOutput<'_>) {
        for point in waits {
            let Some(own) = self.external_semaphores.get_mut(&point.semaphore) else { continue };
            let is_known = match point.value {
                None => std::mem::take(&mut own.is_signaled),
                Some(value) => value <= own.value,
            };
            own.value = own.value.max(point.value.unwrap_or(0));
            if own.is_temporary {
                self.external_semaphores.remove(&point.semaphore);
            }
            if !is_known {
                out.report_untracked(FOREIGN_SEMAPHORE);
                out.step(HostStep::DeviceIdle);
                out.step(HostStep::SignalSemaphore(*point));
            }
        }
    }

    /// Notes signals by this device.
    pub(crate) fn signal_external(&mut self, signals: impl Iterator<Item = SemaphorePoint>) {
        if self.external_semaphores.is_empty() {
            return;
        }
        for point in signals {
            if let Some(own) = self.external_semaphores.get_mut(&point.semaphore) {
                match point.value {
                    None => own.is_signaled = true,
                    Some(value) => own.value = own.value.max(value),
                }
            }
        }
    }

    /// The host waited for fences that may be signaled externally.
    pub(crate) fn wait_fences(&mut self, fences: Vec<FenceId>, out: &mut TrackerOutput<'_>) {
        if fences.iter().any(|it| self.imported_fences.contains(it)) {
            out.report_untracked(FOREIGN_FENCE);
            out.step(HostStep::DeviceIdle);
        }
        out.step(HostStep::WaitFences(fences));
    }

    /// A queue waits for semaphores and signals others, without work of its own. An empty sparse bind has exactly this
    /// effect.
    pub(crate) fn forward_semaphores(
        &mut self,
        queue: QueueId,
        waits: &[SemaphorePoint],
        signals: &[SemaphorePoint],
        fence: FenceId,
        out: &mut TrackerOutput<'_>,
    ) {
        let (waits, signals) = (waits.to_vec(), signals.to_vec());
        out.step(HostStep::BindSparse { queue, waits, binds: Vec::new(), signals, fence: Some(fence) });
    }

    /// A fence that only the tracker knows.
    pub(crate) fn new_fence(&mut self, out: &mut TrackerOutput<'_>) -> FenceId {
        let id = FenceId(self.ids.fences.next_id());
        out.listener.fence(out.at, id, object(0));
        id
    }
}
