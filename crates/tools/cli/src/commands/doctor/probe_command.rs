//! `lavascope doctor-probe`: runs driver code for the doctor, in a process that may crash.
//!
//! The command is hidden. Only `doctor` starts it, and reads the lines of [`ProbeMessage`] that it
//! prints.

use lavascope_loader::{QueryStep, query, try_devices};

use crate::commands::CommandOutcome;
use crate::commands::doctor::probe_process::ProbeMessage;
use crate::text::emit;

#[derive(clap::Args)]
pub(crate) struct ProbeArguments {
    /// Also make a device of each physical device
    #[arg(long)]
    try_devices: bool,
}

pub(crate) fn run(arguments: &ProbeArguments) -> anyhow::Result<CommandOutcome> {
    // If a step cannot be printed, printing the result fails too and returns the error.
    let mut watch = |step: QueryStep| drop(print_message(&ProbeMessage::Doing(step.to_string())));
    let mut result = query(&mut watch);
    if arguments.try_devices {
        result = result.and_then(|info| try_devices(&mut watch).map(|()| info));
    }
    print_message(&match result {
        Ok(info) => ProbeMessage::Told(info),
        Err(error) => ProbeMessage::Refused(error),
    })?;
    Ok(CommandOutcome::Success)
}

fn print_message(message: &ProbeMessage) -> anyhow::Result<()> {
    // A driver may have printed a line without its end, so the message begins with a new line.
    emit(&format!("\n{}\n", serde_json::to_string(message)?))
}
