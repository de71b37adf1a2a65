//! Starts the program under test, waits until it ends, and returns how it ended.
//!
//! The program is in our process group, so it receives the signals of the terminal (Ctrl-C) itself.
//! We only ignore these signals. Signals that are sent to us alone are forwarded.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context;
use lavascope_platform::process::{self, SignalRelay, TerminationCause};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    Exit(u8),
    Signal(TerminationCause),
}

impl ProgramEnd {
    /// The exit code that a shell reports.
    pub(crate) fn code(self) -> u8 {
        match self {
            ProgramEnd::Exit(code) => code,
            ProgramEnd::Signal(cause) => cause.shell_code(),
        }
    }

    fn of(status: ExitStatus) -> ProgramEnd {
        match process::ProcessEnd::of(status) {
            process::ProcessEnd::Killed(cause) => ProgramEnd::Signal(cause),
            process::ProcessEnd::Exit(code) => ProgramEnd::Exit(code as u8),
        }
    }
}

/// Runs a program until it ends. Signals do not stop the wait.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<ProgramEnd> {
    run_watched(command, |_| ()).map(|it| it.0)
}

/// Like `run`, with something that is there while the process runs.
pub(crate) fn run_watched<T>(command: &mut Command, watch: impl FnOnce(u32) -> T) -> anyhow::Result<(ProgramEnd, T)> {
    let relay = SignalRelay::new().context("signals cannot be received")?;
    let mut child = command.spawn().map_err(|error| start_error(command.get_program(), &error))?;
    let watched = watch(child.id());
    let status = relay.wait(&mut child).context("the program cannot be waited for")?;
    Ok((ProgramEnd::of(status), watched))
}

/// The error message if the system does not start a program, with advice.
fn start_error(program: &OsStr, error: &io::Error) -> anyhow::Error {
    let (path, name) = (Path::new(program), program.display());
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let text = match error.kind() {
        ErrorKind::NotFound if !is_path && path.is_file() => {
            format!("no folder in PATH has `{name}`; for the file in this folder, use `./{name}`")
        }
        ErrorKind::NotFound if !is_path => format!("no folder in PATH has `{name}`"),
        ErrorKind::NotFound if path.exists() => {
            format!("`{name}` cannot be started: its interpreter, in the first line or the ELF header, does not exist")
        }
        ErrorKind::NotFound => format!("`{name}` does not exist"),
        ErrorKind::PermissionDenied if path.is_dir() => format!("`{name}` is a folder, not a program"),
        ErrorKind::PermissionDenied if path.is_file() => {
            format!("`{name}` is not executable; if it is a program, `chmod +x {name}` makes it so")
        }
        _ if process::is_not_executable(error) => {
            format!("`{name}` is not a program that this machine can run: neither a script with `#!` nor built for it")
        }
        _ => format!("`{name}` cannot be started: {error}"),
    };
    anyhow::Error::msg(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_reported_as_a_shell_does() {
        assert_eq!(ProgramEnd::Exit(37).code(), 37);
        assert_eq!(ProgramEnd::Signal(TerminationCause::from_number(11)).code(), 139);
    }
}
