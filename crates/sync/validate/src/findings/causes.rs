//! Hazards that come from the same place of a program are one finding, however often they happen.
//!
//! The same code, the same two recorded commands and the same resource are one cause. A command buffer that is
//! recorded again for each frame stays the same one; named objects are compared by name.

use std::collections::HashMap;

use lavascope_abi::{Command, ObjectId};
use lavascope_diag::Diagnostic;
use lavascope_engine::EventRaceKind;
use lavascope_sync_ir::{HazardKind, Region, UndefinedContentsKind};

/// More causes than these are not told apart: nobody reads them, and what is kept must not grow for ever.
pub(crate) const CAUSES_MAX: usize = 1000;

/// A hazard was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidatorFinding {
    pub device: ObjectId,
    /// Its place in [`Validator::diagnostics`](crate::Validator::diagnostics).
    pub cause: usize,
    /// Whether it is the first of its cause.
    pub is_first: bool,
    /// Whether it was found while a command buffer was recorded, whatever comes before or behind that.
    pub is_recorded: bool,
    /// Its place in [`Validator::variants`](crate::Validator::variants), if it is about other parts of the resource than
    /// the first of its cause.
    pub variant: Option<usize>,
}

/// The same code, the same two commands as they were recorded, the same resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FindingCause {
    pub(crate) kind: FindingKind,
    pub(crate) at: Option<CauseLocation>,
    pub(crate) prior: Option<CauseLocation>,
    /// The name, where there is one: what is made again for each frame stays the same to people.
    pub(crate) resource: String,
    /// Whether it is known what the device did.
    pub(crate) is_observed: bool,
    /// Whether it is only possible: what is likely is told, and must not be counted as what is not.
    pub(crate) is_only_possible: bool,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FindingKind {
    Hazard(HazardKind),
    Fault(UndefinedContentsKind),
    Race(EventRaceKind),
    /// The text says what.
    NeverExecuted,
}

/// A command as it was recorded, or a call of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CauseLocation {
    pub(crate) function: Command,
    pub(crate) recorded: Option<RecordedPosition>,
}

/// A command buffer and a command in it. Those without a name are known by what was recorded up to the command:
/// programs record the same into whichever one is free.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordedPosition {
    pub(crate) name: Option<String>,
    pub(crate) functions: Vec<Command>,
}

/// Where a hazard was found.
#[derive(Clone, Copy)]
pub(crate) struct FindingOrigin {
    pub(crate) device: ObjectId,
    pub(crate) is_recorded: bool,
}

#[derive(Default)]
pub(crate) struct CauseRegistry {
    by_cause: HashMap<FindingCause, usize>,
    /// In the order in which they were first found.
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) new: Vec<ValidatorFinding>,
    pub(crate) dropped: u64,
    /// By cause, the parts of the resource that its hazards were about, and the place of each text but the first.
    parts: HashMap<usize, Vec<(Region, Option<usize>)>>,
    pub(crate) variants: Vec<Diagnostic>,
}

/// A cause has its own text for so many different parts of a resource; later ones get the text of the first.
const VARIANTS_MAX: usize = 8;

impl CauseRegistry {
    /// Counts a hazard; `explain` is asked if it is the first of its cause, and told how many there were before.
    pub(crate) fn add(&mut self, at: FindingOrigin, cause: FindingCause, explain: impl FnOnce(usize) -> Diagnostic) {
        let known = self.diagnostics.len();
        self.try_add(at, cause, || Some(explain(known)));
    }

    /// The same of a hazard about a part of a resource. Another part than that of the first is the same cause with another
    /// text.
    pub(crate) fn add_hazard(
        &mut self,
        at: FindingOrigin,
        cause: FindingCause,
        region: Region,
        explain: impl FnOnce(usize) -> Diagnostic,
    ) {
        let Some(known) = self.by_cause.get(&cause).copied() else {
            let place = self.diagnostics.len();
            self.add(at, cause, explain);
            if self.diagnostics.len() > place {
                self.parts.insert(place, vec![(region, None)]);
            }
            return;
        };
        let FindingOrigin { device, is_recorded } = at;
        let (explained, parts) = (self.diagnostics.len(), self.parts.entry(known).or_default());
        let variant = match parts.iter().find(|it| it.0 == region) {
            Some((_, variant)) => *variant,
            None if parts.len() < VARIANTS_MAX => {
                self.variants.push(explain(explained));
                parts.push((region, Some(self.variants.len() - 1)));
                Some(self.variants.len() - 1)
            }
            None => None,
        };
        self.diagnostics[known].count += 1;
        self.new.push(ValidatorFinding { device, cause: known, is_first: false, is_recorded, variant });
    }

    /// The same where it may turn out that nothing can be said.
    pub(crate) fn try_add(
        &mut self,
        at: FindingOrigin,
        cause: FindingCause,
        explain: impl FnOnce() -> Option<Diagnostic>,
    ) {
        let FindingOrigin { device, is_recorded } = at;
        if let Some(known) = self.by_cause.get(&cause) {
            self.diagnostics[*known].count += 1;
            self.new.push(ValidatorFinding { device, cause: *known, is_first: false, is_recorded, variant: None });
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
        self.new.push(ValidatorFinding { device, cause: place, is_first: true, is_recorded, variant: None });
    }
}
