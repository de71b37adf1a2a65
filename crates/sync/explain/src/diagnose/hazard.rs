//! Turns hazards into diagnostics with an explanation and fixes.

use std::collections::{HashMap, HashSet};

use lavascope_diag::{AccessText, CallStack, Diagnostic, DiagnosticLocation as DiagPlace, DiagnosticSite, Property};
use lavascope_sync_ir::{CommandBufferId, Findings, Hazard, HazardKind, Program, ProgramLocation, Region, ResourceId};

use super::certainty::{HazardCertainty, hazard_certainty};
use super::fault::diagnose_faults;
use super::operations::listed_operations;
use crate::follow::access_detail::relation;
use crate::follow::coverage::{describe_operation, operation_name};
use crate::follow::dependency::recorded_location;
use crate::text::message::{ExplainedHazard, regions_text};
use crate::text::properties::properties;
use crate::{Explainer, Explanation, ProgramNames, Proposal};
use lavascope_engine::check_all;

/// The diagnostics of all hazards and faults of a program: one for each cause, with the number of
/// executions.
pub fn report(program: &Program, names: &dyn ProgramNames) -> Vec<Diagnostic> {
    let Findings { hazards, faults } = check_all(program);
    let mut all = diagnose_hazards(program, &hazards, names);
    all.extend(diagnose_faults(program, &faults, names));
    all
}

/// The diagnostics of the given hazards. Hazards that one fix removes are one diagnostic.
pub fn diagnose_hazards(program: &Program, found: &[Hazard], names: &dyn ProgramNames) -> Vec<Diagnostic> {
    let explainer = Explainer::new(program);
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    // The diagnostic of each hazard that the fix of an earlier one removes.
    let mut removed: HashMap<HazardKey<'_>, usize> = HashMap::new();
    for (hazard, count) in hazard_causes(program, found) {
        let severity = hazard_certainty(program, hazard).severity();
        let known = removed.get(&hazard_key(hazard)).filter(|it| diagnostics[**it].severity == severity);
        if let Some(known) = known {
            let site = site_of(
                &diagnostics[*known],
                &describe_hazard(&explainer, hazard, found, names, HazardDetail::Accesses),
            );
            let own = &mut diagnostics[*known];
            own.count += count;
            own.sites += 1;
            own.more_sites.extend(site.filter(|_| own.more_sites.len() < LISTED_SITES_MAX));
            continue;
        }
        let proposal = explainer.propose(hazard, found);
        for other in found.iter().filter(|it| shares_fix(hazard, it, &proposal)) {
            removed.entry(hazard_key(other)).or_insert(diagnostics.len());
        }
        let mut made = describe_hazard(&explainer, hazard, found, names, HazardDetail::Operations);
        set_fixes(&mut made, &proposal, names);
        made.count = count;
        diagnostics.push(made);
    }
    diagnostics
}

/// A diagnostic lists this many sites after the first one.
const LISTED_SITES_MAX: usize = 4;

type HazardKey<'h> = (HazardKind, &'h ProgramLocation, &'h ProgramLocation, ResourceId);

fn hazard_key(hazard: &Hazard) -> HazardKey<'_> {
    (hazard.kind, &hazard.at, &hazard.prior, hazard.resource)
}

/// Whether the first fix of a hazard also removes another hazard. A barrier for several resources is one fix only if it
/// stands between the same two commands.
fn shares_fix(hazard: &Hazard, other: &Hazard, proposal: &Proposal) -> bool {
    let Some(fix) = proposal.fixes.first() else { return false };
    let is_between_same = (&hazard.at, &hazard.prior) == (&other.at, &other.prior);
    let is_one_place =
        hazard.resource == other.resource || !fix.names_resource() && (is_between_same || !fix.inserts_barrier());
    let is_one_kind = hazard.kind == other.kind || fix.declares_dependency();
    is_one_kind && is_one_place && proposal.removed.iter().any(|it| hazard_key(it) == hazard_key(other))
}

/// How a report lists a hazard after the first one of its cause.
fn site_of(first: &Diagnostic, diagnostic: &Diagnostic) -> Option<DiagnosticSite> {
    let cause = |it: &Diagnostic| it.locations.first().map(|it| it.cause.clone());
    let location = diagnostic.locations.get(usize::from(cause(first) == cause(diagnostic)))?;
    let action = &location.access.action;
    Some(DiagnosticSite {
        resource: action.split_once(' ').map_or(action.as_str(), |it| it.1).to_owned(),
        function: location.access.function.clone(),
        place: location.text.clone(),
        labels: location.labels.clone(),
        stack: location.stack,
    })
}

/// The first hazard of each cause, and how often its two commands were executed with this hazard.
/// [`diagnose_hazards`] makes one diagnostic of each.
pub fn hazard_causes<'a>(program: &Program, found: &'a [Hazard]) -> Vec<(&'a Hazard, u64)> {
    let mut causes: HashMap<HazardCause, usize> = HashMap::new();
    let mut firsts: Vec<(&Hazard, u64)> = Vec::new();
    let mut executions: HashSet<(HazardKind, &ProgramLocation, &ProgramLocation, ResourceId)> = HashSet::new();
    for hazard in found {
        // Several regions of a resource are one hazard.
        let is_new = executions.insert((hazard.kind, &hazard.at, &hazard.prior, hazard.resource));
        let index = *causes.entry(hazard_cause(program, hazard)).or_insert(firsts.len());
        match firsts.get_mut(index) {
            Some((_, count)) => *count += u64::from(is_new),
            None => firsts.push((hazard, 1)),
        }
    }
    firsts
}

type HazardCause = (HazardKind, RecordedOrExecuted, RecordedOrExecuted, ResourceId);
type RecordedOrExecuted = Result<(CommandBufferId, u32), ProgramLocation>;

/// The recorded commands of a hazard. Several executions of them are one cause.
fn hazard_cause(program: &Program, hazard: &Hazard) -> HazardCause {
    let of = |place: &ProgramLocation| recorded_location(program, place).ok_or_else(|| place.clone());
    (hazard.kind, of(&hazard.at), of(&hazard.prior), hazard.resource)
}

/// How much detail a diagnostic contains. Every diagnostic has the code, the severity, the first
/// line, and the properties of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HazardDetail {
    /// The synchronization operations between the two accesses, and what each of them covers.
    Operations,
    /// Only the two accesses. The program does not contain the operations between them.
    Accesses,
    /// Only the later access. The program does not contain the earlier access either.
    LaterAccess,
}

/// A hazard as a diagnostic without a fix. `all` contains the hazards on other regions of the same
/// resource.
pub fn describe_hazard(
    explainer: &Explainer<'_>,
    found: &Hazard,
    all: &[Hazard],
    names: &dyn ProgramNames,
    detail: HazardDetail,
) -> Diagnostic {
    let program = explainer.timeline.program;
    let explanation = match detail {
        HazardDetail::Operations | HazardDetail::Accesses => explainer.explain(found),
        HazardDetail::LaterAccess => explainer.explain_later(found),
    };
    let regions = conflicting_regions(found, all);
    let explained = explanation.as_ref().map(|explanation_item| ExplainedHazard {
        program,
        hazard: found,
        regions: &regions,
        explanation: explanation_item,
        names,
        relation: relation(&found.at, &found.prior),
        has_operations: detail == HazardDetail::Operations,
    });
    let prior = explanation.as_ref().map(|it| it.prior.resource).filter(|it| *it != found.resource);
    let resource = regions_text(found.resource, &regions, names);
    let kind = found.kind.name().replace('-', "_");
    let message = match &explained {
        Some(explained) => explained.message(&resource),
        None => {
            let (at, prior) = (names.location(&found.at), names.location(&found.prior));
            format!("{at}: {kind} hazard detected on {resource}, with {prior}.")
        }
    };
    let code = format!("SYNC-HAZARD-{}", found.kind.name());
    let operations = explanation.as_ref().filter(|_| detail == HazardDetail::Operations);
    let certainty = hazard_certainty(program, found);
    let (listed, unrelated) = operations.map_or_else(|| (Vec::new(), 0), |it| listed_operations(it, &[], names));
    let stage = |of: fn(&Explanation) -> u64| explanation.as_ref().map_or(0, of);
    let (later_stage, prior_stage) = (stage(|it| it.later.stage), stage(|it| it.prior.stage));
    let later = diagnostic_location("access", &found.at, later_stage, program, names);
    let earlier = diagnostic_location("prior access", &found.prior, prior_stage, program, names);
    Diagnostic {
        title: explained.as_ref().map_or_else(String::new, ExplainedHazard::title),
        is_overlap_assumed: certainty == HazardCertainty::Assumed,
        function: explained.as_ref().map_or_else(String::new, ExplainedHazard::function),
        locations: vec![
            DiagPlace {
                access: explained.as_ref().map_or_else(AccessText::default, ExplainedHazard::later_text),
                ..later
            },
            DiagPlace {
                access: explained.as_ref().map_or_else(AccessText::default, ExplainedHazard::prior_text),
                ..earlier
            },
        ],
        objects: [Some(found.resource), prior].into_iter().flatten().map(|it| names.object(it)).collect(),
        properties: explained.as_ref().map_or_else(|| vec![Property { key: "hazard_type", value: kind }], properties),
        explanation: operations.map_or_else(Vec::new, |it| explanation_lines(it, names)),
        operations: listed,
        unrelated_operations: unrelated,
        stacks: stacks(found, operations, names),
        ..Diagnostic::new(code, certainty.severity(), message)
    }
}

/// Adds the fixes of a proposal to a diagnostic, or the reason why there are none. The operations
/// that the first fix edits are listed first.
pub fn set_fixes(diagnostic: &mut Diagnostic, proposal: &Proposal, names: &dyn ProgramNames) {
    let edited = proposal.fixes.first().map_or_else(Vec::new, |it| it.edited_operations());
    if let Some(explanation) = proposal.explanation.as_ref().filter(|_| !edited.is_empty()) {
        (diagnostic.operations, diagnostic.unrelated_operations) = listed_operations(explanation, &edited, names);
    }
    diagnostic.fixes = proposal.fixes.iter().map(|it| it.describe(&proposal.operations, names)).collect();
    diagnostic.no_fix.clone_from(&proposal.no_fix_reason);
}

/// A diagnostic has the call stacks of at most this many operations.
const STACKS_MAX: usize = 8;

/// The call stacks of the two accesses, and of the operations between them.
fn stacks(found: &Hazard, explanation: Option<&Explanation>, names: &dyn ProgramNames) -> Vec<CallStack> {
    let stack = |role: String, place: &ProgramLocation| Some(CallStack { role, number: names.call_stack(place)? });
    let ends = [("access", &found.at), ("prior access", &found.prior)];
    let mut all: Vec<CallStack> = ends.into_iter().filter_map(|(role, at)| stack(role.to_owned(), at)).collect();
    let operations = explanation.iter().flat_map(|it| &it.operations);
    let mut between: Vec<CallStack> =
        operations.filter_map(|it| stack(operation_name(it, names), &it.executed_at)).collect();
    between.dedup();
    all.extend(between.into_iter().take(STACKS_MAX));
    all
}

/// A location of a diagnostic. Its text is for people, and its cause identifies the recorded
/// command for tools.
pub(crate) fn diagnostic_location(
    role: &'static str,
    place: &ProgramLocation,
    stage: u64,
    program: &Program,
    names: &dyn ProgramNames,
) -> DiagPlace {
    let text =
        names.source(place).map_or_else(|| names.location(place), |it| format!("{}: {it}", names.location(place)));
    let cause =
        recorded_location(program, place).map_or_else(|| names.location(place), |(b, c)| names.recorded_command(b, c));
    DiagPlace {
        path: names.path(place, stage),
        labels: names.labels(place),
        neighbors: names.neighbors(place),
        stack: names.call_stack(place).unwrap_or(0),
        ..DiagPlace::new(role, text, cause)
    }
}

/// The regions on which the two commands conflict.
fn conflicting_regions(found: &Hazard, all: &[Hazard]) -> Vec<Region> {
    let same = all.iter().filter(|hazard| {
        (hazard.kind, &hazard.at, &hazard.prior, hazard.resource)
            == (found.kind, &found.at, &found.prior, found.resource)
    });
    Region::join_all(same.map(|it| it.region.clone()))
}

/// One line for each operation between the two accesses. Equal neighbors share one line with their
/// number.
fn explanation_lines(explanation: &Explanation, names: &dyn ProgramNames) -> Vec<String> {
    if explanation.operations.is_empty() {
        return vec!["no synchronization operation lies between the two accesses".to_owned()];
    }
    let mut found: Vec<(String, u32)> = Vec::new();
    for operation in &explanation.operations {
        let text = describe_operation(operation, names);
        match found.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => found.push((text, 1)),
        }
    }
    let line = |(text, count): (String, u32)| if count > 1 { format!("{text} ({count} times)") } else { text };
    found.into_iter().map(line).collect()
}
