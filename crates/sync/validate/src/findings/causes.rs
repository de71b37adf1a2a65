//! Groups hazards by cause: hazards from the same place of a program are one finding, however often they occur.
//!
//! A cause is a diagnostic code, two recorded commands and a resource. A command buffer that is recorded again for each
//! frame stays the same command buffer, and named objects are compared by name.

use std::collections::HashMap;

use lavascope_abi::{Command, ObjectId};
use lavascope_diag::Diagnostic;
use lavascope_engine::EventRaceKind;
use lavascope_sync_ir::{HazardKind, UndefinedContentsKind};

/// Further causes are counted together. Nobody reads that many, and memory must stay bounded.
pub(crate) const CAUSES_MAX: usize = 1000;

/// One occurrence of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidatorFinding {
    pub device: ObjectId,
    /// The index of its cause in [`Validator::diagnostics`](crate::Validator::diagnostics).
    pub cause: usize,
    /// Whether it is the first of its cause.
    pub is_first: bool,
    /// Whether it was found while a command buffer was recorded, independent of other work.
    pub is_recorded: bool,
}

/// What findings of one cause have in common: the code, the two recorded commands, and the resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FindingCause {
    pub(crate) kind: FindingKind,
    pub(crate) at: Option<CauseLocation>,
    pub(crate) prior: Option<CauseLocation>,
    /// The name of the resource if it has one. A resource that is created again for each frame stays the same to a
    /// user.
    pub(crate) resource: String,
    /// Whether shaders reported the accesses.
    pub(crate) is_observed: bool,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FindingKind {
    Hazard(HazardKind),
    Fault(UndefinedContentsKind),
    Race(EventRaceKind),
    /// The text of the diagnostic says what was never executed.
    NeverExecuted,
}

/// A recorded command, or a call of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CauseLocation {
    pub(crate) function: Command,
    pub(crate) recorded: Option<RecordedPosition>,
}

/// A command buffer and a command in it. A command buffer without a name is identified by the commands recorded up to
/// this one, because programs record the same commands into any free command buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedPosition {
    pub(crate) name: Option<String>,
    pub(crate) functions: Vec<Command>,
}

/// Where a finding occurred.
#[derive(Clone, Copy)]
pub(crate) struct FindingOrigin {
    pub(crate) device: ObjectId,
    pub(crate) is_recorded: bool,
}

#[derive(Default)]
pub(crate) struct CauseRegistry {
    by_cause: HashMap<FindingCause, usize>,
    /// In the order of their first occurrence.
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) new: Vec<ValidatorFinding>,
    pub(crate) dropped: u64,
}

impl CauseRegistry {
    /// Counts a finding. If it is the first of its cause, calls `explain` with the number of causes so far.
    pub(crate) fn add(&mut self, at: FindingOrigin, cause: FindingCause, explain: impl FnOnce(usize) -> Diagnostic) {
        let known = self.diagnostics.len();
        self.try_add(at, cause, || Some(explain(known)));
    }

    /// Like `add`, if `explain` may return no diagnostic.
    pub(crate) fn try_add(
        &mut self,
        at: FindingOrigin,
        cause: FindingCause,
        explain: impl FnOnce() -> Option<Diagnostic>,
    ) {
        let FindingOrigin { device, is_recorded } = at;
        if let Some(known) = self.by_cause.get(&cause) {
            self.diagnostics[*known].count += 1;
            self.new.push(ValidatorFinding { device, cause: *known, is_first: false, is_recorded });
            return;
        }
        let place = self.diagnostics.len();
        if place == CAUSES_MAX {
            self.dropped += 1;
            return;
        }
        let Some(diagnostic) = explain() else {
            self.dropped += 1;
            return;
        };
        self.diagnostics.push(diagnostic);
        self.by_cause.insert(cause, place);
        self.new.push(ValidatorFinding { device, cause: place, is_first: true, is_recorded });
    }
}
