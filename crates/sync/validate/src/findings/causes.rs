//! Groups hazards by cause: hazards that one fix removes, or that come from the same place of a program, are one
//! finding, however often they occur.
//!
//! Each pair of recorded commands with its resource is a site of a cause. A command buffer that is recorded again for
//! each frame stays the same command buffer, and named objects are compared by name. A new site joins a cause
//!
//! - whose fix was verified to remove it, too (`shared_fixes`), or
//! - that has the same identity and did not occur yet in the same submission or recording: then it is the same place of
//!   the program in another frame, whose command buffers differ elsewhere.

use std::collections::HashMap;

use lavascope_abi::{Command, ObjectId};
use lavascope_diag::{Diagnostic, DiagnosticIdentity, DiagnosticSite, FrameRange, Severity};
use lavascope_engine::EventRaceKind;
use lavascope_sync_ir::{CommandBufferId, HazardKind, Region, ResourceId, UndefinedContentsKind};

use crate::findings::shared_fixes::SharedFixes;

/// Beyond these, findings of one kind and severity with the same two functions are one cause: nobody reads them, and
/// what is kept must not grow for ever.
pub(crate) const CAUSES_MAX: usize = 1000;
/// Causes for which a fix is looked for: that takes many times as long as the explanation.
pub(crate) const EXPLAINED_MAX: usize = 200;
/// Commands between two accesses with which fixes are tried.
pub(crate) const COMMANDS_MAX: usize = 20_000;
/// Commands that are followed to explain findings, all together.
pub(crate) const FOLLOWED_MAX: usize = 20_000_000;
/// Sites that are known by their commands. Those of a program that always records something else are found again by
/// their identity.
const SITES_MAX: usize = 10_000;
/// Sites that a diagnostic lists behind the first one.
const LISTED_SITES_MAX: usize = 4;
/// Texts of sites and parts beside the first of their cause.
const SITE_DIAGNOSTICS_TOTAL_MAX: usize = 4096;
/// Scopes of which it is known what occurred in them.
const SCOPES_MAX: usize = 4096;

/// One occurrence of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidatorFinding {
    pub device: ObjectId,
    /// The index of its cause in [`Validator::diagnostics`](crate::Validator::diagnostics).
    pub cause: usize,
    /// A number for its two commands and its resource.
    pub site: usize,
    /// Whether it is the first of its cause.
    pub is_first: bool,
    /// Whether it was found while a command buffer was recorded, independent of other work.
    pub is_recorded: bool,
    /// Its place in [`Validator::site_diagnostics`](crate::Validator::site_diagnostics), if it is about other commands or
    /// other parts of the resource than the first of its cause.
    pub site_diagnostic: Option<usize>,
}

/// What findings of one site have in common: the code, the two recorded commands, and the resource.
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
    /// Whether it is only possible: what is likely is reported, and must not be counted as what is not.
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

impl RecordedPosition {
    /// The command before it.
    fn before(&self) -> Option<Command> {
        self.functions.iter().rev().nth(1).copied()
    }
}

/// Where a finding occurred.
#[derive(Clone, Copy)]
pub(crate) struct FindingOrigin {
    pub(crate) device: ObjectId,
    pub(crate) is_recorded: bool,
    /// Presentations of the device before it.
    pub(crate) frame: u64,
    pub(crate) scope: ReportScope,
}

/// A recording, or a step of the host: what occurs twice in it has two places in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReportScope {
    Recording { device: ObjectId, command_buffer: ObjectId, resets: u32 },
    Step { device: ObjectId, step: u32 },
}

/// A pair of commands with a resource, the cause to which it belongs, and its own identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CauseSite {
    pub(crate) cause: usize,
    site: usize,
    identity: usize,
}

/// A diagnostic of a new site.
pub(crate) struct NewSite {
    pub(crate) cause: FindingCause,
    /// Of a hazard.
    pub(crate) part: Option<(ResourceId, Region)>,
    pub(crate) diagnostic: Diagnostic,
}

#[derive(Default)]
pub(crate) struct CauseRegistry {
    by_site: HashMap<FindingCause, CauseSite>,
    /// What is counted together, because there were too many causes.
    merged_sites: HashMap<FindingCause, CauseSite>,
    site_count: usize,
    /// One for each cause, in the order of their first occurrence.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// For each cause, its first site.
    firsts: Vec<FindingCause>,
    /// For each cause, when it occurred.
    frames: Vec<FrameRange>,
    has_presented: bool,
    identities: HashMap<DiagnosticIdentity, usize>,
    /// The causes with sites of each identity.
    causes_of_identity: Vec<Vec<usize>>,
    /// Of each scope and identity, the causes that occurred.
    occurred: HashMap<(ReportScope, usize), Vec<usize>>,
    pub(crate) shared_fixes: SharedFixes,
    pub(crate) new: Vec<ValidatorFinding>,
    pub(crate) effort: ExplanationEffort,
    /// Findings that are counted with another one, because there were too many causes.
    pub(crate) merged: u64,
    /// By site, the parts of the resource that its hazards were about, and the place of each text but the first.
    parts: HashMap<usize, Vec<KnownPart>>,
    pub(crate) site_diagnostics: Vec<Diagnostic>,
    /// Causes that were found before the command after the access was recorded.
    without_next: Vec<AwaitedNeighbor>,
}

/// The end of a recording fills in the command after the access of a cause.
struct AwaitedNeighbor {
    device: ObjectId,
    buffer: CommandBufferId,
    cause: usize,
}

/// A part of a resource, and its text if it is not the first.
struct KnownPart {
    resource: ResourceId,
    region: Region,
    site_diagnostic: Option<usize>,
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

/// A site has its own text for so many different parts of a resource; later ones get the text of the first.
const SITE_DIAGNOSTICS_MAX: usize = 8;

impl CauseRegistry {
    /// Causes from `first` on were found in a recording that goes on.
    pub(crate) fn await_neighbors(&mut self, device: ObjectId, buffer: CommandBufferId, first: usize) {
        for cause in first..self.diagnostics.len() {
            let access = self.diagnostics[cause].locations.first();
            // A secondary command buffer is complete.
            let is_own = access.is_some_and(|it| it.path.len() == 1);
            if is_own && access.and_then(|it| it.neighbors.as_ref()).is_some_and(|it| it.after.is_none()) {
                self.without_next.push(AwaitedNeighbor { device, buffer, cause });
            }
        }
    }

    /// A recording has ended. `function_at` knows its functions.
    pub(crate) fn complete_neighbors(
        &mut self,
        (device, buffer): (ObjectId, CommandBufferId),
        function_at: impl Fn(usize) -> Option<String>,
    ) {
        let CauseRegistry { without_next, diagnostics, firsts, .. } = self;
        without_next.retain(|awaited| {
            if (awaited.device, awaited.buffer) != (device, buffer) {
                return true;
            }
            let access = diagnostics[awaited.cause].locations.first_mut();
            if let Some(neighbors) = access.and_then(|it| it.neighbors.as_mut()) {
                let recorded = firsts[awaited.cause].at.as_ref().and_then(|it| it.recorded.as_ref());
                neighbors.after = recorded.and_then(|it| function_at(it.functions.len()));
            }
            false
        });
    }

    /// Whether an ended recording may have commands that are not known yet.
    pub(crate) fn awaits_neighbors(&self) -> bool {
        !self.without_next.is_empty()
    }

    /// The device has presented something: from now on, diagnostics have frames.
    pub(crate) fn count_presentation(&mut self) {
        if !std::mem::replace(&mut self.has_presented, true) {
            for (diagnostic, frames) in self.diagnostics.iter_mut().zip(&self.frames) {
                diagnostic.frames = Some(*frames);
            }
        }
    }

    pub(crate) fn site_of(&self, cause: &FindingCause) -> Option<CauseSite> {
        self.by_site.get(cause).copied()
    }

    /// The first site of a cause.
    pub(crate) fn first_of(&self, cause: usize) -> &FindingCause {
        &self.firsts[cause]
    }

    /// Whether a known site has no text for a part of a resource, and may get one.
    pub(crate) fn wants_site_diagnostic(&self, site: CauseSite, resource: ResourceId, region: &Region) -> bool {
        let parts = self.parts.get(&site.site).map_or(&[][..], Vec::as_slice);
        let is_known = parts.iter().any(|it| it.resource == resource && it.region == *region);
        !is_known && parts.len() < SITE_DIAGNOSTICS_MAX && self.site_diagnostics.len() < SITE_DIAGNOSTICS_TOTAL_MAX
    }

    pub(crate) fn add_site_diagnostic(&mut self, site: CauseSite, part: (ResourceId, Region), diagnostic: Diagnostic) {
        self.site_diagnostics.push(diagnostic);
        let (resource, region) = part;
        let known = KnownPart { resource, region, site_diagnostic: Some(self.site_diagnostics.len() - 1) };
        self.parts.entry(site.site).or_default().push(known);
    }

    /// Counts a finding of a known site.
    pub(crate) fn count(&mut self, origin: FindingOrigin, site: CauseSite, part: Option<(ResourceId, &Region)>) {
        let parts = self.parts.get(&site.site).map_or(&[][..], Vec::as_slice);
        let is_it = |it: &&KnownPart| part.is_some_and(|part| (it.resource, &it.region) == part);
        let site_diagnostic = parts.iter().find(is_it).or(parts.first()).and_then(|it| it.site_diagnostic);
        self.diagnostics[site.cause].count += 1;
        self.add_occurrence(origin, site, (false, site_diagnostic));
    }

    fn add_occurrence(
        &mut self,
        origin: FindingOrigin,
        site: CauseSite,
        (is_first, site_diagnostic): (bool, Option<usize>),
    ) {
        let CauseSite { cause, site, identity } = site;
        self.frames[cause].add(origin.frame);
        if self.has_presented {
            self.diagnostics[cause].frames = Some(self.frames[cause]);
        }
        if self.occurred.len() >= SCOPES_MAX {
            self.occurred.clear();
        }
        let occurred = self.occurred.entry((origin.scope, identity)).or_default();
        if !occurred.contains(&cause) {
            occurred.push(cause);
        }
        let FindingOrigin { device, is_recorded, .. } = origin;
        self.new.push(ValidatorFinding { device, cause, site, is_first, is_recorded, site_diagnostic });
    }

    /// Whether a cause may be that of a new site: it is as certain.
    pub(crate) fn is_like(&self, cause: usize, diagnostic: &Diagnostic, key: &FindingCause) -> bool {
        let (own, first) = (&self.diagnostics[cause], &self.firsts[cause]);
        (own.severity, own.is_overlap_assumed) == (diagnostic.severity, diagnostic.is_overlap_assumed)
            && (first.is_observed, first.is_only_possible) == (key.is_observed, key.is_only_possible)
    }

    /// Causes of the same identity: those that occurred in a scope before, and those that did not and have the same
    /// commands around them.
    pub(crate) fn causes_like(
        &self,
        diagnostic: &Diagnostic,
        key: &FindingCause,
        scope: ReportScope,
    ) -> (Vec<usize>, Vec<usize>) {
        let Some(identity) = self.identities.get(&DiagnosticIdentity::of(diagnostic)) else {
            return Default::default();
        };
        let occurred = self.occurred.get(&(scope, *identity)).map_or(&[][..], Vec::as_slice);
        let all = self.causes_of_identity[*identity].iter().copied().filter(|it| self.is_like(*it, diagnostic, key));
        let (occurred, mut others): (Vec<usize>, Vec<usize>) = all.partition(|it| occurred.contains(it));
        others.retain(|it| self.firsts[*it].has_same_neighbors(key));
        (occurred, others)
    }

    /// Whether a new cause has to be counted with others.
    pub(crate) fn is_full(&self) -> bool {
        self.diagnostics.len() >= CAUSES_MAX
    }

    /// Adds a site to a cause. A site that is listed is another pair of commands in the same part of the program.
    pub(crate) fn join(&mut self, origin: FindingOrigin, cause: usize, new: NewSite, listed: Option<DiagnosticSite>) {
        let NewSite { cause: key, part, diagnostic } = new;
        let site = self.add_site(cause, key, &diagnostic);
        let own = &mut self.diagnostics[cause];
        own.count += 1;
        if let Some(listed) = listed {
            own.sites += 1;
            if own.more_sites.len() < LISTED_SITES_MAX {
                own.more_sites.push(listed);
            }
        }
        let site_diagnostic =
            (self.site_diagnostics.len() < SITE_DIAGNOSTICS_TOTAL_MAX).then_some(self.site_diagnostics.len());
        if site_diagnostic.is_some() {
            self.site_diagnostics.push(diagnostic);
        }
        let part = part.map(|(resource, region)| KnownPart { resource, region, site_diagnostic });
        self.parts.entry(site.site).or_default().extend(part);
        self.add_occurrence(origin, site, (false, site_diagnostic));
    }

    /// Adds a cause.
    pub(crate) fn add_cause(&mut self, origin: FindingOrigin, new: NewSite) -> usize {
        let NewSite { cause: key, part, mut diagnostic } = new;
        let cause = self.diagnostics.len();
        self.firsts.push(key.clone());
        self.frames.push(FrameRange::new(origin.frame));
        let site = self.add_site(cause, key, &diagnostic);
        diagnostic.ordinal = (self.causes_of_identity[site.identity].len() - 1) as u32;
        diagnostic.count = 1;
        self.diagnostics.push(diagnostic);
        let part = part.map(|(resource, region)| KnownPart { resource, region, site_diagnostic: None });
        self.parts.entry(site.site).or_default().extend(part);
        self.add_occurrence(origin, site, (true, None));
        cause
    }

    fn add_site(&mut self, cause: usize, key: FindingCause, diagnostic: &Diagnostic) -> CauseSite {
        let next = self.causes_of_identity.len();
        let identity = *self.identities.entry(DiagnosticIdentity::of(diagnostic)).or_insert(next);
        if identity == next {
            self.causes_of_identity.push(Vec::new());
        }
        if !self.causes_of_identity[identity].contains(&cause) {
            self.causes_of_identity[identity].push(cause);
        }
        if self.by_site.len() >= SITES_MAX {
            self.by_site.retain(|it, _| !matches!(it.kind, FindingKind::Hazard(_)));
            self.parts.clear();
        }
        let site = CauseSite { cause, site: self.site_count, identity };
        self.site_count += 1;
        self.by_site.insert(key, site);
        site
    }

    /// Counts a finding whose cause is one too many, with those of the same functions. False if it is the first of
    /// those: then it is to be added with the given key.
    pub(crate) fn merge(&mut self, origin: FindingOrigin, key: &FindingCause) -> bool {
        let Some(known) = self.merged_sites.get(key).copied() else { return false };
        self.merged += 1;
        self.count(origin, known, None);
        true
    }

    /// Adds the first finding of those that are counted together.
    pub(crate) fn add_merged(&mut self, origin: FindingOrigin, new: NewSite) {
        let key = new.cause.clone();
        self.add_cause(origin, new);
        if let Some(site) = self.by_site.remove(&key) {
            self.merged_sites.insert(key, site);
        }
    }

    /// Counts a finding that is no hazard. `explain` is called if it is new.
    pub(crate) fn add(
        &mut self,
        origin: FindingOrigin,
        cause: FindingCause,
        severity: Severity,
        explain: impl FnOnce() -> Diagnostic,
    ) {
        if let Some(known) = self.site_of(&cause) {
            return self.count(origin, known, None);
        }
        if self.is_full() {
            let key = cause.without_identity(severity);
            if !self.merge(origin, &key) {
                self.add_merged(origin, NewSite { cause: key, part: None, diagnostic: explain() });
            }
            return;
        }
        let diagnostic = explain();
        let one_prior = cause.prior.as_ref().and_then(|_| self.firsts.iter().position(|it| it.has_same_prior(&cause)));
        let (occurred, others) = self.causes_like(&diagnostic, &cause, origin.scope);
        let site = diagnostic.locations.first().map(|location| DiagnosticSite {
            resource: cause.resource.clone(),
            function: location.path.last().cloned().unwrap_or_default(),
            place: location.text.clone(),
            labels: location.labels.clone(),
            stack: location.stack,
        });
        let new = NewSite { cause, part: None, diagnostic };
        match (one_prior, others.first()) {
            (Some(known), _) => self.join(origin, known, new, site),
            (None, Some(known)) if occurred.is_empty() => self.join(origin, *known, new, None),
            _ => drop(self.add_cause(origin, new)),
        }
    }

    pub(crate) fn cut_explanations(&self) -> CutExplanations {
        CutExplanations { merged: self.merged, ..self.effort.cut }
    }
}

impl FindingCause {
    /// Whether the accesses of two findings follow the same commands.
    fn has_same_neighbors(&self, other: &FindingCause) -> bool {
        let before = |it: &FindingCause| [&it.at, &it.prior].map(|it| it.as_ref()?.recorded.as_ref()?.before());
        before(self) == before(other)
    }

    /// Whether two findings are about the same resource since the same earlier command: a release, or a subpass.
    fn has_same_prior(&self, other: &FindingCause) -> bool {
        let is_fault = matches!(self.kind, FindingKind::Fault(_));
        is_fault && (self.kind, &self.prior, &self.resource) == (other.kind, &other.prior, &other.resource)
    }

    /// What findings have in common that are no longer told apart: there are only so many functions.
    pub(crate) fn without_identity(self, severity: Severity) -> FindingCause {
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
