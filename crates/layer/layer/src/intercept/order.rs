//! Which calls order the threads of an application beyond the objects they share.
//!
//! A *local barrier* comes before a call that destroys something, or lets the device begin. The call comes after all
//! calls of other threads that are completed. A *push barrier* comes after a call in which the host learned how far the
//! device is. The next call of every other thread comes after it.

use lavascope_abi::{Command, Result};

/// How a command is ordered with the commands of other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandOrdering {
    /// A local barrier before the call.
    pub(crate) has_local_barrier: bool,
    pub(crate) push_barrier: PushBarrier,
    /// Whether host writes to mapped memory are looked for before the call.
    pub(crate) looks_for_writes: bool,
    /// An exception in the specification: other threads may use the externally synchronized object meanwhile, so the
    /// call does not order them. It may wait for them.
    pub(crate) is_shared: bool,
    /// Whether what was recorded is discarded: other threads may have executed the command buffer in theirs.
    pub(crate) changes_command_buffer: bool,
    /// See [`CommandOrdering::has_call_stack`].
    pub(crate) has_call_stack: bool,
}

/// When a push barrier comes after the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PushBarrier {
    #[default]
    Never,
    Always,
    /// When it succeeded; `VK_TIMEOUT` and `VK_NOT_READY` are no success.
    Success,
    /// When an image was acquired or presented, also one that does not fit the surface any more.
    AcquiredOrPresented,
    /// When an event was found set.
    EventSet,
    /// When a semaphore's counter is another than at the last look.
    CounterChanged,
    /// When nobody has queried the same of the object before.
    FirstQuery,
    /// Always: the result is data of this driver.
    Data,
}

impl CommandOrdering {
    /// From the lists of `docs/thread-order.md`, with the commands that Vulkan added since.
    pub(crate) const fn of(command: Command) -> CommandOrdering {
        use Command as C;
        let (before, after) = match command {
            C::QueueSubmit | C::QueueSubmit2 | C::QueueBindSparse => (true, PushBarrier::Never),
            C::UnmapMemory | C::UnmapMemory2 | C::FlushMappedMemoryRanges => (true, PushBarrier::Never),
            // The application passes the result on as a number or as bytes, and a replay must know it before it is used.
            C::GetBufferDeviceAddress | C::GetAccelerationStructureDeviceAddressKHR => (false, PushBarrier::FirstQuery),
            // What is exported may be a signal that another thread submitted, and another thread may import the descriptor.
            C::GetFenceFdKHR | C::GetSemaphoreFdKHR | C::GetMemoryFdKHR => (true, PushBarrier::Data),
            _ if returns_data(command) => (false, PushBarrier::Data),
            C::ResetGpaSessionAMD => (true, PushBarrier::Never),
            // The host writes what the device may read.
            C::CopyMemoryToImage => (true, PushBarrier::Never),
            // The host allows the device to continue.
            C::SignalSemaphore | C::SetEvent => (true, PushBarrier::Never),
            C::QueuePresentKHR => (true, PushBarrier::Always),
            C::ResetDescriptorPool | C::ResetQueryPool | C::ResetCommandPool => (true, PushBarrier::Success),
            C::WaitForFences | C::GetFenceStatus | C::QueueWaitIdle | C::WaitSemaphores => {
                (false, PushBarrier::Success)
            }
            // It waits for what other threads submitted, to queues that it does not name.
            C::DeviceWaitIdle => (true, PushBarrier::Success),
            C::WaitForPresentKHR | C::WaitForPresent2KHR => (false, PushBarrier::AcquiredOrPresented),
            C::GetQueryPoolResults | C::GetDeferredOperationResultKHR => (false, PushBarrier::Success),
            C::DeferredOperationJoinKHR => (false, PushBarrier::Success),
            C::AcquireNextImageKHR | C::AcquireNextImage2KHR => (false, PushBarrier::AcquiredOrPresented),
            C::GetEventStatus => (false, PushBarrier::EventSet),
            C::GetSemaphoreCounterValue => (false, PushBarrier::CounterChanged),
            _ => (destroys_or_frees(command), PushBarrier::Never),
        };
        let is_shared =
            matches!(command, C::WaitForPresentKHR | C::WaitForPresent2KHR | C::GetPastPresentationTimingEXT);
        let waits = matches!(command, C::WaitForFences | C::WaitSemaphores | C::QueueWaitIdle | C::DeviceWaitIdle);
        CommandOrdering {
            looks_for_writes: before || waits,
            has_local_barrier: before,
            push_barrier: after,
            is_shared,
            changes_command_buffer: matches!(command, C::BeginCommandBuffer | C::ResetCommandBuffer),
            has_call_stack: is_part_of_findings(command),
        }
    }

    /// Whether a call of the command can be a part of a finding, which shows its call stack then: accesses,
    /// synchronization, submissions and waits.
    #[inline]
    pub(crate) fn has_call_stack(command: Command) -> bool {
        HAS_CALL_STACK[command as usize]
    }
}

static HAS_CALL_STACK: [bool; Command::ALL.len()] = {
    let mut all = [false; Command::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = is_part_of_findings(Command::ALL[at]);
        at += 1;
    }
    all
};

/// Commands whose names begin like this make, end, name or query objects, or set state for later commands.
const NO_PART_OF_FINDINGS: &[&str] = &[
    "vkAllocate",
    "vkCmdBegin",
    "vkCmdBind",
    "vkCmdDebugMarker",
    "vkCmdEndDebugUtils",
    "vkCmdEndQuery",
    "vkCmdInsertDebugUtils",
    "vkCmdPush",
    "vkCmdSet",
    "vkCreate",
    "vkDebug",
    "vkDestroy",
    "vkEnumerate",
    "vkFree",
    "vkGet",
    "vkSetDebug",
    "vkSetPrivateData",
    "vkUpdateDescriptor",
];

/// Exceptions from these.
const PART_OF_FINDINGS: &[&str] = &[
    "vkCmdBeginConditionalRendering",
    "vkCmdBeginRenderPass",
    "vkCmdBeginRendering",
    "vkCmdBeginTransformFeedback",
    "vkCmdSetEvent",
    "vkGetEventStatus",
    "vkGetFenceStatus",
    "vkGetQueryPoolResults",
    "vkGetSemaphoreCounterValue",
];

const fn is_part_of_findings(command: Command) -> bool {
    let name = command.desc().name.as_bytes();
    has_prefix(name, PART_OF_FINDINGS) || !has_prefix(name, NO_PART_OF_FINDINGS)
}

const fn has_prefix(name: &[u8], prefixes: &[&str]) -> bool {
    let mut at = 0;
    while at < prefixes.len() {
        if starts_with(name, prefixes[at].as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether the layer delivers messages to the application when such a call returns: submissions, presentations and
/// waits.
pub(crate) const fn delivers_messages(command: Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::QueueSubmit
            | C::QueueSubmit2
            | C::QueueBindSparse
            | C::QueuePresentKHR
            | C::QueueWaitIdle
            | C::DeviceWaitIdle
            | C::WaitForFences
            | C::WaitSemaphores
            | C::WaitForPresentKHR
            | C::WaitForPresent2KHR
    )
}

/// Commands whose results are numbers or bytes of this driver, which another thread may use. Not
/// `vkGetDescriptorEXT`, which is called for every descriptor: its bytes go through memory, and a record of host writes
/// makes a local barrier.
const fn returns_data(command: Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::GetAccelerationStructureHandleNV
            | C::GetBufferOpaqueCaptureAddress
            | C::GetBufferOpaqueCaptureDescriptorDataEXT
            | C::GetDeviceMemoryOpaqueCaptureAddress
            | C::GetImageViewAddressNVX
            | C::GetImageViewHandle64NVX
            | C::GetImageViewHandleNVX
            | C::GetPipelineBinaryDataKHR
            | C::GetPipelineCacheData
            | C::GetPipelineIndirectDeviceAddressNV
            | C::GetRayTracingCaptureReplayShaderGroupHandlesKHR
            | C::GetRayTracingShaderGroupHandlesKHR
            | C::GetShaderBinaryDataEXT
    )
}

/// Every command that destroys or frees.
const fn destroys_or_frees(command: Command) -> bool {
    let name = command.desc().name.as_bytes();
    starts_with(name, b"vkDestroy") || starts_with(name, b"vkFree") || starts_with(name, b"vkRelease")
}

const fn starts_with(name: &[u8], prefix: &[u8]) -> bool {
    let mut at = 0;
    while at < prefix.len() {
        if at >= name.len() || name[at] != prefix[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl PushBarrier {
    /// Whether the host learned how far the device is, not only data.
    pub(crate) fn is_device_progress(self) -> bool {
        !matches!(self, PushBarrier::FirstQuery | PushBarrier::Data)
    }

    /// Whether a call that returned `result` asks for a push barrier. `has_progressed` compares what was read with what
    /// is known.
    pub(crate) fn is_due(self, result: u64, has_progressed: impl FnOnce() -> bool) -> bool {
        let result = Result(result as u32 as i32);
        match self {
            PushBarrier::Never => false,
            PushBarrier::Always | PushBarrier::Data => true,
            PushBarrier::Success => result == Result::SUCCESS,
            PushBarrier::AcquiredOrPresented => matches!(result, Result::SUCCESS | Result::SUBOPTIMAL_KHR),
            PushBarrier::EventSet => result == Result::EVENT_SET,
            PushBarrier::CounterChanged => result == Result::SUCCESS && has_progressed(),
            // The result is no code.
            PushBarrier::FirstQuery => has_progressed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(before: bool, after: PushBarrier) -> CommandOrdering {
        CommandOrdering { has_local_barrier: before, push_barrier: after, ..CommandOrdering::default() }
    }

    /// Without what has nothing to do with order.
    fn order_of(command: Command) -> CommandOrdering {
        CommandOrdering { has_call_stack: false, looks_for_writes: false, ..CommandOrdering::of(command) }
    }

    #[test]
    fn what_makes_or_sets_something_has_no_call_stack() {
        let with = [Command::CmdDraw, Command::CmdSetEvent2, Command::CmdBeginRendering, Command::QueueSubmit2];
        assert!(with.iter().all(|it| CommandOrdering::has_call_stack(*it) && CommandOrdering::of(*it).has_call_stack));
        let without = [Command::CmdSetViewport, Command::CmdBindPipeline, Command::CreateBuffer, Command::DestroyImage];
        assert!(!without.iter().any(|it| CommandOrdering::has_call_stack(*it)));
        // Copies, clears, barriers and the ends of render passes.
        let wanted = ["vkCmdCopy", "vkCmdClear", "vkCmdPipelineBarrier", "vkCmdEndRender", "vkCmdDispatch", "vkQueue"];
        let is_wanted = |it: &&Command| wanted.iter().any(|start| it.desc().name.starts_with(start));
        for command in Command::ALL.iter().filter(is_wanted) {
            assert!(CommandOrdering::has_call_stack(*command), "{}", command.desc().name);
        }
    }

    #[test]
    fn the_lists_of_the_seed() {
        let ends = |it: &&Command| it.desc().name.starts_with("vkDestroy") || it.desc().name.starts_with("vkFree");
        let submits = [Command::QueueSubmit, Command::QueueSubmit2, Command::UnmapMemory, Command::UnmapMemory2];
        for command in Command::ALL.iter().filter(ends).chain(&submits) {
            assert_eq!(order_of(*command), order(true, PushBarrier::Never), "{}", command.desc().name);
        }
        for command in [Command::GetFenceStatus, Command::QueueWaitIdle, Command::WaitForFences] {
            assert!(CommandOrdering::of(command).push_barrier.is_due(0, || false));
            assert!(!CommandOrdering::of(command).push_barrier.is_due(1, || true), "not ready is no success");
        }
        for command in [Command::ResetCommandPool, Command::ResetDescriptorPool, Command::ResetQueryPool] {
            assert_eq!(order_of(command), order(true, PushBarrier::Success));
        }
        assert!(CommandOrdering::of(Command::WaitForFences).push_barrier.is_due(0, || false));
        assert!(
            !CommandOrdering::of(Command::WaitForFences).push_barrier.is_due(2, || true),
            "a timeout is no success"
        );
        // A present that fails has waited for its semaphores all the same.
        assert_eq!(order_of(Command::QueuePresentKHR), order(true, PushBarrier::Always));
        assert_eq!(order_of(Command::CmdDraw), CommandOrdering::default());
        assert_eq!(order_of(Command::ResetEvent), CommandOrdering::default());
        assert_eq!(order_of(Command::ResetFences), CommandOrdering::default());
    }

    /// Each command of the registry; what objects remember themselves is in no list (`docs/thread-order.md`).
    #[test]
    fn every_command_that_ends_or_resets_something_has_a_barrier() {
        let by_objects = ["vkResetCommandBuffer", "vkResetEvent", "vkResetFences"];
        let ends = ["vkDestroy", "vkFree", "vkRelease", "vkReset"];
        let mut count = 0;
        for command in Command::ALL {
            let name = command.desc().name;
            let is_wanted = ends.iter().any(|it| name.starts_with(it)) && !by_objects.contains(&name);
            count += usize::from(is_wanted);
            assert!(!is_wanted || CommandOrdering::of(*command).has_local_barrier, "{name} has no local barrier");
        }
        assert!(count > 60, "the registry has {count} of them");
    }

    #[test]
    fn a_wait_for_the_device_comes_after_what_others_submitted() {
        assert_eq!(order_of(Command::DeviceWaitIdle), order(true, PushBarrier::Success));
    }

    #[test]
    fn an_import_comes_after_the_export_of_its_descriptor() {
        for command in [Command::GetFenceFdKHR, Command::GetSemaphoreFdKHR, Command::GetMemoryFdKHR] {
            assert_eq!(order_of(command), order(true, PushBarrier::Data));
        }
    }

    #[test]
    fn an_image_that_does_not_fit_any_more_was_presented_all_the_same() {
        let suboptimal = Result::SUBOPTIMAL_KHR.0 as u32;
        for command in [Command::WaitForPresentKHR, Command::WaitForPresent2KHR, Command::AcquireNextImageKHR] {
            assert!(CommandOrdering::of(command).push_barrier.is_due(u64::from(suboptimal), || false));
            assert!(!CommandOrdering::of(command).push_barrier.is_due(2, || false), "a timeout is not");
        }
    }

    #[test]
    fn who_waits_for_a_present_does_not_hold_it_up() {
        let shared = Command::ALL.iter().filter(|it| CommandOrdering::of(**it).is_shared).map(|it| it.desc().name);
        let expected = ["vkGetPastPresentationTimingEXT", "vkWaitForPresent2KHR", "vkWaitForPresentKHR"];
        let mut shared: Vec<&str> = shared.collect();
        shared.sort_unstable();
        assert_eq!(shared, expected);
    }

    #[test]
    fn an_address_orders_only_when_it_is_new() {
        let after = CommandOrdering::of(Command::GetBufferDeviceAddress).push_barrier;
        assert!(after.is_due(u64::MAX, || true) && !after.is_due(0, || false));
        assert_eq!(CommandOrdering::of(Command::GetMemoryFdKHR).push_barrier, PushBarrier::Data);
        assert_eq!(CommandOrdering::of(Command::GetDescriptorEXT).push_barrier, PushBarrier::Never);
    }

    #[test]
    fn a_counter_orders_only_when_it_moved() {
        let after = CommandOrdering::of(Command::GetSemaphoreCounterValue).push_barrier;
        assert!(after.is_due(0, || true) && !after.is_due(0, || false));
    }
}
