//! Finds the cause of each hazard. Only the first hazard of a cause gets a search for fixes, which takes most of the
//! time.
//!
//! A site is what findings with the same two commands and resource share; its [`SiteKey`] finds it again. A cause is a
//! group of sites that one fix removes, or that are one place of the program (`causes`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use lavascope_diag::{Diagnostic, DiagnosticSite};
use lavascope_engine::check;
use lavascope_explain::{Explainer, HazardDetail, Proposal, describe_hazard, region_text, set_fixes};
use lavascope_sync_ir::{Hazard, HazardKind, ProgramLocation, Region, ResourceId};

use crate::findings::causes::{
    COMMANDS_MAX, CauseRegistry, EXPLAINED_MAX, ExplanationEffort, FOLLOWED_MAX, NewSite, ReportScope, SiteKey,
};
use crate::findings::diagnostic_builder::{DiagnosticBuilder, region_around};
use crate::findings::program_slice::ProgramSlice;
use crate::findings::shared_fixes::{FixScope, SharedFix};
use crate::recording::step_history::step_of;

/// Fixes of other causes that are tried for a hazard, and causes whose fix is searched for again.
const SHARED_TRIES_MAX: usize = 4;

/// A slice, and all hazards in it, which are computed when first needed.
pub(crate) struct SharedSlice<'a> {
    first: u32,
    about: ResourceId,
    pub(crate) slice: ProgramSlice<'a>,
    all: OnceCell<Vec<Hazard>>,
}

impl SharedSlice<'_> {
    fn all(&self) -> &[Hazard] {
        self.all.get_or_init(|| check(&self.slice.program))
    }
}

/// The last slice that was needed: hazards of one step are often about one resource.
pub(crate) type LastSlice<'a> = Option<Rc<SharedSlice<'a>>>;

/// A new hazard whose two accesses are in a slice.
struct HazardInSlice<'f> {
    hazard: &'f Hazard,
    key: SiteKey,
    shared: &'f SharedSlice<'f>,
    explainer: &'f Explainer<'f>,
    /// The same hazard, with the ids of the slice.
    slice_hazard: &'f Hazard,
    scope: FixScope,
}

/// The cause that a new hazard shares with an earlier one.
struct SharedCause {
    cause: usize,
    /// Whether the first diagnostic of the cause lists this hazard as another site.
    is_site: bool,
    proposal: Option<Proposal>,
}

type HazardKey<'h> = (HazardKind, &'h ProgramLocation, &'h ProgramLocation, ResourceId);

fn hazard_key(hazard: &Hazard) -> HazardKey<'_> {
    (hazard.kind, &hazard.at, &hazard.prior, hazard.resource)
}

impl DiagnosticBuilder<'_> {
    /// Turns hazards into findings. `Validator::take_findings` returns them to whoever gave the record.
    pub(crate) fn report_hazards(&self, found: &[Hazard], causes: &mut CauseRegistry) {
        // A hazard may concern several parts of a resource.
        let mut parts: HashMap<HazardKey<'_>, Vec<&Hazard>> = HashMap::new();
        let mut firsts = Vec::new();
        for hazard in found.iter().filter(|it| self.may_share_bytes(it)) {
            let same = parts.entry(hazard_key(hazard)).or_default();
            if same.is_empty() {
                firsts.push(hazard);
            }
            same.push(hazard);
        }
        let mut last = None;
        for hazard in firsts {
            let same = &parts[&hazard_key(hazard)];
            let regions = same.iter().map(|it| it.region.clone());
            let region = regions.reduce(region_around).unwrap_or_else(|| hazard.region.clone());
            // The key of the site: the two commands and the resource. A known site is only counted.
            let key = self.site_key(hazard);
            let Some(site) = causes.site_of(&key) else {
                self.report_new(hazard, same, (key, region), causes, &mut last);
                continue;
            };
            if causes.wants_site_diagnostic(site, hazard.resource, &region) {
                causes.effort.causes = causes.diagnostics.len();
                let text = self.hazard_diagnostic(hazard, same, &mut causes.effort);
                causes.add_site_diagnostic(site, (hazard.resource, region.clone()), text);
            }
            causes.count(self.origin(&hazard.at), site, Some((hazard.resource, &region)));
        }
    }

    /// Reports the first hazard between two commands.
    fn report_new<'s>(
        &'s self,
        hazard: &Hazard,
        same: &[&Hazard],
        (key, region): (SiteKey, Region),
        causes: &mut CauseRegistry,
        last: &mut LastSlice<'s>,
    ) {
        let (origin, part) = (self.origin(&hazard.at), Some((hazard.resource, region)));
        causes.effort.causes = causes.diagnostics.len();
        if causes.is_full() {
            let key = key.without_identity(self.certainty(hazard).severity());
            if !causes.merge(origin, &key) {
                let diagnostic = self.hazard_diagnostic(hazard, same, &mut causes.effort);
                causes.add_merged(origin, NewSite { key, part, diagnostic });
            }
            return;
        }
        let shared = self.shared_slice(hazard, &mut causes.effort, last);
        let explainer = shared.as_ref().map(|it| self.explainer(&it.slice));
        if let (Some(shared), Some(explainer)) = (&shared, &explainer) {
            let own: Vec<Hazard> = same.iter().filter_map(|it| shared.slice.slice_hazard(it)).collect();
            if let Some(slice_hazard) = own.first().filter(|it| explainer.explain(it).is_some()) {
                let scope = self.fix_scope(shared);
                let in_slice = HazardInSlice { hazard, key, shared, explainer, slice_hazard, scope };
                return self.report_in_slice(in_slice, &own, part, causes);
            }
        }
        let diagnostic = self.hazard_diagnostic_without_operations(hazard, same, &mut causes.effort);
        let (occurred, others) = causes.causes_like(&diagnostic, &key, origin.scope);
        let new = NewSite { key, part, diagnostic };
        match others.first().filter(|_| occurred.is_empty()) {
            Some(known) => causes.join(origin, *known, new, None),
            None => drop(causes.add_cause(origin, new)),
        }
    }

    /// Reports a new hazard with its explanation, which `describe_hazard` of the crate `explain` writes: under the
    /// cause of an earlier hazard, or as a new cause with fixes.
    fn report_in_slice(
        &self,
        in_slice: HazardInSlice<'_>,
        own: &[Hazard],
        part: Option<(ResourceId, Region)>,
        causes: &mut CauseRegistry,
    ) {
        let HazardInSlice { hazard, shared, explainer, slice_hazard, scope, .. } = &in_slice;
        let (names, origin) = (self.names(&shared.slice), self.origin(&hazard.at));
        let made = describe_hazard(explainer, slice_hazard, own, &names, HazardDetail::Operations);
        let mut diagnostic = self.finish_hazard(made, hazard);
        let can_search = self.can_search(&in_slice, &causes.effort);
        if let Some(known) = self.shared_cause(&in_slice, &diagnostic, can_search, causes) {
            known.proposal.iter().for_each(|it| set_fixes(&mut diagnostic, it, &names));
            let site = self.site(&in_slice, causes.first_of(known.cause), &diagnostic, part.as_ref());
            let new = NewSite { key: in_slice.key, part, diagnostic };
            return causes.join(origin, known.cause, new, site.filter(|_| known.is_site));
        }
        let proposal = self.search(&in_slice, &mut causes.effort);
        proposal.iter().for_each(|it| set_fixes(&mut diagnostic, it, &names));
        let no_fix = proposal.as_ref().is_none_or(|it| it.fixes.is_empty());
        let same_gap = causes.shared_fixes.without_fix(*scope, hazard).filter(|_| no_fix);
        let same_gap = same_gap.map(|it| (it.cause, it.is_of_first));
        if let Some((cause, is_site)) = same_gap.filter(|it| causes.is_like(it.0, &diagnostic, &in_slice.key)) {
            let site = self.site(&in_slice, causes.first_of(cause), &diagnostic, part.as_ref());
            let new = NewSite { key: in_slice.key, part, diagnostic };
            return causes.join(origin, cause, new, site.filter(|_| is_site));
        }
        let (hazard, scope) = (*hazard, *scope);
        let removed = proposal.as_ref().map_or_else(Vec::new, |it| self.removed_by(shared, it));
        let cause = causes.add_cause(origin, NewSite { key: in_slice.key, part, diagnostic });
        let proposal = proposal.unwrap_or_default();
        causes.shared_fixes.push(SharedFix::new(scope, (cause, true), hazard, &proposal, removed));
    }

    /// The cause of an earlier hazard that this one shares.
    fn shared_cause(
        &self,
        in_slice: &HazardInSlice<'_>,
        diagnostic: &Diagnostic,
        can_search: bool,
        causes: &mut CauseRegistry,
    ) -> Option<SharedCause> {
        let HazardInSlice { hazard, explainer, slice_hazard, shared, scope, key } = in_slice;
        let is_like = |cause: usize| causes.is_like(cause, diagnostic, key);
        if let Some(known) = causes.shared_fixes.removing(*scope, hazard).filter(|it| is_like(it.cause)) {
            let proposal = known.fix.as_ref().map(|it| explainer.adopt(slice_hazard, it));
            return Some(SharedCause { cause: known.cause, is_site: known.is_of_first, proposal });
        }
        if can_search {
            let tried = causes.shared_fixes.candidates(*scope, hazard).filter(|it| is_like(it.cause));
            for known in tried.take(SHARED_TRIES_MAX) {
                let proposal = known.fix.as_ref().and_then(|it| explainer.verify(slice_hazard, shared.all(), it));
                if proposal.is_some() {
                    return Some(SharedCause { cause: known.cause, is_site: known.is_of_first, proposal });
                }
            }
        }
        let (occurred, others) = causes.causes_like(diagnostic, key, self.origin(&hazard.at).scope);
        if !occurred.is_empty() && can_search {
            let again = self.fixed_with(in_slice, &occurred, causes);
            if again.is_some() {
                return again;
            }
        }
        others.first().map(|it| SharedCause { cause: *it, is_site: false, proposal: None })
    }

    /// One of the causes that occurred before in the same recording or step, if its fix removes the hazard. The cause is
    /// of an earlier frame, so its fix is searched for again.
    fn fixed_with(
        &self,
        in_slice: &HazardInSlice<'_>,
        occurred: &[usize],
        causes: &mut CauseRegistry,
    ) -> Option<SharedCause> {
        let HazardInSlice { explainer, slice_hazard, shared, scope, .. } = in_slice;
        for cause in occurred.iter().take(SHARED_TRIES_MAX) {
            if causes.shared_fixes.has_fix_of(*scope, *cause) {
                continue;
            }
            let is_its = |other: &&Hazard| {
                let hazard = shared.slice.device_hazard(other).filter(|_| other != slice_hazard);
                hazard.and_then(|it| causes.site_of(&self.site_key(&it))).is_some_and(|it| it.cause == *cause)
            };
            let Some(earlier) = shared.all().iter().find(is_its) else { continue };
            let proposal = explainer.propose(earlier, shared.all());
            let Some(hazard) = shared.slice.device_hazard(earlier) else { continue };
            let removed = self.removed_by(shared, &proposal);
            let is_removed = removed.iter().any(|it| hazard_key(it) == hazard_key(in_slice.hazard));
            let adopted = proposal.fixes.first().map(|it| explainer.adopt(slice_hazard, it));
            causes.shared_fixes.push(SharedFix::new(*scope, (*cause, false), &hazard, &proposal, removed));
            if is_removed {
                return Some(SharedCause { cause: *cause, is_site: false, proposal: adopted });
            }
        }
        None
    }

    /// The hazards that a proposal removes, with the ids of the device.
    fn removed_by(&self, shared: &SharedSlice<'_>, proposal: &Proposal) -> Vec<Hazard> {
        proposal.removed.iter().filter_map(|it| shared.slice.device_hazard(it)).collect()
    }

    fn can_search(&self, in_slice: &HazardInSlice<'_>, effort: &ExplanationEffort) -> bool {
        let is_it = |it: &Hazard| hazard_key(it) == hazard_key(in_slice.slice_hazard);
        effort.causes < EXPLAINED_MAX
            && in_slice.shared.slice.commands() <= COMMANDS_MAX
            && in_slice.shared.all().iter().any(is_it)
    }

    /// Searches for fixes, and counts why it does not.
    fn search(&self, in_slice: &HazardInSlice<'_>, effort: &mut ExplanationEffort) -> Option<Proposal> {
        let HazardInSlice { explainer, slice_hazard, shared, .. } = in_slice;
        self.propose(explainer, (shared.slice.commands(), || shared.all()), slice_hazard, effort)
    }

    /// The slice that explains a hazard, which may be that of the hazard before. None if too much is in between.
    fn shared_slice<'s>(
        &'s self,
        hazard: &Hazard,
        effort: &mut ExplanationEffort,
        last: &mut LastSlice<'s>,
    ) -> Option<Rc<SharedSlice<'s>>> {
        if !self.is_known(&hazard.prior) {
            return None;
        }
        let (first, about) = (step_of(&hazard.at).min(step_of(&hazard.prior)), hazard.resource);
        let known = last.as_ref().filter(|it| (it.first, it.about) == (first, about)).cloned();
        let left = FOLLOWED_MAX - effort.commands.min(FOLLOWED_MAX);
        let shared = match known.filter(|it| it.slice.commands() <= left) {
            Some(known) => known,
            None => {
                let slice = self.slice(first, about, left)?;
                Rc::new(SharedSlice { first, about, slice, all: OnceCell::new() })
            }
        };
        effort.commands += shared.slice.commands();
        *last = Some(Rc::clone(&shared));
        Some(shared)
    }

    fn fix_scope(&self, shared: &SharedSlice<'_>) -> FixScope {
        match self.report_scope(shared.first) {
            ReportScope::Recording { device, command_buffer, resets } => {
                FixScope::Recording { device, command_buffer, resets }
            }
            ReportScope::Step { device, .. } => {
                let first = shared.slice.steps.first().map_or(shared.first, |it| it.index);
                FixScope::Steps { device, first }
            }
        }
    }

    /// How a report lists a hazard behind the first one of its cause.
    fn site(
        &self,
        in_slice: &HazardInSlice<'_>,
        first: &SiteKey,
        diagnostic: &Diagnostic,
        part: Option<&(ResourceId, Region)>,
    ) -> Option<DiagnosticSite> {
        let is_prior_other = first.at == in_slice.key.at;
        let location = diagnostic.locations.get(usize::from(is_prior_other))?;
        let region = part.map_or_else(String::new, |it| region_text(&it.1));
        Some(DiagnosticSite {
            resource: format!("{}{region}", self.resource_name(in_slice.hazard.resource)),
            function: location.access.function.clone(),
            place: location.text.clone(),
            labels: location.labels.clone(),
            stack: location.stack,
        })
    }
}
