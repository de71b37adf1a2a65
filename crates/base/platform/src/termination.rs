//! The process is about to end by a crash or a signal.

use crate::system;

/// From now on a signal that ends the process is held up by this function, once: it is called first, and then the
/// signal does what it would have done without us. The first function that anybody gives is the one that is called.
/// Faults of guarded pages are none ([`crate::pages::WriteGuard`]).
///
/// The function runs in a handler, so it may do little: no locks, no memory, atomics and
/// [`crate::threads::signal_safe_sleep`]. The library that it is in must stay loaded
/// ([`crate::library::keep_loaded`]). An end at once, and by force, is not held up.
pub fn on_termination(hold_up: fn()) {
    system::termination::on_termination(hold_up);
}
