//! Which calls are written: all outside of the spans that are left out, and inside of those what lives on.

use lavascope_abi::{Command, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Timeline;
use crate::role::Role;
use crate::scan::{Bounds, Call, Scan, What};
use crate::slice::Span;

/// What is written, by the number of the call.
pub(crate) struct Kept {
    pub(crate) is_kept: Vec<bool>,
    /// Calls in whose place stands another one.
    pub(crate) instead: FxHashMap<usize, Instead>,
}

/// A call of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// The host must not change what the device still uses: the waits are gone with the span.
    Idle(ObjectId),
    Signal(ObjectId, Timeline),
}

struct Decision<'a> {
    scan: &'a Scan,
    is_kept: Vec<bool>,
    needed: FxHashSet<ObjectId>,
    /// Calls of spans that write what is written again before the span ends.
    superseded: FxHashSet<usize>,
}

pub(crate) fn decide(scan: &Scan, bounds: Bounds, spans: &[Span]) -> Kept {
    let is_inside = |it: &Call| spans.iter().any(|span| span.has(it.first, it.done));
    let is_kept = scan.calls.iter().map(|it| it.done <= bounds.end && !is_inside(it)).collect();
    let inside: Vec<usize> = (0..scan.calls.len()).filter(|it| is_inside(&scan.calls[*it])).collect();
    let superseded = superseded(scan, spans, &inside);
    let mut decision = Decision { scan, is_kept, needed: FxHashSet::default(), superseded };
    decision.recordings(&inside, bounds);
    let begin = spans.first().map_or(usize::MAX, |it| it.places.start);
    for (index, call) in scan.calls.iter().enumerate() {
        if decision.is_kept[index] && call.first >= begin {
            decision.needed.extend(scan.refs(call));
        }
    }
    // What is kept needs more, until it needs nothing more.
    while inside.iter().filter(|it| decision.look(**it)).count() > 0 {}
    decision.host_bytes(&inside);
    Kept { is_kept: decision.is_kept, instead: instead(scan, spans) }
}

/// The calls that a span can spare, in the order in which they were made.
pub(crate) fn spare<'a>(scan: &'a Scan, span: &'a Span) -> impl Iterator<Item = usize> + 'a {
    let first = scan.calls.partition_point(|it| it.first < span.places.start);
    let end = scan.calls.partition_point(|it| it.first < span.places.end);
    (first..end).filter(|it| {
        let call = &scan.calls[*it];
        span.has(call.first, call.done) && scan.role(call) == Role::Flow
    })
}

fn instead(scan: &Scan, spans: &[Span]) -> FxHashMap<usize, Instead> {
    let device = |it: &&Call| it.what == What::Command(Command::CreateDevice);
    let device = scan.calls.iter().find(device).and_then(|it| scan.made(it).first().copied()).unwrap_or_default();
    let mut all = FxHashMap::default();
    for span in spans {
        let signals = span.signals.iter().map(|it| Instead::Signal(it.0, it.1));
        all.extend(spare(scan, span).zip([Instead::Idle(device)].into_iter().chain(signals)));
    }
    all
}

fn superseded(scan: &Scan, spans: &[Span], inside: &[usize]) -> FxHashSet<usize> {
    let mut all = FxHashSet::default();
    for span in spans {
        let mut written: FxHashSet<u64> = FxHashSet::default();
        for index in inside.iter().rev() {
            let call = &scan.calls[*index];
            let writes = matches!(
                call.what,
                What::Memory | What::Command(Command::UpdateDescriptorSets | Command::UpdateDescriptorSetWithTemplate)
            );
            if !writes || !span.has(call.first, call.done) {
                continue;
            }
            if !call.keys.is_empty() && call.keys.iter().all(|it| written.contains(it)) {
                all.insert(*index);
            }
            written.extend(&call.keys);
        }
    }
    all
}

impl Decision<'_> {
    /// What was recorded in a span and is submitted outside of it, or was recorded only in part in it.
    fn recordings(&mut self, inside: &[usize], bounds: Bounds) {
        let contents = &self.scan.contents;
        let mut wanted: Vec<usize> = Vec::new();
        for submit in contents.submits.iter().filter(|it| self.is_kept[it.call]) {
            wanted.extend(&submit.recordings);
        }
        let is_open = |it: &&usize| contents.recordings[**it].calls.iter().any(|it| self.is_kept[*it]);
        let parts = inside.iter().filter_map(|it| self.scan.calls[*it].recording);
        wanted.extend(parts.collect::<FxHashSet<_>>().iter().filter(is_open));
        let mut seen = FxHashSet::default();
        while let Some(it) = wanted.pop() {
            if !seen.insert(it) {
                continue;
            }
            let recording = &contents.recordings[it];
            wanted.extend(&recording.secondaries);
            for call in recording.calls.iter().filter(|it| self.scan.calls[**it].done <= bounds.end) {
                self.is_kept[*call] = true;
            }
        }
    }

    /// Whether an object is there: somebody who is kept made it.
    fn exists(&self, object: ObjectId) -> bool {
        self.scan.makers.get(&object).is_none_or(|it| self.is_kept[*it])
    }

    /// Looks at a call of a span once more. Says whether it is kept since now.
    fn look(&mut self, index: usize) -> bool {
        if self.is_kept[index] || self.superseded.contains(&index) {
            return false;
        }
        let call = &self.scan.calls[index];
        let (refs, made) = (self.scan.refs(call), self.scan.made(call));
        let is_first = |it: &&ObjectId| self.scan.makers.get(it) == Some(&index);
        let is_made = made.iter().filter(is_first).any(|it| self.needed.contains(it));
        let keeps = match (self.scan.role(call), call.what) {
            (_, What::Memory) => refs.iter().all(|it| self.exists(*it)),
            (_, What::Host) | (Role::Flow | Role::Record, _) => false,
            (Role::Make, _) => is_made,
            (Role::End, What::Command(command)) => ended(command, refs).iter().any(|it| self.exists(*it)),
            (Role::Shape(ty), _) => refs.iter().any(|it| it.ty() == Some(ty) && self.needed.contains(it)),
            (Role::Tend, _) if made.iter().any(|it| is_first(&it)) => is_made,
            (Role::Tend, _) => refs.iter().all(|it| self.exists(*it)),
            (Role::Fixed | Role::Other, _) => true,
        };
        if keeps {
            self.is_kept[index] = true;
            self.needed.extend(refs);
        }
        keeps
    }

    /// What a call reads is kept with the call, which is the next one of its thread that has a record of its own.
    fn host_bytes(&mut self, inside: &[usize]) {
        for index in inside.iter().filter(|it| self.scan.calls[**it].what == What::Host) {
            let call = &self.scan.calls[*index];
            let behind = |it: &&Call| it.stream == call.stream && it.what != What::Host;
            let owner = self.scan.calls[*index..].iter().find(behind);
            let owner = owner.and_then(|it| self.scan.by_number.get(&(it.stream, it.number)));
            self.is_kept[*index] = owner.is_some_and(|it| self.is_kept[*it]);
        }
    }
}

/// What a call ends: its last parameter, or all behind the pool.
fn ended(command: Command, refs: &[ObjectId]) -> &[ObjectId] {
    match command {
        Command::FreeCommandBuffers | Command::FreeDescriptorSets => refs.get(2..).unwrap_or_default(),
        _ => refs.last().map_or(&[], std::slice::from_ref),
    }
}
