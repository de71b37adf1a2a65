//! The Vulkan layer: loader negotiation, dispatch, settings, messages, and records of every call.
//!
//! `libVkLayer_lavascope.so` answers as `VK_LAYER_LAVASCOPE_inspect`. A dispatch table holds the next functions in
//! the chain; it is filled once per instance or device, through the next `vkGet*ProcAddr`. A function that goes by
//! several names is asked for by each in turn.

#![allow(non_snake_case, reason = "the loader's habit for the names of layer libraries")]

#[macro_use]
mod macros;

mod application;
mod backtrace;
mod breach;
mod calls;
mod capture;
mod chain;
mod death;
mod deferred;
mod device;
mod dispatch;
mod entry;
mod enumerate;
mod facts;
mod fence;
#[rustfmt::skip]
mod generated;
mod gpu;
mod handles;
mod hub;
mod inline;
mod instance;
mod interface;
mod kin;
mod library;
mod lost;
mod memory;
mod message_json;
mod messages;
mod names;
mod object_deps;
mod order;
mod pictures;
mod print;
mod properties;
mod report;
mod shim;
mod stats;
mod thread_end;
mod told;
mod unseen;
mod validation;

pub use entry::vkNegotiateLoaderLayerInterfaceVersion;
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
