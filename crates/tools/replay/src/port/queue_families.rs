//! Queue families: other numbers, and perhaps fewer queues, than where the trace was made.

use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi as vk;

/// Families of the trace here.
#[derive(Default)]
pub(crate) struct QueueFamilyMap {
    needs_remap: AtomicBool,
    map: RwLock<Vec<u32>>,
}

impl QueueFamilyMap {
    /// Whether any has another number here.
    pub(crate) fn needs_remap(&self) -> bool {
        self.needs_remap.load(Ordering::Relaxed)
    }

    /// The family here; a special value such as `VK_QUEUE_FAMILY_IGNORED` stays as it is.
    pub(crate) fn remap(&self, recorded: u32) -> u32 {
        if !self.needs_remap() {
            return recorded;
        }
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.get(recorded as usize).copied().unwrap_or(recorded)
    }

    /// Chooses a family for each of the trace, by their flags.
    pub(crate) fn build(&self, recorded: &[u32], here: &[u32]) {
        let chosen: Vec<u32> = recorded.iter().enumerate().map(|(at, it)| choose(at, *it, here)).collect();
        let is_other = chosen.iter().enumerate().any(|it| it.0 as u32 != *it.1);
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = chosen;
        self.needs_remap.store(is_other, Ordering::Relaxed);
    }
}

/// Capabilities that a queue with graphics or compute has without the flag for them.
fn abilities(flags: u32) -> u32 {
    let busy = vk::QueueFlags::GRAPHICS.0 | vk::QueueFlags::COMPUTE.0;
    if flags & busy != 0 { flags | vk::QueueFlags::TRANSFER.0 } else { flags }
}

/// The same one, or the one that can do as much and the least beyond; the first where none can.
fn choose(at: usize, wanted: u32, here: &[u32]) -> u32 {
    let wanted = abilities(wanted);
    if here.get(at).is_some_and(|it| abilities(*it) == wanted) {
        return at as u32;
    }
    let able = here.iter().enumerate().filter(|it| abilities(*it.1) & wanted == wanted);
    able.min_by_key(|it| (abilities(*it.1).count_ones(), it.0)).map_or(0, |it| it.0 as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_becomes_the_least_that_can_do_as_much() {
        let families = QueueFamilyMap::default();
        families.build(&[7, 4, 2], &[4, 7, 6]);
        assert!(families.needs_remap());
        assert_eq!([0, 1, 2].map(|it| families.remap(it)), [1, 0, 2]);
        assert_eq!(families.remap(vk::QUEUE_FAMILY_IGNORED), vk::QUEUE_FAMILY_IGNORED);
    }

    #[test]
    fn the_same_families_are_left_alone() {
        let families = QueueFamilyMap::default();
        families.build(&[7, 4], &[7, 4, 2]);
        assert!(!families.needs_remap());
        assert_eq!(families.remap(1), 1);
    }
}
