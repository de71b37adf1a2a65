//! Starts the program under test, stands by while it runs, and tells how it ended.
//!
//! What a terminal sends (Ctrl-C) reaches the program by itself, since it is in our process group: we only have to
//! outlive it. What is sent to us alone is passed on.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::signal_name;

/// `errno` of a file that the system does not know how to run.
const ENOEXEC: i32 = 8;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exit(u8),
    Signal(i32),
}

impl End {
    /// As a shell tells it.
    pub(crate) fn code(self) -> u8 {
        match self {
            End::Exit(code) => code,
            End::Signal(number) => 128_u8.saturating_add(number as u8),
        }
    }

    fn of(status: ExitStatus) -> End {
        match status.signal() {
            Some(number) => End::Signal(number),
            None => End::Exit(status.code().unwrap_or(0) as u8),
        }
    }
}

/// The name of a signal as in the C headers.
pub(crate) fn name_of_signal(number: i32) -> String {
    signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// Runs a program to its end, whatever signal comes meanwhile.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<End> {
    let signals = Signals::new(wanted_signals()).context("signals cannot be received")?;
    let mut child = command.spawn().map_err(|error| refusal(command.get_program(), &error))?;
    let pid = Pid::from_child(&child);
    let forwarder = Forwarder::start(signals, pid);
    let status = wait(&mut child, pid, forwarder).context("the program cannot be waited for")?;
    Ok(End::of(status))
}

/// Whether a process runs still, as far as the system tells.
pub(crate) fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // `pid (name) state …`, and the name may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The end is awaited first and taken after the forwarder stopped, so that no signal ever goes to a stranger who got
/// the number of the process.
fn wait(child: &mut Child, pid: Pid, forwarder: Forwarder) -> io::Result<ExitStatus> {
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
    forwarder.stop();
    child.wait()
}

/// A thread that passes signals on.
struct Forwarder {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl Forwarder {
    fn start(mut signals: Signals, to: Pid) -> Forwarder {
        let handle = signals.handle();
        let thread = thread::spawn(move || {
            for number in signals.forever() {
                let signal = match number {
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    // The terminal has sent it to the program as well.
                    _ => continue,
                };
                // It may have ended in this moment, which is what was wanted.
                let _ = kill_process(to, signal);
            }
        });
        Forwarder { handle, thread }
    }

    fn stop(self) {
        self.handle.close();
        // A panic there has been printed, and the program's end counts all the same.
        let _ = self.thread.join();
    }
}

/// The signals to receive. Those that are ignored (`nohup`) stay so, for us and for the program.
fn wanted_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored_signals(&status);
    [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|it| ignored >> (it - 1) & 1 == 0).collect()
}

/// The mask in the text of `/proc/PID/status`.
fn ignored_signals(status: &str) -> u64 {
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0)
}

/// Why the system did not start a program, and what to do.
fn refusal(program: &OsStr, error: &io::Error) -> anyhow::Error {
    let (path, name) = (Path::new(program), program.display());
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let text = match error.kind() {
        ErrorKind::NotFound if !is_path && path.is_file() => {
            format!("no folder in PATH has `{name}`; for the file of this folder say `./{name}`")
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
        _ if error.raw_os_error() == Some(ENOEXEC) => {
            format!("`{name}` is no program that this machine can run: neither a script with `#!` nor built for it")
        }
        _ => format!("`{name}` cannot be started: {error}"),
    };
    anyhow::Error::msg(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tcat\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored_signals(status), 0x1001);
        assert_eq!(ignored_signals("Name:\tcat\n"), 0);
    }

    #[test]
    fn the_end_is_told_as_a_shell_does() {
        assert_eq!(End::Exit(37).code(), 37);
        assert_eq!(End::Signal(11).code(), 139);
        assert_eq!(name_of_signal(11), "SIGSEGV");
        assert_eq!(name_of_signal(40), "signal 40");
    }

    #[test]
    fn a_process_is_known_to_run() {
        assert!(is_running(std::process::id()));
        assert!(!is_running(u32::MAX));
    }
}
