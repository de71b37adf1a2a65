//! Command buffers that are recorded again and again: one validator looks at all their calls, and another one only where
//! they are not what they were the last time. Both must tell the same, at the same calls.
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` make it more, and others.

#[path = "../benches/records/app.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod app;
#[path = "../benches/records/drawing.rs"]
#[allow(dead_code, reason = "benchmarks use the rest")]
mod drawing;

use app::*;
use lavascope_abi::*;
use lavascope_event::{Kind, Record};
use lavascope_sim::Random;
use lavascope_validate::Validator;

const PROGRAMS: u64 = 200;
const SEED: u64 = 0;
const BUFFERS: u64 = 6;
const COMMAND_BUFFERS: [u64; 3] = [2, 4, 6];
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
    /// What no script has.
    Marker(u64),
}

struct Player {
    app: App,
    rng: Random,
    /// What each command buffer was recorded with last.
    scripts: Vec<Vec<Op>>,
    buffers: u64,
}

impl Player {
    fn new(seed: u64) -> Player {
        let mut app = App::default();
        app.make_drawing();
        for it in &COMMAND_BUFFERS[1..] {
            app.other = Some(*it);
            app.make_command_buffer();
        }
        for it in 5..=BUFFERS {
            app.make_buffer(it);
        }
        let mut rng = Random::new(seed);
        let scripts = COMMAND_BUFFERS.map(|_| script(&mut rng)).to_vec();
        Player { app, rng, scripts, buffers: BUFFERS }
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn frame(&mut self) {
        let which = self.rng.below(3) as usize;
        self.app.other = Some(COMMAND_BUFFERS[which]);
        self.change_between();
        if self.is(3) {
            self.change_script(which);
        }
        if self.is(8) {
            self.reset();
        }
        self.app.begin();
        if self.is(12) {
            // Begun again, before anything of it was executed.
            self.record(which, 1);
            self.app.begin();
        }
        self.record(which, usize::MAX);
        let commands = self.app.commands();
        self.app.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer: commands });
        if !self.is(4) {
            self.submit();
        }
    }

    fn change_script(&mut self, which: usize) {
        let new = op(&mut self.rng);
        let len = self.scripts[which].len();
        let at = self.rng.below(len as u64 + 1) as usize;
        let own = &mut self.scripts[which];
        match self.rng.below(4) {
            0 if at < len => own[at] = new,
            1 => own.insert(at, new),
            2 => own.truncate(at),
            _ => own.push(new),
        }
    }

    /// Something else happens before the next recording.
    fn change_between(&mut self) {
        match self.rng.below(24) {
            0 => {
                let uniforms = 1 + self.rng.below(self.buffers);
                let sets = [descriptor_set(1), descriptor_set(2)];
                self.app.write_sets(sets, DescriptorType::UNIFORM_BUFFER_DYNAMIC, uniforms);
            }
            1 if self.buffers < 12 => {
                self.buffers += 1;
                let at = self.rng.below(8) * BUFFER_SIZE / 2 + BUFFER_SIZE;
                self.app.make_buffer_at(self.buffers, at);
            }
            2 if self.buffers > BUFFERS => {
                let gone = buffer(self.buffers);
                self.buffers -= 1;
                for it in self.scripts.iter_mut().flatten() {
                    if let Op::Copy(..) | Op::Fill(_) = it {
                        *it = Op::Fill(1 + self.rng.below(BUFFERS));
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
        if self.is(2) {
            let params =
                ResetCommandPoolParams { device, command_pool: command_pool(1), flags: CommandPoolResetFlags(0) };
            self.app.call(Command::ResetCommandPool, &params);
        } else {
            let params = ResetCommandBufferParams { command_buffer, flags: CommandBufferResetFlags(0) };
            self.app.call(Command::ResetCommandBuffer, &params);
        }
    }

    fn record(&mut self, which: usize, most: usize) {
        for it in self.scripts[which].clone().into_iter().take(most) {
            self.record_one(it);
        }
    }

    fn record_one(&mut self, it: Op) {
        let (command_buffer, app) = (self.app.commands(), &mut self.app);
        match it {
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
        }
    }

    fn submit(&mut self) {
        let commands = self.app.commands();
        let submit =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&commands), ..SubmitInfo::zeroed() };
        let params =
            QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&submit), fence: Fence(0) };
        self.app.call(Command::QueueSubmit, &params);
        if !self.is(5) {
            self.app.call(Command::QueueWaitIdle, &QueueWaitIdleParams { queue: queue(1) });
        }
    }
}

/// What is to be recorded: in most cases with a barrier in front of all that needs one.
fn script(rng: &mut Random) -> Vec<Op> {
    let is_right = rng.below(4) > 0;
    let all = (0..1 + rng.below(12)).map(|_| op(rng));
    all.flat_map(|it| [is_right.then_some(Op::Barrier), Some(it)]).flatten().collect()
}

fn op(rng: &mut Random) -> Op {
    let any = |rng: &mut Random| 1 + rng.below(BUFFERS);
    match rng.below(16) {
        0..4 => Op::Copy(any(rng), any(rng)),
        4..6 => Op::Fill(any(rng)),
        6..11 => Op::Barrier,
        11 => Op::Narrow,
        12..14 => Op::Draws(rng.below(3) as u32),
        14 => Op::Label,
        _ => Op::Marker(any(rng)),
    }
}

/// What a validator says of records, call by call, and how many of them it did not look at.
fn told(records: &[Record<'static>], seed: u64, compares: bool) -> (Vec<String>, u64) {
    let mut validator = Validator::default();
    validator.want_submissions();
    if !compares {
        validator.compare_no_calls();
    }
    let (mut all, mut rng, mut thread) = (Vec::new(), Random::new(seed), 1);
    for (index, record) in records.iter().enumerate() {
        // Both halves of a call are on one thread.
        if record.kind() == Kind::Enter && rng.below(60) == 0 {
            thread = 3 - thread;
        }
        validator.record(thread, *record);
        all.extend(validator.take().iter().map(|it| format!("{index}: {it:?}")));
    }
    validator.finish();
    all.extend(validator.diagnostics().iter().map(|it| format!("{it:?}")));
    all.extend(validator.missing().map(|it| format!("{it:?}")));
    (all, validator.same_calls())
}

#[test]
fn calls_that_are_what_they_were_need_not_be_looked_at() {
    let setting = |name, default| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default);
    let programs: u64 = setting("LAVASCOPE_SAMPLE_PROGRAMS", PROGRAMS);
    let first = setting("LAVASCOPE_SAMPLE_SEED", SEED);
    let (mut same, mut findings) = (0, 0);
    for seed in first..first + programs {
        let mut player = Player::new(seed);
        (0..40).for_each(|_| player.frame());
        let (by_comparing, skipped) = told(&player.app.records, seed, true);
        let (by_looking, none) = told(&player.app.records, seed, false);
        let differs = by_comparing.iter().zip(&by_looking).find(|it| it.0 != it.1);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(by_comparing.len(), by_looking.len(), "seed {seed}");
        assert_eq!(none, 0);
        (same, findings) = (same + skipped, findings + by_looking.len());
    }
    assert!(same > 10 * programs, "{same} calls were compared only");
    assert!(findings as u64 > programs, "{findings} findings");
}
