//! Threads record secondary command buffers that each fill their own slice of a buffer; one, which the seed
//! chooses, reaches into the slice of the next: write after write, in one of many.

use std::thread;

use crate::arguments::SampleOptions;
use crate::common::{MemoryPlacement, Needs, scope};
use crate::failure::Failure;
use crate::faults::context::FaultContext;
use crate::faults::faults;

use ash::vk;
use lavascope_test_support::TestRng;

faults! {
    threads: "threads",
        "one of many secondary command buffers fills a part of its neighbor's slice (write after write).",
}

const SLICE: u64 = 256;
/// How far the fault reaches into the next slice.
const REACH: u64 = 64;

fn threads(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    // A fault needs a neighbor.
    let threads = options.threads.unwrap_or(8).max(2);
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let buffer = lab.buffer("slices", SLICE * u64::from(threads), usage, MemoryPlacement::Device)?;
    let culprit = TestRng::new(options.seed).below(threads - 1);
    let record = |index: u32| {
        let size = if index == culprit { lab.planted_or_fixed(SLICE + REACH, SLICE) } else { SLICE };
        lab.record_secondary(&format!("thread {index}"), &Default::default(), |commands| {
            lab.fill_buffer(commands, &buffer, (SLICE * u64::from(index), size), index + 1);
        })
    };
    let recorded = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|index| scope.spawn(move || record(index))).collect();
        let panicked = || Failure::Wrong("a thread panicked".to_owned());
        workers.into_iter().map(|it| it.join().map_err(|_| panicked())?).collect::<Result<Vec<_>, Failure>>()
    })?;
    lab.run_once("all slices", |commands| {
        // SAFETY: live objects; the threads have ended (lifetime, owner).
        unsafe { lab.device.cmd_execute_commands(commands, &recorded) };
    })?;
    let want: Vec<u32> = (0..threads).flat_map(|index| [index + 1; SLICE as usize / 4]).collect();
    lab.expect(&buffer, scope::COPY_WRITE, &want)
}
