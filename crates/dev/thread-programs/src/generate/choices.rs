//! Which call a thread makes next.

use super::Generator;
use super::state::{CommandBufferState, FenceState, RecordingState, Submission, sorted};
use crate::operation::{Object, Operation};

impl Generator {
    /// Makes a random call, if it is possible now.
    pub(super) fn try_random_call(&mut self, thread: usize) -> bool {
        let made = match self.rng.below(40) {
            0..20 => self.command_buffer_call(),
            20..28 => self.fence_call(),
            28..34 => self.descriptor_call(),
            _ => self.other_call(),
        };
        made.is_some_and(|operation| {
            self.call(thread, operation);
            true
        })
    }

    fn pick(&mut self, all: &[usize]) -> Option<usize> {
        (!all.is_empty()).then(|| self.rng.pick(all))
    }

    /// A command buffer in a state.
    fn pick_command_buffer(&mut self, is_fit: impl Fn(&CommandBufferState) -> bool) -> Option<(usize, usize)> {
        let all: Vec<usize> = self.objects.command_buffers.iter().filter(|it| is_fit(it.1)).map(|it| *it.0).collect();
        let command_buffer = self.pick(&all)?;
        Some((self.objects.command_buffers[&command_buffer].pool, command_buffer))
    }

    fn command_buffer_call(&mut self) -> Option<Operation> {
        match self.rng.below(20) {
            0 if self.objects.pools.len() < 4 => {
                let pool = self.objects.next();
                self.objects.pools.push(pool);
                Some(Operation::CreatePool(pool))
            }
            0..3 => self.allocate(),
            3..7 => self.begin(),
            7..9 => self.record(),
            9 => self.execute(),
            10..13 => self.end_recording(),
            13 => self.reset(),
            14 => self.end_pool(),
            _ => self.submit(),
        }
    }

    fn allocate(&mut self) -> Option<Operation> {
        let pool = self.pick(&self.objects.pools.clone())?;
        let (command_buffer, is_secondary) = (self.objects.next(), self.rng.one_in(3));
        let state = CommandBufferState { pool, is_secondary, state: RecordingState::Initial, uses: Vec::new() };
        self.objects.command_buffers.insert(command_buffer, state);
        Some(Operation::Allocate { pool, command_buffer, is_secondary })
    }

    fn begin(&mut self) -> Option<Operation> {
        let (pool, command_buffer) = self.pick_command_buffer(|it| it.state != RecordingState::Recording)?;
        if self.objects.is_pending(Object::CommandBuffer(command_buffer)) {
            return None;
        }
        self.objects.forget_recording(command_buffer, RecordingState::Recording);
        let is_secondary = self.objects.command_buffers[&command_buffer].is_secondary;
        Some(Operation::Begin { pool, command_buffer, is_secondary })
    }

    fn record(&mut self) -> Option<Operation> {
        let (pool, command_buffer) = self.pick_command_buffer(|it| it.state == RecordingState::Recording)?;
        let sets: Vec<usize> = self.objects.sets.keys().copied().collect();
        match self.rng.below(4) {
            0 | 1 => {
                let set = self.pick(&sets)?;
                self.add_uses(command_buffer, vec![Object::DescriptorSet(set)]);
                Some(Operation::BindSet { pool, command_buffer, set })
            }
            2 => {
                let buffer = self.pick(&self.objects.addresses.clone())?;
                Some(Operation::PushAddress { pool, command_buffer, buffer })
            }
            _ => Some(Operation::Record { pool, command_buffer }),
        }
    }

    fn add_uses(&mut self, command_buffer: usize, more: Vec<Object>) {
        if let Some(state) = self.objects.command_buffers.get_mut(&command_buffer) {
            state.uses.extend(more);
            state.uses = sorted(std::mem::take(&mut state.uses));
        }
    }

    fn execute(&mut self) -> Option<Operation> {
        let (pool, command_buffer) =
            self.pick_command_buffer(|it| it.state == RecordingState::Recording && !it.is_secondary)?;
        let (_, secondary) =
            self.pick_command_buffer(|it| it.state == RecordingState::Executable && it.is_secondary)?;
        let mut uses = self.objects.command_buffers[&secondary].uses.clone();
        uses.push(Object::CommandBuffer(secondary));
        self.add_uses(command_buffer, uses);
        Some(Operation::Execute { pool, command_buffer, secondary })
    }

    fn end_recording(&mut self) -> Option<Operation> {
        let (pool, command_buffer) = self.pick_command_buffer(|it| it.state == RecordingState::Recording)?;
        self.objects.command_buffers.get_mut(&command_buffer)?.state = RecordingState::Executable;
        Some(Operation::End { pool, command_buffer })
    }

    fn reset(&mut self) -> Option<Operation> {
        let (pool, command_buffer) = self.pick_command_buffer(|_| true)?;
        if self.objects.is_pending(Object::CommandBuffer(command_buffer)) {
            return None;
        }
        self.objects.forget_recording(command_buffer, RecordingState::Initial);
        if self.rng.one_in(3) {
            self.objects.command_buffers.remove(&command_buffer);
            return Some(Operation::Free { pool, command_buffer });
        }
        Some(Operation::Reset { pool, command_buffer })
    }

    fn end_pool(&mut self) -> Option<Operation> {
        let pool = self.pick(&self.objects.pools.clone())?;
        let members = self.objects.members(pool);
        if members.iter().any(|it| self.objects.is_pending(Object::CommandBuffer(*it))) {
            return None;
        }
        members.iter().for_each(|it| self.objects.forget_recording(*it, RecordingState::Initial));
        if self.rng.one_in(2) {
            return Some(Operation::ResetPool { pool, members });
        }
        members.iter().for_each(|it| _ = self.objects.command_buffers.remove(it));
        self.objects.pools.retain(|it| *it != pool);
        Some(Operation::DestroyPool { pool, members })
    }

    fn submit(&mut self) -> Option<Operation> {
        let (_, command_buffer) =
            self.pick_command_buffer(|it| it.state == RecordingState::Executable && !it.is_secondary)?;
        if self.objects.is_pending(Object::CommandBuffer(command_buffer)) {
            return None;
        }
        let fences = self.objects.fences.iter().filter(|it| *it.1 == FenceState::Unsignaled);
        let fences: Vec<usize> = fences.map(|it| *it.0).collect();
        let fence = if self.rng.one_in(4) { None } else { self.pick(&fences) };
        let mut uses = self.objects.command_buffers[&command_buffer].uses.clone();
        uses.push(Object::CommandBuffer(command_buffer));
        // The device reads what the host has written. Nobody changes it later, so it need not be pending.
        let count = self.rng.below(3_usize).min(self.objects.host_bytes.len());
        let read = self.objects.host_bytes.split_off(self.objects.host_bytes.len() - count);
        let queue = self.rng.below(self.queues);
        let number = self.objects.submissions.len();
        if let Some(fence) = fence {
            self.objects.fences.insert(fence, FenceState::Pending(number));
        }
        self.objects.submissions.push(Submission { queue, fence, uses: uses.clone(), is_over: false });
        uses.extend(read.into_iter().map(Object::HostBytes));
        Some(Operation::Submit { queue, command_buffers: vec![command_buffer], fence, uses })
    }

    fn fence_call(&mut self) -> Option<Operation> {
        let all: Vec<usize> = self.objects.fences.keys().copied().collect();
        let choice = self.rng.below(16);
        if choice < 2 && all.len() < 6 {
            let fence = self.objects.next();
            self.objects.fences.insert(fence, FenceState::Unsignaled);
            return Some(Operation::CreateFence(fence));
        }
        if choice == 2 {
            let queue = self.rng.below(self.queues);
            let uses = self.objects.retire_queue(queue);
            return Some(Operation::WaitQueue { queue, uses });
        }
        if choice == 3 && self.rng.one_in(3) {
            let uses = self.objects.retire_all();
            return Some(Operation::WaitDevice { queues: self.queues, uses });
        }
        let fence = self.pick(&all)?;
        let state = self.objects.fences[&fence];
        match (choice, state) {
            (4, _) => Some(Operation::LookAtFence(fence)),
            (_, FenceState::Unsignaled) => None,
            (5..12, FenceState::Pending(_)) | (5, FenceState::Signaled) => {
                let uses = match state {
                    FenceState::Pending(submission) => sorted(self.objects.retire(submission)),
                    _ => Vec::new(),
                };
                self.objects.fences.insert(fence, FenceState::Signaled);
                let is_poll = self.rng.one_in(2);
                Some(if is_poll { Operation::PollFence { fence, uses } } else { Operation::WaitFence { fence, uses } })
            }
            (6..15, FenceState::Signaled) => {
                self.objects.fences.insert(fence, FenceState::Unsignaled);
                Some(Operation::ResetFence(fence))
            }
            (15, FenceState::Signaled) => {
                self.objects.fences.remove(&fence);
                Some(Operation::DestroyFence(fence))
            }
            _ => None,
        }
    }

    fn descriptor_call(&mut self) -> Option<Operation> {
        let pools = self.objects.descriptor_pools.clone();
        let sets: Vec<usize> = self.objects.sets.keys().copied().collect();
        match self.rng.below(12) {
            0 if pools.len() < 3 => {
                let pool = self.objects.next();
                self.objects.descriptor_pools.push(pool);
                Some(Operation::CreateDescriptorPool(pool))
            }
            0..4 if sets.len() < 12 => {
                let (pool, set) = (self.pick(&pools)?, self.objects.next());
                self.objects.sets.insert(set, pool);
                Some(Operation::AllocateSet { pool, set })
            }
            4..8 => {
                let set = self.pick(&sets)?;
                self.may_change_set(set)?;
                Some(Operation::UpdateSet(set))
            }
            8..10 => {
                let (from, to) = (self.pick(&sets)?, self.pick(&sets)?);
                if from == to {
                    return None;
                }
                self.may_change_set(to)?;
                Some(Operation::CopySet { from, to })
            }
            _ => {
                let pool = self.pick(&pools)?;
                let members = self.objects.sets_of(pool);
                if members.iter().any(|it| self.objects.is_pending(Object::DescriptorSet(*it))) {
                    return None;
                }
                for set in &members {
                    self.objects.invalidate(Object::DescriptorSet(*set));
                    self.objects.sets.remove(set);
                }
                if self.rng.one_in(2) {
                    return Some(Operation::ResetDescriptorPool { pool, members });
                }
                self.objects.descriptor_pools.retain(|it| *it != pool);
                Some(Operation::DestroyDescriptorPool { pool, members })
            }
        }
    }

    fn may_change_set(&mut self, set: usize) -> Option<()> {
        if self.objects.is_pending(Object::DescriptorSet(set)) {
            return None;
        }
        self.objects.invalidate(Object::DescriptorSet(set));
        Some(())
    }

    fn other_call(&mut self) -> Option<Operation> {
        match self.rng.below(10) {
            0 if self.objects.timelines.len() < 3 => {
                let timeline = self.objects.next();
                self.objects.timelines.insert(timeline, 0);
                Some(Operation::CreateTimeline(timeline))
            }
            1 if self.objects.timelines.len() > 1 => {
                let all: Vec<usize> = self.objects.timelines.keys().copied().collect();
                let timeline = self.pick(&all)?;
                self.objects.timelines.remove(&timeline);
                Some(Operation::DestroyTimeline(timeline))
            }
            1 | 2 if self.rng.one_in(2) => {
                let bytes = self.objects.next();
                self.objects.host_bytes.push(bytes);
                Some(Operation::WriteMemory(bytes))
            }
            0..3 => {
                let buffer = self.objects.next();
                self.objects.buffers.push(buffer);
                Some(Operation::CreateBuffer(buffer))
            }
            3..5 => {
                let buffer = self.pick(&self.objects.buffers.clone())?;
                if self.objects.addresses.contains(&buffer) {
                    return None;
                }
                self.objects.addresses.push(buffer);
                Some(Operation::GetAddress(buffer))
            }
            5 => {
                let buffer = self.pick(&self.objects.buffers.clone())?;
                self.objects.buffers.retain(|it| *it != buffer);
                self.objects.addresses.retain(|it| *it != buffer);
                Some(Operation::DestroyBuffer(buffer))
            }
            6 if self.objects.events.len() < 3 => {
                let event = self.objects.next();
                self.objects.events.push(event);
                Some(Operation::CreateEvent(event))
            }
            _ => {
                let event = self.pick(&self.objects.events.clone())?;
                Some(match self.rng.below(8) {
                    0 => {
                        self.objects.events.retain(|it| *it != event);
                        Operation::DestroyEvent(event)
                    }
                    1..3 => Operation::SetEvent(event),
                    3..5 => Operation::ResetEvent(event),
                    _ => Operation::LookAtEvent(event),
                })
            }
        }
    }
}
