//! What the host asked the device about, and learned that it was there: events that were set, queries that had results.
//!
//! That tells the application something, but it orders no access to memory: the specification gives these calls no
//! synchronization scopes. `vkGetFenceStatus` and `vkGetSemaphoreCounterValue` count as waits, and are steps like those.

use std::collections::VecDeque;

use lavascope_abi::{Command, ObjectId, Result as ApiResult};
use lavascope_record::{Call, Outcome, Record, RecordPhase};
use lavascope_state::CallSource;
use rustc_hash::FxHashMap;

/// Answers that are kept.
const POLLS_MAX: usize = 64;

/// A question that was answered with yes.
pub(crate) struct HostPoll {
    /// The step that came next.
    pub(crate) before_step: u32,
    pub(crate) source: CallSource,
    /// The event, or the pool of the queries.
    pub(crate) object: ObjectId,
}

/// The last ones of a device.
#[derive(Default)]
pub(crate) struct HostPolls {
    all: VecDeque<HostPoll>,
}

impl HostPolls {
    pub(crate) fn push(&mut self, poll: HostPoll) {
        // Who asks again and again learns nothing new.
        self.all.retain(|it| (it.before_step, it.object) != (poll.before_step, poll.object));
        if self.all.len() == POLLS_MAX {
            self.all.pop_front();
        }
        self.all.push_back(poll);
    }

    /// The last one between two steps.
    pub(crate) fn last_between(&self, prior: u32, later: u32) -> Option<&HostPoll> {
        self.all.iter().rev().find(|it| prior < it.before_step && it.before_step <= later)
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }
}

/// Questions without an answer, by thread: the device, and what is asked about.
#[derive(Default)]
pub(crate) struct OpenPolls {
    open: FxHashMap<u32, (ObjectId, ObjectId)>,
}

impl OpenPolls {
    /// A call of which the records may matter.
    #[inline]
    pub(crate) fn is_poll(command: Command) -> bool {
        matches!(command, Command::GetEventStatus | Command::GetQueryPoolResults)
    }

    /// Half of such a call. Gives the device and the poll, without its step, if the answer is yes.
    pub(crate) fn answer(&mut self, thread: u32, record: Record<'_>) -> Option<(ObjectId, HostPoll)> {
        if record.phase() == RecordPhase::Enter {
            let (device, object) = match Call::of(record)? {
                Call::GetEventStatus(params) => (params.device.0, params.event.0),
                Call::GetQueryPoolResults(params) => (params.device.0, params.query_pool.0),
                _ => return None,
            };
            self.open.insert(thread, (ObjectId::from_raw(device)?, ObjectId::from_raw(object)?));
            return None;
        }
        let (device, object) = self.open.remove(&thread)?;
        let is_there = match Outcome::of(record)? {
            Outcome::GetEventStatus(done) => done.result == ApiResult::EVENT_SET,
            Outcome::GetQueryPoolResults(done) => done.result == ApiResult::SUCCESS,
            _ => false,
        };
        let source = CallSource { command: record.command(), thread, call: record.call_number() };
        is_there.then_some((device, HostPoll { before_step: 0, source, object }))
    }
}
