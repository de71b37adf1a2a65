//! How each command is performed again.

use std::sync::OnceLock;

use lavascope_abi::Command;

use crate::error::ReplayError;
use crate::pair::returns_handles;
use crate::perform::{RecordedCall, Performer};
use crate::straight::InPlaceCall;
use crate::{
    addresses, allocator, bind, blobs, device, formats, held, instance, layout, memory, pipeline, pitches, plan,
    present, wait,
};

/// Performs a call in a way of its own.
pub(crate) type HandlerFn = for<'a, 'b, 'c, 'd> fn(&'a mut Performer<'b>, &'c RecordedCall<'d>) -> Result<(), ReplayError>;

#[derive(Clone, Copy)]
pub(crate) enum CommandHandler {
    /// As it was.
    Unchanged,
    /// Not at all: it asked something that the trace has the answer to, or concerns the machine it was made on.
    Skip,
    Custom(HandlerFn),
}

/// What is known of a command.
pub(crate) struct CommandEntry {
    pub(crate) handler: CommandHandler,
    /// How it is performed where its record lies, unless numbers mean something else here.
    pub(crate) in_place: Option<InPlaceCall>,
    /// Whether it has a second record, when it returns.
    pub(crate) has_leave: bool,
}

/// By number of the command. A program uses a few of them, and going through what is known of all takes time and memory;
/// so each is found out when it is first met.
pub(crate) struct HandlerTable {
    rows: Box<[OnceLock<CommandEntry>]>,
    of: fn(Command) -> CommandEntry,
}

impl HandlerTable {
    pub(crate) fn new() -> HandlerTable {
        HandlerTable::with(|it| CommandEntry::new(it, handler_of(it)))
    }

    /// For one who only wants to know what would be done.
    pub(crate) fn for_plan() -> HandlerTable {
        HandlerTable::with(|it| CommandEntry { in_place: None, ..CommandEntry::new(it, plan::plan_handler(it)) })
    }

    fn with(of: fn(Command) -> CommandEntry) -> HandlerTable {
        HandlerTable { rows: Command::ALL.iter().map(|_| OnceLock::new()).collect(), of }
    }

    pub(crate) fn of(&self, command: Command) -> &CommandEntry {
        self.rows[command as usize].get_or_init(|| (self.of)(command))
    }

    /// By its number; none where there is no such command.
    #[inline]
    pub(crate) fn get(&self, number: u16) -> Option<&CommandEntry> {
        match self.rows.get(usize::from(number))?.get() {
            Some(row) => Some(row),
            None => self.make(number),
        }
    }

    #[cold]
    fn make(&self, number: u16) -> Option<&CommandEntry> {
        Command::from_number(number).map(|it| self.of(it))
    }
}

impl CommandEntry {
    fn new(command: Command, treatment: CommandHandler) -> CommandEntry {
        use Command as C;
        // What is special about these is only that they may hold addresses.
        let has_numbers = matches!(command, C::CmdPushConstants | C::CmdPushConstants2 | C::CmdUpdateBuffer);
        let is_plain = matches!(treatment, CommandHandler::Unchanged);
        let straight = if is_plain || has_numbers { InPlaceCall::of(command) } else { None };
        CommandEntry { handler: treatment, in_place: straight, has_leave: command.desc().outputs.is_some() }
    }
}

fn handler_of(command: Command) -> CommandHandler {
    if let Some(special) = custom_handler(command) {
        return CommandHandler::Custom(special);
    }
    let name = command.desc().name;
    let asks = name.starts_with("vkGet") || name.starts_with("vkEnumerate");
    if is_platform_specific(command) || (asks && !returns_handles(command.desc())) {
        return CommandHandler::Skip;
    }
    CommandHandler::Unchanged
}

fn custom_handler(command: Command) -> Option<HandlerFn> {
    use Command as C;
    Some(match command {
        C::CreateInstance => instance::create,
        C::EnumeratePhysicalDevices => instance::physical_devices,
        C::EnumeratePhysicalDeviceGroups => instance::physical_device_groups,
        C::GetPhysicalDeviceProperties | C::GetPhysicalDeviceProperties2 => instance::record_properties,
        C::GetPhysicalDeviceMemoryProperties | C::GetPhysicalDeviceMemoryProperties2 => instance::record_properties,
        C::GetPhysicalDeviceQueueFamilyProperties | C::GetPhysicalDeviceQueueFamilyProperties2 => instance::record_properties,
        C::CreateDevice => device::create,
        C::DestroyDevice => device::destroy,
        C::GetDeviceQueue => device::queue,
        C::GetDeviceQueue2 => device::queue2,
        C::DeviceWaitIdle => device::wait_idle,
        C::CreateCommandPool => allocator::create_pool,
        C::DestroyCommandPool => allocator::destroy_pool,
        C::AllocateMemory => memory::allocate,
        C::BindBufferMemory | C::BindBufferMemory2 | C::BindImageMemory | C::BindImageMemory2 => bind::bind,
        C::FreeMemory => memory::free,
        C::MapMemory | C::MapMemory2 => memory::map,
        C::UnmapMemory | C::UnmapMemory2 => memory::unmap,
        C::CreateBuffer | C::CreateAccelerationStructureKHR => addresses::create,
        C::GetBufferDeviceAddress | C::GetAccelerationStructureDeviceAddressKHR => addresses::query_address,
        C::CmdPushConstants | C::CmdPushConstants2 | C::CmdUpdateBuffer => addresses::patch_constants,
        C::GetImageSubresourceLayout | C::GetImageSubresourceLayout2 => pitches::query_subresource_layout,
        C::GetRayTracingShaderGroupHandlesKHR => blobs::shader_group_handles,
        C::GetDescriptorEXT => blobs::descriptor,
        C::GetDescriptorSetLayoutSizeEXT | C::GetDescriptorSetLayoutBindingOffsetEXT => blobs::descriptor_layout,
        C::CreateImage => layout::create_image,
        C::CreateImageView | C::CreateRenderPass | C::CreateRenderPass2 => formats::create,
        C::DestroyBuffer | C::DestroyImage => layout::destroy,
        C::CreateGraphicsPipelines => pipeline::graphics,
        C::WaitForFences => wait::fences,
        C::GetFenceStatus => wait::fence_status,
        C::WaitSemaphores => wait::semaphores,
        C::GetSemaphoreCounterValue => wait::counter,
        C::GetEventStatus => wait::event_status,
        C::GetQueryPoolResults => wait::query_results,
        C::DeferredOperationJoinKHR => wait::join,
        C::CreateSwapchainKHR => present::create,
        C::DestroySwapchainKHR => present::destroy,
        C::GetSwapchainImagesKHR => present::images,
        C::AcquireNextImageKHR | C::AcquireNextImage2KHR => present::acquire,
        C::QueuePresentKHR => held::present,
        C::QueueSubmit | C::QueueSubmit2 | C::QueueBindSparse => held::submit,
        C::CreateSemaphore => held::create_semaphore,
        C::SignalSemaphore => held::signal,
        C::QueueWaitIdle => held::queue_wait_idle,
        C::DestroySurfaceKHR => present::destroy_surface,
        _ if creates_surface(command) => present::surface,
        _ => return None,
    })
}

/// Whether the host waits in a call, or asks how far the device is.
pub(crate) fn is_wait(command: Command) -> bool {
    use Command as C;
    matches!(
        command,
        C::WaitForFences
            | C::GetFenceStatus
            | C::WaitSemaphores
            | C::GetSemaphoreCounterValue
            | C::GetEventStatus
            | C::GetQueryPoolResults
            | C::QueueWaitIdle
            | C::DeviceWaitIdle
            | C::DeferredOperationJoinKHR
            | C::AcquireNextImageKHR
            | C::AcquireNextImage2KHR
    )
}

/// Makes a surface: there is none here.
pub(crate) fn creates_surface(command: Command) -> bool {
    let name = command.desc().name;
    name.starts_with("vkCreate") && name.contains("Surface")
}

/// What only meant something where the trace was made: windows, displays, callbacks, other processes, mapped memory.
pub(crate) fn is_platform_specific(command: Command) -> bool {
    use Command as C;
    let name = command.desc().name;
    let platform = ["Display", "FullScreenExclusive", "WinrtDisplay", "Latency", "Profiling", "PrivateData"];
    let is_platform = platform.iter().any(|it| name.contains(it));
    let is_export = name.starts_with("vkImport") || name.contains("Fd") || name.contains("Zircon");
    is_platform
        || is_export
        || matches!(
            command,
            C::FlushMappedMemoryRanges
                | C::InvalidateMappedMemoryRanges
                | C::CreateDebugUtilsMessengerEXT
                | C::DestroyDebugUtilsMessengerEXT
                | C::SubmitDebugUtilsMessageEXT
                | C::CreateDebugReportCallbackEXT
                | C::DestroyDebugReportCallbackEXT
                | C::DebugReportMessageEXT
                | C::ReleaseSwapchainImagesKHR
                | C::SetHdrMetadataEXT
                | C::WaitForPresentKHR
                | C::WaitForPresent2KHR
                | C::CreatePrivateDataSlot
                | C::DestroyPrivateDataSlot
        )
}
