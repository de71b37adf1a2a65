//! A verdict for every command of the registry: who understands it, or why it does not matter, or what is missing.
//!
//! The verdicts are generated from the tables in `codegen/src/state`, which fails for a command that has none or two.
//! A test feeds every command to the family that is said to take it.

use lavascope_abi::Command;

use crate::generated::VERDICTS;

/// What the tracker makes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Understood(Family, When),
    /// It has nothing to do with what the tracker follows, for a reason.
    Ignored(&'static str),
    /// It matters, and the tracker does not follow it: it is counted and named whenever it is called.
    Missing(&'static str),
}

/// When a call takes effect for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the driver sees it.
    Enter,
    /// When its results are known.
    Leave,
}

/// The part of the tracker that takes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Device,
    Memory,
    Image,
    CommandBuffer,
    Copy,
    Barrier,
    Sync,
    Queue,
    Swapchain,
    RenderPass,
    Rendering,
    Pipeline,
    Descriptor,
    DescriptorMemory,
    Bind,
    Draw,
    Query,
    Ray,
    RayNv,
    Micromap,
    HostBuild,
    Address,
    HostCopy,
    Video,
    External,
    Tensor,
    OpticalFlow,
    Generated,
    Indirect,
}

/// The verdict on a command.
pub fn decision(command: Command) -> Decision {
    VERDICTS[command as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_decision() {
        assert_eq!(VERDICTS.len(), Command::ALL.len());
        for (at, command) in Command::ALL.iter().enumerate() {
            assert_eq!(*command as usize, at);
        }
    }

    #[test]
    fn what_has_no_results_is_not_waited_for() {
        for command in Command::ALL {
            if let Decision::Understood(_, When::Leave) = decision(*command) {
                assert!(command.desc().outputs.is_some(), "{command:?} has no results");
            }
        }
    }
}
