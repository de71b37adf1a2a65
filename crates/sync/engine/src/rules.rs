//! The rules in which verdicts differ from the letter of the specification.

/// Three rules that people rely on although the specification does not say so. Tests switch them off.
///
/// That a layout transition of a barrier and the other layout transitions of its queue are in order is no such rule: the
/// specification says it (`synchronization-image-barrier-layout-transition-order`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A read is not compared with a write if an earlier read already sees that write.
    pub most_recent_reads: bool,
    /// A write must be visible, not only available, to a later write, unless a read stands between them.
    pub visible_writes: bool,
    /// On one queue, layout transitions of two render passes come one after the other by themselves too, and so do the
    /// halves of ownership transfers.
    pub all_transitions_ordered: bool,
}

impl Rules {
    /// What users see.
    pub const CONTRACT: Rules = Rules { most_recent_reads: true, visible_writes: true, all_transitions_ordered: true };
    /// The letter of the specification.
    pub const SPECIFICATION: Rules =
        Rules { most_recent_reads: false, visible_writes: false, all_transitions_ordered: false };
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::CONTRACT
    }
}
