//! Words from outside of a process: the user's two triggers, and the wish that it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::system;

/// What a user can send to a process that listens for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    First,
    Second,
}

/// From now on a trigger is counted. A handler that the application has for it is gone, one that it sets later takes
/// the place of ours. The library that this code is in must stay loaded ([`crate::library::keep_loaded`]).
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

/// Whether a process listens for a trigger; none where there is no such process.
pub fn is_listening(process: u32, trigger: Trigger) -> Option<bool> {
    system::signals::is_listening(process, trigger)
}

/// A flag that is set when somebody wants this process to end. Ctrl-C for the second time ends it.
pub fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    system::signals::interrupt_flag()
}
