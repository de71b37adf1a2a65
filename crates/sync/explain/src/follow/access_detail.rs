//! Details of accesses for messages: their origin in the API, and the relation of two accesses.

use lavascope_sync_ir::{LoadOp, Origin, ProgramLocation, RenderPassId, StoreOp};

use crate::OperationLocation;

/// The part of a command that makes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDetail {
    /// The command itself, with the parameter that causes the access.
    Command(Origin),
    Load(LoadOp),
    Store(StoreOp),
    /// `VkResolveModeFlagBits`. Zero if the mode is unknown.
    Resolve(u32),
    /// The layout transition of a barrier or of an event wait.
    Barrier(OperationLocation),
    /// The layout transition of an attachment before a subpass.
    SubpassTransition(LayoutChange),
    /// The layout transition of an attachment at the end of its render pass.
    FinalTransition(LayoutChange),
}

/// Two values of `VkImageLayout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutChange {
    pub old: i32,
    pub new: i32,
}

/// The kind of rendering around an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderingContext {
    #[default]
    Nothing,
    RenderPass(RenderPassId),
    /// Dynamic rendering.
    Rendering,
}

/// When the two accesses come together. The Khronos layer reports the hazard at that time, and
/// words its message accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRelation {
    /// Both accesses are known when the later command is recorded.
    Recorded,
    /// The later access is in a secondary command buffer. The earlier access came before
    /// `vkCmdExecuteCommands` executed it.
    Executed,
    /// The accesses come together when the later one is submitted.
    Submitted,
}

/// The relation of an access to an earlier one.
pub fn relation(at: &ProgramLocation, prior: &ProgramLocation) -> AccessRelation {
    let (ProgramLocation::Command(at), ProgramLocation::Command(prior)) = (at, prior) else {
        return AccessRelation::Submitted;
    };
    if (at.step, at.batch, at.primary) != (prior.step, prior.batch, prior.primary) {
        return AccessRelation::Submitted;
    }
    // The path to the command buffer of the later access. Accesses of secondary command buffers
    // that this command buffer executes are known at record time.
    let way = at.path.split_last().map_or(&[][..], |it| it.1);
    if prior.path.starts_with(way) { AccessRelation::Recorded } else { AccessRelation::Executed }
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::CommandLocation;

    use super::*;

    #[test]
    fn what_is_known_when_it_is_recorded() {
        let at = |primary, path: &[u32]| {
            ProgramLocation::Command(CommandLocation { step: 0, batch: 0, primary, path: path.to_vec() })
        };
        let cases = [
            (at(0, &[3]), at(0, &[1]), AccessRelation::Recorded),
            (at(0, &[3]), at(1, &[1]), AccessRelation::Submitted),
            (at(0, &[3]), ProgramLocation::Step(0), AccessRelation::Submitted),
            // Command 3 executes two secondary command buffers.
            (at(0, &[4]), at(0, &[3, 0, 2]), AccessRelation::Recorded),
            (at(0, &[3, 0, 2]), at(0, &[1]), AccessRelation::Executed),
            (at(0, &[3, 1, 2]), at(0, &[3, 0, 7]), AccessRelation::Executed),
            (at(0, &[3, 0, 2]), at(0, &[3, 0, 1]), AccessRelation::Recorded),
        ];
        for (later, earlier, expected) in cases {
            assert_eq!(relation(&later, &earlier), expected, "{later:?} {earlier:?}");
        }
    }
}
