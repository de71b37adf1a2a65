//! A performance from its beginning to its end.

use lavascope_sync_ir::{
    Barrier, Certainty, Command, DependencyTarget, HostStep, MemoryBinding, Program, Region, Resource, ResourceKind,
    SetEvent, SparseBind, SparsePart, WaitEvents,
};

use crate::error::{LiveError, UnsupportedProgram};
use crate::objects::calls::call_count;
use crate::objects::device::{LiveDevice, LiveScenario};
use crate::objects::gpu::{LiveGpu, ReceivedMessage};
use crate::objects::resources::check_resources;
use crate::plan::choose::{covers_whole_image, image, live_commands};
use crate::plan::open_attachments::open_attachments;
use crate::plan::version_1::{dependencies, fits_version_1};
use crate::recording::command_buffer::RecordingPlan;

/// Which function submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitApi {
    One,
    Two,
}

/// Which thread records command buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingMode {
    /// The thread that does all else too.
    CallingThread,
    /// A thread for each, all at the same time.
    ThreadPerBuffer,
}

/// How draws are performed that a program has outside of render pass instances, and that need no attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawsOutsidePass {
    /// Each gets an instance around it, as Vulkan wants it.
    WrapInRendering,
    /// They stay alone, which only a driver that does nothing can take.
    LeaveOutside,
}

/// Which device performs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceReuse {
    /// A new one for each.
    Never,
    /// The idle one of an earlier program with the same queues: most of the time goes into creating devices.
    WhileIdle,
}

#[derive(Clone, Copy, Debug)]
pub struct LiveOptions {
    pub submit: SubmitApi,
    pub recording: RecordingMode,
    pub draws_outside_pass: DrawsOutsidePass,
    pub reuse: DeviceReuse,
}

/// The result of a performance.
#[derive(Clone, Debug, Default)]
pub struct LiveRun {
    pub messages: Vec<ReceivedMessage>,
    /// For each step of the program the number of the call that it was, among those of this thread.
    pub step_calls: Vec<u64>,
}

/// Whether a program can be performed.
pub fn check_supported(program: &Program) -> Result<(), UnsupportedProgram> {
    plan_recording(program).map(|_| ())
}

impl LiveGpu {
    /// Performs a program on a new device, and returns the messages. Some of them may be about buffers of our own,
    /// whose name is [`SCRATCH_NAME`](crate::SCRATCH_NAME).
    pub fn run(&self, scenario: LiveScenario<'_>, options: LiveOptions) -> Result<LiveRun, LiveError> {
        let plan = plan_recording(scenario.program)?;
        if options.submit == SubmitApi::One {
            check_submits(scenario.program)?;
        }
        let world = LiveDevice::new(self, scenario, options)?;
        let result = run_scenario(&world, &plan, options);
        world.destroy_all(options.reuse);
        let steps = result?;
        Ok(LiveRun { messages: self.take_messages(), step_calls: steps })
    }
}

fn run_scenario(world: &LiveDevice<'_>, plan: &RecordingPlan, options: LiveOptions) -> Result<Vec<u64>, LiveError> {
    let count = world.command_buffers.len();
    match options.recording {
        // Secondary command buffers must be recorded before the command buffers that execute them.
        RecordingMode::CallingThread => {
            recording_order(world.scenario.program).into_iter().try_for_each(|at| world.record(plan, at))?
        }
        RecordingMode::ThreadPerBuffer => record_on_threads(world, plan, count)?,
    }
    let mut steps = Vec::new();
    for step in &world.scenario.program.steps {
        world.run_step(step, options.submit)?;
        steps.push(call_count() - 1);
    }
    Ok(steps)
}

/// Command buffers that execute others come after those.
fn recording_order(program: &Program) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for at in 0..program.command_buffers.len() {
        visit_secondaries(program, at, &mut found);
    }
    found
}

fn visit_secondaries(program: &Program, at: usize, found: &mut Vec<usize>) {
    if found.contains(&at) {
        return;
    }
    for command in &program.command_buffers[at].commands {
        if let Command::Execute(all) = command {
            all.iter().for_each(|it| visit_secondaries(program, it.0 as usize, found));
        }
    }
    found.push(at);
}

/// Level by level, since a command buffer that is executed must have been recorded.
fn record_on_threads(world: &LiveDevice<'_>, plan: &RecordingPlan, count: usize) -> Result<(), LiveError> {
    let program = world.scenario.program;
    let levels: Vec<usize> = (0..count).map(|at| nesting_depth(program, at)).collect();
    for now in 0..=levels.iter().copied().max().unwrap_or(0) {
        std::thread::scope(|scope| {
            let of_level = (0..count).filter(|at| levels[*at] == now);
            let threads: Vec<_> = of_level.map(|at| scope.spawn(move || world.record(plan, at))).collect();
            let end = |join_handle: std::thread::ScopedJoinHandle<'_, Result<(), LiveError>>| {
                join_handle.join().unwrap_or_else(|it| std::panic::resume_unwind(it))
            };
            threads.into_iter().map(end).collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, _>>()
        })?;
    }
    Ok(())
}

/// How deep what a command buffer executes is nested.
fn nesting_depth(program: &Program, at: usize) -> usize {
    let executed = program.command_buffers[at].commands.iter().filter_map(|command| match command {
        Command::Execute(all) => Some(all),
        _ => None,
    });
    executed.flatten().map(|it| nesting_depth(program, it.0 as usize) + 1).max().unwrap_or(0)
}

fn plan_recording(program: &Program) -> Result<RecordingPlan, UnsupportedProgram> {
    check_resources(program)?;
    check_masks(program)?;
    check_sparse(program)?;
    check_host(program)?;
    for dependency in dependencies(program) {
        let (DependencyTarget::Resource { resource, region } | DependencyTarget::Transition { resource, region }) =
            &dependency.target
        else {
            continue;
        };
        let Region::Image(region) = region else { continue };
        if !image(program, *resource).is_some_and(|it| covers_whole_image(it, region)) {
            return UnsupportedProgram::error("a barrier is about whole levels");
        }
    }
    let scenes = open_attachments(program)?;
    let begin = |(at, live_attachments): (usize, &Vec<_>)| match program.command_buffers[at].is_secondary {
        true => live_attachments.first().cloned().flatten(),
        false => None,
    };
    Ok(RecordingPlan { commands: live_commands(program)?, inherited: scenes.iter().enumerate().map(begin).collect() })
}

/// The sparse blocks of an image are all of one size.
fn check_sparse(program: &Program) -> Result<(), UnsupportedProgram> {
    const BLOCK: u64 = 1 << 16;
    let binds = program.steps.iter().flat_map(|step| match step {
        HostStep::BindSparse { binds, .. } => binds.as_slice(),
        _ => &[],
    });
    let is_block = |it: &SparseBind| matches!(it.part, SparsePart::Bytes(_)) || it.size.is_multiple_of(BLOCK);
    if binds.into_iter().all(is_block) {
        return Ok(());
    }
    UnsupportedProgram::error("the sparse blocks of images have 64 KiB")
}

/// A host access is a range of memory, which must belong to one resource.
fn check_host(program: &Program) -> Result<(), UnsupportedProgram> {
    let is_sure =
        |it: &HostStep| !matches!(it, HostStep::HostAccess { certainty, .. } if *certainty != Certainty::Certain);
    if !program.steps.iter().all(is_sure) {
        return UnsupportedProgram::error("an access of the host that is not certain");
    }
    let accessed = program.steps.iter().filter_map(|step| match step {
        HostStep::HostAccess { resource, .. } => program.resources.get(resource.0 as usize)?.binding,
        _ => None,
    });
    for own in accessed {
        let meets = |memory_binding: &MemoryBinding| {
            memory_binding.memory == own.memory
                && memory_binding.offset < own.offset + own.size
                && own.offset < memory_binding.offset + memory_binding.size
        };
        let is_readable = |it: &&Resource| !matches!(&it.kind, ResourceKind::Image(it) if !it.is_linear());
        let all = program.resources.iter().filter(is_readable).filter_map(|it| it.binding);
        if all.filter(meets).count() > 1 {
            return UnsupportedProgram::error(
                "a flush of memory that several resources share does not tell which one is meant",
            );
        }
    }
    Ok(())
}

/// Version 1 has masks of 32 bits.
fn check_masks(program: &Program) -> Result<(), UnsupportedProgram> {
    let is_fit = |command: &Command| match command {
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            let masks = dependencies
                .iter()
                .all(|it| fits_version_1(it.scope.src_access) && fits_version_1(it.scope.dst_access));
            fits_version_1(*src_stages) && fits_version_1(*dst_stages) && masks
        }
        Command::SetEvent(SetEvent::Sync1 { stages, .. }) => fits_version_1(*stages),
        _ => true,
    };
    if program.command_buffers.iter().flat_map(|it| &it.commands).all(is_fit) {
        return Ok(());
    }
    UnsupportedProgram::error("version 1 has no room for the masks")
}

fn check_submits(program: &Program) -> Result<(), UnsupportedProgram> {
    let batches = program.steps.iter().filter_map(|step| match step {
        HostStep::Submit { batches, .. } => Some(batches),
        _ => None,
    });
    let is_fit = |submit_batch: &lavascope_sync_ir::SubmitBatch| {
        let all = lavascope_abi::PipelineStageFlags2::ALL_COMMANDS.0;
        submit_batch.waits.iter().all(|it| fits_version_1(it.stages))
            && submit_batch.signals.iter().all(|it| it.stages == all)
    };
    if batches.flatten().all(is_fit) {
        Ok(())
    } else {
        UnsupportedProgram::error("vkQueueSubmit has no room for the masks")
    }
}
