//! Makes diagnostics out of hazards.

use std::collections::HashSet;

use lavascope_abi::ObjectId;
use lavascope_diag::{
    CallStack, Diagnostic, DiagnosticLocation as DiagPlace, DiagnosticObject, Fix, Property, Severity,
};
use lavascope_engine::{EventRace, check};
use lavascope_explain::{
    AccessRelation, Explainer, diagnose_faults, diagnose_hazards, race_code, race_texts, region_text, relation,
};
use lavascope_record::ObjectNames;
use lavascope_sync_ir::{Certainty, CommandLocation, Hazard, HostStep, ProgramLocation, ResourceId, UndefinedContents};

use crate::device::ValidatedDevice;
use crate::feedback::pending::PendingFeedback;
use crate::findings::causes::{
    CauseLocation, CauseRegistry, FindingCause, FindingKind, FindingOrigin, RecordedPosition,
};
use crate::findings::names::{
    SliceNames, diagnostic_object, diagnostic_resource, function_text, labels, object_text, recorded_text, step_text,
};
use crate::findings::program_slice::ProgramSlice;
use crate::recording::step_history::{HistoryLocation, HistoryStep, step_of};

/// Largest number of explained causes. An explanation may take long, and a program with so many causes has other
/// problems.
const EXPLAINED_MAX: usize = 200;
/// Largest number of commands between two accesses that an explanation follows.
pub(crate) const COMMANDS_MAX: usize = 20_000;

/// Number of lines of an explanation that are kept, at its beginning and at its end.
const LINES_MAX: usize = 8;

/// Reports the findings of a device, from its last step or from a command buffer that is being recorded.
pub(crate) struct DiagnosticBuilder<'a> {
    pub(crate) id: ObjectId,
    pub(crate) device: &'a ValidatedDevice,
    /// The recording, if the findings are about a command buffer that is being recorded.
    pub(crate) recording: Option<&'a HistoryStep>,
    /// What shaders reported of their accesses, if they do.
    pub(crate) feedback: Option<&'a PendingFeedback>,
    pub(crate) object_names: &'a ObjectNames,
}

impl DiagnosticBuilder<'_> {
    /// Turns hazards into findings.
    pub(crate) fn report_hazards(&self, found: &[Hazard], causes: &mut CauseRegistry) {
        let mut seen = HashSet::new();
        for hazard in found {
            // A hazard may concern several parts of a resource.
            if seen.insert((hazard.kind, &hazard.at, &hazard.prior, hazard.resource)) {
                let cause = self.finding_cause(
                    FindingKind::Hazard(hazard.kind),
                    (&hazard.at, Some(&hazard.prior)),
                    hazard.resource,
                );
                causes.add(self.origin(), cause, |known| self.hazard_diagnostic(hazard, found, known));
            }
        }
    }

    /// Turns contents that are used and undefined into findings.
    pub(crate) fn report_faults(&self, found: &[UndefinedContents], causes: &mut CauseRegistry) {
        let mut seen = HashSet::new();
        for undefined_contents in found {
            let places = (&undefined_contents.at, undefined_contents.prior.as_ref());
            let first =
                undefined_contents.prior.as_ref().filter(|it| self.locate(it).is_some()).map_or(u32::MAX, step_of);
            if !seen.insert((undefined_contents.kind, places, undefined_contents.resource)) {
                continue;
            }
            let cause =
                self.finding_cause(FindingKind::Fault(undefined_contents.kind), places, undefined_contents.resource);
            causes.try_add(self.origin(), cause, || {
                let slice =
                    self.slice(first.min(step_of(&undefined_contents.at)), undefined_contents.resource, usize::MAX)?;
                let names =
                    SliceNames { slice: &slice, objects: &self.device.objects, object_names: self.object_names };
                // A fault may concern several parts of a resource.
                let is_it = |own: &&UndefinedContents| {
                    (own.kind, &own.at, &own.prior, own.resource)
                        == (
                            undefined_contents.kind,
                            &undefined_contents.at,
                            &undefined_contents.prior,
                            undefined_contents.resource,
                        )
                };
                let all: Vec<UndefinedContents> =
                    found.iter().filter(is_it).filter_map(|it| slice.slice_fault(it)).collect();
                let made = diagnose_faults(&slice.program, &all, &names).into_iter().next()?;
                Some(self.finish_diagnostic(made, &undefined_contents.at))
            });
        }
    }

    /// Turns races of events into findings.
    pub(crate) fn report_races(&self, found: &[EventRace], causes: &mut CauseRegistry) {
        for event_race in found {
            let event = self.device.objects.events.get(&event_race.event);
            let spot = |place: &ProgramLocation| Some(cause_location(&self.locate(place)?, self.object_names));
            let resource = event.map(|it| name_or_id(*it, self.object_names)).unwrap_or_default();
            let cause = FindingCause {
                kind: FindingKind::Race(event_race.kind),
                at: spot(&event_race.at),
                prior: spot(&event_race.prior),
                resource,
                is_observed: false,
            };
            causes.add(self.origin(), cause, |_| self.race_diagnostic(event_race));
        }
    }

    fn race_diagnostic(&self, event_race: &EventRace) -> Diagnostic {
        let event = self.device.objects.events.get(&event_race.event);
        let name = event.map_or_else(|| "an event".to_owned(), |it| object_text(*it, self.object_names));
        let function = |place: &ProgramLocation| self.locate(place).map_or("an earlier command", |it| function(&it));
        let (at, prior) = (function(&event_race.at), function(&event_race.prior));
        let (message, fix) = race_texts(event_race.kind, at, prior, &name);
        let made = Diagnostic {
            function: self
                .locate(&event_race.at)
                .map_or("", |it| it.history_step.source.command.desc().name)
                .to_owned(),
            locations: vec![
                self.diagnostic_location("access", &event_race.at),
                self.diagnostic_location("prior access", &event_race.prior),
            ],
            objects: event.iter().map(|it| diagnostic_object("VkEvent", **it, self.object_names)).collect(),
            stacks: self.stacks([("access", &event_race.at), ("prior access", &event_race.prior)]),
            fixes: vec![Fix { text: fix, is_verified: false }],
            ..Diagnostic::new(race_code(event_race.kind, at), Severity::Error, message)
        };
        self.finish_diagnostic(made, &event_race.at)
    }

    pub(crate) fn origin(&self) -> FindingOrigin {
        FindingOrigin { device: self.id, is_recorded: self.recording.is_some() }
    }

    fn locate(&self, place: &ProgramLocation) -> Option<HistoryLocation<'_>> {
        match self.recording {
            Some(kept) => kept.locate(place),
            None => self.device.history.locate(place),
        }
    }

    pub(crate) fn slice(&self, first: u32, about: ResourceId, commands_max: usize) -> Option<ProgramSlice<'_>> {
        let mut slice = match self.recording {
            Some(kept) => ProgramSlice::of_recording(self.device, kept, about, commands_max),
            None => ProgramSlice::new(self.device, first, about, commands_max),
        }?;
        if let Some(feed) = self.feedback {
            slice.apply_feedback(feed);
        }
        Some(slice)
    }

    fn finding_cause(
        &self,
        kind: FindingKind,
        (at, prior): (&ProgramLocation, Option<&ProgramLocation>),
        id: ResourceId,
    ) -> FindingCause {
        let spot = |place: &ProgramLocation| Some(cause_location(&self.locate(place)?, self.object_names));
        let resource = self.device.objects.resources.get(&id);
        let resource = resource.map(|it| name_or_id(it.0, self.object_names)).unwrap_or_default();
        FindingCause { kind, at: spot(at), prior: prior.and_then(spot), resource, is_observed: self.feedback.is_some() }
    }

    fn hazard_diagnostic(&self, hazard: &Hazard, all: &[Hazard], known: usize) -> Diagnostic {
        let reason = if self.locate(&hazard.prior).is_none() {
            "the earlier access is older than the last steps that are kept, so it is not named"
        } else if known >= EXPLAINED_MAX {
            "there were too many findings before"
        } else {
            let first = step_of(&hazard.at).min(step_of(&hazard.prior));
            match self.slice(first, hazard.resource, COMMANDS_MAX) {
                None => "there are too many commands between the two accesses",
                Some(slice) => match self.explained(&slice, hazard) {
                    Some(diagnostic) => return self.finish_diagnostic(diagnostic, &hazard.at),
                    None => "the two accesses alone, without what came before them, do not show it",
                },
            }
        };
        self.finish_diagnostic(self.unexplained(hazard, all, reason), &hazard.at)
    }

    /// A diagnostic with explanation and fix.
    fn explained(&self, slice: &ProgramSlice<'_>, hazard: &Hazard) -> Option<Diagnostic> {
        let wanted = slice.slice_hazard(hazard)?;
        let all = check(&slice.program);
        let is_it = |own: &&Hazard| {
            (own.kind, &own.at, &own.prior, own.resource) == (wanted.kind, &wanted.at, &wanted.prior, wanted.resource)
        };
        let own: Vec<Hazard> = all.iter().filter(is_it).cloned().collect();
        let names = SliceNames { slice, objects: &self.device.objects, object_names: self.object_names };
        let mut made = diagnose_hazards(&slice.program, &own, &names).into_iter().next()?;
        if self.feedback.is_some() {
            mark_observed(&mut made);
        }
        if own.len() < all.len() {
            // A fix may cause a new hazard. Only a comparison with all known hazards shows that.
            let proposal = Explainer::new(&slice.program).propose(own.first()?, &all);
            made.fixes = proposal.fixes.iter().map(|it| Fix { text: it.text(&names), is_verified: true }).collect();
            made.no_fix = proposal.no_fix_reason;
        }
        Some(made)
    }

    /// A diagnostic without explanation.
    fn unexplained(&self, hazard: &Hazard, all: &[Hazard], reason: &str) -> Diagnostic {
        let kind = hazard.kind.name().replace('-', "_");
        let same = all.iter().filter(|own| (own.kind, &own.at, &own.prior) == (hazard.kind, &hazard.at, &hazard.prior));
        let parts: Vec<String> =
            same.filter(|own| own.resource == hazard.resource).map(|own| region_text(&own.region)).collect();
        let resource = self.device.objects.resources.get(&hazard.resource);
        let resource = resource.map(|it| object_text(it.0, self.object_names)).unwrap_or_default();
        let function = |place: &ProgramLocation| self.locate(place).map(|it| function(&it));
        let at = function(&hazard.at).unwrap_or("a command");
        let prior = function(&hazard.prior).map_or(String::new(), |it| format!(" The earlier access is of {it}."));
        let places = [("access", &hazard.at), ("prior access", &hazard.prior)]
            .map(|(role, at)| self.diagnostic_location(role, at));
        let message = format!("{at}(): {kind} hazard detected on {resource}{}.{prior}", parts.join(", "));
        let code = format!("SYNC-HAZARD-{}", hazard.kind.name());
        let own = self.device.objects.resources.get(&hazard.resource);
        Diagnostic {
            function: self.locate(&hazard.at).map_or("", |it| it.history_step.source.command.desc().name).to_owned(),
            locations: places.to_vec(),
            objects: own.iter().map(|it| diagnostic_resource(it, self.object_names)).collect(),
            properties: self.unexplained_facts(hazard, kind),
            explanation: vec![format!("not explained: {reason}")],
            stacks: self.stacks([("access", &hazard.at), ("prior access", &hazard.prior)]),
            ..Diagnostic::new(code, self.severity(hazard), message)
        }
    }

    /// The properties that need no explanation.
    fn unexplained_facts(&self, hazard: &Hazard, kind: String) -> Vec<Property> {
        let is_recorded = relation(&hazard.at, &hazard.prior) == AccessRelation::Recorded;
        let (at, prior) = (self.locate(&hazard.at), self.locate(&hazard.prior));
        let command = |it: Option<&HistoryLocation<'_>>| it.map(|it| function(it).to_owned());
        let region =
            |it: Option<&HistoryLocation<'_>>| it.and_then(|it| labels(it.history_step, it.command_call()).path());
        let all = [
            ("message_type", (!is_recorded).then(|| "SubmitTimeError".to_owned())),
            ("hazard_type", Some(kind)),
            ("command", command(at.as_ref())),
            ("prior_command", command(prior.as_ref())),
            ("debug_region", region(at.as_ref())),
            ("prior_debug_region", region(prior.as_ref())),
        ];
        all.into_iter().filter_map(|(key, value)| Some(Property { key, value: value? })).collect()
    }

    /// The location of a finding, as far as it is known.
    fn diagnostic_location(&self, role: &'static str, place: &ProgramLocation) -> DiagPlace {
        let Some(other) = self.locate(place) else {
            return DiagPlace::new(role, "not known any more".to_owned(), "not known any more".to_owned());
        };
        let text = self.place_text(&other);
        let ways: Vec<ProgramLocation> = match place {
            ProgramLocation::Step(_) => vec![place.clone()],
            ProgramLocation::Command(at) => {
                let part = |end: usize| {
                    ProgramLocation::Command(CommandLocation { path: at.path[..end].to_vec(), ..at.clone() })
                };
                (1..=at.path.len()).step_by(2).map(part).collect()
            }
        };
        DiagPlace {
            path: ways.iter().filter_map(|it| self.locate(it)).map(|it| function(&it).to_owned()).collect(),
            labels: labels(other.history_step, other.command_call()),
            ..DiagPlace::new(role, text.clone(), text)
        }
    }

    /// The command buffer and the queue of an access.
    fn executors(&self, history_location: &HistoryLocation<'_>) -> Vec<DiagnosticObject> {
        let buffer =
            history_location.recorded.map(|it| diagnostic_object("VkCommandBuffer", it.0.object, self.object_names));
        let queue = self
            .device
            .objects
            .queue_of(&history_location.history_step.step)
            .filter(|_| !history_location.history_step.is_recording());
        buffer.into_iter().chain(queue.map(|it| diagnostic_object("VkQueue", it, self.object_names))).collect()
    }

    /// Without feedback, a hazard is only as certain as its accesses.
    fn severity(&self, hazard: &Hazard) -> Severity {
        let is_certain =
            |place: &ProgramLocation| match self.locate(place).map(|it| (it.recorded, &it.history_step.step)) {
                None => false,
                Some((None, HostStep::HostAccess { certainty, .. })) => *certainty == Certainty::Certain,
                Some((None, _)) => true,
                Some((Some((recorded, index)), _)) => match recorded.accesses(index as usize) {
                    Some(all) => {
                        let own: Vec<_> = all.iter().filter(|own| own.resource == hazard.resource).collect();
                        !own.is_empty() && own.iter().all(|it| it.certainty == Certainty::Certain)
                    }
                    None => true,
                },
            };
        if is_certain(&hazard.at) && is_certain(&hazard.prior) { Severity::Error } else { Severity::Warning }
    }

    fn place_text(&self, history_location: &HistoryLocation<'_>) -> String {
        let step = step_text(history_location.history_step, &self.device.objects, self.object_names);
        let Some((recorded, index)) = history_location.recorded else { return step };
        let recorded = recorded_text(recorded, index, self.object_names);
        let function =
            history_location.command_call().map_or_else(|| function(history_location).to_owned(), function_text);
        match history_location.history_step.is_recording() {
            true => format!("{recorded}: {function}"),
            false => format!("{recorded}, {step}: {function}"),
        }
    }

    /// The call stacks of two locations, for a finding without explanation.
    fn stacks(&self, places: [(&str, &ProgramLocation); 2]) -> Vec<CallStack> {
        let stack = |(role, place): (&str, &ProgramLocation)| {
            let history_location = self.locate(place)?;
            let number = history_location.command_call().map_or(history_location.history_step.stack, |it| it.stack);
            (number != 0).then(|| CallStack { role: role.to_owned(), number })
        };
        places.into_iter().filter_map(stack).collect()
    }

    /// Adds the command buffer and the queue, and limits the length.
    fn finish_diagnostic(&self, mut diagnostic: Diagnostic, at: &ProgramLocation) -> Diagnostic {
        diagnostic.objects.extend(self.locate(at).iter().flat_map(|it| self.executors(it)));
        shorten_explanation(&mut diagnostic.explanation);
        diagnostic.count = 1;
        diagnostic
    }
}

/// Notes that shaders reported the accesses.
fn mark_observed(diagnostic: &mut Diagnostic) {
    match diagnostic.severity {
        Severity::Error => {
            diagnostic.message += " It was observed: on the device, shaders did touch what the two accesses share.";
            diagnostic.properties.push(Property { key: "observed", value: "true".to_owned() });
        }
        _ => diagnostic.explanation.push("what shaders touched on the device does not decide it".to_owned()),
    }
}

/// There may be hundreds of barriers between two accesses. The first and the last ones are the most useful.
fn shorten_explanation(lines: &mut Vec<String>) {
    let left_out = lines.len().saturating_sub(2 * LINES_MAX);
    if left_out > 1 {
        let text = format!("({left_out} operations are not listed; none of them covers either)");
        lines.splice(LINES_MAX..LINES_MAX + left_out, [text]);
    }
}

fn function(history_location: &HistoryLocation<'_>) -> &'static str {
    history_location.command_call().map_or(history_location.history_step.source.command, |it| it.function).desc().name
}

fn cause_location(history_location: &HistoryLocation<'_>, titles: &ObjectNames) -> CauseLocation {
    let recorded = history_location.recorded.map(|(recorded, index)| RecordedPosition {
        name: titles.name(recorded.object).map(str::to_owned),
        functions: recorded.calls.iter().take(index as usize + 1).map(|it| it.function).collect(),
    });
    CauseLocation {
        function: history_location
            .command_call()
            .map_or(history_location.history_step.source.command, |it| it.function),
        recorded,
    }
}

/// The name of an object, or its id if it has no name.
fn name_or_id(object: ObjectId, titles: &ObjectNames) -> String {
    titles.name(object).map_or_else(|| object.to_string(), str::to_owned)
}
