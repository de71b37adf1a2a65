//! Processes and the signals that end them.

use std::ffi::CStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::signals::mask_of;

pub(crate) fn shell_code(signal: i32) -> u8 {
    128_u8.saturating_add(signal as u8)
}

pub(crate) fn is_crash(signal: i32) -> bool {
    use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP].contains(&signal)
}

pub(crate) fn name_of_cause(signal: i32) -> Option<&'static str> {
    signal_hook::low_level::signal_name(signal)
}

pub(crate) fn cause_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(crate) fn with_descendants(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        next += 1;
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|it| it.parse::<u32>().ok()));
        }
    }
    all
}

pub(crate) fn mapped_libraries(process: u32) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let mut all: Vec<PathBuf> = maps.lines().filter_map(executable_file).map(PathBuf::from).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The file in a line of `/proc/PID/maps`, if it is mapped to be executed: `address permissions offset device inode
/// path`.
fn executable_file(line: &str) -> Option<&str> {
    let path = &line[line.find('/')?..];
    let permissions = line.split_whitespace().nth(1)?;
    permissions.contains('x').then_some(path)
}

pub(crate) fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // `pid (name) state …`, and the name may hold anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn is_not_executable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC)
}

pub(crate) fn exit_immediately(code: i32) -> ! {
    // SAFETY: it may be called at any time, and does not return.
    unsafe { libc::_exit(code) }
}

pub(crate) fn at_exit(function: extern "C" fn()) -> bool {
    // SAFETY: the C library calls it at the latest when the library that it is in is unloaded.
    unsafe { libc::atexit(function) == 0 }
}

pub(crate) fn raise_trap() {
    // SAFETY: a function of the C library, which takes any number.
    unsafe { libc::raise(libc::SIGTRAP) };
}

/// Programs that trace a process and do not stop it for its user.
const OTHER_TRACERS: [&str; 2] = ["strace", "ltrace"];

pub(crate) fn has_debugger() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|it| it.strip_prefix("TracerPid:")).map_or("0", str::trim);
    let name = std::fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    tracer != "0" && !OTHER_TRACERS.contains(&name.trim())
}

/// # Safety
///
/// As for [`crate::process::set_default_variable`].
pub(crate) unsafe fn set_default_variable(name: &CStr, value: &CStr) {
    // SAFETY: two texts, and no other thread that could read the environment, by this function's contract.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
}

pub(crate) struct SignalRelay(Signals);

impl SignalRelay {
    pub(crate) fn new() -> io::Result<SignalRelay> {
        Signals::new(forwarded_signals()).map(SignalRelay)
    }

    /// The end is awaited first and taken after the forwarder stopped, so that no signal ever goes to a stranger who got
    /// the number of the process.
    pub(crate) fn wait(self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(child);
        let forwarder = SignalForwarder::start(self.0, pid);
        rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT))?;
        forwarder.stop();
        child.wait()
    }
}

/// A thread that passes signals on.
struct SignalForwarder {
    handle: Handle,
    thread: JoinHandle<()>,
}

impl SignalForwarder {
    fn start(mut signals: Signals, to: Pid) -> SignalForwarder {
        let handle = signals.handle();
        let thread = thread::spawn(move || {
            for number in signals.forever() {
                let signal = match number {
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    // The terminal has sent it to the program as well.
                    _ => continue,
                };
                // It may have ended at this moment, as intended.
                let _ = kill_process(to, signal);
            }
        });
        SignalForwarder { handle, thread }
    }

    fn stop(self) {
        self.handle.close();
        // A panic there has been printed, and the program's end counts all the same.
        let _ = self.thread.join();
    }
}

/// The signals to receive. Those that are ignored (`nohup`) stay so, for us and for the program.
fn forwarded_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = mask_of(&status, "SigIgn:");
    [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter().filter(|it| ignored >> (it - 1) & 1 == 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::TerminationCause;

    #[test]
    fn signals_have_names_and_codes() {
        assert_eq!(TerminationCause::from_number(11).to_string(), "SIGSEGV");
        assert_eq!(TerminationCause::from_number(40).to_string(), "signal 40");
        assert_eq!(TerminationCause::from_number(11).shell_code(), 139);
    }

    #[test]
    fn a_process_is_known_to_run() {
        assert!(is_running(std::process::id()));
        assert!(!is_running(u32::MAX));
    }

    #[test]
    fn processes_that_come_from_one_are_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it runs");
        let all = with_descendants(std::process::id());
        // It was made by us, and not waited for yet.
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert!(all[0] == std::process::id() && all.contains(&child.id()), "{all:?}");
    }

    #[test]
    fn the_libraries_of_a_process_are_seen() {
        let all = mapped_libraries(std::process::id());
        let program = std::env::current_exe().expect("it is known");
        assert!(all.contains(&program), "{all:?}");
        assert_eq!(mapped_libraries(u32::MAX), Vec::<PathBuf>::new());
        assert_eq!(executable_file("7f00-7f10 r-xp 00000000 fe:01 12   /a b/lib.so"), Some("/a b/lib.so"));
        assert_eq!(executable_file("7f00-7f10 r--p 00000000 fe:01 12   /a/lib.so"), None);
        assert_eq!(executable_file("7f00-7f10 r-xp 00000000 00:00 0   [vdso]"), None);
    }
}
