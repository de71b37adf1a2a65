//! Makes diagnostics out of hazards.

use std::collections::HashSet;
use std::ops::Range;

use lavascope_abi::{AccessFlags2, Command, ObjectId, PipelineStageFlags2};
use lavascope_diag::{
    AccessText, CallStack, Diagnostic, DiagnosticLocation as DiagPlace, DiagnosticObject, Fix, Property, Severity,
};
use lavascope_engine::{EventRace, check};
use lavascope_explain::{
    Explainer, HazardCertainty, HazardDetail, Proposal, SyncVersion, SyncVersions, describe_hazard, diagnose_faults,
    fault_code, fault_severity, hazard_certainty_between, host_accesses, is_beside_render_area, prior_writes,
    race_code, race_texts, race_title, region_text, set_fixes,
};
use lavascope_record::ObjectNames;
use lavascope_state::CallSource;
use lavascope_sync_ir::{
    Access, Area, CommandLocation, Components, Hazard, HostStep, ImageRegion, ProgramLocation, Region, ResourceId,
    ResourceKind, UndefinedContents, may_share_bytes,
};

use crate::device::ValidatedDevice;
use crate::feedback::pending::PendingFeedback;
use crate::findings::causes::{
    COMMANDS_MAX, CauseLocation, CauseRegistry, EXPLAINED_MAX, ExplanationEffort, FOLLOWED_MAX, FindingKind,
    FindingOrigin, RecordedPosition, ReportScope, SiteKey,
};
use crate::findings::names::{
    SliceNames, command_neighbors, diagnostic_object, executed_function_text, object_text, recorded_text, step_text,
};
use crate::findings::noticed_writes;
use crate::findings::program_slice::ProgramSlice;
use crate::recording::step_history::{HistoryLocation, HistoryStep, step_of};

/// Lines of an explanation, from its beginning and from its end.
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
            let key =
                self.finding_site_key(FindingKind::Fault(undefined_contents.kind), places, undefined_contents.resource);
            let (origin, severity) = (self.origin(&undefined_contents.at), fault_severity(undefined_contents.kind));
            causes.add(origin, key, severity, || self.fault_diagnostic(undefined_contents, found, first));
        }
    }

    fn fault_diagnostic(&self, fault: &UndefinedContents, found: &[UndefinedContents], first: u32) -> Diagnostic {
        // Several parts of a resource are one fault.
        let key = |it: &UndefinedContents| (it.kind, it.at.clone(), it.prior.clone(), it.resource);
        let same = found.iter().filter(|it| key(it) == key(fault));
        let made = self.slice(first.min(step_of(&fault.at)), fault.resource, usize::MAX).and_then(|slice| {
            let all: Vec<UndefinedContents> = same.clone().filter_map(|it| slice.slice_fault(it)).collect();
            diagnose_faults(&slice.program, &all, &self.names(&slice)).into_iter().next()
        });
        let made = made.unwrap_or_else(|| {
            let resource = self.resource_text(fault.resource, same.map(|it| &it.region));
            let (kind, is_image) = (fault.kind, self.is_image(fault.resource));
            let message =
                format!("{}() uses contents of {resource} that are undefined.", self.function_name(&fault.at));
            let places = vec![self.diagnostic_location("access", &fault.at)];
            let made = Diagnostic::new(fault_code(kind, is_image), fault_severity(kind), message);
            Diagnostic { function: self.function_name(&fault.at).to_owned(), locations: places, ..made }
        });
        self.finish_diagnostic(made, &fault.at)
    }

    /// Turns races of events into findings.
    pub(crate) fn report_races(&self, found: &[EventRace], causes: &mut CauseRegistry) {
        for event_race in found {
            let event = self.device.objects.events.get(&event_race.event);
            let spot = |place: &ProgramLocation| Some(cause_location(&self.locate(place)?, self.object_names));
            let resource = event.map(|it| object_text(*it, self.object_names)).unwrap_or_default();
            let key = SiteKey {
                kind: FindingKind::Race(event_race.kind),
                at: spot(&event_race.at),
                prior: spot(&event_race.prior),
                resource,
                is_observed: false,
                is_only_possible: false,
            };
            let origin = self.origin(&event_race.at);
            causes.add(origin, key, Severity::Error, || self.race_diagnostic(event_race));
        }
    }

    fn race_diagnostic(&self, event_race: &EventRace) -> Diagnostic {
        let event = self.device.objects.events.get(&event_race.event);
        let name = event.map_or_else(|| "an event".to_owned(), |it| object_text(*it, self.object_names));
        let function = |place: &ProgramLocation| self.locate(place).map_or("an earlier command", |it| function(&it));
        let (at, prior) = (function(&event_race.at), function(&event_race.prior));
        let (message, fix) = race_texts(event_race.kind, at, prior, &name);
        let made = Diagnostic {
            title: race_title(event_race.kind, &name),
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
            fixes: vec![Fix::advice(fix)],
            ..Diagnostic::new(race_code(event_race.kind, at), Severity::Error, message)
        };
        self.finish_diagnostic(made, &event_race.at)
    }

    pub(crate) fn origin(&self, at: &ProgramLocation) -> FindingOrigin {
        FindingOrigin {
            device: self.id,
            is_recorded: self.recording.is_some(),
            frame: self.device.frames,
            scope: self.report_scope(step_of(at)),
        }
    }

    /// The recording, or the step.
    pub(crate) fn report_scope(&self, step: u32) -> ReportScope {
        let recorded = self.recording.and_then(|it| it.buffers.first()?.first()?.own.as_ref());
        match recorded {
            Some(own) => ReportScope::Recording { device: self.id, command_buffer: own.object, resets: own.resets },
            None => ReportScope::Step { device: self.id, step },
        }
    }

    /// Whether a location is in the past that is kept.
    pub(crate) fn is_known(&self, place: &ProgramLocation) -> bool {
        self.locate(place).is_some()
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

    fn finding_site_key(
        &self,
        kind: FindingKind,
        (at, prior): (&ProgramLocation, Option<&ProgramLocation>),
        id: ResourceId,
    ) -> SiteKey {
        let spot = |place: &ProgramLocation| Some(cause_location(&self.locate(place)?, self.object_names));
        let resource = self.resource_key(id);
        let (at, prior, is_observed) = (spot(at), prior.and_then(spot), self.feedback.is_some());
        SiteKey { kind, at, prior, resource, is_observed, is_only_possible: false }
    }

    /// What is the same for a hazard in every frame.
    pub(crate) fn site_key(&self, hazard: &Hazard) -> SiteKey {
        let places = (&hazard.at, Some(&hazard.prior));
        let key = self.finding_site_key(FindingKind::Hazard(hazard.kind), places, hazard.resource);
        SiteKey { is_only_possible: self.certainty(hazard) >= HazardCertainty::Possible, ..key }
    }

    /// The name of a resource. Without one: what it is like, and its number among those that are like it.
    fn resource_key(&self, id: ResourceId) -> String {
        let Some(own) = self.device.objects.resources.get(&id) else { return String::new() };
        match self.object_names.name(own.0) {
            Some(name) => name.to_owned(),
            None => {
                let object = self.device.objects.diagnostic_resource(id, self.object_names);
                format!("{}, {}, {}", object.kind, object.description.unwrap_or_default(), object.ordinal)
            }
        }
    }

    /// `"emitters"`, or `VkBuffer#3`.
    pub(crate) fn resource_name(&self, id: ResourceId) -> String {
        let own = self.device.objects.resources.get(&id);
        let Some((object, _)) = own else { return "a resource".to_owned() };
        self.object_names.name(*object).map_or_else(|| object.to_string(), |it| format!("{it:?}"))
    }

    /// Code, severity, properties and the first line are those of the engine's finding; only what explains it, and the
    /// fix, may be cut.
    pub(crate) fn hazard_diagnostic(
        &self,
        hazard: &Hazard,
        same: &[&Hazard],
        effort: &mut ExplanationEffort,
    ) -> Diagnostic {
        let explained = self.is_known(&hazard.prior).then(|| self.explained(hazard, same, effort)).flatten();
        match explained {
            Some(made) => self.finish_hazard(made, hazard),
            None => self.hazard_diagnostic_without_operations(hazard, same, effort),
        }
    }

    /// The same for what cannot be followed.
    pub(crate) fn hazard_diagnostic_without_operations(
        &self,
        hazard: &Hazard,
        same: &[&Hazard],
        effort: &mut ExplanationEffort,
    ) -> Diagnostic {
        let made = if self.is_known(&hazard.prior) {
            self.without_operations(hazard, same, effort).unwrap_or_else(|| self.without_prior(hazard, same))
        } else {
            effort.cut.prior_forgotten += 1;
            self.without_prior(hazard, same)
        };
        self.finish_hazard(made, hazard)
    }

    pub(crate) fn finish_hazard(&self, mut made: Diagnostic, hazard: &Hazard) -> Diagnostic {
        made.explanation.extend(self.poll_line(hazard));
        if let Some(kept) = self.locate(&hazard.at).map(|it| it.history_step).filter(|it| it.is_noticed_write()) {
            noticed_writes::mark_noticed(&mut made, kept.source);
        }
        if self.feedback.is_some() {
            mark_observed(&mut made);
        } else {
            let certainty = self.certainty(hazard);
            made.severity = certainty.severity();
            made.is_overlap_assumed = certainty == HazardCertainty::Assumed;
        }
        self.finish_diagnostic(made, &hazard.at)
    }

    /// What the host asked before its access, if that could be taken for a wait.
    fn poll_line(&self, hazard: &Hazard) -> Option<String> {
        let step = &self.locate(&hazard.at)?.history_step.step;
        let is_host = matches!(step, HostStep::HostAccess { .. }) && self.recording.is_none();
        let polls = &self.device.host_polls;
        let poll = polls.last_between(step_of(&hazard.prior), step_of(&hazard.at)).filter(|_| is_host)?;
        let object = object_text(poll.object, self.object_names);
        let CallSource { command, call, thread } = poll.source;
        let answer = match command {
            Command::GetEventStatus => format!("{object} was set"),
            _ => format!("{object} had results"),
        };
        Some(format!(
            "{}, call {call} of thread {thread}, reported that {answer}; that orders no access of the host to memory, and a \
             wait for a fence, a timeline semaphore or the queue does",
            command.desc().name
        ))
    }

    /// With the operations between the two accesses, and with a fix while few are asked for; none if too much is in
    /// between.
    fn explained(&self, hazard: &Hazard, same: &[&Hazard], effort: &mut ExplanationEffort) -> Option<Diagnostic> {
        let first = step_of(&hazard.at).min(step_of(&hazard.prior));
        let slice = self.slice(first, hazard.resource, FOLLOWED_MAX - effort.commands.min(FOLLOWED_MAX))?;
        let commands = slice.commands();
        effort.commands += commands;
        let own: Vec<Hazard> = same.iter().filter_map(|it| slice.slice_hazard(it)).collect();
        let (explainer, names) = (self.explainer(&slice), self.names(&slice));
        let wanted = own.first().filter(|it| explainer.explain(it).is_some())?;
        let mut made = describe_hazard(&explainer, wanted, &own, &names, HazardDetail::Operations);
        let proposal = self.propose(&explainer, (commands, || check(&slice.program)), wanted, effort);
        proposal.iter().for_each(|it| set_fixes(&mut made, it, &names));
        Some(made)
    }

    /// Searches for fixes. None, and counted, if that takes too long or cannot be verified.
    pub(crate) fn propose<T: AsRef<[Hazard]>>(
        &self,
        explainer: &Explainer<'_>,
        (commands, all): (usize, impl FnOnce() -> T),
        wanted: &Hazard,
        effort: &mut ExplanationEffort,
    ) -> Option<Proposal> {
        let cut = &mut effort.cut;
        if effort.causes >= EXPLAINED_MAX {
            cut.after_too_many_causes += 1;
            return None;
        }
        if commands > COMMANDS_MAX {
            cut.too_many_commands += 1;
            return None;
        }
        // Whether a fix makes something new is known only beside all that is there already.
        let all = all();
        let key = |it: &Hazard| (it.kind, it.at.clone(), it.prior.clone(), it.resource);
        if !all.as_ref().iter().any(|it| key(it) == key(wanted)) {
            cut.not_reproduced += 1;
            return None;
        }
        Some(explainer.propose(wanted, all.as_ref()))
    }

    /// The two accesses alone.
    fn without_operations(
        &self,
        hazard: &Hazard,
        same: &[&Hazard],
        effort: &mut ExplanationEffort,
    ) -> Option<Diagnostic> {
        effort.cut.not_followed += 1;
        let steps = [step_of(&hazard.prior), step_of(&hazard.at)];
        let slice = self.slice_of_steps(&steps, hazard.resource)?;
        let own: Vec<Hazard> = same.iter().filter_map(|it| slice.slice_hazard(it)).collect();
        let explainer = self.explainer(&slice);
        let wanted = own.first().filter(|it| explainer.explain(it).is_some())?;
        Some(describe_hazard(&explainer, wanted, &own, &self.names(&slice), HazardDetail::Accesses))
    }

    /// The later access alone.
    fn without_prior(&self, hazard: &Hazard, same: &[&Hazard]) -> Diagnostic {
        let made = self.slice_of_steps(&[step_of(&hazard.at)], hazard.resource).and_then(|slice| {
            let own: Vec<Hazard> = same.iter().filter_map(|it| slice.slice_hazard_without_prior(it)).collect();
            let explainer = self.explainer(&slice);
            Some(describe_hazard(&explainer, own.first()?, &own, &self.names(&slice), HazardDetail::LaterAccess))
        });
        let mut made = made.unwrap_or_else(|| self.unexplained(hazard, same));
        let texts: Vec<AccessText> = made.locations.into_iter().map(|it| it.access).collect();
        made.locations = [("access", &hazard.at), ("prior access", &hazard.prior)]
            .map(|(role, at)| self.diagnostic_location(role, at))
            .to_vec();
        for (location, text) in made.locations.iter_mut().zip(texts) {
            location.access = text;
        }
        made
    }

    /// For a hazard whose later access is not in the past that is kept.
    fn unexplained(&self, hazard: &Hazard, same: &[&Hazard]) -> Diagnostic {
        let kind = hazard.kind.name().replace('-', "_");
        let resource = self.resource_text(hazard.resource, same.iter().map(|it| &it.region));
        let function = self.function_name(&hazard.at);
        let title = if function.is_empty() { "Host access".to_owned() } else { format!("{function}()") };
        let message = format!("{title}: {kind} hazard detected on {resource}.");
        let own = self.device.objects.resources.get(&hazard.resource);
        Diagnostic {
            function: function.to_owned(),
            objects: own
                .map(|_| self.device.objects.diagnostic_resource(hazard.resource, self.object_names))
                .into_iter()
                .collect(),
            properties: vec![Property { key: "hazard_type", value: kind }],
            ..Diagnostic::new(format!("SYNC-HAZARD-{}", hazard.kind.name()), Severity::Error, message)
        }
    }

    /// Fixes have the versions of commands that the application uses.
    pub(crate) fn explainer<'s>(&self, slice: &'s ProgramSlice<'s>) -> Explainer<'s> {
        let commands = self.device.versions.commands();
        let version = |kept: &&HistoryStep| match kept.source.command {
            Command::QueueSubmit2 => SyncVersion::Two,
            _ if kept.is_recording() => commands,
            _ => SyncVersion::One,
        };
        let submits = slice.steps.iter().map(version).collect();
        Explainer::new(&slice.program).with_versions(SyncVersions { commands, submits })
    }

    pub(crate) fn names<'s>(&'s self, slice: &'s ProgramSlice<'s>) -> SliceNames<'s> {
        SliceNames { slice, objects: &self.device.objects, object_names: self.object_names }
    }

    fn slice_of_steps(&self, steps: &[u32], about: ResourceId) -> Option<ProgramSlice<'_>> {
        let mut slice = match self.recording {
            Some(kept) => ProgramSlice::of_recording(self.device, kept, about, usize::MAX),
            None => ProgramSlice::of_steps(self.device, steps, about),
        }?;
        if let Some(feed) = self.feedback {
            slice.apply_feedback(feed);
        }
        Some(slice)
    }

    /// The resource with the parts of it that something is wrong with.
    fn resource_text<'r>(&self, id: ResourceId, regions: impl Iterator<Item = &'r Region>) -> String {
        let resource = self.device.objects.resources.get(&id);
        let resource = resource.map_or_else(|| "a resource".to_owned(), |it| object_text(it.0, self.object_names));
        format!("{resource}{}", regions.map(region_text).collect::<Vec<_>>().join(", "))
    }

    fn is_image(&self, id: ResourceId) -> bool {
        let kind = self.device.objects.resources.get(&id).map(|it| &it.1.kind);
        matches!(kind, Some(ResourceKind::Image(_)))
    }

    /// The function in which something happened; empty if that is not known any more.
    fn function_name(&self, place: &ProgramLocation) -> &'static str {
        self.locate(place).map_or("", |it| function(&it))
    }

    /// The location of a finding, as far as it is known.
    fn diagnostic_location(&self, role: &'static str, place: &ProgramLocation) -> DiagPlace {
        let Some(other) = self.locate(place) else {
            return DiagPlace::new(role, "not known any more".to_owned(), "not known any more".to_owned());
        };
        let text = self.place_text(&other, place);
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
            labels: other.history_step.labels_at(place),
            access: AccessText { function: function(&other).to_owned(), ..AccessText::default() },
            neighbors: other.recorded.and_then(|it| command_neighbors(it.0, it.1)),
            stack: other.command_call().map_or(other.history_step.stack, |it| it.stack),
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

    /// The accesses of a command or of the host, as far as they are kept.
    fn accesses_at(&self, place: &ProgramLocation) -> Option<Vec<Access>> {
        let history_location = self.locate(place)?;
        match history_location.recorded {
            Some((recorded, index)) => recorded.accesses(index as usize),
            None => host_accesses(&history_location.history_step.step),
        }
    }

    /// Whether two commands may access a byte in common: the engine finds hazards in bytes between the attributes of
    /// vertices, too.
    pub(crate) fn may_share_bytes(&self, hazard: &Hazard) -> bool {
        let accesses = |place| self.accesses_at(place).unwrap_or_default();
        !matches!(hazard.region, Region::Buffer(_))
            || may_share_bytes(hazard, &accesses(&hazard.at), &accesses(&hazard.prior))
    }

    /// How sure a hazard is, from what was recorded; whatever is explained of it.
    pub(crate) fn certainty(&self, hazard: &Hazard) -> HazardCertainty {
        let accesses = |place: &ProgramLocation| self.accesses_at(place);
        if self.is_beside_render_area(&hazard.at, hazard) || self.is_beside_render_area(&hazard.prior, hazard) {
            return HazardCertainty::Possible;
        }
        let is_forgotten = self.locate(&hazard.prior).is_none();
        let earlier = if is_forgotten { Some(vec![certain_prior(hazard)]) } else { accesses(&hazard.prior) };
        let may_share = |it| self.device.objects.may_share_memory(it, hazard.resource);
        let level = match (accesses(&hazard.at), earlier) {
            (Some(later), Some(earlier)) => hazard_certainty_between(hazard, &later, &earlier, may_share),
            // What is no action of a shader is certain.
            _ => HazardCertainty::Certain,
        };
        let is_unsure = is_forgotten && self.device.history.was_uncertain(step_of(&hazard.prior));
        if is_unsure { level.max(HazardCertainty::Likely) } else { level }
    }

    fn is_beside_render_area(&self, place: &ProgramLocation, hazard: &Hazard) -> bool {
        let Some((recorded, index)) = self.locate(place).and_then(|it| it.recorded) else { return false };
        let passes = &self.device.objects.passes;
        is_beside_render_area(|it| recorded.other(it), index as usize, |id| passes.get(&id).map(|it| &it.1), hazard)
    }

    fn place_text(&self, history_location: &HistoryLocation<'_>, place: &ProgramLocation) -> String {
        let step = step_text(history_location.history_step, &self.device.objects, self.object_names);
        let Some((recorded, index)) = history_location.recorded else { return step };
        let recorded = recorded_text(recorded, index, self.object_names);
        let labels = history_location.history_step.labels_at(place);
        let call = history_location.command_call();
        let function =
            call.map_or_else(|| function(history_location).to_owned(), |it| executed_function_text(it, &labels));
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

/// An earlier access of which it is only known that it was made.
fn certain_prior(hazard: &Hazard) -> Access {
    let access = if prior_writes(hazard.kind) { AccessFlags2::TRANSFER_WRITE } else { AccessFlags2::TRANSFER_READ };
    Access::new(hazard.resource, hazard.region.clone(), PipelineStageFlags2::COPY.0, access.0)
}

/// Says that it is known what the device did.
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

/// What two parts of a resource are in. How a hazard is split into parts depends on what was used before.
pub(crate) fn region_around(one: Region, other: Region) -> Region {
    fn around<T: Ord>(one: Range<T>, other: Range<T>) -> Range<T> {
        one.start.min(other.start)..one.end.max(other.end)
    }
    match (one, other) {
        (Region::Buffer(one), Region::Buffer(other)) => Region::Buffer(around(one, other)),
        (Region::Image(one), Region::Image(other)) => Region::Image(ImageRegion {
            aspects: one.aspects | other.aspects,
            mips: around(one.mips, other.mips),
            layers: around(one.layers, other.layers),
            area: one.area.zip(other.area).map(|(one, other)| area_around(one, other)),
            components: Components(one.components.0 | other.components.0),
        }),
        (one, _) => one,
    }
}

fn area_around(one: Area, other: Area) -> Area {
    let offset: [u32; 3] = std::array::from_fn(|it| one.offset[it].min(other.offset[it]));
    let end = |area: &Area, it: usize| area.offset[it].saturating_add(area.extent[it]);
    let extent = std::array::from_fn(|it| end(&one, it).max(end(&other, it)) - offset[it]);
    Area { offset, extent }
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
