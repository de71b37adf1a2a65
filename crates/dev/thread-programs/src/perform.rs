//! Makes the calls of programs.

use std::ffi::CStr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lavascope_test_support::TestRng;

use crate::generate::{Program, Step, generate};
use crate::hand_over::HandOver;
use crate::vulkan::{ProgramObjects, TestDevice};

/// How many calls each operation took: by program, thread and operation.
pub type CallCounts = Vec<Vec<Vec<u64>>>;

/// Performs the programs of some seeds under a layer, one after the other.
pub fn perform(layer: &CStr, queues: usize, seeds: std::ops::Range<u64>) -> CallCounts {
    let gpu = Arc::new(TestDevice::open(layer, queues));
    let mut occupied = 0;
    let perform_one = |(number, seed): (usize, u64)| {
        if number % FRESH_INTERVAL != 0 {
            return perform_program(&gpu, number, seed);
        }
        let streams = occupy_streams(&gpu, occupied);
        let counts = perform_program(&gpu, number, seed);
        occupied += counts.len();
        drop(streams.end);
        streams.threads.into_iter().for_each(|it| it.join().expect("nobody panics"));
        counts
    };
    let counts = seeds.enumerate().map(perform_one).collect();
    gpu.close();
    counts
}

/// In one of so many programs, each thread has a stream of its own. A thread of the others mostly continues the stream
/// of one that has ended, in which requests of barriers have been left.
const FRESH_INTERVAL: usize = 8;

/// Threads that have the streams of those that have ended, until `end` is dropped.
struct OccupiedStreams {
    end: Sender<()>,
    threads: Vec<JoinHandle<()>>,
}

fn occupy_streams(gpu: &Arc<TestDevice>, count: usize) -> OccupiedStreams {
    let (end, ended) = channel::<()>();
    let (ended, ready) = (Arc::new(Mutex::new(ended)), Arc::new(Barrier::new(count + 1)));
    let start = |_| {
        let (gpu, ended, ready) = (Arc::clone(gpu), Arc::clone(&ended), Arc::clone(&ready));
        std::thread::spawn(move || {
            gpu.make_any_call();
            ready.wait();
            let _ = ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
        })
    };
    let threads = (0..count).map(start).collect();
    ready.wait();
    OccupiedStreams { end, threads }
}

/// A program while it runs.
struct RunningProgram {
    program: Program,
    objects: ProgramObjects,
    hand_overs: Vec<HandOver>,
    seed: u64,
    /// The threads that run, by number.
    threads: Vec<Mutex<Option<JoinHandle<()>>>>,
    counts: Vec<Mutex<Vec<u64>>>,
}

fn perform_program(gpu: &Arc<TestDevice>, number: usize, seed: u64) -> Vec<Vec<u64>> {
    let program = generate(seed, gpu.queues.len());
    let threads = program.threads.len();
    let running = Arc::new(RunningProgram {
        hand_overs: program.hand_overs.iter().map(|it| HandOver::new(*it)).collect(),
        objects: ProgramObjects::new(Arc::clone(gpu), number),
        seed,
        threads: (0..threads).map(|_| Mutex::default()).collect(),
        counts: (0..threads).map(|_| Mutex::default()).collect(),
        program,
    });
    running.run_thread(0);
    running.counts.iter().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
}

impl RunningProgram {
    fn run_thread(self: &Arc<Self>, thread: usize) {
        let mut noise = TestRng::new(self.seed.wrapping_mul(64).wrapping_add(thread as u64));
        let mut counts = Vec::new();
        for step in &self.program.threads[thread].steps {
            make_noise(&mut noise);
            match step {
                Step::Call(operation) => counts.push(self.objects.perform(thread, operation)),
                Step::Post(number) => self.hand_overs[*number].post(),
                Step::Wait(number) => self.hand_overs[*number].wait(),
                Step::Start(new) => {
                    let (new, running) = (*new, Arc::clone(self));
                    let mut place = self.threads[new].lock().unwrap_or_else(PoisonError::into_inner);
                    *place = Some(std::thread::spawn(move || running.run_thread(new)));
                }
                Step::Join(other) => {
                    // It may not have been started yet.
                    let handle = loop {
                        let handle = self.threads[*other].lock().unwrap_or_else(PoisonError::into_inner).take();
                        match handle {
                            Some(handle) => break handle,
                            None => std::thread::yield_now(),
                        }
                    };
                    handle.join().expect("nobody panics");
                }
            }
        }
        *self.counts[thread].lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

/// Lets other threads come first, now and then.
fn make_noise(rng: &mut TestRng) {
    match rng.below(64_u32) {
        0 => std::thread::sleep(Duration::from_micros(rng.below(60_u64))),
        1..6 => std::thread::yield_now(),
        6..10 => (0..rng.below(400_u32)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}
