//! Follows one access through the program: what it happens before, to what it is visible, and what each operation on
//! the way did for it.

use std::collections::{HashMap, HashSet};

use super::element::{Element, From};
use super::known::{Known, Marks, only, only_usage};
use super::pair::{Pair, used};
use super::timeline::{Happens, Moment, Timeline, Used};
use super::{Operation, Role};
use crate::device::{all_stages, all_usages};
use crate::order;
use crate::scope;
use crate::usage::{Stages, TABLES, TRANSITION_WRITE, Usages};

/// What is asked of the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Verdict,
    Operations,
}

pub(super) struct Followed {
    pub(super) operations: Vec<Operation>,
    pub(super) is_ordered: bool,
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
        sets: HashMap::new(),
        known: HashMap::new(),
        signaled: vec![Known::default(); timeline.program.queues.len()],
        host: Known::default(),
        submits: HashMap::new(),
        pass: None,
        is_gated: false,
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
    pub(super) stages: Stages,
    /// None: being available is enough.
    pub(super) usages: Option<Usages>,
}

impl Target {
    fn new(at: &Used) -> Target {
        if at.role == Role::Transition {
            let stages = at.gates.iter().fold(Stages::default(), |all, it| all.union(it.scope.src));
            return Target { stages, usages: None };
        }
        Target { stages: only(TABLES.stage(at.usage)), usages: Some(only_usage(at.usage)) }
    }

    pub(super) fn is_in(&self, is_write: bool, stages: Stages, usages: Usages) -> bool {
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
    /// By the moment at which an event was set.
    sets: HashMap<usize, Marks>,
    /// By the moment of a signal, of the end of a batch, and so on.
    pub(super) known: HashMap<usize, Known>,
    /// What all signals of a queue so far have handed on.
    signaled: Vec<Known>,
    pub(super) host: Known,
    submits: HashMap<usize, Known>,
    pass: Option<OpenPass>,
    /// Whether the first scope of the later layout transition has the earlier access.
    is_gated: bool,
    pub(super) now: usize,
    pub(super) waited: HashSet<usize>,
    pub(super) want: Want,
    pub(super) operations: Vec<Operation>,
}

struct OpenPass {
    begin: usize,
    outside: Marks,
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
}

impl<'t> Follower<'t> {
    fn moment(&mut self, moment: &'t Moment) {
        if self.now == self.pair.prior.0 {
            self.begin(moment.queue);
        }
        let queue = usize::from(moment.queue);
        match &moment.what {
            Happens::Uses(_) => {}
            Happens::Depends(elements) => self.depend(moment, elements),
            Happens::SetsEvent { .. } => drop(self.sets.insert(self.now, self.marks[queue])),
            Happens::PassBegins => {
                let outside = self.marks[queue];
                self.pass = Some(OpenPass { begin: self.now, outside, subpass: None, ended: Vec::new() });
            }
            Happens::SubpassBegins(elements) => self.begin_subpass(moment, elements),
            Happens::SubpassEnds => self.end_subpass(queue),
            Happens::PassEnds(elements) => self.end_pass(moment, elements),
            Happens::Submits => {
                self.submits.insert(self.now, self.host);
            }
            Happens::BatchBegins => self.begin_batch(moment),
            Happens::Waits { signal, stages, part } => self.wait(moment, *signal, *stages, *part),
            Happens::Signals { stages, .. } => self.signal(queue, scope::source(*stages, self.flags(moment.queue))),
            Happens::Completes => {
                let mut known = self.signal_of(queue, all_stages());
                known.join(self.signaled[queue]);
                self.known.insert(self.now, known);
            }
            Happens::HostLearns(from) => self.host_learns(moment, from),
            Happens::HostSignals => drop(self.known.insert(self.now, self.host)),
            Happens::Acquires => {
                let is_over = self.prior_queue == moment.queue && self.pair.prior.0 < self.now;
                let known = Known { happened: is_over, available: is_over, ..Known::default() };
                self.known.insert(self.now, known);
            }
        }
    }

    /// The followed access happens.
    fn begin(&mut self, queue: u8) {
        if self.prior.role == Role::Transition {
            let marks = &mut self.marks[usize::from(queue)];
            for gate in &self.prior.gates {
                marks.available = marks.available.union(gate.scope.dst);
                marks.visible = marks.visible.union(gate.scope.dst_usages);
            }
            self.own_gates();
        }
        if queue == self.timeline.host() {
            self.host.join(Known { happened: true, available: true, host_happened: true, host_available: true });
            let host = self.host;
            self.marks[usize::from(queue)].wait(host, scope::host());
        }
    }

    pub(super) fn flags(&self, queue: u8) -> u32 {
        self.timeline.program.queues.get(usize::from(queue)).map_or(0, |it| it.flags)
    }

    pub(super) fn view(&self, queue: u8, element: &Element) -> Option<View> {
        let marks = self.marks[usize::from(queue)];
        let pass = self.pass.as_ref();
        Some(match element.from {
            From::Here => View { marks, queue, after: pass.and_then(|it| it.subpass), before: self.now },
            From::Set(moment) => {
                let queue = self.timeline.moments[moment].queue;
                View { marks: *self.sets.get(&moment)?, queue, after: None, before: moment }
            }
            From::Subpass(index) => {
                let ended = pass?.ended.get(index as usize)?;
                View { marks: ended.marks, queue, after: Some(ended.begin), before: ended.end }
            }
            From::Outside => View { marks: pass?.outside, queue, after: None, before: pass?.begin },
        })
    }

    /// Whether the followed access itself lies where a first scope looks.
    pub(super) fn is_direct(&self, view: &View) -> bool {
        let prior = self.pair.prior.0;
        view.queue == self.prior_queue && prior < view.before && view.after.is_none_or(|it| prior > it)
    }

    /// Whether a dependency is about all of the memory that is followed.
    pub(super) fn is_about(&self, element: &Element) -> bool {
        element.about.as_ref().is_none_or(|about| {
            let ranges = self.timeline.addresses.ranges(about.resource, &about.region);
            ranges.iter().any(|it| it.start <= self.pair.piece.start && self.pair.piece.end <= it.end)
        })
    }

    pub(super) fn held(&self, element: &Element, view: &View) -> Held {
        let stage = TABLES.stage(self.prior.usage);
        let is_direct = self.is_direct(view) && element.scope.src.has(stage);
        if !self.prior.is_write() {
            let is_chained = view.marks.happened.0 & element.scope.src.0 != 0;
            return Held { is_held: is_direct || is_chained, is_chained };
        }
        let is_chained = view.marks.available.0 & element.scope.src.0 != 0;
        let is_direct = is_direct && element.scope.src_usages.has(self.prior.usage);
        Held { is_held: self.is_about(element) && (is_direct || is_chained), is_chained }
    }

    /// All elements look at what was before the command, and then take effect.
    fn depend(&mut self, moment: &Moment, elements: &[Element]) {
        let held: Vec<Held> = elements.iter().map(|it| self.look(moment, it)).collect();
        for (element, held) in elements.iter().zip(held) {
            self.take_effect(moment.queue, element, held);
        }
    }

    fn look(&mut self, moment: &Moment, element: &Element) -> Held {
        let Some(view) = self.view(moment.queue, element) else { return Held::default() };
        let held = self.held(element, &view);
        if let From::Set(set) = element.from {
            self.waited.insert(set);
        }
        let is_gate = self.at.role == Role::Transition
            && self.pair.at.0 == self.now + 1
            && self.at.gates.iter().any(|it| it.site == element.site && it.from == element.from);
        if is_gate {
            self.is_gated |= held.is_held;
        }
        self.note(moment, element, &view, held, is_gate);
        held
    }

    fn take_effect(&mut self, queue: u8, element: &Element, held: Held) {
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
        if held.is_held {
            marks.visible = marks.visible.union(element.scope.dst_usages);
        }
    }

    fn begin_subpass(&mut self, moment: &Moment, elements: &[Element]) {
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
        let held: Vec<Held> = elements.iter().map(|it| self.look(moment, it)).collect();
        if let Some(pass) = self.pass.take() {
            self.marks[usize::from(moment.queue)] = pass.outside;
        }
        for (element, held) in elements.iter().zip(held) {
            self.take_effect(moment.queue, element, held);
        }
    }

    fn begin_batch(&mut self, moment: &Moment) {
        let Some(known) = moment.submitted.and_then(|it| self.submits.get(&it)).copied() else { return };
        let marks = &mut self.marks[usize::from(moment.queue)];
        marks.wait(known, all_stages());
        if known.available {
            marks.visible = all_usages();
        }
        self.note_submit(moment, known);
    }

    fn wait(&mut self, moment: &Moment, signal: Option<usize>, stages: u64, part: super::BatchPart) {
        let Some(signal) = signal else { return };
        self.waited.insert(signal);
        let known = self.known.get(&signal).copied().unwrap_or_default();
        let dst = scope::destination(stages, self.flags(moment.queue));
        self.note_wait(moment, signal, known, (stages, dst), part);
        self.marks[usize::from(moment.queue)].wait(known, dst);
    }

    /// What a signal after some stages knows: what they did themselves, and what was ordered before them.
    fn signal_of(&self, queue: usize, stages: Stages) -> Known {
        let mut known = self.marks[queue].signal(stages);
        let is_own = queue == usize::from(self.prior_queue) && self.pair.prior.0 < self.now;
        if is_own && stages.has(TABLES.stage(self.prior.usage)) {
            (known.happened, known.available) = (true, true);
        }
        known
    }

    fn signal(&mut self, queue: usize, stages: Stages) {
        let known = self.signal_of(queue, stages);
        self.signaled[queue].happened |= known.happened;
        self.signaled[queue].available |= known.available;
        let all = Known { happened: self.signaled[queue].happened, available: self.signaled[queue].available, ..known };
        self.known.insert(self.now, all);
    }

    fn host_learns(&mut self, moment: &Moment, from: &[usize]) {
        self.waited.extend(from);
        let mut learned = Known::default();
        from.iter().filter_map(|it| self.known.get(it)).for_each(|it| learned.join(*it));
        self.note_host(moment, from, learned);
        self.host.join(learned);
        let marks = &mut self.marks[usize::from(self.timeline.host())];
        if learned.happened {
            marks.happened = marks.happened.union(scope::host());
        }
        if learned.available {
            marks.available = marks.available.union(scope::host());
        }
        if learned.host_available {
            marks.visible = marks.visible.union(scope::usages_of(scope::host()));
        }
    }

    /// The subpass that is open, as accesses name theirs.
    pub(super) fn subpass(&self) -> Option<(usize, u32)> {
        let pass = self.pass.as_ref()?;
        Some((pass.begin, pass.ended.len() as u32))
    }

    fn finish(mut self) -> Followed {
        self.now = self.pair.at.0;
        self.note_unused();
        let is_ordered = self.at_queue == self.prior_queue
            && self.at.instance.is_some()
            && self.at.instance == self.prior.instance
            && order::is_ordered((self.prior.usage, self.prior.order), (self.at.usage, self.at.order));
        let is_apart = self.at.instance.is_some()
            && self.at.instance == self.prior.instance
            && self.prior.subpass.is_some_and(|it| self.at.apart.contains(&it));
        let is_covered = !is_apart && (is_ordered || self.is_safe());
        Followed { operations: self.operations, is_ordered, is_apart, is_covered }
    }

    fn is_safe(&self) -> bool {
        let is_write = self.prior.is_write();
        match self.at.role {
            Role::Transition => {
                let is_implicit = self.prior.usage == TRANSITION_WRITE && self.prior_queue == self.at_queue;
                is_implicit || self.is_gated
            }
            Role::Present => self.at.signals.iter().filter_map(|it| self.known.get(it)).any(|it| it.has(is_write)),
            Role::Command | Role::Load | Role::Store | Role::Resolve | Role::Host => {
                let marks = &self.marks[usize::from(self.at_queue)];
                self.target.is_in(is_write, marks.happened, marks.visible)
            }
        }
    }
}
