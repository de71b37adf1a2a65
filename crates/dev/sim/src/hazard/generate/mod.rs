//! Random programs: mostly right ones, some of them spoiled a little, and some without any plan.
//!
//! A program without hazards says little, one full of hazards says no more: on each cell only the first counts. So
//! programs are made with dependencies that fit, tight or generous, and then a few of these are weakened.

mod commands;
mod rendering;
mod steps;
mod world;

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
use lavascope_sync_ir::{Command, CommandBuffer, CommandBufferId, Program, ResourceId};

use super::edit::{Which, count_edits, edited, repair};
use crate::Random;

/// What may occur in random programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
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
    pub crowded: bool,
    pub presentation: bool,
    pub ownership: bool,
}

impl Kinds {
    const NONE: Kinds = Kinds {
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
        crowded: false,
        presentation: false,
        ownership: false,
    };
    /// One queue, actions and barriers.
    pub const BARRIERS: Kinds = Kinds { version_one: true, resource_barriers: true, transitions: true, ..Kinds::NONE };
    /// Everything but rendering, the host's own accesses, aliasing, presentation and ownership.
    pub const STAGE_ONE: Kinds = Kinds {
        events: true,
        secondaries: true,
        resubmission: true,
        queues: true,
        host_waits: true,
        ..Kinds::BARRIERS
    };
    /// Resources in one memory, by all means but rendering.
    pub const ALIASES: Kinds =
        Kinds { host_accesses: true, aliasing: true, crowded: true, presentation: true, ..Kinds::STAGE_ONE };
    pub const ALL: Kinds = Kinds {
        render_passes: true,
        dynamic_rendering: true,
        multiview: true,
        host_accesses: true,
        aliasing: true,
        presentation: true,
        ownership: true,
        ..Kinds::STAGE_ONE
    };
}

/// The program of a seed.
pub fn random_program(seed: u64, kinds: &Kinds) -> Program {
    let mut maker = Maker::new(seed, *kinds);
    maker.world();
    maker.command_buffers();
    maker.steps();
    let mut program = maker.program;
    repair(&mut program);
    let mut random = maker.random;
    let spoilings = if random.below(5) < 2 { 0 } else { 1 + random.below(4) };
    for _ in 0..spoilings {
        let count = count_edits(&program, Which::Weaken) as u64;
        if count > 0 {
            program = edited(&program, Which::Weaken, random.below(count) as usize);
        }
    }
    program
}

struct Maker {
    random: Random,
    kinds: Kinds,
    program: Program,
    care: Care,
    /// What command buffers made so far do.
    past: Usage,
    uses: Vec<Uses>,
    /// One that any command buffer may execute, outside of render passes.
    secondary: Option<CommandBufferId>,
    attachments: Vec<ResourceId>,
    presentable: Option<ResourceId>,
}

/// How much thought goes into dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Whatever comes.
    None,
    /// All stages and all memory, mostly.
    Generous,
    /// Only what is needed.
    Tight,
}

/// What a command buffer is good for.
#[derive(Clone, Copy, Default)]
struct Uses {
    is_secondary: bool,
    needs_graphics: bool,
    /// The family of the only queue that may take it.
    family: Option<u32>,
    is_presented: bool,
    /// The one that goes on with the rendering that this one suspends.
    tail: Option<CommandBufferId>,
    is_tail: bool,
}

impl Uses {
    /// Whether it is submitted by itself.
    fn is_submitted(&self) -> bool {
        !self.is_secondary && !self.is_tail
    }
}

/// Stages and accesses.
#[derive(Clone, Copy, Default)]
struct Usage {
    stages: u64,
    access: u64,
}

impl Usage {
    const EVERYTHING: Usage = Usage { stages: S::ALL_COMMANDS.0, access: A::MEMORY_READ.0 | A::MEMORY_WRITE.0 };

    fn and(self, other: Usage) -> Usage {
        Usage { stages: self.stages | other.stages, access: self.access | other.access }
    }
}

const GRAPHICS: u32 = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
const COMPUTE: u32 = QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;

impl Maker {
    fn new(seed: u64, kinds: Kinds) -> Maker {
        let mut random = Random::new(seed);
        let care = match random.below(12) {
            0 => Care::None,
            1..=4 => Care::Generous,
            _ => Care::Tight,
        };
        Maker {
            random,
            kinds,
            program: Program::default(),
            care,
            past: Usage::default(),
            uses: Vec::new(),
            secondary: None,
            attachments: Vec::new(),
            presentable: None,
        }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len() as u64) as usize]
    }

    /// True so many times in a hundred.
    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn push_buffer(&mut self, buffer: CommandBuffer, uses: Uses) -> CommandBufferId {
        self.program.command_buffers.push(buffer);
        self.uses.push(uses);
        CommandBufferId(self.uses.len() as u32 - 1)
    }

    fn push_secondary(&mut self, commands: Vec<Command>) -> CommandBufferId {
        let uses = Uses { is_secondary: true, ..Uses::default() };
        self.push_buffer(CommandBuffer { is_secondary: true, commands }, uses)
    }
}
