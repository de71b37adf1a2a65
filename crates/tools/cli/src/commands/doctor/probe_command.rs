//! `lavascope doctor-probe`: the part of the doctor that runs driver code, in a process that may die of it.
//!
//! Hidden: only `doctor` starts it, and reads the lines of [`ProbeMessage`] that it prints.

use lavascope_loader::{QueryStep, query};

use crate::commands::CommandOutcome;
use crate::commands::doctor::probe_process::ProbeMessage;
use crate::text::emit;

pub(crate) fn run() -> anyhow::Result<CommandOutcome> {
    // A failure to tell of a step is seen again when the result is told.
    let mut watch = |step: QueryStep| drop(print_message(&ProbeMessage::Doing(step.to_string())));
    let result = query(&mut watch);
    print_message(&match result {
        Ok(info) => ProbeMessage::Told(info),
        Err(error) => ProbeMessage::Refused(error),
    })?;
    Ok(CommandOutcome::Success)
}

fn print_message(message: &ProbeMessage) -> anyhow::Result<()> {
    // A driver may have printed half a line; the message starts on its own.
    emit(&format!("\n{}\n", serde_json::to_string(message)?))
}
