//! Debug labels of command buffers and queues, in the place of the driver's functions: findings name them.

use lavascope_abi::*;

use super::gpu_of;
use crate::DeviceTable;
use crate::entry::text;
use crate::fence::fence;

/// Puts our functions into a table.
pub(super) fn install(table: &mut DeviceTable) {
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
    // SAFETY: a command buffer that is alive.
    let Some(gpu) = (unsafe { gpu_of(commands.0) }) else { return };
    // SAFETY: a label of the application, valid as the specification demands.
    let name = unsafe { name_of(p_label) };
    fence("vkCmdBeginDebugUtilsLabelEXT", || gpu.with_commands(commands, |it| it.labels.begin(name)), || ());
    if let Some(next) = gpu.next.cmd_begin_debug_utils_label_ext {
        // SAFETY: the application's own parameters.
        unsafe { next(commands, p_label) };
    }
}

unsafe extern "system" fn cmd_end(commands: CommandBuffer) {
    // SAFETY: a command buffer that is alive.
    let Some(gpu) = (unsafe { gpu_of(commands.0) }) else { return };
    fence("vkCmdEndDebugUtilsLabelEXT", || gpu.with_commands(commands, |it| it.labels.end()), || ());
    if let Some(next) = gpu.next.cmd_end_debug_utils_label_ext {
        // SAFETY: the application's own parameters.
        unsafe { next(commands) };
    }
}

unsafe extern "system" fn queue_begin(queue: Queue, p_label: Ptr<DebugUtilsLabelEXT>) {
    // SAFETY: a queue that is alive.
    let Some(gpu) = (unsafe { gpu_of(queue.0) }) else { return };
    // SAFETY: a label of the application, valid as the specification demands.
    let name = unsafe { name_of(p_label) };
    fence("vkQueueBeginDebugUtilsLabelEXT", || gpu.state().queue_labels.entry(queue.0).or_default().push(name), || ());
    if let Some(next) = gpu.next.queue_begin_debug_utils_label_ext {
        // SAFETY: the application's own parameters.
        unsafe { next(queue, p_label) };
    }
}

unsafe extern "system" fn queue_end(queue: Queue) {
    // SAFETY: a queue that is alive.
    let Some(gpu) = (unsafe { gpu_of(queue.0) }) else { return };
    let pop = || drop(gpu.state().queue_labels.get_mut(&queue.0).and_then(Vec::pop));
    fence("vkQueueEndDebugUtilsLabelEXT", pop, || ());
    if let Some(next) = gpu.next.queue_end_debug_utils_label_ext {
        // SAFETY: the application's own parameters.
        unsafe { next(queue) };
    }
}

/// # Safety
///
/// The label must be valid.
unsafe fn name_of(p_label: Ptr<DebugUtilsLabelEXT>) -> String {
    // SAFETY: the caller's word.
    let name = unsafe { p_label.as_ptr().as_ref().and_then(|it| text(it.p_label_name)) };
    name.map_or_else(String::new, |it| it.to_string_lossy().into_owned())
}
