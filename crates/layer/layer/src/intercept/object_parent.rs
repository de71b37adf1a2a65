//! The parent of a new object, and a note of the properties that its flags define.

use lavascope_abi::*;
use lavascope_stream::ObjectParent;

use crate::intercept::handle_table::{HandleTable, NOTE_SECONDARY, PROCESS_HANDLES, belongs_to_process};
use crate::intercept::handles::direct_handles;
use crate::intercept::thread_safety::{NOTE_CONCURRENT_UPDATES, NOTE_INTERNALLY_SYNCHRONIZED};
use crate::loader::pnext_chain::find_in_chain;
use crate::process::process_state::PROCESS_STATE;

/// The parent of a new object, and its note.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that made objects of type `ty` and has not returned to
/// the application, so that its infos and their chains are still there.
pub(crate) unsafe fn parent_and_note(
    handles: &HandleTable,
    command: Command,
    params: *const u8,
    ty: HandleType,
) -> (ObjectParent, u32) {
    let owner = |ty, handle| handles.slot(ty, handle).map_or(ObjectParent::None, ObjectParent::Owner);
    match command {
        Command::AllocateCommandBuffers => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            // VUID-vkAllocateCommandBuffers-pAllocateInfo-parameter makes the info valid.
            let info = unsafe { &*(*params.cast::<AllocateCommandBuffersParams>()).p_allocate_info.as_ptr() };
            let pool = handles.slot(HandleType::CommandPool, info.command_pool.0);
            let note = if info.level == CommandBufferLevel::SECONDARY { NOTE_SECONDARY } else { 0 };
            (pool.map_or(ObjectParent::None, ObjectParent::SharedSyncDomain), note)
        }
        Command::AllocateDescriptorSets => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            // VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter makes the info valid.
            let info = unsafe { &*(*params.cast::<AllocateDescriptorSetsParams>()).p_allocate_info.as_ptr() };
            // SAFETY: the info is that of a valid `vkAllocateDescriptorSets`.
            let note = unsafe { layout_notes(handles, info) };
            (owner(HandleType::DescriptorPool, info.descriptor_pool.0), note)
        }
        Command::GetSwapchainImagesKHR => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            let swapchain = unsafe { (*params.cast::<GetSwapchainImagesKHRParams>()).swapchain };
            (owner(HandleType::SwapchainKHR, swapchain.0), 0)
        }
        Command::CreatePipelineCache => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            // VUID-vkCreatePipelineCache-pCreateInfo-parameter makes the info valid.
            let info = unsafe { &*(*params.cast::<CreatePipelineCacheParams>()).p_create_info.as_ptr() };
            let is_own = info.flags.0 & PipelineCacheCreateFlags::EXTERNALLY_SYNCHRONIZED.0 != 0;
            (ObjectParent::None, if is_own { 0 } else { NOTE_INTERNALLY_SYNCHRONIZED })
        }
        Command::GetDeviceQueue2 => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            // VUID-vkGetDeviceQueue2-pQueueInfo-parameter makes the info valid.
            let info = unsafe { &*(*params.cast::<GetDeviceQueue2Params>()).p_queue_info.as_ptr() };
            let is_own = info.flags.0 & DeviceQueueCreateFlags::INTERNALLY_SYNCHRONIZED_KHR.0 == 0;
            (ObjectParent::None, if is_own { 0 } else { NOTE_INTERNALLY_SYNCHRONIZED })
        }
        Command::CreateDescriptorSetLayout => {
            // SAFETY: the contract of this function: the parameters are those of this command.
            // VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter makes the info valid.
            let info = unsafe { &*(*params.cast::<CreateDescriptorSetLayoutParams>()).p_create_info.as_ptr() };
            // SAFETY: the info is that of a valid `vkCreateDescriptorSetLayout`.
            (ObjectParent::None, if unsafe { has_shared_bindings(info) } { NOTE_CONCURRENT_UPDATES } else { 0 })
        }
        // Physical devices, displays and surfaces end with the instance or physical device that gave them.
        _ if belongs_to_process(ty) => {
            let base = params.expose_provenance() as u64;
            // SAFETY: the contract of this function: the image of a call of this command, whose layout this is.
            let from = unsafe { direct_handles(command.desc().parameters, base) };
            let slot = from.first().and_then(|it| PROCESS_HANDLES.slot(it.ty, it.handle));
            (slot.map_or(ObjectParent::None, ObjectParent::Owner), 0)
        }
        _ => (ObjectParent::None, 0),
    }
}

/// Whether several threads may update different descriptors of a set with this layout.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateDescriptorSetLayout` that has not returned to the application.
unsafe fn has_shared_bindings(info: &DescriptorSetLayoutCreateInfo) -> bool {
    let ty = StructureType::DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO;
    // SAFETY: VUID-VkDescriptorSetLayoutCreateInfo-pNext-pNext by the contract of this function: a valid chain; the
    // type is that of the structure.
    let flags = unsafe { find_in_chain::<DescriptorSetLayoutBindingFlagsCreateInfo>(info.p_next, ty) };
    let shared = DescriptorBindingFlags::UPDATE_AFTER_BIND.0 | DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING.0;
    flags.is_some_and(|flag| {
        // SAFETY: a structure of the chain, which stays until the call returns.
        let flags = unsafe { &*flag.as_ptr() };
        // SAFETY: VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-parameter: there are `binding_count`
        // flags.
        (0..flags.binding_count as usize).any(|at| unsafe { (*flags.p_binding_flags.as_ptr().add(at)).0 & shared != 0 })
    })
}

/// The notes of layouts, for sets that are allocated with them.
///
/// # Safety
///
/// The info must be that of a valid `vkAllocateDescriptorSets` that has not returned to the application.
unsafe fn layout_notes(handles: &HandleTable, info: &DescriptorSetAllocateInfo) -> u32 {
    let note = |at: usize| {
        // SAFETY: VUID-VkDescriptorSetAllocateInfo-pSetLayouts-parameter by the contract of this function: there is a
        // layout for each of the `descriptor_set_count` sets, and `at` is below that.
        let layout = unsafe { *info.p_set_layouts.as_ptr().add(at) };
        handles.slot(HandleType::DescriptorSetLayout, layout.0).map_or(0, |it| PROCESS_STATE.objects.user_data(it))
    };
    (0..info.descriptor_set_count as usize).fold(0, |all, it| all | note(it))
}
