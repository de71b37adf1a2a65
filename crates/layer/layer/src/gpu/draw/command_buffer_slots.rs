//! The place of a command buffer.
//!
//! A thread that records into it takes it out and puts it back: the driver is called without a lock. That is done for
//! every draw, so the slot is one word: taking is one atomic operation, and putting back is a store.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use lavascope_collections::TaggedMap;

use super::command_buffer::CommandBufferState;
use crate::gpu::pipeline::variants::lock;

/// The slots of all command buffers of a device. They are made as needed, reused, and freed with this list only. So a
/// reference to one lives as long as the list is borrowed, even if its command buffer is freed.
#[derive(Default)]
pub(crate) struct CommandBufferSlots {
    /// Addresses of slots in `lists`.
    by_handle: TaggedMap,
    lists: Mutex<SlotLists>,
}

#[derive(Default)]
struct SlotLists {
    /// Each made by `Box::into_raw`, and given back by `Drop` alone.
    all: Vec<NonNull<CommandBufferSlot>>,
    /// The slots that no command buffer has.
    free: Vec<NonNull<CommandBufferSlot>>,
}

// SAFETY: the addresses are of slots that belong to this alone, and a slot can be used by any thread (`CommandBufferSlot: Sync`) and
// dropped by any thread (`CommandBufferState: Send`, below).
unsafe impl Send for SlotLists {}

impl CommandBufferSlots {
    /// The slot of a command buffer.
    #[inline(always)]
    pub(crate) fn get(&self, handle: u64) -> Option<&CommandBufferSlot> {
        let address = self.by_handle.get(handle, 0)?;
        // SAFETY: `add` alone fills the map, with addresses of slots that are freed with `self` alone.
        Some(unsafe { &*std::ptr::with_exposed_provenance::<CommandBufferSlot>(address as usize) })
    }

    /// Adds a command buffer.
    pub(crate) fn add(&self, handle: u64, commands: Box<CommandBufferState>) {
        let mut lists = lock(&self.lists);
        let slot = lists.free.pop().unwrap_or_else(|| {
            let slot = NonNull::from(Box::leak(Box::<CommandBufferSlot>::default()));
            lists.all.push(slot);
            slot
        });
        drop(lists);
        // SAFETY: a slot of `all`, which is freed with `self` alone.
        unsafe { slot.as_ref() }.put(commands);
        self.by_handle.insert(handle, slot.as_ptr().expose_provenance() as u64);
    }

    /// Removes a command buffer and returns its state; none if another thread holds it.
    pub(crate) fn remove(&self, handle: u64) -> Option<Box<CommandBufferState>> {
        let slot = self.get(handle)?;
        let commands = slot.take()?;
        self.by_handle.remove(handle, 0);
        lock(&self.lists).free.push(NonNull::from(slot));
        Some(commands)
    }

    pub(crate) fn handles_unsorted(&self) -> Vec<u64> {
        self.by_handle.entries_unsorted().into_iter().map(|it| it.0).collect()
    }

    /// Takes the states of all command buffers. The slots stay.
    pub(crate) fn take_all(&self) -> Vec<CommandBufferState> {
        let lists = lock(&self.lists);
        // SAFETY: slots of `all`, which are freed with `self` alone.
        lists.all.iter().filter_map(|it| unsafe { it.as_ref() }.take()).map(|it| *it).collect()
    }
}

impl Drop for CommandBufferSlots {
    fn drop(&mut self) {
        for slot in std::mem::take(&mut lock(&self.lists).all) {
            // SAFETY: made by `Box::leak` in `add`. References to it borrow `self`, so there is none.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}

/// The place of a command buffer. It does not move until the device is destroyed, and is reused.
#[derive(Default)]
pub(crate) struct CommandBufferSlot {
    /// Null if the state is taken or there is no command buffer; [`BUSY`] while a thread uses the state. Acquire when
    /// it is taken pairs with Release when it is put back.
    commands: AtomicPtr<CommandBufferState>,
}

/// One thread may take the state out, and another may put it back.
const _: fn() = || {
    fn is_sent<T: Send>() {}
    is_sent::<CommandBufferState>();
};

/// A value that is not the address of a state.
const BUSY: *mut CommandBufferState = std::ptr::dangling_mut();
/// The state is in use only for a short time; after this many attempts the thread yields.
const SPINS: u32 = 64;

/// Another thread uses the state.
struct SlotBusy;

impl CommandBufferSlot {
    /// Takes the state, after other threads have finished with it. The caller keeps it or puts it back.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Box<CommandBufferState>> {
        let found = self.exchange(std::ptr::null_mut())?;
        // SAFETY: made by `Box::into_raw` in `put`, and no longer here.
        Some(unsafe { Box::from_raw(found) })
    }

    /// Takes the state for as long as the result lives. A panic puts it back as well.
    #[inline(always)]
    pub(crate) fn hold(&self) -> Option<HeldCommandBuffer<'_>> {
        Some(HeldCommandBuffer { slot: self, commands: ManuallyDrop::new(self.take()?) })
    }

    /// Puts a state into an empty slot.
    #[inline(always)]
    pub(crate) fn put(&self, commands: Box<CommandBufferState>) {
        self.commands.store(Box::into_raw(commands), Ordering::Release);
    }

    /// Uses the state for work that does not call the driver.
    #[inline(always)]
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut CommandBufferState) -> T) -> Option<T> {
        let found = self.exchange(BUSY)?;
        // Puts the state back if the work panics.
        let _back = ReleaseGuard { slot: self, commands: found };
        // SAFETY: made by `Box::into_raw` in `put`; nobody else gets it while the slot is busy.
        Some(work(unsafe { &mut *found }))
    }

    /// Replaces the state, and returns the old one; none if there is none.
    #[inline(always)]
    fn exchange(&self, new: *mut CommandBufferState) -> Option<*mut CommandBufferState> {
        self.try_exchange(new).unwrap_or_else(|_: SlotBusy| self.exchange_later(new))
    }

    #[inline(always)]
    fn try_exchange(&self, new: *mut CommandBufferState) -> Result<Option<*mut CommandBufferState>, SlotBusy> {
        let found = self.commands.load(Ordering::Relaxed);
        if found.is_null() {
            return Ok(None);
        }
        let is_free = found != BUSY;
        if is_free && self.commands.compare_exchange(found, new, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Ok(Some(found));
        }
        Err(SlotBusy)
    }

    #[cold]
    fn exchange_later(&self, new: *mut CommandBufferState) -> Option<*mut CommandBufferState> {
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

impl Drop for CommandBufferSlot {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A state that is taken and will be put back.
pub(crate) struct HeldCommandBuffer<'a> {
    slot: &'a CommandBufferSlot,
    /// Taken by `Drop` alone.
    commands: ManuallyDrop<Box<CommandBufferState>>,
}

impl Deref for HeldCommandBuffer<'_> {
    type Target = CommandBufferState;

    #[inline(always)]
    fn deref(&self) -> &CommandBufferState {
        &self.commands
    }
}

impl DerefMut for HeldCommandBuffer<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut CommandBufferState {
        &mut self.commands
    }
}

impl Drop for HeldCommandBuffer<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once, here, where no other thread has access any more.
        self.slot.put(unsafe { ManuallyDrop::take(&mut self.commands) });
    }
}

/// Puts the state back when it is dropped.
struct ReleaseGuard<'a> {
    slot: &'a CommandBufferSlot,
    commands: *mut CommandBufferState,
}

impl Drop for ReleaseGuard<'_> {
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
        let slot = CommandBufferSlot::default();
        assert!(slot.take().is_none() && slot.with(|_| ()).is_none());
        slot.put(Box::new(CommandBufferState::new(7, 3, true)));
        assert_eq!(slot.with(|it| (it.pool, it.number)), Some((7, 3)));
        let taken = slot.take().expect("it was put there");
        assert!(slot.take().is_none() && slot.with(|_| ()).is_none());
        slot.put(taken);
        assert_eq!(slot.with(|it| it.pool), Some(7));
    }

    #[test]
    fn who_looks_waits_for_who_looks() {
        const TIMES: u32 = 20_000;
        let slot = CommandBufferSlot::default();
        slot.put(Box::new(CommandBufferState::new(0, 0, true)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..TIMES).for_each(|_| slot.with(|it| it.executions += 1).expect("it stays here")));
            }
        });
        assert_eq!(slot.with(|it| it.executions), Some(3 * TIMES));
    }

    #[test]
    fn a_panic_does_not_keep_it() {
        let slot = CommandBufferSlot::default();
        slot.put(Box::new(CommandBufferState::new(7, 0, true)));
        let look = || slot.with(|_| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(look)).is_err());
        assert_eq!(slot.with(|it| it.pool), Some(7));
        let hold = || {
            let _held = slot.hold();
            panic!("on purpose")
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(hold));
        assert!(caught.is_err());
        assert_eq!(slot.with(|it| it.pool), Some(7));
    }

    #[test]
    fn slots_are_used_again_and_stay_where_they_are() {
        let slots = CommandBufferSlots::default();
        let add = |handle, pool| slots.add(handle, Box::new(CommandBufferState::new(pool, 0, true)));
        add(0x10, 1);
        let first = slots.get(0x10).expect("it was added");
        assert_eq!(slots.remove(0x10).map(|it| it.pool), Some(1));
        assert!(slots.get(0x10).is_none() && slots.remove(0x10).is_none());
        (2..100).for_each(|it| add(it * 0x10, it));
        assert_eq!(first.with(|it| it.pool), Some(2), "the first slot is that of the next command buffer");
        assert_eq!(slots.handles_unsorted().len(), 98);
        assert_eq!(slots.take_all().len(), 98);
        assert!(first.take().is_none());
    }
}
