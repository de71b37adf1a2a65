//! `lavascope run`: a program under the layer, with nothing installed system-wide.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
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
    /// Print every Vulkan call into a file, or `-` for standard error
    #[arg(long, value_name = "FILE")]
    print: Option<PathBuf>,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let name = if arguments.as_khronos { Name::Khronos } else { Name::Own };
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let mut variables: Vec<(&str, OsString)> =
        variables(name)?.into_iter().map(|(variable, value)| (variable, value.into())).collect();
    if let Some(path) = &arguments.print {
        variables.push(("LAVASCOPE_PRINT", begin_print(path)?));
    }
    let status = Command::new(program)
        .args(rest)
        .envs(variables)
        .status()
        .with_context(|| format!("`{}` cannot be started", program.display()))?;
    // A shell's way of telling a signal in an exit code.
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it)).unwrap_or(2);
    Ok(if code == 0 { Outcome::Fine } else { Outcome::Program(code as u8) })
}

/// An empty file whose place does not depend on where the program goes.
fn begin_print(path: &Path) -> anyhow::Result<OsString> {
    if path == Path::new("-") {
        return Ok("-".into());
    }
    std::fs::write(path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(std::fs::canonicalize(path)?.into())
}
