//! A verdict for every command of the registry: who understands it, or why it does not matter, or what is missing.
//!
//! The verdicts are generated from the tables in `codegen/src/state`, which fails for a command that has none or two.
//! A test feeds every command to the family that is said to take it.

use lavascope_abi::Command;

use crate::generated::COMMAND_SUPPORT;

/// What the tracker makes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandSupport {
    Tracked(CommandFamily, TrackPhase),
    /// It has nothing to do with what the tracker follows, for a reason.
    Ignored(&'static str),
    /// It matters, and the tracker does not follow it: it is counted and named whenever it is called.
    Untracked(&'static str),
}

/// When a call takes effect for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackPhase {
    /// Before the driver sees it.
    Enter,
    /// When its results are known.
    Leave,
}

/// The part of the tracker that takes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFamily {
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
pub fn command_support(command: Command) -> CommandSupport {
    COMMAND_SUPPORT[command as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_decision() {
        assert_eq!(COMMAND_SUPPORT.len(), Command::ALL.len());
        for (at, command) in Command::ALL.iter().enumerate() {
            assert_eq!(*command as usize, at);
        }
    }

    #[test]
    fn what_has_no_results_is_not_waited_for() {
        for command in Command::ALL {
            if let CommandSupport::Tracked(_, TrackPhase::Leave) = command_support(*command) {
                assert!(command.desc().outputs.is_some(), "{command:?} has no results");
            }
        }
    }
}
