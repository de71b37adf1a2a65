//! The scopes of a synchronization operation, after expansion.
//!
//! A first synchronization scope also has the logically earlier stages, a second one the logically later stages. Access
//! scopes do not grow: they have the named accesses of the named stages.
//! Spec: "Synchronization Scopes", "Access Scopes", "Pipeline Stages".

use std::sync::LazyLock;

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::SyncScope;

use crate::access::usages::{PRESENTATION, SYNC_TABLES, StageSet, TRANSITION, UsageSet, access_members, group_members};

/// The expanded scopes of a dependency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExpandedScope {
    /// First synchronization scope.
    pub src: StageSet,
    /// First access scope.
    pub src_usages: UsageSet,
    /// The part of the first access scope that concerns all memory, not only the resource of the dependency.
    pub src_global_usages: UsageSet,
    /// Second synchronization scope.
    pub dst: StageSet,
    /// Second access scope.
    pub dst_usages: UsageSet,
    /// The part of the second access scope that concerns all memory, not only the resource of the dependency.
    pub dst_global_usages: UsageSet,
}

const ALL_COMMANDS: u64 = PipelineStageFlags2::ALL_COMMANDS.0;
const TOP: u64 = PipelineStageFlags2::TOP_OF_PIPE.0;
const BOTTOM: u64 = PipelineStageFlags2::BOTTOM_OF_PIPE.0;
const HOST: u64 = PipelineStageFlags2::HOST.0;
const STRUCTURE_BUILD: u64 = PipelineStageFlags2::ACCELERATION_STRUCTURE_BUILD_KHR.0;
const STRUCTURE_COPY: u64 = PipelineStageFlags2::ACCELERATION_STRUCTURE_COPY_KHR.0;

impl ExpandedScope {
    /// Expands scopes for a queue with these capabilities.
    pub fn new(scope: SyncScope, queue_flags: u32) -> ExpandedScope {
        ExpandedScope {
            src: source_stages(scope.src_stages, queue_flags),
            src_usages: access_scope(scope.src_stages, scope.src_access, queue_flags),
            src_global_usages: UsageSet::default(),
            dst: destination_stages(scope.dst_stages, queue_flags),
            dst_usages: access_scope(scope.dst_stages, scope.dst_access, queue_flags),
            dst_global_usages: UsageSet::default(),
        }
    }
}

/// The first synchronization scope of a mask. Nothing is before the top of the pipe, and everything is before the
/// bottom. Neither is a stage of its own.
pub fn source_stages(stages: u64, queue_flags: u32) -> StageSet {
    let all = if stages & BOTTOM != 0 { ALL_COMMANDS } else { 0 };
    let given = unexpanded_stages(stages | all, queue_flags);
    given.iter().fold(given, |grown, it| grown.union(SYNC_TABLES.stages[usize::from(it.0)].earlier))
}

/// The second synchronization scope of a mask: everything is after the top, nothing after the bottom.
pub fn destination_stages(stages: u64, queue_flags: u32) -> StageSet {
    let all = if stages & TOP != 0 { ALL_COMMANDS } else { 0 };
    let given = unexpanded_stages(stages | all, queue_flags);
    given.iter().fold(given, |grown, it| grown.union(SYNC_TABLES.stages[usize::from(it.0)].later))
}

/// The access scope of the named stages. The top and the bottom of the pipe access nothing.
pub fn access_scope(stages: u64, access: u64, queue_flags: u32) -> UsageSet {
    let access = access_members(access);
    let mut found = UsageSet::default();
    for stage in unexpanded_stages(stages, queue_flags).iter() {
        for usage in SYNC_TABLES.stages[usize::from(stage.0)].usages.iter() {
            if SYNC_TABLES.usages[usize::from(usage.0)].sufficient_access & access != 0 {
                found.add(usage);
            }
        }
    }
    if unexpanded_stages(stages | if stages & BOTTOM != 0 { ALL_COMMANDS } else { 0 }, queue_flags).has(TRANSITION) {
        // A layout transition makes its own writes available.
        found.add(crate::access::usages::TRANSITION_WRITE);
    }
    found
}

/// The first scope of a signal. A signal with all commands also waits for their accesses on behalf of the host.
pub fn signal_stages(stages: u64, queue_flags: u32) -> StageSet {
    let host = if stages & ALL_COMMANDS != 0 { COMMON_SETS.host } else { StageSet::default() };
    source_stages(stages, queue_flags).union(host)
}

/// All usages of some stages.
pub fn usages_of(stages: StageSet) -> UsageSet {
    stages.iter().fold(UsageSet::default(), |all, it| all.union(SYNC_TABLES.stages[usize::from(it.0)].usages))
}

/// Sets that are needed often, computed once.
#[derive(Clone, Copy)]
pub struct CommonSets {
    pub stages: StageSet,
    pub usages: UsageSet,
    /// The host stage.
    pub host: StageSet,
    pub host_usages: UsageSet,
    /// All others.
    pub device: StageSet,
    pub device_usages: UsageSet,
}

pub static COMMON_SETS: LazyLock<CommonSets> = LazyLock::new(|| {
    let stages = StageSet((1 << SYNC_TABLES.stages.len()) - 1);
    let host = SYNC_TABLES.stages_of_bits(HOST);
    let device = StageSet(stages.0 & !host.0);
    let [usages, host_usages, device_usages] = [stages, host, device].map(usages_of);
    CommonSets { stages, usages, host, host_usages, device, device_usages }
});

/// The stages of a mask that the queue supports, with groups replaced by their members. Only `ALL_COMMANDS` includes
/// layout transitions. Copies of acceleration structures synchronize with their own stage or with the build stage.
fn unexpanded_stages(stages: u64, queue_flags: u32) -> StageSet {
    let copies = if stages & STRUCTURE_BUILD != 0 { STRUCTURE_COPY } else { 0 };
    let stages = stages | copies;
    let explicit = SYNC_TABLES.stages_of_bits(stages);
    let mut found = SYNC_TABLES.stages_of_bits(group_members(stages)).on(queue_flags).union(explicit);
    if stages & ALL_COMMANDS != 0 {
        found = all_commands(queue_flags).union(found);
    }
    found
}

/// All stages of a queue including layout transitions, but without the host and the presentation engine.
pub fn all_commands(queue_flags: u32) -> StageSet {
    let mut outside = SYNC_TABLES.stages_of_bits(HOST);
    outside.add(PRESENTATION);
    let all = (1_u64 << SYNC_TABLES.stages.len()) - 1;
    StageSet(all & !outside.0).on(queue_flags)
}

impl StageSet {
    /// The stages that a queue supports.
    fn on(self, queue_flags: u32) -> StageSet {
        let mut kept = StageSet::default();
        for stage_index in self.iter() {
            let queues = SYNC_TABLES.stages[usize::from(stage_index.0)].queues;
            if queues == 0 || queues & queue_flags != 0 {
                kept.add(stage_index);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::{AccessFlags2, QueueFlags};

    const GRAPHICS: u32 = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;

    fn stages(bits: PipelineStageFlags2) -> StageSet {
        SYNC_TABLES.stages_of_bits(bits.0)
    }

    #[test]
    fn scopes_grow_one_way_each() {
        let fragment = PipelineStageFlags2::FRAGMENT_SHADER;
        let source = source_stages(fragment.0, GRAPHICS);
        assert!(stages(PipelineStageFlags2::VERTEX_SHADER).iter().all(|it| source.has(it)));
        assert!(stages(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT).iter().all(|it| !source.has(it)));
        let destination = destination_stages(fragment.0, GRAPHICS);
        assert!(stages(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT).iter().all(|it| destination.has(it)));
        assert!(stages(PipelineStageFlags2::VERTEX_SHADER).iter().all(|it| !destination.has(it)));
    }

    #[test]
    fn access_scopes_do_not_grow() {
        let found = access_scope(PipelineStageFlags2::FRAGMENT_SHADER.0, AccessFlags2::MEMORY_READ.0, GRAPHICS);
        let fragment = stages(PipelineStageFlags2::FRAGMENT_SHADER);
        assert!(found.iter().all(|it| fragment.has(SYNC_TABLES.stage(it))) && !found.is_empty());
        let nothing = access_scope(PipelineStageFlags2::COPY.0, AccessFlags2::SHADER_SAMPLED_READ.0, GRAPHICS);
        assert!(nothing.is_empty(), "a copy samples nothing");
    }

    #[test]
    fn the_ends_of_the_pipe() {
        assert!(source_stages(TOP, GRAPHICS).is_empty() && destination_stages(BOTTOM, GRAPHICS).is_empty());
        assert_eq!(source_stages(BOTTOM, GRAPHICS), source_stages(ALL_COMMANDS, GRAPHICS));
        assert_eq!(destination_stages(TOP, GRAPHICS), all_commands(GRAPHICS));
        // With what they stand for beside them.
        assert_eq!(source_stages(BOTTOM | ALL_COMMANDS, GRAPHICS), source_stages(ALL_COMMANDS, GRAPHICS));
        assert_eq!(destination_stages(TOP | ALL_COMMANDS, GRAPHICS), all_commands(GRAPHICS));
        let copy = PipelineStageFlags2::COPY.0;
        assert_eq!(source_stages(TOP | copy, GRAPHICS), source_stages(copy, GRAPHICS));
        assert_eq!(destination_stages(BOTTOM | copy, GRAPHICS), destination_stages(copy, GRAPHICS));
        assert!(all_commands(GRAPHICS).has(TRANSITION));
        assert!(!source_stages(PipelineStageFlags2::ALL_GRAPHICS.0, GRAPHICS).has(TRANSITION));
    }

    /// What layout transitions wrote is in the access scope of all commands, however they are named.
    #[test]
    fn transitions_are_in_all_commands() {
        let has = |stages| access_scope(stages, 0, GRAPHICS).has(crate::access::usages::TRANSITION_WRITE);
        assert!(has(ALL_COMMANDS) && has(BOTTOM) && has(BOTTOM | ALL_COMMANDS));
        assert!(!has(TOP) && !has(PipelineStageFlags2::COPY.0));
    }

    /// Copies of acceleration structures are in the scope of builds too.
    #[test]
    fn builds_stand_for_copies() {
        let compute = QueueFlags::COMPUTE.0;
        let copy = stages(PipelineStageFlags2::ACCELERATION_STRUCTURE_COPY_KHR);
        let has = |bits| copy.iter().all(|it| source_stages(bits, compute).has(it));
        assert!(has(STRUCTURE_BUILD) && has(STRUCTURE_COPY) && has(STRUCTURE_BUILD | STRUCTURE_COPY));
        assert!(!has(PipelineStageFlags2::COPY.0));
    }

    #[test]
    fn a_queue_has_only_its_own_stages() {
        let transfer = source_stages(ALL_COMMANDS, QueueFlags::TRANSFER.0);
        assert!(stages(PipelineStageFlags2::COPY).iter().all(|it| transfer.has(it)));
        assert!(stages(PipelineStageFlags2::FRAGMENT_SHADER).iter().all(|it| !transfer.has(it)));
    }
}
