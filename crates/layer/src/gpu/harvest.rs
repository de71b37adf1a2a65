//! What shaders found, read when the application finds out that its work is done.
//!
//! Nobody waits for it: fences and idle queues tell, and so does the application when it records a command buffer
//! anew, frees it, or destroys the device. Work on a queue that came before is done as well.

use lavascope_abi::*;
use lavascope_instrument::decode;

use super::tell::{Finding, Told};
use super::{Gpu, State, slice};

/// Command buffers that were submitted.
pub(super) struct Submission {
    queue: u64,
    fence: u64,
    commands: Vec<u64>,
}

impl State {
    /// The command buffer, and those that it executes.
    fn with_secondaries(&self, handle: u64) -> Vec<u64> {
        let secondaries = self.commands.get(&handle).map_or(&[][..], |it| &it.secondaries);
        std::iter::once(handle).chain(secondaries.iter().copied()).collect()
    }

    pub(super) fn submit(&mut self, queue: Queue, fence: Fence, commands: &[u64]) {
        let mut all: Vec<u64> = commands.iter().flat_map(|it| self.with_secondaries(*it)).collect();
        all.retain(|it| self.commands.get(it).is_some_and(|it| !it.draws.is_empty()));
        let labels = self.queue_labels.get(&queue.0).cloned().unwrap_or_default();
        all.iter()
            .filter_map(|it| self.commands.get_mut(it).map(|it| it.queue_labels.clone_from(&labels)))
            .for_each(drop);
        // A fence tells of what came before, too.
        if !all.is_empty() || fence.0 != 0 && !self.submissions.is_empty() {
            self.submissions.push(Submission { queue: queue.0, fence: fence.0, commands: all });
        }
    }

    /// Takes out the submissions up to the last one of which something is true, and those before it on its queue.
    fn take_done(&mut self, is_done: impl Fn(&Submission) -> bool) -> Vec<u64> {
        let queues: Vec<(u64, usize)> =
            self.submissions.iter().enumerate().filter(|it| is_done(it.1)).map(|it| (it.1.queue, it.0)).collect();
        let mut done = Vec::new();
        let mut at = 0;
        self.submissions.retain_mut(|it| {
            let is_before = queues.iter().any(|(queue, last)| *queue == it.queue && at <= *last);
            at += 1;
            if is_before {
                done.append(&mut it.commands);
            }
            !is_before
        });
        done.sort_unstable();
        done.dedup();
        // What was submitted again may be written now.
        done.retain(|it| !self.submissions.iter().any(|other| other.commands.contains(it)));
        done
    }

    /// A command buffer is not used by the device any more.
    fn take_commands(&mut self, handle: u64) {
        self.submissions.iter_mut().for_each(|it| it.commands.retain(|it| *it != handle));
        let used = self.submissions.iter().position(|it| !it.commands.is_empty());
        self.submissions.drain(..used.unwrap_or(self.submissions.len()));
    }

    /// Reads the records of a command buffer.
    fn read(&mut self, handle: u64) -> Vec<Finding> {
        let Some(mut commands) = self.commands.remove(&handle) else { return Vec::new() };
        let mut found = Vec::new();
        let number = commands.number;
        let queue_labels = std::mem::take(&mut commands.queue_labels);
        for draw in &commands.draws {
            if draw.records.word(0) == 0 {
                continue;
            }
            let words = draw.records.read();
            for record in decode(&words).unwrap_or_default() {
                found.extend(self.find(draw, (handle, number), &queue_labels, &record));
            }
            found.extend(self.find_prints(draw, (handle, number), &words));
            // The device does not use it now, and what it writes from here on is new.
            draw.records.write(&vec![0; words.len()]);
        }
        self.commands.insert(handle, commands);
        found
    }
}

impl Gpu {
    /// A fence is signaled.
    pub(super) fn fence_signaled(&self, fence: Fence) {
        self.harvest(|it| it.fence == fence.0);
    }

    pub(super) fn queue_idle(&self, queue: Queue) {
        self.harvest(|it| it.queue == queue.0);
    }

    /// All is done, or the device is lost.
    pub(super) fn device_idle(&self) {
        self.harvest(|_| true);
    }

    fn harvest(&self, is_done: impl Fn(&Submission) -> bool) {
        let mut state = self.state();
        if state.submissions.is_empty() {
            return;
        }
        let done = state.take_done(is_done);
        let found: Vec<Finding> = done.into_iter().flat_map(|it| state.read(it)).collect();
        drop(state);
        self.tell_all(found);
    }

    /// Fences that were waited for: all of them, or some.
    ///
    /// # Safety
    ///
    /// There must be as many fences as said.
    pub(super) unsafe fn fences_waited(&self, count: u32, p_fences: Ptr<Fence>, is_all: bool) {
        // SAFETY: the caller's word.
        for fence in unsafe { slice(p_fences, count) } {
            // SAFETY: a fence that is alive.
            let status = || self.next.get_fence_status.map(|it| unsafe { it(self.device, *fence) });
            if is_all || count == 1 || status() == Some(Result::SUCCESS) {
                self.fence_signaled(*fence);
            }
        }
    }

    /// Command buffers are recorded anew or freed, so that the device cannot use them.
    pub(super) fn commands_end(&self, handles: &[u64], is_freed: bool) {
        let mut state = self.state();
        let mut found = Vec::new();
        for handle in handles {
            found.extend(state.read(*handle));
            state.take_commands(*handle);
            state.clear_commands(self, *handle);
            if is_freed && let Some(commands) = state.commands.remove(handle) {
                state.free(self, commands);
            }
        }
        drop(state);
        self.tell_all(found);
    }

    /// The command buffers of a pool.
    pub(super) fn pool_ends(&self, pool: CommandPool, is_freed: bool) {
        let state = self.state();
        let handles: Vec<u64> = state.commands.iter().filter(|it| it.1.pool == pool.0).map(|it| *it.0).collect();
        drop(state);
        self.commands_end(&handles, is_freed);
    }

    /// The last word: all records, faults whose records did not fit, and what was counted since.
    pub(super) fn harvest_all(&self) {
        let mut state = self.state();
        let handles: Vec<u64> = state.commands.keys().copied().collect();
        let mut found: Vec<Finding> = handles.into_iter().flat_map(|it| state.read(it)).collect();
        found.extend(state.find_unrecorded());
        drop(state);
        self.tell_all(found);
        let state = self.state();
        state.told.iter().for_each(Told::tell_more);
    }
}
