//! Numbers for resources without names: of those that are alike, which one it is.
//!
//! A resource gets the smallest number that no live resource like it has. What is created and destroyed in each frame
//! so keeps its number, and long-lived resources are numbered in the order of their creation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lavascope_sync_ir::{Resource, ResourceId, ResourceKind};
use rustc_hash::FxHashMap;

/// What resources have in common that are alike, as far as a report describes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ResourceClass {
    Buffer { size: u64 },
    Image { format: i32, extent: [u32; 3], mips: u32, layers: u32 },
}

/// The numbers of one class.
#[derive(Default)]
struct FreeOrdinals {
    next: u32,
    free: BinaryHeap<Reverse<u32>>,
}

#[derive(Clone, Copy)]
struct RankedResource {
    class: ResourceClass,
    ordinal: u32,
    is_alive: bool,
    is_swapchain_image: bool,
}

#[derive(Default)]
pub(crate) struct ResourceOrdinals {
    classes: FxHashMap<ResourceClass, FreeOrdinals>,
    resources: FxHashMap<ResourceId, RankedResource>,
}

impl ResourceOrdinals {
    /// A resource is created, or known better than before.
    pub(crate) fn add(&mut self, id: ResourceId, resource: &Resource, is_swapchain_image: bool) {
        let class = match &resource.kind {
            ResourceKind::Buffer { size } => ResourceClass::Buffer { size: *size },
            ResourceKind::Image(image) => ResourceClass::Image {
                format: image.format.0,
                extent: image.extent,
                mips: image.mips,
                layers: image.layers,
            },
        };
        if self.resources.get(&id).is_some_and(|it| it.class == class && it.is_alive) {
            return;
        }
        self.release(id);
        let own = self.classes.entry(class).or_default();
        let ordinal = own.free.pop().map_or_else(
            || {
                own.next += 1;
                own.next - 1
            },
            |it| it.0,
        );
        self.resources.insert(id, RankedResource { class, ordinal, is_alive: true, is_swapchain_image });
    }

    /// A resource is destroyed: its number is free, and reports about the past still have it.
    pub(crate) fn release(&mut self, id: ResourceId) {
        let Some(own) = self.resources.get_mut(&id).filter(|it| it.is_alive) else { return };
        own.is_alive = false;
        if let Some(class) = self.classes.get_mut(&own.class) {
            class.free.push(Reverse(own.ordinal));
        }
    }

    pub(crate) fn forget(&mut self, id: ResourceId) {
        self.release(id);
        self.resources.remove(&id);
    }

    pub(crate) fn ordinal(&self, id: ResourceId) -> u32 {
        self.resources.get(&id).map_or(0, |it| it.ordinal)
    }

    pub(crate) fn is_swapchain_image(&self, id: ResourceId) -> bool {
        self.resources.get(&id).is_some_and(|it| it.is_swapchain_image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_created_again_keeps_its_number() {
        let mut all = ResourceOrdinals::default();
        let buffer = |size| Resource::new(ResourceKind::Buffer { size }, None);
        let ids: Vec<ResourceId> = (0..6).map(ResourceId).collect();
        all.add(ids[0], &buffer(8), false);
        all.add(ids[1], &buffer(8), false);
        all.add(ids[2], &buffer(16), true);
        all.add(ids[1], &buffer(8), false);
        assert_eq!([0, 1, 2].map(|it| all.ordinal(ids[it])), [0, 1, 0]);
        all.release(ids[0]);
        all.add(ids[3], &buffer(8), false);
        all.add(ids[4], &buffer(8), false);
        assert_eq!([0, 3, 4].map(|it| all.ordinal(ids[it])), [0, 0, 2]);
        all.forget(ids[0]);
        all.forget(ids[1]);
        all.add(ids[5], &buffer(8), false);
        assert_eq!(([0, 5].map(|it| all.ordinal(ids[it])), all.is_swapchain_image(ids[2])), ([0, 1], true));
    }
}
