//! What was recorded into a command buffer, and whether it is being recorded again just as it was.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_event::LabelPath;
use lavascope_program::{Access, Command, CommandBuffer, CommandBufferId};
use lavascope_sync::uses_events;

/// Accesses for which room is not worth giving back.
const ROOM_MIN: usize = 1024;

/// A command buffer.
pub(crate) struct Recording {
    /// What was recorded; while it is recorded again in the same way, all of what it was before.
    recorded: Recorded,
    /// What is being recorded in another way. Nobody else has it, so that nothing must be asked before it grows.
    open: Option<Box<Body>>,
    /// As long as it is recorded again in the same way: how many commands.
    repeated: Option<usize>,
    /// Commands that ever were.
    #[cfg(test)]
    pub(crate) all_repeated: usize,
}

/// What was recorded, with the numbers of the tracker. Recorded anew in the same way, it is the same body.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) object: ObjectId,
    /// How often the command buffer had been recorded before.
    pub(crate) resets: u32,
    body: Arc<Body>,
}

#[derive(Clone, Default)]
pub(crate) struct Body {
    /// Actions are empty lists here; their accesses lie one behind the other, unless they became known later.
    pub(crate) outline: CommandBuffer,
    accesses: Vec<Access>,
    /// For each command, where its accesses begin and end.
    spans: Vec<(u32, u32)>,
    /// For each command.
    pub(crate) marks: Vec<Mark>,
    pub(crate) has_events: bool,
}

/// The call that a command comes from.
#[derive(Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) function: ApiCommand,
    /// Its number among the commands that were recorded, from one.
    pub(crate) number: u32,
    /// Its number among the draws and dispatches, from one; zero, if it is none.
    pub(crate) launch: u32,
    /// The debug labels around it.
    pub(crate) labels: Option<LabelPath>,
    /// Of its call; zero, if nobody captured it.
    pub(crate) stack: u32,
}

impl Recording {
    pub(crate) fn new(object: ObjectId) -> Recording {
        Recording {
            recorded: Recorded { object, resets: 0, body: Arc::default() },
            open: None,
            repeated: None,
            #[cfg(test)]
            all_repeated: 0,
        }
    }

    /// Whether it is the same command buffer, and something was recorded into it.
    pub(crate) fn is_like(&mut self, object: ObjectId, is_secondary: bool) -> bool {
        let Recorded { object: own, body, .. } = self.recorded();
        *own == object && body.outline.is_secondary == is_secondary && !body.spans.is_empty()
    }

    /// Recorded anew, in the same way so far.
    pub(crate) fn repeat(&mut self, resets: u32) {
        self.recorded.resets = resets;
        self.repeated = Some(0);
    }

    /// Recorded anew, in the room that there is, unless somebody looks at what it was.
    pub(crate) fn clear(&mut self, object: ObjectId, is_secondary: bool, resets: u32) {
        self.repeated = None;
        (self.recorded.object, self.recorded.resets) = (object, resets);
        let own = Arc::get_mut(&mut self.recorded.body).map(|it| Box::new(std::mem::take(it)));
        let mut body = match self.open.take().or(own) {
            Some(mut body) => {
                body.clear();
                body
            }
            // Somebody looks: what is recorded next is about as much.
            None => Box::new(Body { has_events: false, ..self.recorded.body.first(0) }),
        };
        body.outline.is_secondary = is_secondary;
        self.open = Some(body);
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.recorded.object
    }

    pub(crate) fn resets(&self) -> u32 {
        self.recorded.resets
    }

    /// What was recorded so far, for others to keep.
    pub(crate) fn recorded(&mut self) -> &Recorded {
        if let Some(mut body) = self.open.take() {
            body.give_room_back();
            self.recorded.body = Arc::new(*body);
        }
        &self.recorded
    }

    /// The outline of that.
    pub(crate) fn outline(&self) -> &CommandBuffer {
        self.open.as_ref().map_or(&self.recorded.outline, |it| &it.outline)
    }

    #[inline]
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated.is_some()
    }

    /// Whether the next command is what it was the last time.
    pub(crate) fn repeats(&self, command: &Command, mark: &Mark) -> bool {
        let (Some(next), body) = (self.repeated, &self.recorded) else { return false };
        body.outline.commands.get(next) == Some(command) && body.marks[next] == *mark
    }

    /// The same for an action.
    #[inline]
    pub(crate) fn repeats_action(&self, accesses: &[Access], mark: &Mark) -> bool {
        let (Some(next), body) = (self.repeated, &self.recorded) else { return false };
        body.accesses(next) == Some(accesses) && body.marks[next] == *mark
    }

    /// Whether it is repeated; if so, by one command more.
    #[inline]
    pub(crate) fn goes_on(&mut self) -> bool {
        #[cfg(test)]
        {
            self.all_repeated += usize::from(self.is_repeated());
        }
        self.repeated = self.repeated.map(|it| it + 1);
        self.repeated.is_some()
    }

    /// If it is repeated, and nothing was recorded yet: by all commands at once. Says whether that was so.
    pub(crate) fn repeat_all(&mut self) -> bool {
        let is_begun = self.repeated == Some(0);
        if is_begun {
            self.repeated = Some(self.recorded.len());
        }
        is_begun
    }

    /// It is not repeated any more: what is recorded is what was repeated so far.
    pub(crate) fn keep_repeated(&mut self) {
        let Some(len) = self.repeated.take() else { return };
        // Somebody may look at what it was: only what stays is copied.
        match Arc::get_mut(&mut self.recorded.body) {
            Some(body) => body.truncate(len),
            None => self.recorded.body = Arc::new(self.recorded.body.first(len)),
        }
    }

    /// How many commands were recorded.
    pub(crate) fn len(&self) -> usize {
        self.open.as_ref().map_or(&*self.recorded.body, |it| it).len()
    }

    /// Nothing more is recorded. False if it is not all that it was before.
    pub(crate) fn settle(&mut self) -> bool {
        let len = self.recorded().len();
        let is_whole = self.repeated.is_none_or(|it| it == len);
        if is_whole {
            self.repeated = None;
        }
        is_whole
    }

    /// What was recorded so far, for an engine that is told of all of it.
    pub(crate) fn take_so_far(&mut self) -> Recorded {
        self.keep_repeated();
        self.recorded().clone()
    }

    pub(crate) fn push(&mut self, command: Command, accesses: &[Access], mark: Mark) {
        let body = self.body();
        let first = body.accesses.len();
        body.accesses.extend_from_slice(accesses);
        body.spans.push((first as u32, body.accesses.len() as u32));
        body.has_events |= uses_events(&command);
        body.outline.commands.push(command);
        body.marks.push(mark);
    }

    pub(crate) fn pop(&mut self) {
        let body = self.body();
        body.truncate(body.len().saturating_sub(1));
    }

    /// A command is another one from now on. Its accesses do not fit where the old ones are.
    pub(crate) fn replace(&mut self, index: usize, command: Command) {
        let body = self.body();
        body.spans[index].1 = body.spans[index].0;
        body.outline.commands[index] = command;
    }

    /// Of its own: what was submitted stays as it is.
    #[inline]
    fn body(&mut self) -> &mut Body {
        self.open.get_or_insert_with(|| Box::new(Arc::unwrap_or_clone(std::mem::take(&mut self.recorded.body))))
    }
}

impl Recorded {
    /// The same for what was recorded in the same way.
    pub(crate) fn address(&self) -> (usize, u32) {
        (Arc::as_ptr(&self.body).addr(), self.resets)
    }
}

impl Deref for Recorded {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.body
    }
}

impl Body {
    fn clear(&mut self) {
        if self.accesses.capacity() > 4 * self.accesses.len() + ROOM_MIN {
            self.accesses = Vec::new();
        }
        self.has_events = false;
        self.truncate(0);
    }

    /// What is kept for long takes no more room than it needs.
    fn give_room_back(&mut self) {
        let Body { outline, accesses, spans, marks, .. } = self;
        if accesses.capacity() > 4 * accesses.len() + ROOM_MIN || spans.capacity() > 4 * spans.len() + ROOM_MIN {
            outline.commands.shrink_to_fit();
            accesses.shrink_to_fit();
            spans.shrink_to_fit();
            marks.shrink_to_fit();
        }
    }

    /// The first commands, with room for as many as there are here.
    fn first(&self, len: usize) -> Body {
        let end = self.spans.get(len).map_or(self.accesses.len(), |it| it.0 as usize);
        let commands = first_of(&self.outline.commands, len);
        Body {
            outline: CommandBuffer { commands, is_secondary: self.outline.is_secondary },
            accesses: first_of(&self.accesses, end),
            spans: first_of(&self.spans, len),
            marks: first_of(&self.marks, len),
            has_events: self.has_events,
        }
    }

    /// Only the first commands stay.
    fn truncate(&mut self, len: usize) {
        let end = self.spans.get(len).map(|it| it.0 as usize);
        self.accesses.truncate(end.unwrap_or(self.accesses.len()));
        self.outline.commands.truncate(len);
        self.spans.truncate(len);
        self.marks.truncate(len);
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The accesses of an action.
    #[inline]
    pub(crate) fn accesses(&self, index: usize) -> Option<&[Access]> {
        let Command::Action(later) = self.outline.commands.get(index)? else { return None };
        let (first, end) = self.spans[index];
        Some(if later.is_empty() { &self.accesses[first as usize..end as usize] } else { later })
    }

    /// What was recorded.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Cow<'_, Command>> {
        self.outline.commands.iter().enumerate().map(|(index, it)| match self.accesses(index) {
            Some(accesses) => Cow::Owned(Command::Action(accesses.to_vec())),
            None => Cow::Borrowed(it),
        })
    }

    pub(crate) fn buffer(&self) -> CommandBuffer {
        let commands = self.commands().map(Cow::into_owned).collect();
        CommandBuffer { commands, is_secondary: self.outline.is_secondary }
    }

    /// The secondary command buffers that it executes.
    pub(crate) fn executes(&self) -> impl Iterator<Item = CommandBufferId> {
        let lists = self.outline.commands.iter().filter_map(|it| match it {
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
