//! One timeline semaphore orders the host and two queues; work waits for values that are signaled only later.

use ash::vk;
use lavascope_test_support::TestRng;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Buffer, Feature, Gpu, MemoryPlacement, Needs, Queue, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "timeline",
    about: "Orders the host and two queues with a timeline semaphore, waiting before signaling where it may.",
    run,
};

const NEEDS: Needs = Needs { features: &[Feature::TimelineSemaphore], second_queue: true, ..Needs::NOTHING };
const WORDS: usize = 64;
const SIZE: u64 = WORDS as u64 * 4;
/// Values per round: the host begins, the main queue has filled, the second queue has copied.
const STEPS: u64 = 3;
/// Buffers for the copies.
const SLOTS: u32 = 64;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    let rounds = options.frames.unwrap_or(4);
    let semaphore = gpu.timeline("timeline")?;
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let scratch = gpu.shared_buffer("scratch", SIZE, usage, MemoryPlacement::Device)?;
    // The copies of the rounds go into buffers of their own, as long as there are enough.
    let slots = rounds.min(SLOTS) as usize;
    let result = |slot| gpu.shared_buffer(&format!("result {slot}"), SIZE, usage, MemoryPlacement::Device);
    let results: Vec<Buffer> = (0..slots).map(result).collect::<Result<_, Failure>>()?;
    let mut random = TestRng::new(options.seed);
    let mut want = vec![Vec::new(); slots];
    for round in 0..rounds {
        let words: Vec<u32> = (0..WORDS).map(|_| random.next_u32()).collect();
        let slot = round as usize % slots;
        let start = u64::from(round) * STEPS;
        let begins = if round % 2 == 0 { RoundStart::Late } else { RoundStart::Early };
        Round { gpu: &gpu, semaphore, start, scratch, result: results[slot] }.run(begins, &words)?;
        want[slot] = words;
    }
    // SAFETY: a live timeline semaphore, and the feature is enabled (lifetime, feature).
    let value = unsafe { gpu.device.get_semaphore_counter_value(semaphore) }?;
    let last = u64::from(rounds) * STEPS;
    options.check.number("the semaphore's counter", value, last..last + 1)?;
    for (result, want) in results.iter().zip(&want) {
        options.check.words("the copies", &gpu.download(result, scope::COPY_WRITE)?, want)?;
    }
    Ok(())
}

/// Whether the host lets a round begin before its work is submitted, or after that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RoundStart {
    Early,
    Late,
}

/// One way around: host, main queue, second queue, host.
struct Round<'a> {
    gpu: &'a Gpu,
    semaphore: vk::Semaphore,
    /// The counter's value before this round.
    start: u64,
    scratch: Buffer,
    result: Buffer,
}

impl Round<'_> {
    fn run(&self, begins: RoundStart, words: &[u32]) -> Result<(), Failure> {
        let gpu = self.gpu;
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
        let fill = gpu.record_new(gpu.main, "fill", |commands| {
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { gpu.device.cmd_update_buffer(commands, self.scratch.handle, 0, &bytes) };
        })?;
        let copy = gpu.record_new(gpu.second, "copy", |commands| {
            let region = vk::BufferCopy::default().size(SIZE);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { gpu.device.cmd_copy_buffer(commands, self.scratch.handle, self.result.handle, &[region]) };
        })?;
        if begins == RoundStart::Early {
            self.signal(self.start + 1)?;
        }
        // The copy waits for the fill, which is not submitted yet. On a single queue, which may begin its batches in
        // order only, that would wait forever.
        let is_single = gpu.main.handle == gpu.second.handle;
        if is_single {
            self.submit(gpu.main, fill, self.start + 1)?;
            self.submit(gpu.second, copy, self.start + 2)?;
        } else {
            self.submit(gpu.second, copy, self.start + 2)?;
            self.submit(gpu.main, fill, self.start + 1)?;
        }
        if begins == RoundStart::Late {
            self.signal(self.start + 1)?;
        }
        self.wait(self.start + STEPS)
    }

    /// Waits for a value on the device and signals the next.
    fn submit(&self, queue: Queue, commands: vk::CommandBuffer, value: u64) -> Result<(), Failure> {
        let (waits, signals) = ([value], [value + 1]);
        let mut values =
            vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&waits).signal_semaphore_values(&signals);
        let (semaphores, commands) = ([self.semaphore], [commands]);
        let submit = vk::SubmitInfo::default()
            .wait_semaphores(&semaphores)
            .wait_dst_stage_mask(&[vk::PipelineStageFlags::TRANSFER])
            .command_buffers(&commands)
            .signal_semaphores(&semaphores)
            .push_next(&mut values);
        self.gpu.submit(queue, &submit, vk::Fence::null())
    }

    fn signal(&self, value: u64) -> Result<(), Failure> {
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.semaphore).value(value);
        // SAFETY: the value is above the counter's and below those that wait to be signaled (lifetime, feature).
        Ok(unsafe { self.gpu.device.signal_semaphore(&info) }?)
    }

    fn wait(&self, value: u64) -> Result<(), Failure> {
        let (semaphores, values) = ([self.semaphore], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: a live timeline semaphore, and the feature is enabled (lifetime, feature).
        Ok(unsafe { self.gpu.device.wait_semaphores(&info, u64::MAX) }?)
    }
}
