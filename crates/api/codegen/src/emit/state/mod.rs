//! Emits what `state` makes of each command, from the tables below: who takes it and when, or why nobody does.
//!
//! Every command of the registry stands in exactly one of them, so that a new registry version is a list of
//! decisions to make.

mod handled;
mod ignored;
mod missing;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::emit::text::SourceText;
use crate::model::*;
use crate::{CodegenError, Files};

/// A list of commands by their names.
macro_rules! commands {
    ($($name:ident)*) => {
        &[$(stringify!($name),)*]
    };
}
use commands;

/// The family that takes some commands, and whether before the driver sees them (`Enter`) or after (`Leave`).
type HandledCommands = &'static [(&'static str, &'static str, &'static [&'static str])];
type CommandsByReason = &'static [(&'static str, &'static [&'static str])];

#[derive(Clone, Copy)]
enum StateCoverage {
    Understood(&'static str, &'static str),
    Ignored(&'static str),
    Missing(&'static str),
}

/// Commands that are in no table, in two, or not in the registry.
pub(crate) fn check(model: &Model) -> Vec<CodegenError> {
    let mut counts: BTreeMap<&str, usize> = model.commands.values().map(|it| (it.rust_name.as_str(), 0)).collect();
    let mut errors = Vec::new();
    let mut error = |item: &str, problem: &str| {
        errors.push(CodegenError { item: format!("vk{item}"), problem: problem.to_owned() });
    };
    for (name, _) in all_commands() {
        match counts.get_mut(name) {
            Some(count) => *count += 1,
            None => error(name, "is not in the registry, but `state` has a verdict on it"),
        }
    }
    for (name, count) in counts {
        match count {
            0 => error(name, "what does `state` make of it? see crates/api/codegen/src/state"),
            1 => {}
            _ => error(name, "`state` has more than one verdict on it"),
        }
    }
    errors
}

pub(crate) fn emit(model: &Model, files: &mut Files) {
    let verdicts: BTreeMap<&str, StateCoverage> = all_commands().collect();
    let mut text = SourceText::rust("state", "state/mod");
    text.blank();
    text.line("use crate::command_support::{CommandSupport, CommandFamily, TrackPhase};");
    text.blank();
    text.line("/// The verdict on each command, by number.");
    text.line("pub(crate) static COMMAND_SUPPORT: &[CommandSupport] = &[");
    for command in model.commands.values() {
        let verdict = match verdicts.get(command.rust_name.as_str()) {
            Some(StateCoverage::Understood(family, when)) => {
                format!("Tracked(CommandFamily::{family}, TrackPhase::{when})")
            }
            Some(StateCoverage::Ignored(reason)) => format!("Ignored(\"{reason}\")"),
            Some(StateCoverage::Missing(reason)) => format!("Untracked(\"{reason}\")"),
            None => continue,
        };
        text.line(format!("    CommandSupport::{verdict}, // {}", command.c_name));
    }
    text.line("];");
    files.insert(PathBuf::from("crates/sync/state/src/generated/mod.rs"), text.finish());
}

/// For the ledger.
pub(crate) fn verdict(command: &CommandModel) -> String {
    match all_commands().find(|it| it.0 == command.rust_name).map(|it| it.1) {
        Some(StateCoverage::Understood(..)) => "by hand".to_owned(),
        Some(StateCoverage::Ignored(reason)) => format!("ignored: {reason}"),
        Some(StateCoverage::Missing(reason)) => format!("missing: {reason}"),
        None => "missing".to_owned(),
    }
}

fn all_commands() -> impl Iterator<Item = (&'static str, StateCoverage)> {
    let of_reasons = |reasons: CommandsByReason, make: fn(&'static str) -> StateCoverage| {
        reasons.iter().flat_map(move |(reason, all)| all.iter().map(move |it| (*it, make(reason))))
    };
    let understood = handled::UNDERSTOOD
        .iter()
        .flat_map(|(family, when, all)| all.iter().map(|it| (*it, StateCoverage::Understood(family, when))));
    understood
        .chain(of_reasons(ignored::IGNORED, StateCoverage::Ignored))
        .chain(of_reasons(missing::MISSING, StateCoverage::Missing))
}
