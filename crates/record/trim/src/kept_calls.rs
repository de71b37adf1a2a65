//! Which calls are written: all calls outside of the skipped spans, and inside of those the calls whose effects outlive
//! the span.

use lavascope_abi::{Command, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call_role::CallRole;
use crate::scan::{PartBounds, Scan, ScannedCall, ScannedKind};
use crate::skipped_spans::SkippedSpan;
use crate::sync_state::TimelineState;

/// Which calls are written, by their number.
pub(crate) struct KeptCalls {
    pub(crate) is_kept: Vec<bool>,
    /// Calls in whose place stands another one.
    pub(crate) inserted: FxHashMap<usize, InsertedCall>,
}

/// A call that the trim adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InsertedCall {
    /// The host must not change memory that the device still uses: the waits are skipped with the span.
    WaitIdle(ObjectId),
    SignalSemaphore(ObjectId, TimelineState),
}

struct KeepDecision<'a> {
    scan: &'a Scan,
    is_kept: Vec<bool>,
    needed: FxHashSet<ObjectId>,
    /// Calls of spans whose writes are overwritten before the span ends.
    superseded: FxHashSet<usize>,
}

pub(crate) fn decide(scan: &Scan, bounds: PartBounds, spans: &[SkippedSpan]) -> KeptCalls {
    let is_inside = |it: &ScannedCall| spans.iter().any(|span| span.contains_call(it.first_record, it.last_record));
    let is_kept = scan.calls.iter().map(|it| it.last_record <= bounds.end && !is_inside(it)).collect();
    let inside: Vec<usize> = (0..scan.calls.len()).filter(|it| is_inside(&scan.calls[*it])).collect();
    let superseded = superseded(scan, spans, &inside);
    let mut decision = KeepDecision { scan, is_kept, needed: FxHashSet::default(), superseded };
    decision.keep_recordings(&inside, bounds);
    let begin = spans.first().map_or(usize::MAX, |it| it.records.start);
    for (index, call) in scan.calls.iter().enumerate() {
        if decision.is_kept[index] && call.first_record >= begin {
            decision.needed.extend(scan.refs(call));
        }
    }
    // Calls that are kept need further calls; repeat until no call is added.
    while inside.iter().filter(|it| decision.reconsider(**it)).count() > 0 {}
    decision.keep_host_bytes(&inside);
    KeptCalls { is_kept: decision.is_kept, inserted: inserted_calls(scan, spans) }
}

/// The calls that a span can spare, in the order in which they were made.
pub(crate) fn removable_calls<'a>(scan: &'a Scan, span: &'a SkippedSpan) -> impl Iterator<Item = usize> + 'a {
    let first = scan.calls.partition_point(|it| it.first_record < span.records.start);
    let end = scan.calls.partition_point(|it| it.first_record < span.records.end);
    (first..end).filter(|value| {
        let call = &scan.calls[*value];
        span.contains_call(call.first_record, call.last_record) && scan.role(call) == CallRole::Sync
    })
}

fn inserted_calls(scan: &Scan, spans: &[SkippedSpan]) -> FxHashMap<usize, InsertedCall> {
    let device = |it: &&ScannedCall| it.kind == ScannedKind::Command(Command::CreateDevice);
    let device = scan.calls.iter().find(device).and_then(|it| scan.created(it).first().copied()).unwrap_or_default();
    let mut all = FxHashMap::default();
    for span in spans {
        let signals = span.signals.iter().map(|it| InsertedCall::SignalSemaphore(it.0, it.1));
        all.extend(removable_calls(scan, span).zip([InsertedCall::WaitIdle(device)].into_iter().chain(signals)));
    }
    all
}

fn superseded(scan: &Scan, spans: &[SkippedSpan], inside: &[usize]) -> FxHashSet<usize> {
    let mut all = FxHashSet::default();
    for span in spans {
        let mut written: FxHashSet<u64> = FxHashSet::default();
        for index in inside.iter().rev() {
            let call = &scan.calls[*index];
            let writes = matches!(
                call.kind,
                ScannedKind::HostWrite
                    | ScannedKind::Command(Command::UpdateDescriptorSets | Command::UpdateDescriptorSetWithTemplate)
            );
            if !writes || !span.contains_call(call.first_record, call.last_record) {
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

impl KeepDecision<'_> {
    /// Keeps the recordings that were made in a span and are submitted outside of it, and those that were made only
    /// partly in it.
    fn keep_recordings(&mut self, inside: &[usize], bounds: PartBounds) {
        let contents = &self.scan.contents;
        let mut wanted: Vec<usize> = Vec::new();
        for submit in contents.submits.iter().filter(|it| self.is_kept[it.call]) {
            wanted.extend(&submit.recordings);
        }
        let is_open = |it: &&usize| contents.recordings[**it].calls.iter().any(|it| self.is_kept[*it]);
        let parts = inside.iter().filter_map(|it| self.scan.calls[*it].recording);
        wanted.extend(parts.collect::<FxHashSet<_>>().iter().filter(is_open));
        let mut seen = FxHashSet::default();
        while let Some(item) = wanted.pop() {
            if !seen.insert(item) {
                continue;
            }
            let recording = &contents.recordings[item];
            wanted.extend(&recording.secondaries);
            for call in recording.calls.iter().filter(|it| self.scan.calls[**it].last_record <= bounds.end) {
                self.is_kept[*call] = true;
            }
        }
    }

    /// Whether an object exists in the part: a call that is kept created it.
    fn exists(&self, object: ObjectId) -> bool {
        self.scan.creators.get(&object).is_none_or(|it| self.is_kept[*it])
    }

    /// Checks again whether a call of a span must be kept. Returns whether it is kept from now on.
    fn reconsider(&mut self, index: usize) -> bool {
        if self.is_kept[index] || self.superseded.contains(&index) {
            return false;
        }
        let call = &self.scan.calls[index];
        let (refs, made) = (self.scan.refs(call), self.scan.created(call));
        let is_first = |it: &&ObjectId| self.scan.creators.get(it) == Some(&index);
        let is_made = made.iter().filter(is_first).any(|it| self.needed.contains(it));
        let keeps = match (self.scan.role(call), call.kind) {
            (_, ScannedKind::HostWrite) => refs.iter().all(|it| self.exists(*it)),
            (_, ScannedKind::HostRead) | (CallRole::Sync | CallRole::Record, _) => false,
            (CallRole::Create, _) => is_made,
            (CallRole::Destroy, ScannedKind::Command(command)) => {
                destroyed_objects(command, refs).iter().any(|it| self.exists(*it))
            }
            (CallRole::Define(ty), _) => refs.iter().any(|it| it.ty() == Some(ty) && self.needed.contains(it)),
            (CallRole::Modify, _) if made.iter().any(|it| is_first(&it)) => is_made,
            (CallRole::Modify, _) => refs.iter().all(|it| self.exists(*it)),
            (CallRole::Always | CallRole::Other, _) => true,
        };
        if keeps {
            self.is_kept[index] = true;
            self.needed.extend(refs);
        }
        keeps
    }

    /// Host bytes are kept with the call that reads them: the next call of the thread that has a record of its own.
    fn keep_host_bytes(&mut self, inside: &[usize]) {
        for index in inside.iter().filter(|it| self.scan.calls[**it].kind == ScannedKind::HostRead) {
            let call = &self.scan.calls[*index];
            let behind = |it: &&ScannedCall| it.stream == call.stream && it.kind != ScannedKind::HostRead;
            let owner = self.scan.calls[*index..].iter().find(behind);
            let owner = owner.and_then(|it| self.scan.by_number.get(&(it.stream, it.number)));
            self.is_kept[*index] = owner.is_some_and(|it| self.is_kept[*it]);
        }
    }
}

/// The objects that a call destroys: its last parameter, or all after the pool.
fn destroyed_objects(command: Command, refs: &[ObjectId]) -> &[ObjectId] {
    match command {
        Command::FreeCommandBuffers | Command::FreeDescriptorSets => refs.get(2..).unwrap_or_default(),
        _ => refs.last().map_or(&[], std::slice::from_ref),
    }
}
