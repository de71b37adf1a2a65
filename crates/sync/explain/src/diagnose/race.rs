//! Turns races between event commands into diagnostics (`synchronization-events`).

use lavascope_diag::{Diagnostic, DiagnosticObject, Severity};
use lavascope_sync_ir::{Program, ProgramLocation};

use super::hazard::diagnostic_location;
use crate::ProgramNames;
use crate::follow::dependency::recorded_location;
use lavascope_engine::{EventRace, EventRaceKind};

/// The diagnostics of the given races: one for each cause, with the number of executions.
pub fn diagnose_races(program: &Program, found: &[EventRace], names: &dyn ProgramNames) -> Vec<Diagnostic> {
    race_causes(program, found).into_iter().map(|(it, count)| diagnostic(program, it, count, names)).collect()
}

/// The first race of each cause, and how often it occurred.
pub fn race_causes<'a>(program: &Program, found: &'a [EventRace]) -> Vec<(&'a EventRace, u64)> {
    let of = |place: &ProgramLocation| recorded_location(program, place).ok_or_else(|| place.clone());
    let key = |it: &EventRace| (it.kind, it.event, of(&it.at), of(&it.prior));
    let mut firsts: Vec<(&EventRace, u64)> = Vec::new();
    for event_race in found {
        match firsts.iter_mut().find(|(first, _)| key(first) == key(event_race)) {
            Some((_, count)) => *count += 1,
            None => firsts.push((event_race, 1)),
        }
    }
    firsts
}

/// The code of a race. It contains the function of the later command, so versions 1 and 2 have
/// different codes.
pub fn race_code(kind: EventRaceKind, function: &str) -> String {
    match kind {
        EventRaceKind::SetAfterReset => format!("SYNC-{function}-reset-race"),
        EventRaceKind::SetAfterSet => format!("SYNC-{function}-set-race"),
        EventRaceKind::SetAfterWait => format!("SYNC-{function}-wait"),
        // These two have one code for both versions.
        EventRaceKind::ResetAfterSet => "SYNC-vkCmdResetEvent-set-race".to_owned(),
        EventRaceKind::WaitAfterRace => "SYNC-vkCmdWaitEvents-unsynchronized-setops".to_owned(),
    }
}

/// The message of a race, and the text of its fix.
pub fn race_texts(kind: EventRaceKind, function: &str, prior: &str, event: &str) -> (String, String) {
    let race = "Nothing decides which of the two comes first, so nobody knows whether the event is set behind them.";
    let message = match kind {
        EventRaceKind::SetAfterReset => {
            format!("{function}() sets {event} with no execution dependency on {prior}.\n{race}")
        }
        EventRaceKind::ResetAfterSet => {
            format!("{function}() resets {event} with no execution dependency on {prior}.\n{race}")
        }
        EventRaceKind::SetAfterSet => format!(
            "{function}() sets {event} with no execution dependency on another {prior}.\nWhoever waits for it does not \
             know what is over then: what came before the one, or before the other."
        ),
        EventRaceKind::SetAfterWait => format!(
            "{function}() sets {event} again behind {prior}, and it was not reset.\nThe event is still set, so that \
             whoever waits for it next does not wait for this."
        ),
        EventRaceKind::WaitAfterRace => format!(
            "{function}() waits for {event}, which two commands set with no order between them; the first is \
             {prior}.\nNobody knows after which of them it goes on: its first scope is undefined."
        ),
    };
    let fix = match kind {
        EventRaceKind::SetAfterWait => {
            format!("reset {event} between the wait and the set, with a barrier behind the reset")
        }
        EventRaceKind::SetAfterReset | EventRaceKind::ResetAfterSet => {
            format!("record a barrier with srcStageMask VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT before {function}")
        }
        EventRaceKind::SetAfterSet | EventRaceKind::WaitAfterRace => {
            "use two events, or reset the event and record a barrier between the two sets".to_owned()
        }
    };
    (message, fix)
}

/// The title of a race, in one short line.
pub fn race_title(kind: EventRaceKind, event: &str) -> String {
    match kind {
        EventRaceKind::SetAfterReset => format!("set of {event} races with an earlier reset"),
        EventRaceKind::SetAfterSet => format!("set of {event} races with an earlier set"),
        EventRaceKind::ResetAfterSet => format!("reset of {event} races with an earlier set"),
        EventRaceKind::SetAfterWait => format!("{event} is set again behind a wait, and was not reset"),
        EventRaceKind::WaitAfterRace => format!("wait for {event}, which two commands set in no order"),
    }
}

fn diagnostic(program: &Program, event_race: &EventRace, count: u64, names: &dyn ProgramNames) -> Diagnostic {
    let (function, prior) = (names.function(&event_race.at, 0), names.function(&event_race.prior, 0));
    let (message, fix) = race_texts(event_race.kind, &function, &prior, &names.event(event_race.event));
    let places = vec![
        diagnostic_location("access", &event_race.at, 0, program, names),
        diagnostic_location("prior access", &event_race.prior, 0, program, names),
    ];
    let object = DiagnosticObject::new("VkEvent", u64::from(event_race.event.0), Some(names.event(event_race.event)));
    let code = race_code(event_race.kind, &function);
    let fixes = vec![lavascope_diag::Fix::advice(fix)];
    let own = Diagnostic::new(code, Severity::Error, message);
    let title = race_title(event_race.kind, &names.event(event_race.event));
    Diagnostic { title, function, locations: places, objects: vec![object], fixes, count, ..own }
}
