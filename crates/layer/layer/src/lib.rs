//! The Vulkan layer: loader negotiation, dispatch, settings, messages, and records of every call.
//!
//! `libVkLayer_lavascope.so` answers as `VK_LAYER_LAVASCOPE_inspect`. A dispatch table holds the next functions in
//! the chain; it is filled once per instance or device, through the next `vkGet*ProcAddr`. A function that goes by
//! several names is asked for by each in turn.

#![allow(non_snake_case, reason = "the loader's habit for the names of layer libraries")]

#[macro_use]
mod macros;

mod pnext_chain;
mod backtrace;
mod thread_safety;
mod calls;
mod capture;
mod chain;
mod termination;
mod deferred_operations;
mod device;
mod dispatch;
mod proc_addr;
mod enumerate;
mod device_metadata;
mod catch_panic;
#[rustfmt::skip]
mod generated;
mod gpu;
mod handles;
mod process_state;
mod inline_validation;
mod instance;
mod interface;
mod object_parent;
mod library;
mod device_lost;
mod memory;
mod message_json;
mod messages;
mod handle_table;
mod object_deps;
mod order;
mod pictures;
mod call_log;
mod device_limits;
mod report_file;
mod shim;
mod call_stats;
mod thread_exit;
mod rendered_finding;
mod headless_surface;
mod validation;

pub use proc_addr::vkNegotiateLoaderLayerInterfaceVersion;
pub use enumerate::INSTANCE_EXTENSIONS;
pub use generated::{DeviceTable, InstanceTable};

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::{CommandBuffer, FnPtr};

    unsafe extern "system" fn draw(_: CommandBuffer, vertices: u32, _: u32, _: u32, _: u32) {
        assert_eq!(vertices, 3);
    }

    #[test]
    fn a_table_holds_what_the_chain_gives() {
        let address = FnPtr((draw as *const ()).expose_provenance() as u64);
        // SAFETY: only the draw is given, and it is one.
        let table = unsafe { DeviceTable::load(|name| if name == c"vkCmdDraw" { address } else { FnPtr::default() }) };
        assert!(table.cmd_dispatch.is_none());
        let Some(next) = table.cmd_draw else { panic!("the draw is not in the table") };
        // SAFETY: the function above takes anything.
        unsafe { next(CommandBuffer(1), 3, 1, 0, 0) };
    }

    #[test]
    fn aliases_are_asked_for_in_turn() {
        let mut asked = Vec::new();
        // SAFETY: nothing is given.
        let table = unsafe {
            DeviceTable::load(|name| {
                asked.push(name.to_string_lossy().into_owned());
                FnPtr::default()
            })
        };
        assert!(table.cmd_pipeline_barrier2.is_none());
        assert!(asked.iter().any(|it| it == "vkCmdPipelineBarrier2KHR"));
    }
}
