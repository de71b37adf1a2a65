//! Running other programs.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Runs a command in `root` with its output on the terminal; its failure is ours.
pub(crate) fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    println!("$ {program} {}", arguments.join(" "));
    let status = command(root, program).args(arguments).status();
    let status = status.with_context(|| format!("`{program}` cannot be started"))?;
    if !status.success() {
        bail!("`{program} {}` failed: {status}", arguments.join(" "));
    }
    Ok(())
}

/// Runs a command in `root` and keeps its output.
pub(crate) fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<Output> {
    let output = command(root, program).args(arguments).output();
    output.with_context(|| format!("`{program}` cannot be started"))
}

/// Whether a program answers at all.
pub(crate) fn exists(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|it| it.status.success())
}

fn command(root: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// The cargo that runs us.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
