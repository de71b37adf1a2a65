//! The rules in which verdicts differ from the letter of the specification.

/// Three rules that users rely on although the specification does not have them. Tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A read is not compared with a write if an earlier read already sees that write.
    pub most_recent_reads: bool,
    /// A write must be visible, not only available, to a later write, unless a read stands between them.
    pub visible_writes: bool,
    /// Layout transitions on one queue are ordered one after the other without a dependency.
    pub ordered_transitions: bool,
}

impl Rules {
    /// The rules that users see.
    pub const CONTRACT: Rules = Rules { most_recent_reads: true, visible_writes: true, ordered_transitions: true };
    /// The letter of the specification.
    pub const SPECIFICATION: Rules =
        Rules { most_recent_reads: false, visible_writes: false, ordered_transitions: false };
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::CONTRACT
    }
}
