//! Removes state that no later access can need, so that memory stays bounded however long a program runs.

use std::sync::Arc;

use crate::access::usages::SYNC_TABLES;
use crate::dependency::clocks::{QueueClock, Tag};
use crate::dependency::subpass_intervals::{ClockQueries, ClockQuery};
use crate::queue::device::EngineDevice;

/// How many ranges more than after the last sweep start another one.
const SWEEP_MIN: usize = 4096;
/// How many intervals more than after the last sweep start another one. A sweep visits all ranges, so the limit grows
/// with their number. In debug builds each new interval starts a sweep, so that every test exercises it.
const INTERVALS_SWEEP_MIN: usize = if cfg!(debug_assertions) { 0 } else { 32 };
const INTERVALS_SWEEP_EXTRA_MAX: usize = 512;
const RANGES_PER_INTERVAL: usize = 1024;

impl EngineDevice {
    /// Removes ranges without an access that can still be part of a hazard. If the host knows that an access has
    /// completed, and sees its writes, all later submissions come after it.
    pub(crate) fn forget_finished(&mut self) {
        if self.queues.iter().all(|it| it.blocked.is_empty()) {
            let (first_scope, clock) = (&self.host.first_scope, &self.host_clock);
            self.states.retain(|it| !it.is_finished(first_scope, clock));
        }
        self.ranges_after_sweep = self.states.len();
    }

    /// Removes finished ranges, and locations of accesses that no range remembers, once there are many.
    pub(crate) fn sweep(&mut self) {
        if self.states.len() > 2 * self.ranges_after_sweep + SWEEP_MIN {
            self.forget_finished();
        }
        if self.locations.needs_sweep(self.states.len()) {
            let states = self.states.iter().flat_map(|(_, state)| state.tags());
            let mut tags: Vec<Tag> = states.chain(self.contents.tags()).collect();
            tags.sort_unstable();
            self.locations.retain_tags(&tags);
        }
    }

    /// Removes subpass intervals that no query can reach, once there are many. Not to be called inside a subpass: there
    /// the clock of the outside is stored elsewhere.
    pub(crate) fn sweep_intervals(&mut self, queue: u8) {
        let own = &mut self.queues[usize::from(queue)];
        let extra = (self.states.len() / RANGES_PER_INTERVAL).min(INTERVALS_SWEEP_EXTRA_MAX);
        let count = |clock: &QueueClock, host: &QueueClock| clock.interval_count() + host.interval_count();
        if count(&own.clock, &self.host_clock) <= 2 * own.intervals_after_sweep + INTERVALS_SWEEP_MIN + extra {
            return;
        }
        let queries = self.states.iter().flat_map(|(_, state)| state.clock_queries());
        let possible = own.rare_order.possible_reads.as_slice().iter();
        let possible = possible.map(|it| ClockQuery::of_stage(queue, SYNC_TABLES.stage(it.usage), it.tag));
        let queries = ClockQueries::new(queries.chain(possible).collect());
        own.clock.retain_queried(&queries);
        own.signals.retain_queried(&queries);
        own.received_visible.iter_mut().for_each(|it| it.1.retain_queried(&queries));
        self.host_clock.retain_queried(&queries);
        Arc::make_mut(&mut self.host).retain_queried(&queries);
        own.intervals_after_sweep = count(&own.clock, &self.host_clock);
    }

    /// The number of intervals of all clocks.
    #[cfg(test)]
    pub(crate) fn interval_count(&self) -> usize {
        self.queues.iter().map(|it| it.clock.interval_count()).sum::<usize>() + self.host_clock.interval_count()
    }

    /// Removes destroyed resources, unless a blocked submission may use them.
    pub(crate) fn remove_destroyed(&mut self) {
        if self.queues.iter().all(|it| it.blocked.is_empty()) {
            self.addresses.remove_destroyed();
            self.forget_freed_ranges();
        }
    }

    /// Removes the states of addresses that are free again.
    pub(crate) fn forget_freed_ranges(&mut self) {
        for range in self.addresses.take_freed_ranges() {
            self.states.remove(range);
        }
    }
}
