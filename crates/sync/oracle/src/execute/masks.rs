//! Expands masks of stages and accesses, from the generated tables of the registry.
//!
//! A synchronization scope also includes logically earlier or later stages, an access scope does not. Both start with
//! [`expand_stages`]. Spec: `synchronization-pipeline-stages`, `synchronization-pipeline-stages-order`.

use std::sync::LazyLock;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2 as Stage, SYNC_ACCESSES, SYNC_PIPELINES, SYNC_STAGES};

/// The stage of layout transitions and ownership transfers. The registry has no bit for it.
pub(crate) const TRANSITION_STAGE: u64 = 1 << 63;
/// The stage of the presentation engine. The registry has no bit for it.
pub(crate) const PRESENT_STAGE: u64 = 1 << 62;
/// All stages, including the two above.
pub(crate) const EVERY_STAGE: u64 = u64::MAX;

/// The stages of the first synchronization scope: those in the mask and all logically earlier ones.
pub(crate) fn first_scope(stages: u64, queue_flags: u32) -> u64 {
    // As a source, bottom-of-pipe means all commands; top-of-pipe means no stage.
    let stages = if stages & Stage::BOTTOM_OF_PIPE.0 != 0 { stages | Stage::ALL_COMMANDS.0 } else { stages };
    let given = expand_stages(stages, queue_flags);
    given | stages_in_order(given, LogicalOrder::Earlier)
}

/// The stages of the second synchronization scope: those in the mask and all logically later ones.
pub(crate) fn second_scope(stages: u64, queue_flags: u32) -> u64 {
    let stages = if stages & Stage::TOP_OF_PIPE.0 != 0 { stages | Stage::ALL_COMMANDS.0 } else { stages };
    let given = expand_stages(stages, queue_flags);
    given | stages_in_order(given, LogicalOrder::Later)
}

/// Replaces groups of stages by their members. All-commands also includes layout transitions and ownership transfers.
pub(crate) fn expand_stages(stages: u64, queue_flags: u32) -> u64 {
    let mut expanded = stages & (TRANSITION_STAGE | PRESENT_STAGE);
    for stage in SYNC_STAGES.iter().filter(|it| it.stage != 0 && stages & it.stage == it.stage) {
        if stage.stage == Stage::ALL_COMMANDS.0 {
            expanded |= all_commands(queue_flags);
        } else if stage.equivalent != 0 {
            expanded |= without_unsupported(expand_stages(stage.equivalent, queue_flags), queue_flags);
        } else if stage.stage != Stage::TOP_OF_PIPE.0 && stage.stage != Stage::BOTTOM_OF_PIPE.0 {
            expanded |= stage.stage;
        }
    }
    if expanded & Stage::ACCELERATION_STRUCTURE_BUILD_KHR.0 != 0 {
        // Copies of acceleration structures had no stage of their own before; the build stage still includes them.
        expanded |= Stage::ACCELERATION_STRUCTURE_COPY_KHR.0;
    }
    expanded
}

/// Replaces groups of accesses by their members.
pub(crate) fn expand_access(access: u64) -> u64 {
    let mut expanded = 0;
    for sync_access in SYNC_ACCESSES.iter().filter(|it| it.access != 0) {
        let is_any_read = access & AccessFlags2::MEMORY_READ.0 != 0 && !is_write(sync_access.access);
        let is_any_write = access & AccessFlags2::MEMORY_WRITE.0 != 0 && is_write(sync_access.access);
        if access & sync_access.access != 0 || is_any_read || is_any_write {
            expanded |= sync_access.access | sync_access.equivalent;
        }
    }
    expanded
}

/// An access mask must contain one of these bits to include the access. `vkCmdDrawIndirectByteCountEXT` reads an
/// indirect buffer and a counter in one access, and the specification does not say which flag it has, so both count.
pub(crate) fn names_of_access(stage: u64, access: u64) -> u64 {
    match (Stage(stage), AccessFlags2(access)) {
        (Stage::DRAW_INDIRECT, AccessFlags2::TRANSFORM_FEEDBACK_COUNTER_READ_EXT) => {
            access | AccessFlags2::INDIRECT_COMMAND_READ.0
        }
        _ => access,
    }
}

/// Whether one bit of `VkAccessFlags2` is a write.
pub fn is_write(access: u64) -> bool {
    SYNC_ACCESSES.iter().any(|it| it.access == access && it.name.contains("WRITE"))
}

fn all_commands(queue_flags: u32) -> u64 {
    let single = SYNC_STAGES.iter().filter(|sync_stage| {
        let is_group = sync_stage.equivalent != 0 || sync_stage.stage == Stage::ALL_COMMANDS.0;
        let is_no_command = [Stage::TOP_OF_PIPE.0, Stage::BOTTOM_OF_PIPE.0, Stage::HOST.0].contains(&sync_stage.stage);
        !is_group && !is_no_command && (sync_stage.queues == 0 || sync_stage.queues & queue_flags != 0)
    });
    single.fold(TRANSITION_STAGE, |all, it| all | it.stage)
}

fn without_unsupported(stages: u64, queue_flags: u32) -> u64 {
    let unsupported = SYNC_STAGES.iter().filter(|it| it.queues != 0 && it.queues & queue_flags == 0);
    unsupported.fold(stages, |left, it| left & !it.stage)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LogicalOrder {
    Earlier,
    Later,
}

/// The logically earlier or later stages of `stages`, over all pipelines.
fn stages_in_order(stages: u64, side: LogicalOrder) -> u64 {
    let table = if side == LogicalOrder::Earlier { &*EARLIER } else { &*LATER };
    (0..64).filter(|it| stages & (1 << it) != 0).fold(0, |all, it| all | table[it as usize])
}

// Cached, because every scope of every program needs them.
static EARLIER: LazyLock<[u64; 64]> =
    LazyLock::new(|| std::array::from_fn(|it| stages_in_order_of(1 << it, LogicalOrder::Earlier)));
static LATER: LazyLock<[u64; 64]> =
    LazyLock::new(|| std::array::from_fn(|it| stages_in_order_of(1 << it, LogicalOrder::Later)));

fn stages_in_order_of(wanted: u64, side: LogicalOrder) -> u64 {
    let mut found = 0;
    for pipeline in SYNC_PIPELINES {
        for (at, stage) in pipeline.stages.iter().enumerate() {
            for (other_at, other) in pipeline.stages.iter().enumerate() {
                let is_earlier = if stage.is_ordered && other.is_ordered {
                    other_at < at
                } else {
                    other.before != 0 && comes_at_or_after(pipeline.stages, other.before, at)
                };
                let (from, to) = if side == LogicalOrder::Earlier { (stage, other) } else { (other, stage) };
                if is_earlier && group_members(from.stage) & wanted != 0 {
                    found |= group_members(to.stage);
                }
            }
        }
    }
    found
}

fn comes_at_or_after(stages: &[lavascope_abi::desc::SyncPipelineStage], anchor: u64, at: usize) -> bool {
    stages[at].is_ordered && stages.iter().position(|it| it.stage == anchor).is_some_and(|it| it <= at)
}

fn group_members(stage: u64) -> u64 {
    let group = SYNC_STAGES.iter().find(|it| it.stage == stage).map_or(0, |it| it.equivalent);
    if group == 0 { stage } else { group }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::{AccessFlags2 as Access, QueueFlags};

    const GRAPHICS: u32 = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;

    #[test]
    fn own_stages_are_no_bits_of_the_registry() {
        let all = SYNC_STAGES.iter().fold(0, |all, it| all | it.stage);
        assert_eq!(all & (TRANSITION_STAGE | PRESENT_STAGE), 0);
    }

    #[test]
    fn first_scopes_grow_backwards() {
        let scope = first_scope(Stage::FRAGMENT_SHADER.0, GRAPHICS);
        assert_ne!(scope & Stage::EARLY_FRAGMENT_TESTS.0, 0);
        assert_ne!(scope & Stage::VERTEX_SHADER.0, 0);
        assert_ne!(scope & Stage::DRAW_INDIRECT.0, 0);
        assert_eq!(scope & Stage::LATE_FRAGMENT_TESTS.0, 0);
        assert_eq!(scope & Stage::COMPUTE_SHADER.0, 0);
    }

    #[test]
    fn second_scopes_grow_forwards() {
        let scope = second_scope(Stage::FRAGMENT_SHADER.0, GRAPHICS);
        assert_eq!(scope & Stage::EARLY_FRAGMENT_TESTS.0, 0);
        assert_ne!(scope & Stage::LATE_FRAGMENT_TESTS.0, 0);
        assert_ne!(scope & Stage::COLOR_ATTACHMENT_OUTPUT.0, 0);
        let indirect = second_scope(Stage::DRAW_INDIRECT.0, GRAPHICS);
        assert_ne!(indirect & Stage::COMPUTE_SHADER.0, 0);
        assert_eq!(indirect & Stage::COPY.0, 0);
    }

    #[test]
    fn ends_of_the_pipe_are_everything_or_nothing() {
        assert_eq!(first_scope(Stage::TOP_OF_PIPE.0, GRAPHICS), 0);
        assert_eq!(second_scope(Stage::BOTTOM_OF_PIPE.0, GRAPHICS), 0);
        let all = first_scope(Stage::ALL_COMMANDS.0, GRAPHICS);
        assert_eq!(first_scope(Stage::BOTTOM_OF_PIPE.0, GRAPHICS), all);
        assert_eq!(second_scope(Stage::TOP_OF_PIPE.0, GRAPHICS), all);
        assert_eq!(expand_stages(Stage::TOP_OF_PIPE.0 | Stage::BOTTOM_OF_PIPE.0, GRAPHICS), 0);
        assert_eq!(all & Stage::HOST.0, 0);
        assert_ne!(all & TRANSITION_STAGE, 0);
    }

    #[test]
    fn groups_have_members() {
        let transfer = expand_stages(Stage::ALL_TRANSFER.0, GRAPHICS);
        assert_ne!(transfer & Stage::COPY.0, 0);
        assert_ne!(transfer & Stage::CLEAR.0, 0);
        assert_eq!(transfer & Stage::ALL_TRANSFER.0, 0);
        let graphics = expand_stages(Stage::ALL_GRAPHICS.0, GRAPHICS);
        assert_ne!(graphics & Stage::INDEX_INPUT.0, 0);
        assert_eq!(graphics & Stage::VERTEX_INPUT.0, 0);
        assert_eq!(graphics & Stage::COMPUTE_SHADER.0, 0);
    }

    #[test]
    fn all_commands_are_those_of_the_queue() {
        let transfer = expand_stages(Stage::ALL_COMMANDS.0, QueueFlags::TRANSFER.0);
        assert_ne!(transfer & Stage::COPY.0, 0);
        assert_eq!(transfer & Stage::COMPUTE_SHADER.0, 0);
        assert_eq!(transfer & Stage::FRAGMENT_SHADER.0, 0);
        let graphics = expand_stages(Stage::ALL_GRAPHICS.0, QueueFlags::COMPUTE.0);
        assert_eq!(graphics & Stage::VERTEX_SHADER.0, 0);
    }

    #[test]
    fn density_comes_before_early_tests_only() {
        let scope = second_scope(Stage::FRAGMENT_DENSITY_PROCESS_EXT.0, GRAPHICS);
        assert_ne!(scope & Stage::EARLY_FRAGMENT_TESTS.0, 0);
        assert_ne!(scope & Stage::COLOR_ATTACHMENT_OUTPUT.0, 0);
        assert_eq!(scope & Stage::VERTEX_SHADER.0, 0);
        assert_ne!(first_scope(Stage::LATE_FRAGMENT_TESTS.0, GRAPHICS) & Stage::FRAGMENT_DENSITY_PROCESS_EXT.0, 0);
        assert_eq!(first_scope(Stage::VERTEX_SHADER.0, GRAPHICS) & Stage::FRAGMENT_DENSITY_PROCESS_EXT.0, 0);
    }

    #[test]
    fn accesses_expand() {
        let read = expand_access(Access::SHADER_READ.0);
        assert_ne!(read & Access::SHADER_SAMPLED_READ.0, 0);
        assert_ne!(read & Access::SHADER_STORAGE_READ.0, 0);
        assert_eq!(read & Access::UNIFORM_READ.0, 0);
        let any = expand_access(Access::MEMORY_WRITE.0);
        assert_ne!(any & Access::TRANSFER_WRITE.0, 0);
        assert_ne!(any & Access::HOST_WRITE.0, 0);
        assert_eq!(any & Access::TRANSFER_READ.0, 0);
        assert!(is_write(Access::COLOR_ATTACHMENT_WRITE.0));
        assert!(!is_write(Access::COLOR_ATTACHMENT_READ.0));
    }
}
