//! What the host and the presentation engine do with resources themselves.

use std::ops::Range;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{FenceId, HazardKind, Region, ResourceId, SemaphoreId};

use crate::access::access_order::AccessOrder;
use crate::access::range_state::{AccessContext, Accessor, Addressing, Conflict, RangeState};
use crate::access::usages::{PRESENT, SYNC_TABLES, UsageIndex};
use crate::dependency::clocks::{FirstScope, Tag};
use crate::dependency::scopes::COMMON_SETS;
use crate::memory::aliases;
use crate::queue::device::{CompletedWork, EngineDevice, EventSetState};

impl EngineDevice {
    /// The host reads or writes mapped memory.
    pub(crate) fn host_access(&mut self, step: u32, resource: ResourceId, region: &Region, is_write: bool) {
        let access = if is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
        let Some(usage) = SYNC_TABLES.usage(PipelineStageFlags2::HOST.0, access.0) else { return };
        let tag = self.step_tag(step);
        let queue = self.host_queue();
        let ranges = self.ranges(resource, region);
        let (identity, rules, clock) = (self.addresses.identity(resource), self.rules, &self.host_clock);
        let name = Addressing::Own;
        let context = AccessContext {
            rules,
            clock,
            queue,
            tag,
            instance_begin: None,
            subpass_begin: 0,
            unordered_subpasses: &[],
            identity,
            addressing: name,
        };
        let mut conflicts = self.conflicts(&ranges, &context, usage);
        conflicts.extend(self.alias_conflicts(&context, resource, &ranges, (usage, AccessOrder::None)));
        self.report(tag, resource, conflicts);
        let by = Accessor { usage, queue, order: AccessOrder::None };
        let elsewhere = self.alias_writes(resource, &ranges, by);
        let EngineDevice { host_clock: clock, states, .. } = self;
        let context = AccessContext {
            rules,
            clock,
            queue,
            tag,
            instance_begin: None,
            subpass_begin: 0,
            unordered_subpasses: &[],
            identity,
            addressing: name,
        };
        for range in ranges {
            aliases::record_access(states, range, &elsewhere, by, &context);
        }
        self.record_host_access(tag);
        // The host is in order with itself.
        let own = FirstScope::from_queue(queue, tag, COMMON_SETS.host, COMMON_SETS.host_usages);
        self.host_clock.apply_second_scope(&own, COMMON_SETS.host, COMMON_SETS.host_usages);
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
                let conflicts = state.check(context, usage, AccessOrder::None);
                if !conflicts.is_empty() {
                    found.push((part, conflicts));
                }
            }
        }
        found
    }

    /// The host sets an event: what the host did so far is its first scope.
    pub(crate) fn host_set_event(&mut self, step: u32, event: usize) {
        let tag = self.step_tag(step);
        let (queue, clock) = (self.host_queue(), self.host_clock.clone());
        if let Some(event) = self.events.get_mut(event) {
            event.set.get_or_insert(EventSetState { tag, queue, clock, stages: COMMON_SETS.host });
        }
    }

    /// The presentation engine gives an image to the application, which must wait for it to be done.
    pub(crate) fn acquire(
        &mut self,
        step: u32,
        image: ResourceId,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) {
        let tag = self.step_tag(step);
        let queue = self.presentation_queue(image);
        self.record_present(queue, tag, image);
        self.signal_acquired(image, tag, semaphore, fence);
    }

    /// Images go to the presentation engine, after what some semaphores hand on.
    pub(crate) fn present(&mut self, step: u32, host: &CompletedWork, waits: &[SemaphoreId], images: &[ResourceId]) {
        let mut completed = self.take_present_waits(waits);
        completed.merge(host);
        let tag = self.step_tag(step);
        for image in images {
            let queue = self.presentation_queue(*image);
            let conflicts = self.present_conflicts(*image, &completed, queue);
            self.report(tag, *image, conflicts);
            self.merge_presented(*image, &completed);
            self.record_present(queue, tag, *image);
        }
    }

    fn present_conflicts(
        &self,
        image: ResourceId,
        completed: &CompletedWork,
        queue: u8,
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let check = |state: &RangeState| state.check_present(self.rules, &completed.first_scope, queue);
        let whole = self.addresses.whole(image);
        let own = self.states.overlapping(whole.clone()).map(|(part, state)| (part, check(state)));
        let mut conflicts: Vec<_> = own.filter(|it| !it.1.is_empty()).collect();
        let (identity, rules, clock) = (self.addresses.identity(image), self.rules, &self.host_clock);
        for (own, theirs) in self.addresses.aliased_ranges(image, &[whole]) {
            let name = Addressing::Alias { start: own.start, end: own.end };
            let context = AccessContext {
                rules,
                clock,
                queue,
                tag: Tag::MAX,
                instance_begin: None,
                subpass_begin: 0,
                unordered_subpasses: &[],
                identity,
                addressing: name,
            };
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

    fn record_present(&mut self, queue: u8, tag: Tag, image: ResourceId) {
        let identity = self.addresses.identity(image);
        self.states.update(self.addresses.whole(image), |_, state| {
            let by = Accessor { usage: PRESENT, queue, order: AccessOrder::None };
            state.get_or_insert_default().record_write(by, identity, tag);
        });
    }
}

/// The names of conflicts with the presentation engine. Where nothing waits for the image it is still presented; where
/// something does, and another stage writes, the write comes after the engine's last read.
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

    /// The presentation engine's dealings with each image are by themselves: neither a queue's nor the host's.
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
