//! How a thread learns from another that it may go on, by means that the layer does not see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// What a thread waits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOverKind {
    Atomic,
    Lock,
}

/// One thread posts it once; others wait for that.
pub(crate) struct HandOver {
    kind: HandOverKind,
    is_posted: AtomicBool,
    state: Mutex<bool>,
    changed: Condvar,
}

impl HandOver {
    pub(crate) fn new(kind: HandOverKind) -> HandOver {
        HandOver { kind, is_posted: AtomicBool::new(false), state: Mutex::new(false), changed: Condvar::new() }
    }

    pub(crate) fn post(&self) {
        match self.kind {
            HandOverKind::Atomic => self.is_posted.store(true, Ordering::Release),
            HandOverKind::Lock => {
                *self.state.lock().unwrap_or_else(PoisonError::into_inner) = true;
                self.changed.notify_all();
            }
        }
    }

    pub(crate) fn wait(&self) {
        match self.kind {
            HandOverKind::Atomic => {
                while !self.is_posted.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            HandOverKind::Lock => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                while !*state {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
