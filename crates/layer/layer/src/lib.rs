//! The Vulkan layer: loader negotiation, dispatch, settings, messages, and records of every call.
//!
//! `libVkLayer_lavascope.so` answers as `VK_LAYER_LAVASCOPE_inspect` and speaks version 2 of the loader's layer
//! interface. A dispatch table holds the next functions in the chain; it is filled once per instance or device,
//! through the next `vkGet*ProcAddr`. A function that goes by several names is asked for by each in turn.
//!
//! While nobody listens, the layer intercepts only what creates and destroys instances, devices and messengers. Where
//! somebody listens, the application gets a generated shim for each command that the next layer has. The shim packs
//! the parameters, passes the call on, and packs the outputs (`intercept`). No lock is held while the driver is
//! called.

#![allow(non_snake_case, reason = "the loader's habit for the names of layer libraries")]

#[macro_use]
mod intercept;
mod backtrace;
mod capture;
mod loader;
mod process;
mod report;
#[rustfmt::skip]
mod generated;
mod gpu;
mod memory;
mod pictures;

pub use generated::{DeviceTable, InstanceTable};
pub use loader::enumerate::INSTANCE_EXTENSIONS;
pub use loader::proc_addr::vkNegotiateLoaderLayerInterfaceVersion;

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
