//! What the follower says of each operation: whether it covers, and if not, why.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{ProgramLocation, SyncScope};

use super::element::{Element, From, Half};
use super::follow::{Follower, Held, Part, View, Want};
use super::known::Known;
use super::timeline::{Happens, Moment, semaphore_scope};
use super::words::{access_names, stage_names};
use super::{BatchPart, Gap, Names, Operation, OperationKind, Role, Site, Verdict};
use lavascope_engine::scope;
use lavascope_engine::usage::{PRESENT, StageSet, SYNC_TABLES, TRANSITION_WRITE, UsageIndex, access_members};

impl Follower<'_> {
    /// Keeps what a dependency did; not of those before the access, unless they came too early.
    pub(super) fn note(&mut self, moment: &Moment, element: &Element, view: &View, held: Held, part: Part) {
        let is_gate = part == Part::Gate;
        if self.want == Want::Verdict {
            return;
        }
        let mut missing = self.missing(element, is_gate);
        if self.now <= self.pair.prior.0 {
            self.note_misplaced(moment, element, missing, Gap::BeforeAccess);
            return;
        }
        let is_held = held.is_held || self.is_for_later_name(element, held) || is_gate && held.is_by_alias;
        let mut gaps = if is_held { Vec::new() } else { self.source_gaps(element, view, held, &mut missing) };
        let is_other_subpass = self.is_in_other_subpass();
        let has_target = is_gate
            || self.target.is_in(self.prior.is_write(), element.scope.dst, element.scope.dst_usages)
                && moment.queue == self.at_queue;
        if !has_target {
            gaps.extend(self.destination_gaps(element, &mut missing));
            if self.at_queue == self.timeline.host() {
                // What leads to the host does so once the host waits.
                gaps.extend(gaps.is_empty().then_some(Gap::NeverWaited));
            } else if moment.queue != self.at_queue {
                gaps.push(Gap::OtherQueue);
            }
        }
        if !is_gate && self.at.role == Role::Transition && moment.place == self.timeline.moments[self.pair.at.0].place {
            gaps.push(Gap::SameCommand);
        }
        if is_other_subpass {
            gaps.push(Gap::OtherSubpass);
        }
        gaps.dedup();
        let verdict = match (is_held || held.is_chained, gaps.is_empty()) {
            (true, true) => Verdict::Covers,
            (true, false) => Verdict::Carries,
            (false, _) => Verdict::Misses,
        };
        self.keep(moment, element, verdict, gaps, missing);
    }

    fn keep(&mut self, moment: &Moment, element: &Element, verdict: Verdict, gaps: Vec<Gap>, missing: SyncScope) {
        self.operations.push(Operation {
            place: moment.place.clone(),
            lane: self.timeline.lane(moment.queue),
            kind: element.kind,
            site: element.site,
            scope: element.given,
            about: element.about.as_ref().map(|it| (it.resource, it.region.clone())),
            verdict,
            gaps,
            missing,
        });
    }

    /// An operation that would have covered, had it been elsewhere; only in the command buffers of the two accesses.
    fn note_misplaced(&mut self, moment: &Moment, element: &Element, missing: SyncScope, gap: Gap) {
        let near = match gap {
            Gap::AfterAccess => &self.timeline.moments[self.pair.at.0],
            _ => &self.timeline.moments[self.pair.prior.0],
        };
        let is_near = same_execution(&moment.place, &near.place) && element.from == From::Here;
        let is_by_name = !self.prior.is_write() || self.is_through_earlier(element) && self.is_through_later(element);
        let has_both = missing == SyncScope::default() && is_by_name && self.is_about(element);
        if is_near && has_both && !element.is_transition {
            self.keep(moment, element, Verdict::Misses, vec![gap], missing);
        }
    }

    /// Why the first scope of a dependency does not have the access.
    fn source_gaps(&self, element: &Element, view: &View, held: Held, missing: &mut SyncScope) -> Vec<Gap> {
        if element.half == Some(Half::Acquire) {
            (missing.src_stages, missing.src_access) = (0, 0);
            return vec![Gap::Acquire];
        }
        if !self.is_direct(view) && !self.has_chain(view) {
            let gap = match element.from {
                From::Unset => Gap::NotSet,
                _ if view.queue != self.prior_queue => Gap::OtherQueue,
                From::Set(_) => Gap::SetBeforeAccess,
                From::Subpass(_) | From::Here | From::Outside => Gap::OtherSubpass,
            };
            return vec![gap];
        }
        if held.is_by_alias && element.about.is_some() && self.is_through_later(element) {
            // What was written by another name got here, and would be visible by this one.
            (missing.src_stages, missing.src_access) = (0, 0);
            return vec![Gap::OtherRange];
        }
        let mut gaps = Vec::new();
        gaps.extend((missing.src_stages != 0).then_some(Gap::SourceStage));
        if let Some(gap) = self.earlier_name_gap(element) {
            missing.src_access = 0;
            gaps.push(gap);
            return gaps;
        }
        gaps.extend((missing.src_access != 0).then_some(Gap::SourceAccess));
        if self.prior.is_write() && !self.is_about(element) {
            let is_same = element.about.as_ref().is_some_and(|it| it.resource == self.prior.resource);
            gaps.push(if is_same { Gap::OtherRange } else { Gap::OtherResource });
        }
        if gaps.is_empty() {
            // The masks would do, but the access itself is out of reach and its chain leads elsewhere.
            gaps.push(if view.queue == self.prior_queue { Gap::OtherSubpass } else { Gap::SourceStage });
        }
        gaps
    }

    /// Why the second scope of a dependency does not have the later access.
    fn destination_gaps(&self, element: &Element, missing: &mut SyncScope) -> Vec<Gap> {
        if element.half == Some(Half::Release) {
            (missing.dst_stages, missing.dst_access) = (0, 0);
            return vec![Gap::Release];
        }
        let name = self.later_name_gap(element);
        if name.is_some() {
            missing.dst_access = 0;
        }
        let stage = (missing.dst_stages != 0).then_some(Gap::DestinationStage);
        let access = (missing.dst_access != 0).then_some(Gap::DestinationAccess);
        stage.into_iter().chain(access).chain(name).collect()
    }

    fn has_chain(&self, view: &View) -> bool {
        let chain = if self.prior.is_write() { view.marks.available } else { view.marks.happened };
        !chain.is_empty()
    }

    fn is_in_other_subpass(&self) -> bool {
        self.subpass().is_some_and(|it| {
            let is_begin = matches!(self.timeline.moments[self.now].what, Happens::PassEnds(_));
            !is_begin && self.at.instance.zip(self.at.subpass) != Some(it)
        })
    }

    /// The bits with which a dependency would have both accesses in its scopes.
    fn missing(&self, element: &Element, is_gate: bool) -> SyncScope {
        let (given, flags) = (element.given, self.flags(self.prior_queue));
        let is_memory = self.prior.is_write();
        let source = Side { stages: given.src_stages, access: given.src_access, reach: element.scope.src };
        let destination = Side { stages: given.dst_stages, access: given.dst_access, reach: element.scope.dst };
        let (src_stages, src_access) = source.missing(self.prior.usage, is_memory, flags);
        let (dst_stages, dst_access) = if is_gate {
            (0, 0)
        } else if self.at.role == Role::Transition {
            let is_reached = self.target.stages.0 & element.scope.dst.0 != 0;
            (if is_reached { 0 } else { self.stage_of_target() }, 0)
        } else {
            destination.missing(self.at.usage, is_memory, self.flags(self.at_queue))
        };
        SyncScope { src_stages, src_access, dst_stages, dst_access }
    }

    /// The stage that must come after the earlier access: of a layout transition, the first that it comes after.
    fn stage_of_target(&self) -> u64 {
        let wanted = self.at.gates.iter().fold(0, |all, it| all | it.given.src_stages);
        match self.at.role {
            Role::Transition if wanted != 0 => wanted & wanted.wrapping_neg(),
            _ => source_bit(self.at.usage),
        }
    }

    /// The barrier that the followed layout transition is part of: only its second scope can be at fault.
    pub(super) fn own_gates(&mut self) {
        if self.want == Want::Verdict {
            return;
        }
        let moment = &self.timeline.moments[self.pair.prior.0];
        for gate in self.merged(&self.prior.second) {
            let Some(usages) = self.seen_behind_transition(&gate) else { continue };
            let mut missing = SyncScope { src_stages: 0, src_access: 0, ..self.missing(&gate, false) };
            let has_target = self.target.is_in(true, gate.scope.dst, usages);
            let mut gaps = Vec::new();
            if !has_target {
                gaps.extend(self.destination_gaps(&gate, &mut missing));
            }
            if moment.queue != self.at_queue {
                gaps.push(Gap::OtherQueue);
            }
            let verdict = if gaps.is_empty() { Verdict::Covers } else { Verdict::Carries };
            self.keep(moment, &gate, verdict, gaps, missing);
        }
    }

    pub(super) fn note_wait(
        &mut self,
        moment: &Moment,
        signal: usize,
        known: Known,
        (stages, dst): (u64, StageSet),
        part: BatchPart,
    ) {
        if self.want == Want::Verdict || self.now <= self.pair.prior.0 {
            return;
        }
        let from = &self.timeline.moments[signal];
        let (given, own) = match from.what {
            Happens::Signals { stages, part } => (stages, Some(part)),
            _ => (PipelineStageFlags2::ALL_COMMANDS.0, None),
        };
        let is_held = known.has(self.prior.is_write());
        let mut missing = SyncScope::default();
        let mut gaps = Vec::new();
        if !is_held {
            if from.queue != self.prior_queue {
                gaps.push(Gap::SignaledElsewhere);
            } else if signal < self.pair.prior.0 {
                gaps.push(Gap::SignaledBeforeAccess);
            } else {
                gaps.push(Gap::SourceStage);
                missing.src_stages = source_bit(self.prior.usage);
            }
        }
        if moment.queue != self.at_queue {
            gaps.push(Gap::WaitedElsewhere);
        } else if self.target.stages.0 & dst.0 == 0 {
            gaps.push(Gap::WaitStages);
            missing.dst_stages = self.stage_of_target();
        }
        let site = Site::Semaphore { signal: own, wait: Some(part) };
        let scope = semaphore_scope(given, stages);
        self.keep_other(moment, OperationKind::Semaphore, site, scope, (is_held, gaps, missing));
    }

    pub(super) fn note_submit(&mut self, moment: &Moment, known: Known) {
        let is_own = self.at_submitted.is_some() && self.at_submitted == moment.submitted;
        let is_batch = same_batch(&moment.place, &self.timeline.moments[self.pair.at.0].place);
        if self.want == Want::Operations && self.prior_queue == self.timeline.host() && is_own && is_batch {
            let is_held = known.has(self.prior.is_write());
            let gaps = if is_held { Vec::new() } else { vec![Gap::BeforeAccess] };
            let site = Site::Step(moment.submitted.map_or(0, |it| step_of(&self.timeline.moments[it].place)));
            let scope = semaphore_scope(PipelineStageFlags2::HOST.0, PipelineStageFlags2::ALL_COMMANDS.0);
            self.keep_other(moment, OperationKind::Submit, site, scope, (is_held, gaps, SyncScope::default()));
        }
    }

    pub(super) fn note_host(&mut self, moment: &Moment, from: &[usize], learned: Known) {
        if self.want == Want::Verdict || self.now <= self.pair.prior.0 {
            return;
        }
        let is_held = learned.has(self.prior.is_write());
        let mut gaps = Vec::new();
        let mut missing = SyncScope::default();
        if !is_held {
            let is_own = from.iter().any(|it| self.timeline.moments[*it].queue == self.prior_queue);
            gaps.push(if is_own { Gap::SignaledBeforeAccess } else { Gap::SignaledElsewhere });
        } else if self.at_queue == self.timeline.host() {
            if self.prior.is_write() && !learned.host.has(self.at.usage) {
                gaps.push(Gap::NotVisibleToHost);
                missing.dst_stages = PipelineStageFlags2::HOST.0;
                missing.dst_access = SYNC_TABLES.usages[usize::from(self.at.usage.0)].access;
            }
        } else if self.at_submitted.is_none_or(|it| it < self.now) {
            gaps.push(Gap::SubmittedBefore);
        }
        let site = Site::Step(step_of(&moment.place));
        let scope = semaphore_scope(PipelineStageFlags2::ALL_COMMANDS.0, PipelineStageFlags2::ALL_COMMANDS.0);
        self.keep_other(moment, OperationKind::HostWait, site, scope, (is_held, gaps, missing));
    }

    fn keep_other(
        &mut self,
        moment: &Moment,
        kind: OperationKind,
        site: Site,
        scope: SyncScope,
        (is_held, gaps, missing): (bool, Vec<Gap>, SyncScope),
    ) {
        let verdict = match (is_held, gaps.is_empty()) {
            (true, true) => Verdict::Covers,
            (true, false) => Verdict::Carries,
            (false, _) => Verdict::Misses,
        };
        let (place, lane) = (moment.place.clone(), self.timeline.lane(moment.queue));
        self.operations.push(Operation { place, lane, kind, site, scope, about: None, verdict, gaps, missing });
    }

    /// Signals and events behind the access for which nobody waited before the later one, and barriers that came too
    /// late.
    pub(super) fn note_unused(&mut self) {
        if self.want == Want::Verdict {
            return;
        }
        for index in self.pair.prior.0 + 1..self.pair.at.0 {
            let moment = &self.timeline.moments[index];
            if self.waited.contains(&index) || moment.queue != self.prior_queue || self.is_signal_of_at(index) {
                continue;
            }
            let (kind, site, given) = match &moment.what {
                Happens::Signals { stages, part } => {
                    (OperationKind::Semaphore, Site::Semaphore { signal: Some(*part), wait: None }, *stages)
                }
                Happens::SetsEvent { given, recorded: Some((buffer, command)), .. } => {
                    (OperationKind::Event, Site::SetEvent { buffer: *buffer, command: *command }, *given)
                }
                _ => continue,
            };
            let mut gaps = vec![Gap::NeverWaited];
            let mut missing = SyncScope::default();
            let stages = scope::signal_stages(given, self.flags(moment.queue));
            if !stages.has(SYNC_TABLES.stage(self.prior.usage)) {
                gaps.insert(0, Gap::SourceStage);
                missing.src_stages = source_bit(self.prior.usage);
            }
            self.keep_other(moment, kind, site, semaphore_scope(given, 0), (false, gaps, missing));
        }
        self.note_presents();
        for index in self.pair.at.0 + 1..self.timeline.moments.len() {
            let moment = &self.timeline.moments[index];
            let Happens::Depends(elements) = &moment.what else { continue };
            for element in elements {
                let missing = self.missing(element, false);
                self.note_misplaced(moment, element, missing, Gap::AfterAccess);
            }
        }
    }

    fn is_signal_of_at(&self, index: usize) -> bool {
        self.at.signals.contains(&index)
    }

    /// The semaphores that a present waits for.
    fn note_presents(&mut self) {
        for signal in self.at.signals.clone() {
            let Happens::Signals { stages, part } = self.timeline.moments[signal].what else { continue };
            let is_held = self.known.get(&signal).is_some_and(|it| it.has(self.prior.is_write()));
            let mut gaps = Vec::new();
            let mut missing = SyncScope::default();
            if !is_held && self.timeline.moments[signal].queue != self.prior_queue {
                gaps.push(Gap::SignaledElsewhere);
            } else if !is_held && signal < self.pair.prior.0 {
                gaps.push(Gap::SignaledBeforeAccess);
            } else if !is_held {
                gaps.push(Gap::SourceStage);
                missing.src_stages = source_bit(self.prior.usage);
            }
            let site = Site::Semaphore { signal: Some(part), wait: None };
            let moment = &self.timeline.moments[self.pair.at.0];
            let scope = semaphore_scope(stages, PipelineStageFlags2::ALL_COMMANDS.0);
            self.keep_other(moment, OperationKind::Semaphore, site, scope, (is_held, gaps, missing));
        }
    }
}

/// One side of a dependency.
struct Side {
    stages: u64,
    access: u64,
    /// The stages that it reaches, expanded.
    reach: StageSet,
}

impl Side {
    /// The stage and the access that must be added for a usage to be in.
    fn missing(&self, usage: UsageIndex, is_memory: bool, flags: u32) -> (u64, u64) {
        const EVERYTHING: u64 = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;
        let stage = SYNC_TABLES.stage(usage);
        let bit = source_bit(usage);
        if !is_memory || usage == TRANSITION_WRITE || usage == PRESENT {
            return (if self.reach.has(stage) { 0 } else { bit }, 0);
        }
        let access = SYNC_TABLES.usages[usize::from(usage.0)].access;
        let has_stage = scope::access_scope(self.stages, EVERYTHING, flags).has(usage);
        let has_access = access_members(self.access) & access != 0;
        (if has_stage { 0 } else { bit }, if has_access { 0 } else { access })
    }
}

/// The stage of a usage; layout transitions are only in all commands together.
pub(super) fn source_bit(usage: UsageIndex) -> u64 {
    match SYNC_TABLES.stages[usize::from(SYNC_TABLES.stage(usage).0)].bit {
        0 => PipelineStageFlags2::ALL_COMMANDS.0,
        bit => bit,
    }
}

fn same_execution(left: &ProgramLocation, right: &ProgramLocation) -> bool {
    let (ProgramLocation::Command(left), ProgramLocation::Command(right)) = (left, right) else { return false };
    (left.step, left.batch, left.primary) == (right.step, right.batch, right.primary)
}

fn same_batch(left: &ProgramLocation, right: &ProgramLocation) -> bool {
    let (ProgramLocation::Command(left), ProgramLocation::Command(right)) = (left, right) else { return false };
    (left.step, left.batch) == (right.step, right.batch)
}

fn step_of(place: &ProgramLocation) -> u32 {
    match place {
        ProgramLocation::Step(step) => *step,
        ProgramLocation::Command(at) => at.step,
    }
}

/// What an operation is, and where.
pub(super) fn operation_name(it: &Operation, names: &dyn Names) -> String {
    match (it.kind, it.site) {
        (OperationKind::Barrier, _) => format!("barrier at {}", names.place(&it.place)),
        (OperationKind::Event, Site::SetEvent { .. }) => format!("event set by {}", names.place(&it.place)),
        (OperationKind::Event, _) => format!("event wait at {}", names.place(&it.place)),
        (OperationKind::SubpassDependency, Site::Subpass { pass, dependency: Some(index) }) => {
            format!("subpass dependency {index} of {}", names.render_pass(pass))
        }
        (OperationKind::SubpassDependency, Site::Subpass { pass, dependency: None }) => {
            format!("implicit subpass dependency of {}", names.render_pass(pass))
        }
        (OperationKind::SubpassDependency, _) => "subpass dependency".to_owned(),
        (OperationKind::Semaphore, _) if it.gaps.contains(&Gap::NeverWaited) => {
            format!("semaphore signal of {}", names.place(&it.place))
        }
        (OperationKind::Semaphore, _) => format!("semaphore wait of {}", names.place(&it.place)),
        (OperationKind::HostWait, _) => format!("host wait at {}", names.place(&it.place)),
        (OperationKind::Submit, _) => format!("submission of {}", names.place(&it.place)),
    }
}

/// An operation in one line: what it is, what its masks are, and its verdict.
pub fn describe_operation(it: &Operation, names: &dyn Names) -> String {
    let what = operation_name(it, names);
    let masks = match it.kind {
        OperationKind::HostWait | OperationKind::Submit => String::new(),
        _ => format!(" [{}]", scope_text(it)),
    };
    let about = it.about.as_ref().map(|(resource, region)| format!(" on {}", names.part(*resource, region)));
    let about = about.unwrap_or_default();
    format!("{what}{masks}{about}: {}", verdict_text(it, names))
}

fn scope_text(it: &Operation) -> String {
    let scope = &it.scope;
    match (it.kind, it.site) {
        (OperationKind::Semaphore, _) if it.gaps.contains(&Gap::NeverWaited) => return stage_names(scope.src_stages),
        (_, Site::SetEvent { .. }) => return stage_names(scope.src_stages),
        (OperationKind::Semaphore, _) => {
            return format!("{} => {}", stage_names(scope.src_stages), stage_names(scope.dst_stages));
        }
        _ => {}
    }
    let side = |stages, access| format!("{}({})", stage_names(stages), access_names(access));
    format!("{} => {}", side(scope.src_stages, scope.src_access), side(scope.dst_stages, scope.dst_access))
}

fn verdict_text(it: &Operation, names: &dyn Names) -> String {
    let because: Vec<String> = it.gaps.iter().map(|gap| gap_text(*gap, it, names)).collect();
    let because = because.join("; ");
    match it.verdict {
        Verdict::Covers => "covers".to_owned(),
        Verdict::Carries if it.gaps.contains(&Gap::Release) => format!("has the earlier access, but {because}"),
        Verdict::Carries => {
            let reach = match it.kind {
                OperationKind::HostWait | OperationKind::Submit => "what the host does next".to_owned(),
                _ if it.scope.dst_stages == 0 => "nothing".to_owned(),
                _ => stage_names(it.scope.dst_stages),
            };
            format!("has the earlier access and orders it before {reach}, but {because}")
        }
        Verdict::Misses => format!("does not cover: {because}"),
    }
}

fn gap_text(gap: Gap, it: &Operation, names: &dyn Names) -> String {
    let missing = &it.missing;
    let about = || it.about.as_ref().map_or_else(String::new, |it| names.resource(it.0));
    match gap {
        Gap::NeverWaited if it.kind == OperationKind::Barrier => "the host does not wait for it".to_owned(),
        Gap::SignaledBeforeAccess | Gap::SignaledElsewhere if it.kind == OperationKind::HostWait => {
            "what it waits for does not come after the earlier access".to_owned()
        }
        Gap::WaitStages if missing.dst_stages == PipelineStageFlags2::ALL_COMMANDS.0 => {
            "the layout transition does not wait for it".to_owned()
        }
        Gap::SourceStage if missing.src_stages & !PipelineStageFlags2::ALL_COMMANDS.0 != 0 => {
            format!("its source stages lack {}", stage_names(missing.src_stages))
        }
        Gap::SourceStage => "its source stages do not continue the chain from the earlier access".to_owned(),
        Gap::SourceAccess => format!("its source accesses lack {}", access_names(missing.src_access)),
        Gap::DestinationStage => format!("its destination stages lack {}", stage_names(missing.dst_stages)),
        Gap::DestinationAccess => format!("its destination accesses lack {}", access_names(missing.dst_access)),
        Gap::OtherRange => "it is about another range of the resource".to_owned(),
        Gap::OtherResource => "it is about another resource".to_owned(),
        Gap::EarlierName(other) => {
            let other = names.resource(other);
            format!("it is about {}; the earlier access went through {other}, which has the same memory", about())
        }
        Gap::LaterName(other) => {
            let other = names.resource(other);
            format!("it is about {}; the later access goes through {other}, which has the same memory", about())
        }
        Gap::OtherQueue => "it is on another queue".to_owned(),
        Gap::BeforeAccess => "it was executed before the earlier access".to_owned(),
        Gap::AfterAccess => "it was executed after the later access".to_owned(),
        Gap::SetBeforeAccess => "the event was set before the earlier access".to_owned(),
        Gap::NotSet => "the event was not set when it was waited for".to_owned(),
        Gap::SameCommand => "it is part of the same command, whose dependencies do not chain".to_owned(),
        Gap::NotVisibleToHost => {
            "writes become visible to the host only by a dependency to VK_PIPELINE_STAGE_2_HOST_BIT".to_owned()
        }
        Gap::SignaledElsewhere => "its signal does not come after the earlier access".to_owned(),
        Gap::WaitedElsewhere => "another queue waits for it".to_owned(),
        Gap::SignaledBeforeAccess => "it was signaled before the earlier access".to_owned(),
        Gap::WaitStages => format!("{} does not wait for it", stage_names(missing.dst_stages)),
        Gap::NeverWaited => "nothing waits for it before the later access".to_owned(),
        Gap::OtherSubpass => "its scopes are limited to another subpass".to_owned(),
        Gap::Release => {
            format!("it gives {} to another queue family: its second scope has no accesses of this queue", about())
        }
        Gap::Acquire => {
            format!(
                "it takes {} over from another queue family: its first scope has no accesses of this queue",
                about()
            )
        }
        Gap::SubmittedBefore => "the later access was submitted before it".to_owned(),
    }
}
