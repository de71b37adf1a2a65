//! What was recorded into a command buffer, and whether it is being recorded again just as it was.
//!
//! Most command buffers are recorded for each frame just as they were for the last one. As long as every command is
//! the same, nothing was found then, nothing moved in memory since, and executed command buffers are unchanged, the
//! engine is not called: it knows all of it. At the first difference the engine gets everything up to there. A test
//! records random command buffers again and again, with small changes, beside a validator that always calls the
//! engine.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_engine::{IndexedCommands, RecordedEventRaces, uses_events};
use lavascope_record::LabelPath;
use lavascope_sync_ir::{Access, AccessList, Certainty, Command, CommandBuffer, CommandBufferId};

/// Accesses for which room is not worth giving back.
const ROOM_MIN: usize = 1024;

/// A command buffer.
pub(crate) struct CommandBufferRecording {
    /// What was recorded; while it is recorded again in the same way, all of what it was before.
    recorded: RecordedCommandBuffer,
    /// What is being recorded in another way. Nobody else has it, so that nothing must be asked before it grows.
    open: Option<Box<CommandBufferBody>>,
    /// As long as it is recorded again in the same way: how many commands.
    repeated_commands: Option<usize>,
    /// Of the events in what is recorded. None: to be found again from all commands.
    races: Option<RecordedEventRaces>,
    /// Commands that ever were.
    #[cfg(test)]
    pub(crate) all_repeated: usize,
}

/// What was recorded, with the numbers of the tracker. Recorded anew in the same way, it is the same body.
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
    /// For each command.
    entries: Vec<CommandBufferEntry>,
    /// For each command.
    pub(crate) calls: Vec<CommandCall>,
    pub(crate) labels_at_end: LabelsAtEnd,
    /// Of all actions.
    accesses: AccessList,
    /// Commands that are not actions.
    others: Vec<Command>,
    /// Accesses that became known later, each with the number of its command.
    late_accesses: Vec<(u32, Vec<Access>)>,
    /// Whether all accesses are certain, once somebody has asked.
    is_certain: OnceLock<bool>,
}

/// Where a command is.
#[derive(Clone, Copy)]
enum CommandBufferEntry {
    /// Where its accesses begin and end.
    Action(u32, u32),
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
    /// Its number among the commands that were recorded, from one.
    pub(crate) number: u32,
    /// Its number among the draws and dispatches, from one; zero, if it is none.
    pub(crate) launch: u32,
    /// The debug labels around it that the command buffer itself opened,
    pub(crate) labels: Option<LabelPath>,
    /// and how many of those that were open when the command buffer began it has closed so far.
    pub(crate) closed_labels: u16,
    /// Of its call; zero, if nobody captured it.
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

    /// Whether it is the same command buffer, and something was recorded into it.
    pub(crate) fn freeze_and_match(&mut self, object: ObjectId, is_secondary: bool) -> bool {
        let RecordedCommandBuffer { object: own, body, .. } = self.freeze();
        *own == object && body.is_secondary == is_secondary && !body.entries.is_empty()
    }

    /// Recorded anew, in the same way so far.
    pub(crate) fn begin_repeat(&mut self, resets: u32) {
        self.recorded.resets = resets;
        self.repeated_commands = Some(0);
    }

    /// Recorded anew, in the room that there is, unless somebody looks at what it was.
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
            // Somebody looks: what is recorded next is about as much.
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

    /// What was recorded so far, for others to keep.
    pub(crate) fn freeze(&mut self) -> &RecordedCommandBuffer {
        if let Some(mut body) = self.open.take() {
            body.shrink();
            self.recorded.body = Arc::new(*body);
        }
        &self.recorded
    }

    /// That, for those who only look at it.
    pub(crate) fn current(&self) -> &CommandBufferBody {
        self.open.as_deref().unwrap_or(&self.recorded.body)
    }

    #[inline]
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated_commands.is_some()
    }

    /// Whether the next command is what it was the last time.
    pub(crate) fn matches_next(&self, command: &Command, mark: &CommandCall) -> bool {
        let (Some(next), body) = (self.repeated_commands, &self.recorded) else { return false };
        body.other(next) == Some(command) && body.calls[next] == *mark
    }

    /// The same for an action.
    #[inline]
    pub(crate) fn matches_next_action(&self, accesses: &[Access], mark: &CommandCall) -> bool {
        let (Some(next), body) = (self.repeated_commands, &self.recorded) else { return false };
        body.is_action(next, accesses) && body.calls[next] == *mark
    }

    /// Whether it is repeated; if so, by one command more.
    #[inline]
    pub(crate) fn advance_repeated(&mut self) -> bool {
        #[cfg(test)]
        {
            self.all_repeated += usize::from(self.is_repeated());
        }
        self.repeated_commands = self.repeated_commands.map(|it| it + 1);
        self.repeated_commands.is_some()
    }

    /// If it is repeated, and nothing was recorded yet: by all commands at once. Says whether that was so.
    pub(crate) fn repeat_all(&mut self) -> bool {
        let is_begun = self.repeated_commands == Some(0);
        if is_begun {
            self.repeated_commands = Some(self.recorded.len());
        }
        is_begun
    }

    /// It is not repeated any more: what is recorded is what was repeated so far.
    pub(crate) fn truncate_to_repeated(&mut self) {
        let Some(len) = self.repeated_commands.take() else { return };
        self.races = None;
        // Somebody may look at what it was: only what stays is copied.
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

    /// Nothing more is recorded. False if it is not all that it was before.
    pub(crate) fn finish_repeat(&mut self) -> bool {
        let len = self.freeze().len();
        let is_whole = self.repeated_commands.is_none_or(|it| it == len);
        if is_whole {
            self.repeated_commands = None;
        }
        is_whole
    }

    /// What was recorded so far, for an engine that is told of all of it.
    pub(crate) fn take_recorded(&mut self) -> RecordedCommandBuffer {
        self.truncate_to_repeated();
        self.freeze().clone()
    }

    /// The races of its events, to be given back.
    pub(crate) fn take_races(&mut self) -> Option<RecordedEventRaces> {
        self.races.take()
    }

    pub(crate) fn set_races(&mut self, races: RecordedEventRaces) {
        self.races = Some(races);
    }

    /// Whether no event was used in it so far.
    pub(crate) fn is_without_events(&self) -> bool {
        self.races.as_ref().is_some_and(RecordedEventRaces::is_idle)
    }

    pub(crate) fn push(&mut self, command: Command, mark: CommandCall) {
        let body = self.body();
        body.has_events |= uses_events(&command);
        body.entries.push(CommandBufferEntry::Other(body.others.len() as u32));
        body.others.push(command);
        body.calls.push(mark);
    }

    pub(crate) fn push_action(&mut self, accesses: &[Access], mark: CommandCall) {
        let body = self.body();
        let first = body.accesses.len() as u32;
        body.accesses.extend(accesses);
        body.entries.push(CommandBufferEntry::Action(first, body.accesses.len() as u32));
        body.calls.push(mark);
    }

    /// The recording ends, with these labels.
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

    /// An action makes other accesses from now on. They do not fit where the old ones are.
    pub(crate) fn replace(&mut self, index: usize, accesses: Vec<Access>) {
        let body = self.body();
        let Some(CommandBufferEntry::Action(first, end)) = body.entries.get_mut(index) else { return };
        *end = *first;
        body.late_accesses.retain(|it| it.0 as usize != index);
        body.late_accesses.push((index as u32, accesses));
    }

    /// Of its own: what was submitted stays as it is.
    #[inline]
    fn body(&mut self) -> &mut CommandBufferBody {
        self.open.get_or_insert_with(|| {
            let body = Arc::unwrap_or_clone(std::mem::take(&mut self.recorded.body));
            Box::new(CommandBufferBody { is_certain: OnceLock::new(), ..body })
        })
    }
}

impl RecordedCommandBuffer {
    /// The same for what was recorded in the same way.
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
        if self.accesses.capacity() > 4 * self.accesses.len() + ROOM_MIN {
            self.accesses = AccessList::default();
        }
        self.has_events = false;
        self.truncate(0);
    }

    /// What is kept for long takes no more room than it needs.
    fn shrink(&mut self) {
        let CommandBufferBody { entries: places, calls: marks, accesses, others, .. } = self;
        if accesses.capacity() > 4 * accesses.len() + ROOM_MIN || places.capacity() > 4 * places.len() + ROOM_MIN {
            others.shrink_to_fit();
            accesses.shrink_to_fit();
            places.shrink_to_fit();
            marks.shrink_to_fit();
        }
    }

    /// The first commands, with room for as many as there are here.
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

    /// Only the first commands stay.
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

    /// What was recorded.
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
