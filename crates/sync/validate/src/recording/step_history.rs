//! The last steps of a device, with the command buffers as they were submitted. Command buffers are shared, not copied.
//!
//! The history is bounded. A finding about an older step has no explanation, and its message says so.

use std::collections::VecDeque;

use lavascope_abi::Command as ApiCommand;
use lavascope_diag::DebugLabels;
use lavascope_engine::Engine;
use lavascope_record::LabelPath;
use lavascope_state::{CallSource, Destroyed};
use lavascope_sync_ir::{
    Certainty, Command, CommandBufferId, CommandLocation, HostStep, ProgramLocation, QueueId, ResourceId, SemaphoreId,
    SemaphorePoint, SubmitBatch,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::recording::command_buffer::{CommandCall, RecordedCommandBuffer};
use crate::recording::open_labels::CarriedLabels;

/// Steps that are kept.
pub(crate) const STEPS_MAX: usize = 4096;
/// Commands that are kept, each as often as it was submitted.
const COMMANDS_MAX: usize = 500_000;

#[derive(Default)]
pub(crate) struct StepHistory {
    steps: VecDeque<HistoryStep>,
    /// What ended before which step.
    destroyed: VecDeque<(u32, Destroyed)>,
    commands: usize,
    /// What was signaled when the window begins.
    signaled_before: SignaledSemaphores,
    /// One bit for each step before the window: whether something in it is not certain.
    uncertain_before: Vec<u64>,
}

/// One step, as the engine was told of it, with the numbers of the tracker.
pub(crate) struct HistoryStep {
    /// As the engine counts.
    pub(crate) index: u32,
    /// Submissions so far, this one included.
    pub(crate) submit: u64,
    /// Submissions and presentations of its queue before it.
    pub(crate) queue_submit: u64,
    pub(crate) source: CallSource,
    pub(crate) step: HostStep,
    /// For each batch and each of its command buffers.
    pub(crate) buffers: Vec<Vec<SubmittedCommandBuffer>>,
    /// The debug labels of its queue,
    pub(crate) labels: Option<LabelPath>,
    /// and those that command buffers before had left open.
    pub(crate) carried_labels: CarriedLabels,
    /// Of its call; zero, if nobody captured it.
    pub(crate) stack: u32,
    commands: usize,
}

/// A command buffer, and all that it executes; none if nothing was ever recorded.
#[derive(Clone)]
pub(crate) struct SubmittedCommandBuffer {
    pub(crate) own: Option<RecordedCommandBuffer>,
    pub(crate) executed: Vec<(CommandBufferId, RecordedCommandBuffer)>,
}

/// Something that nothing in the window speaks of any more.
pub(crate) enum ForgottenObject {
    Resource(ResourceId),
    Other(Destroyed),
}

/// Where something happened.
pub(crate) struct HistoryLocation<'a> {
    pub(crate) history_step: &'a HistoryStep,
    /// The command buffer in which it was recorded, and the index in there.
    pub(crate) recorded: Option<(&'a RecordedCommandBuffer, u32)>,
}

impl HistoryLocation<'_> {
    pub(crate) fn command_call(&self) -> Option<&CommandCall> {
        let (recorded, index) = self.recorded?;
        recorded.calls.get(index as usize)
    }
}

/// Semaphores that somebody may wait for.
#[derive(Clone, Default)]
pub(crate) struct SignaledSemaphores {
    binary: FxHashSet<SemaphoreId>,
    values: FxHashMap<SemaphoreId, u64>,
}

impl HistoryStep {
    pub(crate) fn new(
        index: u32,
        submit: u64,
        source: CallSource,
        step: HostStep,
        buffers: Vec<Vec<SubmittedCommandBuffer>>,
    ) -> HistoryStep {
        let commands = buffers.iter().flatten().map(SubmittedCommandBuffer::commands).sum();
        let (labels, carried_labels) = (None, Vec::new());
        HistoryStep {
            index,
            submit,
            queue_submit: 0,
            source,
            step,
            buffers,
            labels,
            carried_labels,
            stack: 0,
            commands,
        }
    }

    /// The debug labels around a place in it: of the queue, of command buffers before, around each
    /// `vkCmdExecuteCommands` that leads there, and around the command itself.
    pub(crate) fn labels_at(&self, place: &ProgramLocation) -> DebugLabels {
        let list = |it: Option<&LabelPath>| it.iter().flat_map(|it| it.iter()).map(|it| it.to_string()).collect();
        let queue = list(self.labels.as_ref());
        let ProgramLocation::Command(at) = place else { return DebugLabels { queue, commands: Vec::new() } };
        let (batch, primary) = (at.batch as usize, at.primary as usize);
        let carried = self.carried_labels.get(batch).and_then(|it| it.get(primary)?.as_ref());
        let mut commands: Vec<String> = list(carried);
        let submitted = self.buffers.get(batch).and_then(|it| it.get(primary));
        for end in (1..=at.path.len()).step_by(2) {
            let found = submitted.and_then(|it| it.command(&at.path[..end]));
            let Some(call) = found.and_then(|(recorded, index)| recorded.calls.get(index as usize)) else { continue };
            commands.truncate(commands.len().saturating_sub(usize::from(call.closed_labels)));
            commands.extend(list(call.labels.as_ref()));
        }
        DebugLabels { queue, commands }
    }

    /// A command buffer that is being recorded, as if it were all that is ever submitted.
    pub(crate) fn from_recording(
        source: CallSource,
        queue: QueueId,
        id: CommandBufferId,
        submitted: SubmittedCommandBuffer,
    ) -> HistoryStep {
        let batch = SubmitBatch { command_buffers: vec![id], ..SubmitBatch::default() };
        let step = HostStep::Submit { queue, batches: vec![batch], fence: None };
        HistoryStep::new(Engine::RECORDING, 0, source, step, vec![vec![submitted]])
    }

    /// Whether the host writes through a mapping some time before the call, which does not say so.
    pub(crate) fn is_noticed_write(&self) -> bool {
        use ApiCommand as C;
        matches!(self.step, HostStep::HostAccess { is_write: true, .. })
            && matches!(
                self.source.command,
                C::QueueSubmit
                    | C::QueueSubmit2
                    | C::SignalSemaphore
                    | C::SetEvent
                    | C::WaitForFences
                    | C::WaitSemaphores
                    | C::QueueWaitIdle
                    | C::DeviceWaitIdle
            )
    }

    /// Whether nothing of it was submitted yet.
    pub(crate) fn is_recording(&self) -> bool {
        self.index == Engine::RECORDING
    }

    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    /// Whether all accesses in it are made for certain.
    fn is_certain(&self) -> bool {
        let all = self.buffers.iter().flatten();
        let mut recorded = all.flat_map(|it| it.own.iter().chain(it.executed.iter().map(|it| &it.1)));
        match &self.step {
            HostStep::HostAccess { certainty, .. } => *certainty == Certainty::Certain,
            _ => recorded.all(|it| it.is_certain()),
        }
    }

    /// Where something happened that is in this step.
    pub(crate) fn locate(&self, place: &ProgramLocation) -> Option<HistoryLocation<'_>> {
        match place {
            ProgramLocation::Step(_) => Some(HistoryLocation { history_step: self, recorded: None }),
            ProgramLocation::Command(CommandLocation { batch, primary, path, .. }) => {
                let submitted = self.buffers.get(*batch as usize)?.get(*primary as usize)?;
                Some(HistoryLocation { history_step: self, recorded: Some(submitted.command(path)?) })
            }
        }
    }
}

impl SubmittedCommandBuffer {
    pub(crate) fn has_events(&self) -> bool {
        self.own.iter().chain(self.executed.iter().map(|it| &it.1)).any(|it| it.has_events)
    }

    fn commands(&self) -> usize {
        let own = self.own.iter().map(|it| it.len()).sum::<usize>();
        own + self.executed.iter().map(|it| it.1.len()).sum::<usize>()
    }

    /// The command of a path, as the engine counts: indices of `Execute` with the place in its list, and the command.
    fn command(&self, path: &[u32]) -> Option<(&RecordedCommandBuffer, u32)> {
        let (last, way) = path.split_last()?;
        let mut recorded: &RecordedCommandBuffer = self.own.as_ref()?;
        for step in way.chunks_exact(2) {
            let Command::Execute(all) = recorded.other(step[0] as usize)? else { return None };
            let next = all.get(step[1] as usize)?;
            recorded = &self.executed.iter().find(|it| it.0 == *next)?.1;
        }
        Some((recorded, *last))
    }
}

impl StepHistory {
    /// Adds a step, and gives what nothing speaks of any more.
    pub(crate) fn push(&mut self, kept: HistoryStep) -> Vec<ForgottenObject> {
        let is_repeated = self.steps.back().is_some_and(|it| it.step == kept.step);
        if is_repeated && matches!(kept.step, HostStep::WaitSemaphores(_) | HostStep::WaitFences(_)) {
            // Somebody polls; to wait again for what one has waited for changes nothing.
            return Vec::new();
        }
        self.commands += kept.commands;
        self.steps.push_back(kept);
        let mut forgotten = Vec::new();
        while self.steps.len() > STEPS_MAX || self.commands > COMMANDS_MAX && self.steps.len() > 1 {
            let Some(old) = self.steps.pop_front() else { break };
            self.commands -= old.commands;
            self.signaled_before.apply_step(&old.step);
            self.remember_certainty(&old);
            if let HostStep::Destroy(id) = old.step {
                forgotten.push(ForgottenObject::Resource(id));
            }
            while let Some((_, gone)) = self.destroyed.pop_front_if(|it| it.0 <= old.index) {
                if let Destroyed::Semaphore(id) = gone {
                    self.signaled_before.forget(id);
                }
                forgotten.push(ForgottenObject::Other(gone));
            }
        }
        forgotten
    }

    fn remember_certainty(&mut self, old: &HistoryStep) {
        let place = old.index as usize / 64;
        if self.uncertain_before.len() <= place {
            self.uncertain_before.resize(place + 1, 0);
        }
        self.uncertain_before[place] |= u64::from(!old.is_certain()) << (old.index % 64);
    }

    /// Whether something in a step that is older than what is kept was not certain.
    pub(crate) fn was_uncertain(&self, step: u32) -> bool {
        self.uncertain_before.get(step as usize / 64).is_some_and(|it| it >> (step % 64) & 1 != 0)
    }

    /// Something ended after the last step.
    pub(crate) fn push_destroyed(&mut self, gone: Destroyed) -> Option<ForgottenObject> {
        match self.steps.back() {
            Some(last) => self.destroyed.push_back((last.index, gone)),
            None => return Some(ForgottenObject::Other(gone)),
        }
        None
    }

    /// Where something happened, if that is not too long ago.
    pub(crate) fn locate(&self, place: &ProgramLocation) -> Option<HistoryLocation<'_>> {
        self.step(step_of(place))?.locate(place)
    }

    /// Takes out what a call did; none if it did nothing.
    pub(crate) fn remove(&mut self, source: CallSource) -> Vec<HistoryStep> {
        let mut removed = Vec::new();
        // It is among the last: nobody takes back what happened long ago.
        while let Some(at) = self.steps.iter().rposition(|it| it.source == source) {
            removed.extend(self.steps.remove(at));
        }
        self.commands -= removed.iter().map(|it| it.commands).sum::<usize>();
        removed
    }

    /// Everything in it, in its order: what was signaled before, and the steps, each with what ended right after it.
    pub(crate) fn into_parts(self) -> (SignaledSemaphores, Vec<(HistoryStep, Vec<Destroyed>)>) {
        let StepHistory { steps: kept, destroyed: mut ends, signaled_before: before, .. } = self;
        let mut all: Vec<(HistoryStep, Vec<Destroyed>)> = Vec::new();
        for history_step in kept {
            // What ended after a step that was taken out ended after the one before it.
            if let Some((_, gone)) = all.last_mut() {
                while let Some((_, end)) = ends.pop_front_if(|end| end.0 < history_step.index) {
                    gone.push(end);
                }
            }
            all.push((history_step, Vec::new()));
        }
        if let Some((_, gone)) = all.last_mut() {
            gone.extend(ends.into_iter().map(|it| it.1));
        }
        (before, all)
    }

    /// The same again, with new numbers.
    pub(crate) fn from_parts(before: SignaledSemaphores, all: Vec<(HistoryStep, Vec<Destroyed>)>) -> StepHistory {
        let mut window = StepHistory { signaled_before: before, ..StepHistory::default() };
        for (kept, gone) in all {
            window.commands += kept.commands;
            window.destroyed.extend(gone.into_iter().map(|it| (kept.index, it)));
            window.steps.push_back(kept);
        }
        window
    }

    /// All that is kept.
    pub(crate) fn all_steps(&self) -> impl Iterator<Item = &HistoryStep> {
        self.steps.iter()
    }

    /// The steps from one on, and what was signaled before.
    pub(crate) fn steps_since(&self, step: u32) -> (SignaledSemaphores, impl Iterator<Item = &HistoryStep>) {
        let first = self.steps.partition_point(|it| it.index < step);
        let mut before = self.signaled_before.clone();
        self.steps.iter().take(first).for_each(|it| before.apply_step(&it.step));
        (before, self.steps.iter().skip(first))
    }

    /// What bound memory to sparse resources before a step.
    pub(crate) fn sparse_binds_before(&self, step: u32) -> impl Iterator<Item = &HistoryStep> {
        let before = self.steps.iter().take_while(move |it| it.index < step);
        before.filter(|it| matches!(it.step, HostStep::BindSparse { .. }))
    }

    pub(crate) fn step(&self, step: u32) -> Option<&HistoryStep> {
        self.steps.binary_search_by_key(&step, |it| it.index).ok().and_then(|it| self.steps.get(it))
    }
}

/// The step that something happened in.
pub(crate) fn step_of(place: &ProgramLocation) -> u32 {
    match place {
        ProgramLocation::Step(step) => *step,
        ProgramLocation::Command(at) => at.step,
    }
}

impl SignaledSemaphores {
    /// What is signaled, in a fixed order.
    pub(crate) fn points(&self) -> Vec<SemaphorePoint> {
        let binary = self.binary.iter().map(|it| SemaphorePoint { semaphore: *it, value: None });
        let values = self.values.iter().map(|(it, value)| SemaphorePoint { semaphore: *it, value: Some(*value) });
        let mut all: Vec<SemaphorePoint> = binary.chain(values).collect();
        all.sort_by_key(|it| (it.semaphore, it.value));
        all
    }

    /// A step is over.
    fn apply_step(&mut self, step: &HostStep) {
        match step {
            HostStep::Submit { batches, .. } => {
                for batch in batches {
                    for wait in &batch.waits {
                        self.take_signal(wait.point);
                    }
                    batch.signals.iter().for_each(|it| self.signal(it.point));
                }
            }
            HostStep::BindSparse { waits, signals, .. } => {
                for wait in waits {
                    self.take_signal(*wait);
                }
                signals.iter().for_each(|it| self.signal(*it));
            }
            HostStep::SignalSemaphore(point) => self.signal(*point),
            HostStep::Acquire { semaphore: Some(semaphore), .. } => {
                self.signal(SemaphorePoint { semaphore: *semaphore, value: None });
            }
            HostStep::Present { waits, .. } => {
                for wait in waits {
                    self.take_signal(SemaphorePoint { semaphore: *wait, value: None });
                }
            }
            _ => {}
        }
    }

    fn signal(&mut self, point: SemaphorePoint) {
        match point.value {
            None => drop(self.binary.insert(point.semaphore)),
            Some(value) => {
                let own = self.values.entry(point.semaphore).or_default();
                *own = (*own).max(value);
            }
        }
    }

    /// Whether somebody who waits need not wait; a binary semaphore is not signaled any more then.
    pub(crate) fn take_signal(&mut self, point: SemaphorePoint) -> bool {
        match point.value {
            None => self.binary.remove(&point.semaphore),
            Some(value) => self.values.get(&point.semaphore).is_some_and(|it| *it >= value),
        }
    }

    fn forget(&mut self, semaphore: SemaphoreId) {
        self.binary.remove(&semaphore);
        self.values.remove(&semaphore);
    }
}
