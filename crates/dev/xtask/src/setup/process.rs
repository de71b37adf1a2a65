//! Running other programs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, PoisonError};

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
pub(crate) fn ensure_python_packages(root: &Path, folder: &Path, packages: &[&str]) -> Result<()> {
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
pub(crate) fn can_run(program: &str, argument: &str) -> bool {
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

/// A word that a shell reads as it is.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|it| it.is_ascii_alphanumeric() || "/._-".contains(it));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Runs a command with its output on the terminal, and keeps a copy of all of it.
pub(crate) fn run_and_capture(command: &mut Command) -> Result<(ExitStatus, String)> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let words = words.iter().map(|it| it.to_string_lossy()).collect::<Vec<_>>().join(" ");
    println!("$ {words}");
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("`{words}` cannot be started"))?;
    let text = Mutex::new(String::new());
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(|| errors.map(|it| copy_lines(it, &text)));
        output.map(|it| copy_lines(it, &text))
    });
    let status = child.wait().with_context(|| format!("`{words}` cannot be waited for"))?;
    Ok((status, text.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Shows the lines of a stream, and adds them to a text.
fn copy_lines(from: impl Read, text: &Mutex<String>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|it| it > 0) {
        let shown = String::from_utf8_lossy(&line);
        print!("{shown}");
        text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&shown);
        line.clear();
    }
}
