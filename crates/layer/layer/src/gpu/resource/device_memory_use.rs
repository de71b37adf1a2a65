//! Device memory that the checks use, for the user: the application does not see it.

use std::sync::Mutex;

use crate::gpu::pipeline::variants::lock;
use crate::report::report_file;

/// Memory that is allocated for checks, and the largest amount at any time.
#[derive(Default)]
pub(crate) struct DeviceMemoryUse {
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    allocations: u64,
    bytes: u64,
    most_allocations: u64,
    most_bytes: u64,
}

impl DeviceMemoryUse {
    pub(crate) fn add(&self, bytes: u64) {
        let mut item = lock(&self.counts);
        item.allocations += 1;
        item.bytes += bytes;
        item.most_allocations = item.most_allocations.max(item.allocations);
        item.most_bytes = item.most_bytes.max(item.bytes);
    }

    pub(crate) fn remove(&self, bytes: u64) {
        let mut item = lock(&self.counts);
        item.allocations = item.allocations.saturating_sub(1);
        item.bytes = item.bytes.saturating_sub(bytes);
    }

    /// The device ends.
    pub(crate) fn report(&self) {
        let item = *lock(&self.counts);
        report_file::gpu_memory_use(item.most_allocations, item.most_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_taken_is_remembered() {
        let taken = DeviceMemoryUse::default();
        taken.add(100);
        taken.add(50);
        taken.remove(100);
        taken.add(10);
        let expected = Counts { allocations: 2, bytes: 60, most_allocations: 2, most_bytes: 150 };
        assert_eq!(*lock(&taken.counts), expected);
    }
}
