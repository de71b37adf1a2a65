//! Follows one access through the program: what it happens before, to what it is visible, and what each operation on
//! the way did for it.

use std::collections::{HashMap, HashSet};

use lavascope_sync_ir::ResourceId;

use super::element::{Element, From};
use super::known::{Known, Marks, only, only_usage};
use super::pair::{Pair, used};
use super::timeline::{Completion, Happens, Moment, Resumption, Timeline, Used};
use super::{Operation, Role};
use lavascope_engine::order;
use lavascope_engine::scope;
use lavascope_engine::usage::{StageSet, SYNC_TABLES, TRANSITION, TRANSITION_WRITE, UsageSet};

/// What a dependency is to the two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Between,
    /// The later access is a layout transition, and this is what it comes after.
    Gate,
}

/// What is asked of the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Verdict,
    Operations,
}

pub(super) struct Followed {
    pub(super) operations: Vec<Operation>,
    pub(super) is_ordered: bool,
    pub(super) is_inside_one_instance: bool,
    pub(super) is_apart: bool,
    pub(super) is_covered: bool,
}

/// Follows the earlier access of a pair up to the later one.
pub(super) fn follow(timeline: &Timeline<'_>, pair: &Pair, want: Want) -> Followed {
    let (prior_moment, prior) = used(timeline, pair.prior.0, pair.prior.1);
    let (at_moment, at) = used(timeline, pair.at.0, pair.at.1);
    let mut follower = Follower {
        timeline,
        pair,
        prior,
        prior_queue: prior_moment.queue,
        at,
        at_queue: at_moment.queue,
        at_submitted: at_moment.submitted,
        target: Target::new(at),
        marks: vec![Marks::default(); usize::from(timeline.presentation()) + 1],
        passed: vec![Marks::default(); usize::from(timeline.presentation()) + 1],
        sets: HashMap::new(),
        known: HashMap::new(),
        signaled: vec![Known::default(); timeline.program.queues.len()],
        received: vec![Vec::new(); timeline.program.queues.len()],
        host: Known::default(),
        submits: HashMap::new(),
        presented: HashMap::new(),
        pass: None,
        suspended: vec![Marks::default(); timeline.program.queues.len()],
        is_gated: false,
        before_barrier: None,
        is_forgotten: false,
        now: 0,
        waited: HashSet::new(),
        want,
        operations: Vec::new(),
    };
    for now in 0..pair.at.0 {
        follower.now = now;
        follower.moment(&timeline.moments[now]);
    }
    follower.finish()
}

/// What the later access needs to be in.
pub(super) struct Target {
    pub(super) stages: StageSet,
    /// None: being available is enough.
    pub(super) usages: Option<UsageSet>,
}

impl Target {
    fn new(at: &Used) -> Target {
        if at.role == Role::Transition {
            let stages = at.gates.iter().fold(StageSet::default(), |all, it| all.union(it.scope.src));
            return Target { stages, usages: None };
        }
        Target { stages: only(SYNC_TABLES.stage(at.usage)), usages: Some(only_usage(at.usage)) }
    }

    pub(super) fn is_in(&self, is_write: bool, stages: StageSet, usages: UsageSet) -> bool {
        match self.usages.filter(|_| is_write) {
            Some(own) => own.iter().all(|it| usages.has(it)),
            None => self.stages.0 & stages.0 != 0,
        }
    }
}

pub(super) struct Follower<'t> {
    pub(super) timeline: &'t Timeline<'t>,
    pub(super) pair: &'t Pair,
    pub(super) prior: &'t Used,
    pub(super) prior_queue: u8,
    pub(super) at: &'t Used,
    pub(super) at_queue: u8,
    pub(super) at_submitted: Option<usize>,
    pub(super) target: Target,
    /// By queue.
    pub(super) marks: Vec<Marks>,
    /// By queue: what was known in subpasses that ended. It is not before what comes now, but a first scope that has
    /// those subpasses has it.
    passed: Vec<Marks>,
    /// By the moment at which an event was set.
    sets: HashMap<usize, Marks>,
    /// By the moment of a signal, of the end of a batch, and so on.
    pub(super) known: HashMap<usize, Known>,
    /// What all signals of a queue so far have handed on.
    signaled: Vec<Known>,
    /// By queue: to which accesses of the host it is visible, as waits brought it to some stages.
    received: Vec<Vec<(StageSet, UsageSet)>>,
    pub(super) host: Known,
    submits: HashMap<usize, Known>,
    /// What the presentation of an image came after.
    presented: HashMap<ResourceId, Known>,
    pass: Option<OpenPass>,
    /// By queue: what was known inside rendering when it ended, perhaps to be resumed.
    suspended: Vec<Marks>,
    /// Whether the first scope of the later layout transition has the earlier access.
    is_gated: bool,
    /// What was known before the barrier, or the end of the render pass, that the later layout transition is part of.
    before_barrier: Option<Marks>,
    /// Whether the memory was given back: nothing that comes after it is compared with the access.
    is_forgotten: bool,
    pub(super) now: usize,
    pub(super) waited: HashSet<usize>,
    pub(super) want: Want,
    pub(super) operations: Vec<Operation>,
}

struct OpenPass {
    begin: usize,
    outside: Marks,
    /// The same for first scopes.
    scope: Marks,
    subpass: Option<usize>,
    ended: Vec<EndedSubpass>,
}

#[derive(Clone, Copy)]
struct EndedSubpass {
    marks: Marks,
    begin: usize,
    end: usize,
}

/// Where a first scope looks.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) marks: Marks,
    pub(super) queue: u8,
    /// It has moments after this one, if there is one,
    pub(super) after: Option<usize>,
    /// and before this one.
    pub(super) before: usize,
}

/// How a first scope has the followed access.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    /// As the masks ask for, itself or by a chain, and in the range.
    pub(super) is_held: bool,
    /// By a chain only, and the range is another one.
    pub(super) is_chained: bool,
    /// Through another resource in the same memory.
    pub(super) is_by_alias: bool,
}

impl<'t> Follower<'t> {
    fn moment(&mut self, moment: &'t Moment) {
        if self.now == self.pair.prior.0 {
            self.begin(moment.queue);
        }
        let queue = usize::from(moment.queue);
        match &moment.what {
            Happens::Uses(uses) => self.present(moment, uses),
            Happens::Depends(elements) => self.depend(moment, elements),
            Happens::SetsEvent { .. } => drop(self.sets.insert(self.now, self.marks_with_passed(queue))),
            Happens::PassBegins => {
                let outside = self.marks[queue];
                let scope = self.marks_with_passed(queue);
                self.pass = Some(OpenPass { begin: self.now, outside, scope, subpass: None, ended: Vec::new() });
            }
            Happens::RenderingBegins { instance, resumption } => {
                let (outside, scope) = (self.marks[queue], self.marks_with_passed(queue));
                let ended = Vec::new();
                self.pass = Some(OpenPass { begin: *instance, outside, scope, subpass: Some(*instance), ended });
                if *resumption == Resumption::Resumed {
                    self.marks[queue] = self.suspended.get(queue).copied().unwrap_or_default();
                }
            }
            Happens::RenderingEnds => {
                if let Some(slot) = self.suspended.get_mut(queue) {
                    *slot = self.marks[queue];
                }
                self.end_subpass(queue);
                self.end_pass(moment, &[]);
            }
            Happens::SubpassBegins(elements) => self.begin_subpass(moment, elements),
            Happens::SubpassEnds => self.end_subpass(queue),
            Happens::PassEnds(elements) => self.end_pass(moment, elements),
            Happens::Submits => {
                self.submits.insert(self.now, self.host);
            }
            Happens::BatchBegins => self.begin_batch(moment),
            Happens::Waits { signal, stages, part } => self.wait(moment, *signal, *stages, *part),
            Happens::Signals { stages, .. } => {
                let stages = scope::signal_stages(*stages, self.flags(moment.queue));
                self.signal(moment, stages);
            }
            Happens::Completes(completion) => {
                let mut known = self.signal_of(queue, scope::COMMON_SETS.stages);
                known.join(self.signaled[queue]);
                self.known.insert(self.now, known);
                if *completion == Completion::Fence {
                    self.signaled[queue] = known;
                }
            }
            Happens::HostLearns(from) => self.host_learns(moment, from),
            Happens::HostSignals => drop(self.known.insert(self.now, self.host)),
            Happens::Binds { signals, is_signaling } => self.bind_sparse(moment, signals, *is_signaling),
            Happens::Destroys(resource) => {
                let piece = &self.pair.piece;
                let gone = self.timeline.addresses(self.now).unshared_ranges(*resource);
                let has_it = gone.iter().any(|it| it.start <= piece.start && piece.end <= it.end);
                self.is_forgotten |= has_it && self.pair.prior.0 < self.now;
            }
            Happens::Acquires(image) => {
                let is_over =
                    self.prior_queue == moment.queue && self.pair.prior.0 < self.now && self.prior.resource == *image;
                let mut known = Known { happened: is_over, available: is_over, ..Known::default() };
                known.join(self.presented.get(image).copied().unwrap_or_default());
                self.known.insert(self.now, known);
            }
        }
    }

    /// The followed access happens.
    fn begin(&mut self, queue: u8) {
        if self.prior.role == Role::Transition {
            let second = self.merged(&self.prior.second);
            for gate in &second {
                let Some(usages) = self.seen_behind_transition(gate) else { continue };
                let marks = &mut self.marks[usize::from(queue)];
                marks.available = marks.available.union(gate.scope.dst);
                marks.visible = marks.visible.union(usages);
            }
            self.own_gates();
        }
        if queue == self.timeline.host() {
            self.host.join(Known { happened: true, available: true, ..Known::default() });
            let host = self.host;
            self.marks[usize::from(queue)].wait(host, scope::COMMON_SETS.host);
        }
    }

    /// Who acquires an image comes after what its presentation came after.
    fn present(&mut self, moment: &Moment, uses: &[Used]) {
        for it in uses.iter().filter(|it| it.role == Role::Present) {
            let known = self.known_to_present(it, moment.submitted);
            self.presented.entry(it.resource).or_default().join(known);
        }
    }

    fn known_to_present(&self, it: &Used, submitted: Option<usize>) -> Known {
        let host = submitted.and_then(|it| self.submits.get(&it));
        let mut known = Known::default();
        it.signals.iter().filter_map(|it| self.known.get(it)).chain(host).for_each(|it| known.join(*it));
        known
    }

    pub(super) fn flags(&self, queue: u8) -> u32 {
        self.timeline.program.queues.get(usize::from(queue)).map_or(0, |it| it.flags)
    }

    pub(super) fn view(&self, queue: u8, element: &Element) -> Option<View> {
        let pass = self.pass.as_ref();
        Some(match element.from {
            From::Here => {
                let after = pass.and_then(|it| it.subpass);
                let own = usize::from(queue);
                let marks = if after.is_some() { self.marks[own] } else { self.marks_with_passed(own) };
                View { marks, queue, after, before: self.now }
            }
            From::Set(moment) => {
                let set_on = self.timeline.moments[moment].queue;
                if set_on != queue && set_on != self.timeline.host() {
                    // Between queues events order nothing.
                    return Some(View { marks: Marks::default(), queue: set_on, after: None, before: 0 });
                }
                let queue = set_on;
                View { marks: *self.sets.get(&moment)?, queue, after: None, before: moment }
            }
            From::Unset => View { marks: Marks::default(), queue, after: None, before: 0 },
            From::Subpass(index) => {
                let ended = pass?.ended.get(index as usize)?;
                View { marks: ended.marks, queue, after: Some(ended.begin), before: ended.end }
            }
            From::Outside => View { marks: pass?.scope, queue, after: None, before: pass?.begin },
        })
    }

    /// Whether the followed access itself lies where a first scope looks.
    pub(super) fn is_direct(&self, view: &View) -> bool {
        let prior = self.pair.prior.0;
        view.queue == self.prior_queue && prior < view.before && view.after.is_none_or(|it| prior > it)
    }

    fn marks_with_passed(&self, queue: usize) -> Marks {
        let (own, passed) = (self.marks[queue], self.passed[queue]);
        let happened = own.happened.union(passed.happened);
        Marks { happened, available: own.available.union(passed.available), ..own }
    }

    pub(super) fn held(&self, element: &Element, view: &View) -> Held {
        let stage = SYNC_TABLES.stage(self.prior.usage);
        let is_direct = self.is_direct(view) && element.scope.src.has(stage);
        if !self.prior.is_write() {
            let is_chained = view.marks.happened.0 & element.scope.src.0 != 0;
            return Held { is_held: is_direct || is_chained, is_chained, is_by_alias: false };
        }
        // What a layout transition wrote is available by itself.
        let is_chained =
            view.marks.available.0 & element.scope.src.0 != 0 || is_direct && self.prior.usage == TRANSITION_WRITE;
        let is_everywhere = is_direct && element.scope.src_global_usages.has(self.prior.usage);
        let is_direct = is_direct && element.scope.src_usages.has(self.prior.usage);
        let is_held = self.is_about(element) && (is_direct || is_chained);
        Held { is_held, is_chained, is_by_alias: self.pair.is_alias && (is_chained || is_everywhere) }
    }

    /// All elements look at what was before the command, and then take effect.
    fn depend(&mut self, moment: &Moment, elements: &[Element]) {
        let elements = self.merged(elements);
        self.before_barrier = Some(self.marks[usize::from(moment.queue)]).filter(|_| self.pair.at.0 == self.now + 1);
        self.look_at_gates(moment);
        let held: Vec<Held> = elements.iter().map(|it| self.look(moment, it)).collect();
        for (element, held) in elements.iter().zip(held) {
            self.take_effect(moment.queue, element, held);
        }
    }

    /// What the first scope of the later layout transition has, which comes next.
    fn look_at_gates(&mut self, moment: &Moment) {
        if self.at.role != Role::Transition || self.pair.at.0 != self.now + 1 {
            return;
        }
        for gate in self.merged(&self.at.gates) {
            let Some(view) = self.view(moment.queue, &gate) else { continue };
            let held = self.held(&gate, &view);
            self.is_gated |= held.is_held || held.is_by_alias;
            self.note(moment, &gate, &view, held, Part::Gate);
        }
    }

    fn is_gate(&self, element: &Element) -> bool {
        let is_same = |it: &Element| it.site == element.site && it.from == element.from;
        self.at.role == Role::Transition && self.pair.at.0 == self.now + 1 && self.at.gates.iter().any(is_same)
    }

    fn look(&mut self, moment: &Moment, element: &Element) -> Held {
        let Some(view) = self.view(moment.queue, element) else { return Held::default() };
        let held = self.held(element, &view);
        if let From::Set(set) = element.from {
            self.waited.insert(set);
        }
        if !self.is_gate(element) {
            self.note(moment, element, &view, held, Part::Between);
        }
        held
    }

    fn take_effect(&mut self, queue: u8, element: &Element, held: Held) {
        let is_by_own_name = self.is_for_later_name(element, held);
        let marks = &mut self.marks[usize::from(queue)];
        if !self.prior.is_write() {
            if held.is_held {
                marks.happened = marks.happened.union(element.scope.dst);
            }
            return;
        }
        if held.is_held || held.is_chained {
            marks.available = marks.available.union(element.scope.dst);
        }
        if is_by_own_name {
            marks.visible = marks.visible.union(element.scope.dst_usages);
        }
        if held.is_held {
            marks.visible = marks.visible.union(element.scope.dst_usages);
        }
    }

    fn begin_subpass(&mut self, moment: &Moment, elements: &[Element]) {
        self.look_at_gates(moment);
        let held: Vec<Held> = elements.iter().map(|it| self.look(moment, it)).collect();
        if let Some(pass) = &mut self.pass {
            self.marks[usize::from(moment.queue)] = pass.outside;
            pass.subpass = Some(self.now);
        }
        for (element, held) in elements.iter().zip(held) {
            self.take_effect(moment.queue, element, held);
        }
    }

    fn end_subpass(&mut self, queue: usize) {
        let marks = self.marks[queue];
        if let Some(pass) = &mut self.pass
            && let Some(begin) = pass.subpass.take()
        {
            pass.ended.push(EndedSubpass { marks, begin, end: self.now });
        }
    }

    fn end_pass(&mut self, moment: &Moment, elements: &[Element]) {
        self.look_at_gates(moment);
        let held: Vec<Held> = elements.iter().map(|it| self.look(moment, it)).collect();
        if let Some(pass) = self.pass.take() {
            self.marks[usize::from(moment.queue)] = pass.outside;
            let passed = &mut self.passed[usize::from(moment.queue)];
            for it in pass.ended {
                passed.happened = passed.happened.union(it.marks.happened);
                passed.available = passed.available.union(it.marks.available);
            }
        }
        // The last layout transitions are no commands behind the render pass: what leads there does not lead to them.
        self.before_barrier = Some(self.marks[usize::from(moment.queue)]).filter(|_| self.pair.at.0 == self.now + 1);
        for (element, held) in elements.iter().zip(held) {
            self.take_effect(moment.queue, element, held);
        }
    }

    fn begin_batch(&mut self, moment: &Moment) {
        let Some(known) = moment.submitted.and_then(|it| self.submits.get(&it)).copied() else { return };
        // What the host knows is visible to the device, not to the host: that takes a barrier.
        let device = scope::COMMON_SETS.device;
        self.marks[usize::from(moment.queue)].wait(known, device);
        self.note_submit(moment, known);
    }

    fn wait(&mut self, moment: &Moment, signal: Option<usize>, stages: u64, part: super::BatchPart) {
        let Some(signal) = signal else { return };
        self.waited.insert(signal);
        let known = self.known.get(&signal).copied().unwrap_or_default();
        let dst = scope::destination_stages(stages, self.flags(moment.queue));
        self.note_wait(moment, signal, known, (stages, dst), part);
        let marks = &mut self.marks[usize::from(moment.queue)];
        marks.wait(known, dst);
        marks.visible = marks.visible.union(known.host);
        self.received[usize::from(moment.queue)].push((dst, known.host));
    }

    /// What a signal after some stages knows: what they did themselves, and what was ordered before them.
    fn signal_of(&self, queue: usize, stages: StageSet) -> Known {
        let mut known = self.marks_with_passed(queue).signal(stages);
        for (_, host) in self.received[queue].iter().filter(|it| it.0.0 & stages.0 != 0) {
            known.host = known.host.union(*host);
        }
        let is_own = queue == usize::from(self.prior_queue) && self.pair.prior.0 < self.now;
        if is_own && stages.has(SYNC_TABLES.stage(self.prior.usage)) {
            (known.happened, known.available) = (true, true);
        }
        known
    }

    fn signal(&mut self, moment: &Moment, stages: StageSet) {
        let queue = usize::from(moment.queue);
        let mut known = self.signal_of(queue, stages);
        self.signaled[queue].join(known);
        known.join(self.signaled[queue]);
        if let Some(submit) = moment.submitted.and_then(|it| self.submits.get(&it)) {
            known.join(submit.on_device());
        }
        self.known.insert(self.now, known);
    }

    fn bind_sparse(&mut self, moment: &Moment, from: &[usize], is_signaling: bool) {
        self.waited.extend(from);
        let mut known = moment.submitted.and_then(|it| self.submits.get(&it)).copied().unwrap_or_default();
        from.iter().filter_map(|it| self.known.get(it)).for_each(|it| known.join(*it));
        let queue = usize::from(moment.queue);
        known.join(self.signaled[queue]);
        if is_signaling {
            self.signaled[queue] = known;
        }
        self.known.insert(self.now, known);
    }

    fn host_learns(&mut self, moment: &Moment, from: &[usize]) {
        self.waited.extend(from);
        let mut learned = Known::default();
        from.iter().filter_map(|it| self.known.get(it)).for_each(|it| learned.join(*it));
        self.note_host(moment, from, learned);
        self.host.join(learned);
        let marks = &mut self.marks[usize::from(self.timeline.host())];
        if learned.happened {
            marks.happened = marks.happened.union(scope::COMMON_SETS.host);
        }
        if learned.available {
            marks.available = marks.available.union(scope::COMMON_SETS.host);
        }
        marks.visible = marks.visible.union(learned.host);
    }

    /// The subpass that is open, as accesses name theirs.
    pub(super) fn subpass(&self) -> Option<(usize, u32)> {
        let pass = self.pass.as_ref()?;
        Some((pass.begin, pass.ended.len() as u32))
    }

    fn finish(mut self) -> Followed {
        self.now = self.pair.at.0;
        self.note_unused();
        let is_inside_one_instance =
            self.at_queue == self.prior_queue && self.at.instance.is_some() && self.at.instance == self.prior.instance;
        let is_ordered = is_inside_one_instance
            && self.at.subpass == self.prior.subpass
            && order::is_ordered((self.prior.usage, self.prior.order), (self.at.usage, self.at.order));
        let is_apart = is_inside_one_instance && self.prior.subpass.is_some_and(|it| self.at.apart.contains(&it));
        // Layout transitions come after the dependencies of other subpasses too.
        let is_alone = is_apart && self.at.role != Role::Transition;
        let is_covered = self.is_forgotten || self.is_implicit() || !is_alone && (is_ordered || self.is_safe());
        Followed { operations: self.operations, is_ordered, is_inside_one_instance, is_apart, is_covered }
    }

    /// Layout transitions on one queue are in order by themselves.
    fn is_implicit(&self) -> bool {
        let is_transition = |it: &Used| it.usage == TRANSITION_WRITE;
        is_transition(self.prior) && is_transition(self.at) && self.prior_queue == self.at_queue
    }

    fn is_safe(&self) -> bool {
        let is_write = self.prior.is_write();
        match self.at.role {
            Role::Transition => {
                // It may also have been ordered before layout transitions already.
                let marks = self.before_barrier.unwrap_or(self.marks[usize::from(self.at_queue)]);
                let chain = if is_write { marks.available } else { marks.happened };
                self.is_gated || chain.has(TRANSITION)
            }
            // The presentation engine has the image already when it gives it away.
            Role::Acquire => true,
            Role::Present => {
                let known = self.known_to_present(self.at, self.at_submitted);
                self.prior_queue == self.at_queue || known.has(is_write)
            }
            Role::Command | Role::Load | Role::Store | Role::Resolve | Role::Host => {
                let marks = &self.marks[usize::from(self.at_queue)];
                self.target.is_in(is_write, marks.happened, marks.visible)
            }
        }
    }
}
