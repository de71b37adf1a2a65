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

/// Gets Python packages, and nothing that they need, into a folder, if the right ones are not there.
///
/// Not as a virtual environment: Debian has a package of its own for those.
pub(crate) fn provide_python(root: &Path, folder: &Path, packages: &[&str]) -> Result<()> {
    let version = output(root, "python3", &["-c", "import sys; print(sys.implementation.cache_tag)"])?;
    let wanted = format!("{}{}\n", String::from_utf8_lossy(&version.stdout), packages.join("\n"));
    let list = folder.join("packages.txt");
    if std::fs::read_to_string(&list).is_ok_and(|it| it == wanted) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    println!("fetching {}", packages.join(", "));
    let place = folder.display().to_string();
    let arguments = [&["-m", "pip", "install", "--quiet", "--no-deps", "--target", &place], packages];
    run(root, "python3", &arguments.concat())?;
    std::fs::write(&list, wanted).with_context(|| format!("{} cannot be written", list.display()))
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
