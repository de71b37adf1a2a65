//! Groups hazards by cause: hazards from the same place of a program are one finding, however often they occur.
//!
//! A cause is a diagnostic code, two recorded commands and a resource. A command buffer that is recorded again for each
//! frame stays the same command buffer, and named objects are compared by name.

use std::collections::HashMap;

use lavascope_abi::{Command, ObjectId};
use lavascope_diag::{Diagnostic, Severity};
use lavascope_engine::EventRaceKind;
use lavascope_sync_ir::{HazardKind, Region, UndefinedContentsKind};

/// Beyond these, findings of one kind and severity with the same two functions are one cause: nobody reads them, and
/// what is kept must not grow for ever.
pub(crate) const CAUSES_MAX: usize = 1000;
/// Causes for which a fix is looked for: that takes many times as long as the explanation.
pub(crate) const EXPLAINED_MAX: usize = 200;
/// Commands between two accesses with which fixes are tried.
pub(crate) const COMMANDS_MAX: usize = 20_000;
/// Commands that are followed to explain findings, all together.
pub(crate) const FOLLOWED_MAX: usize = 20_000_000;

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
    /// Its place in [`Validator::variants`](crate::Validator::variants), if it is about other parts of the resource than
    /// the first of its cause.
    pub variant: Option<usize>,
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
    /// Whether it is only possible: what is likely is told, and must not be counted as what is not.
    pub(crate) is_only_possible: bool,
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
    pub(crate) effort: ExplanationEffort,
    /// Findings that are counted with another one, because there were too many causes.
    pub(crate) merged: u64,
    /// By cause, the parts of the resource that its hazards were about, and the place of each text but the first.
    parts: HashMap<usize, Vec<(Region, Option<usize>)>>,
    pub(crate) variants: Vec<Diagnostic>,
}

/// What was spent on explanations, and which of them were cut for that.
#[derive(Default)]
pub(crate) struct ExplanationEffort {
    /// Causes that were found before.
    pub(crate) causes: usize,
    /// Commands that were followed.
    pub(crate) commands: usize,
    pub(crate) cut: CutExplanations,
}

/// How many findings have less than an explanation and a proposed fix, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutExplanations {
    /// No fix was looked for: there were too many causes before.
    pub after_too_many_causes: u64,
    /// No fix was looked for: too many commands lie between the two accesses.
    pub too_many_commands: u64,
    /// Neither were the operations between the two accesses looked at, for the same reasons.
    pub not_followed: u64,
    /// The earlier access is older than what is kept, so that it is not named.
    pub prior_forgotten: u64,
    /// No fix can be tried: the hazard takes more of the past than lies between the two accesses.
    pub not_reproduced: u64,
    /// Findings are counted with another one of the same kind, severity and functions: there were too many causes.
    pub merged: u64,
}

impl CutExplanations {
    /// One line for each reason that there is.
    pub fn lines(&self) -> Vec<String> {
        let findings = |count: u64| if count == 1 { "1 finding".to_owned() } else { format!("{count} findings") };
        let all = [
            (
                self.after_too_many_causes,
                format!("without a proposed fix: {EXPLAINED_MAX} findings before have been given one"),
            ),
            (
                self.too_many_commands,
                format!("without a proposed fix: more than {COMMANDS_MAX} commands lie between the two accesses"),
            ),
            (
                self.not_followed,
                "without the synchronization between the two accesses: too many commands lie between them".to_owned(),
            ),
            (
                self.prior_forgotten,
                "without the name of the earlier command: it was submitted too long before".to_owned(),
            ),
            (
                self.not_reproduced,
                "without a proposed fix: it depends on what was submitted before the two accesses".to_owned(),
            ),
            (
                self.merged,
                format!("not shown, but counted with one of the same kind and functions: {CAUSES_MAX} are shown"),
            ),
        ];
        all.into_iter().filter(|it| it.0 > 0).map(|(count, text)| format!("{} {text}", findings(count))).collect()
    }
}

/// A cause has its own text for so many different parts of a resource; later ones get the text of the first.
const VARIANTS_MAX: usize = 8;

impl CauseRegistry {
    /// Counts a hazard about a part of a resource. Another part than that of the first is the same cause with another text.
    pub(crate) fn add_hazard(
        &mut self,
        at: FindingOrigin,
        cause: FindingCause,
        region: Region,
        severity: impl FnOnce() -> Severity,
        explain: impl FnOnce(&mut ExplanationEffort) -> Diagnostic,
    ) {
        let Some(known) = self.by_cause.get(&cause).copied() else {
            let place = self.diagnostics.len();
            self.add(at, cause, severity, explain);
            if self.diagnostics.len() > place {
                self.parts.insert(place, vec![(region, None)]);
            }
            return;
        };
        let FindingOrigin { device, is_recorded } = at;
        let parts = self.parts.entry(known).or_default();
        let variant = match parts.iter().find(|it| it.0 == region) {
            Some((_, variant)) => *variant,
            None if parts.len() < VARIANTS_MAX => {
                self.effort.causes = self.diagnostics.len();
                self.variants.push(explain(&mut self.effort));
                parts.push((region, Some(self.variants.len() - 1)));
                Some(self.variants.len() - 1)
            }
            None => None,
        };
        self.diagnostics[known].count += 1;
        self.new.push(ValidatorFinding { device, cause: known, is_first: false, is_recorded, variant });
    }

    /// Counts a finding. `explain` is asked if it is the first of its cause, and `severity` only if there are too many
    /// causes to tell them all apart.
    pub(crate) fn add(
        &mut self,
        at: FindingOrigin,
        cause: FindingCause,
        severity: impl FnOnce() -> Severity,
        explain: impl FnOnce(&mut ExplanationEffort) -> Diagnostic,
    ) {
        let known = self.by_cause.get(&cause).copied();
        let is_full = known.is_none() && self.diagnostics.len() >= CAUSES_MAX;
        let cause = if is_full { cause.without_identity(severity()) } else { cause };
        self.merged += u64::from(is_full && self.by_cause.contains_key(&cause));
        let known = known.or_else(|| self.by_cause.get(&cause).copied());
        let index = known.unwrap_or(self.diagnostics.len());
        let FindingOrigin { device, is_recorded } = at;
        self.new.push(ValidatorFinding { device, cause: index, is_first: known.is_none(), is_recorded, variant: None });
        if known.is_some() {
            self.diagnostics[index].count += 1;
            return;
        }
        self.effort.causes = index;
        self.diagnostics.push(explain(&mut self.effort));
        self.by_cause.insert(cause, index);
    }

    pub(crate) fn cut_explanations(&self) -> CutExplanations {
        CutExplanations { merged: self.merged, ..self.effort.cut }
    }
}

impl FindingCause {
    /// What findings have in common that are no longer told apart: there are only so many functions.
    fn without_identity(self, severity: Severity) -> FindingCause {
        let function = |it: CauseLocation| CauseLocation { recorded: None, ..it };
        FindingCause {
            kind: self.kind,
            at: self.at.map(function),
            prior: self.prior.map(function),
            resource: format!("{severity:?}"),
            is_observed: self.is_observed,
            is_only_possible: self.is_only_possible,
        }
    }
}
