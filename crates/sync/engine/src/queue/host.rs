//! What the host and the presentation engine do with resources themselves.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{FenceId, HazardKind, Region, ResourceId, SemaphoreId, SemaphorePoint};

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::access_order::AccessOrder;
use crate::access::range_state::{Accessor, Conflict, RangeState};
use crate::access::usages::{PRESENT, PRESENTATION, SYNC_TABLES, StageSet, UsageIndex};
use crate::dependency::clocks::{FirstScope, QueueClock, Tag};
use crate::dependency::scopes;
use crate::dependency::scopes::COMMON_SETS;
use crate::memory::addresses::ResourceIdentity;
use crate::memory::aliases;
use crate::queue::device::EngineDevice;
use crate::queue::signals::{CompletedWork, EventSetState};
use crate::rules::Rules;

impl EngineDevice {
    /// The index of the host among the queues: behind all of them.
    pub(crate) fn host_queue(&self) -> u8 {
        self.queues.len() as u8
    }

    /// Adds an access of the host: later submissions come after it, and see what it wrote
    /// (`synchronization-submission-host-writes`).
    pub(crate) fn add_host_access(&mut self, tag: Tag) {
        let first_scope = FirstScope::from_queue(self.host_queue(), tag, COMMON_SETS.host, COMMON_SETS.host_usages);
        let queue = self.host_queue();
        let host = Arc::make_mut(&mut self.host);
        host.first_scope.merge(&first_scope);
        host.batches.raise(queue, tag);
    }

    /// The index among the queues of the presentation engine's accesses to an image. Each image is like a queue of its
    /// own.
    pub(crate) fn presentation_queue(&mut self, image: ResourceId) -> u8 {
        let (next, free) = (self.presented.len(), &mut self.free_presentation_slots);
        let slot = *self.presented.entry(image).or_insert_with(|| free.pop().unwrap_or(next));
        // Images beyond the last index share it.
        (self.queues.len() + 1 + slot).min(usize::from(u8::MAX)) as u8
    }

    /// Frees the slot of a destroyed image.
    pub(crate) fn forget_presented(&mut self, image: ResourceId) {
        self.free_presentation_slots.extend(self.presented.remove(&image));
    }

    /// Signals that the presentation engine has finished with an image at `tag`.
    ///
    /// Spec: `vkAcquireNextImageKHR`. The signal comes after what the presentation engine did with that image, and after
    /// nothing else: which image comes back is up to the implementation, so work before an earlier present of the same
    /// image is not ordered by it.
    pub(crate) fn signal_acquired(
        &mut self,
        image: ResourceId,
        tag: Tag,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) {
        let queue = self.presentation_queue(image);
        let mut stages = StageSet::default();
        stages.add(PRESENTATION);
        let first_scope = FirstScope::from_queue(queue, tag, stages, scopes::usages_of(stages));
        let mut completed = CompletedWork { first_scope, ..CompletedWork::default() };
        completed.batches.raise(queue, tag);
        if let Some(slot) = fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *slot = Some(completed.clone());
        }
        if let Some(semaphore) = semaphore {
            self.set_semaphore(SemaphorePoint { semaphore, value: None }, completed);
        }
    }

    /// What the semaphores that a present waits for hand on.
    pub(crate) fn take_present_waits(&mut self, waits: &[SemaphoreId]) -> CompletedWork {
        let mut completed = CompletedWork::default();
        for semaphore in waits {
            completed
                .merge(&self.take_semaphore(SemaphorePoint { semaphore: *semaphore, value: None }).unwrap_or_default());
        }
        completed
    }

    /// The host reads or writes mapped memory.
    pub(crate) fn host_access(&mut self, step: u32, resource: ResourceId, region: &Region, is_write: bool) {
        let access = if is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
        let Some(usage) = SYNC_TABLES.usage(PipelineStageFlags2::HOST.0, access.0) else { return };
        let tag = self.step_tag(step);
        let queue = self.host_queue();
        let ranges = self.ranges(resource, region);
        let context = self.host_context(resource, tag);
        let mut conflicts = self.conflicts(&ranges, &context, usage);
        conflicts.extend(self.alias_conflicts(&context, resource, &ranges, (usage, AccessOrder::None)));
        self.report_conflicts(tag, resource, conflicts);
        let by = Accessor { usage, queue, order: AccessOrder::None };
        let alias_writes = self.alias_writes(resource, &ranges, by);
        let (identity, rules) = (self.addresses.identity(resource), self.rules);
        let EngineDevice { host_clock: clock, states, .. } = self;
        let context = host_context((rules, clock, queue), tag, identity);
        for range in ranges {
            aliases::add_access(states, range, &alias_writes, by, &context);
        }
        self.add_host_access(tag);
        // The host is in order with itself.
        let own = FirstScope::from_queue(queue, tag, COMMON_SETS.host, COMMON_SETS.host_usages);
        self.host_clock.apply_second_scope(&own, COMMON_SETS.host, COMMON_SETS.host_usages);
    }

    /// Which of these bytes of a buffer the device may still use, so that the host must not write them yet.
    pub(crate) fn bytes_in_use(&self, resource: ResourceId, bytes: &[Range<u64>]) -> Vec<Range<u64>> {
        let Some(usage) = SYNC_TABLES.usage(PipelineStageFlags2::HOST.0, AccessFlags2::HOST_WRITE.0) else {
            return Vec::new();
        };
        let context = self.host_context(resource, Tag::MAX);
        let is_used = |part: &&Range<u64>| {
            let ranges = self.addresses.ranges(resource, &Region::Buffer((*part).clone()));
            !self.conflicts(&ranges, &context, usage).is_empty()
        };
        bytes.iter().filter(is_used).cloned().collect()
    }

    fn host_context(&self, resource: ResourceId, tag: Tag) -> AccessContext<'_> {
        let identity = self.addresses.identity(resource);
        host_context((self.rules, &self.host_clock, self.host_queue()), tag, identity)
    }

    fn conflicts(
        &self,
        ranges: &[Range<u64>],
        context: &AccessContext<'_>,
        usage: UsageIndex,
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let mut found = Vec::new();
        for range in ranges {
            for (part, state) in self.states.overlapping(range.clone()) {
                let conflicts = state.find_conflicts(context, usage, AccessOrder::None);
                if !conflicts.is_empty() {
                    found.push((part, conflicts));
                }
            }
        }
        found
    }

    /// The host sets an event. Its first scope has all accesses of the host so far.
    pub(crate) fn host_set_event(&mut self, step: u32, event: usize) {
        let tag = self.step_tag(step);
        let (queue, clock) = (self.host_queue(), self.host_clock.clone());
        if let Some(event) = self.events.get_mut(event) {
            event.set.get_or_insert(EventSetState { tag, queue, clock, stages: COMMON_SETS.host });
        }
    }

    /// The application acquires an image. The presentation engine may still read it until the semaphore or the fence is
    /// signaled.
    pub(crate) fn acquire(
        &mut self,
        step: u32,
        image: ResourceId,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) {
        let tag = self.step_tag(step);
        let queue = self.presentation_queue(image);
        self.add_present(queue, tag, image);
        self.signal_acquired(image, tag, semaphore, fence);
    }

    /// Presents images, after what the semaphores hand on.
    pub(crate) fn present(&mut self, step: u32, host: &CompletedWork, waits: &[SemaphoreId], images: &[ResourceId]) {
        let mut completed = self.take_present_waits(waits);
        completed.merge(host);
        let tag = self.step_tag(step);
        for image in images {
            let queue = self.presentation_queue(*image);
            let conflicts = self.present_conflicts(*image, &completed, queue);
            self.report_conflicts(tag, *image, conflicts);
            self.add_present(queue, tag, *image);
        }
    }

    fn present_conflicts(
        &self,
        image: ResourceId,
        completed: &CompletedWork,
        queue: u8,
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let check = |state: &RangeState| state.find_present_conflicts(self.rules, &completed.first_scope, queue);
        let whole = self.addresses.whole(image);
        let own = self.states.overlapping(whole.clone()).map(|(part, state)| (part, check(state)));
        let mut conflicts: Vec<_> = own.filter(|it| !it.1.is_empty()).collect();
        let (identity, rules, clock) = (self.addresses.identity(image), self.rules, &self.host_clock);
        for (own, theirs) in self.addresses.aliased_ranges(image, &[whole]) {
            let addressing = Addressing::Alias { start: own.start, end: own.end };
            let context = AccessContext { addressing, ..host_context((rules, clock, queue), Tag::MAX, identity) };
            for (_, state) in self.states.overlapping(theirs) {
                conflicts.extend(self.without_newer_access(
                    &context,
                    (PRESENT, AccessOrder::None),
                    &own,
                    &check(state),
                ));
            }
        }
        conflicts
    }

    fn add_present(&mut self, queue: u8, tag: Tag, image: ResourceId) {
        let identity = self.addresses.identity(image);
        self.states.update(self.addresses.whole(image), |_, state| {
            let by = Accessor { usage: PRESENT, queue, order: AccessOrder::None };
            state.get_or_insert_default().add_write(by, identity, tag);
        });
    }
}

fn host_context<'a>(
    (rules, clock, queue): (Rules, &'a QueueClock, u8),
    tag: Tag,
    identity: ResourceIdentity,
) -> AccessContext<'a> {
    AccessContext {
        rules,
        clock,
        queue,
        tag,
        instance_begin: None,
        pass_begin: Tag::MAX,
        subpass_begin: 0,
        unordered_subpasses: &[],
        rare_order: None,
        identity,
        addressing: Addressing::Own,
    }
}

/// The hazard kind of a conflict with the presentation engine. If nothing waits for the acquire, the image may still be
/// presented. If another stage than the writing one waits, the write conflicts with the last read of the engine.
pub(crate) fn after_present(kind: HazardKind) -> HazardKind {
    match kind {
        HazardKind::ReadAfterWrite | HazardKind::ReadRacingWrite => HazardKind::ReadAfterPresent,
        HazardKind::WriteAfterWrite => HazardKind::WriteAfterRead,
        HazardKind::WriteRacingWrite => HazardKind::WriteAfterPresent,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The presentation engine has an index for each image, different from those of queues and of the host.
    #[test]
    fn every_presented_image_has_a_number() {
        let queue = lavascope_sync_ir::Queue { family: 0, flags: 1 };
        let mut device = EngineDevice::new(&[queue, queue], 0, 0, 0);
        let numbers = [5, 3, 5, 9].map(|it| device.presentation_queue(ResourceId(it)));
        assert_eq!((device.host_queue(), numbers), (2, [3, 4, 3, 5]));
        let many: Vec<u8> = (10..400).map(|it| device.presentation_queue(ResourceId(it))).collect();
        assert_eq!((many[0], many.last()), (6, Some(&u8::MAX)));
    }

    /// A window that changes its size has new images every time.
    #[test]
    fn the_numbers_of_images_that_are_gone_are_given_again() {
        let mut device = EngineDevice::new(&[lavascope_sync_ir::Queue { family: 0, flags: 1 }], 0, 0, 0);
        for round in 0..1000 {
            let images = [2 * round, 2 * round + 1].map(ResourceId);
            let mut numbers = images.map(|it| device.presentation_queue(it));
            numbers.sort_unstable();
            assert_eq!(numbers, [2, 3]);
            images.iter().for_each(|it| device.forget_presented(*it));
        }
    }
}
