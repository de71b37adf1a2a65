//! Emits how `state` handles each command, from the tables of this folder: by which family and when, or why not.
//!
//! Every command of the registry is in exactly one table. So each command of a new registry version needs a decision.

mod cached;
mod handled;
mod ignored;
mod missing;

use std::collections::{BTreeMap, BTreeSet};
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

/// Commands by family, with their phase: before the driver executes them (`Enter`) or after they returned (`Leave`).
type HandledCommands = &'static [(&'static str, &'static str, &'static [&'static str])];
type CommandsByReason = &'static [(&'static str, &'static [&'static str])];

#[derive(Clone, Copy)]
enum StateCoverage {
    Understood(&'static str, &'static str),
    Ignored(&'static str),
    Missing(&'static str),
}

/// Commands that are in no table, in two tables, or not in the registry.
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
    errors.extend(check_cached(&names(model), cached::CACHED));
    errors
}

/// Errors in the table of cached commands: not in the registry, listed twice, or with an impossible effect.
fn check_cached(registry: &[&str], table: CommandsByReason) -> Vec<CodegenError> {
    let verdicts: BTreeMap<&str, StateCoverage> = all_commands().collect();
    let mut seen = BTreeSet::new();
    let mut errors = Vec::new();
    for (effect, name) in table.iter().flat_map(|(effect, all)| all.iter().map(move |it| (*effect, *it))) {
        let problem = if !registry.contains(&name) {
            "is not in the registry, but a cache relies on it"
        } else if !EFFECTS.iter().any(|it| it.0 == effect) {
            "has an effect that no cache knows"
        } else if !seen.insert((effect, name)) {
            "has the same effect on caches twice"
        } else if effect == REPEATABLE && !name.starts_with("Cmd") {
            "is not recorded, and cannot be a part of a call sequence"
        } else if matches!(verdicts.get(name), None | Some(StateCoverage::Missing(_))) {
            "is not followed by `state`, and can be in no cache"
        } else {
            continue;
        };
        errors.push(CodegenError { item: format!("vk{name}"), problem: problem.to_owned() });
    }
    errors
}

const REPEATABLE: &str = "REPEATABLE";

/// The effects that caches rely on: the name of the list in `state`, and its description.
const EFFECTS: [(&str, &str); 3] = [
    (REPEATABLE, "Commands that do the same when they are recorded again, while nothing changes that they depend on."),
    ("KEEPS_ATTACHMENTS", "Commands after which a draw accesses its attachments as the draw before did."),
    ("KEEPS_RECORDINGS", "Commands after which all other recorded commands mean what they meant before."),
];

pub(crate) fn emit(model: &Model, files: &mut Files) {
    let verdicts: BTreeMap<&str, StateCoverage> = all_commands().collect();
    let mut text = SourceText::rust("state", "state/mod");
    text.blank();
    text.line("use lavascope_abi::Command;");
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
    emit_cached(&names(model), cached::CACHED, &mut text);
    files.insert(PathBuf::from("crates/sync/state/src/generated/mod.rs"), text.finish());
}

/// The commands of the registry, in its order.
fn names(model: &Model) -> Vec<&str> {
    model.commands.values().map(|it| it.rust_name.as_str()).collect()
}

/// One list for each effect, in the order of the registry.
fn emit_cached(registry: &[&str], table: CommandsByReason, text: &mut SourceText) {
    for (effect, meaning) in EFFECTS {
        let listed: BTreeSet<&str> = table.iter().filter(|it| it.0 == effect).flat_map(|it| it.1).copied().collect();
        text.blank();
        text.line(format!("/// {meaning}"));
        text.line(format!("pub(crate) const {effect}: &[Command] = &["));
        for name in registry.iter().filter(|it| listed.contains(*it)) {
            text.line(format!("    Command::{name},"));
        }
        text.line("];");
    }
}

/// The entry in the ledger.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(table: CommandsByReason) -> Vec<String> {
        check_cached(&["CmdDraw", "MapMemory", "CmdCudaLaunchKernelNV"], table)
            .into_iter()
            .map(|it| it.problem)
            .collect()
    }

    #[test]
    fn every_command_that_is_cached_exists() {
        assert_eq!(problems(&[(REPEATABLE, &["CmdDraw"]), ("KEEPS_RECORDINGS", &["CmdDraw", "MapMemory"])]), [""; 0]);
        let wrong: [(CommandsByReason, &str); 5] = [
            (&[(REPEATABLE, &["CmdDrawn"])], "is not in the registry, but a cache relies on it"),
            (&[("KEEPS_NOTHING", &["CmdDraw"])], "has an effect that no cache knows"),
            (&[(REPEATABLE, &["CmdDraw", "CmdDraw"])], "has the same effect on caches twice"),
            (&[(REPEATABLE, &["MapMemory"])], "is not recorded, and cannot be a part of a call sequence"),
            (&[(REPEATABLE, &["CmdCudaLaunchKernelNV"])], "is not followed by `state`, and can be in no cache"),
        ];
        for (table, problem) in wrong {
            assert_eq!(problems(table), [problem]);
        }
    }

    #[test]
    fn a_command_that_is_not_listed_is_never_cached() {
        let mut text = SourceText::rust("state", "state/mod");
        emit_cached(&["CmdDraw", "CmdNew"], cached::CACHED, &mut text);
        let text = text.finish();
        assert_eq!((text.matches("Command::CmdDraw,").count(), text.matches("CmdNew").count()), (3, 0), "{text}");
    }
}
