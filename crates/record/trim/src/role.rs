//! What a call is for a part that begins behind it.

use lavascope_abi::{Command, HandleType};

/// What becomes of a call in a span that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Submits, presents, acquires and waits: it goes with the span.
    Flow,
    /// Changes what no span can do without.
    Fixed,
    /// Records a command.
    Record,
    /// Makes objects, or asks for them.
    Make,
    /// Ends what its last parameter names.
    End,
    /// Says what objects of a type are made of, once they are needed.
    Shape(HandleType),
    /// Does something to objects that are there.
    Tend,
    /// Anything else.
    Other,
}

impl Role {
    pub(crate) fn of(command: Command) -> Role {
        use Command as C;
        match command {
            C::QueueSubmit | C::QueueSubmit2 | C::QueuePresentKHR | C::SignalSemaphore | C::ResetFences => Role::Flow,
            C::AcquireNextImageKHR | C::AcquireNextImage2KHR | C::WaitForFences | C::WaitSemaphores => Role::Flow,
            C::QueueWaitIdle | C::DeviceWaitIdle | C::GetFenceStatus | C::GetSemaphoreCounterValue => Role::Flow,
            C::GetQueryPoolResults | C::GetEventStatus | C::WaitForPresentKHR | C::WaitForPresent2KHR => Role::Flow,
            C::QueueBeginDebugUtilsLabelEXT | C::QueueEndDebugUtilsLabelEXT => Role::Flow,
            C::QueueInsertDebugUtilsLabelEXT => Role::Flow,
            C::QueueBindSparse | C::SetEvent | C::ResetEvent | C::CreateDevice | C::DestroyDevice => Role::Fixed,
            C::CopyMemoryToImage | C::CopyImageToMemory | C::CopyImageToImage => Role::Fixed,
            C::TransitionImageLayout | C::DestroyInstance => Role::Fixed,
            C::BeginCommandBuffer | C::EndCommandBuffer => Role::Record,
            C::UpdateDescriptorSets | C::UpdateDescriptorSetWithTemplate => Role::Shape(HandleType::DescriptorSet),
            C::BindBufferMemory | C::BindBufferMemory2 => Role::Shape(HandleType::Buffer),
            C::BindImageMemory | C::BindImageMemory2 => Role::Shape(HandleType::Image),
            C::MapMemory | C::MapMemory2 | C::UnmapMemory | C::UnmapMemory2 => Role::Tend,
            C::FlushMappedMemoryRanges | C::InvalidateMappedMemoryRanges => Role::Tend,
            C::ResetCommandPool | C::ResetCommandBuffer | C::TrimCommandPool => Role::Tend,
            C::ResetDescriptorPool | C::ResetQueryPool => Role::Tend,
            C::SetDebugUtilsObjectNameEXT | C::SetDebugUtilsObjectTagEXT => Role::Tend,
            C::DebugMarkerSetObjectNameEXT | C::DebugMarkerSetObjectTagEXT => Role::Tend,
            _ => by_name(command.desc().name),
        }
    }
}

fn by_name(name: &str) -> Role {
    let begins = |all: &[&str]| all.iter().any(|it| name.starts_with(it));
    if begins(&["vkCmd"]) {
        return Role::Record;
    }
    if begins(&["vkImport", "vkRelease"]) || name.contains("SemaphoreFd") || name.contains("FenceFd") {
        return Role::Fixed;
    }
    if begins(&["vkCreate", "vkAllocate"]) {
        return Role::Make;
    }
    if begins(&["vkDestroy", "vkFree"]) {
        return Role::End;
    }
    match begins(&["vkGet", "vkEnumerate"]) {
        true => Role::Tend,
        false => Role::Other,
    }
}

/// Whether the call changes what orders the device, or which images are acquired.
pub(crate) fn changes_flow(command: Command) -> bool {
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
        assert_eq!(Role::of(Command::CmdDraw), Role::Record);
        assert_eq!(Role::of(Command::CreateBuffer), Role::Make);
        assert_eq!(Role::of(Command::AllocateCommandBuffers), Role::Make);
        assert_eq!(Role::of(Command::FreeCommandBuffers), Role::End);
        assert_eq!(Role::of(Command::GetBufferMemoryRequirements), Role::Tend);
        assert_eq!(Role::of(Command::ImportFenceFdKHR), Role::Fixed);
        assert_eq!(Role::of(Command::GetSemaphoreFdKHR), Role::Fixed);
        for command in Command::ALL.iter().filter(|it| changes_flow(**it)) {
            assert_eq!(Role::of(*command), Role::Flow, "{}", command.desc().name);
        }
    }
}
