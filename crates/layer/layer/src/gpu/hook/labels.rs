//! Hooks for debug labels of command buffers and queues, which findings name.

use lavascope_abi::*;

use crate::DeviceTable;
use crate::gpu::checks_of;
use crate::loader::proc_addr::c_str;
use crate::process::catch_panic::run_if_enabled;

/// Installs the hooks.
pub(crate) fn install(table: &mut DeviceTable) {
    let begin: FnCmdBeginDebugUtilsLabelEXT = cmd_begin;
    let end: FnCmdEndDebugUtilsLabelEXT = cmd_end;
    let queue_begin: FnQueueBeginDebugUtilsLabelEXT = queue_begin;
    let queue_end: FnQueueEndDebugUtilsLabelEXT = queue_end;
    table.cmd_begin_debug_utils_label_ext = table.cmd_begin_debug_utils_label_ext.map(|_| begin);
    table.cmd_end_debug_utils_label_ext = table.cmd_end_debug_utils_label_ext.map(|_| end);
    table.queue_begin_debug_utils_label_ext = table.queue_begin_debug_utils_label_ext.map(|_| queue_begin);
    table.queue_end_debug_utils_label_ext = table.queue_end_debug_utils_label_ext.map(|_| queue_end);
}

unsafe extern "system" fn cmd_begin(commands: CommandBuffer, p_label: Ptr<DebugUtilsLabelEXT>) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdBeginDebugUtilsLabelEXT-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    let note = || {
        // SAFETY: VUID-vkCmdBeginDebugUtilsLabelEXT-pLabelInfo-parameter: a valid structure until the call returns.
        let name = unsafe { name_of(p_label) };
        gpu.with_commands(commands, |it| it.labels.begin(name));
    };
    run_if_enabled("vkCmdBeginDebugUtilsLabelEXT", note, || ());
    if let Some(next) = gpu.next.cmd_begin_debug_utils_label_ext {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(commands, p_label) };
    }
}

unsafe extern "system" fn cmd_end(commands: CommandBuffer) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdEndDebugUtilsLabelEXT-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    run_if_enabled("vkCmdEndDebugUtilsLabelEXT", || gpu.with_commands(commands, |it| it.labels.end()), || ());
    if let Some(next) = gpu.next.cmd_end_debug_utils_label_ext {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(commands) };
    }
}

unsafe extern "system" fn queue_begin(queue: Queue, p_label: Ptr<DebugUtilsLabelEXT>) {
    // SAFETY: the loader calls this with the parameters of the application, whose queue is alive until the call returns
    // (VUID-vkQueueBeginDebugUtilsLabelEXT-queue-parameter).
    let Some(gpu) = (unsafe { checks_of(queue.0) }) else { return };
    let note = || {
        // SAFETY: VUID-vkQueueBeginDebugUtilsLabelEXT-pLabelInfo-parameter: a valid structure until the call returns.
        let name = unsafe { name_of(p_label) };
        gpu.state().queue_labels.entry(queue.0).or_default().push(name);
    };
    run_if_enabled("vkQueueBeginDebugUtilsLabelEXT", note, || ());
    if let Some(next) = gpu.next.queue_begin_debug_utils_label_ext {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(queue, p_label) };
    }
}

unsafe extern "system" fn queue_end(queue: Queue) {
    // SAFETY: the loader calls this with the parameters of the application, whose queue is alive until the call returns
    // (VUID-vkQueueEndDebugUtilsLabelEXT-queue-parameter).
    let Some(gpu) = (unsafe { checks_of(queue.0) }) else { return };
    let pop = || drop(gpu.state().queue_labels.get_mut(&queue.0).and_then(Vec::pop));
    run_if_enabled("vkQueueEndDebugUtilsLabelEXT", pop, || ());
    if let Some(next) = gpu.next.queue_end_debug_utils_label_ext {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(queue) };
    }
}

/// # Safety
///
/// The parameter must be null, or lead to a valid label.
unsafe fn name_of(p_label: Ptr<DebugUtilsLabelEXT>) -> String {
    // SAFETY: the contract of this function; VUID-VkDebugUtilsLabelEXT-pLabelName-parameter: a string that ends with a zero.
    let name = unsafe { p_label.as_ptr().as_ref().and_then(|it| c_str(it.p_label_name)) };
    name.map_or_else(String::new, |it| it.to_string_lossy().into_owned())
}
