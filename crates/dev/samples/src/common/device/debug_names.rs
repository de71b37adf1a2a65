//! Names of objects and labels of commands, for tools that show them; nothing where debug utils are missing.

use std::ffi::CString;

use ash::vk;

use crate::common::Gpu;

impl Gpu {
    /// Gives an object its name and returns it.
    pub(crate) fn name<T: vk::Handle + Copy>(&self, object: T, name: &str) -> T {
        let Some(debug) = &self.debug else { return object };
        let name = c_string(name);
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(&name);
        // SAFETY: a live object of this thread, and the extension is enabled (lifetime, owner, feature).
        // A name that cannot be kept is no reason to stop.
        let _ = unsafe { debug.set_debug_utils_object_name(&info) };
        object
    }

    /// Records commands between the two ends of a label.
    pub(crate) fn labeled<T>(&self, commands: vk::CommandBuffer, label: &str, record: impl FnOnce() -> T) -> T {
        let Some(debug) = &self.debug else { return record() };
        let label = c_string(label);
        let label = vk::DebugUtilsLabelEXT::default().label_name(&label).color([0.2, 0.6, 1.0, 1.0]);
        // SAFETY: `commands` is being recorded by this thread, and the extension is enabled (owner, feature).
        unsafe { debug.cmd_begin_debug_utils_label(commands, &label) };
        let result = record();
        // SAFETY: recorded by this thread, with the label open that began above
        // (VUID-vkCmdEndDebugUtilsLabelEXT-commandBuffer-01912; owner, feature).
        unsafe { debug.cmd_end_debug_utils_label(commands) };
        result
    }
}

/// A name up to the first zero byte; names of samples have none.
fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}
