//! Hazards that only the device can decide, held back until it is known what it did.
//!
//! Where shaders keep what they touch, a hazard that is not certain waits for the feedback of its submission. Then the
//! part of the window that it is about is checked again, with what was touched in the place of what might have been
//! (`observed`): what is found then is told, and the rest was none. Submissions are decided in their order. Where
//! feedback does not come, the hazards are told as if nobody had waited for it.

use std::collections::VecDeque;

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_engine::check;
use lavascope_explain::{Level, level_between};
use lavascope_state::{CallSource, DeviceCall};
use lavascope_sync_ir::{Access, CommandLocation, Certainty, CommandBufferId, Hazard, OriginKind, ProgramLocation, ResourceId, HostStep};
use rustc_hash::FxHashMap;

use crate::causes::Causes;
use crate::device::Device;
use crate::devices::Devices;
use crate::explain::{COMMANDS_MAX, Teller};
use crate::observed::{Feedback, touched_resources};
use crate::window::{Kept, Located, Submitted, step_of};

/// Submissions that wait for feedback, or are remembered with it.
const OPEN_MAX: usize = 64;
/// How many submissions before the earlier access of a hazard are checked again with it: that access may have touched
/// nothing, and have stood before another one.
const BEFORE: usize = 8;

/// What a device did, and what waits for that.
#[derive(Default)]
pub(crate) struct Feed {
    /// By command buffer, the steps that executed it and of which nothing is known yet.
    waiting: FxHashMap<ObjectId, VecDeque<u32>>,
    /// In the order of submission.
    open: VecDeque<Open>,
    /// By command buffer and step. The steps that there are, the earliest first.
    known: FxHashMap<(ObjectId, u32), Feedback>,
    steps: VecDeque<u32>,
    /// What was found while command buffers were recorded.
    recorded: FxHashMap<CommandBufferId, Recorded>,
}

/// A submission that is not decided.
#[derive(Default)]
struct Open {
    step: u32,
    /// Executions of which nothing is known yet.
    left: usize,
    is_whole: bool,
    held: Vec<Hazard>,
    /// What was told at once.
    told: Vec<Hazard>,
}

#[derive(Default)]
struct Recorded {
    held: Vec<Hazard>,
    told: Vec<Hazard>,
    is_submitted: bool,
}

impl Feed {
    /// What is known of a command buffer as a step executed it.
    pub(crate) fn of(&self, commands: ObjectId, step: u32) -> Option<&Feedback> {
        self.known.get(&(commands, step))
    }

    /// The device told of a command buffer.
    fn take(&mut self, it: Feedback) {
        let Some(waiting) = self.waiting.get_mut(&it.commands) else { return };
        let count = it.executions as usize;
        let is_whole = it.is_whole && count <= waiting.len();
        let steps: Vec<u32> = waiting.drain(..count.min(waiting.len())).collect();
        for step in steps {
            if let Some(open) = self.open.iter_mut().find(|open| open.step == step) {
                open.left = open.left.saturating_sub(1);
                open.is_whole &= is_whole;
            }
            if is_whole {
                self.known.insert((it.commands, step), it.clone());
            }
        }
    }

    /// The next submission that can be decided.
    fn next(&mut self) -> Option<Open> {
        let is_full = self.open.len() > OPEN_MAX;
        let open = self.open.pop_front_if(|it| it.left == 0 || is_full)?;
        if open.left > 0 {
            // What is told of it yet speaks of more than there is then, and counts for nothing.
            self.waiting.values_mut().for_each(|it| it.retain(|step| *step != open.step));
        }
        self.waiting.retain(|_, it| !it.is_empty());
        self.steps.push_back(open.step);
        if self.steps.len() > OPEN_MAX {
            let oldest = self.steps.pop_front().unwrap_or(0);
            self.known.retain(|it, _| it.1 > oldest);
        }
        Some(Open { is_whole: open.is_whole && open.left == 0, ..open })
    }

    /// Nothing more will come.
    fn take_all(&mut self) -> Vec<Hazard> {
        self.waiting.clear();
        self.known.clear();
        self.open.drain(..).flat_map(|it| it.held).collect()
    }

    /// The step of some submissions before one.
    fn before(&self, first: u32) -> u32 {
        let before = self.steps.iter().rev().filter(|it| **it < first).take(BEFORE);
        before.last().copied().unwrap_or(first)
    }
}

/// What was found in a command buffer while it was recorded, where it is submitted.
fn submitted(it: &Hazard, step: u32, batch: u32, primary: u32) -> Hazard {
    let place = |it: &ProgramLocation| match it {
        ProgramLocation::Command(at) => ProgramLocation::Command(CommandLocation { step, batch, primary, path: at.path.clone() }),
        other => other.clone(),
    };
    Hazard { at: place(&it.at), prior: place(&it.prior), ..it.clone() }
}

/// Everything that a command buffer executes, each as often as it does.
fn executions(it: &Submitted, out: &mut Vec<ObjectId>) {
    let Some(own) = &it.own else { return };
    out.push(own.object);
    let mut open: Vec<CommandBufferId> = own.executes().collect();
    while let Some(next) = open.pop() {
        if let Some((_, recorded)) = it.executed.iter().find(|it| it.0 == next) {
            out.push(recorded.object);
            open.extend(recorded.executes());
        }
    }
}

impl Device {
    /// Whether only what the device does decides a hazard.
    fn waits_for_feedback(&self, it: &Hazard, locate: impl Fn(&ProgramLocation) -> Option<Vec<Access>>) -> bool {
        let (Some(later), Some(earlier)) = (locate(&it.at), locate(&it.prior)) else { return false };
        let is_open = |access: &Access| {
            let is_kept = matches!(access.origin.kind(), OriginKind::Descriptor(_) | OriginKind::Address(_));
            is_kept && access.certainty != Certainty::Certain
        };
        let own = |all: &[Access]| all.iter().any(|own| own.resource == it.resource && is_open(own));
        (own(&later) || own(&earlier)) && level_between(it, &later, &earlier) != Level::Certain
    }

    /// Keeps what was found in a command buffer that is recorded. Gives what is told at once.
    pub(crate) fn hold_recorded(&mut self, id: CommandBufferId, kept: &Kept, found: Vec<Hazard>) -> Vec<Hazard> {
        let Some(mut feed) = self.feed.take() else { return found };
        let waits = |it: &Hazard| self.waits_for_feedback(it, |place| kept.locate(place).and_then(accesses));
        let (held, told): (Vec<Hazard>, Vec<Hazard>) = found.into_iter().partition(waits);
        if !held.is_empty() || feed.recorded.contains_key(&id) {
            let own = feed.recorded.entry(id).or_default();
            own.held.extend(held);
            own.told.extend(told.iter().cloned());
        }
        self.feed = Some(feed);
        told
    }

    /// Keeps what was found because of the last step. Gives what is told at once.
    pub(crate) fn hold_step(&mut self, found: Vec<Hazard>) -> Vec<Hazard> {
        let Some(mut feed) = self.feed.take() else { return found };
        let waits = |it: &Hazard| {
            let is_open = feed.open.iter().any(|open| open.step == step_of(&it.at));
            is_open && self.waits_for_feedback(it, |place| self.window.locate(place).and_then(accesses))
        };
        let (held, told): (Vec<Hazard>, Vec<Hazard>) = found.into_iter().partition(waits);
        for (all, is_held) in [(&held, true), (&told, false)] {
            for it in all {
                if let Some(open) = feed.open.iter_mut().find(|open| open.step == step_of(&it.at)) {
                    if is_held { &mut open.held } else { &mut open.told }.push(it.clone());
                }
            }
        }
        self.feed = Some(feed);
        told
    }

    /// Something is submitted: the device will tell what it did.
    pub(crate) fn open_step(&mut self, index: u32, step: &HostStep, buffers: &[Vec<Submitted>]) {
        let (Some(feed), HostStep::Submit { batches, .. }) = (&mut self.feed, step) else { return };
        let mut open = Open { step: index, is_whole: true, ..Open::default() };
        for (batch, (own, all)) in (0..).zip(batches.iter().zip(buffers)) {
            for (primary, (id, one)) in (0..).zip(own.command_buffers.iter().zip(all)) {
                let mut executed = Vec::new();
                executions(one, &mut executed);
                open.left += executed.len();
                executed.into_iter().for_each(|it| feed.waiting.entry(it).or_default().push_back(index));
                if let Some(recorded) = feed.recorded.get_mut(id) {
                    recorded.is_submitted = true;
                    open.held.extend(recorded.held.iter().map(|it| submitted(it, index, batch, primary)));
                    open.told.extend(recorded.told.iter().map(|it| submitted(it, index, batch, primary)));
                }
            }
        }
        feed.open.push_back(open);
    }
}

fn accesses(it: Located<'_>) -> Option<Vec<Access>> {
    let (recorded, index) = it.recorded?;
    recorded.accesses(index as usize)
}

impl Devices {
    /// The device will tell what its shaders touched.
    pub(crate) fn expect_feedback(&mut self, device: ObjectId) {
        if let Some(device) = self.devices.get_mut(&device).filter(|_| self.wants_submissions) {
            device.feed.get_or_insert_default();
        }
    }

    /// A device told what it did.
    pub(crate) fn feedback(&mut self, id: ObjectId, all: Vec<Feedback>) {
        let feed = self.devices.get_mut(&id).and_then(|it| it.feed.as_deref_mut());
        let Some(feed) = feed else { return };
        all.into_iter().for_each(|it| feed.take(it));
        self.decide(id);
    }

    /// Decides all submissions that can be decided.
    pub(crate) fn decide(&mut self, id: ObjectId) {
        while let Some(open) = self.devices.get_mut(&id).and_then(|it| it.feed.as_deref_mut()?.next()) {
            self.decide_one(id, open);
        }
    }

    fn decide_one(&mut self, id: ObjectId, open: Open) {
        let mut about: Vec<ResourceId> = open.held.iter().map(|it| it.resource).collect();
        about.sort_unstable();
        about.dedup();
        let Some(device) = self.devices.get_mut(&id) else { return };
        // What was not touched at all is in no hazard: of many descriptors, most are not.
        if let (Some(feed), Some(kept), true) = (&device.feed, device.window.step(open.step), open.is_whole) {
            about = touched_resources(kept, feed, &about);
        }
        for resource in about {
            let held: Vec<Hazard> = open.held.iter().filter(|it| it.resource == resource).cloned().collect();
            let Some(feed) = &device.feed else { return };
            let first = held.iter().map(|it| step_of(&it.prior)).min().unwrap_or(open.step).min(open.step);
            let before = feed.before(first);
            let observed = Some(&**feed).filter(|_| open.is_whole);
            let teller = Teller { id, device, recording: None, observed, titles: &self.titles };
            let found = teller.observed(before, resource, &open);
            match found.or_else(|| teller.observed(first, resource, &open)) {
                Some(found) => teller.hazards(&found, &mut self.causes),
                None => Teller { observed: None, ..teller }.hazards(&held, &mut self.causes),
            }
        }
    }

    /// A command buffer is recorded anew or is no more: what was found in it is told, if it was never submitted.
    pub(crate) fn let_go(&mut self, at: DeviceCall, commands: CommandBufferId) {
        let (id, source) = (at.device, at.source);
        let Some(device) = self.devices.get_mut(&id) else { return };
        let Some(own) = device.feed.as_deref_mut().and_then(|it| it.recorded.remove(&commands)) else { return };
        if !own.is_submitted && !own.held.is_empty() {
            let kept = device.as_submitted(commands, source);
            let teller = Teller { id, device, recording: Some(&kept), observed: None, titles: &self.titles };
            teller.hazards(&own.held, &mut self.causes);
        }
    }

    /// No more feedback will come: what waits for it is told.
    pub(crate) fn let_all_go(&mut self, id: ObjectId) {
        let Some(device) = self.devices.get_mut(&id) else { return };
        let Some(feed) = device.feed.as_deref_mut() else { return };
        let found = feed.take_all();
        let mut recorded: Vec<CommandBufferId> = feed.recorded.keys().copied().collect();
        recorded.sort_unstable();
        let teller = Teller { id, device, recording: None, observed: None, titles: &self.titles };
        teller.hazards(&found, &mut self.causes);
        // Nobody calls any more: the last one that was made counts.
        let source = CallSource { command: ApiCommand::EndCommandBuffer, thread: 0, call: 0 };
        recorded.into_iter().for_each(|it| self.let_go(DeviceCall { device: id, source }, it));
    }
}

impl Teller<'_> {
    /// The hazards of a step with what was touched, but for those that were told; none where that cannot be checked.
    fn observed(&self, first: u32, about: ResourceId, open: &Open) -> Option<Vec<Hazard>> {
        self.observed?;
        let is_there = |it: &&Hazard| self.device.window.locate(&it.prior).is_some();
        if !open.held.iter().filter(|it| it.resource == about).all(|it| is_there(&it)) {
            return None;
        }
        let slice = self.slice(first, about, COMMANDS_MAX)?;
        let at = slice.steps.iter().position(|it| it.index == open.step)? as u32;
        let mut found = Vec::new();
        for it in check(&slice.program).into_iter().filter(|it| step_of(&it.at) == at) {
            let place = |place: &ProgramLocation| {
                let index = |step: u32| slice.steps.get(step as usize).map(|it| it.index);
                Some(match place {
                    ProgramLocation::Step(step) => ProgramLocation::Step(index(*step)?),
                    ProgramLocation::Command(at) => ProgramLocation::Command(CommandLocation { step: index(at.step)?, ..at.clone() }),
                })
            };
            let (at, prior) = (place(&it.at)?, place(&it.prior)?);
            let resource = *slice.resources.get(it.resource.0 as usize)?;
            let is_told = |told: &Hazard| {
                (told.kind, told.resource) == (it.kind, resource) && (&told.at, &told.prior) == (&at, &prior)
            };
            if !open.told.iter().any(is_told) {
                found.push(Hazard { at: at.clone(), prior: prior.clone(), resource, ..it });
            }
        }
        Some(found)
    }
}

impl Causes {
    /// How many were found so far, for tests.
    #[cfg(test)]
    pub(crate) fn severities(&self) -> Vec<lavascope_diag::Severity> {
        self.diagnostics.iter().map(|it| it.severity).collect()
    }
}
