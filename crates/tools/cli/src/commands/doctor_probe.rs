//! `lavascope doctor-probe`: the part of the doctor that runs driver code, in a process that may die of it.
//!
//! Hidden: only `doctor` starts it, and reads the lines of [`Message`] that it prints.

use lavascope_loader::{QueryStep, query};

use super::Outcome;
use crate::probe::Message;
use crate::text::emit;

pub(crate) fn run() -> anyhow::Result<Outcome> {
    // A failure to tell of a step is seen again when the result is told.
    let mut watch = |step: QueryStep| drop(tell(&Message::Doing(step.to_string())));
    let result = query(&mut watch);
    tell(&match result {
        Ok(info) => Message::Told(info),
        Err(error) => Message::Refused(error),
    })?;
    Ok(Outcome::Fine)
}

fn tell(message: &Message) -> anyhow::Result<()> {
    // A driver may have printed half a line; the message starts on its own.
    emit(&format!("\n{}\n", serde_json::to_string(message)?))
}
