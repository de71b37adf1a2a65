//! Device addresses: ranges of a space that is the same in every run.
//!
//! Memory is mapped at its device address where the system allows it, so that host pointers repeat as well.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Between where programs are placed and where libraries are.
const FIRST: u64 = 0x2000_0000_0000;
const END: u64 = 0x5000_0000_0000;
/// Ranges begin at multiples of this, with a gap behind them: reading past one is seen.
const GRAIN: u64 = 64 << 10;

struct AddressSpace {
    /// Begin and end of the ranges in use.
    used: BTreeMap<u64, u64>,
    next: u64,
}

static SPACE: Mutex<AddressSpace> = Mutex::new(AddressSpace { used: BTreeMap::new(), next: FIRST });

/// Moves the beginning of the space, unless a part of it is in use.
pub(crate) fn apply_salt(salt: u64) {
    const STEP: u64 = 4 << 30;
    let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
    if salt != 0 && space.used.is_empty() {
        space.next = FIRST + salt % ((END - FIRST) / STEP / 2) * STEP;
    }
}

/// A range of addresses, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct DeviceAddressRange {
    first: u64,
}

impl DeviceAddressRange {
    /// The next free range; none if the space is full.
    pub(crate) fn allocate(size: u64) -> Option<DeviceAddressRange> {
        let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
        let size = size.checked_next_multiple_of(GRAIN)?.checked_add(GRAIN)?;
        let mut first = space.next;
        for turn in 0..2 {
            while let Some(end) = space.end_of_first_in(first, first.checked_add(size)?) {
                first = end.next_multiple_of(GRAIN);
            }
            if first.checked_add(size)? <= END {
                space.used.insert(first, first + size);
                space.next = first + size;
                return Some(DeviceAddressRange { first });
            }
            if turn == 0 {
                first = FIRST;
            }
        }
        None
    }

    /// The range at an address that an earlier run had; none if it is not free.
    pub(crate) fn allocate_at(first: u64, size: u64) -> Option<DeviceAddressRange> {
        let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
        let end = first.checked_add(size.checked_next_multiple_of(GRAIN)?)?.checked_add(GRAIN)?;
        let is_in = first >= FIRST && end <= END && first.is_multiple_of(GRAIN);
        if !is_in || space.end_of_first_in(first, end).is_some() {
            return None;
        }
        space.used.insert(first, end);
        Some(DeviceAddressRange { first })
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }
}

impl Drop for DeviceAddressRange {
    fn drop(&mut self) {
        let mut space = SPACE.lock().unwrap_or_else(PoisonError::into_inner);
        space.used.remove(&self.first);
        if space.used.is_empty() {
            // An empty map still has memory, which would be lost when the driver is unloaded.
            space.used = BTreeMap::new();
        }
    }
}

impl AddressSpace {
    /// Where a range in use ends that overlaps these addresses.
    fn end_of_first_in(&self, first: u64, end: u64) -> Option<u64> {
        let before = self.used.range(..end).next_back()?;
        (*before.1 > first).then_some(*before.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_do_not_overlap_and_can_be_had_again() {
        let (Some(a), Some(b)) = (DeviceAddressRange::allocate(100), DeviceAddressRange::allocate(1 << 20)) else {
            panic!("the space is full")
        };
        assert!(b.first() >= a.first() + GRAIN + GRAIN || b.first() < a.first());
        let first = a.first();
        assert!(DeviceAddressRange::allocate_at(first, 100).is_none());
        drop(a);
        assert_eq!(DeviceAddressRange::allocate_at(first, 100).map(|it| it.first()), Some(first));
        assert!(
            DeviceAddressRange::allocate_at(first + 1, 100).is_none() && DeviceAddressRange::allocate(END).is_none()
        );
        drop(b);
    }
}
