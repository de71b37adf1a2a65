//! One event for each pair of a set and its waits: what two layers say of events that are used again is their own kind
//! of message, and what such an event orders is anybody's guess.

use lavascope_sync_ir::{Command, EventId, HostStep, Program, SetEvent, WaitEvents};

/// The program with a new event for each set, without resets, and without waits for what the command buffer did not set.
pub(crate) fn separate_events(program: &Program) -> Program {
    let mut made = program.clone();
    let mut next = 0;
    for at in 0..made.command_buffers.len() {
        let is_once = executions(program, at) < 2;
        let mut current: Vec<(EventId, EventId)> = Vec::new();
        let commands = std::mem::take(&mut made.command_buffers[at].commands);
        let kept = commands
            .into_iter()
            .filter_map(|it| if is_once { renamed(it, &mut current, &mut next) } else { plain(it) });
        made.command_buffers[at].commands = kept.collect();
    }
    made.event_count = next;
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

fn renamed(command: Command, current: &mut Vec<(EventId, EventId)>, next: &mut u32) -> Option<Command> {
    let mut set = |event: EventId| {
        current.retain(|it| it.0 != event);
        current.push((event, EventId(*next)));
        *next += 1;
        EventId(*next - 1)
    };
    match command {
        Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
            Some(Command::SetEvent(SetEvent::Sync1 { event: set(event), stages }))
        }
        Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
            Some(Command::SetEvent(SetEvent::Sync2 { event: set(event), dependencies }))
        }
        Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }) => {
            let own: Option<Vec<EventId>> = events.into_iter().map(|it| current_of(current, it)).collect();
            let events = own.filter(|it| !it.is_empty())?;
            Some(Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }))
        }
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            let named = events.into_iter().map(|(event, it)| Some((current_of(current, event)?, it)));
            let events = named.collect::<Option<Vec<_>>>().filter(|it| !it.is_empty())?;
            Some(Command::WaitEvents(WaitEvents::Sync2 { events }))
        }
        command => plain(command),
    }
}

fn current_of(current: &[(EventId, EventId)], event: EventId) -> Option<EventId> {
    current.iter().find(|it| it.0 == event).map(|it| it.1)
}
