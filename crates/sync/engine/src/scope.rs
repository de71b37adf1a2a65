//! The scopes of a synchronization operation, after expansion.
//!
//! Execution scopes grow to logically earlier stages at the source and later ones at the destination. Access scopes
//! do not grow: they are what the stages *as given* can do, limited to the accesses that were named.
//! Spec: "Synchronization Scopes", "Access Scopes", "Pipeline Stages".

use std::sync::LazyLock;

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::Scope;

use crate::usage::{PRESENTATION, Stages, TABLES, TRANSITION, Usages, access_members, group_members};

/// A dependency, ready to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Expanded {
    /// First synchronization scope.
    pub src: Stages,
    /// First access scope.
    pub src_usages: Usages,
    /// The part of it that is not about the resource of the dependency alone.
    pub src_everywhere: Usages,
    /// Second synchronization scope.
    pub dst: Stages,
    /// Second access scope.
    pub dst_usages: Usages,
    /// The part of it that is not about the resource of the dependency alone.
    pub dst_everywhere: Usages,
}

const ALL_COMMANDS: u64 = PipelineStageFlags2::ALL_COMMANDS.0;
const TOP: u64 = PipelineStageFlags2::TOP_OF_PIPE.0;
const BOTTOM: u64 = PipelineStageFlags2::BOTTOM_OF_PIPE.0;
const HOST: u64 = PipelineStageFlags2::HOST.0;
const STRUCTURE_BUILD: u64 = PipelineStageFlags2::ACCELERATION_STRUCTURE_BUILD_KHR.0;
const STRUCTURE_COPY: u64 = PipelineStageFlags2::ACCELERATION_STRUCTURE_COPY_KHR.0;

impl Expanded {
    /// For a queue with these capabilities.
    pub fn new(scope: Scope, queue_flags: u32) -> Expanded {
        Expanded {
            src: source(scope.src_stages, queue_flags),
            src_usages: usages(scope.src_stages, scope.src_access, queue_flags),
            src_everywhere: Usages::default(),
            dst: destination(scope.dst_stages, queue_flags),
            dst_usages: usages(scope.dst_stages, scope.dst_access, queue_flags),
            dst_everywhere: Usages::default(),
        }
    }
}

/// The first synchronization scope of a mask: nothing is before the top, everything before the bottom. Neither is a stage
/// by itself.
pub fn source(stages: u64, queue_flags: u32) -> Stages {
    let all = if stages & BOTTOM != 0 { ALL_COMMANDS } else { 0 };
    let given = as_given(stages | all, queue_flags);
    given.iter().fold(given, |grown, it| grown.union(TABLES.stages[usize::from(it.0)].earlier))
}

/// The second synchronization scope of a mask: everything is after the top, nothing after the bottom.
pub fn destination(stages: u64, queue_flags: u32) -> Stages {
    let all = if stages & TOP != 0 { ALL_COMMANDS } else { 0 };
    let given = as_given(stages | all, queue_flags);
    given.iter().fold(given, |grown, it| grown.union(TABLES.stages[usize::from(it.0)].later))
}

/// The access scope of stages as given. Neither top nor bottom accesses anything.
pub fn usages(stages: u64, access: u64, queue_flags: u32) -> Usages {
    let access = access_members(access);
    let mut found = Usages::default();
    for stage in as_given(stages, queue_flags).iter() {
        for usage in TABLES.stages[usize::from(stage.0)].usages.iter() {
            if TABLES.usages[usize::from(usage.0)].access & access != 0 {
                found.add(usage);
            }
        }
    }
    if as_given(stages | if stages & BOTTOM != 0 { ALL_COMMANDS } else { 0 }, queue_flags).has(TRANSITION) {
        // What a layout transition wrote is available by itself.
        found.add(crate::usage::TRANSITION_WRITE);
    }
    found
}

/// What a signal comes after. One that waits for all commands also waits for what they did for the host.
pub fn signal(stages: u64, queue_flags: u32) -> Stages {
    let host = if stages & ALL_COMMANDS != 0 { EVERYTHING.host } else { Stages::default() };
    source(stages, queue_flags).union(host)
}

/// Everything that some stages can do.
pub fn usages_of(stages: Stages) -> Usages {
    stages.iter().fold(Usages::default(), |all, it| all.union(TABLES.stages[usize::from(it.0)].usages))
}

/// Sets that are asked for again and again.
#[derive(Clone, Copy)]
pub struct Everything {
    pub stages: Stages,
    pub usages: Usages,
    /// The host's stage.
    pub host: Stages,
    pub host_usages: Usages,
    /// All others.
    pub device: Stages,
    pub device_usages: Usages,
}

pub static EVERYTHING: LazyLock<Everything> = LazyLock::new(|| {
    let stages = Stages((1 << TABLES.stages.len()) - 1);
    let host = TABLES.stages_of_bits(HOST);
    let device = Stages(stages.0 & !host.0);
    let [usages, host_usages, device_usages] = [stages, host, device].map(usages_of);
    Everything { stages, usages, host, host_usages, device, device_usages }
});

/// The stages of a mask, groups taken apart: of these, what the queue has. Only all commands together contain layout transitions.
/// Copies of acceleration structures are synchronized with their own stage or with that of builds.
fn as_given(stages: u64, queue_flags: u32) -> Stages {
    let copies = if stages & STRUCTURE_BUILD != 0 { STRUCTURE_COPY } else { 0 };
    let stages = stages | copies;
    let explicit = TABLES.stages_of_bits(stages);
    let mut found = TABLES.stages_of_bits(group_members(stages)).on(queue_flags).union(explicit);
    if stages & ALL_COMMANDS != 0 {
        found = all_commands(queue_flags).union(found);
    }
    found
}

/// All stages of a queue, with the one of layout transitions, without the host and the presentation engine.
pub fn all_commands(queue_flags: u32) -> Stages {
    let mut outside = TABLES.stages_of_bits(HOST);
    outside.add(PRESENTATION);
    let all = (1_u64 << TABLES.stages.len()) - 1;
    Stages(all & !outside.0).on(queue_flags)
}

impl Stages {
    /// Those that a queue has.
    fn on(self, queue_flags: u32) -> Stages {
        let mut kept = Stages::default();
        for it in self.iter() {
            let queues = TABLES.stages[usize::from(it.0)].queues;
            if queues == 0 || queues & queue_flags != 0 {
                kept.add(it);
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

    fn stages(bits: PipelineStageFlags2) -> Stages {
        TABLES.stages_of_bits(bits.0)
    }

    #[test]
    fn scopes_grow_one_way_each() {
        let fragment = PipelineStageFlags2::FRAGMENT_SHADER;
        let source = source(fragment.0, GRAPHICS);
        assert!(stages(PipelineStageFlags2::VERTEX_SHADER).iter().all(|it| source.has(it)));
        assert!(stages(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT).iter().all(|it| !source.has(it)));
        let destination = destination(fragment.0, GRAPHICS);
        assert!(stages(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT).iter().all(|it| destination.has(it)));
        assert!(stages(PipelineStageFlags2::VERTEX_SHADER).iter().all(|it| !destination.has(it)));
    }

    #[test]
    fn access_scopes_do_not_grow() {
        let found = usages(PipelineStageFlags2::FRAGMENT_SHADER.0, AccessFlags2::MEMORY_READ.0, GRAPHICS);
        let fragment = stages(PipelineStageFlags2::FRAGMENT_SHADER);
        assert!(found.iter().all(|it| fragment.has(TABLES.stage(it))) && !found.is_empty());
        let nothing = usages(PipelineStageFlags2::COPY.0, AccessFlags2::SHADER_SAMPLED_READ.0, GRAPHICS);
        assert!(nothing.is_empty(), "a copy samples nothing");
    }

    #[test]
    fn the_ends_of_the_pipe() {
        assert!(source(TOP, GRAPHICS).is_empty() && destination(BOTTOM, GRAPHICS).is_empty());
        assert_eq!(source(BOTTOM, GRAPHICS), source(ALL_COMMANDS, GRAPHICS));
        assert_eq!(destination(TOP, GRAPHICS), all_commands(GRAPHICS));
        // With what they stand for beside them.
        assert_eq!(source(BOTTOM | ALL_COMMANDS, GRAPHICS), source(ALL_COMMANDS, GRAPHICS));
        assert_eq!(destination(TOP | ALL_COMMANDS, GRAPHICS), all_commands(GRAPHICS));
        let copy = PipelineStageFlags2::COPY.0;
        assert_eq!(source(TOP | copy, GRAPHICS), source(copy, GRAPHICS));
        assert_eq!(destination(BOTTOM | copy, GRAPHICS), destination(copy, GRAPHICS));
        assert!(all_commands(GRAPHICS).has(TRANSITION));
        assert!(!source(PipelineStageFlags2::ALL_GRAPHICS.0, GRAPHICS).has(TRANSITION));
    }

    /// What layout transitions wrote is in the access scope of all commands, however they are named.
    #[test]
    fn transitions_are_in_all_commands() {
        let has = |stages| usages(stages, 0, GRAPHICS).has(crate::usage::TRANSITION_WRITE);
        assert!(has(ALL_COMMANDS) && has(BOTTOM) && has(BOTTOM | ALL_COMMANDS));
        assert!(!has(TOP) && !has(PipelineStageFlags2::COPY.0));
    }

    /// Copies of acceleration structures are in the scope of builds too.
    #[test]
    fn builds_stand_for_copies() {
        let compute = QueueFlags::COMPUTE.0;
        let copy = stages(PipelineStageFlags2::ACCELERATION_STRUCTURE_COPY_KHR);
        let has = |bits| copy.iter().all(|it| source(bits, compute).has(it));
        assert!(has(STRUCTURE_BUILD) && has(STRUCTURE_COPY) && has(STRUCTURE_BUILD | STRUCTURE_COPY));
        assert!(!has(PipelineStageFlags2::COPY.0));
    }

    #[test]
    fn a_queue_has_only_its_own_stages() {
        let transfer = source(ALL_COMMANDS, QueueFlags::TRANSFER.0);
        assert!(stages(PipelineStageFlags2::COPY).iter().all(|it| transfer.has(it)));
        assert!(stages(PipelineStageFlags2::FRAGMENT_SHADER).iter().all(|it| !transfer.has(it)));
    }
}
