//! How each command is performed again: unchanged, not at all, or by a handler of its own.
//!
//! A dry run uses another table of handlers and the same code (`port/plan.rs`), so a plan cannot disagree with the
//! replay.

use std::sync::OnceLock;

use lavascope_abi::Command;
use lavascope_abi::desc::Fixup;

use crate::call::in_place_call::InPlaceCall;
use crate::call::output_handles::returns_handles;
use crate::call::perform::{Performer, RecordedCall};
use crate::call::{held_submissions, host_waits, object_labels};
use crate::error::ReplayError;
use crate::memory::{bind, bindings, device_memory, host_allocator, host_image_copy, linear_images};
use crate::port::{device, device_addresses, driver_blobs, external_files, formats, instance, pipeline, plan};
use crate::present::virtual_swapchain;

/// Performs a call in a way of its own.
pub(crate) type HandlerFn =
    for<'a, 'b, 'c, 'd> fn(&'a mut Performer<'b>, &'c RecordedCall<'d>) -> Result<(), ReplayError>;

#[derive(Clone, Copy)]
pub(crate) enum CommandHandler {
    /// As it was.
    Unchanged,
    /// Not at all: it asked something that the trace has the answer to, or concerns the machine it was made on.
    Skip,
    Custom(HandlerFn),
}

/// How a command is performed.
pub(crate) struct CommandEntry {
    pub(crate) handler: CommandHandler,
    /// How it is performed where its record lies, unless numbers mean something else here.
    pub(crate) in_place: Option<InPlaceCall>,
    /// Whether it has a second record, when it returns.
    pub(crate) has_leave: bool,
}

/// By number of the command. Each entry is computed when its command comes first: a program uses a few commands, and
/// computing the entries of all takes time and memory.
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

    /// By its number; none if there is no such command.
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
        // These are special only because they may hold addresses.
        let has_numbers = matches!(command, C::CmdPushConstants | C::CmdUpdateBuffer);
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
    if is_platform_specific(command) || uses_virtual_object(command) || (asks && !returns_handles(command.desc())) {
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
        C::GetPhysicalDeviceQueueFamilyProperties | C::GetPhysicalDeviceQueueFamilyProperties2 => {
            instance::record_properties
        }
        C::CreateDevice => device::create,
        C::DestroyDevice => device::destroy,
        C::GetDeviceQueue => device::queue,
        C::GetDeviceQueue2 => device::queue2,
        C::DeviceWaitIdle => device::wait_idle,
        C::CreateCommandPool => host_allocator::create_pool,
        C::DestroyCommandPool => host_allocator::destroy_pool,
        C::AllocateMemory => device_memory::allocate,
        C::BindBufferMemory | C::BindBufferMemory2 | C::BindImageMemory | C::BindImageMemory2 => bind::bind,
        C::FreeMemory => device_memory::free,
        C::MapMemory | C::MapMemory2 => device_memory::map,
        C::UnmapMemory | C::UnmapMemory2 => device_memory::unmap,
        C::CreateBuffer | C::CreateAccelerationStructureKHR => device_addresses::create,
        _ if device_addresses::is_query(command) => device_addresses::query_address,
        C::CmdPushConstants | C::CmdUpdateBuffer => device_addresses::patch_constants,
        C::GetImageSubresourceLayout | C::GetImageSubresourceLayout2 => linear_images::query_subresource_layout,
        C::GetRayTracingShaderGroupHandlesKHR => driver_blobs::shader_group_handles,
        C::GetDescriptorEXT => driver_blobs::descriptor,
        C::GetDescriptorSetLayoutSizeEXT | C::GetDescriptorSetLayoutBindingOffsetEXT => driver_blobs::descriptor_layout,
        C::CreateImage => bindings::create_image,
        C::CopyImageToMemory => host_image_copy::image_to_memory,
        C::CreateImageView | C::CreateRenderPass | C::CreateRenderPass2 => formats::create,
        C::DestroyBuffer | C::DestroyImage => bindings::destroy,
        C::CreateGraphicsPipelines => pipeline::graphics,
        C::WaitForFences => host_waits::fences,
        C::GetFenceStatus => host_waits::fence_status,
        C::WaitSemaphores => host_waits::semaphores,
        C::GetSemaphoreCounterValue => host_waits::counter,
        C::GetEventStatus => host_waits::event_status,
        C::GetQueryPoolResults => host_waits::query_results,
        C::DeferredOperationJoinKHR => host_waits::join,
        C::CreateSwapchainKHR => virtual_swapchain::create,
        C::DestroySwapchainKHR => virtual_swapchain::destroy,
        C::GetSwapchainImagesKHR => virtual_swapchain::images,
        C::AcquireNextImageKHR | C::AcquireNextImage2KHR => virtual_swapchain::acquire,
        C::QueuePresentKHR => held_submissions::present,
        C::QueueSubmit | C::QueueSubmit2 | C::QueueBindSparse => held_submissions::submit,
        C::CreateSemaphore => held_submissions::create_semaphore,
        C::SignalSemaphore => held_submissions::signal,
        C::QueueWaitIdle => held_submissions::queue_wait_idle,
        C::DestroySurfaceKHR => virtual_swapchain::destroy_surface,
        C::GetFenceFdKHR | C::GetSemaphoreFdKHR | C::GetMemoryFdKHR => external_files::export,
        C::ImportFenceFdKHR | C::ImportSemaphoreFdKHR => external_files::import,
        C::SetDebugUtilsObjectNameEXT
        | C::SetDebugUtilsObjectTagEXT
        | C::DebugMarkerSetObjectNameEXT
        | C::DebugMarkerSetObjectTagEXT => object_labels::label,
        _ if creates_surface(command) => virtual_swapchain::surface,
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

/// Whether a parameter is an object that exists in name only: a driver would follow a number that is no handle.
fn uses_virtual_object(command: Command) -> bool {
    let fixups = command.desc().parameters.fixups.iter();
    let is_virtual = |it: &Fixup| matches!(it, Fixup::Handles { ty, .. } if object_labels::is_virtual(*ty));
    fixups.into_iter().any(is_virtual)
}

/// Makes a surface: there is none here.
pub(crate) fn creates_surface(command: Command) -> bool {
    let name = command.desc().name;
    name.starts_with("vkCreate") && name.contains("Surface")
}

/// Commands that only have a meaning on the system of the trace: windows, displays, callbacks, other processes, mapped
/// memory.
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
