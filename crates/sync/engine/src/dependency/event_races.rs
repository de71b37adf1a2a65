//! Finds commands that set, reset or wait for one event without a defined order.
//!
//! An event has one state for the whole device. Setting and resetting it race like writes, and the result of a wait is
//! undefined if two unordered commands set the event before. The rules are those of the Khronos layer, with two
//! differences that report less. A barrier counts if its first scope has the stages at which the event was set or
//! reset. And if the host waits for work, everything submitted before that work is ordered as well.
//!
//! Not checked: events used by several queues, which the specification does not allow.

use std::collections::BTreeMap;

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, CommandLocation, Dependency, EventId, HostStep, ProgramLocation, Queue, QueueId,
    SetEvent, SubmitBatch, WaitEvents,
};

use crate::access::usages::StageSet;
use crate::check::Engine;
use crate::command_buffer::recording::{is_same_execution, is_same_path};
use crate::dependency::scopes;

/// Largest depth of command buffers that execute others, as in the engine.
const DEPTH_MAX: usize = 16;
const ALL_COMMANDS: u64 = PipelineStageFlags2::ALL_COMMANDS.0;

/// The two uses that race, the later one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventRaceKind {
    SetAfterReset,
    SetAfterSet,
    SetAfterWait,
    ResetAfterSet,
    /// A wait for an event that was set in a race.
    WaitAfterRace,
}

impl EventRaceKind {
    pub const ALL: [EventRaceKind; 5] = [
        EventRaceKind::SetAfterReset,
        EventRaceKind::SetAfterSet,
        EventRaceKind::SetAfterWait,
        EventRaceKind::ResetAfterSet,
        EventRaceKind::WaitAfterRace,
    ];
}

/// Two commands that use an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRace {
    pub kind: EventRaceKind,
    pub at: ProgramLocation,
    pub prior: ProgramLocation,
    pub event: EventId,
}

/// Follows the events of a device, submission by submission.
#[derive(Clone, Debug, Default)]
pub struct EventRaces {
    queues: BTreeMap<QueueId, BTreeMap<EventId, EventUse>>,
}

/// Commands of a command buffer with their indices. The caller may skip actions.
pub type IndexedCommands<'a> = Box<dyn Iterator<Item = (u32, &'a Command)> + 'a>;

/// The last use of an event.
#[derive(Clone, Debug)]
struct EventUse {
    kind: EventUseKind,
    location: ProgramLocation,
    /// The stages of the use; empty for a wait.
    stages: StageSet,
    /// The stages that a later dependency orders after the use.
    after: StageSet,
    /// The earlier use with which it races.
    race: Option<ProgramLocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventUseKind {
    Set,
    Reset,
    Waited,
}

/// The races of a whole program.
pub fn event_races(program: &lavascope_sync_ir::Program) -> Vec<EventRace> {
    let mut races = EventRaces::default();
    let buffer = |id: CommandBufferId| -> Option<IndexedCommands<'_>> {
        let buffer = program.command_buffers.get(id.0 as usize)?;
        Some(Box::new((0..).zip(&buffer.commands)))
    };
    let steps = program.steps.iter().enumerate();
    steps.flat_map(|(index, step)| races.step(index as u32, step, &program.queues, &buffer)).collect()
}

/// The races inside of one command buffer, found while it is recorded: they are there whatever comes before it.
#[derive(Clone, Debug, Default)]
pub struct RecordedEventRaces {
    events: BTreeMap<EventId, EventUse>,
    found: Vec<EventRace>,
}

impl RecordedEventRaces {
    /// Whether no event was used so far.
    pub fn is_idle(&self) -> bool {
        self.events.is_empty()
    }

    /// A command is recorded behind those before it, for such a queue. Gives its races with them.
    pub fn record<'b>(
        &mut self,
        index: u32,
        command: &Command,
        queue: Queue,
        buffer: &dyn Fn(CommandBufferId) -> Option<IndexedCommands<'b>>,
    ) -> &[EventRace] {
        let mut at = CommandLocation { step: Engine::RECORDING, batch: 0, primary: 0, path: vec![index] };
        let mut walk = RaceChecker { events: &mut self.events, flags: queue.flags, buffer, found: Vec::new() };
        walk.command(command, &mut at);
        let (first, found) = (self.found.len(), walk.found);
        self.found.extend(found);
        &self.found[first..]
    }

    /// Whether a race that is found when the command buffer is executed was found while it was recorded.
    pub fn has_found(&self, race: &EventRace) -> bool {
        let is_same = |own: &EventRace| {
            (own.kind, own.event) == (race.kind, race.event)
                && is_same_path(&own.at, &race.at)
                && is_same_path(&own.prior, &race.prior)
        };
        is_same_execution(&race.at, &race.prior) && self.found.iter().any(is_same)
    }
}

/// Whether a command has to do with events.
pub fn uses_events(command: &Command) -> bool {
    matches!(command, Command::SetEvent(_) | Command::ResetEvent { .. } | Command::WaitEvents(_))
}

impl EventRaces {
    /// Whether steps without events can be skipped.
    pub fn is_idle(&self) -> bool {
        self.queues.values().all(BTreeMap::is_empty)
    }

    /// Processes one step of the host.
    pub fn step<'b>(
        &mut self,
        number: u32,
        step: &HostStep,
        queues: &[Queue],
        buffer: &dyn Fn(CommandBufferId) -> Option<IndexedCommands<'b>>,
    ) -> Vec<EventRace> {
        match step {
            HostStep::Submit { queue, batches, .. } => {
                let flags = queues.get(queue.0 as usize).map_or(0, |it| it.flags);
                let events = self.queues.entry(*queue).or_default();
                let mut walk = RaceChecker { events, flags, buffer, found: Vec::new() };
                for (index, batch) in batches.iter().enumerate() {
                    walk.batch(number, index as u32, batch);
                }
                walk.found
            }
            HostStep::WaitFences(_) | HostStep::QueueIdle(_) | HostStep::DeviceIdle | HostStep::WaitSemaphores(_) => {
                self.queues.clear();
                Vec::new()
            }
            HostStep::SetEvent(event) | HostStep::ResetEvent(event) => {
                self.forget(*event);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Forgets an event that is destroyed, or that the host has set or reset.
    pub fn forget(&mut self, event: EventId) {
        self.queues.values_mut().for_each(|it| drop(it.remove(&event)));
    }
}

struct RaceChecker<'a, 'b> {
    events: &'a mut BTreeMap<EventId, EventUse>,
    flags: u32,
    buffer: &'a dyn Fn(CommandBufferId) -> Option<IndexedCommands<'b>>,
    found: Vec<EventRace>,
}

impl RaceChecker<'_, '_> {
    fn batch(&mut self, step: u32, batch: u32, submit_batch: &SubmitBatch) {
        for (primary, id) in submit_batch.command_buffers.iter().enumerate() {
            let mut at = CommandLocation { step, batch, primary: primary as u32, path: Vec::new() };
            self.commands(*id, &mut at);
        }
    }

    fn commands(&mut self, id: CommandBufferId, at: &mut CommandLocation) {
        for (index, command) in (self.buffer)(id).into_iter().flatten() {
            at.path.push(index);
            self.command(command, at);
            at.path.pop();
        }
    }

    fn command(&mut self, command: &Command, at: &mut CommandLocation) {
        match command {
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, .. }) => self.barrier(*src_stages, *dst_stages),
            Command::Barrier(Barrier::Sync2 { dependencies }) => {
                dependencies.iter().for_each(|it| self.barrier(it.scope.src_stages, it.scope.dst_stages));
            }
            Command::SetEvent(SetEvent::Sync1 { event, stages }) => self.set(*event, *stages, at),
            Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
                self.set(*event, combined_stages(dependencies, |it| it.scope.src_stages), at);
            }
            Command::ResetEvent { event, stages } => self.reset(*event, *stages, at),
            Command::WaitEvents(WaitEvents::Sync1 { events, dst_stages, .. }) => {
                events.iter().for_each(|it| self.wait(*it, *dst_stages, at));
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                for (event, dependencies) in events {
                    self.wait(*event, combined_stages(dependencies, |it| it.scope.dst_stages), at);
                }
            }
            Command::Execute(executed) if at.path.len() < DEPTH_MAX => {
                for (place, id) in executed.iter().enumerate() {
                    at.path.push(place as u32);
                    self.commands(*id, at);
                    at.path.pop();
                }
            }
            _ => {}
        }
    }

    fn barrier(&mut self, src_stages: u64, dst_stages: u64) {
        let (src, dst) =
            (scopes::source_stages(src_stages, self.flags), scopes::destination_stages(dst_stages, self.flags));
        for used in self.events.values_mut() {
            let is_in = src_stages & ALL_COMMANDS != 0 || src.0 & (used.stages.0 | used.after.0) != 0;
            if is_in {
                used.after = used.after.union(dst);
            }
        }
    }

    fn set(&mut self, event: EventId, stages: u64, at: &CommandLocation) {
        let prior = self.unordered_last_use(event, stages);
        if let Some((how, prior)) = &prior {
            let kind = match how {
                EventUseKind::Reset => EventRaceKind::SetAfterReset,
                EventUseKind::Set => EventRaceKind::SetAfterSet,
                EventUseKind::Waited => EventRaceKind::SetAfterWait,
            };
            self.report(kind, at, prior, event);
        }
        // An event that was set in a race keeps that state until it is reset.
        let earlier = self.events.get(&event).and_then(|it| it.race.clone());
        let race = prior.filter(|it| it.0 == EventUseKind::Set).map(|it| it.1).or(earlier);
        self.add_use(event, EventUseKind::Set, at, scopes::source_stages(stages, self.flags), race);
    }

    fn reset(&mut self, event: EventId, stages: u64, at: &CommandLocation) {
        if let Some((EventUseKind::Set, prior)) = self.unordered_last_use(event, stages) {
            self.report(EventRaceKind::ResetAfterSet, at, &prior, event);
        }
        self.add_use(event, EventUseKind::Reset, at, scopes::source_stages(stages, self.flags), None);
    }

    fn wait(&mut self, event: EventId, dst_stages: u64, at: &CommandLocation) {
        let Some(used) = self.events.get(&event).filter(|it| it.kind != EventUseKind::Reset) else { return };
        if let Some(race) = used.race.clone() {
            self.report(EventRaceKind::WaitAfterRace, at, &race, event);
        }
        let after = scopes::destination_stages(dst_stages, self.flags);
        self.add_use(event, EventUseKind::Waited, at, StageSet::default(), None);
        if let Some(used) = self.events.get_mut(&event) {
            used.after = after;
        }
    }

    /// The last use, if nothing orders it before a use at these stages.
    fn unordered_last_use(&self, event: EventId, stages: u64) -> Option<(EventUseKind, ProgramLocation)> {
        let used = self.events.get(&event)?;
        let own = scopes::source_stages(stages, self.flags);
        let is_ordered = stages & ALL_COMMANDS != 0 || used.after.0 & own.0 != 0;
        (!is_ordered).then(|| (used.kind, used.location.clone()))
    }

    fn add_use(
        &mut self,
        event: EventId,
        how: EventUseKind,
        at: &CommandLocation,
        stages: StageSet,
        race: Option<ProgramLocation>,
    ) {
        let place = ProgramLocation::Command(at.clone());
        self.events.insert(event, EventUse { kind: how, location: place, stages, after: StageSet::default(), race });
    }

    fn report(&mut self, kind: EventRaceKind, at: &CommandLocation, prior: &ProgramLocation, event: EventId) {
        self.found.push(EventRace { kind, at: ProgramLocation::Command(at.clone()), prior: prior.clone(), event });
    }
}

fn combined_stages(dependencies: &[Dependency], stages: impl Fn(&Dependency) -> u64) -> u64 {
    dependencies.iter().fold(0, |all, it| all | stages(it))
}
