//! A device: its queues, its memory, and the tags of what happened on them.
//!
//! The engine executes work when a queue would execute it (`submissions`). It goes through all commands of a command
//! buffer each time a queue executes it: marks make that fast, and there is no summary that could be wrong.

use std::ops::Range;
use std::sync::Arc;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{CommandLocation, Hazard, ProgramLocation, Region, ResourceId};
use rustc_hash::FxHashMap;

use crate::access::contents::ContentTracker;
use crate::access::range_state::RangeState;
use crate::dependency::clocks::{QueueClock, Tag};
use crate::memory::addresses::AddressMap;
use crate::queue::signals::{CompletedWork, TrackedEvent, TrackedSemaphore};
use crate::queue::submissions::QueueTimeline;
use crate::queue::tag_locations::TagLocations;
use crate::rules::Rules;

/// Tags of one command: two for a subpass that ends with it, its own, one for its barrier, and the rest for a subpass
/// that begins with it.
pub(crate) const TAGS_PER_COMMAND: Tag = 8;
const OWN_TAG: Tag = 2;

/// An image that got addresses for its component planes while a command buffer was recorded.
pub(crate) struct MovedImage {
    pub(crate) image: ResourceId,
    pub(crate) old_addresses: Range<u64>,
    pub(crate) planes: Vec<u64>,
}

pub(crate) struct EngineDevice {
    pub(crate) rules: Rules,
    pub(crate) queues: Vec<QueueTimeline>,
    /// In a box, because an isolated execution borrows it by swapping.
    pub(crate) addresses: Box<AddressMap>,
    pub(crate) states: IntervalMap<RangeState>,
    pub(crate) events: Vec<TrackedEvent>,
    pub(super) semaphores: Vec<TrackedSemaphore>,
    pub(super) fences: Vec<Option<CompletedWork>>,
    /// What the host knows to have completed.
    pub(super) host: Arc<CompletedWork>,
    /// What happened before the next access of the host.
    pub(crate) host_clock: QueueClock,
    pub(super) tag: Tag,
    /// Images that were presented or acquired, and the slot of each.
    pub(super) presented: FxHashMap<ResourceId, usize>,
    /// Slots of destroyed images. New images get them again: tags only grow, so nothing that clocks have of the old image
    /// covers an access of the new one.
    pub(super) free_presentation_slots: Vec<usize>,
    pub(crate) locations: TagLocations,
    /// How many ranges there were after the last sweep.
    pub(super) ranges_after_sweep: usize,
    pub(crate) hazards: Vec<Hazard>,
    /// Which contents are undefined, and what used them.
    pub(crate) contents: ContentTracker,
    /// Whether this device executes one command buffer by itself, with the addresses of another device. That device
    /// needs to know which images moved.
    pub(crate) is_isolated: bool,
    pub(crate) moved_images: Vec<MovedImage>,
    /// Whether a sparse resource was used. The next bind may move it.
    pub(crate) has_used_sparse: bool,
}

impl EngineDevice {
    pub(crate) fn new(queues: &[lavascope_sync_ir::Queue], events: u32, semaphores: u32, fences: u32) -> EngineDevice {
        EngineDevice {
            rules: Rules::default(),
            queues: queues.iter().map(|it| QueueTimeline::new(*it)).collect(),
            addresses: Box::default(),
            states: IntervalMap::default(),
            events: vec![TrackedEvent::default(); events as usize],
            semaphores: vec![TrackedSemaphore::default(); semaphores as usize],
            fences: vec![None; fences as usize],
            host: Arc::default(),
            host_clock: QueueClock::default(),
            tag: TAGS_PER_COMMAND,
            presented: FxHashMap::default(),
            free_presentation_slots: Vec::new(),
            locations: TagLocations::default(),
            ranges_after_sweep: 0,
            hazards: Vec::new(),
            contents: ContentTracker::default(),
            is_isolated: false,
            moved_images: Vec::new(),
            has_used_sparse: false,
        }
    }

    /// A device that executes one command buffer by itself, on a queue of this kind.
    pub(crate) fn isolated(queue: lavascope_sync_ir::Queue) -> EngineDevice {
        EngineDevice { is_isolated: true, ..EngineDevice::new(&[queue], 0, 0, 0) }
    }

    /// Makes the device ready for another isolated execution.
    pub(crate) fn reset_isolated(&mut self, queue: lavascope_sync_ir::Queue) {
        self.queues[0].reset_isolated(queue);
        self.states.clear();
        self.events.clear();
        self.locations.clear();
        self.hazards.clear();
        self.contents.faults.clear();
        self.moved_images.clear();
        (self.tag, self.has_used_sparse) = (TAGS_PER_COMMAND, false);
    }

    /// Adds events, not set, until there are as many as on another device.
    pub(crate) fn grow_events(&mut self, other: &EngineDevice) {
        if self.events.len() < other.events.len() {
            self.events.resize(other.events.len(), TrackedEvent::default());
        }
    }

    /// The tag of a step of the host. Tags count up over all queues of the device.
    pub(crate) fn step_tag(&mut self, step: u32) -> Tag {
        self.locations.begin(self.tag + TAGS_PER_COMMAND, ProgramLocation::Step(step));
        self.next_tag()
    }

    /// Begins a run of commands with consecutive tags, and returns the first tag.
    pub(crate) fn begin_run(&mut self, at: &CommandLocation) -> Tag {
        let first = self.tag + TAGS_PER_COMMAND;
        self.locations.begin(first, ProgramLocation::Command(at.clone()));
        first
    }

    /// The tag of the next command.
    pub(crate) fn next_tag(&mut self) -> Tag {
        self.tag += TAGS_PER_COMMAND;
        self.tag + OWN_TAG
    }

    /// Skips the tags of commands that need no execution.
    pub(crate) fn skip_commands(&mut self, commands: usize) {
        self.tag += commands as Tag * TAGS_PER_COMMAND;
    }

    /// The tag of the last command.
    pub(crate) fn last_tag(&self) -> Tag {
        self.tag + OWN_TAG
    }

    /// The addresses of a region that a command is about to use. The first use of single components moves an image to
    /// planes, one for each component.
    pub(crate) fn ranges(&mut self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        if self.addresses.needs_component_planes(resource, region) {
            let (old, planes) = self.addresses.add_component_planes(resource);
            self.move_states(resource, &old, &planes);
            self.moved_images.extend(self.is_isolated.then_some(MovedImage {
                image: resource,
                old_addresses: old,
                planes,
            }));
        }
        self.has_used_sparse |= self.addresses.is_sparse(resource);
        self.addresses.ranges(resource, region)
    }

    /// Moves the states of an image to each of its planes.
    pub(crate) fn move_states(&mut self, resource: ResourceId, old: &Range<u64>, planes: &[u64]) {
        let states: Vec<(Range<u64>, RangeState)> =
            self.states.overlapping(old.clone()).map(|(range, state)| (range, state.clone())).collect();
        for (range, state) in states {
            for plane in planes {
                let (start, end) = (plane + range.start - old.start, plane + range.end - old.start);
                self.states.update(start..end, |_, it| *it = Some(state.clone()));
            }
        }
        self.states.remove(old.clone());
        // Overlays of its aliases name its addresses.
        for other in self.addresses.aliases_of(resource) {
            self.states.update(self.addresses.whole(other), |_, state| {
                if let Some(state) = state {
                    state.move_alias_addresses(old, planes);
                }
            });
        }
    }
}

/// The element of a list with an index. The list grows as needed.
pub(crate) fn get_or_grow<T: Default>(all: &mut Vec<T>, id: usize) -> &mut T {
    if all.len() <= id {
        all.resize_with(id + 1, T::default);
    }
    &mut all[id]
}
