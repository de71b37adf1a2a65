//! What accesses are part of beside their command, and how two of them lie to each other: for messages.

use lavascope_sync_ir::{LoadOp, Origin, ProgramLocation, RenderPassId, StoreOp};

use crate::OperationLocation;

/// What an access is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDetail {
    /// Of its command, and what of that it comes from.
    Command(Origin),
    Load(LoadOp),
    Store(StoreOp),
    /// `VkResolveModeFlagBits`; zero where nobody said.
    Resolve(u32),
    /// A dependency of a barrier or of an event wait.
    Barrier(OperationLocation),
    /// Of an attachment that changes its layout for a subpass,
    SubpassTransition(LayoutChange),
    /// or at the end of its render pass.
    FinalTransition(LayoutChange),
}

/// `VkImageLayout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutChange {
    pub old: i32,
    pub new: i32,
}

/// What an access is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenderingContext {
    #[default]
    Nothing,
    RenderPass(RenderPassId),
    /// Rendering without a render pass.
    Rendering,
}

/// What stands between two accesses: this decides when the Khronos layer tells of them, and so how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRelation {
    /// They are known when the later one is recorded.
    Recorded,
    /// The later one is in a secondary command buffer, the other came before that was executed.
    Executed,
    /// They come together when the later one is submitted.
    Submitted,
}

/// How an access lies to an earlier one.
pub fn relation(at: &ProgramLocation, prior: &ProgramLocation) -> AccessRelation {
    let (ProgramLocation::Command(at), ProgramLocation::Command(prior)) = (at, prior) else {
        return AccessRelation::Submitted;
    };
    if (at.step, at.batch, at.primary) != (prior.step, prior.batch, prior.primary) {
        return AccessRelation::Submitted;
    }
    // The way to the command buffer of the later one: what that executes was known to it.
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
            // Command 3 executes two command buffers.
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
