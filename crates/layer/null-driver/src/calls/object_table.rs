//! Handles that are not dispatchable: numbers that are the same in every run.
//!
//! The top byte of a handle is its type. Objects that the driver knows nothing of are a serial number; the others
//! are a place in a [`DriverObjectTable`] with the number of its use, so that a handle is never given twice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lavascope_abi::HandleType;

const TYPE_SHIFT: u32 = 56;
const GENERATION_SHIFT: u32 = 32;

/// A handle of a type without anything behind it.
pub(crate) fn next_handle(ty: HandleType) -> u64 {
    /// Relaxed: the numbers must differ and order nothing.
    static NEXT: [AtomicU64; 256] = [const { AtomicU64::new(1) }; 256];
    (ty as u64) << TYPE_SHIFT | NEXT[ty as usize].fetch_add(1, Ordering::Relaxed)
}

/// The objects of one type that the driver knows something of.
pub(crate) struct DriverObjectTable<T> {
    ty: HandleType,
    slots: RwLock<DriverObjectSlots<T>>,
}

struct DriverObjectSlots<T> {
    items: Vec<DriverObjectSlot<T>>,
    free: Vec<u32>,
    /// The generation of new slots.
    first_generation: u32,
}

struct DriverObjectSlot<T> {
    generation: u32,
    item: Option<Arc<T>>,
}

impl<T> DriverObjectTable<T> {
    pub(crate) const fn new(ty: HandleType) -> DriverObjectTable<T> {
        DriverObjectTable {
            ty,
            slots: RwLock::new(DriverObjectSlots { items: Vec::new(), free: Vec::new(), first_generation: 0 }),
        }
    }

    pub(crate) fn add(&self, item: T) -> u64 {
        let item = Arc::new(item);
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let at = match slots.free.pop() {
            Some(at) => at,
            None => {
                let uses = slots.first_generation;
                slots.items.push(DriverObjectSlot { generation: uses, item: None });
                slots.items.len() as u32 - 1
            }
        };
        let slot = &mut slots.items[at as usize];
        slot.item = Some(item);
        (self.ty as u64) << TYPE_SHIFT | u64::from(slot.generation) << GENERATION_SHIFT | u64::from(at + 1)
    }

    /// The object of a handle; none for null and for one that is gone.
    pub(crate) fn get(&self, handle: u64) -> Option<Arc<T>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let at = self.slot_index(handle)?;
        let slot = slots.items.get(at)?;
        slot.item.clone().filter(|_| slot.generation == generation_of(handle))
    }

    /// Puts another object behind a handle.
    pub(crate) fn replace(&self, handle: u64, item: Arc<T>) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = self.slot_index(handle).and_then(|at| slots.items.get_mut(at));
        if let Some(slot) = slot.filter(|it| it.generation == generation_of(handle) && it.item.is_some()) {
            slot.item = Some(item);
        }
    }

    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let at = self.slot_index(handle)?;
        let slot = slots.items.get_mut(at).filter(|it| it.generation == generation_of(handle))?;
        let item = slot.item.take()?;
        slot.generation = slot.generation.wrapping_add(1) & 0xff_ffff;
        slots.free.push(at as u32);
        if slots.free.len() == slots.items.len() {
            slots.release_memory();
        }
        Some(item)
    }

    fn slot_index(&self, handle: u64) -> Option<usize> {
        let is_ours = handle >> TYPE_SHIFT == self.ty as u64;
        (is_ours && handle as u32 != 0).then(|| handle as u32 as usize - 1)
    }
}

impl<T> DriverObjectSlots<T> {
    /// An empty table has no memory: the loader unloads drivers, and what they still have then is lost.
    fn release_memory(&mut self) {
        let uses = self.items.iter().map(|it| it.generation).max().unwrap_or_default();
        *self = DriverObjectSlots { items: Vec::new(), free: Vec::new(), first_generation: uses };
    }
}

fn generation_of(handle: u64) -> u32 {
    (handle >> GENERATION_SHIFT) as u32 & 0xff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_never_given_twice() {
        let table = DriverObjectTable::new(HandleType::Buffer);
        let first = table.add('a');
        let second = table.add('b');
        assert_eq!(table.get(first).as_deref(), Some(&'a'));
        assert_eq!(table.remove(first).as_deref(), Some(&'a'));
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        let third = table.add('c');
        assert!(third != first && third != second && third as u32 == first as u32);
        assert_eq!(table.get(third).as_deref(), Some(&'c'));
        assert!(table.get(0).is_none() && table.get(second + 7).is_none());
        assert!(table.remove(second).is_some() && table.remove(third).is_some());
        let fourth = table.add('d');
        assert!(![first, second, third].contains(&fourth) && table.get(third).is_none());
    }
}
