//! Where a draw or dispatch was recorded, and what is bound to it: for findings about its shaders, which others make.

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_diag::{CommandNeighbors, DiagnosticObject};
use lavascope_record::ObjectNames;
use lavascope_sync_ir::{Access, OriginKind};

use crate::device::ValidatedDevice;
use crate::findings::names::object_text;

/// A draw or dispatch that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchLocation {
    /// `command 3 of VkCommandBuffer#1 "upload"`.
    pub place: String,
    /// The number of the command buffer.
    pub command_buffer: u64,
    /// The call stack; zero if it was not captured.
    pub stack: u32,
    pub neighbors: Option<CommandNeighbors>,
    /// The resources that its shaders access through descriptors.
    pub resources: Vec<BoundResource>,
}

/// A resource that is bound to a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundResource {
    pub set: u32,
    pub binding: u32,
    pub element: u32,
    pub object: DiagnosticObject,
}

impl ValidatedDevice {
    /// A draw or dispatch of the last recording of a command buffer, by its number among those, from zero. None if it
    /// was not recorded, since nothing is known of what it accesses.
    pub(crate) fn locate_launch(
        &self,
        command_buffer: ObjectId,
        (number, function): (u32, ApiCommand),
        names: &ObjectNames,
    ) -> Option<LaunchLocation> {
        let body = self.recording_of(command_buffer)?.current();
        let index = body.calls.iter().position(|it| it.launch == number + 1 && it.function == function)?;
        let call = &body.calls[index];
        let resource = |access: &Access| {
            let OriginKind::Descriptor(descriptor) = access.origin.kind() else { return None };
            let object = self.objects.diagnostic_resource(access.resource, names);
            let (set, binding, element) = (descriptor.set, descriptor.binding, descriptor.element);
            Some(BoundResource { set, binding, element, object })
        };
        let mut resources: Vec<BoundResource> =
            body.accesses(index).unwrap_or_default().iter().filter_map(resource).collect();
        resources.dedup();
        let name = |at: Option<usize>| Some(body.calls.get(at?)?.function.desc().name.to_owned());
        let neighbors = CommandNeighbors {
            index: call.number.saturating_sub(1),
            before: name(index.checked_sub(1)),
            after: name(index.checked_add(1)),
        };
        Some(LaunchLocation {
            place: format!("command {} of {}", call.number, object_text(command_buffer, names)),
            command_buffer: command_buffer.serial(),
            stack: call.stack,
            neighbors: Some(neighbors),
            resources,
        })
    }
}
