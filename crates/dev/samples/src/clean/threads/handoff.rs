//! Threads hand objects to each other in a random order that a seed decides.
//!
//! A parcel holds a buffer, command pools, fences and what else one needs to work on them. It visits threads, each
//! of which records and submits one operation on the buffer. Objects are made by one thread, used by others, and
//! destroyed by yet another. What happens to a parcel does not depend on the others, so the final bytes depend on
//! the seed alone, although the order of the submissions does not.
//!
//! A recorder is reused only after its own fence; uses of the buffer are ordered by barriers, in submission order.

mod parcel;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ash::vk;
use lavascope_test_support::TestRng;

use self::parcel::{HandoffPipeline, Parcel, WORDS};
use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Gpu, Needs, Queue};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "threads-handoff",
    about: "Hands buffers, pools and fences from thread to thread in an order that a seed decides.",
    run,
};

/// One operation on the words of a parcel. Ranges are in words: where, how many.
#[derive(Clone, Debug)]
enum Operation {
    Fill {
        at: u32,
        count: u32,
        value: u32,
    },
    Update {
        at: u32,
        words: Vec<u32>,
    },
    /// From the first half to the second.
    Copy {
        from: u32,
        to: u32,
        count: u32,
    },
    Scramble {
        key: u32,
    },
    /// Moves everything to a new buffer; a later thread destroys the old one.
    Move,
}

/// A station of a parcel's way.
#[derive(Clone, Debug)]
struct Stop {
    thread: usize,
    operation: Operation,
}

/// The messages in the channels.
enum HandoffMessage {
    Parcel(Box<Parcel>),
    /// A thread failed.
    End,
}

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&Needs::NOTHING)?;
    let (threads, visits) = (options.threads.unwrap_or(4) as usize, options.frames.unwrap_or(12));
    let routes = routes(options.seed, threads, visits);
    let machine = HandoffPipeline::new(&gpu)?;
    let parcels = run_handoffs(&machine, threads, &routes)?;
    let got = machine.collect(parcels)?;
    let want: Vec<u32> = routes.iter().flat_map(|it| expected_words(it)).collect();
    options.check.words("the words of the parcels", &got, &want)
}

/// The way of each parcel, two per thread.
fn routes(seed: u64, threads: usize, visits: u32) -> Vec<Vec<Stop>> {
    let mut random = TestRng::new(seed);
    let mut stop = || Stop { thread: random.below(threads as u32) as usize, operation: operation(&mut random) };
    (0..threads * 2).map(|_| (0..visits).map(|_| stop()).collect()).collect()
}

fn operation(random: &mut TestRng) -> Operation {
    let half = WORDS / 2;
    match random.below(8) {
        0 | 1 => {
            let at = random.below(WORDS);
            Operation::Fill { at, count: 1 + random.below(WORDS - at), value: random.next_u32() }
        }
        2 | 3 => {
            let at = random.below(WORDS);
            let count = 1 + random.below((WORDS - at).min(16));
            Operation::Update { at, words: (0..count).map(|_| random.next_u32()).collect() }
        }
        4 => {
            let (from, to) = (random.below(half), half + random.below(half));
            Operation::Copy { from, to, count: 1 + random.below((half - from).min(WORDS - to)) }
        }
        5 => Operation::Move,
        _ => Operation::Scramble { key: random.next_u32() },
    }
}

/// The expected words of a parcel at the end of its way.
fn expected_words(route: &[Stop]) -> Vec<u32> {
    let mut words = vec![0u32; WORDS as usize];
    for stop in route {
        match &stop.operation {
            Operation::Fill { at, count, value } => words[*at as usize..][..*count as usize].fill(*value),
            Operation::Update { at, words: new } => words[*at as usize..][..new.len()].copy_from_slice(new),
            Operation::Copy { from, to, count } => {
                words.copy_within(*from as usize..(*from + *count) as usize, *to as usize);
            }
            Operation::Scramble { key } => {
                for (at, word) in words.iter_mut().enumerate() {
                    let mixed = (*word ^ key).wrapping_mul(0x9E37_79B1).wrapping_add(at as u32);
                    *word = mixed.rotate_left(13);
                }
            }
            Operation::Move => {}
        }
    }
    words
}

/// Sends the parcels on their way, and gives them back in order when all have arrived.
fn run_handoffs(machine: &HandoffPipeline, threads: usize, routes: &[Vec<Stop>]) -> Result<Vec<Parcel>, Failure> {
    let queue = Mutex::new(machine.gpu.main);
    let (to_threads, from_senders): (Vec<Sender<HandoffMessage>>, Vec<Receiver<HandoffMessage>>) =
        (0..threads).map(|_| channel()).unzip();
    let (to_main, arrivals) = channel();
    let context = HandoffContext { machine, queue: &queue, routes, to_threads: &to_threads, to_main: &to_main };
    let mut parcels = thread::scope(|scope| {
        let workers = from_senders.into_iter().enumerate().map(|(index, inbox)| {
            let context = &context;
            scope.spawn(move || context.work(index, &inbox).inspect_err(|_| context.end()))
        });
        let workers: Vec<_> = workers.collect();
        let started: Result<(), Failure> = (0..routes.len()).try_for_each(|index| {
            context.forward(Parcel::new(machine, index)?);
            Ok(())
        });
        if started.is_err() {
            context.end();
        }
        let mut parcels = Vec::new();
        while parcels.len() < routes.len()
            && let Ok(HandoffMessage::Parcel(parcel)) = arrivals.recv()
        {
            parcels.push(*parcel);
        }
        for worker in workers {
            worker.join().unwrap_or_else(|_| Err(Failure::Wrong("a thread panicked".to_owned())))?;
        }
        started.map(|()| parcels)
    })?;
    parcels.sort_by_key(|it| it.index);
    Ok(parcels)
}

/// What every thread needs to work and to pass parcels on.
struct HandoffContext<'a> {
    machine: &'a HandoffPipeline<'a>,
    /// Submitting needs the queue for oneself.
    queue: &'a Mutex<Queue>,
    routes: &'a [Vec<Stop>],
    to_threads: &'a [Sender<HandoffMessage>],
    to_main: &'a Sender<HandoffMessage>,
}

impl HandoffContext<'_> {
    /// One thread: it knows how many visits it will get.
    fn work(&self, index: usize, inbox: &Receiver<HandoffMessage>) -> Result<(), Failure> {
        let visits = self.routes.iter().flatten().filter(|it| it.thread == index).count();
        for _ in 0..visits {
            let Ok(HandoffMessage::Parcel(mut parcel)) = inbox.recv() else { return Ok(()) };
            let stop = &self.routes[parcel.index][parcel.visits];
            let (commands, fence) = parcel.record(self.machine, &stop.operation)?;
            self.submit(commands, fence)?;
            self.forward(*parcel);
        }
        Ok(())
    }

    fn submit(&self, commands: vk::CommandBuffer, fence: vk::Fence) -> Result<(), Failure> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.machine.gpu.submit(*queue, &vk::SubmitInfo::default().command_buffers(&[commands]), fence)
    }

    /// To the next thread, or back to the main thread. A receiver that was dropped belongs to a thread that failed and
    /// has informed all others.
    fn forward(&self, parcel: Parcel) {
        let next = self.routes[parcel.index].get(parcel.visits).map(|it| it.thread);
        let sender = next.map_or(self.to_main, |it| &self.to_threads[it]);
        let _ = sender.send(HandoffMessage::Parcel(Box::new(parcel)));
    }

    fn end(&self) {
        for sender in self.to_threads.iter().chain([self.to_main]) {
            let _ = sender.send(HandoffMessage::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_the_ways_and_the_words() {
        let words = |seed| routes(seed, 3, 10).iter().map(|it| expected_words(it)).collect::<Vec<_>>();
        assert_eq!(words(5), words(5));
        assert_ne!(words(5), words(6));
    }

    #[test]
    fn operations_stay_inside_of_the_buffer() {
        let mut random = TestRng::new(9);
        for _ in 0..10_000 {
            match operation(&mut random) {
                Operation::Fill { at, count, .. } => assert!(count > 0 && at + count <= WORDS),
                Operation::Update { at, words } => {
                    assert!(!words.is_empty() && at as usize + words.len() <= WORDS as usize)
                }
                Operation::Copy { from, to, count } => {
                    assert!(count > 0 && from + count <= WORDS / 2 && to >= WORDS / 2 && to + count <= WORDS);
                }
                Operation::Scramble { .. } | Operation::Move => {}
            }
        }
    }
}
