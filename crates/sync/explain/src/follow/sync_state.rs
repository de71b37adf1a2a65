//! What is known of the followed access: at a point of a queue, and by one who waited.

use lavascope_engine::KeySet;
use lavascope_engine::access::usages::{StageIndex, StageSet, UsageIndex, UsageSet};
use lavascope_engine::dependency::scopes;

/// At a point of a queue's timeline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueSyncState {
    /// It happens before these stages.
    pub(crate) happens_before: StageSet,
    /// It is available, and its chain of dependencies reaches these stages.
    pub(crate) available: StageSet,
    /// It is visible to these usages.
    pub(crate) visible: UsageSet,
}

impl QueueSyncState {
    /// What a signal or the end of a batch hands on to whoever waits for it.
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

    /// What waiting for something gives to the stages that wait.
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

/// By one who waited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SignalSyncState {
    pub(crate) happened: bool,
    pub(crate) available: bool,
    /// To which accesses of the host it is visible: the host looks at memory itself.
    pub(crate) visible_to_host: UsageSet,
}

impl SignalSyncState {
    pub(crate) fn merge(&mut self, other: SignalSyncState) {
        self.happened |= other.happened;
        self.available |= other.available;
        self.visible_to_host = self.visible_to_host.union(other.visible_to_host);
    }

    /// Without what is visible to the host.
    pub(crate) fn without_host(self) -> SignalSyncState {
        SignalSyncState { visible_to_host: UsageSet::default(), ..self }
    }

    pub(crate) fn orders(self, is_write: bool) -> bool {
        if is_write { self.available } else { self.happened }
    }
}

/// A set of one stage.
pub(crate) fn single_stage(stage: StageIndex) -> StageSet {
    let mut stages = StageSet::default();
    stages.add(stage);
    stages
}

/// A set of one usage.
pub(crate) fn single_usage(usage: UsageIndex) -> UsageSet {
    let mut usages = UsageSet::default();
    usages.add(usage);
    usages
}
