//! How far the followed access is synchronized: at a point of a queue, and by a signal or a wait.

use lavascope_engine::KeySet;
use lavascope_engine::access::usages::{StageIndex, StageSet, UsageIndex, UsageSet};
use lavascope_engine::dependency::scopes;

/// How far the followed access is synchronized at a point of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueSyncState {
    /// The access happens before these stages (`synchronization-dependencies-execution`).
    pub(crate) happens_before: StageSet,
    /// The write is available, and its dependency chain reaches these stages
    /// (`synchronization-dependencies-chains`).
    pub(crate) available: StageSet,
    /// The write is visible to these usages (`synchronization-dependencies-available-and-visible`).
    pub(crate) visible: UsageSet,
}

impl QueueSyncState {
    /// The state that a signal, or the end of a batch, passes to its waits.
    pub(crate) fn signal_state(&self, stages: StageSet) -> SignalSyncState {
        let host = if stages.0 & scopes::COMMON_SETS.host.0 != 0 {
            scopes::COMMON_SETS.host_usages
        } else {
            UsageSet::default()
        };
        SignalSyncState {
            happened: self.happens_before.0 & stages.0 != 0,
            available: self.available.0 & stages.0 != 0,
            visible_to_host: self.visible.and(host),
        }
    }

    /// Adds the state of a signal to the waiting stages.
    pub(crate) fn merge_wait(&mut self, known: SignalSyncState, stages: StageSet) {
        if known.happened {
            self.happens_before = self.happens_before.union(stages);
        }
        if known.available {
            self.available = self.available.union(stages);
            self.visible = self.visible.union(scopes::usages_of(stages));
        }
    }
}

/// How far the followed access is synchronized by a signal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SignalSyncState {
    pub(crate) happened: bool,
    pub(crate) available: bool,
    /// The host accesses to which the write is visible. A wait alone does not make it visible to
    /// the host.
    pub(crate) visible_to_host: UsageSet,
}

impl SignalSyncState {
    pub(crate) fn merge(&mut self, other: SignalSyncState) {
        self.happened |= other.happened;
        self.available |= other.available;
        self.visible_to_host = self.visible_to_host.union(other.visible_to_host);
    }

    /// The same state, but visible to no host access.
    pub(crate) fn without_host(self) -> SignalSyncState {
        SignalSyncState { visible_to_host: UsageSet::default(), ..self }
    }

    pub(crate) fn orders(self, is_write: bool) -> bool {
        if is_write { self.available } else { self.happened }
    }
}

/// A set with one stage.
pub(crate) fn single_stage(stage: StageIndex) -> StageSet {
    let mut stages = StageSet::default();
    stages.add(stage);
    stages
}

/// A set with one usage.
pub(crate) fn single_usage(usage: UsageIndex) -> UsageSet {
    let mut usages = UsageSet::default();
    usages.add(usage);
    usages
}
