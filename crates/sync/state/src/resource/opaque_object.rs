//! Objects with memory of their own and unknown layout: acceleration structures of `VK_NV_ray_tracing`, and tensors.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, Resource, ResourceId, ResourceKind};

use crate::command::stage_access::{COPY_READ, COPY_WRITE, StageAccess};
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::memory::is_success;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpaqueObject {
    resource: Option<ResourceId>,
    /// Size in bytes of its memory, after the application queried it.
    size: Option<u64>,
    memory: u64,
    /// `VK_SHARING_MODE_EXCLUSIVE`: it belongs to one queue family.
    is_exclusive: bool,
}

/// The assumed size of an object whose requirements were not queried.
const SIZE: u64 = 256;

impl OpaqueObject {
    pub(crate) fn new(size: Option<u64>) -> OpaqueObject {
        OpaqueObject { size, ..OpaqueObject::default() }
    }

    /// The whole object, if it has memory.
    pub(crate) fn part(&self) -> Option<(ResourceId, Range<u64>)> {
        Some((self.resource?, 0..self.size()))
    }

    pub(crate) fn set_size(&mut self, size: u64) {
        if self.resource.is_none() {
            self.size = Some(size);
        }
    }

    fn size(&self) -> u64 {
        self.size.unwrap_or(SIZE)
    }
}

impl TrackedDevice {
    pub(crate) fn track_tensors(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateTensorARM(params), Some(Outcome::CreateTensorARM(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_tensor()) {
                    let is_exclusive = info.sharing_mode == vk::SharingMode::EXCLUSIVE;
                    self.tensors.insert(handle.0, OpaqueObject { is_exclusive, ..OpaqueObject::default() });
                }
            }
            (Call::GetTensorMemoryRequirementsARM(params), Some(Outcome::GetTensorMemoryRequirementsARM(done))) => {
                let own = self.tensors.get_mut(params.p_info().map_or(0, |it| it.tensor.0));
                if let (Some(own), Some(requirements)) = (own, done.p_memory_requirements()) {
                    own.set_size(requirements.memory_requirements.size);
                }
            }
            (Call::BindTensorMemoryARM(params), Some(Outcome::BindTensorMemoryARM(done))) => {
                for info in params.p_bind_infos().iter().filter(|_| is_success(done.result)) {
                    let own = self.tensors.get(info.tensor.0).copied();
                    if let Some(own) = self.bind_opaque(info.tensor.0, own, info.memory, info.memory_offset, out) {
                        self.tensors.insert(info.tensor.0, own);
                    }
                }
            }
            (Call::CreateTensorViewARM(params), Some(Outcome::CreateTensorViewARM(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_view()) {
                    self.tensor_views.insert(handle.0, info.tensor.0);
                }
            }
            (Call::DestroyTensorARM(params), None) => {
                let own = self.tensors.remove(params.tensor.0);
                self.destroy_opaque(own, out);
            }
            (Call::DestroyTensorViewARM(params), None) => {
                self.tensor_views.remove(params.tensor_view.0);
            }
            (Call::CmdCopyTensorARM(params), None) => {
                let Some(info) = params.p_copy_tensor_info() else { return true };
                let mut accesses = self.tensor_access(info.src_tensor, COPY_READ, out);
                accesses.extend(self.tensor_access(info.dst_tensor, COPY_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    /// An access to a whole tensor.
    fn tensor_access(&self, tensor: vk::TensorARM, usage: StageAccess, out: &mut TrackerOutput<'_>) -> Vec<Access> {
        let part = self.tensors.get(tensor.0).and_then(OpaqueObject::part);
        if part.is_none() {
            out.report_untracked("a tensor whose memory is not known");
        }
        part.map(|(resource, bytes)| usage.access_to_bytes(resource, bytes)).into_iter().collect()
    }

    /// Binds memory. None if memory is bound already.
    pub(crate) fn bind_opaque(
        &mut self,
        handle: u64,
        own: Option<OpaqueObject>,
        memory: vk::DeviceMemory,
        offset: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Option<OpaqueObject> {
        let own = own.filter(|it| it.resource.is_none())?;
        let size = own.size();
        let binding = self.binding(memory.0, offset, size, out);
        let resource = Resource::new(ResourceKind::Buffer { size }, binding);
        let resource = Resource { is_exclusive: own.is_exclusive, ..resource };
        let id = self.add_resource(handle, &resource, out);
        Some(OpaqueObject { resource: Some(id), memory: memory.0, ..own })
    }

    pub(crate) fn destroy_opaque(&mut self, own: Option<OpaqueObject>, out: &mut TrackerOutput<'_>) {
        if let Some(own) = own {
            self.destroy_resource(own.resource, own.memory, out);
        }
    }
}
