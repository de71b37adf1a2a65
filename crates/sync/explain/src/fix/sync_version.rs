//! The two versions of the synchronization commands. Version 1 has fewer flags, and a fix writes
//! only the flags that its command has.

use lavascope_abi::desc::EnumDesc;
use lavascope_abi::{
    ACCESS_FLAG_BITS_ENUM, AccessFlags2 as A, PIPELINE_STAGE_FLAG_BITS_ENUM, PipelineStageFlags2 as S,
};
use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, DependencyTarget, Program, RenderPassId, SetEvent, SubpassDependency, SyncScope,
    WaitEvents,
};

use super::change::ProgramChange;
use crate::OperationLocation;
use crate::text::api_names::{access_names, mask_names, stage_names};

/// The version of a synchronization command, and of its flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncVersion {
    /// `vkCmdPipelineBarrier`, `vkQueueSubmit`.
    One,
    /// `vkCmdPipelineBarrier2`, `vkQueueSubmit2`: the feature `synchronization2`.
    #[default]
    Two,
}

/// The versions in which a fix may write new commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncVersions {
    /// The version of new barriers.
    pub commands: SyncVersion,
    /// The version of each submission, by its step. Other steps have the version of the commands.
    pub submits: Vec<SyncVersion>,
}

impl SyncVersions {
    /// Version 1, if the program uses only that.
    pub fn of(program: &Program) -> SyncVersions {
        let commands = program.command_buffers.iter().flat_map(|it| &it.commands);
        let used: Vec<SyncVersion> = commands.filter_map(SyncVersion::of).collect();
        let is_old = !used.is_empty() && used.iter().all(|it| *it == SyncVersion::One);
        let commands = if is_old { SyncVersion::One } else { SyncVersion::Two };
        SyncVersions { commands, submits: Vec::new() }
    }

    fn of_submit(&self, step: u32) -> SyncVersion {
        self.submits.get(step as usize).copied().unwrap_or(self.commands)
    }
}

impl SyncVersion {
    /// The version of a barrier or an event command. None for other commands.
    pub fn of(command: &Command) -> Option<SyncVersion> {
        match command {
            Command::Barrier(Barrier::Sync1 { .. })
            | Command::SetEvent(SetEvent::Sync1 { .. })
            | Command::WaitEvents(WaitEvents::Sync1 { .. }) => Some(SyncVersion::One),
            Command::Barrier(Barrier::Sync2 { .. })
            | Command::SetEvent(SetEvent::Sync2 { .. })
            | Command::WaitEvents(WaitEvents::Sync2 { .. }) => Some(SyncVersion::Two),
            _ => None,
        }
    }

    /// The smallest masks of this version that include the given ones.
    pub(crate) fn scope(self, scope: SyncScope) -> SyncScope {
        if self == SyncVersion::Two {
            return scope;
        }
        SyncScope {
            src_stages: old_stages(scope.src_stages),
            src_access: old_accesses(scope.src_access),
            dst_stages: old_stages(scope.dst_stages),
            dst_access: old_accesses(scope.dst_access),
        }
    }

    pub(crate) fn stages(self, mask: u64) -> u64 {
        self.scope(SyncScope { src_stages: mask, ..SyncScope::default() }).src_stages
    }

    /// The names of the stages in a mask, as the structures of this version have them.
    pub(crate) fn stage_names(self, mask: u64) -> String {
        match self {
            SyncVersion::One => old_names(&PIPELINE_STAGE_FLAG_BITS_ENUM, mask, stage_names),
            SyncVersion::Two => stage_names(mask),
        }
    }

    pub(crate) fn access_names(self, mask: u64) -> String {
        match self {
            SyncVersion::One => old_names(&ACCESS_FLAG_BITS_ENUM, mask, access_names),
            SyncVersion::Two => access_names(mask),
        }
    }

    /// The name of a command or a structure of this version: `vkCmdPipelineBarrier2`.
    pub(crate) fn name(self, old: &str) -> String {
        match self {
            SyncVersion::One => old.to_owned(),
            SyncVersion::Two => format!("{old}2"),
        }
    }
}

/// Flags that version 1 does not have keep the name that they have.
fn old_names(of: &EnumDesc, mask: u64, new_names: fn(u64) -> String) -> String {
    let (old, new) = (mask & all_bits(of), mask & !all_bits(of));
    match (old, new) {
        (0, 0) => of.values.first().map_or_else(String::new, |it| it.1.to_owned()),
        (_, 0) => mask_names(of, old),
        (0, _) => new_names(new),
        _ => format!("{}|{}", mask_names(of, old), new_names(new)),
    }
}

fn all_bits(of: &EnumDesc) -> u64 {
    of.values.iter().fold(0, |all, it| all | it.0 as u64)
}

fn bits_of(mask: u64) -> impl Iterator<Item = u64> {
    (0..64).map(|it| 1_u64 << it).filter(move |it| mask & it != 0)
}

fn old_stages(mask: u64) -> u64 {
    const GROUPS: [(u64, S); 3] = [
        (S::COPY.0 | S::RESOLVE.0 | S::BLIT.0 | S::CLEAR.0, S::ALL_TRANSFER),
        (S::INDEX_INPUT.0 | S::VERTEX_ATTRIBUTE_INPUT.0, S::VERTEX_INPUT),
        (S::ACCELERATION_STRUCTURE_COPY_KHR.0, S::ACCELERATION_STRUCTURE_BUILD_KHR),
    ];
    let known = all_bits(&PIPELINE_STAGE_FLAG_BITS_ENUM);
    let group = |bit: u64| GROUPS.iter().find(|it| it.0 & bit != 0).map_or(S::ALL_COMMANDS.0, |it| it.1.0);
    let all = bits_of(mask & !known).fold(mask & known, |all, bit| all | group(bit));
    if all & S::ALL_COMMANDS.0 != 0 { S::ALL_COMMANDS.0 } else { all }
}

fn old_accesses(mask: u64) -> u64 {
    const READS: u64 = A::SHADER_SAMPLED_READ.0 | A::SHADER_STORAGE_READ.0 | A::SHADER_BINDING_TABLE_READ_KHR.0;
    let known = all_bits(&ACCESS_FLAG_BITS_ENUM);
    let group = |bit: u64| match bit {
        _ if bit & READS != 0 => A::SHADER_READ.0,
        _ if bit == A::SHADER_STORAGE_WRITE.0 => A::SHADER_WRITE.0,
        _ if access_names(bit).contains("WRITE") => A::MEMORY_WRITE.0,
        _ => A::MEMORY_READ.0,
    };
    bits_of(mask & !known).fold(mask & known, |all, bit| all | group(bit))
}

impl ProgramChange {
    /// The same change, with the flags that its commands have.
    pub(crate) fn in_versions(mut self, program: &Program, versions: &SyncVersions) -> ProgramChange {
        match &mut self {
            ProgramChange::AddBits { location, bits, adds_memory_barrier, version } => {
                *version = version_at(program, *location, versions);
                *bits = version.scope(*bits);
                let is_memory = bits.src_access | bits.dst_access != 0;
                *adds_memory_barrier = is_memory && lacks_memory_barrier(program, *location);
            }
            ProgramChange::InsertBarrier { dependency, version, .. } => {
                *version = versions.commands;
                dependency.scope = version.scope(dependency.scope);
            }
            ProgramChange::AddSubpassDependency { pass, dependency, version } => {
                *version = version_of_pass(program, *pass);
                dependency.scope = version.scope(dependency.scope);
            }
            ProgramChange::AddSemaphore { signal, signal_stages, wait, wait_stages } => {
                (signal.version, wait.version) = (versions.of_submit(signal.step), versions.of_submit(wait.step));
                *signal_stages = signaled_stages(signal.version, *signal_stages);
                *wait_stages = wait.version.stages(*wait_stages);
            }
            ProgramChange::AddPresentWait { signal, signal_stages, .. } => {
                signal.version = versions.of_submit(signal.step);
                *signal_stages = signaled_stages(signal.version, *signal_stages);
            }
            ProgramChange::AddWait { wait, wait_stages, .. } => {
                wait.version = versions.of_submit(wait.step);
                *wait_stages = wait.version.stages(*wait_stages);
            }
            ProgramChange::ExtendRange { .. } | ProgramChange::InsertHostWait { .. } => {}
        }
        self
    }
}

/// In version 1, a signal has no stages, and comes after everything.
fn signaled_stages(version: SyncVersion, stages: u64) -> u64 {
    if version == SyncVersion::One { S::ALL_COMMANDS.0 } else { stages }
}

/// Whether a location is a whole command of version 1 that has no memory barrier for all memory.
fn lacks_memory_barrier(program: &Program, location: OperationLocation) -> bool {
    let (OperationLocation::Barrier { buffer, command, dependency: None }
    | OperationLocation::Event { buffer, command, dependency: None, .. }) = location
    else {
        return false;
    };
    let command = program.command_buffers.get(buffer.0 as usize).and_then(|it| it.commands.get(command as usize));
    let (Some(Command::Barrier(Barrier::Sync1 { dependencies, .. }))
    | Some(Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }))) = command
    else {
        return false;
    };
    dependencies.iter().all(|it| it.target != DependencyTarget::Global)
}

fn version_at(program: &Program, location: OperationLocation, versions: &SyncVersions) -> SyncVersion {
    let recorded = |buffer: CommandBufferId, command: u32| {
        let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)?;
        SyncVersion::of(command)
    };
    match location {
        OperationLocation::Barrier { buffer, command, .. }
        | OperationLocation::Event { buffer, command, .. }
        | OperationLocation::SetEvent { buffer, command } => recorded(buffer, command).unwrap_or_default(),
        OperationLocation::Subpass { pass, .. } => version_of_pass(program, pass),
        OperationLocation::Semaphore { signal, wait } => {
            wait.or(signal).map_or(versions.commands, |it| versions.of_submit(it.step))
        }
        OperationLocation::Step(_) => versions.commands,
    }
}

/// A subpass dependency has flags of version 2 only in a `VkMemoryBarrier2` in its chain. The
/// application extends it so, if other dependencies of the render pass have such flags.
pub(crate) fn version_of_pass(program: &Program, pass: RenderPassId) -> SyncVersion {
    let own = program.render_passes.get(pass.0 as usize);
    let is_old = |it: &SubpassDependency| SyncVersion::One.scope(it.scope) == it.scope;
    if own.is_none_or(|it| it.dependencies.iter().all(is_old)) { SyncVersion::One } else { SyncVersion::Two }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_version_2_become_the_groups_of_version_1() {
        let scope = SyncScope {
            src_stages: S::CLEAR.0 | S::COPY.0,
            src_access: A::TRANSFER_WRITE.0,
            dst_stages: S::INDEX_INPUT.0 | S::FRAGMENT_SHADER.0,
            dst_access: A::SHADER_STORAGE_READ.0 | A::SHADER_SAMPLED_READ.0 | A::INDEX_READ.0,
        };
        let old = SyncVersion::One.scope(scope);
        assert_eq!(SyncVersion::One.stage_names(old.src_stages), "VK_PIPELINE_STAGE_TRANSFER_BIT");
        assert_eq!(old.dst_stages, S::VERTEX_INPUT.0 | S::FRAGMENT_SHADER.0);
        assert_eq!(SyncVersion::One.access_names(old.dst_access), "VK_ACCESS_INDEX_READ_BIT|VK_ACCESS_SHADER_READ_BIT");
        assert_eq!(SyncVersion::Two.scope(scope), scope);
        assert_eq!(old_stages(S::PRE_RASTERIZATION_SHADERS.0 | S::COPY.0), S::ALL_COMMANDS.0);
        assert_eq!(
            old_accesses(A::SHADER_STORAGE_WRITE.0 | A::DESCRIPTOR_BUFFER_READ_EXT.0),
            A::SHADER_WRITE.0 | A::MEMORY_READ.0
        );
        assert_eq!(SyncVersion::One.stage_names(0), "VK_PIPELINE_STAGE_NONE");
    }
}
