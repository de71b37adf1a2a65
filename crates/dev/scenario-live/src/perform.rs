//! A performance from its beginning to its end.

use lavascope_sync_ir::{
    Barrier, MemoryBinding, Certainty, Command, Program, Region, Resource, ResourceKind, SetEvent, SparseBind, SparsePart,
    HostStep, WaitEvents, DependencyTarget,
};

use crate::calls::calls;
use crate::choose::{deeds, image, is_whole};
use crate::error::{ActError, Unable};
use crate::gpu::{Gpu, Message};
use crate::masks::{dependencies, fits};
use crate::record::Plan;
use crate::resources::check_resources;
use crate::scene::scenes;
use crate::world::{Script, World};

/// Which function submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitApi {
    One,
    Two,
}

/// Who records command buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// The thread that does all else too.
    Here,
    /// A thread for each, all at the same time.
    Threads,
}

/// What becomes of draws that a program has outside of render pass instances, and that need no attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lonely {
    /// Each gets an instance around it, as Vulkan wants it.
    InInstance,
    /// They stay alone, which only a driver that does nothing can take.
    Alone,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub submit: SubmitApi,
    pub recording: Recording,
    pub lonely: Lonely,
}

/// What came of a performance.
#[derive(Clone, Debug, Default)]
pub struct Performed {
    pub messages: Vec<Message>,
    /// For each step of the program the number of the call that it was, among those of this thread.
    pub steps: Vec<u64>,
}

/// Whether a program can be performed.
pub fn check(program: &Program) -> Result<(), Unable> {
    plan(program).map(|_| ())
}

impl Gpu {
    /// Performs a program on a new device, and gives what was said about it. Some of it may be about buffers of our own,
    /// whose name is [`SCRATCH_NAME`](crate::SCRATCH_NAME).
    pub fn perform(&self, script: Script<'_>, options: Options) -> Result<Performed, ActError> {
        let plan = plan(script.program)?;
        if options.submit == SubmitApi::One {
            check_submits(script.program)?;
        }
        let world = World::new(self, script, options.lonely)?;
        let result = perform(&world, &plan, options);
        world.end();
        let steps = result?;
        Ok(Performed { messages: self.take_messages(), steps })
    }
}

fn perform(world: &World<'_>, plan: &Plan, options: Options) -> Result<Vec<u64>, ActError> {
    let count = world.command_buffers.len();
    match options.recording {
        // Secondary command buffers must be there before whoever executes them.
        Recording::Here => order(world.script.program).into_iter().try_for_each(|at| world.record(plan, at))?,
        Recording::Threads => record_on_threads(world, plan, count)?,
    }
    let mut steps = Vec::new();
    for step in &world.script.program.steps {
        world.step(step, options.submit)?;
        steps.push(calls() - 1);
    }
    Ok(steps)
}

/// Those that execute others come behind them.
fn order(program: &Program) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for at in 0..program.command_buffers.len() {
        visit(program, at, &mut found);
    }
    found
}

fn visit(program: &Program, at: usize, found: &mut Vec<usize>) {
    if found.contains(&at) {
        return;
    }
    for command in &program.command_buffers[at].commands {
        if let Command::Execute(all) = command {
            all.iter().for_each(|it| visit(program, it.0 as usize, found));
        }
    }
    found.push(at);
}

/// Level by level, since a command buffer that is executed must have been recorded.
fn record_on_threads(world: &World<'_>, plan: &Plan, count: usize) -> Result<(), ActError> {
    let program = world.script.program;
    let levels: Vec<usize> = (0..count).map(|at| level(program, at)).collect();
    for now in 0..=levels.iter().copied().max().unwrap_or(0) {
        std::thread::scope(|scope| {
            let of_level = (0..count).filter(|at| levels[*at] == now);
            let threads: Vec<_> = of_level.map(|at| scope.spawn(move || world.record(plan, at))).collect();
            let end = |it: std::thread::ScopedJoinHandle<'_, Result<(), ActError>>| {
                it.join().unwrap_or_else(|it| std::panic::resume_unwind(it))
            };
            threads.into_iter().map(end).collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, _>>()
        })?;
    }
    Ok(())
}

/// How deep what a command buffer executes is nested.
fn level(program: &Program, at: usize) -> usize {
    let executed = program.command_buffers[at].commands.iter().filter_map(|it| match it {
        Command::Execute(all) => Some(all),
        _ => None,
    });
    executed.flatten().map(|it| level(program, it.0 as usize) + 1).max().unwrap_or(0)
}

fn plan(program: &Program) -> Result<Plan, Unable> {
    check_resources(program)?;
    check_masks(program)?;
    check_sparse(program)?;
    check_host(program)?;
    for it in dependencies(program) {
        let (DependencyTarget::Resource { resource, region } | DependencyTarget::Transition { resource, region }) = &it.target else { continue };
        let Region::Image(region) = region else { continue };
        if !image(program, *resource).is_some_and(|it| is_whole(it, region)) {
            return Unable::new("a barrier is about whole levels");
        }
    }
    let scenes = scenes(program)?;
    let begin = |(at, it): (usize, &Vec<_>)| match program.command_buffers[at].is_secondary {
        true => it.first().cloned().flatten(),
        false => None,
    };
    Ok(Plan { deeds: deeds(program)?, inherited: scenes.iter().enumerate().map(begin).collect() })
}

/// The sparse blocks of an image are all of one size.
fn check_sparse(program: &Program) -> Result<(), Unable> {
    const BLOCK: u64 = 1 << 16;
    let binds = program.steps.iter().flat_map(|it| match it {
        HostStep::BindSparse { binds, .. } => binds.as_slice(),
        _ => &[],
    });
    let is_block = |it: &SparseBind| matches!(it.part, SparsePart::Bytes(_)) || it.size.is_multiple_of(BLOCK);
    if binds.into_iter().all(is_block) {
        return Ok(());
    }
    Unable::new("the sparse blocks of images have 64 KiB")
}

/// What the host accesses is told by bytes of memory, which have to be those of one resource.
fn check_host(program: &Program) -> Result<(), Unable> {
    let is_sure = |it: &HostStep| !matches!(it, HostStep::HostAccess { certainty, .. } if *certainty != Certainty::Certain);
    if !program.steps.iter().all(is_sure) {
        return Unable::new("an access of the host that is not certain");
    }
    let accessed = program.steps.iter().filter_map(|it| match it {
        HostStep::HostAccess { resource, .. } => program.resources.get(resource.0 as usize)?.binding,
        _ => None,
    });
    for own in accessed {
        let meets = |it: &MemoryBinding| {
            it.memory == own.memory && it.offset < own.offset + own.size && own.offset < it.offset + it.size
        };
        let is_readable = |it: &&Resource| !matches!(&it.kind, ResourceKind::Image(it) if !it.is_linear());
        let all = program.resources.iter().filter(is_readable).filter_map(|it| it.binding);
        if all.filter(meets).count() > 1 {
            return Unable::new("a flush of memory that several resources share does not tell which one is meant");
        }
    }
    Ok(())
}

/// Version 1 has masks of 32 bits.
fn check_masks(program: &Program) -> Result<(), Unable> {
    let is_fit = |command: &Command| match command {
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            let masks = dependencies.iter().all(|it| fits(it.scope.src_access) && fits(it.scope.dst_access));
            fits(*src_stages) && fits(*dst_stages) && masks
        }
        Command::SetEvent(SetEvent::Sync1 { stages, .. }) => fits(*stages),
        _ => true,
    };
    if program.command_buffers.iter().flat_map(|it| &it.commands).all(is_fit) {
        return Ok(());
    }
    Unable::new("version 1 has no room for the masks")
}

fn check_submits(program: &Program) -> Result<(), Unable> {
    let batches = program.steps.iter().filter_map(|it| match it {
        HostStep::Submit { batches, .. } => Some(batches),
        _ => None,
    });
    let is_fit = |it: &lavascope_sync_ir::SubmitBatch| {
        let all = lavascope_abi::PipelineStageFlags2::ALL_COMMANDS.0;
        it.waits.iter().all(|it| fits(it.stages)) && it.signals.iter().all(|it| it.stages == all)
    };
    if batches.flatten().all(is_fit) { Ok(()) } else { Unable::new("vkQueueSubmit has no room for the masks") }
}
