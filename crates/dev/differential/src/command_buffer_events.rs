//! Events of one command buffer: two layers follow an event over command buffers by rules of their own, and a wait for
//! an event that is not set never ends.

use lavascope_sync_ir::{Command, EventId, HostStep, Program, SetEvent, WaitEvents};

/// The program with events of their own for each command buffer, without waits for events that are not set. A command
/// buffer that is executed twice has no events: it would leave them set.
pub(crate) fn separate_events(program: &Program) -> Program {
    let mut made = program.clone();
    let mut next = 0;
    for at in 0..made.command_buffers.len() {
        let is_once = executions(program, at) < 2;
        let mut events = BufferEvents { first: next, count: program.event_count, set: Vec::new() };
        let commands = std::mem::take(&mut made.command_buffers[at].commands);
        let kept = commands.into_iter().filter_map(|it| if is_once { events.renamed(it) } else { plain(it) });
        made.command_buffers[at].commands = kept.collect();
        next += program.event_count;
    }
    made.event_count = next;
    drop_unused_events(&mut made);
    made
}

/// How often a command buffer is executed.
fn executions(program: &Program, wanted: usize) -> usize {
    let submits = program.steps.iter().filter_map(|step| match step {
        HostStep::Submit { batches, .. } => Some(batches),
        _ => None,
    });
    submits.flatten().flat_map(|it| &it.command_buffers).map(|it| executions_in(program, it.0 as usize, wanted)).sum()
}

fn executions_in(program: &Program, own: usize, wanted: usize) -> usize {
    let executed = program.command_buffers[own].commands.iter().filter_map(|command| match command {
        Command::Execute(all) => Some(all),
        _ => None,
    });
    usize::from(own == wanted)
        + executed.flatten().map(|it| executions_in(program, it.0 as usize, wanted)).sum::<usize>()
}

/// Whatever is not about events.
fn plain(command: Command) -> Option<Command> {
    let is_event = matches!(command, Command::SetEvent(_) | Command::ResetEvent { .. } | Command::WaitEvents(_));
    (!is_event).then_some(command)
}

/// The events of a command buffer.
struct BufferEvents {
    /// The number of the first one.
    first: u32,
    count: u32,
    /// Those that are set.
    set: Vec<EventId>,
}

impl BufferEvents {
    fn own(&self, event: EventId) -> EventId {
        EventId(self.first + event.0 % self.count)
    }

    fn set(&mut self, event: EventId) -> EventId {
        let own = self.own(event);
        self.set.push(own);
        own
    }

    /// The event if it is set.
    fn waited(&self, event: EventId) -> Option<EventId> {
        Some(self.own(event)).filter(|it| self.set.contains(it))
    }

    fn renamed(&mut self, command: Command) -> Option<Command> {
        match command {
            Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
                Some(Command::SetEvent(SetEvent::Sync1 { event: self.set(event), stages }))
            }
            Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
                Some(Command::SetEvent(SetEvent::Sync2 { event: self.set(event), dependencies }))
            }
            Command::ResetEvent { event, stages } => {
                let event = self.own(event);
                self.set.retain(|it| *it != event);
                Some(Command::ResetEvent { event, stages })
            }
            Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }) => {
                let own: Option<Vec<EventId>> = events.into_iter().map(|it| self.waited(it)).collect();
                let events = own.filter(|it| !it.is_empty())?;
                Some(Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }))
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                let named = events.into_iter().map(|(event, it)| Some((self.waited(event)?, it)));
                let events = named.collect::<Option<Vec<_>>>().filter(|it| !it.is_empty())?;
                Some(Command::WaitEvents(WaitEvents::Sync2 { events }))
            }
            command => plain(command),
        }
    }
}

/// Numbers the events that are used from zero, in their order.
fn drop_unused_events(program: &mut Program) {
    let mut used: Vec<EventId> = Vec::new();
    let mut number = |event: &mut EventId| {
        let at = used.iter().position(|it| it == event).unwrap_or_else(|| {
            used.push(*event);
            used.len() - 1
        });
        *event = EventId(at as u32);
    };
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::SetEvent(SetEvent::Sync1 { event, .. } | SetEvent::Sync2 { event, .. })
            | Command::ResetEvent { event, .. } => number(event),
            Command::WaitEvents(WaitEvents::Sync1 { events, .. }) => events.iter_mut().for_each(&mut number),
            Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter_mut().for_each(|it| number(&mut it.0)),
            _ => {}
        }
    }
    program.event_count = used.len() as u32;
}
