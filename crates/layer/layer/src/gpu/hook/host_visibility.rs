//! Makes the writes of our code visible to the host: the last command of a command buffer with checks is a barrier.
//!
//! The layer submits nothing for that. A secondary command buffer may end inside of rendering, where no barrier is
//! allowed; the barrier of the primary one covers it. If rendering is suspended, the barrier of the next command buffer
//! covers it.

use lavascope_abi::*;

use crate::DeviceTable;
use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::resource::acceleration_structures::BarrierScopes;
use crate::gpu::{DeviceChecks, checks_of};
use crate::process::catch_panic::run_if_enabled;

/// Installs the hook.
pub(crate) fn install(table: &mut DeviceTable) {
    let end: FnEndCommandBuffer = end;
    let begin_rendering: FnCmdBeginRendering = begin_rendering;
    table.end_command_buffer = table.end_command_buffer.map(|_| end);
    table.cmd_begin_rendering = table.cmd_begin_rendering.map(|_| begin_rendering);
}

unsafe extern "system" fn begin_rendering(commands: CommandBuffer, p_info: Ptr<RenderingInfo>) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdBeginRendering-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    let Some(next) = gpu.next.cmd_begin_rendering else { return };
    let note = || {
        // SAFETY: VUID-vkCmdBeginRendering-pRenderingInfo-parameter: a valid structure until the call returns.
        let flags = unsafe { (*p_info.as_ptr()).flags.0 };
        let is_suspended = flags & RenderingFlags::SUSPENDING.0 != 0;
        gpu.slot(commands.0).and_then(|it| it.with(|it| it.is_suspended = is_suspended));
    };
    run_if_enabled("vkCmdBeginRendering", note, || ());
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    unsafe { next(commands, p_info) };
}

unsafe extern "system" fn end(commands: CommandBuffer) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkEndCommandBuffer-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.end_command_buffer else { return Result::ERROR_INITIALIZATION_FAILED };
    run_if_enabled("vkEndCommandBuffer", || gpu.make_visible(commands), || ());
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    unsafe { next(commands) }
}

impl DeviceChecks {
    fn make_visible(&self, handle: CommandBuffer) {
        let end = |commands: &mut CommandBufferState| {
            commands.launch_counts.flush();
            commands.may_end_with_barrier() && commands.writes_records()
        };
        let writes = self.slot(handle.0).and_then(|it| it.with(end));
        if writes == Some(true) {
            // Every device has barriers. Without one, writes to coherent memory would still be seen.
            _ = self.barrier(handle, BarrierScopes::TO_HOST);
        }
    }
}
