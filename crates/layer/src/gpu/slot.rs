//! The place of a command buffer.
//!
//! Whoever records into it takes it out and puts it back: the driver is called without a lock. That is done for every
//! draw, so the place is one word: taking is one atomic operation, and putting back is a store.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::commands::Commands;

/// The place of a command buffer. It stays where it is until the device ends, and is used again.
#[derive(Default)]
pub(super) struct Slot {
    /// Null where it is taken, or no command buffer is here; [`BUSY`] while somebody looks at what is here. Acquire
    /// where it is taken, pairs with Release where it is put back.
    commands: AtomicPtr<Commands>,
}

/// Another thread may take it out than put it there.
const _: fn() = || {
    fn is_sent<T: Send>() {}
    is_sent::<Commands>();
};

/// In the place of an address.
const BUSY: *mut Commands = std::ptr::dangling_mut();
/// Who looks does so for a short while: then the thread lets others go first.
const SPINS: u32 = 64;

/// Somebody else is at it.
struct Taken;

impl Slot {
    /// Takes out what is here, after whoever looks at it. It is put back, or is the caller's.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<Box<Commands>> {
        let found = self.exchange(std::ptr::null_mut())?;
        // SAFETY: made by `Box::into_raw` in `put`, and no longer here.
        Some(unsafe { Box::from_raw(found) })
    }

    /// Puts a command buffer where none is.
    #[inline(always)]
    pub(super) fn put(&self, commands: Box<Commands>) {
        self.commands.store(Box::into_raw(commands), Ordering::Release);
    }

    /// For what is done without the driver.
    #[inline(always)]
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Commands) -> T) -> Option<T> {
        let found = self.exchange(BUSY)?;
        // A panic must not leave it as it is now.
        let _back = Back { slot: self, commands: found };
        // SAFETY: made by `Box::into_raw` in `put`; nobody else gets it while the slot is busy.
        Some(work(unsafe { &mut *found }))
    }

    /// What is here, with something else in its place; none where there is nothing.
    #[inline(always)]
    fn exchange(&self, new: *mut Commands) -> Option<*mut Commands> {
        self.try_exchange(new).unwrap_or_else(|_: Taken| self.exchange_later(new))
    }

    #[inline(always)]
    fn try_exchange(&self, new: *mut Commands) -> Result<Option<*mut Commands>, Taken> {
        let found = self.commands.load(Ordering::Relaxed);
        if found.is_null() {
            return Ok(None);
        }
        let is_free = found != BUSY;
        if is_free && self.commands.compare_exchange(found, new, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Ok(Some(found));
        }
        Err(Taken)
    }

    #[cold]
    fn exchange_later(&self, new: *mut Commands) -> Option<*mut Commands> {
        for turn in 0_u32.. {
            if let Ok(found) = self.try_exchange(new) {
                return found;
            }
            match turn < SPINS {
                true => std::hint::spin_loop(),
                false => std::thread::yield_now(),
            }
        }
        None
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Puts back what was looked at.
struct Back<'a> {
    slot: &'a Slot,
    commands: *mut Commands,
}

impl Drop for Back<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.commands.store(self.commands, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_here() {
        let slot = Slot::default();
        assert!(slot.take().is_none() && slot.with(|_| ()).is_none());
        slot.put(Box::new(Commands::new(7, 3, true)));
        assert_eq!(slot.with(|it| (it.pool, it.number)), Some((7, 3)));
        let taken = slot.take().expect("it was put there");
        assert!(slot.take().is_none() && slot.with(|_| ()).is_none());
        slot.put(taken);
        assert_eq!(slot.with(|it| it.pool), Some(7));
    }

    #[test]
    fn who_looks_waits_for_who_looks() {
        const TIMES: u32 = 20_000;
        let slot = Slot::default();
        slot.put(Box::new(Commands::new(0, 0, true)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..TIMES).for_each(|_| slot.with(|it| it.executions += 1).expect("it stays here")));
            }
        });
        assert_eq!(slot.with(|it| it.executions), Some(3 * TIMES));
    }

    #[test]
    fn a_panic_does_not_keep_it() {
        let slot = Slot::default();
        slot.put(Box::new(Commands::new(7, 0, true)));
        let look = || slot.with(|_| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err());
        assert_eq!(slot.with(|it| it.pool), Some(7));
    }
}
