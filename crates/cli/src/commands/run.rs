//! `lavascope run`: a program under the layer, with nothing installed system-wide.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use anyhow::Context;

use super::Outcome;
use crate::layer_files::{Name, variables};

/// Run a program under the layer
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Answer to the name of the Khronos layer, for programs that ask for it
    #[arg(long)]
    as_khronos: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let name = if arguments.as_khronos { Name::Khronos } else { Name::Own };
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let status = Command::new(program)
        .args(rest)
        .envs(variables(name)?)
        .status()
        .with_context(|| format!("`{}` cannot be started", program.display()))?;
    // A shell's way of telling a signal in an exit code.
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it)).unwrap_or(2);
    Ok(if code == 0 { Outcome::Fine } else { Outcome::Program(code as u8) })
}
