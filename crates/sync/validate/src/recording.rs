//! What was recorded into a command buffer, and whether it is being recorded again just as it was.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_engine::{IndexedCommands, uses_events};
use lavascope_record::LabelPath;
use lavascope_sync_ir::{Access, AccessList, Command, CommandBuffer, CommandBufferId};

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
    pub(crate) is_secondary: bool,
    pub(crate) has_events: bool,
    /// For each command.
    places: Vec<Place>,
    /// For each command.
    pub(crate) marks: Vec<Mark>,
    /// Of all actions.
    accesses: AccessList,
    /// Commands that are not actions.
    others: Vec<Command>,
    /// Accesses that became known later, each with the number of its command.
    later: Vec<(u32, Vec<Access>)>,
}

/// Where a command is.
#[derive(Clone, Copy)]
enum Place {
    /// Where its accesses begin and end.
    Action(u32, u32),
    Other(u32),
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
        *own == object && body.is_secondary == is_secondary && !body.places.is_empty()
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
    pub(crate) fn recorded(&mut self) -> &Recorded {
        if let Some(mut body) = self.open.take() {
            body.give_room_back();
            self.recorded.body = Arc::new(*body);
        }
        &self.recorded
    }

    /// That, for those who only look at it.
    pub(crate) fn so_far(&self) -> &Body {
        self.open.as_deref().unwrap_or(&self.recorded.body)
    }

    #[inline]
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated.is_some()
    }

    /// Whether the next command is what it was the last time.
    pub(crate) fn repeats(&self, command: &Command, mark: &Mark) -> bool {
        let (Some(next), body) = (self.repeated, &self.recorded) else { return false };
        body.other(next) == Some(command) && body.marks[next] == *mark
    }

    /// The same for an action.
    #[inline]
    pub(crate) fn repeats_action(&self, accesses: &[Access], mark: &Mark) -> bool {
        let (Some(next), body) = (self.repeated, &self.recorded) else { return false };
        body.is_action(next, accesses) && body.marks[next] == *mark
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
        self.so_far().len()
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

    pub(crate) fn push(&mut self, command: Command, mark: Mark) {
        let body = self.body();
        body.has_events |= uses_events(&command);
        body.places.push(Place::Other(body.others.len() as u32));
        body.others.push(command);
        body.marks.push(mark);
    }

    pub(crate) fn push_action(&mut self, accesses: &[Access], mark: Mark) {
        let body = self.body();
        let first = body.accesses.len() as u32;
        body.accesses.extend(accesses);
        body.places.push(Place::Action(first, body.accesses.len() as u32));
        body.marks.push(mark);
    }

    pub(crate) fn pop(&mut self) {
        let body = self.body();
        body.truncate(body.len().saturating_sub(1));
    }

    /// An action makes other accesses from now on. They do not fit where the old ones are.
    pub(crate) fn replace(&mut self, index: usize, accesses: Vec<Access>) {
        let body = self.body();
        let Some(Place::Action(first, end)) = body.places.get_mut(index) else { return };
        *end = *first;
        body.later.retain(|it| it.0 as usize != index);
        body.later.push((index as u32, accesses));
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
            self.accesses = AccessList::default();
        }
        self.has_events = false;
        self.truncate(0);
    }

    /// What is kept for long takes no more room than it needs.
    fn give_room_back(&mut self) {
        let Body { places, marks, accesses, others, .. } = self;
        if accesses.capacity() > 4 * accesses.len() + ROOM_MIN || places.capacity() > 4 * places.len() + ROOM_MIN {
            others.shrink_to_fit();
            accesses.shrink_to_fit();
            places.shrink_to_fit();
            marks.shrink_to_fit();
        }
    }

    /// The first commands, with room for as many as there are here.
    fn first(&self, len: usize) -> Body {
        let (accesses, others) = self.before(len);
        Body {
            is_secondary: self.is_secondary,
            has_events: self.has_events,
            places: first_of(&self.places, len),
            marks: first_of(&self.marks, len),
            accesses: self.accesses.clone_prefix(accesses),
            others: first_of(&self.others, others),
            later: self.later.iter().filter(|it| (it.0 as usize) < len).cloned().collect(),
        }
    }

    /// Only the first commands stay.
    fn truncate(&mut self, len: usize) {
        let (accesses, others) = self.before(len);
        self.accesses.truncate(accesses);
        self.others.truncate(others);
        self.later.retain(|it| (it.0 as usize) < len);
        self.places.truncate(len);
        self.marks.truncate(len);
    }

    /// How many accesses and other commands the first commands have.
    fn before(&self, len: usize) -> (usize, usize) {
        if len == 0 {
            return (0, 0);
        }
        let (mut action, mut other) = (None, None);
        for place in self.places.get(len..).unwrap_or(&[]) {
            match *place {
                Place::Action(first, _) => action = action.or(Some(first as usize)),
                Place::Other(at) => other = other.or(Some(at as usize)),
            }
        }
        (action.unwrap_or(self.accesses.len()), other.unwrap_or(self.others.len()))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The accesses of an action.
    pub(crate) fn accesses(&self, index: usize) -> Option<Vec<Access>> {
        let Place::Action(first, end) = *self.places.get(index)? else { return None };
        let later = self.later.iter().find(|it| it.0 as usize == index);
        Some(later.map_or_else(|| self.accesses.range(first as usize..end as usize), |it| it.1.clone()))
    }

    /// Whether a command is an action with these accesses.
    #[inline]
    fn is_action(&self, index: usize, accesses: &[Access]) -> bool {
        if !self.later.is_empty() {
            return self.accesses(index).is_some_and(|it| it == accesses);
        }
        let Some(Place::Action(first, end)) = self.places.get(index) else { return false };
        let mut places = *first as usize..*end as usize;
        places.len() == accesses.len()
            && accesses.iter().all(|it| places.next().is_some_and(|at| self.accesses.is_equal_at(at, it)))
    }

    /// A command that is not an action.
    pub(crate) fn other(&self, index: usize) -> Option<&Command> {
        let Place::Other(at) = self.places.get(index)? else { return None };
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
        let lists = self.others.iter().filter_map(|it| match it {
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
