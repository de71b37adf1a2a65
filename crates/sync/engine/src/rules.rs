//! Where verdicts differ from the letter of the specification.

/// Three rules that people rely on although the specification does not say so. Tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A read that comes after another read, which sees the write, is not held against the write.
    pub most_recent_reads: bool,
    /// A write must be visible, not only available, to a write that comes after it, unless there was a read between.
    pub visible_writes: bool,
    /// Layout transitions on one queue come one after the other by themselves.
    pub ordered_transitions: bool,
}

impl Rules {
    /// What users see.
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
