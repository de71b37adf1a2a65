//! Command buffers that are recorded again and again: one validator has no caches, and another one looks at calls only
//! where they are not what they were the last time. Both must report the same, at the same calls.
//! `cargo xtask sim --caches` makes it more programs, and others.

#[path = "../benches/records/app.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod app;
#[path = "../benches/records/drawing.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod drawing;

use std::ops::Range;

use app::*;
use lavascope_abi::*;
use lavascope_record::{Record, RecordPhase};
use lavascope_sim::SyntheticObjects;
use lavascope_state::REPEATABLE_COMMANDS;
use lavascope_test_support::TestRng;
use lavascope_validate::Validator;

const PROGRAMS: u64 = 150;
const SEED: u64 = 0;
const BUFFERS: u64 = 6;
const COMMAND_BUFFERS: [u64; 3] = [2, 4, 6];
/// Its number is odd: a secondary one, which the others execute.
const SECONDARY: u64 = 9;
const TRANSFER: PipelineStageFlags = PipelineStageFlags::TRANSFER;
const EVERYTHING: PipelineStageFlags = PipelineStageFlags::ALL_COMMANDS;
const WRITES: AccessFlags = AccessFlags::MEMORY_WRITE;
const ALL: AccessFlags = AccessFlags(AccessFlags::MEMORY_READ.0 | AccessFlags::MEMORY_WRITE.0);
const BOTH: AccessFlags = AccessFlags(AccessFlags::TRANSFER_READ.0 | AccessFlags::TRANSFER_WRITE.0);

/// What is recorded.
#[derive(Clone, Copy, Debug)]
enum Op {
    Copy(u64, u64),
    Fill(u64),
    Barrier,
    /// A barrier that does not cover all.
    Narrow,
    Draws(u32),
    Label,
    LabelEnd,
    /// What no script has.
    Marker(u64),
    Execute,
}

struct RandomRecordingApp {
    app: RecordedApp,
    rng: TestRng,
    /// What each command buffer was recorded with last.
    scripts: Vec<Vec<Op>>,
    buffers: u64,
}

impl RandomRecordingApp {
    fn new(seed: u64) -> RandomRecordingApp {
        let mut app = RecordedApp::default();
        app.make_drawing();
        for value in &COMMAND_BUFFERS[1..] {
            app.other = Some(*value);
            app.make_command_buffer();
        }
        for value in 5..=BUFFERS {
            app.make_buffer(value);
        }
        let mut rng = TestRng::new(seed);
        let scripts = COMMAND_BUFFERS.map(|_| script(&mut rng)).to_vec();
        let mut player = RandomRecordingApp { app, rng, scripts, buffers: BUFFERS };
        player.make_secondary();
        player.record_secondary();
        player
    }

    fn make_secondary(&mut self) {
        let info = CommandBufferAllocateInfo {
            command_pool: command_pool(1),
            level: CommandBufferLevel::SECONDARY,
            command_buffer_count: 1,
            ..CommandBufferAllocateInfo::zeroed()
        };
        let params = AllocateCommandBuffersParams {
            device: device(1),
            p_allocate_info: Ptr::to(&info),
            p_command_buffers: Ptr::to(&command_buffer(SECONDARY)),
        };
        self.app.call(Command::AllocateCommandBuffers, &params);
    }

    fn record_secondary(&mut self) {
        let last = self.app.other.replace(SECONDARY);
        let inheritance = CommandBufferInheritanceInfo::zeroed();
        let info =
            CommandBufferBeginInfo { p_inheritance_info: Ptr::to(&inheritance), ..CommandBufferBeginInfo::zeroed() };
        let command_buffer = self.app.commands();
        let params = BeginCommandBufferParams { command_buffer, p_begin_info: Ptr::to(&info) };
        self.app.call(Command::BeginCommandBuffer, &params);
        for _ in 0..1 + self.rng.below(2) {
            let buffer = 1 + self.rng.below(BUFFERS);
            self.record_one(Op::Fill(buffer));
        }
        self.app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
        self.app.other = last;
    }

    fn next_one_in(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn frame(&mut self) {
        let which = self.rng.below(3) as usize;
        self.app.other = Some(COMMAND_BUFFERS[which]);
        self.change_between();
        if self.next_one_in(3) {
            self.change_script(which);
        }
        if self.next_one_in(8) {
            self.reset();
        }
        self.app.begin();
        if self.next_one_in(12) {
            // Begun again, before anything of it was executed.
            self.record(which, 0..1);
            self.app.begin();
        }
        let half = self.rng.below(self.scripts[which].len() as u64 + 1) as usize;
        self.record(which, 0..half);
        self.change_within(which, half);
        self.record(which, half..usize::MAX);
        self.end_recording();
        if !self.next_one_in(4) {
            self.submit();
        }
    }

    fn end_recording(&mut self) {
        let command_buffer = self.app.commands();
        self.app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
    }

    /// Something else happens in the middle of a recording, where that leaves alone what was recorded before.
    fn change_within(&mut self, which: usize, half: usize) {
        let has_drawn = self.scripts[which][..half].iter().any(|it| matches!(it, Op::Draws(_)));
        let has_executed = self.scripts[which][..half].iter().any(|it| matches!(it, Op::Execute));
        match self.rng.below(6) {
            0 if !has_drawn => self.write_sets(),
            1 if !has_executed => self.record_secondary(),
            2 => {
                let other = (which + 1) % COMMAND_BUFFERS.len();
                self.app.other = Some(COMMAND_BUFFERS[other]);
                self.app.begin();
                self.record(other, 0..usize::MAX);
                self.end_recording();
                self.app.other = Some(COMMAND_BUFFERS[which]);
            }
            _ => {}
        }
    }

    fn write_sets(&mut self) {
        let uniforms = 1 + self.rng.below(self.buffers);
        let sets = [descriptor_set(1), descriptor_set(2)];
        self.app.write_sets(sets, DescriptorType::UNIFORM_BUFFER_DYNAMIC, uniforms);
    }

    fn change_script(&mut self, which: usize) {
        let new = op(&mut self.rng);
        let len = self.scripts[which].len();
        let at = self.rng.below(len as u64 + 1) as usize;
        let own = &mut self.scripts[which];
        match self.rng.below(5) {
            0 if at < len => own[at] = new,
            3 if at < len => drop(own.remove(at)),
            1 => own.insert(at, new),
            2 => own.truncate(at),
            _ => own.push(new),
        }
    }

    /// Something else happens before the next recording.
    fn change_between(&mut self) {
        match self.rng.below(10) {
            0 => self.write_sets(),
            3 => self.record_secondary(),
            1 if self.buffers < 12 => {
                self.buffers += 1;
                let at = self.rng.below(8) * BUFFER_SIZE / 2 + BUFFER_SIZE;
                self.app.make_buffer_at(self.buffers, at);
            }
            2 if self.buffers > BUFFERS => {
                let gone = buffer(self.buffers);
                self.buffers -= 1;
                for script in self.scripts.iter_mut().flatten() {
                    if let Op::Copy(..) | Op::Fill(_) = script {
                        *script = Op::Fill(1 + self.rng.below(BUFFERS));
                    }
                }
                let params = DestroyBufferParams { device: device(1), buffer: gone, p_allocator: Ptr::NULL };
                self.app.call(Command::DestroyBuffer, &params);
            }
            _ => {}
        }
    }

    fn reset(&mut self) {
        let (device, command_buffer) = (device(1), self.app.commands());
        if self.next_one_in(2) {
            let params =
                ResetCommandPoolParams { device, command_pool: command_pool(1), flags: CommandPoolResetFlags(0) };
            self.app.call(Command::ResetCommandPool, &params);
            self.record_secondary();
        } else {
            let params = ResetCommandBufferParams { command_buffer, flags: CommandBufferResetFlags(0) };
            self.app.call(Command::ResetCommandBuffer, &params);
        }
    }

    /// Some of what a command buffer is to be recorded with.
    fn record(&mut self, which: usize, part: Range<usize>) {
        for script in self.scripts[which].clone().into_iter().take(part.end).skip(part.start) {
            self.record_one(script);
        }
    }

    fn record_one(&mut self, op: Op) {
        let (command_buffer, app) = (self.app.commands(), &mut self.app);
        match op {
            Op::Copy(src, dst) => {
                let region = BufferCopy { src_offset: 0, dst_offset: 0, size: 64 };
                let (src_buffer, dst_buffer) = (buffer(src), buffer(dst));
                let (region_count, p_regions) = (1, Ptr::to(&region));
                let params = CmdCopyBufferParams { command_buffer, src_buffer, dst_buffer, region_count, p_regions };
                app.call(Command::CmdCopyBuffer, &params);
            }
            Op::Fill(dst) => {
                let params =
                    CmdFillBufferParams { command_buffer, dst_buffer: buffer(dst), dst_offset: 0, size: 128, data: 7 };
                app.call(Command::CmdFillBuffer, &params);
            }
            Op::Barrier => app.barrier((EVERYTHING, WRITES), (EVERYTHING, ALL)),
            Op::Narrow => app.barrier((TRANSFER, BOTH), (TRANSFER, BOTH)),
            Op::Draws(count) => {
                app.begin_drawing();
                (0..count).for_each(|it| app.draw(it));
                app.end_drawing();
            }
            Op::Label => {
                let label = DebugUtilsLabelEXT {
                    p_label_name: Ptr::new(c"part".as_ptr().expose_provenance() as u64),
                    ..DebugUtilsLabelEXT::zeroed()
                };
                let params = CmdBeginDebugUtilsLabelEXTParams { command_buffer, p_label_info: Ptr::to(&label) };
                app.call(Command::CmdBeginDebugUtilsLabelEXT, &params);
            }
            Op::LabelEnd => {
                app.call(Command::CmdEndDebugUtilsLabelEXT, &CmdEndDebugUtilsLabelEXTParams { command_buffer });
            }
            Op::Marker(dst) => {
                let params = CmdWriteBufferMarkerAMDParams {
                    command_buffer,
                    pipeline_stage: PipelineStageFlagBits::TRANSFER,
                    dst_buffer: buffer(dst),
                    dst_offset: 0,
                    marker: 3,
                };
                app.call(Command::CmdWriteBufferMarkerAMD, &params);
            }
            Op::Execute => {
                let secondary = app::command_buffer(SECONDARY);
                let (command_buffer_count, p_command_buffers) = (1, Ptr::to(&secondary));
                let params = CmdExecuteCommandsParams { command_buffer, command_buffer_count, p_command_buffers };
                app.call(Command::CmdExecuteCommands, &params);
            }
        }
    }

    fn submit(&mut self) {
        let commands = self.app.commands();
        let submit =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&commands), ..SubmitInfo::zeroed() };
        let params =
            QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&submit), fence: Fence(0) };
        self.app.call(Command::QueueSubmit, &params);
        if self.next_one_in(2) {
            self.app.call(Command::QueueWaitIdle, &QueueWaitIdleParams { queue: queue(1) });
        }
    }
}

/// What is to be recorded: in most cases with a barrier in front of all that needs one.
fn script(rng: &mut TestRng) -> Vec<Op> {
    let is_right = rng.below(4) > 0;
    let all = (0..1 + rng.below(12)).map(|_| op(rng));
    all.flat_map(|it| [is_right.then_some(Op::Barrier), Some(it)]).flatten().collect()
}

fn op(rng: &mut TestRng) -> Op {
    let any = |rng: &mut TestRng| 1 + rng.below(BUFFERS);
    match rng.below(18) {
        0..4 => Op::Copy(any(rng), any(rng)),
        4..6 => Op::Fill(any(rng)),
        6..11 => Op::Barrier,
        11 => Op::Narrow,
        12..14 => Op::Draws(rng.below(3) as u32),
        14 => Op::Label,
        15 => Op::Execute,
        16 => Op::LabelEnd,
        _ => Op::Marker(any(rng)),
    }
}

/// What a validator says of records, call by call, and how many of them it did not look at.
fn validator_output(records: &[Record<'static>], seed: u64, compares: bool) -> (Vec<String>, u64) {
    let mut validator = Validator::default();
    validator.check_submissions();
    if !compares {
        validator.disable_caches();
    }
    let (mut all, mut rng, mut thread, mut stack) = (Vec::new(), TestRng::new(seed), 1, 0);
    for (index, record) in records.iter().enumerate() {
        // Both halves of a call are on one thread.
        if record.phase() == RecordPhase::Enter && rng.below(60) == 0 {
            thread = 3 - thread;
        }
        // Of some calls it is known where they were made.
        if rng.below(50) == 0 {
            stack = rng.below(6_u32).saturating_sub(3);
        }
        validator.set_call_stack(stack);
        validator.process_record(thread, *record);
        // What is recorded is all in one half.
        if format!("{:?}", record.command()).starts_with("Cmd") && rng.below(80) == 0 {
            validator.undo_call(thread, *record);
        }
        all.extend(validator.take_findings().iter().map(|it| format!("{index}: {it:?}")));
    }
    validator.finish();
    all.extend(validator.diagnostics().iter().map(|it| format!("{it:?}")));
    all.extend(validator.unsupported().map(|it| format!("{it:?}")));
    (all, validator.cached_calls())
}

#[test]
fn calls_that_are_what_they_were_need_not_be_checked() {
    let setting = |name, default| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default);
    let programs: u64 = setting("LAVASCOPE_SAMPLE_PROGRAMS", PROGRAMS);
    let first = setting("LAVASCOPE_SAMPLE_SEED", SEED);
    let (mut same, mut findings) = (0, 0);
    for seed in first..first + programs {
        let mut player = RandomRecordingApp::new(seed);
        (0..40).for_each(|_| player.frame());
        let (by_comparing, skipped) = validator_output(&player.app.records, seed, true);
        let (by_looking, none) = validator_output(&player.app.records, seed, false);
        let differs = by_comparing.iter().zip(&by_looking).find(|it| it.0 != it.1);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(by_comparing.len(), by_looking.len(), "seed {seed}");
        assert_eq!(none, 0);
        (same, findings) = (same + skipped, findings + by_looking.len());
    }
    assert!(same > 10 * programs, "{same} calls were compared only");
    assert!(findings as u64 > programs, "{findings} findings");
}

/// A frame that fills a buffer twice, with a barrier between; the next one races the last fill.
fn fill_twice(app: &mut RecordedApp) {
    let command_buffer = app.commands();
    let params = CmdFillBufferParams { command_buffer, dst_buffer: buffer(1), dst_offset: 0, size: 128, data: 7 };
    app.begin();
    app.call(Command::CmdFillBuffer, &params);
    app.barrier((EVERYTHING, WRITES), (EVERYTHING, ALL));
    app.call(Command::CmdFillBuffer, &params);
    app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
}

fn submit(app: &mut RecordedApp) {
    let commands = app.commands();
    let submit = SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&commands), ..SubmitInfo::zeroed() };
    let params = QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&submit), fence: Fence(0) };
    app.call(Command::QueueSubmit, &params);
}

/// A marker is not among the commands that may be cached: a recording with one is looked at each time, up to its end.
#[test]
fn a_command_that_is_not_listed_is_never_cached() {
    assert!(!REPEATABLE_COMMANDS.contains(&Command::CmdWriteBufferMarkerAMD));
    let cached_calls = |has_marker: bool| {
        let mut app = RecordedApp::default();
        app.make_device();
        app.make_buffer(1);
        app.make_buffer(2);
        let command_buffer = app.commands();
        for _ in 0..3 {
            app.begin();
            if has_marker {
                let params = CmdWriteBufferMarkerAMDParams {
                    command_buffer,
                    pipeline_stage: PipelineStageFlagBits::TRANSFER,
                    dst_buffer: buffer(2),
                    dst_offset: 0,
                    marker: 3,
                };
                app.call(Command::CmdWriteBufferMarkerAMD, &params);
            }
            let params =
                CmdFillBufferParams { command_buffer, dst_buffer: buffer(1), dst_offset: 0, size: 128, data: 7 };
            app.call(Command::CmdFillBuffer, &params);
            app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
        }
        let mut validator = Validator::default();
        app.records.iter().for_each(|it| validator.process_record(1, *it));
        validator.cached_calls()
    };
    assert_eq!((cached_calls(false), cached_calls(true)), (2, 0));
}

/// The calls are what they were the last time; where they were made then says nothing about now.
#[test]
fn call_stacks_are_those_of_the_last_recording() {
    let mut app = RecordedApp::default();
    app.make_device();
    app.make_buffer(1);
    fill_twice(&mut app);
    let second = app.records.len();
    fill_twice(&mut app);
    let third = app.records.len();
    fill_twice(&mut app);
    submit(&mut app);
    submit(&mut app);
    let is_barrier = |it: &Record<'_>| it.command() == Command::CmdPipelineBarrier;
    let barrier = second + app.records[second..].iter().position(is_barrier).expect("a barrier");
    let mut validator = Validator::default();
    validator.check_submissions();
    for (index, record) in app.records.iter().enumerate() {
        validator.set_call_stack(if (barrier..third).contains(&index) { 5 } else { 0 });
        validator.process_record(1, *record);
    }
    let [found] = validator.diagnostics() else { panic!("{:?}", validator.diagnostics()) };
    assert_eq!(found.stacks, []);
    assert!(validator.cached_calls() > 0, "the first call of the second recording is what it was");
}

/// A call that is made at the same place again is the same call, with its stack.
#[test]
fn calls_of_equal_stacks_are_not_checked_again() {
    let mut app = RecordedApp::default();
    app.make_device();
    app.make_buffer(1);
    (0..3).for_each(|_| fill_twice(&mut app));
    submit(&mut app);
    submit(&mut app);
    let found = |of_command: &dyn Fn(usize, Command) -> u32| {
        let mut validator = Validator::default();
        validator.check_submissions();
        for (index, record) in app.records.iter().enumerate() {
            validator.set_call_stack(of_command(index, record.command()));
            validator.process_record(1, *record);
        }
        let stacks = validator.diagnostics()[0].stacks.iter().map(|it| it.number).collect::<Vec<_>>();
        (stacks, validator.cached_calls())
    };
    let (none, cached) = found(&|_, _| 0);
    assert!(none.is_empty() && cached > 0);
    let (stacks, cached_with_stacks) = found(&|_, command| command as u32);
    assert_eq!(cached_with_stacks, cached);
    assert_eq!(stacks[..2], [Command::CmdFillBuffer as u32; 2]);
    let (_, cached_elsewhere) = found(&|index, _| index as u32 + 1);
    assert_eq!(cached_elsewhere, 0, "each call is made at another place");
}

/// Shaders tell by the numbers of commands what they touched: all of these are counted.
#[test]
fn every_call_is_checked_where_shaders_tell() {
    let mut app = RecordedApp::default();
    app.make_device();
    app.make_buffer(1);
    (0..3).for_each(|_| fill_twice(&mut app));
    let same = |expects_feedback| {
        let mut validator = Validator::default();
        validator.check_submissions();
        for record in &app.records {
            validator.process_record(1, *record);
            if expects_feedback && record.command() == Command::CreateDevice {
                validator.expect_feedback(SyntheticObjects::id_of(HandleType::Device, device(1).0));
            }
        }
        validator.cached_calls()
    };
    assert!(same(false) > 0);
    assert_eq!(same(true), 0);
}
