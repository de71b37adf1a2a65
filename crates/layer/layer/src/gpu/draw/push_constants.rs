//! Keeps the application's push constants, to push them again after ours have disturbed them.
//!
//! Values survive a pipeline with other push constant ranges, but not a push with another layout.

use std::sync::Arc;

use lavascope_abi::*;

use crate::gpu::DeviceChecks;
use crate::gpu::pipeline::layouts::PipelineLayoutState;

/// The values that were pushed into a command buffer.
#[derive(Clone, Default)]
pub(crate) struct PushedConstants {
    layout: Option<Arc<PipelineLayoutState>>,
    bytes: Vec<u8>,
    /// For each four bytes, whether they were pushed.
    is_there: Vec<bool>,
    is_disturbed: bool,
}

impl PushedConstants {
    /// The application pushes bytes.
    pub(crate) fn add(&mut self, layout: &Arc<PipelineLayoutState>, offset: u32, bytes: &[u8]) {
        if self.layout.as_ref().is_none_or(|it| !it.has_same_push_ranges(layout)) {
            *self = PushedConstants::default();
        }
        self.layout = Some(Arc::clone(layout));
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.is_there.resize(end.div_ceil(4), false);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        self.is_there[start / 4..end.div_ceil(4)].fill(true);
    }

    /// The layer pushes with a layout.
    #[inline(always)]
    pub(crate) fn disturb(&mut self, layout: &Arc<PipelineLayoutState>) {
        let is_other = |it: &Arc<PipelineLayoutState>| !Arc::ptr_eq(it, layout) && !it.has_same_push_ranges(layout);
        self.is_disturbed |= self.layout.as_ref().is_some_and(is_other);
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        self.is_disturbed
    }

    pub(crate) fn clear_disturbed(&mut self) {
        self.is_disturbed = false;
    }

    /// The pushed bytes, as runs with the same stages.
    fn runs(&self) -> Vec<(u32, u32, u32)> {
        let Some(layout) = &self.layout else { return Vec::new() };
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for (at, _) in self.is_there.iter().enumerate().filter(|it| *it.1) {
            let offset = at as u32 * 4;
            let stages = layout.stages_of_push(offset, 4);
            match runs.last_mut() {
                Some(last) if last.0 + last.1 == offset && last.2 == stages => last.1 += 4,
                _ => runs.push((offset, 4, stages)),
            }
        }
        runs
    }

    /// Pushes all of it again into its command buffer. Hooks of commands that are recorded into that command buffer
    /// call this with the driver's function.
    pub(crate) fn repush(&self, handle: CommandBuffer, push: FnCmdPushConstants) {
        let Some(layout) = self.layout.as_ref().map(|it| it.own_handle.unwrap_or(it.handle)) else { return };
        for (offset, size, stages) in self.runs() {
            let bytes = &self.bytes[offset as usize..];
            // SAFETY: the caller is a hook of a command for this command buffer, which is being recorded
            // (VUID-vkCmdDraw-commandBuffer-recording and the like). The bytes, and the stages of the layout for them,
            // are what the application pushed itself, and there are `size` of them.
            unsafe { push(handle, layout, ShaderStageFlags(stages), offset, size, Ptr::to_slice(bytes)) };
        }
    }
}

impl DeviceChecks {
    /// The stages that the application's push must be for, with what its layout has besides; its values are kept.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCmdPushConstants` or `vkCmdPushConstants2` that has not returned.
    pub(crate) unsafe fn record_push_constants(
        &self,
        handle: CommandBuffer,
        layout: PipelineLayout,
        (stages, offset): (ShaderStageFlags, u32),
        (bytes, size): (Ptr<u8>, u32),
    ) -> ShaderStageFlags {
        let Some(layout) = self.state().pipeline_layouts.get(&layout.0).cloned() else { return stages };
        // SAFETY: VUID-vkCmdPushConstants-pValues-parameter or VUID-VkPushConstantsInfo-pValues-parameter, by the
        // contract of this function: as many bytes as the size says.
        let bytes = unsafe { crate::gpu::slice(bytes, size) };
        if let Some(slot) = self.slot(handle.0) {
            slot.with(|it| it.push_constants.add(&layout, offset, bytes));
        }
        ShaderStageFlags(stages.0 | layout.stages_of_push(offset, size))
    }
}
