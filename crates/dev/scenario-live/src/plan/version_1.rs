//! The masks of version 1, which have half as many bits.
//!
//! Stages that have a name of their own only in version 2 are part of a larger stage in version 1: a copy is a
//! transfer. Such a program may order more than the original.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{Barrier, Command, Dependency, HostStep, Program, SetEvent, WaitEvents};

/// Stages of version 2 and what they are in version 1.
const STAGES: [(u64, u64); 8] = [
    (Stage::COPY.0, Stage::ALL_TRANSFER.0),
    (Stage::BLIT.0, Stage::ALL_TRANSFER.0),
    (Stage::RESOLVE.0, Stage::ALL_TRANSFER.0),
    (Stage::CLEAR.0, Stage::ALL_TRANSFER.0),
    (Stage::INDEX_INPUT.0, Stage::VERTEX_INPUT.0),
    (Stage::VERTEX_ATTRIBUTE_INPUT.0, Stage::VERTEX_INPUT.0),
    (Stage::PRE_RASTERIZATION_SHADERS.0, PRE_RASTERIZATION),
    (Stage::ACCELERATION_STRUCTURE_COPY_KHR.0, Stage::ACCELERATION_STRUCTURE_BUILD_KHR.0),
];

const PRE_RASTERIZATION: u64 = Stage::VERTEX_SHADER.0
    | Stage::TESSELLATION_CONTROL_SHADER.0
    | Stage::TESSELLATION_EVALUATION_SHADER.0
    | Stage::GEOMETRY_SHADER.0
    | Stage::TASK_SHADER_EXT.0
    | Stage::MESH_SHADER_EXT.0;

const ACCESSES: [(u64, u64); 3] = [
    (Bits::SHADER_SAMPLED_READ.0, Bits::SHADER_READ.0),
    (Bits::SHADER_STORAGE_READ.0, Bits::SHADER_READ.0),
    (Bits::SHADER_STORAGE_WRITE.0, Bits::SHADER_WRITE.0),
];

/// Whether a mask has room in version 1.
pub(crate) fn fits_version_1(mask: u64) -> bool {
    mask <= u64::from(u32::MAX)
}

/// The program with everything that is of version 1 in the words of version 1.
pub fn with_version_1_masks(program: &Program) -> Program {
    let mut made = program.clone();
    for command in made.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
            | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
                *src_stages = widened_mask(*src_stages, &STAGES);
                *dst_stages = widened_mask(*dst_stages, &STAGES);
                dependencies.iter_mut().for_each(widen_accesses);
            }
            Command::SetEvent(SetEvent::Sync1 { stages, .. }) => *stages = widened_mask(*stages, &STAGES),
            _ => {}
        }
    }
    made
}

/// The program for `vkQueueSubmit`; none if signals have stages, which it cannot express.
pub fn for_queue_submit_1(program: &Program) -> Option<Program> {
    let mut made = program.clone();
    for step in &mut made.steps {
        let HostStep::Submit { batches, .. } = step else { continue };
        for batch in batches {
            if batch.signals.iter().any(|it| it.stages != Stage::ALL_COMMANDS.0) {
                return None;
            }
            batch.waits.iter_mut().for_each(|it| it.stages = widened_mask(it.stages, &STAGES));
        }
    }
    Some(made)
}

fn widen_accesses(dependency: &mut Dependency) {
    dependency.scope.src_access = widened_mask(dependency.scope.src_access, &ACCESSES);
    dependency.scope.dst_access = widened_mask(dependency.scope.dst_access, &ACCESSES);
}

fn widened_mask(mask: u64, table: &[(u64, u64)]) -> u64 {
    table.iter().fold(mask, |mask, (new, old)| if mask & new == 0 { mask } else { mask & !new | old })
}

/// All dependencies of commands.
pub(crate) fn dependencies(program: &Program) -> impl Iterator<Item = &Dependency> {
    program.command_buffers.iter().flat_map(|it| &it.commands).flat_map(|command| match command {
        Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies })
        | Command::SetEvent(SetEvent::Sync2 { dependencies, .. })
        | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => dependencies.iter().collect(),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().flat_map(|it| &it.1).collect::<Vec<_>>(),
        _ => Vec::new(),
    })
}
