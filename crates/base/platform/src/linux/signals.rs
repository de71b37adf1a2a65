//! Signals that other processes send.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::fault_signal::set_handler;
use crate::signals::Trigger;

/// How often it came. Relaxed: the reader looks now and then.
static COUNT: AtomicU32 = AtomicU32::new(0);

fn signal_of(trigger: Trigger) -> Signal {
    match trigger {
        Trigger::First => Signal::USR1,
        Trigger::Second => Signal::USR2,
    }
}

pub(crate) fn count_triggers(trigger: Trigger) {
    // System calls of the application continue as if there was no signal.
    set_handler(signal_of(trigger).as_raw(), count_one, libc::SA_SIGINFO | libc::SA_RESTART);
}

pub(crate) fn trigger_count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

extern "C" fn count_one(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn send(process: u32, trigger: Trigger) -> io::Result<()> {
    let to = i32::try_from(process).ok().and_then(Pid::from_raw);
    Ok(kill_process(to.ok_or(io::ErrorKind::InvalidInput)?, signal_of(trigger))?)
}

pub(crate) fn is_listening(process: u32, trigger: Trigger) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(is_caught(&status, trigger))
}

/// Whether a process has a handler for a signal, according to the system.
fn is_caught(status: &str, trigger: Trigger) -> bool {
    mask_of(status, "SigCgt:") >> (signal_of(trigger).as_raw() - 1) & 1 == 1
}

/// A mask of signals in the text of `/proc/PID/status`.
pub(super) fn mask_of(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|it| it.strip_prefix(name));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0)
}

pub(crate) fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let flag: Arc<AtomicBool> = Arc::default();
    signal_hook::flag::register_conditional_default(SIGINT, flag.clone())?;
    signal_hook::flag::register(SIGINT, flag.clone())?;
    // A signal to the process group arrives twice: at us, and at the process that passes it on.
    signal_hook::flag::register(SIGTERM, flag.clone())?;
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_from_what_the_system_tells() {
        let status = "Name:\tcat\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert_eq!(mask_of(status, "SigIgn:"), 0x1001);
        assert_eq!(mask_of("Name:\tcat\n", "SigIgn:"), 0);
    }

    #[test]
    fn only_who_has_a_handler_listens() {
        let status = "Name:\tapp\nSigCgt:\t0000000000000800\n";
        assert!(is_caught(status, Trigger::Second) && !is_caught(status, Trigger::First));
        assert!(!is_caught("Name:\tapp\n", Trigger::Second));
        assert_eq!(is_listening(u32::MAX, Trigger::First), None);
        assert!(send(u32::MAX, Trigger::First).is_err());
    }
}
