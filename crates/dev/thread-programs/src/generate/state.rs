//! The objects of a program while it is made.

use std::collections::BTreeMap;

use lavascope_test_support::TestRng;

use crate::operation::{Object, Operation};

/// The states of a command buffer, as the specification has them. Whether it is pending is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordingState {
    Initial,
    Recording,
    Executable,
    Invalid,
}

pub(super) struct CommandBufferState {
    pub(super) pool: usize,
    pub(super) is_secondary: bool,
    pub(super) state: RecordingState,
    /// What it refers to.
    pub(super) uses: Vec<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceState {
    Unsignaled,
    /// The index of a submission.
    Pending(usize),
    Signaled,
}

pub(super) struct Submission {
    pub(super) queue: usize,
    pub(super) fence: Option<usize>,
    pub(super) uses: Vec<Object>,
    pub(super) is_over: bool,
}

/// All objects by their numbers.
#[derive(Default)]
pub(super) struct ObjectStates {
    numbers: usize,
    pub(super) pools: Vec<usize>,
    pub(super) command_buffers: BTreeMap<usize, CommandBufferState>,
    pub(super) fences: BTreeMap<usize, FenceState>,
    pub(super) submissions: Vec<Submission>,
    pub(super) descriptor_pools: Vec<usize>,
    /// The pool of each set.
    pub(super) sets: BTreeMap<usize, usize>,
    pub(super) events: Vec<usize>,
    pub(super) buffers: Vec<usize>,
    pub(super) addresses: Vec<usize>,
    pub(super) marks: Vec<usize>,
    /// What the host has written, the last of it.
    pub(super) host_bytes: Vec<usize>,
    /// Each with its value.
    pub(super) timelines: BTreeMap<usize, u64>,
}

impl ObjectStates {
    /// The number of a new object.
    pub(super) fn next(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn is_pending(&self, object: Object) -> bool {
        self.submissions.iter().any(|it| !it.is_over && it.uses.contains(&object))
    }

    /// A change of the object makes command buffers invalid that refer to it.
    pub(super) fn invalidate(&mut self, object: Object) {
        for state in self.command_buffers.values_mut().filter(|it| it.uses.contains(&object)) {
            if matches!(state.state, RecordingState::Recording | RecordingState::Executable) {
                state.state = RecordingState::Invalid;
            }
        }
    }

    /// The command buffer is recorded anew, or not any more.
    pub(super) fn forget_recording(&mut self, command_buffer: usize, state: RecordingState) {
        if let Some(own) = self.command_buffers.get_mut(&command_buffer) {
            own.state = state;
            own.uses.clear();
        }
        self.invalidate(Object::CommandBuffer(command_buffer));
    }

    pub(super) fn members(&self, pool: usize) -> Vec<usize> {
        self.command_buffers.iter().filter(|it| it.1.pool == pool).map(|it| *it.0).collect()
    }

    pub(super) fn sets_of(&self, pool: usize) -> Vec<usize> {
        self.sets.iter().filter(|it| *it.1 == pool).map(|it| *it.0).collect()
    }

    /// The submission is over. Returns what it used, if nobody knew that before.
    pub(super) fn retire(&mut self, submission: usize) -> Vec<Object> {
        let state = &mut self.submissions[submission];
        if state.is_over {
            return Vec::new();
        }
        state.is_over = true;
        if let Some(fence) = state.fence.and_then(|it| self.fences.get_mut(&it)) {
            *fence = FenceState::Signaled;
        }
        let fence = state.fence.map(Object::Fence);
        state.uses.iter().copied().chain(fence).collect()
    }

    pub(super) fn retire_queue(&mut self, queue: usize) -> Vec<Object> {
        let all = (0..self.submissions.len()).filter(|it| self.submissions[*it].queue == queue).collect::<Vec<_>>();
        sorted(all.into_iter().flat_map(|it| self.retire(it)).collect())
    }

    pub(super) fn retire_all(&mut self) -> Vec<Object> {
        sorted((0..self.submissions.len()).flat_map(|it| self.retire(it)).collect::<Vec<_>>())
    }

    /// A timeline, and its next value.
    pub(super) fn next_signal(&mut self, rng: &mut TestRng) -> Option<(usize, u64)> {
        let all: Vec<usize> = self.timelines.keys().copied().collect();
        if all.is_empty() {
            return None;
        }
        let timeline = rng.pick(&all);
        let value = self.timelines.get_mut(&timeline)?;
        *value += 1 + rng.below(3_u64);
        Some((timeline, *value))
    }

    /// The calls that destroy everything. Nothing is pending.
    pub(super) fn destroy_all(&self) -> Vec<Operation> {
        let pools = self.pools.iter().map(|it| Operation::DestroyPool { pool: *it, members: self.members(*it) });
        let descriptor_pools = self.descriptor_pools.iter();
        let descriptor_pools =
            descriptor_pools.map(|it| Operation::DestroyDescriptorPool { pool: *it, members: self.sets_of(*it) });
        let fences = self.fences.keys().map(|it| Operation::DestroyFence(*it));
        let events = self.events.iter().map(|it| Operation::DestroyEvent(*it));
        let buffers = self.buffers.iter().chain(&self.marks).map(|it| Operation::DestroyBuffer(*it));
        let timelines = self.timelines.keys().map(|it| Operation::DestroyTimeline(*it));
        pools.chain(descriptor_pools).chain(fences).chain(events).chain(buffers).chain(timelines).collect()
    }
}

pub(super) fn sorted(mut objects: Vec<Object>) -> Vec<Object> {
    objects.sort_unstable();
    objects.dedup();
    objects
}
