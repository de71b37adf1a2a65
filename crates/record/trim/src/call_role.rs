//! The role of a call for a part that begins after it.

use lavascope_abi::{Command, HandleType};

/// What happens to a call in a span that is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRole {
    /// Submits, presents, acquires and waits: it goes with the span.
    Sync,
    /// Changes what no span can do without.
    Always,
    /// Records a command.
    Record,
    /// Makes objects, or asks for them.
    Create,
    /// Ends what its last parameter names.
    Destroy,
    /// Says what objects of a type are made of, once they are needed.
    Define(HandleType),
    /// Does something to objects that are there.
    Modify,
    /// Anything else.
    Other,
}

impl CallRole {
    pub(crate) fn of(command: Command) -> CallRole {
        use Command as C;
        match command {
            C::QueueSubmit | C::QueueSubmit2 | C::QueuePresentKHR | C::SignalSemaphore | C::ResetFences => {
                CallRole::Sync
            }
            C::AcquireNextImageKHR | C::AcquireNextImage2KHR | C::WaitForFences | C::WaitSemaphores => CallRole::Sync,
            C::QueueWaitIdle | C::DeviceWaitIdle | C::GetFenceStatus | C::GetSemaphoreCounterValue => CallRole::Sync,
            C::GetQueryPoolResults | C::GetEventStatus | C::WaitForPresentKHR | C::WaitForPresent2KHR => CallRole::Sync,
            C::QueueBeginDebugUtilsLabelEXT | C::QueueEndDebugUtilsLabelEXT => CallRole::Sync,
            C::QueueInsertDebugUtilsLabelEXT => CallRole::Sync,
            C::QueueBindSparse | C::SetEvent | C::ResetEvent | C::CreateDevice | C::DestroyDevice => CallRole::Always,
            C::CopyMemoryToImage | C::CopyImageToMemory | C::CopyImageToImage => CallRole::Always,
            C::TransitionImageLayout | C::DestroyInstance => CallRole::Always,
            C::BeginCommandBuffer | C::EndCommandBuffer => CallRole::Record,
            C::UpdateDescriptorSets | C::UpdateDescriptorSetWithTemplate => CallRole::Define(HandleType::DescriptorSet),
            C::BindBufferMemory | C::BindBufferMemory2 => CallRole::Define(HandleType::Buffer),
            C::BindImageMemory | C::BindImageMemory2 => CallRole::Define(HandleType::Image),
            C::MapMemory | C::MapMemory2 | C::UnmapMemory | C::UnmapMemory2 => CallRole::Modify,
            C::FlushMappedMemoryRanges | C::InvalidateMappedMemoryRanges => CallRole::Modify,
            C::ResetCommandPool | C::ResetCommandBuffer | C::TrimCommandPool => CallRole::Modify,
            C::ResetDescriptorPool | C::ResetQueryPool => CallRole::Modify,
            C::SetDebugUtilsObjectNameEXT | C::SetDebugUtilsObjectTagEXT => CallRole::Modify,
            C::DebugMarkerSetObjectNameEXT | C::DebugMarkerSetObjectTagEXT => CallRole::Modify,
            _ => by_name(command.desc().name),
        }
    }
}

fn by_name(name: &str) -> CallRole {
    let begins = |all: &[&str]| all.iter().any(|it| name.starts_with(it));
    if begins(&["vkCmd"]) {
        return CallRole::Record;
    }
    if begins(&["vkImport", "vkRelease"]) || name.contains("SemaphoreFd") || name.contains("FenceFd") {
        return CallRole::Always;
    }
    if begins(&["vkCreate", "vkAllocate"]) {
        return CallRole::Create;
    }
    if begins(&["vkDestroy", "vkFree"]) {
        return CallRole::Destroy;
    }
    match begins(&["vkGet", "vkEnumerate"]) {
        true => CallRole::Modify,
        false => CallRole::Other,
    }
}

/// Whether the call changes what orders the device, or which images are acquired.
pub(crate) fn changes_sync_state(command: Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::QueueSubmit
            | C::QueueSubmit2
            | C::QueuePresentKHR
            | C::AcquireNextImageKHR
            | C::AcquireNextImage2KHR
            | C::ResetFences
            | C::SignalSemaphore
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_role_that_they_play() {
        assert_eq!(CallRole::of(Command::CmdDraw), CallRole::Record);
        assert_eq!(CallRole::of(Command::CreateBuffer), CallRole::Create);
        assert_eq!(CallRole::of(Command::AllocateCommandBuffers), CallRole::Create);
        assert_eq!(CallRole::of(Command::FreeCommandBuffers), CallRole::Destroy);
        assert_eq!(CallRole::of(Command::GetBufferMemoryRequirements), CallRole::Modify);
        assert_eq!(CallRole::of(Command::ImportFenceFdKHR), CallRole::Always);
        assert_eq!(CallRole::of(Command::GetSemaphoreFdKHR), CallRole::Always);
        for command in Command::ALL.iter().filter(|it| changes_sync_state(**it)) {
            assert_eq!(CallRole::of(*command), CallRole::Sync, "{}", command.desc().name);
        }
    }
}
