//! Random programs: mostly right ones, some of them spoiled a little, and some without any plan.
//!
//! A program without hazards says little, one full of hazards says no more: on each cell only the first counts. So
//! programs are made with dependencies that fit, tight or generous, and then a few of these are weakened.

mod commands;
mod presentation;
mod rendering;
mod resources;
mod steps;

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
use lavascope_sync_ir::{Command, CommandBuffer, CommandBufferId, Program, ResourceId};

use super::edit::{EditSet, apply_edit, count_edits, repair_events};
use lavascope_test_support::TestRng;

/// What may occur in random programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramFeatures {
    /// Barriers of version 1.
    pub version_one: bool,
    /// Barriers on parts of resources.
    pub resource_barriers: bool,
    /// Layout transitions in barriers.
    pub transitions: bool,
    pub events: bool,
    pub secondaries: bool,
    /// Command buffers that are submitted more than once.
    pub resubmission: bool,
    /// More than one queue, and semaphores.
    pub queues: bool,
    /// Waits of the host, by fences, timelines, and for queues and the device.
    pub host_waits: bool,
    pub render_passes: bool,
    pub dynamic_rendering: bool,
    /// Views of several layers.
    pub multiview: bool,
    pub host_accesses: bool,
    /// Resources that share memory.
    pub aliasing: bool,
    /// Little besides such resources.
    pub mostly_aliased: bool,
    pub presentation: bool,
    pub ownership: bool,
    /// Buffer markers.
    pub markers: bool,
}

impl ProgramFeatures {
    const NONE: ProgramFeatures = ProgramFeatures {
        version_one: false,
        resource_barriers: false,
        transitions: false,
        events: false,
        secondaries: false,
        resubmission: false,
        queues: false,
        host_waits: false,
        render_passes: false,
        dynamic_rendering: false,
        multiview: false,
        host_accesses: false,
        aliasing: false,
        mostly_aliased: false,
        presentation: false,
        ownership: false,
        markers: false,
    };
    /// One queue, actions and barriers.
    pub const BARRIERS: ProgramFeatures =
        ProgramFeatures { version_one: true, resource_barriers: true, transitions: true, ..ProgramFeatures::NONE };
    /// Everything but rendering, the host's own accesses, aliasing, presentation and ownership.
    pub const WITHOUT_RENDERING: ProgramFeatures = ProgramFeatures {
        events: true,
        secondaries: true,
        resubmission: true,
        queues: true,
        host_waits: true,
        ..ProgramFeatures::BARRIERS
    };
    /// Resources in one memory, by all means but rendering.
    pub const ALIASES: ProgramFeatures = ProgramFeatures {
        host_accesses: true,
        aliasing: true,
        mostly_aliased: true,
        presentation: true,
        ..ProgramFeatures::WITHOUT_RENDERING
    };
    pub const ALL: ProgramFeatures = ProgramFeatures {
        render_passes: true,
        dynamic_rendering: true,
        multiview: true,
        host_accesses: true,
        aliasing: true,
        presentation: true,
        ownership: true,
        markers: true,
        ..ProgramFeatures::WITHOUT_RENDERING
    };
}

/// The program of a seed.
pub fn random_program(seed: u64, kinds: &ProgramFeatures) -> Program {
    let mut maker = ProgramGenerator::new(seed, *kinds);
    maker.create_resources();
    maker.command_buffers();
    maker.steps();
    let mut program = maker.program;
    repair_events(&mut program);
    let mut random = maker.random;
    let spoilings = if random.below(5) < 2 { 0 } else { 1 + random.below(4) };
    for _ in 0..spoilings {
        let count = count_edits(&program, EditSet::Weaken) as u64;
        if count > 0 {
            program = apply_edit(&program, EditSet::Weaken, random.below(count) as usize);
        }
    }
    program
}

struct ProgramGenerator {
    random: TestRng,
    features: ProgramFeatures,
    program: Program,
    dependency_style: DependencyStyle,
    /// What command buffers made so far do.
    recorded_accesses: StageAccessMasks,
    buffer_traits: Vec<CommandBufferTraits>,
    /// One that any command buffer may execute, outside of render passes.
    secondary: Option<CommandBufferId>,
    attachments: Vec<ResourceId>,
    presentable: Option<ResourceId>,
    /// The second stages of barriers at the ends of command buffers.
    final_stages: u64,
}

/// How much thought goes into dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DependencyStyle {
    /// Whatever comes.
    Random,
    /// All stages and all memory, mostly.
    Generous,
    /// Only what is needed.
    Tight,
}

/// What a command buffer is good for.
#[derive(Clone, Copy, Default)]
struct CommandBufferTraits {
    is_secondary: bool,
    needs_graphics: bool,
    /// The family of the only queue that may take it.
    family: Option<u32>,
    is_presented: bool,
    /// The one that goes on with the rendering that this one suspends.
    resumed_by: Option<CommandBufferId>,
    is_resuming: bool,
}

impl CommandBufferTraits {
    /// Whether it is submitted by itself.
    fn is_submitted(&self) -> bool {
        !self.is_secondary && !self.is_resuming
    }
}

/// Stages and accesses.
#[derive(Clone, Copy, Default)]
struct StageAccessMasks {
    stages: u64,
    access: u64,
}

impl StageAccessMasks {
    const EVERYTHING: StageAccessMasks =
        StageAccessMasks { stages: S::ALL_COMMANDS.0, access: A::MEMORY_READ.0 | A::MEMORY_WRITE.0 };

    fn union(self, other: StageAccessMasks) -> StageAccessMasks {
        StageAccessMasks { stages: self.stages | other.stages, access: self.access | other.access }
    }
}

const GRAPHICS: u32 = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
const COMPUTE: u32 = QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;

impl ProgramGenerator {
    fn new(seed: u64, kinds: ProgramFeatures) -> ProgramGenerator {
        let mut random = TestRng::new(seed);
        let care = match random.below(12) {
            0 => DependencyStyle::Random,
            1..=4 => DependencyStyle::Generous,
            _ => DependencyStyle::Tight,
        };
        ProgramGenerator {
            random,
            features: kinds,
            program: Program::default(),
            dependency_style: care,
            recorded_accesses: StageAccessMasks::default(),
            buffer_traits: Vec::new(),
            secondary: None,
            attachments: Vec::new(),
            presentable: None,
            final_stages: 0,
        }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len() as u64) as usize]
    }

    /// True so many times in a hundred.
    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn push_buffer(&mut self, buffer: CommandBuffer, uses: CommandBufferTraits) -> CommandBufferId {
        self.program.command_buffers.push(buffer);
        self.buffer_traits.push(uses);
        CommandBufferId(self.buffer_traits.len() as u32 - 1)
    }

    fn push_secondary(&mut self, commands: Vec<Command>) -> CommandBufferId {
        let uses = CommandBufferTraits { is_secondary: true, ..CommandBufferTraits::default() };
        self.push_buffer(CommandBuffer { is_secondary: true, commands }, uses)
    }
}
