//! Words from outside of a process: the user's two triggers, and the wish that it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::system;

/// Signals that a user can send to a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    First,
    Second,
}

/// From now on a trigger is counted. It replaces a handler of the application; a later handler of the application
/// replaces ours. The library of this code must stay loaded ([`crate::library::keep_loaded`]).
pub fn count_triggers(trigger: Trigger) {
    system::signals::count_triggers(trigger);
}

/// How often triggers came to this process so far.
pub fn trigger_count() -> u32 {
    system::signals::trigger_count()
}

/// Sends a trigger to a process. One that does not listen for it would be ended by it: ask [`is_listening`] first.
pub fn send(process: u32, trigger: Trigger) -> io::Result<()> {
    system::signals::send(process, trigger)
}

/// Whether a process listens for a trigger; none if there is no such process.
pub fn is_listening(process: u32, trigger: Trigger) -> Option<bool> {
    system::signals::is_listening(process, trigger)
}

/// A flag that is set when this process is asked to end. The second Ctrl-C ends it.
pub fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    system::signals::interrupt_flag()
}
