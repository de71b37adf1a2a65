//! What the host and the presentation engine do with resources themselves.

use std::ops::Range;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{FenceId, HazardKind, Region, ResourceId, SemaphoreId};

use crate::alias;
use crate::clock::{Carry, Tag};
use crate::device::{Device, Known, SetAt};
use crate::order::Order;
use crate::scope::EVERYTHING;
use crate::state::{By, Conflict, Name, Now, State};
use crate::usage::{PRESENT, TABLES, Usage};

impl Device {
    /// The host reads or writes mapped memory.
    pub(crate) fn host_access(&mut self, step: u32, resource: ResourceId, region: &Region, is_write: bool) {
        let access = if is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
        let Some(usage) = TABLES.usage(PipelineStageFlags2::HOST.0, access.0) else { return };
        let tag = self.step_tag(step);
        let queue = self.host_queue();
        let ranges = self.ranges(resource, region);
        let (through, rules, clock) = (self.addresses.identity(resource), self.rules, &self.host_clock);
        let name = Name::Own;
        let now = Now { rules, clock, queue, tag, instance: None, from: 0, apart: &[], through, name };
        let mut conflicts = self.conflicts(&ranges, &now, usage);
        conflicts.extend(self.alias_conflicts(&now, resource, &ranges, (usage, Order::None)));
        self.report(tag, resource, conflicts);
        let by = By { usage, queue, order: Order::None };
        let elsewhere = self.written_elsewhere(resource, &ranges, by);
        let Device { host_clock: clock, states, .. } = self;
        let now = Now { rules, clock, queue, tag, instance: None, from: 0, apart: &[], through, name };
        for range in ranges {
            alias::keep(states, range, &elsewhere, by, &now);
        }
        self.host_did(tag);
        // The host is in order with itself.
        let own = Carry::of(queue, tag, EVERYTHING.host, EVERYTHING.host_usages);
        self.host_clock.second_scope(&own, EVERYTHING.host, EVERYTHING.host_usages);
    }

    fn conflicts(&self, ranges: &[Range<u64>], now: &Now<'_>, usage: Usage) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let mut found = Vec::new();
        for range in ranges {
            for (part, state) in self.states.overlapping(range.clone()) {
                let conflicts = state.check(now, usage, Order::None);
                if !conflicts.is_empty() {
                    found.push((part, conflicts));
                }
            }
        }
        found
    }

    /// The host sets an event: what the host did so far is its first scope.
    pub(crate) fn host_sets_event(&mut self, step: u32, event: usize) {
        let tag = self.step_tag(step);
        let (queue, clock) = (self.host_queue(), self.host_clock.clone());
        if let Some(event) = self.events.get_mut(event) {
            event.set.get_or_insert(SetAt { tag, queue, clock, stages: EVERYTHING.host });
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
        self.keep_presented(queue, tag, image);
        self.tell_acquired(image, tag, semaphore, fence);
    }

    /// Images go to the presentation engine, after what some semaphores hand on.
    pub(crate) fn present(&mut self, step: u32, host: &Known, waits: &[SemaphoreId], images: &[ResourceId]) {
        let mut known = self.wait_to_present(waits);
        known.raise_all(host);
        let tag = self.step_tag(step);
        for image in images {
            let queue = self.presentation_queue(*image);
            let conflicts = self.present_conflicts(*image, &known, queue);
            self.report(tag, *image, conflicts);
            self.keep_known(*image, &known);
            self.keep_presented(queue, tag, *image);
        }
    }

    fn present_conflicts(&self, image: ResourceId, known: &Known, queue: u8) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let check = |state: &State| state.check_present(self.rules, &known.carry, queue);
        let whole = self.addresses.whole(image);
        let own = self.states.overlapping(whole.clone()).map(|(part, state)| (part, check(state)));
        let mut conflicts: Vec<_> = own.filter(|it| !it.1.is_empty()).collect();
        let (through, rules, clock) = (self.addresses.identity(image), self.rules, &self.host_clock);
        for (own, theirs) in self.addresses.aliased(image, &[whole]) {
            let name = Name::Alias { start: own.start, end: own.end };
            let now = Now { rules, clock, queue, tag: Tag::MAX, instance: None, from: 0, apart: &[], through, name };
            for (_, state) in self.states.overlapping(theirs) {
                conflicts.extend(self.by_another_name(&now, (PRESENT, Order::None), &own, &check(state)));
            }
        }
        conflicts
    }

    fn keep_presented(&mut self, queue: u8, tag: Tag, image: ResourceId) {
        let through = self.addresses.identity(image);
        self.states.update(self.addresses.whole(image), |_, state| {
            let by = By { usage: PRESENT, queue, order: Order::None };
            state.get_or_insert_default().add_write(by, through, tag);
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
        let mut device = Device::new(&[queue, queue], 0, 0, 0);
        let numbers = [5, 3, 5, 9].map(|it| device.presentation_queue(ResourceId(it)));
        assert_eq!((device.host_queue(), numbers), (2, [3, 4, 3, 5]));
        let many: Vec<u8> = (10..400).map(|it| device.presentation_queue(ResourceId(it))).collect();
        assert_eq!((many[0], many.last()), (6, Some(&u8::MAX)));
    }

    /// A window that changes its size has new images every time.
    #[test]
    fn the_numbers_of_images_that_are_gone_are_given_again() {
        let mut device = Device::new(&[lavascope_sync_ir::Queue { family: 0, flags: 1 }], 0, 0, 0);
        for round in 0..1000 {
            let images = [2 * round, 2 * round + 1].map(ResourceId);
            let mut numbers = images.map(|it| device.presentation_queue(it));
            numbers.sort_unstable();
            assert_eq!(numbers, [2, 3]);
            images.iter().for_each(|it| device.forget_presented(*it));
        }
    }
}
