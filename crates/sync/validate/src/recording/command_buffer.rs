//! The commands that were recorded into a command buffer, and whether the application records the same commands again.
//!
//! Most applications record a command buffer in each frame with the same commands as in the last frame. The engine need
//! not be called while
//!
//! - every command is the same,
//! - the last recording had no findings,
//! - no resource has moved in memory since,
//! - executed secondary command buffers are unchanged.
//!
//! At the first different command, the engine gets all commands up to there. A test records random command buffers
//! again and again, with small changes, and compares the findings with those of a validator that always calls the
//! engine.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_engine::{IndexedCommands, RecordedEventRaces, uses_events};
use lavascope_record::LabelPath;
use lavascope_sync_ir::{Access, AccessList, Certainty, Command, CommandBuffer, CommandBufferId};

/// Unused capacity in accesses or commands that is not worth freeing.
const SPARE_MIN: usize = 1024;

/// A command buffer.
pub(crate) struct CommandBufferRecording {
    /// The recorded commands. While a recording repeats the last one: all commands of the last one.
    recorded: RecordedCommandBuffer,
    /// The commands of a recording that does not repeat the last one. Not shared, so it can grow without a check.
    open: Option<Box<CommandBufferBody>>,
    /// Number of repeated commands so far; none if the recording does not repeat the last one.
    repeated_commands: Option<usize>,
    /// Races of events in the recorded commands; none if they must be computed again.
    races: Option<RecordedEventRaces>,
    /// Number of commands that were ever repeated.
    #[cfg(test)]
    pub(crate) all_repeated: usize,
}

/// A recorded command buffer, with the ids of the tracker. A recording that repeats the last one has the same body.
#[derive(Clone)]
pub(crate) struct RecordedCommandBuffer {
    pub(crate) object: ObjectId,
    /// How often the command buffer had been recorded before.
    pub(crate) resets: u32,
    body: Arc<CommandBufferBody>,
}

#[derive(Clone, Default)]
pub(crate) struct CommandBufferBody {
    pub(crate) is_secondary: bool,
    pub(crate) has_events: bool,
    /// Where each command is stored.
    entries: Vec<CommandBufferEntry>,
    /// The call of each command.
    pub(crate) calls: Vec<CommandCall>,
    pub(crate) labels_at_end: LabelsAtEnd,
    /// The accesses of all actions.
    accesses: AccessList,
    /// Commands that are not actions.
    others: Vec<Command>,
    /// Accesses that became known later, each with the number of its command.
    late_accesses: Vec<(u32, Vec<Access>)>,
    /// Whether all accesses are certain. Computed when first needed.
    is_certain: OnceLock<bool>,
}

/// Where a command is stored.
#[derive(Clone, Copy)]
enum CommandBufferEntry {
    /// The begin and the end of its range in `accesses`.
    Action(u32, u32),
    /// Its index in `others`.
    Other(u32),
}

/// What a command buffer does to the debug labels that are open on its queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelsAtEnd {
    /// Labels of command buffers before it that it closes.
    pub(crate) closed: u16,
    /// Labels that it leaves open.
    pub(crate) open: Option<LabelPath>,
}

/// The call that a command comes from.
#[derive(Clone, PartialEq)]
pub(crate) struct CommandCall {
    pub(crate) function: ApiCommand,
    /// Its number among the recorded commands, from one.
    pub(crate) number: u32,
    /// Its number among the draws and dispatches, from one; zero for other commands.
    pub(crate) launch: u32,
    /// The debug labels around it that the command buffer itself opened.
    pub(crate) labels: Option<LabelPath>,
    /// Number of labels that were open before the command buffer, and that it has closed so far.
    pub(crate) closed_labels: u16,
    /// The call stack; zero if it was not captured.
    pub(crate) stack: u32,
}

impl CommandBufferRecording {
    pub(crate) fn new(object: ObjectId) -> CommandBufferRecording {
        CommandBufferRecording {
            recorded: RecordedCommandBuffer { object, resets: 0, body: Arc::default() },
            open: None,
            repeated_commands: None,
            races: Some(RecordedEventRaces::default()),
            #[cfg(test)]
            all_repeated: 0,
        }
    }

    /// Whether this is the recording of a command buffer of this kind, and has commands.
    pub(crate) fn freeze_and_match(&mut self, object: ObjectId, is_secondary: bool) -> bool {
        let RecordedCommandBuffer { object: own, body, .. } = self.freeze();
        *own == object && body.is_secondary == is_secondary && !body.entries.is_empty()
    }

    /// Begins a recording that may repeat the last one.
    pub(crate) fn begin_repeat(&mut self, resets: u32) {
        self.recorded.resets = resets;
        self.repeated_commands = Some(0);
    }

    /// Begins a recording without commands. Reuses the memory of the last one, unless that is shared.
    pub(crate) fn clear(&mut self, object: ObjectId, is_secondary: bool, resets: u32) {
        self.repeated_commands = None;
        self.races = Some(RecordedEventRaces::default());
        (self.recorded.object, self.recorded.resets) = (object, resets);
        let own = Arc::get_mut(&mut self.recorded.body).map(|it| Box::new(std::mem::take(it)));
        let mut body = match self.open.take().or(own) {
            Some(mut body) => {
                body.clear();
                body
            }
            // The last recording is shared. The next one will have about the same size.
            None => Box::new(CommandBufferBody { has_events: false, ..self.recorded.body.clone_prefix(0) }),
        };
        body.is_secondary = is_secondary;
        self.open = Some(body);
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.recorded.object
    }

    pub(crate) fn resets(&self) -> u32 {
        self.recorded.resets
    }

    /// The commands so far, in a form that can be shared.
    pub(crate) fn freeze(&mut self) -> &RecordedCommandBuffer {
        if let Some(mut body) = self.open.take() {
            body.shrink();
            self.recorded.body = Arc::new(*body);
        }
        &self.recorded
    }

    /// The commands so far, for reading.
    pub(crate) fn current(&self) -> &CommandBufferBody {
        self.open.as_deref().unwrap_or(&self.recorded.body)
    }

    #[inline]
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated_commands.is_some()
    }

    /// Whether a command equals the next one of the last recording.
    pub(crate) fn matches_next(&self, command: &Command, call: &CommandCall) -> bool {
        let (Some(next), body) = (self.repeated_commands, &self.recorded) else { return false };
        body.other(next) == Some(command) && body.calls[next] == *call
    }

    /// The same for an action.
    #[inline]
    pub(crate) fn matches_next_action(&self, accesses: &[Access], call: &CommandCall) -> bool {
        let (Some(next), body) = (self.repeated_commands, &self.recorded) else { return false };
        body.is_action(next, accesses) && body.calls[next] == *call
    }

    /// Counts a repeated command. Returns false if the recording does not repeat the last one.
    #[inline]
    pub(crate) fn advance_repeated(&mut self) -> bool {
        #[cfg(test)]
        {
            self.all_repeated += usize::from(self.is_repeated());
        }
        self.repeated_commands = self.repeated_commands.map(|it| it + 1);
        self.repeated_commands.is_some()
    }

    /// Repeats all commands at once. Returns false if that is impossible, because the recording does not repeat the last
    /// one or has commands already.
    pub(crate) fn repeat_all(&mut self) -> bool {
        let is_begun = self.repeated_commands == Some(0);
        if is_begun {
            self.repeated_commands = Some(self.recorded.len());
        }
        is_begun
    }

    /// Stops repeating: only the commands that were repeated so far stay recorded.
    pub(crate) fn truncate_to_repeated(&mut self) {
        let Some(len) = self.repeated_commands.take() else { return };
        self.races = None;
        // If the last recording is shared, only the commands that stay are copied.
        match Arc::get_mut(&mut self.recorded.body) {
            Some(body) => body.truncate(len),
            None => self.recorded.body = Arc::new(self.recorded.body.clone_prefix(len)),
        }
    }

    /// How many accesses of actions were recorded.
    pub(crate) fn access_count(&self) -> usize {
        self.current().accesses.len()
    }

    /// How many commands were recorded.
    pub(crate) fn len(&self) -> usize {
        self.current().len()
    }

    /// Ends a recording. Returns false if it repeats only a part of the last one.
    pub(crate) fn finish_repeat(&mut self) -> bool {
        let len = self.freeze().len();
        let is_whole = self.repeated_commands.is_none_or(|it| it == len);
        if is_whole {
            self.repeated_commands = None;
        }
        is_whole
    }

    /// The commands so far, to record all of them again in the engine.
    pub(crate) fn take_recorded(&mut self) -> RecordedCommandBuffer {
        self.truncate_to_repeated();
        self.freeze().clone()
    }

    /// Takes the races of its events. The caller puts them back with `set_races`.
    pub(crate) fn take_races(&mut self) -> Option<RecordedEventRaces> {
        self.races.take()
    }

    pub(crate) fn set_races(&mut self, races: RecordedEventRaces) {
        self.races = Some(races);
    }

    /// Whether it has used no event so far.
    pub(crate) fn is_without_events(&self) -> bool {
        self.races.as_ref().is_some_and(RecordedEventRaces::is_idle)
    }

    pub(crate) fn push(&mut self, command: Command, call: CommandCall) {
        let body = self.body();
        body.has_events |= uses_events(&command);
        body.entries.push(CommandBufferEntry::Other(body.others.len() as u32));
        body.others.push(command);
        body.calls.push(call);
    }

    pub(crate) fn push_action(&mut self, accesses: &[Access], call: CommandCall) {
        let body = self.body();
        let first = body.accesses.len() as u32;
        body.accesses.extend(accesses);
        body.entries.push(CommandBufferEntry::Action(first, body.accesses.len() as u32));
        body.calls.push(call);
    }

    /// Sets what the recording, which ends, does to the labels of its queue.
    pub(crate) fn set_labels_at_end(&mut self, labels: LabelsAtEnd) {
        if self.current().labels_at_end != labels {
            self.body().labels_at_end = labels;
        }
    }

    pub(crate) fn pop(&mut self) {
        self.races = None;
        let body = self.body();
        body.truncate(body.len().saturating_sub(1));
    }

    /// Replaces the accesses of an action. The new ones are stored apart, because their number may differ.
    pub(crate) fn replace(&mut self, index: usize, accesses: Vec<Access>) {
        let body = self.body();
        let Some(CommandBufferEntry::Action(first, end)) = body.entries.get_mut(index) else { return };
        *end = *first;
        body.late_accesses.retain(|it| it.0 as usize != index);
        body.late_accesses.push((index as u32, accesses));
    }

    /// The commands, for changes. Submitted copies stay unchanged.
    #[inline]
    fn body(&mut self) -> &mut CommandBufferBody {
        self.open.get_or_insert_with(|| {
            let body = Arc::unwrap_or_clone(std::mem::take(&mut self.recorded.body));
            Box::new(CommandBufferBody { is_certain: OnceLock::new(), ..body })
        })
    }
}

impl RecordedCommandBuffer {
    /// Equal for two copies of the same recording.
    pub(crate) fn identity(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.body).addr(), self.resets)
    }
}

impl Deref for RecordedCommandBuffer {
    type Target = CommandBufferBody;

    fn deref(&self) -> &CommandBufferBody {
        &self.body
    }
}

impl CommandBufferBody {
    fn clear(&mut self) {
        if self.accesses.capacity() > 4 * self.accesses.len() + SPARE_MIN {
            self.accesses = AccessList::default();
        }
        self.has_events = false;
        self.truncate(0);
    }

    /// Frees unused capacity, because the recording is kept for long.
    fn shrink(&mut self) {
        let CommandBufferBody { entries, calls, accesses, others, .. } = self;
        if accesses.capacity() > 4 * accesses.len() + SPARE_MIN || entries.capacity() > 4 * entries.len() + SPARE_MIN {
            others.shrink_to_fit();
            accesses.shrink_to_fit();
            entries.shrink_to_fit();
            calls.shrink_to_fit();
        }
    }

    /// A copy of the first commands, with the capacity for as many as there are here.
    fn clone_prefix(&self, len: usize) -> CommandBufferBody {
        let (accesses, others) = self.prefix_lengths(len);
        CommandBufferBody {
            is_secondary: self.is_secondary,
            has_events: self.has_events,
            entries: first_of(&self.entries, len),
            calls: first_of(&self.calls, len),
            labels_at_end: LabelsAtEnd::default(),
            accesses: self.accesses.clone_prefix(accesses),
            others: first_of(&self.others, others),
            late_accesses: self.late_accesses.iter().filter(|it| (it.0 as usize) < len).cloned().collect(),
            is_certain: OnceLock::new(),
        }
    }

    /// Removes all but the first commands.
    fn truncate(&mut self, len: usize) {
        let (accesses, others) = self.prefix_lengths(len);
        self.accesses.truncate(accesses);
        self.others.truncate(others);
        self.late_accesses.retain(|it| (it.0 as usize) < len);
        self.is_certain = OnceLock::new();
        self.labels_at_end = LabelsAtEnd::default();
        self.entries.truncate(len);
        self.calls.truncate(len);
    }

    /// How many accesses and other commands the first commands have.
    fn prefix_lengths(&self, len: usize) -> (usize, usize) {
        if len == 0 {
            return (0, 0);
        }
        let (mut action, mut other) = (None, None);
        for place in self.entries.get(len..).unwrap_or(&[]) {
            match *place {
                CommandBufferEntry::Action(first, _) => action = action.or(Some(first as usize)),
                CommandBufferEntry::Other(at) => other = other.or(Some(at as usize)),
            }
        }
        (action.unwrap_or(self.accesses.len()), other.unwrap_or(self.others.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The accesses of an action.
    pub(crate) fn accesses(&self, index: usize) -> Option<Vec<Access>> {
        let CommandBufferEntry::Action(first, end) = *self.entries.get(index)? else { return None };
        let later = self.late_accesses.iter().find(|it| it.0 as usize == index);
        Some(later.map_or_else(|| self.accesses.range(first as usize..end as usize), |it| it.1.clone()))
    }

    /// Whether all accesses are made for certain.
    pub(crate) fn is_certain(&self) -> bool {
        let is_certain = |it: &Access| it.certainty == Certainty::Certain;
        *self.is_certain.get_or_init(|| {
            (0..self.accesses.len()).all(|it| self.accesses.certainty(it) == Certainty::Certain)
                && self.late_accesses.iter().all(|it| it.1.iter().all(is_certain))
        })
    }

    /// Whether a command is an action with these accesses.
    #[inline]
    fn is_action(&self, index: usize, accesses: &[Access]) -> bool {
        if !self.late_accesses.is_empty() {
            return self.accesses(index).is_some_and(|it| it == accesses);
        }
        let Some(CommandBufferEntry::Action(first, end)) = self.entries.get(index) else { return false };
        let mut places = *first as usize..*end as usize;
        places.len() == accesses.len()
            && accesses.iter().all(|it| places.next().is_some_and(|at| self.accesses.is_equal_at(at, it)))
    }

    /// A command that is not an action.
    pub(crate) fn other(&self, index: usize) -> Option<&Command> {
        let CommandBufferEntry::Other(at) = self.entries.get(index)? else { return None };
        self.others.get(*at as usize)
    }

    /// Commands that are not actions, each with its number.
    pub(crate) fn others(&self) -> IndexedCommands<'_> {
        Box::new((0..self.len()).filter_map(|it| Some((it as u32, self.other(it)?))))
    }

    /// All commands.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Cow<'_, Command>> {
        (0..self.len()).filter_map(|index| match self.other(index) {
            Some(command) => Some(Cow::Borrowed(command)),
            None => Some(Cow::Owned(Command::Action(self.accesses(index)?))),
        })
    }

    pub(crate) fn buffer(&self) -> CommandBuffer {
        let commands = self.commands().map(Cow::into_owned).collect();
        CommandBuffer { commands, is_secondary: self.is_secondary }
    }

    /// The secondary command buffers that it executes.
    pub(crate) fn executes(&self) -> impl Iterator<Item = CommandBufferId> {
        let lists = self.others.iter().filter_map(|other| match other {
            Command::Execute(all) => Some(all),
            _ => None,
        });
        lists.flatten().copied()
    }
}

fn first_of<T: Clone>(all: &[T], len: usize) -> Vec<T> {
    let mut first = Vec::with_capacity(all.len());
    first.extend_from_slice(&all[..len]);
    first
}
